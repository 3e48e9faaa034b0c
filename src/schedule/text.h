/* SPDX-License-Identifier: Apache-2.0
 * Schedules as text: all ranks of one collective in a file that people can read and edit.
 * Writing and reading again gives the same schedules, step for step.
 */
#ifndef TUTTI_SCHEDULE_TEXT_H
#define TUTTI_SCHEDULE_TEXT_H

#include "schedule/step.h"

/* The schedules of all ranks. */
struct tutti_ensemble {
    char name[64];
    uint32_t nranks;
    struct tutti_schedule **schedules; /* [nranks], owned */
};

int tutti_ensemble_write(const struct tutti_ensemble *ensemble, char **ret_text);

/* `name` is the file's, for messages: TUTTI_ERR_ARGUMENT with "name:line:column: what is wrong". What
 * is read is well-formed (buffers, bounds, peers) but not proved right: that is check.h's business. */
int tutti_ensemble_read(const char *name, const char *text, struct tutti_ensemble *ret_ensemble);

void tutti_ensemble_fini(struct tutti_ensemble *ensemble);

#endif
