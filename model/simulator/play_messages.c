/* SPDX-License-Identifier: Apache-2.0
 * Plays the messages. A message becomes ready, gets its ports, runs its overhead, flows over its
 * links and arrives at the receiver.
 *
 * A port with an overhead serves one message at a time. A port that becomes free considers only
 * messages whose other port is free as well. Among these, it takes the message that has been ready
 * for the longest time. All messages share the ports without overhead and the links of a torus.
 */
#include "simulator/play.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

static struct tutti_sim_message *message_of(struct tutti_sim_play *play, uint32_t id)
{
    return &play->score.messages[id];
}

static int find_route(struct tutti_sim_play *play, const struct tutti_sim_message *message)
{
    return tutti_sim_route_message(&play->network, play->score.steps[message->sender].rank,
                                   message->to, message->channel, &play->route);
}

/* ---- from ready to arrived ------------------------------------------------------- */

/* Records that all bytes of a message have left the sender. Its sending steps are done, and the
 * next message of its lane may start. */
static int finish_sending(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);

    message->sent_s = play->now_s;
    TUTTI_TRY(tutti_sim_list_add(&play->sent, id));
    TUTTI_TRY(tutti_sim_add_event(play, message->latency_s, TUTTI_SIM_EVENT_ARRIVAL, id));
    for (uint32_t at = message->sender; at != TUTTI_SIM_NONE; at = play->score.steps[at].next_out)
        TUTTI_TRY(tutti_sim_half_done(play, at));
    play->cause = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_SENT, id};
    return message->next == TUTTI_SIM_NONE ? TUTTI_OK
                                           : tutti_sim_message_satisfy(play, message->next);
}

/* Ends the flow of a message. A forwarded message cannot end before its input has arrived and one
 * more slice has been sent. So its last slice may leave later than the flow ends. */
static int end_flow(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);
    double end_s = play->now_s;

    message->has_flowed = true;
    for (uint32_t at = message->sender; at != TUTTI_SIM_NONE; at = play->score.steps[at].next_out) {
        const struct tutti_sim_step *sender = &play->score.steps[at];
        double tail_s;

        if (!tutti_sim_is_fused(sender))
            continue;
        if (!sender->is_received)
            return TUTTI_OK; /* tutti_sim_message_complete_input calls this function again. */
        tail_s = message->bytes > 0
                     ? message->alone_s * tutti_sim_head_bytes(sender->bytes) / message->bytes
                     : 0;
        if (end_s < sender->received_s + tail_s)
            end_s = sender->received_s + tail_s;
    }
    if (end_s <= play->now_s)
        return finish_sending(play, id);
    message->has_tail = true;
    return tutti_sim_add_event(play, end_s - play->now_s, TUTTI_SIM_EVENT_TAIL, id);
}

int tutti_sim_message_complete_input(struct tutti_sim_play *play, uint32_t id)
{
    return message_of(play, id)->has_flowed ? end_flow(play, id) : TUTTI_OK;
}

/* True if the message is longer than a slice and the receiver can begin work with the first slice.
 * The first slice of a gathered message can only begin arithmetic. It cannot begin forwarding,
 * because the forwarded part need not be the part that arrives first. */
static bool wants_head(const struct tutti_sim_play *play, const struct tutti_sim_message *message)
{
    const struct tutti_sim_step *receiver = &play->score.steps[message->receiver];

    if (message->bytes <= TUTTI_SIM_SLICE_BYTES)
        return false;
    return receiver->kind == TUTTI_STEP_RECV_REDUCE ||
           (tutti_sim_is_fused(receiver) && !tutti_sim_is_gathered(message));
}

static int begin_flow(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);
    double mark = TUTTI_SIM_NO_MARK;

    message->flow_s = play->now_s;
    if (message->bytes == 0)
        return end_flow(play, id);
    TUTTI_TRY(find_route(play, message));
    message->alone_s = message->bytes / play->route.bytes_per_s;
    if (wants_head(play, message))
        mark = message->bytes - TUTTI_SIM_SLICE_BYTES; /* what is left after the first slice */
    return tutti_sim_flow_start(&play->flows, &play->route, message->bytes, mark,
                                TUTTI_SIM_FLOW_MESSAGE, id, play->now_s);
}

