/* SPDX-License-Identifier: Apache-2.0
 * A rank that waits long for another logs the rank, the call and the time. The test sets no level,
 * so these lines appear by default. */
#include "crew.h"
#include "support/stderr_text.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NRANKS = 2, LATE = 1, LINES = 3, WARN_MS = 30 };

/* Reads the stderr that the test catches, until `least` lines have `word`; false: too few. */
static bool await_lines(const char *word, size_t least)
{
    static char text[65536];

    for (int i = 0; i < 20000; i++) {
        ssize_t length = pread(STDERR_FILENO, text, sizeof text - 1, 0);

        if (length < 0)
            return false;
        text[length] = '\0';
        if (count_lines_with(text, word) >= least)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

static tuttiResult_t reduce(struct crew_seat *seat, tuttiStream_t stream)
{
    int mine = 1, sum = 0;
    tuttiResult_t result = tuttiAllReduce(&mine, &sum, 1, tuttiInt32, tuttiSum, seat->comm,
                                          stream);

    if (result == tuttiSuccess && stream != NULL)
        result = tuttiStreamSynchronize(stream);
    return result != tuttiSuccess || sum == NRANKS ? result : tuttiInternalError;
}

static tuttiResult_t reduce_now(struct crew_seat *seat)
{
    return reduce(seat, NULL);
}

static tuttiResult_t reduce_on_a_stream(struct crew_seat *seat)
{
    tuttiStream_t stream;
    tuttiResult_t result = tuttiHostStreamCreate(&stream);

    if (result == tuttiSuccess)
        result = reduce(seat, stream);
    tuttiHostStreamDestroy(stream);
    return result;
}

static tuttiResult_t exchange(struct crew_seat *seat)
{
    static const struct crew_call call = {CREW_SENDRECV, 100, tuttiInt32, tuttiSum, 0};

    return crew_call(seat, &call);
}

/* Rank 1 sends what rank 0 waits for. It comes in time to make the mailbox, and is late then. */
static tuttiResult_t receive(struct crew_seat *seat)
{
    int value = 7;
    tuttiRequest_t request;
    tuttiMailbox_t mailbox;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &mailbox);

    if (result != tuttiSuccess)
        return result;
    if (seat->rank == LATE && !await_lines("has been waiting for rank 1", LINES))
        return tuttiInternalError;
    result = seat->rank == LATE
                 ? tuttiMailboxSend(&value, 1, tuttiInt32, 0, 3, mailbox, &request)
                 : tuttiMailboxRecv(&value, 1, tuttiInt32, LATE, 3, mailbox, &request);
    if (result == tuttiSuccess)
        result = tuttiRequestWait(&request, -1, NULL, NULL);
    if (result == tuttiSuccess)
        result = tuttiBarrier(seat->comm, NULL);
    tuttiMailboxDestroy(mailbox);
    return result;
}

static const struct wait {
    const char *call;
    tuttiResult_t (*make)(struct crew_seat *seat);
    bool is_late_itself; /* make, rather than come_late */
} waits[] = {{"allreduce(count 1, int32, sum), number 1", reduce_now, false},
             {"allreduce(count 1, int32, sum), number 1", reduce_on_a_stream, false},
             {"rank 1 (count 100), number 1", exchange, false},
             {"tuttiMailboxRecv(count 1, int32, tag 3)", receive, true}};

/* One rank calls when the other one has said three times that it waits. */
static tuttiResult_t come_late(struct crew_seat *seat)
{
    const struct wait *wait = seat->crew->context;

    if (!wait->is_late_itself && seat->rank == LATE &&
        !await_lines("has been waiting for rank 1", LINES))
        return tuttiInternalError;
    return wait->make(seat);
}

/* The lines about rank 1: each has the call, and at least twice the time of the one before. */
static void check_lines(const char *said, const struct wait *wait)
{
    static const char phrase[] = "has been waiting for rank 1";
    double last = 0;
    int count = 0;

    for (const char *at = strstr(said, phrase); at != NULL; at = strstr(at + 1, phrase), count++) {
        const char *line = at, *number = strstr(at, " for ");
        double seconds;

        while (line > said && line[-1] != '\n')
            line--;
        number = strstr(at + sizeof phrase - 1, " for ");
        assert_non_null(number);
        seconds = strtod(number + 5, NULL);
        if (strstr(line, " WARN rank 0/2") == NULL || strstr(line, wait->call) == NULL ||
            strstr(line, wait->call) > at)
            fail_msg("%s: %s", wait->call, line);
        /* Printed with one digit. */
        if (seconds + 0.051 < 2 * (last - 0.051))
            fail_msg("%f s after %f s: %s", seconds, last, said);
        last = seconds;
    }
    if (count < LINES)
        fail_msg("%d lines: %s", count, said);
}

static void a_long_wait_is_told_again_and_again(void **state)
{
    const struct crew_way *way = *state;
    const char *environment[12] = {"TUTTI_WAIT_WARN_MS", "30"};

    for (int i = 0; way->environment[i] != NULL; i++)
        environment[2 + i] = way->environment[i];
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct crew_board *board;
        const char *said;

        stderr_text_begin();
        board = crew_run(&(struct crew){.nranks = NRANKS, .environment = environment,
                                        .run = come_late, .context = &waits[i]});
        said = stderr_text_end();
        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiSuccess)
                fail_msg("%s: rank %d: %d: %s\n%s", way->name, rank,
                         (int)board->reports[rank].result, board->reports[rank].text, said);
        check_lines(said, &waits[i]);
        crew_clear(board);
    }
}

int main(void)
{
    struct CMUnitTest tests[8];
    size_t count = 0;

    for (int i = 0; i < crew_way_count; i++)
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            a_long_wait_is_told_again_and_again, (void *)(uintptr_t)&crew_ways[i]);
    return _cmocka_run_group_tests("ranks that wait long", tests, count, NULL, NULL);
}
