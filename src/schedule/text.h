/* SPDX-License-Identifier: Apache-2.0
 * Schedules as text: all ranks of one collective in a file that people can read and edit.
 * Writing and reading again gives the same schedules, step for step.
 *
 *   tutti-schedule 1
 *   algorithm ring              # a comment
 *   collective allgather
 *   ranks 2
 *   rank 0
 *     send to 1 src input[0]
 *     recv from 1 dst output[1]
 *     copy src input[0] dst output[0]
 *   rank 1
 *     ...
 *
 * docs/schedule-files.md has all of it.
 */
#ifndef TUTTI_SCHEDULE_TEXT_H
#define TUTTI_SCHEDULE_TEXT_H

#include "schedule/step.h"

#define TUTTI_ENSEMBLE_NAME_BYTES 64

/* The schedules of all ranks. */
struct tutti_ensemble {
    char name[TUTTI_ENSEMBLE_NAME_BYTES]; /* of the algorithm */
    uint32_t nranks;
    struct tutti_schedule **schedules; /* [nranks], owned */
    /* Calls that it is made for: bytes of a rank's larger buffer. Both 0: any. */
    uint64_t least_bytes, most_bytes;
};

/* What a file may ask for. A schedule has a step per line, so its file bounds it; these bound what
 * deriving and checking cost beyond that. */
#define TUTTI_TEXT_RANKS_MAX   4096u
#define TUTTI_TEXT_LANES_MAX   65536u              /* ranks times channels */
#define TUTTI_TEXT_CHUNKS_MAX  (1u << 20)          /* of a buffer */
#define TUTTI_TEXT_TOUCHES_MAX (UINT64_C(1) << 25) /* chunks that all steps touch */

/* TUTTI_ERR_ARGUMENT: the schedules are not those of one collective, or the name has characters
 * that a line cannot hold. The caller frees *ret_text. */
int tutti_ensemble_write(const struct tutti_ensemble *ensemble, char **ret_text);

/* `name` is the file's, for messages: TUTTI_ERR_ARGUMENT with "name:line:column: what is wrong".
 * What is read is well-formed (kinds, fields, buffers, bounds, peers) but not proved right: that is
 * check.h's business. */
int tutti_ensemble_read(const char *name, const char *text, struct tutti_ensemble *ret_ensemble);

/* Room for the schedules of nranks ranks, all NULL. */
int tutti_ensemble_init(struct tutti_ensemble *ensemble, uint32_t nranks);

void tutti_ensemble_fini(struct tutti_ensemble *ensemble);

#endif
