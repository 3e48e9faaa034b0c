/* SPDX-License-Identifier: Apache-2.0
 * Groups. A group holds the calls that a thread makes between tuttiGroupStart and tuttiGroupEnd,
 * which then run together. Each thread has its own group, and these functions refer to it. */
#ifndef TUTTI_QUEUE_GROUP_H
#define TUTTI_QUEUE_GROUP_H

#include "queue/batch.h"

/* True between tuttiGroupStart and the outermost tuttiGroupEnd of this thread. */
bool tutti_group_is_open(void);

/* Returns TUTTI_ERR_USAGE if an open group of any thread holds calls on `comm`. The calling thread
 * must be inside `comm`. The message names `function`. */
int tutti_group_check_unused(const struct tutti_comm *comm, const char *function);

/* Runs `call` on `comm`. In an open group, the call is kept for tuttiGroupEnd. Otherwise the call
 * is complete on return if `stream` is NULL, and queued if `stream` is a host stream. `call` must
 * have been checked, and is copied as needed. The calling thread must be inside `comm`. `found` is
 * passed to tutti_cache_recall. */
int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call,
                     struct tutti_calls_recalled *found, tuttiStream_t stream);

/* The same for a call on device memory; `stream` is a CUDA stream or NULL. */
int tutti_group_gpu_call(struct tutti_comm *comm, const struct tutti_call *call,
                         tuttiStream_t stream);

/* Every public function that may be called inside a group passes its result `rc` to this function.
 * If a group is open and `rc` is an error, tuttiGroupEnd runs nothing and returns the first such
 * error. Returns `rc`. */
int tutti_group_note(int rc);

/* A longer task that is no operation, such as forming or splitting a communicator. */
struct tutti_job {
    /* A communicator that the job needs; NULL: none. The thread must be inside it. */
    struct tutti_comm *parent;
    /* Continues the job. TUTTI_AGAIN: call again. Any other result is final. */
    int (*progress)(struct tutti_job *job);
    /* Waits a little after TUTTI_AGAIN. */
    void (*idle)(struct tutti_job *job);
    /* Delivers the outcome, or undoes everything if `rc` is an error. Frees the job. Returns the
     * final result. */
    int (*close)(struct tutti_job *job, int rc);
};

/* Runs the job at once, or keeps it until the open group ends. Takes ownership of `job`, also on
 * failure. Returns the result of job->close, or TUTTI_OK if the job is kept. */
int tutti_group_job(struct tutti_job *job);

#endif
