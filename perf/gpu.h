/* SPDX-License-Identifier: Apache-2.0
 * A rank's GPU, by CUDA's driver API, which is loaded at run time as the library does: its memory,
 * its stream, its graphs. Whatever the driver refuses ends the program with a line that says so.
 */
#ifndef PERF_GPU_H
#define PERF_GPU_H

#include <tutti.h>

#include <stdbool.h>
#include <stddef.h>

#define PERF_GPU_NAME_BYTES 64

struct perf_gpu {
    int rank;   /* of whom, for messages */
    int device; /* as CUDA counts them */
    char name[PERF_GPU_NAME_BYTES];
    void *context, *stream;
};

/* Is there a driver at all? Ends the program if not. Leaves nothing behind that a fork would
 * mind. */
void perf_gpu_require(void);

/* The GPU `device`, or with -1 that of number `rank` modulo their number. Its primary context
 * becomes the thread's current one; its stream is one that does not wait for the default stream. */
void perf_gpu_init(struct perf_gpu *gpu, int rank, int device);
void perf_gpu_fini(struct perf_gpu *gpu);

/* NULL: there is not as much. Free it with free. */
void *perf_gpu_alloc(const struct perf_gpu *gpu, size_t size_bytes);
void perf_gpu_free(const struct perf_gpu *gpu, void *memory);

/* Between host and GPU or within it; complete on return. */
void perf_gpu_copy(const struct perf_gpu *gpu, void *to, const void *from, size_t size_bytes);

/* Wait for all that is on the stream. */
void perf_gpu_synchronize(const struct perf_gpu *gpu);

/* ---- graphs ---- */

/* What is enqueued on the stream between the two is not run, but becomes a graph, to be run as
 * often as one likes. Another thread may capture at the same time. */
void perf_gpu_capture_begin(const struct perf_gpu *gpu);
void *perf_gpu_capture_end(const struct perf_gpu *gpu);
void perf_gpu_replay(const struct perf_gpu *gpu, void *graph);
void perf_gpu_graph_free(const struct perf_gpu *gpu, void *graph);

#endif
