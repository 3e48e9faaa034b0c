/* SPDX-License-Identifier: Apache-2.0
 * Messages of mailboxes match their receives by sender and tag, in any order and size. Threads may
 * wait for them or not. Usage: test_mailbox TRANSPORTS. */
#include "api/boxes.h"
#include "support/area.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { MESSAGES = 60, ROUNDS = 300, THREADS = 4, SEVERAL_MS = 200 };

/* ---- matching ------------------------------------------------------------------------------ */

/* From nothing over what travels at once to what is offered first. */
static size_t bytes_of(int tag)
{
    static const size_t some[] = {0, 1, 17, 8192, 8193, 100003, 1500000};

    return some[(size_t)tag % (sizeof some / sizeof *some)];
}

static uint64_t key_of(int from, int to, int tag)
{
    return ((uint64_t)from * 64 + (uint64_t)to) * 1024 + (uint64_t)tag;
}

struct letter {
    struct area area;
    tuttiRequest_t request;
    int from, to, tag;
};

static void open_letter(struct letter *letter, int from, int to, int tag)
{
    *letter = (struct letter){.from = from, .to = to, .tag = tag};
    area_open(&letter->area, bytes_of(tag), (size_t)tag % 3);
}

static void check_letter(struct member *member, const struct letter *letter)
{
    struct area image;

    area_open_image(&image, &letter->area);
    stream_fill(image.base, image.bytes, key_of(letter->from, letter->to, letter->tag));
    area_compare(member, &letter->area, &image, "a message");
    area_close(&image);
}

/* All send to all, themselves included, by tags that are received in the reverse order. */
static void exchange_in_reverse(struct member *member)
{
    int count = member->nranks * 14;
    struct letter *sent = calloc((size_t)count, sizeof *sent);
    struct letter *received = calloc((size_t)count, sizeof *received);
    tuttiMailbox_t box;

    if (boxes_open(member, &box)) {
        for (int i = 0; i < count; i++) {
            open_letter(&sent[i], member->rank, i % member->nranks, i / member->nranks);
            stream_fill(sent[i].area.base, sent[i].area.bytes,
                        key_of(sent[i].from, sent[i].to, sent[i].tag));
            EXPECT_OK(member, tuttiMailboxSend(sent[i].area.base, sent[i].area.bytes, tuttiUint8,
                                               sent[i].to, sent[i].tag, box, &sent[i].request));
        }
        for (int i = count - 1; i >= 0; i--) {
            open_letter(&received[i], i % member->nranks, member->rank, i / member->nranks);
            EXPECT_OK(member,
                      tuttiMailboxRecv(received[i].area.base, received[i].area.bytes, tuttiUint8,
                                       received[i].from, received[i].tag, box,
                                       &received[i].request));
        }
        for (int i = 0; i < count && !member_is_unhappy(member); i++) {
            boxes_wait(member, &received[i].request);
            check_letter(member, &received[i]);
            boxes_wait(member, &sent[i].request);
        }
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
    for (int i = 0; i < count; i++) {
        area_close(&sent[i].area);
        area_close(&received[i].area);
    }
    free(sent);
    free(received);
}

static void tags_are_received_in_any_order(void **state)
{
    (void)state;
    boxes_run_everywhere(exchange_in_reverse);
}

/* Rank 0 takes what comes, each answer goes to whoever it came from. */
static void serve(struct member *member)
{
    int others = member->nranks - 1, counts[8] = {0};
    tuttiRequest_t request;
    tuttiMailbox_t box;
    int64_t value = 0;

    if (!boxes_open(member, &box))
        return;
    for (int i = 0; i < MESSAGES * others && member->rank == 0; i++) {
        int peer = -1, tag = -1;

        EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt64, TUTTI_ANY_RANK, TUTTI_ANY_TAG,
                                           box, &request));
        if (!EXPECT_OK(member, tuttiRequestWait(&request, -1, &peer, &tag)))
            break;
        /* Of one rank and tag they come in the order in which they were sent. */
        EXPECT(member, value == (int64_t)peer * 1000 + counts[peer] && tag == counts[peer] % 5);
        counts[peer]++;
        value += 500000;
        EXPECT_OK(member, tuttiMailboxSend(&value, 1, tuttiInt64, peer, 7, box, &request));
        boxes_wait(member, &request);
    }
    for (int i = 0; i < MESSAGES && member->rank > 0; i++) {
        int64_t answer = 0;

        value = (int64_t)member->rank * 1000 + i;
        EXPECT_OK(member, tuttiMailboxSend(&value, 1, tuttiInt64, 0, i % 5, box, &request));
        boxes_wait(member, &request);
        EXPECT_OK(member, tuttiMailboxRecv(&answer, 1, tuttiInt64, 0, TUTTI_ANY_TAG, box,
                                           &request));
        boxes_wait(member, &request);
        EXPECT(member, answer == value + 500000);
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
}

