/* SPDX-License-Identifier: Apache-2.0
 * Finds facts about a run for its result file: its date, its processor and its settings. */
#ifndef PERF_FACTS_H
#define PERF_FACTS_H

#include <stddef.h>

#define PERF_FACT_BYTES 128

/* Writes the time now, in UTC, for instance "2026-01-31T12:00:00Z". */
void perf_facts_date(char ret_text[PERF_FACT_BYTES]);

/* Writes the model of the host's processor. Writes the architecture if the kernel does not report a
 * model, and "" if both are unknown. */
void perf_facts_cpu(char ret_text[PERF_FACT_BYTES]);

/* Calls `tell` for each environment variable whose name begins with TUTTI_. `name` is not
 * zero-terminated; it has name_length bytes. Both texts belong to the environment. For
 * TUTTI_SECRET, the value is "(hidden)". */
void perf_facts_environment(void (*tell)(void *context, const char *name, size_t name_length,
                                         const char *value),
                            void *context);

#endif
