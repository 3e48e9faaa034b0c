/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes. They exchange messages that are matched by sender and tag, in any order.
 *
 * A mailbox owns the point-to-point connections of one fabric. Everything that it sends there
 * begins with a frame, which is a header. A credit is the permission to send one small message
 * before the receiver has asked for it. If the sender has a credit, a message of at most
 * TUTTI_MAIL_EAGER_BYTES is sent at once, after its frame. The receiver then buffers the message
 * until a receive matches it. Any other message stays at the sender until a receive matches it:
 *
 *     sender                                     receiver
 *       EAGER tag, count, bytes ..........>      matched, or buffered until it is matched
 *
 *       OFFER tag, count, id .............>      matched, or listed until it is matched
 *       <....... ACCEPT id, the receiver's id
 *       DATA the receiver's id, bytes ....>      straight into the caller's memory
 *
 * Every frame returns credits for the eager messages that were delivered. A CREDIT frame has no
 * other purpose. So the unmatched bytes that a receiver buffers are bounded, and no message delays
 * messages with other tags. A large message is copied no more often than by a plain send and
 * receive.
 *
 * A rank that leaves sends BYE to all ranks that it is connected to. A receive from any rank then
 * continues without it. A connection that ends without BYE is an error.
 *
 * No function blocks. Only one thread may use a mailbox at a time.
 */
#ifndef TUTTI_MAIL_MAIL_H
#define TUTTI_MAIL_MAIL_H

#include "base/types.h"
#include "transport/fabric.h"

/* The peer of a receive from any sender, and the tag of a receive with any tag. */
enum { TUTTI_MAIL_ANY = -1 };

/* The largest message that is sent without an offer, and the most such messages that a sender may
 * have in flight to, or unmatched at, one peer. */
enum { TUTTI_MAIL_EAGER_BYTES = 8192, TUTTI_MAIL_CREDITS = 64 };

/* The comment at the top of this file explains the kinds. */
enum tutti_mail_frame_kind {
    TUTTI_MAIL_EAGER = 1,
    TUTTI_MAIL_OFFER,
    TUTTI_MAIL_ACCEPT,
    TUTTI_MAIL_DATA,
    TUTTI_MAIL_CREDIT,
    TUTTI_MAIL_BYE,
};

/* The header that is sent before the bytes of a message, or on its own. */
struct tutti_mail_frame {
    uint8_t kind;     /* enum tutti_mail_frame_kind */
    uint8_t type;     /* of EAGER and OFFER: enum tutti_type */
    uint16_t credits; /* credits that the rank that sends the frame returns */
    uint32_t tag;     /* of EAGER and OFFER */
    uint64_t count;   /* of EAGER and OFFER: elements. Of DATA: bytes */
    uint64_t id;      /* of OFFER and ACCEPT: the sender's. Of DATA: the receiver's */
    uint64_t answer;  /* of ACCEPT: the receiver's id */
};

/* A frame to be sent, with the bytes that follow it. */
struct tutti_mail_out {
    struct tutti_mail_out *next;
    struct tutti_mail_frame frame;
    const uint8_t *bytes; /* sent after the frame */
    size_t size;          /* of `bytes` */
    /* A request that is done when the transport has taken all bytes; NULL: none. */
    struct tutti_mail_request *completes;
};

/* A send or a receive. The caller fills in the fields from `sends` to `data` and zeroes the rest.
 * The caller must not move or free the request and its data until the request is done. */
struct tutti_mail_request {
    bool sends;
    int peer;             /* or TUTTI_MAIL_ANY, which is replaced by the sender at the match */
    int64_t tag;          /* 0 to UINT32_MAX, or TUTTI_MAIL_ANY */
    enum tutti_type type;
    size_t count;         /* elements */
    uint8_t *data;        /* a send only reads it */

    struct tutti_mail_request *next; /* in a list of the engine, or of the caller */
    uint64_t id;                     /* identifies the request in frames; unique on this rank */
    struct tutti_mail_out out;       /* the frame of the request that is to be sent */

