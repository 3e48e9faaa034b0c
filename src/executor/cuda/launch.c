/* SPDX-License-Identifier: Apache-2.0
 * Enqueues calls. The calls of a group become one launch, so that they pay its cost only once. The
 * launches of a rank run in the order of its calls, also on different streams (streams.c). */
#include "executor/cuda/private.h"

#include "base/atomic.h"
#include "base/log.h"
#include "base/round.h"
#include "executor/cuda/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A launch gets one block for each BLOCK_BYTES, and one thread for each THREAD_BYTES. */
enum { BLOCK_BYTES = 16 << 10, THREAD_BYTES = 16 };
/* The number of threads of a block is a multiple of this. */
enum { WARP_THREADS = 32 };

/* ---- the size of a launch ------------------------------------------------------------------- */

/* Returns the sum of an array of counts per rank; 0 if `counts` is NULL. */
static uint64_t sum_of(const struct tutti_cuda_gpu *gpu, const size_t *counts)
{
    uint64_t sum = 0;

    for (int rank = 0; counts != NULL && rank < gpu->args.nranks; rank++)
        sum += counts[rank];
    return sum;
}

/* Returns an upper bound of the bytes of this rank's larger buffer. */
static uint64_t bytes_of(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    bool is_message = tutti_call_is_message(call);
    uint64_t inputs = is_message ? 1 : tutti_input_blocks(call->collective,
                                                          (uint32_t)gpu->args.nranks);
    uint64_t outputs = is_message ? 1 : tutti_output_blocks(call->collective,
                                                            (uint32_t)gpu->args.nranks);
    uint64_t blocks = inputs > outputs ? inputs : outputs;
    uint64_t sent = sum_of(gpu, call->input_counts), received = sum_of(gpu, call->output_counts);
    uint64_t elements = call->count * blocks;

    if (tutti_call_is_vector(call)) {
        elements = sent > received ? sent : received;
        elements = elements > call->count ? elements : call->count;
    }
    return elements * tutti_type_size(call->type);
}

/* Chooses the numbers of blocks, at most `most_blocks`, and of threads by the largest of the
 * calls. */
