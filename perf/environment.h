/* SPDX-License-Identifier: Apache-2.0
 * Reads the environment variables of the measuring programs. All of these programs use this one
 * function. docs/environment.md describes the variables. */
#ifndef PERF_ENVIRONMENT_H
#define PERF_ENVIRONMENT_H

/* Returns the value of a variable, or NULL if the variable is unset or empty. The environment owns
 * the text. */
const char *perf_environment(const char *name);

#endif
