/* SPDX-License-Identifier: Apache-2.0
 * Schedules as text: all ranks of one collective in a file that people can read and edit.
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
 * docs/schedule-files.md describes the whole format.
 */
#ifndef TUTTI_SCHEDULE_TEXT_H
#define TUTTI_SCHEDULE_TEXT_H

#include "schedule/step.h"

#define TUTTI_ENSEMBLE_NAME_BYTES 64

/* The schedules of all ranks. */
struct tutti_ensemble {
    char name[TUTTI_ENSEMBLE_NAME_BYTES]; /* name of the algorithm */
    uint32_t nranks;
    struct tutti_schedule **schedules; /* [nranks], owned */
    /* The sizes of calls that the ensemble is made for, in bytes of a rank's larger buffer. Both 0:
     * any size. */
    uint64_t least_bytes, most_bytes;
};

/* Limits of a file. A schedule has one step per line, so the size of the file bounds the number of
 * steps; these limits bound the additional cost of deriving and checking. */
#define TUTTI_TEXT_RANKS_MAX   4096u
#define TUTTI_TEXT_LANES_MAX   65536u              /* ranks times channels */
#define TUTTI_TEXT_CHUNKS_MAX  (1u << 20)          /* chunks of a buffer */
#define TUTTI_TEXT_TOUCHES_MAX (UINT64_C(1) << 25) /* chunks that all steps touch */

/* Read an ensemble; the caller calls tutti_ensemble_fini. `name` is the name of the file, for
 * messages; `text` ends in a zero byte. The result is well-formed (kinds, fields, buffers, bounds,
 * peers) but not proved correct; check.h does that. TUTTI_ERR_ARGUMENT: the text is malformed; the
 * message begins with "name:line:column". TUTTI_ERR_SYSTEM: no memory. */
int tutti_ensemble_read(const char *name, const char *text, struct tutti_ensemble *ret_ensemble);

/* Make room for the schedules of nranks ranks, all NULL. TUTTI_ERR_SYSTEM: no memory. */
int tutti_ensemble_init(struct tutti_ensemble *ensemble, uint32_t nranks);

/* Destroy the schedules; a zeroed object is ignored. */
void tutti_ensemble_fini(struct tutti_ensemble *ensemble);

#endif
