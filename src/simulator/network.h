/* SPDX-License-Identifier: Apache-2.0
 * The machine as links, and the links that something crosses.
 *
 *   rank out, in       between the ranks of a node
 *   cell out, in       between the cells of a node, where the machine says what bridges carry
 *   nic out, in        between nodes; one per rank unless the machine says otherwise
 *   trunk out, in      between groups
 *   torus +x, -x, ...  between neighbours, instead of all these
 *   memory, cores      of a node
 *   core               of a rank that moves its messages itself
 *   link               of a machine that gives the paths of pairs: these go along its links
 *                      instead of through ports, trunks and torus
 *
 *   rank 3 -- nic 1 out -- trunk 0 out -- trunk 2 in -- nic 0 in -- rank 40
 *
 * Memory is bytes loaded and stored per second; cores are seconds of work per second, and a link
 * only where a node has fewer of them than ranks; so is one rank's core.
 */
#ifndef TUTTI_SIMULATOR_NETWORK_H
#define TUTTI_SIMULATOR_NETWORK_H

#include "simulator/score.h"

/* Something that goes along a route takes `weight` of a link's capacity per byte, and leaves
 * `bytes` on its account. */
struct sim_crossing {
    uint32_t link;
    double weight, bytes;
};

struct sim_route {
    struct sim_crossing *at;
    uint32_t count, capacity;
    double bytes_per_s; /* of something that is alone; 0: no limit */
    /* Of messages: */
    struct tutti_rate rate;
    uint32_t out, in;   /* ports, or SIM_NONE */
};

struct sim_link {
    double capacity;       /* per second */
    double nominal;        /* the same in bytes, for reports */
    double demand;         /* what those that cross it would take if each were alone */
    struct sim_use *uses;  /* flows.h */
    uint32_t nuses;
    /* Of sharing (flows.c): */
    uint32_t number, nopen; /* the change that has reached it; its flows without a rate */
    double spare, wanted;   /* what those may take, and what they would */
    bool is_tight, was_tight, is_dirty;
    double bytes, busy_s, busy_since_s;
    /* Ports with an overhead: who holds it, and who waits, in the order of getting ready. */
    uint32_t holder, head, tail;
};

struct sim_network {
    const struct tutti_machine *machine;
    uint32_t nranks;
    struct sim_link *links;
    uint32_t nlinks;
    /* The first link of each kind; SIM_NONE: there are none. */
    uint32_t ports, cells, nics, trunks, torus, memories, cores, own_cores, given;
    uint32_t nnics;
    uint32_t *nic;        /* per rank: its own, counted through all nodes */
    uint32_t *node_size;  /* per node */
    const uint32_t *among; /* of the score that is played: score.h */
    uint32_t *nic_rank, *nic_index; /* per nic: the first rank that it serves; its number there */
};

static inline const struct tutti_rate *sim_rate_of(const struct sim_network *network,
                                                   uint32_t level)
{
    return &network->machine->level[level];
}

static inline uint32_t sim_node_of(const struct sim_network *network, uint32_t rank)
{
    const uint32_t *node = network->machine->places.node;

    return node ? node[rank] : rank;
}

static inline uint32_t sim_node_count(const struct sim_network *network)
{
    const struct tutti_places *places = &network->machine->places;

    return places->node ? places->nnodes : network->nranks;
}

/* TUTTI_ERR_ARGUMENT: the machine is for another number of ranks, or lacks a rate. Init checks,
 * too. */
int tutti_sim_network_check(const struct tutti_machine *machine, uint32_t nranks);
int tutti_sim_network_init(struct sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks);
void tutti_sim_network_fini(struct sim_network *network);

/* routes.c. What a message crosses. */
int tutti_sim_route_message(const struct sim_network *network, uint32_t from, uint32_t to,
                            struct sim_route *route);
/* What a step's own work crosses, the reduction of what has arrived included. */
int tutti_sim_route_work(const struct sim_network *network, const struct sim_step *step,
                         struct sim_route *route);
/* The cores that a message's overhead is spent on; none when it holds ports only. */
int tutti_sim_route_overhead(const struct sim_network *network, uint32_t from, uint32_t to,
                             struct sim_route *route);

/* Are any nodes so far apart, 1 within a group, 2 beyond? */
bool tutti_sim_has_level(const struct sim_network *network, uint32_t level);

/* "nic 1 of node 3 out" */
void tutti_sim_link_name(const struct sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes);

#endif
