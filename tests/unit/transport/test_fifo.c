/* SPDX-License-Identifier: Apache-2.0
 * The byte FIFO, with every position of its counters in a small ring. */
#include "transport/fifo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RING 64

struct pipe {
    struct tutti_fifo *fifo;
    struct tutti_fifo_writer writer;
    struct tutti_fifo_reader reader;
};

/* A FIFO through which `position` bytes have already gone. */
static void make(struct pipe *pipe, uint64_t position)
{
    pipe->fifo = aligned_alloc(TUTTI_CACHE_LINE, sizeof *pipe->fifo + RING);
    assert_non_null(pipe->fifo);
    memset(pipe->fifo, 0, sizeof *pipe->fifo + RING);
    pipe->fifo->head = pipe->fifo->tail = position;
    tutti_fifo_writer_init(&pipe->writer, pipe->fifo, RING);
    tutti_fifo_reader_init(&pipe->reader, pipe->fifo, RING);
}

static void put_pattern(struct pipe *pipe, size_t size)
{
    uint8_t bytes[RING];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(pipe->writer.tail + i);
    tutti_fifo_put(&pipe->writer, bytes, size);
}

static void whatever_is_put_at_any_position_is_got(void **state)
{
    (void)state;
    for (uint64_t position = 0; position < 2 * RING; position++)
        for (size_t size = 1; size <= RING; size++) {
            struct pipe pipe;
            uint8_t bytes[RING];

            make(&pipe, position);
            assert_int_equal(tutti_fifo_room(&pipe.writer, RING), RING);
            put_pattern(&pipe, size);
            assert_int_equal(tutti_fifo_ready(&pipe.reader, 1), 0); /* not yet published */
            tutti_fifo_publish(&pipe.writer);
            assert_int_equal(tutti_fifo_ready(&pipe.reader, RING), size);
            assert_int_equal(tutti_fifo_room(&pipe.writer, RING), RING - size);
            tutti_fifo_get(&pipe.reader, bytes, size);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(bytes[i], (uint8_t)(position + i));
            assert_int_equal(tutti_fifo_ready(&pipe.reader, 1), 0);
            free(pipe.fifo);
        }
}

static void views_are_aligned_multiples_with_the_right_bytes(void **state)
{
    static const size_t leasts[] = {1, 2, 3, 4, 8, 12, 16, 32, 64};

    (void)state;
    for (uint64_t position = 0; position < RING; position++)
        for (size_t size = 1; size <= RING; size++)
            for (size_t k = 0; k < sizeof leasts / sizeof leasts[0]; k++)
                for (size_t most = 1; most <= RING; most += 7) {
                    size_t least = leasts[k], shown;
                    const void *data = NULL;
                    struct pipe pipe;

                    make(&pipe, position);
                    put_pattern(&pipe, size);
                    tutti_fifo_publish(&pipe.writer);
                    shown = tutti_fifo_view(&pipe.reader, least, most, &data);
                    assert_int_equal(shown % least, 0);
                    assert_true(shown <= most && shown <= size);
                    /* Something is shown exactly when one element is there and wanted. */
                    assert_int_equal(shown > 0, size >= least && most >= least);
                    if (shown > 0)
                        assert_int_equal((uintptr_t)data % tutti_peek_alignment(least), 0);
                    for (size_t i = 0; i < shown; i++)
                        assert_int_equal(((const uint8_t *)data)[i], (uint8_t)(position + i));
                    free(pipe.fifo);
                }
}

static void space_comes_back_in_quarters(void **state)
{
    struct pipe pipe;
    uint8_t bytes[RING];

    (void)state;
    make(&pipe, 5);
    put_pattern(&pipe, RING);
    tutti_fifo_publish(&pipe.writer);
    assert_int_equal(tutti_fifo_room(&pipe.writer, 1), 0);
    tutti_fifo_ready(&pipe.reader, 1);
    for (int i = 1; i <= RING; i++) {
        tutti_fifo_get(&pipe.reader, bytes, 1);
        assert_int_equal(tutti_fifo_release(&pipe.reader), i % (RING / 4) == 0);
        assert_int_equal(tutti_fifo_room(&pipe.writer, RING), i / (RING / 4) * (RING / 4));
    }
    free(pipe.fifo);
}

static void a_closed_fifo_gives_what_is_left_before_it_ends(void **state)
{
    struct pipe pipe;
    uint8_t bytes[RING];

    (void)state;
    make(&pipe, 0);
    assert_false(tutti_fifo_is_ended(&pipe.reader));
    put_pattern(&pipe, 10);
    tutti_fifo_publish(&pipe.writer);
    tutti_fifo_close_writer(&pipe.writer);
    assert_false(tutti_fifo_is_ended(&pipe.reader));
    assert_int_equal(tutti_fifo_ready(&pipe.reader, 1), 10);
    tutti_fifo_get(&pipe.reader, bytes, 10);
    assert_true(tutti_fifo_is_ended(&pipe.reader));

    assert_false(tutti_fifo_is_refused(&pipe.writer));
    tutti_fifo_close_reader(&pipe.reader);
    assert_true(tutti_fifo_is_refused(&pipe.writer));
    free(pipe.fifo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_put_at_any_position_is_got),
        cmocka_unit_test(views_are_aligned_multiples_with_the_right_bytes),
        cmocka_unit_test(space_comes_back_in_quarters),
        cmocka_unit_test(a_closed_fifo_gives_what_is_left_before_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
