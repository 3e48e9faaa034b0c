/* SPDX-License-Identifier: Apache-2.0
 * Runs the interpreter of schedules on the simulated machine. Every algorithm gives the result of
 * its steps, byte for byte. */
#include "base/result.h"
#include "schedule/variants.h"
#include "simcuda/launch.h"
#include "simcuda/scene.h"
#include "unit/device/elements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Slots and windows are so small that all calls except the smallest need many. */
static const struct domain_sizes small = {
    .channels = 6, .slots = 2, .slot_bytes = 256, .flagged_bytes = 256, .window_bytes = 65536,
    .arena_bytes = 1 << 19};
static const struct tutti_cuda_grid two_blocks = {
    .nblocks = 2, .least_piece_bytes = 512, .least_share_bytes = 256};

static uint64_t seed;

/* The types and operations are used in rotation. */
static struct scene next_scene(const struct tutti_algorithm *algorithm,
                               const struct tutti_shape *shape, size_t count)
{
    bool reduces = tutti_collective_reduces(algorithm->collective);
    uint64_t next = ++seed;
    struct scene scene = {.algorithm = algorithm, .shape = *shape, .count = count, .seed = next,
                          .type = (enum tutti_type)(next % TUTTI_TYPE_COUNT)};

    /* Kernels refuse to widen the buffers of peers. */
    if (algorithm->sums_in_stages && (algorithm->needs & TUTTI_NEEDS_PEER_STORE) &&
        tutti_type_is_narrow_float(scene.type))
        scene.type = TUTTI_FLOAT32;
    if (tutti_collective_has_root(algorithm->collective))
        scene.shape.root = (uint32_t)(seed % shape->nranks);
    if (algorithm->collective == TUTTI_BARRIER)
        scene.count = 0;
    if (reduces) {
        scene.op = op_for(scene.type, seed / 3);
        bool may_scale = scene.op == TUTTI_SUM && tutti_type_is_scaled(scene.type);

        scene.is_average = may_scale && seed % 2 == 0;
        scene.is_premultiplied = may_scale && !scene.is_average;
        scene.reads_scalar = seed % 8 < 4;
    }
    scene.is_in_place = seed % 5 < 2;
    return scene;
}

static bool is_for(const struct tutti_algorithm *algorithm, uint32_t uses)
{
    return (algorithm->uses & uses) != 0;
}

static void play(struct stage *stage, const struct scene *scene)
{
    if (!scene_play(stage, scene))
        fail_msg("%s cannot be run", scene_name(scene));
}

static void every_algorithm_gives_the_same_bits(void **state)
{
    static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
    const size_t nnumbers = DOMAIN_MATRIX_RANKS < 8 ? 5 : COUNT_OF(numbers);
    static const size_t counts[] = {5, 700, 1, 131, 0};

    (void)state;
    for (size_t n = 0; n < nnumbers; n++) {
        struct stage stage;

        stage_open(&stage, numbers[n], &two_blocks, &small, 32);
        for (size_t a = 0; a < tutti_algorithm_count(); a++) {
            struct tutti_shape shape = {.nranks = numbers[n]};

            for (size_t i = (a + n) % 4; i < COUNT_OF(counts); i += numbers[n] > 6 ? 5 : 2) {
                struct scene scene = next_scene(tutti_algorithm(a), &shape, counts[i]);

                play(&stage, &scene);
            }
        }
        stage_close(&stage);
    }
}

/* Options, nodes, cells, rings, trees: one after the other, with 6 ranks. */
static void variants_of_algorithms_give_the_same_bits(void **state)
{
    const uint32_t nranks = 6;
    struct stage stage;

    (void)state;
    stage_open(&stage, nranks, &two_blocks, &small, 32);
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(a);
        size_t step = is_for(algorithm, TUTTI_USES_CELLS) ? 1 : 3;

        for (size_t index = 1 + a % step; index < variants_count(algorithm); index += step) {
            struct variant variant;
            struct scene scene;

            variant_create(algorithm, index, nranks, &variant);
            scene = next_scene(algorithm, &variant.shape, 150);
            play(&stage, &scene);
            variant_destroy(&variant);
        }
    }
    stage_close(&stage);
}

