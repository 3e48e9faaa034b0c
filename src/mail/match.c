/* SPDX-License-Identifier: Apache-2.0
 * Matches messages and receives. An arriving message takes the oldest receive that fits, and a new
 * receive takes the oldest message that fits. So two messages from one rank that fit the same
 * receives are received in the order in which they were sent. */
#include "base/result.h"
#include "mail/mail.h"

#include <stdlib.h>
#include <string.h>

/* ---- a message matches a receive --------------------------------------------------------- */

/* The type and count of a message must be exactly those of its receive. */
static int check_match(const struct tutti_mail *mail, const struct tutti_mail_request *receive,
                       int from, const struct tutti_mail_frame *frame)
{
    if (frame->type == receive->type && frame->count == receive->count)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "rank %d sends %llu elements of %s with tag %u to rank %d, "
                      "which receives %zu elements of %s", from, (unsigned long long)frame->count,
                      tutti_type_name(frame->type), frame->tag, mail->rank,
                      receive->count, tutti_type_name(receive->type));
}

/* Records that the receive has been matched, so that it now waits only for rank `from`. */
static void set_sender(struct tutti_mail *mail, struct tutti_mail_request *receive, int from,
                       const struct tutti_mail_frame *frame)
{
    if (receive->peer == TUTTI_MAIL_ANY)
        mail->peers[from].npending++;
    receive->peer = from;
    receive->got_tag = frame->tag;
}

/* Answer an offer that has matched a receive. */
static void accept_offer(struct tutti_mail *mail, struct tutti_mail_request *receive, int from,
                         const struct tutti_mail_frame *offered)
{
    set_sender(mail, receive, from, offered);
    tutti_assert(!receive->sends && from != mail->rank);
    receive->id = ++mail->last_id;
    receive->out = (struct tutti_mail_out){
        .frame = {.kind = TUTTI_MAIL_ACCEPT, .id = offered->id, .answer = receive->id}};
    tutti_mail_append(&mail->peers[from].accepted, receive);
    tutti_mail_queue(mail, from, &receive->out);
}

/* Remove the oldest receive that matches such a message from the list, and return it. Returns NULL
 * if there is none. */
static struct tutti_mail_request *take_posted(struct tutti_mail *mail, int from, uint32_t tag)
{
    struct tutti_mail_request *at = mail->posted.first;

    while (at != NULL && !tutti_mail_fits(at, from, tag))
        at = at->next;
    if (at == NULL)
        return NULL;
    tutti_mail_remove(&mail->posted, at);
    tutti_assert(!at->sends && (at->peer != TUTTI_MAIL_ANY || mail->from_any > 0));
    mail->from_any -= at->peer == TUTTI_MAIL_ANY;
    return at;
}

/* ---- arrivals: unmatched messages ---------------------------------------------------------- */

/* Adds an unmatched message, with room for `bytes`, to the list of arrivals. */
static int keep_arrival(struct tutti_mail *mail, int from, const struct tutti_mail_frame *frame,
                        size_t bytes, struct tutti_mail_arrival **ret_arrival)
{
    struct tutti_mail_arrival *arrival = malloc(sizeof *arrival + bytes);

    if (arrival == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a message of %zu bytes from rank %d",
                          bytes, from);
    *arrival = (struct tutti_mail_arrival){.from = from, .frame = *frame};
    if (mail->arrivals == NULL)
        mail->arrivals = arrival;
    else
        mail->last_arrival->next = arrival;
    mail->last_arrival = arrival;
    *ret_arrival = arrival;
    return TUTTI_OK;
}

static void unlink_arrival(struct tutti_mail *mail, struct tutti_mail_arrival *arrival)
{
    struct tutti_mail_arrival *before = NULL, *at = mail->arrivals;

    while (at != arrival) {
        tutti_assert(at != NULL);
        before = at;
        at = at->next;
    }
    if (before == NULL)
        mail->arrivals = arrival->next;
    else
        before->next = arrival->next;
    if (mail->last_arrival == arrival)
        mail->last_arrival = before;
}

