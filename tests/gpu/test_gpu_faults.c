/* SPDX-License-Identifier: Apache-2.0
 * Ranks on GPUs disagree, stall, die or give up, and GPUs fail. Every call ends and reports the
 * reason. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 1000 };

/* A mark of the board. */
enum { MARK_FREED = MARK_OWN };

/* ---- ways ------------------------------------------------------------------------------------ */

/* By kernels, or through the host where there are none; as processes, then as threads. The last way
 * is by kernels of two hosts, as processes. */
enum { WAYS = 5 };
struct way {
    const char *const *environment;
    bool is_threads;
};

static struct way way_of(int number)
{
    static const char *const without_kernels[] = {"TUTTI_CUDA_KERNELS", "/dev/null", NULL};
    static const char *const of_two_hosts[] = {"TEST_HOSTS", "2", NULL};

    if (number == WAYS - 1)
        return (struct way){of_two_hosts, false};
    return (struct way){number / 2 == 0 ? NULL : without_kernels, number % 2 == 1};
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Write what the rank gives; a lost GPU takes no more. */
static void prepare(struct rank *rank)
{
    int32_t numbers[COUNT];

    for (int i = 0; i < COUNT; i++)
        numbers[i] = rank->seat->rank + i;
    driver()->copy((uintptr_t)rank->numbers, (uintptr_t)numbers, sizeof numbers);
    driver()->stream_synchronize(TUTTI_CU_STREAM_LEGACY); /* as upload() does */
}

/* One all-reduce with a result that is looked at. */
static tuttiResult_t sum(struct rank *rank)
{
    int32_t numbers[COUNT];
    tuttiResult_t result;

    prepare(rank);
    result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                            rank->seat->comm, NULL);
    if (result != tuttiSuccess)
        return result;
    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        if (numbers[i] != 3 + NRANKS * i) {
            fprintf(stderr, "rank %d: number %d is %d\n", rank->seat->rank, i, numbers[i]);
            _exit(7);
        }
    return result;
}

static tuttiResult_t sum_some(struct rank *rank)
{
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < 5 && result == tuttiSuccess; i++)
        result = sum(rank);
    return result;
}

static tuttiResult_t sum_for_ever(struct rank *rank)
{
    tuttiResult_t result;

    while ((result = sum(rank)) == tuttiSuccess)
        continue;
    return result;
}

/* ---- ranks that disagree --------------------------------------------------------------------- */

enum difference { OTHER_COLLECTIVE, SCAN, OTHER_COUNT, OTHER_OP, OTHER_TYPE, DIFFERENCES };

/* Rank 1 calls something else the second time. */
static tuttiResult_t disagree(struct rank *rank)
{
    bool is_other = rank->seat->rank == 1;
    uint32_t difference = script_of(rank)->victim;
    tuttiResult_t result = sum(rank);

    if (result != tuttiSuccess)
        return result;
    if (is_other && difference == OTHER_COLLECTIVE)
        return tuttiBroadcast(rank->numbers, rank->numbers, COUNT, tuttiInt32, 0, rank->seat->comm,
                              NULL);
    if (is_other && difference == SCAN)
        return tuttiScan(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                         rank->seat->comm, NULL);
    return tuttiAllReduce(rank->numbers, rank->numbers,
                          is_other && difference == OTHER_COUNT ? COUNT - 1 : COUNT,
                          is_other && difference == OTHER_TYPE ? tuttiUint32 : tuttiInt32,
                          is_other && difference == OTHER_OP ? tuttiMax : tuttiSum,
                          rank->seat->comm, NULL);
}

static void ranks_that_disagree_are_all_told_who_called_what(void **state)
{
    (void)state;
    for (uint32_t difference = 0; difference < DIFFERENCES; difference++)
        for (int number = 0; number < WAYS; number++) {
            struct way way = way_of(number);
            struct script script = {disagree, difference, COUNT, NULL};
            struct crew_board *board = play(&script, way.is_threads, LONG_MS, way.environment);

            for (int rank = 0; rank < NRANKS; rank++) {
                expect_report(board, rank, tuttiInvalidUsage, "rank 1");
                expect_report(board, rank, tuttiInvalidUsage, " call");
            }
            crew_clear(board);
        }
}

