/* SPDX-License-Identifier: Apache-2.0
 * Decides which way data takes between any two gpus: through which ports it goes if they are on
 * different hosts. A channel of a plan keeps the ports that the search gave it. All other pairs use
 * the ports that are dealt out to the gpus (ports.h). A pair has one way, so the first channel that
 * joins the two gpus determines it.
 *
 * A plan is one of host 0, and is repeated on the other hosts. Rings go through one host after the
 * other. The trees of the hosts are joined by a binary tree of their roots. */
#ifndef TUTTI_TOPOLOGY_SEARCH_WAYS_H
#define TUTTI_TOPOLOGY_SEARCH_WAYS_H

#include "topology/graph/ports.h"
#include "topology/machine/machine.h"
#include "topology/search/search.h"

/* The ports of a way, as graph nodes. `out` is TUTTI_NO_NODE if no channel plans the way. */
struct tutti_search_port_pair {
    uint32_t out, in;
};

/* Rank r is gpu r of the graph. */
struct tutti_search_ways {
    const struct tutti_paths *paths; /* borrowed */
    uint32_t nranks;
    struct tutti_ports *dealt;
    struct tutti_search_port_pair *planned; /* [nranks][nranks]: from, to */
    double *load; /* per link of the graph: how often the rings of host 0 cross it */
    bool is_shifted[TUTTI_MACHINE_ORDERS]; /* per ring: it begins at the last gpu of the channel */
};

/* Plans the ways; both plans may be NULL. Of each plan the first TUTTI_MACHINE_ORDERS channels are
 * used. The caller destroys the ways. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search_ways_plan(const struct tutti_paths *paths, const struct tutti_channels *ring,
                           const struct tutti_channels *tree, struct tutti_search_ways **ret_ways);
/* Frees the ways, but not the paths; NULL is allowed. */
void tutti_search_ways_destroy(struct tutti_search_ways *ways);

/* Stores the paths that follow each other on the way between two gpus, and returns how many there
 * are. */
uint32_t tutti_search_ways_between(const struct tutti_search_ways *ways, uint32_t from, uint32_t to,
                                   const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS]);

/* Returns the number of gpus of a host for which the plan is repeated, which is all gpus if it is a
 * plan of all hosts. 0: the plan cannot be repeated, or is NULL. */
uint32_t tutti_search_repeated_gpus(const struct tutti_search_ways *ways,
                                    const struct tutti_channels *plan);
/* Returns the gpu at position `i` of ring channel `c` within its host. */
uint32_t tutti_search_ring_gpu(const struct tutti_search_ways *ways,
                               const struct tutti_channels *plan, uint32_t c, uint32_t i);
/* Returns the index of the root of a tree channel among the gpus of its plan. */
uint32_t tutti_search_tree_root(const struct tutti_channels *plan,
                                const struct tutti_channel *channel);

/* Returns the parent of a host in the binary tree of roots. Host 0 is its root. */
static inline uint32_t tutti_search_parent_host(uint32_t host)
{
    return (host - 1) / 2;
}

#endif
