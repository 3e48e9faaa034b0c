/* SPDX-License-Identifier: Apache-2.0
 * Schedules from a file of any form that is known.
 */
#ifndef TUTTI_IMPORT_LOAD_H
#define TUTTI_IMPORT_LOAD_H

#include "schedule/text.h"

/* Read `size_bytes` of `text`, which ends with a zero, by what they look like: XML, JSON, or our
 * own form. `name` is the file's, for messages. TUTTI_ERR_ARGUMENT: it is malformed. */
int tutti_import_read(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble);

/* The same, and prove that it does what its collective promises. TUTTI_ERR_ARGUMENT with "name:
 * rank 1, step 2 (send): what is wrong": it does not. */
int tutti_import_load(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble);

#endif