/* ---- v-forms that do not fit together -------------------------------------------------------- */

/* Also: large enough for other kernels than those of small calls. */
enum vform { PAIR, LARGE_PAIR, NOTHING_SENT, TO_ROOT, FROM_ROOT, GATHERED, LARGE_GATHERED, REDUCED,
             VFORMS };
enum { ROOM = 200000 };

/* Rank 1 expects another count of rank 0 than that sends, or passes other counts than the
 * others. */
static tuttiResult_t pass_counts(struct rank *rank)
{
    size_t gives[NRANKS] = {2, 2, 2}, takes[NRANKS] = {2, 2, 2}, all[NRANKS] = {4, 5, 6};
    static const size_t threes[NRANKS] = {3, 3, 3}, fours[NRANKS] = {4, 4, 4};
    uint32_t vform = script_of(rank)->victim;
    tuttiComm_t comm = rank->seat->comm;
    int32_t *out = rank->numbers + ROOM / 2;
    int me = rank->seat->rank;
    tuttiResult_t result;

    if (vform == LARGE_GATHERED)
        all[0] = 20000;
    if (me == 1) {
        all[1]++;
        all[2]--;
    }
    switch (vform) {
    /* Rank 0 need not wait for rank 1, and learns of the error in the next call. Kernels of one
     * host wait for all ranks. */
    case TO_ROOT:
        result = tuttiGatherV(rank->numbers, me == 0 ? 4 : 3, out, me == 1 ? threes : NULL, NULL,
                              tuttiInt32, 1, comm, NULL);
        return result == tuttiSuccess ? sum(rank) : result;
    case FROM_ROOT:
        result = tuttiScatterV(rank->numbers, me == 0 ? fours : NULL, NULL, out, me == 1 ? 3 : 4,
                               tuttiInt32, 0, comm, NULL);
        return result == tuttiSuccess ? sum(rank) : result;
    case GATHERED:
    case LARGE_GATHERED:
        return tuttiAllGatherV(rank->numbers, out, all, NULL, tuttiInt32, comm, NULL);
    case REDUCED:
        return tuttiReduceScatterV(rank->numbers, out, all, NULL, tuttiInt32, tuttiSum, comm, NULL);
    default:
        if (me == 0)
            gives[1] = vform == LARGE_PAIR ? 30000 : vform == NOTHING_SENT ? 0 : 4;
        if (me == 1)
            takes[0] = 3;
        result = tuttiAlltoAllV(rank->numbers, gives, NULL, out, takes, NULL, tuttiInt32, comm,
                                NULL);
        return result == tuttiSuccess ? sum(rank) : result;
    }
}

static void ranks_whose_v_forms_do_not_fit_are_told_the_count_that_differs(void **state)
{
    static const char *const said[VFORMS] = {
        [PAIR] = "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 3 "
                 "(12 bytes)",
        [LARGE_PAIR] = "rank 0 sends 30000 elements of int32 (120000 bytes) to rank 1, which "
                       "expects 3 (12 bytes)",
        [NOTHING_SENT] = "rank 0 sends 0 elements of int32 (0 bytes) to rank 1, which expects 3",
        [TO_ROOT] = "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 3",
        [FROM_ROOT] = "rank 0 sends 4 elements of int32 (16 bytes) to rank 1, which expects 3",
        [GATHERED] = "recvcounts[1] is ", [LARGE_GATHERED] = "recvcounts[1] is ",
        [REDUCED] = "recvcounts[1] is "};

    (void)state;
    for (uint32_t vform = 0; vform < VFORMS; vform++)
        for (int number = 0; number < WAYS; number++) {
            struct way way = way_of(number);
            struct script script = {pass_counts, vform, ROOM, NULL};
            struct crew_board *board = play(&script, way.is_threads, LONG_MS, way.environment);
            /* Kernels of several hosts compare only a hash of counts that all ranks share. */
            const char *text = vform >= GATHERED && number == WAYS - 1
                                   ? "are not the same here and on rank " : said[vform];

            for (int rank = 0; rank < (vform < GATHERED ? 2 : NRANKS); rank++)
                expect_report(board, rank, tuttiInvalidUsage, text);
            crew_clear(board);
        }
}

