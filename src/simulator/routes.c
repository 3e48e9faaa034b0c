/* SPDX-License-Identifier: Apache-2.0
 * What messages, one-sided accesses and work cross. */
#include "simulator/network.h"

#include "base/result.h"
#include "simulator/room.h"

static bool is_crowded(const struct sim_network *network, uint32_t rank)
{
    return network->cores != SIM_NONE &&
           network->node_size[sim_node_of(network, rank)] > network->machine->cores;
}

/* ---- pieces ---------------------------------------------------------------------- */

static int cross(struct sim_route *route, uint32_t link, double weight, double bytes)
{
    TUTTI_TRY(SIM_ROOM(route->at, route->count, route->capacity));
    route->at[route->count++] = (struct sim_crossing){link, weight, bytes};
    return TUTTI_OK;
}

/* `touched` bytes of memory for each byte that is moved. */
static int cross_memory(const struct sim_network *network, uint32_t rank, double touched,
                        struct sim_route *route)
{
    if (network->memories == SIM_NONE)
        return TUTTI_OK;
    return cross(route, network->memories + sim_node_of(network, rank), touched, touched);
}

/* The rank's core does so many bytes per second of this; 0: it has nothing to do with it. */
static int cross_cores(const struct sim_network *network, uint32_t rank, double bytes_per_s,
                       struct sim_route *route)
{
    double seconds;

    if (bytes_per_s == 0)
        return TUTTI_OK;
    seconds = 1 / bytes_per_s;
    if (network->own_cores != SIM_NONE)
        TUTTI_TRY(cross(route, network->own_cores + rank, seconds, seconds));
    if (!is_crowded(network, rank))
        return TUTTI_OK;
    return cross(route, network->cores + sim_node_of(network, rank), seconds, seconds);
}

/* Dimension by dimension, the shorter way round; up where both are as long. */
static int route_torus(const struct sim_network *network, uint32_t from, uint32_t to,
                       struct sim_route *route)
{
    const struct tutti_places *places = &network->machine->places;
    uint32_t at = from, stride = 1, hops = 0;

    route->rate = *sim_rate_of(network, 2);
    for (uint32_t d = 0; d < places->ndims; d++) {
        uint32_t size = places->dims[d], x = at / stride % size, y = to / stride % size;
        uint32_t up = (y + size - x) % size;
        bool goes_up = 2 * up <= size;

        for (; x != y; hops++) {
            uint32_t next = goes_up ? (x + 1) % size : (x + size - 1) % size;

            TUTTI_TRY(cross(route, network->torus + 2 * (at * places->ndims + d) + !goes_up,
                            1 / route->rate.bytes_per_s, 1));
            at = at - x * stride + next * stride;
            x = next;
        }
        stride *= size;
    }
    route->rate.latency_s *= hops;
    return TUTTI_OK;
}

static int route_ports(const struct sim_network *network, uint32_t from, uint32_t to,
                       struct sim_route *route)
{
    const struct tutti_machine *machine = network->machine;
    uint32_t level = tutti_machine_level(machine, from, to);

    route->rate = *sim_rate_of(network, level);
    if (level == 0) {
        route->out = network->ports + 2 * from;
        route->in = network->ports + 2 * to + 1;
    } else {
        route->out = network->nics + 2 * network->nic[from];
        route->in = network->nics + 2 * network->nic[to] + 1;
    }
    TUTTI_TRY(cross(route, route->out, 1 / route->rate.bytes_per_s, 1));
    TUTTI_TRY(cross(route, route->in, 1 / route->rate.bytes_per_s, 1));
    if (level == 0) {
        /* Unless it is said to be both, one rank's core loads and stores what is sent within a
         * node: the receiver's. */
        TUTTI_TRY(cross_memory(network, from, 2, route));
        return route->rate.core_bytes_per_s > 0
                   ? TUTTI_OK
                   : cross_cores(network, to, route->rate.bytes_per_s, route);
    }
    if (level == 2 && network->trunks != SIM_NONE) {
        TUTTI_TRY(cross(route, network->trunks + 2 * machine->places.group[from], 1, 1));
        TUTTI_TRY(cross(route, network->trunks + 2 * machine->places.group[to] + 1, 1, 1));
    }
    return TUTTI_OK;
}

