/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the files of groups share.
 *
 *   group.c      opens and closes groups, collects calls, reports groups that never ended
 *   group_run.c  runs the collected calls and jobs
 */
#ifndef TUTTI_QUEUE_GROUP_PRIVATE_H
#define TUTTI_QUEUE_GROUP_PRIVATE_H

#include "gpu/comm_gpu.h"
#include "queue/group.h"
#include "queue/stream.h"

/* A stream that calls of a part name, and the part's item for the queue of that stream. */
struct tutti_group_use {
    tuttiStream_t stream;           /* held by tutti_stream_hold, so it cannot be destroyed */
    struct tutti_stream_item *item; /* NULL once it is in the stream's queue, which owns it then */
};

/* One communicator's part of the group. The communicator cannot be destroyed while a part of it
 * exists. */
struct tutti_group_part {
    struct tutti_comm *comm;
    size_t call_count;         /* calls on host memory and on device memory, and splits */
    bool is_inside;            /* the thread is inside the communicator, to run the group */
    bool sends_to_itself;      /* the rank sends messages to itself, or receives such messages */
    struct tutti_batch *batch; /* calls on host memory; NULL: none */
    struct tutti_group_use *uses; /* one per stream of its calls */
    size_t use_count;
    uint32_t use_capacity;
    bool is_ours;              /* some call has stream NULL, so the calling thread runs the batch */
    bool is_done;              /* the calling thread need not run it any more */
};

struct tutti_group {
    int depth; /* calls of tuttiGroupStart that tuttiGroupEnd has not yet undone */
    int error; /* of the first call that failed */
    char error_text[TUTTI_MESSAGE_BYTES];
    uint32_t fork_generation;  /* of the process that opened it */
    struct tutti_group_part *parts;
    size_t part_count;
    struct tutti_job **jobs;   /* NULL entries are done */
    size_t job_count;
    uint32_t job_capacity;
    struct tutti_gpu_part *gpu_parts; /* calls on device memory */
    /* The part of the first communicator, and its batch until a call names a stream. Most groups
     * have no other part, so they allocate nothing. */
    struct tutti_group_part first;
    struct tutti_batch batch;

    struct tutti_group *next; /* in the list of all threads' groups */
    uint32_t is_waiting; /* it has calls and has not ended; atomic: read when the process ends */
};

/* Runs the group. The thread must be inside all communicators of the group. Returns the first
 * error. */
int tutti_group_run(struct tutti_group *group);

/* Takes the ticket of the batch, and queues the batch on its streams. If some call has stream NULL,
 * the caller runs the batch, and otherwise the first stream does. This function cannot fail. If
 * only some of the streams got the batch, they would wait for the others forever. */
void tutti_group_issue(struct tutti_group_part *part);

#endif
