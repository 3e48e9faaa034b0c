/* SPDX-License-Identifier: Apache-2.0
 * Defines the edges of happens-before, and answers whether one half of a step ends before another
 * begins. The checker uses the answers to find races. Vector clocks (clocks.c) give the answers for
 * local steps. For two-sided steps, this file searches along the edges. It also checks that no rank
 * can leave a barrier before all ranks have entered the barrier.
 *
 * model.h defines halves and nodes. A node comes directly after these nodes:
 *
 *   begin of a half   after the begin of its run, the end of the half before it in its lane, and
 *                     the ends of all halves of the steps that it depends on;
 *                     a receiving one also after the begin of the sending one;
 *                     the sending half of a fused step after the begin of its receiving half
 *   end of a half     after its begin; a receiving one after the end of the sending one;
 *                     the sending half of a fused step after the end of its receiving half;
 *                     that of a WAIT after the end of each signal that it waits for
 *   begin of a run    after the end of the rank's previous run, and after the first signal of each
 *                     other rank in that previous run
 *   end of a run      after the ends of all its halves
 *
 * If a rank gives fewer signals than are awaited, the missing ones count as given at the end of its
 * last local step.
 */
#include "schedule/check/model.h"

#include "base/result.h"

#include <stdlib.h>

#define NONE TUTTI_CHECK_NONE

/* Append a node to check->preds. */
static int add(struct tutti_check *check, uint32_t node)
{
    return tutti_check_push(&check->preds, &check->npreds, &check->preds_capacity, node);
}

uint32_t tutti_check_signal_node(const struct tutti_check *check, uint32_t run, uint32_t rank,
                                 uint32_t number)
{
    uint32_t first = check->signal_first[rank], last = check->local_last[rank];

    if (number <= check->signal_first[rank + 1] - first)
        return tutti_check_end(check, run, 2 * check->signal_steps[first + number - 1]);
    return last == NONE ? tutti_check_run_begin(check, run, rank)
                        : tutti_check_end(check, run, 2 * last);
}

static int add_signal(struct tutti_check *check, uint32_t run, uint32_t rank, uint32_t number)
{
    return add(check, tutti_check_signal_node(check, run, rank, number));
}

/* Append the predecessors of the begin of a run, as the head of this file lists them; likewise the
 * functions below. */
static int add_before_run(struct tutti_check *check, uint32_t run, uint32_t rank)
{
    if (run == 0)
        return TUTTI_OK;
    for (uint32_t other = 0; other < check->nranks; other++)
        if (other == rank)
            TUTTI_TRY(add(check, tutti_check_run_end(check, run - 1, rank)));
        else
            TUTTI_TRY(add_signal(check, run - 1, other, 1));
    return TUTTI_OK;
}

static int add_before_run_end(struct tutti_check *check, uint32_t run, uint32_t rank)
{
    TUTTI_TRY(add(check, tutti_check_run_begin(check, run, rank)));
    for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++) {
        uint32_t last = 2 * at + tutti_step_is_fused(tutti_check_step(check, at));

        for (uint32_t half = 2 * at; half <= last; half++)
            if (check->lane_after[half] == NONE) /* earlier halves end before the last one */
                TUTTI_TRY(add(check, tutti_check_end(check, run, half)));
    }
    return TUTTI_OK;
}

/* True if `half` receives a message, so that its mate is the sending half. */
static bool has_sender(const struct tutti_check *check, uint32_t half)
{
    return (half & 1) == 0 && tutti_access_receives(tutti_check_step(check, half / 2));
}

