/* SPDX-License-Identifier: Apache-2.0
 * Represents one rank of a running program: a thread with its communicator. */
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
    double formed_us; /* time that it took to form the communicator, in microseconds */
    struct perf_gpu gpu;  /* its context is NULL without --device gpu */
    tuttiStream_t stream; /* NULL without -s 1; with --device gpu, the GPU's stream */
    struct perf_arena input, output;
    void *registrations[2]; /* of the two arenas; NULL: not registered */
    uint64_t phase; /* grows with each filling, so that old data shows; equal on all ranks */
};

/* Does nothing if `result` is tuttiSuccess. Otherwise prints the rank, the name `what` of the call
 * that failed, and the library's reason, and ends the process. The library then reports the failure
 * to the peers. */
void perf_must(const struct perf_rank *rank, const char *what, tuttiResult_t result);

/* Prints the rank and the message on stderr, and ends the process. */
_Noreturn void perf_die(const struct perf_rank *rank, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Waits for all calls on the stream. Ends the process if one of them has failed. Does nothing
 * without a stream. */
void perf_synchronize(const struct perf_rank *rank);

/* Gathers `size` bytes of every rank on every rank, in order of ranks. All ranks must call this
 * together. ret_all has room for nranks * size bytes. The library under test carries the records.
 * So each record has a checksum, and a damaged record ends the process. */
void perf_exchange(struct perf_rank *rank, const void *mine, size_t size, void *ret_all);

/* Does all the work of one rank, from its first case to the report. Returns the exit code. */
int perf_rank_main(struct perf_rank *rank);

#endif
