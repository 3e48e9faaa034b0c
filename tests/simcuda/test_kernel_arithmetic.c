/* SPDX-License-Identifier: Apache-2.0
 * Kernels and CPUs compute the same bits: reductions, scalings, conversions and copies over types,
 * operations, sources, destinations, counts, alignments and places.
 *
 * Every case is laid out in one block of memory. The functions of the CPU work on a copy of it.
 * Afterwards both are compared whole, so nothing was written beside the destinations. */
#include "simcuda/runner.h"
#include "unit/device/elements.h"

#include "device/cpu/cpu.h"
#include "device/cuda/local.h"

#include <stdlib.h>

enum { MOST_SRCS = 64, MOST_DSTS = 3, MOST_COUNT = 1037, GUARD_BYTES = 32 };
enum { STRIDE_BYTES = (MOST_COUNT + 16) * 8 + 2 * GUARD_BYTES };
enum { POINTERS_AT = (MOST_SRCS + MOST_DSTS) * STRIDE_BYTES };
enum { ARENA_BYTES = POINTERS_AT + (MOST_SRCS + MOST_DSTS) * 8 };

static uint8_t arena[ARENA_BYTES] __attribute__((aligned(256)));
static uint8_t result[ARENA_BYTES] __attribute__((aligned(256)));
static uint8_t multiplied[STRIDE_BYTES] __attribute__((aligned(16)));

/* ---- one reduction --------------------------------------------------------------------------- */

/* Where its buffers are in the arena. */
struct trial {
    struct tutti_kernel_reduction job;
    size_t srcs[MOST_SRCS], dsts[MOST_DSTS];
    uint32_t blocks, threads;
};

static void expect(const struct trial *trial)
{
    const struct tutti_kernel_reduction *job = &trial->job;
    const void *srcs[MOST_SRCS];
    void *dsts[MOST_DSTS];
    struct tutti_reduce_args args = {
        .type = job->type, .op = job->op, .nsrcs = job->nsrcs, .ndsts = job->ndsts, .srcs = srcs,
        .dsts = dsts, .count = job->count, .scale = job->scale,
    };

    for (uint32_t k = 0; k < job->nsrcs; k++)
        srcs[k] = arena + trial->srcs[k];
    for (uint32_t k = 0; k < job->ndsts; k++)
        dsts[k] = arena + trial->dsts[k];
    if (job->premultiplied < job->nsrcs) {
        tutti_cpu_premultiply(job->type, multiplied, srcs[job->premultiplied], job->count,
                              &job->scalar);
        srcs[job->premultiplied] = multiplied;
    }
    tutti_cpu_reduce(&args);
}

static void launch(const struct trial *trial)
{
    const uint64_t base = runner_memory(ARENA_BYTES);
    _Alignas(16) struct tutti_kernel_reduce_argument argument = {.job = trial->job};
    uint64_t addresses[MOST_SRCS + MOST_DSTS];
    uint32_t nsrcs = trial->job.nsrcs, n = nsrcs + trial->job.ndsts;

    for (uint32_t k = 0; k < nsrcs; k++)
        addresses[k] = base + trial->srcs[k];
    for (uint32_t k = nsrcs; k < n; k++)
        addresses[k] = base + trial->dsts[k - nsrcs];
    memcpy(arena + POINTERS_AT, addresses, sizeof addresses[0] * n);
    if (n <= TUTTI_KERNEL_INLINE_POINTERS) {
        memcpy(argument.pointers, addresses, sizeof addresses[0] * n);
    } else {
        argument.job.srcs = (const void *const *)(uintptr_t)(base + POINTERS_AT);
        argument.job.dsts = (void *const *)(uintptr_t)(base + POINTERS_AT + 8 * nsrcs);
    }
    runner_upload(0, arena, ARENA_BYTES);
    runner_launch("tutti_kernel_reduce", trial->blocks, trial->threads, &argument, sizeof argument);
    runner_download(result, 0, ARENA_BYTES);
}

