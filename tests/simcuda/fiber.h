/* SPDX-License-Identifier: Apache-2.0
 * Fibers are the threads of a simulated GPU. A fiber runs on the thread that resumes it, until it
 * yields or its function returns. Sanitizers are told of every switch. For TSan a fiber is a
 * thread, and switching orders nothing. */
#ifndef TUTTI_TESTS_SIMCUDA_FIBER_H
#define TUTTI_TESTS_SIMCUDA_FIBER_H

#include <stdbool.h>

struct sim_fiber;

/* One that will run `function`, from a pool that all threads share. Never NULL. For TSan it is one thread
 * together with `sibling`, which has not run yet, or a thread of its own (NULL). */
struct sim_fiber *sim_fiber_take(void (*function)(void *), void *argument, struct sim_fiber *sibling);
/* Back into the pool. One that has not ended is thrown away, whatever is on its stack. */
void sim_fiber_give(struct sim_fiber *fiber);

/* Run it until it gives way; true when it has ended. Always on the same thread. */
bool sim_fiber_resume(struct sim_fiber *fiber);
/* Inside a fiber: back to who resumed it. */
void sim_fiber_give_way(void);
/* Whether an address lies on its stack. */
bool sim_fiber_has(const struct sim_fiber *fiber, const void *at);

#endif
