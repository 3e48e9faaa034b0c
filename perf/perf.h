/* SPDX-License-Identifier: Apache-2.0
 * Defines the collective under test, and one case of it, for all perf programs. Each program is the
 * common driver plus one file that defines `perf_collective`.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The reductions that the command line can name. Those up to PERF_LXOR have the library's
 * numbers. */
enum perf_op {
    PERF_SUM, PERF_PROD, PERF_MAX, PERF_MIN, PERF_AVG,
    PERF_BAND, PERF_BOR, PERF_BXOR, PERF_LAND, PERF_LOR, PERF_LXOR,
    PERF_MULSUM,
    PERF_OP_COUNT,
    PERF_NO_OP = -1 /* bytes are moved, not reduced */
};

/* One call to be measured, as this rank makes it: its size, type, reduction and root. All counts
 * and offsets are in elements. */
struct perf_case {
    tuttiDataType_t type;
    size_t element_bytes;
    enum perf_op op;
    tuttiRedOp_t op_handle; /* the library's handle of `op`; tuttiSum if nothing is reduced */
    int root; /* -1: the collective has none */
    int nranks, rank;

    /* Filled by the collective's `plan`. */
    size_t count;                  /* the count column, and the count argument of the call */
    size_t bytes;                  /* the size column; algbw is bytes / time */
    size_t send_count, recv_count; /* elements in this rank's buffers */
    size_t in_place_count;         /* elements of the single in-place buffer ... */
    size_t in_place_send;          /* ... the offset of the input in it ... */
    size_t in_place_recv;          /* ... and the offset of the output */

    /* These have nranks entries each. Only collectives with counts per rank use them. */
    size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* As the source of a segment, this stands for the reduced inputs of all ranks that this rank
 * combines. */
#define PERF_REDUCED (-1)

/* States that `count` elements of the output, from `at` on, equal those of `source`'s input, from
 * `from` on. */
struct perf_segment {
    size_t at, count;
    int source; /* rank, or PERF_REDUCED */
    size_t from;
};

struct perf_collective {
    const char *name; /* of the program without "_perf", for example "all_reduce" */

    bool has_data;     /* false: a barrier, with one row and neither size nor type */
    bool has_op, has_root, has_in_place;
    /* True if an in-place call that runs again on its own result gives the same result. */
    bool repeats_in_place;
    /* True if the call consists of several groups that depend on each other, so that calls cannot
     * be put into one group (-m). */
    bool is_many_groups;

    /* The name for tuttiCommTune and tuttiCommExplain; NULL if it cannot be tuned. */
    const char *tunes;
    /* The name of a v-form for tuttiCommExplain, otherwise NULL. V-forms are the collectives with
     * counts per rank. They cannot be tuned. */
    const char *explains;

    /* Returns the number of ranks, from rank 0 on, whose inputs rank `rank` combines. NULL: each
     * rank combines those of all ranks. If the member is not NULL, there are no averages. */
    int (*summands)(int rank);

    /* Returns the reason why the collective cannot run with so many ranks, or NULL if it can. The
     * member is NULL if every number of ranks is valid. */
    const char *(*refuse)(int nranks);

    /* Fills the sizes of `c`. `elements` is the size that the user asks for, in elements. It is
     * rounded down to a valid size, and is counted as nccl-tests counts it. */
    void (*plan)(size_t elements, struct perf_case *c);

    /* Describes the contents that the output must have. Elements that no segment covers must stay
     * unchanged. Returns the number of segments, at most nranks. */
    size_t (*expect)(const struct perf_case *c, struct perf_segment *ret_segments);

    /* Returns busbw / algbw: the bus bandwidth divided by the bandwidth of the algorithm. */
    double (*bus_factor)(int nranks);

    /* Makes the call. `stream` is NULL for a blocking call. */
    tuttiResult_t (*run)(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream);
};

extern const struct perf_collective perf_collective;

/* These are values of the member bus_factor. */
double perf_factor_one(int nranks);     /* 1 */
double perf_factor_share(int nranks);   /* (n - 1) / n */
double perf_factor_twice(int nranks);   /* 2 (n - 1) / n */

/* A value of the member `plan`: the input and the output of each rank are one vector of `elements`
 * elements. */
void perf_plan_vector(size_t elements, struct perf_case *c);

/* Returns the address of element `index` of a buffer of the case's type. */
static inline void *perf_at(const struct perf_case *c, const void *buffer, size_t index)
{
    return (char *)(uintptr_t)buffer + index * c->element_bytes;
}

/* Divides about `elements` elements into uneven shares for the v-forms. Ranks 0, 1, 2, ... get 1,
 * 2, 0, 1, 2, 0, ... parts. The shares lie in reverse order of the ranks, so that an error in
 * counts or displacements shows. Fills counts[nranks] and displs[nranks]. Returns the sum of the
 * counts. */
size_t perf_uneven_shares(size_t elements, int nranks, size_t *counts, size_t *displs);

#endif
