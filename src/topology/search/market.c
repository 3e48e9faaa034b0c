/* SPDX-License-Identifier: Apache-2.0
 * Takes the places and links of a search from the paths of a graph. */
#include "topology/search/market.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int refuse_pair(const struct tutti_paths *paths, uint32_t from, uint32_t to)
{
    char a[128], b[128];

    tutti_graph_node_name(paths->graph, from, a, sizeof a);
    tutti_graph_node_name(paths->graph, to, b, sizeof b);
    return tutti_fail(TUTTI_ERR_ARGUMENT, "no way leads from %s to %s; is a link or a CPU missing "
                      "in the description?", a, b);
}

static bool is_here(const struct tutti_search_options *options, uint32_t host)
{
    return options->host == TUTTI_ALL_HOSTS || options->host == host;
}

static int count_places(struct market *market, const struct tutti_graph *graph,
                        const struct tutti_search_options *options)
{
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const struct tutti_graph_node *node = &graph->nodes[i];

        if (!is_here(options, node->host))
            continue;
        market->ngpus += node->kind == TUTTI_NODE_GPU && options->gpus == NULL;
        market->nnets += node->kind == TUTTI_NODE_NET && options->has_peers;
    }
    if (options->gpus != NULL)
        market->ngpus = options->ngpus;
    market->nplaces = market->ngpus + market->nnets;
    if (market->ngpus > TUTTI_SEARCH_GPUS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%u gpus to search rings for; at most %d",
                          market->ngpus, TUTTI_SEARCH_GPUS);
    if (market->ngpus == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host %u has no gpus to search rings for",
                          options->host);
    if (options->has_peers && market->nnets == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host %u has no network port, and other hosts take "
                          "part; describe one", options->host);
    return TUTTI_OK;
}

static int choose_places(struct market *market, const struct tutti_graph *graph,
                         const struct tutti_search_options *options)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < options->ngpus && options->gpus != NULL; i++) {
        uint32_t node = tutti_graph_gpu(graph, options->gpus[i]);

        if (options->gpus[i] >= graph->count[TUTTI_NODE_GPU] ||
            !is_here(options, graph->nodes[node].host))
            return tutti_fail(TUTTI_ERR_ARGUMENT, "gpu %u is none of host %u", options->gpus[i],
                              options->host);
        market->node[count++] = node;
    }
    for (uint32_t i = 0; i < graph->nnodes; i++) {
        const struct tutti_graph_node *node = &graph->nodes[i];

        if (is_here(options, node->host) &&
            ((node->kind == TUTTI_NODE_GPU && options->gpus == NULL) ||
             (node->kind == TUTTI_NODE_NET && options->has_peers)))
            market->node[count++] = i; /* graph nodes are sorted: gpus before nets */
    }
    return TUTTI_OK;
}

/* True if two places can be next to each other in a ring or tree. Two nets never are. */
static bool is_wanted(const struct market *market, uint32_t from, uint32_t to)
{
    return from != to && (from < market->ngpus || to < market->ngpus);
}

static int take_paths(struct market *market, const struct tutti_paths *paths)
{
    uint32_t nplaces = market->nplaces, nhops = 0, *number;

    for (uint32_t from = 0; from < nplaces; from++)
        for (uint32_t to = 0; to < nplaces; to++)
            nhops += is_wanted(market, from, to)
                         ? tutti_paths_between(paths, market->node[from], market->node[to])->nhops
                         : 0;
    number = malloc((paths->graph->nlinks + 1) * sizeof *number);
    market->hop = calloc(nhops + 1, sizeof *market->hop);
    if (number == NULL || market->hop == NULL) {
        free(number);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places", nplaces);
    }
    for (uint32_t i = 0; i < paths->graph->nlinks; i++)
        number[i] = TUTTI_NO_NODE;
    nhops = 0;
    for (uint32_t i = 0; i < nplaces * nplaces; i++) {
        uint32_t from = i / nplaces, to = i % nplaces;
        const struct tutti_path *path;

        market->path[i].class = TUTTI_PATH_DIS;
        if (!is_wanted(market, from, to))
            continue;
        path = tutti_paths_between(paths, market->node[from], market->node[to]);
        market->path[i] = (struct market_path){
            .first = nhops, .nhops = path->nhops, .class = path->class};
        for (uint32_t h = 0; h < path->nhops; h++) {
            const struct tutti_hop *hop = &paths->hop[path->first + h];

            if (number[hop->link] == TUTTI_NO_NODE) {
                number[hop->link] = market->nlinks;
                market->link[market->nlinks] = hop->link;
                market->capacity[market->nlinks++] =
                    paths->graph->links[hop->link].bytes_per_s;
            }
            market->hop[nhops++] =
                (struct market_hop){.link = number[hop->link], .demand = hop->demand};
        }
    }
    free(number);
    return TUTTI_OK;
}

