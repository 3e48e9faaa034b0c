/* SPDX-License-Identifier: Apache-2.0
 * Ranks of mailboxes die, abort, fork or never send. Every wait ends, and the error names the
 * rank. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NRANKS = 4, VICTIM = 2, TIMEOUT_MS = 15000, SHORT_MS = 400 };

static struct crew_board *run(const struct crew_way *way, bool is_threads, int timeout_ms,
                              tuttiResult_t (*fn)(struct crew_seat *seat),
                              void (*meddle)(const struct crew *crew, struct crew_board *board,
                                             const pid_t *pids))
{
    return crew_run(&(struct crew){.nranks = NRANKS, .is_threads = is_threads,
                                   .environment = way->environment, .timeout_ms = timeout_ms,
                                   .run = fn, .meddle = meddle});
}

/* Of all ranks but `victim`. */
static void expect_success(struct crew_board *board, int victim)
{
    for (int rank = 0; rank < NRANKS; rank++)
        if (rank != victim && board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %d: %s", rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

/* A rank's report on its receive. */
static tuttiResult_t receive_one(tuttiMailbox_t box, int peer)
{
    int32_t value;
    tuttiRequest_t request;
    tuttiResult_t result = tuttiMailboxRecv(&value, 1, tuttiInt32, peer, 5, box, &request);

    return result == tuttiSuccess ? tuttiRequestWait(&request, -1, NULL, NULL) : result;
}

/* ---- death --------------------------------------------------------------------------------- */

/* All others wait for the victim, some of them for anybody; all are connected to it. */
static tuttiResult_t wait_for_the_victim(struct crew_seat *seat)
{
    int32_t value = seat->rank;
    tuttiRequest_t request;
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &box);
    char text[CREW_TEXT_BYTES];

    if (result != tuttiSuccess)
        return result;
    for (int peer = 0; peer < NRANKS && seat->rank == VICTIM; peer++)
        if (peer != VICTIM &&
            (tuttiMailboxSend(&value, 1, tuttiInt32, peer, 5, box, &request) != tuttiSuccess ||
             tuttiRequestWait(&request, -1, NULL, NULL) != tuttiSuccess))
            return tuttiInternalError;
    if (seat->rank != VICTIM)
        result = receive_one(box, VICTIM);
    crew_add(&seat->board->marks[0]);
    if (seat->rank == VICTIM)
        for (;;)
            pause();
    if (result == tuttiSuccess)
        result = receive_one(box, seat->rank == 0 ? VICTIM : TUTTI_ANY_RANK);
    snprintf(text, sizeof text, "%s", tuttiGetLastError(NULL));
    if (tuttiMailboxDestroy(box) != tuttiSuccess)
        return tuttiInternalError;
    snprintf(seat->board->reports[seat->rank].text, CREW_TEXT_BYTES, "%s", text);
    return result == tuttiRemoteError && strstr(text, "rank 2") != NULL ? tuttiSuccess : result;
}

static void kill_the_victim(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew;
    crew_await(&board->marks[0], NRANKS);
    kill(pids[VICTIM], SIGKILL);
}

static void all_name_the_rank_that_was_killed(void **state)
{
    struct crew_board *board = run(*state, false, TIMEOUT_MS, wait_for_the_victim,
                                   kill_the_victim);

    expect_success(board, VICTIM);
}

/* ---- silence, and ends from outside -------------------------------------------------------- */

static tuttiResult_t wait_for_nothing(struct crew_seat *seat)
{
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &box);
    bool is_named;

    if (result != tuttiSuccess)
        return result;
    result = receive_one(box, (seat->rank + 1) % NRANKS);
    is_named = strstr(tuttiGetLastError(NULL), "tag 5") != NULL &&
               strstr(tuttiGetLastError(NULL), "has waited 400 ms") != NULL;
    (void)tuttiMailboxDestroy(box);
    return result == tuttiTimeout && is_named ? tuttiSuccess : tuttiInternalError;
}

static void a_receive_without_a_send_ends_at_the_deadline(void **state)
{
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = run(*state, is_threads, SHORT_MS, wait_for_nothing, NULL);

        expect_success(board, -1);
    }
}

