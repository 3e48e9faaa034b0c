/* SPDX-License-Identifier: Apache-2.0
 * One rank passes wrong device memory or makes other mistakes. Each is refused, and nothing is
 * lost. Ranks that wait long report it. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = 100 };

/* By kernels, and through the host where there are none. */
static const char *const ways[2][5] = {
    {"TUTTI_WAIT_WARN_MS", "30", NULL},
    {"TUTTI_WAIT_WARN_MS", "30", "TUTTI_CUDA_KERNELS", "/dev/null", NULL}};

static void prepare(struct rank *rank)
{
    int32_t numbers[COUNT];

    for (int i = 0; i < COUNT; i++)
        numbers[i] = rank->seat->rank + i;
    upload(rank, numbers, sizeof numbers);
}

/* Checks the sum of the inputs of all ranks. */
static tuttiResult_t check_sum(struct rank *rank)
{
    int32_t numbers[COUNT];

    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        if (numbers[i] != 3 + NRANKS * i)
            return tuttiInternalError;
    return tuttiSuccess;
}

static tuttiResult_t reduce(struct rank *rank)
{
    return tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiSum,
                          rank->seat->comm, NULL);
}

static tuttiResult_t sum(struct rank *rank)
{
    tuttiResult_t result;

    prepare(rank);
    result = reduce(rank);
    return result == tuttiSuccess ? check_sum(rank) : result;
}

static tuttiResult_t group_of_own(struct rank *rank, bool sends, size_t received)
{
    int me = rank->seat->rank;
    tuttiComm_t comm = rank->seat->comm;

    tuttiGroupStart();
    if (sends)
        tuttiSend(rank->numbers, 10, tuttiInt32, me, comm, NULL);
    if (received > 0)
        tuttiRecv(rank->numbers + 10, received, tuttiInt32, me, comm, NULL);
    return tuttiGroupEnd();
}

/* Messages that cannot end are refused, and the others arrive. */
static tuttiResult_t send_to_oneself(struct rank *rank)
{
    int me = rank->seat->rank;
    tuttiComm_t comm = rank->seat->comm;
    int32_t numbers[20];

    prepare(rank);
    if (tuttiSend(rank->numbers, 10, tuttiInt32, me, comm, NULL) != tuttiInvalidUsage ||
        tuttiRecv(rank->numbers, 10, tuttiInt32, me, comm, NULL) != tuttiInvalidUsage ||
        group_of_own(rank, true, 0) != tuttiInvalidUsage ||
        group_of_own(rank, false, 10) != tuttiInvalidUsage ||
        group_of_own(rank, true, 9) != tuttiInvalidUsage ||
        strstr(tuttiGetLastError(NULL), "sent as send/recv(count 10, int32)") == NULL ||
        group_of_own(rank, true, 10) != tuttiSuccess)
        return tuttiInternalError;
    must(driver()->copy((uintptr_t)numbers, (uintptr_t)rank->numbers, sizeof numbers));
    return memcmp(numbers, numbers + 10, 10 * sizeof *numbers) == 0 ? sum(rank)
                                                                    : tuttiInternalError;
}

static tuttiResult_t destroy_in_a_group(struct rank *rank)
{
    tuttiComm_t comm = rank->seat->comm;

    prepare(rank);
    tuttiGroupStart();
    reduce(rank);
    if (tuttiCommDestroy(comm) != tuttiInvalidUsage ||
        strstr(tuttiGetLastError(NULL), "holds 1 call on rank") == NULL ||
        strstr(tuttiGetLastError(NULL), "allreduce(count 100, int32, sum)") == NULL)
        return tuttiInternalError;
    return tuttiGroupEnd() == tuttiSuccess ? check_sum(rank) : tuttiInternalError;
}

static void ones_own_mistakes_with_device_memory_are_refused(void **state)
{
    static tuttiResult_t (*const acts[])(struct rank *rank) = {send_to_oneself,
                                                               destroy_in_a_group};

    (void)state;
    for (size_t act = 0; act < sizeof acts / sizeof *acts; act++)
        for (int number = 0; number < 4; number++) {
            const struct script script = {acts[act], 0, COUNT, NULL};

            play_aloud(&script, number % 2 == 1, ways[number / 2]);
        }
}

/* Tests the report of a wait. With kernels each of two callers reports it. Through the host, the
 * thread that runs the calls there knows the rank. */
static const char *const phrases[2] = {"has been waiting for its calls on device memory",
                                       "has been waiting for rank 2"};

/* Rank 2 calls when the others have said that they wait, in the way that the script names. */
static tuttiResult_t come_late(struct rank *rank)
{
    uint32_t way = script_of(rank)->victim;
    static char text[65536];

    for (int i = 0; rank->seat->rank == 2 && i < 20000; i++) {
        ssize_t length = pread(STDERR_FILENO, text, sizeof text - 1, 0);

        text[length > 0 ? length : 0] = '\0';
        if (count_lines_with(text, phrases[way]) >= 2)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return sum(rank);
}

static void a_long_wait_for_device_memory_is_told(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < 2; way++) {
        const struct script script = {come_late, way, COUNT, NULL};
        const char *said = play_aloud(&script, false, ways[way]);

        if (count_lines_with(said, phrases[way]) < 2)
            fail_msg("%s", said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ones_own_mistakes_with_device_memory_are_refused),
        cmocka_unit_test(a_long_wait_for_device_memory_is_told),
    };

    return cmocka_run_group_tests_name("usage of device memory", tests, NULL, NULL);
}
