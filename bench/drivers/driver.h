/* SPDX-License-Identifier: Apache-2.0
 * The part that all drivers of the comparison share. A driver is a program that measures one
 * library. Each of its processes joins its rank to the others, fills in a struct bench_library and
 * calls bench_serve, which carries out the commands of `bench/compare`. Between commands a rank
 * sleeps in a read, so that many libraries can be ready on one machine while only one of them
 * runs. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

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
    BENCH_REDUCE,
    BENCH_GATHERV,
    BENCH_SCATTERV,
    BENCH_SCAN,
    BENCH_EXCLUSIVE_SCAN, /* rank 0 has no result */
    BENCH_COLLECTIVES     /* their number */
};

enum bench_type { BENCH_FLOAT32, BENCH_BFLOAT16, BENCH_FLOAT16, BENCH_TYPES /* their number */ };

/* The value of every byte of the buffers when a measurement begins: an ordinary number of every
 * type. It is not zero, because some processors store zeros past their caches twice as fast. */
#define BENCH_FILL 0x3c

#define BENCH_RANKS_MAX 64

/* The blocks of a gather-v or a scatter-v in the buffer of its root, in elements. They have
 * different sizes. */
struct bench_blocks {
    size_t count[BENCH_RANKS_MAX], first[BENCH_RANKS_MAX];
};

/* One operation. The root of a rooted collective is rank 0. */
struct bench_operation {
    enum bench_collective collective;
    /* BENCH_FLOAT32, unless the library has narrow types. Narrow elements are in the same
     * memory. */
    enum bench_type type;
    const float *send;
    float *recv;  /* in a broadcast the only buffer, on the root as well */
    size_t count; /* elements in each buffer */
    /* Elements of one rank: count / nranks if the collective divides a buffer evenly, and this
     * rank's block in a gather-v or scatter-v. */
    size_t part;
    struct bench_blocks blocks; /* only of a gather-v or scatter-v */
};

static inline bool bench_is_uneven(enum bench_collective collective)
{
    return collective == BENCH_GATHERV || collective == BENCH_SCATTERV;
}

/* A library that is measured: its properties, and functions that call it. */
struct bench_library {
    int rank, nranks;
    char version[64]; /* text, or "" */
    /* Returns true if the library has this operation. */
    bool (*has)(enum bench_collective collective);
    /* Runs the operation once. An error ends the process with a message. */
    void (*run)(const struct bench_operation *operation);
    /* True if all-reduce, reduce and reduce-scatter take their input from `recv`. */
    bool in_place;
    /* True if the library also has the narrow types. */
    bool has_narrow_types;
    /* The most pairs of buffers that operations use in turn, for a library that keeps state for
     * each buffer. 0: any number. */
    size_t slots_max;
    /* Returns memory of the library, which lasts until the process ends. NULL if the library has
     * no memory of its own. */
    void *(*allocate)(size_t size_bytes);

    /* The members below are for drivers that measure the limit of the machine (limit.c,
     * sockets.c). The others leave them zero. */

    /* Chooses the variant of that name. Returns false if there is none. */
    bool (*select)(const char *variant);
    /* The number of processes that serve all ranks: process p serves each rank r with
     * r % nprocesses == p. 0: one process for each rank. */
    int nprocesses;
    /* Returns the address at which `rank` has the data that this process's own rank has at `own`.
     * Required with nprocesses. */
    void *(*at_rank)(const void *own, int rank);
    /* True if `run` does not wait for other ranks, so that a check needs barriers around it. */
    bool waits_for_nobody;
    /* True if `run` moves bytes but computes no results, so that nothing can be checked. */
    bool is_unchecked;
    /* Returns the time in which a core switches from one waiting rank to another, in ns. May be
     * NULL. */
    double (*measure_switch)(void);
};

/* Binds the calling thread, and threads that it starts later, to one CPU, if BENCH_PIN is 1. To be
 * called before the library starts. */
void bench_pin(int rank);

/* True if ranks share CPUs (BENCH_CROWDED is 1). A rank that waits should then yield. */
bool bench_is_crowded(void);

/* Carries out the commands in the pipe DIRECTORY/command.RANK, and writes answers to
 * DIRECTORY/answer.RANK. Returns after the command "quit". */
void bench_serve(const struct bench_library *library, const char *directory);

/* Writes the message to stderr and ends the process. */
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static inline bool bench_is_scan(enum bench_collective collective)
{
    return collective == BENCH_SCAN || collective == BENCH_EXCLUSIVE_SCAN;
}

/* Returns the time of CLOCK_MONOTONIC in ns. */
static inline uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __cplusplus
}
#endif

#endif
