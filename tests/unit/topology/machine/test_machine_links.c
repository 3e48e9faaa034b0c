/* SPDX-License-Identifier: Apache-2.0
 * Tests links and paths of a machine: the meaning of lines, the meaning of arrays, and errors. */
#include "base/result.h"
#include "topology/machine/machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEVEL "level node latency 3us bandwidth 50GB/s; level top latency 9us bandwidth 5GB/s"

static void assert_latency(const struct tutti_machine *machine, uint32_t from, uint32_t to,
                           double seconds)
{
    assert_true(tutti_machine_path_latency_s(machine, tutti_machine_path(machine, from, to), from,
                                             to) == seconds);
}

static struct tutti_machine *parse(const char *text)
{
    struct tutti_machine *machine;

    if (tutti_machine_parse("test", text, 0, &machine) != TUTTI_OK)
        fail_msg("%s: %s", text, tutti_message_last());
    return machine;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void lines_say_what_each_pair_crosses(void **state)
{
    struct tutti_machine *machine =
        parse("path 2 0 latency 2us via 3x0.5 0 1x1.25; path 0 1 via 2 latency 4us\n"
              "link up 80GB/s 40GB/s; link gpu0>sys:1 20GB/s\nlink 1GiB/s\n"
              "path 0 2 via; path 1 2 via 1; ranks 3; node 2;" LEVEL);
    const struct tutti_machine_links *links = &machine->links;
    const struct tutti_machine_path *path;

    (void)state;
    assert_int_equal(links->nlinks, 4);
    assert_string_equal(links->links[0].name, "up");
    assert_string_equal(links->links[1].name, "");
    assert_string_equal(links->links[2].name, "gpu0>sys:1");
    assert_true(links->links[2].bytes_per_s == 20e9 && links->links[3].bytes_per_s == 1 << 30);
    assert_int_equal(links->npaths, 4);
    path = tutti_machine_path(machine, 2, 0);
    assert_int_equal(path->count, 3);
    assert_int_equal(links->crossings[path->first].link, 3);
    assert_true(links->crossings[path->first].weight == 0.5);
    assert_int_equal(links->crossings[path->first + 1].link, 0);
    assert_true(links->crossings[path->first + 1].weight == 1);
    assert_true(tutti_machine_path_rate(machine, path) == 2.0 * (1 << 30));
    assert_true(tutti_machine_path_latency_s(machine, path, 2, 0) == 2e-6);
    assert_latency(machine, 0, 1, 4e-6);
    /* The level's, where the path has none. */
    assert_latency(machine, 1, 2, 9e-6);
    assert_int_equal(tutti_machine_path(machine, 0, 2)->count, 0);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 0, 2)) == 0);
    assert_null(tutti_machine_path(machine, 1, 0));
    assert_null(tutti_machine_path(machine, 2, 1));
    tutti_machine_destroy(machine);
}

/* A full mesh of 4, 80 GB/s each way: two directions of one order share nothing, orders do. */
static void rings_carry_what_their_links_leave_them(void **state)
{
    static const double expected[] = {80e9, 160e9, 120e9, 160e9, 200e9, 240e9};
    struct tutti_machine *machine;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    fputs("ranks 4; ring 0 1 2 3; ring 0 2 1 3; ring 0 1 3 2;" LEVEL "\n", out);
    for (int from = 0, link = 0; from < 4; from++)
        for (int to = 0; to < 4; to++)
            if (from != to)
                fprintf(out, "link 80GB/s; path %d %d via %d\n", from, to, link++);
    fclose(out);
    machine = parse(text);
    free(text);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(tutti_machine_rings_rate(machine, i + 1) == expected[i]);
    assert_true(tutti_machine_rings_rate(machine, 0) == 0);
    assert_true(tutti_machine_rings_rate(machine, 7) == 0);
    assert_int_equal(tutti_machine_set_links(machine, &(struct tutti_machine_links){.nlinks = 0}),
                     TUTTI_OK);
    assert_true(tutti_machine_rings_rate(machine, 1) == 0);
    tutti_machine_destroy(machine);
    /* Forwards there is a path for each pair, backwards there is not; weights count. */
    machine = parse("ranks 3; ring 2 1 0; link 6GB/s; path 2 1 via 0; path 1 0 via 0x2;"
                    "path 0 2 via 0x3; path 1 2 via;" LEVEL);
    assert_true(tutti_machine_rings_rate(machine, 1) == 1e9);
    assert_true(tutti_machine_rings_rate(machine, 2) == 0);
    tutti_machine_destroy(machine);
}

