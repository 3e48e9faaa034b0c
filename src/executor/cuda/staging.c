/* SPDX-License-Identifier: Apache-2.0
 * Finds the stretches that columns stage and finish (staging.h). */
#include "executor/cuda/staging.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

/* A buffer of the user, with the blocks of a piece. Offsets of steps count from the start of the
 * staged copy if there is one, in which blocks lie packed, else from the start of the piece. */
struct buffer {
    enum tutti_buffer which;
    size_t nblocks;
    const size_t *counts, *displs; /* of a v-form; else NULL */
    size_t piece_count;            /* elements of each block in the piece */
    size_t call_count;             /* elements of each block in the call */
    size_t element_bytes;          /* in the steps */
    bool is_staged;
};

static size_t block_count(const struct buffer *buffer, size_t block)
{
    return buffer->counts != NULL ? buffer->counts[block] : buffer->piece_count;
}

/* Returns the element of the user's buffer at which a block starts in piece 0. `packed` is the
 * number of elements of the blocks before it. */
static size_t block_start(const struct buffer *buffer, size_t block, size_t packed)
{
    if (buffer->counts == NULL)
        return block * buffer->call_count;
    return buffer->displs != NULL ? buffer->displs[block] : packed;
}

static int add(struct tutti_cuda_staging *staging, size_t start, size_t at, size_t count)
{
    if (count == 0)
        return TUTTI_OK;
    TUTTI_TRY(TUTTI_ARRAY_ROOM(staging->stretches, staging->count, staging->capacity,
                               "stretches of a program"));
    staging->stretches[staging->count++] =
        (struct tutti_kernel_stretch){.start = start, .at = at, .count = count};
    return TUTTI_OK;
}

/* Adds elements [from, to) of the staged copy, cut at the ends of blocks. */
static int add_staged(struct tutti_cuda_staging *staging, const struct buffer *buffer, size_t from,
                      size_t to)
{
    size_t packed = 0;

    for (size_t block = 0; block < buffer->nblocks && packed < to; block++) {
        size_t count = block_count(buffer, block);
        size_t first = from > packed ? from : packed;
        size_t end = to < packed + count ? to : packed + count;

        if (first < end)
            TUTTI_TRY(add(staging, block_start(buffer, block, packed) + first - packed,
                          first * buffer->element_bytes, end - first));
        packed += count;
    }
    return TUTTI_OK;
}

/* Adds all blocks of a buffer. */
static int add_all(struct tutti_cuda_staging *staging, const struct buffer *buffer)
{
    size_t packed = 0;

    for (size_t block = 0; block < buffer->nblocks; block++) {
        size_t count = block_count(buffer, block);

        TUTTI_TRY(add(staging, block_start(buffer, block, packed), packed * buffer->element_bytes,
                      count));
        packed += count;
    }
    return TUTTI_OK;
}

/* ---- what the steps of a column use --------------------------------------------------------- */

/* Bytes [from, to) of a buffer. */
struct range {
    size_t from, to;
};

struct ranges {
    struct range *list;
    uint32_t count, capacity;
};

static int by_start(const void *a, const void *b)
{
    const struct range *first = a, *second = b;

    return (first->from > second->from) - (first->from < second->from);
}

/* Returns true if the step reads INPUT, or writes OUTPUT, in its span number `at`. */
static bool uses(const struct tutti_step *step, enum tutti_buffer buffer, enum tutti_slot at)
{
    if (buffer == TUTTI_BUF_INPUT)
        return at == TUTTI_AT_SRC && step->src.buffer == TUTTI_BUF_INPUT;
    return (at == TUTTI_AT_DST && step->dst.buffer == TUTTI_BUF_OUTPUT) ||
           (at == TUTTI_AT_ALSO && step->also.buffer == TUTTI_BUF_OUTPUT);
}

