/* SPDX-License-Identifier: Apache-2.0
 * Turns a machine's description into the links over which the simulator shares bandwidth. */
#include "simulator/network.h"

#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>

bool tutti_sim_has_level(const struct tutti_sim_network *network, uint32_t level)
{
    const struct tutti_placement *places = &network->machine->places;

    if (level == TUTTI_LEVEL_GROUP)
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

/* Counts the ranks of each node, and assigns the NICs of a node to its ranks round-robin. */
static int assign_nics(struct tutti_sim_network *network)
{
    uint32_t nnodes = tutti_sim_node_count(network);
    uint32_t *first = calloc((size_t)nnodes + 1, sizeof(*first)); /* per node: its first NIC */
    uint32_t *seen = calloc((size_t)nnodes + 1, sizeof(*seen));   /* per node: ranks so far */

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

/* Reserves the numbers of `count` links if this kind of link exists. Returns the first number, or
 * TUTTI_SIM_NONE. */
static uint32_t reserve_links(struct tutti_sim_network *network, bool exists, uint32_t count)
{
    uint32_t first = network->nlinks;

    if (!exists)
        return TUTTI_SIM_NONE;
    network->nlinks += count;
    return first;
}

/* Initializes `count` links from number `first` on. Does nothing if `first` is TUTTI_SIM_NONE. */
static void set_links(struct tutti_sim_network *network, uint32_t first, uint32_t count,
                      double capacity, double nominal)
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

/* Returns true if some node has fewer cores than ranks. If the machine gives no number of cores,
 * each rank has its own. */
static bool has_crowded_nodes(const struct tutti_sim_network *network)
{
    for (uint32_t node = 0; node < tutti_sim_node_count(network); node++)
        if (network->machine->cores > 0 && network->node_size[node] > network->machine->cores)
            return true;
    return false;
}

/* Returns true if ranks move the messages of some level with their own cores. */
static bool uses_rank_cores(const struct tutti_sim_network *network)
{
    for (uint32_t level = 0; level < TUTTI_MACHINE_LEVELS; level++)
        if (tutti_sim_rate_of(network, level)->core_bytes_per_s > 0)
            return true;
    return false;
}

/* Reserves the numbers of all links that the machine has, and allocates the links. */
static int number_links(struct tutti_sim_network *network)
{
    const struct tutti_machine *machine = network->machine;
    const struct tutti_placement *places = &machine->places;
    uint32_t nranks = network->nranks, nnodes = tutti_sim_node_count(network);
    uint32_t ngroups = places->group ? places->ngroups : 1;
    bool is_torus = places->ndims > 0;

    network->ports = reserve_links(network, nnodes < nranks, 2 * nranks);
    network->cells = reserve_links(network, places->cell != NULL && machine->bridge_bytes_per_s > 0,
                                   2 * places->ncells);
    network->nics = reserve_links(network, !is_torus && nnodes > 1, 2 * network->nnics);
    network->trunks = reserve_links(
        network, !is_torus && ngroups > 1 && machine->trunk_bytes_per_s > 0, 2 * ngroups);
    network->torus = reserve_links(network, is_torus, 2 * nranks * places->ndims);
    network->memories = reserve_links(network, machine->memory_bytes_per_s > 0, nnodes);
    network->node_cores = reserve_links(network, has_crowded_nodes(network), nnodes);
    network->rank_cores = reserve_links(network, uses_rank_cores(network), nranks);
    network->path_links = reserve_links(network, machine->links.nlinks > 0,
                                        tutti_machine_link_count(&machine->links));
    network->links = calloc((size_t)network->nlinks + 1, sizeof(*network->links));
    return network->links != NULL
               ? TUTTI_OK
               : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u links", network->nlinks);
}

/* Initializes the links. Ports and the links of a torus have a capacity of one second of use per
 * second (network.h). */
static void set_capacities(struct tutti_sim_network *network)
{
    const struct tutti_machine *machine = network->machine;
    const struct tutti_placement *places = &machine->places;
    uint32_t nranks = network->nranks, nnodes = tutti_sim_node_count(network);
    double node_rate = machine->level[TUTTI_LEVEL_NODE].bytes_per_s;
    double top_rate = machine->level[TUTTI_LEVEL_TOP].bytes_per_s;
    double bridge_rate = machine->bridge_bytes_per_s, trunk_rate = machine->trunk_bytes_per_s;
    double memory_rate = machine->memory_bytes_per_s;
    double nic_rate = 0; /* the highest bandwidth of a level between nodes */

    for (uint32_t level = TUTTI_LEVEL_GROUP; level < TUTTI_MACHINE_LEVELS; level++)
        if (tutti_sim_has_level(network, level) && machine->level[level].bytes_per_s > nic_rate)
            nic_rate = machine->level[level].bytes_per_s;
    set_links(network, network->ports, 2 * nranks, 1, node_rate);
    set_links(network, network->cells, 2 * places->ncells, bridge_rate, bridge_rate);
    set_links(network, network->nics, 2 * network->nnics, 1, nic_rate);
    set_links(network, network->trunks, 2 * places->ngroups, trunk_rate, trunk_rate);
    set_links(network, network->torus, 2 * nranks * places->ndims, 1, top_rate);
    set_links(network, network->memories, nnodes, memory_rate, memory_rate);
    set_links(network, network->node_cores, nnodes, machine->cores, machine->cores);
    set_links(network, network->rank_cores, nranks, 1, 1);
    for (uint32_t i = 0; i < tutti_machine_link_count(&machine->links); i++) {
        double bytes_per_s = tutti_machine_link(&machine->links, i)->bytes_per_s;

        set_links(network, network->path_links + i, 1, bytes_per_s, bytes_per_s);
    }
}

int tutti_sim_network_init(struct tutti_sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks)
{
    int rc;

    *network = (struct tutti_sim_network){.machine = machine, .nranks = nranks};
    TUTTI_TRY(tutti_sim_network_check(machine, nranks));
    TUTTI_TRY_OR(fail, rc, assign_nics(network));
    TUTTI_TRY_OR(fail, rc, number_links(network));
    set_capacities(network);
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
    free(network->fold);
    *network = (struct tutti_sim_network){.nranks = 0};
}

/* ---- names ------------------------------------------------------------------------ */

static bool is_among(uint32_t link, uint32_t first, uint32_t count)
{
    return first != TUTTI_SIM_NONE && link >= first && link - first < count;
}

/* Links of like parts have one name, so the number of the link tells them apart. */
static void name_path_link(const struct tutti_sim_network *network, uint32_t number, char *ret_name,
                           size_t size_bytes)
{
    const struct tutti_machine_links *links = &network->machine->links;
    const char *name = tutti_machine_link(links, number)->name;

    if (name[0] == '\0')
        snprintf(ret_name, size_bytes, "link %u", number);
    else if (links->nkinds > 0)
        snprintf(ret_name, size_bytes, "%s (link %u)", name, number);
    else
        snprintf(ret_name, size_bytes, "%s", name);
}

void tutti_sim_link_name(const struct tutti_sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes)
{
    const struct tutti_placement *places = &network->machine->places;
    static const char *const ways[] = {"out", "in"};

    if (is_among(link, network->ports, 2 * network->nranks)) {
        uint32_t port = link - network->ports;

        snprintf(ret_name, size_bytes, "rank %u %s", port / 2, ways[port % 2]);
    } else if (is_among(link, network->cells, 2 * places->ncells)) {
        uint32_t port = link - network->cells;

        snprintf(ret_name, size_bytes, "cell %u %s", port / 2, ways[port % 2]);
    } else if (is_among(link, network->nics, 2 * network->nnics)) {
        uint32_t port = link - network->nics, nic = port / 2;
        uint32_t node = tutti_sim_node_of(network, network->nic_rank[nic]);

        if (network->node_size[node] == 1 && places->node == NULL)
            snprintf(ret_name, size_bytes, "rank %u %s", node, ways[port % 2]);
        else
            snprintf(ret_name, size_bytes, "nic %u of node %u %s", network->nic_index[nic], node,
                     ways[port % 2]);
    } else if (is_among(link, network->trunks, 2 * places->ngroups)) {
        uint32_t port = link - network->trunks;

        snprintf(ret_name, size_bytes, "trunk %u %s", port / 2, ways[port % 2]);
    } else if (is_among(link, network->torus, 2 * network->nranks * places->ndims)) {
        uint32_t port = link - network->torus;

        snprintf(ret_name, size_bytes, "rank %u %c%c", port / 2 / places->ndims,
                 port % 2 ? '-' : '+', "xyzw"[port / 2 % places->ndims]);
    } else if (is_among(link, network->memories, tutti_sim_node_count(network))) {
        snprintf(ret_name, size_bytes, "memory %u", link - network->memories);
    } else if (is_among(link, network->rank_cores, network->nranks)) {
        snprintf(ret_name, size_bytes, "core of rank %u", link - network->rank_cores);
    } else if (is_among(link, network->path_links,
                        tutti_machine_link_count(&network->machine->links))) {
        name_path_link(network, link - network->path_links, ret_name, size_bytes);
    } else {
        snprintf(ret_name, size_bytes, "cores %u", link - network->node_cores);
    }
}
