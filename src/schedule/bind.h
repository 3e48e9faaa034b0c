/* SPDX-License-Identifier: Apache-2.0
 * Binds a schedule to the sizes of a call: finds the byte offsets of its chunks for one count,
 * element size and list of counts.
 *
 * A bound schedule holds no pointers to data. Offsets are relative to the start of each buffer, so
 * that a bound schedule can be cached and used by every call of the same size.
 */
#ifndef TUTTI_SCHEDULE_BIND_H
#define TUTTI_SCHEDULE_BIND_H

#include "schedule/step.h"

/* The sizes of one call, in elements. */
struct tutti_extent {
    size_t element_bytes;
    /* Elements of each block, when `input_counts` and `output_counts` are NULL. */
    size_t block_count;
    /* For vector collectives, one entry per block. If the displs of a buffer are NULL, its blocks
     * are packed. If a buffer has one block, its only entry is the count of this rank in the other
     * buffer. */
    const size_t *input_counts, *input_displs;
    const size_t *output_counts, *output_displs;
    /* For uniform calls that run in pieces. Blocks begin `input_stride` and `output_stride`
     * elements apart in the user's buffers, and a piece covers block_count elements of each block.
     * 0: the blocks are packed. */
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
    size_t at[TUTTI_AT_COUNT]; /* byte offset in the buffer of each span that the step has */
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

/* Bytes that a step moves in a uniform call. The result is the same as that of tutti_bind, but no
 * list of segments is built. */
size_t tutti_bind_step_bytes(const struct tutti_schedule *schedule, const struct tutti_step *step,
                             size_t element_bytes, size_t block_count);

/* Free the memory that tutti_bind allocated; a zeroed object is ignored. */
void tutti_bound_fini(struct tutti_bound *bound);

/* Limits on the memory that a communicator holds, in bytes of the larger buffer of a call. Calls
 * whose data is first copied to memory of the communicator run in pieces of at most
 * TUTTI_STAGE_BYTES. Calls that only use SCRATCH, and all-to-alls, run in pieces of at most
 * TUTTI_SCRATCH_BYTES. The limits are defined here because predictions use them too. */
#define TUTTI_STAGE_BYTES ((size_t)16 << 20)
#define TUTTI_SCRATCH_BYTES ((size_t)64 << 20)

/* Elements per block that one run may cover if one half of a rank's window has `half_bytes` bytes:
 * as many as fit, but at most block_count. If block_count > 0, a result of 0 means that the half is
 * too small for the slots. */
size_t tutti_bind_piece(const struct tutti_schedule *schedule, size_t element_bytes,
                        size_t block_count, size_t half_bytes);

#endif
