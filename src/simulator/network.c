/* SPDX-License-Identifier: Apache-2.0
 * From a machine's description to its links. */
#include "simulator/network.h"

#include "base/result.h"
#include "simulator/room.h"

#include <stdio.h>
#include <stdlib.h>

static const struct tutti_rate *rate_of(const struct sim_network *network, uint32_t level)
{
    return &network->machine->level[level];
}

static uint32_t node_of(const struct sim_network *network, uint32_t rank)
{
    const uint32_t *node = network->machine->places.node;

    return node ? node[rank] : rank;
}

static uint32_t node_count(const struct sim_network *network)
{
    const struct tutti_places *places = &network->machine->places;

    return places->node ? places->nnodes : network->nranks;
}

bool tutti_sim_has_level(const struct sim_network *network, uint32_t level)
{
    const struct tutti_places *places = &network->machine->places;

    if (level == 1)
        return places->group != NULL && node_count(network) > places->ngroups;
    return places->group == NULL || places->ngroups > 1;
}

/* ---- making links ------------------------------------------------------------ */

int tutti_sim_network_check(const struct tutti_machine *machine, uint32_t nranks)
{
    if (machine->places.nranks != nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "the machine has %u ranks, the schedules are for %u; make them alike",
                          machine->places.nranks, nranks);
    for (uint32_t level = 0; level < TUTTI_MACHINE_LEVELS; level++)
        if (!(machine->level[level].bytes_per_s > 0))
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "the machine has no bandwidth at level %u; give each level one",
                              level);
    return TUTTI_OK;
}

static int deal_nics(struct sim_network *network)
{
    uint32_t nnodes = node_count(network);
    uint32_t *first = calloc((size_t)nnodes + 1, sizeof(*first));
    uint32_t *seen = calloc((size_t)nnodes + 1, sizeof(*seen));

    network->nic = calloc((size_t)network->nranks + 1, sizeof(*network->nic));
    network->node_size = calloc((size_t)nnodes + 1, sizeof(*network->node_size));
    network->nic_rank = calloc((size_t)network->nranks + 1, sizeof(*network->nic_rank));
    network->nic_index = calloc((size_t)network->nranks + 1, sizeof(*network->nic_index));
    if (first == NULL || seen == NULL || network->nic == NULL || network->node_size == NULL ||
        network->nic_rank == NULL || network->nic_index == NULL) {
        free(first);
        free(seen);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a network of %u ranks",
                          network->nranks);
    }
    for (uint32_t rank = 0; rank < network->nranks; rank++)
        network->node_size[node_of(network, rank)]++;
    for (uint32_t node = 0; node < nnodes; node++) {
        uint32_t size = network->node_size[node], nics = network->machine->nics;

        if (nics == 0 || nics > size)
            nics = size; /* a rank drives one */
        first[node + 1] = first[node] + nics;
        for (uint32_t i = 0; i < nics; i++)
            network->nic_index[first[node] + i] = i;
    }
    for (uint32_t rank = 0; rank < network->nranks; rank++) {
        uint32_t node = node_of(network, rank), nics = first[node + 1] - first[node];

        network->nic[rank] = first[node] + seen[node] % nics;
        if (seen[node]++ < nics)
            network->nic_rank[network->nic[rank]] = rank;
    }
    network->nnics = first[nnodes];
    free(first);
    free(seen);
    return TUTTI_OK;
}

static uint32_t reserve(struct sim_network *network, bool exists, uint32_t count)
{
    uint32_t first = network->nlinks;

    if (!exists)
        return SIM_NONE;
    network->nlinks += count;
    return first;
}

static void set(struct sim_network *network, uint32_t first, uint32_t count, double capacity,
                double nominal)
{
    if (first == SIM_NONE)
        return;
    for (uint32_t i = first; i < first + count; i++)
        network->links[i] = (struct sim_link){.capacity = capacity, .nominal = nominal,
                                              .holder = SIM_NONE, .head = SIM_NONE,
                                              .tail = SIM_NONE};
}

static bool has_full_nodes(const struct sim_network *network)
{
    for (uint32_t node = 0; node < node_count(network); node++)
        if (network->node_size[node] > network->machine->cores)
            return network->machine->cores > 0;
    return false;
}

/* Do any ranks move messages themselves? */
static bool has_own_cores(const struct sim_network *network)
{
    for (uint32_t level = 0; level < TUTTI_MACHINE_LEVELS; level++)
        if (rate_of(network, level)->core_bytes_per_s > 0)
            return true;
    return false;
}

