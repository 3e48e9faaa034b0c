/* SPDX-License-Identifier: Apache-2.0
 * The mailbox engine: messages that are matched by sender and tag, in any order.
 *
 * It owns the point-to-point connections of one fabric, on which it exchanges frames. A message of
 * at most TUTTI_MAIL_EAGER_BYTES travels behind its frame at once, if the receiver has promised to
 * keep it. Any other message waits until the receiver has matched it:
 *
 *     sender                                     receiver
 *       EAGER tag, count, bytes ..........>      matched, or kept until it is
 *
 *       OFFER tag, count, id .............>      matched, or remembered until it is
 *       <....... ACCEPT id, the receiver's id
 *       DATA the receiver's id, bytes ....>      straight into the caller's memory
 *
 * So a receiver keeps a bounded number of bytes that nobody has asked for, no message holds up
 * others with other tags, and a large message is copied as rarely as by a plain send and receive.
 *
 * A rank that leaves says BYE to those that it is connected to: then a receive from any rank goes
 * on without it. A connection that ends without that is an error.
 *
 * Nothing blocks. One thread at a time.
 */
#ifndef TUTTI_MAIL_MAIL_H
#define TUTTI_MAIL_MAIL_H

#include "base/types.h"
#include "transport/fabric.h"

/* Any sender, any tag: of receives. */
enum { TUTTI_MAIL_ANY = -1 };

/* Larger ones are offered first. And how many smaller ones a sender may have on their way to one
 * peer, or kept there. */
enum { TUTTI_MAIL_EAGER_BYTES = 8192, TUTTI_MAIL_CREDITS = 64 };

enum tutti_frame_of_mail {
    TUTTI_MAIL_EAGER = 1,
    TUTTI_MAIL_OFFER,
    TUTTI_MAIL_ACCEPT,
    TUTTI_MAIL_DATA,
    TUTTI_MAIL_CREDIT,
    TUTTI_MAIL_BYE,
    TUTTI_MAIL_KINDS,
};

/* What travels before the bytes of a message, or instead of them. */
struct tutti_mail_frame {
    uint8_t kind;     /* enum tutti_frame_of_mail */
    uint8_t type;     /* of EAGER and OFFER: enum tutti_type */
    uint16_t credits; /* kept messages that the sender of the frame has delivered since */
    uint32_t tag;     /* of EAGER and OFFER */
    uint64_t count;   /* of EAGER and OFFER: elements. Of DATA: bytes */
    uint64_t id;      /* of OFFER and ACCEPT: the sender's. Of DATA: the receiver's */
    uint64_t answer;  /* of ACCEPT: the receiver's id */
};

/* A frame on its way out. */
struct tutti_mail_out {
    struct tutti_mail_out *next;
    struct tutti_mail_frame frame;
    const uint8_t *bytes; /* behind the frame */
    size_t size;
    struct tutti_mail_request *completes; /* when all bytes are taken; NULL: none */
};

/* A send or a receive. The caller fills in the first part and zeroes the rest. It keeps the request
 * and the memory in place until it is done. */
struct tutti_mail_request {
    bool sends;
    int peer;             /* or TUTTI_MAIL_ANY; then the sender, once there is one */
    int64_t tag;          /* 0 to UINT32_MAX, or TUTTI_MAIL_ANY */
    enum tutti_type type;
    size_t count;
    uint8_t *data;        /* a send only reads it */

    struct tutti_mail_request *next; /* in the list of the engine that it is in, or the caller's */
    uint64_t id;
    struct tutti_mail_out out;

    /* The result: of a receive, whose message it got. */
    uint32_t is_done;     /* release; pairs with acquire in whoever waits */
    int result;
    uint32_t got_tag;
};

struct tutti_mail_list {
    struct tutti_mail_request *first, *last;
};

/* A message that nobody has asked for yet. */
struct tutti_mail_arrival {
    struct tutti_mail_arrival *next;
    int from;
    struct tutti_mail_frame frame;
    struct tutti_mail_request *taker; /* of a message that is still coming in; NULL: none yet */
    struct tutti_mail_request *own;   /* a message to oneself: its send */
    bool is_complete;
    uint8_t bytes[];                  /* of an eager one */
};

struct tutti_mail_peer {
    struct tutti_conn *conn;
    size_t uses;                      /* pending requests that concern this very rank */
    bool has_left;
    bool is_torn;                     /* a frame was given up in its middle */
    struct tutti_mail_out *out_first, *out_last;
    size_t out_moved;                 /* bytes of the first, its frame's included */
    bool is_offered;                  /* the first was, perhaps in vain */
    bool seems_gone;                  /* it was seen to have left, and may have left messages */
    struct tutti_mail_out own;        /* a frame of no request: CREDIT or BYE */
    uint32_t credits, owed;           /* eager messages that I may send; that I have delivered */
    struct tutti_mail_list offered;   /* sends that wait for ACCEPT */
    struct tutti_mail_list accepted;  /* receives that wait for DATA */

