/* SPDX-License-Identifier: Apache-2.0
 * Computes the byte offsets and lengths of all chunks that a schedule names.
 */
#include "schedule/bind.h"

#include "base/array.h"
#include "base/result.h"
#include "base/round.h"

#include <stdlib.h>

enum {
    LINE_BYTES = 64,        /* a cache line */
    ALIGN_FROM_BYTES = 512, /* chunks of at least this size are whole cache lines */
    SLOT_ALIGN_BYTES = 8,   /* slots smaller than a cache line begin at multiples of this */
    BARRIER_BYTES = 8,      /* a message of a barrier */
};

/* One buffer cut into chunks. Counts, displacements and the stride are in elements. */
struct layout {
    uint32_t blocks;
    const size_t *counts, *displs; /* NULL: uniform blocks, `stride` elements apart */
    size_t block_count, stride;
    size_t *packed; /* [blocks]: where each block begins, in elements, for counts without displs */
};

struct binder {
    const struct tutti_schedule *schedule;
    size_t element_bytes;
    struct layout input, output, scratch;
    size_t slot_bytes; /* bytes from one slot to the next, in WINDOW and in UNIFORM SCRATCH */
    struct tutti_bound *bound;
    uint32_t segment_capacity;
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Elements of a full chunk of a block of `count` elements; later chunks may be shorter or empty.
 * Large chunks are whole cache lines, so that each begins on a cache line if its block does. */
static size_t chunk_elements(size_t count, uint32_t chunks, size_t element_bytes)
{
    size_t elements = tutti_divide_up(count, chunks);

    if (elements * element_bytes >= ALIGN_FROM_BYTES)
        elements = tutti_round_up(elements * element_bytes, LINE_BYTES) / element_bytes;
    return elements;
}

static size_t layout_count(const struct layout *layout, uint32_t block)
{
    return layout->counts ? layout->counts[block] : layout->block_count;
}

static size_t layout_start(const struct layout *layout, uint32_t block)
{
    if (!layout->counts)
        return block * layout->stride;
    return layout->displs ? layout->displs[block] : layout->packed[block];
}

/* Bytes of a chunk, and the byte offset at which it begins. */
static size_t locate(const struct binder *binder, const struct layout *layout, uint32_t chunk,
                     size_t *ret_at)
{
    uint32_t k = binder->schedule->chunks_per_block;
    uint32_t block = chunk / k, part = chunk % k;
    size_t count = layout_count(layout, block);
    size_t full = chunk_elements(count, k, binder->element_bytes);
    size_t from = min_size((size_t)part * full, count);
    size_t to = min_size(from + full, count);

    *ret_at = (layout_start(layout, block) + from) * binder->element_bytes;
    return (to - from) * binder->element_bytes;
}

/* Bytes of the chunk number `index` of a span, and the byte offset at which it begins in the span's
 * buffer. */
static size_t span_chunk(const struct binder *binder, const struct tutti_span *span, uint32_t index,
                         size_t *ret_at)
{
    uint32_t chunk = span->first + index, k = binder->schedule->chunks_per_block;

    switch (span->buffer) {
    case TUTTI_BUF_INPUT:
        tutti_assert(chunk / k < binder->input.blocks);
        return locate(binder, &binder->input, chunk, ret_at);
    case TUTTI_BUF_OUTPUT:
        tutti_assert(chunk / k < binder->output.blocks);
        return locate(binder, &binder->output, chunk, ret_at);
    default: break;
    }
    if (span->buffer == TUTTI_BUF_SCRATCH &&
        binder->schedule->scratch_like == TUTTI_SCRATCH_VECTOR)
        return locate(binder, &binder->scratch, chunk, ret_at);
    tutti_assert(span->buffer != TUTTI_BUF_WINDOW || chunk < binder->schedule->window_chunks);
    tutti_assert(span->buffer != TUTTI_BUF_SCRATCH || chunk < binder->schedule->scratch_chunks);
    *ret_at = chunk * binder->slot_bytes;
    return binder->slot_bytes;
}

/* The span that determines how much a step moves. A user buffer or scratch vector has exact sizes,
 * so it is preferred to slots. */
static const struct tutti_span *sizing_span(const struct binder *binder,
                                            const struct tutti_span *const spans[TUTTI_AT_COUNT])
{
    const struct tutti_span *slots = NULL;

    for (int i = 0; i < TUTTI_AT_COUNT; i++) {
        switch (spans[i]->buffer) {
        case TUTTI_BUF_INPUT:
        case TUTTI_BUF_OUTPUT: return spans[i];
        case TUTTI_BUF_SCRATCH:
            if (binder->schedule->scratch_like == TUTTI_SCRATCH_VECTOR)
                return spans[i];
            slots = spans[i];
            break;
        case TUTTI_BUF_WINDOW: slots = slots ? slots : spans[i]; break;
        default: break;
        }
    }
    return slots;
}

/* True if segment `next` begins where `last` ends, in every span of the step. */
static bool continues(const struct tutti_segment *last, const struct tutti_segment *next,
                      const struct tutti_span *const spans[TUTTI_AT_COUNT])
{
    for (int i = 0; i < TUTTI_AT_COUNT; i++)
        if (spans[i]->buffer != TUTTI_BUF_NONE && last->at[i] + last->bytes != next->at[i])
            return false;
    return true;
}

/* Append a segment to a step, or extend the last one. */
static int add_segment(struct binder *binder, struct tutti_bound_step *step,
                       const struct tutti_segment *segment,
                       const struct tutti_span *const spans[TUTTI_AT_COUNT])
{
    struct tutti_bound *bound = binder->bound;

    step->bytes += segment->bytes;
    if (step->count > 0 && continues(&bound->segments[bound->nsegments - 1], segment, spans)) {
        bound->segments[bound->nsegments - 1].bytes += segment->bytes;
        return TUTTI_OK;
    }
    TUTTI_TRY(TUTTI_ARRAY_ROOM(bound->segments, bound->nsegments, binder->segment_capacity,
                               "segments of a schedule"));
    bound->segments[bound->nsegments++] = *segment;
    step->count++;
    return TUTTI_OK;
}

static void list_spans(const struct tutti_step *step,
                       const struct tutti_span *ret_spans[TUTTI_AT_COUNT])
{
    ret_spans[TUTTI_AT_SRC] = &step->src;
    ret_spans[TUTTI_AT_DST] = &step->dst;
    ret_spans[TUTTI_AT_REMOTE] = &step->remote;
    ret_spans[TUTTI_AT_ALSO] = &step->also;
    ret_spans[TUTTI_AT_REMOTE_DST] = &step->remote_dst;
}

/* List the segments of a step: those of its chunks, joined where they are contiguous. */
static int bind_step(struct binder *binder, const struct tutti_step *step,
                     struct tutti_bound_step *ret_step)
{
    const struct tutti_span *spans[TUTTI_AT_COUNT], *sizing;

