/* SPDX-License-Identifier: Apache-2.0
 * Tests which memory of GPUs the library allocates, which it shares with other ranks, and which it
 * refuses. */
#include "gpu/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 3000 };

static const struct place apart = {LAUNCH_PROCESSES, 3, 2, -1};
static const struct place together = {LAUNCH_THREADS, 3, 2, -1};
static const struct place with_cpu = {LAUNCH_THREADS, 3, 2, 1};

static void sum(struct member *member, int32_t *numbers, size_t count, const char *what)
{
    numbers_write(member, numbers, count, member->rank + 1, 1);
    EXPECT_OK(member, tuttiAllReduce(numbers, numbers, count, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
    numbers_expect(member, numbers, count, triangle(member->nranks), member->nranks, what);
}

/* ---- memory that the library gives ----------------------------------------------------------- */

static void look_at_memory(struct member *member)
{
    unsigned type = 0;
    int device = -1;
    int attributes[] = {TUTTI_CU_POINTER_MEMORY_TYPE, TUTTI_CU_POINTER_DEVICE_ORDINAL};
    void *values[] = {&type, &device};
    void *memory = NULL;

    EXPECT_OK(member, tuttiMemAlloc(&memory, COUNT * sizeof(int32_t)));
    EXPECT(member, gpus_driver()->pointer_attributes(2, attributes, values,
                                                     (tutti_cu_address)(uintptr_t)memory) ==
                       TUTTI_CU_SUCCESS);
    EXPECT(member, type == TUTTI_CU_MEMORY_DEVICE);
    EXPECT(member, device == gpus_device(member));
    numbers_expect(member, memory, COUNT, 0, 0, "fresh memory");
    EXPECT_OK(member, tuttiMemFree(memory));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiMemFree(memory));
}

static void memory_of_the_library_is_of_the_current_device_and_zeroed(void **state)
{
    (void)state;
    at_place(&together, false, look_at_memory);
}

/* Each rank at its own times, so that what peers have mapped is of all ages. */
static void come_and_go(struct member *member)
{
    void *memory[2] = {NULL, NULL};

    for (int round = 0; round < 60 && !member_is_unhappy(member); round++) {
        int which = round % 2;

        if (round % (member->rank + 3) == 0 || memory[which] == NULL) {
            EXPECT_OK(member, tuttiMemFree(memory[which]));
            EXPECT_OK(member, tuttiMemAlloc(&memory[which], (size_t)(1 + round) * COUNT *
                                                                sizeof(int32_t)));
        }
        sum(member, memory[which], COUNT, "memory that comes and goes");
    }
    for (int i = 0; i < 2; i++)
        EXPECT_OK(member, tuttiMemFree(memory[i]));
}

static void memory_may_come_and_go_between_calls(void **state)
{
    (void)state;
    at_place(&apart, true, come_and_go);
    at_place(&together, true, come_and_go);
}

/* ---- memory that callers register ------------------------------------------------------------ */

static void sum_often(struct member *member, int32_t *numbers, int times, const char *what)
{
    for (int i = 0; i < times && !member_is_unhappy(member); i++)
        sum(member, numbers, COUNT, what);
}

/* The second handle is of the same allocation. Freeing waits for the device, so for
 * all ranks. */
static void let_others_in(struct member *member)
{
    tutti_cu_address address = 0;
    void *handles[2] = {NULL, NULL};
    int32_t *numbers;

    for (int age = 0; age < 2; age++) {
        EXPECT(member, gpus_driver()->memory_alloc(&address, 2 * COUNT * sizeof *numbers) ==
                           TUTTI_CU_SUCCESS);
        numbers = (int32_t *)(uintptr_t)address;
        sum_often(member, numbers, 5, "before it is registered");
        for (int i = 0; i < 2; i++)
            EXPECT_OK(member, tuttiCommRegister(member->comm, numbers + i * COUNT,
                                                COUNT * sizeof *numbers, &handles[i]));
        sum_often(member, numbers + COUNT, 20, "registered");
        EXPECT_OK(member, tuttiCommDeregister(member->comm, handles[0]));
        sum_often(member, numbers, 5, "registered by another handle");
        EXPECT_OK(member, tuttiCommDeregister(member->comm, handles[1]));
        EXPECT_OK(member, tuttiCommDeregister(member->comm, NULL));
        sum_often(member, numbers, 5, "no more registered");
        member_meet(member);
        EXPECT(member, gpus_driver()->memory_free(address) == TUTTI_CU_SUCCESS);
        member_meet(member);
    }
}

static void callers_memory_may_be_registered_and_taken_back(void **state)
{
    (void)state;
    at_place(&apart, true, let_others_in);
    at_place(&together, true, let_others_in);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect_text(struct member *member, const char *wanted)
{
    if (strstr(tuttiGetLastError(NULL), wanted) == NULL)
        member_complain(member, "\"%s\" does not say \"%s\"", tuttiGetLastError(NULL), wanted);
}

static void pass_two_sides(struct member *member)
{
    int32_t *device = numbers_make(member, COUNT, 1, 0), *host = calloc(COUNT, sizeof *host);
    tuttiStream_t stream = NULL;

    if (gpus_has(member)) {
        EXPECT_RESULT(member, tuttiInvalidArgument,
                      tuttiAllReduce(device, host, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
        expect_text(member, "device memory");
        EXPECT_RESULT(member, tuttiInvalidArgument,
                      tuttiAllReduce(host, device, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     NULL));
        EXPECT_OK(member, tuttiHostStreamCreate(&stream));
        EXPECT_RESULT(member, tuttiInvalidArgument,
                      tuttiAllReduce(device, device, COUNT, tuttiInt32, tuttiSum, member->comm,
                                     stream));
        expect_text(member, "CUDA stream");
        EXPECT_OK(member, tuttiHostStreamDestroy(stream));
    }
    sum(member, device, COUNT, "after what was refused");
    member_meet(member);
    free(host);
    numbers_drop(member, device, COUNT);
}

static void buffers_on_two_sides_and_streams_of_the_other_are_refused(void **state)
{
    (void)state;
    at_place(&together, true, pass_two_sides);
    at_place(&apart, true, pass_two_sides);
    at_place(&with_cpu, true, pass_two_sides);
}

/* A context is current, but the communicator was told not to use it. */
static void stay_on_the_cpu(struct member *member)
{
    int32_t *device = numbers_make(member, COUNT, 1, 0), host[4] = {1, 1, 1, 1};
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;

    config.device = -1;
    member_share_id(member, &id);
    if (!EXPECT_OK(member, tuttiCommInitRankConfig(&member->comm, member->nranks, id, member->rank,
                                                   &config)))
        return;
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiAllReduce(device, device, COUNT, tuttiInt32, tuttiSum, member->comm, NULL));
    expect_text(member, "config.device");
    EXPECT_OK(member, tuttiAllReduce(host, host, 4, tuttiInt32, tuttiSum, member->comm, NULL));
    EXPECT(member, host[3] == member->nranks);
    EXPECT_OK(member, tuttiCommDestroy(member->comm));
    numbers_drop(member, device, COUNT);
}

static void ranks_on_the_cpu_refuse_device_memory(void **state)
{
    (void)state;
    at_place(&together, false, stay_on_the_cpu);
}

static void ask_for_too_much(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;

    config.device = 3;
    EXPECT_OK(member, tuttiGetUniqueId(&id)); /* a shared one would be spent by the first of them */
    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiCommInitRankConfig(&member->comm, member->nranks, id, member->rank,
                                          &config));
    expect_text(member, "config.device is 3");
    EXPECT(member, member->comm == NULL);
}

static void a_device_that_is_not_there_is_refused(void **state)
{
    (void)state;
    at_place(&together, false, ask_for_too_much);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_the_library_is_of_the_current_device_and_zeroed),
        cmocka_unit_test(memory_may_come_and_go_between_calls),
        cmocka_unit_test(callers_memory_may_be_registered_and_taken_back),
        cmocka_unit_test(buffers_on_two_sides_and_streams_of_the_other_are_refused),
        cmocka_unit_test(ranks_on_the_cpu_refuse_device_memory),
        cmocka_unit_test(a_device_that_is_not_there_is_refused),
    };

    return cmocka_run_group_tests_name("memory of GPUs", tests, NULL, NULL);
}
