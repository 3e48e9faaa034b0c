/* SPDX-License-Identifier: Apache-2.0
 * Converts the result of a search to channels of one width, which is their rate in B/s. In the
 * result each column (ring or tree) has a share of any size. */
#ifndef TUTTI_TOPOLOGY_SEARCH_CHANNELS_H
#define TUTTI_TOPOLOGY_SEARCH_CHANNELS_H

#include "topology/search/pricing.h"

/* The state of a search: the problem, the columns (rings or trees) found so far, and the share of
 * each. */
struct tutti_search_state {
    enum tutti_pattern pattern;
    struct tutti_pricing pricing;
    struct tutti_search_column *columns;
    uint32_t ncolumns, capacity; /* columns, and how many `columns` has memory for */
    double *share;       /* B/s of each column in the best solution */
    double bound;        /* upper bound in B/s on the sum of all shares */
    double *bound_price; /* price of each link of the pricing that proves the bound */
    double unit;         /* B/s that count as 1 in the linear program */
    /* Scratch: current and smoothed prices of links; costs of paths; use of rows by one column. */
    double *price, *smooth_price, *cost, *row_use;
};

/* Makes the plan of a finished search; the caller destroys it with tutti_channels_destroy().
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_channels_make(struct tutti_search_state *search, const struct tutti_paths *paths,
                        const struct tutti_search_options *options,
                        struct tutti_channels **ret_plan);

#endif
