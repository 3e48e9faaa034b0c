/* SPDX-License-Identifier: Apache-2.0
 * The ranks that measure: processes forked here, or those of a launcher. */
#ifndef TUTTI_TOPO_CREW_H
#define TUTTI_TOPO_CREW_H

#include "tutti.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crew {
    tuttiComm_t comm;
    int rank, nranks;
    bool is_quick;
    const char *output; /* NULL: stdout */
    const char *xml;    /* where the machine goes with what was measured; NULL: nowhere */
};

/* Does a launcher describe the ranks? */
bool crew_is_launched(void);

/* Fork `nranks` processes, join them, and let each do `work`, which gives the exit status. Gives 0
 * or what the first one that failed gave. The library must not have been used before. */
int crew_fork(const struct crew *crew, int nranks, int (*work)(struct crew *crew));
/* The same as one of a launcher's ranks. */
int crew_join(const struct crew *crew, int (*work)(struct crew *crew));

/* End the process, saying what failed and why, unless it did not. */
void crew_must(const struct crew *crew, const char *what, tuttiResult_t result);

/* Everybody's `size` bytes, by rank. */
void crew_gather(struct crew *crew, const void *mine, size_t size, void *ret_all);
void crew_meet(struct crew *crew);

#endif
