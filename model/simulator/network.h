/* SPDX-License-Identifier: Apache-2.0
 * The machine as links, and the routes of messages and work over these links.
 *
 *   rank out, in       between the ranks of a node
 *   cell out, in       between the cells of a node, where the machine gives the bridges' bandwidth
 *   nic out, in        between nodes; one per rank unless the machine says otherwise
 *   trunk out, in      between groups
 *   torus +x, -x, ...  between neighbors, instead of all these
 *   memory, cores      of a node
 *   core               of a rank that moves its messages itself
 *   link               of a machine that gives the paths of pairs: these go along its links
 *                      instead of through ports, trunks and torus
 *
 *   rank 3 -- nic 1 out -- trunk 0 out -- trunk 2 in -- nic 0 in -- rank 40
 *
 * The unit of memory is bytes loaded and stored per second. The unit of cores is seconds of work
 * per second. A node's cores are a link only where the node has fewer cores than ranks. One rank's
 * core uses the same unit.
 */
#ifndef TUTTI_SIMULATOR_NETWORK_H
#define TUTTI_SIMULATOR_NETWORK_H

#include "simulator/score.h"

/* One link of a route. Each byte moved takes `weight` of the link's capacity and adds `bytes` to
 * its byte count. */
struct tutti_sim_crossing {
    uint32_t link;
    double weight, bytes;
};

struct tutti_sim_route {
    struct tutti_sim_crossing *at;
    uint32_t count, capacity;
    double bytes_per_s; /* rate of a flow that is alone; 0: no limit */
    /* For messages only: */
    struct tutti_rate rate;
    uint32_t out, in;   /* ports, or SIM_NONE */
};

struct tutti_sim_wire {
    double capacity;       /* per second */
    double nominal;        /* the same in bytes, for reports */
    double demand;         /* what the flows that cross it would take if each were alone */
    struct tutti_sim_use *uses; /* flows.h */
    uint32_t nuses;
    /* State of sharing (flows.c): */
    uint32_t number, nopen; /* the last change that reached it; its flows without a rate yet */
    double spare, wanted;   /* capacity left for those flows, and what they would take alone */
    bool is_tight, was_tight, is_dirty;
    double bytes, busy_s, busy_since_s;
    /* For ports with an overhead: the message that holds the port, and the queue of waiting
     * messages in the order in which they became ready. */
    uint32_t holder, head, tail;
};

struct tutti_sim_network {
    const struct tutti_machine *machine;
    uint32_t nranks;
    struct tutti_sim_wire *links;
    uint32_t nlinks;
    /* Index of the first link of each kind; SIM_NONE: there are none. */
    uint32_t ports, cells, nics, trunks, torus, memories, cores, own_cores, given;
    uint32_t nnics;
    uint32_t *nic;        /* per rank: the index of its NIC, counted through all nodes */
    uint32_t *node_size;  /* per node */
    const uint32_t *among; /* borrowed from the score being played: score.h */
    uint32_t *nic_rank, *nic_index; /* per NIC: first rank served; index in its node */
};

static inline const struct tutti_rate *tutti_sim_rate_of(const struct tutti_sim_network *network,
                                                         uint32_t level)
{
    return &network->machine->level[level];
}

static inline uint32_t tutti_sim_node_of(const struct tutti_sim_network *network, uint32_t rank)
{
    const uint32_t *node = network->machine->places.node;

    return node ? node[rank] : rank;
}

static inline uint32_t tutti_sim_node_count(const struct tutti_sim_network *network)
{
    const struct tutti_places *places = &network->machine->places;

    return places->node ? places->nnodes : network->nranks;
}

/* TUTTI_ERR_ARGUMENT: the machine has another number of ranks, or a level lacks a bandwidth.
 * tutti_sim_network_init makes the same check. The network keeps a pointer to the machine, which
 * must outlive it. */
int tutti_sim_network_check(const struct tutti_machine *machine, uint32_t nranks);
int tutti_sim_network_init(struct tutti_sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks);
void tutti_sim_network_fini(struct tutti_sim_network *network);

/* routes.c. The route functions overwrite *route; the caller frees route->at. TUTTI_ERR_SYSTEM: out
 * of memory. This one gives the route of a message. */
int tutti_sim_route_message(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                            struct tutti_sim_route *route);
/* The route of a step's own work: a local or one-sided step, or the reduction of received data. */
int tutti_sim_route_work(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                         struct tutti_sim_route *route);
/* The cores that execute a message's overhead. The route is empty if the overhead holds ports only.
 */
int tutti_sim_route_overhead(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                             struct tutti_sim_route *route);

/* True if some pair of nodes is at this level: 1 within a group, 2 beyond. */
bool tutti_sim_has_level(const struct tutti_sim_network *network, uint32_t level);

/* The name of a link for reports, for instance "nic 1 of node 3 out". */
void tutti_sim_link_name(const struct tutti_sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes);

#endif
