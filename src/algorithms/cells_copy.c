/* SPDX-License-Identifier: Apache-2.0
 * Broadcast, all-gather and barrier through windows, cell by cell. Data enters a cell once, and all
 * ranks of the cell take it from there.
 *
 *   all-gather, cells of 2      0 1 | 2 3         in the first cell 0 stands for 2, and 1 for 3
 *     lay out                   0 1 | 2 3
 *     get across                2 3 | 0 1         0 gets 2's block into its window, 1 gets 3's
 *     get in the cell           1 3 | 3 1  ...    0 gets of 1: 1's block, and 3's
 *
 * A broadcast goes in parts. In each cell but the root's, each rank gets one part from the root
 * into its window; then the ranks get all other parts from each other.
 *
 * A rank writes its window again two runs later, after every rank has given its first signal of the
 * run between. By then the readers of the window are done. A rank that only reads gives its signal
 * after it has read.
 */
#include "algorithms/cells.h"

#include "algorithms/ranks.h"
#include "algorithms/window.h"

/* ---- broadcast ------------------------------------------------------------------------------ */

/* The chunks of some parts, one for each part. */
static struct tutti_span part_span(enum tutti_buffer buffer, struct tutti_nodes_parts parts)
{
    return tutti_span(buffer, parts.first, parts.end - parts.first);
}

/* Get a window slot of rank `from` once that rank has given its signal number `signal`. */
static int take(struct tutti_build *build, uint32_t from, uint32_t signal, struct tutti_span slot,
                struct tutti_span dst)
{
    TUTTI_TRY(tutti_build_wait(build, (int32_t)from, signal));
    return tutti_build_get(build, from, slot, dst);
}

/* Emit the steps of a rank whose cell does not contain the root. */
static int take_parts(const struct tutti_shape *shape, const struct tutti_cells_view *cells,
                      struct tutti_build *build)
{
    struct tutti_span own = part_span(TUTTI_BUF_WINDOW, cells->own);

    TUTTI_TRY(take(build, shape->root, 1, own, own));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_build_copy(build, own, part_span(TUTTI_BUF_OUTPUT, cells->own)));
    for (uint32_t i = 0; i < cells->nmembers; i++) {
        uint32_t from = cells->members[i];
        struct tutti_nodes_parts theirs = tutti_nodes_parts_of(&cells->nodes, from);

        if (from != shape->rank)
            TUTTI_TRY(take(build, from, 1, part_span(TUTTI_BUF_WINDOW, theirs),
                           part_span(TUTTI_BUF_OUTPUT, theirs)));
    }
    return TUTTI_OK;
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                          struct tutti_build *build)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, cells->nparts);
    struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, 0, cells->nparts);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, cells->nparts);

    tutti_build_chunks(build, cells->nparts);
    tutti_build_window(build, cells->nparts);
    tutti_build_signals(build, 1);
    if (shape->rank == shape->root) {
        TUTTI_TRY(tutti_build_copy(build, input, slot));
        TUTTI_TRY(tutti_build_signal(build));
        return tutti_build_copy(build, input, output);
    }
    if (!tutti_cells_is_mine(cells, shape->root))
        return take_parts(shape, cells, build);
    TUTTI_TRY(take(build, shape->root, 1, slot, output));
    return tutti_build_signal(build);
}

/* ---- all-gather ----------------------------------------------------------------------------- */

/* Get the blocks of other cells for which this rank stands into its window. */
static int get_across(const struct tutti_shape *shape, const struct tutti_cells_view *cells,
                      struct tutti_build *build)
{
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t block = tutti_rank_after(shape->rank, i, shape->nranks);
        struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, block, 1);

        if (!tutti_cells_is_mine(cells, block) &&
            tutti_cells_stand_in(cells, cells->cell, block) == shape->rank)
            TUTTI_TRY(take(build, block, 1, slot, slot));
    }
    return tutti_build_signal(build);
}

