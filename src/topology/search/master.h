/* SPDX-License-Identifier: Apache-2.0
 * Solves the linear program (master problem) of a search: maximizes the value of the columns'
 * shares within the rows' limits. A column is a ring or a tree, and a row is a link. The method is the
 * revised simplex method with an explicit inverse of the basis. The basis starts with only slack
 * variables, and columns are added one by one. A column has a value, which is 1 unless the search
 * prefers other columns (taste.h).
 *
 *   maximize  sum of value x over columns      with  sum of use[row] x <= 1 for each row, x >= 0
 *
 * The limits of the rows are made slightly unequal (by less than 1e-6), so that no two rows become
 * tight at once by chance; this prevents cycling. Plain arithmetic in a fixed order gives the same
 * result on all machines.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_MASTER_H
#define TUTTI_TOPOLOGY_SEARCH_MASTER_H

#include <stdbool.h>
#include <stdint.h>

/* Stands for the slack of a row, which is the part of its limit that no column uses. */
#define TUTTI_MASTER_SLACK UINT32_MAX

struct tutti_search_master {
    uint32_t nrows;
    double *inverse; /* inverse of the basis matrix, row by row */
    double *share;   /* of each basic variable */
    uint32_t *basic; /* per basic variable: its column, or TUTTI_MASTER_SLACK */
    double *value;   /* per basic variable: the value of its column; 0 for slack */
    double *price;   /* per row: its dual price, the gain in total value per unit of the limit */
    double *spare;   /* scratch: one value per row */
};

/* Starts a program of nrows rows without columns; the caller frees the program with
 * tutti_master_fini(). TUTTI_ERR_SYSTEM: no memory. */
int tutti_master_init(struct tutti_search_master *master, uint32_t nrows);
/* Frees the arrays and leaves the struct empty. */
void tutti_master_fini(struct tutti_search_master *master);

/* Adds a column to the basis. Its cost, the sum of use[row] at the current prices, must be less
 * than its value. use[row] is the part of the row that a share of 1 takes. Returns false, without
 * changes, if no row limits the column. */
bool tutti_master_enter(struct tutti_search_master *master, uint32_t column, double value,
                        const double *use);
/* Gives the columns of the basis the values in value_of, which is indexed by column, and removes
 * columns until those that remain are at the best shares that they can have. */
void tutti_master_revalue(struct tutti_search_master *master, const double *value_of);
/* Returns the sum of the rows' limits at their prices. This sum equals the value of all shares when
 * no column can improve the solution. */
double tutti_master_value(const struct tutti_search_master *master);

#endif