static int add_before_begin(struct tutti_check *check, uint32_t run, uint32_t half)
{
    const struct tutti_step *step = tutti_check_step(check, half / 2);
    uint32_t rank = check->step_rank[half / 2];
    const uint32_t *deps = tutti_step_deps(check->schedules[rank], step);

    /* One edge is enough, because the half before in the lane comes after all earlier halves of the
     * lane, and after the begin of the run. */
    if (check->lane_before[half] != NONE)
        TUTTI_TRY(add(check, tutti_check_end(check, run, check->lane_before[half])));
    else
        TUTTI_TRY(add(check, tutti_check_run_begin(check, run, rank)));
    if (has_sender(check, half))
        TUTTI_TRY(add(check, tutti_check_begin(check, run, check->mate[half])));
    if (half & 1)
        TUTTI_TRY(add(check, tutti_check_begin(check, run, half - 1)));
    for (uint32_t d = 0; d < step->dep_count; d++) {
        uint32_t on = check->first_step[rank] + deps[d];

        bool are_both_local =
            check->local_index[half / 2] != NONE && check->local_index[on] != NONE;

        if (are_both_local) /* the local lane orders them */
            continue;
        TUTTI_TRY(add(check, tutti_check_end(check, run, 2 * on)));
        if (tutti_step_is_fused(tutti_check_step(check, on)))
            TUTTI_TRY(add(check, tutti_check_end(check, run, 2 * on + 1)));
    }
    return TUTTI_OK;
}

static int add_before_end(struct tutti_check *check, uint32_t run, uint32_t half)
{
    const struct tutti_step *step = tutti_check_step(check, half / 2);
    uint32_t rank = check->step_rank[half / 2];

    TUTTI_TRY(add(check, tutti_check_begin(check, run, half)));
    if (has_sender(check, half))
        TUTTI_TRY(add(check, tutti_check_end(check, run, check->mate[half])));
    if (half & 1)
        TUTTI_TRY(add(check, tutti_check_end(check, run, half - 1)));
    if (step->kind != TUTTI_STEP_WAIT)
        return TUTTI_OK;
    if (step->from != TUTTI_ALL_RANKS)
        return add_signal(check, run, (uint32_t)step->from, step->signal);
    for (uint32_t other = 0; other < check->nranks; other++)
        if (other != rank)
            TUTTI_TRY(add_signal(check, run, other, step->signal));
    return TUTTI_OK;
}

int tutti_check_preds(struct tutti_check *check, uint32_t node)
{
    uint32_t run = node / tutti_check_run_nodes(check), at = node % tutti_check_run_nodes(check);
    uint32_t halves_end = tutti_check_half_nodes(check), rank;

    check->npreds = 0;
    if (at < halves_end)
        return (at & 1) ? add_before_end(check, run, at / 2) : add_before_begin(check, run, at / 2);
    rank = (at - halves_end) / 2;
    return ((at - halves_end) & 1) ? add_before_run_end(check, run, rank)
                                   : add_before_run(check, run, rank);
}

/* Start a search. A new stamp marks all nodes as not yet seen. */
static int start_search(struct tutti_check *check)
{
    if (check->seen == NULL)
        TUTTI_TRY(tutti_check_alloc(&check->seen, tutti_check_nodes(check), sizeof(uint32_t), 0));
    check->stamp++;
    return TUTTI_OK;
}

/* Push a node or half that this search has not seen yet. */
static int visit(struct tutti_check *check, uint32_t *depth, uint32_t item)
{
    if (check->seen[item] == check->stamp)
        return TUTTI_OK;
    check->seen[item] = check->stamp;
    return tutti_check_push(&check->stack, depth, &check->stack_capacity, item);
}

/* Search backward within one run of one rank, along its lanes and dependencies only. This is fast
 * and nearly always finds the order. If *ret_is is false, other ranks may still order the
 * halves. */
static int find_order_in_rank(struct tutti_check *check, uint32_t half_a, uint32_t half_b,
                              bool *ret_is)
{
    uint32_t rank = check->step_rank[half_b / 2], depth = 0;
    uint32_t first = check->first_step[rank];

    *ret_is = false;
    TUTTI_TRY(start_search(check));
    TUTTI_TRY(visit(check, &depth, half_b));
    while (depth > 0) {
        uint32_t half = check->stack[--depth], before = check->lane_before[half];
        const struct tutti_step *step = tutti_check_step(check, half / 2);
        const uint32_t *deps = tutti_step_deps(check->schedules[rank], step);

        for (uint32_t d = 0; d < step->dep_count; d++) {
            uint32_t on = first + deps[d];

            if (on == half_a / 2) {
                *ret_is = true;
                return TUTTI_OK;
            }
            if (on > half_a / 2) {
                TUTTI_TRY(visit(check, &depth, 2 * on));
                if (tutti_step_is_fused(tutti_check_step(check, on)))
                    TUTTI_TRY(visit(check, &depth, 2 * on + 1));
            }
        }
        /* When the sending half of a fused step has ended, its receiving half has ended too. */
        if (before != NONE && (before == half_a || ((before & 1) && before - 1 == half_a))) {
            *ret_is = true;
            return TUTTI_OK;
        }
        if (before != NONE && before / 2 > half_a / 2)
            TUTTI_TRY(visit(check, &depth, before));
        if (half & 1)
            TUTTI_TRY(visit(check, &depth, half - 1));
    }
    return TUTTI_OK;
}

