/* SPDX-License-Identifier: Apache-2.0
 * Turns calls into works for kernels, and tells which protocols can run a call. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kind of a work --------------------------------------------------------------------- */

uint64_t tutti_cuda_largest_send(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    const size_t *counts = call->output_counts ? call->output_counts : call->input_counts;
    uint64_t most = call->count;

    if (tutti_call_has_pairs(call))
        return UINT64_MAX;
    for (int rank = 0; counts != NULL && rank < gpu->args.nranks; rank++)
        most = counts[rank] > most ? counts[rank] : most;
    /* No element has more than 16 bytes, so the product does not overflow. */
    return most > UINT64_MAX / 16 ? UINT64_MAX : most * tutti_type_size(call->type);
}

/* True if lines are whole between all pairs of ranks that exchange data in this call. */
static bool has_whole_lines(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    if (tutti_collective_has_root(call->collective))
        return (gpu->whole_lines >> call->root & 1) != 0;
    return gpu->whole_lines == UINT64_MAX >> (64 - gpu->args.nranks);
}

uint32_t tutti_cuda_protocols(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    uint64_t bytes = tutti_cuda_largest_send(gpu, call);
    uint32_t protocols = 1u << TUTTI_PROTOCOL_STEPS | 1u << TUTTI_PROTOCOL_DIRECT;

    if (gpu->spans_hosts)
        return 1u << TUTTI_PROTOCOL_STEPS;
    if (tutti_cuda_copy_serves(gpu, call))
        protocols |= 1u << TUTTI_PROTOCOL_COPIES;
    /* Kernels with lines copy the result of a rank that combines nothing. */
    if (tutti_call_makes_truth_somewhere(call, gpu->args.nranks))
        return protocols;
    if (bytes <= TUTTI_KERNEL_LL_CAPACITY(&gpu->grid.layout))
        protocols |= 1u << TUTTI_PROTOCOL_LL;
    if (bytes <= TUTTI_KERNEL_LL128_CAPACITY(&gpu->grid.layout) && has_whole_lines(gpu, call))
        protocols |= 1u << TUTTI_PROTOCOL_LL128;
    return protocols;
}

/* Returns the kind of the work that runs a collective by a protocol. */
static enum tutti_kernel_work_kind kind_of(enum tutti_protocol protocol)
{
    switch (protocol) {
    case TUTTI_PROTOCOL_LL: return TUTTI_KERNEL_WORK_LL;
    case TUTTI_PROTOCOL_LL128: return TUTTI_KERNEL_WORK_LL128;
    case TUTTI_PROTOCOL_STEPS: return TUTTI_KERNEL_WORK_STEPS;
    default: return TUTTI_KERNEL_WORK_DIRECT;
    }
}

void tutti_cuda_log_call(struct tutti_cuda_gpu *gpu, const struct tutti_call *call,
                         const char *format, ...)
{
    enum tutti_log_level level = TUTTI_LOG_TRACE;
    char how[120];
    va_list args;

    if (gpu->args.rank != 0 || !tutti_log_is_on(TUTTI_LOG_INFO))
        return;
    if (tutti_call_is_new_size(&gpu->logged_sizes[call->collective],
                               call->count * tutti_type_size(call->type)))
        level = TUTTI_LOG_INFO;
    va_start(args, format);
    vsnprintf(how, sizeof how, format, args);
    va_end(args);
    tutti_log(level, "%s of %zu elements %s", tutti_collective_name(call->collective), call->count,
              how);
}

/* ---- the members of a work ------------------------------------------------------------------ */

/* Copies counts and displacements into memory that kernels read. Packed blocks get displacements
 * too. */
static int lay_blocks(struct tutti_cuda_gpu *gpu, size_t count, const size_t *counts,
                      const size_t *displs, bool is_captured,
                      struct tutti_kernel_blocks *ret_blocks)
{
    size_t nranks = (size_t)gpu->args.nranks;
    uint64_t *copy, at = 0;
    void *bytes;

    *ret_blocks = (struct tutti_kernel_blocks){.count = count};
    if (counts == NULL)
        return TUTTI_OK;
    TUTTI_TRY(tutti_cuda_slab_take(gpu, 2 * nranks * sizeof *copy, is_captured, &bytes));
    copy = bytes;
    for (size_t rank = 0; rank < nranks; rank++) {
        copy[rank] = counts[rank];
        copy[nranks + rank] = displs ? displs[rank] : at;
        at += counts[rank];
    }
    ret_blocks->counts = copy;
    ret_blocks->displs = copy + nranks;
    return TUTTI_OK;
}

