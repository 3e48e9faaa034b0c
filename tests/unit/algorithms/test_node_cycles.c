/* SPDX-License-Identifier: Apache-2.0
 * Cycles from node to node visit every rank once, and use all ranks of a node equally to enter and
 * to leave it. */
#include "algorithms/node_cycles.h"
#include "topology/machine/machine.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define TOP "; level top bandwidth 1GB/s"

static struct tutti_node_cycles open(const char *text, uint32_t nranks,
                                     struct tutti_machine **ret_machine)
{
    struct tutti_shape shape = {.nranks = nranks};
    struct tutti_node_cycles counted, cycles;

    if (tutti_machine_load(text, nranks, ret_machine) != TUTTI_OK)
        fail_msg("%s: %s", text, tutti_message_last());
    shape.places = &(*ret_machine)->places;
    assert_int_equal(tutti_node_cycles_count(&shape, &counted), TUTTI_OK);
    assert_int_equal(tutti_node_cycles_make(&shape, &cycles), TUTTI_OK);
    assert_int_equal(counted.ncycles, cycles.ncycles);
    assert_int_equal(counted.smallest, cycles.smallest);
    assert_null(counted.cycles);
    return cycles;
}

static void close(struct tutti_node_cycles *cycles, struct tutti_machine *machine)
{
    free(cycles->cycles);
    tutti_machine_destroy(machine);
}

/* Each cycle has every rank once, and leaves each node once. */
static void check_cycle(const char *text, const struct tutti_placement *places,
                        const uint32_t *cycle)
{
    bool *is_seen = calloc(places->nranks, sizeof *is_seen);
    uint32_t leaves = 0;

    assert_non_null(is_seen);
    for (uint32_t i = 0; i < places->nranks; i++) {
        uint32_t from = cycle[i], to = cycle[(i + 1) % places->nranks];

        assert_in_range(from, 0, places->nranks - 1);
        if (is_seen[from])
            fail_msg("%s, %u ranks: rank %u is there twice", text, places->nranks, from);
        is_seen[from] = true;
        leaves += places->node[from] != places->node[to];
    }
    assert_int_equal(leaves, places->nnodes > 1 ? places->nnodes : 0);
    free(is_seen);
}

static void cycles_visit_every_rank_and_node_once(void **state)
{
    static const char *const machines[] = {
        "node 8" TOP, "node 7" TOP, "node 2" TOP, "node 1" TOP, "node 3 5 8" TOP, "node 64" TOP,
        "node 8; place cyclic" TOP, "node 4; group 2" TOP, "node of 0 1 1 0 2 0 2 1" TOP,
    };

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (uint32_t nranks = 2; nranks <= 48; nranks++) {
            struct tutti_machine *machine;
            struct tutti_node_cycles cycles;

            if (i == 8 && nranks != 8) /* a list is as long as there are ranks */
                continue;
            cycles = open(machines[i], nranks, &machine);
            for (uint32_t c = 0; c < cycles.ncycles; c++)
                check_cycle(machines[i], &machine->places, cycles.cycles + (size_t)c * nranks);
            close(&cycles, machine);
        }
}

/* Both directions of all cycles together enter and leave nodes of eight once by each rank, and
 * nodes of seven twice. */
static void ports_are_used_equally(void **state)
{
    static const struct {
        const char *machine;
        uint32_t nranks, ncycles, uses;
    } cases[] = {
        {"node 8" TOP, 32, 4, 1}, {"node 8" TOP, 24, 4, 1}, {"node 2" TOP, 32, 1, 1},
        {"node 7" TOP, 35, 7, 2}, {"node 8; place cyclic" TOP, 32, 4, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n = cases[i].nranks, *uses = calloc(n, sizeof *uses);
        struct tutti_machine *machine;
        struct tutti_node_cycles cycles = open(cases[i].machine, n, &machine);

        assert_non_null(uses);
        assert_int_equal(cycles.ncycles, cases[i].ncycles);
        for (uint32_t c = 0; c < cycles.ncycles; c++)
            for (uint32_t at = 0; at < n; at++) {
                uint32_t from = cycles.cycles[c * n + at], to = cycles.cycles[c * n + (at + 1) % n];

                if (machine->places.node[from] == machine->places.node[to])
                    continue;
                uses[from]++; /* to leave forwards, and to enter backwards */
                uses[to]++;   /* to enter forwards, and to leave backwards */
            }
        for (uint32_t rank = 0; rank < n; rank++)
            assert_int_equal(uses[rank], cases[i].uses);
        free(uses);
        close(&cycles, machine);
    }
}

/* With an even number of nodes, the two ranks of a step between nodes have the same index. */
static void steps_between_nodes_stay_on_a_rail(void **state)
{
    struct tutti_machine *machine;
    struct tutti_node_cycles cycles = open("node 8" TOP, 32, &machine);

    (void)state;
    for (uint32_t c = 0; c < cycles.ncycles; c++)
        for (uint32_t at = 0; at < 32; at++) {
            uint32_t from = cycles.cycles[c * 32 + at], to = cycles.cycles[c * 32 + (at + 1) % 32];

            if (from / 8 != to / 8)
                assert_int_equal(from % 8, to % 8);
        }
    close(&cycles, machine);
}

/* A group is entered once, so that trunks between groups carry each cycle once. */
static void nodes_of_a_group_follow_one_another(void **state)
{
    struct tutti_machine *machine;
    struct tutti_node_cycles cycles =
        open("node 2; group of 0 1 0 1 0 1" TOP, 12, &machine);

    (void)state;
    for (uint32_t c = 0; c < cycles.ncycles; c++) {
        uint32_t changes = 0;

        for (uint32_t at = 0; at < 12; at++)
            changes += machine->places.group[cycles.cycles[c * 12 + at]] !=
                       machine->places.group[cycles.cycles[c * 12 + (at + 1) % 12]];
        assert_int_equal(changes, 2);
    }
    close(&cycles, machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_visit_every_rank_and_node_once),
        cmocka_unit_test(ports_are_used_equally),
        cmocka_unit_test(steps_between_nodes_stay_on_a_rail),
        cmocka_unit_test(nodes_of_a_group_follow_one_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
