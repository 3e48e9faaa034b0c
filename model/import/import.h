/* SPDX-License-Identifier: Apache-2.0
 * Reads schedules from the XML that MSCCL's runtimes load (Microsoft's and the one of RCCL), and
 * from the JSON plans of MSCCL++. docs/schedule-files.md says what can be expressed.
 */
#ifndef TUTTI_IMPORT_IMPORT_H
#define TUTTI_IMPORT_IMPORT_H

#include "schedule/text.h"

/* `name` is the file's, for messages; the text has `size_bytes`. TUTTI_ERR_ARGUMENT: it is
 * malformed, asks for something that cannot be expressed, deadlocks or races. The result is not yet
 * proved correct; the caller calls tutti_ensemble_fini. */
int tutti_import_xml(const char *name, const char *text, size_t size_bytes,
                     struct tutti_ensemble *ret_ensemble);
int tutti_import_json(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble);

#endif
