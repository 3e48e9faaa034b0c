/* SPDX-License-Identifier: Apache-2.0
 * Scans along a binary tree of ranks in order, in segments. The subtree of a rank is a range of
 * ranks: the left child's subtree is the ranks before it, the right child's the ranks after it.
 *
 *            4             p = 7
 *         /     \
 *        2       6         up: each rank combines its left subtree with its own input, and sends
 *       / \     /          that, combined with its right subtree, to its parent.
 *      1   3   5           down: each rank gets the sum of all ranks before its subtree. It passes
 *     /                    that on to the left child as it is. It passes it on to the right child
 *    0                     combined with its left subtree and its own input.
 *
 * Ranks on the left edge of the tree get nothing from above, and ranks on the right edge send
 * nothing up. A segment passes each edge at most twice, so small segments need some 2 log2 p hops.
 * In the steady state a rank sends and receives at most three segments for each segment. So this is
 * best for medium vectors and many ranks, where a chain has too many hops, and where doubling
 * sends too much.
 *
 * Source: Sanders and Träff, "Parallel prefix (scan) algorithms for MPI", 2006.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

/* Chunks of SCRATCH, per segment: a sum on its way up or down and, in exclusive scans, the sum of
 * the left subtree and the own input. */
enum { PASSING, LEFT_AND_OWN };

/* Where a rank is in the tree. Ranks that do not exist are TUTTI_NO_RANK. */
struct node {
    int32_t parent, left, right;
    bool is_on_left_edge, is_on_right_edge;
    uint32_t depth;
};

struct scan {
    struct tutti_build *build;
    struct node node;
    bool is_exclusive;
    uint32_t segments;
};

/* The top of the subtree of ranks first .. last. It splits the range so that the left subtree is
 * never smaller than the right one. */
static uint32_t top_of(uint32_t first, uint32_t last)
{
    return first + (last - first + 1) / 2;
}

static struct node find_node(uint32_t nranks, uint32_t rank)
{
    uint32_t first = 0, last = nranks - 1, top = top_of(first, last);
    struct node node = {.parent = TUTTI_NO_RANK, .left = TUTTI_NO_RANK, .right = TUTTI_NO_RANK};

    for (; top != rank; top = top_of(first, last)) {
        node.parent = (int32_t)top;
        node.depth++;
        if (rank < top)
            last = top - 1;
        else
            first = top + 1;
    }
    if (first < rank)
        node.left = (int32_t)top_of(first, rank - 1);
    if (rank < last)
        node.right = (int32_t)top_of(rank + 1, last);
    node.is_on_left_edge = first == 0;
    node.is_on_right_edge = last == nranks - 1;
    return node;
}

/* A sum on its way up or down. */
static struct tutti_span passing(const struct scan *scan, uint32_t segment)
{
    return tutti_span(TUTTI_BUF_SCRATCH, PASSING * scan->segments + segment, 1);
}

static bool has_left(const struct scan *scan)
{
    return scan->node.left != TUTTI_NO_RANK;
}

static bool has_right(const struct scan *scan)
{
    return scan->node.right != TUTTI_NO_RANK;
}

/* True if the sum of the left subtree and the own input is kept in SCRATCH. In an exclusive scan
 * OUTPUT, which may be the memory of INPUT, does not get the own input. So a rank that passes on
 * its own input after OUTPUT is written needs other memory for the sum. */
static bool keeps_in_scratch(const struct scan *scan)
{
    bool passes_on = !scan->node.is_on_right_edge || has_right(scan);

    return scan->is_exclusive && passes_on &&
           (has_left(scan) || (has_right(scan) && !scan->node.is_on_left_edge));
}

/* The sum of the left subtree and the own input. */
static struct tutti_span left_and_own(const struct scan *scan, uint32_t segment)
{
    if (keeps_in_scratch(scan))
        return tutti_span(TUTTI_BUF_SCRATCH, LEFT_AND_OWN * scan->segments + segment, 1);
    return tutti_span(has_left(scan) ? TUTTI_BUF_OUTPUT : TUTTI_BUF_INPUT, segment, 1);
}

