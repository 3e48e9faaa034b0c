/* SPDX-License-Identifier: Apache-2.0
 * Messages name the call of the user, also if the library makes other calls for it. They arrive
 * whole, with the text of a peer. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

enum { NRANKS = 3, ODD_RANK = 1, TIMEOUT_MS = 600000 };

/* ---- calls inside other calls ---------------------------------------------------------------- */

struct meeting {
    const char *what;
    tuttiResult_t (*most)(struct crew_seat *seat); /* the other ranks; ODD_RANK all-reduces */
};

static tuttiResult_t split(struct crew_seat *seat)
{
    tuttiComm_t comm = NULL;
    tuttiResult_t result = tuttiCommSplit(seat->comm, 0, seat->rank, &comm, NULL);

    tuttiCommDestroy(comm);
    return result;
}

static tuttiResult_t tune(struct crew_seat *seat)
{
    return tuttiCommTune(seat->comm, NULL, NULL);
}

static tuttiResult_t finalize(struct crew_seat *seat)
{
    return tuttiCommFinalize(seat->comm);
}

static tuttiResult_t make_mailbox(struct crew_seat *seat)
{
    tuttiMailbox_t mailbox = NULL;
    tuttiResult_t result = tuttiMailboxCreate(seat->comm, &mailbox);

    tuttiMailboxDestroy(mailbox);
    return result;
}

static const struct meeting meetings[] = {
    {"tuttiCommSplit", split}, {"tuttiCommTune", tune}, {"tuttiCommFinalize", finalize},
    {"tuttiMailboxCreate", make_mailbox}};

static tuttiResult_t meet(struct crew_seat *seat)
{
    const struct meeting *meeting = seat->crew->context;
    float in[9] = {0}, out[9];

    if (seat->rank == ODD_RANK)
        return tuttiAllReduce(in, out, 9, tuttiFloat32, tuttiSum, seat->comm, NULL);
    return meeting->most(seat);
}

static void check_meeting(const struct crew_way *way, const struct meeting *meeting)
{
    struct crew_board *board = crew_run(&(struct crew){
        .nranks = NRANKS, .environment = way->environment, .run = meet, .timeout_ms = TIMEOUT_MS,
        .context = meeting});
    bool names_it = false, names_other = false;

    for (int rank = 0; rank < NRANKS; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result == tuttiSuccess || strstr(report->text, "allgather(") != NULL ||
            strstr(report->text, "broadcast(") != NULL || strstr(report->text, "barrier") != NULL)
            fail_msg("%s, %s: rank %d got %d: %s", way->name, meeting->what, rank,
                     (int)report->result, report->text);
        names_it |= strstr(report->text, meeting->what) != NULL;
        names_other |= strstr(report->text, "allreduce(count 9, float32, sum)") != NULL;
    }
    if (!names_it || !names_other)
        fail_msg("%s, %s: not named: 0: %s 1: %s 2: %s", way->name, meeting->what,
                 board->reports[0].text, board->reports[1].text, board->reports[2].text);
    crew_clear(board);
}

static void what_the_user_called_is_named_and_not_what_is_inside_it(void **state)
{
    (void)state;
    for (int i = 0; i < crew_way_count; i++)
        for (size_t k = 0; k < sizeof meetings / sizeof *meetings; k++)
            check_meeting(&crew_ways[i], &meetings[k]);
}

/* ---- a call that fails before it begins ------------------------------------------------------ */

/* Rank 0 has aborted when the others make their first call. */
static tuttiResult_t call_after_an_abort(struct crew_seat *seat)
{
    static const struct crew_call call = {CREW_ALLREDUCE, 9, tuttiFloat32, tuttiSum, 0};

    if (seat->rank == 0) {
        crew_await(&seat->board->marks[0], NRANKS - 1); /* all are formed */
        tuttiCommAbort(seat->comm);
        crew_add(&seat->board->marks[1]);
        return tuttiSuccess;
    }
    crew_add(&seat->board->marks[0]);
    if (!crew_await(&seat->board->marks[1], 1))
        return tuttiInternalError;
    return crew_call(seat, &call);
}

