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
 * Scans go through the row from rank 0 to the last rank. In an inclusive scan each rank keeps what
 * it passes on. In an exclusive scan it keeps what arrives, and passes on that combined with its
 * own input. With k segments there are k + p - 2 rounds.
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

/* ---- scans ----------------------------------------------------------------------------------- */

/* Emit a segment: receive what arrives, and send what is passed on. */
static int pass_on(const struct tutti_shape *shape, struct tutti_build *build, uint32_t segment)
{
    bool is_first = shape->rank == 0, is_last = shape->rank + 1 == shape->nranks;
    bool is_exclusive = shape->collective == TUTTI_EXCLUSIVE_SCAN;
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, segment, 1);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, segment, 1);
    struct tutti_span passed = tutti_span(TUTTI_BUF_SCRATCH, segment, 1);

    if (is_first)
        return tutti_build_send(build, 1, input);
    if (!is_exclusive)
        TUTTI_TRY(tutti_build_recv_reduce(build, shape->rank - 1, input, output));
    else
        TUTTI_TRY(tutti_build_recv(build, shape->rank - 1, output));
    if (is_last)
        return TUTTI_OK;
    if (is_exclusive)
        TUTTI_TRY(tutti_build_reduce(build, output, passed));
    return tutti_build_send(build, shape->rank + 1, is_exclusive ? passed : output);
}

/* OUTPUT may be the memory of INPUT. So in an exclusive scan a rank that passes data on keeps its
 * input in SCRATCH. It copies a segment while it waits for the segment before. */
static int emit_scan(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t segments = shape->options.value[TUTTI_SEGMENTS];
    bool is_inner = shape->rank > 0 && shape->rank + 1 < shape->nranks;
    bool copies = is_inner && shape->collective == TUTTI_EXCLUSIVE_SCAN;

    tutti_build_chunks(build, segments);
    if (copies)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, segments);
    for (uint32_t segment = 0; segment <= segments; segment++) {
        if (copies && segment < segments)
            TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, segment, 1),
                                       tutti_span(TUTTI_BUF_SCRATCH, segment, 1)));
        if (segment > 0)
            TUTTI_TRY(pass_on(shape, build, segment - 1));
    }
    if (shape->rank > 0 || shape->collective == TUTTI_EXCLUSIVE_SCAN)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, segments),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, segments));
}

/* ---- costs ----------------------------------------------------------------------------------- */

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

/* In an inclusive scan rank 0 copies its input to its output. In an exclusive scan the ranks
 * between the first and the last copy theirs to SCRATCH. */
static void cost_scan(const struct tutti_shape *shape, double block_bytes,
                      struct tutti_cost *ret_cost)
{
    cost(shape, block_bytes, ret_cost);
    ret_cost->copied = block_bytes;
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

const struct tutti_algorithm tutti_chain_scan = {
    .name = "chain",
    .collective = TUTTI_SCAN,
    .is_lean = true,
    .options = CHAIN_OPTIONS,
    .emit = emit_scan,
    .cost = cost_scan,
};

const struct tutti_algorithm tutti_chain_exclusive_scan = {
    .name = "chain",
    .collective = TUTTI_EXCLUSIVE_SCAN,
    .options = CHAIN_OPTIONS,
    .emit = emit_scan,
    .cost = cost_scan,
};
