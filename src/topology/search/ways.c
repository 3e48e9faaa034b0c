/* SPDX-License-Identifier: Apache-2.0
 * Plans the ways of channels from host to host. */
#include "topology/search/ways.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

static uint32_t host_of(const struct tutti_search_ways *ways, uint32_t rank)
{
    return ways->paths->graph->nodes[tutti_graph_gpu(ways->paths->graph, rank)].host;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Returns the number of gpus per host if it is the same for all hosts and the gpus of a host are
 * consecutive; else 0. */
static uint32_t gpus_per_host(const struct tutti_search_ways *ways)
{
    uint32_t per_host = 0;

    while (per_host < ways->nranks && host_of(ways, per_host) == host_of(ways, 0))
        per_host++;
    for (uint32_t rank = 0; rank < ways->nranks; rank++)
        if (host_of(ways, rank) != host_of(ways, rank / per_host * per_host) ||
            (rank % per_host == 0 && rank > 0 && host_of(ways, rank) == host_of(ways, rank - 1)))
            return 0;
    return ways->nranks % per_host == 0 ? per_host : 0;
}

uint32_t tutti_search_repeated_gpus(const struct tutti_search_ways *ways,
                                    const struct tutti_channels *plan)
{
    uint32_t per_host;

    if (plan == NULL || ways->nranks < 2) /* a single rank has no ring */
        return 0;
    per_host = plan->ngpus == ways->nranks ? ways->nranks : gpus_per_host(ways);
    return plan->ngpus == per_host ? per_host : 0;
}

uint32_t tutti_search_tree_root(const struct tutti_channels *plan,
                                const struct tutti_channel *channel)
{
    uint32_t root = 0;

    while (root + 1 < plan->ngpus && channel->gpu[root] != TUTTI_NO_NODE)
        root++;
    return root;
}

uint32_t tutti_search_orders_per_tree(const struct tutti_search_ways *ways,
                                      const struct tutti_channels *plan)
{
    return ways->nranks / plan->ngpus > 2 && 2 * plan->nchannels <= TUTTI_MACHINE_ORDERS ? 2 : 1;
}

uint32_t tutti_search_parent_host(uint32_t host, uint32_t nhosts, uint32_t which)
{
    uint32_t place = which == 0 ? host : nhosts - 1 - host, parent;

    if (place == 0)
        return TUTTI_NO_NODE;
    parent = (place - 1) / 2;
    return which == 0 ? parent : nhosts - 1 - parent;
}

/* ---- ports of the orders --------------------------------------------------------------------- */

/* Returns the number of ports per host if it is the same for all hosts; else 0. */
static uint32_t nets_per_host(const struct tutti_search_ways *ways)
{
    const struct tutti_graph *graph = ways->paths->graph;
    uint32_t count = graph->count[TUTTI_NODE_NET], per_host = count / graph->nhosts;

    if (count % graph->nhosts != 0)
        return 0;
    for (uint32_t net = 0; net < count; net++)
        if (graph->nodes[tutti_graph_net(graph, net)].host != net / per_host)
            return 0;
    return per_host;
}

/* Returns the ports by which a channel, which was planned for host 0, goes from host to host. */
static struct tutti_search_port_pair ports_of(const struct tutti_search_ways *ways,
                                              const struct tutti_channel *channel,
                                              uint32_t from_host, uint32_t to_host)
{
    uint32_t per_host = nets_per_host(ways);

    return (struct tutti_search_port_pair){
        .out = tutti_graph_net(ways->paths->graph, from_host * per_host + channel->net_out),
        .in = tutti_graph_net(ways->paths->graph, to_host * per_host + channel->net_in)};
}

/* Adds the way of a channel of a ring. */
static int add_channel_way(struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                           uint32_t channel, struct tutti_search_port_pair ports)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(ways->channel_ways, ways->nchannel_ways, ways->channel_way_capacity,
                               "ways of channels"));
    ways->channel_ways[ways->nchannel_ways++] = (struct tutti_search_channel_way){
        .from = from, .to = to, .channel = (uint8_t)channel, .ports = ports};
    return TUTTI_OK;
}

/* Plans the ways of a ring from each host to the next, and those back. */
static int plan_ring(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t n = plan->ngpus, nhosts = ways->nranks / n;

    for (uint32_t host = 0; host < nhosts; host++) {
        uint32_t next = (host + 1) % nhosts;
        uint32_t from = host * n + channel->gpu[n - 1], to = next * n + channel->gpu[0];
        struct tutti_search_port_pair ports = ports_of(ways, channel, host, next);
        struct tutti_search_port_pair back = {.out = ports.in, .in = ports.out};

        TUTTI_TRY(add_channel_way(ways, from, to, 2 * c, ports));
        TUTTI_TRY(add_channel_way(ways, to, from, 2 * c + 1, back));
    }
    return TUTTI_OK;
}

