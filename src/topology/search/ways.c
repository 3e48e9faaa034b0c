/* SPDX-License-Identifier: Apache-2.0
 * Plans the ways of channels from host to host. */
#include "topology/search/ways.h"

#include "base/array.h"
#include "base/result.h"
#include "topology/search/joint.h"

#include <stdlib.h>

/* ---- orders ---------------------------------------------------------------------------------- */

/* Returns the number of gpus per part if it is the same for all parts that have some; else 0. */
static uint32_t gpus_per_part(const struct tutti_search_ways *ways)
{
    uint32_t per_part = 0;

    for (uint32_t i = 0; i < ways->parts.nparts; i++) {
        uint32_t ngpus = ways->parts.part[i].ngpus;

        if (ngpus > 0 && per_part > 0 && ngpus != per_part)
            return 0;
        per_part = ngpus > 0 ? ngpus : per_part;
    }
    return per_part;
}

uint32_t tutti_search_repeated_gpus(const struct tutti_search_ways *ways,
                                    const struct tutti_channels *plan)
{
    uint32_t per_part;

    if (plan == NULL || ways->nranks < 2) /* a single rank has no ring */
        return 0;
    per_part = plan->ngpus == ways->nranks ? ways->nranks : gpus_per_part(ways);
    return plan->ngpus == per_part ? per_part : 0;
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
    uint32_t ntrees = tutti_search_joints(ways->parts.nranks / plan->ngpus);

    return ntrees * plan->nchannels <= TUTTI_MACHINE_ORDERS ? ntrees : 1;
}

/* ---- ports of the orders --------------------------------------------------------------------- */

/* Returns the number of ports per part if it is the same for all parts; else 0. */
static uint32_t nets_per_part(const struct tutti_search_ways *ways)
{
    const struct tutti_graph *graph = ways->paths->graph;
    uint32_t count = graph->count[TUTTI_NODE_NET], per_part = count / ways->parts.nparts;

    if (count % ways->parts.nparts != 0)
        return 0;
    for (uint32_t net = 0; net < count; net++)
        if (tutti_graph_part_of_host(&ways->parts,
                                     graph->nodes[tutti_graph_net(graph, net)].host) !=
            net / per_part)
            return 0;
    return per_part;
}

/* Returns the ports by which a channel, which was planned for part 0, goes from part to part. */
static struct tutti_search_port_pair ports_of(const struct tutti_search_ways *ways,
                                              const struct tutti_channel *channel,
                                              uint32_t from_part, uint32_t to_part)
{
    uint32_t per_part = nets_per_part(ways);

    return (struct tutti_search_port_pair){
        .out = tutti_graph_net(ways->paths->graph, from_part * per_part + channel->net_out),
        .in = tutti_graph_net(ways->paths->graph, to_part * per_part + channel->net_in)};
}

/* Adds the way of a channel of a schedule. */
static int add_channel_way(struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                           uint32_t channel, struct tutti_search_port_pair ports)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(ways->channel_ways, ways->nchannel_ways, ways->channel_way_capacity,
                               "ways of channels"));
    ways->channel_ways[ways->nchannel_ways++] = (struct tutti_search_channel_way){
        .from = from, .to = to, .channel = (uint8_t)channel, .ports = ports};
    return TUTTI_OK;
}

/* Returns true if rings go on from a part to another one. A part that stands for others may come
 * before and after any part. */
static bool are_consecutive(const struct tutti_search_ways *ways, uint32_t part, uint32_t next)
{
    return part != next && (ways->parts.has_copies || next == (part + 1) % ways->parts.nparts);
}

/* Plans the ways of a ring from each part to the next, and those back. */
static int plan_ring(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t n = plan->ngpus, nparts = ways->parts.nparts;

    for (uint32_t i = 0; i < nparts * nparts; i++) {
        uint32_t part = i / nparts, next = i % nparts;
        uint32_t from = part * n + channel->gpu[n - 1], to = next * n + channel->gpu[0];
        struct tutti_search_port_pair ports, back;

        if (!are_consecutive(ways, part, next))
            continue;
        ports = ports_of(ways, channel, part, next);
        back = (struct tutti_search_port_pair){.out = ports.in, .in = ports.out};
        TUTTI_TRY(add_channel_way(ways, from, to, 2 * c, ports));
        TUTTI_TRY(add_channel_way(ways, to, from, 2 * c + 1, back));
    }
    return TUTTI_OK;
}

