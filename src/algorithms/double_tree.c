/* SPDX-License-Identifier: Apache-2.0
 * Double binary tree: broadcast, reduce and all-reduce in segments along two trees, half of the
 * vector on each. A rank with children in one tree is a leaf of the other. In a broadcast each rank
 * therefore receives the vector once and sends it at most once, as in a chain. But the data makes
 * only ceil(log2 p) hops.
 *
 * Places count from the root, place 0, which is above both trees. The first tree numbers places 1
 * .. m = p - 1 in order from left to right; odd numbers are leaves. The second tree is its mirror
 * image, v -> m + 1 - v, if m is even, else the first one shifted by one; there even numbers are
 * leaves.
 *
 *   p = 7        0                  0              p = 6        0                0
 *                |                  |                           |                |
 *                4                  3                           4                5
 *              /   \              /   \                       /   \            /   \
 *             2     6            1     5                     2     5          3     1
 *            / \   /              \   / \                   / \              / \
 *           1   3 5                2 4   6                 1   3            2   4
 *
 * Rounds alternate between two colors, and so do edges: a rank receives from its two parents in
 * rounds of different colors, and sends to its two children likewise. So it never has more than
 * one message each way in a round.
 *
 * Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
 * and scan", 2009.
 */
#include "algorithms/algorithm.h"
#include "algorithms/pipeline.h"
#include "algorithms/ranks.h"

#include <stdlib.h>
#include <string.h>

#define TREES 2

/* Functions on the numbers of the first tree. The height of a number in the tree is the index of
 * its lowest set bit; 0 is above all other numbers. */

static uint32_t lowest_bit(uint32_t number)
{
    return number & (0 - number);
}

static uint32_t parent_of(uint32_t number, uint32_t most)
{
    uint32_t low = lowest_bit(number);
    uint32_t parent = (number ^ low) | low << 1;

    return parent <= most ? parent : number ^ low;
}

/* The right child of a number, or 0 if it has none. */
static uint32_t right_child(uint32_t number, uint32_t most)
{
    uint32_t by = lowest_bit(number) / 2;

    while (number + by > most)
        by /= 2;
    return by > 0 ? number + by : 0;
}

static uint32_t left_child(uint32_t number)
{
    return number - lowest_bit(number) / 2;
}

/* The number of a place in a tree, and the place of a number. */
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

/* ---- colors --------------------------------------------------------------------------------- */

/* The edge from a place to its parent in a tree. */
struct edge {
    uint32_t tree, place; /* place 0: no edge */
};

static struct edge other_parent(struct edge edge)
{
    return (struct edge){!edge.tree, edge.place};
}

/* The top of the first tree: the largest power of two that is at most `most`. */
static uint32_t top_of(uint32_t most)
{
    return 1u << tutti_rounds_whole(most);
}

/* The other edge on which the upper rank of this edge sends. The root sends on the edges above the
 * tops of both trees. */
static struct edge other_child(struct edge edge, uint32_t most)
{
    uint32_t number = number_of(edge.place, edge.tree, most), parent = parent_of(number, most);
    uint32_t other = number < parent ? right_child(parent, most) : left_child(parent);

    if (parent == 0)
        return (struct edge){!edge.tree, place_of(number, !edge.tree, most)};
    return (struct edge){edge.tree, place_of(other, edge.tree, most)};
}

#define UNKNOWN 2 /* neither of the colors 0 and 1 */

/* Color the edges of one walk alternately. The walk goes from an edge to the other edge at its
 * lower end, from there to the other edge at its upper end, and so on. It is a circle of even
 * length, or it ends on both sides at a parent with one child. */
static void color_walk(uint8_t *colors[TREES], struct edge edge, uint32_t most)
{
    struct edge back = other_child(edge, most);

    for (uint8_t color = 0; edge.place != 0 && colors[edge.tree][edge.place] == UNKNOWN;) {
        colors[edge.tree][edge.place] = color;
        edge = other_parent(edge);
        colors[edge.tree][edge.place] = !color;
        edge = other_child(edge, most);
    }
    for (uint8_t color = 1; back.place != 0 && colors[back.tree][back.place] == UNKNOWN;) {
        colors[back.tree][back.place] = color;
        back = other_parent(back);
        colors[back.tree][back.place] = !color;
        back = other_child(back, most);
    }
}

