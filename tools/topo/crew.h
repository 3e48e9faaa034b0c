/* SPDX-License-Identifier: Apache-2.0
 * Provides the ranks that measure a machine. They are forked here, or a launcher has started them.
 * A crew is all these ranks. The structure is the view of one of them. */
#ifndef TUTTI_TOPO_CREW_H
#define TUTTI_TOPO_CREW_H

#include "tutti.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct crew {
    tuttiComm_t comm;
    int rank, nranks;
    bool is_quick;      /* --quick: fewer sizes and repetitions */
    const char *output; /* file for the description of the machine; NULL: stdout */
    const char *xml;    /* file for the devices with the measured rates; NULL: none */
};

/* Returns true if a launcher has started this process and describes the ranks in the
 * environment. */
bool crew_is_launched(void);

/* Forks `nranks` processes, forms a communicator of them, and runs `work` in each. `work` returns
 * the exit status of its rank. `crew` gives the members other than comm, rank and nranks. Returns
 * 0, or the exit status of the first process that failed. The caller must not have used the library
 * before. */
int crew_fork(const struct crew *crew, int nranks, int (*work)(struct crew *crew));
/* Forms a communicator of the ranks that a launcher has started, and runs `work` in this process.
 * The process is one of these ranks. Returns the exit status of `work`. */
int crew_join(const struct crew *crew, int (*work)(struct crew *crew));

/* Does nothing if `result` is tuttiSuccess. Otherwise prints the name `what` of the call and the
 * reason on stderr, and ends the process. */
void crew_must(const struct crew *crew, const char *what, tuttiResult_t result);

/* crew_gather gives every rank `size` bytes of each rank, in order of ranks. ret_all has room for
 * nranks * size bytes. crew_meet is a barrier. All ranks must call these together. */
void crew_gather(struct crew *crew, const void *mine, size_t size, void *ret_all);
void crew_meet(struct crew *crew);

#endif