    /* The result. */
    uint32_t is_done;     /* set by the caller's `done`; release, pairs with acquire of a waiter */
    int result;           /* TUTTI_OK or an error */
    uint32_t got_tag;     /* of a receive: the tag of its message */
};

struct tutti_mail_list {
    struct tutti_mail_request *first, *last;
};

/* An unmatched message: an eager message or an offer that arrived before its receive. */
struct tutti_mail_arrival {
    struct tutti_mail_arrival *next;
    int from;
    struct tutti_mail_frame frame;
    struct tutti_mail_request *taker; /* the receive that has matched it; NULL: none */
    /* The send of a message of this rank to itself; else NULL. */
    struct tutti_mail_request *own_send;
    bool is_complete;                 /* all bytes of an eager message have arrived */
    uint8_t bytes[];                  /* of an eager message */
};

struct tutti_mail_peer {
    struct tutti_conn *conn;          /* NULL: not connected yet */
    size_t npending;                  /* pending requests that name this rank as their peer */
    bool has_left;
    bool is_torn;                     /* a frame was abandoned after a part of it was sent, so
                                         nothing more can be sent */
    struct tutti_mail_out *out_first, *out_last; /* the queue of frames to be sent */
    size_t out_moved;                 /* bytes of out_first sent, frame included */
    bool is_frame_fixed;              /* the transport has been given out_first, and may have taken
                                         nothing; its frame must not change any more */
    bool seems_gone;                  /* the peer was seen to have left, but its last messages may
                                         still arrive */
    struct tutti_mail_out own_out;    /* a frame of no request: CREDIT or BYE */
    /* credits: eager messages that this rank may still send to the peer. owed: eager messages of
     * the peer that were delivered here, and whose credits have not been returned yet. */
    uint32_t credits, owed;
    struct tutti_mail_list offered;   /* sends that wait for ACCEPT */
    struct tutti_mail_list accepted;  /* receives that wait for DATA */

    /* The frame that is being received, and the bytes that follow it. */
    struct tutti_mail_frame frame;
    size_t in_frame;                  /* bytes of the frame received */
    uint8_t *in_bytes;                /* destination of the bytes that follow it */
    size_t in_size, in_moved;         /* how many follow, and how many were received */
    /* The bytes are for a receive, or for the arrival that buffers them. Both are NULL if no bytes
     * follow. */
    struct tutti_mail_request *in_request;
    struct tutti_mail_arrival *in_arrival;
};

struct tutti_mail {
    struct tutti_fabric *fabric;
    int nranks, rank;
    struct tutti_mail_peer *peers;    /* [nranks] */
    struct tutti_mail_list posted;    /* unmatched receives, in the order of posting */
    struct tutti_mail_arrival *arrivals, *last_arrival; /* in the order of arrival */
    size_t pending;                   /* requests that are not done */
    uint32_t from_any;                /* unmatched receives from any rank */
    uint64_t last_id;
    void (*done)(void *context, struct tutti_mail_request *request);
    void *context;
};

/* Initialize a mailbox over `fabric`, which must outlive the mailbox. `done` is called with
 * `context` for each request when it is done. The result of the request is then set, and the engine
 * does not use the request any more. TUTTI_ERR_SYSTEM: there is no memory. */
int tutti_mail_init(struct tutti_mail *mail, struct tutti_fabric *fabric, int nranks, int rank,
                    void (*done)(void *context, struct tutti_mail_request *request),
                    void *context);
/* Free the mailbox's memory. No request may be pending. */
void tutti_mail_fini(struct tutti_mail *mail);

/* Begin a request, whose arguments the caller has checked. The request may already be done, and
 * even freed, when this function returns. After an error the request is still pending, and the
 * caller must call tutti_mail_fail. TUTTI_ERR_USAGE: the request matches a message of another type
 * or count. TUTTI_ERR_REMOTE: the request's peer has left. TUTTI_ERR_SYSTEM: there is no memory. */
int tutti_mail_post(struct tutti_mail *mail, struct tutti_mail_request *request);

