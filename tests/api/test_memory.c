/* SPDX-License-Identifier: Apache-2.0
 * Tests memory that the library allocates, and the report of a communicator's memory. */
#include "support/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* Sanitizers look at each access of the test, too. Races and wrong addresses are the same in fewer elements,
 * so only `make nightly` has the large sizes under them. */
static bool is_whole(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return getenv("TUTTI_TEST_WHOLE") != NULL;
#else
    return true;
#endif
}

static void allocate(struct member *member)
{
    static const size_t sizes[] = {1, 4095, 4096, 4097, 2 << 20, (2 << 20) + 1, 33 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    uint8_t *blocks[COUNT];
    void *none = &none;

    for (size_t i = 0; i < COUNT; i++) {
        if (!EXPECT_OK(member, tuttiMemAlloc((void **)&blocks[i], sizes[i])))
            return;
        EXPECT(member, (uintptr_t)blocks[i] % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        EXPECT(member, blocks[i][0] == i + 1 && blocks[i][sizes[i] - 1] == i + 1);
        EXPECT_OK(member, tuttiMemFree(blocks[i]));
    }
    EXPECT_OK(member, tuttiMemAlloc(&none, 0));
    EXPECT(member, none == NULL);
    EXPECT_OK(member, tuttiMemFree(NULL));
}

static void memory_is_aligned_to_pages_and_holds_its_size(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, allocate, NULL);
    crowd_run(LAUNCH_THREADS, 4, allocate, NULL);
}

static void misuse(struct member *member)
{
    void *block = NULL, *kept = &block;
    int here;

    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemAlloc(NULL, 1));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemAlloc(&kept, SIZE_MAX));
    EXPECT_RESULT(member, tuttiSystemError, tuttiMemAlloc(&kept, SIZE_MAX / 4));
    EXPECT(member, kept == &block);
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemFree(&here));
    EXPECT_OK(member, tuttiMemAlloc(&block, 1 << 16));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemFree((char *)block + 64));
    EXPECT_OK(member, tuttiMemFree(block));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemFree(block));
}

static void what_was_not_given_is_not_taken(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, misuse, NULL);
}

static void communicate(struct member *member)
{
    enum { COUNT = 300000 };
    int32_t *values;

    if (!EXPECT_OK(member, tuttiMemAlloc((void **)&values, COUNT * sizeof *values)))
        return;
    for (int i = 0; i < COUNT; i++)
        values[i] = i * (member->rank + 1);
    EXPECT_OK(member, tuttiAllReduce(values, values, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
    for (int i = 0; i < COUNT; i++)
        if (values[i] != i * (member->nranks * (member->nranks + 1) / 2)) {
            member_complain(member, "element %d is %d", i, values[i]);
            break;
        }
    EXPECT_OK(member, tuttiMemFree(values));
}

static void it_may_be_communicated_from(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        world_run(launch, 4, communicate, NULL);
}

/* Runs every collective that behaves differently on lent memory several times, because new memory
 * is not lent at first. With `has_heap` the first rank has other memory, so no rank may rely on
 * it. */
static void exchange(struct member *member, bool has_heap, size_t count)
{
    size_t nranks = (size_t)member->nranks, rank = (size_t)member->rank, bytes = nranks * count * 4;
    int32_t *send, *recv;

    if (has_heap && rank == 0) {
        send = malloc(bytes);
        recv = malloc(bytes);
    } else if (!EXPECT_OK(member, tuttiMemAlloc((void **)&send, bytes)) ||
               !EXPECT_OK(member, tuttiMemAlloc((void **)&recv, bytes))) {
        return;
    }
    for (int32_t turn = 0; turn < 4; turn++) {
        int root = turn % member->nranks;
        size_t wrong = 0;

        for (size_t i = 0; i < nranks * count; i++)
            send[i] = (int32_t)(i * 7 + rank) + turn;
        EXPECT_OK(member, tuttiAllReduce(send, recv, nranks * count, tuttiInt32, tuttiMax,
                                         member->comm, NULL));
        for (size_t i = 0; i < nranks * count; i++)
            wrong += recv[i] != (int32_t)(i * 7 + nranks - 1) + turn;
        EXPECT_OK(member, tuttiReduceScatter(send, recv, count, tuttiInt32, tuttiMin, member->comm,
                                             NULL));
        for (size_t i = 0; i < count; i++)
            wrong += recv[i] != (int32_t)((rank * count + i) * 7) + turn;
        EXPECT_OK(member, tuttiAllGather(send, recv, count, tuttiInt32, member->comm, NULL));
        for (size_t i = 0; i < nranks * count; i++)
            wrong += recv[i] != (int32_t)(i % count * 7 + i / count) + turn;
        EXPECT_OK(member, tuttiAlltoAll(send, recv, count, tuttiInt32, member->comm, NULL));
        for (size_t i = 0; i < nranks * count; i++)
            wrong += recv[i] != (int32_t)((rank * count + i % count) * 7 + i / count) + turn;
        EXPECT_OK(member, tuttiReduce(send, recv, nranks * count, tuttiInt32, tuttiMax, root,
                                      member->comm, NULL));
        for (size_t i = 0; member->rank == root && i < nranks * count; i++)
            wrong += recv[i] != (int32_t)(i * 7 + nranks - 1) + turn;
        EXPECT_OK(member, tuttiReduce(send, recv, nranks * count, tuttiInt32, tuttiAvg, root,
                                      member->comm, NULL));
        for (size_t i = 0; member->rank == root && i < nranks * count; i++)
            wrong += recv[i] != ((int32_t)(nranks * (i * 7 + (size_t)turn)) +
                                 (int32_t)(nranks * (nranks - 1) / 2)) / (int32_t)nranks;
        EXPECT_OK(member, tuttiBroadcast(send, recv, nranks * count, tuttiInt32, root,
                                         member->comm, NULL));
        for (size_t i = 0; i < nranks * count; i++)
            wrong += recv[i] != (int32_t)(i * 7) + root + turn;
        EXPECT_OK(member, tuttiBroadcast(recv, recv, nranks * count, tuttiInt32, root,
                                         member->comm, NULL));
        for (size_t i = 0; i < nranks * count; i++)
            wrong += recv[i] != (int32_t)(i * 7) + root + turn;
        EXPECT(member, wrong == 0);
    }
    if (has_heap && rank == 0) {
        free(send);
        free(recv);
        return;
    }
    EXPECT_OK(member, tuttiMemFree(send));
    EXPECT_OK(member, tuttiMemFree(recv));
}

static void exchange_everything(struct member *member)
{
    static const size_t counts[] = {5000, 40000, 123457, 600001};

    for (size_t i = 0; i < (sizeof counts / sizeof *counts) - !is_whole(); i++) {
        exchange(member, false, counts[i]);
        exchange(member, true, counts[i]);
    }
}

static void all_collectives_are_right_on_it_and_beside_other_memory(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++) {
        if (!launch_is_watched(launch))
            continue;
        world_run(launch, 2, exchange_everything, NULL);
        world_run(launch, 3, exchange_everything, NULL);
    }
}

/* To the next rank and from the one before, at once and one after the other. */
static size_t pass_on(struct member *member, const int32_t *send, int32_t *recv, size_t count)
{
    int next = (member->rank + 1) % member->nranks;
    int previous = (member->rank + member->nranks - 1) % member->nranks;
    size_t wrong = 0;

    memset(recv, 0, count * sizeof *recv);
    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiSend(send, count, tuttiInt32, next, member->comm, NULL));
    EXPECT_OK(member, tuttiRecv(recv, count, tuttiInt32, previous, member->comm, NULL));
    EXPECT_OK(member, tuttiGroupEnd());
    for (size_t i = 0; i < count; i++)
        wrong += recv[i] != (int32_t)i * 3 + previous;
    if (member->rank == 0)
        EXPECT_OK(member, tuttiSend(send, count, tuttiInt32, 1, member->comm, NULL));
    if (member->rank != 1)
        return wrong;
    EXPECT_OK(member, tuttiRecv(recv, count, tuttiInt32, 0, member->comm, NULL));
    for (size_t i = 0; i < count; i++)
        wrong += recv[i] != (int32_t)i * 3;
    return wrong;
}

