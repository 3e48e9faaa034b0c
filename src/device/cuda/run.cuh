/* SPDX-License-Identifier: Apache-2.0
 * Launches of communicating kernels, from their begin to their end. */
#ifndef TUTTI_DEVICE_CUDA_RUN_CUH
#define TUTTI_DEVICE_CUDA_RUN_CUH

#include "device/cuda/core.cuh"
#include "device/cuda/ll.cuh"

/* The works are one function for all kernels: it takes the run as it is and returns what changed. */
template <typename lines> GPU_FUNCTION bool gpu_run_ll(struct gpu_run *run)
{
    struct gpu_run own = *run;
    const bool is_fine = gpu_ll<lines>(&own);

    run->heard = own.heard;
    return is_fine;
}

GPU_INLINE bool gpu_run_work(struct gpu_run *run, const struct tutti_gpu_work *work)
{
    if (!gpu_work_begin(run, work))
        return false;
    switch (work->kind) {
    case TUTTI_GPU_LL: return gpu_run_ll<gpu_ll_lines>(run);
    default: return gpu_run_ll<gpu_ll128_lines>(run);
    }
}

GPU_INLINE void gpu_run_small(const struct tutti_gpu_launch *launch)
{
    struct gpu_run run;

    if (gpu_run_begin(&run, launch))
        gpu_run_work(&run, &launch->first);
    gpu_run_end(&run);
}
#endif