/* Returns true if a binary tree joins two parts. A part that stands for others may be joined with
 * any part. */
static bool are_joined(const struct tutti_search_ways *ways, uint32_t which, uint32_t a, uint32_t b)
{
    uint32_t nparts = ways->parts.nparts;

    return a != b && (ways->parts.has_copies || tutti_search_parent_part(a, nparts, which) == b ||
                      tutti_search_parent_part(b, nparts, which) == a);
}

/* Plans the ways, up and down, between the roots of parts. The trees of the machine have the
 * channels after those of the rings (algorithms/tree.c). */
static int plan_tree(struct tutti_search_ways *ways, const struct tutti_channels *plan, uint32_t c)
{
    const struct tutti_channel *channel = &plan->channel[c];
    uint32_t root = tutti_search_tree_root(plan, channel), n = plan->ngpus;
    uint32_t ntrees = tutti_search_orders_per_tree(ways, plan), nparts = ways->parts.nparts;

    for (uint32_t which = 0; which < ntrees; which++)
        for (uint32_t i = 0; i < nparts * nparts; i++) {
            uint32_t from = i / nparts, to = i % nparts;

            if (are_joined(ways, which, from, to))
                TUTTI_TRY(add_channel_way(ways, from * n + root, to * n + root,
                                          2 * ways->nrings + c * ntrees + which,
                                          ports_of(ways, channel, from, to)));
        }
    return TUTTI_OK;
}

/* Plans the ways that the channels of a plan take between parts, so that the machine plays what the
 * plan promises. The plan is one of part 0, and the other parts are like it. */
static int plan_ways(struct tutti_search_ways *ways, const struct tutti_channels *plan)
{
    uint32_t per_part = tutti_search_repeated_gpus(ways, plan);

    /* Each part must have gpus, so that the parts of the ranks are those of the ports. */
    if (per_part == 0 || ways->parts.nparts < 2 || nets_per_part(ways) == 0 ||
        ways->nranks / per_part != ways->parts.nparts)
        return TUTTI_OK;
    for (uint32_t c = 0; c < plan->nchannels && c < TUTTI_MACHINE_ORDERS; c++) {
        if (plan->channel[c].net_in == TUTTI_NO_NODE || plan->channel[c].net_out == TUTTI_NO_NODE)
            continue;
        if (plan->pattern == TUTTI_PATTERN_RING)
            TUTTI_TRY(plan_ring(ways, plan, c));
        else
            TUTTI_TRY(plan_tree(ways, plan, c));
    }
    return TUTTI_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

int tutti_search_ways_plan(const struct tutti_paths *paths, const struct tutti_channels *ring,
                           const struct tutti_channels *tree, struct tutti_search_ways **ret_ways)
{
    struct tutti_search_ways *ways = calloc(1, sizeof *ways);
    int rc;

    if (ways == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the ways between gpus");
    ways->paths = paths;
    ways->nranks = paths->graph->count[TUTTI_NODE_GPU];
    rc = tutti_graph_parts_find(paths->graph, &ways->parts);
    if (rc == TUTTI_OK)
        rc = tutti_ports_deal(paths, &ways->dealt);
    if (rc == TUTTI_OK && tutti_search_repeated_gpus(ways, ring) > 0)
        ways->nrings = ring->nchannels < TUTTI_MACHINE_ORDERS ? ring->nchannels
                                                              : TUTTI_MACHINE_ORDERS;
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
    tutti_graph_parts_fini(&ways->parts);
    free(ways->channel_ways);
    free(ways);
}

uint32_t tutti_search_ways_between(const struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                                   const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    return tutti_ports_way(ways->dealt, from, to, ret_parts);
}

uint32_t tutti_search_ways_of_channel(const struct tutti_search_ways *ways,
                                      const struct tutti_search_channel_way *way,
                                      const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    tutti_ports_way_through(ways->paths, way->from, way->ports.out, way->ports.in, way->to,
                            ret_parts);
    return TUTTI_PORTS_PARTS;
}
