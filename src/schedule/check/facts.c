/* SPDX-License-Identifier: Apache-2.0
 * Fills in the facts about schedules that are correct: how much they send, and how long the longest
 * chain of messages is.
 */
#include "schedule/check/model.h"

#include "base/result.h"

#include <stdlib.h>

static void raise_to(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

/* Chunks of peers' memory that a step loads and stores. */
static uint64_t reached_by(const struct tutti_schedule *schedule, const struct tutti_step *step)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_step_accesses(step, accesses);
    uint64_t chunks = 0;

    for (uint32_t a = 0; a < naccesses; a++)
        chunks += (uint64_t)accesses[a].span.count *
                  tutti_step_count_peers(schedule, step, accesses[a].rank);
    return chunks;
}

static void count_rank(struct tutti_check *check, uint32_t rank)
{
    struct tutti_check_report *report = check->report;
    uint64_t sent = 0, received = 0, reached = 0;

    for (uint32_t at = check->first_step[rank]; at < check->first_step[rank + 1]; at++) {
        const struct tutti_step *step = tutti_check_step(check, at);
        uint32_t count = 0;

        if (tutti_step_is_two_sided(step))
            count = tutti_check_sized_span(check, at).count;
        report->messages += tutti_access_sends(step);
        sent += tutti_access_sends(step) ? count : 0;
        received += tutti_access_receives(step) ? count : 0;
        reached += reached_by(check->schedules[rank], step);
    }
    raise_to(&report->sent, sent);
    raise_to(&report->received, received);
    raise_to(&report->reached, reached);
    if (check->schedules[rank]->nsteps > report->steps)
        report->steps = check->schedules[rank]->nsteps;
    if (check->schedules[rank]->scratch_chunks > report->scratch)
        report->scratch = check->schedules[rank]->scratch_chunks;
}

static uint32_t rank_of(const struct tutti_check *check, uint32_t node)
{
    uint32_t halves_end = tutti_check_half_nodes(check);

    return node < halves_end ? check->step_rank[node / 4] : (node - halves_end) / 2;
}

/* True if the edge from `before` to `node` begins another message: if it leads from one rank to
 * another, or from one message of a lane to the next. */
static bool is_next_message(const struct tutti_check *check, uint32_t before, uint32_t node)
{
    bool is_same_rank = rank_of(check, before) == rank_of(check, node);
    uint32_t halves_end = tutti_check_half_nodes(check);
    bool is_next_in_lane = node < halves_end && before < halves_end &&
                           check->lane_before[node / 2] == before / 2 &&
                           check->local_index[node / 4] == TUTTI_CHECK_NONE;

    return !is_same_rank || is_next_in_lane;
}

static int find_depth(struct tutti_check *check)
{
    uint32_t *depth; /* per node of the first run */
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_check_alloc(&depth, tutti_check_run_nodes(check), sizeof(uint32_t), 0));
    for (uint32_t i = 0; i < check->nlog; i++) {
        uint32_t node = check->log[i];

        if (node >= tutti_check_run_nodes(check))
            continue;
        TUTTI_TRY_OR(release, rc, tutti_check_preds(check, node));
        for (uint32_t p = 0; p < check->npreds; p++) {
            uint32_t before = check->preds[p];
            uint32_t after = depth[before] + is_next_message(check, before, node);

            depth[node] = after > depth[node] ? after : depth[node];
        }
        if (depth[node] > check->report->depth)
            check->report->depth = depth[node];
    }

release:
    free(depth);
    return rc;
}

int tutti_check_facts(struct tutti_check *check)
{
    for (uint32_t rank = 0; rank < check->nranks; rank++)
        count_rank(check, rank);
    return find_depth(check);
}
