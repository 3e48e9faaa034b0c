/* SPDX-License-Identifier: Apache-2.0
 * Runs the works of a launch, each with the code for its kind. All threads of the grid call these
 * functions. Functions that run a work return false if the launch must end. */
#ifndef TUTTI_DEVICE_CUDA_RUN_CUH
#define TUTTI_DEVICE_CUDA_RUN_CUH

#include "device/cuda/copies.cuh"
#include "device/cuda/core.cuh"
#include "device/cuda/direct.cuh"
#include "device/cuda/ll.cuh"
#include "device/cuda/steps.cuh"

/* Runs a work of kind LL or LL128. This function is not inlined, so that all kernels share its
 * code. It uses its own copy of the run, which stays in registers. */
template <typename lines> GPU_FUNCTION bool gpu_run_lines(struct gpu_run *run)
{
    struct gpu_run own = *run;
    const bool is_fine = gpu_ll<lines>(&own);

    *run = own;
    return is_fine;
}

/* Runs a work of kind LL or LL128 from its beginning. */
GPU_INLINE bool gpu_run_small(struct gpu_run *run, const struct tutti_kernel_work *work)
{
    if (!gpu_work_begin(run, work))
        return false;
    return work->kind == TUTTI_KERNEL_WORK_LL ? gpu_run_lines<gpu_ll_lines>(run)
                                              : gpu_run_lines<gpu_ll128_lines>(run);
}

/* Runs a work of kind DIRECT. This function is not inlined, so that all kernels share its code. */
GPU_FUNCTION bool gpu_run_buffers(struct gpu_run *run)
{
    return gpu_direct_run(run);
}

/* Runs a work of kind DIRECT from its beginning. */
GPU_INLINE bool gpu_run_direct(struct gpu_run *run, const struct tutti_kernel_work *work)
{
    return gpu_work_begin(run, work) && gpu_run_buffers(run);
}

/* Runs a work of any kind but COPIES. */
GPU_INLINE bool gpu_run_any(struct gpu_run *run, const struct tutti_kernel_work *work)
{
    if (work->kind == TUTTI_KERNEL_WORK_STEPS || work->kind == TUTTI_KERNEL_WORK_MESSAGES)
        return gpu_work_begin(run, work) && gpu_run_steps(run);
    return work->kind == TUTTI_KERNEL_WORK_DIRECT ? gpu_run_direct(run, work)
                                                  : gpu_run_small(run, work);
}

/* All threads: copies a work, which may be in host memory, into shared memory. */
GPU_INLINE void gpu_fetch_work(tutti_kernel_work *to, const struct tutti_kernel_work *from)
{
    const uint32_t nwords = sizeof *to / sizeof(uint64_t);

    for (uint32_t i = gpu_thread(); i < nwords; i += gpu_threads())
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
    gpu_barrier();
}

/* Runs the works of a launch one after the other. The grid meets between two works, so no thread
 * reads a work when the next one takes its place. */
GPU_INLINE void gpu_run_group(struct gpu_run *run, const struct tutti_kernel_launch *launch)
{
    GPU_SHARED(tutti_kernel_work, work);
    bool is_fine = gpu_run_any(run, &launch->first);

    for (uint32_t i = 1; i < launch->nworks; i++) {
        if (!gpu_meet(run, is_fine))
            return;
        gpu_fetch_work(&work, &launch->more[i - 1]);
        is_fine = gpu_run_any(run, &work);
    }
}

#endif
