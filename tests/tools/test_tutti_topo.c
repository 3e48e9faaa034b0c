/* SPDX-License-Identifier: Apache-2.0
 * Runs tutti-topo as users do. Its measurements differ between machines. On each of them there
 * must be a machine, and no rate of it may be zero or negative. */
#include "base/result.h"
#include "tools/running.h"
#include "topology/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_machine *read_machine(const char *text)
{
    struct tutti_machine *machine;

    if (tutti_machine_parse("measured", text, 0, &machine) != TUTTI_OK)
        fail_msg("%s:\n%s", tutti_message_last(), text);
    return machine;
}

static void assert_rate(double bytes_per_s, const struct tutti_footprint_rate *beyond)
{
    assert_true(bytes_per_s > 0);
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS; i++)
        assert_true(beyond[i].bytes_per_s >= 0);
}

static void assert_whole(const struct tutti_machine *machine, uint32_t nranks)
{
    assert_int_equal(machine->places.nranks, nranks);
    for (int i = 0; i < TUTTI_MACHINE_LEVELS; i++) {
        const struct tutti_rate *rate = &machine->level[i];

        assert_true(rate->latency_s >= 0 && rate->overhead_s > 0);
        assert_rate(rate->bytes_per_s, rate->beyond);
        assert_rate(rate->core_bytes_per_s, rate->core_beyond);
    }
    assert_true(machine->cores > 0);
    assert_rate(machine->memory_bytes_per_s, machine->memory_beyond);
    assert_rate(machine->copy_bytes_per_s, machine->copy_beyond);
    assert_rate(machine->reduce_bytes_per_s, machine->reduce_beyond);
    assert_rate(machine->load_bytes_per_s, machine->load_beyond);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void two_ranks_measure_a_machine(void **state)
{
    static char text[RUNNING_TEXT];
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "machine --measure --quick -o here.txt"), 0);
    assert_string_equal(running.out, "");
    assert_string_equal(running.err, "");
    running_read("here.txt", text, sizeof text);
    assert_non_null(strstr(text, "# node, one way:"));
    assert_non_null(strstr(text, "fitted within"));
    machine = read_machine(text);
    assert_whole(machine, 2);
    assert_int_equal(machine->places.nnodes, 1);
    tutti_machine_destroy(machine);
    /* And it is what the others take. */
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo here.txt -s 1M"), 0);
}

static void what_was_measured_is_put_beside_what_is_nominal(void **state)
{
    static char text[RUNNING_TEXT];

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "--measure --quick -o here.txt --xml here.xml"), 0);
    running_read("here.xml", text, sizeof text);
    assert_non_null(strstr(text, "<system"));
    /* The memory of the NUMA node that the ranks ran on, and messages through it. */
    assert_non_null(strstr(text, " memory=\""));
    assert_non_null(strstr(text, " messages=\""));
    assert_int_equal(running_run(TUTTI_TOPO, "--from here.xml"), 0);
    assert_non_null(strstr(running.out, "B/s measured"));
}

static void three_ranks_measure_one_transport(void **state)
{
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "--measure --quick -n 3 --transport tcp"), 0);
    assert_non_null(strstr(running.out, "over tcp"));
    machine = read_machine(running.out);
    assert_whole(machine, 3);
    tutti_machine_destroy(machine);
}

/* Ranks claim to be on two hosts, so the links between them are measured, too. */
static void ranks_of_a_launcher_measure_the_way_to_another_node(void **state)
{
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(running_run(TUTTI_RUN, "-n 3 --no-tag sh -c '"
                                 "test $TUTTI_RANK = 2 && export TUTTI_HOST_ID=other; "
                                 TUTTI_TOPO " --measure --quick'"), 0);
    assert_non_null(strstr(running.out, "# top, one way:"));
    machine = read_machine(running.out);
    assert_whole(machine, 3);
    assert_int_equal(machine->places.nnodes, 2);
    assert_int_equal(tutti_machine_level(machine, 0, 1), 0);
    assert_int_equal(tutti_machine_level(machine, 0, 2), 2);
    tutti_machine_destroy(machine);
}

/* ---- describing ------------------------------------------------------------------------------ */

static void without_measuring_it_says_what_is_known(void **state)
{
    static char text[RUNNING_TEXT];
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "machine -n 6"), 0);
    assert_non_null(strstr(running.out, "tutti-machine 1\nranks 6\nnode 6\ncores "));
    /* Missing parts can be added. */
    strcpy(text, running.out);
    strcat(text, "level node bandwidth 10GB/s\n");
    machine = read_machine(text);
    assert_int_equal(machine->places.nranks, 6);
    assert_true(machine->cores > 0);
    tutti_machine_destroy(machine);
}

static void it_helps(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "--help"), 0);
    assert_non_null(strstr(running.out, "--measure"));
    assert_string_equal(running.err, "");
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistakes_are_one_line_with_the_cure(void **state)
{
    static const struct {
        const char *arguments, *what;
    } cases[] = {
        {"--measure --ranks 1", "give 2 or more"},
        {"--measure --ranks 0", "--ranks 0"},
        {"--measure --ranks 2,3", "give one"},
        {"--measure --ranks 5000", "at most 256"},
        {"--measure --transport carrier-pigeon", "\"carrier-pigeon\" is no transport"},
        {"--measure --transport shm,", "\"\" is no transport"},
        {"--measure --transport", "needs a value"},
        {"--transport shm", "add --measure"},
        {"--quick", "add --measure"},
        {"machine --xml here.xml", "add --measure"},
        {"--measure=2", "takes no value"},
        {"allreduce", "is no command"},
        {"machine allreduce", "one word too many"},
        {"-n 6", "add --measure, or say tutti-topo machine"},
        {"-o here.txt", "add --measure, or say tutti-topo machine"},
        {"machine --quick", "add --measure"},
        {"--measure --from dgx-2", "only this machine can be measured"},
        {"--size 4K", "no option"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        running_is_mistake(running_run(TUTTI_TOPO, "%s", cases[i].arguments), "tutti-topo",
                           cases[i].what);
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_TOPO, "machine -o no/such/place"), 1);
    assert_non_null(strstr(running.err, "tutti-topo: cannot write no/such/place: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks_measure_a_machine),
        cmocka_unit_test(what_was_measured_is_put_beside_what_is_nominal),
        cmocka_unit_test(three_ranks_measure_one_transport),
        cmocka_unit_test(ranks_of_a_launcher_measure_the_way_to_another_node),
        cmocka_unit_test(without_measuring_it_says_what_is_known),
        cmocka_unit_test(it_helps),
        cmocka_unit_test(mistakes_are_one_line_with_the_cure),
        cmocka_unit_test(a_file_that_cannot_be_written_is_named),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
