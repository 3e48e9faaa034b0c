/* SPDX-License-Identifier: Apache-2.0
 * Runs the main loop of a search: prices the links, finds the cheapest ring or tree at these
 * prices, and repeats both. */
#include "topology/search/state.h"

#include "base/array.h"
#include "base/result.h"

#include <math.h>
#include <stdlib.h>

/* A column enters the linear program only if its cost is below 1 by at least this much. */
#define LEAST_GAIN 1e-7
/* The weight of earlier prices in the smoothed prices that are used to look for columns. */
#define SMOOTHING 0.7
/* The search ends with the current bound after MOST_PROOFS attempts to prove the bound, or after
 * BASE_COLUMNS and COLUMNS_PER_GPU more per gpu. On machines with very many links the limit on
 * columns is lower, but at least FEWEST_COLUMNS. */
enum { MOST_PROOFS = 12, COLUMNS_PER_GPU = 64, BASE_COLUMNS = 256, FEWEST_COLUMNS = 24 };
/* The limit on columns per gpu when the program is solved again, for columns with penalties. */
enum { LATER_COLUMNS_PER_GPU = 4 };
/* The limit on multiplications, which applies to machines with very many links. These take a few
 * seconds. */
#define MOST_WORK 2e9

int tutti_search_cheapest(struct tutti_search_state *search, bool with_effort,
                          struct tutti_search_column *column, double *ret_cost, double *ret_least)
{
    int rc;

    tutti_pricing_costs(&search->pricing, search->price, search->cost);
    if (search->pattern == TUTTI_PATTERN_RING)
        return tutti_pricing_cheapest_ring(&search->pricing, search->cost, with_effort, column,
                                           ret_cost, ret_least);
    rc = tutti_pricing_cheapest_tree(&search->pricing, search->cost, search->pattern, column,
                                     ret_cost);
    *ret_least = *ret_cost;
    return rc;
}

/* Returns the cost of a column at the current prices. */
static double price_column(const struct tutti_search_state *search,
                           const struct tutti_search_column *column)
{
    double cost = column->penalty;

    for (uint32_t i = 0; i < search->pricing.nlinks; i++)
        cost += column->use[i] * search->price[i];
    return cost;
}

/* Finds the cheapest column at smoothed prices, and its cost at the current prices. Prices
 * oscillate from one round to the next, and columns that are cheap at smoothed prices remain useful
 * for longer (Wentges, 1997). */
static int find_by_smooth_prices(struct tutti_search_state *search,
                                 struct tutti_search_column *column, double *ret_cost)
{
    double *current = search->price, least;
    int rc;

    for (uint32_t i = 0; i < search->pricing.nlinks; i++)
        search->smooth_price[i] =
            SMOOTHING * search->smooth_price[i] + (1 - SMOOTHING) * current[i];
    search->price = search->smooth_price;
    rc = tutti_search_cheapest(search, false, column, ret_cost, &least);
    search->price = current;
    if (rc == TUTTI_OK && !isinf(*ret_cost))
        *ret_cost = price_column(search, column);
    return rc;
}

/* Converts prices of rows to prices of links. A row of the program is a link in parts of its
 * capacity, and a share of 1 is `unit` B/s. */
static void set_link_prices(struct tutti_search_state *search)
{
    for (uint32_t i = 0; i < search->pricing.nlinks; i++) {
        double price = search->master.price[i] > 0 ? search->master.price[i] : 0;

        search->price[i] = price * search->unit / search->pricing.capacity[i];
    }
}

/* Adds a column to the linear program. *ret_has_entered is false if no link limits the column,
 * which then stays with the caller. */
static int add_column(struct tutti_search_state *search, struct tutti_search_column *column,
                      bool *ret_has_entered)
{
    double *row = search->row_use;

    for (uint32_t i = 0; i < search->pricing.nlinks; i++)
        row[i] = column->use[i] * search->unit / search->pricing.capacity[i];
    TUTTI_TRY(TUTTI_ARRAY_ROOM(search->columns, search->ncolumns, search->capacity, "columns"));
    *ret_has_entered =
        tutti_master_enter(&search->master, search->ncolumns, 1 - column->penalty, row);
    if (*ret_has_entered) {
        search->columns[search->ncolumns++] = *column;
        *column = (struct tutti_search_column){0};
    }
    return TUTTI_OK;
}

/* Keeps the lowest bound. If no column costs less than `least`, all columns together carry no more
 * than the value of the links divided by `least`. */
static void update_bound(struct tutti_search_state *search, double least)
{
    const struct tutti_search_master *master = &search->master;
    double bound = least > 0 ? tutti_master_value(master) / least * search->unit : INFINITY;

    if (bound < search->bound) {
        search->bound = bound;
        for (uint32_t i = 0; i < search->pricing.nlinks; i++)
            search->bound_price[i] = master->price[i] > 0 ? master->price[i] : 0;
    }
}

