/* SPDX-License-Identifier: Apache-2.0
 * Tests sealed records: those that open, and those that are refused. */
#include "transport/tcp/seal.h"

#include "base/param.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORD_BYTES = TUTTI_SEAL_MOST_BYTES + TUTTI_SEAL_FRAME_BYTES };

static const struct kind {
    enum tutti_seal_mode mode;
    bool uses_aes;
} kinds[] = {
    {TUTTI_SEAL_AUTH, false}, {TUTTI_SEAL_ON, false},
    {TUTTI_SEAL_AUTH, true}, {TUTTI_SEAL_ON, true},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

static const size_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4096, 8191, 32000,
                               TUTTI_SEAL_MOST_BYTES};
#define SIZE_COUNT (sizeof sizes / sizeof *sizes)

static const uint8_t key[TUTTI_SECRET_BYTES] = "thirty-two bytes that nobody has";

static bool is_possible(const struct kind *kind)
{
    return !kind->uses_aes || tutti_seal_has_aes();
}

/* Two ends of a direction. */
static void start(const struct kind *kind, struct tutti_seal *ret_out, struct tutti_seal *ret_in)
{
    tutti_seal_init(ret_out, kind->mode, kind->uses_aes, key);
    tutti_seal_init(ret_in, kind->mode, kind->uses_aes, key);
}

static void fill(uint8_t *bytes, size_t size, size_t salt)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)((i + salt) * 2654435761u >> 13);
}

static size_t count_equal(const uint8_t *one, const uint8_t *other, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size; i++)
        count += one[i] == other[i];
    return count;
}

static void what_was_sealed_opens_to_the_same_bytes(void **state)
{
    static uint8_t data[TUTTI_SEAL_MOST_BYTES], opened[TUTTI_SEAL_MOST_BYTES];
    static uint8_t record[RECORD_BYTES];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            fill(data, sizes[i], i);
            memset(opened, 0, sizes[i]);
            assert_int_equal(tutti_seal_close(&out, data, sizes[i], record),
                             sizes[i] + TUTTI_SEAL_FRAME_BYTES);
            assert_int_equal(tutti_seal_measure(record), sizes[i]);
            assert_true(tutti_seal_open(&in, record, sizes[i], opened));
            assert_memory_equal(opened, data, sizes[i]);
        }
    }
}

static void only_encryption_hides_the_payload(void **state)
{
    uint8_t data[4096], record[4096 + TUTTI_SEAL_FRAME_BYTES];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        size_t equal;

        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        fill(data, sizeof data, 1);
        tutti_seal_close(&out, data, sizeof data, record);
        equal = count_equal(data, record + TUTTI_SEAL_HEAD_BYTES, sizeof data);
        if (kinds[k].mode == TUTTI_SEAL_AUTH)
            assert_int_equal(equal, sizeof data);
        else
            assert_true(equal < 100); /* 16 are expected by chance */
    }
}

static void equal_payloads_never_give_equal_records(void **state)
{
    uint8_t data[64] = {0}, first[128], second[128];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        size_t size;

        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        size = tutti_seal_close(&out, data, sizeof data, first);
        tutti_seal_close(&out, data, sizeof data, second);
        assert_memory_not_equal(first + size - TUTTI_SEAL_TAG_BYTES,
                                second + size - TUTTI_SEAL_TAG_BYTES, TUTTI_SEAL_TAG_BYTES);
    }
}

/* The receiver takes the size from the record. Nothing of the payload may reach it. */
static void expect_refusal(struct tutti_seal *in, const uint8_t *record, size_t record_bytes,
                           const uint8_t *data, size_t size)
{
    static uint8_t opened[TUTTI_SEAL_MOST_BYTES];
    size_t announced = tutti_seal_measure(record);
    uint64_t count = in->count;

    if (announced == 0 || announced + TUTTI_SEAL_FRAME_BYTES > record_bytes)
        return; /* the size is refused, or the rest of the record never comes */
    memset(opened, 0xaa, announced);
    assert_false(tutti_seal_open(in, record, announced, opened));
    assert_int_equal(in->count, count);
    for (size_t i = 0; i < announced && i < size; i++)
        assert_true(opened[i] == 0xaa || opened[i] == 0 || opened[i] != data[i]);
}