static void a_machine_without_paths_has_none(void **state)
{
    struct tutti_machine *machine = parse("ranks 2;" LEVEL);

    (void)state;
    assert_int_equal(machine->links.nlinks, 0);
    assert_null(tutti_machine_path(machine, 0, 1));
    tutti_machine_destroy(machine);
}

static void assert_same_links(const struct tutti_machine_links *a,
                              const struct tutti_machine_links *b)
{
    assert_int_equal(a->nlinks, b->nlinks);
    assert_int_equal(a->npaths, b->npaths);
    for (uint32_t i = 0; i < a->nlinks; i++) {
        assert_true(a->links[i].bytes_per_s == b->links[i].bytes_per_s);
        assert_string_equal(a->links[i].name, b->links[i].name);
    }
    for (uint32_t i = 0; i < a->npaths; i++) {
        const struct tutti_machine_path *x = &a->paths[i], *y = &b->paths[i];

        assert_int_equal(x->from, y->from);
        assert_int_equal(x->to, y->to);
        assert_int_equal(x->count, y->count);
        assert_true(x->latency_s == y->latency_s);
        for (uint32_t at = 0; at < x->count; at++) {
            assert_int_equal(a->crossings[x->first + at].link, b->crossings[y->first + at].link);
            assert_true(a->crossings[x->first + at].weight == b->crossings[y->first + at].weight);
        }
    }
}

static void assert_survives(const struct tutti_machine *machine)
{
    struct tutti_machine *again;
    char *text, *same;

    assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
    again = parse(text);
    assert_same_links(&machine->links, &again->links);
    assert_int_equal(tutti_machine_write(again, &same), TUTTI_OK);
    assert_string_equal(text, same);
    tutti_machine_destroy(again);
    free(text);
    free(same);
}

static void channels_have_paths_of_their_own(void **state)
{
    struct tutti_machine *machine =
        parse("ranks 2; link 8GB/s 4GB/s; path 0 1 via 0; path 0 1 channel 3 via 1; "
              "path 1 0 via 0 channel 255; ring 0 1;" LEVEL);

    (void)state;
    assert_int_equal(machine->links.npaths, 3);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 0, 1)) == 8e9);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_channel_path(machine, 0, 1, 3)) ==
                4e9);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_channel_path(machine, 0, 1, 2)) ==
                8e9);
    assert_null(tutti_machine_path(machine, 1, 0));
    assert_null(tutti_machine_channel_path(machine, 1, 0, 254));
    assert_non_null(tutti_machine_channel_path(machine, 1, 0, 255));
    assert_survives(machine);
    tutti_machine_destroy(machine);
}

static void what_is_written_reads_as_the_same_links(void **state)
{
    static const char *const texts[] = {
        "ranks 2; link 1B/s;" LEVEL,
        "ranks 2; path 0 1 via;" LEVEL,
        "ranks 3; link a 80GB/s b 3.14159265358979KiB/s 7TB/s; path 2 1 via 2 0x0.7 1x1.3333333; "
        "path 0 1 latency 0us via 1x0.001; path 1 0 via 0x1000 latency 1e-300s;" LEVEL,
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tutti_machine *machine = parse(texts[i]);

        assert_survives(machine);
        tutti_machine_destroy(machine);
    }
}

static void links_are_written_as_they_are_read(void **state)
{
    struct tutti_machine *machine = parse("ranks 2; level top bandwidth 5GB/s; path 1 0 via 1x0.7 "
                                          "0; link up 80GB/s 2.5GB/s; path 0 1 latency 1.5us via");
    char *text;

    (void)state;
    assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
    assert_non_null(strstr(text, "link up 80GB/s\n"
                                 "link 2.5GB/s\n"
                                 "path 0 1 latency 1.5us via\n"
                                 "path 1 0 via 1x0.7 0\n"));
    free(text);
    tutti_machine_destroy(machine);
}

