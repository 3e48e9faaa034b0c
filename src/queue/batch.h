/* SPDX-License-Identifier: Apache-2.0
 * A batch: what one call or one group asks of one communicator.
 *
 * Its collectives run one after the other. Its messages all run at the same time, beside the
 * collectives. Its ticket says when its turn on the communicator comes. Each stream of a batch
 * holds a reference to it. Once every stream has reached the batch, one thread runs it: that of the
 * first stream, or the calling thread if one of its calls has stream NULL.
 */
#ifndef TUTTI_QUEUE_BATCH_H
#define TUTTI_QUEUE_BATCH_H

#include "base/long_wait.h"
#include "comm/comm.h"

/* Messages that fit into a batch itself, without an allocation. */
#define TUTTI_FEW_MESSAGES 4

/* A batch's place in the queue of a stream. */
struct tutti_stream_item {
    struct tutti_batch *batch;
    bool moves; /* true if this stream runs the batch; false if it only waits for it */
    struct tutti_stream_item *next;
};

struct tutti_batch {
    struct tutti_comm *comm;
    uint64_t ticket;
    uint64_t deadline_ns;      /* 0 until it has waited for a while since its turn came */
    bool is_started;           /* its turn has come */
    bool is_on_heap;           /* the batch itself is allocated on the heap */
    const struct tutti_call *collectives; /* own_collectives, or the caller's only call */
    struct tutti_call *own_collectives;   /* copies; `first` until more room is needed */
    size_t collective_count, collective_capacity, collective_position;
    struct tutti_message *messages; /* `few` until more room is needed */
    size_t message_count, message_capacity, messages_left;
    uint32_t passes;           /* idle passes; they decide when to check deadline and peers */
    uint64_t watched_ns;       /* time of the last check; 0: none, as in most batches */
    uint32_t *done_word;       /* set to 1 when the batch is over; NULL: none */
    struct tutti_long_wait wait; /* since a byte last moved, as seen by the checks */
    int left_rank;             /* the rank awaited at the last check, if it had left; else -1 */
    struct tutti_idle idle;

    /* On streams. */
    uint32_t streams_missing;  /* streams that have not reached it yet; release/acquire */
    uint32_t references;       /* atomic */
    bool is_done;              /* stores release, paired with acquire in the other streams */
    int result;

    /* Room for what most batches hold, so that they need no other memory. */
    struct tutti_message few[TUTTI_FEW_MESSAGES];
    struct tutti_call first;
    struct tutti_stream_item place;
};

/* An empty batch of `comm` with one reference, in memory of the caller or on the heap. */
void tutti_batch_init(struct tutti_batch *batch, struct tutti_comm *comm);
int tutti_batch_create(struct tutti_comm *comm, struct tutti_batch **ret_batch);
/* Moves a batch that is not issued from the caller's memory to the heap, because streams outlive a
 * call. Do not use or release `batch` afterwards. */
int tutti_batch_move(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* Makes a new batch with the same calls as `batch`, which serves as a template and is never issued
 * itself. */
int tutti_batch_copy(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* Adds a copy of `call`; a v-form's arrays are copied too. The batch must not be issued yet. */
int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call);
/* Takes the ticket. From then on the batch must be run to its end, or later batches wait for
 * ever. */
void tutti_batch_issue(struct tutti_batch *batch);
/* Drops a reference; the last one frees what the batch holds. A batch that was issued must be done
 * then. NULL is ignored. */
void tutti_batch_release(struct tutti_batch *batch);

/* Runs the batch as far as it can without waiting. *moved is set to true if any progress was made,
 * and is never cleared. TUTTI_AGAIN: it is not its turn, or not all bytes could move yet. Any other
 * result is final: it is kept in batch->result, and the turn passes to the next batch. An error has
 * been recorded with tutti_comm_fail. */
int tutti_batch_progress(struct tutti_batch *batch, bool *moved);

/* Call it after a pass that moved nothing. Waits as tutti_fabric_idle does. */
void tutti_batch_idle(struct tutti_batch *batch);

/* batch_watch.c. Called after each idle pass of a batch that has the turn: from time to time it
 * checks for events that end the wait. */
int tutti_batch_watch(struct tutti_batch *batch);
/* Records the first error of the communicator, with the call that met it. */
void tutti_batch_record(const struct tutti_batch *batch, int rc);

/* Alternates progress and idle until the batch is done. Returns its result. */
int tutti_batch_wait(struct tutti_batch *batch);

/* Runs one call with stream NULL outside of groups, and waits for it: the shortest path. `found` is
 * for tutti_cache_again, or NULL. Collectives may run without a batch. */
int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_found *found);

#endif