static void every_flipped_bit_is_refused(void **state)
{
    static const size_t tried[] = {1, 8, 40, 300};
    uint8_t data[300], record[300 + TUTTI_SEAL_FRAME_BYTES], opened[300];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        for (size_t i = 0; i < sizeof tried / sizeof *tried && is_possible(&kinds[k]); i++) {
            size_t size;

            start(&kinds[k], &out, &in);
            fill(data, tried[i], k);
            for (size_t j = 0; j < tried[i]; j++)
                data[j] |= 1; /* no byte is what an untouched or erased one is */
            size = tutti_seal_close(&out, data, tried[i], record);
            for (size_t bit = 0; bit < 8 * size; bit++) {
                record[bit / 8] ^= (uint8_t)(1 << bit % 8);
                if (bit < 8 * TUTTI_SEAL_HEAD_BYTES)
                    assert_int_equal(tutti_seal_measure(record), 0);
                expect_refusal(&in, record, size, data, tried[i]);
                record[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            assert_true(tutti_seal_open(&in, record, tried[i], opened));
        }
    }
}

static void a_size_that_was_changed_with_its_complement_is_refused(void **state)
{
    uint8_t data[100], record[100 + TUTTI_SEAL_FRAME_BYTES];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        fill(data, sizeof data, k);
        tutti_seal_close(&out, data, sizeof data, record);
        for (uint8_t size = 1; size < 100; size++) {
            record[0] = size;
            record[2] = (uint8_t)~size;
            assert_int_equal(tutti_seal_measure(record), size);
            expect_refusal(&in, record, sizeof record, data, sizeof data);
        }
    }
    memset(record, 0, TUTTI_SEAL_HEAD_BYTES);
    record[2] = record[3] = 0xff;
    assert_int_equal(tutti_seal_measure(record), 0); /* an empty record */
    record[1] = 0x80;
    record[3] = 0x7f;
    assert_int_equal(tutti_seal_measure(record), 0); /* one of 32 KiB */
}

static void records_that_are_repeated_left_out_or_swapped_are_refused(void **state)
{
    enum { COUNT = 5, BYTES = 50 };
    uint8_t data[COUNT][BYTES], record[COUNT][BYTES + TUTTI_SEAL_FRAME_BYTES], opened[BYTES];
    struct tutti_seal out, in;

    (void)state;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        for (size_t i = 0; i < COUNT; i++) {
            fill(data[i], BYTES, i);
            tutti_seal_close(&out, data[i], BYTES, record[i]);
        }
        for (size_t now = 0; now < COUNT; now++) {
            for (size_t i = 0; i < COUNT; i++)
                if (i != now)
                    expect_refusal(&in, record[i], sizeof record[i], data[i], BYTES);
            assert_true(tutti_seal_open(&in, record[now], BYTES, opened));
            assert_memory_equal(opened, data[now], BYTES);
        }
    }
}

static void ends_with_another_key_mode_or_cipher_refuse_each_others_records(void **state)
{
    uint8_t data[50], record[50 + TUTTI_SEAL_FRAME_BYTES], other_key[TUTTI_SECRET_BYTES];
    struct tutti_seal out, in;

    (void)state;
    fill(data, sizeof data, 3);
    memcpy(other_key, key, sizeof key);
    other_key[31] ^= 1;
    for (size_t from = 0; from < KIND_COUNT; from++) {
        for (size_t to = 0; to < KIND_COUNT; to++) {
            if (!is_possible(&kinds[from]) || !is_possible(&kinds[to]))
                continue;
            tutti_seal_init(&out, kinds[from].mode, kinds[from].uses_aes, key);
            tutti_seal_init(&in, kinds[to].mode, kinds[to].uses_aes, from == to ? other_key : key);
            tutti_seal_close(&out, data, sizeof data, record);
            expect_refusal(&in, record, sizeof record, data, sizeof data);
        }
    }
}

static void both_ends_replace_their_keys_at_the_same_record(void **state)
{
    uint8_t data[50], record[50 + TUTTI_SEAL_FRAME_BYTES], opened[50];
    uint8_t before[TUTTI_SECRET_BYTES];
    struct tutti_seal out, in;

    (void)state;
    fill(data, sizeof data, 9);
    for (size_t k = 0; k < KIND_COUNT; k++) {
        if (!is_possible(&kinds[k]))
            continue;
        start(&kinds[k], &out, &in);
        for (uint64_t times = 1; times <= 3; times++) {
            out.count = in.count = times * TUTTI_SEAL_RECORDS_PER_KEY - 2;
            memcpy(before, out.key, sizeof before);
            for (int i = 0; i < 4; i++) {
                tutti_seal_close(&out, data, sizeof data, record);
                assert_true(tutti_seal_open(&in, record, sizeof data, opened));
                assert_memory_equal(opened, data, sizeof data);
                assert_int_equal(memcmp(out.key, before, sizeof before) != 0, i >= 1);
                assert_memory_equal(in.key, out.key, sizeof in.key);
            }
        }
    }
}

static void ending_erases_the_key(void **state)
{
    static const struct tutti_seal nothing;
    struct tutti_seal out, in;

    (void)state;
    start(&kinds[0], &out, &in);
    tutti_seal_fini(&out);
    assert_memory_equal(out.key, nothing.key, sizeof nothing.key);
    assert_memory_equal(&out.aes, &nothing.aes, sizeof nothing.aes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_opens_to_the_same_bytes),
        cmocka_unit_test(only_encryption_hides_the_payload),
        cmocka_unit_test(equal_payloads_never_give_equal_records),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(a_size_that_was_changed_with_its_complement_is_refused),
        cmocka_unit_test(records_that_are_repeated_left_out_or_swapped_are_refused),
        cmocka_unit_test(ends_with_another_key_mode_or_cipher_refuse_each_others_records),
        cmocka_unit_test(both_ends_replace_their_keys_at_the_same_record),
        cmocka_unit_test(ending_erases_the_key),
    };

    if (!tutti_seal_has_aes())
        print_message("this machine has no instructions for AES: only ChaCha20 is tested\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
