/* SPDX-License-Identifier: Apache-2.0
 * Verifies the promise of tutti_build_one_tree for every algorithm that calls it. */
#include "schedule/access.h"
#include "schedule/support.h"
#include "schedule/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_RANKS = 20 };

/* How many steps before `at` are of its lane. */
static uint32_t number_in_lane(const struct tutti_schedule *schedule, uint32_t at)
{
    const struct tutti_step *step = &schedule->steps[at];
    uint32_t number = 0;

    for (uint32_t i = 0; i < at; i++)
        number += tutti_step_is_two_sided(&schedule->steps[i]) &&
                  !tutti_step_is_fused(&schedule->steps[i]) &&
                  schedule->steps[i].channel == step->channel &&
                  schedule->steps[i].from == step->from && schedule->steps[i].to == step->to;
    return number;
}

/* NULL, or what it does that one tree does not. Sets *ret_parent, if there is one. */
static const char *find_fault(const struct tutti_schedule *schedule, int32_t *ret_parent)
{
    *ret_parent = TUTTI_NO_RANK;
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        if (!tutti_step_is_two_sided(step))
            return "a step that is no message";
        if (step->queue != 0)
            return "a queue";
        if (tutti_access_sends(step)) {
            if (step->channel != 0 || (*ret_parent != TUTTI_NO_RANK && *ret_parent != step->to))
                return "two lanes that send";
            *ret_parent = step->to;
        }
        for (uint32_t d = 0; d < step->dep_count; d++) {
            uint32_t on = schedule->deps[step->dep_first + d];

            if (tutti_access_sends(&schedule->steps[on]))
                return "a step that depends on a send";
            if (number_in_lane(schedule, on) != number_in_lane(schedule, at))
                return "a step that depends on another segment";
        }
    }
    return NULL;
}

static void prove(const struct team *team, const char *name, const char *variant)
{
    int32_t parents[MOST_RANKS];

    for (uint32_t rank = 0; rank < team->nranks; rank++) {
        const char *fault = find_fault(team->schedules[rank], &parents[rank]);

        if (fault != NULL)
            fail_msg("%s, %u ranks, root %u, rank %u %s: %s", name, team->nranks,
                     team->schedules[rank]->root, rank, variant, fault);
    }
    for (uint32_t rank = 0; rank < team->nranks; rank++) {
        uint32_t height = 0;

        for (int32_t up = (int32_t)rank; up != TUTTI_NO_RANK; up = parents[up])
            if (height++ > team->nranks)
                fail_msg("%s, %u ranks %s: a circle through rank %u", name, team->nranks, variant,
                         rank);
    }
}

static bool is_one_tree(const struct team *team)
{
    bool is = team->schedules[0]->is_one_tree;

    for (uint32_t rank = 0; rank < team->nranks; rank++)
        assert_int_equal(team->schedules[rank]->is_one_tree, is);
    return is;
}

static void who_says_that_all_goes_up_one_tree_has_one(void **state)
{
    size_t trees = 0, others = 0;

    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);

        for (size_t v = 0; v < variants_count(algorithm); v++)
            for (uint32_t nranks = 2; nranks <= MOST_RANKS; nranks += 3) {
                struct variant variant;

                variant_create(algorithm, v, nranks, &variant);
                for (uint32_t root = 0; root < 2; root++) {
                    struct team team;

                    variant.shape.root = root;
                    team = team_of_shape(algorithm, &variant.shape, false);
                    if (is_one_tree(&team))
                        prove(&team, algorithm->name, variant.name);
                    *(is_one_tree(&team) ? &trees : &others) += 1;
                    team_destroy(&team);
                }
                variant_destroy(&variant);
            }
    }
    assert_true(trees > 100 && others > 100);
}

/* Schedules that are no tree are found out. */
static void a_ring_is_no_tree(void **state)
{
    struct team ring =
        team_create(tutti_algorithm_find(TUTTI_REDUCE_SCATTER, "ring"), 4, 0, false);
    struct team tree =
        team_create(tutti_algorithm_find(TUTTI_BROADCAST, "knomial"), 4, 0, false);
    int32_t parent;

    (void)state;
    assert_string_equal(find_fault(ring.schedules[0], &parent),
                        "a step that depends on another segment");
    assert_string_equal(find_fault(tree.schedules[0], &parent), "two lanes that send");
    team_destroy(&ring);
    team_destroy(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_says_that_all_goes_up_one_tree_has_one),
        cmocka_unit_test(a_ring_is_no_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
