/* SPDX-License-Identifier: Apache-2.0
 * The cheapest tree at given costs. If a tree is used both ways, an edge costs the same in both
 * directions: Prim (1957). If it is used only from the root down, it does not: Chu and Liu (1965),
 * Edmonds (1967).
 */
#include "topology/search/pricing.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The graph has one place more than gpus: the net, or whatever is above the root. Its edges have
 * the cost of entering the host at a gpu, and the tree uses one of them. */
struct tree_builder {
    uint32_t n;       /* gpus; place n is above the root */
    double *cost;     /* [(n + 1) * (n + 1)]: cost of an edge from a parent to a child */
    uint32_t *net;    /* per gpu: the cheapest net to enter by */
    uint32_t *parent; /* per gpu */
    bool is_balanced; /* among equal costs, avoid gpus with many edges */
};

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
            double both = (is_both_ways ? 2 : 1) *
                          (cost[net * places + gpu] + cost[gpu * places + net]);

            if (both < *enter) {
                *enter = both;
                builder->net[gpu] = net;
            }
        }
        builder->cost[gpu * (n + 1) + n] = INFINITY;
    }
    builder->cost[n * (n + 1) + n] = INFINITY;
}

/* Costs that differ by less than this part count as equal. */
#define ALIKE 1e-9

/* ---- both ways ------------------------------------------------------------------------------- */

/* Among edges of equal cost the first is taken. This gives stars, which are flat, and which balance
 * each other if each gpu is the center of one. With more gpus than channels, the stars of a few
 * channels cannot balance each other. Then each tree is balanced by itself: the parent with the
 * fewest edges is taken. */
static void grow_from(struct tree_builder *builder, uint32_t root)
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

            if (!is_in[gpu] && (edge < least[gpu] * (1 - ALIKE) ||
                                (builder->is_balanced && edge <= least[gpu] * (1 + ALIKE) &&
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

/* The depth of the tree if it hangs from `root`, leaving out the neighbor `before`. */
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

static void hang_from(struct tree_builder *builder, uint32_t root)
{
    uint32_t below = TUTTI_NO_NODE, at = root;

    while (at != TUTTI_NO_NODE) {
        uint32_t above = builder->parent[at];

        builder->parent[at] = below;
        below = at;
        at = above;
    }
}

/* The choice of the root does not change the load of links, so the one that gives the flattest tree
 * is taken. */
static void hang_from_middle(struct tree_builder *builder)
{
    uint32_t middle = 0, least = UINT32_MAX;

    for (uint32_t gpu = 0; gpu < builder->n; gpu++) {
        uint32_t depth = depth_from(builder, gpu, TUTTI_NO_NODE);

        if (depth < least) {
            least = depth;
            middle = gpu;
        }
    }
    hang_from(builder, middle);
}

static void grow_both_ways(struct tree_builder *builder, bool has_nets)
{
    const double *enter = builder->cost + (size_t)builder->n * (builder->n + 1);
    uint32_t root = 0;

    for (uint32_t gpu = 1; gpu < builder->n; gpu++)
        if (enter[gpu] < enter[root])
            root = gpu;
    grow_from(builder, root);
    if (!has_nets)
        hang_from_middle(builder);
}

/* ---- from the root down ---------------------------------------------------------------------- */

/* One level of Chu, Liu and Edmonds' algorithm: the problem, and one of its cycles. */
struct branching {
    uint32_t n, root;
    const double *cost; /* finite, except for edges from a place to itself */
    uint32_t *parent;   /* per place except the root */
    uint32_t *group;    /* per place: its place in the contracted problem, where the cycle is the
                         * last place */
    bool *is_inner;     /* part of the cycle */
    uint32_t ngroups;
};

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

/* Marks the places of some cycle; false: there is none. Uses `group` for notes. */
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

/* Computes the costs between groups, and the edge behind each of them. An edge that enters the
 * cycle at a place replaces the cycle's edge to that place, so that cost is subtracted. */
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

/* Each place takes its cheapest parent. If that gives a cycle, the cycle is contracted to one
 * place, and the smaller problem is solved recursively. */
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

/* Edges from above the root get a cost so large that only one is used. Missing edges get a cost
 * larger than that of all others together. */
static int grow_down(struct tree_builder *builder)
{
    uint32_t n = builder->n + 1;
    struct branching branching = {
        .n = n, .root = builder->n, .cost = builder->cost, .parent = builder->parent};
    double sum = 1e-300;

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

/* Infinite if an edge does not exist, or if no net leads in. */
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

int tutti_cheapest_tree(const struct tutti_pricing *pricing, const double *cost,
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
