/* SPDX-License-Identifier: Apache-2.0
 * The facts that tutti-info prints: sections of a JSON tree, printed as JSON or as text.
 *
 * Each function returns a new section, which the caller owns. None fails: a fact that cannot be
 * determined has the reason as its text. */
#ifndef TUTTI_TOOLS_INFO_FACTS_H
#define TUTTI_TOOLS_INFO_FACTS_H

#include <jansson.h>
#include <stdbool.h>

/* Adds one fact to a section. */
void facts_add(json_t *section, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- library.c: this build, and the libraries beneath it ----------------------------------- */

json_t *facts_of_build(void);
json_t *facts_of_libraries(void);
json_t *facts_of_gpus(void);
json_t *facts_of_rdma(void);

/* ---- host.c: this host, as this process sees it -------------------------------------------- */

/* Whether ranks may read each other's memory (CMA). Tries it between two processes, so call this
 * first, while the process has no other threads. */
json_t *facts_of_memory(void);
json_t *facts_of_processor(void);
json_t *facts_of_limits(void);
/* An array with one object per address. */
json_t *facts_of_interfaces(void);
/* An array with one object per TUTTI_* variable. *ret_are_right is false if one is unknown or has a
 * value that the library would not accept. */
json_t *facts_of_variables(bool *ret_are_right);

#endif
