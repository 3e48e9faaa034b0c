/* SPDX-License-Identifier: Apache-2.0
 * Tests which calls are left to copy engines. Such calls end, whatever happens to one of the ranks
 * during them. */
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

/* Numbers of each rank: four pieces of a window and more. A call has as many meetings and two. */
enum { EACH = 130000, ALL = NRANKS * EACH, MEETINGS = 6 };

#define VARIABLE "TUTTI_GPU_COPY_ENGINE_BYTES"
static const char *const all_copies[] = {VARIABLE, "1", NULL};

/* ---- calls ----------------------------------------------------------------------------------- */

/* The rank's part of what is gathered in place; a lost GPU takes no more. */
static void prepare(struct rank *rank, size_t each, int round)
{
    int32_t *numbers = malloc(each * sizeof *numbers);

    if (numbers == NULL)
        _exit(7);
    for (size_t i = 0; i < each; i++)
        numbers[i] = rank->seat->rank * 1000000 + (int32_t)i + round;
    driver()->copy((uintptr_t)(rank->numbers + (size_t)rank->seat->rank * each), (uintptr_t)numbers,
                   each * sizeof *numbers);
    driver()->stream_synchronize(TUTTI_CU_STREAM_LEGACY); /* as upload() does */
    free(numbers);
}

static void check(struct rank *rank, size_t each, int round)
{
    int32_t *numbers = malloc(NRANKS * each * sizeof *numbers);

    if (numbers == NULL)
        _exit(7);
    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers,
                        NRANKS * each * sizeof *numbers));
    for (size_t i = 0; i < NRANKS * each; i++)
        if (numbers[i] != (int32_t)(i / each * 1000000 + i % each) + round) {
            fprintf(stderr, "rank %d: number %zu is %d\n", rank->seat->rank, i, numbers[i]);
            _exit(7);
        }
    free(numbers);
}

static tuttiResult_t gather(struct rank *rank, size_t each, int round)
{
    size_t mine = (size_t)rank->seat->rank * each;
    tuttiResult_t result;

    prepare(rank, each, round);
    result = tuttiAllGather(rank->numbers + mine, rank->numbers, each, tuttiInt32,
                            rank->seat->comm, NULL);
    if (result == tuttiSuccess)
        check(rank, each, round);
    return result;
}

static tuttiResult_t gather_for_ever(struct rank *rank)
{
    tuttiResult_t result;
    int round = 0;

    while ((result = gather(rank, EACH, round++)) == tuttiSuccess)
        crew_add(&rank->seat->board->steps[rank->seat->rank]);
    return result;
}

/* ---- when ------------------------------------------------------------------------------------ */

/* 520 KB of each rank, then 4 KB. */
static tuttiResult_t gather_much_and_little(struct rank *rank)
{
    tuttiResult_t result = gather(rank, EACH, 1);

    return result == tuttiSuccess ? gather(rank, 1000, 2) : result;
}

/* All results are right; what was said on the way. */
static const char *gather_with(void (*before)(struct rank *rank), bool is_threads,
                               const char *variable, const char *value)
{
    const char *environment[] = {"TUTTI_DEBUG", "trace", VARIABLE, "1", variable, value, NULL};
    const struct script script = {gather_much_and_little, 0, ALL, before};

    return play_aloud(&script, is_threads, environment);
}

static void ask_for_different_sizes(struct rank *rank)
{
    setenv(VARIABLE, rank->seat->rank == 1 ? "300K" : "1", 1);
}

static void ask_but_for_rank_1(struct rank *rank)
{
    if (rank->seat->rank == 1)
        unsetenv(VARIABLE);
}

static void ranks_agree_on_what_is_left_to_copy_engines(void **state)
{
    const char *said = gather_with(NULL, false, NULL, NULL);

    (void)state;
    assert_int_equal(count_lines_with(said, "allgather of 130000 elements is left to copy engines; "
                                            "pieces: 4"), 1);
    assert_int_equal(count_lines_with(said, "allgather of 1000 elements is left to copy engines; "
                                            "pieces: 1"), 1);
    said = gather_with(ask_for_different_sizes, false, NULL, NULL);
    assert_int_equal(count_lines_with(said, "is left to copy engines; pieces: 4"), 1);
    assert_int_equal(count_lines_with(said, "is left to copy engines"), 1);
    said = gather_with(ask_but_for_rank_1, false, NULL, NULL);
    assert_int_equal(count_lines_with(said, "copy engines"), 0);
}

static void where_copies_are_no_good_kernels_copy_and_say_so_once(void **state)
{
    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        const char *said = gather_with(NULL, is_threads, "SIMCUDA_FAULTS", "no-peer=0:1");

        assert_int_equal(count_lines_with(said, VARIABLE " is set, but not all GPUs reach"), 1);
        assert_int_equal(count_lines_with(said, "left to copy engines"), 0);
        said = gather_with(NULL, is_threads, "SIMCUDA_FAULTS", "corrupt-copy=0:1");
        assert_int_equal(count_lines_with(said, VARIABLE " is set, but copies of the driver"), 1);
        assert_int_equal(count_lines_with(said, "left to copy engines"), 0);
        said = gather_with(NULL, is_threads, "SIMCUDA_DEVICES", "2");
        assert_int_equal(count_lines_with(said, VARIABLE " is set, but ranks of one process share"),
                         (size_t)is_threads);
        assert_int_equal(count_lines_with(said, "left to copy engines"), is_threads ? 0 : 2);
    }
}