    /* Coming in. */
    struct tutti_mail_frame frame;
    size_t in_frame;                  /* bytes of it */
    uint8_t *in_bytes;                /* where what follows goes */
    size_t in_size, in_moved;
    struct tutti_mail_request *in_request;
    struct tutti_mail_arrival *in_arrival;
};

struct tutti_mail {
    struct tutti_fabric *fabric;
    int nranks, rank;
    struct tutti_mail_peer *peers;    /* [nranks] */
    struct tutti_mail_list posted;    /* receives without a message, in their order */
    struct tutti_mail_arrival *arrivals, *last_arrival; /* in their order */
    size_t pending;                   /* requests that are not done */
    uint32_t any;                     /* posted ones that take a message of any rank */
    uint64_t last_id;
    void (*done)(void *context, struct tutti_mail_request *request);
    void *context;
};

/* `done` is called for each request when it is done: its result is set, and the engine does not
 * look at it any more. */
int tutti_mail_init(struct tutti_mail *mail, struct tutti_fabric *fabric, int nranks, int rank,
                    void (*done)(void *context, struct tutti_mail_request *request),
                    void *context);
/* No request may be pending. */
void tutti_mail_fini(struct tutti_mail *mail);

/* Begin a request, whose arguments have been checked. TUTTI_ERR_USAGE: it meets a message of
 * another type or size; then all have failed. */
int tutti_mail_post(struct tutti_mail *mail, struct tutti_mail_request *request);

/* Take back a receive that has no message yet: it is done, with TUTTI_ERR_USAGE. False: it is not
 * such a one, and stays. */
bool tutti_mail_cancel(struct tutti_mail *mail, struct tutti_mail_request *request);

/* Go on with all of them; *ret_moved is set to true if any byte moved, and left alone if not. An
 * error is that of the communicator. */
int tutti_mail_progress(struct tutti_mail *mail, bool *ret_moved);

/* Once in a while, between passes that moved nothing: has a rank left that could not say BYE?
 * TUTTI_ERR_REMOTE: a request waits for it. */
int tutti_mail_look_for_leavers(struct tutti_mail *mail);

/* All pending requests are done, with that result. */
void tutti_mail_fail(struct tutti_mail *mail, int rc);

/* A rank that some pending request waits for; TUTTI_MAIL_ANY: any, or there is none. */
int tutti_mail_waits_for(const struct tutti_mail *mail);

/* The oldest receive that waits for a message of `rank`, or of any rank; NULL: there is none. */
const struct tutti_mail_request *tutti_mail_oldest_receive(const struct tutti_mail *mail, int rank);

/* Say BYE; no request may be pending. TUTTI_OK: it is on its way to all that can be told. */
int tutti_mail_leave(struct tutti_mail *mail);

/* ---- inside the room ------------------------------------------------------------------- */

static inline bool tutti_mail_fits(const struct tutti_mail_request *receive, int from, uint32_t tag)
{
    return (receive->peer == TUTTI_MAIL_ANY || receive->peer == from) &&
           (receive->tag == TUTTI_MAIL_ANY || receive->tag == (int64_t)tag);
}

static inline size_t tutti_mail_bytes(const struct tutti_mail_request *request)
{
    return request->count * tutti_type_size(request->type);
}

void tutti_mail_append(struct tutti_mail_list *list, struct tutti_mail_request *request);
/* Remove `request`, which is in it. */
void tutti_mail_remove(struct tutti_mail_list *list, struct tutti_mail_request *request);
void tutti_mail_finish(struct tutti_mail *mail, struct tutti_mail_request *request, int rc);

/* wire.c: queue a frame; push what can be; connect, pull and push. */
void tutti_mail_queue(struct tutti_mail *mail, int peer, struct tutti_mail_out *out);
int tutti_mail_push(struct tutti_mail *mail, int peer, bool *ret_moved);
int tutti_mail_move(struct tutti_mail *mail, int peer, bool *ret_moved);

/* match.c: a whole frame has come in from `from`. What follows it, if anything, goes where the
 * peer's in_bytes and in_size say then. And: what followed it is complete. */
int tutti_mail_take_frame(struct tutti_mail *mail, int from);
int tutti_mail_take_bytes(struct tutti_mail *mail, int from);
/* Nothing more will come from that rank. TUTTI_ERR_REMOTE: a request waits for it. */
int tutti_mail_let_go(struct tutti_mail *mail, int rank);

#endif
