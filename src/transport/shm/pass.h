/* SPDX-License-Identifier: Apache-2.0
 * How a descriptor gets from one rank of a host to the others: over an abstract Unix socket with an
 * unguessable name, after the handshake. */
#ifndef TUTTI_TRANSPORT_SHM_PASS_H
#define TUTTI_TRANSPORT_SHM_PASS_H

#include "base/handshake.h"

struct tutti_pass;

struct tutti_pass_args {
    uint32_t nmembers, me;              /* member 0 has the descriptor */
    uint8_t secret[TUTTI_SECRET_BYTES]; /* of these members and this descriptor: names the socket,
                                           keys the proofs */
    uint64_t deadline_ns;
    /* Member 0's: the descriptor, which is taken, also on failure. -1: there is none, for the
     * reason that is the thread's last message, and the others must not wait for it: they are
     * refused. */
    int fd;
};

/* Until when to wait for the others: passing takes milliseconds once all are there, and who does
 * without it needs the rest of the time that forming has. */
uint64_t tutti_pass_deadline(uint64_t forming_deadline_ns);

/* Begin. Member 0 listens. */
int tutti_pass_create(const struct tutti_pass_args *args, struct tutti_pass **ret_pass);

/* Go on. TUTTI_OK: *ret_fd is the descriptor, the caller's to close. TUTTI_ERR_SYSTEM and others:
 * this member cannot have it, and why. Member 0 is done when everybody has been served, or
 * refused. */
int tutti_pass_step(struct tutti_pass *pass, int *ret_fd);

/* NULL is ignored. */
void tutti_pass_destroy(struct tutti_pass *pass);

#endif
