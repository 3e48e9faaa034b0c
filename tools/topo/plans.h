/* SPDX-License-Identifier: Apache-2.0
 * Runs searches as the commands ask for them, and describes their results. */
#ifndef TUTTI_TOPO_PLANS_H
#define TUTTI_TOPO_PLANS_H

#include "topo/subject.h"
#include "topology/search/search.h"

/* The options --gpus, --pattern, --peers, --cross and --channels. */
struct wish {
    bool has_pattern[TUTTI_PATTERN_COUNT];
    uint32_t *gpus; /* ascending; NULL: all of the host */
    uint32_t ngpus;
    uint32_t host;  /* the host of these gpus, or the first host that has gpus */
    bool has_peers, may_cross;
    uint32_t nchannels;
};

/* Reads the options. `usual` gives the patterns if the user gives none: "all", or one name. Returns
 * REQUEST_GO, or the exit status, and then there is nothing to release. */
int wish_read(const struct request *request, const struct subject *subject, const char *usual,
              struct wish *ret_wish);
void wish_fini(struct wish *wish);

/* True if the wish concerns this host and the host has gpus. */
bool wish_has_host(const struct wish *wish, const struct subject *subject, uint32_t host);
/* Runs one search; returns what tutti_search returns. */
int plans_search(const struct subject *subject, const struct wish *wish, uint32_t host,
                 enum tutti_pattern pattern, struct tutti_channels **ret_plan);

/* The action of a command on the result of one search. Returns REQUEST_GO or the exit status. */
typedef int plans_visit_fn(const struct request *request, const struct subject *subject,
                           const struct wish *wish, uint32_t host,
                           const struct tutti_channels *plan);

/* Runs a command about searches: one search per wished pattern and host. Of equal hosts only the
 * first is searched. If an NVSwitch joins the hosts, TUTTI_ALL_HOSTS is searched first. `usual` is
 * as in wish_read. Returns the exit status; it is a mistake if no host has gpus. */
int plans_run(const struct request *request, const char *usual, plans_visit_fn *visit);

/* A group of channels with the same order. */
struct order {
    const struct tutti_channel *channel; /* the first channel of the group */
    uint32_t count;
};

/* Collects the different orders of a plan, sorted by first channel, and returns their number.
 * ret_orders has room for TUTTI_SEARCH_CHANNELS. */
uint32_t plans_orders(const struct tutti_channels *plan, struct order *ret_orders);

/* The text of an order: "0 1 3 2", or for a tree "0(1 2(3))", where 0 is the parent of 1 and 2. The
 * caller frees it. */
char *plans_order_text(const struct tutti_channels *plan, const struct tutti_channel *channel);
/* The gpu at the root of a channel's tree, as an index into the plan. */
uint32_t plans_root(const struct tutti_channels *plan, const struct tutti_channel *channel);

/* Bytes per second that all channels together put on each link of the graph. The caller frees the
 * array. */
double *plans_load(const struct subject *subject, const struct tutti_channels *plan);

/* The text of a rate: "120 GB/s", or "any rate" if no link bounds it. */
const char *plans_rate(double bytes_per_s, char text[NAME_BYTES]);
/* The name of a pattern: "ring", "tree", "broadcast tree". */
const char *plans_pattern_name(enum tutti_pattern pattern);

#endif
