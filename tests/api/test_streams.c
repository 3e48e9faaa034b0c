/* SPDX-License-Identifier: Apache-2.0
 * Calls on host streams return at once, and operations run in order. The stream reports when they
 * are complete, and their errors. */
#include "support/trial.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

enum { STREAMS = 3, LINKS = 12, ROUNDS = 400, PATIENCE_MS = 30000 };

static void run_everywhere(member_fn fn)
{
    static const int sizes[] = {1, 2, 3, 4};

    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            world_run(launch, sizes[i], fn, NULL);
}

static void run_pairs(member_fn fn)
{
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        world_run(launch, 2, fn, NULL);
}

static struct trial small_trial(int act, size_t count)
{
    return (struct trial){.act = (enum act)act, .type = tuttiFloat32, .op = tuttiSum,
                          .count = count, .counts = COUNTS_RAMP, .places = PLACES_GAPS};
}

static void open_streams(struct member *member, tuttiStream_t streams[STREAMS])
{
    for (int i = 0; i < STREAMS; i++)
        EXPECT_OK(member, tuttiHostStreamCreate(&streams[i]));
}

static void close_streams(struct member *member, tuttiStream_t streams[STREAMS])
{
    for (int i = 0; i < STREAMS; i++)
        EXPECT_OK(member, tuttiHostStreamDestroy(streams[i]));
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Each link takes what the one before has given. */
static void chain(struct member *member)
{
    int64_t value[LINKS + 1] = {1}, wanted = 1;
    tuttiStream_t streams[STREAMS];

    open_streams(member, streams);
    for (int i = 0; i < LINKS; i++)
        EXPECT_OK(member, tuttiAllReduce(&value[i], &value[i + 1], 1, tuttiInt64, tuttiSum,
                                         member->comm, streams[0]));
    EXPECT_OK(member, tuttiStreamSynchronize(streams[0]));
    EXPECT_OK(member, tuttiStreamQuery(streams[0]));
    for (int i = 0; i <= LINKS; i++, wanted *= member->nranks)
        EXPECT(member, value[i] == wanted);
    close_streams(member, streams);
}

static void operations_of_a_stream_run_in_order(void **state)
{
    (void)state;
    run_everywhere(chain);
}

static void share_a_comm(struct member *member)
{
    struct attempt attempts[2 * ACT_COUNT];
    tuttiStream_t streams[STREAMS];

    open_streams(member, streams);
    for (int i = 0; i < 2 * ACT_COUNT; i++) {
        struct trial trial = small_trial(i % ACT_COUNT, (size_t)i * 11);

        /* Ranks spread the calls differently; the order of calls is the same. */
        attempt_begin(&attempts[i], member, &trial, streams[(i + member->rank) % STREAMS]);
    }
    for (int i = 0; i < STREAMS; i++)
        EXPECT_OK(member, tuttiStreamSynchronize(streams[i]));
    for (int i = 0; i < 2 * ACT_COUNT; i++)
        attempt_end(&attempts[i]);
    close_streams(member, streams);
}

static void several_streams_share_a_communicator(void **state)
{
    (void)state;
    run_everywhere(share_a_comm);
}

static void share_a_stream(struct member *member)
{
    struct attempt attempts[3 * ACT_COUNT];
    struct member faces[3] = {*member, *member, *member};
    tuttiStream_t stream;

    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    for (int i = 1; i < 3; i++)
        if (!EXPECT_OK(member, tuttiCommSplit(member->comm, 0, 0, &faces[i].comm, NULL)))
            return;
    for (int i = 0; i < 3 * ACT_COUNT; i++) {
        struct trial trial = small_trial(i / 3, (size_t)(i + 5));

        attempt_begin(&attempts[i], &faces[i % 3], &trial, stream);
    }
    /* The end of the stream waits for its operations, too. */
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
    for (int i = 0; i < 3 * ACT_COUNT; i++)
        attempt_end(&attempts[i]);
    for (int i = 1; i < 3; i++)
        EXPECT_OK(member, tuttiCommDestroy(faces[i].comm));
}

static void several_communicators_share_a_stream(void **state)
{
    (void)state;
    run_everywhere(share_a_stream);
}

/* ---- at once, and later ---------------------------------------------------------------------- */

/* Rank 1 sends only after rank 0's call has returned, seen the stream busy, and met it. */
static void overlap(struct member *member)
{
    int32_t value = member->rank == 1 ? 4711 : 0;
    struct pollfd ready = {.events = POLLIN};
    tuttiStream_t stream;
    uint64_t count;

    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    EXPECT_OK(member, tuttiStreamQuery(stream));
    EXPECT_OK(member, tuttiStreamEventFd(stream, &ready.fd));
    if (member->rank == 0) {
        EXPECT_OK(member, tuttiRecv(&value, 1, tuttiInt32, 1, member->comm, stream));
        EXPECT_RESULT(member, tuttiInProgress, tuttiStreamQuery(stream));
    }
    member_meet(member);
    if (member->rank == 1)
        EXPECT_OK(member, tuttiSend(&value, 1, tuttiInt32, 0, member->comm, stream));
    EXPECT(member, poll(&ready, 1, PATIENCE_MS) == 1);
    EXPECT(member, read(ready.fd, &count, sizeof count) == sizeof count);
    EXPECT_OK(member, tuttiStreamQuery(stream));
    EXPECT(member, value == 4711);
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
}

/* A late request for the descriptor reports earlier events once. */
static void ask_late(struct member *member)
{
    struct pollfd ready = {.events = POLLIN};
    tuttiStream_t stream;
    uint64_t count;

    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    EXPECT_OK(member, tuttiBarrier(member->comm, stream));
    EXPECT_OK(member, tuttiStreamSynchronize(stream));
    EXPECT_OK(member, tuttiStreamEventFd(stream, &ready.fd));
    EXPECT(member, poll(&ready, 1, 0) == 1);
    EXPECT(member, read(ready.fd, &count, sizeof count) == sizeof count);
    EXPECT_OK(member, tuttiStreamEventFd(stream, &ready.fd));
    EXPECT(member, poll(&ready, 1, 0) == 0);
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
}

static void an_event_descriptor_tells_what_was_before_it(void **state)
{
    (void)state;
    run_everywhere(ask_late);
}

/* Each link of a chain uses the result of the one before. The thread that synchronizes may also
 * serve the stream. */
struct several {
    struct member *member;
    tuttiStream_t stream;
    int64_t value[ROUNDS + 1];
    int given; /* links that are in the queue; release/acquire */
};

static void *synchronize_often(void *argument)
{
    struct several *several = argument;
    int given;

    do {
        given = __atomic_load_n(&several->given, __ATOMIC_ACQUIRE);
        EXPECT_OK(several->member, tuttiStreamSynchronize(several->stream));
        EXPECT(several->member, given == 0 || several->value[given] != 0);
    } while (given < ROUNDS);
    return NULL;
}

static void synchronize_together(struct member *member)
{
    struct several several = {.member = member, .value = {4711}};
    pthread_t threads[STREAMS];

    EXPECT_OK(member, tuttiHostStreamCreate(&several.stream));
    for (int i = 0; i < STREAMS; i++)
        EXPECT(member, pthread_create(&threads[i], NULL, synchronize_often, &several) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_OK(member, tuttiAllReduce(&several.value[i], &several.value[i + 1], 1, tuttiInt64,
                                         tuttiMax, member->comm, several.stream));
        __atomic_store_n(&several.given, i + 1, __ATOMIC_RELEASE);
        if (i % 3 == 0)
            EXPECT_OK(member, tuttiStreamSynchronize(several.stream));
    }
    for (int i = 0; i < STREAMS; i++)
        EXPECT(member, pthread_join(threads[i], NULL) == 0);
    EXPECT_OK(member, tuttiStreamQuery(several.stream));
    EXPECT(member, several.value[ROUNDS] == 4711);
    EXPECT_OK(member, tuttiHostStreamDestroy(several.stream));
}

static void several_threads_synchronize_a_stream(void **state)
{
    (void)state;
    run_pairs(synchronize_together);
}

static void a_call_on_a_stream_returns_before_its_operation_ends(void **state)
{
    (void)state;
    run_pairs(overlap);
}

static void mix_streams(struct member *member)
{
    struct attempt attempts[ACT_COUNT];
    struct member other = *member;
    tuttiStream_t streams[STREAMS];

    open_streams(member, streams);
    if (!EXPECT_OK(member, tuttiCommSplit(member->comm, 0, 0, &other.comm, NULL)))
        return;
    EXPECT_OK(member, tuttiGroupStart());
    for (int act = 0; act < ACT_COUNT; act++) {
        struct trial trial = small_trial(act, (size_t)act * 9 + 1);
        int choice = act % (STREAMS + 1);

        attempt_begin(&attempts[act], act % 2 ? member : &other, &trial,
                      choice == STREAMS ? NULL : streams[choice]);
    }
    EXPECT_OK(member, tuttiGroupEnd());
    /* Those without a stream are complete. */
    for (int act = STREAMS; act < ACT_COUNT; act += STREAMS + 1)
        attempt_end(&attempts[act]);
    for (int i = 0; i < STREAMS; i++)
        EXPECT_OK(member, tuttiStreamSynchronize(streams[i]));
    for (int act = 0; act < ACT_COUNT; act++)
        if (act % (STREAMS + 1) != STREAMS)
            attempt_end(&attempts[act]);
    EXPECT_OK(member, tuttiCommDestroy(other.comm));
    close_streams(member, streams);
}

static void a_group_mixes_streams_and_none(void **state)
{
    (void)state;
    run_everywhere(mix_streams);
}

static void destroy_early(struct member *member)
{
    struct trial trial = small_trial(ALL_REDUCE, 5000);
    struct member other = *member;
    struct attempt attempt;
    tuttiStream_t stream;

    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    if (!EXPECT_OK(member, tuttiCommSplit(member->comm, 0, 0, &other.comm, NULL)))
        return;
    attempt_begin(&attempt, &other, &trial, stream);
    EXPECT_OK(member, tuttiCommDestroy(other.comm));
    attempt_end(&attempt);
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
}

static void a_communicator_ends_after_its_operations_on_streams(void **state)
{
    (void)state;
    run_everywhere(destroy_early);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void disagree(struct member *member)
{
    int32_t values[2] = {1, 2};
    tuttiStream_t stream;

    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    EXPECT_OK(member, tuttiAllReduce(values, values, 1 + (size_t)member->rank, tuttiInt32, tuttiSum,
                                     member->comm, stream));
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiStreamSynchronize(stream));
    EXPECT_OK(member, tuttiStreamSynchronize(stream));
    EXPECT_OK(member, tuttiStreamQuery(stream));
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiBarrier(member->comm, NULL));
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
}