/* Every gpu must reach every other gpu, and every net the first gpu. */
static int check_reach(const struct market *market, const struct tutti_paths *paths)
{
    for (uint32_t from = 0; from < market->ngpus; from++)
        for (uint32_t to = 0; to < market->ngpus; to++)
            if (from != to &&
                market->path[from * market->nplaces + to].class >= TUTTI_PATH_NET)
                return refuse_pair(paths, market->node[from], market->node[to]);
    for (uint32_t net = market->ngpus; net < market->nplaces; net++)
        if (market->path[net * market->nplaces].class >= TUTTI_PATH_NET)
            return refuse_pair(paths, market->node[net], market->node[0]);
    return TUTTI_OK;
}

int tutti_market_open(struct market *market, const struct tutti_paths *paths,
                      const struct tutti_search_options *options)
{
    *market = (struct market){.may_cross = options->may_cross};
    market->nchannels = options->nchannels == 0 ? TUTTI_SEARCH_USUAL : options->nchannels;
    if (market->nchannels > TUTTI_SEARCH_CHANNELS)
        market->nchannels = TUTTI_SEARCH_CHANNELS;
    TUTTI_TRY(count_places(market, paths->graph, options));
    market->node = calloc(market->nplaces, sizeof *market->node);
    market->path = calloc((size_t)market->nplaces * market->nplaces, sizeof *market->path);
    market->link = calloc(paths->graph->nlinks + 1, sizeof *market->link);
    market->capacity = calloc(paths->graph->nlinks + 1, sizeof *market->capacity);
    if (market->node == NULL || market->path == NULL || market->link == NULL ||
        market->capacity == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places",
                          market->nplaces);
    TUTTI_TRY(choose_places(market, paths->graph, options));
    TUTTI_TRY(take_paths(market, paths));
    return check_reach(market, paths);
}

void tutti_market_close(struct market *market)
{
    free(market->node);
    free(market->path);
    free(market->hop);
    free(market->link);
    free(market->capacity);
}

void tutti_market_costs(const struct market *market, const double *price, double *ret_cost)
{
    for (size_t i = 0; i < (size_t)market->nplaces * market->nplaces; i++) {
        const struct market_path *path = &market->path[i];

        ret_cost[i] = path->class == TUTTI_PATH_DIS ? INFINITY : 0;
        for (uint32_t h = 0; h < path->nhops; h++) {
            const struct market_hop *hop = &market->hop[path->first + h];

            ret_cost[i] += hop->demand * price[hop->link];
        }
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

int tutti_column_create(const struct market *market, struct column *column)
{
    *column = (struct column){.net_in = TUTTI_NO_NODE, .net_out = TUTTI_NO_NODE};
    column->gpu = calloc(market->ngpus, sizeof *column->gpu);
    column->use = calloc(market->nlinks + 1, sizeof *column->use);
    if (column->gpu != NULL && column->use != NULL)
        return TUTTI_OK;
    tutti_column_destroy(column);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a ring of %u gpus", market->ngpus);
}

void tutti_column_destroy(struct column *column)
{
    free(column->gpu);
    free(column->use);
    *column = (struct column){0};
}

static void use_path(const struct market *market, struct column *column, uint32_t from,
                     uint32_t to, double times)
{
    const struct market_path *path = &market->path[from * market->nplaces + to];

    for (uint32_t h = 0; h < path->nhops; h++) {
        const struct market_hop *hop = &market->hop[path->first + h];

        column->use[hop->link] += times * hop->demand;
    }
}

static void measure_ring(const struct market *market, struct column *column)
{
    uint32_t last = column->gpu[market->ngpus - 1];

    for (uint32_t i = 0; i + 1 < market->ngpus; i++)
        use_path(market, column, column->gpu[i], column->gpu[i + 1], 1);
    if (column->net_in == TUTTI_NO_NODE) {
        if (market->ngpus > 1)
            use_path(market, column, last, column->gpu[0], 1);
        return;
    }
    use_path(market, column, column->net_in, column->gpu[0], 1);
    use_path(market, column, last, column->net_out, 1);
}

/* Between hosts, two trees alternate, in which each host is a leaf once and has two children once.
 * So on average twice the bytes enter and leave a host (Sanders, Speck, Traeff, 2009). */
static void measure_tree(const struct market *market, bool is_both_ways, struct column *column)
{
    for (uint32_t gpu = 0; gpu < market->ngpus; gpu++) {
        uint32_t parent = column->gpu[gpu];

        if (parent == TUTTI_NO_NODE) {
            if (column->net_in == TUTTI_NO_NODE)
                continue;
            use_path(market, column, column->net_in, gpu, is_both_ways ? 2 : 1);
            use_path(market, column, gpu, column->net_out, is_both_ways ? 2 : 1);
            continue;
        }
        use_path(market, column, parent, gpu, 1);
        if (is_both_ways)
            use_path(market, column, gpu, parent, 1);
    }
}

void tutti_column_measure(const struct market *market, enum tutti_pattern pattern,
                          struct column *column)
{
    memset(column->use, 0, market->nlinks * sizeof *column->use);
    if (pattern == TUTTI_PATTERN_RING)
        measure_ring(market, column);
    else
        measure_tree(market, pattern == TUTTI_PATTERN_TREE, column);
}
