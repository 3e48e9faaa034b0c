/* SPDX-License-Identifier: Apache-2.0
 * Finds the tree of gpus with the least total cost, for given costs of the paths between places.
 *
 * Data may flow through a tree both ways, up and down. Then an edge costs the same in both
 * directions, and Prim's algorithm (1957) finds the tree. If data flows only from the root down,
 * the cost of an edge depends on its direction. Then the algorithm of Chu and Liu (1965) and
 * Edmonds (1967) finds the tree. It works as follows:
 *
 *   1. Each place except the root takes its cheapest parent. If this makes a tree, it is the
 *      cheapest one.
 *   2. Otherwise some places are each other's parents in a cycle. The cycle is contracted to one
 *      place. An edge into the cycle at a place would replace the edge that the place has taken, so
 *      the cost of that edge is subtracted.
 *   3. The smaller problem is solved in the same way. In its solution, one edge enters the cycle
 *      at some place, and replaces the edge that this place has taken. The other places of the
 *      cycle keep their parents.
 *
 * Example: edges from the root r to a cost 5 and to b 7; from a to b 1, and from b to a 2. a takes
 * b, and b takes a: a cycle. After contraction, the edge r-a costs 5 - 2 = 3, and r-b costs
 * 7 - 1 = 6. The cheaper one enters the cycle at a. So r is the parent of a, and a that of b, at a
 * cost of 5 + 1. The other way, r-b and b-a, would cost 7 + 2.
 */
#include "topology/search/pricing.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs count as equal if their relative difference is less than this. */
#define EQUAL_TOLERANCE 1e-9

/* The problem, and the tree found. The graph has one place for each gpu, numbered as the gpus, and
 * place n. Place n stands for everything outside the host, and is the parent of the root. Its edge
 * to a gpu has the cost of entering the host at this gpu. A tree uses exactly one edge of place n.
 */
struct tree_builder {
    uint32_t n;       /* number of gpus */
    double *cost;     /* [(n + 1) * (n + 1)]: cost of an edge from a parent to a child */
    uint32_t *net;    /* per gpu: the cheapest net to enter by, or TUTTI_NO_NODE */
    uint32_t *parent; /* per gpu: its parent in the tree; TUTTI_NO_NODE: it is the root */
    bool is_balanced; /* among edges of equal cost, avoid gpus that have many edges */
};

/* Returns the cost of the edge from one place of the pricing to another, in a tree that is used
 * down only or both ways. `cost` has the costs of the paths (tutti_pricing_costs). */
static double edge_cost(const struct tutti_pricing *pricing, const double *cost, uint32_t from,
                        uint32_t to, bool is_both_ways)
{
    double down = cost[from * pricing->nplaces + to], up = cost[to * pricing->nplaces + from];

    return down + (is_both_ways ? up : 0);
}

/* Returns the cost of entering and leaving the host at a gpu. For the factor 2 see measure_tree()
 * in pricing.c. */
static double host_cost(const struct tutti_pricing *pricing, const double *cost, uint32_t gpu,
                        uint32_t net_in, uint32_t net_out, bool is_both_ways)
{
    return (is_both_ways ? pricing->joint_load : 1) *
           (cost[net_in * pricing->nplaces + gpu] + cost[gpu * pricing->nplaces + net_out]);
}

/* Sets the costs of all edges, and the cheapest net for each gpu. */
static void set_costs(struct tree_builder *builder, const struct tutti_pricing *pricing,
                      const double *cost, bool is_both_ways)
{
    uint32_t n = builder->n;

    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++)
            builder->cost[from * (n + 1) + to] =
                from == to ? INFINITY : edge_cost(pricing, cost, from, to, is_both_ways);
    for (uint32_t gpu = 0; gpu < n; gpu++) {
        double *enter = &builder->cost[n * (n + 1) + gpu];

        *enter = pricing->nnets == 0 ? 0 : INFINITY;
        builder->net[gpu] = TUTTI_NO_NODE;
        for (uint32_t net = pricing->ngpus; net < pricing->nplaces; net++) {
            double in_and_out = host_cost(pricing, cost, gpu, net, net, is_both_ways);

            if (in_and_out < *enter) {
                *enter = in_and_out;
                builder->net[gpu] = net;
            }
        }
        builder->cost[gpu * (n + 1) + n] = INFINITY; /* place n has no parent */
    }
    builder->cost[n * (n + 1) + n] = INFINITY;
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* A tree that grows by Prim's algorithm. */
struct growth {
    bool is_in[TUTTI_SEARCH_GPUS];      /* per gpu: true if the gpu is in the tree */
    uint32_t degree[TUTTI_SEARCH_GPUS]; /* per gpu: number of its edges in the tree */
    /* Per gpu outside the tree: cost of the edge to its parent, which is the best one in the tree.
     * INFINITY: it has no parent yet. */
    double least[TUTTI_SEARCH_GPUS];
};