static struct tutti_mail_arrival *find_arrival(const struct tutti_mail *mail,
                                               const struct tutti_mail_request *receive)
{
    struct tutti_mail_arrival *at = mail->arrivals;

    while (at != NULL && (at->taker != NULL || !tutti_mail_fits(receive, at->from, at->frame.tag)))
        at = at->next;
    return at;
}

/* Copy a complete message to the receive that has matched it (`taker`), and free the arrival. */
static void deliver(struct tutti_mail *mail, struct tutti_mail_arrival *arrival)
{
    struct tutti_mail_request *receive = arrival->taker, *own = arrival->own_send;
    size_t bytes = tutti_mail_bytes(receive);

    tutti_assert(arrival->is_complete && !receive->sends && receive->peer == arrival->from);
    tutti_assert(receive->count == arrival->frame.count && receive->type == arrival->frame.type);
    if (bytes > 0)
        memcpy(receive->data, own != NULL ? own->data : arrival->bytes, bytes);
    if (own != NULL)
        tutti_mail_finish(mail, own, TUTTI_OK);
    else
        mail->peers[arrival->from].owed++;
    tutti_mail_finish(mail, receive, TUTTI_OK);
    unlink_arrival(mail, arrival);
    free(arrival);
}

/* ---- posting -------------------------------------------------------------------------------- */

static int fail_left(int rank)
{
    return tutti_fail(TUTTI_ERR_REMOTE, "rank %d has destroyed its mailbox", rank);
}

static int post_receive(struct tutti_mail *mail, struct tutti_mail_request *receive)
{
    struct tutti_mail_arrival *arrival = find_arrival(mail, receive);

    if (arrival == NULL) {
        mail->from_any += receive->peer == TUTTI_MAIL_ANY;
        tutti_mail_append(&mail->posted, receive);
        return receive->peer != TUTTI_MAIL_ANY && mail->peers[receive->peer].has_left
                   ? fail_left(receive->peer) : TUTTI_OK;
    }
    set_sender(mail, receive, arrival->from, &arrival->frame);
    arrival->taker = receive;
    TUTTI_TRY(check_match(mail, receive, arrival->from, &arrival->frame));
    if (arrival->frame.kind == TUTTI_MAIL_OFFER) {
        accept_offer(mail, receive, arrival->from, &arrival->frame);
        unlink_arrival(mail, arrival);
        free(arrival);
    } else if (arrival->is_complete) {
        deliver(mail, arrival);
    }
    return TUTTI_OK;
}

static int post_to_myself(struct tutti_mail *mail, struct tutti_mail_request *send)
{
    struct tutti_mail_frame frame = {.kind = TUTTI_MAIL_EAGER, .type = (uint8_t)send->type,
                                     .tag = (uint32_t)send->tag, .count = send->count};
    struct tutti_mail_list *offered = &mail->peers[mail->rank].offered;
    struct tutti_mail_arrival *arrival;

    tutti_mail_append(offered, send);
    TUTTI_TRY(keep_arrival(mail, mail->rank, &frame, 0, &arrival));
    tutti_mail_remove(offered, send);
    arrival->own_send = send;
    arrival->is_complete = true;
    arrival->taker = take_posted(mail, mail->rank, frame.tag);
    if (arrival->taker == NULL)
        return TUTTI_OK;
    set_sender(mail, arrival->taker, mail->rank, &frame);
    TUTTI_TRY(check_match(mail, arrival->taker, mail->rank, &frame));
    deliver(mail, arrival);
    return TUTTI_OK;
}

static int post_send(struct tutti_mail *mail, struct tutti_mail_request *send)
{
    struct tutti_mail_peer *peer = &mail->peers[send->peer];
    size_t bytes = tutti_mail_bytes(send);
    bool is_eager = bytes <= TUTTI_MAIL_EAGER_BYTES && peer->credits > 0;

    send->id = ++mail->last_id;
    if (peer->has_left) {
        tutti_mail_append(&peer->offered, send);
        return fail_left(send->peer);
    }
    send->out = (struct tutti_mail_out){
        .frame = {.kind = is_eager ? TUTTI_MAIL_EAGER : TUTTI_MAIL_OFFER,
                  .type = (uint8_t)send->type, .tag = (uint32_t)send->tag, .count = send->count,
                  .id = send->id}};
    if (is_eager) {
        peer->credits--;
        send->out.bytes = send->data;
        send->out.size = bytes;
        send->out.completes = send;
    } else {
        tutti_mail_append(&peer->offered, send);
    }
    tutti_mail_queue(mail, send->peer, &send->out);
    return TUTTI_OK;
}

