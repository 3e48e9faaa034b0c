/* SPDX-License-Identifier: Apache-2.0
 * Takes the places and links of a search from the paths of a graph, and computes how much of each
 * link a ring or tree uses. */
#include "topology/search/pricing.h"

#include "base/result.h"
#include "topology/graph/virtual.h"
#include "topology/search/joint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_pair(const struct tutti_paths *paths, uint32_t from, uint32_t to)
{
    char a[128], b[128];

    tutti_graph_node_name(paths->graph, from, a, sizeof a);
    tutti_graph_node_name(paths->graph, to, b, sizeof b);
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "no way leads from %s to %s; is a link or a CPU missing "
                      "in the description?",
                      a, b);
}

/* Writes "host 3" or "hosts 3-5", or "the machine" if the search is for all hosts. */
static void name_host(const struct tutti_search_options *options, char ret_name[32])
{
    if (options->host == TUTTI_ALL_HOSTS)
        snprintf(ret_name, 32, "the machine");
    else if (options->nhosts > 1)
        snprintf(ret_name, 32, "hosts %u-%u", options->host, options->host + options->nhosts - 1);
    else
        snprintf(ret_name, 32, "host %u", options->host);
}

bool tutti_pricing_has_host(const struct tutti_search_options *options, uint32_t host)
{
    uint32_t nhosts = options->nhosts > 0 ? options->nhosts : 1;

    return options->host == TUTTI_ALL_HOSTS ||
           (host >= options->host && host - options->host < nhosts);
}

/* Returns true if channels may use this node as a port. */
static bool is_port(const struct tutti_graph *graph, uint32_t node)
{
    return graph->nodes[node].kind == TUTTI_NODE_NET && !tutti_net_is_virtual(graph, node);
}

static int count_places(struct tutti_pricing *pricing, const struct tutti_graph *graph,
                        const struct tutti_search_options *options)
{
    bool has_virtual = false;
    char name[32];

    name_host(options, name);
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const struct tutti_graph_node *node = &graph->nodes[i];

        if (!tutti_pricing_has_host(options, node->host))
            continue;
        pricing->ngpus += node->kind == TUTTI_NODE_GPU && options->gpus == NULL;
        pricing->nnets += options->has_peers && is_port(graph, i);
        has_virtual = has_virtual || (node->kind == TUTTI_NODE_NET && !is_port(graph, i));
    }
    if (options->gpus != NULL)
        pricing->ngpus = options->ngpus;
    pricing->nplaces = pricing->ngpus + pricing->nnets;
    if (pricing->ngpus > TUTTI_SEARCH_GPUS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%u gpus to search rings for; at most %d",
                          pricing->ngpus, TUTTI_SEARCH_GPUS);
    if (pricing->ngpus == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s has no gpus to search rings for", name);
    if (options->has_peers && pricing->nnets == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s has no network port%s, and other hosts take part; describe one", name,
                          has_virtual ? " but virtual ones" : "");
    return TUTTI_OK;
}

/* Fills in the graph nodes of the places: first the gpus, then the nets. */
static int choose_places(struct tutti_pricing *pricing, const struct tutti_graph *graph,
                         const struct tutti_search_options *options)
{
    uint32_t count = 0;
    char name[32];

    name_host(options, name);
    for (uint32_t i = 0; i < options->ngpus && options->gpus != NULL; i++) {
        uint32_t node = tutti_graph_gpu(graph, options->gpus[i]);

        if (options->gpus[i] >= graph->count[TUTTI_NODE_GPU] ||
            !tutti_pricing_has_host(options, graph->nodes[node].host))
            return tutti_fail(TUTTI_ERR_ARGUMENT, "gpu %u is none of %s", options->gpus[i], name);
        pricing->node[count++] = node;
    }
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const struct tutti_graph_node *node = &graph->nodes[i];

        if (tutti_pricing_has_host(options, node->host) &&
            ((node->kind == TUTTI_NODE_GPU && options->gpus == NULL) ||
             (options->has_peers && is_port(graph, i))))
            pricing->node[count++] = i; /* Graph nodes are sorted: gpus come before nets. */
    }
    return TUTTI_OK;
}

/* Returns true if two places can be next to each other in a ring or tree. Two nets never are, and a
 * net is next to gpus that it reaches without the network. */