/* Returns true if `candidate` is a better parent of a gpu than the one that the gpu has. `edge` is
 * the cost of the edge from `candidate`. */
static bool is_better_parent(const struct tree_builder *builder, const struct growth *growth,
                             uint32_t gpu, uint32_t candidate, double edge)
{
    double least = growth->least[gpu];

    if (edge < least * (1 - EQUAL_TOLERANCE))
        return true;
    return builder->is_balanced && edge <= least * (1 + EQUAL_TOLERANCE) &&
           growth->degree[candidate] < growth->degree[builder->parent[gpu]];
}

/* Grows a tree from the root by Prim's algorithm: each round adds the gpu that is nearest to the
 * tree. Among edges of equal cost it takes the first one. So the trees are stars if all costs are
 * equal. Stars have the least depth, and they share the load evenly if each gpu is the center of
 * one star.
 *
 * With fewer channels than gpus, some gpus are never the center. Then is_balanced is set, and each
 * tree shares its load evenly by itself: among parents of equal cost, the one with the fewest edges
 * is taken. */
static void grow_tree(struct tree_builder *builder, uint32_t root)
{
    struct growth growth = {.is_in = {false}};
    uint32_t newest = root; /* the gpu that was added last */

    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        growth.least[gpu] = INFINITY;
    builder->parent[root] = TUTTI_NO_NODE;
    for (uint32_t count = 1; count < builder->n; count++) {
        uint32_t nearest = TUTTI_NO_NODE;

        growth.is_in[newest] = true;
        for (uint32_t gpu = 0; gpu < builder->n; gpu++) {
            double edge = builder->cost[newest * (builder->n + 1) + gpu];

            if (growth.is_in[gpu])
                continue;
            if (is_better_parent(builder, &growth, gpu, newest, edge)) {
                growth.least[gpu] = edge;
                builder->parent[gpu] = newest;
            }
            if (nearest == TUTTI_NO_NODE || growth.least[gpu] < growth.least[nearest])
                nearest = gpu;
        }
        newest = nearest;
        growth.degree[newest]++;
        growth.degree[builder->parent[newest]]++;
    }
}

/* Returns the depth that the tree has if its root is `start`, without the branch at the neighbor
 * `excluded`. TUTTI_NO_NODE: no branch is excluded. The parents in `builder` belong to another
 * root, so a neighbor of a gpu is its parent or a child. */
static uint32_t depth_from(const struct tree_builder *builder, uint32_t start, uint32_t excluded)
{
    uint32_t deepest = 0;

    for (uint32_t gpu = 0; gpu < builder->n; gpu++) {
        bool is_neighbor = builder->parent[gpu] == start || builder->parent[start] == gpu;

        if (is_neighbor && gpu != excluded) {
            uint32_t depth = 1 + depth_from(builder, gpu, start);

            deepest = depth > deepest ? depth : deepest;
        }
    }
    return deepest;
}

/* Makes `root` the root of the tree, by reversing the edges on the way to the old root. */
static void reroot(struct tree_builder *builder, uint32_t root)
{
    uint32_t below = TUTTI_NO_NODE, at = root;

    while (at != TUTTI_NO_NODE) {
        uint32_t above = builder->parent[at];

        builder->parent[at] = below;
        below = at;
        at = above;
    }
}

/* Chooses the root anew, so that the tree has the least depth. Without nets, the choice of the root
 * does not change the load of the links. */
static void reroot_at_center(struct tree_builder *builder)
{
    uint32_t middle = 0, least = UINT32_MAX;

    for (uint32_t gpu = 0; gpu < builder->n; gpu++) {
        uint32_t depth = depth_from(builder, gpu, TUTTI_NO_NODE);

        if (depth < least) {
            least = depth;
            middle = gpu;
        }
    }
    reroot(builder, middle);
}

/* Finds the tree that is used both ways. The cost of its edges does not depend on the root. So with
 * nets, the root is the gpu that is cheapest to enter. */
static void grow_both_ways(struct tree_builder *builder, bool has_nets)
{
    const double *enter = builder->cost + (size_t)builder->n * (builder->n + 1);
    uint32_t root = 0;

    for (uint32_t gpu = 1; gpu < builder->n; gpu++)
        if (enter[gpu] < enter[root])
            root = gpu;
    grow_tree(builder, root);
    if (!has_nets)
        reroot_at_center(builder);
}

