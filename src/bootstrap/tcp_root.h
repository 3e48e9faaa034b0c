/* SPDX-License-Identifier: Apache-2.0
 * Inside the root of an exchange over sockets: what its rounds (tcp_root.c), its
 * connections (tcp_seat.c) and its door (door.c) know of each other. */
#ifndef TUTTI_BOOTSTRAP_TCP_ROOT_H
#define TUTTI_BOOTSTRAP_TCP_ROOT_H

#include "bootstrap/exchange.h"

/* One connection: first of a caller, then of a member. */
struct seat {
    int fd; /* -1: a member that has left */
    bool is_member;
    int rank; /* -1: a member that is not one of the nranks */
    struct seat *older, *newer; /* in its list: callers, members or those that have gone */
    struct tutti_handshake shake;
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    bool has_spoken;   /* a frame of it has arrived */
    uint32_t rounds;   /* records received so far */
    bool has_record;   /* of the current round, in inbox.body */
    uint32_t record_size;
    uint64_t kin;
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
    bool is_full;        /* no descriptor is left for another caller: the listener is not watched */
    int spare_fd;        /* given up to tell a caller that none is left; -1: none */
    char where[128];
    char name[64];
    uint8_t forming[TUTTI_FORMING_BYTES];
    uint8_t meeting_secret[TUTTI_SECRET_BYTES];
    bool is_of_id, is_same_user, is_vague;
    uint64_t kin;        /* at a vague place */
    uint64_t complete_ns; /* when the last rank came; 0: some are missing */
    void (*on_spent)(void *context); /* NULL once called */
    void *context;

    /* Guarded by the doors' lock. */
    struct root *next_at_door;
    bool is_at_door;
    struct seat *handed_over;

    uint64_t session;
    uint64_t begun_ns;
    struct list callers;
    struct list members;
    struct list gone_callers; /* closed; freed once nobody looks at them */
    struct seat **seat_of_rank;
    int joined; /* members that are one of the nranks */
    bool has_logged_stranger;

    uint32_t round;
    bool is_sending;
    int records;  /* of the current round, without our own */
    int gone;     /* ranks that have left after their last table */
    int unsent;   /* tables not yet sent */
    uint8_t *table;
    size_t table_capacity;

    int failure; /* 0, or why no round will ever complete */
    char reason[TUTTI_MESSAGE_BYTES];
    uint64_t linger_ns;
};

/* ---- tcp_root.c ---- */

/* No round completes any more, and all members are told so; the first reason counts. */
void tutti_root_fail(struct root *root, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The deadline has passed: fail, naming the ranks that are waited for. */
void tutti_root_fail_missing(struct root *root);

/* False once all ranks have come and no more than those are expected. */
bool tutti_root_is_in_doubt(const struct root *root);

/* True if no other rank has come so far. */
bool tutti_root_is_alone(const struct root *root);

/* ---- door.c ---- */

int tutti_door_fd(const struct tutti_door *door);
bool tutti_door_is_unix(const struct tutti_door *door);

/* Wait at the door for callers of the root's communicator; leave it. What had been handed over and
 * not been taken is returned, a list by `newer`. */
int tutti_door_enter(struct tutti_door *door, struct root *root);
struct seat *tutti_door_leave(struct tutti_door *door, struct root *root);

/* Give a caller, which is watched by nobody, to the root of that communicator. False: there is none
 * at this door. */
bool tutti_door_hand_over(struct tutti_door *door, const uint8_t *forming, struct seat *seat);

/* The next caller that was handed over to this root; NULL: none. */
struct seat *tutti_door_take(struct tutti_door *door, struct root *root);

/* ---- tcp_seat.c ---- */

/* Take in callers, hear members, send what is due. Never sleeps. */
void tutti_root_handle_events(struct root *root);

/* Send on what is loaded, and after a failure the reason. */
void tutti_root_flush(struct root *root, struct seat *seat);

/* Hang up on everybody. */
void tutti_root_free_seats(struct root *root);

#endif
