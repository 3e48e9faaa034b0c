/* SPDX-License-Identifier: Apache-2.0
 * Runs tutti-sched as users do. */
#include "tools/running.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- list ------------------------------------------------------------------------------------ */

static void the_list_has_every_collective(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "list --wide"), 0);
    assert_int_equal(strncmp(running.out, "COLLECTIVE", 10), 0);
    running_says("ROUNDS (8 RANKS)");
    running_says("\nallreduce       ring ");
    running_says("\nbarrier         dissemination ");
    running_says("peer-store");
    assert_int_equal(running_run(TUTTI_SCHED, "list broadcast --ranks 5 --wide"), 0);
    running_says("ROUNDS (5 RANKS)");
    assert_null(strstr(running.out, "allreduce"));
    assert_int_equal(running_run(TUTTI_SCHED, "list broadcast --wide --topo 'ranks 12; node 4; level "
                                              "top bandwidth 1GB/s'"), 0);
    running_says("ROUNDS (12 RANKS)");
}

static void the_list_fits_a_terminal(void **state)
{
    size_t width = 0;

    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "list --ranks 64"), 0);
    running_says("\n\nbroadcast, 64 ranks\nALGORITHM ");
    running_says("\nhierarchical        -           segments doublings ");
    for (const char *at = running.out; *at != '\0'; at++) {
        width = *at == '\n' ? 0 : width + 1;
        assert_true(width <= 80);
    }
    assert_int_equal(running_run(TUTTI_SCHED, "list scan"), 0);
    assert_int_equal(strncmp(running.out, "scan, 8 ranks\n", 14), 0);
    assert_null(strstr(running.out, "allreduce"));
}

/* Asserts that the row of an allreduce algorithm has this word after the algorithm's name. */
static void row_says(const char *algorithm, const char *word)
{
    char head[64];
    const char *row, *end, *found;

    snprintf(head, sizeof head, "\nallreduce       %s ", algorithm);
    row = strstr(running.out, head);
    assert_non_null(row);
    row += strlen(head);
    end = strchr(row, '\n');
    found = strstr(row, word);
    assert_non_null(end);
    assert_non_null(found);
    assert_true(found < end);
}

static void the_list_has_the_places_that_algorithms_use(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "list --wide"), 0);
    row_says("hierarchical", " nodes groups ");
    row_says("multi_ring", " rings ");
    row_says("tree", " trees ");
    row_says("swing", " torus ");
    row_says("bucket", " channels=1-8[auto] ");
    row_says("bucket", " torus ");
    row_says("cells", " cells ");
}

/* All-reduce on 4 x 4: 2 (3 + 3) rounds, each of the four links carries a quarter of 2 * 15/16. */
static void the_list_counts_what_a_link_of_a_torus_carries(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "list --wide --topo 'torus 4 4; level top "
                                              "bandwidth 1GB/s'"), 0);
    row_says("bucket", " torus ");
    row_says("bucket", "  12  ");
    row_says("bucket", "  0.4688");
    row_says("swing", "  8  ");
    row_says("swing", "  0.4688");
    row_says("ring", "  30  ");
}

static void a_file_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "draw allreduce ring -n 4 -o no/a.svg"), 1);
    assert_string_equal(running.err,
                        "tutti-sched draw: cannot write no/a.svg: No such file or directory\n");
}

/* ---- print ----------------------------------------------------------------------------------- */

static void a_rank_is_printed_step_by_step(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "print allreduce ring -n 2 -r 1"), 0);
    running_says("rank 1 of 2: ");
    assert_null(strstr(running.out, "rank 0 of 2"));
    running_says("send");
    running_says("recv_reduce");
    running_says("to 0");
    assert_int_equal(running_run(TUTTI_SCHED, "print scatter linear --ranks 3 --root 2 --rank=2"),
                     0);
    assert_int_equal(running_count(running.out, "send"), 2);
}

/* ---- check ----------------------------------------------------------------------------------- */

