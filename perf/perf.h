/* SPDX-License-Identifier: Apache-2.0
 * What the measuring programs share: a collective under test, and one case of it.
 *
 * Each program is this driver and one file that defines `perf_collective`.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reductions as the command line names them; the first five are the library's numbers. */
enum perf_op {
    PERF_SUM, PERF_PROD, PERF_MAX, PERF_MIN, PERF_AVG,
    PERF_MULSUM,
    PERF_OP_COUNT,
    PERF_NO_OP = -1 /* bytes are moved, not reduced */
};

/* One call to be measured: collective, size, type, reduction and root, as this rank makes it.
 * All counts and offsets are in elements. */
struct perf_case {
    tuttiDataType_t type;
    size_t element_bytes;
    enum perf_op op;
    tuttiRedOp_t op_handle;
    int root; /* -1: the collective has none */
    int nranks, rank;

    /* Filled by the collective's plan. */
    size_t count;                  /* the count column, and the argument of the call */
    size_t bytes;                  /* the size column; algbw is bytes / time */
    size_t send_count, recv_count; /* what this rank's buffers hold */
    size_t in_place_count;         /* one buffer that holds both ... */
    size_t in_place_send;          /* ... the input from here ... */
    size_t in_place_recv;          /* ... and the output from here */

    /* nranks entries each, for the collectives with counts per rank. */
    size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* The source of values that were reduced over all ranks. */
#define PERF_REDUCED (-1)

/* `count` elements of the output from `at` on are those of `source`'s input from `from` on. */
struct perf_segment {
    size_t at, count;
    int source; /* rank, or PERF_REDUCED */
    size_t from;
};

struct perf_collective {
    const char *name; /* "all_reduce" */

    bool has_data;     /* false: a barrier; one row, neither size nor type */
    bool has_op, has_root, has_in_place;
    /* In place, calling again on the result gives the same result. */
    bool repeats_in_place;
    /* The call is several groups that depend on each other, so it cannot be put into one. */
    bool is_many_groups;

    /* What tuttiCommTune and tuttiCommExplain call it. NULL: it cannot be tuned. */
    const char *tunes;
    /* What tuttiCommExplain calls a v-form, which cannot be tuned; else NULL. */
    const char *explains;

    /* Why the collective cannot run with so many ranks, or NULL. Optional. */
    const char *(*refuse)(int nranks);

    /* Fill the sizes of `c` for a budget of `elements` elements, nccl-tests' size convention. */
    void (*plan)(size_t elements, struct perf_case *c);

    /* What the output must hold; what no segment covers must stay as it was. Returns the number of
     * segments, at most nranks. */
    size_t (*expect)(const struct perf_case *c, struct perf_segment *ret_segments);

    /* busbw / algbw. */
    double (*bus_factor)(int nranks);

    tuttiResult_t (*run)(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream);
};

extern const struct perf_collective perf_collective;

/* Ready answers for the members above. */
double perf_factor_one(int nranks);
double perf_factor_share(int nranks);   /* (n - 1) / n */
double perf_factor_twice(int nranks);   /* 2 (n - 1) / n */

/* Element `index` of a buffer of the case's type. */
static inline void *perf_at(const struct perf_case *c, const void *buffer, size_t index)
{
    return (char *)(uintptr_t)buffer + index * c->element_bytes;
}

/* Uneven shares for the v-forms: of `elements` elements rank 0, 1, 2, ... gets 1, 2, 0, 1, 2, 0,
 * ... parts, placed in reverse order of the ranks, so that neither counts nor order are the
 * obvious. */
size_t perf_uneven_shares(size_t elements, int nranks, size_t *counts, size_t *displs);

#endif
