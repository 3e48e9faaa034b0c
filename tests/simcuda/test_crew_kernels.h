/* SPDX-License-Identifier: Apache-2.0
 * The argument of the kernel of test_kernel_crews.c. */
#ifndef TUTTI_TESTS_SIMCUDA_TEST_CREW_KERNELS_H
#define TUTTI_TESTS_SIMCUDA_TEST_CREW_KERNELS_H

#include "device/cuda/local.h"

/* Threads [first, first + count) of the block do one thing, all others another. */
struct try_crews {
    struct tutti_kernel_reduction crew_job, others_job;
    struct tutti_kernel_conversion conversion; /* the crew's too, afterwards */
    uint32_t first, count;
};

#endif
