/* SPDX-License-Identifier: Apache-2.0
 * GPUs of several hosts, where proxies carry the data of kernels between the hosts. Rank r is on
 * host r. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 30000, TURNS = 8 };

/* A mark of the board. */
enum { MARK_STOPPED = MARK_OWN };

static const char *const environment[] = {"TEST_HOSTS", "3", "TUTTI_DEBUG", "info", NULL};

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void prepare(const struct rank *rank)
{
    static int32_t numbers[COUNT];

    for (int i = 0; i < COUNT; i++)
        numbers[i] = rank->seat->rank + i;
    upload(rank, numbers, sizeof numbers);
}

/* Fails unless number i is base + factor * i, for all i below count. */
static tuttiResult_t check(const struct rank *rank, int first, int count, int base, int factor)
{
    static int32_t numbers[COUNT];

    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; i < count; i++)
        if (numbers[first + i] != base + factor * i) {
            fprintf(stderr, "rank %d: number %d is %d, not %d\n", rank->seat->rank, first + i,
                    numbers[first + i], base + factor * i);
            return tuttiInternalError;
        }
    return tuttiSuccess;
}

static tuttiResult_t sum(struct rank *rank)
{
    tuttiResult_t result;

    prepare(rank);
    result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                            rank->seat->comm, NULL);
    return result == tuttiSuccess ? check(rank, 0, COUNT, 3, NRANKS) : result;
}

/* ---- calls that follow each other ------------------------------------------------------------ */

/* A proxy that has slept is awake again in time. */
static tuttiResult_t sum_now_and_then(struct rank *rank)
{
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < 4 && result == tuttiSuccess; i++) {
        result = sum(rank);
        pause_ms(30);
    }
    return result;
}

static void calls_run_by_kernels_through_proxies(void **state)
{
    const struct script script = {sum_now_and_then, 0, COUNT, NULL};
    const char *said;

    (void)state;
    said = play_aloud(&script, false, environment);
    if (strstr(said, "on several hosts through proxies") == NULL ||
        strstr(said, "step by step") == NULL)
        fail_msg("no kernels and proxies were used: %s", said);
}

/* Many calls are enqueued before any is waited for. */
static tuttiResult_t enqueue_many(struct rank *rank)
{
    struct tutti_cu_stream *stream;
    tuttiResult_t result = tuttiSuccess;
    int factor = 1;

    prepare(rank);
    must(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < TURNS && result == tuttiSuccess; i++) {
        result = tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiMax,
                                rank->seat->comm, (tuttiStream_t)(void *)stream);
        if (result == tuttiSuccess)
            result = tuttiBroadcast(rank->numbers, rank->numbers, COUNT, tuttiInt32, i % NRANKS,
                                    rank->seat->comm, (tuttiStream_t)(void *)stream);
    }
    must(driver()->stream_synchronize(stream));
    must(driver()->stream_destroy(stream));
    return result == tuttiSuccess ? check(rank, 0, COUNT, NRANKS - 1, factor) : result;
}

static void calls_may_be_enqueued_ahead(void **state)
{
    const struct script script = {enqueue_many, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, false, environment);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* A group has messages, a v-form and a collective. */
static tuttiResult_t group_all(struct rank *rank)
{
    static const size_t counts[] = {5, 6, 7}, displs[] = {0, 5, 11};
    int me = rank->seat->rank, next = (me + 1) % NRANKS, before = (me + NRANKS - 1) % NRANKS;
    tuttiComm_t comm = rank->seat->comm;
    tuttiResult_t result;
    int32_t *numbers = rank->numbers;

    prepare(rank);
    tuttiGroupStart();
    tuttiSend(numbers, 100, tuttiInt32, next, comm, NULL);
    tuttiRecv(numbers + 1000, 100, tuttiInt32, before, comm, NULL);
    tuttiAllGatherV(numbers, numbers + 2000, counts, displs, tuttiInt32, comm, NULL);
    tuttiAllReduce(numbers + 3000, numbers + 3000, 100, tuttiInt32, tuttiSum, comm, NULL);
    result = tuttiGroupEnd();
    if (result == tuttiSuccess)
        result = check(rank, 1000, 100, before, 1);
    for (int r = 0; r < NRANKS && result == tuttiSuccess; r++)
        result = check(rank, 2000 + (int)displs[r], (int)counts[r], r, 1);
    return result == tuttiSuccess ? check(rank, 3000, 100, 3 + NRANKS * 3000, NRANKS) : result;
}

static void a_group_may_have_all_kinds_of_calls(void **state)
{
    const struct script script = {group_all, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, false, environment);
}

/* ---- v-forms --------------------------------------------------------------------------------- */

/* Rank r sends r + to + 1 times LARGE elements to rank `to`. */
enum { LARGE = 900 };

static tuttiResult_t exchange(struct rank *rank, tuttiStream_t stream)
{
    int me = rank->seat->rank;
    size_t counts[NRANKS], displs[NRANKS];
    int32_t *numbers = rank->numbers;

    for (int r = 0; r < NRANKS; r++) {
        counts[r] = (size_t)(me + r + 1) * LARGE;
        displs[r] = (size_t)r * 5 * LARGE;
    }
    return tuttiAlltoAllV(numbers, counts, displs, numbers + COUNT / 2, counts, displs, tuttiInt32,
                          rank->seat->comm, stream);
}

static tuttiResult_t check_exchange(struct rank *rank)
{
    tuttiResult_t result = tuttiSuccess;
    int me = rank->seat->rank;

    for (int r = 0; r < NRANKS && result == tuttiSuccess; r++)
        result = check(rank, COUNT / 2 + r * 5 * LARGE, (me + r + 1) * LARGE,
                       r + me * 5 * LARGE, 1);
    return result;
}

/* The programs of v-forms exist as long as the launches that use them. */
static tuttiResult_t exchange_often(struct rank *rank)
{
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < 5 && result == tuttiSuccess; i++) {
        prepare(rank);
        result = exchange(rank, NULL);
        if (result == tuttiSuccess)
            result = check_exchange(rank);
    }
    return result;
}

