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
    struct tutti_cu_stream *stream; /* does not wait for the default one */
    struct tutti_cu_event *from, *to;
    uint32_t multiprocessors, threads; /* threads: most of a block of ours */
    size_t free_bytes;
    char name[64];
    double load_ms; /* to load the kernels into the context */
};

void bench_gpu_open(int device, struct bench_gpu *ret_gpu);
void bench_gpu_close(struct bench_gpu *gpu);

/* Another stream of the same GPU, for the calling thread: a copy, to be closed by leave. */
void bench_gpu_join(const struct bench_gpu *gpu, struct bench_gpu *ret_gpu);
void bench_gpu_leave(struct bench_gpu *gpu);

_Noreturn void bench_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_must(const struct bench_gpu *gpu, const char *what, int code);

void *bench_gpu_alloc(const struct bench_gpu *gpu, size_t size_bytes);
void bench_gpu_free(const struct bench_gpu *gpu, void *memory);
/* Complete on return. */
void bench_gpu_copy(const struct bench_gpu *gpu, void *to, const void *from, size_t size_bytes);
void bench_gpu_synchronize(const struct bench_gpu *gpu);
void bench_gpu_launch(const struct bench_gpu *gpu, enum tutti_kernel_name kernel, uint32_t blocks,
                      uint32_t threads, const void *argument);

/* A graph of what is enqueued between the two. */
struct bench_graph;
void bench_graph_begin(const struct bench_gpu *gpu);
struct bench_graph *bench_graph_end(const struct bench_gpu *gpu);
void bench_graph_replay(const struct bench_gpu *gpu, struct bench_graph *graph);
void bench_graph_free(const struct bench_gpu *gpu, struct bench_graph *graph);

/* Sorts. */
double bench_median(double *values, size_t count);

#endif