static void a_server_takes_messages_of_any_rank(void **state)
{
    (void)state;
    boxes_run_everywhere(serve);
}

/* More small messages than the receiver keeps, which it asks for only afterwards, and by turns from
 * the last and the first tag. */
static void flood(struct member *member)
{
    tuttiRequest_t requests[ROUNDS];
    int32_t values[ROUNDS];
    tuttiMailbox_t box;

    if (!boxes_open(member, &box))
        return;
    for (int i = 0; i < ROUNDS; i++) {
        values[i] = member->rank == 0 ? i : -1;
        if (member->rank == 0)
            EXPECT_OK(member, tuttiMailboxSend(&values[i], 1, tuttiInt32, 1, i, box,
                                               &requests[i]));
    }
    member_meet(member);
    for (int i = 0; i < ROUNDS && member->rank == 1; i++) {
        int tag = i % 2 ? ROUNDS - 1 - i / 2 : i / 2;

        EXPECT_OK(member, tuttiMailboxRecv(&values[tag], 1, tuttiInt32, 0, tag, box,
                                           &requests[tag]));
    }
    for (int i = 0; i < ROUNDS; i++) {
        boxes_wait(member, &requests[i]);
        EXPECT(member, values[i] == i);
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
}

static void more_messages_than_are_kept_arrive(void **state)
{
    (void)state;
    boxes_run_pairs(flood);
}

/* ---- progress ------------------------------------------------------------------------------ */

/* Nobody waits: the mailbox's own thread moves the bytes. */
static void progress_alone(struct member *member)
{
    enum { COUNT = 3000000 };
    uint8_t *bytes = calloc(COUNT, 1);
    tuttiRequest_t request = NULL;
    tuttiMailbox_t box;
    tuttiResult_t result = tuttiInProgress;

    if (boxes_open(member, &box)) {
        if (member->rank == 0)
            memset(bytes, 5, COUNT);
        if (member->rank == 0)
            EXPECT_OK(member, tuttiMailboxSend(bytes, COUNT, tuttiUint8, 1, 0, box, &request));
        else
            EXPECT_OK(member, tuttiMailboxRecv(bytes, COUNT, tuttiUint8, 0, 0, box, &request));
        /* Looking alone moves little of it: one pass. */
        for (int looks = 0; looks < 300 && result == tuttiInProgress; looks++) {
            boxes_sleep_ms(SEVERAL_MS);
            result = tuttiRequestWait(&request, 0, NULL, NULL);
        }
        EXPECT(member, result == tuttiSuccess && bytes[0] == 5 && bytes[COUNT - 1] == 5);
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
    free(bytes);
}

static void messages_progress_while_nobody_waits(void **state)
{
    (void)state;
    boxes_run_pairs(progress_alone);
}

/* A limit that passes leaves the request as it was. */
static void wait_in_vain(struct member *member)
{
    tuttiRequest_t request;
    tuttiMailbox_t box;
    int32_t value = 0;

    if (!boxes_open(member, &box))
        return;
    if (member->rank == 0) {
        EXPECT_OK(member, tuttiMailboxRecv(&value, 1, tuttiInt32, 1, 3, box, &request));
        EXPECT_RESULT(member, tuttiInProgress, tuttiRequestWait(&request, 0, NULL, NULL));
        EXPECT_RESULT(member, tuttiInProgress, tuttiRequestWait(&request, 30, NULL, NULL));
    }
    member_meet(member);
    if (member->rank == 1) {
        value = 44;
        EXPECT_OK(member, tuttiMailboxSend(&value, 1, tuttiInt32, 0, 3, box, &request));
    }
    boxes_wait(member, &request);
    EXPECT(member, value == 44);
    EXPECT_OK(member, tuttiMailboxDestroy(box));
}

static void a_limit_leaves_the_request(void **state)
{
    (void)state;
    boxes_run_pairs(wait_in_vain);
}

struct talk {
    struct member *member;
    tuttiMailbox_t box;
    int tag;
};

/* One of several threads of each rank, on the same mailbox: ping and pong by a tag of its own. */
static void *talk(void *argument)
{
    struct talk *own = argument;
    struct member *member = own->member;
    int peer = 1 - member->rank;

    for (int i = 0; i < ROUNDS && !member_is_unhappy(member); i++) {
        int32_t mine = i * 10 + own->tag, theirs = -1;
        tuttiRequest_t sends = NULL, receives = NULL;

        EXPECT_OK(member, tuttiMailboxRecv(&theirs, 1, tuttiInt32, peer, own->tag, own->box,
                                           &receives));
        EXPECT_OK(member, tuttiMailboxSend(&mine, 1, tuttiInt32, peer, own->tag, own->box,
                                           &sends));
        boxes_wait(member, i % 2 ? &sends : &receives);
        boxes_wait(member, i % 2 ? &receives : &sends);
        EXPECT(member, theirs == mine);
    }
    return NULL;
}

static void talk_in_threads(struct member *member)
{
    struct talk talks[THREADS];
    pthread_t threads[THREADS];
    tuttiMailbox_t box;

    if (!boxes_open(member, &box))
        return;
    for (int i = 0; i < THREADS; i++) {
        talks[i] = (struct talk){.member = member, .box = box, .tag = i};
        pthread_create(&threads[i], NULL, talk, &talks[i]);
    }
    for (int i = 0; i < 50; i++)
        EXPECT_OK(member, tuttiBarrier(member->comm, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_OK(member, tuttiMailboxDestroy(box));
}

static void threads_share_a_mailbox_beside_collectives(void **state)
{
    (void)state;
    boxes_run_pairs(talk_in_threads);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

static bool says(const char *word)
{
    return strstr(tuttiGetLastError(NULL), word) != NULL;
}

static void pass_nonsense(struct member *member)
{
    int32_t values[2] = {0}, nranks = member->nranks;
    tuttiRequest_t request = NULL;
    tuttiMailbox_t box;

    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMailboxCreate(NULL, &box));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMailboxCreate(member->comm, NULL));
    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiMailboxCreate(member->comm, &box));
    EXPECT_OK(member, tuttiGroupEnd());
    if (!boxes_open(member, &box))
        return;
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxSend(values, 1, tuttiInt32, nranks, 0, box, &request));
    EXPECT(member, says("peer") && says("ranks 0 to"));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxSend(values, 1, tuttiInt32, TUTTI_ANY_RANK, 0, box, &request));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxSend(values, 1, tuttiInt32, 0, TUTTI_ANY_TAG, box, &request));
    EXPECT(member, says("tag -1"));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv(values, 1, tuttiInt32, 0, -2, box, &request));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv(values, 1, (tuttiDataType_t)99, 0, 0, box, &request));
    EXPECT(member, says("datatype 99"));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv(values, SIZE_MAX, tuttiInt32, 0, 0, box, &request));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv(NULL, 1, tuttiInt32, 0, 0, box, &request));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv((char *)values + 1, 1, tuttiInt32, 0, 0, box, &request));
    EXPECT(member, says("not aligned"));
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiMailboxRecv(values, 1, tuttiInt32, 0, 0, box, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiRequestWait(NULL, 0, NULL, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiRequestCancel(NULL));
    EXPECT_OK(member, tuttiRequestWait(&request, 0, NULL, NULL));
    /* After all that it works. */
    EXPECT_OK(member, tuttiMailboxSend(NULL, 0, tuttiInt32, member->rank, 0, box, &request));
    EXPECT_RESULT(member, tuttiInvalidUsage, tuttiRequestCancel(request));
    EXPECT_RESULT(member, tuttiInProgress, tuttiRequestWait(&request, 0, NULL, NULL));
    {
        tuttiRequest_t receive;

        EXPECT_OK(member, tuttiMailboxRecv(NULL, 0, tuttiInt32, TUTTI_ANY_RANK, 0, box, &receive));
        boxes_wait(member, &receive);
        boxes_wait(member, &request);
    }
    EXPECT_OK(member, tuttiMailboxDestroy(box));
    EXPECT_OK(member, tuttiMailboxDestroy(NULL));
}

