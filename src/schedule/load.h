/* SPDX-License-Identifier: Apache-2.0
 * Schedules from a file in our own form, proved right.
 */
#ifndef TUTTI_SCHEDULE_LOAD_H
#define TUTTI_SCHEDULE_LOAD_H

#include "schedule/text.h"

enum tutti_schedule_form {
    TUTTI_SCHEDULE_OWN,  /* text.h */
    TUTTI_SCHEDULE_XML,  /* MSCCL's, by other libraries and compilers */
    TUTTI_SCHEDULE_JSON, /* MSCCL++'s plans */
};

/* The form of a file, by its first character, and where its text begins: behind a byte order mark,
 * if there is one. `name` is the file's, for messages; the text ends in zero, which `size_bytes`
 * does not count. TUTTI_ERR_ARGUMENT: a byte before the end is zero. */
int tutti_schedule_form(const char *name, const char *text, size_t size_bytes,
                        enum tutti_schedule_form *ret_form, size_t *ret_begin);

/* Prove that an ensemble does what its collective promises, and note how it sums.
 * TUTTI_ERR_ARGUMENT with "name: rank 1, step 2 (send): what is wrong": it does not. */
int tutti_ensemble_prove(const char *name, struct tutti_ensemble *ensemble);

/* Read a file in our own form and prove it; the caller calls tutti_ensemble_fini.
 * TUTTI_ERR_ARGUMENT: it is malformed or not right, or it is in another form, which `tutti-sched
 * import` translates. */
int tutti_ensemble_load(const char *name, const char *text, size_t size_bytes,
                        struct tutti_ensemble *ret_ensemble);

#endif
