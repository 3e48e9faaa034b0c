/* SPDX-License-Identifier: Apache-2.0
 * Host streams: in-order queues of batches, each served by a thread of its own. */
#ifndef TUTTI_STREAM_H
#define TUTTI_STREAM_H

#include "batch.h"

/* TUTTI_ERR_ARGUMENT unless `stream` is a live stream. */
int tutti_stream_check(tuttiStream_t stream, const char *function);

/* A place in a queue, made before anything is promised so that queueing cannot fail; freed with
 * free() unless pushed. NULL: no memory. */
struct tutti_stream_item;
struct tutti_stream_item *tutti_stream_item_create(void);

/* Queue `batch` (one reference, which the stream takes) in `item`, which it takes too. `moves`:
 * this stream's thread is the one to move it; otherwise the stream only waits for it to be done. */
void tutti_stream_push(tuttiStream_t stream, struct tutti_stream_item *item,
                       struct tutti_batch *batch, bool moves);

#endif
