/* SPDX-License-Identifier: Apache-2.0
 * A program is a plan that is bound to the sizes of one kind of call. It is made once and can be
 * run any number of times, so that repeated calls need not compute their sizes again. */
#ifndef TUTTI_EXECUTOR_HOST_PROGRAM_H
#define TUTTI_EXECUTOR_HOST_PROGRAM_H

#include "executor/host/host.h"

/* Binds `plan` to the sizes of `call`. The plan is borrowed and must outlive the program.
 * `half_bytes` is the size of half of the window in bytes. The caller destroys the program.
 * TUTTI_ERR_USAGE: the window has no room for the schedule's slots. TUTTI_ERR_SYSTEM: no memory. */
int tutti_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                         size_t half_bytes, struct tutti_program **ret_program);

/* Limits by which a call is cut into pieces, which run one after the other. All ranks must use the
 * same limits. */
struct tutti_cuts {
    size_t half_bytes;     /* size of half of the window */
    /* The most bytes of the call's larger buffer in a piece. `stage_bytes` applies to calls that
     * are staged, and `scratch_bytes` applies to calls that take SCRATCH. */
    size_t stage_bytes, scratch_bytes;
    /* `npieces` is the number of pieces that can run at the same time. A call is cut into so many
     * pieces only if each piece has at least `least_bytes` bytes of the larger buffer.
     * `least_bytes` is unused if `npieces` is 1. */
    size_t npieces, least_bytes;
};
/* Does the same as tutti_program_create, with limits that the caller chooses. */
int tutti_program_create_cut(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_cuts *cuts, struct tutti_program **ret_program);
/* Destroys the program, and the program that was given to it by tutti_program_set_lent. NULL is
 * ignored. */
void tutti_program_destroy(struct tutti_program *program);

/* Adds a second program to `program`. `lent` runs instead of `program` when all ranks lend their
 * buffers to each other. From then on, `program` owns `lent`. `program` must not have a second
 * program yet. */
void tutti_program_set_lent(struct tutti_program *program, struct tutti_program *lent);

/* Returns the bytes of heap memory that the program holds, for the memory report. */
size_t tutti_program_bytes(const struct tutti_program *program);

#endif
