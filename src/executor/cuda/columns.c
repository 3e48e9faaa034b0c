/* SPDX-License-Identifier: Apache-2.0
 * Divides the steps of a schedule among columns of blocks (columns.h). */
#include "executor/cuda/columns.h"

#include "base/result.h"
#include "schedule/access.h"

#include <stdlib.h>

struct tutti_cuda_columns tutti_cuda_columns_of(const struct tutti_schedule *schedule,
                                                const struct tutti_call *call,
                                                const struct tutti_cuda_grid *grid)
{
    uint32_t nchannels = schedule->nchannels, most = tutti_cuda_grid_channels(grid);
    uint32_t copies_by_fifo = most / nchannels, copies_by_block;
    struct tutti_cuda_columns columns = {.ncolumns = 1, .fifo_step = nchannels};

    tutti_assert(nchannels > 0 && nchannels <= most);
    /* An all-to-all in place overwrites input that another block may not have staged yet. */
    columns.divides_lanes = schedule->needs == 0 && !schedule->is_one_sided &&
                            tutti_call_is_vector(call) && !tutti_call_is_swap(call);
    if (columns.divides_lanes)
        columns.ncolumns = grid->nblocks;
    else if (schedule->needs == 0)
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

/* The graph whose parts are divided. Its first nodes are the channels, or the lanes, and each step
 * has a node, too. */
struct graph {
    const struct tutti_schedule *schedule;
    bool divides_lanes;
    uint32_t nfirst;   /* channels or lanes */
    uint32_t *parents; /* [nfirst + nsteps] */
};

/* Returns the node of the channel of a step, or of the lane of its receiving or sending half. */
static uint32_t node_of_half(const struct graph *graph, const struct tutti_step *step,
                             bool is_receive)
{
    uint32_t peer = (uint32_t)(is_receive ? step->from : step->to);

    if (!graph->divides_lanes)
        return step->channel;
    return (2 * step->channel + is_receive) * graph->schedule->nranks + peer;
}

/* Joins a step with its channel, or its lanes, and with the steps on which it depends. */
static void join_step(const struct graph *graph, uint32_t index)
{
    const struct tutti_step *step = &graph->schedule->steps[index];
    const uint32_t *deps = tutti_step_deps(graph->schedule, step);
    uint32_t node = graph->nfirst + index;

    if (tutti_access_receives(step))
        join(graph->parents, node, node_of_half(graph, step, true));
    if (tutti_access_sends(step))
        join(graph->parents, node, node_of_half(graph, step, false));
    for (uint32_t k = 0; k < step->dep_count; k++)
        join(graph->parents, node, graph->nfirst + deps[k]);
}

/* Gives each part of the graph a column. A part is known by its root, its lowest node. Channels with
 * lower numbers than there are columns have the column of their number. Lanes take turns in the
 * order of the steps. Local steps that depend on no channel or lane are in the first column.
 * `of_root` has an entry for each channel or lane. */
static void assign_columns(const struct graph *graph, uint32_t ncolumns, uint32_t *of_root,
                           uint32_t *of_step)
{
    uint32_t nparts = 0;

    for (uint32_t i = 0; i < graph->nfirst; i++)
        of_root[i] = graph->divides_lanes ? UINT32_MAX : i % ncolumns;
    for (uint32_t i = 0; i < graph->schedule->nsteps; i++) {
        uint32_t root = find(graph->parents, graph->nfirst + i);

        if (root < graph->nfirst && of_root[root] == UINT32_MAX)
            of_root[root] = nparts++ % ncolumns;
        of_step[i] = root < graph->nfirst ? of_root[root] : 0;
    }
}

int tutti_cuda_columns_divide(const struct tutti_schedule *schedule,
                              const struct tutti_cuda_columns *columns, uint32_t **ret_columns)
{
    struct graph graph = {
        .schedule = schedule, .divides_lanes = columns->divides_lanes,
        .nfirst = schedule->nchannels * (columns->divides_lanes ? 2 * schedule->nranks : 1)};
    size_t nnodes = (size_t)graph.nfirst + schedule->nsteps;
    uint32_t *of_step = calloc(schedule->nsteps + 1, sizeof *of_step);

    graph.parents = malloc((nnodes + graph.nfirst) * sizeof *graph.parents);
    if (graph.parents == NULL || of_step == NULL) {
        free(graph.parents);
        free(of_step);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the columns of %u steps",
                          schedule->nsteps);
    }
    for (uint32_t node = 0; node < nnodes; node++)
        graph.parents[node] = node;
    for (uint32_t i = columns->ncolumns; !graph.divides_lanes && i < graph.nfirst; i++)
        join(graph.parents, i, i % columns->ncolumns);
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        join_step(&graph, i);
    assign_columns(&graph, columns->ncolumns, graph.parents + nnodes, of_step);
    free(graph.parents);
    *ret_columns = of_step;
    return TUTTI_OK;
}