/* A full mesh of 256 ranks: quadratic work in the number of paths would not end. */
static void large_graphs_are_read_and_written(void **state)
{
    enum { RANKS = 256 };
    struct tutti_machine *machine;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    fprintf(out, "ranks %d\n" LEVEL "\nlink", RANKS);
    for (uint32_t i = 0; i < TUTTI_MACHINE_LINKS; i++)
        fputs(" 50GB/s", out);
    for (int from = RANKS - 1; from >= 0; from--)
        for (int to = 0; to < RANKS; to++)
            if (from != to)
                fprintf(out, "\npath %d %d via %d %d", from, to, from * RANKS + from,
                        from * RANKS + to);
    fclose(out);
    machine = parse(text);
    assert_int_equal(machine->links.npaths, RANKS * (RANKS - 1));
    assert_survives(machine);
    tutti_machine_destroy(machine);
    free(text);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {"link", "m:1:5: ", "the line ends here; expected a rate such as 50GB/s"},
        {"link up", "m:1:8: ", "the line ends here; expected a rate such as 50GB/s"},
        {"link up down 1GB/s", "m:1:9: ", "\"down\"; expected a rate"},
        {"link 5", "m:1:6: ", "\"5\"; expected a rate"},
        {"link 1GB/s 0GB/s", "m:1:12: ", "a rate above 0"},
        {"link .5B/s", "m:1:6: ", "\".5B/s\"; a link carries 1B/s or more"},
        {"link _up 1GB/s", "m:1:6: ", "\"_up\" is neither a rate such as 50GB/s nor a link's name"},
        {"link h\xc3\xa9 1GB/s", "m:1:6: ", "neither a rate"},
        {"link a12345678901234567890123456789012345678901234567 1GB/s", "m:1:6: ",
         "at most 47 characters"},
        {"path", "m:1:5: ", "the line ends here; expected a number from 0"},
        {"path 0", "m:1:7: ", "the line ends here; expected a number from 0"},
        {"path 0 -1 via", "m:1:8: ", "\"-1\"; expected a number from 0"},
        {"path 1 1 via", "m:1:8: ", "a path from rank 1 to itself"},
        {"path 0 1", "m:1:9: ", "the path has no links; add them, such as via 3 7, or via alone"},
        {"path 0 1 latency 1us", "m:1:21: ", "the path has no links"},
        {"path 0 1 2", "m:1:10: ", "\"2\"; a path has latency, channel, and via"},
        {"path 0 1 via 2 latency 1us 3", "m:1:28: ", "\"3\"; a path has"},
        {"path 0 1 via 2 via 3", "m:1:16: ", "each once"},
        {"path 0 1 channel 1 via channel 2", "m:1:24: ", "each once"},
        {"path 0 1 channel 256 via", "m:1:18: ", "255"},
        {"path 0 1 latency 1us via latency 2us", "m:1:26: ", "each once"},
        {"path 0 1 latency via", "m:1:18: ", "\"via\"; expected a time"},
        {"path 0 1 via 2y", "m:1:14: ", "\"2y\"; expected a number from 0 to 4194303"},
        {"path 0 1 via 4194304", "m:1:14: ", "expected a number from 0 to 4194303"},
        {"path 0 1 via 2x", "m:1:16: ", "expected a number from 0.001 to 1000"},
        {"path 0 1 via 2x0", "m:1:16: ", "\"0\"; expected a number from 0.001 to 1000"},
        {"path 0 1 via 2x1001", "m:1:16: ", "expected a number from 0.001 to 1000"},
        {"path 0 1 via 2x1.2GB/s", "m:1:16: ", "expected a number from 0.001"},
        {"path 0 1 via 2xx", "m:1:16: ", "\"x\"; expected a number from 0.001"},
        {"path 0 1 via 4 2 4", "m:1:18: ", "link 4 twice; give it a weight, such as 4x2"},
        {"ranks 2;" LEVEL ";\npath 0 1 via 0x2", "m:2:14: ", "link 0, but there are 0"},
        {"ranks 2;" LEVEL ";link 1GB/s\n\n path 0 1 via 0 1", "m:3:17: ",
         "link 1, but there are 1; they are numbered from 0 on"},
        {"ranks 2;" LEVEL "\npath 0 2 via", "m:2:8: ", "a path of rank 2; ranks are 0 to 1"},
        {"ranks 2;" LEVEL "\npath 2 0 via", "m:2:6: ", "a path of rank 2; ranks are 0 to 1"},
        {"ranks 2;" LEVEL "\npath 0 1 via; path 1 0 via\n path 0 1 via", "m:3:7: ",
         "the path from rank 0 to 1 again; line 2 has it"},
        {"path 0 1 via 0;" LEVEL, "m:1:94: ", "the number of ranks is not given"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine *machine = (struct tutti_machine *)&state;
        const char *said;

        if (tutti_machine_parse("m", cases[i].text, 0, &machine) != TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        said = tutti_message_last();
        if (strncmp(said, cases[i].where, strlen(cases[i].where)) != 0 ||
            strstr(said, cases[i].what) == NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s%s", cases[i].text, said, cases[i].where,
                     cases[i].what);
        assert_ptr_equal(machine, &state);
    }
}

static void more_links_than_fit_are_refused(void **state)
{
    struct tutti_machine *machine;
    size_t size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    fputs("ranks 2;" LEVEL ";link", out);
    for (uint32_t i = 0; i <= TUTTI_MACHINE_LINKS; i++)
        fputs(" 1B/s", out);
    fclose(out);
    assert_int_equal(tutti_machine_parse("m", text, 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "link number 65537; there may be 65536"));
    free(text);
    out = open_memstream(&text, &size);
    fputs("ranks 2;" LEVEL ";path 0 1 via", out);
    for (uint32_t i = 0; i <= TUTTI_MACHINE_PATH_LINKS; i++)
        fprintf(out, " %u", i);
    fclose(out);
    assert_int_equal(tutti_machine_parse("m", text, 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "link number 65 of the path; there may be 64"));
    free(text);
}

/* One byte of a good description changed at a time: it is read or refused, and what is read
 * survives being written. */
static void mutated_links_are_read_or_refused(void **state)
{
    static const char good[] = "ranks 2;level top bandwidth 5GB/s;link a 1GB/s 2e9B/s;"
                               "path 0 1 via 1x1.5 0;path 1 0 latency 2us via";
    size_t accepted = 0, refused = 0;
    char text[sizeof good];

    (void)state;
    for (size_t at = 0; at + 1 < sizeof good; at++)
        for (int byte = 1; byte < 256; byte++) {
            struct tutti_machine *machine;

            memcpy(text, good, sizeof good);
            text[at] = (char)byte;
            if (tutti_machine_parse("m", text, 0, &machine) != TUTTI_OK) {
                refused++;
                continue;
            }
            accepted++;
            assert_survives(machine);
            tutti_machine_destroy(machine);
        }
    assert_true(accepted > 0 && refused > accepted);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void arrays_are_copied_and_sorted(void **state)
{
    struct tutti_machine_link link[] = {{4e9, "up"}, {2e9, ""}};
    struct tutti_machine_crossing crossing[] = {{1, 1}, {0, 4}, {1, 1}};
    struct tutti_machine_path path[] = {
        {.from = 2, .to = 1, .has_channel = true, .channel = 7, .first = 1, .count = 1},
        {.from = 2, .to = 1, .first = 1, .count = 2, .latency_s = -1},
        {.from = 0, .to = 2, .first = 0, .count = 1, .latency_s = 5e-6},
        {.from = 2, .to = 0, .latency_s = -1},
    };
    struct tutti_machine_links links = {.links = link, .nlinks = 2, .paths = path, .npaths = 4,
                                        .crossings = crossing, .ncrossings = 3};
    struct tutti_machine *machine = parse("ranks 3; link 1B/s 1B/s 1B/s;" LEVEL);

    (void)state;
    assert_int_equal(tutti_machine_set_links(machine, &links), TUTTI_OK);
    memset(link, 0, sizeof link);
    memset(path, 0, sizeof path);
    memset(crossing, 0, sizeof crossing);
    assert_int_equal(machine->links.nlinks, 2);
    assert_int_equal(tutti_machine_path(machine, 2, 0)->count, 0);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 2, 1)) == 1e9);
    assert_latency(machine, 0, 2, 5e-6);
    assert_survives(machine);
    /* Given back what it has, and then nothing. */
    assert_int_equal(tutti_machine_set_links(machine, &machine->links), TUTTI_OK);
    assert_int_equal(machine->links.npaths, 4);
    assert_int_equal(tutti_machine_path(machine, 2, 1)->count, 2);
    assert_int_equal(tutti_machine_channel_path(machine, 2, 1, 6)->count, 2);
    assert_int_equal(tutti_machine_channel_path(machine, 2, 1, 7)->count, 1);
    links = (struct tutti_machine_links){.nlinks = 0};
    assert_int_equal(tutti_machine_set_links(machine, &links), TUTTI_OK);
    assert_null(tutti_machine_path(machine, 2, 1));
    tutti_machine_destroy(machine);
}

