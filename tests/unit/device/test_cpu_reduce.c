/* SPDX-License-Identifier: Apache-2.0
 * Tests reductions. The reference is compared with known results, and every variant with the
 * reference, bit for bit, over types, operations, sources, destinations, counts and offsets. */
#include "unit/device/elements.h"

#include "device/cpu/isa.h"

enum { MAX_SRCS = 17, MAX_DSTS = 3, MAX_COUNT = 4099, MAX_OFFSET = 8, GUARD_BYTES = 64 };
enum { BUFFER_BYTES = (MAX_COUNT + MAX_OFFSET) * 8 + 2 * GUARD_BYTES };

static const size_t counts[] = {0, 1, 2, 7, 15, 16, 17, 63, 64, 65, 1000, MAX_COUNT};
static const uint32_t source_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, MAX_SRCS};

static char sources[MAX_SRCS][BUFFER_BYTES] __attribute__((aligned(64)));
static char expected[BUFFER_BYTES] __attribute__((aligned(64)));
static char results[MAX_DSTS][BUFFER_BYTES] __attribute__((aligned(64)));

static void fill_sources(enum tutti_type type, uint32_t nsrcs, size_t count)
{
    for (size_t k = 0; k < nsrcs; k++)
        fill_elements(type, sources[k], count, 1000 * (k + 1) + type);
}

/* Whether `buffer` is all guard outside of [at, at + size). */
static bool is_guarded(const char *buffer, size_t at, size_t size)
{
    for (size_t i = at - GUARD_BYTES; i < at + size + GUARD_BYTES; i++)
        if ((i < at || i >= at + size) && buffer[i] != (char)0xa5)
            return false;
    return true;
}

static void check_against_reference(const struct tutti_cpu_kernels *kernels,
                                    const struct tutti_reduce_args *args, size_t offset)
{
    const size_t size = tutti_type_size(args->type);

    for (uint32_t k = 0; k < args->ndsts; k++)
        memset((char *)args->dsts[k] - GUARD_BYTES, 0xa5, args->count * size + 2 * GUARD_BYTES);
    tutti_cpu_reduce_by(kernels, args);
    for (uint32_t k = 0; k < args->ndsts; k++) {
        const size_t at = (size_t)((char *)args->dsts[k] - results[k]);
        const size_t i = first_difference(args->type, args->dsts[k], expected, args->count);

        if (i < args->count)
            fail_msg("%s, %s, op %d, %u sources, %zu elements at %zu, stream %d: [%zu] of "
                     "destination %u is %#llx, want %#llx", kernels->name,
                     type_facts[args->type].name, args->op, args->nsrcs, args->count, offset,
                     args->stream, i, k, bits_at(args->type, args->dsts[k], i),
                     bits_at(args->type, expected, i));
        if (!is_guarded(results[k], at, args->count * size))
            fail_msg("%s, %s, op %d, %u sources, %zu elements at %zu, stream %d: written beside "
                     "destination %u", kernels->name, type_facts[args->type].name, args->op,
                     args->nsrcs, args->count, offset, args->stream, k);
    }
}

/* All variants, streamed or not, into one to three destinations, each misaligned in its own way. */
static void check_all_ways(struct tutti_reduce_args args, size_t offset)
{
    const size_t size = tutti_type_size(args.type);
    const struct tutti_cpu_kernels *kernels;
    const void *srcs[MAX_SRCS];
    void *dsts[MAX_DSTS], *first = expected;

    for (uint32_t k = 0; k < args.nsrcs; k++)
        srcs[k] = sources[k] + (offset * (k + 1)) % MAX_OFFSET * size;
    for (uint32_t k = 0; k < MAX_DSTS; k++)
        dsts[k] = results[k] + GUARD_BYTES + offset * (k + 1) % MAX_OFFSET * size;

    args.srcs = srcs;
    args.dsts = &first;
    args.ndsts = 1;
    tutti_cpu_reduce_by(&tutti_cpu_plain, &args);
    args.dsts = dsts;
    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (uint32_t ndsts = 1; ndsts <= MAX_DSTS && !kernels->is_reference; ndsts++)
            for (int stream = 0; stream < 2; stream++) {
                args.ndsts = ndsts;
                args.stream = stream;
                args.nkept = stream * (ndsts / 2); /* of one destination none, of more some */
                check_against_reference(kernels, &args, offset);
            }
}