static void check(const struct trial *trial)
{
    const struct tutti_kernel_reduction *job = &trial->job;
    size_t i = 0;

    launch(trial);
    expect(trial);
    if (memcmp(arena, result, ARENA_BYTES) == 0)
        return;
    for (uint32_t k = 0; k < job->ndsts; k++) {
        i = first_difference(job->type, result + trial->dsts[k], arena + trial->dsts[k],
                             job->count);
        if (i < job->count)
            fail_msg("%s, op %u, %u sources (one multiplied: %d), %llu elements, scale %g %lld, "
                     "%u threads: [%zu] of destination %u at %zu is %#llx, want %#llx",
                     type_facts[job->type].name, job->op, job->nsrcs, (int)job->premultiplied,
                     (unsigned long long)job->count, job->scale.multiply,
                     (long long)job->scale.divide, trial->blocks * trial->threads, i, k,
                     trial->dsts[k], bits_at(job->type, result + trial->dsts[k], i),
                     bits_at(job->type, arena + trial->dsts[k], i));
    }
    while (arena[i] == result[i])
        i++;
    fail_msg("%s, op %u, %u sources, %llu elements: byte %zu beside the destinations was written",
             type_facts[job->type].name, job->op, job->nsrcs, (unsigned long long)job->count, i);
}

/* ---- many of them ---------------------------------------------------------------------------- */

static uint32_t pick(uint64_t *state, uint32_t below)
{
    return (uint32_t)(next_random(state) % below);
}

static void fill_arena(enum tutti_type type, uint64_t seed)
{
    fill_elements(type, arena, POINTERS_AT / tutti_type_size(type), seed);
}

/* Buffers of any alignment, the same for all or each its own, some destinations in place. */
static void place(struct trial *trial, uint64_t *state)
{
    const size_t size = tutti_type_size(trial->job.type);
    const uint32_t steps = (uint32_t)(16 / size);
    const uint32_t common = pick(state, steps), is_alike = pick(state, 3) != 0;
    const uint32_t nsrcs = trial->job.nsrcs, first = pick(state, nsrcs);

    for (uint32_t k = 0; k < nsrcs; k++)
        trial->srcs[k] = k * (size_t)STRIDE_BYTES + GUARD_BYTES +
                         (is_alike ? common : pick(state, steps)) * size;
    for (uint32_t k = 0; k < trial->job.ndsts; k++)
        trial->dsts[k] = (MOST_SRCS + k) * (size_t)STRIDE_BYTES + GUARD_BYTES +
                         (is_alike ? common : pick(state, steps)) * size;
    if (pick(state, 3) == 0)
        trial->dsts[0] = trial->srcs[first];
    if (trial->job.ndsts > 1 && nsrcs > 1 && pick(state, 3) == 0)
        trial->dsts[1] = trial->srcs[(first + 1) % nsrcs];
}

static void check_any(struct tutti_kernel_reduction job, uint64_t *state)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 7, 15, 16, 17, 63, 64, 257, 1000, MOST_COUNT};
    struct trial trial = {.job = job};

    trial.job.count = counts[pick(state, COUNT_OF(counts))];
    trial.job.ndsts = 1 + pick(state, 4) % MOST_DSTS;
    trial.blocks = 1 + pick(state, runner_most_blocks());
    trial.threads = 32 * (1 + pick(state, runner_most_threads() / 32));
    place(&trial, state);
    check(&trial);
}

static const uint32_t source_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 64};

static const struct tutti_kernel_reduction plain_sum = {
    .op = TUTTI_SUM, .scale = {1.0, 1}, .premultiplied = TUTTI_KERNEL_NO_SOURCE,
};

static void reductions_give_the_bits_of_processors(void **unused)
{
    struct tutti_kernel_reduction job = plain_sum;
    uint64_t state = 1;

    (void)unused;
    for (job.type = 0; job.type < TUTTI_TYPE_COUNT; job.type++) {
        fill_arena(job.type, job.type + 100);
        for (job.op = 0; job.op < TUTTI_OP_COUNT; job.op++)
            for (size_t n = 0; n < COUNT_OF(source_counts); n++)
                for (int again = 0; again < 4; again++) {
                    job.nsrcs = source_counts[n];
                    check_any(job, &state);
                }
    }
}

