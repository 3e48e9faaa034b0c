/* SPDX-License-Identifier: Apache-2.0
 * Compares clusters of like parts with clusters that are described whole: data between the same
 * gpus must cross the same links, with the same rates. */
#include "base/result.h"
#include "topology/graph/parts.h"
#include "topology/search/costs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/machines.h"

/* Hosts are described whole up to TUTTI_LINE_MOST_HOSTS, and racks up to two. */
static const struct {
    const char *whole, *like;
} clusters[] = {
    {"4 hosts: dgx-h100", "5 hosts: dgx-h100"},
    {"3 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 2",
     "9 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 2"},
    {"4 hosts: 8 gpus mi300x mesh 1, 4 nics 400G roce, 2 cpus genoa cores 2",
     "100 hosts: 8 gpus mi300x mesh 1, 4 nics 400G roce, 2 cpus genoa cores 2"},
    {"2 racks of 3 hosts: 2 gpus gb200 nvswitch c2c 225GB/s, 2 nics 400G, 1 cpu grace cores 2",
     "7 racks of 3 hosts: 2 gpus gb200 nvswitch c2c 225GB/s, 2 nics 400G, 1 cpu grace cores 2"},
};

static struct tutti_machine *describe(const struct machine *of)
{
    struct tutti_search_options options = {.has_peers = true};
    struct tutti_graph_parts parts;
    struct tutti_channels *ring;
    struct tutti_machine *machine = NULL;

    assert_int_equal(tutti_graph_parts_find(of->graph, &parts), TUTTI_OK);
    options.nhosts = parts.part[0].nhosts;
    tutti_graph_parts_fini(&parts);
    if (tutti_search(of->paths, TUTTI_PATTERN_RING, &options, &ring) != TUTTI_OK ||
        tutti_search_machine(of->paths, ring, NULL, TUTTI_RATES_REACHED, &machine) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    tutti_channels_destroy(ring);
    return machine;
}

/* Which link of the one machine takes the place of which link of the other one. */
struct comparison {
    const struct tutti_machine *whole, *like;
    uint32_t *of_whole, *of_like; /* one more than the number of the other link; 0: none yet */
};

static void compare_link(const struct comparison *comparison, uint32_t whole, uint32_t like)
{
    assert_true(tutti_machine_link(&comparison->whole->links, whole)->bytes_per_s ==
                tutti_machine_link(&comparison->like->links, like)->bytes_per_s);
    if (comparison->of_whole[whole] == 0 && comparison->of_like[like] == 0) {
        comparison->of_whole[whole] = like + 1;
        comparison->of_like[like] = whole + 1;
    }
    assert_int_equal(comparison->of_whole[whole], like + 1);
    assert_int_equal(comparison->of_like[like], whole + 1);
}

static void compare_path(const struct comparison *comparison,
                         const struct tutti_machine_path *whole,
                         const struct tutti_machine_path *like)
{
    struct tutti_machine_shift shift =
        tutti_machine_shift_of(&comparison->like->links, whole->from, whole->to);

    assert_non_null(like);
    assert_int_equal(whole->count, like->count);
    assert_true(whole->latency_s == like->latency_s);
    for (uint32_t i = 0; i < whole->count; i++) {
        const struct tutti_machine_crossing *a =
            &comparison->whole->links.crossings[whole->first + i];
        const struct tutti_machine_crossing *b =
            &comparison->like->links.crossings[like->first + i];

        assert_true(a->weight == b->weight);
        compare_link(comparison, a->link, tutti_machine_shifted(&shift, b->link));
    }
}

static void compare_machines(const struct tutti_machine *whole, const struct tutti_machine *like)
{
    struct comparison comparison = {.whole = whole, .like = like};

    comparison.of_whole = calloc(whole->links.nlinks, sizeof *comparison.of_whole);
    comparison.of_like = calloc(tutti_machine_link_count(&like->links), sizeof(uint32_t));
    assert_true(comparison.of_whole != NULL && comparison.of_like != NULL);
    assert_int_equal(whole->links.nkinds, 0);
    assert_int_equal(like->links.nkinds, 1);
    for (uint32_t i = 0; i < whole->links.npaths; i++) {
        const struct tutti_machine_path *path = &whole->links.paths[i];

        compare_path(&comparison, path,
                     path->has_channel
                         ? tutti_machine_channel_path(like, path->from, path->to, path->channel)
                         : tutti_machine_path(like, path->from, path->to));
    }
    free(comparison.of_whole);
    free(comparison.of_like);
}

static void compare_places(const struct tutti_machine *whole, const struct tutti_machine *like)
{
    uint32_t n = whole->places.nranks;

    assert_true(like->places.nranks > n);
    assert_memory_equal(whole->places.node, like->places.node, n * sizeof(uint32_t));
    assert_int_equal(whole->places.nrings, like->places.nrings);
    assert_int_not_equal(whole->places.nrings, 0);
    for (uint32_t i = 0; i < whole->places.nrings; i++)
        assert_memory_equal(whole->places.rings + (size_t)i * n,
                            like->places.rings + (size_t)i * like->places.nranks,
                            n * sizeof(uint32_t));
    for (int level = 0; level < TUTTI_MACHINE_LEVELS; level++) {
        assert_true(whole->level[level].bytes_per_s == like->level[level].bytes_per_s);
        assert_true(whole->level[level].latency_s == like->level[level].latency_s);
    }
    /* A ring takes as long to pass a link, however many parts it goes through. */
    for (uint32_t i = 1; i <= 2 * whole->places.nrings; i++) {
        double a = tutti_machine_rings_rate(whole, i), b = tutti_machine_rings_rate(like, i);

        assert_true(a > 0 && fabs(a - b) < 1e-9 * a);
    }
}

static void like_parts_have_the_links_of_whole_descriptions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof clusters / sizeof clusters[0]; i++) {
        struct machine whole = open_machine(clusters[i].whole);
        struct machine like = open_machine(clusters[i].like);
        struct tutti_machine *a = describe(&whole), *b = describe(&like);

        compare_machines(a, b);
        compare_places(a, b);
        tutti_machine_destroy(a);
        tutti_machine_destroy(b);
        close_machine(&whole);
        close_machine(&like);
    }
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void kinds_of_hosts_are_told_apart(void **state)
{
    struct machine of = open_machine("6 hosts: 2 gpus a100 mesh 4, 1 nic 100G, 1 cpu cores 2; "
                                     "1 host: 4 gpus h100 mesh 4, 2 nics 400G, 1 cpu cores 2; "
                                     "9 hosts: 1 gpu t4, 1 nic 25G, 1 cpu cores 2");
    struct tutti_machine *machine = describe(&of);
    static const uint32_t expected[][2] = {{6, 2}, {1, 4}, {9, 1}};

    (void)state;
    assert_int_equal(machine->places.nranks, 25);
    assert_int_equal(machine->places.nnodes, 16);
    assert_int_equal(machine->places.node[15], 6);
    assert_int_equal(machine->links.nkinds, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(machine->links.kinds[i].nparts, expected[i][0]);
        assert_int_equal(machine->links.kinds[i].nranks, expected[i][1]);
    }
    for (uint32_t from = 0; from < 25; from++)
        for (uint32_t to = 0; to < 25; to++)
            assert_true((tutti_machine_path(machine, from, to) == NULL) == (from == to));
    /* The port of a T4 bounds what reaches its host, whoever sends. */
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 11, 24)) <= 3.2e9);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 12, 15)) > 3.2e9);
    tutti_machine_destroy(machine);
    close_machine(&of);
}

