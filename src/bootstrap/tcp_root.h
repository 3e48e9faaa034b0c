/* SPDX-License-Identifier: Apache-2.0
 * Inside the root of the TCP exchange: what its rounds (tcp_root.c) and its
 * connections (tcp_seat.c) know of each other. */
#ifndef TUTTI_BOOTSTRAP_TCP_ROOT_H
#define TUTTI_BOOTSTRAP_TCP_ROOT_H

#include "bootstrap/exchange.h"

/* One connection: first of a caller, then of a member. */
struct seat {
    int fd; /* -1: a member that has left */
    bool is_member;
    int rank; /* -1: a member that is not one of the nranks */
    struct seat *older, *newer; /* in its list: callers or members */
    struct tutti_handshake shake;
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    uint32_t rounds;   /* records received so far */
    bool has_record;   /* of the current round, in inbox.body */
    uint32_t record_size;
    bool is_told;      /* the error frame is loaded or sent */
};

struct list {
    struct seat *oldest, *newest;
    int count;
};

struct root {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    int listen_fd;
    char where[128];
    uint8_t meeting_secret[TUTTI_SECRET_BYTES];
    uint64_t session;
    uint64_t begun_ns;
    struct list callers;
    struct list members;
    struct seat **seat_of_rank;
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

/* ---- tcp_seat.c ---- */

/* Take in callers, hear members, send what is due. Never sleeps. */
void tutti_root_handle_events(struct root *root);

/* Send on what is loaded, and after a failure the reason. */
void tutti_root_flush(struct root *root, struct seat *seat);

/* Hang up on everybody. */
void tutti_root_free_seats(struct root *root);

#endif
