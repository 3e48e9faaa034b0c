/* SPDX-License-Identifier: Apache-2.0
 * All-reduce, reduce and reduce-scatter through windows, cell by cell. Data is summed within each
 * cell first, so that each cell passes only one sum on to the others, however many ranks it has.
 *
 *   cells of 2, parts a b, each with one piece per cell: a0 a1 b0 b1
 *
 *   cell 0  rank 0   sum a of 0 1   | sum a0 of 0 2 |  get a1 of 2 |  get b of 1
 *           rank 1   sum b of 0 1   | sum b0 of 1 3 |  get b1 of 3 |  get a of 0
 *   cell 1  rank 2   sum a of 2 3   | sum a1 of 0 2 |  get a0 of 0 |  get b of 3
 *           rank 3   sum b of 2 3   | sum b1 of 1 3 |  get b0 of 1 |  get a of 2
 *                       in the cell     across          across         in the cell
 *
 * With c cells, 2 (c - 1) / c n bytes of a vector of n bytes enter each cell. If cells were ignored
 * (two_shot), 2 s (p - s) / p n bytes would enter a cell of s ranks. There are signals between the
 * columns. Where cells differ in size, ranks of a small cell serve several parts.
 *
 * For small vectors, rounds and cache lines that come from far away take most of the time. There a
 * leader sums the vectors of its cell and then the sums of all leaders, and the other ranks of the
 * cell get this sum.
 *
 * Window chunk i first holds INPUT chunk i for others to read, then the sum of the cell, then the
 * sum of all. It is overwritten only after its readers have given their next signal. A window is
 * written again two runs later, after the run between has waited for every rank's first signal.
 *
 * Source: textbook; the two levels as in Parsons and Pai, "Accelerating MPI collective
 * communications through hierarchical algorithms without sacrificing inter-node communication
 * flexibility", 2014, for memory in place of networks.
 */
#include "algorithms/cells.h"

#include "algorithms/ranks.h"
#include "algorithms/window.h"

/* The signals of a rank, except in the algorithm for small vectors. */
enum {
    LAID_OUT = 1,   /* its window has the data of which others sum a part */
    SUMMED_IN_CELL, /* its window has the sums over its cell */
    SUMMED_ACROSS,  /* its window has the sums over all ranks of its own pieces */
    COLLECTED,      /* its window has the sums of all pieces of its parts */
};

/* The chunks of some parts. A part has one chunk per cell; the rank that serves the part in that
 * cell sums it. */
static struct tutti_span parts_span(const struct tutti_cells_view *cells, enum tutti_buffer buffer,
                                    struct tutti_nodes_parts parts)
{
    return tutti_span(buffer, parts.first * cells->count,
                      (parts.end - parts.first) * cells->count);
}

/* The chunk of `part` that is summed in `cell`. */
static struct tutti_span piece_span(const struct tutti_cells_view *cells, enum tutti_buffer buffer,
                                    uint32_t part, uint32_t cell)
{
    return tutti_span(buffer, part * cells->count + cell, 1);
}

/* Copy all of INPUT except the chunks `own` to the window, for others to read. */
static int lay_out_others(struct tutti_build *build, struct tutti_span own, uint32_t nchunks)
{
    uint32_t above = own.first + own.count;

    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, own.first),
                               tutti_span(TUTTI_BUF_WINDOW, 0, own.first)));
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, above, nchunks - above),
                            tutti_span(TUTTI_BUF_WINDOW, above, nchunks - above));
}

/* Sum the same chunks of all ranks of the cell; those of the others are in their windows. */
static int sum_members(const struct tutti_cells_view *cells, struct tutti_build *build,
                       struct tutti_span own, struct tutti_span slot)
{
    if (cells->nmembers == 1)
        return tutti_build_copy(build, own, slot);
    return tutti_build_gather_reduce(build, own, slot, slot, TUTTI_NO_SPAN, TUTTI_NO_SPAN);
}

/* Within the cell: sum the parts that this rank serves into its window. */
static int sum_in_cell(struct tutti_cells_view *cells, struct tutti_build *build)
{
    struct tutti_span own = parts_span(cells, TUTTI_BUF_INPUT, cells->own);
    struct tutti_span slot = parts_span(cells, TUTTI_BUF_WINDOW, cells->own);

    TUTTI_TRY(lay_out_others(build, own, cells->nparts * cells->count));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_cells_wait_members(cells, build, LAID_OUT));
    TUTTI_TRY(tutti_cells_among_members(cells, build));
    TUTTI_TRY(sum_members(cells, build, own, slot));
    return tutti_build_signal(build);
}

