/* SPDX-License-Identifier: Apache-2.0
 * Tests the broadcast of circulant_pipeline among more ranks than can be proved together. A rank
 * is right if it receives every segment once, sends only segments that it has, and if its peers
 * send it exactly what it receives. Samples of ranks are examined with all their peers. */
#include "unit/algorithms/ports.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 24

static struct tutti_schedule *emit(struct tutti_shape shape, uint32_t rank)
{
    shape.rank = rank;
    return emit_rank(tutti_algorithm_find(TUTTI_BROADCAST, "circulant_pipeline"), &shape);
}

/* The chunk that `schedule` sends to `rank` in its message number `index` to it. */
static uint32_t find_sent(const struct tutti_schedule *schedule, uint32_t rank, uint32_t index)
{
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        if (step->kind == TUTTI_STEP_SEND && step->to == (int32_t)rank && index-- == 0)
            return step->src.first;
    }
    return UINT32_MAX;
}

static void check_receives(const struct tutti_schedule *schedule, const struct tutti_shape *shape)
{
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];
        struct tutti_schedule *peer;
        uint32_t index = 0;

        if (step->kind != TUTTI_STEP_RECV)
            continue;
        for (uint32_t before = 0; before < at; before++)
            index += schedule->steps[before].kind == TUTTI_STEP_RECV &&
                     schedule->steps[before].from == step->from;
        peer = emit(*shape, (uint32_t)step->from);
        assert_int_equal(find_sent(peer, schedule->rank, index), step->dst.first);
        tutti_schedule_destroy(peer);
    }
}

static void check_rank(const struct tutti_shape *shape, uint32_t rank)
{
    uint32_t segments = shape->options.value[TUTTI_SEGMENTS], rounds = segments - 1;
    struct tutti_schedule *schedule = emit(*shape, rank);
    bool *has = calloc(segments, sizeof(*has));
    uint32_t nsent = 0, nreceived = 0;

    assert_non_null(has);
    for (uint32_t covered = 1; covered < shape->nranks; covered *= 2)
        rounds++;
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        if (step->kind == TUTTI_STEP_SEND) {
            assert_int_equal(step->src.count, 1);
            assert_true(rank == shape->root || has[step->src.first]);
            nsent++;
        } else if (step->kind == TUTTI_STEP_RECV) {
            assert_int_equal(step->dst.count, 1);
            assert_false(has[step->dst.first]);
            has[step->dst.first] = true;
            nreceived++;
        }
    }
    assert_int_equal(nreceived, rank == shape->root ? 0 : segments);
    assert_true(rank == shape->root ? nsent == rounds : nsent <= rounds);
    check_receives(schedule, shape);
    free(has);
    tutti_schedule_destroy(schedule);
}

static void ranks_of_large_communicators_agree(void **state)
{
    static const uint32_t sizes[] = {65, 129, 1000, 4097, 16383, 16384, 100003};
    static const uint32_t segments[] = {1, 2, 11, 40};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t j = 0; j < sizeof(segments) / sizeof(segments[0]); j++) {
            struct tutti_shape shape = {.nranks = sizes[i], .root = sizes[i] / 3};

            shape.options.value[TUTTI_SEGMENTS] = segments[j];
            for (uint32_t sample = 0; sample < SAMPLES; sample++)
                check_rank(&shape, (uint32_t)((uint64_t)sizes[i] * sample / (SAMPLES - 1)) %
                                       sizes[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_large_communicators_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
