/* SPDX-License-Identifier: Apache-2.0
 * The links that bound a plan, with similar links grouped. */
#ifndef TUTTI_TOPO_BOUNDS_H
#define TUTTI_TOPO_BOUNDS_H

#include "topo/plans.h"

/* Links of one kind, between devices of the same kinds, that carry the same rate. */
struct bound {
    uint32_t *links;
    uint32_t nlinks;
    double share; /* share of the bound that all of them account for */
};

struct bounds {
    struct bound *bounds; /* the largest share first */
    uint32_t count;
};

void bounds_find(const struct subject *subject, const struct tutti_channels *plan,
                 struct bounds *ret_bounds);
void bounds_fini(struct bounds *bounds);

/* Names a group, for instance "gpu 0 -> nvswitch (nvlink)" or "8 links such as that". */
void bounds_name(const struct subject *subject, const struct bound *bound, char *ret_name,
                 size_t size);

/* Finds all links of the host that are similar to those of a bound, these included, in both
 * directions. Dual prices prove a bound with only some of many links that bound equally. The caller
 * frees *ret_alike with bounds_fini_one(). */
void bounds_alike(const struct subject *subject, const struct bound *bound, uint32_t host,
                  struct bound *ret_alike);
void bounds_fini_one(struct bound *bound);

/* Repeats the search with twice the rate on these links, in both directions. Returns what
 * tutti_search returns. */
int bounds_doubled(const struct subject *subject, const struct bound *bound,
                   const struct wish *wish, uint32_t host, enum tutti_pattern pattern,
                   double *ret_bytes_per_s, double *ret_bound_bytes_per_s);

#endif
