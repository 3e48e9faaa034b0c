/* SPDX-License-Identifier: Apache-2.0
 * The environment variables of the measuring programs. docs/environment.md describes them. */
#ifndef PERF_ENVIRONMENT_H
#define PERF_ENVIRONMENT_H

/* The value of a variable; NULL if it is unset or empty. */
const char *perf_environment(const char *name);

#endif
