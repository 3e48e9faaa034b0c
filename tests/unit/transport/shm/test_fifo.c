/* SPDX-License-Identifier: Apache-2.0
 * The FIFO of records, with every place of a record in a small ring. */
#include "transport/carry.h"
#include "transport/shm/fifo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RING = 1024, LINE = TUTTI_CACHE_LINE, MOST = RING - LINE - (int)TUTTI_STAMP_BYTES };

struct pipe {
    struct tutti_fifo *fifo;
    struct tutti_fifo_writer writer;
    struct tutti_fifo_reader reader;
};

/* A FIFO through which `position` bytes of records have already gone, full of what they left: here
 * all ones, which would be a stamp. */
static void make(struct pipe *pipe, uint64_t position)
{
    pipe->fifo = aligned_alloc(LINE, sizeof *pipe->fifo + RING);
    assert_non_null(pipe->fifo);
    memset(pipe->fifo, 0, sizeof *pipe->fifo);
    memset(pipe->fifo->data, position > 0 ? 0xff : 0, RING);
    pipe->fifo->head = position;
    *tutti_fifo_stamp(pipe->fifo, RING, position) = 0; /* behind the last record */
    tutti_fifo_writer_init(&pipe->writer, pipe->fifo, RING);
    tutti_fifo_reader_init(&pipe->reader, pipe->fifo, RING);
}

static uint8_t byte_of(uint64_t start, size_t index)
{
    return (uint8_t)(start / LINE * 7 + index);
}

static void put_pattern(struct pipe *pipe, size_t size)
{
    uint8_t bytes[RING];

    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(pipe->writer.tail, pipe->writer.filled + i);
    tutti_fifo_put(&pipe->writer, bytes, size);
}

static void whatever_is_put_at_any_place_is_got(void **state)
{
    (void)state;
    for (uint64_t position = 0; position < 2 * RING; position += LINE)
        for (size_t size = 1; size <= MOST; size++) {
            size_t first = size / 3;
            struct pipe pipe;
            uint8_t bytes[RING];

            make(&pipe, position);
            assert_int_equal(tutti_fifo_room(&pipe.writer, size), MOST);
            put_pattern(&pipe, first);
            put_pattern(&pipe, size - first);
            assert_int_equal(tutti_fifo_ready(&pipe.reader), 0); /* not yet published */
            tutti_fifo_publish(&pipe.writer, TUTTI_RECORD_EXPOSED);
            assert_int_equal(tutti_fifo_ready(&pipe.reader), size);
            assert_int_equal(pipe.reader.kind, TUTTI_RECORD_EXPOSED);

            tutti_fifo_look(&pipe.reader, bytes, first);
            tutti_fifo_drop(&pipe.reader, first);
            assert_int_equal(tutti_fifo_ready(&pipe.reader), size - first);
            tutti_fifo_look(&pipe.reader, bytes + first, size - first);
            tutti_fifo_drop(&pipe.reader, size - first);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(bytes[i], byte_of(position, i));
            assert_int_equal(tutti_fifo_ready(&pipe.reader), 0);
            free(pipe.fifo);
        }
}

static void what_lay_in_the_ring_before_is_never_taken_for_a_record(void **state)
{
    struct pipe pipe;
    uint8_t bytes[RING];

    (void)state;
    make(&pipe, 0);
    for (size_t i = 0; i < 100000; i++) {
        size_t size = 1 + i * 37 % 300;

        memset(bytes, 0xff, size);
        assert_true(tutti_fifo_room(&pipe.writer, size) >= size);
        tutti_fifo_put(&pipe.writer, bytes, size);
        tutti_fifo_publish(&pipe.writer, TUTTI_RECORD_DATA);
        assert_int_equal(tutti_fifo_ready(&pipe.reader), size);
        tutti_fifo_drop(&pipe.reader, size);
        assert_int_equal(tutti_fifo_ready(&pipe.reader), 0);
    }
    free(pipe.fifo);
}