static void kernels_run_v_forms(void **state)
{
    const struct script script = {exchange_often, 0, COUNT, NULL};
    const char *said;

    (void)state;
    said = play_aloud(&script, false, environment);
    if (strstr(said, "elements runs by spread_out, step by step") == NULL)
        fail_msg("no kernels ran the v-form: %s", said);
}

static tuttiResult_t call_otherwise(struct rank *rank)
{
    prepare(rank);
    if (rank->seat->rank != 1)
        return exchange(rank, NULL);
    return tuttiAllReduce(rank->numbers, rank->numbers, 10, tuttiInt32, tuttiSum, rank->seat->comm,
                          NULL);
}

/* All ranks see that one of them calls something else. */
static void another_call_than_a_v_form_is_named(void **state)
{
    const struct script script = {call_otherwise, 0, COUNT, NULL};
    struct crew_board *board;

    (void)state;
    board = play(&script, false, LONG_MS, environment);
    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result == tuttiSuccess ||
            (strstr(board->reports[rank].text, "allreduce") == NULL &&
             board->reports[rank].result != tuttiRemoteError))
            fail_msg("rank %d got %s: %s", rank, tuttiGetErrorString(board->reports[rank].result),
                     board->reports[rank].text);
    crew_clear(board);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Calls a function of the driver that the library does not use. */
#define CALL(name, types, ...)                                          \
    do {                                                                \
        int(*function) types;                                           \
        *(void **)&function = dlsym(driver()->library, name);           \
        must(function != NULL ? function(__VA_ARGS__) : -1);            \
    } while (0)

