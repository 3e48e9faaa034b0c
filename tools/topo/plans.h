/* SPDX-License-Identifier: Apache-2.0
 * Runs the searches that a command asks for, and describes their results. A plan is the result of
 * one search: the channels of one pattern on one host. If memory runs out, the program ends. */
#ifndef TUTTI_TOPO_PLANS_H
#define TUTTI_TOPO_PLANS_H

#include "topo/subject.h"
#include "topology/search/search.h"

/* The searches that the user wishes: the options --gpus, --pattern, --peers, --cross and
 * --channels. */
struct wish {
    bool has_pattern[TUTTI_PATTERN_COUNT]; /* the patterns to search for */
    uint32_t *gpus; /* in ascending order, owned; NULL: all gpus of the host */
    uint32_t ngpus;
    uint32_t host;  /* the host of these gpus, or the first host that has gpus */
    bool has_peers; /* true if other hosts take part, so that channels enter and leave by nets */
    bool may_cross; /* true if a channel may leave by another net than it enters by */
    uint32_t nchannels; /* most channels of a plan; 0: the default */
    bool for_rate_only; /* as in struct tutti_search_options */
};

/* Reads the options. `usual` is the default for --pattern: "all" or one name. Returns REQUEST_GO,
 * and then the caller releases *ret_wish with wish_fini. Otherwise returns the exit status after an
 * error message, and there is nothing to release. */
int wish_read(const struct request *request, const struct subject *subject, const char *usual,
              struct wish *ret_wish);
void wish_fini(struct wish *wish);

/* Returns true if the options select this host and the host has gpus. */
bool wish_has_host(const struct wish *wish, const struct subject *subject, uint32_t host);
/* Runs one search on a host, or on all hosts together if `host` is TUTTI_ALL_HOSTS. Returns what
 * tutti_search returns. The caller destroys *ret_plan with tutti_channels_destroy. */
int plans_search(const struct subject *subject, const struct wish *wish, uint32_t host,
                 enum tutti_pattern pattern, struct tutti_channels **ret_plan);

/* Handles the result of one search for a command. Returns REQUEST_GO, or the exit status to
 * stop. */
typedef int plans_visit_fn(const struct request *request, const struct subject *subject,
                           const struct wish *wish, uint32_t host,
                           const struct tutti_channels *plan);

/* Runs a command about searches. Calls `visit` for each selected pattern and host. Of several equal
 * hosts, only the first is searched. If an NVSwitch joins several hosts, all hosts together come
 * first. `usual` is the same as in wish_read. Returns the exit status. It is a mistake if no host
 * has gpus. */
int plans_run(const struct request *request, const char *usual, plans_visit_fn *visit);

/* A group of channels with the same order. */
struct order {
    const struct tutti_channel *channel; /* the first channel of the group */
    uint32_t count; /* number of channels */
};

/* Finds the different orders of a plan, sorted by their first channel, and returns their number.
 * ret_orders has room for TUTTI_SEARCH_CHANNELS entries. They borrow from the plan. */
uint32_t plans_orders(const struct tutti_channels *plan, struct order *ret_orders);

/* Returns the text of an order, such as "0 1 3 2". A tree has a text such as "0(1 2(3))", where 0
 * is the parent of 1 and 2. The caller frees the text. */
char *plans_order_text(const struct tutti_channels *plan, const struct tutti_channel *channel);
/* Returns the gpu at the root of a channel's tree, as an index into plan->gpus. */
uint32_t plans_root(const struct tutti_channels *plan, const struct tutti_channel *channel);

/* Returns the load of each link of the graph: the bytes per second that all channels together move
 * over it. The caller frees the array. */
double *plans_load(const struct subject *subject, const struct tutti_channels *plan);

/* Writes a rate such as "120 GB/s", or "any rate" if no link limits it, and returns the text. */
const char *plans_rate(double bytes_per_s, char text[NAME_BYTES]);
/* Returns the name of a pattern: "ring", "tree" or "broadcast tree". */
const char *plans_pattern_name(enum tutti_pattern pattern);

#endif
