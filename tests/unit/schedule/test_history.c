/* SPDX-License-Identifier: Apache-2.0
 * Tests the history of memory: runs that are split and merged again, and a set of numbers that
 * gives the neighbors of each. */
#include "schedule/chunk_history.h"

#include "base/result.h"
#include "schedule/bits.h"
#include "schedule/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CHUNKS = 300000 };

/* ---- bits ------------------------------------------------------------------------------------ */

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void neighbors_are_those_of_a_plain_list(void **state)
{
    static bool expected[CHUNKS];
    uint64_t seed = 5;
    struct tutti_bits bits;

    (void)state;
    memset(expected, 0, sizeof expected);
    assert_true(tutti_bits_init(&bits, CHUNKS));
    for (uint32_t number = 0; number < CHUNKS; number += CHUNKS - 1) {
        tutti_bits_add(&bits, number);
        expected[number] = true;
    }
    for (int turn = 0; turn < 400; turn++) {
        /* Near each other or far apart, now and then; never the outermost. */
        uint32_t number = 1 + next_random(&seed) % (turn % 2 == 0 ? CHUNKS - 2 : 5000);
        uint32_t before = number, after = number;

        if (turn % 3 == 0)
            tutti_bits_remove(&bits, number);
        else
            tutti_bits_add(&bits, number);
        expected[number] = turn % 3 != 0;
        number = next_random(&seed) % CHUNKS;
        for (before = number; !expected[before];)
            before--;
        for (after = number; !expected[after];)
            after++;
        assert_int_equal(tutti_bits_upto(&bits, number), before);
        assert_int_equal(tutti_bits_from(&bits, number), after);
        assert_int_equal(tutti_bits_has(&bits, number), expected[number]);
    }
    tutti_bits_fini(&bits);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static struct tutti_span output(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_OUTPUT, first, count);
}

static uint32_t count_runs(struct tutti_chunk_history *history, struct tutti_span span)
{
    uint32_t end, count = 0;

    for (uint32_t at = tutti_chunk_history_split(history, span, &end); at < end;
         at = tutti_chunk_history_next(history, at))
        count++;
    return count;
}

static const struct tutti_chunk_run *run_at(struct tutti_chunk_history *history, uint32_t chunk)
{
    uint32_t end, at = tutti_chunk_history_split(history, output(chunk, 1), &end);

    assert_int_equal(tutti_chunk_history_next(history, at), end);
    return &history->runs[at];
}

static const struct tutti_schedule allreduce = {
    .collective = TUTTI_ALLREDUCE, .nranks = 2, .chunks_per_block = CHUNKS};

static void a_write_makes_one_run_of_what_was_told_apart(void **state)
{
    struct tutti_chunk_history history;

    (void)state;
    assert_int_equal(tutti_chunk_history_init(&history, &allreduce), TUTTI_OK);
    assert_int_equal(count_runs(&history, output(0, CHUNKS)), 1);
    for (uint32_t chunk = 0; chunk < CHUNKS; chunk += 1000)
        tutti_chunk_history_write(&history, chunk, output(chunk, 1));
    assert_int_equal(count_runs(&history, output(0, CHUNKS)), 2 * CHUNKS / 1000);
    tutti_chunk_history_write(&history, 7, output(500, CHUNKS - 1000));
    assert_int_equal(count_runs(&history, output(0, CHUNKS)), 4);
    assert_int_equal(run_at(&history, 0)->writer, 0);
    assert_int_equal(run_at(&history, 499)->writer, TUTTI_NO_STEP);
    assert_int_equal(run_at(&history, 500)->writer, 7);
    assert_int_equal(run_at(&history, CHUNKS - 501)->writer, 7);
    assert_int_equal(run_at(&history, CHUNKS - 500)->writer, TUTTI_NO_STEP);
    tutti_chunk_history_fini(&history);
}

static void what_is_told_apart_keeps_its_writer_and_readers(void **state)
{
    struct tutti_chunk_history history;
    const struct tutti_chunk_run *both, *one;

    (void)state;
    assert_int_equal(tutti_chunk_history_init(&history, &allreduce), TUTTI_OK);
    tutti_chunk_history_write(&history, 1, output(10, 20));
    assert_int_equal(tutti_chunk_history_read(&history, 2, output(10, 20)), TUTTI_OK);
    assert_int_equal(tutti_chunk_history_read(&history, 3, output(15, 5)), TUTTI_OK);
    one = run_at(&history, 10);
    assert_int_equal(one->writer, 1);
    assert_int_equal(history.readers[one->readers].step, 2);
    assert_int_equal(history.readers[one->readers].before, TUTTI_NO_STEP);
    both = run_at(&history, 19);
    assert_int_equal(both->writer, 1);
    assert_int_equal(history.readers[both->readers].step, 3);
    assert_int_equal(history.readers[both->readers].before, one->readers);
    tutti_chunk_history_write(&history, 4, output(19, 1));
    assert_int_equal(run_at(&history, 19)->readers, TUTTI_NO_STEP);
    assert_int_equal(history.readers[run_at(&history, 18)->readers].step, 3);
    tutti_chunk_history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbors_are_those_of_a_plain_list),
        cmocka_unit_test(a_write_makes_one_run_of_what_was_told_apart),
        cmocka_unit_test(what_is_told_apart_keeps_its_writer_and_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
