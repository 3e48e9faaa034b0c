/* SPDX-License-Identifier: Apache-2.0
 * What programs come to: all ranks' programs run one step at a time on one thread, messages
 * whole and in queues without end. It knows the steps, and nothing of slots, lanes that wait, or
 * blocks. */
#ifndef TUTTI_TESTS_SIMCUDA_ORACLE_H
#define TUTTI_TESTS_SIMCUDA_ORACLE_H

#include "executor/host/program.h"

/* Fails the test when no rank can go on. */
void oracle_run(const struct tutti_program *const *programs, const struct tutti_call *calls,
                uint32_t nranks);

#endif
