/* SPDX-License-Identifier: Apache-2.0
 * Computes vector clocks: how many local steps of each rank are complete at a node. The search for
 * races uses them where ranks share memory.
 *
 * A rank learns about other ranks only where it waits or receives. So a row of the clock, one
 * number per rank, is made where a node learns something new; the local steps that follow share it.
 * How far the local lane of a node's own rank has come follows from the node itself. Ranks that
 * wait for the same signal of all others share one row, which is made once.
 */
#include "schedule/check/model.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE

static uint32_t *row_at(const struct tutti_check *check, uint32_t row)
{
    return check->clock_rows + (size_t)row * check->nranks;
}

/* The rank whose local step, or run, a node begins or ends; NONE if the node belongs to a two-sided
 * step. *ret_complete is the number of local steps of this rank that are complete at the node. */
static uint32_t local_rank(const struct tutti_check *check, uint32_t node, uint32_t *ret_complete)
{
    uint32_t run = 0, rank;

    for (; node >= tutti_check_run_nodes(check); node -= tutti_check_run_nodes(check))
        run++;
    if (node >= tutti_check_half_nodes(check)) {
        node -= tutti_check_half_nodes(check);
        rank = node / 2;
        *ret_complete = (run + (node & 1)) * check->local_count[rank];
        return rank;
    }
    if (check->local_index[node / 4] == NONE)
        return NONE;
    rank = check->step_rank[node / 4];
    *ret_complete = run * check->local_count[rank] + check->local_index[node / 4] + (node & 1);
    return rank;
}

uint32_t tutti_check_clock(const struct tutti_check *check, uint32_t node, uint32_t rank)
{
    uint32_t complete = 0;

    if (local_rank(check, node, &complete) == rank)
        return complete;
    return row_at(check, check->clock_row[node])[rank];
}

/* Append a row, whose contents are undefined. */
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

/* True if all predecessors of `node` have this row, and the row includes how far their own ranks
 * have come there. */
static bool is_row_shared(const struct tutti_check *check, uint32_t node, uint32_t row)
{
    uint32_t complete, own_complete, own = local_rank(check, node, &own_complete);

    for (uint32_t p = 0; p < check->npreds; p++) {
        uint32_t rank = local_rank(check, check->preds[p], &complete);

        if (check->clock_row[check->preds[p]] != row ||
            (rank != NONE && rank != own && row_at(check, row)[rank] < complete))
            return false;
    }
    return true;
}

/* Update a row with how far the rank of `node` has come there. */
static void raise_own(struct tutti_check *check, uint32_t row, uint32_t node)
{
    uint32_t complete, rank = local_rank(check, node, &complete), *own = row_at(check, row);

    if (rank != NONE && own[rank] < complete)
        own[rank] = complete;
}

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
    const uint32_t *own = row_at(check, row), *others = row_at(check, other);
    uint32_t nlacking = 0;

    for (uint32_t rank = 0; rank < check->nranks; rank++)
        nlacking += own[rank] < others[rank];
    return nlacking == 0;
}

/* The row of a node that has signal `number` of all ranks in a run. */
static int find_common(struct tutti_check *check, uint32_t run, uint32_t number, uint32_t *ret_row)
{
    uint32_t *common = &check->clock_common[run * check->schedules[0]->nsignals + number - 1];

    if (*common == 0) {
        uint32_t first = check->clock_row[tutti_check_signal_node(check, run, 0, number)];

        TUTTI_TRY(copy_row(check, first, common));
        for (uint32_t rank = 0; rank < check->nranks; rank++) {
            uint32_t node = tutti_check_signal_node(check, run, rank, number);

            /* The first row is included already. */
            if (check->clock_row[node] != first)
                join(row_at(check, *common), row_at(check, check->clock_row[node]), check->nranks);
            raise_own(check, *common, node);
        }
    }
    *ret_row = *common;
    return TUTTI_OK;
}

/* True if `node` waits for signal *ret_number of all ranks in *ret_run, including its own rank's.
 * *ret_before is then its only other predecessor. */
static bool waits_for_all(const struct tutti_check *check, uint32_t node, uint32_t *ret_run,
                          uint32_t *ret_number, uint32_t *ret_before)
{
    uint32_t run = node / tutti_check_run_nodes(check), at = node % tutti_check_run_nodes(check);
    uint32_t rank;
    const struct tutti_step *step;

    if (at >= tutti_check_half_nodes(check)) {
        rank = (at - tutti_check_half_nodes(check)) / 2;
        *ret_run = run - 1;
        *ret_number = 1;
        *ret_before = run > 0 ? tutti_check_run_end(check, run - 1, rank) : NONE;
        return (at & 1) == 0 && run > 0;
    }
    step = tutti_check_step(check, at / 4);
    rank = check->step_rank[at / 4];
    *ret_run = run;
    *ret_number = step->signal;
    *ret_before = node - 1;
    return (at & 1) == 1 && step->kind == TUTTI_STEP_WAIT && step->from == TUTTI_ALL_RANKS &&
           tutti_check_signal_node(check, run, rank, step->signal) < node;
}

/* Set the row of a node whose predecessors have their rows. */
static int set_clock(struct tutti_check *check, uint32_t node)
{
    uint32_t run, number, before, first;

    if (waits_for_all(check, node, &run, &number, &before)) {
        TUTTI_TRY(find_common(check, run, number, &first));
        if (!includes(check, first, check->clock_row[before])) {
            TUTTI_TRY(copy_row(check, first, &first));
            join(row_at(check, first), row_at(check, check->clock_row[before]), check->nranks);
        }
        check->clock_row[node] = first;
        return TUTTI_OK;
    }

    TUTTI_TRY(tutti_check_preds(check, node));
    first = check->npreds == 0 ? 0 : check->clock_row[check->preds[0]];
    check->clock_row[node] = first;
    if (is_row_shared(check, node, first))
        return TUTTI_OK;
    TUTTI_TRY(copy_row(check, first, &check->clock_row[node]));
    for (uint32_t p = 0; p < check->npreds; p++) {
        uint32_t row = check->clock_row[check->preds[p]];

        if (row != first)
            join(row_at(check, check->clock_row[node]), row_at(check, row), check->nranks);
        raise_own(check, check->clock_row[node], check->preds[p]);
    }
    return TUTTI_OK;
}

int tutti_check_clocks(struct tutti_check *check)
{
    size_t nsignals = check->schedules[0]->nsignals;

    if (!check->is_shared)
        return TUTTI_OK;
    TUTTI_TRY(tutti_check_alloc(&check->clock_row, tutti_check_nodes(check), sizeof(uint32_t), 0));
    TUTTI_TRY(tutti_check_alloc(&check->clock_common, check->nruns * nsignals, sizeof(uint32_t),
                                0));
    TUTTI_TRY(add_row(check));
    memset(check->clock_rows, 0, check->nranks * sizeof(uint32_t));
    for (uint32_t i = 0; i < check->nlog; i++)
        TUTTI_TRY(set_clock(check, check->log[i]));
    return TUTTI_OK;
}
