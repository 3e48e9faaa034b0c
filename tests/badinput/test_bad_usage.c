/* SPDX-License-Identifier: Apache-2.0
 * Some calls do not match on one rank: groups that are left open, objects that are destroyed while
 * a group uses them, and messages of a rank to itself that cannot end. Each is refused in one
 * line, and nothing else is lost. */
#include "fault/crew.h"
#include "support/stderr_text.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 10 };

static int in[COUNT];
static _Thread_local int out[COUNT];

/* For ranks: end with a report of what went otherwise than expected. */
#define EXPECT(expected, call)                                                              \
    do {                                                                                    \
        tuttiResult_t got_ = (call);                                                        \
        if (got_ != (expected)) {                                                           \
            fprintf(stderr, "line %d: %s gives %d: %s\n", __LINE__, #call, (int)got_,      \
                    tuttiGetLastError(NULL));                                               \
            return tuttiInternalError;                                                      \
        }                                                                                   \
    } while (0)
#define EXPECT_WORDS(word, other)                                                           \
    do {                                                                                    \
        const char *text_ = tuttiGetLastError(NULL);                                        \
        if (strstr(text_, (word)) == NULL || strstr(text_, (other)) == NULL) {              \
            fprintf(stderr, "line %d: no '%s', '%s' in: %s\n", __LINE__, (word), (other),   \
                    text_);                                                                 \
            return tuttiInternalError;                                                      \
        }                                                                                   \
    } while (0)

static tuttiResult_t reduce_on(tuttiComm_t comm, tuttiStream_t stream)
{
    return tuttiAllReduce(in, out, COUNT, tuttiInt32, tuttiSum, comm, stream);
}

static tuttiResult_t check_sum(int nranks)
{
    for (int i = 0; i < COUNT; i++)
        if (out[i] != nranks * in[i])
            return tuttiInternalError;
    memset(out, 0, sizeof out);
    return tuttiSuccess;
}

/* ---- groups that are open -------------------------------------------------------------------- */

static tuttiResult_t destroy_in_a_group(struct crew_seat *seat)
{
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT_WORDS("tuttiCommDestroy: an open group of this thread holds 1 call",
                 "allreduce(count 10, int32, sum)");
    EXPECT_WORDS("on rank ", "tuttiGroupEnd");
    EXPECT(tuttiInvalidUsage, tuttiCommFinalize(seat->comm));
    EXPECT_WORDS("tuttiCommFinalize", "tuttiGroupEnd");
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, check_sum(seat->nranks));
    EXPECT(tuttiSuccess, tuttiCommFinalize(seat->comm));
    return tuttiSuccess;
}

/* An inner end is missing: all that follows is collected, and nothing runs. */
static tuttiResult_t forget_an_end(struct crew_seat *seat)
{
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, tuttiBarrier(seat->comm, NULL));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT_WORDS("holds 2 calls", "allreduce");
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    return check_sum(seat->nranks);
}

static tuttiResult_t abort_in_a_group(struct crew_seat *seat)
{
    EXPECT(tuttiSuccess, tuttiBarrier(seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiCommAbort(seat->comm));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT_WORDS("tuttiCommDestroy: an open group", "tuttiGroupEnd");
    EXPECT(tuttiInvalidUsage, tuttiGroupEnd());
    EXPECT_WORDS("tuttiCommAbort", "rank ");
    return tuttiSuccess;
}

static tuttiResult_t spoil_a_group(struct crew_seat *seat)
{
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    EXPECT(tuttiInvalidArgument, tuttiAllReduce(NULL, out, 1, tuttiInt32, tuttiSum, seat->comm,
                                                NULL));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT(tuttiInvalidArgument, tuttiGroupEnd());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    return check_sum(seat->nranks);
}

static tuttiResult_t split_in_a_group(struct crew_seat *seat)
{
    tuttiComm_t child = NULL;

    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, tuttiCommSplit(seat->comm, 0, 0, &child, NULL));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT_WORDS("tuttiCommDestroy: an open group of this thread holds 1 call", "tuttiGroupEnd");
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, reduce_on(child, NULL));
    EXPECT(tuttiSuccess, check_sum(seat->nranks));
    return tuttiCommDestroy(child);
}

static tuttiResult_t destroy_a_stream_in_a_group(struct crew_seat *seat)
{
    tuttiStream_t stream;

    EXPECT(tuttiSuccess, tuttiHostStreamCreate(&stream));
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, stream));
    EXPECT(tuttiInvalidUsage, tuttiHostStreamDestroy(stream));
    EXPECT_WORDS("tuttiHostStreamDestroy", "tuttiGroupEnd");
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, tuttiHostStreamDestroy(stream));
    return check_sum(seat->nranks);
}

