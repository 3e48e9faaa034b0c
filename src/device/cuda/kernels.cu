/* SPDX-License-Identifier: Apache-2.0
 * Defines all kernels of the library. This is the only file that nvcc compiles for GPUs. The tests'
 * build compiles this file for the simulated GPU. */
#include "device/cuda/platform.cuh"

#include "device/cuda/line_test.cuh"
#include "device/cuda/local.h"
#include "device/cuda/reduce.cuh"
#include "device/cuda/run.cuh"
#include "device/cuda/work.h"

/* ---- without other ranks ------------------------------------------------------------------ */

GPU_KERNEL(tutti_kernel_reduce, TUTTI_KERNEL_THREADS, tutti_kernel_reduce_argument, argument)
{
    tutti_kernel_reduction job = argument.job;

    if (job.srcs == NULL) {
        job.srcs = (const void *const *)argument.pointers;
        job.dsts = argument.pointers + job.nsrcs;
    }
    gpu_reduce(&job, gpu_crew_of_grid());
}

GPU_KERNEL(tutti_kernel_convert, TUTTI_KERNEL_THREADS, tutti_kernel_conversion, argument)
{
    gpu_convert(&argument, gpu_crew_of_grid());
}

GPU_KERNEL(tutti_kernel_copy, TUTTI_KERNEL_THREADS, tutti_kernel_copy_argument, argument)
{
    gpu_copy(argument.dst, argument.src, argument.size_bytes, gpu_crew_of_grid());
}

GPU_KERNEL(tutti_kernel_empty, TUTTI_KERNEL_THREADS, tutti_kernel_empty_argument, argument)
{
    (void)argument;
}

/* ---- with other ranks ------------------------------------------------------------------------ */

/* Tests whether lines arrive whole from peers. */
GPU_KERNEL(tutti_kernel_test_lines, TUTTI_KERNEL_THREADS, tutti_kernel_line_test, test)
{
    gpu_test_lines(&test);
}

/* Runs one work of kind LL or LL128. */
GPU_KERNEL(tutti_kernel_work_small, TUTTI_KERNEL_THREADS, tutti_kernel_launch, launch)
{
    gpu_run run;

    if (gpu_run_begin(&run, &launch))
        gpu_run_small(&run, &launch.first);
    gpu_run_end(&run);
}

/* Runs one work of kind DIRECT. */
GPU_KERNEL(tutti_kernel_work_direct, TUTTI_KERNEL_THREADS, tutti_kernel_launch, launch)
{
    gpu_run run;

    if (gpu_run_begin(&run, &launch))
        gpu_run_direct(&run, &launch.first);
    gpu_run_end(&run);
}

/* Runs works of all kinds but COPIES, one after the other. */
GPU_KERNEL(tutti_kernel_group, TUTTI_KERNEL_THREADS, tutti_kernel_launch, launch)
{
    gpu_run run;

    if (gpu_run_begin(&run, &launch))
        gpu_run_group(&run, &launch);
    gpu_run_end(&run);
}

/* Runs one meeting of a work of kind COPIES. The launch has one block. */
GPU_KERNEL(tutti_kernel_meeting, TUTTI_KERNEL_THREADS, tutti_kernel_launch, launch)
{
    gpu_run run;

    if (gpu_run_begin(&run, &launch))
        gpu_copies_meet(&run, &launch.first);
    gpu_run_end(&run);
}