/* Across cells: sum this cell's piece of the parts that this rank serves. The result goes to OUTPUT
 * (has_output), to the window where other ranks read it (is_read), or to both. */
static int sum_across(struct tutti_cells_view *cells, struct tutti_build *build, bool is_read,
                      bool has_output)
{
    for (uint32_t part = cells->own.first; part < cells->own.end; part++) {
        struct tutti_span slot = piece_span(cells, TUTTI_BUF_WINDOW, part, cells->cell);
        struct tutti_span sum = piece_span(cells, TUTTI_BUF_OUTPUT, part, cells->cell);

        TUTTI_TRY(tutti_cells_wait_servers(cells, build, part, SUMMED_IN_CELL));
        TUTTI_TRY(tutti_cells_among_servers(cells, build, part));
        TUTTI_TRY(tutti_build_gather_reduce(build, slot, slot, has_output ? sum : slot,
                                            has_output && is_read ? slot : TUTTI_NO_SPAN,
                                            TUTTI_NO_SPAN));
    }
    TUTTI_TRY(tutti_build_among(build, NULL, 0));
    return tutti_build_signal(build);
}

/* Get the pieces that other cells have summed, of the parts that this rank serves, into its
 * window. */
static int get_across(struct tutti_cells_view *cells, struct tutti_build *build)
{
    for (uint32_t part = cells->own.first; part < cells->own.end; part++)
        for (uint32_t i = 1; i < cells->count; i++) {
            uint32_t cell = tutti_rank_after(cells->cell, i, cells->count);
            uint32_t from = tutti_cells_server(cells, cell, part);
            struct tutti_span slot = piece_span(cells, TUTTI_BUF_WINDOW, part, cell);

            TUTTI_TRY(tutti_build_wait(build, (int32_t)from, SUMMED_ACROSS));
            TUTTI_TRY(tutti_build_get(build, from, slot, slot));
        }
    return tutti_build_signal(build);
}

/* Fill OUTPUT: get the parts that others of the cell serve, and copy the pieces of this rank's
 * parts that came from other cells. */
static int get_in_cell(struct tutti_cells_view *cells, struct tutti_build *build)
{
    for (uint32_t part = cells->own.first; part < cells->own.end; part++)
        for (uint32_t cell = 0; cell < cells->count; cell++)
            if (cell != cells->cell)
                TUTTI_TRY(tutti_build_copy(build, piece_span(cells, TUTTI_BUF_WINDOW, part, cell),
                                           piece_span(cells, TUTTI_BUF_OUTPUT, part, cell)));
    for (uint32_t i = 0; i < cells->nmembers; i++) {
        uint32_t from = cells->members[i];
        struct tutti_nodes_parts theirs = tutti_nodes_parts_of(&cells->nodes, from);

        if (from == cells->me)
            continue;
        TUTTI_TRY(tutti_build_wait(build, (int32_t)from, COLLECTED));
        TUTTI_TRY(tutti_build_get(build, from, parts_span(cells, TUTTI_BUF_WINDOW, theirs),
                                  parts_span(cells, TUTTI_BUF_OUTPUT, theirs)));
    }
    return TUTTI_OK;
}

static void declare(const struct tutti_cells_view *cells, struct tutti_build *build,
                    uint32_t nsignals)
{
    tutti_build_chunks(build, cells->nparts * cells->count);
    tutti_build_window(build, cells->nparts * cells->count);
    tutti_build_signals(build, nsignals);
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                          struct tutti_build *build)
{
    (void)shape;
    declare(cells, build, COLLECTED);
    TUTTI_TRY(sum_in_cell(cells, build));
    TUTTI_TRY(sum_across(cells, build, true, true));
    TUTTI_TRY(get_across(cells, build));
    return get_in_cell(cells, build);
}

/* The root gets each piece from the rank that has summed it. */
static int emit_reduce(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                       struct tutti_build *build)
{
    declare(cells, build, SUMMED_ACROSS);
    TUTTI_TRY(sum_in_cell(cells, build));
    TUTTI_TRY(sum_across(cells, build, shape->rank != shape->root, shape->rank == shape->root));
    if (shape->rank != shape->root)
        return TUTTI_OK;
    for (uint32_t part = 0; part < cells->nparts; part++)
        for (uint32_t cell = 0; cell < cells->count; cell++) {
            uint32_t from = tutti_cells_server(cells, cell, part);

            if (from == shape->rank)
                continue;
            TUTTI_TRY(tutti_build_wait(build, (int32_t)from, SUMMED_ACROSS));
            TUTTI_TRY(tutti_build_get(build, from,
                                      piece_span(cells, TUTTI_BUF_WINDOW, part, cell),
                                      piece_span(cells, TUTTI_BUF_OUTPUT, part, cell)));
        }
    return TUTTI_OK;
}

