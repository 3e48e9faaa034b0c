/* SPDX-License-Identifier: Apache-2.0
 * Computes the vector clock of each node (model.h): how many local steps of each rank are known to
 * be complete at the node. Steps of all runs count. The search for races uses the clocks where
 * ranks share memory. A step of rank r happens before a node if the clock of the node counts the
 * step among the complete ones of r.
 *
 *   rank 0: put, signal          rank 1: copy, wait for rank 0, get
 *
 *   end of the signal   [2, 0]   rank 0 has completed 2 local steps; nothing is known of rank 1
 *   end of the copy     [0, 1]
 *   end of the wait     [2, 2]   the maximum of the predecessors, and the wait itself
 *   end of the get      [2, 3]
 *
 * A clock has a number for each rank, so a clock per node would take much memory. Two facts save
 * most of it:
 *
 *  - A rank learns about other ranks only where it waits or receives. In between, only the count of
 *    its own local steps changes, and the number of the node tells this count (locate). So nodes
 *    that know the same about other ranks share one row of numbers. In the example, the ends of the
 *    wait and of the get share the row [2, -]. The number of a node's own rank in a row may be too
 *    low, and tutti_check_clock does not use it.
 *  - Ranks that wait for the same signal of all others learn the same. They share one row, which is
 *    made once (find_common).
 */
#include "schedule/check/model.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE

/* The numbers of a row, one per rank. */
static uint32_t *row_at(const struct tutti_check *check, uint32_t row)
{
    return check->clock_rows + (size_t)row * check->nranks;
}

/* Return the rank whose local step, or run, a node begins or ends; NONE if the node belongs to a
 * two-sided step. *ret_complete is the number of local steps of this rank that are complete at the
 * node. */
static uint32_t locate(const struct tutti_check *check, uint32_t node, uint32_t *ret_complete)
{
    uint32_t run = 0, at = node, step, rank;
    bool is_end = node & 1; /* ends have odd numbers, and all counts of nodes are even */

    /* This is called for every edge. There are few runs, so a loop is faster than a division. */
    for (; at >= tutti_check_run_nodes(check); at -= tutti_check_run_nodes(check))
        run++;
    if (at >= tutti_check_half_nodes(check)) {
        rank = (at - tutti_check_half_nodes(check)) / 2;
        *ret_complete = (run + is_end) * check->local_count[rank];
        return rank;
    }
    step = at / 4; /* each step has two halves, and each half two nodes */
    if (check->local_index[step] == NONE)
        return NONE;
    rank = check->step_rank[step];
    *ret_complete = run * check->local_count[rank] + check->local_index[step] + is_end;
    return rank;
}

uint32_t tutti_check_clock(const struct tutti_check *check, uint32_t node, uint32_t rank)
{
    uint32_t complete = 0;

    if (locate(check, node, &complete) == rank)
        return complete;
    return row_at(check, check->clock_row[node])[rank];
}

/* Append a row, whose contents are undefined. Rows may move in memory. TUTTI_ERR_SYSTEM: no
 * memory. */
static int add_row(struct tutti_check *check)
{
    TUTTI_TRY(tutti_array_reserve(&check->clock_rows, check->nranks * sizeof *check->clock_rows,
                                  (size_t)check->nclock_rows + 1, &check->clock_rows_capacity,
                                  "clocks to check a schedule"));
    check->nclock_rows++;
    return TUTTI_OK;
}

/* Raise each number of a row to that of another row. */
static void join(uint32_t *restrict row, const uint32_t *restrict other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        row[i] = row[i] > other[i] ? row[i] : other[i];
}

/* True if `row` holds all that the predecessors of `node`, in check->preds, know. Then they all
 * have this row, and the row includes how far the ranks of the predecessors have come there. The
 * number of the node's own rank does not matter. */
static bool is_row_enough(const struct tutti_check *check, uint32_t node, uint32_t row)
{
    uint32_t complete, own_complete, own_rank = locate(check, node, &own_complete);

    for (uint32_t p = 0; p < check->npreds; p++) {
        uint32_t pred = check->preds[p], rank = locate(check, pred, &complete);

        if (check->clock_row[pred] != row)
            return false;
        if (rank != NONE && rank != own_rank && row_at(check, row)[rank] < complete)
            return false;
    }
    return true;
}

/* Raise a row's number of the rank of `node` to the local steps that are complete at the node. */
static void raise_own(struct tutti_check *check, uint32_t row, uint32_t node)
{
    uint32_t complete, rank = locate(check, node, &complete), *clock = row_at(check, row);

    if (rank != NONE && clock[rank] < complete)
        clock[rank] = complete;
}

/* Append a copy of a row. TUTTI_ERR_SYSTEM: no memory. */
static int copy_row(struct tutti_check *check, uint32_t row, uint32_t *ret_row)
{
    TUTTI_TRY(add_row(check));
    *ret_row = check->nclock_rows - 1;
    memcpy(row_at(check, *ret_row), row_at(check, row), check->nranks * sizeof(uint32_t));
    return TUTTI_OK;
}

/* True if no number of row `other` is greater than that of `row`. */
static bool includes(const struct tutti_check *check, uint32_t row, uint32_t other)
{
    const uint32_t *clock = row_at(check, row), *other_clock = row_at(check, other);
    uint32_t nlacking = 0;

    /* No early return: the compiler can vectorize this loop. */
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        nlacking += clock[rank] < other_clock[rank];
    return nlacking == 0;
}

