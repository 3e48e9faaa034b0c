/* SPDX-License-Identifier: Apache-2.0
 * The linear programme of a search: shares of columns, as large together as the rows allow. Revised
 * simplex with the inverse of the basis; it begins with nothing but slack, and columns come one by
 * one.
 *
 *   maximise  sum of x over columns      with  sum of use[row] x <= 1 for each row, x >= 0
 *
 * Rows are made a little unequal (by less than 1e-6), so that no two of them bind at once by
 * chance: so it never runs in circles. Plain arithmetic in a fixed order: the same everywhere.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_MASTER_H
#define TUTTI_TOPOLOGY_SEARCH_MASTER_H

#include <stdbool.h>
#include <stdint.h>

#define MASTER_SLACK UINT32_MAX

struct master {
    uint32_t nrows;
    double *inverse; /* of the basis, row by row */
    double *share;   /* of each basic variable */
    uint32_t *basic; /* the column that it is; MASTER_SLACK: of some row */
    double *price;   /* of each row: the dual */
    double *spare;   /* one row's worth */
};

int tutti_master_init(struct master *master, uint32_t nrows);
void tutti_master_fini(struct master *master);

/* Let a column in that is worth more than its price; false: it may grow for ever, or is none. */
bool tutti_master_enter(struct master *master, uint32_t column, const double *use);
/* The sum of all shares, and of all prices: alike when nothing better is left. */
double tutti_master_value(const struct master *master);

#endif
