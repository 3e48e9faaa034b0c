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
    /* On member 0, the descriptor. tutti_pass_create takes it over, also on failure. -1 means that
     * there is none, for the reason in the thread's last message. Member 0 then refuses the others,
     * so that they do not wait for it. */
    int fd;
};

/* Returns the deadline for passing: half of the time that is left for forming, at most 30 s from
 * now. Passing takes milliseconds once all members have connected. Members that must go on without
 * the descriptor need the rest of the time for forming. */
uint64_t tutti_pass_deadline(uint64_t forming_deadline_ns);

/* Begin to pass. Member 0 listens for the others from now on. The caller destroys *ret_pass. */
int tutti_pass_create(const struct tutti_pass_args *args, struct tutti_pass **ret_pass);

/* Make progress without blocking. TUTTI_AGAIN: call again. TUTTI_OK: *ret_fd is the descriptor,
 * which the caller closes. An error means that this member cannot have the descriptor, and the
 * message gives the reason. Member 0 is done when all others have been served or refused. */
int tutti_pass_step(struct tutti_pass *pass, int *ret_fd);

/* Close all connections and the descriptor, unless tutti_pass_step has returned it. NULL is
 * ignored. */
void tutti_pass_destroy(struct tutti_pass *pass);

#endif
