/* SPDX-License-Identifier: Apache-2.0
 * From shares, of any size, to channels of one width. */
#ifndef TUTTI_TOPOLOGY_SEARCH_CHANNELS_H
#define TUTTI_TOPOLOGY_SEARCH_CHANNELS_H

#include "topology/search/market.h"

/* A search: what it is about, the columns it has found, and how much of each. */
struct search {
    enum tutti_pattern pattern;
    struct market market;
    struct column *columns;
    uint32_t ncolumns, capacity;
    double *share;       /* bytes per second of each column, best together */
    double bound;        /* no shares carry more */
    double *bound_price; /* of each link of the market, that proves it */
    double unit;         /* bytes per second that count as 1 in the programme */
    /* Scratch: prices of links, now and on average; costs of paths; one row. */
    double *price, *calm_price, *cost, *row;
};

int tutti_channels_make(struct search *search, const struct tutti_paths *paths,
                        const struct tutti_search_options *options,
                        struct tutti_channels **ret_plan);

#endif
