/* SPDX-License-Identifier: Apache-2.0
 * Watches a batch that waits, so that it fails at its deadline or when a peer is lost, and composes
 * the message of the failure. */
#include "queue/batch.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* Idle passes between two readings of the clock, and the time between two checks of the peers. */
enum { WATCH_PASSES = 256, WATCH_NS = 5000000 };

enum { DESCRIPTION_BYTES = 256, AWAITED_BYTES = 48 };

/* ---- messages -------------------------------------------------------------------------------- */

/* Writes the call that the batch is running, or will run next, and the number of the call. */
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
    /* Unless a collective is running, a message that is not complete is named instead. */
    for (size_t i = 0; !comm->engine.run.is_active && i < batch->message_count; i++) {
        const struct tutti_engine_message *message = &batch->messages[i];

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

/* Writes the same, after the communicator and the rank, for errors. */
static const char *describe(const struct tutti_batch *batch, char text[DESCRIPTION_BYTES])
{
    const struct tutti_comm *comm = batch->comm;
    char call[DESCRIPTION_BYTES];

    snprintf(text, DESCRIPTION_BYTES, "%s%srank %d, %.*s", comm->name, *comm->name ? ": " : "",
             comm->rank, DESCRIPTION_BYTES - TUTTI_NAME_BYTES - 32, describe_call(batch, call));
    return text;
}

/* Returns a rank that the batch waits for, or -1 if it waits for no rank in particular. */
static int waits_for(const struct tutti_batch *batch)
{
    int rank = tutti_run_awaited_rank(&batch->comm->engine);

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
                        "%s sets the limit",
                        describe(batch, what), tutti_comm_timeout_ms(batch->comm),
                        name_awaited(batch, whom), tutti_comm_timeout_variable(batch->comm));

    return tutti_comm_fail(batch->comm, rc, tutti_message_last());
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
              "operation? %s sets the limit (%s)", describe_call(batch, what),
              name_awaited(batch, whom), seconds, tutti_comm_timeout_variable(batch->comm), limit);
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

int tutti_batch_watch(struct tutti_batch *batch)
{
    uint64_t now_ns;
    int rc;

    if (tutti_comm_failure(batch->comm) != 0)
        return tutti_comm_error(batch->comm);
    if (++batch->passes % WATCH_PASSES != 0 && tutti_idle_is_spinning(&batch->idle))
        return TUTTI_OK;
    now_ns = tutti_now_ns();
    /* The deadline is set here and not at the start, because reading the clock would cost a short
     * operation a fifth of its time. */
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

/* ---- the first error ------------------------------------------------------------------------ */

/* Ranks that wait for each other in a chain reach their deadlines at about the same time. The first
 * rank to time out names only the rank that it waited for itself. So another rank that fails as a
 * result adds the rank that it waited for, if it has waited long too. */
static bool has_waited_long(const struct tutti_batch *batch)
{
    uint64_t half_ns = (uint64_t)tutti_comm_timeout_ms(batch->comm) * (TUTTI_NS_PER_MS / 2);

    return batch->deadline_ns != 0 && tutti_now_ns() + half_ns >= batch->deadline_ns;
}

void tutti_batch_record(const struct tutti_batch *batch, int rc)
{
    char what[DESCRIPTION_BYTES], whom[AWAITED_BYTES];
    char message[TUTTI_MESSAGE_BYTES + 2 * DESCRIPTION_BYTES];

    if (has_waited_long(batch))
        snprintf(message, sizeof message, "%s, while it waited for %s: %s", describe(batch, what),
                 name_awaited(batch, whom), tutti_message_last());
    else
        snprintf(message, sizeof message, "%s: %s", describe(batch, what), tutti_message_last());
    tutti_comm_fail(batch->comm, rc, message);
}
