/* SPDX-License-Identifier: Apache-2.0
 * Calls on CUDA streams return at once, keep their order, and run together in groups. */
#include "gpu/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 600, RANKS = 3 };

/* ---- returning, and order -------------------------------------------------------------------- */

/* The others call only when rank 0's call has returned, which cannot be complete by then. */
static void call_first(struct member *member)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    bool is_early = member->rank == (gpus_has(member) ? 0 : -1);
    int32_t *numbers = numbers_make(member, COUNT, member->rank + 1, 0);
    tuttiStream_t stream = numbers_stream(member);

    member_meet(member);
    if (is_early) {
        EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum,
                                         member->comm, stream));
        EXPECT(member, cuda->stream_query((struct tutti_cu_stream *)(void *)stream) ==
                           TUTTI_CU_NOT_READY);
    }
    member_meet(member);
    if (!is_early)
        EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum,
                                         member->comm, stream));
    numbers_settle(member, stream);
    numbers_expect(member, numbers, COUNT, triangle(member->nranks), 0, "all-reduce");
    member_meet(member);
    numbers_drop_stream(member, stream);
    numbers_drop(member, numbers, COUNT);
}

static void a_call_on_a_stream_returns_before_the_others_have_called(void **state)
{
    (void)state;
    at_all_places(call_first);
}

/* Each call reads what the one before wrote, on another stream; only the last stream is
 * waited for. */
static void go_over_streams(struct member *member)
{
    enum { STREAMS = 3, CALLS = 10 };
    tuttiStream_t streams[STREAMS];
    int32_t *numbers[2], expected = member->rank + 1;

    for (int i = 0; i < STREAMS; i++)
        streams[i] = numbers_stream(member);
    for (int i = 0; i < 2; i++)
        numbers[i] = numbers_make(member, COUNT, expected, 1);
    for (int i = 0; i < CALLS; i++)
        EXPECT_OK(member, tuttiAllReduce(numbers[i % 2], numbers[(i + 1) % 2], COUNT, tuttiInt32,
                                         tuttiMax, member->comm, streams[i % STREAMS]));
    EXPECT_OK(member, tuttiAllReduce(numbers[CALLS % 2], numbers[CALLS % 2], COUNT, tuttiInt32,
                                     tuttiSum, member->comm, streams[CALLS % STREAMS]));
    numbers_settle(member, streams[CALLS % STREAMS]);
    numbers_expect(member, numbers[CALLS % 2], COUNT, member->nranks * member->nranks,
                   member->nranks, "a chain over streams");
    member_meet(member);
    for (int i = 0; i < STREAMS; i++)
        numbers_drop_stream(member, streams[i]);
    for (int i = 0; i < 2; i++)
        numbers_drop(member, numbers[i], COUNT);
}

static void calls_on_several_streams_run_in_the_order_of_the_calls(void **state)
{
    (void)state;
    at_all_places(go_over_streams);
}

/* Ranks call on the communicators in different orders. Each call takes all the blocks that it
 * may. */
static void cross(struct member *member)
{
    enum { COMMS = 4, MANY = 24000, ROUNDS = 2 };
    tuttiComm_t comms[COMMS] = {member->comm};
    tuttiStream_t streams[COMMS];
    int32_t *numbers[COMMS];

    for (int i = 0; i < COMMS; i++) {
        if (i > 0)
            EXPECT_OK(member, tuttiCommSplit(member->comm, 0, -member->rank, &comms[i], NULL));
        streams[i] = gpus_stream(member);
        numbers[i] = numbers_make(member, MANY, (member->rank + 1) * (i + 1), 0);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < COMMS; i++) {
            int which = (i + member->rank) % COMMS;

            EXPECT_OK(member, tuttiAllReduce(numbers[which], numbers[which], MANY, tuttiInt32,
                                             round == 0 ? tuttiSum : tuttiMax, comms[which],
                                             streams[which]));
        }
    for (int i = 0; i < COMMS; i++) {
        gpus_synchronize(member, streams[i]);
        numbers_expect(member, numbers[i], MANY, triangle(member->nranks) * (i + 1), 0, "crossed");
    }
    member_meet(member);
    for (int i = 0; i < COMMS; i++) {
        gpus_drop_stream(member, streams[i]);
        numbers_drop(member, numbers[i], MANY);
        if (i > 0)
            EXPECT_OK(member, tuttiCommDestroy(comms[i]));
    }
}

static void communicators_on_streams_of_their_own_do_not_wait_for_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < all_place_count; i++)
        if (all_places[i].on_cpu < 0)
            at_place(&all_places[i], true, cross);
}

/* ---- groups ---------------------------------------------------------------------------------- */