    list_spans(step, spans);
    sizing = sizing_span(binder, spans);
    *ret_step = (struct tutti_bound_step){.first = binder->bound->nsegments};
    if (sizing == NULL)
        return TUTTI_OK;
    for (uint32_t chunk = 0; chunk < sizing->count; chunk++) {
        struct tutti_segment segment = {.bytes = 0};
        size_t unused;

        segment.bytes = span_chunk(binder, sizing, chunk, &unused);
        if (segment.bytes == 0)
            continue;
        for (int i = 0; i < TUTTI_AT_COUNT; i++)
            if (spans[i]->buffer != TUTTI_BUF_NONE)
                span_chunk(binder, spans[i], chunk, &segment.at[i]);
        TUTTI_TRY(add_segment(binder, ret_step, &segment, spans));
    }
    return TUTTI_OK;
}

static int layout_init(struct layout *layout, uint32_t blocks, const size_t *counts,
                       const size_t *displs, size_t block_count, size_t stride)
{
    *layout = (struct layout){.blocks = blocks, .counts = counts, .displs = displs,
                              .block_count = block_count,
                              .stride = stride ? stride : block_count};
    if (counts == NULL || displs != NULL || blocks == 0)
        return TUTTI_OK;
    layout->packed = malloc(blocks * sizeof *layout->packed);
    if (layout->packed == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the layout of %u blocks", blocks);
    layout->packed[0] = 0;
    for (uint32_t block = 1; block < blocks; block++)
        layout->packed[block] = layout->packed[block - 1] + counts[block - 1];
    return TUTTI_OK;
}

/* Bytes of the largest chunk. */
static size_t largest_chunk(const struct binder *binder, const struct layout *layout)
{
    uint32_t k = binder->schedule->chunks_per_block;
    size_t largest = 0;

    for (uint32_t block = 0; block < layout->blocks; block++) {
        size_t full = chunk_elements(layout_count(layout, block), k, binder->element_bytes);

        if (full > largest)
            largest = full;
        if (!layout->counts)
            break;
    }
    return largest * binder->element_bytes;
}

/* Lay out the user's buffers, VECTOR SCRATCH and the slots for one call. */
static int lay_out(struct binder *binder, const struct tutti_extent *extent)
{
    const struct tutti_schedule *schedule = binder->schedule;
    uint32_t inputs = tutti_input_blocks(schedule->collective, schedule->nranks);
    uint32_t outputs = tutti_output_blocks(schedule->collective, schedule->nranks);
    bool by_input = inputs > outputs;
    size_t largest, other, slot_align;

    TUTTI_TRY(layout_init(&binder->input, inputs, extent->input_counts, extent->input_displs,
                          extent->block_count, extent->input_stride));
    TUTTI_TRY(layout_init(&binder->output, outputs, extent->output_counts, extent->output_displs,
                          extent->block_count, extent->output_stride));
    TUTTI_TRY(layout_init(&binder->scratch, by_input ? inputs : outputs,
                          by_input ? extent->input_counts : extent->output_counts, NULL,
                          extent->block_count, 0));
    largest = largest_chunk(binder, &binder->input);
    other = largest_chunk(binder, &binder->output);
    if (other > largest)
        largest = other;
    /* Small slots are close together, so that all of them can travel with the signal. */
    slot_align = largest < LINE_BYTES ? SLOT_ALIGN_BYTES : LINE_BYTES;
    binder->slot_bytes = tutti_collective_has_data(schedule->collective)
                             ? tutti_round_up(largest, slot_align)
                             : BARRIER_BYTES;
    return TUTTI_OK;
}

static size_t scratch_bytes(const struct binder *binder)
{
    const struct tutti_schedule *schedule = binder->schedule;
    size_t at, bytes;

    if (schedule->scratch_chunks == 0)
        return 0;
    if (schedule->scratch_like != TUTTI_SCRATCH_VECTOR)
        return schedule->scratch_chunks * binder->slot_bytes;
    bytes = locate(binder, &binder->scratch, schedule->scratch_chunks - 1, &at);
    return at + bytes;
}

static void binder_fini(struct binder *binder)
{
    free(binder->input.packed);
    free(binder->output.packed);
    free(binder->scratch.packed);
}

int tutti_bind(const struct tutti_schedule *schedule, const struct tutti_extent *extent,
               struct tutti_bound *ret_bound)
{
    struct tutti_bound bound = {.schedule = schedule};
    struct binder binder = {.schedule = schedule, .element_bytes = extent->element_bytes,
                            .bound = &bound};
    int rc;

    tutti_assert(extent->element_bytes > 0 && schedule->chunks_per_block > 0);
    TUTTI_TRY_OR(fail, rc, lay_out(&binder, extent));
    bound.slot_bytes = binder.slot_bytes;
    bound.scratch_bytes = scratch_bytes(&binder);
    bound.steps = calloc(schedule->nsteps ? schedule->nsteps : 1, sizeof *bound.steps);
    if (bound.steps == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to bind %u steps", schedule->nsteps);
        goto fail;
    }
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        TUTTI_TRY_OR(fail, rc, bind_step(&binder, &schedule->steps[i], &bound.steps[i]));

    binder_fini(&binder);
    *ret_bound = bound;
    return TUTTI_OK;

fail:
    binder_fini(&binder);
    tutti_bound_fini(&bound);
    return rc;
}

/* Elements in all chunks before `chunk`, for packed blocks. */
static size_t elements_before(const struct tutti_schedule *schedule, uint32_t chunk,
                              size_t element_bytes, size_t block_count)
{
    uint32_t k = schedule->chunks_per_block;
    size_t full = chunk_elements(block_count, k, element_bytes);

    return chunk / k * block_count + min_size(chunk % k * full, block_count);
}

size_t tutti_bind_step_bytes(const struct tutti_schedule *schedule, const struct tutti_step *step,
                             size_t element_bytes, size_t block_count)
{
    struct tutti_extent extent = {.element_bytes = element_bytes, .block_count = block_count};
    struct binder binder = {.schedule = schedule, .element_bytes = element_bytes};
    const struct tutti_span *spans[TUTTI_AT_COUNT], *sizing;
    size_t end;

    list_spans(step, spans);
    sizing = sizing_span(&binder, spans);
    if (sizing == NULL)
        return 0;
    end = (size_t)sizing->first + sizing->count;
    if (sizing->buffer == TUTTI_BUF_WINDOW ||
        (sizing->buffer == TUTTI_BUF_SCRATCH && schedule->scratch_like != TUTTI_SCRATCH_VECTOR)) {
        /* This cannot fail, because lay_out allocates only for lists of counts. */
        tutti_assert(lay_out(&binder, &extent) == TUTTI_OK);
        return sizing->count * binder.slot_bytes;
    }
    return (elements_before(schedule, (uint32_t)end, element_bytes, block_count) -
            elements_before(schedule, sizing->first, element_bytes, block_count)) * element_bytes;
}

void tutti_bound_fini(struct tutti_bound *bound)
{
    free(bound->steps);
    free(bound->segments);
    *bound = (struct tutti_bound){.schedule = NULL};
}

size_t tutti_bind_piece(const struct tutti_schedule *schedule, size_t element_bytes,
                        size_t block_count, size_t half_bytes)
{
    size_t slot_bytes;

    if (schedule->window_chunks == 0 || block_count == 0)
        return block_count;
    slot_bytes = half_bytes / schedule->window_chunks / LINE_BYTES * LINE_BYTES;
    return min_size(block_count, slot_bytes / element_bytes * schedule->chunks_per_block);
}
