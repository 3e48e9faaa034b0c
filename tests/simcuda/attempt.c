/* SPDX-License-Identifier: Apache-2.0 */
#include "simcuda/attempt.h"
#include "device/cpu/cpu.h"
#include "executor/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUARD_BYTES 64

static uint64_t mixed(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Elements that `from` has for `to`. The same in both directions, as calls in place need it. */
static size_t pair_count(const struct attempt_call *call, uint32_t from, uint32_t to)
{
    uint32_t which = 0;

    if (!call->is_vector)
        return call->count;
    if (call->collective == TUTTI_ALLTOALL)
        which = from < to ? from * 64 + to : to * 64 + from;
    else
        which = tutti_output_is_per_rank(call->collective) ? from : to;
    switch (mixed(call->seed + which) % 4) {
    case 0: return 0;
    case 1: return call->count;
    default: return call->count / 2 + which % 2;
    }
}

struct blocks {
    uint32_t n;
    size_t counts[TUTTI_KERNEL_RANKS], firsts[TUTTI_KERNEL_RANKS];
    size_t extent; /* elements in all */
};

static void blocks_of(const struct attempt *attempt, uint32_t rank, bool is_input,
                      struct blocks *ret_blocks)
{
    const struct attempt_call *call = &attempt->call;
    const uint32_t nranks = attempt->domain->nranks;
    struct blocks blocks = {
        .n = is_input ? tutti_input_blocks(call->collective, nranks)
                      : tutti_output_blocks(call->collective, nranks),
    };

    for (uint32_t i = 0; i < blocks.n; i++) {
        const uint32_t other = blocks.n == 1 ? rank : i;

        blocks.counts[i] = is_input ? pair_count(call, rank, other) : pair_count(call, other, rank);
        blocks.firsts[i] = blocks.extent;
        blocks.extent += blocks.counts[i];
        if (call->is_vector && blocks.n > 1) {
            blocks.firsts[i] += rank % 3;
            blocks.extent += rank % 3 + i % 2;
        }
    }
    *ret_blocks = blocks;
}

/* ---- buffers ------------------------------------------------------------------------------- */

static void buffer_init(struct attempt *attempt, uint32_t rank, size_t elements,
                        struct attempt_buffer *ret_buffer)
{
    const struct attempt_call *call = &attempt->call;
    const size_t size = tutti_type_size(call->type);
    struct attempt_buffer buffer = {.bytes = (elements + call->shift) * size + 2 * GUARD_BYTES};

    buffer.base = domain_take(attempt->domain, rank, buffer.bytes);
    buffer.at = buffer.base + GUARD_BYTES + call->shift * size;
    buffer.wanted = malloc(buffer.bytes);
    assert_non_null(buffer.wanted);
    for (size_t i = 0; i < buffer.bytes; i++) {
        const uint64_t seed = call->seed * 1000003 + ((uint64_t)rank << 32);
        /* Some whole elements are zeros, so that logical operations have something to do. */
        const bool is_zero = tutti_op_gives_truth(call->op, call->type) &&
                             mixed(seed + i / 8 + 77) % 4 == 0;

        buffer.base[i] = is_zero ? 0 : (uint8_t)mixed(seed + i);
    }
    memcpy(buffer.wanted, buffer.base, buffer.bytes);
    *ret_buffer = buffer;
}

/* The user's part of what is wanted. */
static uint8_t *wanted_at(const struct attempt_buffer *buffer, size_t first, size_t size)
{
    return buffer->wanted + (buffer->at - buffer->base) + first * size;
}

static void buffers_init(struct attempt *attempt, uint32_t rank)
{
    const struct attempt_call *call = &attempt->call;
    const size_t size = tutti_type_size(call->type);
    struct attempt_rank *own = &attempt->ranks[rank];
    struct blocks in, out;
    int64_t shift = 0;

    blocks_of(attempt, rank, true, &in);
    blocks_of(attempt, rank, false, &out);
    own->scalar = mixed(call->seed + rank);
    if (!call->is_in_place || !(call->collective == TUTTI_ALLTOALL ||
                                tutti_collective_in_place_shift(call->collective, rank, call->root,
                                                                1, &shift))) {
        buffer_init(attempt, rank, in.extent, &own->input);
        buffer_init(attempt, rank, out.extent, &own->output);
        return;
    }
    /* One block of the larger buffer is the smaller one. */
    buffer_init(attempt, rank, in.extent > out.extent ? in.extent : out.extent, &own->output);
    own->input = own->output;
    if (in.n < out.n)
        own->input.at += out.firsts[rank] * size;
    if (out.n < in.n)
        own->output.at += in.firsts[rank] * size;
}

/* ---- what is wanted ---------------------------------------------------------------------- */

struct images {
    uint8_t *inputs[TUTTI_KERNEL_RANKS]; /* as they enter: premultiplied */
};

static void images_init(const struct attempt *attempt, struct images *ret_images)
{
    const struct attempt_call *call = &attempt->call;

    for (uint32_t rank = 0; rank < attempt->domain->nranks; rank++) {
        const struct attempt_rank *own = &attempt->ranks[rank];
        struct blocks in;
        uint8_t *image;

        blocks_of(attempt, rank, true, &in);
        image = malloc(in.extent * tutti_type_size(call->type) + 1);
        assert_non_null(image);
        if (call->is_premultiplied)
            tutti_cpu_premultiply(call->type, image, own->input.at, in.extent, &own->scalar);
        else
            memcpy(image, own->input.at, in.extent * tutti_type_size(call->type));
        ret_images->inputs[rank] = image;
    }
}

static void want_reduction(struct attempt *attempt, uint32_t rank, const struct images *images)
{
    const struct attempt_call *call = &attempt->call;
    const uint32_t nranks = attempt->domain->nranks;
    const void *sources[TUTTI_KERNEL_RANKS];
    void *sink = wanted_at(&attempt->ranks[rank].output, 0, tutti_type_size(call->type));
    struct tutti_reduce_args args = {
        .type = call->type,
        .op = call->op,
        .nsrcs = 0,
        .ndsts = 1,
        .srcs = sources,
        .dsts = &sink,
        .count = pair_count(call, rank, rank),
        .scale = TUTTI_NO_SCALE,
    };

    if (call->is_average)
        args.scale = (struct tutti_scale){.multiply = 1.0 / nranks, .divide = nranks};
    for (uint32_t from = 0; from < nranks; from++) {
        struct blocks in;

        if (!tutti_collective_is_source(call->collective, from, rank, call->root))
            continue;
        blocks_of(attempt, from, true, &in);
        sources[args.nsrcs++] = images->inputs[from] +
            (in.n > 1 ? in.firsts[rank] : 0) * tutti_type_size(call->type);
    }
    /* Hosts choose lines only if a rank with a single source copies it. */
    if (args.nsrcs == 1 && call->kind == TUTTI_KERNEL_WORK_DIRECT &&
        tutti_op_gives_truth(call->op, call->type)) {
        sources[1] = sources[0];
        args.nsrcs = 2;
        args.op = TUTTI_LOR;
    }
    tutti_cpu_reduce(&args);
}

static void want_copies(struct attempt *attempt, uint32_t rank, const struct images *images)
{
    const struct attempt_call *call = &attempt->call;
    const size_t size = tutti_type_size(call->type);
    struct blocks in, out;

    blocks_of(attempt, rank, false, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        const uint32_t from = out.n > 1 ? i : call->root;

        blocks_of(attempt, from, true, &in);
        memcpy(wanted_at(&attempt->ranks[rank].output, out.firsts[i], size),
               images->inputs[from] + (in.n > 1 ? in.firsts[rank] : 0) * size,
               out.counts[i] * size);
    }
}

static void want(struct attempt *attempt)
{
    const enum tutti_collective collective = attempt->call.collective;
    struct images images;

    images_init(attempt, &images);
    for (uint32_t rank = 0; rank < attempt->domain->nranks; rank++)
        if (tutti_collective_has_output(collective, rank, attempt->call.root)) {
            if (tutti_collective_reduces(collective))
                want_reduction(attempt, rank, &images);
            else
                want_copies(attempt, rank, &images);
        }
    for (uint32_t rank = 0; rank < attempt->domain->nranks; rank++)
        free(images.inputs[rank]);
}

/* ---- works ----------------------------------------------------------------------------------- */

static void describe(const struct attempt *attempt, uint32_t rank, bool is_input, uint64_t *arrays,
                     struct tutti_kernel_blocks *ret_blocks)
{
    const struct attempt_call *call = &attempt->call;
    const uint32_t nranks = attempt->domain->nranks;
    const uint32_t side = is_input ? tutti_collective_input(call->collective)
                                   : tutti_collective_output(call->collective);
    struct blocks blocks;

    blocks_of(attempt, rank, is_input, &blocks);
    *ret_blocks = (struct tutti_kernel_blocks){.count = blocks.n > 0 ? blocks.counts[0] : 0};
    /* A rank without the buffer has no counts of its blocks. */
    if (!call->is_vector || blocks.n == 1 || !tutti_blocks_exist(side, rank, call->root))
        return;
    for (uint32_t i = 0; i < nranks; i++) {
        arrays[i] = blocks.counts[i];
        arrays[nranks + i] = blocks.firsts[i];
    }
    ret_blocks->counts = arrays;
    ret_blocks->displs = arrays + nranks;
}

static void sign(const struct attempt_call *call, uint64_t words[2])
{
    const bool has_root = tutti_collective_has_root(call->collective);
    const struct tutti_signature signature = {
        .magic = TUTTI_SIGNATURE_MAGIC,
        .call = tutti_collective_call(call->collective, call->is_vector),
        .type = (uint8_t)call->type,
        .op = call->is_premultiplied ? TUTTI_OP_PREMULTIPLIED
              : call->is_average     ? TUTTI_OP_AVERAGE
                                     : (uint8_t)call->op,
        .root = has_root ? (uint16_t)call->root : UINT16_MAX,
        .count = call->count,
    };

    memcpy(words, &signature, sizeof signature);
}

/* Even ranks are known by a map and an offset in it, odd ones by plain addresses. */
static void place(const struct attempt *attempt, uint32_t rank, const uint8_t *at, bool is_mapped,
                  uint64_t *ret_offset, uint32_t *ret_map)
{
    const bool by_map = rank % 2 == 0;

    *ret_map = !is_mapped ? TUTTI_KERNEL_NOT_MAPPED : by_map ? (uint32_t)DOMAIN_MAP : 0;
    *ret_offset = by_map ? (uint64_t)(at - attempt->domain->ranks[rank].arena)
                         : (uint64_t)(uintptr_t)at;
}

static void fill_work(struct attempt *attempt, uint32_t rank, uint64_t number,
                      struct tutti_kernel_work *ret_work)
{
    const struct attempt_call *call = &attempt->call;
    struct attempt_rank *own = &attempt->ranks[rank];
    struct tutti_kernel_work work = {
        .kind = (uint8_t)call->kind,
        .collective = (uint8_t)call->collective,
        .type = (uint8_t)call->type,
        .op = (uint8_t)call->op,
        .is_premultiplied = call->is_premultiplied,
        .is_average = call->is_average,
        .has_pairs = call->is_vector && tutti_collective_counts_by_pair(call->collective),
        .root = (int32_t)call->root,
        .input =
            tutti_collective_has_input(call->collective, rank, call->root) ? own->input.at : NULL,
        .output =
            tutti_collective_has_output(call->collective, rank, call->root) ? own->output.at : NULL,
        .chain = number * 77,
        .number = number,
        .scalar_address = call->scalar_is_late ? &own->scalar : NULL,
        .scalar = call->scalar_is_late ? 0 : own->scalar,
    };

    own->arrays = calloc(4 * (size_t)attempt->domain->nranks, sizeof *own->arrays);
    assert_non_null(own->arrays);
    describe(attempt, rank, true, own->arrays, &work.in);
    describe(attempt, rank, false, own->arrays + 2 * attempt->domain->nranks, &work.out);
    place(attempt, rank, own->input.at, !(call->unmapped_inputs >> rank & 1), &work.input_offset,
          &work.input_map);
    place(attempt, rank, own->output.at, !(call->unmapped_outputs >> rank & 1),
          &work.output_offset, &work.output_map);
    sign(call, work.signature);
    *ret_work = work;
}

void attempt_begin(struct attempt *attempt, struct domain *domain, const struct attempt_call *call,
                   uint64_t number, struct tutti_kernel_work *ret_works, uint32_t stride)
{
    memset(attempt, 0, sizeof *attempt);
    attempt->call = *call;
    attempt->domain = domain;
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        buffers_init(attempt, rank);
    want(attempt);
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        fill_work(attempt, rank, number, &ret_works[rank * stride]);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void compare(const struct attempt *attempt, uint32_t rank,
                    const struct attempt_buffer *buffer, const char *name)
{
    const struct attempt_call *call = &attempt->call;

    for (size_t i = 0; i < buffer->bytes; i++)
        if (buffer->base[i] != buffer->wanted[i])
            fail_msg("%s of %u ranks, kind %d, type %d, op %d, count %zu, root %u%s%s%s%s: %s of "
                     "rank %u, byte %td is %02x and not %02x",
                     tutti_collective_name(call->collective), attempt->domain->nranks, call->kind,
                     call->type, call->op, call->count, call->root,
                     call->is_in_place ? ", in place" : "", call->is_vector ? ", v" : "",
                     call->is_premultiplied ? ", premultiplied" : "",
                     call->is_average ? ", average" : "", name, rank,
                     buffer->base + i - buffer->at, buffer->base[i], buffer->wanted[i]);
}

void attempt_end(struct attempt *attempt, bool must_be_right)
{
    for (uint32_t rank = 0; rank < attempt->domain->nranks; rank++) {
        struct attempt_rank *own = &attempt->ranks[rank];

        if (must_be_right) {
            compare(attempt, rank, &own->output, "output");
            compare(attempt, rank, &own->input, "input");
        }
        if (own->input.wanted != own->output.wanted)
            free(own->input.wanted);
        free(own->output.wanted);
        free(own->arrays);
    }
}

void attempt_set_reduction(struct attempt_call *call, uint32_t number)
{
    const uint32_t reduction = number % ATTEMPT_REDUCTIONS;
    const enum tutti_op op = (enum tutti_op)reduction;

    call->op = reduction >= TUTTI_OP_COUNT      ? TUTTI_SUM
               : tutti_op_takes(op, call->type) ? op
                                                : (enum tutti_op)(reduction % TUTTI_BAND);
    if (!tutti_type_is_scaled(call->type))
        return;
    call->is_average = reduction == TUTTI_OP_COUNT;
    call->is_premultiplied = reduction > TUTTI_OP_COUNT;
    call->scalar_is_late = reduction == TUTTI_OP_COUNT + 2;
}

bool attempt_is_possible(const struct attempt_call *call)
{
    const bool has_v = tutti_collective_call(call->collective, true) != TUTTI_NO_CALL;

    if (call->is_vector && !has_v)
        return false;
    if ((call->is_premultiplied || call->is_average) &&
        (call->op != TUTTI_SUM || !tutti_collective_reduces(call->collective)))
        return false;
    if (call->is_average && !tutti_collective_can_average(call->collective))
        return false;
    return !(call->is_premultiplied && call->is_average);
}

void attempt_run(struct domain *domain, const struct attempt_call *call, const char *kernel,
                 const struct domain_grid *grids, uint64_t number)
{
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;

    domain_take_back(domain);
    attempt_begin(&attempt, domain, call, number, works, 1);
    domain_run(domain, kernel, grids, works, 1, 0);
    assert_true(domain_is_fine(domain));
    attempt_end(&attempt, true);
}