struct bundle {
    int32_t *summed, *told, *given, *taken;
    tuttiStream_t streams[3];
};

/* An all-reduce in place, a broadcast and a ring of messages. */
static void call_group(struct member *member, struct bundle *bundle)
{
    int next = (member->rank + 1) % member->nranks;
    int before = (member->rank + member->nranks - 1) % member->nranks;

    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiAllReduce(bundle->summed, bundle->summed, COUNT, tuttiInt32, tuttiSum,
                                     member->comm, bundle->streams[0]));
    EXPECT_OK(member, tuttiSend(bundle->given, COUNT, tuttiInt32, next, member->comm,
                                bundle->streams[1]));
    EXPECT_OK(member, tuttiBroadcast(bundle->told, bundle->told, COUNT, tuttiInt32, 1, member->comm,
                                     bundle->streams[2]));
    EXPECT_OK(member, tuttiRecv(bundle->taken, COUNT, tuttiInt32, before, member->comm,
                                bundle->streams[1]));
    EXPECT_OK(member, tuttiGroupEnd());
}

static void write_group(struct member *member, struct bundle *bundle, int round)
{
    numbers_write(member, bundle->summed, COUNT, (member->rank + 1) * round, 0);
    numbers_write(member, bundle->told, COUNT, member->rank * 100 + round, 1);
    numbers_write(member, bundle->given, COUNT, member->rank * 1000 + round, 1);
    numbers_write(member, bundle->taken, COUNT, -1, 0);
}

static void expect_group(struct member *member, const struct bundle *bundle, int round)
{
    int before = (member->rank + member->nranks - 1) % member->nranks;

    numbers_expect(member, bundle->summed, COUNT, triangle(member->nranks) * round, 0,
                   "all-reduce");
    numbers_expect(member, bundle->told, COUNT, 100 + round, 1, "broadcast");
    numbers_expect(member, bundle->taken, COUNT, before * 1000 + round, 1, "message");
}

static void play_groups(struct member *member, int nstreams)
{
    tuttiStream_t streams[3];
    int32_t *four[4];
    struct bundle bundle;

    for (int i = 0; i < nstreams; i++)
        streams[i] = numbers_stream(member);
    for (int i = 0; i < 4; i++)
        four[i] = numbers_make(member, COUNT, 0, 0);
    bundle = (struct bundle){.summed = four[0], .told = four[1], .given = four[2],
                            .taken = four[3]};
    for (int i = 0; i < 3; i++)
        bundle.streams[i] = streams[i % nstreams];
    for (int round = 1; round <= 4; round++) {
        write_group(member, &bundle, round);
        call_group(member, &bundle);
        for (int i = 0; i < nstreams; i++)
            numbers_settle(member, streams[i]);
        expect_group(member, &bundle, round);
    }
    member_meet(member);
    for (int i = 0; i < nstreams; i++)
        numbers_drop_stream(member, streams[i]);
    for (int i = 0; i < 4; i++)
        numbers_drop(member, four[i], COUNT);
}

static void play_on_one(struct member *member)
{
    play_groups(member, 1);
}

static void play_on_three(struct member *member)
{
    play_groups(member, 3);
}

static void a_group_of_collectives_and_messages_runs_together(void **state)
{
    (void)state;
    at_all_places(play_on_one);
}

static void a_group_over_several_streams_is_complete_on_each(void **state)
{
    (void)state;
    at_all_places(play_on_three);
}

/* Even ranks make three calls together, odd ones one by one, and the other way round. */
static void group_now_and_then(struct member *member)
{
    size_t all = (size_t)member->nranks * COUNT, mine = (size_t)member->rank * COUNT;
    int32_t *summed = numbers_make(member, COUNT, member->rank + 1, 0);
    int32_t *gathered = numbers_make(member, all, member->rank, 0);
    int32_t *told = numbers_make(member, COUNT, member->rank, 1);
    tuttiStream_t stream = numbers_stream(member);

    for (int round = 0; round < 4; round++) {
        bool is_grouped = (round + member->rank) % 2 == 0;

        if (is_grouped)
            EXPECT_OK(member, tuttiGroupStart());
        EXPECT_OK(member, tuttiAllReduce(summed, summed, COUNT, tuttiInt32,
                                         round == 0 ? tuttiSum : tuttiMax, member->comm, stream));
        EXPECT_OK(member, tuttiAllGather(gathered + mine, gathered, COUNT, tuttiInt32, member->comm,
                                         stream));
        EXPECT_OK(member, tuttiBroadcast(told, told, COUNT, tuttiInt32, 1, member->comm, stream));
        if (is_grouped)
            EXPECT_OK(member, tuttiGroupEnd());
    }
    numbers_settle(member, stream);
    numbers_expect(member, summed, COUNT, triangle(member->nranks), 0, "all-reduce");
    for (int rank = 0; rank < member->nranks; rank++)
        numbers_expect(member, gathered + (size_t)rank * COUNT, COUNT, rank, 0, "all-gather");
    numbers_expect(member, told, COUNT, 1, 1, "broadcast");
    member_meet(member);
    numbers_drop_stream(member, stream);
    numbers_drop(member, summed, COUNT);
    numbers_drop(member, gathered, all);
    numbers_drop(member, told, COUNT);
}

