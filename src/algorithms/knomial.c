/* SPDX-License-Identifier: Apache-2.0
 * k-nomial trees: broadcast, reduce, gather and scatter in about (k - 1) log_k p rounds. The usual
 * radix 2 gives the binomial tree of ceil(log2 p) rounds. A larger radix makes a flatter tree, for
 * machines where a rank's messages overlap.
 *
 * Places count from the root (place 0). The parent of a place is the place with its lowest nonzero
 * digit in base k set to 0. A subtree is a run of consecutive places, so its blocks are contiguous.
 *
 *   radix 2            0                       radix 3         0               p = 7
 *                4     |   2     1                        3    6    1   2
 *              6   5   |   3                             4 5
 *
 * Broadcast and scatter serve the largest subtree first. Reduce and gather take the smallest first,
 * because it is ready first.
 *
 * Inner places of gather and scatter keep the blocks of their subtree in SCRATCH, in the order of
 * places. Only the root has blocks in the order of ranks; there a subtree may wrap around the end
 * and takes two messages.
 *
 * Source: the classic, as in Chan, Heimlich, Purkayastha and van de Geijn, "Collective
 * communication: theory, practice, and experience", 2007.
 */
#include "algorithms/knomial.h"
#include "algorithms/algorithm.h"

/* This rank in the tree. */
struct node {
    const struct tutti_shape *shape;
    uint32_t place, nranks, radix, nchildren;
    uint32_t parent; /* rank; unset for the root */
};

static struct node node_of(const struct tutti_shape *shape)
{
    struct node node = {.shape = shape,
                        .place = tutti_rank_relative(shape, shape->rank),
                        .nranks = shape->nranks,
                        .radix = shape->options.value[TUTTI_RADIX]};

    node.nchildren = tutti_knomial_children(node.place, node.nranks, node.radix);
    if (node.place != 0)
        node.parent =
            tutti_rank_absolute(shape, tutti_knomial_parent(node.place, node.nranks, node.radix));
    return node;
}

static uint32_t child_place(const struct node *node, uint32_t index)
{
    return tutti_knomial_child(node->place, node->nranks, node->radix, index);
}

/* Number of places in the subtree of a place. */
static uint32_t subtree_size(const struct node *node, uint32_t place)
{
    return tutti_knomial_size(place, node->nranks, node->radix);
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct node node = node_of(shape);
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span source = node.place == 0 ? tutti_span(TUTTI_BUF_INPUT, 0, 1) : output;

    if (node.place != 0)
        TUTTI_TRY(tutti_build_recv(build, node.parent, output));
    for (uint32_t i = 0; i < node.nchildren; i++)
        TUTTI_TRY(
            tutti_build_send(build, tutti_rank_absolute(shape, child_place(&node, i)), source));
    return node.place == 0 ? tutti_build_copy(build, source, output) : TUTTI_OK;
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct node node = node_of(shape);
    enum tutti_buffer kept = node.place == 0 ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH;
    struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (node.place != 0 && node.nchildren > 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    tutti_build_one_tree(build);
    for (uint32_t i = node.nchildren; i-- > 0;) {
        struct tutti_span next = tutti_span(kept, 0, 1);

        TUTTI_TRY(tutti_build_recv_reduce(build, tutti_rank_absolute(shape, child_place(&node, i)),
                                          sum, next));
        sum = next;
    }
    return node.place == 0 ? TUTTI_OK : tutti_build_send(build, node.parent, sum);
}

/* The memory of the blocks of `count` places from `first` on. The root keeps them in its buffer
 * `root_buffer`, in the order of ranks. Other places keep them in SCRATCH, from their own block on.
 * With `is_with_root` the blocks travel between the root and its child. Both must then cut them at
 * the same place, where the ranks wrap. */
static struct tutti_wrapped kept_blocks(const struct node *node, enum tutti_buffer root_buffer,
                                        uint32_t first, uint32_t count, bool is_with_root)
{
    uint32_t first_rank = tutti_rank_absolute(node->shape, first);
    struct tutti_wrapped blocks = tutti_wrapped_span(root_buffer, first_rank, count, node->nranks);

    if (node->place == 0)
        return blocks;
    if (!is_with_root)
        blocks = (struct tutti_wrapped){.upper = {.count = count}};
    blocks.upper.buffer = TUTTI_BUF_SCRATCH;
    blocks.upper.first = first - node->place;
    blocks.lower.buffer = TUTTI_BUF_SCRATCH;
    blocks.lower.first = first - node->place + blocks.upper.count;
    return blocks;
}

/* The blocks of this place's whole subtree, as its parent cuts them. */
static struct tutti_wrapped own_blocks(const struct node *node, enum tutti_buffer root_buffer)
{
    return kept_blocks(node, root_buffer, node->place, subtree_size(node, node->place),
                       node->parent == node->shape->root);
}

static struct tutti_wrapped child_blocks(const struct node *node, enum tutti_buffer root_buffer,
                                         uint32_t child)
{
    return kept_blocks(node, root_buffer, child, subtree_size(node, child), node->place == 0);
}

static int emit_gather(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct node node = node_of(shape);
    struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    if (node.nchildren == 0)
        return tutti_build_send(build, node.parent, own);

    if (node.place != 0)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, subtree_size(&node, node.place));
    TUTTI_TRY(tutti_build_copy(build, own,
                               kept_blocks(&node, TUTTI_BUF_OUTPUT, node.place, 1, false).upper));
    for (uint32_t i = node.nchildren; i-- > 0;) {
        uint32_t child = child_place(&node, i);

        TUTTI_TRY(tutti_wrapped_recv(build, tutti_rank_absolute(shape, child),
                                     child_blocks(&node, TUTTI_BUF_OUTPUT, child)));
    }
    if (node.place == 0)
        return TUTTI_OK;
    return tutti_wrapped_send(build, node.parent, own_blocks(&node, TUTTI_BUF_OUTPUT));
}

