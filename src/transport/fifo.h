/* SPDX-License-Identifier: Apache-2.0
 * A byte FIFO in shared memory with one writer and one reader.
 *
 * Head and tail count bytes for ever and lie on lines of their own. Each side
 * keeps the other's counter as it last saw it, and looks again only when that
 * is not enough. The reader gives space back in quarters of the ring: a writer
 * that waits sees at least three quarters free once the reader has run dry, so
 * nobody starves, and small messages do not drag the head's line back and forth.
 */
#ifndef TUTTI_TRANSPORT_FIFO_H
#define TUTTI_TRANSPORT_FIFO_H

#include "base/atomic.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* In the segment; all zero is empty. `data` has a power of two of bytes, a multiple of 64. */
struct tutti_fifo {
    alignas(TUTTI_CACHE_LINE) uint64_t tail; /* the writer's: bytes ever written */
    uint32_t is_writer_closed;
    alignas(TUTTI_CACHE_LINE) uint64_t head; /* the reader's: bytes ever given back */
    uint32_t is_reader_closed;
    alignas(TUTTI_CACHE_LINE) uint64_t copied; /* the reader's, for cma.c: bytes ever copied out of
                                                  memory that the writer has exposed */
    alignas(TUTTI_CACHE_LINE) uint8_t data[];
};

struct tutti_fifo_writer {
    struct tutti_fifo *fifo;
    uint64_t bytes;
    uint64_t tail;      /* with what is put and not yet published */
    uint64_t head_seen;
};

#define TUTTI_FIFO_BOUNCE_BYTES 4096

struct tutti_fifo_reader {
    struct tutti_fifo *fifo;
    uint64_t bytes;
    uint64_t head; /* with what is got and not yet given back */
    uint64_t released;
    uint64_t tail_seen;
    /* Where elements are shown that wrap around the ring's end or lie at odd addresses. */
    alignas(TUTTI_CACHE_LINE) uint8_t bounce[TUTTI_FIFO_BOUNCE_BYTES];
};

void tutti_fifo_writer_init(struct tutti_fifo_writer *writer, struct tutti_fifo *fifo,
                            size_t bytes);
void tutti_fifo_reader_init(struct tutti_fifo_reader *reader, struct tutti_fifo *fifo,
                            size_t bytes);

/* How many bytes can be put; looks at the reader's counter only if it knows of fewer than
 * `wanted`. */
static inline size_t tutti_fifo_room(struct tutti_fifo_writer *writer, size_t wanted)
{
    size_t room = (size_t)(writer->bytes - (writer->tail - writer->head_seen));

    if (room >= wanted)
        return room;
    /* acquire: pairs with the release in tutti_fifo_release; the reader is done with these bytes */
    writer->head_seen = tutti_load_acquire(&writer->fifo->head);
    return (size_t)(writer->bytes - (writer->tail - writer->head_seen));
}

/* Copy in `size` bytes, at most as many as there is room for. Unseen until published. */
static inline void tutti_fifo_put(struct tutti_fifo_writer *writer, const void *data, size_t size)
{
    size_t at = (size_t)(writer->tail & (writer->bytes - 1));
    size_t straight = (size_t)writer->bytes - at;

    if (size <= straight) {
        memcpy(writer->fifo->data + at, data, size);
    } else {
        memcpy(writer->fifo->data + at, data, straight);
        memcpy(writer->fifo->data, (const uint8_t *)data + straight, size - straight);
    }
    writer->tail += size;
}

static inline void tutti_fifo_publish(struct tutti_fifo_writer *writer)
{
    /* release: pairs with the acquire in tutti_fifo_ready, publishes the bytes put */
    tutti_store_release(&writer->fifo->tail, writer->tail);
}

/* How many bytes can be got; looks at the writer's counter only if it knows of fewer than
 * `wanted`. */
static inline size_t tutti_fifo_ready(struct tutti_fifo_reader *reader, size_t wanted)
{
    size_t ready = (size_t)(reader->tail_seen - reader->head);

    if (ready >= wanted)
        return ready;
    /* acquire: pairs with the release in tutti_fifo_publish */
    reader->tail_seen = tutti_load_acquire(&reader->fifo->tail);
    return (size_t)(reader->tail_seen - reader->head);
}

/* Copy out `size` bytes, at most as many as are ready. */
static inline void tutti_fifo_get(struct tutti_fifo_reader *reader, void *data, size_t size)
{
    size_t at = (size_t)(reader->head & (reader->bytes - 1));
    size_t straight = (size_t)reader->bytes - at;

    if (size <= straight) {
        memcpy(data, reader->fifo->data + at, size);
    } else {
        memcpy(data, reader->fifo->data + at, straight);
        memcpy((uint8_t *)data + straight, reader->fifo->data, size - straight);
    }
    reader->head += size;
}

/* Give space back, if it is worth it. True when the writer can see it and may have to be roused. */
static inline bool tutti_fifo_release(struct tutti_fifo_reader *reader)
{
    if (reader->head - reader->released < reader->bytes / 4)
        return false;
    reader->released = reader->head;
    /* release: pairs with the acquire in tutti_fifo_room; we have read these bytes */
    tutti_store_release(&reader->fifo->head, reader->head);
    return true;
}

/* The alignment that elements of `least` bytes ask for: the largest power of two in it, up to 8. */
static inline size_t tutti_peek_alignment(size_t least)
{
    size_t lowest = least & (~least + 1);

    return lowest > 8 ? 8 : lowest;
}

/* Show up to `most` bytes in place: a multiple of `least` of them, or none; aligned as above.
 * Valid until the next get or view. */
size_t tutti_fifo_view(struct tutti_fifo_reader *reader, size_t least, size_t most,
                       const void **ret_data);

/* Ends of the pipe. The other side reads what was published before; see the pairs in fifo.c. */
void tutti_fifo_close_writer(struct tutti_fifo_writer *writer);
void tutti_fifo_close_reader(struct tutti_fifo_reader *reader);

/* Will nothing ever come any more? Nobody take it any more? For the slow path. */
bool tutti_fifo_is_ended(struct tutti_fifo_reader *reader);
bool tutti_fifo_is_refused(const struct tutti_fifo_writer *writer);

#endif