static void ranks_need_not_group_their_calls_alike(void **state)
{
    (void)state;
    at_all_places(group_now_and_then);
}

/* More than the launch's memory holds at once. */
static void send_many(struct member *member)
{
    enum { MANY = 250 };
    int next = (member->rank + 1) % member->nranks;
    int before = (member->rank + member->nranks - 1) % member->nranks;
    int32_t *given = numbers_make(member, MANY, member->rank, 3);
    int32_t *taken = numbers_make(member, MANY, -1, 0);
    int32_t *summed = numbers_make(member, COUNT, member->rank + 1, 0);
    tuttiStream_t stream = numbers_stream(member);

    for (int round = 0; round < 3; round++) {
        EXPECT_OK(member, tuttiGroupStart());
        EXPECT_OK(member, tuttiAllReduce(summed, summed, COUNT, tuttiInt32,
                                         round == 0 ? tuttiSum : tuttiMax, member->comm, stream));
        for (int i = 0; i < MANY; i++) {
            EXPECT_OK(member, tuttiSend(given + i, 1, tuttiInt32, next, member->comm, stream));
            EXPECT_OK(member, tuttiRecv(taken + i, 1, tuttiInt32, before, member->comm, stream));
        }
        EXPECT_OK(member, tuttiGroupEnd());
    }
    numbers_settle(member, stream);
    numbers_expect(member, summed, COUNT, triangle(member->nranks), 0, "all-reduce");
    numbers_expect(member, taken, MANY, before, 3, "many messages");
    member_meet(member);
    numbers_drop_stream(member, stream);
    numbers_drop(member, given, MANY);
    numbers_drop(member, taken, MANY);
    numbers_drop(member, summed, COUNT);
}

static void a_group_may_have_any_number_of_messages(void **state)
{
    (void)state;
    at_place(&all_places[0], true, send_many);
    at_place(&all_places[2], true, send_many);
}

/* ---- in place -------------------------------------------------------------------------------- */

static void reduce_and_gather(struct member *member)
{
    size_t all = (size_t)member->nranks * COUNT, mine = (size_t)member->rank * COUNT;
    int32_t *numbers = numbers_make(member, all, member->rank, 1);
    tuttiStream_t stream = numbers_stream(member);

    EXPECT_OK(member, tuttiReduceScatter(numbers, numbers + mine, COUNT, tuttiInt32, tuttiSum,
                                         member->comm, stream));
    EXPECT_OK(member, tuttiAllGather(numbers + mine, numbers, COUNT, tuttiInt32, member->comm,
                                     stream));
    numbers_settle(member, stream);
    numbers_expect(member, numbers, all, triangle(member->nranks - 1), member->nranks,
                   "reduce-scatter and all-gather in place");
    member_meet(member);
    numbers_drop_stream(member, stream);
    numbers_drop(member, numbers, all);
}

static void calls_in_place_follow_each_other_on_a_stream(void **state)
{
    (void)state;
    at_all_places(reduce_and_gather);
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* The contexts of devices, retained for the life of the process. */
static void make_current(struct member *member, int ordinal)
{
    struct tutti_cu_context *context;
    tutti_cu_device device;

    EXPECT(member, gpus_driver()->device(&device, ordinal) == TUTTI_CU_SUCCESS &&
                       gpus_driver()->primary_retain(&context, device) == TUTTI_CU_SUCCESS &&
                       gpus_driver()->context_set(context) == TUTTI_CU_SUCCESS);
}

struct solo {
    tuttiComm_t comm;
    tuttiStream_t stream;
    int32_t *numbers;
};

static void call_all(struct member *member, const struct solo *solos, bool is_on_streams)
{
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < RANKS; i++)
        EXPECT_OK(member, tuttiAllReduce(solos[i].numbers, solos[i].numbers, COUNT, tuttiInt32,
                                         tuttiSum, solos[i].comm,
                                         is_on_streams ? solos[i].stream : NULL));
    EXPECT_OK(member, tuttiGroupEnd());
}

