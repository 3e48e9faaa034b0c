/* SPDX-License-Identifier: Apache-2.0
 * Tests splits: colors, keys, ranks that are left out, children of children, grids. */
#include "suites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

enum { ALONE_RANKS = 6, COLUMNS = 3 };

static void run_everywhere(member_fn fn)
{
    static const int sizes[] = {1, 2, 3, 5, 8};

    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            world_run(launch, sizes[i], fn, NULL);
}

/* Split, and check what came of it: the rank and the number of ranks, and that all acts are
 * right. */
static bool split(struct member *member, int color, int key, int rank, int nranks,
                  struct member *ret_child)
{
    int count = -1, place = -1;

    *ret_child = *member;
    ret_child->comm = NULL;
    if (!EXPECT_OK(member, tuttiCommSplit(member->comm, color, key, &ret_child->comm, NULL)))
        return false;
    if (color == TUTTI_SPLIT_NOCOLOR)
        return EXPECT(member, ret_child->comm == NULL);
    EXPECT_OK(member, tuttiCommCount(ret_child->comm, &count));
    EXPECT_OK(member, tuttiCommUserRank(ret_child->comm, &place));
    if (count != nranks || place != rank) {
        member_complain(member, "color %d, key %d: rank %d of %d, not %d of %d", color, key, place,
                        count, rank, nranks);
        return false;
    }
    ret_child->rank = rank;
    ret_child->nranks = nranks;
    suite_every_act(ret_child);
    return true;
}

static void leave(struct member *member, struct member *child)
{
    EXPECT_OK(member, tuttiCommDestroy(child->comm));
    suite_every_act(member);
}

static void split_by_parity(struct member *member)
{
    int color = member->rank % 2, nranks = (member->nranks + 1 - color) / 2;
    struct member child;

    if (split(member, color, 0, member->rank / 2, nranks, &child))
        leave(member, &child);
    /* Descending keys give the ranks in reverse. */
    if (split(member, color, -member->rank, nranks - 1 - member->rank / 2, nranks, &child))
        leave(member, &child);
}

static void ranks_of_one_color_are_ordered_by_key_then_rank(void **state)
{
    (void)state;
    run_everywhere(split_by_parity);
}

static void leave_some_out(struct member *member)
{
    bool is_out = member->rank % 3 == 1;
    struct member child;

    if (split(member, is_out ? TUTTI_SPLIT_NOCOLOR : 7, 5,
              member->rank - (member->rank + 1) / 3, member->nranks - (member->nranks + 1) / 3,
              &child))
        leave(member, &child);
    if (split(member, TUTTI_SPLIT_NOCOLOR, 0, 0, 0, &child))
        leave(member, &child);
}

static void ranks_without_a_color_take_part_and_get_null(void **state)
{
    (void)state;
    run_everywhere(leave_some_out);
}

static void split_again(struct member *member)
{
    int half = (member->nranks + 1) / 2, color = member->rank >= half;
    int nranks = color ? member->nranks - half : half, rank = member->rank - color * half;
    struct member child, grandchild;

    if (!split(member, color, 0, rank, nranks, &child))
        return;
    if (split(&child, rank, 0, 0, 1, &grandchild))
        leave(&child, &grandchild);
    if (split(&child, 0, -rank, nranks - 1 - rank, nranks, &grandchild)) {
        /* A child may outlive its parent. */
        EXPECT_OK(member, tuttiCommDestroy(child.comm));
        suite_every_act(&grandchild);
        child.comm = grandchild.comm;
    }
    leave(member, &child);
}

static void a_child_may_be_split_and_outlived(void **state)
{
    (void)state;
    run_everywhere(split_again);
}

static void make_grid(struct member *member)
{
    int row = member->rank / COLUMNS, column = member->rank % COLUMNS;
    int rows = (member->nranks - 1 - column) / COLUMNS + 1;
    int columns = member->nranks - row * COLUMNS < COLUMNS ? member->nranks - row * COLUMNS
                                                           : COLUMNS;
    struct member in_row, in_column;

    if (!split(member, row, column, column, columns, &in_row) ||
        !split(member, column, row, row, rows, &in_column))
        return;
    for (int i = 0; i < 3; i++) {
        suite_every_act(&in_row);
        suite_every_act(&in_column);
        suite_every_act(member);
    }
    EXPECT_OK(member, tuttiCommDestroy(in_row.comm));
    leave(member, &in_column);
}

