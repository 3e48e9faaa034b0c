/* SPDX-License-Identifier: Apache-2.0
 * Two threads use one communicator at once. The second is refused, and the message names the call
 * of the first. Whatever the timing, no result is wrong and nothing hangs. Threads that take turns
 * are served. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NRANKS = 2, THREADS = 2, CALLS = 1500, COUNT = 3, TIMEOUT_MS = 15000 };

/* ---- one is inside --------------------------------------------------------------------------- */

struct caller {
    struct crew_seat *seat;
    bool in_group;
    tuttiResult_t result;
    char text[CREW_TEXT_BYTES];
};

static tuttiResult_t reduce_one(struct crew_seat *seat, bool in_group)
{
    int mine = seat->rank + 1, sum = 0;
    tuttiResult_t result;

    if (in_group)
        tuttiGroupStart();
    result = tuttiAllReduce(&mine, &sum, 1, tuttiInt32, tuttiSum, seat->comm, NULL);
    if (in_group)
        result = tuttiGroupEnd();
    return result != tuttiSuccess || sum == 3 ? result : tuttiInternalError;
}

static void *call_once(void *argument)
{
    struct caller *caller = argument;

    caller->result = reduce_one(caller->seat, caller->in_group);
    snprintf(caller->text, sizeof caller->text, "%s", tuttiGetLastError(NULL));
    if (caller->result != tuttiSuccess)
        crew_add(&caller->seat->board->marks[0]);
    return NULL;
}

/* The call that is refused, and the one that is inside. A call that a group collects is inside for
 * a moment, too. */
static bool names_both(const char *text, bool in_group)
{
    const char *inside = strstr(text, "another thread is inside ");

    if (inside == NULL)
        return false;
    return (strncmp(text, "tuttiAllReduce: ", 16) == 0 ||
            (in_group && strncmp(text, "tuttiGroupEnd: ", 15) == 0)) &&
           (strstr(inside, " tuttiAllReduce on ") != NULL ||
            (in_group && strstr(inside, " tuttiGroupEnd on ") != NULL));
}

/* Rank 0's threads both call. The one inside waits for rank 1, which calls once the other one has
 * been refused. */
static tuttiResult_t call_from_both_threads(struct crew_seat *seat)
{
    bool in_group = seat->crew->context != NULL;
    struct caller first = {.seat = seat, .in_group = in_group}, second = {.seat = seat};
    const struct caller *served, *refused;
    pthread_t thread;

    if (seat->rank == 1)
        return crew_await(&seat->board->marks[0], 1) ? reduce_one(seat, false)
                                                     : tuttiInternalError;
    if (pthread_create(&thread, NULL, call_once, &first) != 0)
        return tuttiSystemError;
    call_once(&second);
    pthread_join(thread, NULL);
    served = first.result == tuttiSuccess ? &first : &second;
    refused = served == &first ? &second : &first;
    if (served->result == tuttiSuccess && refused->result == tuttiInvalidUsage &&
        names_both(refused->text, in_group))
        return tuttiSuccess;
    fprintf(stderr, "%d: %s\n%d: %s\n", (int)first.result, first.text, (int)second.result,
            second.text);
    return tuttiInternalError;
}

static void run(const struct crew_way *way, tuttiResult_t (*fn)(struct crew_seat *seat),
                const void *context)
{
    for (int is_threads = 0; is_threads < 2; is_threads++) {
        struct crew_board *board =
            crew_run(&(struct crew){.nranks = NRANKS, .environment = way->environment,
                                    .is_threads = is_threads, .timeout_ms = TIMEOUT_MS,
                                    .run = fn, .context = context});

        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiSuccess)
                fail_msg("%s: rank %d: %d: %s", way->name, rank, (int)board->reports[rank].result,
                         board->reports[rank].text);
        crew_clear(board);
    }
}

static void the_second_thread_is_refused_and_told_what_is_inside(void **state)
{
    run(*state, call_from_both_threads, NULL);
    run(*state, call_from_both_threads, "in a group");
}

/* ---- the end under a thread that is inside --------------------------------------------------- */