static int emit_allgather(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                          struct tutti_build *build)
{
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    tutti_build_window(build, shape->nranks);
    tutti_build_signals(build, 2);
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_WINDOW, shape->rank, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(get_across(shape, cells, build));
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, shape->rank, 1)));
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t block = tutti_rank_after(shape->rank, i, shape->nranks);
        uint32_t from = tutti_cells_stand_in(cells, cells->cell, block);
        struct tutti_span slot = tutti_span(TUTTI_BUF_WINDOW, block, 1);
        struct tutti_span dst = tutti_span(TUTTI_BUF_OUTPUT, block, 1);

        if (from == shape->rank)
            TUTTI_TRY(tutti_build_copy(build, slot, dst));
        else
            TUTTI_TRY(take(build, from, from == block ? 1 : 2, slot, dst));
    }
    return TUTTI_OK;
}

/* ---- barrier -------------------------------------------------------------------------------- */

/* The first rank of each cell waits for the other ranks of its cell, then for the first ranks of
 * all cells. */
static int emit_barrier(const struct tutti_shape *shape, struct tutti_cells_view *cells,
                        struct tutti_build *build)
{
    uint32_t leader = cells->members[0];

    tutti_build_signals(build, 2);
    if (shape->rank != leader) {
        TUTTI_TRY(tutti_build_signal(build));
        return tutti_build_wait(build, (int32_t)leader, 2);
    }
    TUTTI_TRY(tutti_cells_wait_members(cells, build, 1));
    TUTTI_TRY(tutti_build_signal(build));
    TUTTI_TRY(tutti_cells_wait_servers(cells, build, 0, 1));
    return tutti_build_signal(build);
}

/* ---- costs; `memory`: bytes that all ranks load and store ----------------------------------- */

/* In cells other than the root's, a rank gets one part from the root and the other parts from the
 * ranks of its cell. */
static void cost_broadcast(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                           double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, 2, block_bytes, 0, 2 * block_bytes, ret_cost);
    ret_cost->memory = 2 * (counts->ranks + counts->cells) * block_bytes;
    ret_cost->served = (counts->in_cell + counts->cells - 2) * block_bytes;
    ret_cost->bridge.rounds = 1;
    ret_cost->bridge.bytes = (counts->cells - 1) * block_bytes;
}

/* `own` is the number of blocks of other cells for which the busiest rank stands. */
static void cost_allgather(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                           double block_bytes, struct tutti_cost *ret_cost)
{
    double elsewhere = counts->ranks - counts->in_cell, own = elsewhere * counts->share;

    tutti_cost_flat(shape, 2, (counts->ranks - 1) * block_bytes, 0, (2 + own) * block_bytes,
                    ret_cost);
    /* Each rank copies its block to its window, and p blocks to OUTPUT; those for which it stands
     * come through its window. */
    ret_cost->memory = counts->ranks * (2 * (counts->ranks + 1) + 2 * own) * block_bytes;
    ret_cost->bridge.rounds = 1;
    ret_cost->bridge.bytes = elsewhere * block_bytes;
}

static void cost_barrier(const struct tutti_shape *shape, const struct tutti_cells_counts *counts,
                         double block_bytes, struct tutti_cost *ret_cost)
{
    (void)counts;
    (void)block_bytes;
    tutti_cost_flat(shape, 3, 0, 0, 0, ret_cost);
    ret_cost->bridge.rounds = 1;
}

/* ---- all of them ---------------------------------------------------------------------------- */

const struct tutti_algorithm tutti_cells_broadcast = {
    .name = "cells",
    .collective = TUTTI_BROADCAST,
    .needs = TUTTI_NEEDS_WINDOW,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_direct_broadcast,
                                                .emit = emit_broadcast,
                                                .cost = cost_broadcast},
};

const struct tutti_algorithm tutti_cells_allgather = {
    .name = "cells",
    .collective = TUTTI_ALLGATHER,
    .needs = TUTTI_NEEDS_WINDOW,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_direct_allgather,
                                                .emit = emit_allgather,
                                                .cost = cost_allgather},
};

const struct tutti_algorithm tutti_cells_barrier = {
    .name = "cells",
    .collective = TUTTI_BARRIER,
    .needs = TUTTI_NEEDS_WINDOW,
    .uses = TUTTI_USES_CELLS,
    .in_cells = &(const struct tutti_cells_ops){.flat = &tutti_direct_barrier,
                                                .emit = emit_barrier,
                                                .cost = cost_barrier},
};