static void right_schedules_are_proved(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "check allreduce ring --ranks 5"), 0);
    assert_string_equal(running.out, "allreduce ring, 5 ranks: proved; depth 8, 40 messages, sums "
                                     "in 5 orders\n");
    assert_int_equal(running_run(TUTTI_SCHED, "check allgather ring --ranks 2-3,5"), 0);
    running_says("allgather ring, 5 ranks: proved, blocks of any sizes; depth 4, 20 messages\n");
    running_says("\n3 proved, 0 wrong\n");
    assert_int_equal(running_run(TUTTI_SCHED, "check broadcast chain -n3 --root all"), 0);
    running_says("broadcast chain, 3 ranks, root 2: proved; ");
    running_says("\n3 proved, 0 wrong\n");
    assert_int_equal(running_run(TUTTI_SCHED, "check allreduce all --topo 'ranks 4;node 2;level "
                                              "top bandwidth 1B/s'"), 0);
    running_says("allreduce mapped, 4 ranks: proved");
    running_says(" 0 wrong\n");
}

static void files_are_proved_or_wrong(void **state)
{
    static char text[RUNNING_TEXT];
    char *at;

    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "print allgather ring -n 3"), 0);
    assert_int_equal(strncmp(running.out, "tutti-schedule 1\n", 17), 0);
    strcpy(text, running.out);
    running_write("ring.txt", text);
    assert_int_equal(running_run(TUTTI_SCHED, "check ring.txt"), 0);
    assert_string_equal(running.out, "allgather ring, 3 ranks: proved; depth 2, 6 messages\n");
    assert_int_equal(running_run(TUTTI_SCHED, "print ring.txt"), 0);
    assert_string_equal(running.out, text);
    assert_int_equal(running_run(TUTTI_SCHED, "print ring.txt --rank 2"), 0);
    running_says("rank 2 of 3: 4 steps");
    assert_int_equal(running_run(TUTTI_SCHED, "draw ring.txt -o ring.svg"), 0);
    assert_true(running_is_svg("ring.svg"));

    at = strstr(text, "send to 1");
    assert_non_null(at);
    at[8] = '2';
    running_write("wrong.txt", text);
    assert_int_equal(running_run(TUTTI_SCHED, "check wrong.txt"), 1);
    running_says("allgather ring, 3 ranks: wrong: rank ");
    running_is_mistake(running_run(TUTTI_SCHED, "draw wrong.txt -o a.svg"), "tutti-sched draw: ",
                       "wait for each other forever; tutti-sched check shows where");
    at[8] = '9';
    running_write("wrong.txt", text);
    running_is_mistake(running_run(TUTTI_SCHED, "check wrong.txt"), "tutti-sched check: ",
                       "wrong.txt:");
}

/* Two ranks that swap what they have into the memory they send from: each would wait. */
static void what_needs_buffers_is_told_how_many(void **state)
{
    (void)state;
    running_write("swap.txt", "tutti-schedule 1\nalgorithm swap\ncollective alltoall\nranks 2\n"
                              "rank 0\n dependencies listed\n copy src input[0] dst output[0]\n"
                              " send to 1 src input[1]\n recv from 1 dst output[1] after 1\n"
                              "rank 1\n dependencies listed\n copy src input[1] dst output[1]\n"
                              " send to 0 src input[0]\n recv from 0 dst output[0] after 1\n");
    assert_int_equal(running_run(TUTTI_SCHED, "check swap.txt"), 1);
    running_says("alltoall swap, 2 ranks: wrong: rank ");
    running_says("; right only where each lane holds 1 message\n");
}

/* ---- draw ------------------------------------------------------------------------------------ */

