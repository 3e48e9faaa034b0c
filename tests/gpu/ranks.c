/* SPDX-License-Identifier: Apache-2.0
 * Runs crews on GPUs. */
#include "gpu/ranks.h"

#include "support/hosts.h"
#include "support/stderr_text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

const struct script *script_of(const struct rank *rank)
{
    return rank->seat->crew->context;
}

const struct tutti_cu_driver *driver(void)
{
    const struct tutti_cu_driver *cuda = tutti_cu_get(true);

    if (cuda == NULL)
        _exit(4);
    return cuda;
}

void must(int code)
{
    if (code == TUTTI_CU_SUCCESS)
        return;
    fprintf(stderr, "the driver: %s\n", tutti_cu_error(driver(), code));
    _exit(5);
}

void upload(const struct rank *rank, const void *from, size_t bytes)
{
    must(driver()->copy((uintptr_t)rank->numbers, (uintptr_t)from, bytes));
    must(driver()->stream_synchronize(TUTTI_CU_STREAM_LEGACY));
}

static void settle_in(struct rank *rank)
{
    struct tutti_cu_context *context;
    tutti_cu_address numbers;
    tutti_cu_device device;
    int count;

    must(driver()->device_count(&count));
    must(driver()->device(&device, rank->seat->rank % count));
    must(driver()->primary_retain(&context, device));
    must(driver()->context_set(context));
    must(driver()->memory_alloc(&numbers, script_of(rank)->count * sizeof *rank->numbers));
    rank->numbers = (int32_t *)(uintptr_t)numbers;
}

void meet(struct crew_seat *seat, int mark)
{
    crew_add(&seat->board->marks[mark]);
    if (!crew_await(&seat->board->marks[mark], (uint32_t)seat->nranks))
        _exit(6);
}

/* Aborts once all ranks have formed, and those that call have called. */
static void *give_up(void *argument)
{
    struct crew_seat *seat = argument;

    if (!crew_await(&seat->board->marks[MARK_CALLED], NRANKS) ||
        tuttiCommAbort(seat->comm) != tuttiSuccess)
        _exit(8);
    return NULL;
}

tuttiResult_t abort_meanwhile(struct rank *rank,
                              tuttiResult_t (*enqueue)(struct rank *rank, tuttiStream_t stream),
                              tuttiResult_t (*act)(struct rank *rank))
{
    struct crew_seat *seat = rank->seat;
    struct tutti_cu_stream *stream = NULL;
    tuttiResult_t result = tuttiSuccess;
    pthread_t thread;

    if (seat->rank == 0 && pthread_create(&thread, NULL, give_up, seat) != 0)
        _exit(8);
    if (seat->rank != 2) {
        must(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
        result = enqueue(rank, (tuttiStream_t)(void *)stream);
    }
    crew_add(&seat->board->marks[MARK_CALLED]);
    if (seat->rank != 2)
        must(driver()->stream_synchronize(stream));
    if (seat->rank == 0)
        pthread_join(thread, NULL);
    meet(seat, MARK_ENDED);
    return result != tuttiSuccess ? result : act(rank);
}

tuttiResult_t form_and_act(struct crew_seat *seat)
{
    struct rank rank = {.seat = seat};
    const struct script *script = script_of(&rank);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiResult_t result;

    hosts_choose(seat->rank, seat->nranks);
    if (script->before != NULL)
        script->before(&rank);
    settle_in(&rank);
    config.initTimeoutMs = 20000;
    config.timeoutMs = seat->crew->timeout_ms;
    result = tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                     &config);
    return result != tuttiSuccess ? result : script->act(&rank);
}

struct crew_board *play(const struct script *script, bool is_threads, int timeout_ms,
                        const char *const *environment)
{
    return crew_run(&(struct crew){.nranks = NRANKS, .is_threads = is_threads, .forms_itself = true,
                                   .environment = environment, .timeout_ms = timeout_ms,
                                   .run = form_and_act, .context = script});
}

void expect_report(const struct crew_board *board, int rank, tuttiResult_t wanted, const char *said)
{
    const struct crew_report *report = &board->reports[rank];

    if (report->result != wanted || strstr(report->text, said) == NULL)
        fail_msg("rank %d got %s, not %s, or does not say \"%s\": %s", rank,
                 tuttiGetErrorString(report->result), tuttiGetErrorString(wanted), said,
                 report->text);
}

const char *play_aloud(const struct script *script, bool is_threads, const char *const *environment)
{
    struct crew_board *board;
    const char *said;

    stderr_text_begin();
    board = play(script, is_threads, LONG_MS, environment);
    said = stderr_text_end();
    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d: %s: %s", rank, board->reports[rank].text, said);
    crew_clear(board);
    return said;
}

void expect_loss(const struct crew_board *board)
{
    expect_report(board, 1, tuttiUnhandledCudaError, "GPU 1");
    for (int rank = 0; rank < NRANKS; rank += 2)
        if (board->reports[rank].result != tuttiRemoteError &&
            board->reports[rank].result != tuttiUnhandledCudaError)
            fail_msg("rank %d got %s: %s", rank, tuttiGetErrorString(board->reports[rank].result),
                     board->reports[rank].text);
}
