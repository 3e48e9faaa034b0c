/* SPDX-License-Identifier: Apache-2.0
 * A program: a plan with the sizes of one kind of call. Made once, run often. */
#ifndef TUTTI_EXECUTOR_HOST_PROGRAM_H
#define TUTTI_EXECUTOR_HOST_PROGRAM_H

#include "executor/host/host.h"

/* Binds `plan`, borrowed, to the sizes of `call`. `half_bytes` is the size of a window half.
 * TUTTI_ERR_USAGE: the window has no room for the schedule's slots. */
int tutti_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                         size_t half_bytes, struct tutti_program **ret_program);

/* Limits by which a call is cut into pieces. They must be the same on all ranks. */
struct tutti_cuts {
    size_t half_bytes;     /* size of a window half */
    /* Most bytes of the call's larger buffer in a piece: of calls that are staged, and of calls
     * that take SCRATCH. */
    size_t stage_bytes, scratch_bytes;
    /* Pieces that can run at the same time. A call is cut into so many only if each has at least
     * `least_bytes` of the larger buffer; unused if npieces is 1. */
    size_t npieces, least_bytes;
};
/* tutti_program_create with limits that the caller chooses. */
int tutti_program_create_cut(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_cuts *cuts, struct tutti_program **ret_program);
/* Destroys the program, and the one given to tutti_program_lend. NULL is ignored. */
void tutti_program_destroy(struct tutti_program *program);

/* Makes `lent` the program that runs the same call when all ranks lend their buffers. Takes it
 * over. */
void tutti_program_lend(struct tutti_program *program, struct tutti_program *lent);

/* Bytes of heap held, for the memory report. */
size_t tutti_program_bytes(const struct tutti_program *program);

#endif
