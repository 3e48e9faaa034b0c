/* SPDX-License-Identifier: Apache-2.0
 * Internals of the root of an exchange over sockets, shared by its rounds (tcp_root.c), its
 * connections (tcp_seat.c) and its door (door.c). */
#ifndef TUTTI_BOOTSTRAP_TCP_ROOT_H
#define TUTTI_BOOTSTRAP_TCP_ROOT_H

#include "bootstrap/exchange.h"

/* One connection to the root. It begins as a caller, which has yet to prove that it holds the
 * secret, and then becomes a member. */
struct seat {
    int fd; /* -1: a member that has left */
    bool is_member;
    int rank; /* -1: a caller, or a member rejected for its rank or nranks */
    struct seat *older, *newer; /* in its list: callers, members or gone callers */
    struct tutti_handshake shake;
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    bool has_spoken;   /* it has sent a frame */
    uint32_t rounds;   /* records received so far */
    bool has_record;   /* the record of the current round is in inbox.body */
    uint32_t record_size;
    uint64_t kin;      /* the member's tutti_exchange_kin, at a vague place */
    bool is_told;      /* the error frame is loaded or sent */
};

struct list {
    struct seat *oldest, *newest;
    int count;
};

struct root {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    struct tutti_door *door;
    bool is_listening;
    bool is_full;        /* out of descriptors, so the listener is not watched */
    int spare_fd;        /* closed to make room for a caller when out of descriptors; -1: none */
    char where[128];
    char name[64];
    uint8_t forming[TUTTI_FORMING_BYTES];
    uint8_t meeting_secret[TUTTI_SECRET_BYTES];
    bool is_of_id, is_same_user, is_vague;
    uint64_t kin;        /* the root's tutti_exchange_kin, at a vague place */
    uint64_t complete_ns; /* when the last rank joined; 0: some are missing */
    void (*on_spent)(void *context); /* see tutti_exchange_serve; NULL once called */
    void *context;

    /* Guarded by the lock of door.c. */
    struct root *next_at_door;
    bool is_at_door;
    struct seat *handed_over; /* callers from other roots of this door, linked by `newer` */

    uint64_t session;
    uint64_t begun_ns;
    struct list callers;
    struct list members;
    struct list gone_callers; /* closed; freed once no handler uses them any more */
    struct seat **seat_of_rank; /* [nranks]; NULL: not joined */
    int joined; /* members that have a rank */
    bool has_logged_stranger;

    uint32_t round;
    bool is_sending; /* all records are there, and the table is being sent */
    int records;  /* received in the current round, without the root's own */
    int gone;     /* members that have left */
    int unsent;   /* members to which the table has not been sent completely */
    uint8_t *table;
    size_t table_capacity;

    int failure; /* 0, or the error after which no round completes */
    char reason[TUTTI_MESSAGE_BYTES];
    uint64_t linger_ns; /* after a failure: until when members are told the reason */
};

/* ---- tcp_root.c ---- */

/* Fail the bootstrap: no round completes from now on, and all members are told the reason. Only the
 * first call has an effect. */
void tutti_root_fail(struct root *root, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail because the deadline has passed, with a message that names the missing ranks. */
void tutti_root_fail_missing(struct root *root);

/* True while ranks are missing. At a vague place with ranks that are not akin, also true for
 * TUTTI_EXCHANGE_DOUBT_NS after the last one has joined. */
bool tutti_root_is_in_doubt(const struct root *root);

/* True if no other rank has joined so far. */
bool tutti_root_is_alone(const struct root *root);

/* ---- door.c ---- */

int tutti_door_fd(const struct tutti_door *door);
bool tutti_door_is_unix(const struct tutti_door *door);

/* Register the root at the door for callers of its communicator. TUTTI_ERR_USAGE: the door already
 * has a root for a communicator of the same name. */
int tutti_door_enter(struct tutti_door *door, struct root *root);
/* Unregister the root, if it is registered. Returns the callers that were handed over to it but not
 * taken, a list linked by `newer`; the caller frees them. */
struct seat *tutti_door_leave(struct tutti_door *door, struct root *root);

/* Hand a caller over to the root of another communicator, and wake that root. `seat` must be in no
 * list, and its descriptor unwatched. False: no root at this door forms that communicator. */
bool tutti_door_hand_over(struct tutti_door *door, const uint8_t *forming, struct seat *seat);

/* Take the next caller that was handed over to this root; NULL: none. */
struct seat *tutti_door_take(struct tutti_door *door, struct root *root);

/* ---- tcp_seat.c ---- */

/* Accept callers, receive from members, send what is due. Never sleeps. */
void tutti_root_handle_events(struct root *root);

/* Continue to send what is loaded and, after a failure, the reason. */
void tutti_root_flush(struct root *root, struct seat *seat);

/* Leave the door, close all connections and free their seats. */
void tutti_root_free_seats(struct root *root);

#endif
