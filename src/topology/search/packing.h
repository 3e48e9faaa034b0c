/* SPDX-License-Identifier: Apache-2.0
 * Converts shares of any size to channels of one width, which is their rate in B/s. */
#ifndef TUTTI_TOPOLOGY_SEARCH_PACKING_H
#define TUTTI_TOPOLOGY_SEARCH_PACKING_H

#include "topology/search/state.h"

/* Relative tolerance for sums of rates that fill a link. */
#define TUTTI_PACKING_TOLERANCE 1e-6

/* The channels for one width. */
struct tutti_packing {
    struct tutti_search_state *search;
    uint32_t most;                                            /* upper bound for the channels */
    double *left;                                             /* free capacity of each link */
    struct tutti_search_column column[TUTTI_SEARCH_CHANNELS]; /* borrowed from the search, or own */
    bool is_own[TUTTI_SEARCH_CHANNELS];
    uint32_t count; /* of channels */
    double width;   /* of each channel, in B/s */
};

/* Starts without channels; the caller releases the packing with tutti_packing_fini(), on error too.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_packing_init(struct tutti_packing *packing, struct tutti_search_state *search);
void tutti_packing_fini(struct tutti_packing *packing);

/* Adds a channel, which must fit. is_own: the packing owns the column. */
void tutti_packing_add(struct tutti_packing *packing, const struct tutti_search_column *column,
                       bool is_own);
/* Removes the first channel, and stores it with its owner. */
void tutti_packing_take(struct tutti_packing *packing, struct tutti_search_column *ret_column,
                        bool *ret_is_own);
/* Returns true if the links have room for one more channel. */
bool tutti_packing_fits(const struct tutti_packing *packing,
                        const struct tutti_search_column *column);
/* Sets the greatest width at which all packed channels fit. */
void tutti_packing_widen(struct tutti_packing *packing);
/* Returns the rate of all channels together. */
double tutti_packing_rate(const struct tutti_packing *packing);

/* Packs the channels that carry the most. A larger number of channels must carry more by 0.1 %. If
 * no link is used, it makes one channel of infinite width. TUTTI_ERR_SYSTEM: no memory. */
int tutti_packing_most(struct tutti_packing *packing);
/* Packs the fewest channels, at most `most`, that together carry `least` B/s. *ret_is_found is
 * false if there are none. TUTTI_ERR_SYSTEM: no memory. */
int tutti_packing_fewest(struct tutti_packing *packing, double least, uint32_t most,
                         bool *ret_is_found);

#endif
