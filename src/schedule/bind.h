/* SPDX-License-Identifier: Apache-2.0
 * Bind: from chunks to bytes, for one count, element size and list of counts.
 *
 * A bound schedule holds no pointers. Offsets are relative to the start of each buffer, so that it
 * can be cached and used by every call of the same size.
 */
#ifndef TUTTI_SCHEDULE_BIND_H
#define TUTTI_SCHEDULE_BIND_H

#include "schedule/step.h"

/* The sizes of one call, in elements. */
struct tutti_extent {
    size_t element_bytes;
    /* Elements of each block, when `input_counts` and `output_counts` are NULL. */
    size_t block_count;
    /* Vector collectives: one entry per block; displs NULL: the blocks are packed. If a buffer has
     * one block, its entry is this rank's entry of the other buffer's counts. */
    const size_t *input_counts, *input_displs;
    const size_t *output_counts, *output_displs;
    /* Uniform calls that run in pieces: blocks begin `input_stride` and `output_stride` elements
     * apart in the user's buffers, and a piece covers block_count elements of each. 0: the blocks
     * are packed. */
    size_t input_stride, output_stride;
};

/* The span of a step that an offset belongs to. */
enum tutti_slot {
    TUTTI_AT_SRC,
    TUTTI_AT_DST,
    TUTTI_AT_REMOTE,
    TUTTI_AT_ALSO,
    TUTTI_AT_REMOTE_DST,
    TUTTI_AT_COUNT
};

/* A run of bytes that is contiguous in every span of a step. */
struct tutti_segment {
    size_t bytes;
    size_t at[TUTTI_AT_COUNT]; /* byte offset in each span's buffer */
};

struct tutti_bound_step {
    uint32_t first, count; /* its segments */
    size_t bytes;          /* sum of the bytes of its segments */
};

struct tutti_bound {
    const struct tutti_schedule *schedule; /* borrowed */
    size_t scratch_bytes; /* bytes of SCRATCH that one run needs */
    size_t slot_bytes;    /* bytes from one WINDOW slot to the next */
    struct tutti_bound_step *steps;
    struct tutti_segment *segments;
    uint32_t nsegments;
};

/* Bind a schedule, which must outlive the result. The caller frees *ret_bound with
 * tutti_bound_fini. TUTTI_ERR_SYSTEM: no memory. */
int tutti_bind(const struct tutti_schedule *schedule, const struct tutti_extent *extent,
               struct tutti_bound *ret_bound);

/* Bytes that a step moves in a uniform call: the same as tutti_bind finds, without building a list
 * of segments. */
size_t tutti_bind_step_bytes(const struct tutti_schedule *schedule, const struct tutti_step *step,
                             size_t element_bytes, size_t block_count);

/* Free what bind allocated; a zeroed object is ignored. */
void tutti_bound_fini(struct tutti_bound *bound);

/* Limits on what a communicator holds, in bytes of the larger buffer. Calls that are first copied
 * to memory of the communicator run in pieces of at most TUTTI_STAGE_BYTES. Calls that only use
 * SCRATCH, and all-to-alls, run in pieces of at most TUTTI_SCRATCH_BYTES. They are defined here
 * because predictions use them too. */
#define TUTTI_STAGE_BYTES ((size_t)16 << 20)
#define TUTTI_SCRATCH_BYTES ((size_t)64 << 20)

/* Elements per block that one run may cover if one half of a rank's window has `half_bytes` bytes:
 * as many as fit, at most block_count. 0 (with block_count > 0): the half is too small for the
 * slots. */
size_t tutti_bind_piece(const struct tutti_schedule *schedule, size_t element_bytes,
                        size_t block_count, size_t half_bytes);

#endif