/* As call_once, but in spite of the looks below, which are calls as well. A look that has ended
 * meanwhile is no longer known by its name. */
static void *insist(void *argument)
{
    struct caller *caller = argument;

    do {
        caller->result = reduce_one(caller->seat, false);
        snprintf(caller->text, sizeof caller->text, "%s", tuttiGetLastError(NULL));
    } while (strstr(caller->text, "inside tuttiCommMemStats on") != NULL ||
             strstr(caller->text, "inside a call on") != NULL);
    return NULL;
}

static bool is_somebody_inside(tuttiComm_t comm)
{
    tuttiMemStats_t stats = {.size = sizeof stats};

    return tuttiCommMemStats(comm, &stats) == tuttiInvalidUsage;
}

static tuttiResult_t refuse_all_under_a_call(struct crew_seat *seat)
{
    tuttiComm_t child = NULL;
    tuttiRedOp_t op;
    int one = 1;

    const struct { const char *name; tuttiResult_t result; } tries[] = {
        {"destroy", tuttiCommDestroy(seat->comm)},
        {"finalize", tuttiCommFinalize(seat->comm)},
        {"split", tuttiCommSplit(seat->comm, 0, 0, &child, NULL)},
        {"tune", tuttiCommTune(seat->comm, NULL, NULL)},
        {"barrier", tuttiBarrier(seat->comm, NULL)},
        {"op", tuttiRedOpCreatePreMulSum(&op, &one, tuttiInt32, tuttiScalarHostImmediate,
                                         seat->comm)},
    };

    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (tries[i].result != tuttiInvalidUsage) {
            fprintf(stderr, "%s: %d\n", tries[i].name, (int)tries[i].result);
            return tuttiInternalError;
        }
    return strstr(tuttiGetLastError(NULL), "tuttiAllReduce") != NULL ? tuttiSuccess
                                                                     : tuttiInternalError;
}

/* Calls that any thread may make at any time. */
static tuttiResult_t ask_and_abort(struct crew_seat *seat)
{
    tuttiResult_t state = tuttiNumResults;
    int count = 0, rank = -1;

    if (tuttiCommGetAsyncError(seat->comm, &state) != tuttiSuccess || state != tuttiSuccess ||
        tuttiCommCount(seat->comm, &count) != tuttiSuccess || count != NRANKS ||
        tuttiCommUserRank(seat->comm, &rank) != tuttiSuccess || rank != 0)
        return tuttiInternalError;
    return tuttiCommAbort(seat->comm);
}

static tuttiResult_t end_it_under_a_call(struct crew_seat *seat)
{
    struct caller caller = {.seat = seat};
    tuttiResult_t result;
    pthread_t thread;

    /* So that rank 1 is done forming, and out of the barrier, when rank 0 aborts. */
    result = tuttiBarrier(seat->comm, NULL);
    if (result != tuttiSuccess)
        return result;
    crew_add(&seat->board->marks[2]);
    if (!crew_await(&seat->board->marks[2], NRANKS))
        return tuttiInternalError;
    if (seat->rank == 1) {
        bool is_time = crew_await(&seat->board->marks[1], 1);

        return is_time && reduce_one(seat, false) != tuttiSuccess ? tuttiSuccess
                                                                  : tuttiInternalError;
    }
    if (pthread_create(&thread, NULL, insist, &caller) != 0)
        return tuttiSystemError;
    while (!is_somebody_inside(seat->comm))
        sched_yield();
    result = refuse_all_under_a_call(seat);
    if (result == tuttiSuccess)
        result = ask_and_abort(seat);
    pthread_join(thread, NULL);
    crew_add(&seat->board->marks[1]);
    return result == tuttiSuccess && caller.result == tuttiInvalidUsage &&
                   strstr(caller.text, "tuttiCommAbort") != NULL
               ? tuttiSuccess : tuttiInternalError;
}

