/* SPDX-License-Identifier: Apache-2.0
 * Improves packed channels one by one. */
#include "topology/search/spread.h"

#include "base/result.h"
#include "topology/search/taste.h"

#include <math.h>

/* Weights of how full ports and other links are, beside the penalties of paths. They differ so much
 * that a later criterion never outweighs an earlier one. */
#define PORT_WEIGHT 1e-6
#define LINK_WEIGHT 1e-11
/* A channel is replaced only if that lowers its cost by more than this, which rules out changes for
 * the sake of links alone. */
#define LEAST_GAIN 1e-8
/* Each channel is considered this often. */
enum { ROUNDS = 3 };

/* Sets the prices of links for one more channel. The price is the growth of the squared load, so
 * the cheapest channel is the one that leaves the loads most even. */
static void set_prices(const struct tutti_packing *packing, const struct tutti_paths *paths)
{
    struct tutti_search_state *search = packing->search;

    for (uint32_t i = 0; i < search->pricing.nlinks; i++) {
        double capacity = search->pricing.capacity[i], left = packing->left[i];
        bool is_port = paths->graph->links[search->pricing.link[i]].kind == TUTTI_LINK_PORT;

        search->price[i] = left < packing->width * (1 - TUTTI_PACKING_TOLERANCE)
                               ? INFINITY
                               : (is_port ? PORT_WEIGHT : LINK_WEIGHT) *
                                     (2 * (capacity - left) + packing->width) / capacity;
    }
}

/* Returns the cost of a channel at the prices of links. */
static double cost_of(const struct tutti_search_state *search,
                      const struct tutti_search_column *column)
{
    double cost = column->penalty;

    for (uint32_t i = 0; i < search->pricing.nlinks; i++)
        if (column->use[i] > 0)
            cost += column->use[i] * search->price[i];
    return cost;
}

/* Finds the cheapest channel. *ret_is_better is true if it costs less than an old one, for which
 * there is room. */
static int find_better(struct tutti_packing *packing, const struct tutti_search_column *old,
                       struct tutti_search_column *found, bool *ret_is_better)
{
    double cost, least, old_cost = cost_of(packing->search, old);

    TUTTI_TRY(tutti_search_cheapest(packing->search, false, found, &cost, &least));
    /* Rounding may make a link of the old channel seem full, and its cost is infinite then. */
    *ret_is_better = isfinite(cost) && isfinite(old_cost) && cost < old_cost - LEAST_GAIN &&
                     tutti_packing_fits(packing, found);
    return TUTTI_OK;
}

/* Moves the first channel to the end, and replaces it if there is a better one. */
static int improve_first(struct tutti_packing *packing, const struct tutti_paths *paths,
                         bool *has_changed)
{
    struct tutti_search_column old, found;
    bool is_own, is_better = false;
    int rc;

    TUTTI_TRY(tutti_column_create(&packing->search->pricing, &found));
    tutti_packing_take(packing, &old, &is_own);
    set_prices(packing, paths);
    rc = find_better(packing, &old, &found, &is_better);
    tutti_packing_add(packing, is_better ? &found : &old, is_better || is_own);
    if (is_better && is_own)
        tutti_column_destroy(&old);
    if (!is_better)
        tutti_column_destroy(&found);
    *has_changed = *has_changed || is_better;
    return rc;
}

int tutti_search_spread(struct tutti_packing *packing, const struct tutti_paths *paths)
{
    bool has_changed = packing->search->pricing.nnets > 0;

    if (!has_changed)
        return TUTTI_OK;
    tutti_taste_prefer(packing->search);
    for (uint32_t i = 0; i < packing->count; i++)
        tutti_column_measure(&packing->search->pricing, packing->search->pattern,
                             &packing->column[i]);
    for (int round = 0; round < ROUNDS && has_changed; round++) {
        has_changed = false;
        for (uint32_t i = 0; i < packing->count; i++)
            TUTTI_TRY(improve_first(packing, paths, &has_changed));
    }
    return TUTTI_OK;
}
