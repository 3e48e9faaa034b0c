/* SPDX-License-Identifier: Apache-2.0
 * Facts about a run for its result file: when, where and with which settings. */
#ifndef PERF_FACTS_H
#define PERF_FACTS_H

#include <stddef.h>

#define PERF_FACT_BYTES 128

/* The time now, in UTC: "2026-01-31T12:00:00Z". */
void perf_facts_date(char ret_text[PERF_FACT_BYTES]);

/* The model of the host's processor, or its architecture where the kernel does not report a
 * model. */
void perf_facts_cpu(char ret_text[PERF_FACT_BYTES]);

/* Calls `tell` for each environment variable whose name begins with TUTTI_. `name` is not
 * zero-terminated; use name_length. The value of TUTTI_SECRET is reported as "(hidden)". */
void perf_facts_environment(void (*tell)(void *context, const char *name, size_t name_length,
                                         const char *value),
                            void *context);

#endif
