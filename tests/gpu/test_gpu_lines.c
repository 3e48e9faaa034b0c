/* SPDX-License-Identifier: Apache-2.0
 * Lines of 128 bytes between GPUs are used where they stay whole, and nowhere else. The log
 * reports the result of the test and the kind of each call. Results are right in any case. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* So much is too large for lines of 16 bytes, and fits into those of 128. */
enum { COUNT = 5000, TIMES = 3 };

/* ---- calls ----------------------------------------------------------------------------------- */

static void give(const struct rank *rank, int seed)
{
    int32_t numbers[COUNT];

    for (int i = 0; i < COUNT; i++)
        numbers[i] = seed * (rank->seat->rank + 1) + i;
    upload(rank, numbers, sizeof numbers);
}

/* The numbers are `first`, and each is `step` more than the one before. */
static void expect(const struct rank *rank, int first, int step)
{
    int32_t numbers[COUNT];

    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        if (numbers[i] != first + step * i) {
            fprintf(stderr, "rank %d: number %d is %d\n", rank->seat->rank, i, numbers[i]);
            _exit(7);
        }
}

static tuttiResult_t sum_and_spread(const struct rank *rank, int seed)
{
    tuttiComm_t comm = rank->seat->comm;
    tuttiResult_t result;

    give(rank, seed);
    result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum, comm, NULL);
    if (result == tuttiSuccess)
        expect(rank, seed * (NRANKS * (NRANKS + 1) / 2), NRANKS);
    for (int root = 0; root < NRANKS && result == tuttiSuccess; root++) {
        give(rank, seed + 1);
        result = tuttiBroadcast(rank->numbers, rank->numbers, COUNT, tuttiInt32, root, comm, NULL);
        if (result == tuttiSuccess)
            expect(rank, (seed + 1) * (root + 1), 1);
    }
    return result;
}

static tuttiResult_t call_some(struct rank *rank)
{
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < TIMES && result == tuttiSuccess; i++)
        result = sum_and_spread(rank, 100 * i);
    return result;
}

/* ---- the log --------------------------------------------------------------------------------- */

struct machine {
    const char *ndevices, *faults, *weak;
};

/* All results are right; what was said on the way. */
static const char *call_on(const struct machine *machine, bool is_threads, const char *driver_fault)
{
    const char *environment[] = {"SIMCUDA_DEVICES", machine->ndevices ? machine->ndevices : "3",
                                 "SIMCUDA_FAULTS", machine->faults ? machine->faults : "",
                                 "SIMCUDA_WEAK", machine->weak ? machine->weak : "0",
                                 "TUTTI_SIM_CUDA_FAULT", driver_fault,
                                 "TUTTI_DEBUG", "trace", NULL};
    const struct script script = {call_some, 0, COUNT, NULL};

    return play_aloud(&script, is_threads, environment);
}

static void expect_lines(const char *said, const char *word, size_t wanted)
{
    size_t found = count_lines_with(said, word);

    if (found != wanted)
        fail_msg("%zu lines with \"%s\", not %zu: %s", found, word, wanted, said);
}

/* True if the all-reduce, and the broadcasts of so many roots, use lines. */
static void expect_ways(const char *said, bool is_sum, int nroots)
{
    expect_lines(said, "allreduce of 5000 elements runs by one_shot/ll128", is_sum ? TIMES : 0);
    expect_lines(said, "allreduce of 5000 elements runs by mapped/direct", is_sum ? 0 : TIMES);
    expect_lines(said, "broadcast of 5000 elements runs by direct/ll128",
                 (size_t)(nroots * TIMES));
    expect_lines(said, "broadcast of 5000 elements runs by stored/direct",
                 (size_t)((NRANKS - nroots) * TIMES));
    /* Without asking for every call, the first of each collective and size. */
    expect_lines(said, "INFO rank 0/3: allreduce of 5000 elements runs by", 1);
    expect_lines(said, "INFO rank 0/3: broadcast of 5000 elements runs by", 1);
}

/* ---- whole lines ----------------------------------------------------------------------------- */

static void calls_go_by_lines_where_these_are_whole(void **state)
{
    static const struct machine machines[] = {
        {.ndevices = "3"}, {.ndevices = "2"}, {.ndevices = "1"}, {.ndevices = "3", .weak = "5"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof machines / sizeof machines[0]; i++) {
        const char *said = call_on(&machines[i / 2], i % 2 == 0, "");

        expect_lines(said, "are whole between 3 of 3 pairs", 1);
        expect_lines(said, "are torn on their way", 0);
        expect_ways(said, true, 3);
    }
}

/* ---- torn lines ------------------------------------------------------------------------------ */

static void lines_that_the_test_finds_torn_are_not_used(void **state)
{
    static const struct machine one_pair = {.faults = "torn-lines=0:1"};
    static const struct machine all_pairs = {.faults = "torn-lines"};
    static const struct machine one_device = {.ndevices = "1", .faults = "torn-lines"};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = call_on(&one_pair, is_threads, "");

        expect_lines(said, "between rank 0, GPU 0, and rank 1, GPU 1, are torn on their way", 1);
        expect_lines(said, "are torn on their way", 1);
        expect_lines(said, "are whole between 2 of 3 pairs", 1);
        /* From rank 2 none has to go between the other two. */
        expect_ways(said, false, 1);

        said = call_on(&all_pairs, is_threads, "");
        expect_lines(said, "are torn on their way", 3);
        expect_ways(said, false, 0);

        said = call_on(&one_device, is_threads, "");
        expect_lines(said, "are torn on their way", 3);
        expect_ways(said, false, 0);
    }
}

