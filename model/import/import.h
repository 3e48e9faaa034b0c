/* SPDX-License-Identifier: Apache-2.0
 * Reads schedules from two foreign forms. One is the XML that the runtimes of MSCCL load, which are
 * Microsoft's and that of RCCL. The other is the JSON of MSCCL++'s plans. docs/schedule-files.md
 * lists the features that can be expressed.
 */
#ifndef TUTTI_IMPORT_IMPORT_H
#define TUTTI_IMPORT_IMPORT_H

#include "schedule/text.h"

/* Each function reads the schedules of all ranks from a text of `size_bytes` bytes. `name` is the
 * name of the file, for messages. Returns TUTTI_ERR_ARGUMENT if the text is malformed, asks for
 * something that a schedule cannot express, deadlocks or has a race. Returns TUTTI_ERR_SYSTEM if
 * there is no memory. The result is not yet proved correct. On success the caller releases it with
 * tutti_ensemble_fini. */
int tutti_import_xml(const char *name, const char *text, size_t size_bytes,
                     struct tutti_ensemble *ret_ensemble);
int tutti_import_json(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble);

#endif
