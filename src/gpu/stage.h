/* SPDX-License-Identifier: Apache-2.0
 * Stages: page-locked host memory, and the state that belongs to it, for calls on device memory
 * that go through the host (stage.c). stage_memory.c keeps a pool of stages. */
#ifndef TUTTI_GPU_STAGE_H
#define TUTTI_GPU_STAGE_H

#include "gpu/comm_gpu.h"
#include "queue/stream.h"

/* Memory and state of one call, or of the calls of a group, while they go through the host. */
struct tutti_stage {
    struct tutti_stage *next;    /* in the list of the communicator */
    struct tutti_comm *comm;
    uint8_t *bytes;              /* page-locked: a head with the word, then the staged buffers */
    size_t size_bytes;           /* of `bytes` */
    uint32_t *word;              /* set to 1 when the calls are done; the stream waits for it */
    struct tutti_cu_event *event; /* follows the copies of the results on the stream */
    bool is_recorded, is_captured; /* the event is recorded; the calls are part of a graph */
    bool is_issued_late;         /* the batch gets its ticket in the host function, not earlier */
    /* Not captured: the batch to run. The thread that atomically swaps the batch for NULL pushes it
     * to the host stream. */
    struct tutti_batch *batch;
    struct tutti_batch *pattern; /* captured: a batch of which each replay runs a copy */
};

/* Size of the head of stage->bytes. The buffers after it begin on a cache line. */
enum { TUTTI_STAGE_HEAD_BYTES = TUTTI_CACHE_LINE };

/* Takes a stage that is not in use and has room for `size_bytes` of buffers, or makes one. The
 * communicator owns the stage. With `is_captured` the stage stays in use until the communicator is
 * freed. Any other stage is in use until its event has passed. The GPU's context must be current.
 * TUTTI_ERR_SYSTEM: there is no memory. Other errors are those of tutti_cuda_fail. Thread-safe. */
int tutti_stage_take(struct tutti_comm *comm, size_t size_bytes, bool is_captured,
                     struct tutti_stage **ret_stage);

#endif