static void every_variant_gives_the_reference_bits(void **state)
{
    (void)state;
    static const size_t offsets[] = {0, 1, 3};
    struct tutti_reduce_args args = {.scale = TUTTI_NO_SCALE};

    for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++) {
        fill_sources(args.type, MAX_SRCS, MAX_COUNT + MAX_OFFSET);
        for (args.op = 0; args.op < TUTTI_OP_COUNT && tutti_op_takes(args.op, args.type); args.op++)
            for (size_t n = 0; n < COUNT_OF(source_counts); n++)
                for (size_t c = 0; c < COUNT_OF(counts); c++)
                    for (size_t o = 0; o < COUNT_OF(offsets); o++) {
                        args.nsrcs = source_counts[n];
                        args.count = counts[c];
                        check_all_ways(args, offsets[o]);
                    }
    }
}

static void every_variant_scales_like_the_reference(void **state)
{
    (void)state;
    static const struct tutti_scale scales[] = {
        {1.0 / 3, 3}, {-0.5, 2}, {1e-3, 1000}, {1e300, INT64_MAX}, {0.0, 255},
    };
    struct tutti_reduce_args args = {.op = TUTTI_SUM};

    for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++) {
        fill_sources(args.type, MAX_SRCS, MAX_COUNT + MAX_OFFSET);
        for (args.nsrcs = 1; args.nsrcs <= 9 && tutti_type_is_scaled(args.type); args.nsrcs++)
            for (size_t s = 0; s < COUNT_OF(scales); s++) {
                args.scale = scales[s];
                args.count = s % 2 == 0 ? 1037 : 13;
                check_all_ways(args, s);
            }
    }
}

/* Every source in turn is also the destination, and the last one a second destination. */
static void reducing_exactly_in_place_gives_the_same_bits(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {1, 2, 3, 4, 5, 8, 11};
    struct tutti_reduce_args args = {.op = TUTTI_SUM, .count = 1301};
    const struct tutti_cpu_kernels *kernels;
    const void *srcs[MAX_SRCS];

    for (size_t k = 0; k < MAX_SRCS; k++)
        srcs[k] = sources[k];
    args.srcs = srcs;
    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++)
            for (size_t n = 0; n < COUNT_OF(numbers); n++)
                for (uint32_t place = 0; place < 4 * numbers[n]; place++) {
                    void *dsts[2] = {sources[place / 4], sources[numbers[n] - 1]};
                    void *first = expected;

                    args.scale = tutti_type_is_scaled(args.type)
                                     ? (struct tutti_scale){0.25, 4} : TUTTI_NO_SCALE;
                    fill_sources(args.type, numbers[n], args.count);
                    args.nsrcs = numbers[n];
                    args.stream = place % 2;
                    args.dsts = &first;
                    args.ndsts = 1;
                    tutti_cpu_plain_reduce(&args);
                    args.dsts = dsts;
                    args.ndsts = place / 4 + 1 < numbers[n] ? 1 + place / 2 % 2 : 1;
                    tutti_cpu_reduce_by(kernels, &args);
                    for (uint32_t k = 0; k < args.ndsts; k++)
                        if (first_difference(args.type, dsts[k], expected, args.count) < args.count)
                            fail_msg("%s, %s, %u sources, in place of %u", kernels->name,
                                     type_facts[args.type].name, args.nsrcs, place / 4);
                }
}

struct known {
    enum tutti_type type;
    enum tutti_op op;
    uint32_t nsrcs;
    uint64_t srcs[4];
    uint64_t result;
    const char *what;
};

