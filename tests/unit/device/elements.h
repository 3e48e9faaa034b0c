/* SPDX-License-Identifier: Apache-2.0
 * Elements of every type for the tests of this folder: names, random elements, comparisons. */
#ifndef TUTTI_TESTS_DEVICE_ELEMENTS_H
#define TUTTI_TESTS_DEVICE_ELEMENTS_H

#include "base/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define TYPE_FACTS(NAME, number, name, FAMILY, code, bits, exponent_bits, fraction_bits)         \
    [number] = {#name, exponent_bits, fraction_bits},

static const struct {
    const char *name;
    unsigned exponent_bits, fraction_bits; /* of floating types */
} type_facts[TUTTI_TYPE_COUNT] = {TUTTI_TYPES(TYPE_FACTS)};

/* splitmix64: the same numbers on every machine. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* An eighth of the integers are zeros, which are false. A third of the floats are any bits at all,
 * a third are near 1 so that sums round and cancel, a third are zeros, subnormals, the largest,
 * infinities and NaN of either sign. */
static inline uint64_t random_element(enum tutti_type type, uint64_t *state)
{
    const unsigned exponent_bits = type_facts[type].exponent_bits;
    const unsigned fraction_bits = type_facts[type].fraction_bits;
    const uint64_t bits = next_random(state), choice = next_random(state);
    const uint64_t fraction = bits & ((UINT64_C(1) << fraction_bits) - 1);
    const uint64_t bias = (UINT64_C(1) << exponent_bits) / 2 - 1;
    const uint64_t sign = (bits >> 63) << (exponent_bits + fraction_bits);

    if (exponent_bits == 0)
        return choice % 8 == 0 ? 0 : bits;
    if (choice % 3 == 0)
        return bits;
    if (choice % 3 == 1)
        return sign | (bias - 1 + (bits >> 61 & 3)) << fraction_bits | fraction;
    switch (choice / 3 % 8) {
    case 0: return sign | (2 * bias + 1) << fraction_bits;
    case 1: return sign | (2 * bias + 1) << fraction_bits | fraction;
    case 2: return sign | fraction;
    case 3: return sign | (((2 * bias + 1) << fraction_bits) - 1);
    default: return sign;
    }
}

/* Returns an operation that the type has; different ones for different numbers. */
static inline enum tutti_op op_for(enum tutti_type type, uint64_t number)
{
    const enum tutti_op op = (enum tutti_op)(number % TUTTI_OP_COUNT);

    return tutti_op_takes(op, type) ? op : (enum tutti_op)(op % (TUTTI_MIN + 1));
}

static inline void fill_elements(enum tutti_type type, void *buffer, size_t count, uint64_t seed)
{
    const size_t size = tutti_type_size(type);
    uint64_t state = seed;

    for (size_t i = 0; i < count; i++) {
        uint64_t element = random_element(type, &state);

        memcpy((char *)buffer + i * size, &element, size);
    }
}

/* Index of the first element that differs, or `count`. */
static inline size_t first_difference(enum tutti_type type, const void *a, const void *b,
                                      size_t count)
{
    const size_t size = tutti_type_size(type);
    size_t i = 0;

    if (memcmp(a, b, count * size) == 0)
        return count;
    while (memcmp((const char *)a + i * size, (const char *)b + i * size, size) == 0)
        i++;
    return i;
}

/* The element's bits, for messages. */
static inline unsigned long long bits_at(enum tutti_type type, const void *buffer, size_t i)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)buffer + i * tutti_type_size(type), tutti_type_size(type));
    return bits;
}

#endif
