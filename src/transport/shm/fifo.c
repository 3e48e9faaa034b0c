/* SPDX-License-Identifier: Apache-2.0
 * The functions of the FIFO that are too large or too rare to be inlined: they set up both ends,
 * view records in place, and close the ends. */
#include "transport/shm/fifo.h"

#include "transport/carry.h"

/* A new FIFO has head 0. A test may have advanced the head, so both ends begin at that position. */
void tutti_fifo_writer_init(struct tutti_fifo_writer *writer, struct tutti_fifo *fifo,
                            size_t bytes)
{
    tutti_assert(bytes >= 2 * TUTTI_CACHE_LINE && (bytes & (bytes - 1)) == 0);
    writer->fifo = fifo;
    writer->bytes = bytes;
    /* acquire: pairs with the release of the head in tutti_fifo_drop */
    writer->tail = writer->head_seen = tutti_load_acquire(&fifo->head);
    writer->filled = 0;
}

void tutti_fifo_reader_init(struct tutti_fifo_reader *reader, struct tutti_fifo *fifo,
                            size_t bytes)
{
    tutti_assert(bytes >= 2 * TUTTI_CACHE_LINE && (bytes & (bytes - 1)) == 0);
    reader->fifo = fifo;
    reader->bytes = bytes;
    /* Relaxed order is enough, because only the reader writes the head. */
    reader->head = reader->released = tutti_load_relaxed(&fifo->head);
    reader->size = reader->taken = 0;
}

size_t tutti_fifo_view(struct tutti_fifo_reader *reader, size_t least, size_t most,
                       const void **ret_data)
{
    size_t ready = tutti_fifo_ready(reader);
    size_t usable = (ready < most ? ready : most) / least * least;
    uint64_t position = reader->head + TUTTI_STAMP_BYTES + reader->taken;
    size_t at = (size_t)(position & (reader->bytes - 1));
    size_t straight = (size_t)reader->bytes - at;

    tutti_assert(least > 0 && least <= sizeof reader->bounce);
    if (usable == 0)
        return 0;
    if (straight >= least && at % tutti_peek_alignment(least) == 0) {
        *ret_data = reader->fifo->data + at;
        return usable <= straight ? usable : straight / least * least;
    }

    if (usable > sizeof reader->bounce)
        usable = sizeof reader->bounce / least * least;
    /* The bytes are aligned, so only the end of the ring splits this element. Show this element
     * alone, and the next view can be in place again. */
    if (at % tutti_peek_alignment(least) == 0)
        usable = least;
    tutti_fifo_look(reader, reader->bounce, usable);
    *ret_data = reader->bounce;
    return usable;
}

void tutti_fifo_close_writer(struct tutti_fifo_writer *writer)
{
    /* release: pairs with the acquire in tutti_fifo_is_ended; all stamps are stored before */
    tutti_store_release(&writer->fifo->is_writer_closed, 1);
}

void tutti_fifo_close_reader(struct tutti_fifo_reader *reader)
{
    /* release: pairs with the acquire in tutti_fifo_is_refused */
    tutti_store_release(&reader->fifo->is_reader_closed, 1);
}

bool tutti_fifo_is_ended(struct tutti_fifo_reader *reader)
{
    /* acquire: pairs with the release in tutti_fifo_close_writer; everything that was published
     * before is visible now, so the check below sees every record */
    if (tutti_load_acquire(&reader->fifo->is_writer_closed) == 0)
        return false;
    return tutti_fifo_ready(reader) == 0;
}

bool tutti_fifo_is_refused(const struct tutti_fifo_writer *writer)
{
    /* acquire: pairs with the release in tutti_fifo_close_reader */
    return tutti_load_acquire(&writer->fifo->is_reader_closed) != 0;
}
