/* SPDX-License-Identifier: Apache-2.0
 * One direction of a connection as a seeded sequence of messages, and its two ends. Both know all
 * messages from the seed, and every byte is compared. */
#ifndef TESTS_TRANSPORT_FLOW_H
#define TESTS_TRANSPORT_FLOW_H

#include "transport/transport.h"

struct flow {
    uint64_t shape;   /* state of the generator that both ends share: sizes and modes */
    uint64_t whim;    /* and of this end's own: how much is offered or asked for at a time */
    uint64_t seed;
    uint32_t nmessages, index;
    size_t most_bytes;

    size_t size, done, offered;
    size_t least;     /* element size; messages are multiples of it */
    enum { FLOW_COPIES, FLOW_LOOKS, FLOW_MIXES } mode; /* of the receiver: recv, peek, or both */
    uint64_t position; /* in the stream */
    uint8_t *buffer;
};

void flow_start(struct flow *flow, uint64_t seed, uint64_t whim, uint32_t nmessages,
                size_t most_bytes);
void flow_end(struct flow *flow);
static inline int flow_is_done(const struct flow *flow)
{
    return flow->index == flow->nmessages;
}

/* One pass of an end. Returns nonzero when it moved bytes; -1 when the transport failed; -2 when a
 * byte or a promise of peek is wrong. */
int flow_send(struct flow *flow, struct tutti_conn *conn);
int flow_recv(struct flow *flow, struct tutti_conn *conn);

#endif
