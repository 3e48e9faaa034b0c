/* SPDX-License-Identifier: Apache-2.0
 * Switches from one stack to another. This part of fibers differs between processors. */
#ifndef TUTTI_TESTS_SIMCUDA_FIBER_SWITCH_H
#define TUTTI_TESTS_SIMCUDA_FIBER_SWITCH_H

#include <stddef.h>

/* Go on where `to` was left; what to come back to is written to *ret_from before. */
void sim_switch(void **ret_from, void *to);

/* The stack pointer to switch to, so that `enter`, which must not return, is called on this
 * stack. */
void *sim_switch_prepare(void *stack, size_t size_bytes, void (*enter)(void));

#endif