/* ---- ranks that stall ------------------------------------------------------------------------ */

static tuttiResult_t let_others_wait(struct rank *rank)
{
    tuttiResult_t result = sum(rank);

    if (result == tuttiSuccess && rank->seat->rank != 2)
        result = sum(rank);
    meet(rank->seat, MARK_ENDED);
    return result;
}

static void a_rank_that_does_not_call_is_named_when_time_is_up(void **state)
{
    const struct script script = {let_others_wait, 0, COUNT, NULL};

    (void)state;
    for (int number = 0; number < WAYS; number++) {
        struct way way = way_of(number);
        struct crew_board *board = play(&script, way.is_threads, 300, way.environment);

        for (int rank = 0; rank < 2; rank++)
            expect_report(board, rank, tuttiTimeout, "for rank 2");
        crew_clear(board);
    }
}

/* All have GPUs, so calls on host memory are others than calls on device memory. */
/* Rank 2 destroys its communicator after its last call, and the others make one more. */
static tuttiResult_t leave_before_others(struct rank *rank)
{
    tuttiResult_t result = sum(rank);

    return rank->seat->rank == 2 || result != tuttiSuccess ? result : sum(rank);
}

static void a_rank_that_leaves_is_named_to_those_whose_kernels_wait_for_it(void **state)
{
    const struct script script = {leave_before_others, 0, COUNT, NULL};

    (void)state;
    for (int number = 0; number < WAYS; number++) {
        struct way way = way_of(number);
        struct crew_board *board = play(&script, way.is_threads, LONG_MS, way.environment);
        bool is_named = false;

        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *report = &board->reports[rank];

            if (report->result != (rank == 2 ? tuttiSuccess : tuttiRemoteError))
                fail_msg("way %d: rank %d got %s: %s", number, rank,
                         tuttiGetErrorString(report->result), report->text);
            is_named = is_named || strstr(report->text, "has destroyed its communicator") != NULL;
        }
        if (!is_named)
            fail_msg("way %d: nobody names rank 2: %s", number, board->reports[1].text);
        crew_clear(board);
    }
}

static tuttiResult_t pass_other_memory(struct rank *rank)
{
    int32_t numbers[COUNT] = {0};
    tuttiResult_t result = sum(rank);

    if (result != tuttiSuccess)
        return result;
    return rank->seat->rank != 1 ? sum(rank)
                                 : tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum,
                                                  rank->seat->comm, NULL);
}

static void a_rank_that_passes_host_memory_is_named_when_time_is_up(void **state)
{
    const struct script script = {pass_other_memory, 0, COUNT, NULL};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = play(&script, is_threads, 300, NULL);

        for (int rank = 0; rank < NRANKS; rank++)
            expect_report(board, rank, tuttiTimeout, "rank 1");
        crew_clear(board);
    }
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* The data of ranks 0 and 1 may be enough for a first call of rank 2. */
static tuttiResult_t enqueue(struct rank *rank, tuttiStream_t stream)
{
    prepare(rank);
    return tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                          rank->seat->comm, stream);
}

static tuttiResult_t abort_sums(struct rank *rank)
{
    return abort_meanwhile(rank, enqueue, sum_for_ever);
}

static void giving_up_ends_the_kernels_of_all_ranks(void **state)
{
    const struct script script = {abort_sums, 0, COUNT, NULL};

    (void)state;
    for (int number = 0; number < WAYS; number++) {
        struct way way = way_of(number);
        struct crew_board *board = play(&script, way.is_threads, LONG_MS, way.environment);

        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiRemoteError &&
                board->reports[rank].result != tuttiInvalidUsage)
                fail_msg("rank %d got %s: %s", rank,
                         tuttiGetErrorString(board->reports[rank].result),
                         board->reports[rank].text);
        crew_clear(board);
    }
}

/* ---- dying ----------------------------------------------------------------------------------- */

