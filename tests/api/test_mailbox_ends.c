/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes and their requests end: receives are canceled, ranks leave early, and a mailbox is
 * destroyed while requests or threads use it. Usage: test_mailbox_ends TRANSPORTS. */
#include "api/boxes.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

static void cancel(struct member *member)
{
    int32_t value = 1, others = 0;
    tuttiRequest_t taken_back, kept, sent;
    tuttiMailbox_t box;

    if (!boxes_open(member, &box))
        return;
    EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, TUTTI_ANY_RANK, 9, box,
                                       &taken_back));
    EXPECT_OK(member, tuttiRequestCancel(taken_back));
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiRequestWait(&taken_back, -1, NULL, NULL));
    EXPECT(member, taken_back == NULL && strstr(tuttiGetLastError(NULL), "canceled") != NULL);
    member_meet(member);
    /* The mailbox is as before, and what was taken back takes nothing. */
    EXPECT_OK(member, tuttiMailboxSend(&member->rank, 1, tuttiInt32, 1 - member->rank, 9, box,
                                       &sent));
    EXPECT_OK(member, tuttiMailboxRecv(&others, 1, tuttiInt32, 1 - member->rank, 9, box, &kept));
    boxes_wait(member, &kept);
    boxes_wait(member, &sent);
    EXPECT(member, value == 1 && others == 1 - member->rank);
    EXPECT_OK(member, tuttiMailboxDestroy(box));
}

static void a_receive_can_be_taken_back(void **state)
{
    (void)state;
    boxes_run_pairs(cancel);
}

/* Rank r leaves after r messages; rank 0 goes on with those who stay. */
static void leave_early(struct member *member)
{
    int32_t value = 0, total = 0;
    tuttiRequest_t request;
    tuttiMailbox_t box;

    if (!boxes_open(member, &box))
        return;
    for (int i = 0; i < member->rank; i++) {
        value = member->rank;
        EXPECT_OK(member, tuttiMailboxSend(&value, 1, tuttiInt32, 0, 0, box, &request));
        boxes_wait(member, &request);
        boxes_sleep_ms(20);
    }
    for (int i = 0; i < member->nranks * (member->nranks - 1) / 2 && member->rank == 0; i++) {
        EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, TUTTI_ANY_RANK, 0, box,
                                           &request));
        boxes_wait(member, &request);
        total += value;
    }
    for (int rank = 1; rank < member->nranks && member->rank == 0; rank++)
        total -= rank * rank;
    EXPECT(member, total == 0);
    if (member->rank == 0 && member->nranks > 1) {
        EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, TUTTI_ANY_RANK, 0, box,
                                           &request));
        EXPECT_RESULT(member, tuttiRemoteError, tuttiRequestWait(&request, -1, NULL, NULL));
        EXPECT(member, strstr(tuttiGetLastError(NULL), "destroyed") != NULL);
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
    member_meet(member);
}

static void ranks_may_leave_one_by_one(void **state)
{
    (void)state;
    boxes_run_everywhere(leave_early);
}

/* Rank 0 leaves before it is connected to any other, or with messages that it has offered only. */
static void leave_with(struct member *member, bool offers)
{
    static uint8_t bytes[100003];
    tuttiRequest_t request, sends[8];
    tuttiMailbox_t box;

    if (!boxes_open(member, &box))
        return;
    if (member->rank == 0) {
        for (int peer = 1; peer < member->nranks && offers; peer++)
            EXPECT_OK(member, tuttiMailboxSend(bytes, sizeof bytes, tuttiUint8, peer, 0, box,
                                               &sends[peer]));
        EXPECT_OK(member, tuttiMailboxDestroy(box));
        for (int peer = 1; peer < member->nranks && offers; peer++)
            EXPECT_RESULT(member, tuttiInvalidUsage,
                          tuttiRequestWait(&sends[peer], -1, NULL, NULL));
    }
    member_meet(member);
    if (member->rank > 0) {
        uint8_t *target = malloc(sizeof bytes);

        EXPECT_OK(member, tuttiMailboxRecv(target, sizeof bytes, tuttiUint8, 0, 0, box, &request));
        EXPECT_RESULT(member, tuttiRemoteError, tuttiRequestWait(&request, -1, NULL, NULL));
        EXPECT(member, strstr(tuttiGetLastError(NULL), "rank 0") != NULL);
        EXPECT_OK(member, tuttiMailboxDestroy(box));
        free(target);
    }
    member_meet(member);
}

static void leave_unconnected(struct member *member)
{
    leave_with(member, false);
}