/* Color the edges of both trees. The array of a tree is indexed by the place below the edge, from 1
 * to `most`. */
static void color_edges(uint8_t *colors[TREES], uint32_t most)
{
    for (uint32_t t = 0; t < TREES; t++)
        memset(colors[t], UNKNOWN, most + 1);
    for (uint32_t place = 1; place <= most; place++)
        for (uint32_t t = 0; t < TREES; t++)
            if (colors[t][place] == UNKNOWN)
                color_walk(colors, (struct edge){t, place}, most);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The first round of the edge above a place: the first round of the edge's color after the first
 * round of the edge above the parent. For the root it is 0. */
static uint32_t round_of(const uint8_t *colors, uint32_t place, uint32_t tree, uint32_t most)
{
    uint32_t parent, round;

    if (place == 0)
        return 0;
    parent = place_of(parent_of(number_of(place, tree, most), most), tree, most);
    round = round_of(colors, parent, tree, most) + 1;
    return round + (round % 2 != colors[place]);
}

/* Find this rank in a tree. */
static struct tutti_pipeline_node find_node(const struct tutti_shape *shape, const uint8_t *colors,
                                            uint32_t tree, struct tutti_pipeline_edge children[2])
{
    uint32_t most = shape->nranks - 1, place = tutti_rank_relative(shape, shape->rank);
    uint32_t number = number_of(place, tree, most), below[2] = {0, 0};
    struct tutti_pipeline_node node = {.children = children};

    if (number == 0) {
        below[0] = top_of(most);
    } else {
        node.parent.rank =
            tutti_rank_absolute(shape, place_of(parent_of(number, most), tree, most));
        node.parent.delay = round_of(colors, place, tree, most);
        if (number % 2 == 0) {
            below[0] = left_child(number);
            below[1] = right_child(number, most);
        }
    }
    for (uint32_t i = 0; i < 2 && below[i] != 0; i++) {
        uint32_t child = place_of(below[i], tree, most);

        children[node.nchildren++] = (struct tutti_pipeline_edge){
            tutti_rank_absolute(shape, child), round_of(colors, child, tree, most)};
    }
    if (node.nchildren == 2 && children[0].delay > children[1].delay) {
        struct tutti_pipeline_edge later = children[0];

        children[0] = children[1];
        children[1] = later;
    }
    return node;
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint8_t *marks = malloc(TREES * (size_t)shape->nranks);
    uint8_t *colors[TREES] = {marks, marks + shape->nranks};
    struct tutti_pipeline_edge children[TREES][2];
    struct tutti_pipeline_node nodes[TREES];
    int rc;

    if (marks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for two trees of %u ranks", shape->nranks);
    color_edges(colors, shape->nranks - 1);
    for (uint32_t t = 0; t < TREES; t++)
        nodes[t] = find_node(shape, colors[t], t, children[t]);
    rc = tutti_pipeline_emit(
        build, &(struct tutti_pipeline){.nodes = nodes,
                                        .ntrees = TREES,
                                        .period = 2,
                                        .segments = shape->options.value[TUTTI_SEGMENTS]});
    free(marks);
    return rc;
}

/* No rank has more than two children in both trees together. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    tutti_pipeline_cost(shape, tutti_rounds_of(shape->nranks), TREES, TREES, block_bytes, ret_cost);
}

#define DOUBLE_TREE_OPTIONS {[TUTTI_SEGMENTS] = {.least = 1, .most = 1024, .usual = 8}}

const struct tutti_algorithm tutti_double_tree_broadcast = {
    .name = "double_tree",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_double_tree_reduce = {
    .name = "double_tree",
    .collective = TUTTI_REDUCE,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};

const struct tutti_algorithm tutti_double_tree_allreduce = {
    .name = "double_tree",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .options = DOUBLE_TREE_OPTIONS,
    .emit = emit,
    .cost = cost,
};
