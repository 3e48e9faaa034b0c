/* SPDX-License-Identifier: Apache-2.0
 * Page-locked memory of the host for calls on device memory that go through it. */
#ifndef TUTTI_GPU_STAGE_H
#define TUTTI_GPU_STAGE_H

#include "gpu/comm_gpu.h"
#include "queue/stream.h"

/* The calls of a group, or one, on their way through the host. */
struct tutti_stage {
    struct tutti_stage *next;
    struct tutti_comm *comm;
    uint8_t *bytes;              /* page-locked: the word, then staged buffers */
    size_t size_bytes;
    uint32_t *word;              /* 1: the calls are done */
    struct tutti_cu_event *event; /* behind what copies the results in */
    bool is_recorded, is_captured;
    bool is_issued_late;         /* by the host function, not by the call */
    struct tutti_batch *batch;   /* not captured: who takes it, atomically, pushes it; NULL: done */
    struct tutti_batch *pattern; /* captured: what is issued each time */
};

/* One with room for so much, not in use. `is_captured`: it never comes back. */
int tutti_stage_take(struct tutti_comm *comm, size_t size_bytes, bool is_captured,
                     struct tutti_stage **ret_stage);

#endif