/* ---- from the root down ---------------------------------------------------------------------- */

/* One level of the recursion of Chu, Liu and Edmonds: a problem of n places, its solution, and a
 * cycle in it. */
struct branching {
    uint32_t n, root;   /* number of places; the place without a parent */
    const double *cost; /* [n * n], from parent to child; finite, except from a place to itself */
    uint32_t *parent;   /* per place except the root: the solution */
    bool *is_inner;     /* per place: true if it is part of the cycle */
    uint32_t ngroups;   /* number of places in the contracted problem, called groups here */
    uint32_t *group;    /* per place: its group; the cycle is the last group */
};

/* Gives each place its cheapest parent. */
static void choose_parents(struct branching *branching)
{
    uint32_t n = branching->n;

    for (uint32_t to = 0; to < n; to++) {
        uint32_t best = to == 0 ? 1 : 0; /* any place other than `to` */

        for (uint32_t from = 0; from < n; from++)
            if (from != to && branching->cost[from * n + to] < branching->cost[best * n + to])
                best = from;
        if (to != branching->root)
            branching->parent[to] = best;
    }
}

/* Finds a cycle and marks its places in `is_inner`. Returns false if there is none. From each place
 * in turn, follows the parents up to the root or to a place that was reached before. A place that
 * was reached from the same start closes a cycle. */
static bool find_cycle(struct branching *branching)
{
    /* Per place: 1 + the start from which it was first reached, or 0. The groups are not numbered
     * yet, so their array is free. */
    uint32_t *reached_from = branching->group;

    for (uint32_t start = 0; start < branching->n; start++) {
        uint32_t at = start;

        while (at != branching->root && reached_from[at] == 0) {
            reached_from[at] = start + 1;
            at = branching->parent[at];
        }
        if (at == branching->root || reached_from[at] != start + 1)
            continue;
        for (uint32_t place = at; !branching->is_inner[place]; place = branching->parent[place])
            branching->is_inner[place] = true;
        return true;
    }
    return false;
}

/* Numbers the groups: first each place outside the cycle, then the cycle. */
static void number_groups(struct branching *branching)
{
    for (uint32_t place = 0; place < branching->n; place++)
        if (!branching->is_inner[place])
            branching->group[place] = branching->ngroups++;
    for (uint32_t place = 0; place < branching->n; place++)
        if (branching->is_inner[place])
            branching->group[place] = branching->ngroups;
    branching->ngroups++;
}

/* Computes the costs between groups, ret_cost[from * ngroups + to], and the cheapest original edge
 * behind each cost. That edge is written as one number, from * n + to. An edge that enters the
 * cycle at a place replaces the cycle's own edge to this place. So the cost of the cycle's edge is
 * subtracted. */
static void contract(const struct branching *branching, double *ret_cost, uint32_t *ret_edge)
{
    uint32_t n = branching->n, ngroups = branching->ngroups;

    for (uint32_t i = 0; i < ngroups * ngroups; i++)
        ret_cost[i] = INFINITY;
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++) {
            uint32_t from_group = branching->group[from], to_group = branching->group[to];
            uint32_t pair = from_group * ngroups + to_group;
            double cost = branching->cost[from * n + to];

            if (from_group == to_group)
                continue;
            if (branching->is_inner[to])
                cost -= branching->cost[branching->parent[to] * n + to];
            if (cost < ret_cost[pair]) {
                ret_cost[pair] = cost;
                ret_edge[pair] = from * n + to;
            }
        }
}

/* Fills in branching->parent with the cheapest tree from the root down, as the comment at the top
 * of this file describes. The caller sets n, root, cost and parent, and zeroes the rest.
 * TUTTI_ERR_SYSTEM: no memory. */
static int solve_branching(struct branching *branching)
{
    uint32_t n = branching->n;
    struct branching contracted = {0};
    /* The cost and the original edge of each pair of groups; see contract(). */
    double *group_cost = calloc((size_t)n * n, sizeof *group_cost);
    uint32_t *edge = calloc((size_t)n * n, sizeof *edge);
    int rc = TUTTI_OK;

    branching->group = calloc(n, sizeof *branching->group);
    branching->is_inner = calloc(n, sizeof *branching->is_inner);
    contracted.parent = calloc(n, sizeof *contracted.parent);
    if (edge == NULL || group_cost == NULL || branching->group == NULL ||
        branching->is_inner == NULL || contracted.parent == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tree of %u places", n);
        goto free_arrays;
    }
    choose_parents(branching);
    if (!find_cycle(branching))
        goto free_arrays;
    number_groups(branching);
    contract(branching, group_cost, edge);
    contracted.n = branching->ngroups;
    contracted.root = branching->group[branching->root];
    contracted.cost = group_cost;
    TUTTI_TRY_OR(free_arrays, rc, solve_branching(&contracted));
    /* Expand. The edge into the cycle changes the parent of one of its places; the others keep
     * theirs. */
    for (uint32_t to = 0; to < contracted.n; to++)
        if (to != contracted.root) {
            uint32_t taken = edge[contracted.parent[to] * contracted.n + to];

            branching->parent[taken % n] = taken / n;
        }

free_arrays:
    free(edge);
    free(group_cost);
    free(branching->group);
    free(branching->is_inner);
    free(contracted.parent);
    return rc;
}

