/* SPDX-License-Identifier: Apache-2.0
 * Loads schedules from a file in the library's own form, and proves them correct before they are
 * used.
 */
#ifndef TUTTI_SCHEDULE_LOAD_H
#define TUTTI_SCHEDULE_LOAD_H

#include "schedule/text.h"

enum tutti_schedule_form {
    TUTTI_SCHEDULE_OWN,  /* text.h */
    TUTTI_SCHEDULE_XML,  /* the XML form of MSCCL */
    TUTTI_SCHEDULE_JSON, /* the plans of MSCCL++ */
};

/* Find the form of a file from its first character that is not white space. *ret_begin is the
 * offset at which its text begins: after a byte order mark, if there is one. `name` is the name of
 * the file, for messages. `text` ends in a zero byte, which `size_bytes` does not count.
 * TUTTI_ERR_ARGUMENT: an earlier byte is zero. */
int tutti_schedule_form(const char *name, const char *text, size_t size_bytes,
                        enum tutti_schedule_form *ret_form, size_t *ret_begin);

/* Prove that an ensemble does what its collective promises, and set sums_in_stages of its
 * schedules. TUTTI_ERR_ARGUMENT, with a message that names the rank and the step: it does not.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_ensemble_prove(const char *name, struct tutti_ensemble *ensemble);

/* Read a file in the library's own form and prove it; the caller calls tutti_ensemble_fini.
 * TUTTI_ERR_ARGUMENT: the file is malformed or its schedules are not correct, or it is in another
 * form, which `tutti-sched import` translates. TUTTI_ERR_SYSTEM: no memory. */
int tutti_ensemble_load(const char *name, const char *text, size_t size_bytes,
                        struct tutti_ensemble *ret_ensemble);

#endif