static void links_that_promise_nothing_are_not_tried(void **state)
{
    static const struct machine without_link = {.faults = "no-nvlink=0:1"};
    static const struct machine without_links = {
        .faults = "no-nvlink=0:1,no-nvlink=1:2,no-nvlink=2:0"};
    static const struct machine without_access = {.faults = "no-peer=1:0"};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = call_on(&without_link, is_threads, "");

        expect_lines(said, "are torn on their way", 0);
        expect_lines(said, "are whole between 2 of 3 pairs", 1);
        expect_ways(said, false, 1);

        said = call_on(&without_links, is_threads, "");
        expect_lines(said, "are torn on their way", 0);
        expect_lines(said, "are whole between 0 of 3 pairs", 1);
        expect_ways(said, false, 0);

        /* Some go through memory of the host, where lines are not whole. */
        said = call_on(&without_access, is_threads, "");
        expect_lines(said, "are torn on their way", 0);
        expect_lines(said, "are whole between 2 of 3 pairs", 1);
        expect_ways(said, false, 1);
    }
}

/* ---- GPUs that a process does not see -------------------------------------------------------- */

/* Each process sees its own GPU alone, as under CUDA_VISIBLE_DEVICES. */
static void hide_others(struct rank *rank)
{
    char number[16];

    snprintf(number, sizeof number, "%d", rank->seat->rank + 1);
    setenv("SIMCUDA_VISIBLE", number, 1);
}

/* The driver does not tell of links to GPUs that it hides, but the description of the host does. */
static void links_to_hidden_gpus_are_known_by_the_description(void **state)
{
    static const char *const described[] = {"TUTTI_SIM_TOPOLOGY", SIM_TOPOLOGIES "/mesh-4.xml",
                                            "TUTTI_TOPO_FILE", SIM_TOPOLOGIES "/mesh-4.xml",
                                            "TUTTI_DEBUG", "trace", NULL};
    static const char *const unknown[] = {"TUTTI_SIM_TOPOLOGY", SIM_TOPOLOGIES "/mesh-4.xml",
                                          "TUTTI_DEBUG", "trace", NULL};
    const struct script script = {call_some, 0, COUNT, hide_others};

    (void)state;
    expect_lines(play_aloud(&script, false, described), "are whole between 3 of 3 pairs", 1);
    expect_lines(play_aloud(&script, false, unknown), "are whole between 0 of 3 pairs", 1);
}

/* ---- a test that fails ----------------------------------------------------------------------- */

/* One rank's driver gives it no result. */
static void ranks_go_through_the_host_where_one_cannot_test(void **state)
{
    static const struct machine sound = {.ndevices = "3"};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = call_on(&sound, is_threads, "cuStreamQuery:999@1");

        expect_lines(said, "device memory goes through the host: rank 1:", 1);
        expect_lines(said, "elements runs by", 0);
    }
}

/* The others wait for its lines, but not forever. The rank has no numbers in device memory, because
 * rank 1's device may be lost before they exist. */
static tuttiResult_t form(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.device = seat->rank;
    config.initTimeoutMs = 6000;
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

/* Whatever GPU 1 had begun last, ranks do without kernels then. */
static void a_gpu_may_be_lost_while_lines_are_tried(void **state)
{
    size_t nwaits = 0;

    (void)state;
    for (int nkernels = 3; nwaits == 0 && nkernels < 20; nkernels++) {
        char fault[32];
        const char *environment[] = {"SIMCUDA_FAULTS", fault, "TUTTI_DEBUG", "warn", NULL};
        struct crew_board *board;
        const char *said;

        snprintf(fault, sizeof fault, "lost=1:%d", nkernels);
        stderr_text_begin();
        board = crew_run(&(struct crew){.nranks = NRANKS, .is_threads = true, .forms_itself = true,
                                        .environment = environment, .timeout_ms = LONG_MS,
                                        .run = form});
        said = stderr_text_end();
        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiSuccess)
                fail_msg("%s: rank %d: %s", fault, rank, board->reports[rank].text);
        crew_clear(board);
        expect_lines(said, "device memory goes through the host", 1);
        nwaits = count_lines_with(said, "lines of rank 1 have not arrived in time");
    }
    assert_int_equal(nwaits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_go_by_lines_where_these_are_whole),
        cmocka_unit_test(lines_that_the_test_finds_torn_are_not_used),
        cmocka_unit_test(links_that_promise_nothing_are_not_tried),
        cmocka_unit_test(links_to_hidden_gpus_are_known_by_the_description),
        cmocka_unit_test(ranks_go_through_the_host_where_one_cannot_test),
        cmocka_unit_test(a_gpu_may_be_lost_while_lines_are_tried),
    };

    return cmocka_run_group_tests_name("lines between GPUs", tests, NULL, NULL);
}
