/* SPDX-License-Identifier: Apache-2.0
 * Tests the checker's report on right schedules: orders of summation, messages, rounds. The hashed
 * form reports the same as the exact one. */
#include "handwritten.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_check_report prove(const struct row *row, bool is_hashed)
{
    const struct tutti_check_options options = {.is_vector = row->is_vector,
                                                .is_hashed = is_hashed};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report report;
    int rc;

    build_all(row, schedules);
    rc = tutti_check_prove((const struct tutti_schedule *const *)schedules, row->nranks, &options,
                           &report);
    assert_int_equal(rc, row->what == NULL ? TUTTI_OK : TUTTI_ERR_ARGUMENT);
    destroy_all(row, schedules);
    return report;
}

/* Each rank gets chunk c of every rank, and adds them in the order of `order[c]`. */
static void add_up(struct tutti_build *build, uint32_t rank, uint32_t k,
                   const uint32_t order[][3])
{
    tutti_build_chunks(build, k);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 3 * k);
    for (uint32_t peer = 0; peer < 3; peer++)
        if (peer == rank)
            MUST(tutti_build_copy(build, input(0, k), scratch(rank * k, k)));
        else
            MUST(tutti_build_send(build, peer, input(0, k)));
    for (uint32_t peer = 0; peer < 3; peer++)
        if (peer != rank)
            MUST(tutti_build_recv(build, peer, scratch(peer * k, k)));
    for (uint32_t c = 0; c < k; c++) {
        MUST(tutti_build_copy(build, scratch(order[c][0] * k + c, 1), output(c, 1)));
        MUST(tutti_build_reduce(build, scratch(order[c][1] * k + c, 1), output(c, 1)));
        MUST(tutti_build_reduce(build, scratch(order[c][2] * k + c, 1), output(c, 1)));
    }
}

static const uint32_t upward[][3] = {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
static const uint32_t commuted[][3] = {{1, 0, 2}, {1, 0, 2}, {1, 0, 2}, {1, 0, 2}};
static const uint32_t downward[][3] = {{2, 1, 0}, {2, 1, 0}, {2, 1, 0}, {2, 1, 0}};
static const uint32_t halves[][3] = {{0, 1, 2}, {0, 1, 2}, {2, 1, 0}, {2, 1, 0}};
static const uint32_t two[][3] = {{0, 1, 2}, {2, 1, 0}};
static const uint32_t swapped[][3] = {{2, 1, 0}, {0, 1, 2}};

static void up_1(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 1, upward);
}

static void up_4(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 4, upward);
}

static void commuted_3(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 3, commuted);
}

static void down_4(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 4, downward);
}

static void halves_4(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 4, halves);
}

static void halves_2(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 2, two);
}

static void halves_swapped(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 2, swapped);
}

static struct tutti_check_report orders(void (*emit)(struct tutti_build *build, uint32_t rank),
                                        bool is_hashed)
{
    const struct row row = {"order", emit, TUTTI_ALLREDUCE, 3, false, NULL, 0, 0};

    return prove(&row, is_hashed);
}

static void orders_are_those_of_the_elements_whatever_the_chunks(void **state)
{
    (void)state;
    for (int is_hashed = 0; is_hashed <= 1; is_hashed++) {
        struct tutti_check_report up = orders(up_1, is_hashed), split = orders(halves_4, is_hashed);

        assert_int_equal(up.orders, 1);
        assert_int_equal(orders(up_4, is_hashed).orders, 1);
        assert_int_equal(orders(up_4, is_hashed).order_hash, up.order_hash);
        assert_int_equal(orders(commuted_3, is_hashed).order_hash, up.order_hash);
        assert_int_equal(orders(down_4, is_hashed).orders, 1);
        assert_int_not_equal(orders(down_4, is_hashed).order_hash, up.order_hash);

        assert_int_equal(split.orders, 2);
        assert_int_equal(orders(halves_2, is_hashed).orders, 2);
        assert_int_equal(orders(halves_2, is_hashed).order_hash, split.order_hash);
        assert_int_equal(orders(halves_swapped, is_hashed).orders, 2);
        assert_int_not_equal(orders(halves_swapped, is_hashed).order_hash, split.order_hash);
    }
}

