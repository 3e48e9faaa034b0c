/* SPDX-License-Identifier: Apache-2.0
 * Finds the links that messages, one-sided accesses and work cross, and the rate of each route. */
#include "simulator/network.h"

#include "base/array.h"
#include "base/result.h"
#include "schedule/access.h"

#include <stdlib.h>

/* Returns true if the rank's node has fewer cores than ranks, so that the cores are a link. */
static bool is_crowded(const struct tutti_sim_network *network, uint32_t rank)
{
    return network->node_cores != TUTTI_SIM_NONE &&
           network->node_size[tutti_sim_node_of(network, rank)] > network->machine->cores;
}

/* ---- messages -------------------------------------------------------------------- */

/* Adds a link to the route. The parameters are the members of struct tutti_sim_crossing. */
static int cross(struct tutti_sim_route *route, uint32_t link, double weight, double bytes)
{
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(route->crossings, route->count, route->capacity, "links of a route"));
    route->crossings[route->count++] = (struct tutti_sim_crossing){link, weight, bytes};
    return TUTTI_OK;
}

/* Adds the memory of the rank's node to the route. For each byte that is moved, `touched` bytes of
 * memory are loaded or stored. */
static int cross_memory(const struct tutti_sim_network *network, uint32_t rank, double touched,
                        struct tutti_sim_route *route)
{
    if (network->memories == TUTTI_SIM_NONE)
        return TUTTI_OK;
    return cross(route, network->memories + tutti_sim_node_of(network, rank), touched, touched);
}

/* Adds the rank's core to the route. The core processes `bytes_per_s` at full speed. If
 * `bytes_per_s` is 0, the core is not involved. */
static int cross_cores(const struct tutti_sim_network *network, uint32_t rank, double bytes_per_s,
                       struct tutti_sim_route *route)
{
    double seconds;

    if (bytes_per_s == 0)
        return TUTTI_OK;
    seconds = 1 / bytes_per_s;
    if (network->rank_cores != TUTTI_SIM_NONE)
        TUTTI_TRY(cross(route, network->rank_cores + rank, seconds, seconds));
    if (!is_crowded(network, rank))
        return TUTTI_OK;
    return cross(route, network->node_cores + tutti_sim_node_of(network, rank), seconds, seconds);
}

/* Adds the links of a torus to the route, dimension by dimension. In each dimension the route goes
 * the shorter way around. It goes up if both ways are equally long. */
static int route_torus(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                       struct tutti_sim_route *route)
{
    const struct tutti_placement *places = &network->machine->places;
    uint32_t at = from, stride = 1, hops = 0;

    route->rate = *tutti_sim_rate_of(network, TUTTI_LEVEL_TOP);
    for (uint32_t d = 0; d < places->ndims; d++) {
        uint32_t size = places->dims[d], x = at / stride % size, y = to / stride % size;
        uint32_t up = (y + size - x) % size;
        bool goes_up = 2 * up <= size;

        for (; x != y; hops++) {
            uint32_t next = goes_up ? (x + 1) % size : (x + size - 1) % size;
            /* Dimension d of rank `at`, counted through all ranks. */
            uint32_t dimension = at * places->ndims + d;
            uint32_t link = goes_up ? tutti_sim_link_out(network->torus, dimension)
                                    : tutti_sim_link_in(network->torus, dimension);

            TUTTI_TRY(cross(route, link, 1 / route->rate.bytes_per_s, 1));
            at = at - x * stride + next * stride;
            x = next;
        }
        stride *= size;
    }
    route->rate.latency_s *= hops;
    return TUTTI_OK;
}

