/* SPDX-License-Identifier: Apache-2.0
 * Runs tutti-sim as users do. The tests of the simulator prove its predictions. This one tests a
 * closed form, and that the output is complete. */
#include "tools/running.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define EXIT_MISTAKE 2
#define FLAT "--topo 'level top overhead 5us bandwidth 50GB/s'"

/* ---- the table ------------------------------------------------------------------------------- */

/* 2 (p - 1) rounds of alpha + beta n / p: 14 * (5 us + 2 MiB / 50 GB/s). */
static void a_ring_costs_what_it_must(void **state)
{
    const char *at;

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce " FLAT " -n 8 -s 16M -a ring --json"), 0);
    at = strstr(running.out, "\"seconds\": ");
    assert_non_null(at);
    assert_true(fabs(strtod(at + 11, NULL) / (14 * (5e-6 + 2097152 / 50e9)) - 1) < 1e-6);
}

static void every_size_has_one_best(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 1K:1M:32"), 0);
    assert_int_equal(strncmp(running.out, "allreduce, 8 ranks\n", 19), 0);
    assert_int_equal(running_count(running.out, "  *  "), 3);
    running_says("1 KiB");
    running_says("32 KiB");
    running_says("1 MiB");
    running_says("ring");
    running_says("recursive_doubling");
    assert_null(strstr(running.out, "one_shot"));
    assert_string_equal(running.err, "");
}

/* The usual table fits in 80 columns. A wide one has all columns. */
static void tables_are_narrow_unless_they_are_to_be_wide(void **state)
{
    static const char *const arguments[] = {
        "allreduce -t dgx-h100 -s 1K:64M:64", "reduce -t nodes8 -n 64 -s 1K:64M:64",
        "alltoall -t fattree -n 100,200 -s 64M", "compare dgx-h100 dgx-2 -s 1K:64M:4"};

    (void)state;
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        assert_int_equal(running_run(TUTTI_SIM, "%s", arguments[i]), 0);
        for (const char *at = running.out; *at != '\0'; at += strcspn(at, "\n") + 1)
            if (strcspn(at, "\n") > 80)
                fail_msg("%s: %s", arguments[i], at);
    }
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 1K --wide"), 0);
    running_says("RANKS   SIZE     ALGORITHM ");
    running_says("PIECES");
    running_says("LATENCY WIRE WORK WAIT %  BUSIEST LINK\n");
}

/* With --best, the rows are those with the mark, and a picture has one curve of them. */
static void best_is_the_marked_row_of_each_size(void **state)
{
    static char all[RUNNING_TEXT], text[1 << 20];

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 1K:1M:32"), 0);
    strcpy(all, running.out);
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 1K:1M:32 --best"), 0);
    assert_int_equal(running_count(running.out, "\n"), 2 + 3);
    for (char *at = running.out, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        if (strstr(all, at) == NULL)
            fail_msg("\"%s\" is not in: %s", at, all);
    }
    assert_int_equal(running_run(TUTTI_SIM, "allreduce -t flat -n 8 -s 1K:1M:32 --best --json "
                                            "-o best.svg"), 0);
    assert_int_equal(running_count(running.out, "\"algorithm\""), 3);
    assert_int_equal(running_count(running.out, "\"best\": true"), 3);
    running_read("best.svg", text, sizeof text);
    assert_non_null(strstr(text, ">fastest algorithm</text>"));
    assert_null(strstr(text, ">ring"));

    assert_int_equal(running_run(TUTTI_SIM, "allgather -t flat -n 64 -s 1M --steps 2000 --best"),
                     0);
    running_says(" cases left out for the number of steps; see --steps\n");
    assert_int_equal(running_run(TUTTI_SIM, "allgather -t flat -n 64 -s 1M --steps 1 --best"), 0);
    running_says("1 MiB     all left out for their steps; see --steps\n");
}

static void ranks_of_one_node_may_share_memory(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo nodes8 -n 4 -s 64K"), 0);
    running_says("mapped");
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo flat -n 4 -a mapped"),
                       "tutti-sim: ", "--algorithm mapped needs ranks that share memory; give a");
}

