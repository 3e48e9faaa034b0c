/* SPDX-License-Identifier: Apache-2.0
 * Vector clocks over the ranks' local steps.
 *
 * A rank learns of others only where it waits or receives. So a row of the clock, one number per
 * rank, is made where a node joins what it did not know; the local steps that follow share it. How
 * far a rank's own local lane has come its steps know by their place in it.
 */
#include "schedule/check_model.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_CHECK_NONE

static uint32_t *row_at(const struct check *check, uint32_t row)
{
    return check->clock_rows + (size_t)row * check->nranks;
}

/* The rank whose local step (or part of it) a node is, and the local steps of its that are complete
 * there; NONE for other nodes. */
static uint32_t local_rank(const struct check *check, uint32_t node, uint32_t *ret_complete)
{
    uint32_t run = 0, rank;

    for (; node >= check_run_nodes(check); node -= check_run_nodes(check))
        run++;
    if (node >= 4 * check->nsteps || check->local_index[node / 4] == NONE)
        return NONE;
    rank = check->step_rank[node / 4];
    *ret_complete = run * check->local_count[rank] + check->local_index[node / 4] + (node & 1);
    return rank;
}

uint32_t tutti_check_clock(const struct check *check, uint32_t node, uint32_t rank)
{
    uint32_t complete;

    if (local_rank(check, node, &complete) == rank)
        return complete;
    return row_at(check, check->clock_row[node])[rank];
}

static int add_row(struct check *check)
{
    if (check->nclock_rows == check->clock_rows_capacity) {
        uint32_t capacity = check->clock_rows_capacity * 2 + 16;
        uint32_t *grown = realloc(check->clock_rows,
                                  (size_t)capacity * check->nranks * sizeof(*grown));

        if (grown == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM,
                              "no memory to check a schedule: %u clocks of %u ranks", capacity,
                              check->nranks);
        check->clock_rows = grown;
        check->clock_rows_capacity = capacity;
    }
    check->nclock_rows++;
    return TUTTI_OK;
}

static void join(uint32_t *restrict row, const uint32_t *restrict other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        row[i] = row[i] > other[i] ? row[i] : other[i];
}

/* Do all nodes before `node` share a row that says what they know of their own ranks? */
static bool is_row_shared(const struct check *check, uint32_t node, uint32_t row)
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

static int set_clock(struct check *check, uint32_t node)
{
    uint32_t first, row, *own;

    TUTTI_TRY(tutti_check_preds(check, node));
    first = check->npreds == 0 ? 0 : check->clock_row[check->preds[0]];
    if (is_row_shared(check, node, first)) {
        check->clock_row[node] = first;
        return TUTTI_OK;
    }
    row = check->nclock_rows;
    TUTTI_TRY(add_row(check));
    own = row_at(check, row);
    memcpy(own, row_at(check, first), check->nranks * sizeof(*own));
    for (uint32_t p = 0; p < check->npreds; p++) {
        uint32_t complete, rank = local_rank(check, check->preds[p], &complete);

        if (check->clock_row[check->preds[p]] != first)
            join(own, row_at(check, check->clock_row[check->preds[p]]), check->nranks);
        if (rank != NONE && own[rank] < complete)
            own[rank] = complete;
    }
    check->clock_row[node] = row;
    return TUTTI_OK;
}

int tutti_check_clocks(struct check *check)
{
    if (!check->is_shared)
        return TUTTI_OK;
    TUTTI_TRY(tutti_check_alloc(&check->clock_row, check_nodes(check), sizeof(uint32_t), 0));
    TUTTI_TRY(add_row(check));
    memset(check->clock_rows, 0, check->nranks * sizeof(uint32_t));
    for (uint32_t i = 0; i < check->nlog; i++)
        TUTTI_TRY(set_clock(check, check->log[i]));
    return TUTTI_OK;
}