/* Returns the lesser of two limits, where 0 means no limit. */
static double lesser(double a, double b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Adds the bridge between two cells of a node to the route, if data from one rank's memory to the
 * other's crosses it. */
static int cross_bridge(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                        struct tutti_sim_route *route)
{
    const uint32_t *cell = network->machine->places.cell;

    if (network->cells == TUTTI_SIM_NONE || !tutti_machine_is_bridged(network->machine, from, to))
        return TUTTI_OK;
    TUTTI_TRY(cross(route, tutti_sim_link_out(network->cells, cell[from]), 1, 1));
    return cross(route, tutti_sim_link_in(network->cells, cell[to]), 1, 1);
}

/* Adds the two ports of a message to the route, and what lies between them: the bridge between
 * cells of a node, or the trunks between groups of nodes. */
static int route_ports(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                       struct tutti_sim_route *route)
{
    const struct tutti_machine *machine = network->machine;
    uint32_t level = tutti_machine_level(machine, from, to);

    route->rate = *tutti_sim_rate_of(network, level);
    if (level == TUTTI_LEVEL_NODE) {
        route->out = tutti_sim_link_out(network->ports, from);
        route->in = tutti_sim_link_in(network->ports, to);
    } else {
        route->out = tutti_sim_link_out(network->nics, network->nic[from]);
        route->in = tutti_sim_link_in(network->nics, network->nic[to]);
    }
    TUTTI_TRY(cross(route, route->out, 1 / route->rate.bytes_per_s, 1));
    TUTTI_TRY(cross(route, route->in, 1 / route->rate.bytes_per_s, 1));
    if (tutti_machine_is_bridged(machine, from, to)) {
        route->rate.latency_s += machine->bridge_latency_s;
        route->rate.bytes_per_s = lesser(route->rate.bytes_per_s, machine->bridge_bytes_per_s);
        TUTTI_TRY(cross_bridge(network, from, to, route));
    }
    if (level == TUTTI_LEVEL_TOP && network->trunks != TUTTI_SIM_NONE) {
        const uint32_t *group = machine->places.group;

        TUTTI_TRY(cross(route, tutti_sim_link_out(network->trunks, group[from]), 1, 1));
        TUTTI_TRY(cross(route, tutti_sim_link_in(network->trunks, group[to]), 1, 1));
    }
    return TUTTI_OK;
}

/* Adds the links of the path from one rank to another to the route. */
static int cross_path(const struct tutti_sim_network *network,
                      const struct tutti_machine_path *path, uint32_t from, uint32_t to,
                      struct tutti_sim_route *route)
{
    const struct tutti_machine_links *links = &network->machine->links;
    const struct tutti_machine_crossing *at = &links->crossings[path->first];
    struct tutti_machine_shift shift = tutti_machine_shift_of(links, from, to);

    for (uint32_t i = 0; i < path->count; i++)
        TUTTI_TRY(cross(route, network->path_links + tutti_machine_shifted(&shift, at[i].link),
                        at[i].weight, at[i].weight));
    return TUTTI_OK;
}

/* Returns the most bytes that a byte of the path takes of a link. */
static double heaviest_crossing(const struct tutti_sim_network *network,
                                const struct tutti_machine_path *path)
{
    const struct tutti_machine_crossing *at = &network->machine->links.crossings[path->first];
    double most = 1;

    for (uint32_t i = 0; i < path->count; i++)
        most = at[i].weight > most ? at[i].weight : most;
    return most;
}

/* A path without links has the rate of its level, and shares it with no other route. */
static int route_path(const struct tutti_sim_network *network,
                      const struct tutti_machine_path *path, uint32_t from, uint32_t to,
                      struct tutti_sim_route *route)
{
    const struct tutti_machine *machine = network->machine;
    double narrowest = tutti_machine_path_rate(machine, path);

    route->rate = *tutti_sim_rate_of(network, tutti_machine_level(machine, from, to));
    route->rate.latency_s = tutti_machine_path_latency_s(machine, path, from, to);
    if (narrowest > 0)
        route->rate.bytes_per_s = narrowest;
    route->growth = tutti_sim_rate_of(network, TUTTI_LEVEL_NODE)->bytes_per_s /
                    heaviest_crossing(network, path);
    return cross_path(network, path, from, to, route);
}

/* Adds what a message within a node uses: the memory of the node, and the core that loads and
 * stores the message. That is the receiver's core. If the level has a rate for cores, the caller
 * adds both ranks' cores instead. */
static int cross_within_node(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                             struct tutti_sim_route *route)
{
    TUTTI_TRY(cross_memory(network, from, 2, route));
    return route->rate.core_bytes_per_s > 0
               ? TUTTI_OK
               : cross_cores(network, to, route->rate.bytes_per_s, route);
}

/* Returns the rate of accesses to the memory of other ranks of the node. */
static double load_speed(const struct tutti_sim_network *network)
{
    double speed = network->machine->load_bytes_per_s;

    return speed > 0 ? speed : tutti_sim_rate_of(network, TUTTI_LEVEL_NODE)->bytes_per_s;
}

static void clear(struct tutti_sim_route *route)
{
    route->count = 0;
    route->bytes_per_s = 0;
    route->growth = 0;
    route->rate = (struct tutti_rate){0};
    route->out = TUTTI_SIM_NONE;
    route->in = TUTTI_SIM_NONE;
}

/* In a play by symmetry, replaces each link by the one that stands for it. Two links may have the
 * same one, for instance the cores of two ranks, whose crossings are joined. */
static void fold_route(const struct tutti_sim_network *network, struct tutti_sim_route *route)
{
    uint32_t count = 0;

    if (network->fold == NULL)
        return;
    if (route->out != TUTTI_SIM_NONE) {
        route->out = network->fold[route->out];
        route->in = network->fold[route->in];
    }
    for (uint32_t i = 0; i < route->count; i++) {
        struct tutti_sim_crossing crossing = route->crossings[i];
        uint32_t at = 0;

        crossing.link = network->fold[crossing.link];
        while (at < count && route->crossings[at].link != crossing.link)
            at++;
        if (at < count) {
            route->crossings[at].weight += crossing.weight;
            route->crossings[at].bytes += crossing.bytes;
        } else {
            route->crossings[count++] = crossing;
        }
    }
    route->count = count;
}

static bool is_one_node(const struct tutti_sim_network *network, uint32_t from, uint32_t to)
{
    return tutti_sim_node_of(network, from) == tutti_sim_node_of(network, to);
}

int tutti_sim_route_message(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                            uint8_t channel, struct tutti_sim_route *route)
{
    const struct tutti_machine_path *path =
        tutti_machine_channel_path(network->machine, from, to, channel);

    clear(route);
    if (path != NULL)
        TUTTI_TRY(route_path(network, path, from, to, route));
    else if (network->torus != TUTTI_SIM_NONE && !is_one_node(network, from, to))
        TUTTI_TRY(route_torus(network, from, to, route));
    else
        TUTTI_TRY(route_ports(network, from, to, route));
    if (is_one_node(network, from, to))
        TUTTI_TRY(cross_within_node(network, from, to, route));
    route->bytes_per_s = lesser(route->rate.bytes_per_s, route->rate.core_bytes_per_s);
    TUTTI_TRY(cross_cores(network, from, route->rate.core_bytes_per_s, route));
    TUTTI_TRY(cross_cores(network, to, route->rate.core_bytes_per_s, route));
    fold_route(network, route);
    return TUTTI_OK;
}

int tutti_sim_route_overhead(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                             struct tutti_sim_route *route)
{
    uint32_t level = tutti_machine_level(network->machine, from, to);
    bool uses_both_cores = tutti_sim_rate_of(network, level)->core_bytes_per_s > 0;

    clear(route);
    /* A rate of 1 makes the flow's unit a second of work. */
    TUTTI_TRY(cross_cores(network, from, 1, route));
    if (uses_both_cores)
        TUTTI_TRY(cross_cores(network, to, 1, route));
    fold_route(network, route);
    return TUTTI_OK;
}

/* ---- work --------------------------------------------------------------------------- */

/* Returns the path by which a rank accesses the memory of a peer, or NULL if it uses ports. */
static const struct tutti_machine_path *find_path(const struct tutti_sim_network *network,
                                                  uint32_t rank, uint32_t peer, bool is_load)
{
    return tutti_machine_path(network->machine, is_load ? peer : rank, is_load ? rank : peer);
}

/* Returns the ranks whose memory a step accesses. If `peer` is all ranks, this includes the step's
 * own rank, which the caller must leave out. */
static struct tutti_step_ranks peers_of(const struct tutti_sim_network *network,
                                      const struct tutti_sim_step *step, int32_t peer)
{
    if (peer != TUTTI_ALL_RANKS)
        return (struct tutti_step_ranks){NULL, peer >= 0 ? (uint32_t)peer : 0, peer >= 0};
    if (step->among_count > 0)
        return (struct tutti_step_ranks){network->among + step->among, 0, step->among_count};
    return (struct tutti_step_ranks){NULL, 0, network->nranks};
}

/* Returns the number of ranks other than its own that the step accesses. */
static uint32_t count_peers(const struct tutti_sim_network *network,
                            const struct tutti_sim_step *step, int32_t peer)
{
    return peers_of(network, step, peer).count - (peer == TUTTI_ALL_RANKS);
}

/* Returns the number of peers that the step reaches through ports, not along paths. */
static double count_ports(const struct tutti_sim_network *network,
                          const struct tutti_sim_step *step, int32_t peer, bool is_load)
{
    struct tutti_step_ranks peers = peers_of(network, step, peer);
    double count = count_peers(network, step, peer);

    if (network->machine->links.npaths == 0)
        return count;
    for (uint32_t i = 0; i < peers.count; i++)
        count -= find_path(network, step->rank, tutti_step_ranks_at(peers, i), is_load) != NULL;
    return count;
}

/* Returns the port by which data enter a rank, or leave it. */
static uint32_t port_of(const struct tutti_sim_network *network, uint32_t rank, bool is_in)
{
    return is_in ? tutti_sim_link_in(network->ports, rank)
                 : tutti_sim_link_out(network->ports, rank);
}

/* Adds the port of the rank that loads and stores to the route. Loaded data enter it, and stored
 * data leave it. `bytes` is how many bytes pass through the port for each byte of the step. */
static int cross_own_port(const struct tutti_sim_network *network, uint32_t rank, bool is_load,
                          double bytes, struct tutti_sim_route *route)
{
    if (bytes == 0)
        return TUTTI_OK;
    return cross(route, port_of(network, rank, is_load), bytes / load_speed(network), bytes);
}

/* Adds the links to or from the memory of peers to the route. Where ranks share memory, only the
 * rank that loads and stores is busy, and the peers need no ports. */
static int cross_peers(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                       int32_t peer, bool is_load, struct tutti_sim_route *route)
{
    struct tutti_step_ranks peers = peers_of(network, step, peer);
    uint32_t own = step->rank;

    for (uint32_t i = 0; i < peers.count; i++) {
        uint32_t rank = tutti_step_ranks_at(peers, i);
        const struct tutti_machine_path *path = find_path(network, own, rank, is_load);

        if (peer == TUTTI_ALL_RANKS && rank == own)
            continue;
        if (path != NULL) {
            TUTTI_TRY(cross_path(network, path, is_load ? rank : own, is_load ? own : rank, route));
            continue;
        }
        TUTTI_TRY(cross_bridge(network, is_load ? rank : own, is_load ? own : rank, route));
        if (network->memories == TUTTI_SIM_NONE)
            TUTTI_TRY(cross(route, port_of(network, rank, !is_load), 1 / load_speed(network), 1));
    }
    return TUTTI_OK;
}

static int by_link(const void *a, const void *b)
{
    const struct tutti_sim_crossing *x = a, *y = b;

    return (x->link > y->link) - (x->link < y->link);
}

/* Accesses to several ranks at a time may cross a link more than once. Replaces these crossings by
 * one, and limits the rate of the route to that of its narrowest link. Does nothing if the machine
 * gives neither paths nor bridges. */
static void merge_crossings(const struct tutti_sim_network *network, struct tutti_sim_route *route)
{
    uint32_t count = 0;

    if ((network->path_links == TUTTI_SIM_NONE && network->cells == TUTTI_SIM_NONE) ||
        route->count == 0)
        return;
    qsort(route->crossings, route->count, sizeof(*route->crossings), by_link);
    for (uint32_t i = 0; i < route->count; i++) {
        struct tutti_sim_crossing *last = count > 0 ? &route->crossings[count - 1] : NULL;

        if (last != NULL && last->link == route->crossings[i].link) {
            last->weight += route->crossings[i].weight;
            last->bytes += route->crossings[i].bytes;
        } else {
            route->crossings[count++] = route->crossings[i];
        }
    }
    route->count = count;
    for (uint32_t i = 0; i < count; i++)
        route->bytes_per_s =
            lesser(route->bytes_per_s,
                   network->links[route->crossings[i].link].capacity / route->crossings[i].weight);
}

/* Limits the rate of a step. For each byte of the step its rank loads or stores `accessed` bytes,
 * of which `ported` pass through the rank's port. Paths have their own rates. Accesses that cross
 * no link at all run at the rate of loads. */
static void limit_rate(const struct tutti_sim_network *network, double accessed, double ported,
                       struct tutti_sim_route *route)
{
    if (ported > 0)
        route->bytes_per_s = lesser(route->bytes_per_s, load_speed(network) / ported);
    else if (network->machine->load_bytes_per_s > 0 || route->count == 0)
        route->bytes_per_s = lesser(route->bytes_per_s, load_speed(network) / accessed);
}

/* Routes a GATHER_REDUCE. It loads from two or more ranks, in one pass with the arithmetic. Then it
 * stores into one rank or all ranks, if the step has a target. */
static int route_gather(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                        struct tutti_sim_route *route)
{
    double others = count_peers(network, step, TUTTI_ALL_RANKS);
    double stored = count_peers(network, step, step->peer);
    double ported = count_ports(network, step, TUTTI_ALL_RANKS, true);

    TUTTI_TRY(cross_own_port(network, step->rank, true, ported, route));
    TUTTI_TRY(cross_own_port(network, step->rank, false,
                             count_ports(network, step, step->peer, false), route));
    TUTTI_TRY(cross_peers(network, step, TUTTI_ALL_RANKS, true, route));
    TUTTI_TRY(cross_peers(network, step, step->peer, false, route));
    route->bytes_per_s = network->machine->reduce_bytes_per_s / others;
    limit_rate(network, others, ported, route);
    merge_crossings(network, route);
    return cross_memory(network, step->rank, others + 1 + step->copies + stored, route);
}

/* Routes a PUT or a GET. A PUT to all ranks also stores into this rank's own memory. */
static int route_access(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                        struct tutti_sim_route *route)
{
    bool is_load = step->kind == TUTTI_STEP_GET;
    double peers = count_peers(network, step, step->peer);
    double ported = count_ports(network, step, step->peer, is_load);

    TUTTI_TRY(cross_own_port(network, step->rank, is_load, ported, route));
    TUTTI_TRY(cross_peers(network, step, step->peer, is_load, route));
    limit_rate(network, peers, ported, route);
    merge_crossings(network, route);
    return cross_memory(network, step->rank, step->peer == TUTTI_ALL_RANKS ? 2 + peers : 2, route);
}

int tutti_sim_route_work(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                         struct tutti_sim_route *route)
{
    clear(route);
    switch (step->kind) {
    case TUTTI_STEP_GATHER_REDUCE:
        if (count_peers(network, step, TUTTI_ALL_RANKS) > 0)
            TUTTI_TRY(route_gather(network, step, route));
        break;
    case TUTTI_STEP_PUT:
    case TUTTI_STEP_GET:
        TUTTI_TRY(route_access(network, step, route));
        break;
    case TUTTI_STEP_COPY:
        route->bytes_per_s = network->machine->copy_bytes_per_s;
        if (step->is_shared)
            route->bytes_per_s = lesser(route->bytes_per_s, network->machine->load_bytes_per_s);
        TUTTI_TRY(cross_memory(network, step->rank, 2, route));
        break;
    default: /* a reduction: two loads and a store */
        route->bytes_per_s = network->machine->reduce_bytes_per_s;
        TUTTI_TRY(cross_memory(network, step->rank, 3, route));
        break;
    }
    /* If nothing else limits the rate, the node's memory does, which is then the only link of the
     * route. */
    if (route->bytes_per_s == 0 && route->count > 0)
        route->bytes_per_s = network->machine->memory_bytes_per_s / route->crossings[0].weight;
    TUTTI_TRY(cross_cores(network, step->rank, route->bytes_per_s, route));
    fold_route(network, route);
    return TUTTI_OK;
}