static tuttiResult_t replay(struct rank *rank)
{
    struct tutti_cu_stream *stream;
    tuttiResult_t result;
    void *graph, *exec;

    must(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    CALL("cuStreamBeginCapture_v2", (void *, int), stream, TUTTI_CU_CAPTURE_RELAXED);
    result = exchange(rank, (tuttiStream_t)(void *)stream);
    if (result == tuttiSuccess)
        result = tuttiAllReduce(rank->numbers, rank->numbers, LARGE, tuttiInt32, tuttiMax,
                                rank->seat->comm, (tuttiStream_t)(void *)stream);
    CALL("cuStreamEndCapture", (void *, void **), stream, &graph);
    CALL("cuGraphInstantiateWithFlags", (void **, void *, unsigned long long), &exec, graph, 0);
    for (int i = 0; i < 3 && result == tuttiSuccess; i++) {
        pause_ms(25); /* proxies sleep, and replays do not wake them */
        prepare(rank);
        CALL("cuGraphLaunch", (void *, void *), exec, stream);
        must(driver()->stream_synchronize(stream));
        result = check(rank, 0, LARGE, NRANKS - 1, 1);
        if (result == tuttiSuccess)
            result = check_exchange(rank);
    }
    CALL("cuGraphExecDestroy", (void *), exec);
    CALL("cuGraphDestroy", (void *), graph);
    must(driver()->stream_destroy(stream));
    return result;
}

static void graphs_are_replayed(void **state)
{
    const struct script script = {replay, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, false, environment);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The root leaves at once. The others take its data later. */
static tuttiResult_t leave_early(struct rank *rank)
{
    tuttiComm_t comm = rank->seat->comm;
    tuttiResult_t result;

    prepare(rank);
    if (rank->seat->rank != 0)
        pause_ms(200);
    result = tuttiBroadcast(rank->numbers, rank->numbers, COUNT / 10, tuttiInt32, 0, comm, NULL);
    return result == tuttiSuccess ? check(rank, 0, COUNT / 10, 0, 1) : result;
}

static void a_rank_that_leaves_early_has_sent_everything(void **state)
{
    const struct script script = {leave_early, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, false, environment);
}

/* Rank 0 leaves while rank 2 is stopped, so that it still waits for rank 2 when rank 1 has closed its
 * end. The others see no failure. */
static tuttiResult_t outlast(struct rank *rank)
{
    struct crew_seat *seat = rank->seat;
    tuttiResult_t result = sum(rank), error = tuttiSuccess;

    meet(seat, MARK_CALLED);
    if (!crew_await(&seat->board->marks[MARK_STOPPED], 1))
        _exit(6);
    if (seat->rank == 0)
        return result;
    if (!crew_await(&seat->board->marks[MARK_ENDED], 1))
        _exit(6);
    if (result == tuttiSuccess)
        result = tuttiCommGetAsyncError(seat->comm, &error);
    return result == tuttiSuccess ? error : result;
}

static void stop_rank_2(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew;
    if (!crew_await(&board->marks[MARK_CALLED], NRANKS))
        fail_msg("the ranks have not called");
    kill(pids[2], SIGSTOP);
    crew_add(&board->marks[MARK_STOPPED]);
    pause_ms(300);
    kill(pids[2], SIGCONT);
    pause_ms(200);
    crew_add(&board->marks[MARK_ENDED]);
}

static void a_rank_that_leaves_may_be_answered_late(void **state)
{
    const struct script script = {outlast, 0, COUNT, NULL};
    struct crew_board *board;
    const char *said;

    (void)state;
    stderr_text_begin();
    board = crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = LONG_MS,
                                    .environment = environment, .run = form_and_act,
                                    .meddle = stop_rank_2, .context = &script});
    said = stderr_text_end();
    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %s: %s", rank, board->reports[rank].text, said);
    if (strstr(said, "closed its connection") != NULL)
        fail_msg("%s", said);
    crew_clear(board);
}

/* Forms and destroys communicators in turn. */
static tuttiResult_t come_and_go(struct rank *rank)
{
    tuttiComm_t old = rank->seat->comm;
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < 3 && result == tuttiSuccess; i++) {
        result = tuttiCommSplit(old, 0, rank->seat->rank, &rank->seat->comm, NULL);
        if (result == tuttiSuccess)
            result = sum(rank);
        if (result == tuttiSuccess)
            result = tuttiCommDestroy(rank->seat->comm);
        rank->seat->comm = old;
    }
    return result == tuttiSuccess ? sum(rank) : result;
}

static void splits_have_proxies_of_their_own(void **state)
{
    const struct script script = {come_and_go, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, false, environment);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* Rank 2 dies between two calls. */
static tuttiResult_t die_between_calls(struct rank *rank)
{
    tuttiResult_t result = sum(rank);

    meet(rank->seat, MARK_CALLED);
    if (rank->seat->rank == 2)
        kill(getpid(), SIGKILL);
    while (result == tuttiSuccess)
        result = sum(rank);
    return result;
}

static void none(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew;
    (void)board;
    (void)pids;
}

static void a_lost_connection_names_its_rank(void **state)
{
    const struct script script = {die_between_calls, 0, COUNT, NULL};
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = LONG_MS,
                                    .environment = environment, .run = form_and_act,
                                    .meddle = none, .context = &script});
    expect_report(board, 0, tuttiRemoteError, "rank 2");
    expect_report(board, 1, tuttiRemoteError, "rank 2");
    crew_clear(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_run_by_kernels_through_proxies),
        cmocka_unit_test(calls_may_be_enqueued_ahead),
        cmocka_unit_test(a_group_may_have_all_kinds_of_calls),
        cmocka_unit_test(kernels_run_v_forms),
        cmocka_unit_test(another_call_than_a_v_form_is_named),
        cmocka_unit_test(graphs_are_replayed),
        cmocka_unit_test(a_rank_that_leaves_early_has_sent_everything),
        cmocka_unit_test(a_rank_that_leaves_may_be_answered_late),
        cmocka_unit_test(splits_have_proxies_of_their_own),
        cmocka_unit_test(a_lost_connection_names_its_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