int tutti_mail_post(struct tutti_mail *mail, struct tutti_mail_request *request)
{
    tutti_assert(request->peer == TUTTI_MAIL_ANY
                     ? !request->sends
                     : request->peer >= 0 && request->peer < mail->nranks);
    tutti_assert(request->is_done == 0);
    mail->pending++;
    if (request->peer != TUTTI_MAIL_ANY)
        mail->peers[request->peer].npending++;
    if (!request->sends)
        return post_receive(mail, request);
    if (request->peer == mail->rank)
        return post_to_myself(mail, request);
    return post_send(mail, request);
}

bool tutti_mail_cancel(struct tutti_mail *mail, struct tutti_mail_request *request)
{
    struct tutti_mail_request *at = mail->posted.first;

    while (at != NULL && at != request)
        at = at->next;
    if (at == NULL)
        return false;
    tutti_mail_remove(&mail->posted, request);
    mail->from_any -= request->peer == TUTTI_MAIL_ANY;
    tutti_mail_finish(mail, request, TUTTI_ERR_USAGE);
    return true;
}

/* ---- frames that arrive -------------------------------------------------------------------- */

static int fail_frame(int from, const struct tutti_mail_frame *frame, const char *why)
{
    return tutti_fail(TUTTI_ERR_REMOTE, "rank %d sent a frame of kind %u that %s", from,
                      (unsigned)frame->kind, why);
}

static int take_eager(struct tutti_mail *mail, int from)
{
    struct tutti_mail_peer *peer = &mail->peers[from];
    size_t bytes;

    if (peer->frame.type >= TUTTI_TYPE_COUNT || peer->frame.count > TUTTI_MAIL_EAGER_BYTES)
        return fail_frame(from, &peer->frame, "has an unknown type or is too large");
    bytes = peer->frame.count * tutti_type_size((enum tutti_type)peer->frame.type);
    if (bytes > TUTTI_MAIL_EAGER_BYTES)
        return fail_frame(from, &peer->frame, "is too large");
    peer->in_size = bytes;
    peer->in_request = take_posted(mail, from, peer->frame.tag);
    if (peer->in_request != NULL) {
        set_sender(mail, peer->in_request, from, &peer->frame);
        /* The receive is in no list while it is filled; tutti_mail_fail finds it by in_request. */
        TUTTI_TRY(check_match(mail, peer->in_request, from, &peer->frame));
        peer->in_bytes = peer->in_request->data;
        return TUTTI_OK;
    }
    TUTTI_TRY(keep_arrival(mail, from, &peer->frame, bytes, &peer->in_arrival));
    peer->in_bytes = peer->in_arrival->bytes;
    return TUTTI_OK;
}

static int take_offer(struct tutti_mail *mail, int from)
{
    struct tutti_mail_frame *frame = &mail->peers[from].frame;
    struct tutti_mail_arrival *arrival;
    struct tutti_mail_request *receive;

    if (frame->type >= TUTTI_TYPE_COUNT)
        return fail_frame(from, frame, "has an unknown type");
    receive = take_posted(mail, from, frame->tag);
    if (receive == NULL)
        return keep_arrival(mail, from, frame, 0, &arrival);
    /* Accept before the check, so that the receive is in a list where tutti_mail_fail finds it. */
    accept_offer(mail, receive, from, frame);
    return check_match(mail, receive, from, frame);
}

static struct tutti_mail_request *find_by_id(const struct tutti_mail_list *list, uint64_t id)
{
    struct tutti_mail_request *at = list->first;

    while (at != NULL && at->id != id)
        at = at->next;
    return at;
}

static bool is_queued(const struct tutti_mail_peer *peer, const struct tutti_mail_out *out)
{
    const struct tutti_mail_out *at = peer->out_first;

    while (at != NULL && at != out)
        at = at->next;
    return at != NULL;
}

