/* SPDX-License-Identifier: Apache-2.0
 * Who lives where, counted out for algorithms that go by nodes and groups.
 *
 *   group 0              group 1          group 2            A rail is what the ranks that serve
 *   node 0     node 1    node 2           node 3             one part have between the nodes: its
 *   0 1 2 3    4   5     6 7 8 9          10                 ranks reach the network each through
 *   | | | |   / \ / \    | | | |       / / \ \               a port of their own.
 *   0 1 2 3   0 1 2 3    0 1 2 3       0 1 2 3   <- parts
 *
 * There are as many parts as the largest node has ranks. In a smaller one some ranks serve several
 * parts, neighbours, as evenly as can be: so all nodes take part in every rail. In the same way
 * the nodes of a group serve as many seats as the largest group has nodes.
 *
 * Where nothing is known of groups, or there is one only, each node is a group of its own; where
 * nothing is known of nodes, each rank is a node.
 */
#ifndef TUTTI_ALGORITHMS_NODES_H
#define TUTTI_ALGORITHMS_NODES_H

#include "schedule/shape.h"

/* Items, numbered from 0, and the homes they live in. */
struct homes {
    uint32_t count, most, least; /* homes; items of the largest and of the smallest */
    uint32_t *home;       /* per item */
    uint32_t *index;      /* per item: which of its home's items it is, in the order of numbers */
    uint32_t *items;      /* home by home: those of h from items[first[h]] to [first[h + 1] - 1] */
    uint32_t *first;
};

struct nodes {
    struct homes ranks; /* in nodes */
    struct homes nodes; /* in groups */
    uint32_t me, node, group; /* this rank, its node and its group */
    uint32_t nparts, nseats; /* ranks of the largest node, nodes of the largest group */
};

/* TUTTI_ERR_SYSTEM; TUTTI_ERR_ARGUMENT if places name a node or group that is not there, or if
 * nobody lives in one. */
int tutti_nodes_init(const struct tutti_shape *shape, struct nodes *ret_nodes);
/* A zeroed object is ignored. */
void tutti_nodes_fini(struct nodes *nodes);

/* Most parts that a rank serves, and most seats that a node serves. */
static inline uint32_t nodes_most_parts(const struct nodes *nodes)
{
    return (nodes->nparts + nodes->ranks.least - 1) / nodes->ranks.least;
}

static inline uint32_t nodes_most_seats(const struct nodes *nodes)
{
    return (nodes->nseats + nodes->nodes.least - 1) / nodes->nodes.least;
}

/* How much of a vector goes through the busiest port when the members of a home share out their
 * vectors in `total` parts and sum those up, or gather them again: 1 - 1 / n for n equal shares. */
double tutti_homes_exchanged(const struct homes *homes, uint32_t total);

/* ---- sharing: `total` parts among `count` members, in order ------------------------------ */

/* The first part of a member; that of the next one is where its parts end. */
static inline uint32_t share_first(uint32_t total, uint32_t count, uint32_t member)
{
    return (uint32_t)(((uint64_t)member * total + count - 1) / count);
}

static inline uint32_t share_member(uint32_t total, uint32_t count, uint32_t part)
{
    return (uint32_t)((uint64_t)part * count / total);
}

/* Parts first .. end - 1. */
struct parts {
    uint32_t first, end;
};

static inline struct parts share_of(uint32_t total, uint32_t count, uint32_t member)
{
    return (struct parts){share_first(total, count, member), share_first(total, count, member + 1)};
}

/* ---- nodes and groups --------------------------------------------------------------------- */

static inline uint32_t homes_size(const struct homes *homes, uint32_t home)
{
    return homes->first[home + 1] - homes->first[home];
}

/* The parts that a rank serves in its node, and the seats that a node serves in its group. */
static inline struct parts parts_of(const struct nodes *nodes, uint32_t rank)
{
    return share_of(nodes->nparts, homes_size(&nodes->ranks, nodes->ranks.home[rank]),
                    nodes->ranks.index[rank]);
}

static inline struct parts seats_of(const struct nodes *nodes, uint32_t node)
{
    return share_of(nodes->nseats, homes_size(&nodes->nodes, nodes->nodes.home[node]),
                    nodes->nodes.index[node]);
}

/* Where what belongs to one rank, or to one node, travels: with one of its parts, or seats; not
 * always the first, so that small nodes do not all use the same rails. Multiples of the golden
 * ratio are spread evenly. */
static inline uint32_t home_among(struct parts own, uint32_t number)
{
    uint64_t fraction = (uint32_t)(number * UINT32_C(2654435769));

    return own.first + (uint32_t)(fraction * (own.end - own.first) >> 32);
}

static inline uint32_t home_part(const struct nodes *nodes, uint32_t rank)
{
    return home_among(parts_of(nodes, rank), nodes->ranks.home[rank]);
}

static inline uint32_t home_seat(const struct nodes *nodes, uint32_t node)
{
    return home_among(seats_of(nodes, node), nodes->nodes.home[node]);
}

/* The rank that serves a part in a node, and the node that serves a seat in a group. */
static inline uint32_t rank_serving(const struct nodes *nodes, uint32_t node, uint32_t part)
{
    uint32_t member = share_member(nodes->nparts, homes_size(&nodes->ranks, node), part);

    return nodes->ranks.items[nodes->ranks.first[node] + member];
}

static inline uint32_t node_serving(const struct nodes *nodes, uint32_t group, uint32_t seat)
{
    uint32_t member = share_member(nodes->nseats, homes_size(&nodes->nodes, group), seat);

    return nodes->nodes.items[nodes->nodes.first[group] + member];
}

#endif
