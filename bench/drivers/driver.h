/* SPDX-License-Identifier: Apache-2.0
 * The part that all drivers of the comparison share. A driver is one library's side. It joins its
 * ranks, fills in a struct bench_library and calls bench_serve, which obeys `bench/compare` until
 * told to quit. Between commands a rank sleeps in a read, so that many libraries can be ready on
 * one machine while only one of them runs. */
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
    BENCH_REDUCE,
    BENCH_GATHERV,
    BENCH_SCATTERV,
    BENCH_SCAN,
    BENCH_EXCLUSIVE_SCAN, /* rank 0 has no result */
    BENCH_COLLECTIVES
};

enum bench_type { BENCH_FLOAT32, BENCH_BFLOAT16, BENCH_FLOAT16, BENCH_TYPES };

/* The value of every byte of the buffers when a measurement begins: an ordinary number of every
 * type. It is not zero, because some processors store zeros past their caches twice as fast. */
#define BENCH_FILL 0x3c

#define BENCH_RANKS_MAX 64

/* The blocks of a gather-v or a scatter-v in the buffer of its root. They have different sizes. */
struct bench_blocks {
    size_t count[BENCH_RANKS_MAX], first[BENCH_RANKS_MAX];
};

/* One operation. Buffers hold `count` elements each; `part` is count / nranks, the share of a rank
 * where a collective divides the buffer, or the own block in a gather-v or scatter-v. The root of a
 * rooted collective is rank 0. */
struct bench_operation {
    enum bench_collective collective;
    enum bench_type type; /* narrow ones, in the same memory, only for libraries that have them */
    const float *send;
    float *recv; /* of a broadcast: the one buffer, also at its root */
    size_t count, part;
    struct bench_blocks blocks; /* of a gather-v or scatter-v */
};

static inline bool bench_is_uneven(enum bench_collective collective)
{
    return collective == BENCH_GATHERV || collective == BENCH_SCATTERV;
}

struct bench_library {
    int rank, nranks;
    char version[64];
    /* Returns whether the library offers this operation. */
    bool (*has)(enum bench_collective collective);
    /* Do it once; an error ends the process with a message. */
    void (*run)(const struct bench_operation *operation);
    /* True if all-reduce, reduce and reduce-scatter take their input from `recv`. */
    bool in_place;
    /* True if it also has the narrow types. */
    bool has_narrow_types;
    /* At most so many different buffers in turn, for libraries with state for each; 0: any. */
    size_t slots_max;
    /* Memory of the library's own, or NULL where it has none. */
    void *(*allocate)(size_t size_bytes);

    /* The rest is for drivers that measure what no library can undercut; see limit.c and
     * sockets.c. */

    /* Take up the variant of that name; false if there is none. */
    bool (*select)(const char *variant);
    /* Ranks are served by so many processes in turn, rank % nprocesses; 0: by one each. */
    int nprocesses;
    /* Where `rank` has what this process has at `own`; required with nprocesses. */
    void *(*at_rank)(const void *own, int rank);
    /* True if nothing in `run` waits for other ranks, so that a check has to. */
    bool waits_for_nobody;
    /* True if the bytes move but mean nothing. */
    bool is_unchecked;
    /* Returns the time of a core to switch from one waiting rank to another, in ns; or NULL. */
    double (*measure_switch)(void);
};

/* Keep the calling thread, and those it starts, on one CPU, if the environment asks for it. To be
 * called before the library starts. */
void bench_pin(int rank);

/* True where ranks share CPUs, so that who waits had better let others run. */
bool bench_is_crowded(void);

/* Obey the commands in DIRECTORY/command.RANK, answer in DIRECTORY/answer.RANK; returns after
 * "quit". */
void bench_serve(const struct bench_library *library, const char *directory);

/* Say what failed and end the process. */
void bench_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static inline bool bench_is_scan(enum bench_collective collective)
{
    return collective == BENCH_SCAN || collective == BENCH_EXCLUSIVE_SCAN;
}

#ifdef __cplusplus
}
#endif

#endif
