/* SPDX-License-Identifier: Apache-2.0
 * A batch holds the operations that one call or one group starts on one communicator.
 *
 * The collectives of a batch run one after the other. Its messages all run at the same time, beside
 * the collectives. The batches of a communicator run one at a time, in the order of their tickets.
 * Each stream on which a batch was called holds a reference to the batch. Once every stream has
 * reached the batch, one thread runs it. This is the thread of the first stream, or the calling
 * thread if one of the batch's calls has stream NULL.
 */
#ifndef TUTTI_QUEUE_BATCH_H
#define TUTTI_QUEUE_BATCH_H

#include "base/long_wait.h"
#include "comm/comm.h"

/* Number of messages that fit into struct tutti_batch itself, without an allocation. */
#define TUTTI_FEW_MESSAGES 4

/* A batch's place in the queue of a stream. */
struct tutti_stream_item {
    struct tutti_batch *batch;
    bool runs_batch; /* true: this stream runs the batch; false: it only waits for the batch */
    struct tutti_stream_item *next;
};

struct tutti_batch {
    struct tutti_comm *comm;
    uint64_t ticket;           /* position in the order of the communicator's batches */
    uint64_t deadline_ns;      /* 0 until the batch has its turn and has waited for a while */
    bool is_started;           /* true once its turn has come */
    bool is_on_heap;           /* true if the batch itself is allocated on the heap */
    const struct tutti_call *collectives; /* own_collectives, or the caller's only call */
    struct tutti_call *own_collectives;   /* copies, in `first` until more room is needed */
    size_t collective_count, collective_capacity;
    size_t collective_position; /* collectives that are complete */
    struct tutti_engine_message *messages; /* in `few` until more room is needed */
    size_t message_count, message_capacity;
    size_t messages_left;      /* messages that are not complete; valid once issued */
    uint32_t passes;           /* idle passes; they decide when to check deadline and peers */
    uint64_t watched_ns;       /* time of the last check; 0: none, as in most batches */
    uint32_t *done_word;       /* set to 1 when the batch is over; NULL: none */
    struct tutti_long_wait wait; /* the wait since the last progress, as the checks measure it */
    int left_rank;             /* the rank awaited at the last check, if it had left; else -1 */
    struct tutti_idle idle;

    /* State that the threads of the batch's streams share. */
    uint32_t streams_missing;  /* streams that have not reached the batch; release/acquire */
    uint32_t references;       /* atomic */
    bool is_done;              /* stores release, paired with acquire in the other streams */
    int result;                /* valid once is_done */

    /* Room for what most batches hold, so that they need no other memory. */
    struct tutti_engine_message few[TUTTI_FEW_MESSAGES];
    struct tutti_call first;
    struct tutti_stream_item stream_item;
};

/* Both functions make an empty batch of `comm` with one reference. tutti_batch_init uses the
 * caller's memory, and tutti_batch_create allocates on the heap. TUTTI_ERR_SYSTEM: no memory. */
void tutti_batch_init(struct tutti_batch *batch, struct tutti_comm *comm);
int tutti_batch_create(struct tutti_comm *comm, struct tutti_batch **ret_batch);
/* Moves a batch from the caller's memory to the heap, so that streams can use the batch after the
 * call has returned. The batch must not be issued yet. On success the caller must not use or
 * release `batch` any more. */
int tutti_batch_move(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* Makes a new batch on the heap with the same calls as `batch`. `batch` is a template that is never
 * issued itself. */
int tutti_batch_copy(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* Adds a copy of `call`. If the call has arrays of counts and displacements, they are copied too.
 * The batch must not be issued yet. */
int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call);
/* Takes the batch's ticket. From then on the batch must be run to its end, because later batches of
 * the communicator wait for it. */
void tutti_batch_issue(struct tutti_batch *batch);
/* Drops a reference. With the last reference, everything that the batch holds is freed. A batch
 * that was issued must be done by then. NULL is ignored. */
void tutti_batch_release(struct tutti_batch *batch);

/* Runs the batch as far as possible without waiting. *moved is set to true if any progress was
 * made, and is never cleared. Returns TUTTI_AGAIN if the batch does not have its turn, or if not
 * all bytes could move yet. Any other result is final. The final result is kept in batch->result,
 * and the turn passes to the next batch. A final error has been recorded with tutti_comm_fail. */
int tutti_batch_progress(struct tutti_batch *batch, bool *moved);

/* The caller calls this after tutti_batch_progress has moved nothing. Before the batch has its
 * turn, this function gives up the core for a short time. From then on it waits as
 * tutti_fabric_idle does. */
void tutti_batch_idle(struct tutti_batch *batch);

/* The next two functions are in batch_watch.c. tutti_batch_progress calls tutti_batch_watch after
 * each pass that moved nothing while the batch has the turn. From time to time tutti_batch_watch
 * checks the deadline and the peers. Returns an error if the wait must end, else TUTTI_OK. */
int tutti_batch_watch(struct tutti_batch *batch);
/* Records the first error of the communicator, and names the call that failed. */
void tutti_batch_record(const struct tutti_batch *batch, int rc);

/* Alternates progress and idle until the batch is done. Returns its result. */
int tutti_batch_wait(struct tutti_batch *batch);

/* The next two functions run a call without waiting for it. tutti_batch_begin issues a batch that
 * has only this call. tutti_batch_continue makes progress with it. It returns TUTTI_AGAIN until the
 * call is over. Then it releases the batch, sets *batch to NULL and returns the call's result. If
 * *batch is NULL, it returns TUTTI_OK. */
int tutti_batch_begin(struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_batch **ret_batch);
int tutti_batch_continue(struct tutti_batch **batch);

/* Runs one call that has stream NULL and is not in a group, and waits until the call is complete.
 * This is the fastest way to run a call: most collectives then need no batch. `found` is the
 * program that the cache has found for the call (tutti_cache_recall), or NULL. */
int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_calls_recalled *found);

#endif
