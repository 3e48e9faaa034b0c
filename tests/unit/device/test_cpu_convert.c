/* SPDX-License-Identifier: Apache-2.0
 * Compares narrow floating types with float32: every code and every rounding boundary, in every
 * variant. The oracle knows only the value of each code. */
#include "unit/device/elements.h"

#include "device/cpu/isa.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct format {
    enum tutti_type type;
    unsigned exponent_bits, fraction_bits;
    bool has_infinity;
    uint32_t nan;
};

static const struct format formats[] = {
    {TUTTI_FLOAT16, 5, 10, true, 0x7e00},
    {TUTTI_BFLOAT16, 8, 7, true, 0x7fc0},
    {TUTTI_FLOAT8E4M3, 4, 3, false, 0x7f},
    {TUTTI_FLOAT8E5M2, 5, 2, true, 0x7e},
};

/* The first code that is infinity or, without infinities, NaN. */
static uint32_t special_of(const struct format *format)
{
    uint32_t ones = (1u << (format->exponent_bits + format->fraction_bits)) - 1;

    return format->has_infinity ? ones - ((1u << format->fraction_bits) - 1) : ones;
}

/* The value that a code without its sign would have if the format had no largest value. */
static double worth(const struct format *format, uint32_t code)
{
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    int exponent = (int)(code >> format->fraction_bits);
    double fraction =
        ldexp(code & ((1u << format->fraction_bits) - 1), -(int)format->fraction_bits);

    return exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1.0 + fraction, exponent - bias);
}

static uint32_t narrowed_by_search(const struct format *format, float value)
{
    const uint32_t sign =
        signbit(value) ? 1u << (format->exponent_bits + format->fraction_bits) : 0;
    const uint32_t special = special_of(format);
    const double size = fabs((double)value);
    uint32_t low = 0, high = special;
    double middle;

    if (isnan(value))
        return format->nan;
    if (size >= worth(format, special))
        return sign | (format->has_infinity ? special : special - 1);
    while (high - low > 1) {
        uint32_t code = (low + high) / 2;

        if (worth(format, code) <= size)
            low = code;
        else
            high = code;
    }
    middle = (worth(format, low) + worth(format, low + 1)) / 2;
    if (size > middle || (size == middle && low % 2 == 1))
        low++;
    if (low == special && !format->has_infinity)
        low--;
    return sign | low;
}

static float widened_by_worth(const struct format *format, uint32_t code)
{
    const uint32_t sign = 1u << (format->exponent_bits + format->fraction_bits);
    const uint32_t size = code & (sign - 1), special = special_of(format);
    double value = worth(format, size);

    if (size >= special)
        value = size == special && format->has_infinity ? (double)INFINITY : (double)NAN;
    return (float)(code & sign ? -value : value);
}

static void every_code_widens_to_its_worth_and_narrows_back(void **state)
{
    (void)state;
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (size_t f = 0; f < COUNT_OF(formats); f++) {
            const struct format *format = &formats[f];
            const size_t size = tutti_type_size(format->type);
            const uint32_t ncodes = 1u << (8 * size);
            char *codes = malloc(ncodes * size), *back = malloc(ncodes * size);
            float *wide = malloc(ncodes * sizeof(float));

            for (uint32_t code = 0; code < ncodes; code++)
                memcpy(codes + code * size, &code, size);
            tutti_cpu_widen_by(kernels, format->type, wide, codes, ncodes, 1.0f);
            tutti_cpu_narrow_by(kernels, format->type, back, wide, ncodes, 1.0f);
            for (uint32_t code = 0; code < ncodes; code++) {
                const float worthy = widened_by_worth(format, code);
                const uint32_t canonical = isnan(worthy) ? format->nan : code;
                const uint32_t nan_bits = 0x7fc00000;
                const void *want = isnan(worthy) ? (const void *)&nan_bits : &worthy;

                if (memcmp(&wide[code], want, sizeof(float)) != 0 ||
                    bits_at(format->type, back, code) != canonical)
                    fail_msg("%s, %s %#x: widened to %a, back to %#llx; want %a", kernels->name,
                             type_facts[format->type].name, code, (double)wide[code],
                             bits_at(format->type, back, code), (double)worthy);
            }
            free(codes);
            free(back);
            free(wide);
        }
}

static void check_narrowing(const struct format *format, const float *values, size_t count)
{
    const struct tutti_cpu_kernels *kernels;
    const size_t size = tutti_type_size(format->type);
    char *codes = malloc(count * size);

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++) {
        tutti_cpu_narrow_by(kernels, format->type, codes, values, count, 1.0f);
        for (size_t i = 0; i < count; i++)
            if (bits_at(format->type, codes, i) != narrowed_by_search(format, values[i]))
                fail_msg("%s, %a as %s: %#llx, want %#x", kernels->name, (double)values[i],
                         type_facts[format->type].name, bits_at(format->type, codes, i),
                         narrowed_by_search(format, values[i]));
    }
    free(codes);
}

