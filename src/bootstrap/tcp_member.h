/* SPDX-License-Identifier: Apache-2.0
 * Inside a member of an exchange over sockets: what finding the root (tcp_find.c) and the rounds
 * (tcp_member.c) know of each other. */
#ifndef TUTTI_BOOTSTRAP_TCP_MEMBER_H
#define TUTTI_BOOTSTRAP_TCP_MEMBER_H

#include "bootstrap/exchange.h"

/* To one address of the root. */
struct attempt {
    struct tutti_address address; /* unless the member calls a Unix socket */
    int fd;
    bool is_connected;
    bool is_refused;       /* the host at that address refused the latest try */
    bool is_out_of_reach;  /* our own host had no way there at the latest try */
    uint64_t begun_ns;
    uint64_t greeted_ns;   /* 0: not greeted */
    uint64_t retry_ns;
    uint64_t pause_ns;
    struct tutti_handshake shake;
};

struct member {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    int spare_fd;        /* given up to call the root when no descriptor is left; -1: none */
    char where[128];
    char unix_name[108]; /* "": the attempts have addresses */
    struct tutti_place place; /* but for its texts */
    uint8_t meeting_secret[TUTTI_SECRET_BYTES];
    uint64_t begun_ns;

    /* Until joined. */
    struct attempt attempts[TUTTI_CANDIDATES_MAX];
    size_t attempt_count;
    struct attempt *chosen;
    int refusals;         /* by a root that was chosen */
    uint64_t later_pause_ns; /* the last pause before calling a root again that had no time */
    uint64_t refused_ns; /* since when all have refused; 0: they do not */
    char last_refusal[256];

    /* From then on. */
    int fd;
    uint32_t round;
    bool is_given;        /* this round's record is in the outbox, or sent */
    bool is_over;         /* nothing more to say to the root */
    uint64_t conclude_ns; /* deadline passed: until when the root may say who is missing */
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    uint8_t record[TUTTI_BOOTSTRAP_RECORD_MAX];
};

uint64_t tutti_member_elapsed_ms(const struct member *member);

/* Go on looking for the root. TUTTI_OK: we have joined, over member->fd. */
int tutti_member_find_root(struct member *member);

/* The root that we had joined asks us to call again: hang up, and look for it after a pause. The
 * reason is the thread's last message. */
void tutti_member_call_again(struct member *member);

#endif
