/* SPDX-License-Identifier: Apache-2.0
 * Wrong descriptions are refused at the wrong word, and the message names the cure. */
#include "base/result.h"
#include "topology/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEVEL "level top overhead 5us bandwidth 50GB/s"

static void mistakes_are_found_where_they_are(void **state)
{
    static const struct {
        const char *text;
        uint32_t nranks;
        const char *where, *what;
    } cases[] = {
        {"", 0, "m:1:1: ", "no level is given; add a line"},
        {LEVEL, 0, "m:1:40: ", "the number of ranks is not given; add a line such as"},
        {"tutti-machine 2", 0, "m:1:15: ", "knows \"tutti-machine 1\" only"},
        {"tutti-machine", 0, "m:1:14: ", "knows \"tutti-machine 1\" only"},
        {"ranks 1\ntutti-machine 1", 0, "m:2:1: ", "a line begins with ranks, node"},
        {"rank 4", 0, "m:1:1: ", "\"rank\"; a line begins with ranks, node"},
        {"\n\n  ranks 4 5", 0, "m:3:11: ", "\"5\" is more than this line takes"},
        {"ranks 4; ranks 5", 0, "m:1:10: ", "\"ranks\" again; line 1 has it"},
        {"ranks", 0, "m:1:6: ", "the line ends here; expected a number from 1 to 1048576"},
        {"ranks 0", 0, "m:1:7: ", "\"0\"; expected a number from 1"},
        {"ranks -1", 0, "m:1:7: ", "\"-1\"; expected a number"},
        {"ranks 1048577", 0, "m:1:7: ", "expected a number from 1 to 1048576"},
        {"ranks 18446744073709551617", 0, "m:1:7: ", "expected a number"},
        {"ranks 4x", 0, "m:1:7: ", "\"4x\"; expected a number"},
        {LEVEL, 1048577, "m:1:40: ", "1048577 ranks; there may be 1048576"},
        {"node 0", 4, "m:1:6: ", "expected a number from 1"},
        {"node", 4, "m:1:5: ", "the line ends here"},
        {"node of", 4, "m:1:8: ", "the line ends here; expected a number from 0"},
        {"node of 0 1 1;" LEVEL, 4, "m:1:9: ", "the places of 3 ranks, but there are 4"},
        {"node of 1 0;" LEVEL, 2, "m:1:9: ", "1 stands before 0; number them"},
        {"node 2; group of 0;" LEVEL, 4, "m:1:18: ", "the places of 1 nodes, but there are 2"},
        {"place wild", 4, "m:1:7: ", "place is block or cyclic"},
        {"place", 4, "m:1:6: ", "place is block or cyclic"},
        {"place cyclic;" LEVEL, 4, "m:1:1: ", "needs the sizes of nodes; add a line"},
        {"node of 0 0;place cyclic;" LEVEL, 2, "m:1:13: ", "needs the sizes of nodes"},
        {"level", 4, "m:1:6: ", "a level is node, group or top"},
        {"level middle bandwidth 1B/s", 4, "m:1:7: ", "a level is node, group or top"},
        {"top", 4, "m:1:1: ", "a line begins with"},
        {"level top", 4, "m:1:10: ", "the level has no bandwidth; add one"},
        {"level top latency 1us", 4, "m:1:22: ", "no bandwidth"},
        {"level top latency", 4, "m:1:18: ", "the line ends here; expected a time such as 2.5us"},
        {"level top latency 1", 4, "m:1:19: ", "\"1\"; expected a time"},
        {"level top latency 1GB/s", 4, "m:1:19: ", "expected a time"},
        {"level top latency -1us", 4, "m:1:19: ", "expected a time"},
        {"level top latency 0x1us", 4, "m:1:19: ", "expected a time"},
        {"level top latency infs", 4, "m:1:19: ", "expected a time"},
        {"level top latency nans", 4, "m:1:19: ", "expected a time"},
        {"level top latency 1e999s", 4, "m:1:19: ", "expected a time"},
        {"level top latency 1..5us", 4, "m:1:19: ", "expected a time"},
        {"level top latency 1eus", 4, "m:1:19: ", "expected a time"},
        {"level top latency 1us latency 2us bandwidth 1B/s", 4, "m:1:23: ", "each once"},
        {"level top bandwidth 1B/s bandwidth 1B/s", 4, "m:1:26: ", "each once"},
        {"level top speed 9", 4, "m:1:11: ", "\"speed\"; a level has latency, overhead,"},
        {"level top core 1B/s bandwidth 1B/s core 1B/s", 4, "m:1:36: ", "each once"},
        {"level top bandwidth 1B/s beyond", 4, "m:1:32: ", "expected a size such as 1MiB"},
        {"level top bandwidth 1B/s beyond 1MB 2B/s", 4, "m:1:33: ", "expected a size such as 1MiB"},
        {"level top beyond 1MiB 2B/s", 4, "m:1:11: ", "a level has latency"},
        {"copy 1B/s beyond 1MiB", 4, "m:1:22: ", "expected a rate"},
        {"copy 1B/s beyond 1MiB 0B/s", 4, "m:1:23: ", "a rate above 0"},
        {"copy 1B/s beyond 2B 1B/s beyond 2B 1B/s", 4, "m:1:33: ", "let them ascend"},
        {"copy 1B/s beyond 1B 1B/s beyond 2B 1B/s beyond 3B 1B/s beyond 4B 1B/s beyond 5B 1B/s", 4,
         "m:1:71: ", "at most 4"},
        {"load 1B/s 2B/s", 4, "m:1:11: ", "more than this line takes"},
        {"signal 1B/s", 4, "m:1:8: ", "expected a time"},
        {"signal 1us 2us", 4, "m:1:12: ", "more than this line takes"},
        {"trunk 1B/s beyond 1B 1B/s", 4, "m:1:12: ", "more than this line takes"},
        {"level top bandwidth 50", 4, "m:1:21: ", "expected a rate such as 50GB/s"},
        {"level top bandwidth 50Gb/s", 4, "m:1:21: ", "expected a rate such as 50GB/s"},
        {"level top bandwidth 0GB/s", 4, "m:1:21: ", "a rate above 0"},
        {"level top bandwidth 1e-400B/s", 4, "m:1:21: ", "a rate above 0"},
        {LEVEL ";" LEVEL, 4, "m:1:41: ", "\"level top\" again"},
        {"nics 0", 4, "m:1:6: ", "expected a number from 1"},
        {"cores", 4, "m:1:6: ", "the line ends here"},
        {"copy 1B/s 2B/s", 4, "m:1:11: ", "more than this line takes"},
        {"trunk 400GB/s;" LEVEL, 4, "m:1:1: ", "a trunk joins groups; add a line"},
        {"torus 2 3;" LEVEL, 5, "m:1:7: ", "does not hold the 5 ranks"},
        {"torus 2 2 2 2 2", 32, "m:1:7: ", "5 dimensions of a torus, which has 1 to 4"},
        {"torus 0", 1, "m:1:7: ", "expected a number from 1"},
        {"torus 1048576 1048576 1048576 1048576;" LEVEL, 0, "m:1:78: ", "there may be 1048576"},
        {"ring 0 1;" LEVEL, 3, "m:1:6: ", "2 numbers, but there are 3 ranks"},
        {"ring 0 1 3;" LEVEL, 3, "m:1:6: ", "through rank 3; ranks are 0 to 2"},
        {"ring 0 1 1;" LEVEL, 3, "m:1:6: ", "through rank 1 twice"},
        {"ring 0 -1", 2, "m:1:8: ", "expected a number from 0"},
        {"ring", 2, "m:1:5: ", "the line ends here"},
        {"tree 0 0;" LEVEL, 2, "m:1:6: ", "0 roots; one rank has parent -1"},
        {"tree -1 -1;" LEVEL, 2, "m:1:6: ", "2 roots"},
        {"tree -1 2 1;" LEVEL, 3, "m:1:6: ", "a cycle through rank 1"},
        {"tree -1 1;" LEVEL, 2, "m:1:6: ", "a cycle through rank 1"},
        {"tree -1 7;" LEVEL, 2, "m:1:6: ", "a tree with parent 7; ranks are 0 to 1"},
        {"tree -1 -2;" LEVEL, 2, "m:1:9: ", "expected a number"},
        {"\xff\xfe\x01", 2, "m:1:1: ", "a line begins with"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_machine *machine = (struct tutti_machine *)&state;
        const char *said;

        if (tutti_machine_parse("m", cases[i].text, cases[i].nranks, &machine) !=
            TUTTI_ERR_ARGUMENT)
            fail_msg("accepted: %s", cases[i].text);
        said = tutti_message_last();
        if (strncmp(said, cases[i].where, strlen(cases[i].where)) != 0 ||
            strstr(said, cases[i].what) == NULL || strchr(said, '\n') != NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s%s", cases[i].text, said, cases[i].where,
                     cases[i].what);
        /* Outputs change only on success. */
        assert_ptr_equal(machine, &state);
    }
}

static void more_rings_than_fit_are_refused(void **state)
{
    struct tutti_machine *machine;
    char text[1024] = LEVEL;

    (void)state;
    for (int i = 0; i < TUTTI_MACHINE_ORDERS; i++)
        strcat(text, ";ring 0");
    assert_int_equal(tutti_machine_parse("m", text, 1, &machine), TUTTI_OK);
    tutti_machine_destroy(machine);
    strcat(text, ";ring 0");
    assert_int_equal(tutti_machine_parse("m", text, 1, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "ring number 65; there may be 64"));
}

static void what_is_no_text_file_is_refused(void **state)
{
    struct tutti_machine *machine;

    (void)state;
    assert_int_equal(tutti_machine_load("/dev/null", 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "/dev/null:1:1: no level is given"));
    assert_int_equal(tutti_machine_load("/tmp", 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "give a regular file"));
    assert_int_equal(tutti_machine_load("/proc/self/cmdline", 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "has a zero byte"));
    assert_int_equal(tutti_machine_load("no-such", 0, &machine), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(tutti_message_last(), "a known name such as \"flat\""));
}

/* One byte of a good description changed at a time, to every other value: it is read or refused,
 * and what is read can be written. */
static void mutated_descriptions_are_read_or_refused(void **state)
{
    static const char good[] = "ranks 4;node 1 2;place cyclic;group 1;level top latency 1us "
                               "bandwidth 5GB/s;trunk 1e2B/s;ring 0 2 1 3;tree -1 0 0 1;torus 2 2";
    size_t accepted = 0, refused = 0;
    char text[sizeof good];

    (void)state;
    for (size_t at = 0; at + 1 < sizeof good; at++)
        for (int byte = 1; byte < 256; byte++) {
            struct tutti_machine *machine;
            char *written;

            memcpy(text, good, sizeof good);
            text[at] = (char)byte;
            if (tutti_machine_parse("m", text, 0, &machine) != TUTTI_OK) {
                refused++;
                continue;
            }
            accepted++;
            assert_int_equal(tutti_machine_write(machine, &written), TUTTI_OK);
            tutti_machine_destroy(machine);
            assert_int_equal(tutti_machine_parse("w", written, 0, &machine), TUTTI_OK);
            tutti_machine_destroy(machine);
            free(written);
        }
    assert_true(accepted > 0 && refused > accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_found_where_they_are),
        cmocka_unit_test(more_rings_than_fit_are_refused),
        cmocka_unit_test(what_is_no_text_file_is_refused),
        cmocka_unit_test(mutated_descriptions_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
