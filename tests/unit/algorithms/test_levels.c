/* SPDX-License-Identifier: Apache-2.0
 * The level of a run of ranks equals the result of comparing all pairs, and costs never assume a
 * message to be nearer than it is. */
#include "algorithms/algorithm.h"
#include "topology/machine/machine.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    const char *text;
    bool is_block; /* of 24 ranks */
} machines[] = {
    {"level top bandwidth 1GB/s", true},
    {"node 64; level top bandwidth 1GB/s", true},
    {"node 1; level top bandwidth 1GB/s", true},
    {"node 8; level top bandwidth 1GB/s", true},
    {"node 6; level top bandwidth 1GB/s", true},
    {"node 4; group 2; level top bandwidth 1GB/s", true},
    {"node 4; group 99; level top bandwidth 1GB/s", true},
    {"node 4 12 8; level top bandwidth 1GB/s", true},
    {"node 3 5 8; group 2; level top bandwidth 1GB/s", true},
    {"node 4; place cyclic; level top bandwidth 1GB/s", false},
};

static void open(size_t which, uint32_t nranks, struct tutti_machine **ret_machine)
{
    if (tutti_machine_load(machines[which].text, nranks, ret_machine) != TUTTI_OK)
        fail_msg("%s: %s", machines[which].text, tutti_message_last());
}

/* The outermost pair within any of the runs; the last one may be cut short. */
static uint32_t farthest(const struct tutti_machine *machine, uint32_t first, uint32_t run)
{
    uint32_t n = machine->places.nranks, most = 0;

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n && b / run == a / run; b++) {
            uint32_t level = tutti_machine_level(machine, (first + a) % n, (first + b) % n);

            most = level > most ? level : most;
        }
    return most;
}

static void check_runs(size_t which, uint32_t nranks)
{
    struct tutti_machine *machine;
    struct tutti_shape shape = {.nranks = nranks};

    open(which, nranks, &machine);
    shape.places = &machine->places;
    for (uint32_t first = 0; first < nranks; first++)
        for (uint32_t run = 2; run <= nranks; run++) {
            uint32_t found = tutti_level_of_run(&shape, first, run);
            uint32_t level = farthest(machine, first, run);
            /* The last run may be short, and happen to lie well. */
            bool is_exact = first == 0 && nranks % run == 0;

            if (found < level || (is_exact && found != level))
                fail_msg("%s, %u ranks: runs of %u from %u are %u apart, not %u",
                         machines[which].text, nranks, run, first, level, found);
        }
    tutti_machine_destroy(machine);
}

static void runs_are_as_far_as_their_outermost_pair(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (uint32_t nranks = 2; nranks <= 33; nranks++)
            check_runs(i, nranks);
}

static void others_are_counted_by_how_far_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (uint32_t nranks = 2; nranks <= 33; nranks += 5) {
            struct tutti_machine *machine;
            struct tutti_shape shape = {.nranks = nranks};

            open(i, nranks, &machine);
            shape.places = &machine->places;
            for (uint32_t rank = 0; rank < nranks; rank++) {
                uint32_t found[TUTTI_LEVEL_COUNT], counted[TUTTI_LEVEL_COUNT] = {0};

                for (uint32_t other = 0; other < nranks; other++)
                    if (other != rank)
                        counted[tutti_machine_level(machine, rank, other)]++;
                tutti_level_count_others(&shape, rank, found);
                assert_memory_equal(found, counted, sizeof found);
            }
            tutti_machine_destroy(machine);
        }
}

static void nodes_of_neighbors_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct tutti_machine *machine;
        struct tutti_shape shape = {.nranks = 24};

        open(i, 24, &machine);
        shape.places = &machine->places;
        assert_int_equal(tutti_cost_is_block(&shape), machines[i].is_block);
        tutti_machine_destroy(machine);
    }
}

/* Each pair that sends does so at a level that the cost counts, or farther in. */
static void nothing_goes_farther_than_its_cost_says(void **state)
{
    static const struct {
        enum tutti_collective collective;
        const char *name;
    } flat[] = {
        {TUTTI_ALLREDUCE, "recursive_doubling"}, {TUTTI_ALLREDUCE, "rabenseifner"},
        {TUTTI_ALLREDUCE, "hybrid"},             {TUTTI_REDUCE_SCATTER, "recursive_halving"},
        {TUTTI_BROADCAST, "knomial"},            {TUTTI_GATHER, "knomial"},
        {TUTTI_BROADCAST, "chain"},              {TUTTI_REDUCE, "linear"},
    };

    (void)state;
    for (size_t at = 0; at < sizeof machines / sizeof *machines * 32; at++) {
        uint32_t nranks = 2 + at % 32;
        struct tutti_machine *machine;

        open(at / 32, nranks, &machine);
        for (size_t f = 0; f < sizeof flat / sizeof *flat; f++) {
            const struct tutti_algorithm *algorithm =
                tutti_algorithm_find(flat[f].collective, flat[f].name);
            struct tutti_shape shape = {.nranks = nranks, .root = nranks / 2,
                                        .places = &machine->places};
            uint32_t most = 0;
            struct tutti_cost cost;

            assert_int_equal(tutti_algorithm_options(algorithm, &shape.options, &shape.options), 0);
            for (shape.rank = 0; shape.rank < nranks; shape.rank++) {
                struct tutti_schedule *schedule;

                assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), 0);
                for (uint32_t step = 0; step < schedule->nsteps; step++) {
                    int32_t to = schedule->steps[step].to;
                    uint32_t level = to < 0 ? 0 : tutti_machine_level(machine, shape.rank,
                                                                      (uint32_t)to);

                    most = level > most ? level : most;
                }
                tutti_schedule_destroy(schedule);
            }
            tutti_algorithm_cost(algorithm, &shape, 1, &cost);
            if (!(cost.level[most].rounds > 0))
                fail_msg("%s, %s, %u ranks: messages go %u far, and cost nothing there",
                         machines[at / 32].text, algorithm->name, nranks, most);
        }
        tutti_machine_destroy(machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_as_far_as_their_outermost_pair),
        cmocka_unit_test(others_are_counted_by_how_far_they_are),
        cmocka_unit_test(nodes_of_neighbors_are_known),
        cmocka_unit_test(nothing_goes_farther_than_its_cost_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
