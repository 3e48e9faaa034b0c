/* SPDX-License-Identifier: Apache-2.0
 * A rank's GPU through CUDA's driver API, which is loaded at run time as in the library: its
 * memory, its stream, its graphs. If a driver call fails, the program ends with a line that says
 * so.
 */
#ifndef PERF_GPU_H
#define PERF_GPU_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>

#define PERF_GPU_NAME_BYTES 64

struct perf_gpu {
    int rank;   /* the rank that uses it, for messages */
    int device; /* CUDA's index */
    char name[PERF_GPU_NAME_BYTES];
    void *context, *stream;
};

/* Ends the program if there is no CUDA driver. Leaves nothing behind that would disturb a later
 * fork. */
void perf_gpu_require(void);

/* Opens GPU `device`, or with -1 the one whose index is `rank` modulo the number of GPUs. Its
 * primary context becomes the calling thread's current context. Its stream does not synchronize
 * with the default stream. Fini accepts a zero-initialized GPU. */
void perf_gpu_init(struct perf_gpu *gpu, int rank, int device);
void perf_gpu_fini(struct perf_gpu *gpu);

/* Allocates memory on the GPU, to be freed with perf_gpu_free. NULL: not enough memory. */
void *perf_gpu_alloc(const struct perf_gpu *gpu, size_t size_bytes);
void perf_gpu_free(const struct perf_gpu *gpu, void *memory);

/* Copies between host and GPU or within the GPU; complete on return. */
void perf_gpu_copy(const struct perf_gpu *gpu, void *to, const void *from, size_t size_bytes);

/* Waits for everything on the stream. */
void perf_gpu_synchronize(const struct perf_gpu *gpu);

/* ---- graphs ---- */

/* Work enqueued on the stream between begin and end is not run but recorded as a graph, which can
 * be replayed any number of times. Other threads may capture at the same time. The caller frees the
 * graph with perf_gpu_graph_free. */
void perf_gpu_capture_begin(const struct perf_gpu *gpu);
void *perf_gpu_capture_end(const struct perf_gpu *gpu);
void perf_gpu_replay(const struct perf_gpu *gpu, void *graph);
void perf_gpu_graph_free(const struct perf_gpu *gpu, void *graph);

#endif
