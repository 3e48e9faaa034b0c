/* SPDX-License-Identifier: Apache-2.0
 * Tests the table of collectives: its names, its numbers, and the fit of the columns of a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/collective.h"

enum { NRANKS = 4, ROOT = 2 };

static const char *name_of(uint32_t collective)
{
    return tutti_collective_name((enum tutti_collective)collective);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void each_name_finds_its_collective_and_no_other(void **state)
{
    char longer[64];

    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++) {
        snprintf(longer, sizeof(longer), "%s and more", name_of(c));
        assert_int_equal(tutti_collective_find(name_of(c), strlen(name_of(c))), c);
        assert_int_equal(tutti_collective_find(longer, strlen(name_of(c))), c);
        assert_int_equal(tutti_collective_find(longer, strlen(longer)), TUTTI_COLLECTIVE_COUNT);
        snprintf(longer, sizeof(longer), "%sv", name_of(c));
        assert_int_equal(tutti_collective_find(longer, strlen(longer)), TUTTI_COLLECTIVE_COUNT);
    }
    assert_int_equal(tutti_collective_find("", 0), TUTTI_COLLECTIVE_COUNT);
    assert_string_equal(tutti_collective_name(TUTTI_COLLECTIVE_COUNT), "unknown");
}

static void lists_name_all_collectives_that_they_are_asked_for(void **state)
{
    char list[TUTTI_COLLECTIVE_LIST_BYTES];

    (void)state;
    assert_string_equal(tutti_collective_list(0, list),
                        "allreduce, reduce, broadcast, allgather, reduce_scatter, alltoall, "
                        "gather, scatter, barrier, scan, exclusive_scan");
    assert_string_equal(tutti_collective_list(TUTTI_LIST_VECTORS, list),
                        "allreduce, reduce, broadcast, allgather, allgatherv, reduce_scatter, "
                        "reduce_scatterv, alltoall, alltoallv, gather, gatherv, scatter, scatterv, "
                        "barrier, scan, exclusive_scan");
    assert_string_equal(tutti_collective_list(TUTTI_LIST_WITH_DATA, list),
                        "allreduce, reduce, broadcast, allgather, reduce_scatter, alltoall, "
                        "gather, scatter, scan, exclusive_scan");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Ranks that run different builds compare these numbers, so they must not change. */
static void the_numbers_in_signatures_are_what_they_were(void **state)
{
    static const struct {
        uint8_t call, vector_call;
    } numbers[] = {
        [TUTTI_ALLREDUCE] = {0, TUTTI_NO_CALL}, [TUTTI_REDUCE] = {1, TUTTI_NO_CALL},
        [TUTTI_BROADCAST] = {2, TUTTI_NO_CALL}, [TUTTI_ALLGATHER] = {3, 12},
        [TUTTI_REDUCE_SCATTER] = {4, 13},       [TUTTI_ALLTOALL] = {5, 14},
        [TUTTI_GATHER] = {6, 15},               [TUTTI_SCATTER] = {7, 16},
        [TUTTI_BARRIER] = {8, TUTTI_NO_CALL},   [TUTTI_SCAN] = {19, TUTTI_NO_CALL},
        [TUTTI_EXCLUSIVE_SCAN] = {20, TUTTI_NO_CALL},
    };

    (void)state;
    assert_int_equal(sizeof(numbers) / sizeof(*numbers), TUTTI_COLLECTIVE_COUNT);
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++) {
        assert_int_equal(tutti_collective_call((enum tutti_collective)c, false), numbers[c].call);
        assert_int_equal(tutti_collective_call((enum tutti_collective)c, true),
                         numbers[c].vector_call);
    }
}

static void each_number_belongs_to_one_call(void **state)
{
    uint32_t calls = 0, known = 0;

    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        calls += tutti_collective_call((enum tutti_collective)c, true) == TUTTI_NO_CALL ? 1 : 2;
    for (uint32_t call = 0; call <= UINT8_MAX; call++) {
        bool is_vector = true;
        enum tutti_collective of = tutti_collective_of_call((uint8_t)call, &is_vector);

        if (of == TUTTI_COLLECTIVE_COUNT) {
            assert_false(is_vector);
            continue;
        }
        known++;
        assert_int_equal(tutti_collective_call(of, is_vector), call);
    }
    assert_int_equal(known, calls);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void blocks_are_what_users_pass(void **state)
{
    static const struct {
        uint32_t inputs, outputs;
        bool is_input_of_root, is_output_of_root;
    } buffers[] = {
        [TUTTI_ALLREDUCE] = {1, 1, false, false},
        [TUTTI_REDUCE] = {1, 1, false, true},
        [TUTTI_BROADCAST] = {1, 1, true, false},
        [TUTTI_ALLGATHER] = {1, NRANKS, false, false},
        [TUTTI_REDUCE_SCATTER] = {NRANKS, 1, false, false},
        [TUTTI_ALLTOALL] = {NRANKS, NRANKS, false, false},
        [TUTTI_GATHER] = {1, NRANKS, false, true},
        [TUTTI_SCATTER] = {NRANKS, 1, true, false},
        [TUTTI_BARRIER] = {0, 0, false, false},
        [TUTTI_SCAN] = {1, 1, false, false},
        [TUTTI_EXCLUSIVE_SCAN] = {1, 1, false, false},
    };

    (void)state;
    assert_int_equal(sizeof(buffers) / sizeof(*buffers), TUTTI_COLLECTIVE_COUNT);
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++) {
        assert_int_equal(tutti_input_blocks(c, NRANKS), buffers[c].inputs);
        assert_int_equal(tutti_output_blocks(c, NRANKS), buffers[c].outputs);
        assert_int_equal(tutti_collective_has_root(c),
                         buffers[c].is_input_of_root || buffers[c].is_output_of_root);
        for (uint32_t rank = 0; rank < NRANKS; rank++) {
            assert_int_equal(tutti_collective_has_input(c, rank, ROOT),
                             buffers[c].inputs > 0 &&
                                 (!buffers[c].is_input_of_root || rank == ROOT));
            assert_int_equal(tutti_collective_has_output(c, rank, ROOT),
                             buffers[c].outputs > 0 &&
                                 (!buffers[c].is_output_of_root || rank == ROOT) &&
                                 (c != TUTTI_EXCLUSIVE_SCAN || rank > 0));
        }
    }
}