/* ---- reduce-scatter: in each cell one rank stands for each block ---------------------------- */

/* Sum this rank's block among the ranks that stand for it, one per cell, this rank included. */
static int sum_own_block(struct tutti_cells_view *cells, struct tutti_build *build)
{
    struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, cells->me, 1);

    for (uint32_t cell = 0; cell < cells->count; cell++) {
        uint32_t from = tutti_cells_stand_in(cells, cell, cells->me), at = cell;

        TUTTI_TRY(tutti_build_wait(build, (int32_t)from, SUMMED_IN_CELL));
        /* Insert the rank so that the list ascends. */
        for (; at > 0 && cells->servers[at - 1] > from; at--)
            cells->servers[at] = cells->servers[at - 1];
        cells->servers[at] = from;
    }
    TUTTI_TRY(tutti_build_among(build, cells->servers, cells->count));
    return tutti_build_gather_reduce(build, slot, slot, tutti_span(TUTTI_BUF_OUTPUT, 0, 1),
                                     TUTTI_NO_SPAN, TUTTI_NO_SPAN);
}

static int emit_reduce_scatter(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                               struct tutti_build *build)
{
    tutti_build_window(build, shape->nranks);
    tutti_build_signals(build, SUMMED_IN_CELL);
    for (uint32_t block = 0; block < shape->nranks; block++)
        if (tutti_cells_stand_in(cells, cells->cell, block) != shape->rank)
            TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, block, 1),
                                       tutti_span(TUTTI_BUF_WINDOW, block, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_cells_wait_members(cells, build, LAID_OUT));
    TUTTI_TRY(tutti_cells_among_members(cells, build));
    for (uint32_t block = 0; block < shape->nranks; block++) {
        struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, block, 1);
        struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, block, 1);

        if (tutti_cells_stand_in(cells, cells->cell, block) != shape->rank)
            continue;
        TUTTI_TRY(sum_members(cells, build, own, slot));
    }
    TUTTI_TRY(tutti_build_signal(build));
    return sum_own_block(cells, build);
}

/* ---- small vectors -------------------------------------------------------------------------- */

/* The slots of a window: a rank's vector, or the sum of its cell; the sum of all, at leaders. */
enum { CELL_SLOT, SUM_SLOT, SMALL_SLOTS };

/* The leader's first signal means that the sum of its cell is ready, the second that the sum of all
 * is. The other ranks of a cell give one signal, when their vector is in the window. */
static int emit_leader(struct tutti_cells_view *cells, struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, CELL_SLOT, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_WINDOW, SUM_SLOT, 1);

    TUTTI_TRY(tutti_cells_wait_members(cells, build, 1));
    TUTTI_TRY(tutti_cells_among_members(cells, build));
    TUTTI_TRY(sum_members(cells, build, input, slot));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_cells_wait_servers(cells, build, 0, 1));
    TUTTI_TRY(tutti_cells_among_servers(cells, build, 0));
    TUTTI_TRY(tutti_build_gather_reduce(build, slot, slot, output, sum, TUTTI_NO_SPAN));
    return tutti_build_signal(build);
}

static int emit_one_shot(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                         struct tutti_build *build)
{
    uint32_t leader = cells->members[0];

    tutti_build_window(build, SMALL_SLOTS);
    tutti_build_signals(build, 2);
    if (shape->rank == leader)
        return emit_leader(cells, build);
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, 1),
                               tutti_span(TUTTI_BUF_WINDOW, CELL_SLOT, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_wait(build, (int32_t)leader, 2));
    return tutti_build_get(build, leader, tutti_span(TUTTI_BUF_WINDOW, SUM_SLOT, 1),
                           tutti_span(TUTTI_BUF_OUTPUT, 0, 1));
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* Costs are those of the busiest rank if all cells have the same size; `memory` counts the bytes of
 * all ranks. Below, s is the number of ranks of a cell, and c the number of cells. */

/* The cost of the sums within cells and across them, with which all-reduce and reduce begin, for a
 * vector of one byte. */
static struct tutti_cost cost_of_sums(const struct tutti_cells_counts *counts)
{
    double s = counts->in_cell, c = counts->cells, own = counts->share, across = (c - 1) / c * own;
    struct tutti_cost cost = {.reduced = (s - 1) * own + across, .copied = 1 - own};

    /* A rank copies the parts of others to its window. It loads its parts of s vectors and stores
     * their sums; then it loads its pieces of c sums and stores the results. */
    cost.memory = counts->ranks * (2 * (1 - own) + (s + 1) * own + (c + 1) / c * own);
    cost.bridge.rounds = 2;
    cost.bridge.bytes = 2 * (c - 1) / c;
    return cost;
}

