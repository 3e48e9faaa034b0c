/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the algorithms that use the cells of a node. The ranks of a cell (a socket, for
 * example) reach each other faster than the other ranks with which they share memory.
 *
 * A cell is to its node what a node is to its group, so the code of nodes.h is used with cells in
 * place of nodes. The ranks of a cell divide `nparts` parts among them; there are as many parts as
 * the largest cell has ranks. The ranks that serve the same part in different cells exchange that
 * part.
 *
 * Cells are of no use if they are unknown, if there is only one, or if each has only one rank. Each
 * of these algorithms then falls back to one that ignores cells.
 */
#ifndef TUTTI_ALGORITHMS_CELLS_H
#define TUTTI_ALGORITHMS_CELLS_H

#include "algorithms/algorithm.h"
#include "algorithms/nodes.h"

/* The cells of a shape, as one rank sees them. */
struct tutti_cells_view {
    struct tutti_nodes nodes; /* its "nodes" are cells */
    uint32_t count;      /* number of cells */
    uint32_t me, cell;   /* this rank, and its cell */
    uint32_t nparts;
    struct tutti_nodes_parts own; /* parts that this rank serves in its cell */
    uint32_t *members;   /* ranks of this cell, ascending; borrowed from `nodes` */
    uint32_t nmembers;
    uint32_t *servers;   /* room for one rank of each cell */
};

/* The counts that a cost function needs. `ranks` and `cells`: how many ranks and cells there are.
 * `in_cell`: ranks of the largest cell. `share`: the fraction of a vector that the busiest rank
 * serves when the ranks of a cell divide the vector among them. */
struct tutti_cells_counts {
    double ranks, cells, in_cell, share;
};

/* The functions of an algorithm for shapes where cells are of use, and the algorithm that serves
 * all other shapes. */
struct tutti_cells_ops {
    const struct tutti_algorithm *flat;
    int (*emit)(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                struct tutti_build *build);
    void (*cost)(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                 double block_bytes, struct tutti_cost *ret_cost);
};

/* Call in_cells->emit with the cells of the shape, or flat->emit if cells are of no use (see
 * above). Returns the result of that function, or the errors of tutti_nodes_init, or
 * TUTTI_ERR_SYSTEM if memory runs out. */
int tutti_cells_emit(const struct tutti_shape *shape, struct tutti_build *build,
                     const struct tutti_cells_ops *in_cells);

/* True if `rank` is in this rank's cell. */
static inline bool tutti_cells_is_mine(const struct tutti_cells_view *cells, uint32_t rank)
{
    return cells->nodes.ranks.home[rank] == cells->cell;
}

/* The rank that serves `part` in `cell`. */
static inline uint32_t tutti_cells_server(const struct tutti_cells_view *cells, uint32_t cell,
                                          uint32_t part)
{
    return tutti_nodes_rank_serving(&cells->nodes, cell, part);
}

/* The rank that represents `rank` in `cell`: `rank` itself in its own cell; in any other cell, the
 * rank that serves one of its parts. */
uint32_t tutti_cells_stand_in(const struct tutti_cells_view *cells, uint32_t cell, uint32_t rank);

/* Emit waits for signal number `signal`: of all other ranks of this cell, or of the ranks that
 * serve `part` in all other cells. Errors are those of build.h. */
int tutti_cells_wait_members(const struct tutti_cells_view *cells, struct tutti_build *build,
                             uint32_t signal);
int tutti_cells_wait_servers(const struct tutti_cells_view *cells, struct tutti_build *build,
                             uint32_t part, uint32_t signal);

/* Restrict the reductions emitted next to the ranks of this cell, or to the ranks that serve `part`
 * in each cell. tutti_build_among(build, NULL, 0) lifts the restriction. */
int tutti_cells_among_members(const struct tutti_cells_view *cells, struct tutti_build *build);
int tutti_cells_among_servers(struct tutti_cells_view *cells, struct tutti_build *build,
                              uint32_t part);

/* Call in_cells->cost with the counts of the shape's cells, or flat->cost if cells are of no use.
 * Without memory the result is TUTTI_COST_UNKNOWN. */
void tutti_cells_cost(const struct tutti_shape *shape, double block_bytes,
                      const struct tutti_cells_ops *in_cells, struct tutti_cost *ret_cost);

#endif
