/* SPDX-License-Identifier: Apache-2.0
 * Ranks that meet in simulated time: hours of deadlines pass at once, and a run is repeated from
 * its seed. */
#include "crew.h"

#include "support/simulated.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NRANKS = 5, MISSING = 3 };

#define DEADLINE_NS (UINT64_C(2) * 3600 * TUTTI_NS_PER_S)
#define TICK_NS     (2 * TUTTI_NS_PER_S)
/* The root goes on telling why it has failed, and members wait for what it says. */
#define LINGER_NS (20 * TUTTI_NS_PER_S)

static struct crew crew;

/* What a run was like: the ends of all ranks, in words. */
struct story {
    char text[2048];
    uint64_t draws, sum;
};

static void note_ends(const struct simulated *simulated, const bool *had_ended, struct story *story)
{
    size_t length = strlen(story->text);

    for (int i = 0; i < crew.count; i++)
        if (!had_ended[i] && crew.rc[i] != TUTTI_AGAIN)
            /* Behind the first part stands the port, which the kernel chooses. */
            length += (size_t)snprintf(
                story->text + length, sizeof story->text - length, "%llu: member %d: %d %.*s\n",
                (unsigned long long)(simulated->now_ns / TICK_NS), i, crew.rc[i],
                (int)strcspn(crew.message[i], ";"), crew.message[i]);
    assert_true(length < sizeof story->text);
}

/* One thread steps all ranks; time passes between the passes. Returns how long the last rank took.
 */
static uint64_t drive(struct simulated *simulated, struct story *story)
{
    uint64_t begun_ns = simulated->now_ns;
    int waiting = crew.count;

    for (int i = 0; i < crew.count; i++)
        crew.rc[i] = TUTTI_AGAIN;
    while (waiting > 0) {
        bool had_ended[CREW_MAX];

        waiting = 0;
        for (int i = 0; i < crew.count; i++) {
            had_ended[i] = crew.rc[i] != TUTTI_AGAIN;
            if (!had_ended[i])
                crew_step_one(&crew, i, 16);
            waiting += crew.rc[i] == TUTTI_AGAIN;
        }
        note_ends(simulated, had_ended, story);
        simulated_pass(simulated, TICK_NS);
        assert_true(simulated->now_ns - begun_ns < 2 * DEADLINE_NS);
    }
    return simulated->now_ns - begun_ns;
}

/* All ranks but one meet, and wait for it until their deadline. */
static uint64_t wait_in_vain(enum meeting meeting, uint64_t seed, struct story *ret_story)
{
    struct simulated simulated;
    uint64_t took_ns;

    memset(ret_story, 0, sizeof *ret_story);
    simulated_begin(&simulated, seed);
    crew_open(&crew, meeting);
    for (int rank = 0; rank < NRANKS; rank++)
        if (rank != MISSING)
            crew_add(&crew, NRANKS, rank, tutti_now_ns() + DEADLINE_NS, "secret");
    took_ns = drive(&simulated, ret_story);
    crew_expect(&crew, TUTTI_ERR_TIMEOUT, "rank 3 of 5 has not joined");
    crew_close(&crew);
    ret_story->draws = simulated.draws;
    ret_story->sum = simulated.sum;
    simulated_end();
    return took_ns;
}

static void hours_of_a_deadline_pass_without_waiting(void **state)
{
    uint64_t begun_ns = tutti_now_ns();
    struct story story;

    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        uint64_t took_ns = wait_in_vain(meeting, 1, &story);

        assert_in_range(took_ns, DEADLINE_NS, DEADLINE_NS + LINGER_NS);
    }
    assert_true(tutti_now_ns() - begun_ns < DEADLINE_NS);
}

static void a_run_repeats_from_its_seed(void **state)
{
    static struct story first, again, other;

    (void)state;
    wait_in_vain(BY_ID, 17, &first);
    wait_in_vain(BY_ID, 17, &again);
    wait_in_vain(BY_ID, 18, &other);
    assert_true(first.draws > NRANKS);
    assert_string_equal(first.text, again.text);
    assert_int_equal(first.draws, again.draws);
    assert_int_equal(first.sum, again.sum);
    assert_int_not_equal(first.sum, other.sum);
}

static void all_meet_in_time_that_stands_still(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_ID; meeting <= BY_UNIX; meeting++) {
        struct simulated simulated;

        simulated_begin(&simulated, meeting);
        crew_open(&crew, meeting);
        crew_fill(&crew, NRANKS, tutti_now_ns() + 1);
        for (int i = 0; i < crew.count; i++)
            crew.rc[i] = TUTTI_AGAIN;
        for (int waiting = NRANKS; waiting > 0;) {
            waiting = 0;
            for (int i = 0; i < crew.count; i++) {
                if (crew.rc[i] == TUTTI_AGAIN)
                    crew_step_one(&crew, i, 16);
                waiting += crew.rc[i] == TUTTI_AGAIN;
            }
        }
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
        simulated_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hours_of_a_deadline_pass_without_waiting),
        cmocka_unit_test(a_run_repeats_from_its_seed),
        cmocka_unit_test(all_meet_in_time_that_stands_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
