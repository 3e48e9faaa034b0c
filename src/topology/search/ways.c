/* SPDX-License-Identifier: Apache-2.0
 * Plans the ways of channels from host to host. */
#include "topology/search/ways.h"

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

uint32_t tutti_search_ring_gpu(const struct tutti_search_ways *ways,
                               const struct tutti_channels *plan, uint32_t c, uint32_t i)
{
    uint32_t shift = ways->is_shifted[c] ? plan->ngpus - 1 : 0;

    return plan->channel[c].gpu[(i + shift) % plan->ngpus];
}

uint32_t tutti_search_tree_root(const struct tutti_channels *plan,
                                const struct tutti_channel *channel)
{
    uint32_t root = 0;

    while (root + 1 < plan->ngpus && channel->gpu[root] != TUTTI_NO_NODE)
        root++;
    return root;
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

static struct tutti_search_port_pair *planned_between(struct tutti_search_ways *ways, uint32_t from,
                                                      uint32_t to)
{
    return &ways->planned[(size_t)from * ways->nranks + to];
}

/* Returns true if no other channel goes between the two gpus through other ports. A pair has one
 * path in the machine. */
static bool is_free(struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                    struct tutti_search_port_pair ports)
{
    const struct tutti_search_port_pair *planned = planned_between(ways, from, to);

    return planned->out == TUTTI_NO_NODE || (planned->out == ports.out && planned->in == ports.in);
}

/* The two directions in which rings and trees are used. A plan promises the first one, so it has
 * priority. */
enum direction { FORWARD, BACK };

/* Plans the way between two gpus, or the way back through the same ports, unless another channel
 * has planned that way. */
static void plan_way(struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                     struct tutti_search_port_pair ports, enum direction direction)
{
    struct tutti_search_port_pair back = {.out = ports.in, .in = ports.out};

    if (direction == FORWARD && is_free(ways, from, to, ports))
        *planned_between(ways, from, to) = ports;
    if (direction == BACK && is_free(ways, to, from, back))
        *planned_between(ways, to, from) = back;
}

/* Adds `times` the bytes that a path carries to the loads of its links. */
static void add_path_load(struct tutti_search_ways *ways, uint32_t from, uint32_t to, double times)
{
    const struct tutti_path *path = tutti_paths_between(ways->paths, from, to);

    for (uint32_t i = 0; i < path->nhops; i++) {
        const struct tutti_hop *hop = &ways->paths->hop[path->first + i];

        ways->load[hop->link] += times * hop->demand;
    }
}

/* Adds `times` the loads of a ring on host 0: in through its port, along its gpus, and out. */
static void add_ring_load(struct tutti_search_ways *ways, const struct tutti_channels *plan,
                          uint32_t c, double times)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t n = plan->ngpus;
    uint32_t first = tutti_graph_gpu(ways->paths->graph, tutti_search_ring_gpu(ways, plan, c, 0));
    uint32_t last =
        tutti_graph_gpu(ways->paths->graph, tutti_search_ring_gpu(ways, plan, c, n - 1));

    add_path_load(ways, tutti_graph_net(ways->paths->graph, channel->net_in), first, times);
    for (uint32_t i = 0; i + 1 < n; i++)
        add_path_load(
            ways, tutti_graph_gpu(ways->paths->graph, tutti_search_ring_gpu(ways, plan, c, i)),
            tutti_graph_gpu(ways->paths->graph, tutti_search_ring_gpu(ways, plan, c, i + 1)),
            times);
    add_path_load(ways, last, tutti_graph_net(ways->paths->graph, channel->net_out), times);
}

/* The part of a link's rate by which its load may exceed the rate, for rounding. */
#define LOAD_SLACK 1e-3

static bool is_overloaded(const struct tutti_search_ways *ways, const struct tutti_channels *plan)
{
    for (uint32_t i = 0; i < ways->paths->graph->nlinks; i++)
        if (ways->load[i] * plan->channel_bytes_per_s >
            ways->paths->graph->links[i].bytes_per_s * (1 + LOAD_SLACK))
            return true;
    return false;
}

