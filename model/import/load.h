/* SPDX-License-Identifier: Apache-2.0
 * Loads the schedules of all ranks from the text of a file. The text may have any form that is
 * known: Tutti's own form (schedule/text.h), XML or JSON (import/import.h).
 */
#ifndef TUTTI_IMPORT_LOAD_H
#define TUTTI_IMPORT_LOAD_H

#include "schedule/text.h"

/* Detects the form of `text` and reads it. The text has `size_bytes` bytes and one more, which is
 * zero. `name` is the name of the file, for messages. Returns TUTTI_ERR_ARGUMENT if the text is
 * malformed, or for the other reasons that import/import.h lists. Returns TUTTI_ERR_SYSTEM if there
 * is no memory. On success the caller releases *ret_ensemble with tutti_ensemble_fini. */
int tutti_import_read(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble);

/* Does the same and then proves that the schedules do what their collective promises. If they do
 * not, the function returns TUTTI_ERR_ARGUMENT, with a message like "name: rank 1, step 2 (send):
 * what is wrong". */
int tutti_import_prove(const char *name, const char *text, size_t size_bytes,
                       struct tutti_ensemble *ret_ensemble);

#endif