static void what_is_sent_and_in_how_many_rounds(void **state)
{
    const struct row swap = {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0};
    const struct row ring = {"ring", ring_allgather, TUTTI_ALLGATHER, 4, true, NULL, 0, 0};
    const struct row put = {"windows", window_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0};
    const struct row barriers = {"barrier", barrier, TUTTI_BARRIER, 4, true, NULL, 0, 0};
    struct tutti_check_report report = prove(&swap, false);

    (void)state;
    assert_int_equal(report.messages, 2);
    assert_int_equal(report.sent, 1);
    assert_int_equal(report.received, 1);
    assert_int_equal(report.reached, 0);
    assert_int_equal(report.depth, 1);
    assert_int_equal(report.steps, 4);
    assert_int_equal(report.scratch, 1);
    report = prove(&ring, false);
    assert_int_equal(report.messages, 12);
    assert_int_equal(report.sent, 3);
    assert_int_equal(report.depth, 3);
    assert_int_equal(report.orders, 0);
    report = prove(&put, false);
    assert_int_equal(report.messages, 0);
    assert_int_equal(report.reached, 2);
    assert_int_equal(report.depth, 1);
    report = prove(&barriers, false);
    assert_int_equal(report.messages, 8);
    assert_int_equal(report.depth, 2);
}

/* ---- hashed --------------------------------------------------------------------- */

/* Rank 2's contribution goes around and comes back: rank 1's is left out for it. */
static void one_for_another(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 2);
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    if (rank == 0) {
        MUST(tutti_build_recv(build, 2, scratch(0, 1)));
        MUST(tutti_build_recv(build, 1, scratch(1, 1)));
        MUST(tutti_build_reduce(build, scratch(0, 1), output(0, 1)));
        MUST(tutti_build_reduce(build, scratch(1, 1), output(0, 1)));
    } else if (rank == 1) {
        MUST(tutti_build_recv(build, 2, scratch(0, 1)));
        MUST(tutti_build_send(build, 0, scratch(0, 1)));
    } else {
        MUST(tutti_build_send(build, 0, input(0, 1)));
        MUST(tutti_build_send(build, 1, input(0, 1)));
    }
}

static void reduce_without_root(struct tutti_build *build, uint32_t rank)
{
    if (rank == 0)
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
}

/* 0 + (1 + 2) at rank 2 alone. */
static void bracketed(struct tutti_build *build, uint32_t rank)
{
    add_up(build, rank, 1, rank == 2 ? downward : upward);
}

static void the_hashed_form_finds_lost_doubled_and_bracketed_sums(void **state)
{
    const struct row twice = {"one for another", one_for_another, TUTTI_ALLREDUCE, 3, false,
                              "counts rank 2 twice", 0, 0};
    const struct row lost = {"reduce", reduce_without_root, TUTTI_REDUCE, 3, true, "lacks rank 1",
                             0, ANY};
    const struct row order = {"bracketed", bracketed, TUTTI_ALLREDUCE, 3, true, "bracketed", 2,
                              ANY};

    (void)state;
    assert_non_null(strstr(prove(&twice, false).what, twice.what));
    assert_non_null(strstr(prove(&twice, true).what, "has 3 contributions, not one of each"));
    assert_non_null(strstr(prove(&lost, false).what, lost.what));
    assert_non_null(strstr(prove(&lost, true).what, "has 1 contributions"));
    assert_non_null(strstr(prove(&order, false).what, order.what));
    assert_non_null(strstr(prove(&order, true).what, order.what));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_those_of_the_elements_whatever_the_chunks),
        cmocka_unit_test(what_is_sent_and_in_how_many_rounds),
        cmocka_unit_test(the_hashed_form_finds_lost_doubled_and_bracketed_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
