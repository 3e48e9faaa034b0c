/* SPDX-License-Identifier: Apache-2.0
 * The tests of schedules share this: it makes the schedules of all ranks for one algorithm. */
#ifndef TUTTI_TESTS_SCHEDULE_SUPPORT_H
#define TUTTI_TESTS_SCHEDULE_SUPPORT_H

#include "algorithms/algorithm.h"
#include "schedule/check/check.h"

struct team {
    uint32_t nranks;
    struct tutti_schedule **schedules;
};

/* Emit the schedules of all ranks, fused or as they were emitted; asserts success. */
struct team team_create(const struct tutti_algorithm *algorithm, uint32_t nranks,
                              uint32_t root, bool is_fused);
/* The same with options and places; shape->rank is ignored. */
struct team team_of_shape(const struct tutti_algorithm *algorithm,
                                const struct tutti_shape *shape, bool is_fused);
void team_destroy(struct team *team);

/* True if both have the same steps and dependencies. */
bool team_is_same(const struct team *team, const struct team *other);

/* A deep copy, to be edited. */
struct tutti_schedule *schedule_clone(const struct tutti_schedule *schedule);

/* With no credits, and blocks that differ where the algorithm serves them. */
int team_check(const struct team *team, bool serves_vector, bool is_hashed,
               struct tutti_check_report *ret_report);

#endif
