/* SPDX-License-Identifier: Apache-2.0
 * The threads of a block are two crews, which work at the same time. */
#include "device/cuda/platform.cuh"

#include "device/cuda/reduce.cuh"
#include "test_crew_kernels.h"

GPU_KERNEL(try_two_crews, 256, try_crews, argument)
{
    const uint32_t thread = gpu_thread(), first = argument.first, count = argument.count;
    const gpu_crew crew = {thread - first, count}; /* beyond it for those not in it */
    const bool is_before = thread < first;
    const gpu_crew others = {is_before ? thread : thread - count, gpu_threads() - count};

    gpu_reduce(&argument.crew_job, crew);
    if (crew.index >= count)
        gpu_reduce(&argument.others_job, others);
    gpu_barrier();
    gpu_convert(&argument.conversion, crew);
    gpu_copy(argument.conversion.dst, argument.conversion.src, 0, crew);
}