static struct tutti_machine_path path_of(uint32_t from, uint32_t to, uint32_t first, uint32_t count,
                                         double latency_s)
{
    return (struct tutti_machine_path){
        .from = from, .to = to, .first = first, .count = count, .latency_s = latency_s};
}

static void wrong_arrays_change_nothing(void **state)
{
    struct tutti_machine_link link = {4e9, "up"}, slow = {0.5, ""}, odd = {4e9, "no name"};
    struct tutti_machine_link endless = {INFINITY, ""};
    struct tutti_machine_crossing crossing[] = {{0, 1}, {0, 1}, {1, 1}, {0, NAN}, {0, 0}};
    struct tutti_machine_path pair[] = {path_of(0, 1, 0, 1, -1), path_of(0, 1, 0, 1, 0)};
    struct tutti_machine_path self = path_of(1, 1, 0, 1, -1), far = path_of(0, 2, 0, 1, -1);
    struct tutti_machine_path twice = path_of(0, 1, 0, 2, -1), beyond = path_of(0, 1, 2, 1, -1);
    struct tutti_machine_path nan = path_of(0, 1, 3, 1, -1), zero = path_of(0, 1, 4, 1, -1);
    struct tutti_machine_path outside = path_of(0, 1, 4, 2, -1);
    struct tutti_machine_path wraps = path_of(0, 1, UINT32_MAX, 2, -1);
    struct tutti_machine_path never = path_of(0, 1, 0, 1, NAN);
    const struct {
        struct tutti_machine_links links;
        const char *what;
    } cases[] = {
        {{&slow, 1, pair, 1, crossing, 5, NULL, 0}, "link 0 carries 0.5 B/s"},
        {{&endless, 1, pair, 1, crossing, 5, NULL, 0}, "link 0 carries inf B/s"},
        {{&odd, 1, pair, 1, crossing, 5, NULL, 0}, "link 0 has the name \"no name\"; a name"},
        {{&link, 1, pair, 2, crossing, 5, NULL, 0}, "two paths from rank 0 to 1"},
        {{&link, 1, &self, 1, crossing, 5, NULL, 0}, "a path from rank 1 to 1"},
        {{&link, 1, &far, 1, crossing, 5, NULL, 0}, "a path from rank 0 to 2"},
        {{&link, 1, &twice, 1, crossing, 5, NULL, 0}, "crosses link 0 twice"},
        {{&link, 1, &beyond, 1, crossing, 5, NULL, 0}, "crosses link 1, but there are 1"},
        {{&link, 1, &nan, 1, crossing, 5, NULL, 0}, "takes nan bytes of link 0"},
        {{&link, 1, &zero, 1, crossing, 5, NULL, 0}, "takes 0 bytes of link 0"},
        {{&link, 1, &outside, 1, crossing, 5, NULL, 0}, "has crossings 4 to 6 of 5"},
        {{&link, 1, &wraps, 1, crossing, 5, NULL, 0}, "of 5"},
        {{&link, 1, &never, 1, crossing, 5, NULL, 0}, "a latency of nan"},
        {{&link, TUTTI_MACHINE_LINKS + 1, pair, 1, crossing, 5, NULL, 0}, "65537 links"},
    };
    struct tutti_machine *machine = parse("ranks 2; link 7B/s; path 0 1 via 0;" LEVEL);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tutti_machine_set_links(machine, &cases[i].links), TUTTI_ERR_ARGUMENT);
        if (strstr(tutti_message_last(), cases[i].what) == NULL)
            fail_msg("said: %s\nnot: %s", tutti_message_last(), cases[i].what);
        assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 0, 1)) == 7);
    }
    tutti_machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_say_what_each_pair_crosses),
        cmocka_unit_test(channels_have_paths_of_their_own),
        cmocka_unit_test(rings_carry_what_their_links_leave_them),
        cmocka_unit_test(a_machine_without_paths_has_none),
        cmocka_unit_test(what_is_written_reads_as_the_same_links),
        cmocka_unit_test(links_are_written_as_they_are_read),
        cmocka_unit_test(large_graphs_are_read_and_written),
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(more_links_than_fit_are_refused),
        cmocka_unit_test(mutated_links_are_read_or_refused),
        cmocka_unit_test(arrays_are_copied_and_sorted),
        cmocka_unit_test(wrong_arrays_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