static void nothing_but_abort_and_queries_gets_in_under_a_call(void **state)
{
    run(*state, end_it_under_a_call, NULL);
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* Each rank makes CALLS calls in all, whichever of its threads enters. All calls are equal, so
 * their order does not matter. */
struct rush {
    struct crew_seat *seat;
    pthread_mutex_t *turn;        /* held around each call; NULL: they rush */
    tuttiStream_t stream;         /* the thread's own; NULL: complete at return */
    uint32_t *started, *refused;  /* of the rank, atomic */
    tuttiResult_t result;
    char text[CREW_TEXT_BYTES];
};

static tuttiResult_t make_call(struct rush *rush)
{
    double in[COUNT] = {1.5, -2, 1e9}, out[COUNT] = {0};
    tuttiResult_t result;

    if (rush->turn != NULL)
        pthread_mutex_lock(rush->turn);
    do {
        result = tuttiAllReduce(in, out, COUNT, tuttiFloat64, tuttiSum, rush->seat->comm,
                                rush->stream);
        if (result == tuttiInvalidUsage &&
            strstr(tuttiGetLastError(NULL), "another thread is inside") == NULL)
            break;
        if (result == tuttiInvalidUsage)
            crew_add(rush->refused);
    } while (result == tuttiInvalidUsage);
    if (rush->turn != NULL)
        pthread_mutex_unlock(rush->turn);
    if (result == tuttiSuccess && rush->stream != NULL)
        result = tuttiStreamSynchronize(rush->stream);
    for (int i = 0; i < COUNT && result == tuttiSuccess; i++)
        if (out[i] != NRANKS * in[i])
            result = tuttiInternalError;
    return result;
}

static void *hurry(void *argument)
{
    struct rush *rush = argument;

    while (rush->result == tuttiSuccess &&
           __atomic_fetch_add(rush->started, 1, __ATOMIC_ACQ_REL) < CALLS)
        rush->result = make_call(rush);
    snprintf(rush->text, sizeof rush->text, "%s", tuttiGetLastError(NULL));
    return NULL;
}

struct manner {
    const char *name;
    bool takes_turns, has_streams;
};

static tuttiResult_t rush_in(struct crew_seat *seat)
{
    const struct manner *manner = seat->crew->context;
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    uint32_t started = 0, refused = 0;
    struct rush rushes[THREADS];
    pthread_t threads[THREADS];
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < THREADS; i++) {
        rushes[i] = (struct rush){.seat = seat, .turn = manner->takes_turns ? &turn : NULL,
                                  .started = &started, .refused = &refused};
        if (manner->has_streams && tuttiHostStreamCreate(&rushes[i].stream) != tuttiSuccess)
            return tuttiSystemError;
    }
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, hurry, &rushes[i]) != 0)
            return tuttiSystemError;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        tuttiHostStreamDestroy(rushes[i].stream);
        if (rushes[i].result == tuttiSuccess)
            continue;
        fprintf(stderr, "%s, rank %d: %d: %s\n", manner->name, seat->rank, (int)rushes[i].result,
                rushes[i].text);
        result = rushes[i].result;
    }
    if (manner->takes_turns && refused > 0)
        return tuttiInternalError;
    return result;
}

static void threads_that_rush_are_refused_or_served_right(void **state)
{
    static const struct manner at_once = {"at once", false, false};
    static const struct manner on_streams = {"on streams", false, true};

    run(*state, rush_in, &at_once);
    run(*state, rush_in, &on_streams);
}

static void threads_that_take_turns_are_served(void **state)
{
    static const struct manner by_turns = {"by turns", true, false};
    static const struct manner on_streams = {"by turns on streams", true, true};

    run(*state, rush_in, &by_turns);
    run(*state, rush_in, &on_streams);
}

int main(void)
{
    struct CMUnitTest tests[20];
    size_t count = 0;

    /* Threads that rush are refused so often that the log would take most of the time. */
    setenv("TUTTI_DEBUG", "none", 1);
    for (int i = 0; i < crew_way_count; i++) {
        void *way = (void *)(uintptr_t)&crew_ways[i];

        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            the_second_thread_is_refused_and_told_what_is_inside, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            nothing_but_abort_and_queries_gets_in_under_a_call, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            threads_that_rush_are_refused_or_served_right, way);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            threads_that_take_turns_are_served, way);
    }
    return _cmocka_run_group_tests("two threads in one communicator", tests, count, NULL, NULL);
}