/* Returns the limit on columns. Each column takes about as many multiplications as the square of
 * the number of links. */
static uint32_t column_limit(const struct tutti_search_state *search)
{
    double nlinks = search->pricing.nlinks, few = MOST_WORK / (nlinks * nlinks + 1);
    uint32_t most = BASE_COLUMNS + COLUMNS_PER_GPU * search->pricing.ngpus;

    if (few < FEWEST_COLUMNS)
        return FEWEST_COLUMNS;
    return few < most ? (uint32_t)few : most;
}

bool tutti_search_is_hasty(const struct tutti_search_state *search)
{
    return column_limit(search) < BASE_COLUMNS + COLUMNS_PER_GPU * search->pricing.ngpus;
}

/* Each round searches at smoothed prices first, then at current prices. If both find nothing and
 * give no bound, it searches with effort. */
int tutti_search_generate(struct tutti_search_state *search, bool with_proof)
{
    uint32_t limit =
        with_proof ? column_limit(search) : LATER_COLUMNS_PER_GPU * search->pricing.ngpus;
    uint32_t most = search->ncolumns + limit, nproofs = 0;
    struct tutti_search_column column;
    int rc = TUTTI_OK;

    while (search->ncolumns < most && nproofs < MOST_PROOFS && rc == TUTTI_OK) {
        double cost, least;
        bool has_entered = false;

        set_link_prices(search);
        TUTTI_TRY(tutti_column_create(&search->pricing, &column));
        least = 0;
        rc = find_by_smooth_prices(search, &column, &cost);
        if (rc == TUTTI_OK && cost >= 1 - LEAST_GAIN)
            rc = tutti_search_cheapest(search, false, &column, &cost, &least);
        if (rc == TUTTI_OK && cost >= 1 - LEAST_GAIN && least <= 0 && with_proof) {
            nproofs++;
            rc = tutti_search_cheapest(search, true, &column, &cost, &least);
        }
        if (rc == TUTTI_OK && !isinf(cost)) {
            if (with_proof)
                update_bound(search, least);
            if (cost < 1 - LEAST_GAIN)
                rc = add_column(search, &column, &has_entered);
        }
        tutti_column_destroy(&column);
        if (!has_entered)
            break;
    }
    return rc;
}

int tutti_search_shares(const struct tutti_search_state *search, double **ret_share)
{
    const struct tutti_search_master *master = &search->master;
    double *share = calloc(search->ncolumns + 1, sizeof *share);

    if (share == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u shares", search->ncolumns);
    for (uint32_t i = 0; i < master->nrows; i++)
        if (master->basic[i] != TUTTI_MASTER_SLACK)
            share[master->basic[i]] = master->share[i] * search->unit;
    *ret_share = share;
    return TUTTI_OK;
}

int tutti_search_revalue(struct tutti_search_state *search)
{
    double *value = calloc(search->ncolumns + 1, sizeof *value);

    if (value == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u shares", search->ncolumns);
    for (uint32_t i = 0; i < search->ncolumns; i++)
        value[i] = 1 - search->columns[i].penalty;
    tutti_master_revalue(&search->master, value);
    free(value);
    return TUTTI_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tutti_search_open(struct tutti_search_state *search, const struct tutti_paths *paths,
                      const struct tutti_search_options *options)
{
    size_t nlinks = paths->graph->nlinks + 1, nplaces;

    TUTTI_TRY(tutti_pricing_open(&search->pricing, paths, options));
    nplaces = search->pricing.nplaces;
    search->cost = calloc(nplaces * nplaces, sizeof *search->cost);
    search->price = calloc(nlinks, sizeof *search->price);
    search->bound_price = calloc(nlinks, sizeof *search->bound_price);
    search->smooth_price = calloc(nlinks, sizeof *search->smooth_price);
    search->row_use = calloc(nlinks, sizeof *search->row_use);
    if (search->cost == NULL || search->price == NULL || search->bound_price == NULL ||
        search->smooth_price == NULL || search->row_use == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %zu places", nplaces);
    search->bound = INFINITY;
    search->unit = INFINITY;
    for (uint32_t i = 0; i < search->pricing.nlinks; i++)
        search->unit = fmin(search->unit, search->pricing.capacity[i]);
    return tutti_master_init(&search->master, search->pricing.nlinks);
}

void tutti_search_close(struct tutti_search_state *search)
{
    for (uint32_t i = 0; i < search->ncolumns; i++)
        tutti_column_destroy(&search->columns[i]);
    free(search->columns);
    free(search->cost);
    free(search->price);
    free(search->bound_price);
    free(search->smooth_price);
    free(search->row_use);
    tutti_master_fini(&search->master);
    tutti_pricing_close(&search->pricing);
}
