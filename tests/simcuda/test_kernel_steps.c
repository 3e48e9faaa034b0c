/* SPDX-License-Identifier: Apache-2.0
 * The interpreter of schedules, on the simulated machine: every algorithm there is comes to what its
 * steps say, byte for byte. */
#include "schedule/variants.h"
#include "simcuda/launch.h"
#include "simcuda/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Slots and windows so small that all but the smallest calls need many. */
static const struct domain_sizes small = {
    .channels = 6, .slots = 2, .slot_bytes = 256, .flagged_bytes = 256, .window_bytes = 65536,
    .arena_bytes = 1 << 19};
static const struct tutti_gpu_grid two_blocks = {
    .nblocks = 2, .least_piece_bytes = 512, .least_share_bytes = 256};

static uint64_t seed;

/* Types and operations in turns. */
static struct scene next_scene(const struct tutti_algorithm *algorithm,
                               const struct tutti_shape *shape, size_t count)
{
    bool reduces = tutti_collective_reduces(algorithm->collective);
    struct scene scene = {.algorithm = algorithm, .shape = *shape, .count = count,
                          .seed = ++seed,
                          .type = (enum tutti_type)(seed % TUTTI_TYPE_COUNT)};

    if (tutti_collective_has_root(algorithm->collective))
        scene.shape.root = (uint32_t)(seed % shape->nranks);
    if (algorithm->collective == TUTTI_BARRIER)
        scene.count = 0;
    if (reduces) {
        scene.op = (enum tutti_op)(seed / 3 % TUTTI_OP_COUNT);
        scene.is_average = scene.op == TUTTI_SUM && seed % 2 == 0;
        scene.is_premultiplied = scene.op == TUTTI_SUM && !scene.is_average;
        scene.reads_scalar = seed % 8 < 4;
    }
    scene.is_in_place = seed % 5 < 2;
    return scene;
}

static void every_algorithm_gives_the_same_bits(void **state)
{
    static const uint32_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
    static const size_t counts[] = {0, 1, 5, 131, 700};

    (void)state;
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        struct stage stage;

        stage_open(&stage, numbers[n], &two_blocks, &small, 32);
        for (size_t a = 0; a < tutti_algorithm_count(); a++) {
            struct tutti_shape shape = {.nranks = numbers[n]};
            size_t i = a % 2;

            for (; i < sizeof counts / sizeof *counts; i += numbers[n] > 5 ? 3 : 1) {
                struct scene scene = next_scene(tutti_algorithm(a), &shape, counts[i]);

                if (!scene_play(&stage, &scene))
                    fail_msg("%s cannot be run", scene_name(&scene));
            }
        }
        stage_close(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_gives_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
