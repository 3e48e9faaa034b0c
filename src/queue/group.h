/* SPDX-License-Identifier: Apache-2.0
 * Groups: the calls that the calling thread has made since tuttiGroupStart. */
#ifndef TUTTI_QUEUE_GROUP_H
#define TUTTI_QUEUE_GROUP_H

#include "queue/batch.h"

/* True between tuttiGroupStart and the outermost tuttiGroupEnd of this thread. */
bool tutti_group_is_open(void);

/* TUTTI_ERR_USAGE if an open group of any thread holds calls on `comm`. The calling thread must be
 * inside `comm`. `function` is named in the message. */
int tutti_group_check_unused(const struct tutti_comm *comm, const char *function);

/* Runs `call` on `comm`. In an open group it is kept for tuttiGroupEnd. Otherwise it is complete on
 * return if `stream` is NULL, and queued on the host stream if not. `call` must have been checked,
 * and is copied as needed. The calling thread must be inside `comm`. `found` is for
 * tutti_cache_again. */
int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call,
                     struct tutti_found *found, tuttiStream_t stream);

/* The same for a call on device memory; `stream` is a CUDA stream or NULL. */
int tutti_group_gpu_call(struct tutti_comm *comm, const struct tutti_call *call,
                         tuttiStream_t stream);

/* Call it with the result of each call that may be inside a group. If it is an error and a group is
 * open, tuttiGroupEnd runs nothing and returns the first such error. Returns rc. */
int tutti_group_note(int rc);

/* A longer task that is no operation, such as forming or splitting a communicator. */
struct tutti_job {
    /* A communicator that the job needs and the thread is inside of; NULL: none. */
    struct tutti_comm *parent;
    /* Continues the job. TUTTI_AGAIN: call again. Any other result is final. */
    int (*progress)(struct tutti_job *job);
    /* Waits a little after TUTTI_AGAIN. */
    void (*idle)(struct tutti_job *job);
    /* Delivers the outcome, or undoes everything if `rc` is an error. Frees the job. Returns the
     * final result. */
    int (*close)(struct tutti_job *job, int rc);
};

/* Runs the job at once, or keeps it until the open group ends. Takes ownership of it, also on
 * failure. */
int tutti_group_job(struct tutti_job *job);

#endif
