/* SPDX-License-Identifier: Apache-2.0
 * Runs the interpreter of schedules when ranks disagree, stay away, or are told to give up. All
 * launched kernels end and report the reason. */
#include "simcuda/post.h"
#include "simcuda/sim_kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/device/elements.h"

static const struct domain_sizes small = {
    .channels = 4, .slots = 2, .slot_bytes = 256, .flagged_bytes = 256, .window_bytes = 16384,
    .arena_bytes = 1 << 18};
static const struct tutti_cuda_grid two_blocks = {
    .nblocks = 2, .least_piece_bytes = 512, .least_share_bytes = 300};
static const uint64_t soon_ns = 300 * 1000 * 1000, never_ns = UINT64_C(60) * 1000 * 1000 * 1000;

/* Schedules of messages, of windows, of peers' buffers. */
static const char *const names[] = {"ring", "tree", "two_shot", "mapped"};

static struct scene scene_of(const char *name, size_t count)
{
    struct scene scene = {.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, name),
                          .shape = {.nranks = 3}, .type = TUTTI_FLOAT32, .count = count, .seed = 7};

    assert_non_null(scene.algorithm);
    return scene;
}

static const struct tutti_kernel_report *report_of(const struct stage *stage, uint32_t rank)
{
    return stage->domain.ranks[rank].report;
}

/* Rank 1's call differs in its operation: all say so, neighbors or not. */
static void calls_that_differ_are_told_with_both_signatures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        for (size_t count = 10; count <= 1000; count += 990) {
            struct scene scene = scene_of(names[i], count), other = scene;
            struct stage stage;

            other.op = TUTTI_MAX;
            stage_open(&stage, 3, &two_blocks, &small, 32);
            scene_play_apart(&stage, &scene, &other, 1, TUTTI_NO_RANK, never_ns);
            for (uint32_t rank = 0; rank < 3; rank++) {
                const struct tutti_kernel_report *report = report_of(&stage, rank);

                assert_int_equal(report->fault, TUTTI_KERNEL_MISMATCH);
                assert_true((report->rank == 1) == (rank != 1));
                assert_int_equal(report->number, 1);
                assert_int_equal(report->their_number, 1);
                assert_int_equal((uint8_t)(report->mine[0] >> 32),
                                 rank == 1 ? TUTTI_MAX : TUTTI_SUM);
                assert_int_equal((uint8_t)(report->theirs[0] >> 32),
                                 rank == 1 ? TUTTI_SUM : TUTTI_MAX);
                assert_int_equal(report->theirs[1], count);
            }
            stage_close(&stage);
        }
}

/* As many bytes by another kind of work: what has come is not taken for what is due. */
static void other_schedules_of_another_call_are_told(void **state)
{
    struct scene scene = scene_of("ring", 100), other = scene_of("two_shot", 200);
    struct stage stage;
    uint32_t ntold = 0;

    (void)state;
    stage_open(&stage, 3, &two_blocks, &small, 32);
    scene_play_apart(&stage, &scene, &other, 2, TUTTI_NO_RANK, never_ns);
    for (uint32_t rank = 0; rank < 3; rank++)
        ntold += report_of(&stage, rank)->fault == TUTTI_KERNEL_MISMATCH;
    assert_int_equal(ntold, 3);
    stage_close(&stage);
}

static void who_waits_in_vain_names_the_rank_when_time_is_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct scene scene = scene_of(names[i], 1000);
        struct stage stage;
        bool is_named = false;

        stage_open(&stage, 3, &two_blocks, &small, 32);
        scene_play_apart(&stage, &scene, &scene, TUTTI_NO_RANK, 2, soon_ns);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(report_of(&stage, rank)->fault, TUTTI_KERNEL_LATE);
            is_named = is_named || report_of(&stage, rank)->rank == 2;
        }
        assert_true(is_named);
        stage_close(&stage);
    }
}

static void the_host_ends_kernels_that_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct scene scene = scene_of(names[i], 1000);
        struct stage stage;

        stage_open(&stage, 3, &two_blocks, &small, 32);
        for (uint32_t rank = 0; rank < 3; rank++)
            stage.domain.ranks[rank].report->abort = 1;
        scene_play_apart(&stage, &scene, &scene, TUTTI_NO_RANK, 0, 0);
        for (uint32_t rank = 1; rank < 3; rank++)
            assert_int_equal(report_of(&stage, rank)->fault, TUTTI_KERNEL_ABORTED);
        stage_close(&stage);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

/* The sizes that rank 0 sends and rank 1 receives differ. */
static void send_and_receive(struct stage *stage, struct tutti_cuda_message send,
                             struct tutti_cuda_message receive)
{
    const struct tutti_cuda_message messages[2] = {send, receive};
    struct tutti_cuda_program_image images[2];
    struct tutti_kernel_work works[2];
    struct domain_grid grids[2];
    uint8_t *scratch[2];

    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(tutti_cuda_messages_encode(&messages[rank], 1, (int)rank, &stage->grid,
                                                    &images[rank]), 0);
        scratch[rank] = aligned_alloc(TUTTI_KERNEL_LINE,
                                      images[rank].scratch_bytes + TUTTI_KERNEL_LINE);
        assert_non_null(scratch[rank]);
        works[rank] = (struct tutti_kernel_work){.kind = TUTTI_KERNEL_WORK_MESSAGES,
                                                 .program = images[rank].bytes,
                                                 .program_bytes = images[rank].size_bytes,
                                                 .scratch = scratch[rank]};
        grids[rank] = (struct domain_grid){stage->grid.nblocks, stage->threads};
    }
    domain_run(&stage->domain, "tutti_kernel_group", grids, works, 1, never_ns);
    for (uint32_t rank = 0; rank < 2; rank++) {
        tutti_cuda_program_image_fini(&images[rank]);
        free(scratch[rank]);
    }
}

static void receives_that_do_not_fit_are_told(void **state)
{
    static const size_t sizes[] = {40, 500}; /* flagged, and in all slots there are */

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int odd = 0; odd < 3; odd++) {
            struct post *post = calloc(1, sizeof *post);
            struct tutti_cuda_message send, receive;
            struct stage stage;

            assert_non_null(post);
            stage_open(&stage, 2, &two_blocks, &small, 32);
            post->stage = &stage;
            post_add(post, 0, 1, sizes[i]);
            send = post_message(post, 0, true);
            receive = post_message(post, 0, false);
            if (odd == 0)
                receive.header.signature.type = TUTTI_INT8;
            else if (odd == 1)
                receive.header.signature.count = 1000000;
            else
                receive.header.sequence++;
            send_and_receive(&stage, send, receive);
            assert_int_equal(report_of(&stage, 1)->fault, TUTTI_KERNEL_MISMATCH);
            assert_int_equal(report_of(&stage, 1)->rank, 0);
            assert_int_equal(report_of(&stage, 1)->number, receive.header.sequence);
            assert_int_equal(report_of(&stage, 1)->their_number, send.header.sequence);
            assert_int_equal(report_of(&stage, 1)->theirs[1], sizes[i]);
            assert_int_equal(report_of(&stage, 1)->mine[1], receive.header.signature.count);
            stage_close(&stage);
            free(post);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_differ_are_told_with_both_signatures),
        cmocka_unit_test(other_schedules_of_another_call_are_told),
        cmocka_unit_test(who_waits_in_vain_names_the_rank_when_time_is_up),
        cmocka_unit_test(the_host_ends_kernels_that_wait),
        cmocka_unit_test(receives_that_do_not_fit_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
