/* SPDX-License-Identifier: Apache-2.0
 * Ends a rank that has failed, and exchanges measured values between the ranks. */
#include "rank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Skips exit handlers, because other threads of the process may be inside the library. */
static _Noreturn void leave(void)
{
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

void perf_must(const struct perf_rank *rank, const char *what, tuttiResult_t result)
{
    const char *reason;

    if (result == tuttiSuccess)
        return;
    reason = tuttiGetLastError(rank->comm);
    if (*reason == '\0')
        reason = tuttiGetLastError(NULL);
    fprintf(stderr, "%s_perf: rank %d: %s: %s: %s\n", perf_collective.name, rank->rank, what,
            tuttiGetErrorString(result), reason);
    leave();
}

void perf_die(const struct perf_rank *rank, const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s_perf: rank %d: %s\n", perf_collective.name, rank->rank, line);
    leave();
}

/* The communicator reports a failure inside a kernel; the stream does not. */
void perf_synchronize(const struct perf_rank *rank)
{
    tuttiResult_t state = tuttiSuccess;

    if (rank->stream == NULL)
        return;
    if (rank->gpu.context == NULL) {
        perf_must(rank, "tuttiStreamSynchronize", tuttiStreamSynchronize(rank->stream));
        return;
    }
    perf_gpu_synchronize(&rank->gpu);
    perf_must(rank, "tuttiCommGetAsyncError", tuttiCommGetAsyncError(rank->comm, &state));
    perf_must(rank, "a call on a stream", state);
}

/* Computes FNV-1a. The rank is the seed, so that a record in another rank's place is detected
 * too. */
static uint64_t checksum(int rank, const char *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325) + (uint64_t)rank;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

void perf_exchange(struct perf_rank *rank, const void *mine, size_t size, void *ret_all)
{
    size_t stride = sizeof(uint64_t) + size;
    char *records = malloc(stride * ((size_t)rank->nranks + 1));
    char *own;
    uint64_t sum = checksum(rank->rank, mine, size);

    if (records == NULL)
        perf_die(rank, "no memory for the records of %d ranks", rank->nranks);
    own = records + stride * (size_t)rank->nranks;
    memcpy(own, &sum, sizeof(sum));
    memcpy(own + sizeof(sum), mine, size);
    perf_must(rank, "tuttiAllGather of results",
              tuttiAllGather(own, records, stride, tuttiUint8, rank->comm, NULL));
    for (int peer = 0; peer < rank->nranks; peer++) {
        const char *record = records + stride * (size_t)peer;

        memcpy(&sum, record, sizeof(sum));
        if (sum != checksum(peer, record + sizeof(sum), size))
            perf_die(rank, "the results of rank %d arrived damaged: tuttiAllGather is wrong", peer);
        memcpy((char *)ret_all + size * (size_t)peer, record + sizeof(sum), size);
    }
    free(records);
}