static void size_launch(const struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items,
                        size_t count, uint32_t most_blocks, uint32_t *ret_blocks,
                        uint32_t *ret_threads)
{
    uint64_t bytes = 0, blocks, threads;

    for (size_t i = 0; i < count; i++) {
        uint64_t more = bytes_of(gpu, items[i].call);

        bytes = more > bytes ? more : bytes;
    }
    blocks = tutti_divide_up(bytes, BLOCK_BYTES);
    threads = tutti_round_up(bytes / THREAD_BYTES, WARP_THREADS);
    blocks = blocks > most_blocks ? most_blocks : blocks;
    *ret_blocks = blocks < 1 ? 1 : (uint32_t)blocks;
    /* Kernels need at least a thread for each peer. */
    if (threads < (uint64_t)gpu->args.nranks)
        threads = tutti_round_up((size_t)gpu->args.nranks, WARP_THREADS);
    *ret_threads = threads > gpu->threads ? gpu->threads : (uint32_t)threads;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* All messages of a group become one work, at the place of the first message. Each collective is a
 * work of its own. */
static int fill_works(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items, size_t count,
                      bool is_captured, struct tutti_kernel_work *works, uint32_t *ret_nworks)
{
    bool has_messages = false;
    uint32_t nworks = 0;

    for (size_t i = 0; i < count; i++) {
        struct tutti_kernel_work *work = &works[nworks];

        if (tutti_cuda_is_message(&items[i]) && has_messages)
            continue;
        nworks++;
        if (tutti_cuda_is_message(&items[i])) {
            TUTTI_TRY(tutti_cuda_work_fill_messages(gpu, items, count, is_captured, work));
            has_messages = true;
            continue;
        }
        TUTTI_TRY(tutti_cuda_work_fill(gpu, &items[i], is_captured, work));
    }
    *ret_nworks = nworks;
    return TUTTI_OK;
}

/* Fills in the works of a launch. The first work is a part of the kernel's argument. The other
 * works are in memory that the kernel reads. */
static int fill_launch(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items,
                       size_t count, bool is_captured, struct tutti_kernel_launch *launch)
{
    struct tutti_kernel_work *works;
    void *bytes;

    if (count == 1)
        return fill_works(gpu, items, 1, is_captured, &launch->first, &launch->nworks);
    TUTTI_TRY(tutti_cuda_slab_take(gpu, count * sizeof *works, is_captured, &bytes));
    works = bytes;
    TUTTI_TRY(fill_works(gpu, items, count, is_captured, works, &launch->nworks));
    launch->first = works[0];
    launch->more = works + 1;
    return TUTTI_OK;
}

/* Returns the smallest kernel that can run the works of a launch. */
static enum tutti_kernel_name kernel_for(const struct tutti_kernel_launch *launch)
{
    if (launch->nworks > 1)
        return TUTTI_KERNEL_GROUP;
    switch (launch->first.kind) {
    case TUTTI_KERNEL_WORK_LL:
    case TUTTI_KERNEL_WORK_LL128: return TUTTI_KERNEL_SMALL;
    case TUTTI_KERNEL_WORK_DIRECT: return TUTTI_KERNEL_DIRECT;
    default: return TUTTI_KERNEL_GROUP;
    }
}

/* True if a work runs a program. Then all ranks must launch at least the grid's blocks. */
static bool needs_grid(const struct tutti_kernel_launch *launch)
{
    for (uint32_t i = 0; i < launch->nworks; i++) {
        const struct tutti_kernel_work *work = i == 0 ? &launch->first : &launch->more[i - 1];

        if (work->kind == TUTTI_KERNEL_WORK_STEPS || work->kind == TUTTI_KERNEL_WORK_MESSAGES)
            return true;
    }
    return false;
}

/* Fails if another rank that shares this GPU has made the same call on this stream (sharers.c). The
 * kernel of that rank would wait for this rank's kernel, which starts only after it. */
static int check_sharers(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items,
                         size_t count, struct tutti_cu_stream *stream)
{
    for (size_t i = 0; i < count; i++)
        if (!tutti_cuda_is_message(&items[i]))
            TUTTI_TRY(tutti_cuda_sharers_record(gpu, stream, items[i].header->sequence));
    return TUTTI_OK;
}

/* The parameters that all calls of a group share. */
struct launch_options {
    struct tutti_cu_stream *stream;
    uint32_t most_blocks; /* of this rank that run at a time on the stream */
    bool is_captured;
    uint64_t timeout_ns;
};

/* Runs all items by one launch of a kernel. */
static int run_kernel(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items, size_t count,
                      const struct launch_options *options)
{
    struct tutti_kernel_launch launch = {.domain = gpu->domain, .deadline_ns = options->timeout_ns};
    uint32_t blocks, threads;

    if (count == 0)
        return TUTTI_OK;
    TUTTI_TRY(fill_launch(gpu, items, count, options->is_captured, &launch));
    size_launch(gpu, items, count, options->most_blocks, &blocks, &threads);
    if (needs_grid(&launch) && blocks < gpu->grid.nblocks)
        blocks = gpu->grid.nblocks;
    if (blocks > options->most_blocks)
        return tutti_cuda_stream_is_small(gpu, options->stream, blocks);
    TUTTI_TRY(tutti_kernel_module_launch(gpu->kernels, kernel_for(&launch), blocks, threads,
                                         &launch, options->stream));
    return tutti_cuda_slabs_launched(gpu, options->stream);
}

/* Ranks need not group their calls alike. So calls that are left to copy engines must be left to
 * them inside groups too. Such a call splits its group: the calls before it and the calls after it
 * are separate launches. All messages stay in one launch, at the place of the first message. */
static int run_split(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items, size_t count,
                     const struct launch_options *options)
{
    struct tutti_cuda_item *pending = malloc(count * sizeof *pending); /* for the next launch */
    bool has_messages = false;
    size_t npending = 0;
    int rc = TUTTI_OK;

    if (pending == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %zu calls", count);
    for (size_t i = 0; rc == TUTTI_OK && i < count; i++) {
        if (tutti_cuda_is_message(&items[i])) {
            for (size_t k = i; !has_messages && k < count; k++)
                if (tutti_cuda_is_message(&items[k]))
                    pending[npending++] = items[k];
            has_messages = true;
        } else if (items[i].protocol == TUTTI_PROTOCOL_COPIES) {
            rc = run_kernel(gpu, pending, npending, options);
            npending = 0;
            rc = rc != TUTTI_OK ? rc : tutti_cuda_copy_run(gpu, &items[i], options->is_captured,
                                                           options->stream, options->timeout_ns);
        } else {
            pending[npending++] = items[i];
        }
    }
    rc = rc != TUTTI_OK ? rc : run_kernel(gpu, pending, npending, options);
    free(pending);
    return rc;
}

int tutti_cuda_run(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items, size_t count,
                   struct tutti_cu_stream *stream, bool is_captured, uint64_t timeout_ns)
{
    const uint64_t number = tutti_cuda_stream_look(gpu, stream);
    struct launch_options options = {.stream = stream, .most_blocks = gpu->stream.blocks,
                                     .is_captured = is_captured, .timeout_ns = timeout_ns};
    int rc;

    tutti_assert(gpu->has_domain && count > 0);
    if (!is_captured) {
        TUTTI_TRY(check_sharers(gpu, items, count, stream));
        TUTTI_TRY(tutti_cuda_maps_refresh(gpu));
        TUTTI_TRY(tutti_cuda_stream_wait_for_last(gpu, stream, number));
    }
    rc = gpu->copy_bytes == 0 ? run_kernel(gpu, items, count, &options)
                              : run_split(gpu, items, count, &options);
    if (is_captured)
        return rc;
    if (gpu->proxy != NULL)
        tutti_cuda_proxy_wake(gpu->proxy);
    /* A call that fails half-way may have left work on the stream, which must end before the rank's
     * memory is freed. */
    if (rc != TUTTI_OK) {
        tutti_cuda_stream_mark_last(gpu, stream, number);
        return rc;
    }
    return tutti_cuda_stream_set_last(gpu, stream, number);
}

/* ---- results -------------------------------------------------------------------------------- */

/* Writes the signature in a kernel's report as text. */
static const char *format_words(const uint64_t words[2], char text[TUTTI_SIGNATURE_TEXT_BYTES])
{
    struct tutti_signature signature;

    memcpy(&signature, words, sizeof signature);
    return tutti_signature_format(&signature, text);
}

void tutti_cuda_show_counts(struct tutti_cuda_gpu *gpu, uint64_t number, const size_t *counts)
{
    if (gpu->host_domain != NULL)
        tutti_domain_show_counts(gpu->host_domain, TUTTI_DOMAIN_COUNTS_OF_GPU, number, counts);
}

/* Sets the message for another rank that makes a different call. For v-forms, it may be the same
 * call with different counts. If counts are by pair, the count in `theirs` is the number of
 * elements that the other rank sends to this rank. The count in `mine` is the number that this rank
 * expects. */
static int fail_mismatch(const struct tutti_cuda_gpu *gpu)
{
    const struct tutti_kernel_report *report = gpu->report;
    char here[TUTTI_SIGNATURE_TEXT_BYTES], there[TUTTI_SIGNATURE_TEXT_BYTES];
    struct tutti_header mine = {.sequence = report->number};
    struct tutti_signature theirs;
    uint64_t values[2] = {0, 0};
    int rank = (int)report->rank, entry = -1;

    memcpy(&mine.signature, report->mine, sizeof mine.signature);
    memcpy(&theirs, report->theirs, sizeof theirs);
    if (report->number == report->their_number && mine.signature.count != theirs.count &&
        tutti_signature_alike(&mine.signature, &theirs)) {
        if (tutti_signature_has_pairs(&theirs))
            return tutti_pair_mismatch(&theirs, report->number, rank, theirs.count, gpu->args.rank,
                                       mine.signature.count);
        if (tutti_signature_has_hash(&theirs) && gpu->host_domain != NULL)
            entry = tutti_domain_compare_counts(gpu->host_domain, (uint32_t)rank,
                                                TUTTI_DOMAIN_COUNTS_OF_GPU, report->number,
                                                &values[0], &values[1]);
        if (tutti_signature_has_hash(&theirs))
            return tutti_counts_mismatch(&mine, rank, entry, values[0], values[1]);
    }
    return tutti_fail(TUTTI_ERR_USAGE, "rank %d calls %s as number %llu on its GPU, rank %d calls "
                      "%s as number %llu; all ranks must make the same calls in the same order",
                      gpu->args.rank, format_words(report->mine, here),
                      (unsigned long long)report->number, rank, format_words(report->theirs, there),
                      (unsigned long long)report->their_number);
}

/* Turns the kernel's report into a result and a message. */
static int read_report(const struct tutti_cuda_gpu *gpu)
{
    const struct tutti_kernel_report *report = gpu->report;
    char here[TUTTI_SIGNATURE_TEXT_BYTES];
    /* acquire: pairs with the kernel's release, which comes after the rest of the report */
    uint64_t fault = tutti_load_acquire(&report->fault);
    unsigned long long number = report->number;

    switch (fault) {
    case TUTTI_KERNEL_FINE: return TUTTI_OK;
    case TUTTI_KERNEL_ABORTED:
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d, GPU %d: %s, number %llu, was ended while it "
                          "waited for rank %d", gpu->args.rank, gpu->args.device,
                          format_words(report->mine, here), number, (int)report->rank);
    case TUTTI_KERNEL_LATE:
        return tutti_fail(TUTTI_ERR_TIMEOUT, "rank %d, GPU %d: %s, number %llu, has waited too "
                          "long for rank %d; has it called the same operation, on device memory? "
                          "TUTTI_TIMEOUT_MS sets the limit", gpu->args.rank, gpu->args.device,
                          format_words(report->mine, here), number, (int)report->rank);
    case TUTTI_KERNEL_LEFT:
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d, GPU %d: %s, number %llu, waits for rank %d, "
                          "which has destroyed its communicator; every rank must make the same "
                          "calls before that", gpu->args.rank, gpu->args.device,
                          format_words(report->mine, here), number, (int)report->rank);
    case TUTTI_KERNEL_MISMATCH: return fail_mismatch(gpu);
    default:
        return tutti_fail(TUTTI_ERR_INTERNAL,
                          "rank %d, GPU %d: %s, number %llu: the description of a call by rank %d "
                          "is inconsistent, which is a bug of the library",
                          gpu->args.rank, gpu->args.device, format_words(report->mine, here),
                          number, (int)report->rank);
    }
}

