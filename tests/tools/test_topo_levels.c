/* SPDX-License-Identifier: Apache-2.0
 * Tests that many like hosts are described by levels, and that the description has the costs of a
 * graph of fewer hosts. */
#include "common/topo_levels.h"

#include "common/topo_machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the machine that the description of `line` gives. */
static struct tutti_machine *levels_of(const char *line)
{
    struct tutti_machine *machine;
    char *text;

    assert_true(topo_levels_write(line, &text));
    assert_int_equal(tutti_machine_load(text, 0, &machine), 0);
    free(text);
    return machine;
}

static void assert_costs(const struct tutti_rate *rate, double latency_s, double bytes_per_s)
{
    assert_true(fabs(rate->bytes_per_s / bytes_per_s - 1) < 1e-3);
    assert_true(fabs(rate->latency_s - latency_s) < 1e-9);
    assert_true(rate->overhead_s == 0);
}

static void levels_have_the_costs_of_the_graph(void **state)
{
    static const char few[] = "3 hosts: dgx-h100";
    static const char many[] = " 5000 hosts: dgx-h100";
    struct tutti_machine *graph, *levels = levels_of(many);
    const struct tutti_machine_path *path;

    (void)state;
    assert_int_equal(topo_machine_load("test", few, &(struct tutti_hints){0}, 0, &graph), 0);
    assert_int_equal(levels->places.nranks, 40000);
    assert_int_equal(levels->places.nnodes, 5000);
    assert_int_equal(levels->nics, 0);
    path = tutti_machine_path(graph, 0, 8);
    assert_non_null(path);
    assert_costs(&levels->level[0], graph->level[0].latency_s, graph->level[0].bytes_per_s);
    assert_costs(&levels->level[2], tutti_machine_path_latency_s(graph, path),
                 tutti_machine_path_rate(graph, path));
    tutti_machine_destroy(levels);
    tutti_machine_destroy(graph);
}

static void gpus_may_share_ports(void **state)
{
    static const char few[] = "2 hosts: 8 gpus h100 nvswitch, 4 nics 400G, 2 cpus";
    static const char many[] = "300 hosts: 8 gpus h100 nvswitch, 4 nics 400G, 2 cpus";
    struct tutti_machine *graph, *levels = levels_of(many);

    (void)state;
    assert_int_equal(topo_machine_load("test", few, &(struct tutti_hints){0}, 0, &graph), 0);
    assert_int_equal(levels->nics, 4);
    assert_int_equal(levels->places.nranks, 2400);
    /* All pairs have most of a port that is near both. */
    assert_true(graph->level[2].bytes_per_s > 35e9);
    assert_true(levels->level[2].bytes_per_s > 35e9);
    assert_true(levels->level[2].bytes_per_s <= 50e9);
    tutti_machine_destroy(levels);
    tutti_machine_destroy(graph);
}

static void other_texts_are_no_lines_of_like_hosts(void **state)
{
    static const char *const lines[] = {
        "", "dgx-h100", "8 gpus h100", "hosts: 8 gpus", "x hosts: 8 gpus h100",
        "4 hosts: dgx-h100; 4 hosts: dgx-1v", "4 hosts: dgx-h100\n2 hosts: dgx-1v",
        "4 hosts: dgx-none", "4 hosts: 2 cpus", "1000000 hosts: dgx-h100",
        "99999999999999999999 hosts: dgx-h100"};
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (topo_levels_write(lines[i], &text))
            fail_msg("\"%s\" has levels: %s", lines[i], text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_have_the_costs_of_the_graph),
        cmocka_unit_test(gpus_may_share_ports),
        cmocka_unit_test(other_texts_are_no_lines_of_like_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
