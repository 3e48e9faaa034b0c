/* SPDX-License-Identifier: Apache-2.0
 * Calls that were made before on a communicator. Programs repeat a handful of calls, of which
 * nothing changes but the addresses. What all else comes to is kept here: that the arguments are
 * right, how far they reach, the signature, the program. */
#ifndef TUTTI_QUEUE_READY_H
#define TUTTI_QUEUE_READY_H

#include "executor/call.h"

#include <stddef.h>

/* Bytes from the start of a buffer to the end of what a call touches of it; 0: nothing. */
struct tutti_reach {
    size_t send_bytes, recv_bytes;
    ptrdiff_t in_place; /* from recvbuff to sendbuff, where they may overlap */
};

/* Where the cache had a call's program when it last looked. */
struct tutti_found {
    const struct tutti_program *program;
    uint64_t generation; /* of the cache's programs; 0: it has not looked */
};

enum { TUTTI_READY_CALLS = 16 };

struct tutti_ready {
    /* As the caller said it: all but the addresses. */
    bool is_used, is_in_place;
    uint8_t kind;
    int type, op, root;
    size_t count;
    /* What that comes to. */
    struct tutti_reach reach;
    struct tutti_call call; /* with the addresses of the last time */
    struct tutti_found found;
};

#endif
