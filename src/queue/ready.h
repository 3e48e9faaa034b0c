/* SPDX-License-Identifier: Apache-2.0
 * Remembered calls of a communicator. Programs repeat a handful of calls in which only the
 * addresses change. So the results that depend on the other arguments are kept here: that they are
 * valid, how far the buffers reach, the signature, the program. */
#ifndef TUTTI_QUEUE_READY_H
#define TUTTI_QUEUE_READY_H

#include "executor/call.h"

#include <stddef.h>

/* Bytes from the start of a buffer to the end of what a call touches of it; 0: nothing. */
struct tutti_reach {
    size_t send_bytes, recv_bytes;
    ptrdiff_t in_place; /* offset in bytes of sendbuff in recvbuff at which they may overlap */
};

/* A program that the cache has found for a call (tutti_cache_again). */
struct tutti_found {
    const struct tutti_program *program;
    uint64_t generation; /* the cache's generation when it was found; 0: not looked up yet */
};

enum { TUTTI_READY_CALLS = 16 };

enum tutti_ready_form { TUTTI_READY_UNUSED, TUTTI_READY_APART, TUTTI_READY_IN_PLACE };

struct tutti_ready {
    /* The key: the arguments as the caller passed them, without the addresses. */
    uint8_t form; /* enum tutti_ready_form */
    uint8_t kind, collective;
    bool is_special; /* a result: no rank has anything to move, or a message to this rank itself */
    int type, op, root;
    size_t count;
    /* The other results for these arguments. */
    struct tutti_reach reach;
    struct tutti_call call; /* with the addresses of its last use */
    struct tutti_found found;
};

#endif