static const struct known known_results[] = {
    {TUTTI_INT8, TUTTI_SUM, 2, {0x7f, 1}, 0x80, "int8 wraps"},
    {TUTTI_UINT8, TUTTI_PROD, 2, {16, 17}, 16, "uint8 wraps"},
    {TUTTI_INT16, TUTTI_PROD, 2, {0xffff, 0x8001}, 0x7fff, "int16 wraps"},
    {TUTTI_UINT16, TUTTI_PROD, 2, {0xffff, 0xffff}, 1, "uint16 wraps"},
    {TUTTI_INT16, TUTTI_MAX, 2, {0xffff, 5}, 5, "int16 is signed"},
    {TUTTI_UINT16, TUTTI_MIN, 2, {0xffff, 5}, 5, "uint16 is not"},
    {TUTTI_INT32, TUTTI_MAX, 3, {0xffffffff, 5, 0x80000000}, 5, "int32 is signed"},
    {TUTTI_UINT32, TUTTI_MAX, 3, {0xffffffff, 5, 0x80000000}, 0xffffffff, "uint32 is not"},
    {TUTTI_INT64, TUTTI_MIN, 2, {1, UINT64_MAX}, UINT64_MAX, "int64 is signed"},
    {TUTTI_UINT64, TUTTI_SUM, 2, {UINT64_MAX, 2}, 1, "uint64 wraps"},
    {TUTTI_INT8, TUTTI_BAND, 3, {0xf7, 0x7f, 0xfe}, 0x76, "and of bits"},
    {TUTTI_UINT16, TUTTI_BOR, 2, {0x8001, 0x0100}, 0x8101, "or of bits"},
    {TUTTI_INT32, TUTTI_BXOR, 3, {0xffff0000, 0x0ff00000, 1}, 0xf00f0001, "xor of bits"},
    {TUTTI_UINT64, TUTTI_BXOR, 2, {UINT64_MAX, UINT64_C(1) << 40}, ~(UINT64_C(1) << 40), "of 64"},
    {TUTTI_INT8, TUTTI_LAND, 2, {0x80, 0x02}, 1, "no common bit, but both are true"},
    {TUTTI_INT16, TUTTI_LAND, 3, {0x0100, 7, 0}, 0, "one is false"},
    {TUTTI_UINT32, TUTTI_LOR, 2, {0, 0x01000000}, 1, "one is true"},
    {TUTTI_INT64, TUTTI_LOR, 4, {0, 0, 0, INT64_MIN}, 1, "the highest bit counts"},
    {TUTTI_INT64, TUTTI_LOR, 2, {0, 0}, 0, "none is true"},
    {TUTTI_UINT8, TUTTI_LXOR, 2, {0x80, 0x02}, 0, "both are true"},
    {TUTTI_UINT16, TUTTI_LXOR, 3, {0x8000, 1, 2}, 1, "three are true"},
    {TUTTI_BOOL, TUTTI_SUM, 3, {1, 1, 0x80}, 1, "a sum of bool is an or"},
    {TUTTI_BOOL, TUTTI_PROD, 2, {2, 4}, 1, "a product of bool is an and"},
    {TUTTI_BOOL, TUTTI_MAX, 2, {0, 0xff}, 1, "so is the maximum an or"},
    {TUTTI_BOOL, TUTTI_MIN, 2, {1, 0}, 0, "and the minimum an and"},
    {TUTTI_BOOL, TUTTI_BAND, 2, {1, 2}, 1, "bitwise operations are logical"},
    {TUTTI_BOOL, TUTTI_BXOR, 2, {1, 2}, 0, "of two that are true"},
    {TUTTI_FLOAT32, TUTTI_SUM, 3, {0x4b800000, 0x3f800000, 0x3f800000}, 0x4b800000,
     "2^24 + 1 + 1 from the left is 2^24"},
    {TUTTI_FLOAT32, TUTTI_SUM, 3, {0x3f800000, 0x3f800000, 0x4b800000}, 0x4b800001,
     "1 + 1 + 2^24 is 2^24 + 2"},
    {TUTTI_FLOAT32, TUTTI_SUM, 2, {0x7f800000, 0xff800000}, 0x7fc00000, "inf - inf is NaN"},
    {TUTTI_FLOAT32, TUTTI_SUM, 2, {0xffabcdef, 0}, 0x7fc00000, "NaN is made canonical"},
    {TUTTI_FLOAT32, TUTTI_SUM, 2, {1, 1}, 2, "subnormals are not flushed"},
    {TUTTI_FLOAT32, TUTTI_MAX, 2, {0x80000000, 0}, 0, "+0 is the larger zero"},
    {TUTTI_FLOAT32, TUTTI_MIN, 2, {0, 0x80000000}, 0x80000000, "-0 is the smaller zero"},
    {TUTTI_FLOAT64, TUTTI_MIN, 2, {0, UINT64_C(1) << 63}, UINT64_C(1) << 63, "in float64 too"},
    {TUTTI_FLOAT16, TUTTI_MAX, 2, {0x8000, 0}, 0, "in float16 too"},
    {TUTTI_BFLOAT16, TUTTI_MIN, 2, {0, 0x8000}, 0x8000, "in bfloat16 too"},
    {TUTTI_FLOAT8E4M3, TUTTI_MAX, 2, {0x80, 0}, 0, "in E4M3 too"},
    {TUTTI_FLOAT8E5M2, TUTTI_MIN, 2, {0, 0x80}, 0x80, "in E5M2 too"},
    {TUTTI_FLOAT32, TUTTI_MAX, 2, {0xff800000, 0xff7fffff}, 0xff7fffff, "-inf is the least"},
    {TUTTI_FLOAT32, TUTTI_MIN, 2, {0x7f800000, 0x7f7fffff}, 0x7f7fffff, "inf is the most"},
    {TUTTI_BFLOAT16, TUTTI_MAX, 2, {0xff81, 0x7f80}, 0x7fc0, "max propagates negative NaN"},
    {TUTTI_FLOAT8E4M3, TUTTI_MIN, 2, {0xff, 0xfe}, 0x7f, "min propagates negative NaN"},
    {TUTTI_FLOAT64, TUTTI_MAX, 3, {0, UINT64_C(0xfff8000000000001), 0},
     UINT64_C(0x7ff8000000000000), "max propagates NaN"},
    {TUTTI_FLOAT64, TUTTI_PROD, 2, {UINT64_C(0x4000000000000000), UINT64_C(0x3ff8000000000000)},
     UINT64_C(0x4008000000000000), "2 * 1.5 is 3"},
    {TUTTI_FLOAT16, TUTTI_SUM, 3, {0x6800, 0x3c00, 0x3c00}, 0x6801,
     "2048 + 1 + 1 in float16 is rounded once"},
    {TUTTI_FLOAT16, TUTTI_SUM, 3, {0x7bff, 0x7bff, 0xfbff}, 0x7bff,
     "float16 overflows only at the end"},
    {TUTTI_FLOAT16, TUTTI_MIN, 2, {0x7c01, 0}, 0x7e00, "min propagates NaN"},
    {TUTTI_BFLOAT16, TUTTI_SUM, 3, {0x4380, 0x3f80, 0x3f80}, 0x4381,
     "256 + 1 + 1 in bfloat16 is rounded once"},
    {TUTTI_BFLOAT16, TUTTI_PROD, 2, {0x7f7f, 0x4000}, 0x7f80, "bfloat16 overflows to infinity"},
    {TUTTI_FLOAT8E4M3, TUTTI_PROD, 2, {0x7e, 0xfe}, 0xfe, "E4M3 saturates"},
    {TUTTI_FLOAT8E4M3, TUTTI_SUM, 2, {0xff, 0}, 0x7f, "E4M3 keeps NaN"},
    {TUTTI_FLOAT8E5M2, TUTTI_SUM, 2, {0x7b, 0x7b}, 0x7c, "E5M2 overflows to infinity"},
};

