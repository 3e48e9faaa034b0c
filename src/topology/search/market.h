/* SPDX-License-Identifier: Apache-2.0
 * What a search is about, without its names: places, links of some capacity, and which links each
 * place needs to reach each other one. Links have prices in the course of a search.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_MARKET_H
#define TUTTI_TOPOLOGY_SEARCH_MARKET_H

#include "topology/search/search.h"

struct market_hop {
    uint32_t link;  /* of the market */
    double demand;
};

struct market_path {
    uint32_t first, nhops;
    enum tutti_path_class class;
};

/* Places 0 .. ngpus-1 are gpus, the rest are nets. */
struct market {
    uint32_t ngpus, nnets, nplaces;
    uint32_t *node;          /* of the graph, per place */
    struct market_path *path; /* path[a * nplaces + b]; class DIS: none */
    struct market_hop *hop;
    uint32_t nlinks;
    uint32_t *link;          /* of the graph */
    double *capacity;        /* bytes per second */
    bool may_cross;
    uint32_t nchannels;      /* that there may be in the end */
};

int tutti_market_open(struct market *market, const struct tutti_paths *paths,
                      const struct tutti_search_options *options);
void tutti_market_close(struct market *market);

/* One ring or tree: places that follow each other, and what it takes of each link. */
struct column {
    uint32_t *gpu;           /* as a channel's */
    uint32_t net_in, net_out; /* places, or TUTTI_NO_NODE */
    double *use;             /* per link of the market: bytes for one of the channel's */
};

int tutti_column_create(const struct market *market, struct column *column);
void tutti_column_destroy(struct column *column);
/* Fill in `use` from the places. */
void tutti_column_measure(const struct market *market, enum tutti_pattern pattern,
                          struct column *column);
bool tutti_column_equal(const struct market *market, const struct column *a,
                        const struct column *b);

/* The cost of each path at these prices of links: cost[a * nplaces + b]; infinite where there is
 * none. */
void tutti_market_costs(const struct market *market, const double *price, double *ret_cost);

/* The cheapest ring or tree that was found, and a bound: none is cheaper than *ret_least. `effort`:
 * whether to prove as well as can be; without it the bound may be 0. */
int tutti_cheapest_ring(const struct market *market, const double *cost, bool with_effort,
                        struct column *column, double *ret_cost, double *ret_least);
int tutti_cheapest_tree(const struct market *market, const double *cost,
                        enum tutti_pattern pattern, struct column *column, double *ret_cost);

#endif
