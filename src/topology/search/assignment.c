/* SPDX-License-Identifier: Apache-2.0
 * Solves the assignment problem: adds one row after the other to the matching, each by a cheapest
 * augmenting path. */
#include "topology/search/assignment.h"

#include "base/result.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Row i is place i, and column j is place j as a successor. Rows and columns are counted from 1;
 * column 0 is the start of an augmenting path. */
struct matching {
    uint32_t n;
    const double *cost;
    double *row_potential, *column_potential; /* per row, and per column */
    uint32_t *row_of; /* per column: its row; 0: none yet */
    /* Per column, for the current augmenting path: */
    double *slack;       /* lowest reduced cost from a visited column's row to this column */
    uint32_t *came_from; /* the column before it on the cheapest path to it */
    bool *is_visited;
};

/* Returns the cost of a pair less the potentials of its row and column. */
static double reduced_cost(const struct matching *matching, uint32_t row, uint32_t column)
{
    return matching->cost[(size_t)(row - 1) * matching->n + column - 1] -
           matching->row_potential[row] - matching->column_potential[column];
}

/* Assigns a column to one more row, by the cheapest path of reassignments that ends at a free
 * column (Dijkstra's algorithm on reduced costs). Returns false if no column is possible. */
static bool augment(struct matching *matching, uint32_t row)
{
    uint32_t column = 0;

    matching->row_of[0] = row;
    for (uint32_t j = 0; j <= matching->n; j++) {
        matching->slack[j] = INFINITY;
        matching->is_visited[j] = false;
    }
    do {
        uint32_t at = matching->row_of[column], nearest = 0;
        double least = INFINITY;

        matching->is_visited[column] = true;
        for (uint32_t j = 1; j <= matching->n; j++) {
            double slack;

            if (matching->is_visited[j])
                continue;
            slack = reduced_cost(matching, at, j);
            if (slack < matching->slack[j]) {
                matching->slack[j] = slack;
                matching->came_from[j] = column;
            }
            if (matching->slack[j] < least) {
                least = matching->slack[j];
                nearest = j;
            }
        }
        if (nearest == 0)
            return false;
        for (uint32_t j = 0; j <= matching->n; j++) {
            if (matching->is_visited[j]) {
                matching->row_potential[matching->row_of[j]] += least;
                matching->column_potential[j] -= least;
            } else {
                matching->slack[j] -= least;
            }
        }
        column = nearest;
    } while (matching->row_of[column] != 0);
    while (column != 0) {
        matching->row_of[column] = matching->row_of[matching->came_from[column]];
        column = matching->came_from[column];
    }
    return true;
}

int tutti_assignment(uint32_t n, const double *cost, double *ret_sum)
{
    size_t count = (size_t)n + 1;
    struct matching matching = {.n = n, .cost = cost};
    double *reals = calloc(3 * count, sizeof *reals);
    uint32_t *numbers = calloc(2 * count, sizeof *numbers);
    bool *flags = calloc(count, sizeof *flags), is_matched = true;

    if (reals == NULL || numbers == NULL || flags == NULL) {
        free(reals);
        free(numbers);
        free(flags);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to match %u places", n);
    }
    matching.row_potential = reals;
    matching.column_potential = reals + count;
    matching.slack = reals + 2 * count;
    matching.row_of = numbers;
    matching.came_from = numbers + count;
    matching.is_visited = flags;
    for (uint32_t row = 1; row <= n && is_matched; row++)
        is_matched = augment(&matching, row);
    *ret_sum = is_matched ? -matching.column_potential[0] : INFINITY;
    free(reals);
    free(numbers);
    free(flags);
    return TUTTI_OK;
}
