/* SPDX-License-Identifier: Apache-2.0
 * Tests descriptions of machines: their meaning, and that writing them loses nothing. */
#include "base/result.h"
#include "topology/machine/machine.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LEVEL "level top overhead 5us bandwidth 50GB/s"

static struct tutti_machine *parse(const char *text, uint32_t nranks)
{
    struct tutti_machine *machine;

    if (tutti_machine_parse("test", text, nranks, &machine) != TUTTI_OK)
        fail_msg("%s: %s", text, tutti_message_last());
    return machine;
}

static void assert_places(const uint32_t *of, const char *digits)
{
    for (size_t i = 0; digits[i] != '\0'; i++)
        if (of[i] != (uint32_t)(digits[i] - '0'))
            fail_msg("item %zu is in place %u, not %c", i, of[i], digits[i]);
}

/* ---- meaning --------------------------------------------------------------------------------- */

static void every_line_of_a_file_is_understood(void **state)
{
    struct tutti_machine *machine = parse("tutti-machine 1\n"
                                          "# nodes of 2, in racks of 2\r\n"
                                          "ranks 6   # six\n"
                                          "\n"
                                          "node 2\n\tgroup 2\n"
                                          "level node latency 1us bandwidth 350GB/s\n"
                                          "level group bandwidth 50GB/s overhead 2.5us\n"
                                          "level top latency 1e-3s overhead 5us "
                                          "bandwidth 12.5GB/s\n"
                                          "nics 2; trunk 400GB/s # both; of them\n"
                                          "cores 2\nmemory 40GB/s\ncopy 10GiB/s\nreduce 8000MB/s\n"
                                          "ring 0 1 2 3 4 5\nring 5 0 4 1 3 2\n"
                                          "tree -1 0 0 1 1 2\n"
                                          "torus 2 3", 0);
    static const uint32_t second_ring[] = {5, 0, 4, 1, 3, 2};
    static const int32_t tree[] = {-1, 0, 0, 1, 1, 2};

    (void)state;
    assert_int_equal(machine->places.nranks, 6);
    assert_int_equal(machine->places.nnodes, 3);
    assert_int_equal(machine->places.ngroups, 2);
    assert_places(machine->places.node, "001122");
    assert_places(machine->places.group, "000011");
    assert_true(machine->level[0].latency_s == 1e-6 && machine->level[0].overhead_s == 0);
    assert_true(machine->level[0].bytes_per_s == 350e9);
    assert_true(machine->level[1].latency_s == 0 && machine->level[1].overhead_s == 2.5e-6);
    assert_true(machine->level[2].latency_s == 1e-3 && machine->level[2].bytes_per_s == 12.5e9);
    assert_int_equal(machine->nics, 2);
    assert_int_equal(machine->cores, 2);
    assert_true(machine->trunk_bytes_per_s == 400e9 && machine->memory_bytes_per_s == 40e9);
    assert_true(machine->copy_bytes_per_s == 10737418240.0);
    assert_true(machine->reduce_bytes_per_s == 8e9);
    assert_int_equal(machine->places.nrings, 2);
    assert_memory_equal(machine->places.rings + 6, second_ring, sizeof second_ring);
    assert_int_equal(machine->places.ntrees, 1);
    assert_memory_equal(machine->places.trees, tree, sizeof tree);
    assert_int_equal(machine->places.ndims, 2);
    assert_int_equal(machine->places.dims[0], 2);
    assert_int_equal(machine->places.dims[1], 3);
    tutti_machine_destroy(machine);
}