static void scaled_reductions_give_the_bits_of_processors(void **unused)
{
    static const struct tutti_scale scales[] = {
        {1.0 / 3, 3}, {-0.5, 2}, {1e-3, 1000}, {1e300, INT64_MAX}, {0.0, 255}, {1.0, 1},
    };
    struct tutti_kernel_reduction job = plain_sum;
    uint64_t state = 2;

    (void)unused;
    for (job.type = 0; job.type < TUTTI_TYPE_COUNT; job.type++) {
        fill_arena(job.type, job.type + 200);
        for (size_t s = 0; s < COUNT_OF(scales); s++)
            for (size_t n = 0; n < COUNT_OF(source_counts); n++) {
                job.op = pick(&state, 4) == 0 ? pick(&state, TUTTI_OP_COUNT) : TUTTI_SUM;
                job.scale = scales[s];
                job.nsrcs = source_counts[n];
                check_any(job, &state);
            }
    }
}

static void a_source_may_be_multiplied_first(void **unused)
{
    struct tutti_kernel_reduction job = plain_sum;
    uint64_t state = 3;

    (void)unused;
    for (job.type = 0; job.type < TUTTI_TYPE_COUNT; job.type++) {
        fill_arena(job.type, job.type + 300);
        for (size_t n = 0; n < COUNT_OF(source_counts); n++)
            for (int again = 0; again < 4; again++) {
                job.nsrcs = source_counts[n];
                job.premultiplied = pick(&state, job.nsrcs);
                job.scalar = random_element(job.type, &state);
                job.op = again == 3 ? TUTTI_MAX : TUTTI_SUM;
                job.scale = again == 2 ? (struct tutti_scale){0.25, 4} : plain_sum.scale;
                check_any(job, &state);
            }
    }
}

/* ---- all there is ---------------------------------------------------------------------------- */

/* Two sources and a destination, one behind the other. */
static void check_large(enum tutti_type type, enum tutti_op op, uint8_t *memory, size_t count)
{
    const size_t bytes = count * tutti_type_size(type);
    const uint64_t base = runner_memory(3 * bytes);
    _Alignas(16) struct tutti_kernel_reduce_argument argument = {
        .job = {.type = type, .op = op, .nsrcs = 2, .ndsts = 1, .count = count, .scale = {1.0, 1},
                .premultiplied = TUTTI_KERNEL_NO_SOURCE},
        .pointers = {(void *)(uintptr_t)base, (void *)(uintptr_t)(base + bytes),
                     (void *)(uintptr_t)(base + 2 * bytes)},
    };
    uint8_t *got = malloc(bytes);
    size_t i;

    assert_non_null(got);
    tutti_cpu_reduce2(type, op, memory + 2 * bytes, memory, memory + bytes, count);
    runner_upload(0, memory, 2 * bytes);
    runner_launch("tutti_kernel_reduce", runner_most_blocks(), runner_most_threads(), &argument,
                  sizeof argument);
    runner_download(got, 2 * bytes, bytes);
    i = first_difference(type, got, memory + 2 * bytes, count);
    if (i < count)
        fail_msg("%s, op %d: %#llx and %#llx are %#llx, want %#llx", type_facts[type].name, op,
                 bits_at(type, memory, i), bits_at(type, memory + bytes, i), bits_at(type, got, i),
                 bits_at(type, memory + 2 * bytes, i));
    free(got);
}

static void all_pairs_of_8_bits_give_the_bits_of_processors(void **unused)
{
    static const enum tutti_type types[] = {TUTTI_INT8, TUTTI_UINT8, TUTTI_FLOAT8E4M3,
                                            TUTTI_FLOAT8E5M2};
    const size_t count = 65536;
    uint8_t *memory = malloc(3 * count);

    (void)unused;
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++) {
        memory[i] = (uint8_t)i;
        memory[count + i] = (uint8_t)(i >> 8);
    }
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (uint32_t op = 0; op < TUTTI_OP_COUNT; op++)
            check_large(types[t], op, memory, count);
    free(memory);
}

