/* SPDX-License-Identifier: Apache-2.0
 * What a result file says of the run: when, where and with which settings. */
#ifndef PERF_FACTS_H
#define PERF_FACTS_H

#include <stddef.h>

#define PERF_FACT_BYTES 128

/* Now, in UTC: "2026-01-31T12:00:00Z". */
void perf_facts_date(char ret_text[PERF_FACT_BYTES]);

/* The model of the host's processor; where the kernel does not tell it, its architecture. */
void perf_facts_cpu(char ret_text[PERF_FACT_BYTES]);

/* Call `tell` for each variable of the environment whose name begins with TUTTI_. The value of
 * TUTTI_SECRET is not given: "(hidden)" is. */
void perf_facts_environment(void (*tell)(void *context, const char *name, size_t name_length,
                                         const char *value),
                            void *context);

#endif
