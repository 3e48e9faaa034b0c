/* SPDX-License-Identifier: Apache-2.0
 * A batch: what one call or one group asks of one communicator.
 *
 * Its collectives run one after the other, its messages all at the same time,
 * beside the collectives. Its ticket says when its turn on the communicator
 * comes. A batch on streams is referred to by each of them: the first stream's
 * thread (or, with stream NULL, the calling thread) moves it, once every stream has reached it.
 */
#ifndef TUTTI_QUEUE_BATCH_H
#define TUTTI_QUEUE_BATCH_H

#include "base/long_wait.h"
#include "comm/comm.h"

/* Messages for which a batch has room of its own. */
#define TUTTI_FEW_MESSAGES 4

/* A batch's place in the queue of a stream. */
struct tutti_stream_item {
    struct tutti_batch *batch;
    bool moves;
    struct tutti_stream_item *next;
};

struct tutti_batch {
    struct tutti_comm *comm;
    uint64_t ticket;
    uint64_t deadline_ns;      /* 0 until it has waited for a while since its turn came */
    bool is_started;
    bool is_on_heap;           /* the batch itself */
    const struct tutti_call *collectives; /* own_collectives, or the caller's one */
    struct tutti_call *own_collectives;   /* at first `first` */
    size_t collective_count, collective_capacity, collective_position;
    struct tutti_message *messages; /* at first `few` */
    size_t message_count, message_capacity, messages_left;
    size_t **vectors;          /* copies of v-forms' arrays */
    size_t vector_count;
    uint32_t passes;           /* since the last look at deadline and peers */
    uint64_t watched_ns;       /* when that was; 0: never, for most are done before */
    uint32_t *done_word;       /* set to 1 when it is over; NULL: nobody looks there */
    struct tutti_long_wait wait; /* since a byte has moved last, as seen by these looks */
    int left_rank;             /* that we then waited for though it had left; -1: none */
    struct tutti_idle idle;

    /* On streams. */
    uint32_t streams_missing;  /* that have not reached it yet; release/acquire */
    uint32_t references;       /* atomic */
    bool is_done;              /* release: pairs with acquire in the other streams */
    int result;

    /* Room for what most batches hold at most: they need no other memory. */
    struct tutti_message few[TUTTI_FEW_MESSAGES];
    struct tutti_call first;
    struct tutti_stream_item place;
};

/* An empty batch of `comm`, in memory of the caller or on the heap. */
void tutti_batch_init(struct tutti_batch *batch, struct tutti_comm *comm);
int tutti_batch_create(struct tutti_comm *comm, struct tutti_batch **ret_batch);
/* Move a batch that is not issued from the caller's memory to the heap: streams outlive a call. */
int tutti_batch_move(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* A new batch of the same calls, for one that was put together and is never issued itself. */
int tutti_batch_copy(const struct tutti_batch *batch, struct tutti_batch **ret_batch);
/* Add a copy of `call`; a v-form's arrays are copied too. */
int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call);
/* Take the ticket: from here on the batch will run. */
void tutti_batch_issue(struct tutti_batch *batch);
/* Drop a reference; the last one frees what the batch holds. A batch that was issued must be
 * done. */
void tutti_batch_release(struct tutti_batch *batch);

/* Go on. TUTTI_AGAIN: not its turn, or no bytes to move yet (*moved tells). Any other result is
 * final, kept in batch->result, and its turn is over. */
int tutti_batch_progress(struct tutti_batch *batch, bool *moved);

/* After a pass that moved nothing: wait as tutti_fabric_idle does. */
void tutti_batch_idle(struct tutti_batch *batch);

/* Progress and idle until done. */
int tutti_batch_wait(struct tutti_batch *batch);

/* The shortest way for one call with stream NULL outside of groups. `found`: NULL, or kept from the
 * last time the same was called. */
int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_found *found);

#endif
