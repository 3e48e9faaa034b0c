/* SPDX-License-Identifier: Apache-2.0
 * The calls of a group run together, and none of them waits for another in the group forever.
 * Usage: test_groups TRANSPORTS. */
#include "support/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { INIT_ALL_RANKS = 5, MESSAGES = 200 };

static const int sizes[] = {1, 2, 3, 5, 8};

static void run_everywhere(member_fn fn)
{
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            world_run(launch, sizes[i], fn, NULL);
}

static struct trial small_trial(enum act act, size_t count, int root)
{
    return (struct trial){.act = act, .type = tuttiInt32, .op = tuttiSum, .count = count,
                          .counts = COUNTS_RAMP, .places = PLACES_GAPS,
                          .root = act_has_root(act) ? root : 0};
}

/* ---- many calls ------------------------------------------------------------------------------ */

static void mix_all_acts_on_two_comms(struct member *member)
{
    struct member other = *member;
    struct attempt attempts[2 * ACT_COUNT];
    size_t total = 0;

    /* The second communicator has the ranks in reverse. */
    if (!EXPECT_OK(member, tuttiCommSplit(member->comm, 0, -member->rank, &other.comm, NULL)))
        return;
    other.rank = member->nranks - 1 - member->rank;
    for (int round = 0; round < 3; round++) {
        total = 0;
        EXPECT_OK(member, tuttiGroupStart());
        for (int act = 0; act < ACT_COUNT; act++)
            for (int i = 0; i < 2; i++) {
                struct trial trial = small_trial(act, (size_t)(50 * round + act + i), 0);
                bool is_other = (member->rank + i) % 2;

                /* The order of communicators differs between ranks; that of each one's calls
                 * does not. */
                trial.count = (size_t)(50 * round + act) + is_other;
                attempt_begin(&attempts[total++], is_other ? &other : member, &trial, NULL);
            }
        EXPECT_OK(member, tuttiGroupEnd());
        for (size_t i = 0; i < total; i++)
            attempt_end(&attempts[i]);
    }
    EXPECT_OK(member, tuttiCommDestroy(other.comm));
}

static void a_group_mixes_all_calls_on_two_communicators(void **state)
{
    (void)state;
    run_everywhere(mix_all_acts_on_two_comms);
}

static void nest(struct member *member)
{
    struct trial trial = small_trial(ALL_REDUCE, 100, 0);
    struct attempt inner, outer;

    EXPECT_OK(member, tuttiGroupStart());
    attempt_begin(&outer, member, &trial, NULL);
    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiGroupStart());
    trial = small_trial(RING_EXCHANGE, 1000, 0);
    attempt_begin(&inner, member, &trial, NULL);
    EXPECT_OK(member, tuttiGroupEnd());
    EXPECT_OK(member, tuttiGroupEnd());
    EXPECT_OK(member, tuttiGroupEnd());
    attempt_end(&inner);
    attempt_end(&outer);
    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiGroupEnd());
}

static void groups_nest_and_may_be_empty(void **state)
{
    (void)state;
    run_everywhere(nest);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void exchange_big(struct member *member)
{
    struct trial trial = {.act = RING_EXCHANGE, .type = tuttiInt64, .count = 400001};

    trial_run(member, &trial);
    trial.act = ALL_EXCHANGE;
    trial.count /= (size_t)member->nranks;
    trial_run(member, &trial);
}

static void a_ring_of_big_messages_does_not_deadlock(void **state)
{
    (void)state;
    run_everywhere(exchange_big);
}

static size_t message_bytes(int index)
{
    return (size_t)(index * 37 % 211) * (index % 50 == 7 ? 1000 : 1) * (index % 5 != 0);
}

/* Every fifth message is empty, some are large. Receives are called first. */
static void send_many(struct member *member)
{
    int next = (member->rank + 1) % member->nranks;
    int before = (member->rank + member->nranks - 1) % member->nranks;
    struct area sent[MESSAGES], received[MESSAGES], image;

    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < MESSAGES; i++) {
        area_open(&received[i], message_bytes(i), 1);
        EXPECT_OK(member, tuttiRecv(received[i].base, message_bytes(i), tuttiUint8, before,
                                    member->comm, NULL));
    }
    for (int i = 0; i < MESSAGES; i++) {
        area_open(&sent[i], message_bytes(i), 3);
        stream_fill(sent[i].base, sent[i].bytes, (uint64_t)(member->rank * MESSAGES + i));
        EXPECT_OK(member, tuttiSend(sent[i].base, message_bytes(i), tuttiUint8, next,
                                    member->comm, NULL));
    }
    EXPECT_OK(member, tuttiGroupEnd());
    for (int i = 0; i < MESSAGES; i++) {
        area_open_image(&image, &received[i]);
        stream_fill(image.base, image.bytes, (uint64_t)(before * MESSAGES + i));
        area_compare(member, &received[i], &image, "one message of many");
        area_close(&image);
        area_close(&received[i]);
        area_close(&sent[i]);
    }
}