static void pictures_are_documents_with_all_ranks_and_messages(void **state)
{
    static const struct {
        const char *arguments, *title;
        uint32_t nranks, nmessages; /* arrows: heads of the legend not counted */
        uint32_t nkeys;
    } cases[] = {
        {"allreduce ring -n 4", "allreduce ring, 4 ranks", 4, 24, 2},
        {"broadcast chain -n 3 --root 1", "broadcast chain, 3 ranks, root 1", 3, 16, 1},
        {"alltoall spread_out -n 5", "alltoall spread_out, 5 ranks", 5, 20, 1},
        {"barrier dissemination -n 8", "barrier dissemination, 8 ranks", 8, 24, 1},
        {"allreduce one_shot -n 4", "allreduce one_shot, 4 ranks", 4, 0, 0},
        {"allgather mapped -n 3", "allgather mapped, 3 ranks", 3, 6, 1},
        {"allgather stored -n 3", "allgather stored, 3 ranks", 3, 6, 1},
        {"allreduce ring -n 1", "allreduce ring, 1 rank", 1, 0, 0},
        {"allreduce ring -n 64", "allreduce ring, 64 ranks", 64, 64 * 126, 2},
    };
    static char text[8 << 20];
    char rank[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(running_run(TUTTI_SCHED, "draw %s -o a.svg", cases[i].arguments), 0);
        assert_true(running_is_svg("a.svg"));
        running_read("a.svg", text, sizeof text);
        assert_non_null(strstr(text, cases[i].title));
        snprintf(rank, sizeof rank, ">%s%u</text>", cases[i].nranks == 1 ? "rank " : "",
                 cases[i].nranks - 1);
        assert_non_null(strstr(text, rank));
        if (running_count(text, "<polygon") != cases[i].nmessages + cases[i].nkeys)
            fail_msg("%s: %zu arrows, not %u + %u", cases[i].arguments,
                     running_count(text, "<polygon"), cases[i].nmessages, cases[i].nkeys);
        assert_null(strstr(text, "nan"));
    }
}

/* ---- import ---------------------------------------------------------------------------------- */

static void other_formats_become_schedule_files(void **state)
{
    (void)state;
    setenv("TUTTI_DEBUG", "warn", 1);
    assert_int_equal(running_run(TUTTI_SCHED, "import %s/ring_allreduce.xml -o ring.txt",
                                 TUTTI_SCHEDULE_FILES), 0);
    unsetenv("TUTTI_DEBUG");
    assert_int_equal(strncmp(running.out, "ring.txt: allreduce ", 20), 0);
    running_says(" ranks, proved\n");
    assert_non_null(strstr(running.err, ": no outofplace; taken to be 0, because inplace is 1\n"));
    assert_non_null(strstr(running.err, ": no minBytes; taken to be 0\n"));
    assert_non_null(strstr(running.err, ": no maxBytes; taken to be 128 MiB\n"));
    assert_int_equal(running_run(TUTTI_SCHED, "check ring.txt"), 0);
    running_says(": proved; ");
    assert_int_equal(running_run(TUTTI_SCHED, "import %s/all_pairs_signals.json",
                                 TUTTI_SCHEDULE_FILES), 0);
    assert_int_equal(strncmp(running.out, "tutti-schedule 1\n", 17), 0);
    running_write("bad.xml", "<algo name=\"a\"");
    running_is_mistake(running_run(TUTTI_SCHED, "import bad.xml"), "tutti-sched import: ",
                       "bad.xml:");
}

/* ---- explain --------------------------------------------------------------------------------- */

static void one_algorithm_is_chosen_and_the_rest_have_reasons(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "explain allreduce 1M --ranks 64 --topo flat"), 0);
    running_says("allreduce of 1 MiB on 64 ranks\n");
    assert_int_equal(running_count(running.out, "\n*  "), 1);
    running_says("needs memory that all ranks share");
    setenv("TUTTI_ALGORITHM", "allreduce:ring", 1);
    assert_int_equal(running_run(TUTTI_SCHED, "explain allreduce 1M --ranks 64 --topo flat"), 0);
    unsetenv("TUTTI_ALGORITHM");
    running_says("\n*  ring ");
    running_says("by TUTTI_ALGORITHM");
}

/* Its answer for processes of this host is the algorithm by which they run. (Only the processes ask
 * the system whether they may read each other's memory.) */
static void this_host_is_the_machine_unless_another_is_named(void **state)
{
    static const char *const transports[] = {"self,shm", "self,tcp"};
    static const char *const sizes[] = {"64", "64K", "1M"};
    char algorithm[128], row[160];

    (void)state;
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            setenv("TUTTI_TRANSPORTS", transports[i], 1);
            assert_int_equal(running_run(TUTTI_SCHED, "explain allreduce %s --ranks 4", sizes[k]),
                             0);
            running_says(" on 4 ranks, processes of this host\n");
            assert_non_null(strstr(running.out, "\n*  "));
            assert_int_equal(sscanf(strstr(running.out, "\n*  "), "\n*  %127s", algorithm), 1);
            assert_int_equal(running_run(ALL_REDUCE, "--ranks 4 -b %s -n 1 -A 1", sizes[k]), 0);
            snprintf(row, sizeof row, "  %-24s ", algorithm);
            running_says(row);
        }
    unsetenv("TUTTI_TRANSPORTS");
    assert_int_equal(running_run(TUTTI_SCHED, "explain barrier 1"), 0);
    running_says(", processes of this host\n");
    setenv("TUTTI_MACHINE", "no such machine", 1);
    running_is_mistake(running_run(TUTTI_SCHED, "explain allreduce 1M --ranks 4"),
                       "tutti-sched explain: ", "TUTTI_MACHINE");
    unsetenv("TUTTI_MACHINE");
}