/* Two communicators in one group: both are held until it ends. */
static tuttiResult_t hold_two(struct crew_seat *seat)
{
    tuttiComm_t child = NULL;

    EXPECT(tuttiSuccess, tuttiCommSplit(seat->comm, 0, 0, &child, NULL));
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, tuttiBarrier(seat->comm, NULL));
    EXPECT(tuttiSuccess, reduce_on(child, NULL));
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(seat->comm));
    EXPECT_WORDS("holds 1 call", "barrier");
    EXPECT(tuttiInvalidUsage, tuttiCommDestroy(child));
    EXPECT_WORDS("holds 1 call", "allreduce");
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, tuttiCommDestroy(child));
    return check_sum(seat->nranks);
}

static void run_ranks(int nranks, tuttiResult_t (*run)(struct crew_seat *seat))
{
    for (int is_threads = 0; is_threads < 2; is_threads++) {
        struct crew_board *board = crew_run(&(struct crew){.nranks = nranks, .run = run,
                                                           .is_threads = is_threads});

        for (int rank = 0; rank < nranks; rank++)
            if (board->reports[rank].result != tuttiSuccess)
                fail_msg("rank %d of %d: %d: %s", rank, nranks, (int)board->reports[rank].result,
                         board->reports[rank].text);
        crew_clear(board);
    }
}

static void what_an_open_group_refers_to_cannot_be_destroyed(void **state)
{
    static tuttiResult_t (*const tricks[])(struct crew_seat *seat) = {
        destroy_in_a_group, forget_an_end, spoil_a_group, split_in_a_group,
        destroy_a_stream_in_a_group, hold_two};

    (void)state;
    for (size_t i = 0; i < sizeof tricks / sizeof *tricks; i++)
        run_ranks(1, tricks[i]);
}

static void an_aborted_communicator_ends_with_its_group(void **state)
{
    (void)state;
    run_ranks(1, abort_in_a_group);
}

/* ---- groups of other threads ----------------------------------------------------------------- */

struct other {
    struct crew_seat *seat;
    pthread_barrier_t step;
    bool ends_group;
    tuttiResult_t result;
};

static void *open_a_group(void *argument)
{
    struct other *other = argument;

    other->result = tuttiGroupStart();
    if (other->result == tuttiSuccess)
        other->result = reduce_on(other->seat->comm, NULL);
    pthread_barrier_wait(&other->step); /* the group is open */
    pthread_barrier_wait(&other->step); /* the first thread has tried */
    if (other->ends_group && other->result == tuttiSuccess)
        other->result = tuttiGroupEnd();
    return NULL;
}

static tuttiResult_t destroy_under_another_thread(struct crew_seat *seat)
{
    struct other other = {.seat = seat, .ends_group = seat->crew->context != NULL};
    tuttiResult_t destroyed;
    char text[CREW_TEXT_BYTES];
    pthread_t thread;

    pthread_barrier_init(&other.step, NULL, 2);
    if (pthread_create(&thread, NULL, open_a_group, &other) != 0)
        return tuttiSystemError;
    pthread_barrier_wait(&other.step);
    destroyed = tuttiCommDestroy(seat->comm);
    snprintf(text, sizeof text, "%s", tuttiGetLastError(NULL));
    pthread_barrier_wait(&other.step);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&other.step);
    EXPECT(tuttiSuccess, other.result);
    if (destroyed != tuttiInvalidUsage || strstr(text, "group of another thread") == NULL) {
        fprintf(stderr, "%d: %s\n", (int)destroyed, text);
        return tuttiInternalError;
    }
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    return check_sum(seat->nranks);
}

static void a_group_of_another_thread_holds_a_communicator_too(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = 1, .run = destroy_under_another_thread,
                                    .context = "ends its group"});
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("%s", board->reports[0].text);
    crew_clear(board);
}

/* ---- groups that are never ended
 * -------------------------------------------------------------- */

static const char *lines_of(tuttiResult_t (*run)(struct crew_seat *seat))
{
    struct crew_board *board;
    const char *said;

    stderr_text_begin();
    board = crew_run(&(struct crew){.nranks = 1, .run = run});
    said = stderr_text_end();
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("%d: %s\n%s", (int)board->reports[0].result, board->reports[0].text, said);
    crew_clear(board);
    return said;
}