/* Collects the ranges of a buffer that the steps of a column use. */
static int collect(const struct tutti_bound *bound, const uint32_t *of_step, uint32_t column,
                   enum tutti_buffer buffer, struct ranges *ranges)
{
    for (uint32_t i = 0; i < bound->schedule->nsteps; i++) {
        const struct tutti_bound_step *step = &bound->steps[i];

        for (int at = 0; at < TUTTI_AT_COUNT && of_step[i] == column; at++) {
            if (!uses(&bound->schedule->steps[i], buffer, (enum tutti_slot)at))
                continue;
            for (uint32_t k = step->first; k < step->first + step->count; k++) {
                size_t from = bound->segments[k].at[at];

                TUTTI_TRY(TUTTI_ARRAY_ROOM(ranges->list, ranges->count, ranges->capacity,
                                           "ranges of a program"));
                ranges->list[ranges->count++] =
                    (struct range){from, from + bound->segments[k].bytes};
            }
        }
    }
    if (ranges->count > 1)
        qsort(ranges->list, ranges->count, sizeof *ranges->list, by_start);
    return TUTTI_OK;
}

/* Adds the ranges, joined where they overlap or meet. */
static int add_ranges(struct tutti_cuda_staging *staging, const struct buffer *buffer,
                      const struct ranges *ranges)
{
    for (uint32_t i = 0, next; i < ranges->count; i = next) {
        size_t from = ranges->list[i].from / buffer->element_bytes, to = ranges->list[i].to;

        for (next = i + 1; next < ranges->count && ranges->list[next].from <= to; next++)
            to = ranges->list[next].to > to ? ranges->list[next].to : to;
        to /= buffer->element_bytes;
        TUTTI_TRY(buffer->is_staged ? add_staged(staging, buffer, from, to)
                                    : add(staging, from, 0, to - from));
    }
    return TUTTI_OK;
}

/* Adds the stretches of a buffer that a column uses. */
static int add_column(struct tutti_cuda_staging *staging, const struct buffer *buffer,
                      const struct tutti_bound *bound, uint32_t ncolumns, const uint32_t *of_step,
                      uint32_t column)
{
    struct ranges ranges = {.list = NULL};
    int rc;

    /* Peers may read or write any part of the buffers of a program with one column. */
    if (ncolumns == 1)
        return add_all(staging, buffer);
    rc = collect(bound, of_step, column, buffer->which, &ranges);
    if (rc == TUTTI_OK)
        rc = add_ranges(staging, buffer, &ranges);
    free(ranges.list);
    return rc;
}

int tutti_cuda_staging_find(const struct tutti_program *program, const struct tutti_call *call,
                            const struct tutti_bound *bound, uint32_t ncolumns,
                            const uint32_t *of_step, struct tutti_cuda_staging *ret_staging)
{
    bool is_full = bound == &program->full;
    size_t last_count = call->count - (program->npieces - 1) * program->piece_count;
    struct buffer input = {
        .which = TUTTI_BUF_INPUT, .counts = call->input_counts, .displs = call->input_displs,
        .nblocks = program->stages_input ? program->input_blocks : 0,
        .piece_count = is_full ? program->piece_count : last_count, .call_count = call->count,
        .element_bytes = tutti_type_size(program->run_type), .is_staged = true};
    struct buffer output = input;

    output.which = TUTTI_BUF_OUTPUT;
    output.counts = call->output_counts;
    output.displs = call->output_displs;
    output.nblocks = program->finishes_output ? program->output_blocks : 0;
    output.is_staged = program->widens;
    *ret_staging = (struct tutti_cuda_staging){.count = 0};
    ret_staging->of_column = calloc(ncolumns, sizeof *ret_staging->of_column);
    if (ret_staging->of_column == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u columns", ncolumns);
    for (uint32_t column = 0; column < ncolumns; column++) {
        struct tutti_kernel_staging *own = &ret_staging->of_column[column];

        own->input_first = ret_staging->count;
        if (input.nblocks > 0)
            TUTTI_TRY(add_column(ret_staging, &input, bound, ncolumns, of_step, column));
        own->output_first = ret_staging->count;
        own->input_count = own->output_first - own->input_first;
        if (output.nblocks > 0)
            TUTTI_TRY(add_column(ret_staging, &output, bound, ncolumns, of_step, column));
        own->output_count = ret_staging->count - own->output_first;
    }
    return TUTTI_OK;
}

void tutti_cuda_staging_fini(struct tutti_cuda_staging *staging)
{
    free(staging->of_column);
    free(staging->stretches);
    *staging = (struct tutti_cuda_staging){.count = 0};
}