/* Lets rings begin at the gpu that owns their port, if this gpu is their last one, and if no link
 * then carries more than its rate. Rings through different ports then have different first gpus,
 * and no two of them want different ways between the same two gpus.
 *
 *   net => 0 => 7 -> 6 -> ... -> 1 -> 0 => net      0 relays to 7
 *   net => 0 -> 7 -> 6 -> ... -> 1 => 0 => net      0 relays from 1
 */
static void shift_rings(struct tutti_search_ways *ways, const struct tutti_channels *plan)
{
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++)
        if (plan->channel[c].net_in != TUTTI_NO_NODE)
            add_ring_load(ways, plan, c, 1);
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++) {
        const struct tutti_channel *channel = &plan->channel[c];
        uint32_t last = channel->gpu[plan->ngpus - 1];

        if (channel->net_in == TUTTI_NO_NODE ||
            ways->dealt->of_gpu[last] != tutti_graph_net(ways->paths->graph, channel->net_in))
            continue;
        add_ring_load(ways, plan, c, -1);
        ways->is_shifted[c] = true;
        add_ring_load(ways, plan, c, 1);
        if (!is_overloaded(ways, plan))
            continue;
        add_ring_load(ways, plan, c, -1);
        ways->is_shifted[c] = false;
        add_ring_load(ways, plan, c, 1);
    }
}

/* Plans the ways of a ring from each host to the next. */
static void plan_ring(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c,
                      enum direction direction)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t n = plan->ngpus, nhosts = ways->nranks / n;

    for (uint32_t host = 0; host < nhosts; host++) {
        uint32_t next = (host + 1) % nhosts;
        uint32_t from = host * n + tutti_search_ring_gpu(ways, plan, c, n - 1);
        uint32_t to = next * n + tutti_search_ring_gpu(ways, plan, c, 0);

        plan_way(ways, from, to, ports_of(ways, channel, host, next), direction);
    }
}

/* Plans the ways between the root of each host and that of its parent host. */
static void plan_tree(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c,
                      enum direction direction)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t root = tutti_search_tree_root(plan, channel), n = plan->ngpus;

    for (uint32_t host = 1; host < ways->nranks / n; host++) {
        uint32_t parent = tutti_search_parent_host(host);
        uint32_t from = host * n + root, to = parent * n + root;

        plan_way(ways, from, to, ports_of(ways, channel, host, parent), direction);
    }
}

static void plan_direction(struct tutti_search_ways *ways, const struct tutti_channels *plan,
                           enum direction direction)
{
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++) {
        if (plan->channel[c].net_in == TUTTI_NO_NODE || plan->channel[c].net_out == TUTTI_NO_NODE)
            continue;
        if (plan->pattern == TUTTI_PATTERN_RING)
            plan_ring(ways, plan, c, direction);
        else
            plan_tree(ways, plan, c, direction);
    }
}

/* Plans the ways that the channels of a plan take between hosts, so that the machine plays what the
 * plan promises. The plan is one of host 0, and the other hosts are like it. */
static void plan_ways(struct tutti_search_ways *ways, const struct tutti_channels *plan)
{
    uint32_t per_host = tutti_search_repeated_gpus(ways, plan);

    /* Each host must have gpus, so that the hosts of the ranks are those of the ports. */
    if (per_host == 0 || per_host == ways->nranks || nets_per_host(ways) == 0 ||
        ways->nranks / per_host != ways->paths->graph->nhosts)
        return;
    if (plan->pattern == TUTTI_PATTERN_RING)
        shift_rings(ways, plan);
    plan_direction(ways, plan, FORWARD);
    plan_direction(ways, plan, BACK);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int reserve(struct tutti_search_ways *ways)
{
    size_t npairs = (size_t)ways->nranks * ways->nranks;

    ways->planned = calloc(npairs, sizeof *ways->planned);
    ways->load = calloc(ways->paths->graph->nlinks + 1, sizeof *ways->load);
    if (ways->planned == NULL || ways->load == NULL)
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
    if (rc != TUTTI_OK) {
        tutti_search_ways_destroy(ways);
        return rc;
    }
    plan_ways(ways, ring);
    plan_ways(ways, tree);
    *ret_ways = ways;
    return TUTTI_OK;
}

void tutti_search_ways_destroy(struct tutti_search_ways *ways)
{
    if (ways == NULL)
        return;
    tutti_ports_destroy(ways->dealt);
    free(ways->planned);
    free(ways->load);
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