/* 0 is no limit. */
static double lesser(double a, double b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* From and to the memory of others of the node. */
static double load_speed(const struct sim_network *network)
{
    double speed = network->machine->load_bytes_per_s;

    return speed > 0 ? speed : sim_rate_of(network, 0)->bytes_per_s;
}

static void begin(struct sim_route *route)
{
    route->count = 0;
    route->bytes_per_s = 0;
    route->rate = (struct tutti_rate){0};
    route->out = SIM_NONE;
    route->in = SIM_NONE;
}

static bool is_one_node(const struct sim_network *network, uint32_t from, uint32_t to)
{
    return sim_node_of(network, from) == sim_node_of(network, to);
}

int tutti_sim_route_message(const struct sim_network *network, uint32_t from, uint32_t to,
                            struct sim_route *route)
{
    begin(route);
    if (network->torus != SIM_NONE && !is_one_node(network, from, to))
        TUTTI_TRY(route_torus(network, from, to, route));
    else
        TUTTI_TRY(route_ports(network, from, to, route));
    route->bytes_per_s = lesser(route->rate.bytes_per_s, route->rate.core_bytes_per_s);
    TUTTI_TRY(cross_cores(network, from, route->rate.core_bytes_per_s, route));
    return cross_cores(network, to, route->rate.core_bytes_per_s, route);
}

int tutti_sim_route_overhead(const struct sim_network *network, uint32_t from, uint32_t to,
                             struct sim_route *route)
{
    bool is_both = sim_rate_of(network, tutti_machine_level(network->machine, from, to))
                       ->core_bytes_per_s > 0;

    begin(route);
    TUTTI_TRY(cross_cores(network, from, 1, route));
    return is_both ? cross_cores(network, to, 1, route) : TUTTI_OK;
}

/* Of a rank that loads and stores. */
static int cross_own_port(const struct sim_network *network, uint32_t rank, bool is_load,
                          double bytes, struct sim_route *route)
{
    return cross(route, network->ports + 2 * rank + is_load, bytes / load_speed(network), bytes);
}

/* Of a rank that others load from or store to: where ranks share memory there is none, and nobody
 * but whoever loads and stores is busy. */
static int cross_peer_port(const struct sim_network *network, uint32_t rank, bool is_load,
                           struct sim_route *route)
{
    if (network->memories != SIM_NONE)
        return TUTTI_OK;
    return cross(route, network->ports + 2 * rank + !is_load, 1 / load_speed(network), 1);
}

/* Loads from all ranks, in one pass with the arithmetic; and stores into all or one, if it does. */
static int route_gather(const struct sim_network *network, const struct sim_step *step,
                        struct sim_route *route)
{
    double others = network->nranks - 1;
    double stored = step->peer == TUTTI_ALL_RANKS ? others : step->peer >= 0 ? 1 : 0;

    route->bytes_per_s = lesser(load_speed(network) / others,
                                network->machine->reduce_bytes_per_s / others);
    TUTTI_TRY(cross_own_port(network, step->rank, true, others, route));
    if (stored > 0)
        TUTTI_TRY(cross_own_port(network, step->rank, false, stored, route));
    for (uint32_t rank = 0; rank < network->nranks; rank++) {
        if (rank == step->rank)
            continue;
        TUTTI_TRY(cross_peer_port(network, rank, true, route));
        if (step->peer == TUTTI_ALL_RANKS || step->peer == (int32_t)rank)
            TUTTI_TRY(cross_peer_port(network, rank, false, route));
    }
    return cross_memory(network, step->rank,
                        network->nranks + step->copies + stored, route);
}

/* One load, and stores everywhere. */
static int route_spread(const struct sim_network *network, const struct sim_step *step,
                        struct sim_route *route)
{
    double others = network->nranks - 1;

    route->bytes_per_s = load_speed(network) / others;
    TUTTI_TRY(cross_own_port(network, step->rank, false, others, route));
    for (uint32_t rank = 0; rank < network->nranks; rank++)
        if (rank != step->rank)
            TUTTI_TRY(cross_peer_port(network, rank, false, route));
    return cross_memory(network, step->rank, 2 + others, route);
}

static int route_peer(const struct sim_network *network, const struct sim_step *step,
                      struct sim_route *route)
{
    bool is_load = step->kind == TUTTI_STEP_GET;

    route->bytes_per_s = load_speed(network);
    TUTTI_TRY(cross_own_port(network, step->rank, is_load, 1, route));
    TUTTI_TRY(cross_peer_port(network, (uint32_t)step->peer, is_load, route));
    return cross_memory(network, step->rank, 2, route);
}

int tutti_sim_route_work(const struct sim_network *network, const struct sim_step *step,
                         struct sim_route *route)
{
    begin(route);
    switch (step->kind) {
    case TUTTI_STEP_GATHER_REDUCE:
        if (network->nranks > 1)
            TUTTI_TRY(route_gather(network, step, route));
        break;
    case TUTTI_STEP_PUT:
    case TUTTI_STEP_GET:
        TUTTI_TRY(step->peer == TUTTI_ALL_RANKS ? route_spread(network, step, route)
                                                : route_peer(network, step, route));
        break;
    case TUTTI_STEP_COPY:
        route->bytes_per_s = network->machine->copy_bytes_per_s;
        if (step->is_shared)
            route->bytes_per_s = lesser(route->bytes_per_s, network->machine->load_bytes_per_s);
        TUTTI_TRY(cross_memory(network, step->rank, 2, route));
        break;
    default: /* two loads and a store */
        route->bytes_per_s = network->machine->reduce_bytes_per_s;
        TUTTI_TRY(cross_memory(network, step->rank, 3, route));
        break;
    }
    if (route->bytes_per_s == 0 && route->count > 0)
        route->bytes_per_s = network->machine->memory_bytes_per_s / route->at[0].weight;
    return cross_cores(network, step->rank, route->bytes_per_s, route);
}