static void every_value_beside_a_rounding_boundary_narrows_to_the_nearest_code(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        const struct format *format = &formats[f];
        const uint32_t special = special_of(format);
        float *values = malloc((special + 1) * 12 * sizeof(float));
        size_t count = 0;

        for (uint32_t code = 0; code < special; code++) {
            const float exact = (float)worth(format, code);
            const float middle =
                (float)((worth(format, code) + worth(format, code + 1)) / 2);
            const float beside[] = {
                exact,  nextafterf(exact, INFINITY),  nextafterf(exact, -INFINITY),
                middle, nextafterf(middle, INFINITY), nextafterf(middle, -INFINITY),
            };

            for (size_t i = 0; i < COUNT_OF(beside); i++) {
                values[count++] = beside[i];
                values[count++] = -beside[i];
            }
        }
        values[count++] = INFINITY;
        values[count++] = -INFINITY;
        values[count++] = -NAN;
        check_narrowing(format, values, count);
        free(values);
    }
}

static void random_bits_narrow_to_the_nearest_code(void **state)
{
    (void)state;
    enum { COUNT = 40003 };
    static float values[COUNT];

    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        fill_elements(TUTTI_FLOAT32, values, COUNT, 77 + f);
        check_narrowing(&formats[f], values, COUNT);
    }
}

static void e4m3_saturates_while_the_others_overflow_to_infinity(void **state)
{
    (void)state;
    static const float values[] = {448, 464, 480, 1e30f, -INFINITY, 57344, 61440, 65519, 65520};
    static const uint8_t e4m3[] = {0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7e, 0x7e, 0x7e, 0x7e};
    static const uint8_t e5m2[] = {0x5f, 0x5f, 0x60, 0x7c, 0xfc, 0x7b, 0x7c, 0x7c, 0x7c};
    static const uint16_t half[] = {0x5f00, 0x5f40, 0x5f80, 0x7c00, 0xfc00,
                                    0x7b00, 0x7b80, 0x7bff, 0x7c00};
    uint8_t bytes[COUNT_OF(values)];
    uint16_t halves[COUNT_OF(values)];

    tutti_cpu_narrow(TUTTI_FLOAT8E4M3, bytes, values, COUNT_OF(values), 1.0f);
    assert_memory_equal(bytes, e4m3, sizeof(e4m3));
    tutti_cpu_narrow(TUTTI_FLOAT8E5M2, bytes, values, COUNT_OF(values), 1.0f);
    assert_memory_equal(bytes, e5m2, sizeof(e5m2));
    tutti_cpu_narrow(TUTTI_FLOAT16, halves, values, COUNT_OF(values), 1.0f);
    assert_memory_equal(halves, half, sizeof(half));
}

/* The plain variant multiplies one value at a time; the others must agree on any count. */
static void conversions_multiply_in_float32_for_any_count_and_offset(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 3, 15, 16, 17, 100};
    static const float factors[] = {1.0f, 0.3f, -8.0f, 1e30f};
    const struct tutti_cpu_kernels *kernels;
    float wide[128], want_wide[128], numbers[128];
    char narrow[256], want[256], codes[256];

    fill_elements(TUTTI_FLOAT32, numbers, COUNT_OF(numbers), 5);
    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (size_t f = 0; f < COUNT_OF(formats); f++)
            for (size_t c = 0; c < COUNT_OF(counts) * COUNT_OF(factors); c++) {
                const enum tutti_type type = formats[f].type;
                const size_t count = counts[c / COUNT_OF(factors)], at = c % 3;
                const size_t at_bytes = at * tutti_type_size(type);
                const float factor = factors[c % COUNT_OF(factors)];

                fill_elements(type, codes, 128, c);
                memset(want, 0xa5, sizeof(want));
                memset(narrow, 0xa5, sizeof(narrow));
                memset(want_wide, 0xa5, sizeof(want_wide));
                memset(wide, 0xa5, sizeof(wide));
                tutti_cpu_plain_widen(type, want_wide + 1, codes + at_bytes, count, factor);
                tutti_cpu_widen_by(kernels, type, wide + 1, codes + at_bytes, count, factor);
                assert_memory_equal(wide, want_wide, sizeof(wide));
                tutti_cpu_plain_narrow(type, want + at_bytes, numbers + at, count, factor);
                tutti_cpu_narrow_by(kernels, type, narrow + at_bytes, numbers + at, count, factor);
                assert_memory_equal(narrow, want, sizeof(narrow));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_widens_to_its_worth_and_narrows_back),
        cmocka_unit_test(every_value_beside_a_rounding_boundary_narrows_to_the_nearest_code),
        cmocka_unit_test(random_bits_narrow_to_the_nearest_code),
        cmocka_unit_test(e4m3_saturates_while_the_others_overflow_to_infinity),
        cmocka_unit_test(conversions_multiply_in_float32_for_any_count_and_offset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