static void hold_all_ranks(struct member *member)
{
    const int *devices = member->context;
    tuttiComm_t parents[RANKS], comms[RANKS];
    struct solo solos[RANKS];

    EXPECT_OK(member, tuttiCommInitAll(parents, RANKS, devices));
    if (member_is_unhappy(member))
        return;
    /* Their ranks are where those of their parents are, though no context is current. */
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < RANKS; i++)
        EXPECT_OK(member, tuttiCommSplit(parents[i], 0, i, &comms[i], NULL));
    EXPECT_OK(member, tuttiGroupEnd());
    for (int i = 0; i < RANKS; i++) {
        make_current(member, devices[i]);
        solos[i] = (struct solo){.comm = comms[i], .stream = gpus_stream(member),
                                 .numbers = numbers_make(member, COUNT, i + 1, 0)};
    }
    call_all(member, solos, true);
    call_all(member, solos, true);
    for (int i = 0; i < RANKS; i++)
        gpus_synchronize(member, solos[i].stream);
    call_all(member, solos, false);
    for (int i = 0; i < RANKS; i++) {
        make_current(member, devices[i]);
        numbers_expect(member, solos[i].numbers, COUNT, triangle(RANKS) * RANKS * RANKS, 0,
                       "ranks of one thread");
    }
    for (int i = 0; i < RANKS; i++) {
        make_current(member, devices[i]);
        numbers_drop(member, solos[i].numbers, COUNT);
        gpus_drop_stream(member, solos[i].stream);
        EXPECT_OK(member, tuttiCommDestroy(comms[i]));
        EXPECT_OK(member, tuttiCommDestroy(parents[i]));
    }
}

static void one_thread_may_hold_all_ranks(void **state)
{
    static const int same[RANKS] = {0, 0, 0}, own[RANKS] = {2, 0, 1};

    (void)state;
    gpus_use(3, -1, GPU_MEMORY_EITHER);
    crowd_run(LAUNCH_THREADS, 1, hold_all_ranks, (void *)(uintptr_t)same);
    crowd_run(LAUNCH_THREADS, 1, hold_all_ranks, (void *)(uintptr_t)own);
}

/* ---- default streams ------------------------------------------------------------------------- */

/* The call sees the result of earlier work on the default stream, and later work there sees the
 * result of the call. */
static void call_on_default_streams(struct member *member)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    int32_t *numbers = numbers_make(member, COUNT, 7, 0), *copy = numbers_make(member, COUNT, 0, 0);
    struct tutti_cu_stream *streams[] = {TUTTI_CU_STREAM_LEGACY, TUTTI_CU_STREAM_PER_THREAD};

    for (int i = 0; i < 2; i++) {
        EXPECT(member, cuda->set8_async((tutti_cu_address)(uintptr_t)numbers, 1,
                                        COUNT * sizeof *numbers, streams[i]) == TUTTI_CU_SUCCESS);
        EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum,
                                         member->comm, (tuttiStream_t)(void *)streams[i]));
        EXPECT(member, cuda->copy_async((tutti_cu_address)(uintptr_t)copy,
                                        (tutti_cu_address)(uintptr_t)numbers,
                                        COUNT * sizeof *numbers, streams[i]) == TUTTI_CU_SUCCESS);
        gpus_synchronize(member, (tuttiStream_t)(void *)streams[i]);
        numbers_expect(member, copy, COUNT, 0x01010101 * member->nranks, 0, "a default stream");
    }
    member_meet(member);
    numbers_drop(member, numbers, COUNT);
    numbers_drop(member, copy, COUNT);
}

static void default_streams_are_streams(void **state)
{
    static const struct place own_device[] = {{LAUNCH_THREADS, 3, 3, -1},
                                              {LAUNCH_PROCESSES, 3, 2, -1}};

    (void)state;
    for (int i = 0; i < 2; i++)
        at_place(&own_device[i], true, call_on_default_streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_on_a_stream_returns_before_the_others_have_called),
        cmocka_unit_test(calls_on_several_streams_run_in_the_order_of_the_calls),
        cmocka_unit_test(communicators_on_streams_of_their_own_do_not_wait_for_each_other),
        cmocka_unit_test(a_group_of_collectives_and_messages_runs_together),
        cmocka_unit_test(a_group_over_several_streams_is_complete_on_each),
        cmocka_unit_test(ranks_need_not_group_their_calls_alike),
        cmocka_unit_test(a_group_may_have_any_number_of_messages),
        cmocka_unit_test(calls_in_place_follow_each_other_on_a_stream),
        cmocka_unit_test(one_thread_may_hold_all_ranks),
        cmocka_unit_test(default_streams_are_streams),
    };

    return cmocka_run_group_tests_name("streams of GPUs", tests, NULL, NULL);
}
