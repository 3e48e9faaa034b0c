/* SPDX-License-Identifier: Apache-2.0
 * Compares the fastest algorithms of two machines, which are named A and B. */
#ifndef TUTTI_SIM_COMPARE_H
#define TUTTI_SIM_COMPARE_H

#include "sim/sweep.h"

enum { MACHINES = 2 };

/* One size of the comparison. */
struct compared_size {
    double size_bytes;
    const struct sim_case *best[MACHINES]; /* NULL: every algorithm was left out */
    double bound_s[MACHINES];              /* the lower bound on the time of the call */
};

struct comparison {
    const char *topo[MACHINES];         /* what the user calls the machines */
    uint32_t nranks[MACHINES];
    struct sweep sweep[MACHINES];
    struct compared_size *sizes; /* owned */
    size_t nsizes;
};

/* Returns how many times as fast as machine A machine B is at a size. NAN: it is not known. */
double compare_speedup(const struct compared_size *size);

/* Writes the comparison as a JSON object, with all cases of both machines. */
void view_compare_json(const struct comparison *comparison, FILE *out);
/* Draws the times of both machines and their lower bounds against the size. Returns 0, or an error
 * number of errno.h. */
int view_compare_picture(const struct comparison *comparison, const char *file_name);

#endif
