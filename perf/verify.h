/* SPDX-License-Identifier: Apache-2.0
 * Filling buffers with known inputs, and counting what is wrong in them afterwards. */
#ifndef PERF_VERIFY_H
#define PERF_VERIFY_H

#include "buffers.h"
#include "pattern.h"
#include "perf.h"

/* The memory of one case, out of place or in place. Out of place: one input region, which must stay
 * as it is, and `nregions` output regions. In place: `nregions` regions that hold both. */
struct perf_field {
    const struct perf_collective *what;
    const struct perf_case *call;
    const struct perf_pattern *pattern;
    struct perf_arena *input, *output;
    size_t nregions;
    bool is_in_place, is_misaligned;
    uint64_t phase; /* where in the pattern's period the buffers begin */
};

/* Bytes that the two arenas must hold for the field. */
size_t perf_field_input_need(const struct perf_field *field);
size_t perf_field_output_need(const struct perf_field *field);

/* Cut and fill all regions: outputs are poisoned. */
void perf_field_fill(struct perf_field *field, uint64_t phase);

/* Arguments of the call on region `index`. */
const void *perf_field_send(const struct perf_field *field, size_t index);
void *perf_field_recv(const struct perf_field *field, size_t index);

/* Before the two below, after the last call: a GPU's memory is looked at on the host. */
void perf_field_fetch(const struct perf_field *field);

/* Elements that are not what one call makes of the filling, in the regions `first` ..
 * `first + count - 1`, and in the input. */
size_t perf_field_wrong(const struct perf_field *field, size_t first, size_t count);

/* Bytes outside the regions that were overwritten. */
size_t perf_field_overruns(const struct perf_field *field);

#endif