static int emit_scatter(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct node node = node_of(shape);
    struct tutti_span own = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);

    if (node.nchildren == 0)
        return tutti_build_recv(build, node.parent, own);

    if (node.place != 0) {
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, subtree_size(&node, node.place));
        TUTTI_TRY(tutti_wrapped_recv(build, node.parent, own_blocks(&node, TUTTI_BUF_INPUT)));
    }
    for (uint32_t i = 0; i < node.nchildren; i++) {
        uint32_t child = child_place(&node, i);

        TUTTI_TRY(tutti_wrapped_send(build, tutti_rank_absolute(shape, child),
                                     child_blocks(&node, TUTTI_BUF_INPUT, child)));
    }
    return tutti_build_copy(build, kept_blocks(&node, TUTTI_BUF_INPUT, node.place, 1, false).upper,
                            own);
}

/* Add the rounds and bytes of the root's messages, and return its number of children. The root
 * serves its children one after the other; the child that it serves last, or waits for first, is a
 * leaf, so no other path is longer. The children of one step span a run of places; each subtree has
 * `step` of them. A message has `bytes` bytes, or, if has_subtree, as much for each block of the
 * subtree. */
static double add_children(const struct tutti_shape *shape, double bytes, bool has_subtree,
                           struct tutti_cost *cost)
{
    uint32_t n = shape->nranks, radix = shape->options.value[TUTTI_RADIX];
    double children = 0;

    for (uint64_t step = tutti_knomial_reach(0, n, radix) / radix; step > 0; step /= radix) {
        uint32_t siblings = tutti_knomial_siblings(0, n, radix, step);
        uint64_t end = (siblings + 1) * step, run = step * radix;
        double blocks = has_subtree ? (double)((end < n ? end : n) - step) : siblings;

        tutti_cost_add(shape, shape->root, run < n ? (uint32_t)run : n, siblings, blocks * bytes,
                       cost);
        children += siblings;
    }
    cost->is_alone = tutti_cost_is_block(shape);
    return children;
}

static void cost_broadcast(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    *ret_cost = (struct tutti_cost){.copied = block_bytes};
    add_children(shape, block_bytes, false, ret_cost);
}

static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    *ret_cost = (struct tutti_cost){.copied = 0};
    ret_cost->reduced = add_children(shape, block_bytes, false, ret_cost) * block_bytes;
}

/* Gather and scatter: the root's messages together carry every block but its own. */
static void cost_blocks(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    *ret_cost = (struct tutti_cost){.copied = block_bytes};
    add_children(shape, block_bytes, true, ret_cost);
}

#define KNOMIAL_OPTIONS {[TUTTI_RADIX] = {.least = 2, .most = 64, .usual = 2}}

const struct tutti_algorithm tutti_knomial_broadcast = {
    .name = "knomial",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .options = KNOMIAL_OPTIONS,
    .emit = emit_broadcast,
    .cost = cost_broadcast,
};

const struct tutti_algorithm tutti_knomial_reduce = {
    .name = "knomial",
    .collective = TUTTI_REDUCE,
    .options = KNOMIAL_OPTIONS,
    .emit = emit_reduce,
    .cost = cost_reduce,
};

const struct tutti_algorithm tutti_knomial_gather = {
    .name = "knomial",
    .collective = TUTTI_GATHER,
    .options = KNOMIAL_OPTIONS,
    .emit = emit_gather,
    .cost = cost_blocks,
};

const struct tutti_algorithm tutti_knomial_scatter = {
    .name = "knomial",
    .collective = TUTTI_SCATTER,
    .options = KNOMIAL_OPTIONS,
    .emit = emit_scatter,
    .cost = cost_blocks,
};