static void ranks_live_where_the_pattern_says(void **state)
{
    static const struct {
        const char *text;
        uint32_t nranks;
        const char *nodes, *groups;
    } cases[] = {
        {"node 3;" LEVEL, 8, "00011122", NULL},
        {"node 1 3 2;" LEVEL, 9, "011122344", NULL},
        {"node 4; place block;" LEVEL, 3, "000", NULL},
        {"node 2; place cyclic;" LEVEL, 6, "012012", NULL},
        {"node 4; place cyclic;" LEVEL, 6, "010101", NULL},
        {"node 1 3; place cyclic;" LEVEL, 4, "0111", NULL},
        {"node 1 2 3; place cyclic;" LEVEL, 6, "012122", NULL},
        {"node of 0 1 0 2;" LEVEL, 4, "0102", NULL},
        {"node 2; group 1 2;" LEVEL, 10, "0011223344", "0011112233"},
        {"node 2; group of 0 1 0;" LEVEL, 6, "001122", "001100"},
        {"group 2;" LEVEL, 4, "0123", "0011"},
        {"node 2; place cyclic; group 2;" LEVEL, 8, "01230123", "00110011"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine *machine = parse(cases[i].text, cases[i].nranks);

        assert_int_equal(machine->places.nranks, cases[i].nranks);
        assert_places(machine->places.node, cases[i].nodes);
        if (cases[i].groups == NULL)
            assert_null(machine->places.group);
        else
            assert_places(machine->places.group, cases[i].groups);
        tutti_machine_destroy(machine);
    }
}

static void without_nodes_each_rank_is_one(void **state)
{
    struct tutti_machine *machine = parse("ranks 5;" LEVEL, 0);

    (void)state;
    assert_null(machine->places.node);
    assert_int_equal(machine->places.nnodes, 5);
    assert_int_equal(machine->places.ngroups, 1);
    assert_int_equal(tutti_machine_level(machine, 3, 3), 0);
    assert_int_equal(tutti_machine_level(machine, 0, 1), 2);
    tutti_machine_destroy(machine);
}

static void the_ranks_follow_from_what_is_there(void **state)
{
    static const struct {
        const char *text;
        uint32_t asked, nranks;
    } cases[] = {
        {"ranks 5; node 4;" LEVEL, 0, 5},
        {"ranks 5; node 4;" LEVEL, 12, 12},
        {"torus 3 4 5;" LEVEL, 0, 60},
        {"node of 0 0 1;" LEVEL, 0, 3},
        {"ranks 1048576;" LEVEL, 0, 1048576},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine *machine = parse(cases[i].text, cases[i].asked);

        assert_int_equal(machine->places.nranks, cases[i].nranks);
        tutti_machine_destroy(machine);
    }
}

static void levels_that_are_not_given_cost_what_a_neighbor_costs(void **state)
{
    static const struct {
        const char *text;
        double expected[TUTTI_MACHINE_LEVELS];
    } cases[] = {
        {"level top bandwidth 3B/s", {3, 3, 3}},
        {"level node bandwidth 1B/s", {1, 1, 1}},
        {"level group bandwidth 2B/s", {2, 2, 2}},
        {"level node bandwidth 1B/s; level top bandwidth 3B/s", {1, 3, 3}},
        {"level node bandwidth 1B/s; level group bandwidth 2B/s", {1, 2, 2}},
        {"level group bandwidth 2B/s; level top bandwidth 3B/s", {2, 2, 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine *machine = parse(cases[i].text, 2);

        for (int level = 0; level < TUTTI_MACHINE_LEVELS; level++)
            assert_true(machine->level[level].bytes_per_s == cases[i].expected[level]);
        tutti_machine_destroy(machine);
    }
}

static void ranks_are_as_far_apart_as_their_places(void **state)
{
    struct tutti_machine *machine = parse("ranks 12; node 2; group 3;" LEVEL, 0);

    (void)state;
    assert_int_equal(tutti_machine_level(machine, 0, 1), 0);
    assert_int_equal(tutti_machine_level(machine, 1, 2), 1);
    assert_int_equal(tutti_machine_level(machine, 5, 6), 2);
    assert_int_equal(tutti_machine_level(machine, 11, 6), 1);
    tutti_machine_destroy(machine);
}

static void units_have_their_size(void **state)
{
    static const struct {
        const char *rate;
        double expected;
    } rates[] = {
        {"1B/s", 1},       {"2KB/s", 2e3},      {"3MB/s", 3e6},         {"4GB/s", 4e9},
        {"5TB/s", 5e12},   {"6KiB/s", 6144},    {"1MiB/s", 1048576},    {"0.5GiB/s", 536870912},
        {"1TiB/s", 1099511627776.0}, {"1e3B/s", 1000}, {"1e-3GB/s", 1e6}, {".5B/s", .5},
    };
    static const struct {
        const char *time;
        double expected;
    } times[] = {{"3ns", 3e-9}, {"2.5us", 2.5e-6}, {"4ms", 4e-3},
                 {"1s", 1},     {"0us", 0},        {"7.s", 7}};
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct tutti_machine *machine;

        snprintf(text, sizeof text, "level top bandwidth %s", rates[i].rate);
        machine = parse(text, 1);
        assert_true(machine->level[2].bytes_per_s == rates[i].expected);
        tutti_machine_destroy(machine);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct tutti_machine *machine;

        snprintf(text, sizeof text, "level top bandwidth 1B/s latency %s", times[i].time);
        machine = parse(text, 1);
        assert_true(machine->level[2].latency_s == times[i].expected);
        tutti_machine_destroy(machine);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool same_numbers(const void *a, const void *b, size_t count)
{
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, count * sizeof(uint32_t)) == 0);
}

static bool same_beyond(const struct tutti_footprint_rate *a, const struct tutti_footprint_rate *b)
{
    return memcmp(a, b, TUTTI_MACHINE_FOOTPRINTS * sizeof *a) == 0;
}

static bool same_machine(const struct tutti_machine *a, const struct tutti_machine *b)
{
    const struct tutti_placement *x = &a->places, *y = &b->places;
    size_t n = x->nranks;

    return n == y->nranks && x->nnodes == y->nnodes && x->ngroups == y->ngroups &&
           x->nrings == y->nrings && x->ntrees == y->ntrees && x->ndims == y->ndims &&
           same_numbers(x->node, y->node, n) && same_numbers(x->group, y->group, n) &&
           same_numbers(x->rings, y->rings, x->nrings * n) &&
           same_numbers(x->trees, y->trees, x->ntrees * n) &&
           same_numbers(x->dims, y->dims, 4) && memcmp(a->level, b->level, sizeof a->level) == 0 &&
           a->nics == b->nics && a->cores == b->cores &&
           a->trunk_bytes_per_s == b->trunk_bytes_per_s &&
           a->memory_bytes_per_s == b->memory_bytes_per_s &&
           a->copy_bytes_per_s == b->copy_bytes_per_s &&
           a->reduce_bytes_per_s == b->reduce_bytes_per_s &&
           a->load_bytes_per_s == b->load_bytes_per_s && a->signal_s == b->signal_s &&
           same_beyond(a->memory_beyond, b->memory_beyond) &&
           same_beyond(a->copy_beyond, b->copy_beyond) &&
           same_beyond(a->reduce_beyond, b->reduce_beyond) &&
           same_beyond(a->load_beyond, b->load_beyond);
}

static void what_is_written_reads_as_the_same_machine(void **state)
{
    static const char *const texts[] = {
        LEVEL,
        "node 3;" LEVEL,
        "node 1 3 2;" LEVEL,
        "node 1 3 2 1 3 2 2;" LEVEL,
        "node 4; place cyclic;" LEVEL,
        "node 1 2 3; place cyclic;" LEVEL,
        "node of 0 1 1 0 2 0 1 2 3 3 4 0;" LEVEL,
        "group 5;" LEVEL,
        "node 2; group 1 2;" LEVEL,
        "node 2; group of 0 1 0 2 2 1;" LEVEL,
        "torus 2 3 2;" LEVEL,
        "nics 3; cores 7; memory 123.456789GB/s; copy 1B/s; reduce 3.14159265358979KiB/s;" LEVEL,
        "memory 40GB/s beyond 1MiB 30GB/s; copy 2GB/s beyond 1B 1GB/s beyond 3GiB 2B/s beyond 5GiB "
        "3B/s beyond 5.5GiB 4B/s; reduce 7GB/s beyond 0B 6GB/s; load 5GB/s beyond 100KiB 9GB/s; "
        "signal 0.3us;"
        LEVEL,
        "level node bandwidth 9GB/s beyond 1.5MiB 8GB/s core 10GB/s; level top core 3GB/s beyond "
        "64KiB 2GB/s beyond 1000003B 1GB/s bandwidth 2GB/s latency 1us",
        "group 2; trunk 0.1TB/s; level top latency 1e-300s overhead 123456789s bandwidth 1e300B/s",
        "level node latency 0.1us overhead 0.3ns bandwidth 350GB/s; level group latency 0.7ms "
        "bandwidth 3e-5B/s",
        "ring 11 10 9 8 7 6 5 4 3 2 1 0; tree 1 2 3 4 5 6 7 8 9 10 11 -1; ring 0 1 2 3 4 5 6 7 8 9 "
        "10 11;" LEVEL,
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_machine *first = parse(texts[i], 12), *second;
        char *text, *again;

        assert_int_equal(tutti_machine_write(first, &text), TUTTI_OK);
        second = parse(text, 0);
        if (!same_machine(first, second))
            fail_msg("%s\nbecame\n%s", texts[i], text);
        assert_int_equal(tutti_machine_write(second, &again), TUTTI_OK);
        assert_string_equal(text, again);
        tutti_machine_destroy(first);
        tutti_machine_destroy(second);
        free(text);
        free(again);
    }
}

static void what_is_written_is_short(void **state)
{
    struct tutti_machine *machine = parse("node 8; group 16; trunk 400GB/s; level node latency 1us "
                                          "bandwidth 350GB/s; level top overhead 2.5us bandwidth "
                                          "0.5GB/s", 16380);
    char *text;

    (void)state;
    assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
    assert_string_equal(text, "tutti-machine 1\n"
                              "ranks 16380\n"
                              "node 8\n"
                              "group 16\n"
                              "level node  latency 1us overhead 0s bandwidth 350GB/s\n"
                              "level group latency 0s overhead 2.5us bandwidth 500MB/s\n"
                              "level top   latency 0s overhead 2.5us bandwidth 500MB/s\n"
                              "trunk 400GB/s\n");
    free(text);
    tutti_machine_destroy(machine);
}

static void the_footprint_of_a_call_decides_on_rates(void **state)
{
    static const struct {
        double footprint, top, core, copy, load;
    } cases[] = {
        {0, 9, 10, 20, 0}, {1024, 9, 10, 20, 0}, {1025, 8, 10, 20, 0}, {1 << 20, 8, 10, 20, 0},
        {(1 << 20) + 1, 7, 5, 20, 0}, {1e30, 7, 5, 3, 0},
    };
    struct tutti_machine *machine = parse(
        "level top bandwidth 9B/s beyond 1KiB 8B/s beyond 1MiB 7B/s core 10B/s beyond 1MiB 5B/s; "
        "copy 20B/s beyond 1GiB 3B/s", 4);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine at;

        tutti_machine_for_footprint(machine, cases[i].footprint, &at);
        assert_true(at.level[2].bytes_per_s == cases[i].top);
        assert_true(at.level[0].core_bytes_per_s == cases[i].core);
        assert_true(at.copy_bytes_per_s == cases[i].copy);
        assert_true(at.load_bytes_per_s == cases[i].load);
        assert_true(at.level[2].beyond[0].bytes_per_s == 0 && at.copy_beyond[0].bytes_per_s == 0);
    }
    assert_true(tutti_machine_footprint(TUTTI_ALLREDUCE, 4, 10) == 20);
    assert_true(tutti_machine_footprint(TUTTI_ALLGATHER, 4, 10) == 50);
    assert_true(tutti_machine_footprint(TUTTI_ALLTOALL, 4, 10) == 80);
    tutti_machine_destroy(machine);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void a_name_a_line_and_a_file_are_told_apart(void **state)
{
    char path[] = "/tmp/tutti-machine-XXXXXX";
    static const char text[] = "ranks 3\n" LEVEL "\n";
    struct tutti_machine *machine;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(tutti_machine_load(path, 0, &machine), TUTTI_OK);
    assert_int_equal(machine->places.nranks, 3);
    tutti_machine_destroy(machine);
    assert_int_equal(tutti_machine_load("ranks 4;" LEVEL, 0, &machine), TUTTI_OK);
    assert_int_equal(machine->places.nranks, 4);
    tutti_machine_destroy(machine);
    unlink(path);
    assert_int_equal(tutti_machine_load(path, 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), path));
}

static void every_named_machine_serves_any_number_of_ranks(void **state)
{
    const struct tutti_machine_example *named;
    size_t count = 0;

    (void)state;
    for (; (named = tutti_machine_example_at(count)) != NULL; count++)
        for (uint32_t nranks = 1; nranks <= 300; nranks += 23) {
            struct tutti_machine *machine;

            assert_int_equal(tutti_machine_load(named->name, nranks, &machine), TUTTI_OK);
            assert_int_equal(machine->places.nranks, nranks);
            tutti_machine_destroy(machine);
        }
    assert_true(count > 0);
}

static void a_program_with_decimal_commas_reads_and_writes_points(void **state)
{
    const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    struct tutti_machine *machine;
    char *text;

    (void)state;
    /* Where none of them is installed the rest still holds. */
    for (size_t i = 0; i < 3 && setlocale(LC_NUMERIC, locales[i]) == NULL; i++)
        continue;
    machine = parse("ranks 1; level top latency 2.5us bandwidth 0.5B/s", 0);
    assert_true(machine->level[2].latency_s == 2.5e-6);
    assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
    assert_non_null(strstr(text, "latency 2.5us"));
    setlocale(LC_NUMERIC, "C");
    free(text);
    tutti_machine_destroy(machine);
}

/* 16,384 ranks with 64 rings and trees: quadratic work anywhere would not end. */
static void large_machines_are_read_and_written(void **state)
{
    enum { RANKS = 16384, ORDERS = 32 };
    struct tutti_machine *first, *second;
    size_t size = 0;
    char *text = NULL, *again;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    fprintf(out, "ranks %d\nnode 8\nplace cyclic\ngroup 16\n" LEVEL "\n", RANKS);
    for (int order = 1; order <= ORDERS; order++) {
        fputs("\nring", out);
        for (int i = 0; i < RANKS; i++)
            fprintf(out, " %d", i * (2 * order + 1) % RANKS);
        fputs("\ntree -1", out);
        for (int i = 1; i < RANKS; i++)
            fprintf(out, " %d", order == 1 ? i - 1 : (i - 1) / order);
    }
    fclose(out);
    first = parse(text, 0);
    assert_int_equal(tutti_machine_write(first, &again), TUTTI_OK);
    second = parse(again, 0);
    assert_true(same_machine(first, second));
    tutti_machine_destroy(first);
    tutti_machine_destroy(second);
    free(text);
    free(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_of_a_file_is_understood),
        cmocka_unit_test(ranks_live_where_the_pattern_says),
        cmocka_unit_test(without_nodes_each_rank_is_one),
        cmocka_unit_test(the_ranks_follow_from_what_is_there),
        cmocka_unit_test(levels_that_are_not_given_cost_what_a_neighbor_costs),
        cmocka_unit_test(ranks_are_as_far_apart_as_their_places),
        cmocka_unit_test(units_have_their_size),
        cmocka_unit_test(what_is_written_reads_as_the_same_machine),
        cmocka_unit_test(what_is_written_is_short),
        cmocka_unit_test(the_footprint_of_a_call_decides_on_rates),
        cmocka_unit_test(a_name_a_line_and_a_file_are_told_apart),
        cmocka_unit_test(every_named_machine_serves_any_number_of_ranks),
        cmocka_unit_test(a_program_with_decimal_commas_reads_and_writes_points),
        cmocka_unit_test(large_machines_are_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
