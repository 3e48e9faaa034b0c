/* SPDX-License-Identifier: Apache-2.0
 * One pair of ranks of a proxy (proxy.h): what is sent from the outgoing mailbox, and stored in the
 * incoming one. */
#ifndef TUTTI_EXECUTOR_CUDA_PROXY_LINK_H
#define TUTTI_EXECUTOR_CUDA_PROXY_LINK_H

#include "executor/cuda/proxy.h"

/* Everything that proxies send each other begins with a frame. */
struct tutti_cuda_proxy_frame {
    uint32_t kind;     /* enum tutti_cuda_proxy_kind */
    uint32_t fifo;     /* SLOT, EMPTIED: number of the FIFO; GREETING: flag of its epoch */
    uint64_t value;    /* SLOT: bytes of data; EMPTIED: the count; GREETING: 0 or 1, its place */
    uint64_t words[4]; /* SLOT: the header; GREETING: its values */
};

enum tutti_cuda_proxy_kind {
    TUTTI_CUDA_PROXY_SLOT = 1, /* a slot, whose data follow the frame */
    TUTTI_CUDA_PROXY_EMPTIED,  /* the sender's kernel has emptied slots */
    TUTTI_CUDA_PROXY_GREETING,
    TUTTI_CUDA_PROXY_LEAVE,    /* nothing but an answer follows */
    TUTTI_CUDA_PROXY_ANSWER,   /* the sender has received LEAVE, and sends nothing more */
};

/* Frames that are sent together. */
enum { TUTTI_CUDA_PROXY_FRAMES = 16 };

struct tutti_cuda_proxy_link {
    struct tutti_cuda_proxy_pair pair;
    struct tutti_kernel_layout layout;
    struct tutti_fabric *fabric;
    struct tutti_conn *conn; /* NULL: closed, after both proxies have taken leave */

    /* Sending. */
    uint64_t *filled;   /* [channels]: slots of outgoing FIFOs that were sent */
    uint64_t *emptied;  /* [channels]: counts of emptied slots that were sent */
    uint32_t greeted[2]; /* flags of the last greetings that were sent */
    uint32_t turn;      /* the FIFO whose slots are considered first */
    struct tutti_cuda_proxy_frame frames[TUTTI_CUDA_PROXY_FRAMES];
    const uint8_t *data; /* of the slot to which the last frame belongs */
    size_t frame_bytes, data_bytes, sent_bytes; /* being sent; sent_bytes: of both */
    uint64_t total_bytes; /* of data of all slots that were sent */
    bool is_leaving;    /* LEAVE was put among the frames */
    bool owes_answer;   /* LEAVE has arrived, and is not answered yet */

    /* Receiving. */
    uint64_t *arrived;  /* [channels]: slots of incoming FIFOs that have arrived */
    struct tutti_cuda_proxy_frame frame;
    size_t got_bytes;   /* of the frame and its data */
    bool has_left;      /* LEAVE has arrived */
    bool is_answered;   /* ANSWER has arrived */
};

/* Initializes the link of a pair. TUTTI_ERR_SYSTEM: no memory. Call tutti_cuda_proxy_link_fini
 * after a failure, too. */
int tutti_cuda_proxy_link_init(struct tutti_cuda_proxy_link *link,
                               const struct tutti_cuda_proxy_args *args,
                               const struct tutti_cuda_proxy_pair *pair);
void tutti_cuda_proxy_link_fini(struct tutti_cuda_proxy_link *link);

/* Sends and receives what is possible now, and sets *moved if there was anything. Errors:
 * TUTTI_ERR_REMOTE if the connection is lost before the other proxy has left, TUTTI_ERR_INTERNAL if
 * it sends what no proxy sends. */
int tutti_cuda_proxy_link_move(struct tutti_cuda_proxy_link *link, bool *moved);

/* Lets the link send LEAVE after all that kernels have stored. Returns true once there is nothing
 * left to be sent, and the other side has received all of it. */
bool tutti_cuda_proxy_link_leave(struct tutti_cuda_proxy_link *link);

#endif