/* Rank 1 stops calling, so the others' kernels wait for it when it dies. */
static tuttiResult_t wait_for_death(struct rank *rank)
{
    tuttiResult_t result = sum(rank);

    crew_add(&rank->seat->board->marks[MARK_CALLED]);
    if (rank->seat->rank == 1)
        for (;;)
            pause();
    return result != tuttiSuccess ? result : sum_for_ever(rank);
}

static void kill_rank_1(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    assert_true(crew_await(&board->marks[MARK_CALLED], (uint32_t)crew->nranks));
    kill(pids[1], SIGKILL);
}

static void a_rank_that_dies_is_named_to_those_whose_kernels_wait_for_it(void **state)
{
    const struct script script = {wait_for_death, 0, COUNT, NULL};

    (void)state;
    for (int number = 0; number < WAYS; number += 2) {
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = LONG_MS,
                                    .environment = way_of(number).environment,
                                    .run = form_and_act, .meddle = kill_rank_1,
                                    .context = &script});

        expect_report(board, 0, tuttiRemoteError, "rank 1");
        expect_report(board, 2, tuttiRemoteError, "rank 1");
        crew_clear(board);
    }
}

/* ---- GPUs that do not reach each other ------------------------------------------------------- */

/* All sums are right; what was said on the way. */
static const char *sum_with(const char *faults, bool is_threads)
{
    const char *environment[] = {"SIMCUDA_FAULTS", faults, "TUTTI_DEBUG", "info", NULL};
    const struct script script = {sum_some, 0, COUNT, NULL};

    return play_aloud(&script, is_threads, environment);
}

static void gpus_without_access_to_each_other_meet_in_host_memory(void **state)
{
    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = sum_with("no-peer=0:1", is_threads);

        assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 0,"), 1);
        assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 1,"), 1);
        assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 2,"), 0);
        assert_int_equal(count_lines_with(said, "GPUs reach each other:"), 1);
    }
}

/* Rank 2 reaches rank 0, but not as fast as both reach the
 * host: by 25 times, then by 2.5, which is no reason. */
static void ways_far_slower_than_host_memory_lead_through_it(void **state)
{
    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = sum_with("slow-copy=0:2:1000", is_threads);

        assert_int_equal(count_lines_with(said, "rank 2: GPU 2 copies 1 GB/s from rank 0's GPU, "
                                                "but 25"), 1);
        assert_int_equal(count_lines_with(said, "so these ranks communicate through host "
                                                "memory"), 1);
        assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 0,"), 1);
        assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 1,"), 0);
        assert_int_equal(count_lines_with(said, "GPUs reach each other:"), 1);

        said = sum_with("slow-copy=0:2:10000", is_threads);
        assert_int_equal(count_lines_with(said, "not all GPUs reach"), 0);
    }
}

static void processes_whose_memory_cannot_be_shared_go_through_the_host(void **state)
{
    (void)state;
    sum_with("no-ipc", false);
    sum_with("no-vmm-export", false);
    sum_with("no-ipc,no-vmm-export", false);
}

/* Rank 1's driver exports nothing; the others' memory is none the worse. */
static tuttiResult_t form_without_exports(struct crew_seat *seat)
{
    if (seat->rank == 1)
        setenv("TUTTI_SIM_CUDA_FAULT", "cuMemExportToShareableHandle:801", 1);
    return form_and_act(seat);
}

static void a_rank_whose_memory_cannot_be_passed_on_does_not_keep_others_waiting(void **state)
{
    static const char *const environment[] = {"TUTTI_DEBUG", "info", NULL};
    const struct script script = {sum_some, 0, COUNT, NULL};
    struct crew_board *board;
    const char *said;

    (void)state;
    stderr_text_begin();
    board = crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true,
                                    .environment = environment, .timeout_ms = LONG_MS,
                                    .run = form_without_exports, .context = &script});
    said = stderr_text_end();
    for (int rank = 0; rank < NRANKS; rank++)
        expect_report(board, rank, tuttiSuccess, "");
    crew_clear(board);
    assert_int_equal(count_lines_with(said, "memory of rank 1's GPU has not arrived: memory "), 1);
    assert_int_equal(count_lines_with(said, "not all GPUs reach GPU 1,"), 1);
    assert_int_equal(count_lines_with(said, "not all GPUs reach GPU"), 1);
    assert_int_equal(count_lines_with(said, "GPUs reach each other:"), 1);
}

