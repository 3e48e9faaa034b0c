/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels that are compiled for the host, without any driver, for tests of the kernels
 * themselves. */
#ifndef TUTTI_TESTS_SIMCUDA_SIM_KERNEL_H
#define TUTTI_TESTS_SIMCUDA_SIM_KERNEL_H

#include "simcuda/launch.h"

#include <stddef.h>
#include <stdint.h>

struct sim_kernel_call {
    const char *name;
    uint32_t blocks, threads;
    const void *argument; /* of the kernel's type, aligned to 16 */
};

/* Run a kernel to its end on the calling thread. A name that no kernel has, or more threads than it
 * may have, is a loud end. */
void sim_kernel_run(const char *name, uint32_t blocks, uint32_t threads, const void *argument);

/* Run several at once, each on a thread of its own, and wait for all. */
void sim_kernel_run_all(const struct sim_kernel_call *calls, size_t ncalls);

#endif