static void parts_are_counted(void **state)
{
    struct machine of = open_machine("2048 hosts: dgx-h100; 3 racks: gb200-nvl72");
    struct tutti_graph_parts parts;

    (void)state;
    assert_int_equal(tutti_graph_parts_find(of.graph, &parts), TUTTI_OK);
    assert_int_equal(parts.nparts, 4);
    assert_int_equal(parts.nall, 2051);
    assert_int_equal(parts.nranks, 2048 * 8 + 3 * 72);
    assert_int_equal(parts.part[1].copies, 2047);
    assert_int_equal(parts.part[2].nhosts, 18);
    assert_int_equal(parts.part[2].first_rank, 2048 * 8);
    assert_int_equal(parts.part[3].copies, 2);
    assert_int_equal(tutti_graph_part_of_host(&parts, 20), 3);
    assert_int_equal(tutti_graph_part_of_gpu(&parts, 15), 1);
    assert_false(tutti_graph_is_one_domain(&parts));
    tutti_graph_parts_fini(&parts);
    close_machine(&of);
    of = open_machine("gb200-nvl72");
    assert_int_equal(tutti_graph_parts_find(of.graph, &parts), TUTTI_OK);
    assert_true(tutti_graph_is_one_domain(&parts));
    tutti_graph_parts_fini(&parts);
    close_machine(&of);
}

/* Files may say anything of copies. */
static void wrong_copies_are_refused(void **state)
{
    static const struct {
        int64_t copies[3]; /* of three like hosts */
        const char *what;
    } cases[] = {
        {{1, -1, 1}, "host 1 has copies=\"-1\"; give 1 to"},
        {{1, 0, 1}, "host 1 has copies=\"0\"; give 1 to"},
        {{1, INT64_MAX, 1}, "give 1 to"},
        {{5, 1, 1}, "host 0 has copies=\"5\", and the host before it is not like it"},
        {{1, 5, 5}, "host 2 has copies=\"5\", and the host before it is not like it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine of = open_machine("3 hosts: 2 gpus a100 mesh 4, 1 nic 100G, 1 cpu cores 2");
        struct tutti_graph_parts parts;
        uint32_t cpu = TUTTI_NO_DEVICE;

        for (uint32_t host = 0; host < 3; host++) {
            cpu = tutti_inventory_next_of(of.graph->inventory, cpu, TUTTI_DEVICE_CPU);
            tutti_device_set_number(of.graph->inventory, cpu, TUTTI_PROPERTY_COPIES,
                                    TUTTI_SOURCE_FILE, cases[i].copies[host]);
        }
        assert_int_equal(tutti_graph_parts_find(of.graph, &parts), TUTTI_ERR_ARGUMENT);
        if (strstr(tutti_message_last(), cases[i].what) == NULL)
            fail_msg("said: %s", tutti_message_last());
        close_machine(&of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_parts_have_the_links_of_whole_descriptions),
        cmocka_unit_test(kinds_of_hosts_are_told_apart),
        cmocka_unit_test(parts_are_counted),
        cmocka_unit_test(wrong_copies_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
