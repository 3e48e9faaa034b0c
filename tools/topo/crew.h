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
    const char *xml;    /* file for the topology with the measured rates; NULL: none */
};

/* True if a launcher describes the ranks. */
bool crew_is_launched(void);

/* Forks `nranks` processes, forms a communicator of them, and runs `work` in each; `work` returns
 * the exit status. Returns 0, or the status of the first process that failed. The library must not
 * have been used before. */
int crew_fork(const struct crew *crew, int nranks, int (*work)(struct crew *crew));
/* The same for one of a launcher's ranks. */
int crew_join(const struct crew *crew, int (*work)(struct crew *crew));

/* Ends the process with a line that says what failed and why, unless `result` is a success. */
void crew_must(const struct crew *crew, const char *what, tuttiResult_t result);

/* crew_gather collects `size` bytes of every rank, in order of ranks. crew_meet is a barrier. */
void crew_gather(struct crew *crew, const void *mine, size_t size, void *ret_all);
void crew_meet(struct crew *crew);

#endif
