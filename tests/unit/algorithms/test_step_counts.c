/* SPDX-License-Identifier: Apache-2.0
 * Counts the steps of a rank among 16,384. Building them takes milliseconds as long as there are
 * not many times as many steps as ranks. */
#include "algorithms/algorithm.h"

#include "base/result.h"
#include "topology/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 16384 };

static uint32_t steps_of(const char *machine_text, enum tutti_collective collective,
                         const char *name, enum tutti_option option, uint32_t value)
{
    struct tutti_machine *machine;
    struct tutti_schedule *schedule;
    struct tutti_shape shape = {.nranks = RANKS, .rank = RANKS / 3};
    uint32_t nsteps;

    assert_int_equal(tutti_machine_load(machine_text, RANKS, &machine), TUTTI_OK);
    shape.places = &machine->places;
    shape.options.value[option] = value;
    assert_int_equal(tutti_algorithm_schedule(tutti_algorithm_find(collective, name), &shape,
                                              &schedule), TUTTI_OK);
    nsteps = schedule->nsteps;
    tutti_schedule_destroy(schedule);
    tutti_machine_destroy(machine);
    return nsteps;
}

/* A rank gets each block once, and sends those of its rail to each of seven others and on: all lie
 * scattered, so that each is a step. `segments` cuts none. */
static void rails_have_two_steps_a_rank_in_any_number_of_segments(void **state)
{
    static const char *const machines[] = {
        "nodes8", "fattree",
        ("node 8; group 2; level node overhead 1us bandwidth 350GB/s; "
         "level group overhead 5us bandwidth 50GB/s; level top overhead 5us bandwidth 50GB/s")};
    static const enum tutti_collective collectives[] = {TUTTI_ALLGATHER, TUTTI_REDUCE_SCATTER};

    (void)state;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
        for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++)
            for (uint32_t segments = 1; segments <= 16; segments *= 4)
                assert_in_range(steps_of(machines[m], collectives[c], "hierarchical",
                                         TUTTI_SEGMENTS, segments),
                                RANKS, 2 * RANKS);
}

/* One from INPUT for each block, and from round to round as many again and a quarter, at most. */
static void bruck_copies_a_block_about_twice(void **state)
{
    (void)state;
    for (uint32_t radix = 2; radix <= 64; radix *= 2)
        assert_in_range(steps_of("flat", TUTTI_ALLTOALL, "bruck", TUTTI_RADIX, radix),
                        2 * RANKS, 9 * RANKS / 4 + 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_have_two_steps_a_rank_in_any_number_of_segments),
        cmocka_unit_test(bruck_copies_a_block_about_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
