/* SPDX-License-Identifier: Apache-2.0
 * Pipelined trees: broadcast, reduce and all-reduce in segments along the trees given in
 * shape->places, or along a binary tree.
 *
 * Each given tree moves its own part of the vector; the option `channels` bounds how many are used.
 * Tree t has channel 2 r + t if r rings are given, because those have the channels below (ring.h).
 * If the root is not the tree's top, the edges between the two are turned around:
 *
 *   given        0            root 4       4         p = 6
 *              /   \                       |
 *             1     2                      1
 *           / |     |                    /   \
 *          3  4     5                   0     3
 *                                       |
 *                                       2
 *                                       |
 *                                       5
 *
 * If no trees are given, places count from the root, and the children of place v are 2 v + 1 and 2
 * v + 2. An inner rank then sends every segment twice, which double_tree avoids.
 *
 * Source: the classic; pipelined trees as in Sanders and Sibeyn, "A bandwidth latency tradeoff for
 * broadcast and reduction", 2003.
 */
#include "algorithms/algorithm.h"
#include "algorithms/pipeline.h"
#include "algorithms/ranks.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* ---- given trees ----------------------------------------------------------------------------- */

/* The parents of all ranks in tree number `index`. */
static const int32_t *given_tree(const struct tutti_shape *shape, uint32_t index)
{
    return shape->places->trees + (size_t)index * shape->nranks;
}

/* Number of given trees that are used; 0: the binary tree is used. */
static uint32_t count_given(const struct tutti_shape *shape)
{
    uint32_t ntrees = shape->places == NULL ? 0 : shape->places->ntrees;
    uint32_t most = shape->options.value[TUTTI_CHANNELS];

    return ntrees < most ? ntrees : most;
}

/* The rank at the top of a tree: the root of the collective. An all-reduce has no root, so it uses
 * the trees as they are. */
static uint32_t find_top(const struct tutti_shape *shape, const int32_t *parents)
{
    uint32_t top = shape->root;

    while (!tutti_collective_has_root(shape->collective) && parents[top] != TUTTI_NO_RANK)
        top = (uint32_t)parents[top];
    return top;
}

static uint32_t count_ancestors(const int32_t *parents, uint32_t rank)
{
    uint32_t count = 0;

    for (; parents[rank] != TUTTI_NO_RANK; rank = (uint32_t)parents[rank])
        count++;
    return count;
}

/* Number of hops between two ranks. */
static uint32_t count_hops(const int32_t *parents, uint32_t a, uint32_t b)
{
    uint32_t above_a = count_ancestors(parents, a), above_b = count_ancestors(parents, b);
    uint32_t hops = 0;

    for (; a != b; hops++) {
        if (above_a >= above_b) {
            a = (uint32_t)parents[a];
            above_a--;
        } else {
            b = (uint32_t)parents[b];
            above_b--;
        }
    }
    return hops;
}

/* The parent of a rank after the tree is re-rooted at `top`. On the path from `top` to the old top
 * it is the rank before this one on the path; elsewhere it is the old parent. NONE for `top`
 * itself. */
static uint32_t find_parent(const int32_t *parents, uint32_t rank, uint32_t top)
{
    uint32_t before = NONE;

    for (int32_t at = (int32_t)top; at != TUTTI_NO_RANK; at = parents[at]) {
        if (at == (int32_t)rank)
            return before;
        before = (uint32_t)at;
    }
    return (uint32_t)parents[rank];
}

/* Find this rank in a tree; `children` has room for all ranks. All edges to its children get the
 * same delay: an order among them would be of no use, because the other trees use the same ports at
 * the same time. */
static struct tutti_pipeline_node find_node(const struct tutti_shape *shape, const int32_t *parents,
                                            uint32_t top, struct tutti_pipeline_edge *children)
{
    uint32_t depth = count_hops(parents, shape->rank, top);
    struct tutti_pipeline_node node = {.parent = {find_parent(parents, shape->rank, top), depth},
                                       .children = children};

    /* Each rank begins with the rank after it. If trees are stars, or alike, their centers would
     * otherwise all serve the same rank at a time. */
    for (uint32_t i = 1; i < shape->nranks; i++) {
        uint32_t other = (shape->rank + i) % shape->nranks;
        bool is_neighbor = parents[other] == (int32_t)shape->rank ||
                            parents[shape->rank] == (int32_t)other;

        if (is_neighbor && other != node.parent.rank)
            children[node.nchildren++] = (struct tutti_pipeline_edge){other, depth + 1};
    }
    return node;
}

static int emit_given(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t ntrees = count_given(shape);
    struct tutti_pipeline_node *nodes = calloc(ntrees, sizeof(*nodes));
    struct tutti_pipeline_edge *children =
        calloc((size_t)ntrees * shape->nranks, sizeof(*children));
    int rc;

    if (nodes == NULL || children == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u trees of %u ranks", ntrees,
                        shape->nranks);
        goto release;
    }
    for (uint32_t t = 0; t < ntrees; t++) {
        const int32_t *parents = given_tree(shape, t);

        nodes[t] = find_node(shape, parents, find_top(shape, parents),
                             children + (size_t)t * shape->nranks);
    }
    rc = tutti_pipeline_emit(
        build, &(struct tutti_pipeline){.nodes = nodes,
                                        .ntrees = ntrees,
                                        .period = 1,
                                        .has_channels = true,
                                        .first_channel = 2 * shape->places->nrings,
                                        .segments = shape->options.value[TUTTI_SEGMENTS]});

