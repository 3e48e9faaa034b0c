/* SPDX-License-Identifier: Apache-2.0
 * Point to point: sends and receives on the channel of their own.
 *
 * The messages of a batch move at the same time; those of one peer and
 * direction follow each other in the order of their calls. */
#ifndef TUTTI_EXECUTOR_HOST_MESSAGE_H
#define TUTTI_EXECUTOR_HOST_MESSAGE_H

#include "executor/host.h"

struct tutti_message {
    struct tutti_call call;          /* kind SEND or RECV; root is the peer */
    /* Of this batch, peer and direction; NULL when its turn has come. */
    struct tutti_message *before;
    struct tutti_conn *conn;
    bool is_complete;
    uint32_t header_bytes;
    struct tutti_header header;      /* mine */
    struct tutti_header theirs;
    size_t moved;
};

/* Counts messages of each peer and direction, and remembers the last of a batch. */
struct tutti_mailbox {
    int nranks;
    uint64_t *sequences;             /* [2][nranks]: receives, sends */
    struct tutti_message **last;     /* [2][nranks], of the batch being put together */
};

int tutti_mailbox_init(struct tutti_mailbox *mailbox, int nranks);
void tutti_mailbox_fini(struct tutti_mailbox *mailbox);
/* Heap held, for the memory report. */
size_t tutti_mailbox_bytes(const struct tutti_mailbox *mailbox);

/* Put `message` (its call is set, all else zero) behind its predecessors of the
 * batch. tutti_mailbox_close forgets the batch once all of it is added. */
void tutti_mailbox_add(struct tutti_mailbox *mailbox, struct tutti_message *message);
void tutti_mailbox_close(struct tutti_mailbox *mailbox);

/* Go on. TUTTI_OK: complete. Sets *moved when bytes moved. */
int tutti_message_progress(struct tutti_engine *engine, struct tutti_message *message, bool *moved);

#endif
