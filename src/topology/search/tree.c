/* SPDX-License-Identifier: Apache-2.0
 * Finds the tree of gpus with the least total cost, for given costs of the paths between places.
 *
 * Data may flow through a tree both ways, up and down. Then an edge costs the same in both
 * directions, and Prim's algorithm (1957) finds the tree. If data flows only from the root down,
 * the cost of an edge depends on its direction. Then the algorithm of Chu and Liu (1965) and
 * Edmonds (1967) finds the tree.
 */
#include "topology/search/pricing.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The graph has one place for each gpu, and place n. Place n stands for everything outside the
 * host, and is the parent of the root. Its edge to a gpu has the cost of entering the host at this
 * gpu. A tree uses exactly one edge of place n. */
struct tree_builder {
    uint32_t n;       /* number of gpus */
    double *cost;     /* [(n + 1) * (n + 1)]: cost of an edge from a parent to a child */
    uint32_t *net;    /* per gpu: the cheapest net to enter by */
    uint32_t *parent; /* per gpu: its parent in the tree; TUTTI_NO_NODE: it is the root */
    bool is_balanced; /* among edges of equal cost, avoid gpus that have many edges */
};

/* Sets the costs of all edges, and the cheapest net for each gpu. */
static void set_costs(struct tree_builder *builder, const struct tutti_pricing *pricing,
                      const double *cost, bool is_both_ways)
{
    uint32_t n = builder->n, places = pricing->nplaces;

    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++)
            builder->cost[from * (n + 1) + to] =
                from == to
                    ? INFINITY
                    : cost[from * places + to] + (is_both_ways ? cost[to * places + from] : 0);
    for (uint32_t gpu = 0; gpu < n; gpu++) {
        double *enter = &builder->cost[n * (n + 1) + gpu];

        *enter = pricing->nnets == 0 ? 0 : INFINITY;
        builder->net[gpu] = TUTTI_NO_NODE;
        for (uint32_t net = pricing->ngpus; net < places; net++) {
            /* For the factor 2 see measure_tree() in pricing.c. */
            double in_and_out = (is_both_ways ? 2 : 1) *
                                (cost[net * places + gpu] + cost[gpu * places + net]);

            if (in_and_out < *enter) {
                *enter = in_and_out;
                builder->net[gpu] = net;
            }
        }
        builder->cost[gpu * (n + 1) + n] = INFINITY;
    }
    builder->cost[n * (n + 1) + n] = INFINITY;
}

/* Costs count as equal if their relative difference is less than this. */
#define EQUAL_TOLERANCE 1e-9

/* ---- both ways ------------------------------------------------------------------------------- */

/* Grows a tree from the root by Prim's algorithm. Among edges of equal cost it takes the first one.
 * If all costs are equal, the trees are stars. Stars have the least depth, and they share the load
 * evenly if each gpu is the center of one star. With fewer channels than gpus, some gpus are never
 * the center. Then is_balanced is set, and each tree shares its load evenly by itself: among
 * parents of equal cost, the one with the fewest edges is taken. */
static void grow_tree(struct tree_builder *builder, uint32_t root)
{
    bool is_in[TUTTI_SEARCH_GPUS] = {false};
    uint32_t degree[TUTTI_SEARCH_GPUS] = {0};
    double least[TUTTI_SEARCH_GPUS];
    uint32_t at = root;

    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        least[gpu] = INFINITY;
    builder->parent[root] = TUTTI_NO_NODE;
    for (uint32_t count = 1; count < builder->n; count++) {
        uint32_t nearest = TUTTI_NO_NODE;

        is_in[at] = true;
        for (uint32_t gpu = 0; gpu < builder->n; gpu++) {
            double edge = builder->cost[at * (builder->n + 1) + gpu];

            if (!is_in[gpu] &&
                (edge < least[gpu] * (1 - EQUAL_TOLERANCE) ||
                 (builder->is_balanced && edge <= least[gpu] * (1 + EQUAL_TOLERANCE) &&
                  degree[at] < degree[builder->parent[gpu]]))) {
                least[gpu] = edge;
                builder->parent[gpu] = at;
            }
            if (!is_in[gpu] && (nearest == TUTTI_NO_NODE || least[gpu] < least[nearest]))
                nearest = gpu;
        }
        at = nearest;
        degree[at]++;
        degree[builder->parent[at]]++;
    }
}

/* Returns the depth of the tree with the root `root`, without the branch at the neighbor
 * `before`. */