/* Emit the steps of a segment on the way up. */
static int go_up(const struct scan *scan, uint32_t segment)
{
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, segment, 1);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, segment, 1);
    struct tutti_span sum = left_and_own(scan, segment);

    if (keeps_in_scratch(scan))
        TUTTI_TRY(tutti_build_copy(scan->build, input, sum));
    if (has_left(scan) && scan->is_exclusive) {
        TUTTI_TRY(tutti_build_recv(scan->build, (uint32_t)scan->node.left, output));
        if (keeps_in_scratch(scan))
            TUTTI_TRY(tutti_build_reduce(scan->build, output, sum));
    } else if (has_left(scan)) {
        TUTTI_TRY(tutti_build_recv_reduce(scan->build, (uint32_t)scan->node.left, input, sum));
    }
    if (scan->node.is_on_right_edge)
        return TUTTI_OK;
    if (has_right(scan)) {
        TUTTI_TRY(tutti_build_recv_reduce(scan->build, (uint32_t)scan->node.right, sum,
                                          passing(scan, segment)));
        sum = passing(scan, segment);
    }
    return tutti_build_send(scan->build, (uint32_t)scan->node.parent, sum);
}

/* Receive the sum of the ranks before the subtree, pass it on to the left child, and combine it
 * with what is kept. */
static int receive_before(const struct scan *scan, uint32_t segment)
{
    uint32_t parent = (uint32_t)scan->node.parent;
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, segment, 1);
    struct tutti_span sum = left_and_own(scan, segment), before = passing(scan, segment);

    if (!has_left(scan) && !scan->is_exclusive)
        return tutti_build_recv_reduce(scan->build, parent, sum, output);
    if (!has_left(scan))
        before = output;
    TUTTI_TRY(tutti_build_recv(scan->build, parent, before));
    if (has_left(scan)) {
        TUTTI_TRY(tutti_build_send(scan->build, (uint32_t)scan->node.left, before));
        TUTTI_TRY(tutti_build_reduce(scan->build, before, output));
    }
    return scan->is_exclusive && has_right(scan) ? tutti_build_reduce(scan->build, before, sum)
                                                 : TUTTI_OK;
}

/* Emit the steps of a segment on the way down. */
static int go_down(const struct scan *scan, uint32_t segment)
{
    bool is_first = scan->node.is_on_left_edge;
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, segment, 1);

    if (!is_first)
        TUTTI_TRY(receive_before(scan, segment));
    else if (!scan->is_exclusive && !has_left(scan))
        TUTTI_TRY(tutti_build_copy(scan->build, left_and_own(scan, segment), output));
    if (!has_right(scan))
        return TUTTI_OK;
    return tutti_build_send(scan->build, (uint32_t)scan->node.right,
                            scan->is_exclusive || is_first ? left_and_own(scan, segment) : output);
}

/* Local steps run in the order in which they are emitted. So the steps of a segment that go down
 * come after the steps up of as many segments as are on their way between this rank and the top. */
static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct scan scan = {.build = build, .node = find_node(shape->nranks, shape->rank),
                        .is_exclusive = shape->collective == TUTTI_EXCLUSIVE_SCAN,
                        .segments = shape->options.value[TUTTI_SEGMENTS]};
    uint32_t ahead = 2 * scan.node.depth;

    tutti_build_chunks(build, scan.segments);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, (scan.is_exclusive ? 2 : 1) * scan.segments);
    for (uint32_t segment = 0; segment < scan.segments + ahead; segment++) {
        if (segment < scan.segments)
            TUTTI_TRY(go_up(&scan, segment));
        if (segment >= ahead)
            TUTTI_TRY(go_down(&scan, segment - ahead));
    }
    return TUTTI_OK;
}

/* A segment goes up and down the tree. Each hop waits for at most three messages at a port. Each
 * segment arrives three messages after the one before it. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    uint32_t height = tutti_rounds_whole(shape->nranks);
    uint32_t segments = shape->options.value[TUTTI_SEGMENTS];
    double rounds = shape->nranks < 3 ? segments : 3.0 * height + 3.0 * (segments - 1);

    tutti_cost_flat(shape, rounds, rounds * block_bytes / segments,
                    (shape->nranks < 3 ? 1 : 3) * block_bytes, block_bytes, ret_cost);
}

#define TREE_OPTIONS {[TUTTI_SEGMENTS] = {.least = 1, .most = 1024, .usual = 8}}

const struct tutti_algorithm tutti_tree_scan = {
    .name = "tree",
    .collective = TUTTI_SCAN,
    .options = TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_tree_exclusive_scan = {
    .name = "tree",
    .collective = TUTTI_EXCLUSIVE_SCAN,
    .options = TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};
