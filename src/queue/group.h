/* SPDX-License-Identifier: Apache-2.0
 * Groups: what the calling thread has asked for since tuttiGroupStart. */
#ifndef TUTTI_QUEUE_GROUP_H
#define TUTTI_QUEUE_GROUP_H

#include "queue/batch.h"

/* True between tuttiGroupStart and the outermost tuttiGroupEnd of this thread. */
bool tutti_group_is_open(void);

/* TUTTI_ERR_USAGE while an open group holds calls on `comm`, which the calling thread is inside.
 * `function` is named in the message. */
int tutti_group_check_unused(const struct tutti_comm *comm, const char *function);

/* Ask for `call` (checked) on `comm`, which the thread is inside: at once, on the stream, or when
 * the group ends. `found` is for tutti_cache_again. */
int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call,
                     struct tutti_found *found, tuttiStream_t stream);

/* The same for a call on device memory, whose stream is CUDA's. */
int tutti_group_gpu_call(struct tutti_comm *comm, const struct tutti_call *call,
                         tuttiStream_t stream);

/* A failed call inside a group spoils it: tuttiGroupEnd returns `rc` and runs nothing. Returns rc.
 */
int tutti_group_note(int rc);

/* Something that takes a while and is no operation: forming a communicator, splitting one. */
struct tutti_job {
    /* A communicator that the job needs, which the thread is inside; NULL: none. */
    struct tutti_comm *parent;
    /* Go on. TUTTI_AGAIN: not done. Any other result is final. */
    int (*progress)(struct tutti_job *job);
    /* Wait a little after TUTTI_AGAIN. */
    void (*idle)(struct tutti_job *job);
    /* Deliver the outcome, or undo everything when `rc` is an error; frees the job. Returns the
     * final result. */
    int (*close)(struct tutti_job *job, int rc);
};

/* Do the job, which is taken: at once, or when the group ends. */
int tutti_group_job(struct tutti_job *job);

#endif