static int take_accept(struct tutti_mail *mail, int from)
{
    struct tutti_mail_peer *peer = &mail->peers[from];
    struct tutti_mail_request *send = find_by_id(&peer->offered, peer->frame.id);
    size_t bytes;

    if (send == NULL || is_queued(peer, &send->out))
        return fail_frame(from, &peer->frame, "accepts a message that was not offered");
    tutti_mail_remove(&peer->offered, send);
    bytes = tutti_mail_bytes(send);
    send->out = (struct tutti_mail_out){
        .frame = {.kind = TUTTI_MAIL_DATA, .count = bytes, .id = peer->frame.answer},
        .bytes = send->data, .size = bytes, .completes = send};
    tutti_mail_queue(mail, from, &send->out);
    return TUTTI_OK;
}

static int take_data(struct tutti_mail *mail, int from)
{
    struct tutti_mail_peer *peer = &mail->peers[from];
    struct tutti_mail_request *receive = find_by_id(&peer->accepted, peer->frame.id);

    if (receive == NULL || is_queued(peer, &receive->out))
        return fail_frame(from, &peer->frame, "has the data of a message that was not accepted");
    if (peer->frame.count != tutti_mail_bytes(receive))
        return fail_frame(from, &peer->frame, "has data of another size than was offered");
    tutti_mail_remove(&peer->accepted, receive);
    peer->in_request = receive;
    peer->in_bytes = receive->data;
    peer->in_size = peer->frame.count;
    return TUTTI_OK;
}

/* Complete messages of the rank may still be received. Messages that the rank has only offered, or
 * sent in part, are dropped. */
int tutti_mail_note_left(struct tutti_mail *mail, int rank)
{
    struct tutti_mail_peer *peer = &mail->peers[rank];
    struct tutti_mail_arrival *next;

    peer->has_left = true;
    if (peer->npending > 0)
        return fail_left(rank);
    peer->in_arrival = NULL;
    for (struct tutti_mail_arrival *at = mail->arrivals; at != NULL; at = next) {
        next = at->next;
        if (at->from != rank || at->is_complete)
            continue;
        tutti_assert(at->taker == NULL); /* the taker would count in peer->npending */
        unlink_arrival(mail, at);
        free(at);
    }
    return TUTTI_OK;
}

int tutti_mail_begin_frame(struct tutti_mail *mail, int from)
{
    struct tutti_mail_peer *peer = &mail->peers[from];

    peer->in_request = NULL;
    peer->in_arrival = NULL;
    peer->in_bytes = NULL;
    peer->in_size = peer->in_moved = 0;
    peer->credits += peer->frame.credits;
    if (peer->credits > TUTTI_MAIL_CREDITS)
        return fail_frame(from, &peer->frame, "returns more credits than there are");
    switch (peer->frame.kind) {
    case TUTTI_MAIL_EAGER: return take_eager(mail, from);
    case TUTTI_MAIL_OFFER: return take_offer(mail, from);
    case TUTTI_MAIL_ACCEPT: return take_accept(mail, from);
    case TUTTI_MAIL_DATA: return take_data(mail, from);
    case TUTTI_MAIL_CREDIT: return TUTTI_OK;
    case TUTTI_MAIL_BYE: return tutti_mail_note_left(mail, from);
    default: return fail_frame(from, &peer->frame, "is unknown");
    }
}

int tutti_mail_end_frame(struct tutti_mail *mail, int from)
{
    struct tutti_mail_peer *peer = &mail->peers[from];
    struct tutti_mail_request *request = peer->in_request;
    struct tutti_mail_arrival *arrival = peer->in_arrival;

    tutti_assert(request == NULL || arrival == NULL);
    tutti_assert(peer->in_moved == peer->in_size);
    peer->in_request = NULL;
    peer->in_arrival = NULL;
    if (request != NULL) {
        peer->owed += peer->frame.kind == TUTTI_MAIL_EAGER;
        tutti_mail_finish(mail, request, TUTTI_OK);
    }
    if (arrival != NULL) {
        arrival->is_complete = true;
        if (arrival->taker != NULL)
            deliver(mail, arrival);
    }
    return TUTTI_OK;
}
