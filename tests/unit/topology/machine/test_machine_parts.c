/* SPDX-License-Identifier: Apache-2.0
 * Machines of like parts: paths of all parts follow from those of the first ones. */
#include "base/result.h"
#include "topology/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEVEL "level node latency 1us bandwidth 9GB/s; level top latency 5us bandwidth 4GB/s\n"

/* Three parts of two ranks and two links, then two parts of one rank and one link. The links of all
 * parts are 0 1, 2 3, 4 5, 6, 7. */
#define TWO_KINDS                                                                                  \
    "ranks 8; node 2 2 2 1 1; parts 3 ranks 2 links 2; parts 2 ranks 1 links 1\n"                  \
    "link out 8GB/s; link in 6GB/s; link both 5GB/s\n"                                             \
    "path 0 1 via 0; path 1 0 via 1; path 0 2 via 0 3; path 0 3 via 0x2 3; path 1 2 via 0 3\n"     \
    "path 1 3 via 3; path 1 3 channel 7 via 1 2 latency 2us\n"                                     \
    "path 0 6 via 0 6; path 6 0 via 6 1; path 6 7 via 6 7\n" LEVEL

static struct tutti_machine *parse(const char *text)
{
    struct tutti_machine *machine;

    if (tutti_machine_parse("parts", text, 0, &machine) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    return machine;
}

/* Writes the links from one rank to another, such as "0 3". */
static const char *links_between(const struct tutti_machine *machine, uint32_t from, uint32_t to,
                                 uint8_t channel, char text[64])
{
    const struct tutti_machine_path *path =
        tutti_machine_channel_path(machine, from, to, channel);
    struct tutti_machine_shift shift;

    strcpy(text, "none");
    if (path == NULL)
        return text;
    *text = '\0';
    shift = tutti_machine_shift_of(&machine->links, from, to);
    for (uint32_t i = 0; i < path->count; i++)
        snprintf(text + strlen(text), 64 - strlen(text), "%s%u", i > 0 ? " " : "",
                 tutti_machine_shifted(&shift, machine->links.crossings[path->first + i].link));
    return text;
}

static void paths_follow_from_the_first_parts(void **state)
{
    static const struct {
        uint32_t from, to;
        uint8_t channel;
        const char *links;
    } cases[] = {
        {0, 1, 0, "0"},   {1, 0, 0, "1"},   {2, 3, 0, "2"},   {5, 4, 0, "5"}, /* within a part */
        {0, 2, 0, "0 3"}, {0, 4, 0, "0 5"}, {2, 0, 0, "2 1"}, {4, 2, 0, "4 3"},
        {2, 5, 0, "2 5"}, {3, 5, 0, "5"},   {3, 5, 7, "3 4"}, {5, 1, 7, "5 0"},
        {0, 6, 0, "0 6"}, {4, 7, 0, "4 7"}, {7, 2, 0, "7 3"}, {6, 7, 0, "6 7"},
        {7, 6, 0, "7 6"}, {1, 6, 0, "none"},
    };
    struct tutti_machine *machine = parse(TWO_KINDS);
    char text[64];

    (void)state;
    assert_int_equal(tutti_machine_link_count(&machine->links), 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(links_between(machine, cases[i].from, cases[i].to, cases[i].channel, text),
                   cases[i].links) != 0)
            fail_msg("%u to %u: %s, not %s", cases[i].from, cases[i].to, text, cases[i].links);
    tutti_machine_destroy(machine);
}

static void links_of_all_parts_have_the_described_rates(void **state)
{
    static const double expected[] = {8e9, 6e9, 8e9, 6e9, 8e9, 6e9, 5e9, 5e9};
    struct tutti_machine *machine = parse(TWO_KINDS);
    const struct tutti_machine_path *path = tutti_machine_path(machine, 5, 3);

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        assert_true(tutti_machine_link(&machine->links, i)->bytes_per_s == expected[i]);
    assert_true(tutti_machine_path_rate(machine, tutti_machine_path(machine, 4, 3)) == 4e9);
    assert_true(tutti_machine_path_latency_s(machine, path, 5, 3) == 5e-6);
    path = tutti_machine_channel_path(machine, 5, 3, 7);
    assert_true(tutti_machine_path_latency_s(machine, path, 5, 3) == 2e-6);
    tutti_machine_destroy(machine);
}

static void what_is_written_reads_as_the_same(void **state)
{
    struct tutti_machine *machine = parse(TWO_KINDS), *again;
    char *text, *second;

    (void)state;
    assert_int_equal(tutti_machine_write(machine, &text), TUTTI_OK);
    again = parse(text);
    assert_int_equal(again->links.nkinds, 2);
    assert_int_equal(tutti_machine_write(again, &second), TUTTI_OK);
    assert_string_equal(text, second);
    /* The same links can be set in another machine. */
    assert_int_equal(tutti_machine_set_links(again, &machine->links), TUTTI_OK);
    free(second);
    assert_int_equal(tutti_machine_write(again, &second), TUTTI_OK);
    assert_string_equal(text, second);
    free(text);
    free(second);
    tutti_machine_destroy(again);
    tutti_machine_destroy(machine);
}

/* Ranks 0 and 1 of each part send inside over link 0 and to the next part over link 1. */
static void rings_go_through_all_parts(void **state)
{
    struct tutti_machine *machine =
        parse("ranks 6; parts 3 ranks 2 links 2; link 10GB/s; link 4GB/s; path 0 1 via 0\n"
              "path 1 2 via 1; path 1 0 via 0; path 0 3 via 1; ring 0 1 2 3 4 5;" LEVEL);

    (void)state;
    assert_true(tutti_machine_rings_rate(machine, 1) == 4e9);
    /* The ring back crosses link 0 as well, and link 1 of the part where it begins. */
    assert_true(tutti_machine_rings_rate(machine, 2) == 4e9);
    tutti_machine_destroy(machine);
}

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"ranks 4; parts 2 ranks 3 links 0;" LEVEL, "have 6 ranks, and the machine has 4"},
        {"ranks 4; parts 1 ranks 2 links 0;" LEVEL, "have 2 ranks, and the machine has 4"},
        {"ranks 4; parts 2 ranks 2 links 2; link 1GB/s;" LEVEL, "2 links together, and 1 are"},
        {"ranks 4; parts 2 ranks 2 links 1; link 1GB/s; path 2 3 via 1;" LEVEL,
         "only the path from rank 0 to 1 is described"},
        {"ranks 6; parts 3 ranks 2 links 1; link 1GB/s; path 0 5 via 0;" LEVEL,
         "only the path from rank 0 to 3 is described"},
        {"ranks 6; parts 3 ranks 2 links 1; link 1GB/s; path 0 2 via 0 2;" LEVEL,
         "link 2 is neither in the part of rank 0"},
        {"ranks 6; parts 3 ranks 2 links 1; link 1GB/s; path 0 2 via 0 3;" LEVEL,
         "link 3, but there are 3"},
        {"ranks 4; parts 2 of 2;" LEVEL, "expected \"ranks\""},
        {"ranks 4; parts 2 ranks 2;" LEVEL, "expected \"links\""},
        {"ranks 4; parts 0 ranks 2 links 0;" LEVEL, "1 to"},
        {"ranks 4; parts 2 ranks 2 links 1 5;" LEVEL, "\"5\" is more than this line takes"},
        {"ranks 1048576; parts 1048576 ranks 1 links 5; link 1GB/s 1GB/s 1GB/s 1GB/s 1GB/s;" LEVEL,
         "there may be 4194304"},
    };
    struct tutti_machine *machine;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tutti_machine_parse("parts", cases[i].text, 0, &machine),
                         TUTTI_ERR_ARGUMENT);
        if (strstr(tutti_message_last(), cases[i].what) == NULL)
            fail_msg("said: %s\nnot: %s", tutti_message_last(), cases[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_follow_from_the_first_parts),
        cmocka_unit_test(links_of_all_parts_have_the_described_rates),
        cmocka_unit_test(what_is_written_reads_as_the_same),
        cmocka_unit_test(rings_go_through_all_parts),
        cmocka_unit_test(mistakes_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