static void many_messages_to_one_peer_arrive_in_order(void **state)
{
    (void)state;
    run_everywhere(send_many);
}

/* ---- one thread, all ranks ------------------------------------------------------------------- */

static void drive_all(struct member *member)
{
    tuttiComm_t comms[INIT_ALL_RANKS];
    struct member members[INIT_ALL_RANKS];
    struct attempt attempts[INIT_ALL_RANKS];

    if (!EXPECT_OK(member, tuttiCommInitAll(comms, INIT_ALL_RANKS, NULL)))
        return;
    for (int act = 0; act < ACT_COUNT; act++)
        for (size_t count = 0; count < 30000; count = count * 7 + 5) {
            struct trial trial = small_trial(act, count, (int)count % INIT_ALL_RANKS);

            trial.op = act_op(act, trial.type, count);
            trial.in_place = count % 2 && act_can_be_in_place(act);
            EXPECT_OK(member, tuttiGroupStart());
            for (int rank = 0; rank < INIT_ALL_RANKS; rank++) {
                members[rank] = (struct member){.rank = rank, .nranks = INIT_ALL_RANKS,
                                                .comm = comms[rank], .crowd = member->crowd};
                attempt_begin(&attempts[rank], &members[rank], &trial, NULL);
            }
            EXPECT_OK(member, tuttiGroupEnd());
            for (int rank = 0; rank < INIT_ALL_RANKS; rank++)
                attempt_end(&attempts[rank]);
        }
    for (int rank = 0; rank < INIT_ALL_RANKS; rank++)
        EXPECT_OK(member, tuttiCommDestroy(comms[rank]));
}

static void one_thread_drives_all_ranks_in_groups(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, drive_all, NULL);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void fail_in_group(struct member *member)
{
    struct trial trial = small_trial(ALL_REDUCE, 40, 0);
    int32_t value = 7, sum = -1;

    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiAllReduce(&value, &sum, 1, tuttiInt32, tuttiSum, member->comm, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiBroadcast(&value, &value, 1, tuttiInt32, member->nranks, member->comm,
                                 NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiGroupEnd());
    EXPECT(member, sum == -1);
    /* The communicators are as before, and so is the thread. */
    trial_run(member, &trial);
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiGroupEnd());
    trial_run(member, &trial);
}

static void a_group_with_a_refused_call_does_nothing(void **state)
{
    (void)state;
    run_everywhere(fail_in_group);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_mixes_all_calls_on_two_communicators),
        cmocka_unit_test(groups_nest_and_may_be_empty),
        cmocka_unit_test(a_ring_of_big_messages_does_not_deadlock),
        cmocka_unit_test(many_messages_to_one_peer_arrive_in_order),
        cmocka_unit_test(one_thread_drives_all_ranks_in_groups),
        cmocka_unit_test(a_group_with_a_refused_call_does_nothing),
    };

    if (count > 1 && strcmp(arguments[1], "all") != 0)
        setenv("TUTTI_TRANSPORTS", arguments[1], 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