release:
    free(nodes);
    free(children);
    return rc;
}

/* ---- the binary tree ------------------------------------------------------------------------- */

/* The round in which the first segment reaches a place: one for each step to a left child, two for
 * each to a right child. */
static uint32_t round_of(uint32_t place)
{
    uint32_t round = 0;

    for (; place > 0; place = (place - 1) / 2)
        round += place % 2 == 1 ? 1 : 2;
    return round;
}

static int emit_binary(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t place = tutti_rank_relative(shape, shape->rank);
    struct tutti_pipeline_edge children[2];
    struct tutti_pipeline_node node = {.children = children};

    if (place > 0)
        node.parent = (struct tutti_pipeline_edge){tutti_rank_absolute(shape, (place - 1) / 2),
                                                   round_of(place)};
    for (uint32_t child = 2 * place + 1; child <= 2 * place + 2 && child < shape->nranks; child++)
        children[node.nchildren++] =
            (struct tutti_pipeline_edge){tutti_rank_absolute(shape, child), round_of(child)};
    return tutti_pipeline_emit(
        build, &(struct tutti_pipeline){.nodes = &node,
                                        .ntrees = 1,
                                        .period = 2,
                                        .segments = shape->options.value[TUTTI_SEGMENTS]});
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    return count_given(shape) > 0 ? emit_given(shape, build) : emit_binary(shape, build);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Hops from `top` to the farthest rank; `depths` has room for all ranks. The path from `top` to the
 * old top gets its depths first. Every other rank then counts its hops up to a rank whose depth is
 * known, and sets the depths on the way. */
static uint32_t find_height(const int32_t *parents, uint32_t nranks, uint32_t top, uint32_t *depths)
{
    uint32_t height = 0, depth = 0;

    for (uint32_t rank = 0; rank < nranks; rank++)
        depths[rank] = NONE;
    for (int32_t at = (int32_t)top; at != TUTTI_NO_RANK; at = parents[at])
        depths[at] = depth++;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t hops = 0, known = rank;

        for (; depths[known] == NONE; known = (uint32_t)parents[known])
            hops++;
        hops += depths[known];
        height = hops > height ? hops : height;
        for (known = rank; depths[known] == NONE; known = (uint32_t)parents[known])
            depths[known] = hops--;
    }
    return height;
}

static void cost_given(const struct tutti_shape *shape, uint32_t ntrees, double block_bytes,
                       struct tutti_cost *ret_cost)
{
    uint32_t n = shape->nranks, height = 0, fan = 0;
    uint32_t *depths = calloc(n, sizeof(*depths)), *children = calloc(n, sizeof(*children));

    for (uint32_t t = 0; depths != NULL && children != NULL && t < ntrees; t++) {
        const int32_t *parents = given_tree(shape, t);
        uint32_t top = find_top(shape, parents);
        uint32_t tree_height = find_height(parents, n, top, depths);

        height = tree_height > height ? tree_height : height;
        /* Every neighbor is a child, except one, the parent, for each rank below the top. */
        for (uint32_t rank = 0; rank < n; rank++) {
            if (parents[rank] == TUTTI_NO_RANK)
                continue;
            children[rank]++;
            children[parents[rank]]++;
        }
        for (uint32_t rank = 0; rank < n; rank++)
            children[rank] -= rank != top;
    }
    for (uint32_t rank = 0; children != NULL && rank < n; rank++)
        fan = children[rank] > fan ? children[rank] : fan;
    /* Without memory, assume the worst tree, a chain. */
    if (depths == NULL || children == NULL)
        height = n - 1;
    tutti_pipeline_cost(shape, height, fan > 0 ? fan : 1, ntrees, block_bytes, ret_cost);
    free(depths);
    free(children);
}

static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    uint32_t ntrees = count_given(shape), last = shape->nranks - 1;
    uint32_t height = tutti_rounds_whole(shape->nranks); /* of the binary tree */

    if (ntrees > 0)
        cost_given(shape, ntrees, block_bytes, ret_cost);
    else
        tutti_pipeline_cost(shape, height, last < 2 ? last : 2, 1, block_bytes, ret_cost);
}

#define TREE_OPTIONS                                                    \
    {                                                                   \
        [TUTTI_SEGMENTS] = {.least = 1, .most = 1024, .usual = 8},      \
        [TUTTI_CHANNELS] = {.least = 1, .most = 64, .usual = 64},       \
    }

const struct tutti_algorithm tutti_tree_broadcast = {
    .name = "tree",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .uses = TUTTI_USES_TREES,
    .options = TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_tree_reduce = {
    .name = "tree",
    .collective = TUTTI_REDUCE,
    .uses = TUTTI_USES_TREES,
    .options = TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_tree_allreduce = {
    .name = "tree",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_TREES,
    .options = TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};