static void what_is_too_large_is_left_out_and_said(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allgather --topo flat -n 64 -s 1M --steps 2000"), 0);
    running_says("left out: ");
    running_says("see --steps");
    running_says("circulant");
}

/* p - 1 rounds of alpha + beta n / p^2. */
static void ranks_that_do_alike_are_played_once(void **state)
{
    const char *at;

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "alltoall --topo flat -n 4096 -s 64M --wide"), 0);
    assert_int_equal(running_count(running.out, "; by symmetry: 1 of 4,096 ranks"), 4);
    assert_int_equal(running_run(TUTTI_SIM, "alltoall --topo flat -n 4096 -s 64M"), 0);
    running_says("3 cases simulated by symmetry: a few ranks stand for all");
    assert_null(strstr(running.out, "left out"));
    assert_int_equal(running_run(TUTTI_SIM, "alltoall " FLAT " -n 4096 -s 64M -a spread_out "
                                            "--option window=1 --json"), 0);
    running_says("\"played_ranks\": 1,");
    at = strstr(running.out, "\"seconds\": ");
    assert_true(fabs(strtod(at + 11, NULL) / (4095 * (5e-6 + 16384 / 50e9)) - 1) < 1e-6);
    assert_int_equal(running_run(TUTTI_SIM, "broadcast --topo flat -n 64 -s 1M -a chain --steps "
                                            "100"), 0);
    running_says("left out: ");
}

/* The promise of `explain` and the play agree where the algorithm does what its cost says. */
static void only_the_choice_is_played(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM,
                                 "allreduce --topo flat -n 64 -s 1K:64M:65536 -a chosen"),
                     0);
    running_says("1 KiB  *  recursive_doubling ");
    running_says("64 MiB  *  hybrid[doublings=1] ");
    assert_int_equal(running_count(running.out, "\n"), 4);
    assert_int_equal(running_count(running.out, "  *  "), 2);
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 64 -s 1K --within 1.5"), 0);
    running_says("recursive_doubling");
    assert_null(strstr(running.out, "  ring "));
}

/* 2 log2 p alpha + 2 (p - 1) / p beta n at once, for it takes no memory of the library's; recursive
 * doubling takes scratch memory, so 256 MiB run in four pieces of log2 p rounds. */
static void large_calls_run_whole_or_in_pieces(void **state)
{
    const char *at;

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce " FLAT " -n 4 -s 256M -a circulant --json"),
                     0);
    running_says("\"pieces\": 1,");
    at = strstr(running.out, "\"seconds\": ");
    assert_true(fabs(strtod(at + 11, NULL) / (4 * 5e-6 + 1.5 * 268435456 / 50e9) - 1) < 1e-6);
    assert_int_equal(running_run(TUTTI_SIM, "allreduce " FLAT " -n 4 -s 256M -a recursive_doubling "
                                            "--json"), 0);
    running_says("\"pieces\": 4, \"messages\": 32,");
    at = strstr(running.out, "\"seconds\": ");
    assert_true(fabs(strtod(at + 11, NULL) / (4 * 2 * (5e-6 + 67108864 / 50e9)) - 1) < 1e-6);
}

static void a_machine_may_bring_its_ranks(void **state)
{
    (void)state;
    running_write("machine.txt", "ranks 6\nnode 3\nlevel node bandwidth 100GB/s overhead 1us\n"
                                 "level top bandwidth 10GB/s overhead 5us\n");
    assert_int_equal(running_run(TUTTI_SIM, "broadcast --topo machine.txt -s 1M --root 5"), 0);
    running_says("broadcast, 6 ranks\n");
}

static void a_barrier_has_no_size(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "barrier " FLAT " -n 8 -a dissemination"), 0);
    assert_int_equal(running_count(running.out, "dissemination"), 1);
    running_says("15 us");
}

