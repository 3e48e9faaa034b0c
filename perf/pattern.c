/* SPDX-License-Identifier: Apache-2.0
 * Generates inputs with an exactly known result. All arithmetic here is on whole numbers. */
#include "pattern.h"

#include "base/types.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct perf_pattern {
    size_t element_bytes;
    int summands, nranks;
    /* There is one row per rank, and the last row is the reduction. A row is two periods long, so
     * that one period can be copied from any start. */
    char *rows;
};

/* These macros give `exact`: all whole numbers from 0 to `exact` are representable in the type. The
 * limit of the 64-bit integers is 2^61, so that sums of a few do not leave int64_t. */
#define EXACT_SIGNED(bits, fraction_bits)                                                       \
    (bits) == 64 ? INT64_C(1) << 61 : INT64_MAX >> (64 - (bits))
#define EXACT_UNSIGNED(bits, fraction_bits)                                                     \
    (bits) == 64 ? INT64_C(1) << 61 : (int64_t)(UINT64_MAX >> (64 - (bits)))
#define EXACT_FLOATING(bits, fraction_bits) INT64_C(1) << ((fraction_bits) + 1)
#define EXACT_BOOLEAN(bits, fraction_bits) 1
#define EXACT_NARROW(bits, fraction_bits) EXACT_FLOATING(bits, fraction_bits)
/* A row of the table `types`, from a row of TUTTI_TYPES (base/types.h). */
#define TYPE(NAME, number, name, FAMILY, code, bits, exponent_bits, fraction_bits)              \
    {TUTTI_##FAMILY == TUTTI_SIGNED     ? SIGNED                                                \
     : TUTTI_##FAMILY == TUTTI_UNSIGNED ? UNSIGNED                                              \
     : TUTTI_##FAMILY == TUTTI_BOOLEAN  ? BOOLEAN                                               \
                                        : FLOATING,                                             \
     EXACT_##FAMILY(bits, fraction_bits), bits, exponent_bits, fraction_bits},

enum family { SIGNED, UNSIGNED, FLOATING, BOOLEAN };

static const struct {
    enum family family;
    int64_t exact; /* see above */
    int bits, exponent_bits, mantissa_bits;
} types[tuttiNumTypes] = {TUTTI_TYPES(TYPE)};

/* Hashes a small number to 64 bits. The function is the finalizer of splitmix64. */
static uint64_t scatter(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Returns the value after it has wrapped around in an integer type. */
static int64_t wrap(tuttiDataType_t type, uint64_t value)
{
    int unused = 64 - types[type].bits;

    if (types[type].family == UNSIGNED || types[type].family == BOOLEAN)
        return (int64_t)(value << unused >> unused);
    return types[type].family == SIGNED ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

/* Returns a value such that no partial sum over ranks leaves -limit .. limit. If there are more
 * ranks than `limit`, only some ranks contribute. These ranks change from element to element. */
static int64_t bounded(enum family family, int64_t limit, int nranks, int rank, int index)
{
    uint64_t bits = scatter((uint64_t)rank * PERF_PERIOD + (uint64_t)index);
    int64_t most = limit / nranks;

    if (most == 0) {
        if ((rank + index) % nranks >= limit)
            return 0;
        return family == UNSIGNED || (bits & 1) ? 1 : -1;
    }
    if (family == UNSIGNED)
        return (int64_t)(bits % (uint64_t)(most + 1));
    return (int64_t)(bits % (uint64_t)(2 * most + 1)) - most;
}

/* Returns the same whole number for all ranks, plus 1 for one rank of a pair and minus 1 for the
 * other rank. So the average is a whole number. */
static int64_t whole_average(int64_t limit, int nranks, int rank, int index)
{
    uint64_t bits = scatter((uint64_t)index);
    int64_t common = (int64_t)(bits % (uint64_t)(limit / 2 / nranks + 1));
    int pairs = nranks / 2, pair = rank / 2;

    if (pair >= pairs || (pair + index) % pairs >= limit / 2)
        return common;
    return common + ((rank & 1) == (int)(bits >> 63) ? 1 : -1);
}

/* Returns 3 for one rank, 2 for at most four ranks, and 1 for the others, each with a sign. The
 * product is at most 48 = 3 * 2^4, which every type can represent. */
static int64_t factor(int nranks, int rank, int index)
{
    int turn = (rank + (int)(scatter((uint64_t)index) % (uint64_t)nranks)) % nranks;
    int64_t sign = scatter((uint64_t)rank * PERF_PERIOD + (uint64_t)index) & 1 ? 1 : -1;

    if (turn == 0)
        return 3 * sign;
    return turn <= 4 ? 2 * sign : sign;
}

/* Returns random bits of one rank, few of which are set. A given bit is set on about one of the
 * ranks. */
static uint64_t rare_bits(int nranks, uint64_t seed)
{
    uint64_t bits = UINT64_MAX;

    for (uint64_t turn = 1; nranks >> (turn - 1) != 0; turn++)
        bits &= scatter(seed + (turn << 32));
    return bits;
}

/* Returns the logical operation that `op` is on bool; others stay as they are. */
static enum perf_op op_on(tuttiDataType_t type, enum perf_op op)
{
    if (types[type].family != BOOLEAN)
        return op;
    switch (op) {
    case PERF_PROD: case PERF_MIN: case PERF_BAND: case PERF_LAND: return PERF_LAND;
    case PERF_BXOR: case PERF_LXOR: return PERF_LXOR;
    default: return PERF_LOR;
    }
}

/* Returns element `index` of the input of `rank`. */
static int64_t input(tuttiDataType_t type, enum perf_op op, int nranks, int rank, int index)
{
    enum family family = types[type].family;
    int64_t exact = types[type].exact;
    uint64_t seed = (uint64_t)rank * PERF_PERIOD + (uint64_t)index;
    uint64_t bits = scatter(seed), rare = rare_bits(nranks, seed);

    switch (op) {
    case PERF_BAND: return wrap(type, ~rare);
    case PERF_BOR: return wrap(type, rare);
    case PERF_LAND: return rare & 1 ? 0 : wrap(type, bits);
    case PERF_LOR: return rare & 1 ? wrap(type, bits) : 0;
    case PERF_LXOR: return bits & 1 ? wrap(type, bits) : 0;
    case PERF_SUM:
        return family == FLOATING ? bounded(family, exact, nranks, rank, index) : wrap(type, bits);
    case PERF_MULSUM: /* the multiplication may double the value */
        return family == FLOATING ? bounded(family, exact / 2, nranks, rank, index)
                                  : wrap(type, bits);
    case PERF_PROD: /* odd, because a product of even numbers soon becomes 0 */
        return family == FLOATING ? factor(nranks, rank, index) : wrap(type, bits | 1);
    case PERF_AVG: /* a sum that wrapped around would have no meaningful average */
        return family == FLOATING ? whole_average(exact, nranks, rank, index)
                                  : bounded(family, exact, nranks, rank, index);
    default:
        return family == FLOATING ? bounded(family, exact, 1, rank, index) : wrap(type, bits);
    }
}

static bool is_less(tuttiDataType_t type, int64_t a, int64_t b)
{
    return type == tuttiUint64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* Combines `value` with the result so far by a bitwise or logical operation. */
static uint64_t combined(enum perf_op op, uint64_t so_far, uint64_t value)
{
    switch (op) {
    case PERF_BAND: return so_far & value;
    case PERF_BOR: return so_far | value;
    case PERF_BXOR: return so_far ^ value;
    case PERF_LAND: return so_far != 0 && value != 0;
    case PERF_LOR: return so_far != 0 || value != 0;
    default: return (so_far != 0) != (value != 0);
    }
}

/* Returns element `index` of the reduction of the inputs of ranks 0 to `summands` - 1. */
static int64_t reduced(tuttiDataType_t type, enum perf_op op, int summands, int nranks, int index)
{
    bool is_of_bits = op >= PERF_BAND && op <= PERF_LXOR;
    uint64_t total = op == PERF_PROD || op == PERF_LAND ? 1 : op == PERF_BAND ? UINT64_MAX : 0;
    int64_t best = input(type, op, nranks, 0, index);

    for (int rank = 0; rank < summands; rank++) {
        int64_t value = input(type, op, nranks, rank, index);

        if (is_of_bits)
            total = combined(op, total, (uint64_t)value);
        else if (op == PERF_PROD)
            total *= (uint64_t)value;
        else if (op == PERF_MULSUM)
            total += (uint64_t)value * (uint64_t)perf_pattern_scalar(rank);
        else
            total += (uint64_t)value;
        if (op == PERF_MAX ? is_less(type, best, value) : is_less(type, value, best))
            best = value;
    }
    if (op == PERF_MAX || op == PERF_MIN)
        return best;
    if (op == PERF_AVG) /* the inputs are bounded, so the sum has not wrapped around; C rounds
                         * toward zero, as the library does */
        return (int64_t)total / summands;
    return wrap(type, total);
}

int perf_pattern_scalar(int rank)
{
    return 1 + rank % 2;
}

/* Returns the bits of a whole number that needs no rounding: sign, exponent and mantissa. */
static uint64_t encode_floating(int exponent_bits, int mantissa_bits, int64_t value)
{
    int exponent, bias = (1 << (exponent_bits - 1)) - 1;
    double fraction = frexp(fabs((double)value), &exponent); /* 0.5 <= fraction < 1 */
    uint64_t mantissa;

    if (value == 0)
        return 0;
    mantissa = (uint64_t)ldexp(2 * fraction - 1, mantissa_bits);
    return (uint64_t)(value < 0) << (exponent_bits + mantissa_bits) |
           (uint64_t)(exponent - 1 + bias) << mantissa_bits | mantissa;
}

/* Stores the low bytes of `bits`, on machines of either byte order. */
static void store(uint64_t bits, size_t element_bytes, void *to)
{
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;

    switch (element_bytes) {
    case 1: memcpy(to, &one, 1); break;
    case 2: memcpy(to, &two, 2); break;
    case 4: memcpy(to, &four, 4); break;
    default: memcpy(to, &bits, 8); break;
    }
}

void perf_pattern_encode(tuttiDataType_t type, int64_t value, void *to)
{
    uint64_t bits = (uint64_t)value;

    if (types[type].family == FLOATING)
        bits = encode_floating(types[type].exponent_bits, types[type].mantissa_bits, value);
    store(bits, perf_type_bytes(type), to);
}

/* Returns the row of a rank, or of the reduction (PERF_REDUCED). */
static char *row_of(const struct perf_pattern *pattern, int source)
{
    size_t row = (size_t)(source == PERF_REDUCED ? pattern->nranks : source);

    return pattern->rows + row * 2 * PERF_PERIOD * pattern->element_bytes;
}

static void write_row(struct perf_pattern *pattern, tuttiDataType_t type, enum perf_op op,
                      int source)
{
    char *row = row_of(pattern, source);

    if (op != PERF_NO_OP)
        op = op_on(type, op);
    for (int index = 0; index < PERF_PERIOD; index++) {
        char *to = row + (size_t)index * pattern->element_bytes;

        if (op == PERF_NO_OP)
            store(scatter((uint64_t)source * PERF_PERIOD + (uint64_t)index), pattern->element_bytes,
                  to);
        else if (source == PERF_REDUCED)
            perf_pattern_encode(type, reduced(type, op, pattern->summands, pattern->nranks, index),
                                to);
        else
            perf_pattern_encode(type, input(type, op, pattern->nranks, source, index), to);
    }
    memcpy(row + PERF_PERIOD * pattern->element_bytes, row, PERF_PERIOD * pattern->element_bytes);
}

struct perf_pattern *perf_pattern_create(tuttiDataType_t type, enum perf_op op, int summands,
                                         int nranks)
{
    struct perf_pattern *pattern = malloc(sizeof(*pattern));

    if (pattern == NULL)
        return NULL;
    pattern->element_bytes = perf_type_bytes(type);
    pattern->summands = summands;
    pattern->nranks = nranks;
    pattern->rows = malloc(((size_t)nranks + 1) * 2 * PERF_PERIOD * pattern->element_bytes);
    if (pattern->rows == NULL) {
        free(pattern);
        return NULL;
    }
    for (int rank = 0; rank < nranks; rank++)
        write_row(pattern, type, op, rank);
    if (op != PERF_NO_OP && summands > 0)
        write_row(pattern, type, op, PERF_REDUCED);
    return pattern;
}

void perf_pattern_destroy(struct perf_pattern *pattern)
{
    if (pattern == NULL)
        return;
    free(pattern->rows);
    free(pattern);
}

void perf_pattern_fill(const struct perf_pattern *pattern, int source, size_t from, void *to,
                       size_t count)
{
    const char *values = row_of(pattern, source) + from % PERF_PERIOD * pattern->element_bytes;

    for (size_t done = 0; done < count; done += PERF_PERIOD) {
        size_t run = count - done < PERF_PERIOD ? count - done : PERF_PERIOD;

        memcpy((char *)to + done * pattern->element_bytes, values, run * pattern->element_bytes);
    }
}

size_t perf_pattern_wrong(const struct perf_pattern *pattern, int source, size_t from,
                          const void *at, size_t count)
{
    size_t element_bytes = pattern->element_bytes, wrong = 0;
    const char *values = row_of(pattern, source) + from % PERF_PERIOD * element_bytes;

    for (size_t done = 0; done < count; done += PERF_PERIOD) {
        const char *found = (const char *)at + done * element_bytes;
        size_t run = count - done < PERF_PERIOD ? count - done : PERF_PERIOD;

        if (memcmp(found, values, run * element_bytes) == 0)
            continue;
        for (size_t i = 0; i < run; i++)
            wrong += memcmp(found + i * element_bytes, values + i * element_bytes,
                            element_bytes) != 0;
    }
    return wrong;
}
