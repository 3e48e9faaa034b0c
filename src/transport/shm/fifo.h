/* SPDX-License-Identifier: Apache-2.0
 * A FIFO of records in shared memory with one writer and one reader.
 *
 *   | stamp, bytes ...        | ... bytes       | stamp, bytes ... | 0
 *   ^ line                    ^ line            ^ line
 *
 * A record begins on its own cache line with a stamp, which gives its kind and size. The stamp is
 * stored last, with release order, so a small record reaches its reader in one line, and there is
 * no counter to read first. Before that the writer zeroes the word where the next stamp will be,
 * and the reader waits there. So the reader never takes old bytes for a stamp.
 *
 * Positions count bytes of the ring and never wrap around. The writer keeps a copy of the reader's
 * position, and reads it again only if the copy shows too little room. The reader gives space back
 * in quarters of the ring. So a writer that waits sees at least three quarters free once the
 * reader has read everything, and no writer starves. Small records do not move the line of `head`
 * back and forth. */
#ifndef TUTTI_TRANSPORT_SHM_FIFO_H
#define TUTTI_TRANSPORT_SHM_FIFO_H

#include "base/atomic.h"
#include "base/result.h"
#include "base/round.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* This part is in the segment. All zero means empty. The size of `data` is a power of two, at least
 * 1024 bytes. */
struct tutti_fifo {
    alignas(TUTTI_CACHE_LINE) uint32_t is_writer_closed;
    alignas(TUTTI_CACHE_LINE) uint64_t head; /* written by the reader: the bytes that it has ever
                                                given back */
    uint32_t is_reader_closed;
    alignas(TUTTI_CACHE_LINE) uint64_t copied; /* written by the reader, for shm.c: the bytes
                                                  that it has ever copied from exposed memory */
    alignas(TUTTI_CACHE_LINE) uint8_t data[]; /* the ring */
};

/* The kind of a record, for its reader; never 0. A stamp is size << TUTTI_STAMP_SHIFT | kind. */
enum { TUTTI_RECORD_DATA = 1, TUTTI_RECORD_EXPOSED = 2 };
#define TUTTI_STAMP_SHIFT 2
#define TUTTI_STAMP_BYTES sizeof(uint64_t)

struct tutti_fifo_writer {
    struct tutti_fifo *fifo;
    uint64_t bytes;     /* size of the ring */
    uint64_t tail;      /* position of the record that is being written */
    size_t filled;      /* bytes put into that record */
    uint64_t head_seen; /* the copy of the reader's position, which is fifo->head */
};

#define TUTTI_FIFO_BOUNCE_BYTES 4096

struct tutti_fifo_reader {
    struct tutti_fifo *fifo;
    uint64_t bytes;    /* size of the ring */
    uint64_t head;     /* position of the front record, or of the next one if there is none */
    uint64_t released; /* position up to which space has been given back */
    uint32_t kind;     /* kind of the front record */
    size_t size;       /* bytes of the front record; 0: none has arrived */
    size_t taken;      /* bytes of the front record that have been read */
    /* Elements that wrap around the ring's end or are not aligned are shown here. */
    alignas(TUTTI_CACHE_LINE) uint8_t bounce[TUTTI_FIFO_BOUNCE_BYTES];
};

/* Begin to use one end of an empty FIFO. `bytes` is the size of its `data`. The FIFO must outlive
 * the end. */
void tutti_fifo_writer_init(struct tutti_fifo_writer *writer, struct tutti_fifo *fifo,
                            size_t bytes);
void tutti_fifo_reader_init(struct tutti_fifo_reader *reader, struct tutti_fifo *fifo,
                            size_t bytes);

/* The bytes of the ring that a record of `size` bytes occupies. */
static inline uint64_t tutti_fifo_span(size_t size)
{
    return tutti_round_up(TUTTI_STAMP_BYTES + size, TUTTI_CACHE_LINE);
}

/* Returns the place of a stamp at this position, where a record begins. */
static inline uint64_t *tutti_fifo_stamp(struct tutti_fifo *fifo, uint64_t bytes, uint64_t position)
{
    return (uint64_t *)(void *)(fifo->data + (position & (bytes - 1)));
}

/* ---- writing -------------------------------------------------------------------------- */

/* Returns the largest size of a new record. The function reads the reader's position only if the
 * copy of it shows no room for `wanted` bytes. */
static inline size_t tutti_fifo_room(struct tutti_fifo_writer *writer, size_t wanted)
{
    /* After each record there is a line for the next stamp. */
    uint64_t needed = tutti_fifo_span(wanted) + TUTTI_CACHE_LINE;
    uint64_t room = writer->bytes - (writer->tail - writer->head_seen);

    if (room < needed) {
        /* acquire: pairs with the release in tutti_fifo_drop; the reader has finished with these
         * bytes */
        writer->head_seen = tutti_load_acquire(&writer->fifo->head);
        room = writer->bytes - (writer->tail - writer->head_seen);
        /* A count beyond what was written can only come from a corrupted peer. */
        if (room > writer->bytes)
            room = 0;
    }
    return room < 2 * TUTTI_CACHE_LINE
               ? 0 : (size_t)(room - TUTTI_CACHE_LINE - TUTTI_STAMP_BYTES);
}