static bool may_be_adjacent(const struct tutti_pricing *pricing, const struct tutti_paths *paths,
                            uint32_t from, uint32_t to)
{
    bool is_gpu = from < pricing->ngpus, is_to_gpu = to < pricing->ngpus;

    if (from == to || (!is_gpu && !is_to_gpu))
        return false;
    return (is_gpu && is_to_gpu) ||
           tutti_paths_between(paths, pricing->node[from], pricing->node[to])->class <
               TUTTI_PATH_NET;
}

/* Copies the paths between places that may be adjacent, and numbers the links that they cross. */
static int copy_paths(struct tutti_pricing *pricing, const struct tutti_paths *paths)
{
    uint32_t nplaces = pricing->nplaces, nhops = 0,
             *number; /* per link of the graph: its number here */

    for (uint32_t from = 0; from < nplaces; from++)
        for (uint32_t to = 0; to < nplaces; to++)
            nhops += may_be_adjacent(pricing, paths, from, to)
                         ? tutti_paths_between(paths, pricing->node[from], pricing->node[to])->nhops
                         : 0;
    number = malloc((paths->graph->nlinks + 1) * sizeof *number);
    pricing->hop = calloc(nhops + 1, sizeof *pricing->hop);
    if (number == NULL || pricing->hop == NULL) {
        free(number);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places", nplaces);
    }
    for (uint32_t i = 0; i < paths->graph->nlinks; i++)
        number[i] = TUTTI_NO_NODE;
    nhops = 0;
    for (uint32_t i = 0; i < nplaces * nplaces; i++) {
        uint32_t from = i / nplaces, to = i % nplaces;
        const struct tutti_path *path;

        pricing->path[i].class = TUTTI_PATH_DIS;
        if (!may_be_adjacent(pricing, paths, from, to))
            continue;
        path = tutti_paths_between(paths, pricing->node[from], pricing->node[to]);
        pricing->path[i] =
            (struct tutti_pricing_path){.first = nhops, .nhops = path->nhops, .class = path->class};
        for (uint32_t h = 0; h < path->nhops; h++) {
            const struct tutti_hop *hop = &paths->hop[path->first + h];

            if (number[hop->link] == TUTTI_NO_NODE) {
                number[hop->link] = pricing->nlinks;
                pricing->link[pricing->nlinks] = hop->link;
                pricing->capacity[pricing->nlinks++] = paths->graph->links[hop->link].bytes_per_s;
            }
            pricing->hop[nhops++] =
                (struct tutti_pricing_hop){.link = number[hop->link], .demand = hop->demand};
        }
    }
    free(number);
    return TUTTI_OK;
}

/* Returns true if a net reaches some gpu. */
static bool reaches_some_gpu(const struct tutti_pricing *pricing, uint32_t net)
{
    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++)
        if (pricing->path[net * pricing->nplaces + gpu].class < TUTTI_PATH_NET)
            return true;
    return false;
}

/* Every gpu must reach every other gpu, and every net must reach some gpu. */
static int check_reach(const struct tutti_pricing *pricing, const struct tutti_paths *paths)
{
    for (uint32_t from = 0; from < pricing->ngpus; from++)
        for (uint32_t to = 0; to < pricing->ngpus; to++)
            if (from != to && pricing->path[from * pricing->nplaces + to].class >= TUTTI_PATH_NET)
                return refuse_pair(paths, pricing->node[from], pricing->node[to]);
    for (uint32_t net = pricing->ngpus; net < pricing->nplaces; net++)
        if (!reaches_some_gpu(pricing, net))
            return refuse_pair(paths, pricing->node[net], pricing->node[0]);
    return TUTTI_OK;
}

int tutti_pricing_open(struct tutti_pricing *pricing, const struct tutti_paths *paths,
                       const struct tutti_search_options *options)
{
    *pricing = (struct tutti_pricing){.may_cross = options->may_cross,
                                      .joint_load = tutti_search_joint_load(options->nparts)};
    pricing->nchannels = options->nchannels == 0 ? TUTTI_SEARCH_USUAL : options->nchannels;
    if (pricing->nchannels > TUTTI_SEARCH_CHANNELS)
        pricing->nchannels = TUTTI_SEARCH_CHANNELS;
    TUTTI_TRY(count_places(pricing, paths->graph, options));
    pricing->node = calloc(pricing->nplaces, sizeof *pricing->node);
    pricing->path = calloc((size_t)pricing->nplaces * pricing->nplaces, sizeof *pricing->path);
    pricing->penalty =
        calloc((size_t)pricing->nplaces * pricing->nplaces, sizeof *pricing->penalty);
    pricing->link = calloc(paths->graph->nlinks + 1, sizeof *pricing->link);
    pricing->capacity = calloc(paths->graph->nlinks + 1, sizeof *pricing->capacity);
    if (pricing->node == NULL || pricing->path == NULL || pricing->penalty == NULL ||
        pricing->link == NULL || pricing->capacity == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places",
                          pricing->nplaces);
    TUTTI_TRY(choose_places(pricing, paths->graph, options));
    TUTTI_TRY(copy_paths(pricing, paths));
    return check_reach(pricing, paths);
}