/* With each other, those that are special and some that are not. */
static void all_codes_of_16_bits_give_the_bits_of_processors(void **unused)
{
    static const enum tutti_type types[] = {TUTTI_FLOAT16, TUTTI_BFLOAT16};
    static const uint16_t others[] = {
        0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x7f, 0x80, 0x400, 0x3c00, 0xbc01, 0x3f80, 0x4049,
        0x7bff, 0xfbff, 0x7f7f, 0xff7f, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7e00, 0xffff, 0x7fc0,
    };
    const size_t count = 65536 * COUNT_OF(others);
    uint16_t *memory = malloc(3 * count * sizeof *memory);

    (void)unused;
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++) {
        memory[i] = (uint16_t)i;
        memory[count + i] = others[i / 65536];
    }
    for (size_t t = 0; t < COUNT_OF(types); t++)
        for (uint32_t op = 0; op < TUTTI_OP_COUNT; op++)
            check_large(types[t], op, (uint8_t *)memory, count);
    free(memory);
}

/* ---- conversions ----------------------------------------------------------------------------- */

static const enum tutti_type narrow_types[] = {TUTTI_FLOAT16, TUTTI_BFLOAT16, TUTTI_FLOAT8E4M3,
                                               TUTTI_FLOAT8E5M2};

/* From `src` to `dst`, of `count` elements that are somewhere in a piece of memory. */
static void convert(struct tutti_kernel_conversion job, const void *src, size_t src_at, void *dst,
                    size_t dst_at, size_t total_bytes)
{
    const size_t from_bytes = job.is_widening ? tutti_type_size(job.type) : 4;
    const size_t to_bytes = job.is_widening ? 4 : tutti_type_size(job.type);
    const uint64_t base = runner_memory(total_bytes);
    _Alignas(16) struct tutti_kernel_conversion argument = job;

    argument.src = (const void *)(uintptr_t)(base + src_at);
    argument.dst = (void *)(uintptr_t)(base + dst_at);
    runner_upload(src_at, src, job.count * from_bytes);
    runner_launch("tutti_kernel_convert", runner_most_blocks(), runner_most_threads(), &argument,
                  sizeof argument);
    runner_download(dst, dst_at, job.count * to_bytes);
}

static void check_widening(enum tutti_type type, size_t count, size_t skipped, float multiply)
{
    const size_t size = tutti_type_size(type), dst_at = (count * size + 255) / 256 * 256;
    uint8_t *codes = malloc(count * size + 1);
    float *want = malloc(count * 4 + 4), *got = malloc(count * 4 + 4);
    const struct tutti_kernel_conversion job = {
        .type = type, .is_widening = 1, .count = count, .multiply = multiply,
    };

    for (size_t i = 0; i < count * size; i++)
        codes[i] = (uint8_t)(i / size >> i % size * 8);
    tutti_cpu_widen(type, want, codes, count, multiply);
    convert(job, codes, skipped * size, got, dst_at + 256 + skipped / 2 * 4,
            dst_at + count * 4 + 1024);
    if (memcmp(got, want, count * 4) != 0) {
        const size_t i = first_difference(TUTTI_FLOAT32, got, want, count);

        fail_msg("%s %#llx by %g: %a, want %a", type_facts[type].name, bits_at(type, codes, i),
                 (double)multiply, (double)got[i], (double)want[i]);
    }
    free(codes);
    free(want);
    free(got);
}

static void every_code_widens_as_on_processors(void **unused)
{
    (void)unused;
    for (size_t t = 0; t < COUNT_OF(narrow_types); t++) {
        const size_t count = (size_t)1 << 8 * tutti_type_size(narrow_types[t]);

        check_widening(narrow_types[t], count, 0, 1.0f);
        check_widening(narrow_types[t], count, 0, -0.3f);
        check_widening(narrow_types[t], count - 3, 5, 1.0f);
        for (size_t few = 0; few < 10; few++)
            check_widening(narrow_types[t], few, few % 4, 1.0f);
    }
}

