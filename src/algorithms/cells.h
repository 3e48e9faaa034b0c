/* SPDX-License-Identifier: Apache-2.0
 * What algorithms that go by the cells of a node share: ranks of one memory, of which those of a
 * cell have a better way to each other than to the rest.
 *
 * A cell is to its node what a node is to its group, so nodes.h counts them out: the ranks of a
 * cell share `nparts` parts among them, as many as the largest cell has ranks, and those that serve
 * one part in all cells have it to do with each other.
 *
 * Where nothing is known of cells, or there is one only, or each has one rank only, there is
 * nothing to go by: each of these algorithms then is one that knows no cells.
 */
#ifndef TUTTI_ALGORITHMS_CELLS_H
#define TUTTI_ALGORITHMS_CELLS_H

#include "algorithms/algorithm.h"
#include "algorithms/nodes.h"

struct cells {
    struct nodes nodes;  /* its nodes are cells */
    uint32_t count;      /* of cells */
    uint32_t me, cell;   /* this rank, and its cell */
    uint32_t nparts;
    struct parts own;    /* the parts that this rank serves in its cell */
    uint32_t *members;   /* of this cell, ascending; borrowed from `nodes` */
    uint32_t nmembers;
    uint32_t *servers;   /* room for one rank of each cell */
};

/* Emit by cells, or `flat` where there is nothing to go by. */
int tutti_cells_emit(const struct tutti_shape *shape, struct tutti_build *build,
                     const struct tutti_algorithm *flat,
                     int (*emit)(const struct tutti_shape *shape, struct cells *cells,
                                 struct tutti_build *build));

static inline bool cells_is_mine(const struct cells *cells, uint32_t rank)
{
    return cells->nodes.ranks.home[rank] == cells->cell;
}

static inline uint32_t cells_server(const struct cells *cells, uint32_t cell, uint32_t part)
{
    return rank_serving(&cells->nodes, cell, part);
}

/* Which rank of a cell stands for `rank`: itself in its own cell, in others a server of one of its
 * parts. */
uint32_t tutti_cells_stand_in(const struct cells *cells, uint32_t cell, uint32_t rank);

/* Until all others of this cell, or those that serve a part in other cells, have given a signal. */
int tutti_cells_wait_members(const struct cells *cells, struct tutti_build *build, uint32_t signal);
int tutti_cells_wait_servers(const struct cells *cells, struct tutti_build *build, uint32_t part,
                             uint32_t signal);

/* Let what is summed next be summed among the ranks of this cell, or among those that serve a part
 * in each. */
int tutti_cells_among_members(const struct cells *cells, struct tutti_build *build);
int tutti_cells_among_servers(struct cells *cells, struct tutti_build *build, uint32_t part);

/* For costs: ranks, cells, ranks of the largest cell, and which part of a vector that is shared out
 * in a cell its busiest rank serves. */
struct cell_counts {
    double ranks, cells, in_cell, share;
};

/* Fill *ret_cost in by cells, or by `flat`. */
void tutti_cells_cost(const struct tutti_shape *shape, double block_bytes,
                      const struct tutti_algorithm *flat,
                      void (*cost)(const struct tutti_shape *shape,
                                   const struct cell_counts *counts, double block_bytes,
                                   struct tutti_cost *ret_cost),
                      struct tutti_cost *ret_cost);

#endif
