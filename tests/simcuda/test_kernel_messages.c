/* SPDX-License-Identifier: Apache-2.0
 * Runs sends and receives by kernels on the simulated machine. */
#include "base/result.h"
#include "simcuda/launch.h"
#include "simcuda/post.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/device/elements.h"

static const struct domain_sizes small = {
    .channels = 4, .slots = 2, .slot_bytes = 256, .flagged_bytes = 256, .arena_bytes = 1 << 20};
static const struct tutti_cuda_grid two_blocks = {
    .nblocks = 2, .least_piece_bytes = 512, .least_share_bytes = 300};

static struct post *open_post(struct stage *stage, uint32_t nranks,
                              const struct domain_sizes *sizes)
{
    struct post *post = calloc(1, sizeof *post);

    assert_non_null(post);
    stage_open(stage, nranks, &two_blocks, sizes, 32);
    post->stage = stage;
    return post;
}

static void close_post(struct post *post)
{
    stage_close(post->stage);
    free(post);
}

static void messages_of_all_sizes_arrive(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 95, 96, 97, 128, 255, 256, 257, 599, 600, 601, 5000};
    struct stage stage;
    struct post *post = open_post(&stage, 2, &small);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        post_add(post, 0, 1, sizes[i]);
        post_deliver(post);
        post_add(post, 0, 1, sizes[i]);
        post_add(post, 1, 0, sizes[COUNT_OF(sizes) - 1 - i]);
        post_deliver(post);
    }
    close_post(post);
}

static size_t some_size(struct post *post)
{
    uint64_t bits = next_random(&post->seed);

    return bits >> 32 & 1 ? bits % 120 : bits % 3000;
}

/* Any number from each to each, itself among them. */
static void add_many(struct post *post, uint32_t nranks, uint32_t most)
{
    for (uint32_t from = 0; from < nranks; from++)
        for (uint32_t to = 0; to < nranks; to++)
            for (uint64_t left = next_random(&post->seed) % (most + 1); left > 0; left--)
                post_add(post, from, to, some_size(post));
}

static void groups_of_many_arrive_in_order(void **state)
{
    (void)state;
    for (uint32_t nranks = 1; nranks <= 7; nranks += 2) {
        struct stage stage;
        struct post *post = open_post(&stage, nranks, &small);

        for (uint32_t batch = 0; batch < 4; batch++) {
            add_many(post, nranks, 4);
            post_deliver(post);
        }
        close_post(post);
    }
}

/* Everybody sends much more than slots hold before it can have received anything. */
static void one_slot_is_enough(void **state)
{
    struct domain_sizes sizes = small;
    struct stage stage;
    struct post *post;

    (void)state;
    sizes.slots = 1;
    sizes.slot_bytes = 128;
    sizes.flagged_bytes = 0;
    post = open_post(&stage, 4, &sizes);
    for (uint32_t from = 0; from < 4; from++)
        for (uint32_t to = 0; to < 4; to++) {
            post_add(post, from, to, 3000);
            post_add(post, from, to, 0);
            post_add(post, from, to, 1);
        }
    post_deliver(post);
    close_post(post);
}

static void nothing_is_read_before_it_is_released(void **state)
{
    struct stage stage;
    struct post *post = open_post(&stage, 3, &small);

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        sim_weak_set(seed);
        add_many(post, 3, 3);
        post_deliver(post);
    }
    sim_weak_set(0);
    close_post(post);
}

/* As if so many slots of every FIFO had been filled and emptied. */
static void set_counters(struct stage *stage, uint64_t count)
{
    const struct tutti_kernel_layout *layout = &stage->domain.layout;

    for (uint32_t rank = 0; rank < 2; rank++) {
        struct domain_rank *own = &stage->domain.ranks[rank];

        for (size_t i = 0; i < 2 * layout->channels * 2; i++)
            ((uint64_t *)(own->counters + 1))[i] = count;
        for (uint32_t number = 0; number < layout->channels; number++) {
            struct tutti_kernel_fifo *to = (struct tutti_kernel_fifo *)(void *)(
                own->peers[1 - rank].to + layout->fifo_at + number * layout->fifo_stride);

            to->tail = to->head = count;
        }
    }
}

/* After 2^31 slots flags begin again: what lay there then is not taken for what comes now. */
static void flags_of_long_ago_are_forgotten(void **state)
{
    struct stage stage;
    struct post *post = open_post(&stage, 2, &small);

    (void)state;
    for (uint64_t round = 0; round < 8; round++) {
        set_counters(&stage, ((round + 1) << 31) - 2);
        /* The last two slots of a period without flags, the first two of the next with. */
        for (uint32_t from = 0; from < 2; from++) {
            post_add(post, from, 1 - from, 500);
            post_add(post, from, 1 - from, 90);
            post_add(post, from, 1 - from, 90);
        }
        post_deliver(post);
    }
    close_post(post);
}

/* Collectives in between: numbers and slots do not mix. */
static void messages_pass_between_collectives(void **state)
{
    struct tutti_shape shape = {.nranks = 3};
    struct scene scene = {.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "ring"),
                          .shape = shape, .type = TUTTI_INT32, .count = 300};
    struct stage stage;
    struct post *post = open_post(&stage, 3, &small);

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        scene.seed = i;
        assert_true(scene_play(&stage, &scene));
        add_many(post, 3, 2);
        post_deliver(post);
    }
    close_post(post);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void what_is_sent_to_oneself_is_received_in_the_same_group(void **state)
{
    struct stage stage;
    struct post *post = open_post(&stage, 2, &small);
    struct tutti_cuda_message messages[2];
    struct tutti_cuda_program_image image = {.bytes = NULL};

    (void)state;
    post_add(post, 1, 1, 40);
    messages[0] = post_message(post, 0, true);
    messages[1] = post_message(post, 0, false);
    assert_int_equal(tutti_cuda_messages_encode(messages, 1, 1, &stage.grid, &image),
                     TUTTI_ERR_USAGE);
    assert_int_equal(tutti_cuda_messages_encode(messages + 1, 1, 1, &stage.grid, &image),
                     TUTTI_ERR_USAGE);
    messages[1].header.signature.count++;
    assert_int_equal(tutti_cuda_messages_encode(messages, 2, 1, &stage.grid, &image),
                     TUTTI_ERR_USAGE);
    assert_null(image.bytes);
    close_post(post);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_all_sizes_arrive),
        cmocka_unit_test(groups_of_many_arrive_in_order),
        cmocka_unit_test(one_slot_is_enough),
        cmocka_unit_test(nothing_is_read_before_it_is_released),
        cmocka_unit_test(flags_of_long_ago_are_forgotten),
        cmocka_unit_test(messages_pass_between_collectives),
        cmocka_unit_test(what_is_sent_to_oneself_is_received_in_the_same_group),
    };

#if defined(SIM_ONLY_TEST) /* for kernels with a mistake */
    cmocka_set_test_filter(SIM_ONLY_TEST);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
