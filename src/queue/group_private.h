/* SPDX-License-Identifier: Apache-2.0
 * What the files of groups share.
 *
 *   group.c      a thread's group: collect calls, open and close, what becomes of a forgotten one
 *   group_run.c  run what was collected
 */
#ifndef TUTTI_QUEUE_GROUP_PRIVATE_H
#define TUTTI_QUEUE_GROUP_PRIVATE_H

#include "gpu/comm_gpu.h"
#include "queue/group.h"
#include "queue/stream.h"

/* A stream that a part was called with, and its place in that stream's queue. */
struct use {
    tuttiStream_t stream;           /* held: it cannot be destroyed */
    struct tutti_stream_item *item; /* NULL: pushed */
};

/* One communicator's part of the group. The communicator cannot be destroyed meanwhile. */
struct part {
    struct tutti_comm *comm;
    size_t call_count;         /* of all kinds: on host memory, on device memory, splits */
    bool is_inside;            /* the thread is inside the communicator, to run the group */
    bool sends_to_itself;      /* there are messages from or to the rank itself */
    struct tutti_batch *batch; /* calls on host memory; NULL: none */
    struct use *uses;          /* of different streams */
    size_t use_count;
    bool is_ours;              /* called with stream NULL, too: the caller moves it */
    bool is_done;
};

struct group {
    int depth;
    int error; /* of the first call that failed */
    char error_text[TUTTI_MESSAGE_BYTES];
    uint32_t fork_generation;  /* of the process that has opened it */
    struct part *parts;
    size_t part_count;
    struct tutti_job **jobs;   /* NULL entries are done */
    size_t job_count;
    struct tutti_gpu_part *gpu_parts; /* calls on device memory */
    /* The part of the first communicator and, until a stream is asked for, its batch: most groups
     * have no other, and allocate nothing. */
    struct part first;
    struct tutti_batch batch;

    struct group *next;  /* of another thread */
    uint32_t is_waiting; /* it has calls and has not ended; atomic: others look when all ends */
};

/* Run it; the thread is inside all of its communicators. */
int tutti_group_run(struct group *group);

/* Take the ticket and queue the batch on its streams. The first stream moves it; with NULL among
 * them the caller does. Cannot fail: a batch that some of its streams hold must reach the others,
 * or all would wait for ever. */
void tutti_group_issue(struct part *part);

#endif
