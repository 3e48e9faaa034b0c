/* SPDX-License-Identifier: Apache-2.0
 * Searches as the commands ask for them, and what comes of them. */
#ifndef TUTTI_TOPO_PLANS_H
#define TUTTI_TOPO_PLANS_H

#include "topo/subject.h"
#include "topology/search/search.h"

/* What --gpus, --pattern, --peers, --cross and --channels say. */
struct wish {
    bool has_pattern[TUTTI_PATTERN_COUNT];
    uint32_t *gpus; /* ascending; NULL: those of the host */
    uint32_t ngpus;
    uint32_t host;  /* of these gpus, or the first that has some */
    bool has_peers, may_cross;
    uint32_t nchannels;
};

/* `usual` are the patterns where none is given: "all", or one's name. REQUEST_GO or the exit
 * status, and then nothing is left to finish. */
int wish_read(const struct request *request, const struct subject *subject, const char *usual,
              struct wish *ret_wish);
void wish_fini(struct wish *wish);

/* Does the wish have anything to do with this host, and has it gpus? */
bool wish_has_host(const struct wish *wish, const struct subject *subject, uint32_t host);
/* One search; gives what tutti_search gives. */
int plans_search(const struct subject *subject, const struct wish *wish, uint32_t host,
                 enum tutti_pattern pattern, struct tutti_channels **ret_plan);

/* What a command does with one search's result. Gives REQUEST_GO or the exit status. */
typedef int plans_visit_fn(const struct request *request, const struct subject *subject,
                           const struct wish *wish, uint32_t host,
                           const struct tutti_channels *plan);

/* A command about searches: of each pattern that is wished, for each host of the wish, but of hosts
 * that are alike for the first; before them for TUTTI_ALL_HOSTS where an NVSwitch joins them.
 * `usual` as of wish_read. Gives the exit status; it is a mistake if no host has gpus. */
int plans_run(const struct request *request, const char *usual, plans_visit_fn *visit);

/* Channels of one order, counted. */
struct order {
    const struct tutti_channel *channel; /* the first of them */
    uint32_t count;
};

/* The orders of a plan, in that of their first channels; room for TUTTI_SEARCH_CHANNELS. */
uint32_t plans_orders(const struct tutti_channels *plan, struct order *ret_orders);

/* "0 1 3 2", or of a tree "0(1 2(3))": 0 is the parent of 1 and 2. To be freed. */
char *plans_order_text(const struct tutti_channels *plan, const struct tutti_channel *channel);
/* The gpu at the root of a channel's tree, as an index of the plan. */
uint32_t plans_root(const struct tutti_channels *plan, const struct tutti_channel *channel);

/* Bytes per second that all channels together put on each link of the graph; to be freed. */
double *plans_load(const struct subject *subject, const struct tutti_channels *plan);

/* "120 GB/s", or "no link bounds it". */
const char *plans_rate(double bytes_per_s, char text[NAME_BYTES]);
/* "rings", "trees", "broadcast trees" */
const char *plans_pattern_name(enum tutti_pattern pattern);

#endif
