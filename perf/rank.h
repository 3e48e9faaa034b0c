/* SPDX-License-Identifier: Apache-2.0
 * One rank of a running program: a thread with its communicator. */
#ifndef PERF_RANK_H
#define PERF_RANK_H

#include "buffers.h"
#include "options.h"
#include "perf.h"

struct perf_rank {
    const struct perf_options *options;
    int rank, nranks;
    int thread; /* its number in the process */
    tuttiComm_t comm;
    double formed_us; /* how long that took to form */
    struct perf_gpu gpu;  /* its context is NULL without --device gpu */
    tuttiStream_t stream; /* NULL without -s 1; the GPU's, where there is one */
    struct perf_arena input, output;
    void *registrations[2]; /* of their memory; NULL: none */
    uint64_t phase; /* grows with each filling, the same on all ranks, so stale data shows */
};

/* Unless `result` is a success, print who failed at what, with the library's reason, and end the
 * process: peers learn of it from the library. */
void perf_must(const struct perf_rank *rank, const char *what, tuttiResult_t result);

/* End the process with a line of the program's own. */
_Noreturn void perf_die(const struct perf_rank *rank, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Wait for all calls on the stream; nothing without one. */
void perf_synchronize(const struct perf_rank *rank);

/* All-gather `size` bytes of each rank. It travels over the library under test, so each record
 * carries a checksum: a damaged one ends the process. */
void perf_exchange(struct perf_rank *rank, const void *mine, size_t size, void *ret_all);

/* Everything that one rank does, from its first case to the report. Returns the exit code. */
int perf_rank_main(struct perf_rank *rank);

#endif
