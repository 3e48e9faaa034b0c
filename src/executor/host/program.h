/* SPDX-License-Identifier: Apache-2.0
 * A program: a plan with the sizes of one kind of call. Made once, run often. */
#ifndef TUTTI_EXECUTOR_HOST_PROGRAM_H
#define TUTTI_EXECUTOR_HOST_PROGRAM_H

#include "executor/host/host.h"

/* Bind `plan` (borrowed) to the sizes of `call`. `half_bytes` is the room of a window half.
 * TUTTI_ERR_USAGE when the window has no room for the schedule's slots. */
int tutti_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                         size_t half_bytes, struct tutti_program **ret_program);

/* By what a call is cut into pieces: the same on all ranks. */
struct tutti_cuts {
    size_t half_bytes;     /* room of a window half */
    /* Most of the larger buffer that a piece may have: when it is staged, and when it takes
     * SCRATCH. */
    size_t stage_bytes, scratch_bytes;
    /* So many pieces run at the same time, if each has at least so much of the larger buffer. */
    size_t npieces, least_bytes;
};
int tutti_program_create_cut(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_cuts *cuts, struct tutti_program **ret_program);
void tutti_program_destroy(struct tutti_program *program);

/* By `lent`, taken over, the same call runs on lent memory. */
void tutti_program_lend(struct tutti_program *program, struct tutti_program *lent);

/* Heap held, for the memory report. */
size_t tutti_program_bytes(const struct tutti_program *program);

#endif
