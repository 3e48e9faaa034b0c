/* SPDX-License-Identifier: Apache-2.0
 * Fills buffers with known inputs, and counts the errors in them afterwards. */
#ifndef PERF_VERIFY_H
#define PERF_VERIFY_H

#include "buffers.h"
#include "pattern.h"
#include "perf.h"

/* The memory of one case, out of place or in place. Out of place it has one input region, which
 * must not change, and `nregions` output regions. In place it has `nregions` regions that hold
 * both. */
struct perf_field {
    const struct perf_collective *what;
    const struct perf_case *call;
    const struct perf_pattern *pattern;
    struct perf_arena *input, *output;
    size_t nregions;
    bool is_in_place, is_misaligned;
    uint64_t phase; /* offset into the pattern's period at which the buffers begin */
};

/* Bytes that the two arenas must hold for the field. */
size_t perf_field_input_need(const struct perf_field *field);
size_t perf_field_output_need(const struct perf_field *field);

/* Cuts and fills all regions; outputs are poisoned. Takes `phase` modulo the pattern's period. */
void perf_field_fill(struct perf_field *field, uint64_t phase);

/* Arguments of the call on region `index`. */
const void *perf_field_send(const struct perf_field *field, size_t index);
void *perf_field_recv(const struct perf_field *field, size_t index);

/* Copies a GPU's memory to the host for checking. Call it after the last call and before the two
 * functions below. */
void perf_field_fetch(const struct perf_field *field);

/* The number of elements that differ from the result of one call on the filling, in regions `first`
 * .. `first + count - 1` and in the input. Returns SIZE_MAX / 2 if there is no memory to check. */
size_t perf_field_wrong(const struct perf_field *field, size_t first, size_t count);

/* The number of bytes outside the regions that were overwritten. */
size_t perf_field_overruns(const struct perf_field *field);

#endif
