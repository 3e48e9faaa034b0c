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
    int thread; /* index of the thread in its process */
    tuttiComm_t comm;
    double formed_us; /* how long the communicator took to form */
    struct perf_gpu gpu;  /* its context is NULL without --device gpu */
    tuttiStream_t stream; /* NULL without -s 1; the GPU's, where there is one */
    struct perf_arena input, output;
    void *registrations[2]; /* of the arenas' memory; NULL: not registered */
    uint64_t phase; /* grows with each filling, in the same way on all ranks, so stale data shows */
};

/* Unless `result` is a success, prints the rank, what failed and the library's reason, and ends the
 * process. The peers learn of the failure through the library. */
void perf_must(const struct perf_rank *rank, const char *what, tuttiResult_t result);

/* Ends the process with a message of the program's own. */
_Noreturn void perf_die(const struct perf_rank *rank, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for all calls on the stream; does nothing without a stream. */
void perf_synchronize(const struct perf_rank *rank);

/* All-gathers `size` bytes of each rank; ret_all has room for nranks * size bytes. The records
 * travel over the library under test, so each carries a checksum, and a damaged record ends the
 * process. */
void perf_exchange(struct perf_rank *rank, const void *mine, size_t size, void *ret_all);

/* Runs everything that one rank does, from its first case to the report. Returns the exit code. */
int perf_rank_main(struct perf_rank *rank);

#endif