static void a_call_that_fails_before_it_begins_is_named(void **state)
{
    static const char named[] = ", allreduce(count 9, float32, sum), number 1: ";

    (void)state;
    for (int i = 0; i < crew_way_count; i++) {
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = NRANKS, .environment = crew_ways[i].environment,
            .run = call_after_an_abort, .timeout_ms = TIMEOUT_MS});

        for (int rank = 1; rank < NRANKS; rank++)
            if (board->reports[rank].result == tuttiSuccess ||
                strstr(board->reports[rank].text, named) == NULL)
                fail_msg("%s: rank %d got %d: %s", crew_ways[i].name, rank,
                         (int)board->reports[rank].result, board->reports[rank].text);
        crew_clear(board);
    }
}

/* ---- an all-to-all-v that waits -------------------------------------------------------------- */

static tuttiResult_t wait_in_vain(struct crew_seat *seat)
{
    static const size_t gives[NRANKS] = {4, 0, 7}, takes[NRANKS] = {4, 0, 1};
    int32_t in[11] = {0}, out[11];

    if (seat->rank != 0) {
        crew_await(&seat->board->marks[0], 1);
        return tuttiSuccess;
    }
    tuttiResult_t result = tuttiAlltoAllV(in, gives, NULL, out, takes, NULL, tuttiInt32, seat->comm,
                                          NULL);
    crew_add(&seat->board->marks[0]);
    return result;
}

static void an_all_to_all_v_that_waits_says_how_much_it_moves_and_for_whom(void **state)
{
    (void)state;
    for (int i = 0; i < crew_way_count; i++) {
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = NRANKS, .environment = crew_ways[i].environment, .run = wait_in_vain,
            .timeout_ms = 300});
        const struct crew_report *report = &board->reports[0];

        if (report->result != tuttiTimeout || strstr(report->text, "has waited") == NULL ||
            strstr(report->text, "for rank ") == NULL ||
            strstr(report->text, "alltoallv(sends 11, receives 5, int32)") == NULL)
            fail_msg("%s: got %d: %s", crew_ways[i].name, (int)report->result, report->text);
        crew_clear(board);
    }
}

/* ---- whole messages -------------------------------------------------------------------------- */

/* As long as a name may be. */
#define LONG_NAME "a communicator with a name of sixty-three characters, in errors"

static tuttiResult_t differ(struct crew_seat *seat)
{
    double in[8] = {0}, out[8 * NRANKS] = {0};

    if (seat->rank == ODD_RANK)
        return tuttiAllReduce(in, out, 8, tuttiFloat64, tuttiAvg, seat->comm, NULL);
    return tuttiReduceScatter(out, in, 7, tuttiBfloat16, tuttiProd, seat->comm, NULL);
}

static void what_a_peer_says_arrives_whole_whatever_the_names_are(void **state)
{
    static const char end[] = "all ranks must make the same calls in the same order";
    (void)state;

    for (int i = 0; i < crew_way_count; i++) {
        bool is_by_tcp = strcmp(crew_ways[i].name, "tcp") == 0;
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = NRANKS, .environment = crew_ways[i].environment, .run = differ,
            .timeout_ms = TIMEOUT_MS, .name = LONG_NAME});
        int whole = 0;

        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *report = &board->reports[rank];
            size_t length = strlen(report->text);
            bool ends_well = length >= sizeof end - 1 &&
                             strcmp(report->text + length - (sizeof end - 1), end) == 0;

            if (report->result == tuttiInvalidUsage && !ends_well)
                fail_msg("%s: rank %d: %s", crew_ways[i].name, rank, report->text);
            whole += ends_well;
        }
        /* Within a host the first that gives up tells all others. */
        if (whole == 0 || (!is_by_tcp && whole != NRANKS))
            fail_msg("%s: %d whole messages: 0: %s 1: %s 2: %s", crew_ways[i].name, whole,
                     board->reports[0].text, board->reports[1].text, board->reports[2].text);
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_user_called_is_named_and_not_what_is_inside_it),
        cmocka_unit_test(a_call_that_fails_before_it_begins_is_named),
        cmocka_unit_test(an_all_to_all_v_that_waits_says_how_much_it_moves_and_for_whom),
        cmocka_unit_test(what_a_peer_says_arrives_whole_whatever_the_names_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