static int begin_overhead(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_message *message = message_of(play, id);

    TUTTI_TRY(tutti_sim_route_overhead(&play->network, play->score.steps[message->sender].rank,
                                       message->to, &play->route));
    if (play->route.count == 0)
        return tutti_sim_add_event(play, message->overhead_s, TUTTI_SIM_EVENT_OVERHEAD, id);
    play->route.bytes_per_s = 1; /* This flow is in seconds of work, not in bytes. */
    return tutti_sim_flow_start(&play->flows, &play->route, message->overhead_s, TUTTI_SIM_NO_MARK,
                                TUTTI_SIM_FLOW_OVERHEAD, id, play->now_s);
}

/* Starts a message whose ports are free or shared, and occupies the ports that it needs
 * exclusively. */
static int start(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);

    message->begin_s = play->now_s;
    play->nmessages++;
    play->bytes += message->bytes;
    if (message->out != TUTTI_SIM_NONE) {
        play->network.links[message->out].holder = id;
        play->network.links[message->in].holder = id;
    }
    return message->overhead_s > 0 ? begin_overhead(play, id) : begin_flow(play, id);
}

int tutti_sim_message_satisfy(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);

    if (--message->unmet > 0)
        return TUTTI_OK;
    message->ready_s = play->now_s;
    message->cause = play->cause;
    TUTTI_TRY(find_route(play, message));
    message->latency_s = play->route.rate.latency_s;
    message->overhead_s = play->route.rate.overhead_s;
    if (message->overhead_s > 0) {
        message->out = play->route.out;
        message->in = play->route.in;
    }
    return tutti_sim_list_add(&play->ready, message->sender);
}

/* Notifies the receiving steps that have not been notified yet. If `is_whole`, the whole message
 * has arrived, and all these steps can start. Otherwise the first slice has arrived, and only some
 * of them can start. */
static int notify_receivers(struct tutti_sim_play *play, uint32_t id, bool is_whole)
{
    const struct tutti_sim_message *message = message_of(play, id);

    for (uint32_t at = message->receiver; at != TUTTI_SIM_NONE;
         at = play->score.steps[at].next_in) {
        struct tutti_sim_step *receiver = &play->score.steps[at];

        if (receiver->has_head ||
            (!is_whole && tutti_sim_is_gathered(message) && tutti_sim_is_fused(receiver)))
            continue;
        receiver->has_head = true;
        TUTTI_TRY(tutti_sim_head_arrived(play, at));
    }
    return TUTTI_OK;
}

static int arrive(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);

    message->has_arrived = true;
    message->arrived_s = play->now_s;
    TUTTI_TRY(notify_receivers(play, id, true));
    for (uint32_t at = message->receiver; at != TUTTI_SIM_NONE; at = play->score.steps[at].next_in)
        TUTTI_TRY(tutti_sim_all_arrived(play, at));
    return TUTTI_OK;
}

int tutti_sim_message_event(struct tutti_sim_play *play, enum tutti_sim_event_kind kind,
                            uint32_t id)
{
    switch (kind) {
    case TUTTI_SIM_EVENT_OVERHEAD: return begin_flow(play, id);
    case TUTTI_SIM_EVENT_HEAD: return notify_receivers(play, id, false);
    case TUTTI_SIM_EVENT_TAIL: return finish_sending(play, id);
    default: return arrive(play, id);
    }
}

int tutti_sim_message_flowed(struct tutti_sim_play *play, uint32_t id, bool is_over)
{
    struct tutti_sim_message *message = message_of(play, id);

    if (is_over)
        return end_flow(play, id);
    message->head_s = play->now_s;
    return tutti_sim_add_event(play, message->latency_s, TUTTI_SIM_EVENT_HEAD, id);
}

int tutti_sim_overhead_flowed(struct tutti_sim_play *play, uint32_t id)
{
    return begin_flow(play, id);
}

/* ---- ports -------------------------------------------------------------------------- */

static bool is_free(const struct tutti_sim_play *play, uint32_t port)
{
    return play->network.links[port].holder == TUTTI_SIM_NONE;
}