static void known_results_come_out_of_every_variant(void **state)
{
    (void)state;
    enum { COUNT = 67 };
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (size_t c = 0; c < COUNT_OF(known_results); c++) {
            const struct known *known = &known_results[c];
            const size_t size = tutti_type_size(known->type);
            const void *srcs[4] = {sources[0], sources[1], sources[2], sources[3]};
            void *dst = results[0];
            const struct tutti_reduce_args args = {
                .type = known->type, .op = known->op, .nsrcs = known->nsrcs, .ndsts = 1,
                .srcs = srcs, .dsts = &dst, .count = COUNT, .scale = TUTTI_NO_SCALE,
            };

            for (size_t i = 0; i < COUNT; i++)
                for (uint32_t k = 0; k < known->nsrcs; k++)
                    memcpy(sources[k] + i * size, &known->srcs[k], size);
            tutti_cpu_reduce_by(kernels, &args);
            for (size_t i = 0; i < COUNT; i++)
                if (bits_at(known->type, dst, i) != known->result)
                    fail_msg("%s: %s: [%zu] is %#llx, want %#llx", kernels->name, known->what, i,
                             bits_at(known->type, dst, i), (unsigned long long)known->result);
        }
}

static void two_sources_without_ceremony_give_the_reference_bits(void **state)
{
    (void)state;
    const void *srcs[2] = {sources[0], sources[1]};
    void *dst = expected;
    struct tutti_reduce_args args = {
        .nsrcs = 2, .ndsts = 1, .srcs = srcs, .dsts = &dst, .scale = TUTTI_NO_SCALE,
    };

    for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++) {
        fill_sources(args.type, MAX_SRCS, MAX_COUNT + MAX_OFFSET);
        for (args.op = 0; args.op < TUTTI_OP_COUNT && tutti_op_takes(args.op, args.type); args.op++)
            for (args.count = 0; args.count <= 40; args.count++) {
                tutti_cpu_plain_reduce(&args);
                tutti_cpu_reduce2(args.type, args.op, results[0], srcs[0], srcs[1], args.count);
                assert_int_equal(first_difference(args.type, results[0], expected, args.count),
                                 args.count);
            }
    }
}