int tutti_cuda_check_ended(struct tutti_cuda_gpu *gpu)
{
    int code, mode;

    /* acquire: pairs with the release in tutti_cuda_stream_mark_last; last_event is recorded */
    if (!tutti_load_acquire(&gpu->has_launched))
        return TUTTI_OK;
    TUTTI_TRY(tutti_cuda_enter_relaxed(gpu, &mode));
    code = gpu->cuda->event_query(gpu->last_event);
    tutti_cuda_leave_relaxed(gpu, mode);
    if (code == TUTTI_CU_NOT_READY)
        return TUTTI_AGAIN;
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "running its operations");
}

int tutti_cuda_check(struct tutti_cuda_gpu *gpu)
{
    int rc = tutti_cuda_check_ended(gpu);

    if (gpu->report == NULL || (rc != TUTTI_OK && rc != TUTTI_AGAIN))
        return rc;
    TUTTI_TRY(read_report(gpu));
    return rc;
}

int tutti_cuda_stream(struct tutti_cuda_gpu *gpu, struct tutti_cu_stream **ret_stream)
{
    int code = TUTTI_CU_SUCCESS, mode;

    if (gpu->own_stream == NULL) {
        TUTTI_TRY(tutti_cuda_enter_relaxed(gpu, &mode));
        code = gpu->cuda->stream_create(&gpu->own_stream, TUTTI_CU_STREAM_NON_BLOCKING);
        tutti_cuda_leave_relaxed(gpu, mode);
    }
    if (code != TUTTI_CU_SUCCESS)
        return tutti_cuda_fail(gpu, code, "creating a stream");
    *ret_stream = gpu->own_stream;
    return TUTTI_OK;
}

int tutti_cuda_await_default(struct tutti_cuda_gpu *gpu)
{
    int code, mode;

    TUTTI_TRY(tutti_cuda_enter_relaxed(gpu, &mode));
    code = gpu->cuda->stream_synchronize(TUTTI_CU_STREAM_LEGACY);
    tutti_cuda_leave_relaxed(gpu, mode);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "waiting for the default stream");
}

void tutti_cuda_tell_left(struct tutti_cuda_gpu *gpu, int rank)
{
    if (gpu->report != NULL && !tutti_cuda_is_far(gpu, gpu->args.rank, rank))
        tutti_fetch_or(&gpu->report->left, UINT64_C(1) << rank);
}

void tutti_cuda_abort(struct tutti_cuda_gpu *gpu)
{
    if (gpu->report != NULL)
        /* release: pairs with the polls of kernels in gpu_gives_up, which read nothing else */
        tutti_store_release(&gpu->report->abort, 1);
}