static void a_full_ring_has_no_room_until_the_reader_gives_some_back(void **state)
{
    struct pipe pipe;
    size_t room, put = 0, records = 0, got = 0;
    uint8_t bytes[RING] = {0};

    (void)state;
    make(&pipe, 5 * LINE);
    while ((room = tutti_fifo_room(&pipe.writer, 100)) > 0) {
        tutti_fifo_put(&pipe.writer, bytes, room < 100 ? room : 100);
        tutti_fifo_publish(&pipe.writer, TUTTI_RECORD_DATA);
        put += room < 100 ? room : 100;
        records++;
    }
    assert_true(records > 4);
    assert_true(pipe.writer.tail - 5 * LINE + LINE <= RING); /* the next stamp is ours, too */
    for (size_t ready; (ready = tutti_fifo_ready(&pipe.reader)) > 0; got += ready) {
        uint64_t before = pipe.reader.released;
        bool is_seen = tutti_fifo_drop(&pipe.reader, ready);

        assert_int_equal(is_seen, pipe.reader.released != before);
        assert_true(pipe.reader.head - pipe.reader.released < RING / 4);
        assert_int_equal(pipe.fifo->head, pipe.reader.released);
    }
    assert_int_equal(got, put);
    assert_true(tutti_fifo_room(&pipe.writer, MOST) >= RING * 3 / 4 - LINE - TUTTI_STAMP_BYTES);
    free(pipe.fifo);
}

/* Shows once at `taken` of a record of `size` bytes, and compares. */
static void view_once(uint64_t position, size_t size, size_t taken, size_t least, size_t most)
{
    const void *data = NULL;
    struct pipe pipe;
    size_t shown;

    make(&pipe, position);
    put_pattern(&pipe, size);
    tutti_fifo_publish(&pipe.writer, TUTTI_RECORD_DATA);
    tutti_fifo_ready(&pipe.reader);
    tutti_fifo_drop(&pipe.reader, taken);
    shown = tutti_fifo_view(&pipe.reader, least, most, &data);
    assert_int_equal(shown % least, 0);
    assert_true(shown <= most && shown <= size - taken);
    /* Something is shown exactly when one element is there and wanted. */
    assert_int_equal(shown > 0, size - taken >= least && most >= least);
    if (shown > 0)
        assert_int_equal((uintptr_t)data % tutti_peek_alignment(least), 0);
    for (size_t i = 0; i < shown; i++)
        assert_int_equal(((const uint8_t *)data)[i], byte_of(position, taken + i));
    free(pipe.fifo);
}

static void views_are_aligned_multiples_with_the_right_bytes(void **state)
{
    static const size_t leasts[] = {1, 2, 3, 4, 8, 12, 16, 32, 64};

    (void)state;
    for (uint64_t position = RING - 4 * LINE; position <= RING; position += LINE)
        for (size_t size = 1; size <= 300; size += 13)
            for (size_t taken = 0; taken < size; taken += 5)
                for (size_t k = 0; k < sizeof leasts / sizeof leasts[0]; k++)
                    for (size_t most = 1; most <= 300; most += 23)
                        view_once(position, size, taken, leasts[k], most);
}

static void a_closed_fifo_gives_what_is_left_before_it_ends(void **state)
{
    struct pipe pipe;

    (void)state;
    make(&pipe, 0);
    assert_false(tutti_fifo_is_ended(&pipe.reader));
    put_pattern(&pipe, 10);
    tutti_fifo_publish(&pipe.writer, TUTTI_RECORD_DATA);
    tutti_fifo_close_writer(&pipe.writer);
    assert_false(tutti_fifo_is_ended(&pipe.reader));
    assert_int_equal(tutti_fifo_ready(&pipe.reader), 10);
    tutti_fifo_drop(&pipe.reader, 10);
    assert_true(tutti_fifo_is_ended(&pipe.reader));

    assert_false(tutti_fifo_is_refused(&pipe.writer));
    tutti_fifo_close_reader(&pipe.reader);
    assert_true(tutti_fifo_is_refused(&pipe.writer));
    free(pipe.fifo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_put_at_any_place_is_got),
        cmocka_unit_test(what_lay_in_the_ring_before_is_never_taken_for_a_record),
        cmocka_unit_test(a_full_ring_has_no_room_until_the_reader_gives_some_back),
        cmocka_unit_test(views_are_aligned_multiples_with_the_right_bytes),
        cmocka_unit_test(a_closed_fifo_gives_what_is_left_before_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
