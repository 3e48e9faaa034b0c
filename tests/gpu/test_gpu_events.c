/* SPDX-License-Identifier: Apache-2.0
 * Calls that follow one another on a stream wait for no event. On another stream they do. */
#include "gpu/ranks.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { COUNT = 600, CALLS = 5 };

static struct tutti_cu_stream *make_stream(void)
{
    struct tutti_cu_stream *stream;

    must(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    return stream;
}

static tuttiResult_t reduce_on(struct rank *rank, struct tutti_cu_stream *stream)
{
    return tuttiAllReduce(rank->numbers, rank->numbers, COUNT, tuttiInt32, tuttiMax,
                          rank->seat->comm, (tuttiStream_t)(void *)stream);
}

/* In this test the driver fails all waits of streams for events. The stream of the first calls is
 * destroyed, and the next one may have its address, but it is another stream. */
static tuttiResult_t stay_on_a_stream(struct rank *rank)
{
    struct tutti_cu_stream *stream = make_stream();
    tuttiResult_t result = tuttiSuccess;

    for (int i = 0; i < CALLS && result == tuttiSuccess; i++)
        result = reduce_on(rank, stream);
    if (result != tuttiSuccess)
        return result;
    must(driver()->stream_synchronize(stream));
    must(driver()->stream_destroy(stream));
    /* The rank that fails first ends the calls of the others. */
    result = reduce_on(rank, make_stream());
    return result == tuttiUnhandledCudaError || result == tuttiRemoteError ? tuttiSuccess
                                                                            : tuttiInternalError;
}

static void calls_on_one_stream_wait_for_no_event(void **state)
{
    static const char *const environment[] = {"TUTTI_SIM_CUDA_FAULT", "cuStreamWaitEvent:999",
                                              NULL};
    const struct script script = {stay_on_a_stream, 0, COUNT, NULL};

    (void)state;
    play_aloud(&script, true, environment);
    play_aloud(&script, false, environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_on_one_stream_wait_for_no_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