/* Braces and brackets pair up, and strings end: whoever reads JSON needs no more from us. */
static void json_has_all_cases(void **state)
{
    int depth = 0;

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "reduce_scatter --topo flat -n 4,8 -s 1K:64K:64 "
                                            "-a ring --json"), 0);
    for (const char *at = running.out; *at != '\0'; at++) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        assert_true(depth > 0 || at[1] == '\n' || at[1] == '\0');
    }
    assert_int_equal(depth, 0);
    assert_int_equal(running_count(running.out, "\"") % 2, 0);
    assert_int_equal(running_count(running.out, "{\"ranks\": 4, "), 2);
    assert_int_equal(running_count(running.out, "{\"ranks\": 8, "), 2);
    assert_int_equal(running_count(running.out, "\"busiest_link\": \""), 4);
    assert_int_equal(running_count(running.out, "\"best\": true"), 4);
}

/* Runs a long simulation until its first row, then ends it. Its stderr is a terminal. Gives what
 * was shown there. */
static void watch_the_first_row(char *text, size_t size)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), out[2], screen;
    char row[256] = "";
    FILE *rows;
    pid_t pid;
    ssize_t length;

    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(screen >= 0 && pipe(out) == 0);
    pid = fork();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(screen, STDERR_FILENO);
        execl(TUTTI_SIM, TUTTI_SIM, "broadcast", "--topo", "flat", "-n", "16384", "-s", "64M",
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    rows = fdopen(out[0], "r");
    assert_non_null(rows);
    while (strstr(row, "64 MiB     ") == NULL)
        assert_non_null(fgets(row, sizeof row, rows));
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    length = read(terminal, text, size - 1);
    assert_true(length > 0);
    text[length] = '\0';
    fclose(rows);
    close(screen);
    close(terminal);
}

/* Rows do not wait for later ones, and a terminal shows what is being simulated. */
static void rows_come_as_they_are_simulated(void **state)
{
    char text[4096];

    (void)state;
    watch_the_first_row(text, sizeof text);
    if (strstr(text, "1 of ") == NULL || strstr(text, ", 16,384 ranks, 64 MiB") == NULL)
        fail_msg("shown: %s", text);
}

/* ---- pictures -------------------------------------------------------------------------------- */

static void pictures_show_what_varies(void **state)
{
    static char text[1 << 20];

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 1K:1M:4 -o size.svg"),
                     0);
    assert_true(running_is_svg("size.svg"));
    running_read("size.svg", text, sizeof text);
    assert_non_null(strstr(text, ">allreduce, 8 ranks</text>"));
    assert_non_null(strstr(text, ">lower bound</text>"));
    assert_non_null(strstr(text, ">ring, multi_ring"));
    assert_non_null(strstr(text, ">1 KiB</text>"));

    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 2,4,16 -s 64K -o ranks.svg"),
                     0);
    assert_true(running_is_svg("ranks.svg"));
    running_read("ranks.svg", text, sizeof text);
    assert_non_null(strstr(text, ">allreduce of 64 KiB</text>"));
    assert_non_null(strstr(text, ">16</text>"));

    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo flat -n 8 -s 64K -a ring -o "
                                            "path.svg"), 0);
    assert_true(running_is_svg("path.svg"));
    running_read("path.svg", text, sizeof text);
    assert_non_null(strstr(text, "allreduce ring, 8 ranks, 64 KiB: the longest path"));
    assert_non_null(strstr(text, ">overhead 70 µs, "));
    assert_null(strstr(text, ">other "));
}

/* ---- two machines ---------------------------------------------------------------------------- */

#define SLOW "'level top overhead 5us bandwidth 10GB/s'"
#define FAST "'level top overhead 5us bandwidth 20GB/s'"

/* Returns the number after `key` in the output, from the given place on. */
static double number_after(const char *from, const char *key)
{
    const char *at = strstr(from, key);

    if (at == NULL)
        fail_msg("no %s in: %s", key, from);
    return strtod(at + strlen(key), NULL);
}