/* The overlay follows from the blocks: the smaller buffer is this rank's block of the larger. */
static void in_place_calls_overlay_what_fits(void **state)
{
    enum { CHUNKS = 3 };

    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        for (uint32_t rank = 0; rank < NRANKS; rank++) {
            bool has_both = tutti_collective_has_input(c, rank, ROOT) &&
                            tutti_collective_has_output(c, rank, ROOT);
            int64_t shift = -1000, wanted = 0;
            bool is_overlaid = tutti_collective_in_place_shift((enum tutti_collective)c, rank, ROOT,
                                                               CHUNKS, &shift);

            if (!has_both || tutti_collective_is_pairwise(c)) {
                assert_false(is_overlaid);
                assert_int_equal(shift, -1000);
                continue;
            }
            if (tutti_output_is_per_rank(c))
                wanted = (int64_t)rank * CHUNKS;
            if (tutti_input_is_per_rank(c))
                wanted = -(int64_t)rank * CHUNKS;
            assert_true(is_overlaid);
            assert_int_equal(shift, wanted);
        }
}

static void sources_are_the_ranks_with_an_input(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        for (uint32_t to = 0; to < NRANKS; to++)
            for (uint32_t from = 0; from < NRANKS; from++)
                assert_int_equal(tutti_collective_is_source(c, from, to, ROOT),
                                 tutti_collective_has_output(c, to, ROOT) &&
                                     tutti_collective_has_input(c, from, ROOT) &&
                                     (c != TUTTI_SCAN || from <= to) &&
                                     (c != TUTTI_EXCLUSIVE_SCAN || from < to));
}

static void summands_are_the_sources_of_a_reduction(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        for (uint32_t to = 0; to < NRANKS; to++)
            for (uint32_t from = 0; from < NRANKS; from++)
                if (tutti_collective_reduces(c) && tutti_collective_has_output(c, to, ROOT))
                    assert_int_equal(tutti_collective_is_source(c, from, to, ROOT),
                                     from < tutti_collective_summands(c, to, NRANKS));
}

static void a_v_form_has_one_count_for_each_rank(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        if (tutti_collective_call((enum tutti_collective)c, true) != TUTTI_NO_CALL)
            assert_true(tutti_input_is_per_rank(c) || tutti_output_is_per_rank(c));
}

/* The public functions ask each rank for the counts that it must know. */
static void counts_are_by_pair_where_not_all_ranks_get_them(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
        if (tutti_collective_call((enum tutti_collective)c, true) != TUTTI_NO_CALL)
            assert_int_equal(tutti_collective_counts_by_pair(c),
                             c == TUTTI_ALLTOALL || c == TUTTI_GATHER || c == TUTTI_SCATTER);
}

static void predicates_hold_for_the_collectives_that_they_are_made_for(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < TUTTI_COLLECTIVE_COUNT; c++) {
        assert_int_equal(tutti_collective_reduces(c),
                         c == TUTTI_ALLREDUCE || c == TUTTI_REDUCE || c == TUTTI_REDUCE_SCATTER ||
                             c == TUTTI_SCAN || c == TUTTI_EXCLUSIVE_SCAN);
        assert_int_equal(tutti_collective_can_average(c),
                         c == TUTTI_ALLREDUCE || c == TUTTI_REDUCE || c == TUTTI_REDUCE_SCATTER);
        assert_int_equal(tutti_collective_has_data(c), c != TUTTI_BARRIER);
        assert_int_equal(tutti_collective_gives_one_result(c), c == TUTTI_ALLREDUCE);
        assert_int_equal(tutti_collective_is_pairwise(c), c == TUTTI_ALLTOALL);
        assert_int_equal(tutti_collective_in_place(c) == TUTTI_AFTER_COPY, c == TUTTI_ALLTOALL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_finds_its_collective_and_no_other),
        cmocka_unit_test(lists_name_all_collectives_that_they_are_asked_for),
        cmocka_unit_test(the_numbers_in_signatures_are_what_they_were),
        cmocka_unit_test(each_number_belongs_to_one_call),
        cmocka_unit_test(blocks_are_what_users_pass),
        cmocka_unit_test(in_place_calls_overlay_what_fits),
        cmocka_unit_test(sources_are_the_ranks_with_an_input),
        cmocka_unit_test(summands_are_the_sources_of_a_reduction),
        cmocka_unit_test(a_v_form_has_one_count_for_each_rank),
        cmocka_unit_test(counts_are_by_pair_where_not_all_ranks_get_them),
        cmocka_unit_test(predicates_hold_for_the_collectives_that_they_are_made_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