/* ---- GPUs without memory --------------------------------------------------------------------- */

/* Freeing waits for the kernels of the ranks that remain. */
static tuttiResult_t sum_and_clear(struct rank *rank)
{
    tuttiResult_t result = sum_some(rank);

    meet(rank->seat, MARK_FREED);
    must(driver()->memory_free((uintptr_t)rank->numbers));
    return result;
}

/* The first allocations are the test's, one for each rank; there is only one kind of memory to try.
 * Ranks do without kernels, all of them. */
static void ranks_that_run_out_of_memory_when_they_form_go_through_the_host(void **state)
{
    const struct script script = {sum_and_clear, 0, COUNT, NULL};

    (void)state;
    for (int number = NRANKS + 1; number <= 3 * NRANKS; number++) {
        char fault[16];
        const char *environment[] = {"SIMCUDA_FAULTS", fault, "SIMCUDA_LEAKS", "1",
                                     "TUTTI_SIM_CUDA_FAULT", "cuMemCreate:801", "TUTTI_DEBUG",
                                     "warn", NULL};
        struct crew_board *board;
        const char *said;

        snprintf(fault, sizeof fault, "oom=%d", number);
        stderr_text_begin();
        board = crew_run(&(struct crew){.nranks = NRANKS, .is_threads = true, .forms_itself = true,
                                        .environment = environment, .timeout_ms = LONG_MS,
                                        .run = form_and_act, .context = &script});
        said = stderr_text_end();
        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiSuccess)
                fail_msg("%s: rank %d: %s", fault, rank, board->reports[rank].text);
        crew_clear(board);
        if (count_lines_with(said, "device memory goes through the host") != 1 ||
            strstr(said, "left: 0 allocations, 0 of the host, 0 registered, 0 opened, 0 mapped, "
                         "0 reserved, 0 handles, 0 streams, 0 events, 0 graphs, 0 modules") == NULL)
            fail_msg("%s: %s", fault, said);
    }
}

/* ---- GPUs that are lost ---------------------------------------------------------------------- */

static void a_gpu_that_is_lost_is_named_and_the_others_end(void **state)
{
    static const char *const by_kernels[] = {"SIMCUDA_FAULTS", "lost=1:20", NULL};
    static const char *const by_host[] = {"SIMCUDA_FAULTS", "lost=1:3", "TUTTI_CUDA_KERNELS",
                                          "/dev/null", NULL};
    const struct script script = {sum_for_ever, 0, COUNT, NULL};

    (void)state;
    for (int number = 0; number < WAYS; number++) {
        struct crew_board *board =
            play(&script, number % 2 == 1, LONG_MS, number / 2 == 0 ? by_kernels : by_host);

        expect_loss(board);
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_disagree_are_all_told_who_called_what),
        cmocka_unit_test(ranks_whose_v_forms_do_not_fit_are_told_the_count_that_differs),
        cmocka_unit_test(a_rank_that_does_not_call_is_named_when_time_is_up),
        cmocka_unit_test(a_rank_that_leaves_is_named_to_those_whose_kernels_wait_for_it),
        cmocka_unit_test(a_rank_that_passes_host_memory_is_named_when_time_is_up),
        cmocka_unit_test(giving_up_ends_the_kernels_of_all_ranks),
        cmocka_unit_test(a_rank_that_dies_is_named_to_those_whose_kernels_wait_for_it),
        cmocka_unit_test(gpus_without_access_to_each_other_meet_in_host_memory),
        cmocka_unit_test(ways_far_slower_than_host_memory_lead_through_it),
        cmocka_unit_test(processes_whose_memory_cannot_be_shared_go_through_the_host),
        cmocka_unit_test(a_rank_whose_memory_cannot_be_passed_on_does_not_keep_others_waiting),
        cmocka_unit_test(ranks_that_run_out_of_memory_when_they_form_go_through_the_host),
        cmocka_unit_test(a_gpu_that_is_lost_is_named_and_the_others_end),
    };

    return cmocka_run_group_tests_name("faults of GPUs", tests, NULL, NULL);
}
