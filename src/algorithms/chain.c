/* SPDX-License-Identifier: Apache-2.0
 * Chain: the ranks form a row that begins at the root, and pass data on segment by segment.
 *
 *   broadcast    root -> root+1 -> ... -> root-1      reduce: the same row, backwards
 *
 *   time   0    1    2    3           letters are segments: while one is on its way to the third
 *   0->1   a    b    c    d           rank, the next is on its way to the second
 *   1->2        a    b    c
 *   2->3             a    b
 *
 * Every rank sends and receives each byte at most once, so this is best for large vectors and few
 * ranks. Once fused, the steps pass on slices of a segment, and a reducing step needs no memory.
 *
 * Source: Worringen, "Pipelining and overlapping for MPI collective operations", 2003.
 */
#include "algorithms/algorithm.h"
#include "algorithms/pipeline.h"
#include "algorithms/ranks.h"

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = tutti_rank_relative(shape, shape->rank);
    struct tutti_pipeline_edge next = {tutti_rank_after(shape->rank, 1, shape->nranks), place + 1};
    struct tutti_pipeline_node node = {
        .parent = {tutti_rank_before(shape->rank, 1, shape->nranks), place},
        .children = &next,
        .nchildren = place + 1 < shape->nranks ? 1 : 0,
    };

    return tutti_pipeline_emit(
        build, &(struct tutti_pipeline){.nodes = &node,
                                        .ntrees = 1,
                                        .period = 1,
                                        .segments = shape->options.value[TUTTI_SEGMENTS]});
}

/* Hops on which the first segment leaves a node. If nodes are runs of consecutive ranks, it leaves
 * each node but the last once; and once more if the row begins inside a node. */
static uint32_t hops_outside(const struct tutti_shape *shape)
{
    const struct tutti_placement *places = shape->places;
    uint32_t hops = shape->nranks - 1, root = shape->root;

    if (places == NULL || places->node == NULL || !places->is_block)
        return hops;
    if (root == 0 || places->node[root] != places->node[root - 1])
        return places->nnodes - 1;
    return places->nnodes < hops ? places->nnodes : hops;
}

/* Hops within a node are priced at the node's level. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    uint32_t hops = shape->nranks - 1, inside = hops - hops_outside(shape);
    double segment_bytes = block_bytes / shape->options.value[TUTTI_SEGMENTS];
    enum tutti_level level = tutti_level_of_shape(shape);

    tutti_pipeline_cost(shape, hops, 1, 1, block_bytes, ret_cost);
    ret_cost->level[level].rounds -= inside;
    ret_cost->level[level].bytes -= inside * segment_bytes;
    ret_cost->level[TUTTI_LEVEL_NODE].rounds += inside;
    ret_cost->level[TUTTI_LEVEL_NODE].bytes += inside * segment_bytes;
    ret_cost->is_alone = tutti_cost_is_block(shape);
}

/* Eight segments keep a chain of a few ranks busy where no steps are fused. Where steps are fused,
 * their slices form a pipeline as well. */
#define CHAIN_OPTIONS {[TUTTI_SEGMENTS] = {.least = 1, .most = 1024, .usual = 8}}

const struct tutti_algorithm tutti_chain_broadcast = {
    .name = "chain",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .options = CHAIN_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_chain_reduce = {
    .name = "chain",
    .collective = TUTTI_REDUCE,
    .is_lean = true,
    .options = CHAIN_OPTIONS,
    .emit = emit,
    .cost = cost,
};
