/* SPDX-License-Identifier: Apache-2.0
 * Tests scaling, pre-multiplication and copies, and which variant is used. */
#include "unit/device/elements.h"

#include "device/cpu/isa.h"

#include <stdlib.h>

enum { COUNT = 2053, BYTES = COUNT * 8 };

static char source[BYTES] __attribute__((aligned(64)));
static char expected[BYTES] __attribute__((aligned(64)));
static char result[BYTES] __attribute__((aligned(64)));

static void scaling_is_the_same_in_every_variant_and_in_place(void **state)
{
    (void)state;
    static const struct tutti_scale scales[] = {
        {1.0, 1}, {0.25, 4}, {1.0 / 7, 7}, {-3.5, 1000003}, {1e-40, INT64_MAX},
    };
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (enum tutti_type type = 0; type < TUTTI_TYPE_COUNT; type++)
            for (size_t s = 0; s < COUNT_OF(scales) && tutti_type_is_scaled(type); s++)
                for (size_t count = COUNT; count != SIZE_MAX; count = count / 5 - (count == 0)) {
                    fill_elements(type, source, COUNT, s);
                    tutti_cpu_scale_by(&tutti_cpu_plain, type, expected, source, count, scales[s]);
                    tutti_cpu_scale_by(kernels, type, result, source, count, scales[s]);
                    assert_int_equal(first_difference(type, result, expected, count), count);
                    tutti_cpu_scale_by(kernels, type, source, source, count, scales[s]);
                    assert_int_equal(first_difference(type, source, expected, count), count);
                }
}

static void scaling_follows_its_definition(void **state)
{
    (void)state;
    static const int32_t integers[] = {7, -7, INT32_MIN, INT32_MAX, 0, -1};
    static const int32_t thirds[] = {2, -2, -715827882, 715827882, 0, 0};
    static const uint64_t large[] = {UINT64_MAX, 5};
    static const uint64_t halves[] = {UINT64_MAX / 2, 2};
    static const float numbers[] = {3.0f, -1.0f};
    static const float products[] = {3.0f * (float)0.1, -1.0f * (float)0.1};
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++) {
        tutti_cpu_scale_by(kernels, TUTTI_INT32, result, integers, COUNT_OF(integers),
                           (struct tutti_scale){.multiply = 0.1, .divide = 3});
        assert_memory_equal(result, thirds, sizeof(thirds));
        tutti_cpu_scale_by(kernels, TUTTI_UINT64, result, large, COUNT_OF(large),
                           (struct tutti_scale){.multiply = 0.1, .divide = 2});
        assert_memory_equal(result, halves, sizeof(halves));
        tutti_cpu_scale_by(kernels, TUTTI_FLOAT32, result, numbers, COUNT_OF(numbers),
                           (struct tutti_scale){.multiply = 0.1, .divide = 3});
        assert_memory_equal(result, products, sizeof(products));
    }
}

/* Quotients that are, or only just are not, whole numbers: where rounding could betray. */
static void integers_divide_exactly_near_whole_quotients(void **state)
{
    (void)state;
    static const int64_t divisors[] = {1, 2, 3, 7, 10, 641, 65537, 2147483647, 4294967295,
                                       INT64_C(1) << 53, INT64_MAX};
    const struct tutti_cpu_kernels *kernels;
    uint64_t random = 9;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (size_t d = 0; d < COUNT_OF(divisors); d++) {
            const struct tutti_scale scale = {.multiply = 1.0, .divide = divisors[d]};
            uint32_t numbers[300], quotients[300];

            for (size_t i = 0; i < COUNT_OF(numbers); i++) {
                const uint64_t whole = (next_random(&random) & UINT32_MAX) / (uint64_t)divisors[d];

                numbers[i] = (uint32_t)(whole * (uint64_t)divisors[d] + i % 3 - 1);
            }
            tutti_cpu_scale_by(kernels, TUTTI_UINT32, quotients, numbers, COUNT_OF(numbers), scale);
            for (size_t i = 0; i < COUNT_OF(numbers); i++)
                assert_int_equal(quotients[i], numbers[i] / (uint64_t)divisors[d]);
            tutti_cpu_scale_by(kernels, TUTTI_INT32, quotients, numbers, COUNT_OF(numbers), scale);
            for (size_t i = 0; i < COUNT_OF(numbers); i++)
                assert_int_equal((int32_t)quotients[i], (int32_t)numbers[i] / divisors[d]);
        }
}

