/* SPDX-License-Identifier: Apache-2.0
 * Gives a rank access to its GPU: memory, one stream, and CUDA graphs. These functions call CUDA's
 * driver API, which is loaded at run time, so that hosts without a GPU need no driver. If a driver
 * call fails, the program prints a line on stderr and ends, unless a function says otherwise.
 *
 * The GPU's context must be the current context of the calling thread. perf_gpu_init makes it
 * current.
 */
#ifndef PERF_GPU_H
#define PERF_GPU_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>

#define PERF_GPU_NAME_BYTES 64

struct perf_gpu {
    int rank;   /* the rank that uses it, for messages */
    int device; /* CUDA's index of the GPU */
    char name[PERF_GPU_NAME_BYTES];
    void *context, *stream;
};

/* Ends the program if there is no CUDA driver. Does not initialize the driver, because a process
 * with an initialized driver must not fork. */
void perf_gpu_require(void);

/* Opens GPU `device`. If `device` is -1, the GPU's index is `rank` modulo the number of GPUs. The
 * GPU's primary context becomes the calling thread's current context. The new stream does not
 * synchronize with the default stream. The caller closes the GPU with perf_gpu_fini, which accepts
 * a zero-initialized GPU. Threads may open different GPU structs at the same time. */
void perf_gpu_init(struct perf_gpu *gpu, int rank, int device);
void perf_gpu_fini(struct perf_gpu *gpu);

/* Allocates memory on the GPU, which the caller frees with perf_gpu_free. Returns NULL if there is
 * not enough memory. */
void *perf_gpu_alloc(const struct perf_gpu *gpu, size_t size_bytes);
void perf_gpu_free(const struct perf_gpu *gpu, void *memory);

/* Copies between host and GPU, or within the GPU. The copy is complete on return. */
void perf_gpu_copy(const struct perf_gpu *gpu, void *to, const void *from, size_t size_bytes);

/* Waits until all work on the stream is complete. */
void perf_gpu_synchronize(const struct perf_gpu *gpu);

/* ---- graphs ---- */

/* Work that is enqueued on the stream between begin and end is not run. It is recorded as a graph,
 * which perf_gpu_capture_end returns ready to be launched (a CUgraphExec). perf_gpu_replay enqueues
 * the graph on the stream, any number of times, and does not wait. Other threads may capture at the
 * same time. The caller frees the graph with perf_gpu_graph_free. */
void perf_gpu_capture_begin(const struct perf_gpu *gpu);
void *perf_gpu_capture_end(const struct perf_gpu *gpu);
void perf_gpu_replay(const struct perf_gpu *gpu, void *graph);
void perf_gpu_graph_free(const struct perf_gpu *gpu, void *graph);

#endif
