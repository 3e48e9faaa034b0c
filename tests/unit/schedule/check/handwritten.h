/* SPDX-License-Identifier: Apache-2.0
 * Schedules that are written by hand for the tests of the checker, and functions that check them.
 */
#ifndef TUTTI_TESTS_UNIT_SCHEDULE_HANDWRITTEN_H
#define TUTTI_TESTS_UNIT_SCHEDULE_HANDWRITTEN_H

#include "schedule/build.h"
#include "schedule/check/check.h"

#define MOST_RANKS 4
#define ANY UINT32_MAX
#define MUST(call) assert_int_equal(call, TUTTI_OK)

static inline struct tutti_span input(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_INPUT, first, count);
}

static inline struct tutti_span output(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_OUTPUT, first, count);
}

static inline struct tutti_span scratch(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_SCRATCH, first, count);
}

static inline struct tutti_span window(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_WINDOW, first, count);
}

/* Schedules of all ranks, and what the checker should say of them. */
struct row {
    const char *name;
    void (*emit)(struct tutti_build *build, uint32_t rank);
    enum tutti_collective collective;
    uint32_t nranks;
    bool is_vector;
    const char *what; /* part of the report; NULL: right */
    uint32_t rank, step;
};

void build_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS]);
void destroy_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS]);
int check_all(const struct row *row, struct tutti_schedule *const schedules[MOST_RANKS],
              struct tutti_check_report *ret_report);

/* Right ones. */
void swap_allreduce(struct tutti_build *build, uint32_t rank);
void ring_allgather(struct tutti_build *build, uint32_t rank);
void window_allgather(struct tutti_build *build, uint32_t rank);
void mapped_allreduce(struct tutti_build *build, uint32_t rank);
void mapped_broadcast(struct tutti_build *build, uint32_t rank);
void barrier(struct tutti_build *build, uint32_t rank);

#endif
