/* SPDX-License-Identifier: Apache-2.0
 * The memory of a FIFO holds any bytes, and changes while it is used. Reader and writer stay
 * inside the ring. */
#include "fuzz/fuzz.h"

#include "transport/shm/fifo.h"

enum { RING_BYTES = 4096, MOST_ROUNDS = 30 };

static uint8_t out[RING_BYTES];

static struct tutti_fifo *make_ring(struct fuzz_input *input)
{
    size_t bytes = (sizeof(struct tutti_fifo) + RING_BYTES + TUTTI_CACHE_LINE - 1) /
                   TUTTI_CACHE_LINE * TUTTI_CACHE_LINE;
    struct tutti_fifo *fifo = aligned_alloc(TUTTI_CACHE_LINE, bytes);

    fuzz_require(fifo != NULL, "there is memory for a ring");
    memset(fifo, 0, bytes);
    fuzz_overwrite(input, &fifo->head, sizeof fifo->head);
    fifo->is_writer_closed = fuzz_byte(input);
    fuzz_overwrite(input, fifo->data, RING_BYTES);
    return fifo;
}

/* Take the front record, by a view into the ring or by a copy of it. */
static void take(struct tutti_fifo_reader *reader, uint8_t how)
{
    static const size_t elements[] = {1, 2, 4, 8, 12, 16, 24, 64};
    size_t least = elements[how % 8], ready = tutti_fifo_ready(reader);
    size_t shown;
    const void *data;

    fuzz_require(ready <= RING_BYTES, "no record is larger than the ring");
    shown = tutti_fifo_view(reader, least, least * (1 + how), &data);
    fuzz_require(shown <= ready, "no more is shown than there is");
    if (shown > 0) {
        memcpy(out, data, shown);
        (void)tutti_fifo_drop(reader, shown);
        return;
    }
    tutti_fifo_look(reader, out, ready);
    (void)tutti_fifo_drop(reader, ready);
}

static void put(struct tutti_fifo_writer *writer)
{
    size_t room = tutti_fifo_room(writer, 100);

    if (room > 200)
        room = 200;
    if (room < 8)
        return;
    tutti_fifo_put(writer, out, room);
    tutti_fifo_publish(writer, TUTTI_RECORD_DATA);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    uint8_t how = fuzz_byte(&input), flips = fuzz_byte(&input);
    struct tutti_fifo *fifo = make_ring(&input);
    struct tutti_fifo_reader reader;
    struct tutti_fifo_writer writer;

    tutti_fifo_reader_init(&reader, fifo, RING_BYTES);
    tutti_fifo_writer_init(&writer, fifo, RING_BYTES);
    for (int i = 0; i < MOST_ROUNDS && tutti_fifo_ready(&reader) > 0; i++) {
        take(&reader, how);
        fifo->head ^= flips; /* a peer may do so at any time */
        put(&writer);
    }
    free(fifo);
    return 0;
}
