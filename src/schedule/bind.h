/* SPDX-License-Identifier: Apache-2.0
 * Bind: from chunks to bytes, for one count, element size and list of counts.
 *
 * A bound schedule still holds no pointers: offsets are relative to the start
 * of each buffer, so it can be cached and used by every call of the same size.
 */
#ifndef TUTTI_SCHEDULE_BIND_H
#define TUTTI_SCHEDULE_BIND_H

#include "schedule/step.h"

/* The sizes of one call, in elements. */
struct tutti_extent {
    size_t element_bytes;
    /* Elements of each block, when `input_counts` and `output_counts` are NULL. */
    size_t block_count;
    /* Vector collectives: one entry per block; displs NULL: packed. A buffer of one block
     * in a vector collective has this rank's entry of the other buffer's counts. */
    const size_t *input_counts, *input_displs;
    const size_t *output_counts, *output_displs;
    /* Uniform calls run in pieces: blocks lie `block_stride` elements apart in the user's buffers,
     * of which a piece covers block_count. 0: they lie packed. */
    size_t input_stride, output_stride;
};

/* Which span of a step an offset belongs to. */
enum tutti_slot {
    TUTTI_AT_SRC,
    TUTTI_AT_DST,
    TUTTI_AT_REMOTE,
    TUTTI_AT_ALSO,
    TUTTI_AT_REMOTE_DST,
    TUTTI_AT_COUNT
};

/* A run of bytes that is contiguous in every span of its step. */
struct tutti_segment {
    size_t bytes;
    size_t at[TUTTI_AT_COUNT]; /* byte offset in each span's buffer */
};

struct tutti_bound_step {
    uint32_t first, count; /* its segments */
    size_t bytes;          /* their sum */
};

struct tutti_bound {
    const struct tutti_schedule *schedule; /* borrowed */
    size_t scratch_bytes; /* SCRATCH memory one run needs */
    size_t slot_bytes;    /* distance of WINDOW slots */
    struct tutti_bound_step *steps;
    struct tutti_segment *segments;
    uint32_t nsegments;
};

int tutti_bind(const struct tutti_schedule *schedule, const struct tutti_extent *extent,
               struct tutti_bound *ret_bound);

/* Bytes that a step moves in a uniform call: what bind finds, without a list of segments. */
size_t tutti_bind_step_bytes(const struct tutti_schedule *schedule, const struct tutti_step *step,
                             size_t element_bytes, size_t block_count);

/* Free what bind allocated; a zeroed object is ignored. */
void tutti_bound_fini(struct tutti_bound *bound);

/* Two-sided calls run in pieces of about so much of the larger buffer: bounds the staging memory
 * that a communicator holds. Here, for predictions know it too. */
#define TUTTI_STAGE_BYTES ((size_t)16 << 20)

/* Elements per block that one run may cover when a rank's window half has `half_bytes`: as many as
 * fit, at most block_count. 0 (with block_count > 0): no room for so many slots. */
size_t tutti_bind_piece(const struct tutti_schedule *schedule, size_t element_bytes,
                        size_t block_count, size_t half_bytes);

#endif
