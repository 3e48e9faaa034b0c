/* SPDX-License-Identifier: Apache-2.0
 * Which ranks are in which node and group, for hierarchical algorithms.
 *
 *   group 0              group 1          group 2
 *   node 0     node 1    node 2           node 3
 *   0 1 2 3    4   5     6 7 8 9          10                 ranks
 *   | | | |   / \ / \    | | | |       / / \ \
 *   0 1 2 3   0 1 2 3    0 1 2 3       0 1 2 3               parts
 *
 * The ranks of each node divide the same parts among them: a rank serves some of the parts. There
 * are as many parts as the largest node has ranks. In a smaller node a rank serves several adjacent
 * parts, divided as evenly as possible. A rail consists of the ranks that serve the same part in
 * all nodes. So every node takes part in every rail. In a node of full size each rank is on one
 * rail, and may reach the network through a port of its own.
 *
 * In the same way the nodes of a group serve seats; there are as many seats as the largest group
 * has nodes.
 *
 * If groups are unknown, or there is only one, each node is a group of its own. If nodes are
 * unknown, each rank is a node.
 */
#ifndef TUTTI_ALGORITHMS_NODES_H
#define TUTTI_ALGORITHMS_NODES_H

#include "schedule/shape.h"

/* Items, numbered from 0, and the home that each belongs to. Used for ranks in nodes, and for nodes
 * in groups. */
struct tutti_homes {
    /* Number of homes; items of the largest and of the smallest home. */
    uint32_t count, most, least;
    uint32_t *home;       /* per item: its home */
    uint32_t *index;      /* per item: its index among the items of its home, in ascending order */
    /* Sorted by home; those of home h are items[first[h]] .. items[first[h + 1] - 1]. */
    uint32_t *items;
    uint32_t *first;
};

struct tutti_nodes {
    struct tutti_homes ranks; /* ranks in nodes */
    struct tutti_homes nodes; /* nodes in groups */
    uint32_t me, node, group; /* this rank, its node and its group */
    uint32_t nparts, nseats; /* ranks of the largest node, nodes of the largest group */
};

/* Sort the ranks of the shape into nodes, and the nodes into groups. The caller frees *ret_nodes
 * with tutti_nodes_fini. TUTTI_ERR_SYSTEM: no memory. TUTTI_ERR_ARGUMENT: the places name a node or
 * group that does not exist, or one that is empty. */
int tutti_nodes_init(const struct tutti_shape *shape, struct tutti_nodes *ret_nodes);
/* Free the lists; a zeroed object is ignored. */
void tutti_nodes_fini(struct tutti_nodes *nodes);

/* The largest number of parts that any rank serves, and of seats that any node serves. */
static inline uint32_t tutti_nodes_most_parts(const struct tutti_nodes *nodes)
{
    return (nodes->nparts + nodes->ranks.least - 1) / nodes->ranks.least;
}

static inline uint32_t tutti_nodes_most_seats(const struct tutti_nodes *nodes)
{
    return (nodes->nseats + nodes->nodes.least - 1) / nodes->nodes.least;
}

/* The fraction of a vector that goes through the busiest port when the members of each home divide
 * their vectors into `total` parts and reduce-scatter or all-gather them. It is 1 - 1 / n if n
 * members have equal shares. */
double tutti_homes_exchanged(const struct tutti_homes *homes, uint32_t total);

/* ---- sharing: `total` parts among `count` members, in order ------------------------------ */

/* The first part of a member. Its parts end where those of the next member begin. */
static inline uint32_t tutti_nodes_share_first(uint32_t total, uint32_t count, uint32_t member)
{
    return (uint32_t)(((uint64_t)member * total + count - 1) / count);
}

/* The member that serves a part. */
static inline uint32_t tutti_nodes_share_member(uint32_t total, uint32_t count, uint32_t part)
{
    return (uint32_t)((uint64_t)part * count / total);
}

/* Parts first .. end - 1. */
struct tutti_nodes_parts {
    uint32_t first, end;
};

static inline struct tutti_nodes_parts tutti_nodes_share_of(uint32_t total, uint32_t count,
                                                            uint32_t member)
{
    return (struct tutti_nodes_parts){tutti_nodes_share_first(total, count, member),
                                      tutti_nodes_share_first(total, count, member + 1)};
}

/* ---- nodes and groups --------------------------------------------------------------------- */

/* Number of items of a home. */
static inline uint32_t tutti_homes_size(const struct tutti_homes *homes, uint32_t home)
{
    return homes->first[home + 1] - homes->first[home];
}

/* Item number `index` of a home, in ascending order. */
static inline uint32_t tutti_homes_item(const struct tutti_homes *homes, uint32_t home,
                                        uint32_t index)
{
    return homes->items[homes->first[home] + index];
}

/* The parts that a rank serves in its node, and the seats that a node serves in its group. */
static inline struct tutti_nodes_parts tutti_nodes_parts_of(const struct tutti_nodes *nodes,
                                                            uint32_t rank)
{
    return tutti_nodes_share_of(nodes->nparts,
                                tutti_homes_size(&nodes->ranks, nodes->ranks.home[rank]),
                                nodes->ranks.index[rank]);
}

static inline struct tutti_nodes_parts tutti_nodes_seats_of(const struct tutti_nodes *nodes,
                                                            uint32_t node)
{
    return tutti_nodes_share_of(nodes->nseats,
                                tutti_homes_size(&nodes->nodes, nodes->nodes.home[node]),
                                nodes->nodes.index[node]);
}

/* Pick one of the parts of a rank, or one of the seats of a node, for its data to travel with. The
 * choice depends on `number`, the number of the home, so that small nodes do not all use the same
 * rails. Multiplying by the golden ratio spreads the choices evenly. */
static inline uint32_t tutti_nodes_pick(struct tutti_nodes_parts own, uint32_t number)
{
    uint64_t fraction = (uint32_t)(number * UINT32_C(2654435769));

    return own.first + (uint32_t)(fraction * (own.end - own.first) >> 32);
}

static inline uint32_t tutti_nodes_pick_part(const struct tutti_nodes *nodes, uint32_t rank)
{
    return tutti_nodes_pick(tutti_nodes_parts_of(nodes, rank), nodes->ranks.home[rank]);
}

static inline uint32_t tutti_nodes_pick_seat(const struct tutti_nodes *nodes, uint32_t node)
{
    return tutti_nodes_pick(tutti_nodes_seats_of(nodes, node), nodes->nodes.home[node]);
}

/* The rank that serves a part in a node, and the node that serves a seat in a group. */
static inline uint32_t tutti_nodes_rank_serving(const struct tutti_nodes *nodes, uint32_t node,
                                                uint32_t part)
{
    uint32_t member =
        tutti_nodes_share_member(nodes->nparts, tutti_homes_size(&nodes->ranks, node), part);

    return tutti_homes_item(&nodes->ranks, node, member);
}

static inline uint32_t tutti_nodes_node_serving(const struct tutti_nodes *nodes, uint32_t group,
                                                uint32_t seat)
{
    uint32_t member =
        tutti_nodes_share_member(nodes->nseats, tutti_homes_size(&nodes->nodes, group), seat);

    return tutti_homes_item(&nodes->nodes, group, member);
}

#endif
