/* SPDX-License-Identifier: Apache-2.0
 * Double binary tree: broadcast, reduce and all-reduce in segments along two trees, half of the
 * vector on each. A rank with children in one tree has none in the other, so that nobody sends or
 * receives a segment more than a plain pipeline would: the vector once, in ceil(log2 p) hops.
 *
 * Places count from the root, place 0, which stands above both trees. The first tree numbers
 * places 1 .. m = p - 1 in order from left to right: odd ones are leaves. The second is its mirror
 * image, v -> m + 1 - v, if m is even, else the same shifted by one: its leaves are even.
 *
 *   p = 7        0                  0              p = 6        0                0
 *                |                  |                           |                |
 *                4                  3                           4                5
 *              /   \              /   \                       /   \            /   \
 *             2     6            1     5                     2     5          3     1
 *            / \   /              \   / \                   / \              / \
 *           1   3 5                2 4   6                 1   3            2   4
 *
 * Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
 * and scan", 2009.
 */
#include "algorithms/algorithm.h"
#include "algorithms/pipeline.h"
#include "algorithms/ranks.h"

#define TREES 2

/* Numbers of the first tree. A number stands as high as its lowest set bit; 0 is above all. */

static uint32_t parent_of(uint32_t number, uint32_t most)
{
    uint32_t low = number & (0 - number);
    uint32_t parent = (number ^ low) | low << 1;

    return parent <= most ? parent : number ^ low;
}

/* 0: none. */
static uint32_t right_child(uint32_t number, uint32_t most)
{
    uint32_t by = (number & (0 - number)) / 2;

    while (number + by > most)
        by /= 2;
    return by > 0 ? number + by : 0;
}

static uint32_t left_child(uint32_t number)
{
    return number - (number & (0 - number)) / 2;
}

/* The number in tree t of a place, and back. */
static uint32_t number_of(uint32_t place, uint32_t tree, uint32_t most)
{
    if (place == 0 || tree == 0)
        return place;
    if (most % 2 == 0)
        return most + 1 - place;
    return place == 1 ? most : place - 1;
}

static uint32_t place_of(uint32_t number, uint32_t tree, uint32_t most)
{
    if (number == 0 || tree == 0)
        return number;
    if (most % 2 == 0)
        return most + 1 - number;
    return number == most ? 1 : number + 1;
}

static struct pipeline_node find_node(const struct tutti_shape *shape, uint32_t tree,
                                      uint32_t children[2])
{
    uint32_t most = shape->nranks - 1;
    uint32_t number = number_of(from_root(shape, shape->rank), tree, most);
    struct pipeline_node node = {.children = children};
    uint32_t below[2];

    if (number == 0) {
        below[node.nchildren++] = 1u << (31 - __builtin_clz(most));
    } else if (number % 2 == 0) {
        below[node.nchildren++] = left_child(number);
        if (right_child(number, most) != 0)
            below[node.nchildren++] = right_child(number, most);
    }
    for (uint32_t i = 0; i < node.nchildren; i++)
        children[i] = to_rank(shape, place_of(below[i], tree, most));

    if (number != 0)
        node.parent = to_rank(shape, place_of(parent_of(number, most), tree, most));
    for (uint32_t at = number; at != 0; at = parent_of(at, most))
        node.depth++;
    return node;
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t children[TREES][2];
    struct pipeline_node nodes[TREES];

    for (uint32_t t = 0; t < TREES; t++)
        nodes[t] = find_node(shape, t, children[t]);
    return tutti_pipeline_emit(build, nodes, TREES, shape->options.value[TUTTI_SEGMENTS]);
}

/* No rank has more than two children in both trees together. */
static void cost(const struct tutti_shape *shape, enum tutti_collective collective,
                 double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_pipeline_cost(shape, collective, rounds_of(shape->nranks), TREES, TREES, block_bytes,
                        ret_cost);
}

static void cost_broadcast(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    cost(shape, TUTTI_BROADCAST, block_bytes, ret_cost);
}

static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    cost(shape, TUTTI_REDUCE, block_bytes, ret_cost);
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    cost(shape, TUTTI_ALLREDUCE, block_bytes, ret_cost);
}

#define DOUBLE_TREE_OPTIONS {[TUTTI_SEGMENTS] = {.least = 1, .most = 1024, .usual = 8}}

const struct tutti_algorithm tutti_double_tree_broadcast = {
    .name = "double_tree",
    .collective = TUTTI_BROADCAST,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost_broadcast,
};

const struct tutti_algorithm tutti_double_tree_reduce = {
    .name = "double_tree",
    .collective = TUTTI_REDUCE,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost_reduce,
};

const struct tutti_algorithm tutti_double_tree_allreduce = {
    .name = "double_tree",
    .collective = TUTTI_ALLREDUCE,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost_allreduce,
};
