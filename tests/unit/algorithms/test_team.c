/* SPDX-License-Identifier: Apache-2.0
 * Makes an all-reduce of those of two teams. Each team has some of the ranks, in its own order,
 * and a part of the vector. The result is proved like any algorithm. */
#include "algorithms/team.h"

#include "base/result.h"
#include "schedule/check/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The task of the algorithm below; the tests set it. */
static struct {
    uint32_t doublings, half_chunks;
    bool is_apart; /* the teams' input is in SCRATCH, not where their sums go */
} setting;

/* Ranks 2i and 2i + 1 are a pair. Even ones sum the lower half of the vector, odd ones the upper:
 * within the pair first, then in a team of all even ranks from the last on down, or all odd ones
 * from the first on up; then the pairs share. */
static int emit_by_two_teams(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t half = setting.half_chunks, odd = shape->rank % 2, npairs = shape->nranks / 2;
    uint32_t partner = shape->rank ^ 1, first = odd * half;
    uint32_t arrival[2] = {first, 2 * half + first};
    uint32_t pair = shape->rank / 2;
    struct tutti_team team = {.count = npairs, .me = odd ? pair : npairs - 1 - pair};
    uint32_t *ranks = malloc(npairs * sizeof(*ranks));
    struct tutti_span sum = tutti_span(TUTTI_BUF_OUTPUT, first, half), own = sum;
    int rc;

    assert_non_null(ranks);
    for (uint32_t i = 0; i < npairs; i++)
        ranks[i] = odd ? 2 * i + 1 : 2 * (npairs - 1 - i);
    team.ranks = ranks;
    if (setting.is_apart)
        own = tutti_span(TUTTI_BUF_SCRATCH, 4 * half + first, half);

    tutti_build_chunks(build, 2 * half);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 6 * half);
    TUTTI_TRY_OR(release, rc, tutti_build_send(build, partner,
                                               tutti_span(TUTTI_BUF_INPUT, half - first, half)));
    TUTTI_TRY_OR(release, rc, tutti_build_recv_reduce(
                                  build, partner, tutti_span(TUTTI_BUF_INPUT, first, half), own));
    TUTTI_TRY_OR(release, rc, tutti_team_allreduce(build, &team, own, sum, arrival,
                                                   setting.doublings));
    TUTTI_TRY_OR(release, rc, tutti_build_send(build, partner, sum));
    rc = tutti_build_recv(build, partner, tutti_span(TUTTI_BUF_OUTPUT, half - first, half));

release:
    free(ranks);
    return rc;
}

#define MOST_RANKS 40

static struct tutti_schedule *emit(uint32_t nranks, uint32_t rank, bool is_fused)
{
    struct tutti_shape shape = {.nranks = nranks, .rank = rank};
    struct tutti_schedule *schedule = NULL;
    struct tutti_build build;

    assert_int_equal(tutti_build_init(&build, TUTTI_ALLREDUCE, &shape), TUTTI_OK);
    assert_int_equal(emit_by_two_teams(&shape, &build), TUTTI_OK);
    assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_OK);
    if (is_fused)
        assert_int_equal(tutti_schedule_fuse(schedule, false), TUTTI_OK);
    return schedule;
}

static void prove(uint32_t nranks, bool is_fused)
{
    struct tutti_schedule *schedules[MOST_RANKS] = {NULL};
    struct tutti_check_report why;

    for (uint32_t rank = 0; rank < nranks; rank++)
        schedules[rank] = emit(nranks, rank, is_fused);
    if (tutti_check_schedule((const struct tutti_schedule *const *)schedules, nranks, &why) !=
        TUTTI_OK)
        fail_msg("%u ranks, %u doublings, halves of %u%s%s: rank %u step %d: %s", nranks,
                 setting.doublings, setting.half_chunks, setting.is_apart ? ", apart" : "",
                 is_fused ? ", fused" : "", why.rank, (int)why.step, why.what);
    for (uint32_t rank = 0; rank < nranks; rank++)
        tutti_schedule_destroy(schedules[rank]);
}

/* Fewer chunks than pieces too: some members then have an empty piece. */
static void teams_of_any_size_reduce_any_part_of_a_vector(void **state)
{
    (void)state;
    for (uint32_t nranks = 2; nranks <= MOST_RANKS; nranks += 2)
        for (setting.doublings = 0; setting.doublings <= 6; setting.doublings++)
            for (int apart = 0; apart <= 1; apart++) {
                uint32_t pieces = tutti_team_pieces(nranks / 2, setting.doublings);
                const uint32_t chunks[] = {pieces, 2 * pieces + 1, pieces / 2 + 1};

                setting.is_apart = apart == 1;
                for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
                    setting.half_chunks = chunks[i];
                    prove(nranks, false);
                    prove(nranks, true);
                }
            }
}

static void a_team_of_one_has_its_sum(void **state)
{
    (void)state;
    assert_int_equal(tutti_team_pieces(1, 5), 1);
    assert_true(tutti_team_cost(1, 5, 100).rounds == 0);
    assert_true(tutti_team_cost(1, 5, 100).bytes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(teams_of_any_size_reduce_any_part_of_a_vector),
        cmocka_unit_test(a_team_of_one_has_its_sum),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
