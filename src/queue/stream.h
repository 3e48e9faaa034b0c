/* SPDX-License-Identifier: Apache-2.0
 * Host streams. A host stream is an in-order queue of batches, which a thread of its own serves. */
#ifndef TUTTI_QUEUE_STREAM_H
#define TUTTI_QUEUE_STREAM_H

#include "queue/batch.h"

/* True if `stream` is a live host stream that tuttiHostStreamCreate made. Otherwise it may be a
 * CUDA stream. Any value is allowed. Thread-safe. */
bool tutti_stream_is_ours(tuttiStream_t stream);

/* Checks that `stream` is a host stream that this process can use. TUTTI_ERR_ARGUMENT: `stream` is
 * NULL, not a host stream, or destroyed. TUTTI_ERR_USAGE: it was made before fork. The message
 * names `function`. Thread-safe. */
int tutti_stream_check(tuttiStream_t stream, const char *function);

/* Adds and drops a group's reference to a live stream. A stream cannot be destroyed while groups
 * refer to it. Thread-safe. */
void tutti_stream_hold(tuttiStream_t stream);
void tutti_stream_let_go(tuttiStream_t stream);

/* Appends `batch` to the stream's queue, in `item`. The stream takes over one reference to the
 * batch. `item` is &batch->stream_item, or it comes from malloc and the stream frees it. If
 * `runs_batch` is true, the thread that serves this stream runs the batch. Otherwise that thread
 * only waits until the batch is done. This function cannot fail. Thread-safe. */
void tutti_stream_push(tuttiStream_t stream, struct tutti_stream_item *item,
                       struct tutti_batch *batch, bool runs_batch);

#endif