static void mistakes_are_refused_and_cost_nothing(void **state)
{
    (void)state;
    boxes_run_pairs(pass_nonsense);
}

/* `count` and `type` differ: both ranks learn it, also if the send was complete before. */
static void mismatch(struct member *member)
{
    size_t counts[] = {member->rank == 0 ? 3 : 4, member->rank == 0 ? 30000 : 40000, 5};
    tuttiDataType_t odd_type = member->rank == 0 ? tuttiFloat32 : tuttiInt32;

    for (int i = 0; i < 3; i++) {
        float *values = calloc(counts[i], sizeof *values);
        tuttiDataType_t type = i == 2 ? odd_type : tuttiInt32;
        tuttiRequest_t request;
        tuttiMailbox_t box;
        tuttiResult_t result;

        if (!boxes_open(member, &box))
            return;
        if (member->rank == 0)
            EXPECT_OK(member, tuttiMailboxSend(values, counts[i], type, 1, 2, box, &request));
        else
            EXPECT_OK(member, tuttiMailboxRecv(values, counts[i], type, 0, 2, box, &request));
        result = tuttiRequestWait(&request, -1, NULL, NULL);
        if (result == tuttiSuccess && member->rank == 0) {
            EXPECT_OK(member, tuttiMailboxRecv(values, 1, type, 1, 2, box, &request));
            result = tuttiRequestWait(&request, -1, NULL, NULL);
        }
        EXPECT(member, result == tuttiInvalidUsage);
        EXPECT(member, says("rank 0 sends") && says("tag 2") && says("to rank 1"));
        EXPECT(member, says(i == 0 ? "3 elements" : i == 1 ? "30000 elements" : "float32"));
        EXPECT_RESULT(member, tuttiInvalidUsage,
                      tuttiMailboxSend(values, 1, tuttiInt32, 0, 0, box, &request));
        EXPECT_OK(member, tuttiMailboxDestroy(box));
        free(values);
        EXPECT_OK(member, tuttiBarrier(member->comm, NULL));
    }
}

static void both_ranks_learn_of_a_mismatch(void **state)
{
    (void)state;
    boxes_run_pairs(mismatch);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_received_in_any_order),
        cmocka_unit_test(a_server_takes_messages_of_any_rank),
        cmocka_unit_test(more_messages_than_are_kept_arrive),
        cmocka_unit_test(messages_progress_while_nobody_waits),
        cmocka_unit_test(a_limit_leaves_the_request),
        cmocka_unit_test(threads_share_a_mailbox_beside_collectives),
        cmocka_unit_test(mistakes_are_refused_and_cost_nothing),
        cmocka_unit_test(both_ranks_learn_of_a_mismatch),
    };

    if (count > 1 && strcmp(arguments[1], "all") != 0)
        setenv("TUTTI_TRANSPORTS", arguments[1], 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
