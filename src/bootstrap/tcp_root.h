/* SPDX-License-Identifier: Apache-2.0
 * Internals of the root of an exchange over sockets, which three files share: its rounds
 * (tcp_root.c), its connections (tcp_seat.c) and its listener (listener.c). A seat is the root's
 * state for one connection. */
#ifndef TUTTI_BOOTSTRAP_TCP_ROOT_H
#define TUTTI_BOOTSTRAP_TCP_ROOT_H

#include "bootstrap/exchange.h"

/* One connection to the root. It begins as a caller, which has yet to prove that it holds the
 * secret, and then becomes a member. */
struct tutti_root_seat {
    int fd; /* -1: a member that has left */
    bool is_member;
    int rank; /* -1: a caller, or a member rejected for its rank or nranks */
    struct tutti_root_seat *older, *newer; /* in its list: callers, members or gone callers */
    struct tutti_handshake shake;
    struct tutti_inbox inbox; /* its body belongs to the seat; NULL: a caller */
    struct tutti_outbox outbox;
    bool has_spoken;   /* the peer has sent a frame */
    uint32_t rounds;   /* records received so far */
    bool has_record;   /* the record of the current round is in inbox.body */
    uint32_t record_size; /* of that record in bytes */
    uint64_t kin;      /* the member's tutti_exchange_kin, at a vague place */
    bool is_told;      /* the error frame is loaded or sent */
};

/* A list of seats. */
struct tutti_root_list {
    struct tutti_root_seat *oldest, *newest;
    int count;
};

/* The root's bootstrap. */
struct tutti_root {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    struct tutti_listener *listener;
    bool is_listening;   /* the listener is watched, unless is_full */
    bool is_full;        /* out of descriptors, so the listener is not watched */
    int spare_fd;        /* closed to make room for a caller when out of descriptors; -1: none */
    /* As in struct tutti_meeting_place. */
    char where[128];
    char name[64];
    uint8_t forming[TUTTI_FORMING_BYTES];
    bool is_of_id, is_same_user, is_vague;
    uint8_t meeting_secret[TUTTI_SECRET_BYTES]; /* of handshakes, derived from the place's secret */
    uint64_t kin;        /* the root's tutti_exchange_kin, at a vague place */
    uint64_t complete_ns; /* when the last rank joined; 0: some are missing */
    void (*on_spent)(void *context); /* see tutti_exchange_serve; NULL once called */
    void *context;

    /* Guarded by the lock of listener.c. */
    struct tutti_root *next_at_listener;
    bool is_at_listener;
    /* Callers that other roots of this listener have handed over, linked by `newer`. */
    struct tutti_root_seat *handed_over;

    uint64_t session;  /* the random number in tables (struct tutti_frame) */
    uint64_t begun_ns; /* when the bootstrap was made */
    struct tutti_root_list callers;
    struct tutti_root_list members;
    struct tutti_root_list gone_callers;   /* closed; freed once no handler uses them any more */
    struct tutti_root_seat **seat_of_rank; /* [nranks]; NULL: not joined */
    int joined; /* members that have a rank */
    bool has_logged_stranger; /* later strangers are logged at a lower level */

    uint32_t round; /* number of rounds that are complete */
    bool is_sending; /* all records are there, and the table is being sent */
    int records;  /* received in the current round, without the root's own */
    int gone;     /* members that have left */
    int unsent;   /* members to which the table has not been sent completely */
    uint8_t *table; /* records of all ranks in the current round */
    size_t table_capacity;

    int failure; /* 0, or the error after which no round completes */
    char reason[TUTTI_MESSAGE_BYTES];
    uint64_t linger_ns; /* after a failure: until when members are told the reason */
};

/* ---- tcp_root.c ---- */

/* Fail the bootstrap: no round completes from now on, and all members are told the reason. Only the
 * first call has an effect. */
void tutti_root_fail(struct tutti_root *root, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail because the deadline has passed, with a message that names the missing ranks. */
void tutti_root_fail_missing(struct tutti_root *root);

/* True while ranks are missing. At a vague place with ranks that are not akin, the result stays
 * true for TUTTI_EXCHANGE_DOUBT_NS after the last rank has joined. */
bool tutti_root_is_in_doubt(const struct tutti_root *root);

/* True if no other rank has joined so far. */
bool tutti_root_is_alone(const struct tutti_root *root);

/* ---- listener.c ---- */

/* Returns the listening descriptor, which belongs to the listener. */
int tutti_listener_fd(const struct tutti_listener *listener);
/* True for a listener at a Unix socket. */
bool tutti_listener_is_unix(const struct tutti_listener *listener);

/* Register the root at the listener for callers of its communicator. TUTTI_ERR_USAGE: the listener
 * already has a root for a communicator of the same name. */
int tutti_listener_enter(struct tutti_listener *listener, struct tutti_root *root);
/* Unregister the root, if it is registered. Returns the callers that were handed over to it but not
 * taken, a list linked by `newer`; the caller frees them. */
struct tutti_root_seat *tutti_listener_leave(struct tutti_listener *listener,
                                             struct tutti_root *root);

/* Hand a caller over to the root of another communicator, and wake that root. `seat` must be in no
 * list, and its descriptor unwatched. False: no root at this listener forms that communicator. */
bool tutti_listener_hand_over(struct tutti_listener *listener, const uint8_t *forming,
                              struct tutti_root_seat *seat);

/* Take the next caller that was handed over to this root; NULL: none. */
struct tutti_root_seat *tutti_listener_take(struct tutti_listener *listener,
                                            struct tutti_root *root);

/* ---- tcp_seat.c ---- */

/* Accept callers, receive records and send what is due. Never sleeps. */
void tutti_root_handle_events(struct tutti_root *root);

/* Continue to send what is loaded and, after a failure, the reason. */
void tutti_root_flush(struct tutti_root *root, struct tutti_root_seat *seat);

/* Leave the listener, close all connections and free their seats. */
void tutti_root_free_seats(struct tutti_root *root);

#endif
