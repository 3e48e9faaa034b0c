/* SPDX-License-Identifier: Apache-2.0
 * Counts the calls of the driver that an operation makes, so that a new one is noticed. Each costs
 * the host between a tenth of a microsecond and two. */
#include "gpu/numbers.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 1000, TIMES = 10, MOST_CALLS = 12 };

/* Returns how often this thread has called the simulated driver. */
static uint64_t count_calls(void)
{
    void *library = dlopen(getenv("TUTTI_CUDA_LIBRARY"), RTLD_LAZY | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, "cuSimCalls") : NULL;
    uint64_t (*count)(void), ncalls;

    if (found == NULL) {
        fprintf(stderr, "%s does not count calls\n", getenv("TUTTI_CUDA_LIBRARY"));
        abort();
    }
    memcpy(&count, &found, sizeof count);
    ncalls = count();
    dlclose(library);
    return ncalls;
}

static void sum(struct member *member, const int32_t *in, int32_t *out, tuttiStream_t stream)
{
    EXPECT_OK(member, tuttiAllReduce(in, out, COUNT, tuttiInt32, tuttiSum, member->comm, stream));
}

/* A call that repeats on one stream asks what its buffers are (2 calls) and to which allocations
 * they belong (2, with several GPUs), makes the context current and gives it back (2), changes the
 * mode of captures and back (2), asks whether the stream is captured (1) and which stream it is
 * (1), launches (1), and marks its end (1). */
static void repeat_a_call(struct member *member)
{
    int32_t *in = numbers_make(member, COUNT, member->rank, 1);
    int32_t *out = numbers_make(member, COUNT, 0, 0);
    tuttiStream_t stream = numbers_stream(member);
    uint64_t before;

    sum(member, in, out, stream);
    numbers_settle(member, stream);
    member_meet(member);
    before = count_calls();
    for (int i = 0; i < TIMES; i++)
        sum(member, in, out, stream);
    if (getenv("CALLS_SHOWN") != NULL)
        fprintf(stderr, "%.1f calls\n", (double)(count_calls() - before) / TIMES);
    EXPECT(member, count_calls() - before <= TIMES * MOST_CALLS);
    numbers_settle(member, stream);
    numbers_expect(member, out, COUNT, member->nranks * (member->nranks - 1) / 2, member->nranks,
                   "the sum");
    numbers_drop_stream(member, stream);
    numbers_drop(member, in, COUNT);
    numbers_drop(member, out, COUNT);
}

static void an_operation_makes_few_calls(void **state)
{
    (void)state;
    gpus_use(2, -1, GPU_MEMORY_PLAIN);
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        if (launch_is_watched((enum launch)launch))
            world_run((enum launch)launch, 2, repeat_a_call, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_makes_few_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