/* A ring of 4 ranks takes 6 * (5 us + n / 4 / bandwidth) of n bytes. */
static void two_machines_stand_side_by_side(void **state)
{
    static char text[1 << 20];
    double slow = 6 * (5e-6 + 262144 / 10e9), fast = 6 * (5e-6 + 262144 / 20e9);
    char ratio[64];

    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "compare " SLOW " " FAST " -n 4 -s 1M -a ring"), 0);
    running_says("allreduce; SPEEDUP: B is so many times as fast as A\n"
                 "A: 4 ranks, level top overhead 5us bandwidth 10GB/s\n"
                 "B: 4 ranks, level top overhead 5us bandwidth 20GB/s\n");
    running_says(" SIZE   TIME A   TIME B  SPEEDUP  BEST OF A  BEST OF B\n");
    snprintf(ratio, sizeof ratio, "%.2f  ring       ring\n", slow / fast);
    running_says(ratio);
    assert_int_equal(running_run(TUTTI_SIM, "compare " SLOW " " FAST " -n 4 -s 1M --steps 1"), 0);
    running_says("1 MiB        -        -        -  -");
    running_says(" cases left out on B for the number of steps; see --steps\n");
    assert_int_equal(running_run(TUTTI_SIM, "compare broadcast " SLOW " " FAST " -n 4 -s 1K:4M:64"),
                     0);
    running_says("broadcast; ");
    assert_int_equal(running_count(running.out, "\n"), 7);

    assert_int_equal(running_run(TUTTI_SIM, "compare " SLOW " " FAST " -n 4 -s 1K:4M:4 "
                                            "-o compare.svg"), 0);
    assert_true(running_is_svg("compare.svg"));
    running_read("compare.svg", text, sizeof text);
    assert_non_null(strstr(text, ">A: 4 ranks, level top overhead 5us bandwidth 10GB/s</text>"));
    assert_non_null(strstr(text, ">lower bound of B</text>"));
    assert_int_equal(running_run(TUTTI_SIM, "compare flat flat -n 4 -s 1K:4M:4 -o same.svg"), 0);
    running_read("same.svg", text, sizeof text);
    assert_non_null(strstr(text, ">A and B</text>"));
    assert_non_null(strstr(text, ">lower bounds</text>"));
}

static void a_comparison_in_json_has_all_cases(void **state)
{
    const char *second;

    (void)state;
    running_write("a \"b.txt", "ranks 4\nlevel top overhead 5us bandwidth 10GB/s\n");
    assert_int_equal(running_run(TUTTI_SIM, "compare './a \"b.txt' " FAST " -n 4 -s 1M --json"), 2);
    assert_int_equal(running_run(TUTTI_SIM, "compare " SLOW " 'level top bandwidth 20GB/s # \"\\\\'"
                                            " -n 4 -s 1M --json"), 0);
    running_says("\"b\": {\"machine\": \"level top bandwidth 20GB/s # \\\"\\\\\\\\\", \"ranks\": 4, "
                 "\"cases\": [");
    second = strstr(running.out, "\"b\": {");
    assert_int_equal(running_count(running.out, "\"algorithm\": \"ring\""), 2);
    assert_int_equal(running_count(second, "\"algorithm\": \"ring\""), 1);
    assert_int_equal(running_count(running.out, "\"best\": true"), 2);
    assert_true(fabs(number_after(running.out, "\"a_seconds\": ") /
                         number_after(running.out, "\"b_seconds\": ") /
                         number_after(running.out, "\"speedup\": ") -
                     1) < 1e-5);
}

/* The wide table says what keeps the machines from being faster. */
static void a_wide_comparison_names_the_busiest_links(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "compare " SLOW " " FAST " -n 4 -s 64M -a ring --wide"),
                     0);
    running_says("BUSBW A    BUSBW B  BEST OF A  BEST OF B  BUSIEST LINKS OF A; B\n");
    running_says("rank 0 out, 100%; rank 0 out, 99%\n");
}

/* ---- this machine ---------------------------------------------------------------------------- */