static void blocks_may_differ_in_size(void **state)
{
    (void)state;
    for (uint32_t nranks = 1; nranks <= 5; nranks++) {
        struct stage stage;

        stage_open(&stage, nranks, &two_blocks, &small, 32);
        for (size_t a = 0; a < tutti_algorithm_count(); a++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(a);
            struct tutti_shape shape = {.nranks = nranks};
            /* Inputs that peers read must lie packed. */
            bool reads = algorithm->collective != TUTTI_ALLGATHER && nranks > 1 &&
                         (algorithm->needs & TUTTI_NEEDS_WINDOW) == 0 && algorithm->needs != 0;
            struct scene scene;

            if (!algorithm->serves_vector || tutti_collective_has_root(algorithm->collective) ||
                (algorithm->collective != TUTTI_ALLGATHER &&
                 algorithm->collective != TUTTI_REDUCE_SCATTER &&
                 algorithm->collective != TUTTI_ALLTOALL))
                continue;
            scene = next_scene(algorithm, &shape, 60);
            scene.is_vector = true;
            assert_int_equal(scene_play(&stage, &scene), !reads);
        }
        stage_close(&stage);
    }
}

/* One slot, no flags: a rank that waits in a send while it could receive would wait forever. */
static void one_slot_is_enough(void **state)
{
    struct domain_sizes sizes = small;
    struct stage stage;

    (void)state;
    sizes.slots = 1;
    sizes.slot_bytes = 128;
    sizes.flagged_bytes = 0;
    stage_open(&stage, 5, &two_blocks, &sizes, 32);
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        struct tutti_shape shape = {.nranks = 5};
        struct scene scene = next_scene(tutti_algorithm(a), &shape, 300);

        play(&stage, &scene);
    }
    stage_close(&stage);
}

/* Windows so small that each block goes through them many times in one call. */
static void windows_are_used_again_and_again(void **state)
{
    struct domain_sizes sizes = small;
    struct stage stage;

    (void)state;
    sizes.window_bytes = 1 << 13;
    stage_open(&stage, 4, &two_blocks, &sizes, 32);
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (int late = 0; late < 2; late++) {
            struct tutti_shape shape = {.nranks = 4};
            struct scene scene = next_scene(tutti_algorithm(a), &shape, 2100);

            if (tutti_algorithm(a)->needs == 0)
                continue;
            sim_weak_set(late == 0 ? 0 : seed);
            play(&stage, &scene);
        }
    sim_weak_set(0);
    stage_close(&stage);
}

/* Each takes from its next rank by the window, and from the others by messages. */
static int emit_mixed(const struct tutti_shape *shape, struct tutti_build *build)
{
    const uint32_t me = shape->rank, p = shape->nranks;
    const struct tutti_span own = tutti_span(TUTTI_BUF_INPUT, 0, 1);

    tutti_build_window(build, 1);
    tutti_build_signals(build, 1);
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_OUTPUT, me, 1)));
    TUTTI_TRY(tutti_build_copy(build, own, tutti_span(TUTTI_BUF_WINDOW, 0, 1)));
    TUTTI_TRY(tutti_build_signal(build));
    for (uint32_t i = 1; i + 1 < p; i++)
        TUTTI_TRY(tutti_build_send(build, (me + i) % p, tutti_span(TUTTI_BUF_OUTPUT, me, 1)));
    for (uint32_t i = 1; i + 1 < p; i++)
        TUTTI_TRY(tutti_build_recv(build, (me + p - i) % p,
                                   tutti_span(TUTTI_BUF_OUTPUT, (me + p - i) % p, 1)));
    TUTTI_TRY(tutti_build_wait(build, (int32_t)((me + 1) % p), 1));
    return tutti_build_get(build, (me + 1) % p, tutti_span(TUTTI_BUF_WINDOW, 0, 1),
                           tutti_span(TUTTI_BUF_OUTPUT, (me + 1) % p, 1));
}

static void messages_and_windows_may_mix(void **state)
{
    static const struct tutti_algorithm mixed = {
        .name = "mixed", .collective = TUTTI_ALLGATHER, .needs = TUTTI_NEEDS_WINDOW,
        .emit = emit_mixed};
    struct domain_sizes sizes = small;

    (void)state;
    sizes.window_bytes = 1 << 13;
    for (uint32_t nranks = 2; nranks <= 5; nranks++) {
        struct tutti_shape shape = {.nranks = nranks};
        struct stage stage;

        stage_open(&stage, nranks, &two_blocks, &sizes, 32);
        for (size_t count = 3; count < 4000; count *= 6) {
            struct scene scene = next_scene(&mixed, &shape, count);

            sim_weak_set(count % 4 == 3 ? seed : 0);
            play(&stage, &scene);
        }
        stage_close(&stage);
    }
    sim_weak_set(0);
}

