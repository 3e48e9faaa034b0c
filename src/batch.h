/* SPDX-License-Identifier: Apache-2.0
 * A batch: what one call or one group asks of one communicator.
 *
 * Its collectives run one after the other, its messages all at the same time,
 * beside the collectives. Its ticket says when its turn on the communicator
 * comes. A batch on streams is referred to by each of them: the first stream's
 * thread (or, with stream NULL, the calling thread) moves it, once every stream has reached it.
 */
#ifndef TUTTI_BATCH_H
#define TUTTI_BATCH_H

#include "comm.h"

struct tutti_batch {
    struct tutti_comm *comm;
    uint64_t ticket;
    uint64_t deadline_ns;      /* set when it is first watched */
    bool is_started;
    const struct tutti_call *collectives; /* own_collectives, or the caller's one */
    struct tutti_call *own_collectives;
    size_t collective_count, collective_capacity, collective_position;
    struct tutti_message *messages;
    size_t message_count, message_capacity, messages_left;
    size_t **vectors;          /* copies of v-forms' arrays */
    size_t vector_count;
    uint32_t passes;           /* since the last look at deadline and peers */
    uint64_t watched_ns;       /* when that was; 0: never, for most are done before */
    int left_rank;             /* that we then waited for though it had left; -1: none */
    struct tutti_idle idle;

    /* On streams. */
    uint32_t streams_missing;  /* that have not reached it yet; release/acquire */
    uint32_t references;       /* atomic */
    bool is_done;              /* release: pairs with acquire in the other streams */
    int result;
};

/* A batch's place in the queue of a stream. */
struct tutti_stream_item {
    struct tutti_batch *batch;
    bool moves;
    struct tutti_stream_item *next;
};

/* An empty batch of `comm`, in one block of memory with its first call and its first place in a
 * queue: a single call on a stream needs no more. */
int tutti_batch_create(struct tutti_comm *comm, struct tutti_batch **ret_batch);
/* Add a copy of `call`; a v-form's arrays are copied too. */
int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call);
/* Take the ticket: from here on the batch will run. */
void tutti_batch_issue(struct tutti_batch *batch);
/* The place in a queue that the batch has room for. */
struct tutti_stream_item *tutti_batch_place(struct tutti_batch *batch);
/* Drop a reference; the last one frees. A batch that was issued must be done. */
void tutti_batch_release(struct tutti_batch *batch);

/* Go on. TUTTI_AGAIN: not its turn, or no bytes to move yet (*moved tells). Any other result is
 * final, kept in batch->result, and its turn is over. */
int tutti_batch_progress(struct tutti_batch *batch, bool *moved);

/* After a pass that moved nothing: wait as tutti_fabric_idle does. */
void tutti_batch_idle(struct tutti_batch *batch);

/* Progress and idle until done. */
int tutti_batch_wait(struct tutti_batch *batch);

/* A collective of bytes, root 0, which the library itself calls; all ranks alike. */
void tutti_call_of_bytes(enum tutti_collective collective, const void *input, void *output,
                         size_t count, struct tutti_call *ret_call);

/* The shortest way for one collective with stream NULL outside of groups. `found`: NULL, or kept
 * from the last time the same was called. */
int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_found *found);

#endif
