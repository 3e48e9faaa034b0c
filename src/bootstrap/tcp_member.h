/* SPDX-License-Identifier: Apache-2.0
 * Internals of a member of an exchange over sockets, shared by the search for the root (tcp_find.c)
 * and the rounds (tcp_member.c). */
#ifndef TUTTI_BOOTSTRAP_TCP_MEMBER_H
#define TUTTI_BOOTSTRAP_TCP_MEMBER_H

#include "bootstrap/exchange.h"

/* The attempt to reach the root at one of its addresses, with its retries. */
struct tutti_member_attempt {
    struct tutti_address address; /* not used if the root is at a Unix socket */
    int fd;                /* -1: no connection is open or being made */
    bool is_connected;
    bool is_refused;       /* the host at that address refused the latest try */
    bool is_out_of_reach;  /* the latest try failed in this host, for example for lack of a route */
    uint64_t begun_ns;     /* when the latest try began */
    uint64_t greeted_ns;   /* when the root's greeting arrived; 0: not yet */
    uint64_t retry_ns;     /* when to try again */
    uint64_t pause_ns;     /* the last pause before a retry; each pause is twice the one before */
    struct tutti_handshake shake;
};

struct tutti_member_boot {
    struct tutti_bootstrap base;
    struct tutti_watch watch;
    int spare_fd;        /* closed to connect to the root when out of descriptors; -1: none */
    char where[128];     /* the place, for messages */
    char unix_name[108]; /* "": the attempts use their addresses */
    struct tutti_meeting_place place; /* its texts are NULL */
    uint8_t meeting_secret[TUTTI_SECRET_BYTES]; /* of handshakes, derived from place.secret */
    uint64_t begun_ns;   /* when the bootstrap was made */

    /* Until the member has joined. */
    struct tutti_member_attempt attempts[TUTTI_CANDIDATES_MAX];
    size_t attempt_count;
    struct tutti_member_attempt *chosen; /* the first that has greeted; NULL: none yet */
    int refusals;            /* how often a chosen attempt has failed */
    uint64_t later_pause_ns; /* the last pause after a root asked this member to connect later */
    uint64_t refused_ns;     /* time since which all addresses refuse; 0: not all of them do */
    char last_refusal[256];  /* why the latest attempt failed; "": none has */

    /* After the member has joined. */
    int fd;               /* connection to the root; -1: not joined */
    uint32_t round;       /* number of rounds that are complete */
    bool is_given;        /* this round's record is in the outbox, or sent */
    bool is_over;         /* the root needs no reason from this member any more */
    uint64_t conclude_ns; /* after the deadline: when to stop waiting for the root; 0: not yet */
    struct tutti_inbox inbox;
    struct tutti_outbox outbox;
    uint8_t record[TUTTI_BOOTSTRAP_RECORD_MAX]; /* of this round, for the outbox */
};

/* Returns the milliseconds since the bootstrap was made. */
uint64_t tutti_member_elapsed_ms(const struct tutti_member_boot *member);

/* Continue to look for the root. TUTTI_OK: this member has joined, over member->fd. TUTTI_AGAIN:
 * not yet. TUTTI_ERR_TIMEOUT: the deadline has passed. TUTTI_ERR_REMOTE: the root of a unique id is
 * gone. TUTTI_ERR_SYSTEM: no descriptor is left. */
int tutti_member_find_root(struct tutti_member_boot *member);

/* The root has asked this member to connect again later: close the connection, and let
 * tutti_member_find_root look for the root after a pause. The thread's last message must be the
 * root's reason. */
void tutti_member_call_again(struct tutti_member_boot *member);

#endif
