/* SPDX-License-Identifier: Apache-2.0
 * Chooses among solutions of a search that carry nearly the same.
 *
 * The linear program counts only bytes per second, and many solutions reach the optimum. Each path
 * gets a penalty here, which is subtracted from the value of the rings and trees that use it. The
 * program is then solved again, from the solution that it has. A penalty above 1 excludes a path.
 * Steps follow each other, and each one stays only if the shares still add up to enough:
 *
 *   1. Weak ports are left out: those with less than a quarter of the rate of the host's widest
 *      port that add little. All of them together add at most TUTTI_TASTE_WEAK.
 *   2. Between gpus, only NVLinks are used, at most through one gpu in between.
 *   3. Each port is entered and left only by its nearest gpus, or by those that reach it over
 *      NVLinks.
 *   4. Small penalties prefer better classes of paths (paths.h).
 *
 * Steps 2 to 4 lose at most TUTTI_TASTE_LOSS of the rate without them. So do the later choices:
 * few channels (packing.h), and channels that are spread over ports (spread.h).
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_TASTE_H
#define TUTTI_TOPOLOGY_SEARCH_TASTE_H

#include "topology/search/state.h"

/* The part of the rate that weak ports may add and are still left out. */
#define TUTTI_TASTE_WEAK 0.04
/* The part of the rate that may be lost for fewer channels, nearer ports and better paths. */
#define TUTTI_TASTE_LOSS 0.02
/* Rings and trees with this penalty or more use an excluded path. */
#define TUTTI_TASTE_EXCLUDED 1.0

/* A solution of the linear program, and the penalties for which it is the best one. */
struct tutti_taste_level {
    double *share;
    uint32_t nshares;
    double *penalty; /* as in struct tutti_pricing */
};

enum { TUTTI_TASTE_LEVELS = 5 };

/* The solutions, each with more taste than the one before. */
struct tutti_taste {
    struct tutti_taste_level level[TUTTI_TASTE_LEVELS];
    uint32_t nlevels;
    struct tutti_left_out *weak; /* the ports that step 1 left out */
    uint32_t nweak;
};

/* Finds the solutions of a search whose optimum is known. The first one is the optimum without weak
 * ports. for_rate_only: it is the optimum, and the only one. The caller releases *taste with
 * tutti_taste_fini(), on error too. TUTTI_ERR_SYSTEM: no memory. */
int tutti_taste_find(struct tutti_search_state *search, const struct tutti_paths *paths,
                     bool for_rate_only, struct tutti_taste *taste);
void tutti_taste_fini(struct tutti_taste *taste);

/* Makes a solution and its penalties those of the search. The search borrows the shares. */
void tutti_taste_use(struct tutti_search_state *search, const struct tutti_taste_level *level);
/* Adds the small penalties of step 4 to those of the search. */
void tutti_taste_prefer(struct tutti_search_state *search);

#endif