static void leave_with_offers(struct member *member)
{
    leave_with(member, true);
}

static void nobody_waits_for_a_rank_that_has_left(void **state)
{
    (void)state;
    boxes_run_everywhere(leave_unconnected);
    boxes_run_everywhere(leave_with_offers);
}

static void destroy_with_requests(struct member *member)
{
    tuttiRequest_t request;
    tuttiMailbox_t box;
    int32_t value = 0;

    if (!boxes_open(member, &box))
        return;
    EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, member->rank, 0, box, &request));
    EXPECT_OK(member, tuttiMailboxDestroy(box));
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiRequestWait(&request, -1, NULL, NULL));
    EXPECT(member, request == NULL);
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMailboxDestroy(box));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxSend(&value, 1, tuttiInt32, 0, 0, box, &request));
}

static void requests_end_with_their_mailbox(void **state)
{
    (void)state;
    boxes_run_everywhere(destroy_with_requests);
}

struct waiter {
    tuttiRequest_t request;
    tuttiResult_t result;
};

static void *wait_for_request(void *argument)
{
    struct waiter *own = argument;

    own->result = tuttiRequestWait(&own->request, 60000, NULL, NULL);
    return NULL;
}

/* Threads wait for receives that no send matches. One of them drives the mailbox, and must leave
 * that to the thread that destroys the mailbox. */
static void destroy_while_waiting(struct member *member)
{
    struct waiter waiters[2];
    pthread_t threads[2];
    tuttiMailbox_t box;
    int32_t value;

    for (int round = 0; round < 10 && !member_is_unhappy(member); round++) {
        if (!boxes_open(member, &box))
            return;
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, member->rank, i, box,
                                               &waiters[i].request));
            pthread_create(&threads[i], NULL, wait_for_request, &waiters[i]);
        }
        boxes_sleep_ms(5 * round);
        EXPECT_OK(member, tuttiMailboxDestroy(box));
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
            EXPECT(member, waiters[i].result == tuttiInvalidUsage && waiters[i].request == NULL);
        }
    }
}

static void a_mailbox_may_be_destroyed_while_threads_wait(void **state)
{
    (void)state;
    boxes_run_everywhere(destroy_while_waiting);
}

struct poster {
    struct member *member;
    tuttiMailbox_t box;
    int32_t value;
    tuttiRequest_t requests[10000];
    int count;
    tuttiResult_t last;
};

/* Begins receives that no send matches, until the mailbox refuses one. */
static void *post_receives(void *argument)
{
    struct poster *own = argument;

    own->last = tuttiSuccess;
    while (own->last == tuttiSuccess && own->count < 10000) {
        own->last = tuttiMailboxRecv(&own->value, 1, tuttiInt32, own->member->rank, 0, own->box,
                                     &own->requests[own->count]);
        own->count += own->last == tuttiSuccess;
    }
    return NULL;
}

/* Every request that was begun ends, and later ones are refused, however the two threads meet. */
static void destroy_while_posting(struct member *member)
{
    struct poster *poster = calloc(1, sizeof *poster);
    pthread_t thread;

    for (int round = 0; round < 60 && !member_is_unhappy(member); round++) {
        poster->member = member;
        poster->count = 0;
        if (!boxes_open(member, &poster->box))
            break;
        pthread_create(&thread, NULL, post_receives, poster);
        nanosleep(&(struct timespec){.tv_nsec = 20000L * round}, NULL);
        EXPECT_OK(member, tuttiMailboxDestroy(poster->box));
        pthread_join(thread, NULL);
        EXPECT(member, poster->count == 10000 || poster->last == tuttiInvalidArgument);
        for (int i = 0; i < poster->count; i++)
            EXPECT_RESULT(member, tuttiInvalidUsage,
                          tuttiRequestWait(&poster->requests[i], -1, NULL, NULL));
    }
    free(poster);
}

static void a_mailbox_may_be_destroyed_while_a_thread_posts(void **state)
{
    (void)state;
    world_run(0, 1, destroy_while_posting, NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receive_can_be_taken_back),
        cmocka_unit_test(ranks_may_leave_one_by_one),
        cmocka_unit_test(nobody_waits_for_a_rank_that_has_left),
        cmocka_unit_test(requests_end_with_their_mailbox),
        cmocka_unit_test(a_mailbox_may_be_destroyed_while_threads_wait),
        cmocka_unit_test(a_mailbox_may_be_destroyed_while_a_thread_posts),
    };

    if (count > 1 && strcmp(arguments[1], "all") != 0)
        setenv("TUTTI_TRANSPORTS", arguments[1], 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