/* Add `size` bytes to the record, at most as many as there is room for. The reader does not see
 * them until they are published. */
static inline void tutti_fifo_put(struct tutti_fifo_writer *writer, const void *data, size_t size)
{
    uint64_t position = writer->tail + TUTTI_STAMP_BYTES + writer->filled;
    size_t at = (size_t)(position & (writer->bytes - 1));
    size_t straight = (size_t)writer->bytes - at;

    /* However wrong the reader's counter, no record is larger than the ring. */
    tutti_assert(writer->filled + size <= writer->bytes - TUTTI_CACHE_LINE - TUTTI_STAMP_BYTES);
    if (size <= straight) {
        memcpy(writer->fifo->data + at, data, size);
    } else {
        memcpy(writer->fifo->data + at, data, straight);
        memcpy(writer->fifo->data, (const uint8_t *)data + straight, size - straight);
    }
    writer->filled += size;
}

/* Publish the complete record, which has at least one byte. */
static inline void tutti_fifo_publish(struct tutti_fifo_writer *writer, uint32_t kind)
{
    uint64_t *stamp = tutti_fifo_stamp(writer->fifo, writer->bytes, writer->tail);
    uint64_t value = (uint64_t)writer->filled << TUTTI_STAMP_SHIFT | kind;

    tutti_assert(writer->filled > 0 && kind < 1u << TUTTI_STAMP_SHIFT);
    writer->tail += tutti_fifo_span(writer->filled);
    writer->filled = 0;
    /* The reader reads this word only after it has read the stamp below with acquire order. */
    tutti_store_relaxed(tutti_fifo_stamp(writer->fifo, writer->bytes, writer->tail), 0);
    /* release: pairs with the acquire in tutti_fifo_ready, publishes the bytes and the zero */
    tutti_store_release(stamp, value);
}

/* ---- reading -------------------------------------------------------------------------- */

/* Returns the number of bytes left in the front record, or 0 if none has arrived. */
static inline size_t tutti_fifo_ready(struct tutti_fifo_reader *reader)
{
    uint64_t stamp;

    if (reader->size > 0)
        return reader->size - reader->taken;
    /* acquire: pairs with the release in tutti_fifo_publish */
    stamp = tutti_load_acquire(tutti_fifo_stamp(reader->fifo, reader->bytes, reader->head));
    reader->size = (size_t)(stamp >> TUTTI_STAMP_SHIFT);
    reader->kind = (uint32_t)(stamp & ((1u << TUTTI_STAMP_SHIFT) - 1));
    /* No record is larger than the ring, so a larger size can only come from a corrupted peer.
     * Clamp it. */
    if (reader->size > reader->bytes)
        reader->size = reader->bytes;
    return reader->size;
}

/* Copy the next `size` bytes of the front record, at most as many as are left, and keep them in the
 * ring. */
static inline void tutti_fifo_look(const struct tutti_fifo_reader *reader, void *data, size_t size)
{
    uint64_t position = reader->head + TUTTI_STAMP_BYTES + reader->taken;
    size_t at = (size_t)(position & (reader->bytes - 1));
    size_t straight = (size_t)reader->bytes - at;

    if (size <= straight) {
        memcpy(data, reader->fifo->data + at, size);
    } else {
        memcpy(data, reader->fifo->data + at, straight);
        memcpy((uint8_t *)data + straight, reader->fifo->data, size - straight);
    }
}

/* Finish with `size` bytes of the front record. Returns true if space was given back, so that the
 * caller must wake the writer if it waits for room. Space is given back in large parts. */
static inline bool tutti_fifo_drop(struct tutti_fifo_reader *reader, size_t size)
{
    tutti_assert(size <= reader->size - reader->taken);
    reader->taken += size;
    if (reader->taken < reader->size)
        return false;
    reader->head += tutti_fifo_span(reader->size);
    reader->size = reader->taken = 0;
    if (reader->head - reader->released < reader->bytes / 4)
        return false;
    reader->released = reader->head;
    /* release: pairs with the acquire in tutti_fifo_room; this reader has read these bytes */
    tutti_store_release(&reader->fifo->head, reader->head);
    return true;
}

/* Show up to `most` of the next bytes of the front record in place. Their number is a multiple of
 * `least`, or zero. They are aligned for elements of `least` bytes (tutti_peek_alignment), and
 * valid until the next drop or view. */
size_t tutti_fifo_view(struct tutti_fifo_reader *reader, size_t least, size_t most,
                       const void **ret_data);

/* Close one end of the FIFO. The reader can still read everything that was published before the
 * writer closed its end. */
void tutti_fifo_close_writer(struct tutti_fifo_writer *writer);
void tutti_fifo_close_reader(struct tutti_fifo_reader *reader);

/* tutti_fifo_is_ended is true if no more records will arrive. tutti_fifo_is_refused is true if the
 * reader will read no more. Both are for slow paths. */
bool tutti_fifo_is_ended(struct tutti_fifo_reader *reader);
bool tutti_fifo_is_refused(const struct tutti_fifo_writer *writer);

#endif