/* ---- ranks that disagree or stall ------------------------------------------------------------ */

static tuttiResult_t disagree(struct rank *rank)
{
    tuttiResult_t result = gather(rank, EACH, 0);

    if (result != tuttiSuccess || rank->seat->rank != 1)
        return result != tuttiSuccess ? result : gather(rank, EACH, 1);
    return tuttiBroadcast(rank->numbers, rank->numbers, EACH, tuttiInt32, 0, rank->seat->comm,
                          NULL);
}

static void ranks_that_disagree_are_all_told_who_called_what(void **state)
{
    const struct script script = {disagree, 0, ALL, NULL};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = play(&script, is_threads, LONG_MS, all_copies);

        for (int rank = 0; rank < NRANKS; rank++)
            expect_report(board, rank, tuttiInvalidUsage, "rank 1");
        crew_clear(board);
    }
}

static tuttiResult_t let_others_wait(struct rank *rank)
{
    tuttiResult_t result = gather(rank, EACH, 0);

    if (result == tuttiSuccess && rank->seat->rank != 2)
        result = gather(rank, EACH, 1);
    meet(rank->seat, MARK_ENDED);
    return result;
}

static void a_rank_that_does_not_call_is_named_when_time_is_up(void **state)
{
    const struct script script = {let_others_wait, 0, ALL, NULL};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = play(&script, is_threads, 500, all_copies);

        for (int rank = 0; rank < 2; rank++)
            expect_report(board, rank, tuttiTimeout, "for rank 2");
        crew_clear(board);
    }
}

/* ---- giving up, dying, failing --------------------------------------------------------------- */

static tuttiResult_t enqueue(struct rank *rank, tuttiStream_t stream)
{
    size_t mine = (size_t)rank->seat->rank * EACH;

    return tuttiAllGather(rank->numbers + mine, rank->numbers, EACH, tuttiInt32, rank->seat->comm,
                          stream);
}

static tuttiResult_t abort_copies(struct rank *rank)
{
    return abort_meanwhile(rank, enqueue, gather_for_ever);
}

static void giving_up_ends_what_waits_on_the_streams_of_all_ranks(void **state)
{
    const struct script script = {abort_copies, 0, ALL, NULL};

    (void)state;
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = play(&script, is_threads, LONG_MS, all_copies);

        expect_report(board, 0, tuttiInvalidUsage, "tuttiCommAbort");
        for (int rank = 1; rank < NRANKS; rank++)
            if ((board->reports[rank].result != tuttiRemoteError &&
                 board->reports[rank].result != tuttiInvalidUsage) ||
                strstr(board->reports[rank].text, "rank 0") == NULL)
                fail_msg("rank %d got %s: %s", rank,
                         tuttiGetErrorString(board->reports[rank].result),
                         board->reports[rank].text);
        crew_clear(board);
    }
}

static void kill_rank_1(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew;
    assert_true(crew_await(&board->steps[1], 3));
    kill(pids[1], SIGKILL);
}

static void a_rank_that_dies_in_the_middle_is_named(void **state)
{
    const struct script script = {gather_for_ever, 0, ALL, NULL};
    struct crew_board *board =
        crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = LONG_MS,
                                .environment = all_copies, .run = form_and_act,
                                .meddle = kill_rank_1, .context = &script});

    (void)state;
    expect_report(board, 0, tuttiRemoteError, "rank 1");
    expect_report(board, 2, tuttiRemoteError, "rank 1");
    crew_clear(board);
}

/* At each of the meetings of a call; those before are of ranks that meet, and of earlier calls. */
static void a_gpu_that_is_lost_between_two_pieces_is_named_and_the_others_end(void **state)
{
    const struct script script = {gather_for_ever, 0, ALL, NULL};

    (void)state;
    for (int meeting = 0; meeting < MEETINGS; meeting++) {
        char fault[24];
        const char *environment[] = {VARIABLE, "1", "SIMCUDA_FAULTS", fault, NULL};
        struct crew_board *board;

        snprintf(fault, sizeof fault, "lost=1:%d", 20 + meeting);
        board = play(&script, meeting % 2 == 0, LONG_MS, environment);
        expect_loss(board);
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_agree_on_what_is_left_to_copy_engines),
        cmocka_unit_test(where_copies_are_no_good_kernels_copy_and_say_so_once),
        cmocka_unit_test(ranks_that_disagree_are_all_told_who_called_what),
        cmocka_unit_test(a_rank_that_does_not_call_is_named_when_time_is_up),
        cmocka_unit_test(giving_up_ends_what_waits_on_the_streams_of_all_ranks),
        cmocka_unit_test(a_rank_that_dies_in_the_middle_is_named),
        cmocka_unit_test(a_gpu_that_is_lost_between_two_pieces_is_named_and_the_others_end),
    };

    return cmocka_run_group_tests_name("copy engines", tests, NULL, NULL);
}
