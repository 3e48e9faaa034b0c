/* SPDX-License-Identifier: Apache-2.0
 * The interpreter of schedules as a kernel of its own, for its tests. */
#include "device/cuda/platform.cuh"

#include "device/cuda/steps.cuh"

GPU_INLINE const struct tutti_gpu_work *work_number(const struct tutti_gpu_launch *launch,
                                                    uint32_t i)
{
    return i == 0 ? &launch->first : &launch->more[i - 1];
}

GPU_KERNEL(test_gpu_steps, TUTTI_GPU_THREADS, tutti_gpu_launch, launch)
{
    struct gpu_run run;
    bool is_fine = gpu_run_begin(&run, &launch);

    for (uint32_t i = 0; i < launch.nworks && is_fine; i++)
        is_fine = (i == 0 || gpu_meet(&run, true)) &&
                  gpu_work_begin(&run, work_number(&launch, i)) && gpu_run_steps(&run);
    gpu_run_end(&run);
}
