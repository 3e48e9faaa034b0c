/* SPDX-License-Identifier: Apache-2.0
 * Finds the links that limit a plan, groups similar links, and repeats the search with wider
 * links. */
#include "topo/bounds.h"

#include "base/result.h"
#include "common/memory.h"

#include <math.h>

#define ROUNDING 1e-9 /* rates and shares that differ by less are equal */

/* Returns true if two links belong to the same group. Their directions may differ. */
static bool is_alike(const struct tutti_graph *graph, uint32_t a, uint32_t b)
{
    const struct tutti_graph_link *x = &graph->links[a], *y = &graph->links[b];
    enum tutti_graph_node_kind from = graph->nodes[x->from].kind, to = graph->nodes[x->to].kind;
    enum tutti_graph_node_kind other_from = graph->nodes[y->from].kind;
    enum tutti_graph_node_kind other_to = graph->nodes[y->to].kind;

    return x->kind == y->kind && x->found_by == y->found_by &&
           ((from == other_from && to == other_to) || (from == other_to && to == other_from)) &&
           fabs(x->bytes_per_s - y->bytes_per_s) <= ROUNDING * x->bytes_per_s;
}

static void add_link(struct bound *bound, uint32_t link)
{
    bound->links = must_have(realloc(bound->links, (bound->nlinks + 1) * sizeof *bound->links));
    bound->links[bound->nlinks++] = link;
}

static void add_to_group(const struct tutti_graph *graph, struct bounds *bounds, uint32_t link,
                         double share)
{
    struct bound *bound;
    uint32_t at = 0;

    while (at < bounds->count && !is_alike(graph, bounds->bounds[at].links[0], link))
        at++;
    if (at == bounds->count) {
        bounds->bounds = must_have(realloc(bounds->bounds, (at + 1) * sizeof *bounds->bounds));
        bounds->bounds[bounds->count++] = (struct bound){.nlinks = 0};
    }
    bound = &bounds->bounds[at];
    add_link(bound, link);
    bound->share += share;
}

void bounds_find(const struct subject *subject, const struct tutti_channels *plan,
                 struct bounds *ret_bounds)
{
    struct bounds bounds = {.count = 0};

    for (uint32_t i = 0; i < plan->nbounds; i++)
        add_to_group(subject->graph, &bounds, plan->bound_link[i], plan->bound_share[i]);
    /* Sort the groups by their shares. Equal shares keep their order. */
    for (uint32_t i = 1; i < bounds.count; i++) {
        struct bound bound = bounds.bounds[i];
        uint32_t at = i;

        for (; at > 0 && bounds.bounds[at - 1].share < bound.share - ROUNDING; at--)
            bounds.bounds[at] = bounds.bounds[at - 1];
        bounds.bounds[at] = bound;
    }
    *ret_bounds = bounds;
}

void bounds_alike(const struct subject *subject, const struct bound *bound, uint32_t host,
                  struct bound *ret_alike)
{
    const struct tutti_graph *graph = subject->graph;
    struct bound alike = {.share = bound->share};

    for (uint32_t i = 0; i < graph->nlinks; i++)
        if (subject_plans_host(subject, host, graph->nodes[graph->links[i].from].host) &&
            is_alike(graph, bound->links[0], i))
            add_link(&alike, i);
    *ret_alike = alike;
}

void bound_fini(struct bound *bound)
{
    free(bound->links);
    *bound = (struct bound){.nlinks = 0};
}

void bounds_fini(struct bounds *bounds)
{
    for (uint32_t i = 0; i < bounds->count; i++)
        bound_fini(&bounds->bounds[i]);
    free(bounds->bounds);
    *bounds = (struct bounds){.count = 0};
}

void bounds_name(const struct subject *subject, const struct bound *bound, char *ret_name,
                 size_t size)
{
    uint32_t least = bound->links[0];
    char name[2 * NAME_BYTES];

    for (uint32_t i = 1; i < bound->nlinks; i++)
        least = bound->links[i] < least ? bound->links[i] : least;
    tutti_graph_link_name(subject->graph, least, name, sizeof name);
    if (bound->nlinks == 1)
        snprintf(ret_name, size, "%s", name);
    else
        snprintf(ret_name, size, "%u links such as %s", bound->nlinks, name);
}

int bounds_doubled(const struct subject *subject, const struct bound *bound,
                   const struct wish *wish, uint32_t host, enum tutti_pattern pattern,
                   double *ret_bytes_per_s, double *ret_bound_bytes_per_s)
{
    struct subject wider = *subject;
    struct wish rate_only = *wish; /* a choice among plans would take longer than the search */
    struct tutti_channels *plan = NULL;
    int rc;

    wider.graph = NULL;
    wider.paths = NULL;
    TUTTI_TRY(tutti_graph_build(subject->graph->inventory, &wider.graph));
    /* Equal inventories give equal graphs, so a link has the same index in both graphs. */
    for (uint32_t i = 0; i < bound->nlinks; i++) {
        uint32_t link = bound->links[i], reverse = wider.graph->links[link].reverse;
        double doubled = 2 * subject->graph->links[link].bytes_per_s;

        wider.graph->links[link].bytes_per_s = doubled;
        wider.graph->links[reverse].bytes_per_s = doubled;
    }
    TUTTI_TRY_OR(leave, rc, tutti_paths_find(wider.graph, &wider.paths));
    rate_only.for_rate_only = true;
    TUTTI_TRY_OR(leave, rc, plans_search(&wider, &rate_only, host, pattern, &plan));
    *ret_bytes_per_s = plan->bytes_per_s;
    *ret_bound_bytes_per_s = plan->bound_bytes_per_s;

leave:
    tutti_channels_destroy(plan);
    tutti_paths_destroy(wider.paths);
    tutti_graph_destroy(wider.graph);
    return rc;
}
