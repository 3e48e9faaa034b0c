/* SPDX-License-Identifier: Apache-2.0
 * Makes inputs of reductions and their expected results. */
#include "support/values.h"

#include "base/types.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Values repeat after this many elements. It is a prime, so that long vectors are cheap to make and
 * no two parts or blocks of them are equal. */
enum { PERIOD = 4093 };

const char *const value_op_names[OP_COUNT] = {"sum", "prod", "max", "min", "avg",
                                              "band", "bor", "bxor", "land", "lor", "lxor",
                                              "premultiplied sum (immediate)",
                                              "premultiplied sum (device)"};

struct format {
    size_t size;
    bool is_float, is_signed, is_bool;
    int exponent_bits, fraction_bits; /* of floating types */
};

#define FORMAT(NAME, number, name, FAMILY, code, bits, exponent_bits, fraction_bits)             \
    [number] = {(bits) / 8, TUTTI_##FAMILY == TUTTI_FLOATING || TUTTI_##FAMILY == TUTTI_NARROW, \
                TUTTI_##FAMILY != TUTTI_UNSIGNED && TUTTI_##FAMILY != TUTTI_BOOLEAN,            \
                TUTTI_##FAMILY == TUTTI_BOOLEAN, exponent_bits, fraction_bits},
#define NAME_OF(NAME, number, name, ...) [number] = #name,

static const struct format formats[tuttiNumTypes] = {TUTTI_TYPES(FORMAT)};

const char *const value_type_names[tuttiNumTypes] = {TUTTI_TYPES(NAME_OF)};

size_t value_size(tuttiDataType_t type)
{
    return formats[type].size;
}

bool value_has_op(tuttiDataType_t type, int op)
{
    if (op == tuttiAvg || op >= OP_PREMUL_IMMEDIATE)
        return !formats[type].is_bool;
    return !formats[type].is_float || op < tuttiAvg;
}

int value_op(tuttiDataType_t type, size_t number)
{
    int ops[OP_COUNT], count = 0;

    for (int op = 0; op < OP_COUNT; op++)
        if (value_has_op(type, op))
            ops[count++] = op;
    return ops[number % (size_t)count];
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t hash = (a * UINT64_C(0x9E3779B97F4A7C15)) ^ (b + UINT64_C(0x632BE59BD9B4E019));

    hash = (hash ^ (hash >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94D049BB133111EB);
    return hash ^ (hash >> 31);
}

/* ---- integers ---------------------------------------------------------------------------- */

/* The low bits of `value` as an element, extended by its sign. */
static uint64_t narrow(const struct format *format, uint64_t value)
{
    unsigned unused = 64 - 8 * (unsigned)format->size;

    if (format->is_signed)
        return (uint64_t)((int64_t)(value << unused) >> unused);
    return value << unused >> unused;
}

/* The logical operation that `op` is on bool; of other types `op`. */
static int op_on(const struct format *format, int op)
{
    if (!format->is_bool)
        return op;
    switch (op) {
    case tuttiProd: case tuttiMin: case tuttiBand: case tuttiLand: return tuttiLand;
    case tuttiBxor: case tuttiLxor: return tuttiLxor;
    default: return tuttiLor;
    }
}

static uint64_t integer(const struct format *format, int op, int rank, size_t index)
{
    uint64_t hash = mix(index, (uint64_t)rank);
    uint64_t rare = hash & mix(index, (uint64_t)rank + 1000) & mix(index, (uint64_t)rank + 2000);

    /* Up to 16 ranks agree on some bits, or on the truth of some elements, and not on others. */
    switch (op) {
    case tuttiBand: return narrow(format, ~rare);
    case tuttiBor: return narrow(format, rare);
    case tuttiLand: return rare >> 63 ? 0 : narrow(format, hash);
    case tuttiLor: return rare >> 63 ? narrow(format, hash) : 0;
    case tuttiLxor: return hash >> 63 ? narrow(format, hash) : 0;
    default: break;
    }
    /* The sum must not wrap before it is divided: up to 16 ranks in 8 bits. */
    if (op == tuttiAvg)
        return format->is_signed ? (uint64_t)((int64_t)(hash % 15) - 7) : hash % 16;
    return narrow(format, hash);
}

static uint64_t integer_scalar(const struct format *format, int rank)
{
    return narrow(format, mix(UINT64_C(77), (uint64_t)rank));
}

static bool is_less(const struct format *format, uint64_t a, uint64_t b)
{
    return format->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t integer_result(const struct format *format, int op, int summands, size_t index)
{
    uint64_t result = integer(format, op, 0, index);

    if (op >= tuttiLand && op <= tuttiLxor)
        result = result != 0;
    if (op >= OP_PREMUL_IMMEDIATE)
        result *= integer_scalar(format, 0);
    for (int rank = 1; rank < summands; rank++) {
        uint64_t next = integer(format, op, rank, index);

        switch (op) {
        case tuttiProd: result *= next; break;
        case tuttiMax: result = is_less(format, result, next) ? next : result; break;
        case tuttiMin: result = is_less(format, next, result) ? next : result; break;
        case tuttiBand: result &= next; break;
        case tuttiBor: result |= next; break;
        case tuttiBxor: result ^= next; break;
        case tuttiLand: result = result != 0 && next != 0; break;
        case tuttiLor: result = result != 0 || next != 0; break;
        case tuttiLxor: result = (result != 0) != (next != 0); break;
        case OP_PREMUL_IMMEDIATE:
        case OP_PREMUL_DEVICE: result += next * integer_scalar(format, rank); break;
        default: result += next; break;
        }
    }
    if (op == tuttiAvg)
        result = format->is_signed ? (uint64_t)((int64_t)result / summands)
                                   : result / (uint64_t)summands;
    return narrow(format, result);
}

/* ---- floating point ------------------------------------------------------------------------ */

static int float_scalar(int rank)
{
    return 1 + rank % 2;
}

/* Sums stay within the integers that the type holds exactly. Where these are too few for all ranks
 * to contribute to each element, three do, others to other elements. */
static int summand(const struct format *format, int most_scalar, int rank, int nranks,
                   size_t index)
{
    uint64_t hash = mix(index, (uint64_t)rank);
    int64_t exact = INT64_C(1) << (format->fraction_bits + 1);
    int64_t most = exact / (most_scalar * nranks);
    size_t turn = (index + (size_t)rank) % (size_t)nranks;

    if (most > 1000)
        most = 1000;
    if (most >= 3)
        return (int)(hash % (uint64_t)(2 * most + 1)) - (int)most;
    if (turn >= 3)
        return 0;
    return (hash & 1 ? 1 : -1) * (most_scalar == 1 && hash & 2 ? 2 : 1);
}

static int real(const struct format *format, int op, int rank, int nranks, size_t index)
{
    uint64_t hash = mix(index, (uint64_t)rank);
    size_t turn = (index + (size_t)rank) % (size_t)nranks;

    switch (op) {
    case tuttiSum: return summand(format, 1, rank, nranks, index);
    case tuttiProd: return (hash & 1 ? 1 : -1) * (turn < 3 ? 2 : 1);
    case tuttiMax:
    case tuttiMin: return (int)(hash % 17) - 8;
    case tuttiAvg: /* all contribute the average; two differ from it, by 1 and -1 */
        return (int)(mix(index, 1000) % 5) - 2 +
               (nranks == 1 ? 0 : turn == 0 ? 1 : turn == 1 ? -1 : 0);
    default: return summand(format, 2, rank, nranks, index);
    }
}

static int real_result(const struct format *format, int op, int summands, int nranks,
                       size_t index)
{
    int result = real(format, op, 0, nranks, index);

    if (op >= OP_PREMUL_IMMEDIATE)
        result *= float_scalar(0);
    for (int rank = 1; rank < summands; rank++) {
        int next = real(format, op, rank, nranks, index);

        switch (op) {
        case tuttiProd: result *= next; break;
        case tuttiMax: result = next > result ? next : result; break;
        case tuttiMin: result = next < result ? next : result; break;
        case OP_PREMUL_IMMEDIATE:
        case OP_PREMUL_DEVICE: result += next * float_scalar(rank); break;
        default: result += next; break;
        }
    }
    return op == tuttiAvg ? result / summands : result;
}

/* The bits of a small integer, exact in every format. */
static uint64_t encode(const struct format *format, int value)
{
    unsigned bits = 8 * (unsigned)format->size;
    uint64_t sign = value < 0 ? UINT64_C(1) << (bits - 1) : 0;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    int magnitude = value < 0 ? -value : value, exponent;
    double fraction;

    if (value == 0)
        return 0;
    exponent = ilogb(magnitude);
    fraction = ldexp(magnitude, format->fraction_bits - exponent) -
               ldexp(1, format->fraction_bits);
    assert(fraction == floor(fraction));
    return sign | (uint64_t)(exponent + bias) << format->fraction_bits | (uint64_t)fraction;
}

/* ---- elements -------------------------------------------------------------------------------- */

static void store(const struct format *format, uint8_t *at, uint64_t bits)
{
    /* Little-endian, as every machine the tests run on. */
    memcpy(at, &bits, format->size);
}

static uint64_t element(const struct format *format, int op, int rank, int nranks, size_t index)
{
    op = op_on(format, op);
    if (rank < 0)
        return format->is_float ? encode(format, real_result(format, op, -rank, nranks, index))
                                : integer_result(format, op, -rank, index);
    return format->is_float ? encode(format, real(format, op, rank, nranks, index))
                            : integer(format, op, rank, index);
}

/* Rank -n is the result over the first n ranks. */
static void fill(uint8_t *at, tuttiDataType_t type, int op, int rank, int nranks, size_t first,
                 size_t count)
{
    const struct format *format = &formats[type];
    size_t made = count < PERIOD ? count : PERIOD;

    for (size_t i = 0; i < made; i++)
        store(format, at + i * format->size,
              element(format, op, rank, nranks, (first + i) % PERIOD));
    for (; made < count; made += PERIOD)
        memcpy(at + made * format->size, at,
               (count - made < PERIOD ? count - made : PERIOD) * format->size);
}

void values_fill(void *at, tuttiDataType_t type, int op, int rank, int nranks, size_t first,
                 size_t count)
{
    fill(at, type, op, rank, nranks, first, count);
}

void values_reduce(void *at, tuttiDataType_t type, int op, int summands, int nranks, size_t first,
                   size_t count)
{
    fill(at, type, op, -summands, nranks, first, count);
}

void values_scalar(void *at, tuttiDataType_t type, int rank)
{
    const struct format *format = &formats[type];

    store(format, at, format->is_float ? encode(format, float_scalar(rank))
                                       : integer_scalar(format, rank));
}