/* Search backward from node `to` along all edges. */
static int find_order(struct tutti_check *check, uint32_t from, uint32_t to, bool *ret_is)
{
    uint32_t depth = 0;

    *ret_is = false;
    TUTTI_TRY(start_search(check));
    TUTTI_TRY(visit(check, &depth, to));
    while (depth > 0 && !*ret_is) {
        TUTTI_TRY(tutti_check_preds(check, check->stack[--depth]));
        for (uint32_t p = 0; p < check->npreds; p++) {
            *ret_is = *ret_is || check->preds[p] == from;
            TUTTI_TRY(visit(check, &depth, check->preds[p]));
        }
    }
    return TUTTI_OK;
}

int tutti_check_is_ordered(struct tutti_check *check, uint32_t run_a, uint32_t half_a,
                           uint32_t run_b, uint32_t half_b, bool *ret_is_ordered)
{
    uint32_t rank_a = check->step_rank[half_a / 2], rank_b = check->step_rank[half_b / 2];
    uint32_t index_a = check->local_index[half_a / 2], index_b = check->local_index[half_b / 2];
    uint32_t begin_b = tutti_check_begin(check, run_b, half_b);

    *ret_is_ordered = true;
    if (rank_a == rank_b && run_a < run_b)
        return TUTTI_OK;
    if (rank_a == rank_b && index_a != NONE && index_b != NONE && index_a < index_b)
        return TUTTI_OK;
    if (rank_a == rank_b && run_a == run_b) {
        TUTTI_TRY(find_order_in_rank(check, half_a, half_b, ret_is_ordered));
        if (*ret_is_ordered)
            return TUTTI_OK;
    }
    if (check->clock_row != NULL && index_a != NONE) {
        *ret_is_ordered = tutti_check_clock(check, begin_b, rank_a) >
                          run_a * check->local_count[rank_a] + index_a;
        return TUTTI_OK;
    }
    return find_order(check, tutti_check_end(check, run_a, half_a), begin_b, ret_is_ordered);
}

int tutti_check_barrier(struct tutti_check *check)
{
    uint32_t nranks = check->nranks, nwords = (nranks + 63) / 64; /* a bit per rank */
    /* Per node of the first run: the set of ranks whose begin happens before the node. */
    uint64_t *started;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_check_alloc(&started, (size_t)tutti_check_run_nodes(check) * nwords,
                                sizeof(*started), 0));
    for (uint32_t rank = 0; rank < nranks; rank++)
        started[(size_t)tutti_check_run_begin(check, 0, rank) * nwords + rank / 64] |= 1ull
                                                                                       << rank % 64;
    for (uint32_t i = 0; i < check->nlog; i++) {
        uint32_t node = check->log[i];

        if (node >= tutti_check_run_nodes(check))
            continue;
        TUTTI_TRY_OR(release, rc, tutti_check_preds(check, node));
        for (uint32_t p = 0; p < check->npreds; p++)
            for (uint32_t w = 0; w < nwords; w++)
                started[(size_t)node * nwords + w] |= started[(size_t)check->preds[p] * nwords + w];
    }
    for (uint32_t rank = 0; rank < nranks; rank++)
        for (uint32_t other = 0; other < nranks; other++)
            if (!(started[(size_t)tutti_check_run_end(check, 0, rank) * nwords + other / 64] >>
                      other % 64 &
                  1)) {
                rc = tutti_check_fail(check, rank, NONE,
                                      "may leave the barrier before rank %u entered it", other);
                goto release;
            }

release:
    free(started);
    return rc;
}
