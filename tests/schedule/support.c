/* SPDX-License-Identifier: Apache-2.0
 * Makes the schedules of all ranks for one algorithm. */
#include "schedule/support.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_schedule *emit(const struct tutti_algorithm *algorithm,
                                   const struct tutti_shape *shape, bool is_fused)
{
    struct tutti_schedule *schedule = NULL;
    struct tutti_build build = {0};
    int rc;

    if (is_fused || shape->nranks == 1) {
        rc = tutti_algorithm_schedule(algorithm, shape, &schedule);
    } else {
        struct tutti_shape resolved = *shape;

        rc = tutti_algorithm_options(algorithm, &shape->options, &resolved.options);
        rc = rc != TUTTI_OK ? rc : tutti_build_init(&build, algorithm->collective, shape);
        tutti_build_needs(&build, algorithm->needs);
        rc = rc != TUTTI_OK ? rc : tutti_algorithm_emit(algorithm, &resolved, &build);
        rc = rc != TUTTI_OK ? rc : tutti_build_finish(&build, &schedule);
    }
    if (rc != TUTTI_OK)
        fail_msg("%s %s, %u ranks, root %u, rank %u: %s",
                 tutti_collective_name(algorithm->collective), algorithm->name, shape->nranks,
                 shape->root, shape->rank, tutti_message_last());
    return schedule;
}

struct team team_of_shape(const struct tutti_algorithm *algorithm,
                                const struct tutti_shape *shape, bool is_fused)
{
    struct team team = {.nranks = shape->nranks,
                              .schedules = calloc(shape->nranks, sizeof(void *))};

    assert_non_null(team.schedules);
    for (uint32_t rank = 0; rank < shape->nranks; rank++) {
        struct tutti_shape own = *shape;

        own.rank = rank;
        team.schedules[rank] = emit(algorithm, &own, is_fused);
    }
    return team;
}

struct team team_create(const struct tutti_algorithm *algorithm, uint32_t nranks,
                              uint32_t root, bool is_fused)
{
    struct tutti_shape shape = {.nranks = nranks, .root = root};

    return team_of_shape(algorithm, &shape, is_fused);
}

void team_destroy(struct team *team)
{
    for (uint32_t rank = 0; rank < team->nranks; rank++)
        tutti_schedule_destroy(team->schedules[rank]);
    free(team->schedules);
}

static bool is_same_schedule(const struct tutti_schedule *a, const struct tutti_schedule *b)
{
    return a->nsteps == b->nsteps && a->ndeps == b->ndeps &&
           a->scratch_chunks == b->scratch_chunks &&
           (a->nsteps == 0 || memcmp(a->steps, b->steps, a->nsteps * sizeof(*a->steps)) == 0) &&
           a->namong == b->namong &&
           (a->namong == 0 || memcmp(a->among, b->among, a->namong * sizeof(*a->among)) == 0) &&
           (a->ndeps == 0 || memcmp(a->deps, b->deps, a->ndeps * sizeof(*a->deps)) == 0);
}

bool team_is_same(const struct team *team, const struct team *other)
{
    bool is_same = team->nranks == other->nranks;

    for (uint32_t rank = 0; rank < team->nranks && is_same; rank++)
        is_same = is_same_schedule(team->schedules[rank], other->schedules[rank]);
    return is_same;
}

struct tutti_schedule *schedule_clone(const struct tutti_schedule *schedule)
{
    struct tutti_schedule *clone = malloc(sizeof(*clone));

    assert_non_null(clone);
    *clone = *schedule;
    /* Room for one more step. */
    clone->steps = calloc(schedule->nsteps + 1, sizeof(*clone->steps));
    clone->deps = calloc(schedule->ndeps + 1, sizeof(*clone->deps));
    assert_true(clone->steps != NULL && clone->deps != NULL);
    if (schedule->nsteps > 0)
        memcpy(clone->steps, schedule->steps, schedule->nsteps * sizeof(*clone->steps));
    if (schedule->ndeps > 0)
        memcpy(clone->deps, schedule->deps, schedule->ndeps * sizeof(*clone->deps));
    clone->among = calloc(schedule->namong + 1, sizeof(*clone->among));
    assert_non_null(clone->among);
    if (schedule->namong > 0)
        memcpy(clone->among, schedule->among, schedule->namong * sizeof(*clone->among));
    return clone;
}

int team_check(const struct team *team, bool serves_vector, bool is_hashed,
               struct tutti_check_report *ret_report)
{
    const struct tutti_check_options options = {.is_vector = serves_vector,
                                                .is_hashed = is_hashed};

    return tutti_check_prove((const struct tutti_schedule *const *)team->schedules,
                             team->nranks, &options, ret_report);
}
