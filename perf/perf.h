/* SPDX-License-Identifier: Apache-2.0
 * Shared by the perf programs: the collective under test, and one case of it.
 *
 * Each program is the common driver plus one file that defines `perf_collective`.
 */
#ifndef PERF_PERF_H
#define PERF_PERF_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reductions by their names on the command line; the first five have the library's numbers. */
enum perf_op {
    PERF_SUM, PERF_PROD, PERF_MAX, PERF_MIN, PERF_AVG,
    PERF_MULSUM,
    PERF_OP_COUNT,
    PERF_NO_OP = -1 /* bytes are moved, not reduced */
};

/* One call to be measured, as this rank makes it: collective, size, type, reduction and root. All
 * counts and offsets are in elements. */
struct perf_case {
    tuttiDataType_t type;
    size_t element_bytes;
    enum perf_op op;
    tuttiRedOp_t op_handle;
    int root; /* -1: the collective has none */
    int nranks, rank;

    /* Filled by the collective's `plan`. */
    size_t count;                  /* the count column, and the count argument of the call */
    size_t bytes;                  /* the size column; algbw is bytes / time */
    size_t send_count, recv_count; /* elements in this rank's buffers */
    size_t in_place_count;         /* elements of the single in-place buffer ... */
    size_t in_place_send;          /* ... the offset of the input in it ... */
    size_t in_place_recv;          /* ... and the offset of the output */

    /* nranks entries each, for collectives with counts per rank. */
    size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* The number of a source that represents the values reduced over all ranks. */
#define PERF_REDUCED (-1)

/* The output's `count` elements from `at` on equal those of `source`'s input from `from` on. */
struct perf_segment {
    size_t at, count;
    int source; /* rank, or PERF_REDUCED */
    size_t from;
};

struct perf_collective {
    const char *name; /* "all_reduce" */

    bool has_data;     /* false: a barrier, with one row and neither size nor type */
    bool has_op, has_root, has_in_place;
    /* True if in place a call on the previous call's result gives the same result. */
    bool repeats_in_place;
    /* True if the call consists of several groups that depend on each other, so that calls cannot
     * be put into one group (-m). */
    bool is_many_groups;

    /* The name for tuttiCommTune and tuttiCommExplain. NULL: it cannot be tuned. */
    const char *tunes;
    /* The name of a v-form for tuttiCommExplain; v-forms cannot be tuned. Otherwise NULL. */
    const char *explains;

    /* Why the collective cannot run with so many ranks, or NULL if it can. The member may be
     * NULL. */
    const char *(*refuse)(int nranks);

    /* Fills the sizes of `c` for a budget of `elements` elements, with nccl-tests' size
     * convention. */
    void (*plan)(size_t elements, struct perf_case *c);

    /* Describes what the output must hold; elements that no segment covers must stay unchanged.
     * Returns the number of segments, at most nranks. */
    size_t (*expect)(const struct perf_case *c, struct perf_segment *ret_segments);

    /* busbw / algbw. */
    double (*bus_factor)(int nranks);

    tuttiResult_t (*run)(const struct perf_case *c, const void *send, void *recv, tuttiComm_t comm,
                         tuttiStream_t stream);
};

extern const struct perf_collective perf_collective;

/* Common functions for the members above. */
double perf_factor_one(int nranks);
double perf_factor_share(int nranks);   /* (n - 1) / n */
double perf_factor_twice(int nranks);   /* 2 (n - 1) / n */

/* Element `index` of a buffer of the case's type. */
static inline void *perf_at(const struct perf_case *c, const void *buffer, size_t index)
{
    return (char *)(uintptr_t)buffer + index * c->element_bytes;
}

/* Uneven shares for the v-forms. Of `elements` elements, ranks 0, 1, 2, ... get 1, 2, 0, 1, 2, 0,
 * ... parts. Shares are placed in reverse order of the ranks, so that neither counts nor order are
 * the obvious ones. Fills counts[nranks] and displs[nranks], and returns the sum of the counts. */
size_t perf_uneven_shares(size_t elements, int nranks, size_t *counts, size_t *displs);

#endif
