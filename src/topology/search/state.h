/* SPDX-License-Identifier: Apache-2.0
 * Holds the state of a search: the problem, the columns (rings or trees) found so far, and the
 * share of each. A share is the rate of a column in B/s, of any size. */
#ifndef TUTTI_TOPOLOGY_SEARCH_STATE_H
#define TUTTI_TOPOLOGY_SEARCH_STATE_H

#include "topology/search/master.h"
#include "topology/search/pricing.h"

struct tutti_search_state {
    enum tutti_pattern pattern;
    struct tutti_pricing pricing;
    struct tutti_search_master master;
    struct tutti_search_column *columns;
    uint32_t ncolumns, capacity; /* columns, and how many `columns` has memory for */
    const double *share;         /* B/s of each column in the chosen solution; borrowed */
    uint32_t nshares;            /* columns of this solution; later columns have no share */
    double bound;                /* upper bound in B/s on the sum of all shares */
    double *bound_price;         /* price of each link of the pricing that proves the bound */
    double unit;                 /* B/s that count as 1 in the linear program */
    /* Scratch: current and smoothed prices of links; costs of paths; use of rows by one column. */
    double *price, *smooth_price, *cost, *row_use;
};

/* Fills in the state; the caller releases it with tutti_search_close(), on error too. Errors are
 * those of tutti_search(). */
int tutti_search_open(struct tutti_search_state *search, const struct tutti_paths *paths,
                      const struct tutti_search_options *options);
void tutti_search_close(struct tutti_search_state *search);

/* Adds columns to the linear program until none improves the solution. with_proof: also tries to
 * prove that none can, and stores the bound. Without it, it may end before the optimum.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_generate(struct tutti_search_state *search, bool with_proof);
/* Returns true if the links are so many that the columns are limited to save time. */
bool tutti_search_is_hasty(const struct tutti_search_state *search);

/* Finds the cheapest ring or tree at the prices in search->price, and a lower bound *ret_least on
 * the cost of any. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_cheapest(struct tutti_search_state *search, bool with_effort,
                          struct tutti_search_column *column, double *ret_cost, double *ret_least);

/* Gives the columns of the linear program their present penalties (pricing.h), and makes the
 * solution the best one of these columns. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_revalue(struct tutti_search_state *search);
/* Copies the shares of the linear program's solution to a new array of ncolumns items, which the
 * caller frees. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_shares(const struct tutti_search_state *search, double **ret_share);

#endif