static void premultiplying_is_the_same_in_every_variant_and_in_place(void **state)
{
    (void)state;
    const struct tutti_cpu_kernels *kernels;
    uint64_t random = 3;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (enum tutti_type type = 0; type < TUTTI_TYPE_COUNT; type++)
            for (unsigned round = 0; round < 20 && tutti_type_is_scaled(type); round++) {
                const size_t count = round % 2 == 0 ? COUNT : round;
                char unaligned[9];
                const uint64_t scalar = random_element(type, &random);

                memcpy(unaligned + 1, &scalar, sizeof(scalar));
                fill_elements(type, source, COUNT, round);
                tutti_cpu_premultiply_by(&tutti_cpu_plain, type, expected, source, count, &scalar);
                tutti_cpu_premultiply_by(kernels, type, result, source, count, unaligned + 1);
                assert_int_equal(first_difference(type, result, expected, count), count);
                tutti_cpu_premultiply_by(kernels, type, source, source, count, unaligned + 1);
                assert_int_equal(first_difference(type, source, expected, count), count);
            }
}

static void premultiplying_follows_its_definition(void **state)
{
    (void)state;
    static const uint16_t halves[] = {0x3c00, 0x4200, 0x7bff}; /* 1, 3, 65504 */
    static const uint16_t half_two = 0x4000;
    static const uint16_t doubled[] = {0x4000, 0x4600, 0x7c00};
    static const uint8_t bytes[] = {100, 3, 255}, byte_three = 3, tripled[] = {44, 9, 253};
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++) {
        tutti_cpu_premultiply_by(kernels, TUTTI_FLOAT16, result, halves, 3, &half_two);
        assert_memory_equal(result, doubled, sizeof(doubled));
        tutti_cpu_premultiply_by(kernels, TUTTI_UINT8, result, bytes, 3, &byte_three);
        assert_memory_equal(result, tripled, sizeof(tripled));
    }
}

static void copies_are_exact_for_any_size_and_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 31, 63, 64, 65, 127, 128, 129, 1000, 4097};
    const struct tutti_cpu_kernels *kernels;

    fill_elements(TUTTI_UINT8, source, BYTES, 1);
    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (size_t to = 1; to < 130; to += 7)
                for (size_t from = 0; from < 9; from += 4)
                    for (int stream = 0; stream < 2; stream++) {
                        const size_t size = sizes[s];

                        memset(expected, 0xa5, size + 200);
                        memset(result, 0xa5, size + 200);
                        memcpy(expected + to, source + from, size);
                        tutti_cpu_copy_by(kernels, result + to, source + from, size, stream);
                        assert_memory_equal(result, expected, size + 200);
                        tutti_cpu_copy_by(kernels, result + to, result + to, size, stream);
                        assert_memory_equal(result, expected, size + 200);
                    }
}

static void nothing_is_touched_when_there_is_nothing_to_do(void **state)
{
    (void)state;
    const void *srcs[2] = {NULL, NULL};
    void *dst = NULL;
    struct tutti_reduce_args args = {
        .nsrcs = 2, .ndsts = 1, .srcs = srcs, .dsts = &dst, .scale = {0.5, 2},
    };

    for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++) {
        uint64_t scalar = 1;

        for (args.nsrcs = 1; args.nsrcs <= 2; args.nsrcs++)
            tutti_cpu_reduce(&args);
        tutti_cpu_reduce2(args.type, TUTTI_SUM, NULL, NULL, NULL, 0);
        tutti_cpu_scale(args.type, NULL, NULL, 0, args.scale);
        tutti_cpu_premultiply(args.type, NULL, NULL, 0, &scalar);
        if (tutti_type_is_narrow_float(args.type)) {
            tutti_cpu_widen(args.type, NULL, NULL, 0, 2.0f);
            tutti_cpu_narrow(args.type, NULL, NULL, 0, 2.0f);
        }
    }
    tutti_cpu_copy(NULL, NULL, 0, true);
}

static void the_environment_chooses_the_instruction_set(void **state)
{
    (void)state;
    const struct tutti_cpu_kernels *kernels;
    const char *wanted = getenv("TUTTI_CPU_ISA");
    bool is_there = false;

    if (wanted == NULL) {
        assert_string_equal(tutti_cpu_isa(), tutti_cpu_available(0)->name);
        return;
    }
    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        is_there |= strcmp(kernels->name, wanted) == 0;
    assert_string_equal(tutti_cpu_isa(), is_there ? wanted : "plain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_is_the_same_in_every_variant_and_in_place),
        cmocka_unit_test(scaling_follows_its_definition),
        cmocka_unit_test(integers_divide_exactly_near_whole_quotients),
        cmocka_unit_test(premultiplying_is_the_same_in_every_variant_and_in_place),
        cmocka_unit_test(premultiplying_follows_its_definition),
        cmocka_unit_test(copies_are_exact_for_any_size_and_alignment),
        cmocka_unit_test(nothing_is_touched_when_there_is_nothing_to_do),
        cmocka_unit_test(the_environment_chooses_the_instruction_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
