/* SPDX-License-Identifier: Apache-2.0
 * Passes a descriptor from one rank of a host to the others, over an abstract Unix socket with an
 * unguessable name, after the handshake. */
#ifndef TUTTI_TRANSPORT_SHM_PASS_H
#define TUTTI_TRANSPORT_SHM_PASS_H

#include "base/handshake.h"

struct tutti_pass;

struct tutti_pass_args {
    uint32_t nmembers, me;              /* member 0 has the descriptor */
    uint8_t secret[TUTTI_SECRET_BYTES]; /* the secret of these members and this descriptor: it
                                           names the socket and keys the proofs */
    uint64_t deadline_ns;
    /* On member 0, the descriptor. The function takes it, also on failure. -1 means that there is
     * none, for the reason in the thread's last message. The others must not wait for it, so they
     * are refused. */
    int fd;
};

/* How long to wait for the others. Passing takes milliseconds once all are there, and a member that
 * goes on without it needs the rest of the time for forming. */
uint64_t tutti_pass_deadline(uint64_t forming_deadline_ns);

/* Begin. Member 0 listens. */
int tutti_pass_create(const struct tutti_pass_args *args, struct tutti_pass **ret_pass);

/* Make progress. TUTTI_OK: *ret_fd is the descriptor, which the caller closes. TUTTI_ERR_SYSTEM and
 * others: this member cannot have it, and the message gives the reason. Member 0 is done when all
 * others have been served, or refused. */
int tutti_pass_step(struct tutti_pass *pass, int *ret_fd);

/* NULL is ignored. */
void tutti_pass_destroy(struct tutti_pass *pass);

#endif