static void a_thread_that_ends_in_a_group_is_reported_and_lets_go(void **state)
{
    const char *said = lines_of(destroy_under_another_thread);

    (void)state;
    if (count_lines_with(said, "a thread ended inside a group") != 1 ||
        strstr(said, "1 call on rank 0 of 1: allreduce(count 10, int32, sum)") == NULL)
        fail_msg("%s", said);
}

/* The crew destroys what is left in seat->comm. */
static tuttiResult_t exit_in_a_group(struct crew_seat *seat)
{
    tuttiComm_t own = NULL;

    EXPECT(tuttiSuccess, tuttiCommInitAll(&own, 1, NULL));
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(own, NULL));
    EXPECT(tuttiSuccess, tuttiBarrier(own, NULL));
    (void)seat;
    return tuttiSuccess;
}

static void a_process_that_ends_in_a_group_says_what_never_ran(void **state)
{
    const char *said = lines_of(exit_in_a_group);

    (void)state;
    if (count_lines_with(said, "ERROR") != 1 ||
        count_lines_with(said, "the process ended inside a group") != 1 ||
        strstr(said, "2 calls on rank 0 of 1, among them allreduce(count 10, int32, sum)") == NULL)
        fail_msg("%s", said);
}

static void *stay_in_a_group(void *argument)
{
    pthread_barrier_t *opened = argument;
    tuttiComm_t own = NULL;

    if (tuttiCommInitAll(&own, 1, NULL) != tuttiSuccess || tuttiGroupStart() != tuttiSuccess ||
        reduce_on(own, NULL) != tuttiSuccess)
        return NULL;
    pthread_barrier_wait(opened);
    for (;;)
        pause();
}

/* The thread is in its group when the process ends. */
static tuttiResult_t leave_a_thread_in_a_group(struct crew_seat *seat)
{
    static pthread_barrier_t opened;
    pthread_t thread;

    pthread_barrier_init(&opened, NULL, 2);
    if (pthread_create(&thread, NULL, stay_in_a_group, &opened) != 0)
        return tuttiSystemError;
    pthread_barrier_wait(&opened);
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    return check_sum(seat->nranks);
}

static void a_process_that_ends_while_another_thread_is_in_a_group_says_so(void **state)
{
    const char *said = lines_of(leave_a_thread_in_a_group);

    (void)state;
    if (count_lines_with(said, "ERROR") != 1 ||
        strstr(said, "the process ended inside a group that tuttiGroupStart had opened on another "
                     "thread") == NULL)
        fail_msg("%s", said);
}

static tuttiResult_t form_in_a_group(struct crew_seat *seat)
{
    static tuttiComm_t own;
    tuttiUniqueId id;

    (void)seat;
    EXPECT(tuttiSuccess, tuttiGetUniqueId(&id));
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, tuttiCommInitRank(&own, 1, id, 0));
    return tuttiSuccess;
}

static void a_process_that_ends_before_its_communicators_are_formed_says_so(void **state)
{
    const char *said = lines_of(form_in_a_group);

    (void)state;
    if (count_lines_with(said, "1 call to form communicators") != 1)
        fail_msg("%s", said);
}

/* In a group with a call, a child runs `body`, whose exit status this is. */
static tuttiResult_t fork_in_group(struct crew_seat *seat, int (*body)(void *context), int expected)
{
    int status;

    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    status = crew_fork(body, NULL);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        return tuttiInternalError;
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    return check_sum(seat->nranks);
}

static int leave_by_exit(void *context)
{
    (void)context;
    exit(0);
}

static tuttiResult_t fork_in_a_group(struct crew_seat *seat)
{
    return fork_in_group(seat, leave_by_exit, 0);
}

static void a_forked_child_does_not_report_its_parents_group(void **state)
{
    const char *said = lines_of(fork_in_a_group);

    (void)state;
    if (*said != '\0')
        fail_msg("%s", said);
}

static int end_the_group(void *context)
{
    (void)context;
    return (int)tuttiGroupEnd();
}

static tuttiResult_t end_a_group_in_a_child(struct crew_seat *seat)
{
    return fork_in_group(seat, end_the_group, tuttiInvalidUsage);
}

static void a_forked_child_cannot_run_its_parents_group(void **state)
{
    (void)state;
    run_ranks(1, end_a_group_in_a_child);
}

/* ---- messages to oneself --------------------------------------------------------------------- */

static tuttiResult_t send_alone(tuttiComm_t comm, int me)
{
    return tuttiSend(in, COUNT, tuttiInt32, me, comm, NULL);
}

static tuttiResult_t receive_alone(tuttiComm_t comm, int me)
{
    return tuttiRecv(out, COUNT, tuttiInt32, me, comm, NULL);
}