/* Zeros, subnormals, ones, the largest, infinities and NaN: each against each, in both signs. */
static void fill_special_pairs(enum tutti_type type, void *a, void *b)
{
    const unsigned bits = 8 * (unsigned)tutti_type_size(type);
    const unsigned fraction_bits = type_facts[type].fraction_bits;
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    const uint64_t special = sign - (UINT64_C(1) << fraction_bits);
    const uint64_t values[] = {
        0, 1, UINT64_C(1) << fraction_bits, special / 2, special - 1, special, special + 1,
        special | (UINT64_C(1) << fraction_bits >> 1), sign - 1,
    };
    const size_t count = 2 * COUNT_OF(values), size = bits / 8;

    for (size_t i = 0; i < count * count; i++) {
        const uint64_t x = values[i / count / 2] | (i / count % 2 ? sign : 0);
        const uint64_t y = values[i % count / 2] | (i % 2 ? sign : 0);

        memcpy((char *)a + i * size, &x, size);
        memcpy((char *)b + i * size, &y, size);
    }
}

/* Ranks combine in different orders and must agree. Pairs of the special values first, then random
 * ones; every other call has a count that leaves a rest. */
static void every_operation_on_two_sources_is_commutative(void **state)
{
    (void)state;
    const struct tutti_cpu_kernels *kernels;

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (enum tutti_type type = 0; type < TUTTI_TYPE_COUNT; type++)
            for (unsigned round = 0; round < 8 * TUTTI_OP_COUNT; round++) {
                const enum tutti_op op = op_for(type, round);
                const void *srcs[2] = {sources[0], sources[1]};
                const void *swapped[2] = {sources[1], sources[0]};
                void *dst = expected, *swapped_dst = results[0];
                struct tutti_reduce_args args = {
                    .type = type, .op = op, .nsrcs = 2, .ndsts = 1, .srcs = srcs, .dsts = &dst,
                    .count = MAX_COUNT - round % 2, .scale = TUTTI_NO_SCALE,
                };
                size_t i;

                fill_elements(type, sources[0], MAX_COUNT, 2 * round);
                fill_elements(type, sources[1], MAX_COUNT, 2 * round + 1);
                fill_special_pairs(type, sources[0], sources[1]);
                tutti_cpu_reduce_by(kernels, &args);
                args.srcs = swapped;
                args.dsts = &swapped_dst;
                tutti_cpu_reduce_by(kernels, &args);
                i = first_difference(type, dst, swapped_dst, args.count);
                if (i < args.count)
                    fail_msg("%s, %s, op %d: %#llx and %#llx give %#llx, swapped %#llx",
                             kernels->name, type_facts[type].name, op,
                             bits_at(type, sources[0], i), bits_at(type, sources[1], i),
                             bits_at(type, dst, i), bits_at(type, swapped_dst, i));
            }
}

/* Whatever a NaN or a value beyond a boundary has for neighbors in its vector must not matter. */
static void a_lone_nan_changes_nothing_but_its_own_element(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    const struct tutti_cpu_kernels *kernels;
    const void *srcs[3] = {sources[0], sources[1], sources[2]};
    void *dst = expected;
    struct tutti_reduce_args args = {
        .nsrcs = 3, .ndsts = 1, .srcs = srcs, .count = COUNT, .scale = {0.5, 2},
    };

    for (size_t isa = 0; (kernels = tutti_cpu_available(isa)) != NULL; isa++)
        for (args.type = 0; args.type < TUTTI_TYPE_COUNT; args.type++)
            for (args.op = 0; args.op <= TUTTI_MIN && tutti_type_is_floating(args.type); args.op++)
                for (size_t at = 0; at < COUNT; at++) {
                    const size_t size = tutti_type_size(args.type);

                    memset(sources, 0x31, COUNT * size);
                    memset(sources[1], 0xb2, COUNT * size);
                    memset(sources[2], 0x33, COUNT * size);
                    memset(sources[at % 3] + at * size, 0xff, size);
                    dst = expected;
                    args.dsts = &dst;
                    tutti_cpu_plain_reduce(&args);
                    dst = results[0];
                    tutti_cpu_reduce_by(kernels, &args);
                    if (first_difference(args.type, dst, expected, COUNT) < COUNT)
                        fail_msg("%s, %s, op %d: NaN at %zu", kernels->name,
                                 type_facts[args.type].name, args.op, at);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_results_come_out_of_every_variant),
        cmocka_unit_test(every_variant_gives_the_reference_bits),
        cmocka_unit_test(every_variant_scales_like_the_reference),
        cmocka_unit_test(reducing_exactly_in_place_gives_the_same_bits),
        cmocka_unit_test(every_operation_on_two_sources_is_commutative),
        cmocka_unit_test(a_lone_nan_changes_nothing_but_its_own_element),
        cmocka_unit_test(two_sources_without_ceremony_give_the_reference_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
