/* SPDX-License-Identifier: Apache-2.0
 * A bell wakes a member of a domain that sleeps on sockets as well. A futex cannot be polled
 * together with sockets, but a datagram can. Each member has a Unix datagram socket under an
 * abstract name that only members can derive. */
#ifndef TUTTI_TRANSPORT_SHM_BELL_H
#define TUTTI_TRANSPORT_SHM_BELL_H

#include "base/handshake.h"

#include <stdint.h>

#define TUTTI_BELL_NAME_BYTES 64

struct tutti_bell {
    int fd; /* this member's socket; -1: none */
    char prefix[TUTTI_BELL_NAME_BYTES]; /* the names of all members' sockets begin with it */
};

/* Open the bell of member `index`. TUTTI_ERR_SYSTEM, recorded but not logged: there is no bell. The
 * caller then keeps sleeps short instead. */
int tutti_bell_open(struct tutti_bell *bell, const uint8_t secret[TUTTI_SECRET_BYTES],
                    uint32_t index);

/* Ring the bell of another member without blocking. If the queue of that bell is full, it has been
 * rung already, and nothing is sent. */
void tutti_bell_ring(const struct tutti_bell *bell, uint32_t index);

/* Discard the rings that have arrived so far. */
void tutti_bell_quiet(const struct tutti_bell *bell);

void tutti_bell_close(struct tutti_bell *bell);

#endif
