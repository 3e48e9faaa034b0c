/* SPDX-License-Identifier: Apache-2.0
 * One GPU to measure on: its context, kernels, a stream, and clocks. A failure ends the program
 * with a line that names it. */
#ifndef BENCH_GPU_MACHINE_H
#define BENCH_GPU_MACHINE_H

#include "device/cuda/cuda_kernels.h"
#include "wrap/cuda.h"

#include <stddef.h>
#include <stdint.h>

struct bench_gpu {
    const struct tutti_cu_driver *cuda;
    struct tutti_kernel_module *kernels;
    struct tutti_cu_context *context;
    struct tutti_cu_stream *stream;   /* does not wait for the default stream */
    struct tutti_cu_event *from, *to; /* around what is timed */
    uint32_t multiprocessors;
    uint32_t threads;  /* the most threads in a block of the library's kernels */
    size_t free_bytes; /* memory that was free at the opening */
    char name[64];
    double load_ms; /* the time to load the kernels into the context */
};

/* Opens the GPU number `device`, makes its primary context current on the calling thread, and loads
 * the library's kernels. */
void bench_gpu_open(int device, struct bench_gpu *ret_gpu);
void bench_gpu_close(struct bench_gpu *gpu);

/* Makes another stream and other events on the same GPU, for the calling thread. The result is to
 * be closed by bench_gpu_leave, before `gpu` is closed. */
void bench_gpu_join(const struct bench_gpu *gpu, struct bench_gpu *ret_gpu);
void bench_gpu_leave(struct bench_gpu *gpu);

/* Writes the message to stderr and ends the process. */
_Noreturn void bench_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the process unless `code`, the result of the driver's function `what`, is success. */
void bench_must(const struct bench_gpu *gpu, const char *what, int code);

void *bench_gpu_alloc(const struct bench_gpu *gpu, size_t size_bytes);
void bench_gpu_free(const struct bench_gpu *gpu, void *memory);
/* Copies between any memory of the host and of the GPU. The copy is complete on return. */
void bench_gpu_copy(const struct bench_gpu *gpu, void *to, const void *from, size_t size_bytes);
/* Waits until the work of gpu->stream is complete. */
void bench_gpu_synchronize(const struct bench_gpu *gpu);
/* Enqueues a kernel on gpu->stream. */
void bench_gpu_launch(const struct bench_gpu *gpu, enum tutti_kernel_name kernel, uint32_t blocks,
                      uint32_t threads, const void *argument);

/* A CUDA graph of the work that is enqueued on gpu->stream between bench_graph_begin and
 * bench_graph_end. */
struct bench_graph;
void bench_graph_begin(const struct bench_gpu *gpu);
struct bench_graph *bench_graph_end(const struct bench_gpu *gpu);
void bench_graph_replay(const struct bench_gpu *gpu, struct bench_graph *graph);
void bench_graph_free(const struct bench_gpu *gpu, struct bench_graph *graph);

/* Returns the median of at least one value. Sorts the values. */
double bench_median(double *values, size_t count);

#endif