/* Plans the way between two gpus, unless an earlier tree has planned it. */
static void plan_way(struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                     struct tutti_search_port_pair ports)
{
    struct tutti_search_port_pair *planned = &ways->planned[(size_t)from * ways->nranks + to];

    if (planned->out == TUTTI_NO_NODE)
        *planned = ports;
}

/* Plans the ways, up and down, between the root of each host and that of its parent host. */
static void plan_tree(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t root = tutti_search_tree_root(plan, channel), n = plan->ngpus;
    uint32_t nhosts = ways->nranks / n;

    for (uint32_t which = 0; which < tutti_search_orders_per_tree(ways, plan); which++)
        for (uint32_t host = 0; host < nhosts; host++) {
            uint32_t parent = tutti_search_parent_host(host, nhosts, which);
            struct tutti_search_port_pair ports;

            if (parent == TUTTI_NO_NODE)
                continue;
            ports = ports_of(ways, channel, host, parent);
            plan_way(ways, host * n + root, parent * n + root, ports);
            plan_way(ways, parent * n + root, host * n + root,
                     (struct tutti_search_port_pair){.out = ports.in, .in = ports.out});
        }
}

/* Plans the ways that the channels of a plan take between hosts, so that the machine plays what the
 * plan promises. The plan is one of host 0, and the other hosts are like it. */
static int plan_ways(struct tutti_search_ways *ways, const struct tutti_channels *plan)
{
    uint32_t per_host = tutti_search_repeated_gpus(ways, plan);

    /* Each host must have gpus, so that the hosts of the ranks are those of the ports. */
    if (per_host == 0 || per_host == ways->nranks || nets_per_host(ways) == 0 ||
        ways->nranks / per_host != ways->paths->graph->nhosts)
        return TUTTI_OK;
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++) {
        if (plan->channel[c].net_in == TUTTI_NO_NODE || plan->channel[c].net_out == TUTTI_NO_NODE)
            continue;
        if (plan->pattern == TUTTI_PATTERN_RING)
            TUTTI_TRY(plan_ring(ways, plan, c));
        else
            plan_tree(ways, plan, c);
    }
    return TUTTI_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int reserve(struct tutti_search_ways *ways)
{
    size_t npairs = (size_t)ways->nranks * ways->nranks;

    ways->planned = calloc(npairs, sizeof *ways->planned);
    if (ways->planned == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the ways of %u ranks", ways->nranks);
    for (size_t i = 0; i < npairs; i++)
        ways->planned[i] =
            (struct tutti_search_port_pair){.out = TUTTI_NO_NODE, .in = TUTTI_NO_NODE};
    return tutti_ports_deal(ways->paths, &ways->dealt);
}

int tutti_search_ways_plan(const struct tutti_paths *paths, const struct tutti_channels *ring,
                           const struct tutti_channels *tree, struct tutti_search_ways **ret_ways)
{
    struct tutti_search_ways *ways = calloc(1, sizeof *ways);
    int rc;

    if (ways == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the ways between gpus");
    ways->paths = paths;
    ways->nranks = paths->graph->count[TUTTI_NODE_GPU];
    rc = reserve(ways);
    if (rc == TUTTI_OK)
        rc = plan_ways(ways, ring);
    if (rc == TUTTI_OK)
        rc = plan_ways(ways, tree);
    if (rc != TUTTI_OK) {
        tutti_search_ways_destroy(ways);
        return rc;
    }
    *ret_ways = ways;
    return TUTTI_OK;
}

void tutti_search_ways_destroy(struct tutti_search_ways *ways)
{
    if (ways == NULL)
        return;
    tutti_ports_destroy(ways->dealt);
    free(ways->planned);
    free(ways->channel_ways);
    free(ways);
}

uint32_t tutti_search_ways_between(const struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                                   const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    struct tutti_search_port_pair planned = ways->planned[(size_t)from * ways->nranks + to];

    if (planned.out == TUTTI_NO_NODE)
        return tutti_ports_way(ways->dealt, from, to, ret_parts);
    tutti_ports_way_through(ways->paths, from, planned.out, planned.in, to, ret_parts);
    return TUTTI_PORTS_PARTS;
}

uint32_t tutti_search_ways_of_channel(const struct tutti_search_ways *ways,
                                      const struct tutti_search_channel_way *way,
                                      const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    tutti_ports_way_through(ways->paths, way->from, way->ports.out, way->ports.in, way->to,
                            ret_parts);
    return TUTTI_PORTS_PARTS;
}