/* Appends a message to the queues of both its ports. */
static void join_queues(struct tutti_sim_play *play, uint32_t id)
{
    struct tutti_sim_message *message = message_of(play, id);
    struct tutti_sim_network_link *out = &play->network.links[message->out];
    struct tutti_sim_network_link *in = &play->network.links[message->in];

    message->out_next = message->in_next = TUTTI_SIM_NONE;
    message->out_previous = out->tail;
    message->in_previous = in->tail;
    *(out->tail == TUTTI_SIM_NONE ? &out->head : &message_of(play, out->tail)->out_next) = id;
    *(in->tail == TUTTI_SIM_NONE ? &in->head : &message_of(play, in->tail)->in_next) = id;
    out->tail = id;
    in->tail = id;
}

/* Removes a message from the queues of both its ports. */
static void leave_queues(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_message *m = message_of(play, id);
    struct tutti_sim_network_link *out = &play->network.links[m->out];
    struct tutti_sim_network_link *in = &play->network.links[m->in];

    *(m->out_previous == TUTTI_SIM_NONE ? &out->head
                                        : &message_of(play, m->out_previous)->out_next) =
        m->out_next;
    *(m->in_previous == TUTTI_SIM_NONE ? &in->head : &message_of(play, m->in_previous)->in_next) =
        m->in_next;
    *(m->out_next == TUTTI_SIM_NONE ? &out->tail : &message_of(play, m->out_next)->out_previous) =
        m->out_previous;
    *(m->in_next == TUTTI_SIM_NONE ? &in->tail : &message_of(play, m->in_next)->in_previous) =
        m->in_previous;
}

/* If the port is free, starts the first message in its queue whose other port is free as well. */
static int serve(struct tutti_sim_play *play, uint32_t port, bool is_out)
{
    uint32_t next;

    if (port == TUTTI_SIM_NONE || !is_free(play, port))
        return TUTTI_OK;
    for (uint32_t id = play->network.links[port].head; id != TUTTI_SIM_NONE; id = next) {
        const struct tutti_sim_message *message = message_of(play, id);

        next = is_out ? message->out_next : message->in_next;
        if (!is_free(play, is_out ? message->in : message->out))
            continue;
        leave_queues(play, id);
        return start(play, id);
    }
    return TUTTI_OK;
}

static void release_ports(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_message *message = message_of(play, id);

    if (message->out == TUTTI_SIM_NONE)
        return;
    play->network.links[message->out].holder = TUTTI_SIM_NONE;
    play->network.links[message->in].holder = TUTTI_SIM_NONE;
}

/* Starts a message that has become ready, or lets it wait for its ports. */
static int start_or_wait(struct tutti_sim_play *play, uint32_t id)
{
    const struct tutti_sim_message *message = message_of(play, id);

    if (message->out == TUTTI_SIM_NONE ||
        (is_free(play, message->out) && is_free(play, message->in)))
        return start(play, id);
    join_queues(play, id);
    return TUTTI_OK;
}

static void drop_first(struct tutti_sim_list *list, uint32_t count)
{
    list->count -= count;
    if (list->count > 0)
        memmove(list->at, list->at + count, list->count * sizeof(*list->at));
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int tutti_sim_dispatch(struct tutti_sim_play *play)
{
    uint32_t nsent = play->sent.count, nready = play->ready.count;

    /* Several messages may have become ready at the same time. Each rank sends these in program
     * order. */
    if (nready > 1)
        qsort(play->ready.at, nready, sizeof(*play->ready.at), by_number);
    for (uint32_t i = 0; i < nsent; i++)
        release_ports(play, play->sent.at[i]);
    for (uint32_t i = 0; i < nsent; i++)
        TUTTI_TRY(serve(play, message_of(play, play->sent.at[i])->out, true));
    for (uint32_t i = 0; i < nsent; i++)
        TUTTI_TRY(serve(play, message_of(play, play->sent.at[i])->in, false));
    for (uint32_t i = 0; i < nready; i++)
        TUTTI_TRY(start_or_wait(play, play->score.steps[play->ready.at[i]].out));

    /* An empty message that has just started has also left already, so it was appended to `sent`.
     * Keep such new entries for the next call. */
    drop_first(&play->sent, nsent);
    drop_first(&play->ready, nready);
    return TUTTI_OK;
}