void tutti_pricing_close(struct tutti_pricing *pricing)
{
    free(pricing->node);
    free(pricing->path);
    free(pricing->hop);
    free(pricing->penalty);
    free(pricing->link);
    free(pricing->capacity);
}

void tutti_pricing_costs(const struct tutti_pricing *pricing, const double *price, double *ret_cost)
{
    for (size_t i = 0; i < (size_t)pricing->nplaces * pricing->nplaces; i++) {
        const struct tutti_pricing_path *path = &pricing->path[i];

        ret_cost[i] = path->class == TUTTI_PATH_DIS ? INFINITY : pricing->penalty[i];
        for (uint32_t h = 0; h < path->nhops; h++) {
            const struct tutti_pricing_hop *hop = &pricing->hop[path->first + h];

            ret_cost[i] += hop->demand * price[hop->link];
        }
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

int tutti_column_create(const struct tutti_pricing *pricing, struct tutti_search_column *column)
{
    *column = (struct tutti_search_column){.net_in = TUTTI_NO_NODE, .net_out = TUTTI_NO_NODE};
    column->gpu = calloc(pricing->ngpus, sizeof *column->gpu);
    column->use = calloc(pricing->nlinks + 1, sizeof *column->use);
    if (column->gpu != NULL && column->use != NULL)
        return TUTTI_OK;
    tutti_column_destroy(column);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a ring of %u gpus", pricing->ngpus);
}

void tutti_column_destroy(struct tutti_search_column *column)
{
    free(column->gpu);
    free(column->use);
    *column = (struct tutti_search_column){0};
}

/* Adds the use of a path by a channel that carries `times` its share on the path. */
static void use_path(const struct tutti_pricing *pricing, struct tutti_search_column *column,
                     uint32_t from, uint32_t to, double times)
{
    const struct tutti_pricing_path *path = &pricing->path[from * pricing->nplaces + to];

    for (uint32_t h = 0; h < path->nhops; h++) {
        const struct tutti_pricing_hop *hop = &pricing->hop[path->first + h];

        column->use[hop->link] += times * hop->demand;
    }
    column->penalty += times * pricing->penalty[from * pricing->nplaces + to];
}

static void measure_ring(const struct tutti_pricing *pricing, struct tutti_search_column *column)
{
    uint32_t last = column->gpu[pricing->ngpus - 1];

    for (uint32_t i = 0; i + 1 < pricing->ngpus; i++)
        use_path(pricing, column, column->gpu[i], column->gpu[i + 1], 1);
    if (column->net_in == TUTTI_NO_NODE) {
        if (pricing->ngpus > 1)
            use_path(pricing, column, last, column->gpu[0], 1);
        return;
    }
    use_path(pricing, column, column->net_in, column->gpu[0], 1);
    use_path(pricing, column, last, column->net_out, 1);
}

/* Binary trees join the hosts, so that each byte enters and leaves a host several times (joint.h).
 * A tree that is used one way only has half of that, as two trees alternate. */
static void measure_tree(const struct tutti_pricing *pricing, bool is_both_ways,
                         struct tutti_search_column *column)
{
    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++) {
        uint32_t parent = column->gpu[gpu];

        if (parent == TUTTI_NO_NODE) {
            if (column->net_in == TUTTI_NO_NODE)
                continue;
            use_path(pricing, column, column->net_in, gpu, is_both_ways ? pricing->joint_load : 1);
            use_path(pricing, column, gpu, column->net_out, is_both_ways ? pricing->joint_load : 1);
            continue;
        }
        use_path(pricing, column, parent, gpu, 1);
        if (is_both_ways)
            use_path(pricing, column, gpu, parent, 1);
    }
}

void tutti_column_measure(const struct tutti_pricing *pricing, enum tutti_pattern pattern,
                          struct tutti_search_column *column)
{
    memset(column->use, 0, pricing->nlinks * sizeof *column->use);
    column->penalty = 0;
    if (pattern == TUTTI_PATTERN_RING)
        measure_ring(pricing, column);
    else
        measure_tree(pricing, pattern == TUTTI_PATTERN_TREE, column);
}