/* Copies the header into the work, so that kernels can compare it with those of other ranks. */
static void copy_header(const struct tutti_header *header, struct tutti_kernel_work *work)
{
    _Static_assert(sizeof header->signature == sizeof work->signature, "two words");
    memcpy(work->signature, &header->signature, sizeof work->signature);
    work->chain = header->chain;
    work->number = header->sequence;
}

/* Gives the work its program, with the device memory that it takes. */
static int set_program(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_stored *stored,
                       struct tutti_kernel_work *work)
{
    size_t copies_bytes = stored->is_on_host
                              ? tutti_cuda_program_copies_bytes(&gpu->grid, stored->image_bytes)
                              : 0;

    work->program = stored->image;
    work->program_bytes = stored->image_bytes;
    TUTTI_TRY(tutti_cuda_scratch_take(gpu, copies_bytes + stored->scratch_bytes, &work->scratch));
    work->copies = copies_bytes > 0 ? work->scratch : NULL;
    if (copies_bytes > 0)
        work->scratch += copies_bytes;
    return TUTTI_OK;
}

int tutti_cuda_work_fill(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *item,
                         bool is_captured, struct tutti_kernel_work *ret_work)
{
    const struct tutti_call *call = item->call;
    size_t input_bytes, output_bytes;
    struct tutti_kernel_work work = {
        .kind = (uint8_t)kind_of(item->protocol),
        .collective = (uint8_t)call->collective,
        .type = (uint8_t)call->type,
        .op = (uint8_t)call->op,
        .is_premultiplied = call->is_premultiplied,
        .is_average = call->is_average,
        .has_pairs = tutti_call_has_pairs(call),
        .root = call->root,
        .input = call->input,
        .output = call->output,
        .scalar_address = call->scalar_address,
    };

    tutti_assert((item->protocol == TUTTI_PROTOCOL_STEPS) == (item->program.image != NULL));
    if (item->program.image != NULL)
        TUTTI_TRY(set_program(gpu, &item->program, &work));
    memcpy(&work.scalar, call->scalar, sizeof work.scalar);
    tutti_call_buffer_bytes(call, gpu->args.nranks, gpu->args.rank, &input_bytes, &output_bytes);
    tutti_cuda_locate(gpu, call->input, input_bytes, &work.input_map, &work.input_offset);
    tutti_cuda_locate(gpu, call->output, output_bytes, &work.output_map, &work.output_offset);
    TUTTI_TRY(lay_blocks(gpu, call->count, call->input_counts, call->input_displs, is_captured,
                         &work.in));
    TUTTI_TRY(lay_blocks(gpu, call->count, call->output_counts, call->output_displs, is_captured,
                         &work.out));
    copy_header(item->header, &work);
    *ret_work = work;
    return TUTTI_OK;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Returns the message that an item asks for. */
static struct tutti_cuda_message message_of(const struct tutti_cuda_item *item)
{
    const struct tutti_call *call = item->call;
    bool sends = call->kind == TUTTI_CALL_SEND;

    return (struct tutti_cuda_message){
        .peer = call->root, .sends = sends,
        .address = (uint64_t)(uintptr_t)(sends ? call->input : call->output),
        .size_bytes = call->count * tutti_type_size(call->type), .header = *item->header};
}

/* Encodes messages into memory that kernels read, and fills in the work that runs them. */
static int encode(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_message *messages,
                  size_t count, bool is_captured, struct tutti_kernel_work *work)
{
    struct tutti_cuda_program_image image;
    struct tutti_cuda_stored stored;
    int rc;

    TUTTI_TRY(tutti_cuda_messages_encode(messages, count, gpu->args.rank, &gpu->grid, &image));
    stored = (struct tutti_cuda_stored){.image_bytes = image.size_bytes,
                                        .scratch_bytes = image.scratch_bytes, .is_on_host = true};
    rc = tutti_cuda_store_for_launch(gpu, image.bytes, image.size_bytes, is_captured,
                                     &stored.image);
    if (rc == TUTTI_OK) {
        *work = (struct tutti_kernel_work){.kind = TUTTI_KERNEL_WORK_MESSAGES};
        copy_header(&messages[0].header, work);
        rc = set_program(gpu, &stored, work);
    }
    tutti_cuda_program_image_fini(&image);
    return rc;
}

int tutti_cuda_work_fill_messages(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *items,
                                  size_t count, bool is_captured,
                                  struct tutti_kernel_work *ret_work)
{
    struct tutti_cuda_message *messages = malloc(count * sizeof *messages);
    size_t nmessages = 0;
    int rc;

    if (messages == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu messages", count);
    for (size_t i = 0; i < count; i++)
        if (tutti_cuda_is_message(&items[i]))
            messages[nmessages++] = message_of(&items[i]);
    rc = encode(gpu, messages, nmessages, is_captured, ret_work);
    free(messages);
    return rc;
}