static tuttiResult_t send_nothing_alone(tuttiComm_t comm, int me)
{
    return tuttiSend(NULL, 0, tuttiInt32, me, comm, NULL);
}

static tuttiResult_t send_in_a_group(tuttiComm_t comm, int me)
{
    tuttiGroupStart();
    tuttiSend(in, COUNT, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

static tuttiResult_t receive_in_a_group(tuttiComm_t comm, int me)
{
    tuttiGroupStart();
    tuttiRecv(out, COUNT, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

static tuttiResult_t send_two_and_receive_one(tuttiComm_t comm, int me)
{
    tuttiGroupStart();
    tuttiSend(in, 1, tuttiInt32, me, comm, NULL);
    tuttiRecv(out, 1, tuttiInt32, me, comm, NULL);
    tuttiSend(in, 3, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

static tuttiResult_t receive_other_counts(tuttiComm_t comm, int me)
{
    tuttiGroupStart();
    tuttiSend(in, 1, tuttiInt32, me, comm, NULL);
    tuttiSend(in, 2, tuttiInt32, me, comm, NULL);
    tuttiRecv(out, 2, tuttiInt32, me, comm, NULL);
    tuttiRecv(out + 2, 1, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

static tuttiResult_t receive_another_type(tuttiComm_t comm, int me)
{
    tuttiGroupStart();
    tuttiRecv(out, 1, tuttiFloat32, me, comm, NULL);
    tuttiSend(in, 1, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

static const struct {
    const char *text;
    tuttiResult_t (*make)(tuttiComm_t comm, int me);
    const char *words[2];
} own_messages[] = {
    {"send", send_alone, {"tuttiSend: rank", "outside a group"}},
    {"recv", receive_alone, {"tuttiRecv: rank", "outside a group"}},
    {"send of nothing", send_nothing_alone, {"tuttiSend: rank", "outside a group"}},
    {"only sent", send_in_a_group, {"tuttiGroupEnd: message 1", "is only sent"}},
    {"only received", receive_in_a_group, {"tuttiGroupEnd: message 1", "is only received"}},
    {"two sent", send_two_and_receive_one, {"message 2", "send/recv(count 3, int32)"}},
    {"other counts", receive_other_counts, {"message 1", "count and data type"}},
    {"another type", receive_another_type, {"message 1", "float32"}},
};

static tuttiResult_t send_to_oneself(struct crew_seat *seat)
{
    int me = seat->rank;

    for (size_t i = 0; i < sizeof own_messages / sizeof *own_messages; i++) {
        EXPECT(tuttiInvalidUsage, own_messages[i].make(seat->comm, me));
        EXPECT_WORDS(own_messages[i].words[0], own_messages[i].words[1]);
        crew_add(&seat->board->steps[me]);
    }
    /* Nothing was lost; and with both calls in one group the message arrives. */
    EXPECT(tuttiSuccess, tuttiGroupStart());
    EXPECT(tuttiSuccess, tuttiRecv(out, COUNT, tuttiInt32, me, seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiSend(in, COUNT, tuttiInt32, me, seat->comm, NULL));
    EXPECT(tuttiSuccess, tuttiGroupEnd());
    EXPECT(tuttiSuccess, check_sum(1));
    EXPECT(tuttiSuccess, reduce_on(seat->comm, NULL));
    return check_sum(seat->nranks);
}

static void a_message_to_oneself_needs_both_its_calls_in_one_group(void **state)
{
    (void)state;
    run_ranks(1, send_to_oneself);
    run_ranks(2, send_to_oneself);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_open_group_refers_to_cannot_be_destroyed),
        cmocka_unit_test(an_aborted_communicator_ends_with_its_group),
        cmocka_unit_test(a_group_of_another_thread_holds_a_communicator_too),
        cmocka_unit_test(a_thread_that_ends_in_a_group_is_reported_and_lets_go),
        cmocka_unit_test(a_process_that_ends_in_a_group_says_what_never_ran),
        cmocka_unit_test(a_process_that_ends_while_another_thread_is_in_a_group_says_so),
        cmocka_unit_test(a_process_that_ends_before_its_communicators_are_formed_says_so),
        cmocka_unit_test(a_forked_child_does_not_report_its_parents_group),
        cmocka_unit_test(a_forked_child_cannot_run_its_parents_group),
        cmocka_unit_test(a_message_to_oneself_needs_both_its_calls_in_one_group),
    };

    for (int i = 0; i < COUNT; i++)
        in[i] = i + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
