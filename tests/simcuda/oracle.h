/* SPDX-License-Identifier: Apache-2.0
 * Computes the results of programs. It runs the programs of all ranks one step at a time on one
 * thread, with whole messages in unlimited queues. It knows the steps, but no slots, lanes that
 * wait, or blocks. */
#ifndef TUTTI_TESTS_SIMCUDA_ORACLE_H
#define TUTTI_TESTS_SIMCUDA_ORACLE_H

#include "executor/host/program.h"

/* Fails the test when no rank can go on. */
void oracle_run(const struct tutti_program *const *programs, const struct tutti_call *calls,
                uint32_t nranks);

#endif
