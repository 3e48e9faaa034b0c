/* SPDX-License-Identifier: Apache-2.0
 * Kernels of ranks that share a GPU wait for each other, so all of them must run at once. */
#include "support/gpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { NRANKS = 3 };

/* All ranks in one thread: forming them is one group. */
static void form(struct member *member, tuttiResult_t wanted)
{
    const int devices[NRANKS] = {0, 0, 0};
    tuttiComm_t comms[NRANKS];

    if (EXPECT_RESULT(member, wanted, tuttiCommInitAll(comms, NRANKS, devices)) &&
        wanted == tuttiSuccess)
        for (int rank = 0; rank < NRANKS; rank++)
            EXPECT_OK(member, tuttiCommDestroy(comms[rank]));
}

static void find_room(struct member *member)
{
    form(member, tuttiSuccess);
}

static void find_none(struct member *member)
{
    form(member, tuttiInvalidUsage);
    EXPECT(member, strstr(tuttiGetLastError(NULL), "3 ranks of one process share GPU 0") != NULL);
    EXPECT(member, strstr(tuttiGetLastError(NULL), "the kernels of 2 run at a time") != NULL);
}

static void as_many_ranks_as_fit_share_a_gpu(void **state)
{
    (void)state;
    setenv("SIMCUDA_MULTIPROCESSORS", "3", 1);
    crowd_run(LAUNCH_THREADS, 1, find_room, NULL);
}

static void one_more_is_refused_and_told_how_many_fit(void **state)
{
    (void)state;
    setenv("SIMCUDA_MULTIPROCESSORS", "2", 1);
    crowd_run(LAUNCH_THREADS, 1, find_none, NULL);
}

/* Which of them comes first is open; what it began ends when the second is refused. */
static void share_a_stream(struct member *member)
{
    static tuttiStream_t stream;
    int32_t *number = (int32_t *)(void *)gpus_put(member, &member->rank, sizeof(int32_t));
    tuttiResult_t result, state = tuttiInProgress;

    if (member->rank == 0)
        stream = gpus_stream(member);
    member_meet(member);
    result = tuttiAllReduce(number, number, 1, tuttiInt32, tuttiSum, member->comm, stream);
    if (result != tuttiSuccess)
        EXPECT(member, strstr(tuttiGetLastError(NULL), "need streams of their own") != NULL);
    gpus_synchronize(member, stream);
    member_meet(member);
    EXPECT_OK(member, tuttiCommGetAsyncError(member->comm, &state));
    EXPECT(member, state == tuttiInvalidUsage);
    gpus_take_back(member, &result, (uint8_t *)number, sizeof(int32_t));
    member_meet(member);
    if (member->rank == 0)
        gpus_drop_stream(member, stream);
}

static void ranks_that_share_a_gpu_and_a_stream_are_told(void **state)
{
    (void)state;
    setenv("SIMCUDA_MULTIPROCESSORS", "4", 1);
    gpus_use(1, -1, GPU_MEMORY_PLAIN);
    world_run(LAUNCH_THREADS, 2, share_a_stream, NULL);
}

/* The ranks share a multiprocessor. One runs two kernels without shared memory, and the other runs
 * one kernel, of a group, that has some. They wait for each other. */
static void group_on_one_side(struct member *member)
{
    int32_t ones[2] = {1, 1}, sums[2];
    int32_t *numbers = (int32_t *)(void *)gpus_put(member, ones, sizeof ones);
    tuttiStream_t stream = gpus_stream(member);

    if (member->rank == 0)
        member_meet(member);
    if (member->rank == 0)
        EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < 2; i++)
        EXPECT_OK(member, tuttiAllReduce(numbers + i, numbers + i, 1, tuttiInt32, tuttiSum,
                                         member->comm, stream));
    if (member->rank == 0)
        EXPECT_OK(member, tuttiGroupEnd());
    if (member->rank != 0)
        member_meet(member);
    gpus_synchronize(member, stream);
    gpus_take_back(member, sums, (uint8_t *)numbers, sizeof sums);
    EXPECT(member, sums[0] == 2 && sums[1] == 2);
    gpus_drop_stream(member, stream);
}

static void kernels_with_and_without_shared_memory_share_a_multiprocessor(void **state)
{
    (void)state;
    setenv("SIMCUDA_MULTIPROCESSORS", "1", 1);
    setenv("SIMCUDA_MULTIPROCESSOR_THREADS", "2048", 1);
    setenv("TUTTI_TIMEOUT_MS", "30000", 1);
    gpus_use(1, -1, GPU_MEMORY_PLAIN);
    world_run(LAUNCH_THREADS, 2, group_on_one_side, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_ranks_as_fit_share_a_gpu),
        cmocka_unit_test(one_more_is_refused_and_told_how_many_fit),
        cmocka_unit_test(ranks_that_share_a_gpu_and_a_stream_are_told),
        cmocka_unit_test(kernels_with_and_without_shared_memory_share_a_multiprocessor),
    };

    /* A multiprocessor has room for one block. */
    setenv("SIMCUDA_THREADS", "64", 1);
    setenv("SIMCUDA_MULTIPROCESSOR_THREADS", "64", 1);
    return cmocka_run_group_tests_name("gpu places", tests, NULL, NULL);
}
