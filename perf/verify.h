/* SPDX-License-Identifier: Apache-2.0
 * Fills buffers with known inputs, and counts the errors in them afterwards. */
#ifndef PERF_VERIFY_H
#define PERF_VERIFY_H

#include "buffers.h"
#include "pattern.h"
#include "perf.h"

/* The memory of one case. Out of place, there is one input region, which must not change, and there
 * are `nregions` output regions. In place, each of `nregions` regions in the output arena holds the
 * input and the output. All pointers are borrowed. */
struct perf_field {
    const struct perf_collective *collective;
    const struct perf_case *call;
    const struct perf_pattern *pattern;
    struct perf_arena *input, *output;
    size_t nregions; /* set by perf_measure_plan */
    bool is_in_place;
    bool is_misaligned; /* regions start one element past an aligned address */
    uint64_t phase; /* element of the pattern at which the inputs begin; set by perf_field_fill */
};

/* Return the bytes that the field needs in each of its two arenas. */
size_t perf_field_input_need(const struct perf_field *field);
size_t perf_field_output_need(const struct perf_field *field);

/* Cuts the arenas into regions, fills the inputs from the pattern, and fills the outputs with
 * PERF_POISON. Takes `phase` modulo the pattern's period. */
void perf_field_fill(struct perf_field *field, uint64_t phase);

/* Return the send buffer and the receive buffer of the call on region `index`. */
const void *perf_field_send(const struct perf_field *field, size_t index);
void *perf_field_recv(const struct perf_field *field, size_t index);

/* Copies a GPU's memory to the host for checking. The caller does this after all calls on the field
 * are complete, and before it uses the two functions below. */
void perf_field_fetch(const struct perf_field *field);

/* Counts the wrong elements in regions first .. first + count - 1 and in the input region. An
 * element is wrong if it differs from the result of one call on the filled buffers. Returns
 * SIZE_MAX / 2 if memory for the check runs out. */
size_t perf_field_wrong(const struct perf_field *field, size_t first, size_t count);

/* Returns the number of guard bytes that have changed. */
size_t perf_field_overruns(const struct perf_field *field);

#endif