/* Scale the cost for a vector of one byte, `cost`, to `bytes` bytes. `moved`: bytes per byte of the
 * vector that the busiest rank loads from others. */
static void scale_cost(const struct tutti_shape *shape, double rounds, double moved, double bytes,
                       const struct tutti_cost *cost, struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, rounds, moved * bytes, cost->reduced * bytes, cost->copied * bytes,
                    ret_cost);
    ret_cost->memory = cost->memory * bytes;
    ret_cost->bridge.rounds = cost->bridge.rounds;
    ret_cost->bridge.bytes = cost->bridge.bytes * bytes;
}

static void cost_allreduce(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                           double block_bytes, struct tutti_cost *ret_cost)
{
    struct tutti_cost cost = cost_of_sums(counts);
    double own = counts->share, across = (counts->cells - 1) / counts->cells * own;

    /* A rank stores its results twice, gets pieces from other cells and copies them to OUTPUT, and
     * gets the parts of others. */
    cost.copied += across;
    cost.memory += counts->ranks * (own / counts->cells + 4 * across + 2 * (1 - own));
    scale_cost(shape, 4, cost.reduced + across + 1 - own, block_bytes, &cost, ret_cost);
}

static void cost_reduce(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                        double block_bytes, struct tutti_cost *ret_cost)
{
    struct tutti_cost cost = cost_of_sums(counts);
    double piece = counts->share / counts->cells;

    cost.memory += 2 * (1 - piece);
    scale_cost(shape, 3, cost.reduced + 1 - piece, block_bytes, &cost, ret_cost);
}

/* A rank stands for its own block and for its share of the blocks of other cells. */
static void cost_reduce_scatter(const struct tutti_shape *shape,
                                const struct tutti_cells_counts *counts, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double p = counts->ranks, s = counts->in_cell, c = counts->cells;
    double own = 1 + (p - s) * counts->share;
    struct tutti_cost cost = {.reduced = (s - 1) * own + c - 1, .copied = p - own};

    /* A rank copies the blocks for which others stand to its window. It loads the blocks for which
     * it stands from s ranks and stores their sums; then it loads c sums and stores its block. */
    cost.memory = p * (2 * (p - own) + (s + 1) * own + c + 1);
    cost.bridge.rounds = 1;
    cost.bridge.bytes = s * (c - 1);
    scale_cost(shape, 2, cost.reduced, block_bytes, &cost, ret_cost);
}

/* The cost at a leader. It reads all vectors of its cell and the sums of the other leaders; then
 * the other ranks of the cell read its sum. */
static void cost_one_shot(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                          double block_bytes, struct tutti_cost *ret_cost)
{
    double s = counts->in_cell, c = counts->cells;
    struct tutti_cost cost = {.reduced = s + c - 2, .copied = 1};

    /* The other ranks of a cell copy a vector in and get one out. The leaders together load all
     * vectors and store c sums. Then each leader loads c sums and stores the result twice. */
    cost.memory = 4 * (counts->ranks - c) + counts->ranks + c + c * (c + 2);
    cost.bridge.rounds = 1;
    cost.bridge.bytes = c - 1;
    scale_cost(shape, 3, cost.reduced + 1, block_bytes, &cost, ret_cost);
}

/* ---- all of them ---------------------------------------------------------------------------- */

const struct tutti_algorithm tutti_cells_allreduce = {
    .name = "cells",
    .collective = TUTTI_ALLREDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .sums_in_stages = true,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_two_shot_allreduce,
                                                .emit = emit_allreduce,
                                                .cost = cost_allreduce},
};

const struct tutti_algorithm tutti_cells_one_shot_allreduce = {
    .name = "cells_one_shot",
    .collective = TUTTI_ALLREDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .sums_in_stages = true,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_one_shot_allreduce,
                                                .emit = emit_one_shot,
                                                .cost = cost_one_shot},
};

const struct tutti_algorithm tutti_cells_reduce = {
    .name = "cells",
    .collective = TUTTI_REDUCE,
    .needs = TUTTI_NEEDS_WINDOW,
    .sums_in_stages = true,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_direct_reduce,
                                                .emit = emit_reduce,
                                                .cost = cost_reduce},
};

const struct tutti_algorithm tutti_cells_reduce_scatter = {
    .name = "cells",
    .collective = TUTTI_REDUCE_SCATTER,
    .needs = TUTTI_NEEDS_WINDOW,
    .sums_in_stages = true,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_direct_reduce_scatter,
                                                .emit = emit_reduce_scatter,
                                                .cost = cost_reduce_scatter},
};
