/* SPDX-License-Identifier: Apache-2.0
 * Point to point: sends and receives on the channel of their own.
 *
 * The messages of a batch move at the same time; those of one peer and
 * direction follow each other in the order of their calls. */
#ifndef TUTTI_EXECUTOR_HOST_MESSAGE_H
#define TUTTI_EXECUTOR_HOST_MESSAGE_H

#include "executor/host/host.h"

struct tutti_message {
    struct tutti_message *before;    /* of this batch, peer and direction; NULL: none */
    struct tutti_conn *conn;
    uint8_t *data;                   /* the caller's; a send only reads it */
    size_t size, moved;              /* bytes */
    int peer;
    bool sends, is_complete;
    bool is_mutual;                  /* the batch has messages in the other direction, too */
    bool streams;                    /* received past the cache */
    uint32_t header_bytes;           /* done */
    struct tutti_header header;      /* mine */
    struct tutti_header theirs;      /* received */
};

/* Counts messages of each peer and direction, and remembers the last of a batch. */
struct tutti_numbering {
    int nranks;
    uint64_t *sequences;             /* [2][nranks]: receives, sends */
    struct tutti_message **last;     /* [2][nranks], of the batch being added; else NULL */
};

int tutti_numbering_init(struct tutti_numbering *numbering, int nranks);
void tutti_numbering_fini(struct tutti_numbering *numbering);
/* Heap held, for the memory report. */
size_t tutti_numbering_bytes(const struct tutti_numbering *numbering);

/* A message for `call`, a send or receive. */
void tutti_message_init(struct tutti_message *message, const struct tutti_call *call);

/* Number the messages of a batch, and put each behind its predecessors. */
void tutti_numbering_add(struct tutti_numbering *numbering, struct tutti_message *messages,
                       size_t count);

/* Go on. TUTTI_OK: complete. Sets *moved when bytes moved. */
int tutti_message_progress(struct tutti_engine *engine, struct tutti_message *message, bool *moved);

#endif