static void check_narrowing(enum tutti_type type, const float *values, size_t count, size_t skipped,
                            float multiply)
{
    const size_t size = tutti_type_size(type), dst_at = (count * 4 + 255) / 256 * 256;
    uint8_t *want = malloc(count * size + 1), *got = malloc(count * size + 1);
    const struct tutti_kernel_conversion job = {.type = type, .count = count, .multiply = multiply};

    tutti_cpu_narrow(type, want, values, count, multiply);
    convert(job, values, skipped * 4, got, dst_at + 256 + skipped / 2 * size,
            dst_at + count * size + 1024);
    if (memcmp(got, want, count * size) != 0) {
        const size_t i = first_difference(type, got, want, count);

        fail_msg("%a by %g as %s: %#llx, want %#llx", (double)values[i], (double)multiply,
                 type_facts[type].name, bits_at(type, got, i), bits_at(type, want, i));
    }
    free(want);
    free(got);
}

/* All float32 of some lower halves: those beside the boundaries where any of the types rounds. */
static void float32_narrows_as_on_processors(void **unused)
{
    static const uint32_t lower_halves[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x2fff, 0x3000,
                                            0x3001, 0x7fff, 0x8000, 0x8001, 0xffff};
    const size_t count = 65536 * COUNT_OF(lower_halves);
    float *values = malloc(count * sizeof *values);

    (void)unused;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)(i / COUNT_OF(lower_halves) << 16) |
                              lower_halves[i % COUNT_OF(lower_halves)];

        memcpy(&values[i], &bits, sizeof bits);
    }
    for (size_t t = 0; t < COUNT_OF(narrow_types); t++) {
        check_narrowing(narrow_types[t], values, count, 0, 1.0f);
        check_narrowing(narrow_types[t], values, 4099, 3, 0.1f);
        for (size_t few = 0; few < 10; few++)
            check_narrowing(narrow_types[t], values + 12 * 16256, few, few % 4, 1.0f);
    }
    free(values);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copies_are_exact_at_any_alignment(void **unused)
{
    static const uint32_t sizes[] = {0, 1, 15, 16, 17, 100, 4096, 20001};
    const uint64_t base = runner_memory(ARENA_BYTES);
    uint64_t state = 4;

    (void)unused;
    fill_arena(TUTTI_UINT8, 5);
    for (uint32_t i = 0; i < 300; i++) {
        const uint32_t size = sizes[pick(&state, COUNT_OF(sizes))];
        const uint32_t from = pick(&state, 33), alike = 65536 + 64 + from % 16;
        const uint32_t to = i % 10 == 0 ? from : i % 3 == 0 ? alike : 65536 + pick(&state, 33);
        const _Alignas(16) struct tutti_kernel_copy_argument argument = {
            (const void *)(uintptr_t)(base + from), (void *)(uintptr_t)(base + to), size,
        };

        runner_upload(0, arena, ARENA_BYTES);
        runner_launch("tutti_kernel_copy", 1 + pick(&state, runner_most_blocks()),
                      32 * (1 + pick(&state, runner_most_threads() / 32)), &argument,
                      sizeof argument);
        runner_download(result, 0, ARENA_BYTES);
        memmove(arena + to, arena + from, size);
        assert_memory_equal(result, arena, ARENA_BYTES);
    }
}

static void a_kernel_may_do_nothing(void **unused)
{
    const _Alignas(16) struct tutti_kernel_empty_argument argument = {0};

    (void)unused;
    runner_launch("tutti_kernel_empty", 1, 32, &argument, sizeof argument);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_may_do_nothing),
        cmocka_unit_test(reductions_give_the_bits_of_processors),
        cmocka_unit_test(scaled_reductions_give_the_bits_of_processors),
        cmocka_unit_test(a_source_may_be_multiplied_first),
        cmocka_unit_test(all_pairs_of_8_bits_give_the_bits_of_processors),
        cmocka_unit_test(all_codes_of_16_bits_give_the_bits_of_processors),
        cmocka_unit_test(every_code_widens_as_on_processors),
        cmocka_unit_test(float32_narrows_as_on_processors),
        cmocka_unit_test(copies_are_exact_at_any_alignment),
    };
    int rc;

    if (!runner_open())
        return 77; /* ctest's skip; the runner has said why */
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    runner_close();
    return rc;
}