static uint32_t depth_from(const struct tree_builder *builder, uint32_t root, uint32_t before)
{
    uint32_t deepest = 0;

    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        if (gpu != before && (builder->parent[gpu] == root || builder->parent[root] == gpu)) {
            uint32_t depth = 1 + depth_from(builder, gpu, root);

            deepest = depth > deepest ? depth : deepest;
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

/* Makes the gpu the root that gives the least depth. Without nets, the choice of the root does not
 * change the load of the links. */
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

/* Finds the tree that is used both ways. With nets, the root is the gpu that is cheapest to
 * enter. */
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

/* One level of the recursion of Chu, Liu and Edmonds: a problem, and one cycle in it. */
struct branching {
    uint32_t n, root;
    const double *cost; /* finite, except for edges from a place to itself */
    uint32_t *parent;   /* per place except the root */
    uint32_t *group;    /* per place: its place in the contracted problem, where the cycle is the
                         * last place */
    bool *is_inner;     /* per place: true if it is part of the cycle */
    uint32_t ngroups;   /* number of places in the contracted problem */
};

/* Gives each place its cheapest parent. */
static void choose_parents(struct branching *branching)
{
    uint32_t n = branching->n;

    for (uint32_t to = 0; to < n; to++) {
        uint32_t best = to == 0;

        for (uint32_t from = 0; from < n; from++)
            if (from != to && branching->cost[from * n + to] < branching->cost[best * n + to])
                best = from;
        if (to != branching->root)
            branching->parent[to] = best;
    }
}

/* Finds a cycle and marks its places in `is_inner`. Returns false if there is none. Uses `group` as
 * scratch space, to record from which start each place was first reached. */
static bool find_cycle(struct branching *branching)
{
    for (uint32_t start = 0; start < branching->n; start++) {
        uint32_t at = start;

        while (at != branching->root && branching->group[at] == 0) {
            branching->group[at] = start + 1;
            at = branching->parent[at];
        }
        if (at == branching->root || branching->group[at] != start + 1)
            continue;
        for (uint32_t place = at; !branching->is_inner[place]; place = branching->parent[place])
            branching->is_inner[place] = true;
        return true;
    }
    return false;
}

/* Numbers the places of the contracted problem. */
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

/* Computes the costs between groups, and the original edge that gives each cost. An edge that
 * enters the cycle at a place replaces the cycle's own edge to this place. So the cost of the
 * cycle's edge is subtracted. */
static void contract(const struct branching *branching, double *ret_cost, uint32_t *ret_edge)
{
    uint32_t n = branching->n;

    for (uint32_t i = 0; i < branching->ngroups * branching->ngroups; i++)
        ret_cost[i] = INFINITY;
    for (uint32_t from = 0; from < n; from++)
        for (uint32_t to = 0; to < n; to++) {
            uint32_t at = branching->group[from] * branching->ngroups + branching->group[to];
            double cost = branching->cost[from * n + to];

            if (branching->group[from] == branching->group[to])
                continue;
            if (branching->is_inner[to])
                cost -= branching->cost[branching->parent[to] * n + to];
            if (cost < ret_cost[at]) {
                ret_cost[at] = cost;
                ret_edge[at] = from * n + to;
            }
        }
}

/* Finds the cheapest tree from the root down. Each place takes its cheapest parent. If these edges
 * form a cycle, the cycle is contracted to one place, and the smaller problem is solved
 * recursively. */
static int branch(struct branching *branching)
{
    uint32_t n = branching->n, *edge = calloc((size_t)n * n, sizeof *edge);
    struct branching inner = {0};
    double *cost = calloc((size_t)n * n, sizeof *cost);
    int rc = TUTTI_OK;

    branching->group = calloc(n, sizeof *branching->group);
    branching->is_inner = calloc(n, sizeof *branching->is_inner);
    inner.parent = calloc(n, sizeof *inner.parent);
    if (edge == NULL || cost == NULL || branching->group == NULL ||
        branching->is_inner == NULL || inner.parent == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tree of %u places", n);
        goto drop_branching;
    }
    choose_parents(branching);
    if (!find_cycle(branching))
        goto drop_branching;
    number_groups(branching);
    contract(branching, cost, edge);
    inner.n = branching->ngroups;
    inner.root = branching->group[branching->root];
    inner.cost = cost;
    TUTTI_TRY_OR(drop_branching, rc, branch(&inner));
    for (uint32_t to = 0; to < inner.n; to++)
        if (to != inner.root) {
            uint32_t taken = edge[inner.parent[to] * inner.n + to];

            branching->parent[taken % n] = taken / n;
        }

drop_branching:
    free(edge);
    free(cost);
    free(branching->group);
    free(branching->is_inner);
    free(inner.parent);
    return rc;
}

/* Finds the tree that is used from the root down. Edges from place n get a cost so large that the
 * tree uses only one of them. Missing edges get a cost that is larger than that of all other edges
 * together. */
static int grow_down(struct tree_builder *builder)
{
    uint32_t n = builder->n + 1;
    struct branching branching = {
        .n = n, .root = builder->n, .cost = builder->cost, .parent = builder->parent};
    double sum = 1e-300; /* above 0, even if all costs are 0 */

    for (uint32_t i = 0; i < n * n; i++)
        sum += isinf(builder->cost[i]) ? 0 : builder->cost[i];
    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        builder->cost[builder->n * n + gpu] += sum;
    for (uint32_t i = 0; i < n * n; i++)
        if (isinf(builder->cost[i]))
            builder->cost[i] = 4 * n * sum;
    TUTTI_TRY(branch(&branching));
    for (uint32_t gpu = 0; gpu < builder->n; gpu++)
        if (builder->parent[gpu] == builder->n)
            builder->parent[gpu] = TUTTI_NO_NODE;
    return TUTTI_OK;
}

/* ---- either ---------------------------------------------------------------------------------- */

/* Returns the total cost of the tree. The cost is infinite if a path of the tree does not exist, if
 * no net leads to the root, or if there is not exactly one root. */
static double cost_of_tree(const struct tutti_pricing *pricing, const double *cost,
                           bool is_both_ways, const struct tutti_search_column *column)
{
    uint32_t n = pricing->nplaces, nroots = 0;
    double sum = 0;

    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++) {
        uint32_t parent = column->gpu[gpu];

        nroots += parent == TUTTI_NO_NODE;
        if (parent != TUTTI_NO_NODE)
            sum += cost[parent * n + gpu] + (is_both_ways ? cost[gpu * n + parent] : 0);
        else if (pricing->nnets > 0 && column->net_in == TUTTI_NO_NODE)
            sum = INFINITY;
        else if (pricing->nnets > 0)
            sum += (is_both_ways ? 2 : 1) *
                   (cost[column->net_in * n + gpu] + cost[gpu * n + column->net_out]);
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
    uint32_t *numbers = calloc(2 * n + 1, sizeof *numbers), root = 0; /* place n has no parent */
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