static void rows_and_columns_of_a_grid_work_side_by_side(void **state)
{
    (void)state;
    run_everywhere(make_grid);
}

/* ---- one thread, all ranks ------------------------------------------------------------------- */

static void split_in_group(struct member *member)
{
    tuttiComm_t parents[ALONE_RANKS], children[ALONE_RANKS];
    int32_t sums[ALONE_RANKS], one = 1;

    if (!EXPECT_OK(member, tuttiCommInitAll(parents, ALONE_RANKS, NULL)))
        return;
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 0; i < ALONE_RANKS; i++)
        EXPECT_OK(member, tuttiCommSplit(parents[i], i == 0 ? TUTTI_SPLIT_NOCOLOR : i % 2, 0,
                                         &children[i], NULL));
    EXPECT_OK(member, tuttiGroupEnd());
    EXPECT(member, children[0] == NULL);
    EXPECT_OK(member, tuttiGroupStart());
    for (int i = 1; i < ALONE_RANKS; i++)
        EXPECT_OK(member, tuttiAllReduce(&one, &sums[i], 1, tuttiInt32, tuttiSum, children[i],
                                         NULL));
    EXPECT_OK(member, tuttiGroupEnd());
    for (int i = 1; i < ALONE_RANKS; i++)
        EXPECT(member, sums[i] == (i % 2 ? ALONE_RANKS / 2 : ALONE_RANKS / 2 - 1));
    for (int i = 0; i < ALONE_RANKS; i++) {
        EXPECT_OK(member, tuttiCommDestroy(children[i]));
        EXPECT_OK(member, tuttiCommDestroy(parents[i]));
    }
}

static void one_thread_splits_all_ranks_in_a_group(void **state)
{
    (void)state;
    crowd_run(LAUNCH_PROCESSES, 1, split_in_group, NULL);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* The child is given no configuration, so the parent's deadline ends its wait. */
static void inherit(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    struct member parent = *member, child = *member;
    tuttiUniqueId id;
    int32_t value;

    config.timeoutMs = 200;
    member_share_id(member, &id);
    if (!EXPECT_OK(member, tuttiCommInitRankConfig(&parent.comm, member->nranks, id, member->rank,
                                                   &config)) ||
        !EXPECT_OK(member, tuttiCommSplit(parent.comm, 0, 0, &child.comm, NULL)))
        return;
    if (member->rank == 0)
        EXPECT_RESULT(member, tuttiTimeout,
                      tuttiRecv(&value, 1, tuttiInt32, 1, child.comm, NULL));
    member_meet(member);
    EXPECT_OK(member, tuttiCommDestroy(child.comm));
    EXPECT_OK(member, tuttiCommDestroy(parent.comm));
}

static void a_child_inherits_the_configuration(void **state)
{
    (void)state;
    crowd_run(LAUNCH_THREADS, 2, inherit, NULL);
    crowd_run(LAUNCH_PROCESSES, 2, inherit, NULL);
}

static void misuse(struct member *member)
{
    tuttiComm_t child;

    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiCommSplit(member->comm, -2, 0, &child, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommSplit(member->comm, 0, 0, NULL, NULL));
    EXPECT_RESULT(member, tuttiInvalidArgument, tuttiCommSplit(NULL, 0, 0, &child, NULL));
    suite_every_act(member);
}

static void wrong_arguments_leave_the_communicator_as_it_was(void **state)
{
    (void)state;
    run_everywhere(misuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_color_are_ordered_by_key_then_rank),
        cmocka_unit_test(ranks_without_a_color_take_part_and_get_null),
        cmocka_unit_test(a_child_may_be_split_and_outlived),
        cmocka_unit_test(rows_and_columns_of_a_grid_work_side_by_side),
        cmocka_unit_test(one_thread_splits_all_ranks_in_a_group),
        cmocka_unit_test(a_child_inherits_the_configuration),
        cmocka_unit_test(wrong_arguments_leave_the_communicator_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
