/* SPDX-License-Identifier: Apache-2.0
 * Point-to-point messages. Sends and receives use a channel of their own, so that they do not mix
 * with the bytes of collectives.
 *
 * The messages of a batch move at the same time. Those with the same peer and
 * direction move one after the other, in the order of their calls. */
#ifndef TUTTI_EXECUTOR_HOST_MESSAGE_H
#define TUTTI_EXECUTOR_HOST_MESSAGE_H

#include "executor/host/host.h"

struct tutti_engine_message {
    /* The previous message of this batch with the same peer and direction. NULL: there is none. */
    struct tutti_engine_message *before;
    struct tutti_conn *conn;         /* NULL until the message begins to move; not owned */
    uint8_t *data;                   /* borrowed from the caller; a send only reads it */
    size_t size, moved;              /* bytes of data in all, and those moved so far */
    int peer;
    bool sends;                      /* true for a send, false for a receive */
    bool is_complete;
    bool is_mutual;                  /* the batch has both sends and receives */
    bool streams;                    /* received bytes bypass the cache */
    uint32_t header_bytes;           /* bytes of the header moved so far */
    struct tutti_header header;      /* this rank's */
    struct tutti_header theirs;      /* the peer's, as received */
};

/* Numbers the messages of each peer and direction. Both arrays have a row for receives and a row
 * for sends. */
struct tutti_engine_numbers {
    int nranks;
    uint64_t *sequences;             /* [2][nranks]: the last number given; 0: no message yet */
    struct tutti_engine_message **last; /* [2][nranks]: entries are NULL between batches */
};

/* Initializes `numbering`. TUTTI_ERR_SYSTEM: no memory. */
int tutti_engine_numbers_init(struct tutti_engine_numbers *numbering, int nranks);
void tutti_engine_numbers_fini(struct tutti_engine_numbers *numbering);
/* Returns the bytes of heap memory that `numbering` holds, for the memory report. */
size_t tutti_numbering_bytes(const struct tutti_engine_numbers *numbering);

/* Initializes a message for `call`, a send or receive. The call's buffer is borrowed. */
void tutti_engine_message_init(struct tutti_engine_message *message, const struct tutti_call *call);

/* Numbers the messages of a batch, and links each message to the message that must be complete
 * before it. The messages must stay at their addresses until all of them are complete. */
void tutti_numbering_add(struct tutti_engine_numbers *numbering,
                         struct tutti_engine_message *messages, size_t count);

/* Moves the message as far as it can go. TUTTI_OK: complete. TUTTI_AGAIN: call again. Sets *moved
 * to true if there was any progress, and leaves it alone otherwise. TUTTI_ERR_USAGE: the peer's
 * message does not match; the error message names both. Other errors are the transport's. */
int tutti_engine_message_progress(struct tutti_engine *engine, struct tutti_engine_message *message,
                                  bool *moved);

#endif
