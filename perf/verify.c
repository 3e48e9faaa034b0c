/* SPDX-License-Identifier: Apache-2.0
 * Fills the buffers of a case and checks them. Elements that no segment of the collective covers
 * must keep the values with which they were filled. */
#include "verify.h"

#include <stdlib.h>

/* Returns the number of elements in an output region. */
static size_t region_elements(const struct perf_field *field)
{
    return field->is_in_place ? field->call->in_place_count : field->call->recv_count;
}

static size_t shift_bytes(const struct perf_field *field)
{
    return field->is_misaligned ? field->call->element_bytes : 0;
}

size_t perf_field_input_need(const struct perf_field *field)
{
    size_t elements = field->is_in_place ? 0 : field->call->send_count;

    return perf_arena_need(1, elements * field->call->element_bytes);
}

size_t perf_field_output_need(const struct perf_field *field)
{
    return perf_arena_need(field->nregions, region_elements(field) * field->call->element_bytes);
}

void perf_field_fill(struct perf_field *field, uint64_t phase)
{
    const struct perf_case *c = field->call;
    size_t input = field->is_in_place ? 0 : c->send_count;

    field->phase = phase % PERF_PERIOD;
    perf_arena_cut(field->input, 1, input * c->element_bytes, shift_bytes(field));
    perf_arena_cut(field->output, field->nregions, region_elements(field) * c->element_bytes,
                   shift_bytes(field));
    perf_pattern_fill(field->pattern, c->rank, field->phase, perf_arena_region(field->input, 0),
                      input);
    for (size_t i = 0; field->is_in_place && i < field->nregions; i++)
        perf_pattern_fill(field->pattern, c->rank, field->phase,
                          perf_at(c, perf_arena_region(field->output, i), c->in_place_send),
                          c->send_count);
    perf_arena_give(field->input);
    perf_arena_give(field->output);
}

void perf_field_fetch(const struct perf_field *field)
{
    perf_arena_fetch(field->input);
    perf_arena_fetch(field->output);
}

const void *perf_field_send(const struct perf_field *field, size_t index)
{
    if (field->is_in_place)
        return perf_at(field->call, perf_arena_target(field->output, index),
                       field->call->in_place_send);
    return perf_arena_target(field->input, 0);
}

void *perf_field_recv(const struct perf_field *field, size_t index)
{
    size_t offset = field->is_in_place ? field->call->in_place_recv : 0;

    return perf_at(field->call, perf_arena_target(field->output, index), offset);
}

/* Counts the wrong elements among first .. end - 1 of a region, which the call must leave
 * unchanged. They hold the input where it lies in this region, and poison elsewhere. */
static size_t untouched_wrong(const struct perf_field *field, const char *region, size_t first,
                              size_t end)
{
    const struct perf_case *c = field->call;
    size_t input = field->is_in_place ? c->in_place_send : end;
    size_t input_end = field->is_in_place ? input + c->send_count : end;
    size_t wrong = 0;

    if (first < input && first < end) {
        size_t stop = end < input ? end : input;

        wrong += perf_poison_wrong(perf_at(c, region, first), stop - first, c->element_bytes);
        first = stop;
    }
    if (first < input_end && first < end) {
        size_t stop = end < input_end ? end : input_end;

        wrong += perf_pattern_wrong(field->pattern, c->rank, first - input + field->phase,
                                    perf_at(c, region, first), stop - first);
        first = stop;
    }
    if (first < end)
        wrong += perf_poison_wrong(perf_at(c, region, first), end - first, c->element_bytes);
    return wrong;
}

static int by_place(const void *a, const void *b)
{
    const struct perf_segment *left = a, *right = b;

    return left->at < right->at ? -1 : left->at > right->at;
}

/* Counts the wrong elements of an output region. The segments are sorted by place. */
static size_t region_wrong(const struct perf_field *field, const char *region,
                           const struct perf_segment *segments, size_t nsegments)
{
    const struct perf_case *c = field->call;
    size_t offset = field->is_in_place ? c->in_place_recv : 0;
    size_t wrong = 0, done = 0;

    for (size_t i = 0; i < nsegments; i++) {
        const struct perf_segment *segment = &segments[i];

        if (segment->count == 0)
            continue;
        wrong += untouched_wrong(field, region, done, offset + segment->at);
        wrong += perf_pattern_wrong(field->pattern, segment->source, segment->from + field->phase,
                                    perf_at(c, region, offset + segment->at), segment->count);
        done = offset + segment->at + segment->count;
    }
    return wrong + untouched_wrong(field, region, done, region_elements(field));
}

size_t perf_field_wrong(const struct perf_field *field, size_t first, size_t count)
{
    const struct perf_case *c = field->call;
    struct perf_segment *segments = malloc(sizeof(*segments) * (size_t)c->nranks);
    size_t nsegments, wrong = 0;

    if (segments == NULL)
        return SIZE_MAX / 2; /* an unchecked result must not pass */
    nsegments = field->collective->expect(c, segments);
    qsort(segments, nsegments, sizeof(*segments), by_place);
    for (size_t i = first; i < first + count; i++)
        wrong += region_wrong(field, perf_arena_region(field->output, i), segments, nsegments);
    free(segments);
    if (!field->is_in_place)
        wrong += perf_pattern_wrong(field->pattern, c->rank, field->phase,
                                    perf_arena_region(field->input, 0), c->send_count);
    return wrong;
}

size_t perf_field_overruns(const struct perf_field *field)
{
    return perf_arena_overruns(field->input) + perf_arena_overruns(field->output);
}
