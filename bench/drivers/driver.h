/* SPDX-License-Identifier: Apache-2.0
 * What every driver of the comparison shares. A driver is one library's side: it joins its ranks,
 * fills in a struct bench_library and calls bench_serve, which obeys `bench/compare` until told to
 * quit. Between commands a rank sleeps in a read, so that many libraries can be held ready on one
 * machine while only one of them runs. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bench_collective {
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_BROADCAST,
    BENCH_ALLTOALL,
    BENCH_BARRIER,
    BENCH_SENDRECV,
    BENCH_COLLECTIVES
};

/* One operation on float32. Buffers hold `count` elements each; `part` is count / nranks, the share
 * of a rank where a collective divides the buffer. */
struct bench_operation {
    enum bench_collective collective;
    const float *send;
    float *recv; /* of a broadcast: the one buffer, also at its root, rank 0 */
    size_t count, part;
};

struct bench_library {
    int rank, nranks;
    char version[64];
    /* Does the library offer it? */
    bool (*has)(enum bench_collective collective);
    /* Do it once; an error ends the process with a message. */
    void (*run)(const struct bench_operation *operation);
    /* True if all-reduce and reduce-scatter take their input from `recv`. */
    bool in_place;
    /* At most so many different buffers in turn, for libraries with state for each; 0: any. */
    size_t slots_max;
    /* Memory of the library's own, or NULL where it has none. */
    void *(*allocate)(size_t size_bytes);
};

/* Keep the calling thread, and those it starts, on one CPU, if the environment asks for it. To be
 * called before the library starts. */
void bench_pin(int rank);

/* Obey the commands in DIRECTORY/command.RANK, answer in DIRECTORY/answer.RANK; returns after
 * "quit". */
void bench_serve(const struct bench_library *library, const char *directory);

/* Say what failed and end the process. */
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