/* ---- mistakes -------------------------------------------------------------------------------- */

/* Nine ranks are built: the first, the last and seven between. */
static void a_schedule_has_its_price(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "build broadcast --ranks 64 -a linear"), 0);
    running_says("ALGORITHM  RANKS  MEAN TIME  WORST TIME  STEPS  MEMORY");
    running_says("\nlinear         9 ");
    /* The most steps are the root's: 63 sends and a copy. */
    running_says("  64  ");
    assert_int_equal(running_run(TUTTI_SCHED, "build allgather -n 4 --topo nodes8"), 0);
    running_says("\ncirculant ");
    running_says("\nhierarchical ");
    assert_int_equal(running_run(TUTTI_SCHED, "build reduce -n 3 -a chain --option segments=5"), 0);
    running_says("\nchain          3 ");
}

static void mistakes_are_one_line_with_the_cure(void **state)
{
    static const struct {
        const char *arguments, *who, *what;
    } cases[] = {
        {"lits", "tutti-sched: ", "\"lits\" is no command; see tutti-sched --help"},
        {"list nothing", "tutti-sched list: ", "nothing is no collective; give one of allreduce, "},
        {"list allreduce ring", "tutti-sched list: ", "\"ring\" is one word too many"},
        {"list --root 9", "tutti-sched list: ", "--root 9: give a rank from 0 to 7"},
        {"print .out", "tutti-sched print: ", ".out:1:1: "},
        {"print", "tutti-sched print: ", "which collective? Give one of allreduce"},
        {"print allreduce", "tutti-sched print: ", "which algorithm of allreduce? Give one of"},
        {"print allreduce rung -n 4", "tutti-sched print: ", "allreduce has no algorithm rung; "},
        {"print allreduce ring", "tutti-sched print: ", "how many ranks? Give --ranks N"},
        {"print allreduce ring -n 0", "tutti-sched print: ", "--ranks 0: give numbers from 1"},
        {"print allreduce ring -n 4x", "tutti-sched print: ", "--ranks 4x: give numbers"},
        {"print allreduce ring -n 5-3", "tutti-sched print: ", "--ranks 5-3: give numbers"},
        {"print allreduce ring -n 2,,3", "tutti-sched print: ", "--ranks 2,,3: give numbers"},
        {"print allreduce ring -n 2-99", "tutti-sched print: ", "more than 64 numbers"},
        {"print allreduce ring -n 2,3", "tutti-sched print: ", "2 numbers; this command takes one"},
        {"print allreduce ring -n", "tutti-sched print: ", "-n needs a value"},
        {"print allreduce ring --ranks", "tutti-sched print: ", "--ranks needs a value"},
        {"print allreduce ring -n 4 -r 4", "tutti-sched print: ", "--rank 4: give a rank from 0"},
        {"print allreduce ring -n 4 -r x", "tutti-sched print: ", "--rank x: give a rank"},
        {"print allreduce ring -n 4 --root 1", "tutti-sched print: ", "allreduce has no root"},
        {"print reduce linear -n 4 --root 4", "tutti-sched print: ", "--root 4: give a rank from"},
        {"print reduce linear -n 4 --fast", "tutti-sched print: ", "--fast is no option"},
        {"print reduce linear -n 4 a b c", "tutti-sched print: ", "\"c\" is one word too many"},
        {"print allreduce ring -n 4 --option speed=4", "tutti-sched print: ", "--option speed=4: "},
        {"print allreduce ring -n 4 --option radix", "tutti-sched print: ", "give NAME=NUMBER"},
        {"print allreduce ring -n 4 --option radix=0", "tutti-sched print: ", "a number from 1"},
        {"print allreduce circulant -n 4 --option radix=2",
         "tutti-sched print: ", "has no option \"radix\""},
        {"print allreduce ring --topo 'ranks 4'", "tutti-sched print: ", "machine:1:1: no level"},
        {"print allreduce ring --topo nowhere", "tutti-sched print: ", "open nowhere: "},
        {"check allreduce ring", "tutti-sched check: ", "how many ranks?"},
        {"check allreduce --ranks 4", "tutti-sched check: ", "which algorithm of allreduce?"},
        {"check allreduce ring -n 4 -o x", "tutti-sched check: ", "-o is no option"},
        {"check no-such-file", "tutti-sched check: ", "no-such-file: No such file or directory; "},
        {"print .out --root 0", "tutti-sched print: ", ".out has its own ranks, root and sizes"},
        {"draw allreduce ring -n 4", "tutti-sched draw: ", "no file is given; add -o FILE.svg"},
        {"draw allreduce ring -n 65 -o a.svg", "tutti-sched draw: ", "65 ranks: a picture shows"},
        {"import", "tutti-sched import: ", "which file? Give one"},
        {"import none.xml", "tutti-sched import: ", "none.xml: No such file"},
        {"build", "tutti-sched build: ", "which collective? Give one of allreduce"},
        {"build allreduce ring -n 4", "tutti-sched build: ", "name one algorithm by --algorithm"},
        {"build allreduce -n 4 --option radix=2", "tutti-sched build: ", "give --algorithm NAME"},
        {"build allreduce", "tutti-sched build: ", "how many ranks?"},
        {"explain allreduce", "tutti-sched explain: ", "give one size of at most 1024 TiB"},
        {"explain allreduce 1Q --topo flat", "tutti-sched explain: ", "give one size"},
        {"explain allreduce 1M --ranks 2,4", "tutti-sched explain: ", "2 numbers; this command"},
        {"explain reduce 1M --ranks 4 --root 4", "tutti-sched explain: ", "from 0 to 3"},
        {"explain allreduce 1M --topo flat",
         "tutti-sched explain: ", "the number of ranks is not given; add a line"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        running_is_mistake(running_run(TUTTI_SCHED, "%s", cases[i].arguments), cases[i].who,
                           cases[i].what);
}

static void every_command_explains_itself(void **state)
{
    static const char *const commands[] = {"list", "print", "check", "draw", "import", "explain",
                                           "build"};

    (void)state;
    assert_int_equal(running_run(TUTTI_SCHED, "--help"), 0);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char line[64];

        assert_int_equal(running_run(TUTTI_SCHED, "--help"), 0);
        snprintf(line, sizeof line, "\n  %s ", commands[i]);
        running_says(line);
        assert_int_equal(running_run(TUTTI_SCHED, "%s --help", commands[i]), 0);
        snprintf(line, sizeof line, "usage: tutti-sched %s ", commands[i]);
        running_says(line);
    }
    assert_int_equal(running_run(TUTTI_SCHED, " "), 2);
    assert_string_equal(running.out, "");
    assert_int_equal(strncmp(running.err, "usage: tutti-sched COMMAND", 26), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_has_every_collective),
        cmocka_unit_test(the_list_fits_a_terminal),
        cmocka_unit_test(the_list_has_the_places_that_algorithms_use),
        cmocka_unit_test(the_list_counts_what_a_link_of_a_torus_carries),
        cmocka_unit_test(a_file_that_cannot_be_written_is_named),
        cmocka_unit_test(a_rank_is_printed_step_by_step),
        cmocka_unit_test(right_schedules_are_proved),
        cmocka_unit_test(files_are_proved_or_wrong),
        cmocka_unit_test(what_needs_buffers_is_told_how_many),
        cmocka_unit_test(pictures_are_documents_with_all_ranks_and_messages),
        cmocka_unit_test(other_formats_become_schedule_files),
        cmocka_unit_test(one_algorithm_is_chosen_and_the_rest_have_reasons),
        cmocka_unit_test(this_host_is_the_machine_unless_another_is_named),
        cmocka_unit_test(a_schedule_has_its_price),
        cmocka_unit_test(mistakes_are_one_line_with_the_cure),
        cmocka_unit_test(every_command_explains_itself),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
