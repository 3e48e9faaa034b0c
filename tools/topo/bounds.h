/* SPDX-License-Identifier: Apache-2.0
 * Finds the links that limit the rate of a plan, in groups of similar links. A plan is the set of
 * channels that a search has found. If memory runs out, the program ends. */
#ifndef TUTTI_TOPO_BOUNDS_H
#define TUTTI_TOPO_BOUNDS_H

#include "topo/plans.h"

/* A group of similar links that limit a plan: links of one kind, between devices of the same kinds,
 * with the same rate, from the same source. */
struct bound {
    uint32_t *links; /* indices into the graph; owned */
    uint32_t nlinks;
    double share; /* part of the plan's bound that these links account for, from 0 to 1 */
};

struct bounds {
    struct bound *bounds; /* the largest share is first; owned */
    uint32_t count;
};

/* Finds the links that prove the upper bound of a plan. The caller frees *ret_bounds with
 * bounds_fini. */
void bounds_find(const struct subject *subject, const struct tutti_channels *plan,
                 struct bounds *ret_bounds);
void bounds_fini(struct bounds *bounds);

/* Writes the name of a group, for instance "gpu 0 -> nvswitch (nvlink)". A group of several links
 * is named by one of them, as "8 links such as gpu 0 -> nvswitch (nvlink)". */
void bounds_name(const struct subject *subject, const struct bound *bound, char *ret_name,
                 size_t size);

/* Finds all links of the host, or of all hosts, that are similar to those of a bound. The result
 * includes these and both directions. It may have more links than the bound, because the proof of a
 * bound needs only some of several equal links. The caller frees *ret_alike with bound_fini. */
void bounds_alike(const struct subject *subject, const struct bound *bound, uint32_t host,
                  struct bound *ret_alike);
void bound_fini(struct bound *bound);

/* Repeats a search with twice the rate on the links of a group, in both directions. `wish`, `host`
 * and `pattern` are those of the first search. Gives the rate of the new plan and its upper bound.
 * Returns TUTTI_OK or an error code. */
int bounds_doubled(const struct subject *subject, const struct bound *bound,
                   const struct wish *wish, uint32_t host, enum tutti_pattern pattern,
                   double *ret_bytes_per_s, double *ret_bound_bytes_per_s);

#endif