/* The root alone gives a signal. */
static int emit_silent(const struct tutti_shape *shape, struct tutti_build *build)
{
    const struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    const struct tutti_span window = tutti_span(TUTTI_BUF_WINDOW, 0, 1);

    tutti_build_window(build, 1);
    tutti_build_signals(build, 1);
    if (shape->rank != shape->root) {
        TUTTI_TRY(tutti_build_wait(build, (int32_t)shape->root, 1));
        return tutti_build_get(build, shape->root, window, output);
    }
    TUTTI_TRY(tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, 1), output));
    TUTTI_TRY(tutti_build_copy(build, output, window));
    return tutti_build_signal(build);
}

static void who_gives_no_signal_lets_others_know_when_it_leaves(void **state)
{
    static const struct tutti_algorithm silent = {
        .name = "silent", .collective = TUTTI_BROADCAST, .needs = TUTTI_NEEDS_WINDOW,
        .emit = emit_silent};
    struct tutti_shape shape = {.nranks = 3};
    struct domain_sizes sizes = small;
    struct stage stage;

    (void)state;
    sizes.window_bytes = 1 << 12;
    stage_open(&stage, 3, &two_blocks, &sizes, 32);
    for (uint32_t i = 0; i < 6; i++) {
        struct scene scene = next_scene(&silent, &shape, 9000);

        play(&stage, &scene);
    }
    stage_close(&stage);
}

/* Flagged words, releases and signals carry all that others read. */
static void nothing_is_read_before_it_is_released(void **state)
{
    struct stage stage;

    (void)state;
    stage_open(&stage, 3, &two_blocks, &small, 32);
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (size_t count = 20; count < 400; count += 280) {
            struct tutti_shape shape = {.nranks = 3};
            struct scene scene = next_scene(tutti_algorithm(a), &shape, count);

            sim_weak_set(seed);
            play(&stage, &scene);
        }
    sim_weak_set(0);
    stage_close(&stage);
}

/* Kinds of schedules alternate, so that windows, slots and counters pass from one to the next. */
static void many_works_run_in_one_launch(void **state)
{
    static const char *const names[] = {"ring", "two_shot", "tree", "mapped", "one_shot",
                                        "recursive_doubling"};
    struct tutti_shape shape = {.nranks = 3};
    struct scene scenes[12];
    struct stage stage;

    (void)state;
    stage_open(&stage, 3, &two_blocks, &small, 64);
    for (uint32_t launch = 0; launch < 6; launch++) {
        for (size_t i = 0; i < COUNT_OF(scenes); i++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm_find(
                TUTTI_ALLREDUCE, names[(i * 5 + launch) % COUNT_OF(names)]);

            assert_non_null(algorithm);
            scenes[i] = next_scene(algorithm, &shape, (i + launch) % 3 * 240 + 9);
        }
        scenes_play(&stage, scenes, COUNT_OF(scenes));
    }
    stage_close(&stage);
}

/* More threads than lanes, and as many as a few warps; more blocks than pieces. */
static void any_number_of_blocks_and_threads_will_do(void **state)
{
    static const uint32_t blocks[] = {1, 3, 4}, threads[] = {64, 32, 160};
    struct tutti_shape shape = {.nranks = 4};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        struct tutti_cuda_grid grid = two_blocks;
        struct domain_sizes sizes = small;
        struct stage stage;

        grid.nblocks = blocks[i];
        sizes.channels = 3 * blocks[i];
        stage_open(&stage, 4, &grid, &sizes, threads[i]);
        for (size_t a = i; a < tutti_algorithm_count(); a += 3) {
            struct scene scene = next_scene(tutti_algorithm(a), &shape, 500);

            play(&stage, &scene);
        }
        stage_close(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_the_same_bits),
        cmocka_unit_test(variants_of_algorithms_give_the_same_bits),
        cmocka_unit_test(blocks_may_differ_in_size),
        cmocka_unit_test(one_slot_is_enough),
        cmocka_unit_test(windows_are_used_again_and_again),
        cmocka_unit_test(messages_and_windows_may_mix),
        cmocka_unit_test(who_gives_no_signal_lets_others_know_when_it_leaves),
        cmocka_unit_test(nothing_is_read_before_it_is_released),
        cmocka_unit_test(many_works_run_in_one_launch),
        cmocka_unit_test(any_number_of_blocks_and_threads_will_do),
    };

#if defined(SIM_ONLY_TEST) /* for kernels with a mistake */
    cmocka_set_test_filter(SIM_ONLY_TEST);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