/* Finds the tree that is used from the root down. Edges from place n get a cost so large that the
 * tree uses only one of them. Missing edges get a cost that is larger than that of all other edges
 * together, so that the tree uses them only if there is no other way. TUTTI_ERR_SYSTEM: no
 * memory. */
static int grow_down(struct tree_builder *builder)
{
    uint32_t outside = builder->n, nplaces = builder->n + 1;
    struct branching branching = {
        .n = nplaces, .root = outside, .cost = builder->cost, .parent = builder->parent};
    double sum = 1e-300; /* of all costs; above 0, even if all costs are 0 */

    for (uint32_t i = 0; i < nplaces * nplaces; i++)
        sum += isinf(builder->cost[i]) ? 0 : builder->cost[i];
    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        builder->cost[outside * nplaces + gpu] += sum;
    /* A tree has fewer than nplaces edges, and no edge that exists costs more than 2 * sum. */
    for (uint32_t i = 0; i < nplaces * nplaces; i++)
        if (isinf(builder->cost[i]))
            builder->cost[i] = 4 * nplaces * sum;
    TUTTI_TRY(solve_branching(&branching));
    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        if (builder->parent[gpu] == outside)
            builder->parent[gpu] = TUTTI_NO_NODE;
    return TUTTI_OK;
}

/* ---- either ---------------------------------------------------------------------------------- */

/* Returns the total cost of the tree. The cost is infinite if a path of the tree does not exist, if
 * no net leads to the root, or if there is not exactly one root. */
static double cost_of_tree(const struct tutti_pricing *pricing, const double *cost,
                           bool is_both_ways, const struct tutti_search_column *column)
{
    uint32_t nroots = 0;
    double sum = 0;

    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++) {
        uint32_t parent = column->gpu[gpu];

        if (parent != TUTTI_NO_NODE) {
            sum += edge_cost(pricing, cost, parent, gpu, is_both_ways);
            continue;
        }
        nroots++;
        if (pricing->nnets == 0)
            continue;
        sum += column->net_in == TUTTI_NO_NODE
                   ? INFINITY
                   : host_cost(pricing, cost, gpu, column->net_in, column->net_out, is_both_ways);
    }
    return nroots == 1 ? sum : INFINITY;
}

int tutti_pricing_cheapest_tree(const struct tutti_pricing *pricing, const double *cost,
                                enum tutti_pattern pattern, struct tutti_search_column *column,
                                double *ret_cost)
{
    size_t n = pricing->ngpus;
    struct tree_builder builder = {.n = pricing->ngpus,
                                   .is_balanced = pricing->ngpus > pricing->nchannels};
    /* `net`, then `parent`. The item more is for place n, which has no parent. */
    uint32_t *numbers = calloc(2 * n + 1, sizeof *numbers), root = 0;
    bool is_both_ways = pattern == TUTTI_PATTERN_TREE;
    int rc = TUTTI_OK;

    builder.cost = calloc((n + 1) * (n + 1), sizeof *builder.cost);
    if (numbers == NULL || builder.cost == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tree of %zu gpus", n);
        goto drop_trees;
    }
    builder.net = numbers;
    builder.parent = numbers + n;
    set_costs(&builder, pricing, cost, is_both_ways);
    if (is_both_ways)
        grow_both_ways(&builder, pricing->nnets > 0);
    else
        TUTTI_TRY_OR(drop_trees, rc, grow_down(&builder));
    memcpy(column->gpu, builder.parent, n * sizeof *column->gpu);
    while (column->gpu[root] != TUTTI_NO_NODE)
        root++;
    column->net_in = column->net_out = builder.net[root];
    *ret_cost = cost_of_tree(pricing, cost, is_both_ways, column);
    if (isfinite(*ret_cost))
        tutti_column_measure(pricing, pattern, column);

drop_trees:
    free(numbers);
    free(builder.cost);
    return rc;
}
