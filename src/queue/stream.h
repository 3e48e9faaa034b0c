/* SPDX-License-Identifier: Apache-2.0
 * Host streams: in-order queues of batches, each served by a thread of its own. */
#ifndef TUTTI_QUEUE_STREAM_H
#define TUTTI_QUEUE_STREAM_H

#include "queue/batch.h"

/* Is it one that tuttiHostStreamCreate has made? */
bool tutti_stream_is_ours(tuttiStream_t stream);

/* TUTTI_ERR_ARGUMENT unless `stream` is a live stream. */
int tutti_stream_check(tuttiStream_t stream, const char *function);

/* A group refers to the stream, which is live: until it lets go, the stream cannot be destroyed. */
void tutti_stream_hold(tuttiStream_t stream);
void tutti_stream_let_go(tuttiStream_t stream);

/* Queue `batch` (one reference, which the stream takes) in `item`: the place that the batch has
 * room for, or one from malloc, which the stream takes too. Cannot fail. `moves`: whoever serves
 * this stream is the one to move the batch; otherwise it only waits for it to be done. */
void tutti_stream_push(tuttiStream_t stream, struct tutti_stream_item *item,
                       struct tutti_batch *batch, bool moves);

#endif
