/* SPDX-License-Identifier: Apache-2.0
 * The data path allocates nothing. This binary counts its own calls of the allocator. The first
 * two runs of a collective make plans, connections and buffers, and the third must not allocate.
 */
#include "support/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

/* The C library's own, under its other names. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations;

void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}

enum { MOST = 1 << 16, RANKS = 4 };

static float input[RANKS][MOST * RANKS], output[RANKS][MOST * RANKS];
static const size_t sizes[RANKS] = {10, 0, 20, 30};

/* Neighbors in pairs. */
static tuttiResult_t pass_on(const struct member *member, size_t count)
{
    float *in = input[member->rank], *out = output[member->rank];
    int peer = member->rank ^ 1;
    tuttiResult_t result = tuttiSuccess;

    if (member->rank < peer)
        result = tuttiSend(in, count, tuttiFloat32, peer, member->comm, NULL);
    if (result == tuttiSuccess)
        result = tuttiRecv(out, count, tuttiFloat32, peer, member->comm, NULL);
    if (result == tuttiSuccess && member->rank > peer)
        result = tuttiSend(in, count, tuttiFloat32, peer, member->comm, NULL);
    return result;
}

/* Round the ring, both ways. */
static tuttiResult_t exchange(const struct member *member, size_t count)
{
    const float *in = input[member->rank];
    float *out = output[member->rank];
    int right = (member->rank + 1) % RANKS, left = (member->rank + RANKS - 1) % RANKS;
    tuttiResult_t result = tuttiGroupStart(), ended;

    if (result == tuttiSuccess)
        result = tuttiSend(in, count, tuttiFloat32, right, member->comm, NULL);
    if (result == tuttiSuccess)
        result = tuttiRecv(out, count, tuttiFloat32, left, member->comm, NULL);
    if (result == tuttiSuccess)
        result = tuttiSend(in, count, tuttiFloat32, left, member->comm, NULL);
    if (result == tuttiSuccess)
        result = tuttiRecv(out + MOST, count, tuttiFloat32, right, member->comm, NULL);
    ended = tuttiGroupEnd();
    return result == tuttiSuccess ? ended : result;
}

static tuttiResult_t call(const struct member *member, int which, size_t count)
{
    const float *in = input[member->rank];
    float *out = output[member->rank];
    tuttiComm_t comm = member->comm;

    switch (which) {
    case 0: return tuttiAllReduce(in, out, count, tuttiFloat32, tuttiSum, comm, NULL);
    case 1: return tuttiReduce(in, out, count, tuttiFloat32, tuttiMax, 1, comm, NULL);
    case 2: return tuttiBroadcast(in, out, count, tuttiFloat32, 2, comm, NULL);
    case 3: return tuttiAllGather(in, out, count, tuttiFloat32, comm, NULL);
    case 4: return tuttiReduceScatter(in, out, count, tuttiFloat32, tuttiSum, comm, NULL);
    case 5: return tuttiAlltoAll(in, out, count, tuttiFloat32, comm, NULL);
    case 6: return tuttiGather(in, out, count, tuttiFloat32, 3, comm, NULL);
    case 7: return tuttiScatter(in, out, count, tuttiFloat32, 0, comm, NULL);
    case 8: return tuttiBarrier(comm, NULL);
    case 9: return tuttiAllGatherV(in, out, sizes, NULL, tuttiFloat32, comm, NULL);
    case 10:
        return tuttiReduceScatterV(in, out, sizes, NULL, tuttiFloat32, tuttiSum, comm, NULL);
    case 11: return tuttiAllReduce(in, out, count, tuttiFloat16, tuttiAvg, comm, NULL);
    case 12: return pass_on(member, count);
    case 13: return exchange(member, count);
    case 14:
        return tuttiGatherV(in, sizes[member->rank], out, sizes, NULL, tuttiFloat32, 3, comm, NULL);
    case 15:
        return tuttiScatterV(in, sizes, NULL, out, sizes[member->rank], tuttiFloat32, 0, comm,
                             NULL);
    case 16: return tuttiScan(in, out, count, tuttiFloat32, tuttiSum, comm, NULL);
    case 17: return tuttiExclusiveScan(in, out, count, tuttiFloat32, tuttiSum, comm, NULL);
    default: return tuttiAllReduce(in, out, count, tuttiInt32, tuttiAvg, comm, NULL);
    }
}

enum { CALLS = 19 };

static const char *const names[CALLS] = {
    "all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all", "gather",
    "scatter", "barrier", "all-gather-v", "reduce-scatter-v", "average of float16",
    "message", "group of four messages", "gather-v", "scatter-v", "scan", "exclusive scan",
    "average of int32"};

static void repeat(struct member *member)
{
    static const size_t counts[] = {1, 1000, MOST};

    for (int which = 0; which < CALLS; which++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            long before;

            for (int turn = 0; turn < 2; turn++)
                EXPECT_OK(member, call(member, which, counts[i]));
            member_meet(member);
            before = atomic_load(&allocations);
            member_meet(member);
            for (int turn = 0; turn < 5; turn++)
                EXPECT_OK(member, call(member, which, counts[i]));
            member_meet(member);
            if (atomic_load(&allocations) != before)
                member_complain(member, "%s of %zu allocates %ld times in five calls",
                                names[which], counts[i], atomic_load(&allocations) - before);
            member_meet(member);
        }
}

static void a_repeated_call_allocates_nothing(void **state)
{
    long before = atomic_load(&allocations);
    void *volatile block;

    (void)state;
    block = malloc(1); /* an optimizer may remove a value that is not used */
    free(block);
    assert_true(atomic_load(&allocations) > before);
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        world_run(launch, RANKS, repeat, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_repeated_call_allocates_nothing)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