static void an_error_on_a_stream_is_reported_once(void **state)
{
    (void)state;
    run_pairs(disagree);
}

static void misuse(struct member *member)
{
    tuttiStream_t stream;
    int fd;

    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiHostStreamCreate(NULL));
    EXPECT_OK(member, tuttiHostStreamDestroy(NULL));
    EXPECT_OK(member, tuttiHostStreamCreate(&stream));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiStreamEventFd(stream, NULL));
    EXPECT_OK(member, tuttiStreamEventFd(stream, &fd));
    EXPECT_OK(member, tuttiHostStreamDestroy(stream));
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, misuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_of_a_stream_run_in_order),
        cmocka_unit_test(several_streams_share_a_communicator),
        cmocka_unit_test(several_communicators_share_a_stream),
        cmocka_unit_test(a_call_on_a_stream_returns_before_its_operation_ends),
        cmocka_unit_test(an_event_descriptor_tells_what_was_before_it),
        cmocka_unit_test(several_threads_synchronize_a_stream),
        cmocka_unit_test(a_group_mixes_streams_and_none),
        cmocka_unit_test(a_communicator_ends_after_its_operations_on_streams),
        cmocka_unit_test(an_error_on_a_stream_is_reported_once),
        cmocka_unit_test(wrong_arguments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