/* Cancel a receive that has no message yet. The receive is then done with the result
 * TUTTI_ERR_USAGE. False: the request is not an unmatched receive, and is left alone. */
bool tutti_mail_cancel(struct tutti_mail *mail, struct tutti_mail_request *request);

/* Make progress on all pending requests. *ret_moved is set to true if any byte moved, and left
 * alone if not. An error concerns the whole communicator, so the caller must call
 * tutti_mail_fail. */
int tutti_mail_progress(struct tutti_mail *mail, bool *ret_moved);

/* Find ranks that have left and could not send BYE. The caller calls this function now and then,
 * between passes of tutti_mail_progress that moved nothing. TUTTI_ERR_REMOTE: a request waits for
 * such a rank. */
int tutti_mail_look_for_leavers(struct tutti_mail *mail);

/* End all pending requests with the result `rc`. */
void tutti_mail_fail(struct tutti_mail *mail, int rc);

/* Return a rank that some pending request waits for. The result is TUTTI_MAIL_ANY if all pending
 * requests wait for any rank, or if none is pending. */
int tutti_mail_waits_for(const struct tutti_mail *mail);

/* Return the oldest unmatched receive that can take a message of `rank`, or NULL if there is none.
 * If `rank` is TUTTI_MAIL_ANY, return the oldest of all unmatched receives. */
const struct tutti_mail_request *tutti_mail_oldest_receive(const struct tutti_mail *mail, int rank);

/* Send BYE to all connected peers. No request may be pending. TUTTI_OK: BYE has been sent to all
 * peers that can be reached. TUTTI_AGAIN: call again, because some peers have not got BYE yet. */
int tutti_mail_leave(struct tutti_mail *mail);

/* ---- internal: for the files of mail/ --------------------------------------------------- */

/* True if the receive matches a message of rank `from` with this tag. */
static inline bool tutti_mail_fits(const struct tutti_mail_request *receive, int from, uint32_t tag)
{
    return (receive->peer == TUTTI_MAIL_ANY || receive->peer == from) &&
           (receive->tag == TUTTI_MAIL_ANY || receive->tag == (int64_t)tag);
}

/* Returns the size of the request's message in bytes. */
static inline size_t tutti_mail_bytes(const struct tutti_mail_request *request)
{
    return request->count * tutti_type_size(request->type);
}

/* Append `request`, which must be in no list. */
void tutti_mail_append(struct tutti_mail_list *list, struct tutti_mail_request *request);
/* Remove `request`, which must be in the list. */
void tutti_mail_remove(struct tutti_mail_list *list, struct tutti_mail_request *request);
/* End a request with the result `rc`, and call the mailbox's `done`. The request must be in no
 * list. */
void tutti_mail_finish(struct tutti_mail *mail, struct tutti_mail_request *request, int rc);

/* The next three functions are in wire.c. */

/* Queue a frame for a peer. `out` and its bytes must stay valid until the frame is sent. */
void tutti_mail_queue(struct tutti_mail *mail, int rank, struct tutti_mail_out *out);
/* Send as much of the queue as the transport takes now. The peer must be connected. *ret_moved is
 * set to true if any byte moved, and left alone if not. */
int tutti_mail_push(struct tutti_mail *mail, int rank, bool *ret_moved);
/* Connect to the peer if necessary, then receive and send all that can be moved now. *ret_moved is
 * as above. TUTTI_AGAIN: the peer is not connected yet. */
int tutti_mail_move(struct tutti_mail *mail, int rank, bool *ret_moved);

/* The next three functions are in match.c. */

/* Handle a frame from rank `from` whose header is complete. Sets in_bytes and in_size of the peer
 * for the bytes that follow the header, if there are any. */
int tutti_mail_begin_frame(struct tutti_mail *mail, int from);
/* Handle the end of a frame, when all bytes that follow it have been received. */
int tutti_mail_end_frame(struct tutti_mail *mail, int from);
/* Record that the rank has left, so that nothing more will come from it. TUTTI_ERR_REMOTE: a
 * request waits for the rank. */
int tutti_mail_note_left(struct tutti_mail *mail, int rank);

#endif
