/* SPDX-License-Identifier: Apache-2.0
 * Ends a simulation that has found a mistake. */
#ifndef TUTTI_TESTS_SIMCUDA_DIE_H
#define TUTTI_TESTS_SIMCUDA_DIE_H

/* A caller's mistake, or a test's: says it and aborts. */
_Noreturn void sim_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
