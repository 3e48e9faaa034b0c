/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on streams of green contexts, which have only some of the GPU's multiprocessors. A
 * launch must not have more blocks than run there at a time, because its blocks wait for each
 * other. */
#include "gpu/numbers.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 2, COUNT = 100000 };

static tuttiStream_t green_stream(struct member *member, unsigned multiprocessors)
{
    int (*create)(struct tutti_cu_stream **ret_stream, unsigned count);
    void *found = dlsym(gpus_driver()->library, "cuSimStreamCreate");
    struct tutti_cu_stream *stream = NULL;

    if (!EXPECT(member, found != NULL))
        return NULL;
    memcpy(&create, &found, sizeof create);
    EXPECT(member, create(&stream, multiprocessors) == TUTTI_CU_SUCCESS);
    return (tuttiStream_t)(void *)stream;
}

/* Numbers that all ranks add up, large enough for all blocks that a launch may have. */
static void add_up(struct member *member, tuttiStream_t stream)
{
    int32_t *numbers = numbers_make(member, COUNT, member->rank + 1, 0);

    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     stream));
    numbers_settle(member, stream);
    numbers_expect(member, numbers, COUNT, triangle(member->nranks), 0, "the sum");
    numbers_drop(member, numbers, COUNT);
}

/* Numbers from the other rank. */
static tuttiResult_t exchange(struct member *member, const int32_t *in, int32_t *out,
                              tuttiStream_t stream)
{
    int peer = 1 - member->rank;

    EXPECT_OK(member, tuttiGroupStart());
    EXPECT_OK(member, tuttiSend(in, COUNT, tuttiInt32, peer, member->comm, stream));
    EXPECT_OK(member, tuttiRecv(out, COUNT, tuttiInt32, peer, member->comm, stream));
    return tuttiGroupEnd();
}

/* Half of the multiprocessors run 8 blocks, which is what messages need. */
static void call_on_half(struct member *member)
{
    int32_t *in = numbers_make(member, COUNT, member->rank, 1);
    int32_t *out = numbers_make(member, COUNT, 0, 0);
    tuttiStream_t streams[2] = {green_stream(member, 4), numbers_stream(member)};

    for (int i = 0; i < 4; i++)
        add_up(member, streams[i % 2]);
    EXPECT_OK(member, exchange(member, in, out, streams[0]));
    numbers_settle(member, streams[0]);
    numbers_expect(member, out, COUNT, 1 - member->rank, 1, "the other rank's numbers");
    for (int i = 0; i < 2; i++)
        numbers_drop_stream(member, streams[i]);
    numbers_drop(member, in, COUNT);
    numbers_drop(member, out, COUNT);
}

static void calls_have_no_more_blocks_than_run_on_their_stream(void **state)
{
    const struct place place = {LAUNCH_THREADS, RANKS, RANKS, -1};

    (void)state;
    at_place(&place, true, call_on_half);
}

/* One multiprocessor runs 2 blocks. */
static void call_on_one(struct member *member)
{
    int32_t *in = numbers_make(member, COUNT, member->rank, 1);
    int32_t *out = numbers_make(member, COUNT, 0, 0);
    tuttiStream_t stream = green_stream(member, 1);
    const char *said;

    add_up(member, stream);
    EXPECT(member, exchange(member, in, out, stream) == tuttiInvalidUsage);
    said = tuttiGetLastError(NULL);
    EXPECT(member, strstr(said, "belongs to a green context of 1 multiprocessors, where 2 blocks "
                                "of this rank run at a time, but the call needs 8; use a stream "
                                "with at least 4 multiprocessors") != NULL);
    EXPECT(member, strstr(said, member->rank == 0 ? "rank 0, GPU 0" : "rank 1, GPU 1") != NULL);
    member_meet(member);
    numbers_drop_stream(member, stream);
    numbers_drop(member, in, COUNT);
    numbers_drop(member, out, COUNT);
}

static void messages_that_need_more_blocks_are_refused(void **state)
{
    const struct place place = {LAUNCH_THREADS, RANKS, RANKS, -1};

    (void)state;
    at_place(&place, true, call_on_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_have_no_more_blocks_than_run_on_their_stream),
        cmocka_unit_test(messages_that_need_more_blocks_are_refused),
    };

    /* A GPU runs 32 blocks, of which the communicator takes 16. */
    setenv("SIMCUDA_MULTIPROCESSORS", "16", 1);
    setenv("SIMCUDA_THREADS", "64", 1);
    setenv("SIMCUDA_MULTIPROCESSOR_THREADS", "128", 1);
    setenv("TUTTI_TIMEOUT_MS", "30000", 1);
    return cmocka_run_group_tests_name("gpu green", tests, NULL, NULL);
}
