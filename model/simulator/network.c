/* SPDX-License-Identifier: Apache-2.0
 * Turns a machine's description into the links over which the simulator shares bandwidth. */
#include "simulator/network.h"

#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>

bool tutti_sim_has_level(const struct tutti_sim_network *network, uint32_t level)
{
    const struct tutti_placement *places = &network->machine->places;

    if (level == 1)
        return places->group != NULL && tutti_sim_node_count(network) > places->ngroups;
    return places->group == NULL || places->ngroups > 1;
}

/* ---- making links ------------------------------------------------------------ */

int tutti_sim_network_check(const struct tutti_machine *machine, uint32_t nranks)
{
    if (machine->places.nranks != nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "the machine has %u ranks, the schedules are for %u; use one number",
                          machine->places.nranks, nranks);
    for (uint32_t level = 0; level < TUTTI_MACHINE_LEVELS; level++)
        if (!(machine->level[level].bytes_per_s > 0))
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "the machine has no bandwidth at level %u; give each level one",
                              level);
    return TUTTI_OK;
}

static int deal_nics(struct tutti_sim_network *network)
{
    uint32_t nnodes = tutti_sim_node_count(network);
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
        network->node_size[tutti_sim_node_of(network, rank)]++;
    for (uint32_t node = 0; node < nnodes; node++) {
        uint32_t size = network->node_size[node], nics = network->machine->nics;

        if (nics == 0 || nics > size)
            nics = size; /* each rank drives at most one NIC */
        first[node + 1] = first[node] + nics;
        for (uint32_t i = 0; i < nics; i++)
            network->nic_index[first[node] + i] = i;
    }
    for (uint32_t rank = 0; rank < network->nranks; rank++) {
        uint32_t node = tutti_sim_node_of(network, rank), nics = first[node + 1] - first[node];

        network->nic[rank] = first[node] + seen[node] % nics;
        if (seen[node]++ < nics)
            network->nic_rank[network->nic[rank]] = rank;
    }
    network->nnics = first[nnodes];
    free(first);
    free(seen);
    return TUTTI_OK;
}

static uint32_t reserve(struct tutti_sim_network *network, bool exists, uint32_t count)
{
    uint32_t first = network->nlinks;

    if (!exists)
        return TUTTI_SIM_NONE;
    network->nlinks += count;
    return first;
}

static void set(struct tutti_sim_network *network, uint32_t first, uint32_t count, double capacity,
                double nominal)
{
    if (first == TUTTI_SIM_NONE)
        return;
    for (uint32_t i = first; i < first + count; i++)
        network->links[i] = (struct tutti_sim_network_link){.capacity = capacity,
                                                    .nominal = nominal,
                                                    .holder = TUTTI_SIM_NONE,
                                                    .head = TUTTI_SIM_NONE,
                                                    .tail = TUTTI_SIM_NONE};
}

static bool has_full_nodes(const struct tutti_sim_network *network)
{
    for (uint32_t node = 0; node < tutti_sim_node_count(network); node++)
        if (network->node_size[node] > network->machine->cores)
            return network->machine->cores > 0;
    return false;
}

/* Returns true if ranks move the messages of some level with their own cores. */
static bool has_own_cores(const struct tutti_sim_network *network)
{
    for (uint32_t level = 0; level < TUTTI_MACHINE_LEVELS; level++)
        if (tutti_sim_rate_of(network, level)->core_bytes_per_s > 0)
            return true;
    return false;
}

int tutti_sim_network_init(struct tutti_sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks)
{
    const struct tutti_placement *places = &machine->places;
    double nic = 0;
    bool is_torus = places->ndims > 0;
    uint32_t nnodes, ngroups = places->group ? places->ngroups : 1;
    int rc;

    *network = (struct tutti_sim_network){.machine = machine, .nranks = nranks};
    TUTTI_TRY(tutti_sim_network_check(machine, nranks));
    TUTTI_TRY_OR(fail, rc, deal_nics(network));
    nnodes = tutti_sim_node_count(network);
    network->ports = reserve(network, nnodes < nranks, 2 * nranks);
    network->cells = reserve(network, places->cell != NULL && machine->bridge_bytes_per_s > 0,
                             2 * places->ncells);
    network->nics = reserve(network, !is_torus && nnodes > 1, 2 * network->nnics);
    network->trunks = reserve(network, !is_torus && ngroups > 1 && machine->trunk_bytes_per_s > 0,
                              2 * ngroups);
    network->torus = reserve(network, is_torus, 2 * nranks * places->ndims);
    network->memories = reserve(network, machine->memory_bytes_per_s > 0, nnodes);
    network->cores = reserve(network, has_full_nodes(network), nnodes);
    network->own_cores = reserve(network, has_own_cores(network), nranks);
    network->given = reserve(network, machine->links.nlinks > 0, machine->links.nlinks);
    network->links = calloc((size_t)network->nlinks + 1, sizeof(*network->links));
    if (network->links == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u links", network->nlinks);
        goto fail;
    }
    /* A port may serve levels of different bandwidths. So its capacity is one second of use per
     * second, not a number of bytes. */
    set(network, network->ports, 2 * nranks, 1, machine->level[0].bytes_per_s);
    set(network, network->cells, 2 * places->ncells, machine->bridge_bytes_per_s,
        machine->bridge_bytes_per_s);
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
    for (uint32_t i = 0; i < machine->links.nlinks; i++)
        set(network, network->given + i, 1, machine->links.links[i].bytes_per_s,
            machine->links.links[i].bytes_per_s);
    return TUTTI_OK;

fail:
    tutti_sim_network_fini(network);
    return rc;
}

void tutti_sim_network_fini(struct tutti_sim_network *network)
{
    free(network->links);
    free(network->nic);
    free(network->node_size);
    free(network->nic_rank);
    free(network->nic_index);
    *network = (struct tutti_sim_network){.nranks = 0};
}

/* ---- names ------------------------------------------------------------------------ */

static bool is_of(uint32_t link, uint32_t first, uint32_t count)
{
    return first != TUTTI_SIM_NONE && link >= first && link - first < count;
}

void tutti_sim_link_name(const struct tutti_sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes)
{
    const struct tutti_placement *places = &network->machine->places;
    static const char *const ways[] = {"out", "in"};

    if (is_of(link, network->ports, 2 * network->nranks)) {
        uint32_t port = link - network->ports;

        snprintf(ret_name, size_bytes, "rank %u %s", port / 2, ways[port % 2]);
    } else if (is_of(link, network->cells, 2 * places->ncells)) {
        uint32_t port = link - network->cells;

        snprintf(ret_name, size_bytes, "cell %u %s", port / 2, ways[port % 2]);
    } else if (is_of(link, network->nics, 2 * network->nnics)) {
        uint32_t port = link - network->nics, nic = port / 2;
        uint32_t node = tutti_sim_node_of(network, network->nic_rank[nic]);

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
    } else if (is_of(link, network->memories, tutti_sim_node_count(network))) {
        snprintf(ret_name, size_bytes, "memory %u", link - network->memories);
    } else if (is_of(link, network->own_cores, network->nranks)) {
        snprintf(ret_name, size_bytes, "core of rank %u", link - network->own_cores);
    } else if (is_of(link, network->given, network->machine->links.nlinks)) {
        const char *name = network->machine->links.links[link - network->given].name;

        if (name[0] != '\0')
            snprintf(ret_name, size_bytes, "%s", name);
        else
            snprintf(ret_name, size_bytes, "link %u", link - network->given);
    } else {
        snprintf(ret_name, size_bytes, "cores %u", link - network->cores);
    }
}