int tutti_sim_network_init(struct sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks)
{
    const struct tutti_places *places = &machine->places;
    double nic = 0;
    bool is_torus = places->ndims > 0;
    uint32_t nnodes, ngroups = places->group ? places->ngroups : 1;
    int rc;

    *network = (struct sim_network){.machine = machine, .nranks = nranks};
    TUTTI_TRY(tutti_sim_network_check(machine, nranks));
    TUTTI_TRY_OR(fail, rc, deal_nics(network));
    nnodes = node_count(network);
    network->ports = reserve(network, nnodes < nranks, 2 * nranks);
    network->nics = reserve(network, !is_torus && nnodes > 1, 2 * network->nnics);
    network->trunks = reserve(network, !is_torus && ngroups > 1 && machine->trunk_bytes_per_s > 0,
                              2 * ngroups);
    network->torus = reserve(network, is_torus, 2 * nranks * places->ndims);
    network->memories = reserve(network, machine->memory_bytes_per_s > 0, nnodes);
    network->cores = reserve(network, has_full_nodes(network), nnodes);
    network->own_cores = reserve(network, has_own_cores(network), nranks);
    network->links = calloc((size_t)network->nlinks + 1, sizeof(*network->links));
    if (network->links == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u links", network->nlinks);
        goto fail;
    }
    /* A port's capacity is its time, for it may serve levels of different bandwidths. */
    set(network, network->ports, 2 * nranks, 1, machine->level[0].bytes_per_s);
    for (uint32_t level = 1; level < TUTTI_MACHINE_LEVELS; level++)
        if (tutti_sim_has_level(network, level) && machine->level[level].bytes_per_s > nic)
            nic = machine->level[level].bytes_per_s;
    set(network, network->nics, 2 * network->nnics, 1, nic);
    set(network, network->trunks, 2 * ngroups, machine->trunk_bytes_per_s,
        machine->trunk_bytes_per_s);
    set(network, network->torus, 2 * nranks * places->ndims, 1,
        machine->level[2].bytes_per_s);
    set(network, network->memories, nnodes, machine->memory_bytes_per_s,
        machine->memory_bytes_per_s);
    set(network, network->cores, nnodes, machine->cores, machine->cores);
    set(network, network->own_cores, nranks, 1, 1);
    return TUTTI_OK;

fail:
    tutti_sim_network_fini(network);
    return rc;
}

void tutti_sim_network_fini(struct sim_network *network)
{
    free(network->links);
    free(network->nic);
    free(network->node_size);
    free(network->nic_rank);
    free(network->nic_index);
    *network = (struct sim_network){.nranks = 0};
}

static bool is_crowded(const struct sim_network *network, uint32_t rank)
{
    return network->cores != SIM_NONE &&
           network->node_size[node_of(network, rank)] > network->machine->cores;
}

/* ---- routes -------------------------------------------------------------------- */

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
    return cross(route, network->memories + node_of(network, rank), touched, touched);
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
    return cross(route, network->cores + node_of(network, rank), seconds, seconds);
}

/* Dimension by dimension, the shorter way round; up where both are as long. */
static int route_torus(const struct sim_network *network, uint32_t from, uint32_t to,
                       struct sim_route *route)
{
    const struct tutti_places *places = &network->machine->places;
    uint32_t at = from, stride = 1, hops = 0;

    route->rate = *rate_of(network, 2);
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

    route->rate = *rate_of(network, level);
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

    return speed > 0 ? speed : rate_of(network, 0)->bytes_per_s;
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
    return node_of(network, from) == node_of(network, to);
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
    bool is_both = rate_of(network, tutti_machine_level(network->machine, from, to))
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

/* ---- names ------------------------------------------------------------------------ */

static bool is_of(uint32_t link, uint32_t first, uint32_t count)
{
    return first != SIM_NONE && link >= first && link - first < count;
}

void tutti_sim_link_name(const struct sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes)
{
    const struct tutti_places *places = &network->machine->places;
    static const char *const ways[] = {"out", "in"};

    if (is_of(link, network->ports, 2 * network->nranks)) {
        uint32_t port = link - network->ports;

        snprintf(ret_name, size_bytes, "rank %u %s", port / 2, ways[port % 2]);
    } else if (is_of(link, network->nics, 2 * network->nnics)) {
        uint32_t port = link - network->nics, nic = port / 2;
        uint32_t node = node_of(network, network->nic_rank[nic]);

        if (network->node_size[node] == 1 && places->node == NULL)
            snprintf(ret_name, size_bytes, "rank %u %s", node, ways[port % 2]);
        else
            snprintf(ret_name, size_bytes, "nic %u of node %u %s", network->nic_index[nic], node,
                     ways[port % 2]);
    } else if (is_of(link, network->trunks, 2 * places->ngroups)) {
        uint32_t port = link - network->trunks;

        snprintf(ret_name, size_bytes, "trunk %u %s", port / 2, ways[port % 2]);
    } else if (is_of(link, network->torus, 2 * network->nranks * places->ndims)) {
        uint32_t port = link - network->torus;

        snprintf(ret_name, size_bytes, "rank %u %c%c", port / 2 / places->ndims,
                 port % 2 ? '-' : '+', "xyzw"[port / 2 % places->ndims]);
    } else if (is_of(link, network->memories, node_count(network))) {
        snprintf(ret_name, size_bytes, "memory %u", link - network->memories);
    } else if (is_of(link, network->own_cores, network->nranks)) {
        snprintf(ret_name, size_bytes, "core of rank %u", link - network->own_cores);
    } else {
        snprintf(ret_name, size_bytes, "cores %u", link - network->cores);
    }
}
