/* SPDX-License-Identifier: Apache-2.0
 * Collects calls in batches, and runs the batches of a communicator in the order of their tickets.
 */
#include "queue/batch.h"

#include "base/hot.h"
#include "base/log.h"
#include "base/system.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

void tutti_batch_init(struct tutti_batch *batch, struct tutti_comm *comm)
{
    /* The inline storage from `few` on is written only when something is added. */
    memset(batch, 0, offsetof(struct tutti_batch, few));
    batch->comm = comm;
    batch->references = 1;
    batch->messages = batch->few;
    batch->message_capacity = TUTTI_FEW_MESSAGES;
    batch->own_collectives = &batch->first;
    batch->collective_capacity = 1;
}

int tutti_batch_create(struct tutti_comm *comm, struct tutti_batch **ret_batch)
{
    struct tutti_batch *batch = malloc(sizeof *batch);

    if (batch == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an operation");
    tutti_batch_init(batch, comm);
    batch->is_on_heap = true;
    *ret_batch = batch;
    return TUTTI_OK;
}

int tutti_batch_move(const struct tutti_batch *batch, struct tutti_batch **ret_batch)
{
    struct tutti_batch *moved = malloc(sizeof *moved);

    if (moved == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an operation");
    memcpy(moved, batch, offsetof(struct tutti_batch, few));
    if (batch->messages == batch->few) {
        memcpy(moved->few, batch->few, batch->message_count * sizeof *batch->few);
        moved->messages = moved->few;
    }
    if (batch->own_collectives == &batch->first) {
        if (batch->collective_count > 0)
            moved->first = batch->first;
        moved->own_collectives = &moved->first;
        moved->collectives = moved->own_collectives;
    }
    moved->is_on_heap = true;
    *ret_batch = moved;
    return TUTTI_OK;
}

/* Makes room for one more than `count` elements of `size` bytes. The array may still be the inline
 * storage `first`, which is not on the heap. */
static int grow(void **array, const void *first, size_t *capacity, size_t count, size_t size)
{
    size_t more = *capacity + (*capacity > 4 ? *capacity : 4);
    void *grown;

    if (count < *capacity)
        return TUTTI_OK;
    grown = realloc(*array == first ? NULL : *array, more * size);
    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu operations of a group", more);
    if (first != NULL && *array == first)
        memcpy(grown, first, count * size);
    *array = grown;
    *capacity = more;
    return TUTTI_OK;
}

int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call)
{
    tutti_assert(!batch->is_started);
    if (tutti_call_is_message(call)) {
        TUTTI_TRY(grow((void **)&batch->messages, batch->few, &batch->message_capacity,
                       batch->message_count, sizeof *batch->messages));
        tutti_engine_message_init(&batch->messages[batch->message_count++], call);
        return TUTTI_OK;
    }
    TUTTI_TRY(grow((void **)&batch->own_collectives, &batch->first,
                   &batch->collective_capacity, batch->collective_count,
                   sizeof *batch->own_collectives));
    batch->collectives = batch->own_collectives;
    TUTTI_TRY(tutti_call_copy(call, batch->comm->nranks,
                              &batch->own_collectives[batch->collective_count]));
    batch->collective_count++;
    return TUTTI_OK;
}

int tutti_batch_copy(const struct tutti_batch *batch, struct tutti_batch **ret_batch)
{
    struct tutti_batch *copy;
    int rc;

    TUTTI_TRY(tutti_batch_create(batch->comm, &copy));
    for (size_t i = 0; i < batch->collective_count; i++)
        TUTTI_TRY_OR(fail, rc, tutti_batch_add(copy, &batch->collectives[i]));
    for (size_t i = 0; i < batch->message_count; i++) {
        TUTTI_TRY_OR(fail, rc, grow((void **)&copy->messages, copy->few, &copy->message_capacity,
                                    copy->message_count, sizeof *copy->messages));
        copy->messages[copy->message_count++] = batch->messages[i];
    }
    copy->done_word = batch->done_word;
    *ret_batch = copy;
    return TUTTI_OK;

fail:
    tutti_batch_release(copy);
    return rc;
}

/* Only a communicator with a GPU has several threads that take tickets at the same time. */
static uint64_t take_ticket(struct tutti_comm *comm)
{
    /* acquire and release: pairs with itself in other threads, which take other tickets */
    return comm->gpu == NULL ? comm->next_ticket++ : tutti_fetch_add(&comm->next_ticket, 1);
}

void tutti_batch_issue(struct tutti_batch *batch)
{
    struct tutti_comm *comm = batch->comm;

    tutti_assert(!batch->is_started && batch->references > 0);
    /* A replayed CUDA graph issues its calls from a thread of the driver, so a communicator with a
     * GPU needs the lock. */
    if (comm->gpu != NULL)
        pthread_mutex_lock(&comm->issue_lock);
    batch->ticket = take_ticket(comm);
    batch->messages_left = batch->message_count;
    tutti_numbering_add(&comm->numbering, batch->messages, batch->message_count);
    if (comm->gpu != NULL)
        pthread_mutex_unlock(&comm->issue_lock);
}

void tutti_batch_release(struct tutti_batch *batch)
{
    if (batch == NULL)
        return;
    tutti_assert(tutti_load_relaxed(&batch->references) > 0);
    /* acquire: the threads that dropped the other references are done with the batch */
    if (tutti_load_acquire(&batch->references) != 1 &&
        tutti_fetch_add(&batch->references, (uint32_t)-1) != 1)
        return;
    for (size_t i = 0;
         batch->collectives == batch->own_collectives && i < batch->collective_count; i++)
        tutti_call_fini(&batch->own_collectives[i]);
    if (batch->own_collectives != &batch->first)
        free(batch->own_collectives);
    if (batch->messages != batch->few)
        free(batch->messages);
    if (batch->is_on_heap)
        free(batch);
}

/* ---- progress ----------------------------------------------------------------------------- */

/* A ticket has the turn once the batches with earlier tickets are done. */
static inline bool has_turn(const struct tutti_comm *comm, uint64_t ticket)
{
    /* acquire: pairs with the release in pass_turn */
    return tutti_load_acquire(&comm->turn) == ticket;
}

/* Called once a batch has the turn. Fails if this rank or another one has given up. */
static inline int begin_turn(struct tutti_comm *comm)
{
    if (tutti_comm_failure(comm) != 0)
        return tutti_comm_error(comm);
    return tutti_fabric_find_abort(comm->fabric);
}

/* Begins a call and runs it as far as it can go without waiting. Only the thread that has the turn
 * may call it. */
static inline int start_call(struct tutti_comm *comm, const struct tutti_call *call,
                             struct tutti_calls_recalled *found)
{
    TUTTI_TRY(tutti_cache_recall(comm, call, found));
    return tutti_run_start(&comm->engine, found->program, call);
}

static inline void pass_turn(struct tutti_comm *comm, uint64_t ticket)
{
    /* release: pairs with the acquire in has_turn of the thread that runs the next batch */
    tutti_store_release(&comm->turn, ticket + 1);
}

static int progress_collectives(struct tutti_batch *batch, bool *moved)
{
    struct tutti_engine *engine = &batch->comm->engine;

    while (batch->collective_position < batch->collective_count) {
        const struct tutti_call *call = &batch->collectives[batch->collective_position];
        struct tutti_calls_recalled found = {.generation = 0};
        int rc = engine->run.is_active ? tutti_run_progress(engine)
                                       : start_call(batch->comm, call, &found);

        *moved |= engine->run.moved;
        engine->run.moved = false;
        TUTTI_TRY(rc);
        batch->collective_position++;
        *moved = true;
    }
    return TUTTI_OK;
}

static int progress_messages(struct tutti_batch *batch, bool *moved)
{
    for (size_t i = 0; i < batch->message_count && batch->messages_left > 0; i++) {
        int rc;

        if (batch->messages[i].is_complete)
            continue;
        rc = tutti_engine_message_progress(&batch->comm->engine, &batch->messages[i], moved);
        if (rc == TUTTI_OK)
            batch->messages_left--;
        else if (rc != TUTTI_AGAIN)
            return rc;
    }
    return batch->messages_left == 0 ? TUTTI_OK : TUTTI_AGAIN;
}

/* Ends the batch with `rc`, and passes the turn to the next batch. Returns the final result. */
static int finish(struct tutti_batch *batch, int rc)
{
    struct tutti_comm *comm = batch->comm;

    tutti_assert(!batch->is_done && rc != TUTTI_AGAIN);
    tutti_assert(has_turn(comm, batch->ticket));
    if (rc == TUTTI_ERR_REMOTE)
        rc = tutti_run_explain(&comm->engine, rc);
    if (rc != TUTTI_OK && tutti_comm_failure(comm) == 0)
        tutti_batch_record(batch, rc);
    if (rc != TUTTI_OK) {
        /* The thread that recorded the error may not have told the peers yet. */
        tutti_fabric_abort(comm->fabric, tutti_comm_failure(comm), comm->error_text);
        tutti_run_cancel(&comm->engine);
        rc = tutti_comm_error(comm);
    }
    batch->result = rc;
    pass_turn(comm, batch->ticket);
    if (batch->done_word != NULL)
        /* release: pairs with the wait of a stream for this word (gpu/stage.c) */
        tutti_store_release(batch->done_word, 1);
    /* release: pairs with the acquire in serve() of stream.c; the results are in place */
    tutti_store_release(&batch->is_done, true);
    return rc;
}

int tutti_batch_progress(struct tutti_batch *batch, bool *moved)
{
    struct tutti_comm *comm = batch->comm;
    int collectives, messages, rc;

    tutti_assert(!batch->is_done && batch->collective_position <= batch->collective_count);
    tutti_assert(batch->messages_left <= batch->message_count);
    if (!batch->is_started && !has_turn(comm, batch->ticket))
        return TUTTI_AGAIN;
    tutti_log_enter(&comm->scope); /* a group alternates between communicators */
    if (!batch->is_started) {
        batch->is_started = true;
        batch->left_rank = -1;
        rc = begin_turn(comm);
        if (rc != TUTTI_OK)
            return finish(batch, rc);
    }
    collectives = progress_collectives(batch, moved);
    if (collectives != TUTTI_OK && collectives != TUTTI_AGAIN)
        return finish(batch, collectives);
    messages = progress_messages(batch, moved);
    if (messages != TUTTI_OK && messages != TUTTI_AGAIN)
        return finish(batch, messages);
    if (collectives == TUTTI_OK && messages == TUTTI_OK)
        return finish(batch, TUTTI_OK);
    if (*moved) {
        batch->left_rank = -1;
        batch->wait = (struct tutti_long_wait){.lines = 0};
        return TUTTI_AGAIN;
    }
    rc = tutti_batch_watch(batch);
    return rc == TUTTI_OK ? TUTTI_AGAIN : finish(batch, rc);
}

void tutti_batch_idle(struct tutti_batch *batch)
{
    if (batch->is_started)
        tutti_fabric_idle(batch->comm->fabric, &batch->idle);
    else if (++batch->passes % 64 == 0)
        tutti_pause_ns(50000);
    else
        sched_yield();
}

int tutti_batch_wait(struct tutti_batch *batch)
{
    for (;;) {
        bool moved = false;
        int rc = tutti_batch_progress(batch, &moved);

        if (rc != TUTTI_AGAIN)
            return rc;
        if (moved)
            batch->idle = (struct tutti_idle){.passes = 0};
        else
            tutti_batch_idle(batch);
    }
}

int tutti_batch_begin(struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_batch **ret_batch)
{
    struct tutti_batch *batch;
    int rc;

    TUTTI_TRY(tutti_batch_create(comm, &batch));
    rc = tutti_batch_add(batch, call);
    if (rc != TUTTI_OK) {
        tutti_batch_release(batch);
        return rc;
    }
    tutti_batch_issue(batch);
    *ret_batch = batch;
    return TUTTI_OK;
}

int tutti_batch_continue(struct tutti_batch **batch)
{
    bool moved = false;
    int rc;

    if (*batch == NULL)
        return TUTTI_OK;
    rc = tutti_batch_progress(*batch, &moved);
    if (rc == TUTTI_AGAIN)
        return rc;
    tutti_batch_release(*batch);
    *batch = NULL;
    return rc;
}

/* Runs one call by itself as far as it can go without a batch, by the same steps as a batch. This
 * is fast, because most calls complete without waiting, or after some nanoseconds. TUTTI_AGAIN: the
 * call must wait for its turn, or for other ranks. */
TUTTI_HOT
static int run_first_turn(struct tutti_comm *comm, const struct tutti_call *call,
                          struct tutti_calls_recalled *found, uint64_t ticket)
{
    if (!has_turn(comm, ticket))
        return TUTTI_AGAIN;
    TUTTI_TRY(begin_turn(comm));
    TUTTI_TRY(start_call(comm, call, found));
    pass_turn(comm, ticket);
    return TUTTI_OK;
}

/* Runs one send or receive by itself. */
static int run_message(struct tutti_comm *comm, const struct tutti_call *call)
{
    struct tutti_batch batch;

    tutti_batch_init(&batch, comm);
    tutti_engine_message_init(&batch.few[0], call);
    batch.message_count = 1;
    tutti_batch_issue(&batch);
    return tutti_batch_wait(&batch);
}

TUTTI_HOT
int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_calls_recalled *found)
{
    struct tutti_calls_recalled once = {.generation = 0};
    struct tutti_batch batch;
    uint64_t ticket;
    int rc;

    if (tutti_call_is_message(call))
        return run_message(comm, call);
    ticket = take_ticket(comm);
    rc = run_first_turn(comm, call, found ? found : &once, ticket);
    if (rc == TUTTI_OK)
        return rc;
    /* The call must wait or has failed, so a batch continues it, with the same ticket. */
    tutti_batch_init(&batch, comm);
    batch.collectives = call;
    batch.collective_count = 1;
    batch.ticket = ticket;
    return rc == TUTTI_AGAIN ? tutti_batch_wait(&batch) : finish(&batch, rc);
}
