/* SPDX-License-Identifier: Apache-2.0
 * Collects the facts that tutti-info prints. They are sections of a JSON tree, which tutti-info
 * prints as JSON or as text.
 *
 * Each function returns a new section, which the caller owns. No function fails. If a fact cannot
 * be determined, its text gives the reason. */
#ifndef TUTTI_TOOLS_INFO_FACTS_H
#define TUTTI_TOOLS_INFO_FACTS_H

#include <jansson.h>
#include <stdbool.h>

/* Adds one fact to a section. Cuts off a text of more than 1023 bytes. */
void facts_add(json_t *section, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- library.c: this build, and the libraries beneath it ----------------------------------- */

json_t *facts_of_build(void);     /* compiler, flags, and the GPUs that the kernels are for */
json_t *facts_of_libraries(void); /* versions of the libraries that this program uses */
json_t *facts_of_gpus(void);      /* drivers of GPUs, and the GPUs that they find */
json_t *facts_of_rdma(void);      /* libibverbs, and the ports of the devices that it finds */

/* ---- host.c: this host, as this process sees it -------------------------------------------- */

/* Tells, among other facts, whether ranks may read each other's memory (CMA). The function forks
 * two processes to try this. So it must be called first, while the process has no other threads. */
json_t *facts_of_memory(void);
json_t *facts_of_processor(void); /* also the host's name and its system */
json_t *facts_of_limits(void);    /* resource limits of this process */
/* Returns an array with one object for each address of a network interface. */
json_t *facts_of_interfaces(void);
/* Returns an array with one object per TUTTI_* variable that is set. *ret_are_right is false if a
 * variable is unknown or has a value that the library does not accept. */
json_t *facts_of_variables(bool *ret_are_right);

#endif