/* There are more blocks than are lent at a time, and some are freed and replaced. So the memory
 * from which a message was sent may be lent no more, lent again, or be new. */
static void send_from_all_kinds(struct member *member)
{
    enum { BLOCKS = 40 };
    const size_t most = is_whole() ? 300000 : 60000;
    int32_t *blocks[BLOCKS], *recv;

    if (!EXPECT_OK(member, tuttiMemAlloc((void **)&recv, most * sizeof *recv)))
        return;
    memset(blocks, 0, sizeof blocks);
    for (size_t i = 0; i < 3 * BLOCKS; i++) {
        int32_t **block = &blocks[i * 7 % BLOCKS];
        size_t count = i % 5 == 0 ? most : 4000 + 2000 * (i % 7);

        EXPECT_OK(member, tuttiMemFree(*block));
        *block = NULL;
        if (!EXPECT_OK(member, tuttiMemAlloc((void **)block, most * sizeof **block)))
            return;
        for (size_t k = 0; k < most; k++)
            (*block)[k] = (int32_t)k * 3 + member->rank;
        EXPECT(member, pass_on(member, *block, recv, count) == 0);
        EXPECT(member, pass_on(member, *block, recv, count) == 0);
        if (blocks[i % BLOCKS] != NULL)
            EXPECT(member, pass_on(member, blocks[i % BLOCKS], recv, count) == 0);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        EXPECT_OK(member, tuttiMemFree(blocks[i]));
    EXPECT_OK(member, tuttiMemFree(recv));
}

static void messages_are_right_whatever_is_lent(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++) {
        if (!launch_is_watched(launch))
            continue;
        world_run(launch, 2, send_from_all_kinds, NULL);
        world_run(launch, 3, send_from_all_kinds, NULL);
    }
}

static void weigh(struct member *member)
{
    tuttiMemStats_t before = {.size = sizeof before}, after = {.size = sizeof after};
    tuttiMemStats_t wrong = {.size = 1};

    EXPECT_OK(member, tuttiCommMemStats(member->comm, &before));
    EXPECT(member, before.privateBytes > 0);
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommMemStats(member->comm, &wrong));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommMemStats(member->comm, NULL));
    trial_run(member, &(struct trial){.act = ALL_EXCHANGE, .type = tuttiInt32, .count = 50000});
    EXPECT_OK(member, tuttiCommMemStats(member->comm, &after));
    EXPECT(member, after.privateBytes >= before.privateBytes);
    EXPECT(member, after.connections >= before.connections);
    EXPECT(member, after.connections >= after.sockets);
    EXPECT(member, after.sharedBytes <= after.sharedReservedBytes);
}

static void what_a_communicator_costs_is_told(void **state)
{
    (void)state;
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        world_run(launch, 3, weigh, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_to_pages_and_holds_its_size),
        cmocka_unit_test(what_was_not_given_is_not_taken),
        cmocka_unit_test(it_may_be_communicated_from),
        cmocka_unit_test(all_collectives_are_right_on_it_and_beside_other_memory),
        cmocka_unit_test(messages_are_right_whatever_is_lent),
        cmocka_unit_test(what_a_communicator_costs_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
