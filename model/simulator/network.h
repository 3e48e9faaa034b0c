/* SPDX-License-Identifier: Apache-2.0
 * Describes the machine as links, and gives the routes of messages and work over these links. The
 * simulator shares the capacity of each link among the flows that cross it. The kinds of links:
 *
 *   rank out, in       between the ranks of a node
 *   cell out, in       between the cells of a node, if the machine gives the bridges' bandwidth
 *   nic out, in        between nodes; one per rank unless the machine gives another number
 *   trunk out, in      between groups of nodes
 *   torus +x, -x, ...  between neighbors in a torus, instead of NICs and trunks
 *   memory, cores      of a node
 *   core               of a rank that moves its messages itself
 *   link               of a machine that gives the paths between pairs of ranks; these paths
 *                      replace ports, trunks and torus
 *
 *   rank 3 -- nic 1 out -- trunk 0 out -- trunk 2 in -- nic 0 in -- rank 40
 *
 * A port is a link "out" or "in" of a rank or of a NIC. Most links have a capacity in bytes per
 * second. Exceptions:
 *   ports, torus    A port serves messages of different bandwidths. So its capacity is 1 second of
 *                   use per second.
 *   memory          in bytes loaded and stored per second
 *   cores, core     in seconds of work per second
 * The cores of nodes are links only if some node has fewer cores than ranks.
 */
#ifndef TUTTI_SIMULATOR_NETWORK_H
#define TUTTI_SIMULATOR_NETWORK_H

#include "algorithms/cost.h"
#include "simulator/score.h"

/* One link of a route. Each byte that a flow moves takes `weight` of the link's capacity and adds
 * `bytes` to the link's byte count. */
struct tutti_sim_crossing {
    uint32_t link;
    double weight, bytes;
};

/* The links that a message, a step's work or an overhead uses at the same time. */
struct tutti_sim_route {
    struct tutti_sim_crossing *crossings;
    uint32_t count, capacity;
    double bytes_per_s; /* rate of a flow that is alone; 0: no limit */
    double growth;      /* how fast the rate of its flow grows among others (flows.h); 0: in
                           proportion to bytes_per_s */
    /* For messages only: the costs of the message, and the ports of sender and receiver, as links.
     * The ports are TUTTI_SIM_NONE if the message uses a torus or a path of the machine. */
    struct tutti_rate rate;
    uint32_t out, in;
};

struct tutti_sim_network_link {
    double capacity;       /* per second, in the unit of the link's kind */
    double nominal;        /* for reports: the capacity, in bytes per second except for cores */
    double demand;         /* capacity that its flows would take if each flow were alone */
    struct tutti_sim_use *uses; /* list of the flows that cross the link: flows.h */
    uint32_t nuses;
    /* Working state of tutti_sim_flows_share. A flow is open as long as that call has not fixed its
     * rate. A link is tight if its demand exceeds its capacity. */
    uint32_t change;          /* number of the last change for which the link was considered */
    uint32_t nopen;           /* number of its open flows */
    double spare, wanted;     /* capacity left for the open flows; capacity they would take alone */
    bool is_tight, was_tight; /* now; when it was last considered */
    bool is_dirty;            /* a flow on it has begun or ended since rates were last computed */
    /* For reports: traffic so far; time in use so far, except for the current use; begin of the
     * current use */
    double bytes, busy_s, busy_since_s;
    /* For ports with an overhead: the message that holds the port, and the first and last of the
     * waiting messages. They wait in the order in which they became ready. TUTTI_SIM_NONE: no
     * message. */
    uint32_t holder, head, tail;
};

struct tutti_sim_network {
    const struct tutti_machine *machine;
    uint32_t nranks;
    struct tutti_sim_network_link *links;
    uint32_t nlinks;
    /* Index of the first link of each kind; TUTTI_SIM_NONE: there are no links of this kind.
     * `ports` are those of ranks. `path_links` are the links of a machine that gives the paths of
     * pairs. Kinds with two directions have the links 0 out, 0 in, 1 out, 1 in, ... */
    uint32_t ports, cells, nics, trunks, torus, memories, node_cores, rank_cores, path_links;
    uint32_t nnics;       /* of all nodes */
    uint32_t *nic;        /* per rank: the index of its NIC, counted through all nodes */
    uint32_t *node_size;  /* per node: number of its ranks */
    const uint32_t *among; /* borrowed from the score being played: score.h */
    uint32_t *nic_rank, *nic_index; /* per NIC: first rank served; index in its node */
    uint32_t *fold; /* per link: the link that stands for it (symmetry.h); NULL: each for itself */
};

/* Return the link out of rank, cell, NIC or group number `index`, and the link into it. `first` is
 * the first link of the kind. In a torus, `index` counts the dimensions of all ranks. */
static inline uint32_t tutti_sim_link_out(uint32_t first, uint32_t index)
{
    return first + 2 * index;
}

static inline uint32_t tutti_sim_link_in(uint32_t first, uint32_t index)
{
    return first + 2 * index + 1;
}

/* Returns the costs of messages at a level. `level` is an enum tutti_level. */
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
    const struct tutti_placement *places = &network->machine->places;

    return places->node ? places->nnodes : network->nranks;
}

/* Checks that a network can be made of this machine. TUTTI_ERR_ARGUMENT: the machine has another
 * number of ranks, or a level lacks a bandwidth. */
int tutti_sim_network_check(const struct tutti_machine *machine, uint32_t nranks);
/* Makes the links of the machine, after the check above. The network keeps a pointer to the
 * machine, which must outlive the network. The caller releases the network with
 * tutti_sim_network_fini. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_network_init(struct tutti_sim_network *network, const struct tutti_machine *machine,
                           uint32_t nranks);
void tutti_sim_network_fini(struct tutti_sim_network *network);

/* The three route functions are in routes.c. They overwrite *route and reuse the array
 * route->crossings, which the caller frees in the end. TUTTI_ERR_SYSTEM: out of memory. This
 * function gives the route of a message between two ranks, on a channel of its schedule. */
int tutti_sim_route_message(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                            uint8_t channel, struct tutti_sim_route *route);
/* Gives the route of a step's own work. The work is a local or one-sided step, or the reduction of
 * received data. */
int tutti_sim_route_work(const struct tutti_sim_network *network, const struct tutti_sim_step *step,
                         struct tutti_sim_route *route);
/* Gives the cores that execute a message's overhead as a route. The route is empty if the overhead
 * holds only ports. */
int tutti_sim_route_overhead(const struct tutti_sim_network *network, uint32_t from, uint32_t to,
                             struct tutti_sim_route *route);

/* True if some pair of nodes is at this level, which is TUTTI_LEVEL_GROUP or TUTTI_LEVEL_TOP. */
bool tutti_sim_has_level(const struct tutti_sim_network *network, uint32_t level);

/* Writes the name of a link for reports, for instance "nic 1 of node 3 out". */
void tutti_sim_link_name(const struct tutti_sim_network *network, uint32_t link, char *ret_name,
                         size_t size_bytes);

#endif
