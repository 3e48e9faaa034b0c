/* SPDX-License-Identifier: Apache-2.0
 * Holds the problem of a search in abstract form: places, links with capacities, and the links on
 * the path from each place to each other place. During a search each link has a price, and the cost
 * of a path is the sum of the prices of its links.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_PRICING_H
#define TUTTI_TOPOLOGY_SEARCH_PRICING_H

#include "topology/search/search.h"

/* One link of a path. */
struct tutti_pricing_hop {
    uint32_t link; /* index in the pricing */
    double demand; /* bytes on the link per byte on the path */
};

struct tutti_pricing_path {
    uint32_t first, nhops; /* range in `hop` */
    enum tutti_path_class class;
};

/* Places 0 .. ngpus-1 are gpus, the others are nets. */
struct tutti_pricing {
    uint32_t ngpus, nnets, nplaces;
    uint32_t *node;                  /* per place: node of the graph */
    struct tutti_pricing_path *path; /* path[a * nplaces + b]; class DIS: no path */
    struct tutti_pricing_hop *hop;   /* hops of all paths, path after path */
    double *penalty; /* per path: its cost beside the prices of its links; 0: none (taste.h) */
    uint32_t nlinks;
    uint32_t *link;   /* per link: link of the graph */
    double *capacity; /* bytes per second */
    bool is_quick;      /* the heuristic search for rings makes few attempts */
    bool may_cross;     /* a channel may leave through another net than it enters by */
    double joint_load;  /* times that a tree used both ways enters and leaves the hosts (joint.h) */
    uint32_t nchannels; /* upper bound for the channels of the final plan */
};

/* Fills in *pricing; the caller frees *pricing with tutti_pricing_close(), on error too.
 * TUTTI_ERR_ARGUMENT: no gpu, no net, too many gpus, or no path between two places;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_pricing_open(struct tutti_pricing *pricing, const struct tutti_paths *paths,
                       const struct tutti_search_options *options);
/* Frees the arrays; a zeroed struct is allowed. */
void tutti_pricing_close(struct tutti_pricing *pricing);

/* Returns true if a search covers this host. */
bool tutti_pricing_has_host(const struct tutti_search_options *options, uint32_t host);

/* A column of the linear program, which is one ring or tree, with its order and its use of each
 * link. */
struct tutti_search_column {
    uint32_t *gpu;            /* as in struct tutti_channel */
    uint32_t net_in, net_out; /* places, or TUTTI_NO_NODE */
    double *use; /* per link of the pricing: bytes on the link per byte of the channel */
    double penalty; /* sum over its paths */
};

/* Allocates the arrays of an empty column; the caller frees them with tutti_column_destroy().
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_column_create(const struct tutti_pricing *pricing, struct tutti_search_column *column);
/* Frees the arrays and leaves the struct zeroed. */
void tutti_column_destroy(struct tutti_search_column *column);
/* Computes `use` and `penalty` from the order and the nets. */
void tutti_column_measure(const struct tutti_pricing *pricing, enum tutti_pattern pattern,
                          struct tutti_search_column *column);

/* Computes the cost of each path for given prices of links, and with its penalty:
 * cost[a * nplaces + b]; infinite if there is no path. */
void tutti_pricing_costs(const struct tutti_pricing *pricing, const double *price,
                         double *ret_cost);

/* These functions find the cheapest ring or tree at given costs of paths, and store it in *column.
 * *ret_cost is infinite if there is none, and *column then has no use. A tree is always the exact
 * optimum. A ring is the best one found, and *ret_least is a lower bound on the cost of any ring.
 * The bound is as tight as possible if with_effort is set, and may be 0 otherwise.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_pricing_cheapest_ring(const struct tutti_pricing *pricing, const double *cost,
                                bool with_effort, struct tutti_search_column *column,
                                double *ret_cost, double *ret_least);
int tutti_pricing_cheapest_tree(const struct tutti_pricing *pricing, const double *cost,
                                enum tutti_pattern pattern, struct tutti_search_column *column,
                                double *ret_cost);

#endif