/* Find the row that holds what the nodes of signal `number` of all ranks in a run know. It is made
 * at the first call, when all these nodes have their rows. */
static int find_common(struct tutti_check *check, uint32_t run, uint32_t number, uint32_t *ret_row)
{
    uint32_t *common = &check->clock_common[run * check->schedules[0]->nsignals + number - 1];

    if (*common == 0) { /* not made yet; row 0 is that of tutti_check_clocks */
        uint32_t first = check->clock_row[tutti_check_signal_node(check, run, 0, number)];

        TUTTI_TRY(copy_row(check, first, common));
        for (uint32_t rank = 0; rank < check->nranks; rank++) {
            uint32_t node = tutti_check_signal_node(check, run, rank, number);

            /* The common row has begun as a copy of `first`. */
            if (check->clock_row[node] != first)
                join(row_at(check, *common), row_at(check, check->clock_row[node]), check->nranks);
            raise_own(check, *common, node);
        }
    }
    *ret_row = *common;
    return TUTTI_OK;
}

/* The predecessors of a node that comes after one signal of all ranks. */
struct common_wait {
    uint32_t run, number; /* the node comes after signal `number` of all ranks in `run` */
    uint32_t before;      /* the only other predecessor of the node */
};

/* True if `node` comes after the same signal of all ranks. Its own rank's signal need not be
 * awaited if it is given by an earlier step. There are two kinds of such nodes (order.c): the begin
 * of a run comes after the first signals of the previous run, and the end of a WAIT for all ranks
 * after the signals that it awaits. Sets *ret_wait on success only. */
static bool waits_for_all(const struct tutti_check *check, uint32_t node,
                          struct common_wait *ret_wait)
{
    uint32_t run = node / tutti_check_run_nodes(check), at = node % tutti_check_run_nodes(check);
    bool is_end = node & 1;
    uint32_t rank;
    const struct tutti_step *step;

    if (at >= tutti_check_half_nodes(check)) {
        if (is_end || run == 0)
            return false;
        rank = (at - tutti_check_half_nodes(check)) / 2;
        *ret_wait = (struct common_wait){run - 1, 1, tutti_check_run_end(check, run - 1, rank)};
        return true;
    }
    step = tutti_check_step(check, at / 4);
    rank = check->step_rank[at / 4];
    if (!is_end || step->kind != TUTTI_STEP_WAIT || step->from != TUTTI_ALL_RANKS ||
        tutti_check_signal_node(check, run, rank, step->signal) >= node)
        return false;
    *ret_wait = (struct common_wait){run, step->signal, node - 1}; /* the begin of the WAIT */
    return true;
}

/* Set the row of a node that comes after the same signal of all ranks. */
static int set_common_clock(struct tutti_check *check, uint32_t node,
                            const struct common_wait *wait)
{
    uint32_t row, before_row = check->clock_row[wait->before];

    TUTTI_TRY(find_common(check, wait->run, wait->number, &row));
    /* The rank may have learned more than the others, for example from a message. */
    if (!includes(check, row, before_row)) {
        TUTTI_TRY(copy_row(check, row, &row));
        join(row_at(check, row), row_at(check, before_row), check->nranks);
    }
    check->clock_row[node] = row;
    return TUTTI_OK;
}

/* Set the row of a node whose predecessors have their rows. */
static int set_clock(struct tutti_check *check, uint32_t node)
{
    struct common_wait wait;
    uint32_t first, joined;

    if (waits_for_all(check, node, &wait))
        return set_common_clock(check, node, &wait);

    TUTTI_TRY(tutti_check_preds(check, node));
    first = check->npreds == 0 ? 0 : check->clock_row[check->preds[0]];
    check->clock_row[node] = first;
    if (is_row_enough(check, node, first))
        return TUTTI_OK;
    TUTTI_TRY(copy_row(check, first, &joined));
    check->clock_row[node] = joined;
    for (uint32_t p = 0; p < check->npreds; p++) {
        uint32_t row = check->clock_row[check->preds[p]];

        if (row != first)
            join(row_at(check, joined), row_at(check, row), check->nranks);
        raise_own(check, joined, check->preds[p]);
    }
    return TUTTI_OK;
}

int tutti_check_clocks(struct tutti_check *check)
{
    size_t nsignals = check->schedules[0]->nsignals;

    if (!check->is_shared)
        return TUTTI_OK;
    TUTTI_TRY(tutti_check_alloc(&check->clock_row, tutti_check_nodes(check), sizeof(uint32_t), 0));
    TUTTI_TRY(
        tutti_check_alloc(&check->clock_common, check->nruns * nsignals, sizeof(uint32_t), 0));
    /* Row 0 is that of nodes without predecessors, where nothing is complete. */
    TUTTI_TRY(add_row(check));
    memset(check->clock_rows, 0, check->nranks * sizeof(uint32_t));
    /* The log lists each node after its predecessors. */
    for (uint32_t i = 0; i < check->nlog; i++)
        TUTTI_TRY(set_clock(check, check->log[i]));
    return TUTTI_OK;
}
