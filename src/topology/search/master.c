/* SPDX-License-Identifier: Apache-2.0
 * Solves the linear program of a search by the simplex method. */
#include "topology/search/master.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Smaller numbers are taken for rounding errors of 0. */
#define SMALL 1e-9
/* Upper bound for pivots in one call of settle(), in case rounding errors prevent its end. */
enum { MOST_PIVOTS = 10000 };

/* Returns the limit of a row: 1, and a pseudo-random part of 1e-7, so that the limits are unequal
 * (master.h). The factor and the prime 1021 only mix the bits of the row. */
static double limit_of_row(uint32_t row)
{
    return 1 + 1e-7 * (double)((row * 2654435761u >> 8) % 1021) / 1021;
}

int tutti_master_init(struct tutti_search_master *master, uint32_t nrows)
{
    size_t n = nrows;

    *master = (struct tutti_search_master){.nrows = nrows};
    master->inverse = calloc(n * n + 1, sizeof *master->inverse);
    master->share = calloc(n + 1, sizeof *master->share);
    master->basic = calloc(n + 1, sizeof *master->basic);
    master->value = calloc(n + 1, sizeof *master->value);
    master->price = calloc(n + 1, sizeof *master->price);
    master->spare = calloc(n + 1, sizeof *master->spare);
    if (master->inverse == NULL || master->share == NULL || master->basic == NULL ||
        master->value == NULL || master->price == NULL || master->spare == NULL) {
        tutti_master_fini(master);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a program of %u rows", nrows);
    }
    for (uint32_t row = 0; row < nrows; row++) {
        master->inverse[row * n + row] = 1;
        master->share[row] = limit_of_row(row);
        master->basic[row] = TUTTI_MASTER_SLACK;
    }
    return TUTTI_OK;
}

void tutti_master_fini(struct tutti_search_master *master)
{
    free(master->inverse);
    free(master->share);
    free(master->basic);
    free(master->value);
    free(master->price);
    free(master->spare);
    *master = (struct tutti_search_master){0};
}

/* Computes the dual prices from the values of the basic variables. */
static void set_prices(struct tutti_search_master *master)
{
    memset(master->price, 0, master->nrows * sizeof *master->price);
    for (uint32_t basic = 0; basic < master->nrows; basic++) {
        const double *row = master->inverse + (size_t)basic * master->nrows;

        if (master->basic[basic] == TUTTI_MASTER_SLACK)
            continue;
        for (uint32_t i = 0; i < master->nrows; i++)
            master->price[i] += master->value[basic] * row[i];
    }
}

/* Brings a new variable into the basis. `column` is its column, or TUTTI_MASTER_SLACK, which has
 * the value 0. `weight` is the rate at which each basic variable falls as the new one grows. The
 * variable that first falls to 0 leaves the basis. Returns false if none falls, so that nothing
 * limits the new variable. */
static bool pivot(struct tutti_search_master *master, uint32_t column, double value,
                  const double *weight)
{
    uint32_t n = master->nrows, leaves = UINT32_MAX;
    double least = INFINITY, *leaving;

    for (uint32_t i = 0; i < n; i++)
        if (weight[i] > SMALL && master->share[i] / weight[i] < least) {
            least = master->share[i] / weight[i];
            leaves = i;
        }
    if (leaves == UINT32_MAX)
        return false;
    leaving = master->inverse + (size_t)leaves * n;
    for (uint32_t j = 0; j < n; j++)
        leaving[j] /= weight[leaves];
    master->share[leaves] = least;
    for (uint32_t i = 0; i < n; i++) {
        double *row = master->inverse + (size_t)i * n;

        if (i == leaves || weight[i] == 0)
            continue;
        for (uint32_t j = 0; j < n; j++)
            row[j] -= weight[i] * leaving[j];
        master->share[i] -= weight[i] * least;
        if (master->share[i] < 0)
            master->share[i] = 0;
    }
    master->basic[leaves] = column;
    master->value[leaves] = value;
    set_prices(master);
    return true;
}

/* Makes all prices at least 0, up to rounding. A row with a negative price should not be full, so
 * its slack enters the basis again. */
static void settle(struct tutti_search_master *master)
{
    for (int round = 0; round < MOST_PIVOTS; round++) {
        uint32_t worst = 0;

        for (uint32_t i = 1; i < master->nrows; i++)
            if (master->price[i] < master->price[worst])
                worst = i;
        if (master->nrows == 0 || master->price[worst] >= -SMALL)
            return;
        for (uint32_t i = 0; i < master->nrows; i++)
            master->spare[i] = master->inverse[(size_t)i * master->nrows + worst];
        if (!pivot(master, TUTTI_MASTER_SLACK, 0, master->spare))
            return;
    }
}

bool tutti_master_enter(struct tutti_search_master *master, uint32_t column, double value,
                        const double *use)
{
    for (uint32_t i = 0; i < master->nrows; i++) {
        const double *row = master->inverse + (size_t)i * master->nrows;

        master->spare[i] = 0;
        for (uint32_t j = 0; j < master->nrows; j++)
            master->spare[i] += row[j] * use[j];
    }
    if (!pivot(master, column, value, master->spare))
        return false;
    settle(master);
    return true;
}

void tutti_master_revalue(struct tutti_search_master *master, const double *value_of)
{
    for (uint32_t basic = 0; basic < master->nrows; basic++)
        if (master->basic[basic] != TUTTI_MASTER_SLACK)
            master->value[basic] = value_of[master->basic[basic]];
    set_prices(master);
    settle(master);
}

double tutti_master_value(const struct tutti_search_master *master)
{
    double value = 0;

    for (uint32_t i = 0; i < master->nrows; i++)
        value += master->price[i] * limit_of_row(i);
    return value;
}