/* Made with long deadlines, then given short ones. */
static tuttiResult_t hurry(struct crew_seat *seat)
{
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &box);
    bool is_named;

    if (result != tuttiSuccess)
        return result;
    if (tuttiMailboxSetTimeout(box, -1) != tuttiInvalidArgument ||
        tuttiCommSetTimeout(seat->comm, -1) != tuttiInvalidArgument ||
        tuttiMailboxSetTimeout(box, SHORT_MS) != tuttiSuccess ||
        tuttiCommSetTimeout(seat->comm, SHORT_MS) != tuttiSuccess)
        return tuttiInternalError;
    result = receive_one(box, (seat->rank + 1) % NRANKS);
    is_named = strstr(tuttiGetLastError(NULL), "has waited 400 ms") != NULL;
    (void)tuttiMailboxDestroy(box);
    if (result != tuttiTimeout || !is_named)
        return tuttiInternalError;
    crew_add(&seat->board->marks[0]);
    if (seat->rank == 0)
        return crew_await(&seat->board->marks[1], NRANKS - 1) ? tuttiSuccess : tuttiInternalError;
    result = tuttiBarrier(seat->comm, NULL);
    crew_add(&seat->board->marks[1]);
    return result == tuttiTimeout ? tuttiSuccess : tuttiInternalError;
}

static void deadlines_can_be_changed(void **state)
{
    struct crew_board *board = run(*state, false, TIMEOUT_MS, hurry, NULL);

    expect_success(board, -1);
}

static void *abort_later(void *argument)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    (void)tuttiMailboxAbort(argument);
    return NULL;
}

/* Rank 1 aborts from another thread while all wait for one another. */
static tuttiResult_t abort_under_a_wait(struct crew_seat *seat)
{
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &box);
    pthread_t thread;
    bool is_named;

    if (result != tuttiSuccess)
        return result;
    if (seat->rank == 1 && pthread_create(&thread, NULL, abort_later, box) != 0)
        return tuttiSystemError;
    result = receive_one(box, (seat->rank + 1) % NRANKS);
    is_named = strstr(tuttiGetLastError(NULL), "rank 1 called tuttiMailboxAbort") != NULL;
    if (seat->rank == 1)
        pthread_join(thread, NULL);
    (void)tuttiMailboxDestroy(box);
    /* The communicator that it was made of is as before. */
    if (tuttiBarrier(seat->comm, NULL) != tuttiSuccess)
        return tuttiInternalError;
    return result == tuttiInvalidUsage && is_named ? tuttiSuccess : tuttiInternalError;
}

static void an_abort_ends_all_waits(void **state)
{
    for (int is_threads = CREW_FIRST_LAUNCH; is_threads < 2; is_threads++) {
        struct crew_board *board = run(*state, is_threads, TIMEOUT_MS, abort_under_a_wait, NULL);

        expect_success(board, -1);
    }
}

static int use_after_fork(void *context)
{
    tuttiRequest_t request;
    int32_t value = 0;

    return tuttiMailboxSend(&value, 1, tuttiInt32, 0, 0, context, &request) == tuttiInvalidUsage &&
                   tuttiMailboxDestroy(context) == tuttiInvalidUsage
               ? 0 : 1;
}

static tuttiResult_t fork_with_a_mailbox(struct crew_seat *seat)
{
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &box);
    int32_t mine = seat->rank, theirs = -1;
    tuttiRequest_t sends, receives;

    if (result != tuttiSuccess)
        return result;
    if (crew_fork(use_after_fork, box) != 0)
        return tuttiInternalError;
    if (tuttiMailboxSend(&mine, 1, tuttiInt32, (seat->rank + 1) % NRANKS, 0, box, &sends) != 0 ||
        tuttiMailboxRecv(&theirs, 1, tuttiInt32, TUTTI_ANY_RANK, 0, box, &receives) != 0 ||
        tuttiRequestWait(&receives, -1, NULL, NULL) != 0 ||
        tuttiRequestWait(&sends, -1, NULL, NULL) != 0)
        return tuttiInternalError;
    return theirs == (seat->rank + NRANKS - 1) % NRANKS ? tuttiMailboxDestroy(box)
                                                        : tuttiInternalError;
}

static void a_child_of_fork_is_refused(void **state)
{
    struct crew_board *board = run(*state, false, TIMEOUT_MS, fork_with_a_mailbox, NULL);

    expect_success(board, -1);
}

int main(void)
{
    struct CMUnitTest tests[32];
    size_t count = 0;

    for (int i = 0; i < crew_way_count; i++) {
        void *way = (void *)(uintptr_t)&crew_ways[i];

        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            all_name_the_rank_that_was_killed, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            a_receive_without_a_send_ends_at_the_deadline, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(deadlines_can_be_changed,
                                                                      way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(an_abort_ends_all_waits, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(a_child_of_fork_is_refused,
                                                                      way);
    }
    return _cmocka_run_group_tests("mailboxes", tests, count, NULL, NULL);
}
