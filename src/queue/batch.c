/* SPDX-License-Identifier: Apache-2.0
 * Batches: collecting calls, running them in turn, and watching for deadlines and lost peers. */
#include "queue/batch.h"

#include "base/clock.h"
#include "base/log.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Idle passes between two readings of the clock, and the time between two checks of the peers. */
enum { WATCH_PASSES = 256, WATCH_NS = 5000000 };

enum { DESCRIPTION_BYTES = 256, AWAITED_BYTES = 48 };

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

/* Makes room for one more than `count` elements. The array may still be the inline storage `first`,
 * which is not on the heap. */
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

/* Replaces an array of a v-form by a copy that the batch owns. */
static int copy_vector(struct tutti_batch *batch, const size_t **array)
{
    size_t size = (size_t)batch->comm->nranks * sizeof **array;
    size_t **vectors;
    size_t *copy;

    if (*array == NULL)
        return TUTTI_OK;
    vectors = realloc(batch->vectors, (batch->vector_count + 1) * sizeof *vectors);
    if (vectors == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an operation's counts");
    batch->vectors = vectors;
    copy = malloc(size);
    if (copy == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an operation's counts");
    memcpy(copy, *array, size);
    vectors[batch->vector_count++] = copy;
    *array = copy;
    return TUTTI_OK;
}

int tutti_batch_add(struct tutti_batch *batch, const struct tutti_call *call)
{
    struct tutti_call *own;

    if (call->kind == TUTTI_CALL_SEND || call->kind == TUTTI_CALL_RECV) {
        TUTTI_TRY(grow((void **)&batch->messages, batch->few, &batch->message_capacity,
                       batch->message_count, sizeof *batch->messages));
        tutti_message_init(&batch->messages[batch->message_count++], call);
        return TUTTI_OK;
    }
    TUTTI_TRY(grow((void **)&batch->own_collectives, &batch->first,
                   &batch->collective_capacity, batch->collective_count,
                   sizeof *batch->own_collectives));
    batch->collectives = batch->own_collectives;
    own = &batch->own_collectives[batch->collective_count];
    *own = *call;
    TUTTI_TRY(copy_vector(batch, &own->input_counts));
    TUTTI_TRY(copy_vector(batch, &own->input_displs));
    TUTTI_TRY(copy_vector(batch, &own->output_counts));
    TUTTI_TRY(copy_vector(batch, &own->output_displs));
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

static uint64_t take_ticket(struct tutti_comm *comm)
{
    return comm->gpu == NULL ? comm->next_ticket++ : tutti_fetch_add(&comm->next_ticket, 1);
}

void tutti_batch_issue(struct tutti_batch *batch)
{
    struct tutti_comm *comm = batch->comm;

    /* A replayed CUDA graph issues its calls from a thread of the driver. */
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
    /* acquire: the threads that dropped the other references are done with the batch */
    if (tutti_load_acquire(&batch->references) != 1 &&
        tutti_fetch_add(&batch->references, (uint32_t)-1) != 1)
        return;
    for (size_t i = 0; i < batch->vector_count; i++)
        free(batch->vectors[i]);
    free(batch->vectors);
    if (batch->own_collectives != &batch->first)
        free(batch->own_collectives);
    if (batch->messages != batch->few)
        free(batch->messages);
    if (batch->is_on_heap)
        free(batch);
}

/* ---- watching: deadline, peers, abort --------------------------------------------------- */

/* The call that the batch is at, and its number, in words. */
static const char *describe_call(const struct tutti_batch *batch, char text[DESCRIPTION_BYTES])
{
    char call[TUTTI_SIGNATURE_TEXT_BYTES] = "operation";
    const struct tutti_comm *comm = batch->comm;
    uint64_t number = comm->engine.history.sequence;

    if (comm->engine.run.is_active) {
        tutti_call_format(comm->engine.run.call, comm->nranks, call);
    } else if (batch->collective_position < batch->collective_count) {
        /* The call has not begun, so it will get the next number. */
        tutti_call_format(&batch->collectives[batch->collective_position], comm->nranks, call);
        number++;
    }
    for (size_t i = 0; !comm->engine.run.is_active && i < batch->message_count; i++) {
        const struct tutti_message *message = &batch->messages[i];

        if (message->is_complete)
            continue;
        snprintf(call, sizeof call, "%s rank %d (count %zu)",
                 message->sends ? "send to" : "recv from", message->peer,
                 (size_t)message->header.signature.count);
        number = message->header.sequence;
        break;
    }
    snprintf(text, DESCRIPTION_BYTES, "%s, number %llu", call, (unsigned long long)number);
    return text;
}

/* The same with communicator and rank, for errors. */
static const char *describe(const struct tutti_batch *batch, char text[DESCRIPTION_BYTES])
{
    const struct tutti_comm *comm = batch->comm;
    char call[DESCRIPTION_BYTES];

    snprintf(text, DESCRIPTION_BYTES, "%s%srank %d, %.*s", comm->name, *comm->name ? ": " : "",
             comm->rank, DESCRIPTION_BYTES - TUTTI_NAME_BYTES - 32, describe_call(batch, call));
    return text;
}

/* The rank that the batch waits for, -1 if none in particular. */
static int waits_for(const struct tutti_batch *batch)
{
    int rank = tutti_run_waits_for(&batch->comm->engine);

    for (size_t i = 0; rank < 0 && i < batch->message_count; i++)
        if (!batch->messages[i].is_complete)
            rank = batch->messages[i].peer;
    return rank;
}

static const char *name_awaited(const struct tutti_batch *batch, char text[AWAITED_BYTES])
{
    int rank = waits_for(batch);

    if (rank >= 0)
        snprintf(text, AWAITED_BYTES, "rank %d (by %s)", rank,
                 tutti_fabric_route(batch->comm->fabric, rank));
    else
        snprintf(text, AWAITED_BYTES, "its peers");
    return text;
}

static int time_out(const struct tutti_batch *batch)
{
    char what[DESCRIPTION_BYTES], whom[AWAITED_BYTES];
    int rc = tutti_fail(TUTTI_ERR_TIMEOUT,
                        "%s: has waited %d ms for %s; has it called the same operation? "
                        "TUTTI_TIMEOUT_MS sets the limit",
                        describe(batch, what), tutti_comm_timeout_ms(batch->comm),
                        name_awaited(batch, whom));

    return tutti_comm_fail(batch->comm, rc, tutti_last_message());
}

static void warn_of_wait(struct tutti_batch *batch, uint64_t now_ns)
{
    char what[DESCRIPTION_BYTES], whom[AWAITED_BYTES], limit[48] = "no limit";
    double seconds;

    if (!tutti_long_wait_is_due(&batch->wait, now_ns, &seconds))
        return;
    if (tutti_comm_timeout_ms(batch->comm) > 0)
        snprintf(limit, sizeof limit, "%d ms", tutti_comm_timeout_ms(batch->comm));
    tutti_log(TUTTI_LOG_WARN, "%s: has been waiting for %s for %.1f s; has it called the same "
              "operation? TUTTI_TIMEOUT_MS sets the limit (%s)", describe_call(batch, what),
              name_awaited(batch, whom), seconds, limit);
}

/* Fails if the batch waits for a rank that has left. Bytes that the rank sent before it left may
 * still arrive. So it takes two checks that see the rank gone, with no byte moved between them. */
static int check_leaving(struct tutti_batch *batch)
{
    char what[DESCRIPTION_BYTES];
    int rank = waits_for(batch);
    bool has_left = rank >= 0 && tutti_fabric_has_left(batch->comm->fabric, rank);

    if (has_left && batch->left_rank == rank)
        return tutti_fail(TUTTI_ERR_REMOTE, "rank %d has destroyed its communicator while it is "
                          "waited for (%s); every rank must make the same calls before that", rank,
                          describe(batch, what));
    batch->left_rank = has_left ? rank : -1;
    return TUTTI_OK;
}

/* Called after each idle pass; from time to time checks for events that end the wait. */
static int watch(struct tutti_batch *batch)
{
    uint64_t now_ns;
    int rc;

    if (tutti_load_acquire(&batch->comm->error) != 0)
        return tutti_comm_error(batch->comm);
    if (++batch->passes % WATCH_PASSES != 0 && batch->idle.phase == 0)
        return TUTTI_OK;
    now_ns = tutti_now_ns();
    /* Read the clock only while waiting: reading it would cost a short operation a fifth of its
     * time. */
    if (batch->deadline_ns == 0) {
        batch->deadline_ns = tutti_deadline_ns(tutti_comm_timeout_ms(batch->comm));
        batch->watched_ns = now_ns;
    }
    if (now_ns - batch->watched_ns < WATCH_NS)
        return TUTTI_OK;
    batch->watched_ns = now_ns;
    if (now_ns >= batch->deadline_ns)
        return time_out(batch);
    warn_of_wait(batch, now_ns);
    rc = tutti_fabric_check(batch->comm->fabric);
    if (rc == TUTTI_OK)
        rc = tutti_run_check_peers(&batch->comm->engine);
    if (rc == TUTTI_OK)
        rc = check_leaving(batch);
    return rc;
}

/* ---- progress ----------------------------------------------------------------------------- */

static int progress_collectives(struct tutti_batch *batch, bool *moved)
{
    struct tutti_comm *comm = batch->comm;
    struct tutti_run *run = &comm->engine.run;

    while (batch->collective_position < batch->collective_count) {
        const struct tutti_call *call = &batch->collectives[batch->collective_position];
        const struct tutti_program *program;
        int rc;

        if (!run->is_active) {
            TUTTI_TRY(tutti_cache_program(comm, call, &program));
            TUTTI_TRY(tutti_run_begin(&comm->engine, program, call));
        }
        rc = tutti_run_progress(&comm->engine);
        *moved |= run->moved;
        run->moved = false;
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
        rc = tutti_message_progress(&batch->comm->engine, &batch->messages[i], moved);
        if (rc == TUTTI_OK)
            batch->messages_left--;
        else if (rc != TUTTI_AGAIN)
            return rc;
    }
    return batch->messages_left == 0 ? TUTTI_OK : TUTTI_AGAIN;
}

/* Ranks that wait for each other in a chain reach their deadlines at about the same time. The first
 * one to time out names only the rank that it waited for itself. So a rank that fails because of
 * it, and has waited long too, adds the rank that it waited for. */
static bool has_waited_long(const struct tutti_batch *batch)
{
    uint64_t half_ns = (uint64_t)tutti_comm_timeout_ms(batch->comm) * (TUTTI_NS_PER_MS / 2);

    return batch->deadline_ns != 0 && tutti_now_ns() + half_ns >= batch->deadline_ns;
}

/* Records the first error of the communicator, with the call that met it. */
static void record(const struct tutti_batch *batch, int rc)
{
    char what[DESCRIPTION_BYTES], whom[AWAITED_BYTES];
    char message[TUTTI_MESSAGE_BYTES + 2 * DESCRIPTION_BYTES];

    if (has_waited_long(batch))
        snprintf(message, sizeof message, "%s, while it waited for %s: %s", describe(batch, what),
                 name_awaited(batch, whom), tutti_last_message());
    else
        snprintf(message, sizeof message, "%s: %s", describe(batch, what), tutti_last_message());
    tutti_comm_fail(batch->comm, rc, message);
}

/* Ends the batch with result `rc`, and passes the turn to the next one. */
static int finish(struct tutti_batch *batch, int rc)
{
    struct tutti_comm *comm = batch->comm;

    if (rc == TUTTI_ERR_REMOTE)
        rc = tutti_run_explain(&comm->engine, rc);
    if (rc != TUTTI_OK && tutti_load_acquire(&comm->error) == 0)
        record(batch, rc);
    if (rc != TUTTI_OK) {
        /* The thread that recorded the error may not have told the peers yet. */
        tutti_fabric_abort(comm->fabric, tutti_load_acquire(&comm->error), comm->error_text);
        tutti_run_cancel(&comm->engine);
        rc = tutti_comm_error(comm);
    }
    batch->result = rc;
    /* release: pairs with the acquire of the thread that runs the next batch */
    tutti_store_release(&comm->turn, batch->ticket + 1);
    if (batch->done_word != NULL)
        tutti_store_release(batch->done_word, 1);
    tutti_store_release(&batch->is_done, true);
    return rc;
}

int tutti_batch_progress(struct tutti_batch *batch, bool *moved)
{
    struct tutti_comm *comm = batch->comm;
    int collectives, messages, rc;

    if (tutti_load_acquire(&comm->turn) != batch->ticket)
        return TUTTI_AGAIN;
    tutti_log_enter(&comm->scope); /* a group alternates between communicators */
    if (!batch->is_started) {
        batch->is_started = true;
        if (tutti_load_acquire(&comm->error) != 0)
            return finish(batch, tutti_comm_error(comm));
        rc = tutti_fabric_news(comm->fabric);
        if (rc != TUTTI_OK)
            return finish(batch, rc);
        batch->left_rank = -1;
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
    rc = watch(batch);
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

/* Most calls complete without waiting, or after some nanoseconds. So a batch is set up only for a
 * call that has to wait, and has the time for it. */
static int run_at_once(struct tutti_comm *comm, const struct tutti_call *call,
                       struct tutti_found *found, uint64_t ticket)
{
    if (tutti_load_acquire(&comm->turn) != ticket || tutti_load_acquire(&comm->error) != 0)
        return TUTTI_AGAIN;
    TUTTI_TRY(tutti_fabric_news(comm->fabric));
    TUTTI_TRY(tutti_cache_again(comm, call, found));
    TUTTI_TRY(tutti_run_start(&comm->engine, found->program, call));
    /* release: pairs with the acquire of the thread that runs the next batch */
    tutti_store_release(&comm->turn, ticket + 1);
    return TUTTI_OK;
}

static int run_message(struct tutti_comm *comm, const struct tutti_call *call)
{
    struct tutti_batch batch;

    tutti_batch_init(&batch, comm);
    tutti_message_init(&batch.few[0], call);
    batch.message_count = 1;
    tutti_batch_issue(&batch);
    return tutti_batch_wait(&batch);
}

int tutti_batch_run_now(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_found *found)
{
    struct tutti_found once = {.generation = 0};
    struct tutti_batch batch;
    uint64_t ticket;
    int rc;

    if (call->kind >= TUTTI_CALL_SEND)
        return run_message(comm, call);
    ticket = take_ticket(comm);
    rc = run_at_once(comm, call, found ? found : &once, ticket);
    if (rc == TUTTI_OK)
        return rc;
    tutti_batch_init(&batch, comm);
    batch.collectives = call;
    batch.collective_count = 1;
    batch.ticket = ticket;
    return rc == TUTTI_AGAIN ? tutti_batch_wait(&batch) : finish(&batch, rc);
}
