/* SPDX-License-Identifier: Apache-2.0
 * Divides the steps of a schedule among columns of blocks (columns.h). */
#include "executor/cuda/columns.h"

#include "base/result.h"
#include "schedule/access.h"

#include <stdlib.h>

struct tutti_cuda_columns tutti_cuda_columns_of(const struct tutti_schedule *schedule,
                                                const struct tutti_cuda_grid *grid)
{
    uint32_t nchannels = schedule->nchannels, most = tutti_cuda_grid_channels(grid);
    uint32_t copies_by_fifo = most / nchannels, copies_by_block;
    struct tutti_cuda_columns columns = {.ncolumns = 1, .fifo_step = nchannels};

    tutti_assert(nchannels > 0 && nchannels <= most);
    if (schedule->needs == 0)
        columns.ncolumns = nchannels < grid->nblocks ? nchannels : grid->nblocks;
    copies_by_block = grid->nblocks / columns.ncolumns;
    columns.ncopies = copies_by_block < copies_by_fifo ? copies_by_block : copies_by_fifo;
    return columns;
}

/* Returns the representative of a set of nodes (union-find). Shortens the path to it. */
static uint32_t find(uint32_t *parents, uint32_t node)
{
    while (parents[node] != node) {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    return node;
}

/* Joins two sets. The lowest number represents the result, so that it is a channel if the set has
 * one. */
static void join(uint32_t *parents, uint32_t a, uint32_t b)
{
    a = find(parents, a);
    b = find(parents, b);
    if (a < b)
        parents[b] = a;
    else
        parents[a] = b;
}

/* Returns the node of a step: its channel, or for a local step a node of its own. */
static uint32_t node_of(const struct tutti_schedule *schedule, uint32_t index)
{
    const struct tutti_step *step = &schedule->steps[index];

    return tutti_step_is_two_sided(step) ? step->channel : schedule->nchannels + index;
}

int tutti_cuda_columns_divide(const struct tutti_schedule *schedule,
                              const struct tutti_cuda_columns *columns, uint32_t **ret_columns)
{
    uint32_t nnodes = schedule->nchannels + schedule->nsteps;
    uint32_t *parents = malloc(nnodes * sizeof *parents);
    uint32_t *of_step = calloc(schedule->nsteps + 1, sizeof *of_step);

    if (parents == NULL || of_step == NULL) {
        free(parents);
        free(of_step);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the columns of %u steps",
                          schedule->nsteps);
    }
    for (uint32_t node = 0; node < nnodes; node++)
        parents[node] = node;
    for (uint32_t channel = columns->ncolumns; channel < schedule->nchannels; channel++)
        join(parents, channel, channel % columns->ncolumns);
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const uint32_t *deps = tutti_step_deps(schedule, &schedule->steps[i]);

        for (uint32_t k = 0; k < schedule->steps[i].dep_count; k++)
            join(parents, node_of(schedule, i), node_of(schedule, deps[k]));
    }
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        uint32_t root = find(parents, node_of(schedule, i));

        of_step[i] = root < columns->ncolumns ? root : 0;
    }
    free(parents);
    *ret_columns = of_step;
    return TUTTI_OK;
}
