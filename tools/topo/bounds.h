/* SPDX-License-Identifier: Apache-2.0
 * The links that bound a plan, those that are alike taken together. */
#ifndef TUTTI_TOPO_BOUNDS_H
#define TUTTI_TOPO_BOUNDS_H

#include "topo/plans.h"

/* Links of one kind, between devices of the same kinds, that carry the same. */
struct bound {
    uint32_t *links;
    uint32_t nlinks;
    double share; /* of all of them in the bound */
};

struct bounds {
    struct bound *bounds; /* the dearest first */
    uint32_t count;
};

void bounds_find(const struct subject *subject, const struct tutti_channels *plan,
                 struct bounds *ret_bounds);
void bounds_fini(struct bounds *bounds);

/* "gpu 0 -> nvswitch (nvlink)", or "8 links such as that". */
void bounds_name(const struct subject *subject, const struct bound *bound, char *ret_name,
                 size_t size);

/* All links of the host that are like those of a bound, those included, both ways: prices prove a
 * bound by some of many that bound alike. bounds_fini_one() frees them. */
void bounds_alike(const struct subject *subject, const struct bound *bound, uint32_t host,
                  struct bound *ret_alike);
void bounds_fini_one(struct bound *bound);

/* What the same search gives where these links, both ways, carry twice as much. Gives what
 * tutti_search gives. */
int bounds_doubled(const struct subject *subject, const struct bound *bound,
                   const struct wish *wish, uint32_t host, enum tutti_pattern pattern,
                   double *ret_bytes_per_s, double *ret_bound_bytes_per_s);

#endif