/* Only machines with several gpus have other ranks than those of their cores. */
static void without_a_machine_it_is_this_one(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("TUTTI_MACHINE"), 0);
    if (running_run(TUTTI_SIM, "allreduce -n 4 -s 64K -a ring") == EXIT_MISTAKE) {
        assert_non_null(strstr(running.err, "this machine has a rank for each of its "));
        skip();
    }
    assert_int_equal(strncmp(running.out, "this machine: 4 ranks on ", 25), 0);
    running_says(", rates assumed; tutti-topo --measure finds them\nallreduce, 4 ranks\n");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo this -n 4 -s 64K -a ring"), 0);
    assert_int_equal(strncmp(running.out, "this machine: 4 ranks on ", 25), 0);
    assert_int_equal(running_run(TUTTI_SIM, "allreduce -n 4 -s 64K -a ring --json"), 0);
    assert_int_equal(*running.out, '{');
    assert_int_equal(running_run(TUTTI_SIM, "compare this this -n 4 -s 64K -a ring"), 0);
    running_says("A: 4 ranks, this: 4 ranks on ");

    assert_int_equal(setenv("TUTTI_MACHINE", "level node overhead 5us bandwidth 50GB/s", 1), 0);
    assert_int_equal(running_run(TUTTI_SIM, "barrier -n 8 -a dissemination"), 0);
    running_says("rates of TUTTI_MACHINE\n");
    running_says("15 us");
    assert_int_equal(setenv("TUTTI_MACHINE", "levl node", 1), 0);
    running_is_mistake(running_run(TUTTI_SIM, "barrier -n 8"), "tutti-sim: ", "levl");
    assert_int_equal(unsetenv("TUTTI_MACHINE"), 0);
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static void mistakes_are_one_line_with_the_cure(void **state)
{
    static const struct {
        const char *arguments, *what;
    } cases[] = {
        {"-n 8 --topo flat", "which collective? Give one of allreduce"},
        {"alreduce -n 8 --topo flat", "alreduce is no collective; give one of"},
        {"compare flat", "compare takes two machines, such as "},
        {"compare allreduce flat flat2 x", "one word too many"},
        {"compare allreduce flat -n 4", "compare takes two machines, such as "},
        {"compare flat flatt -n 4", "open flatt: No such file"},
        {"compare flat flat alreduce -n 4", "alreduce is no collective"},
        {"compare flat flat -n 4,8", "--ranks: 2 numbers; compare takes one"},
        {"compare flat flat -n 4 --topo flat", "--topo flat: compare takes both machines as words"},
        {"compare flat flat", "the number of ranks is not given"},
        {"allreduce --topo flatt -n 8", "open flatt: No such file or directory; give a file, a "
         "name such as flat or dgx-h100, or a line such as \"4 hosts: "},
        {"allreduce --topo flat", "the number of ranks is not given; add a line"},
        {"allreduce --topo flat -n 1", "--ranks 1: a simulation needs two ranks"},
        {"allreduce --topo flat -n 8 -a rung", "allreduce has no algorithm rung; give one of"},
        {"allreduce --topo flat -n 8 -s 0", "--size 0: give FIRST:LAST[:FACTOR]"},
        {"allreduce --topo flat -n 8 -s 2K:1K", "--size 2K:1K: give"},
        {"allreduce --topo flat -n 8 -s 1K:2K:1", "--size 1K:2K:1: give"},
        {"allreduce --topo flat -n 8 -s 1K:2K:2:2", "--size 1K:2K:2:2: give"},
        {"allreduce --topo flat -n 8 -s 2048T", "--size 2048T: give"},
        {"allreduce --topo flat -n 8 --root 1", "allreduce has no root"},
        {"allreduce --topo flat -n 8 --steps 0", "--steps 0: give a number"},
        {"allreduce --topo flat -n 8 --within 0.5", "--within 0.5: give a factor from 1 on"},
        {"allreduce --topo flat -n 8 -a chosen --option segments=2", "give --algorithm NAME too"},
        {"allreduce --topo flat -n 8 --option segments=2", "give --algorithm NAME too"},
        {"allreduce --topo flat -n 8 -a ring --option window=2", "has no option \"window\""},
        {"allreduce --topo flat -n 8 --json=yes", "--json=yes takes no value"},
        {"allreduce --topo flat -n 8 ring", "\"ring\" is one word too many"},
        {"allreduce --topo 'ranks 3; level top' -n 8", "machine:1:19: the level has no bandwidth"},
        {"allreduce --topo 'torus 2 3; level top bandwidth 1GB/s' -n 8",
         "machine:1:7: this torus does not hold the 8 ranks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        running_is_mistake(running_run(TUTTI_SIM, "%s", cases[i].arguments), "tutti-sim: ",
                           cases[i].what);
    /* The table is printed before the picture fails. */
    assert_int_equal(running_run(TUTTI_SIM, "broadcast --topo flat -n 2,4 -s 1K,2K -o a.svg"), 2);
    assert_int_equal(running_run(TUTTI_SIM, "broadcast --topo flat -n 2,4 -s 1K:2K -o a.svg"), 2);
    assert_non_null(strstr(running.err, "give one size, or one number of ranks"));
    assert_int_equal(running_run(TUTTI_SIM, "broadcast --topo flat -n 4 -s 1K -o no/a.svg"), 1);
    assert_non_null(strstr(running.err, "tutti-sim: cannot write no/a.svg: No such file"));
}

static void the_help_names_the_machines(void **state)
{
    (void)state;
    assert_int_equal(running_run(TUTTI_SIM, "--help"), 0);
    running_says("usage: tutti-sim COLLECTIVE");
    running_says("\n  flat ");
    running_says("\n  nodes8 ");
    assert_int_equal(running_run(TUTTI_SIM, " "), 2);
    assert_string_equal(running.out, "");
}

/* A machine may be given by its devices: a known name, a line, or a file of lines. There is a rank
 * for each gpu. */
static void a_machine_may_be_given_by_its_devices(void **state)
{
    (void)state;
    running_write("cluster.txt", "2 hosts: 4 gpus h100 nvswitch, 4 nics 400G, 2 cpus\n");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo dgx-h100 -s 64M -a multi_ring"), 0);
    running_says("allreduce, 8 ranks\n");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce --topo cluster.txt -s 64M -a multi_ring"),
                     0);
    running_says("allreduce, 8 ranks\n");
    assert_int_equal(running_run(TUTTI_SIM, "allreduce -s 64M -a multi_ring --topo "
                                 "'2 hosts: 4 gpus h100 nvswitch, 4 nics 400G, 2 cpus'"), 0);
    running_says("allreduce, 8 ranks\n");
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo dgx-h100 -n 4 -s 64M"),
                       "tutti-sim: ", "has a rank for each of its 8 gpus; leave --ranks out");
    running_is_mistake(running_run(TUTTI_SIM, "allreduce --topo '2 cpus, 1 nic 100G'"),
                       "tutti-sim: ", "has no gpus");
    /* What is too large for a graph gets a description that is not. */
    if (running_run(TUTTI_SIM, "allreduce --topo '9000 hosts: dgx-h100' -s 1M -a ring") != 0)
        running_is_mistake(EXIT_MISTAKE, "tutti-sim: ", "give the levels instead: \"ranks 72000; "
                           "node 8; level node latency ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_costs_what_it_must),
        cmocka_unit_test(every_size_has_one_best),
        cmocka_unit_test(tables_are_narrow_unless_they_are_to_be_wide),
        cmocka_unit_test(best_is_the_marked_row_of_each_size),
        cmocka_unit_test(ranks_of_one_node_may_share_memory),
        cmocka_unit_test(what_is_too_large_is_left_out_and_said),
        cmocka_unit_test(ranks_that_do_alike_are_played_once),
        cmocka_unit_test(only_the_choice_is_played),
        cmocka_unit_test(large_calls_run_whole_or_in_pieces),
        cmocka_unit_test(a_machine_may_bring_its_ranks),
        cmocka_unit_test(a_barrier_has_no_size),
        cmocka_unit_test(json_has_all_cases),
        cmocka_unit_test(rows_come_as_they_are_simulated),
        cmocka_unit_test(pictures_show_what_varies),
        cmocka_unit_test(two_machines_stand_side_by_side),
        cmocka_unit_test(a_comparison_in_json_has_all_cases),
        cmocka_unit_test(a_wide_comparison_names_the_busiest_links),
        cmocka_unit_test(without_a_machine_it_is_this_one),
        cmocka_unit_test(mistakes_are_one_line_with_the_cure),
        cmocka_unit_test(a_machine_may_be_given_by_its_devices),
        cmocka_unit_test(the_help_names_the_machines),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
