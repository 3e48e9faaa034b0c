/* SPDX-License-Identifier: Apache-2.0
 * Makes plans. It sorts the two-sided steps of a schedule into lanes. */
#include "executor/plan.h"

#include "base/result.h"
#include "schedule/access.h"

#include <stdlib.h>

/* Returns the lane of a peer, channel and direction. The first request for a lane adds it. */
static struct tutti_lane *get_lane(struct tutti_plan *plan, int32_t peer, uint8_t channel,
                                   bool is_receive)
{
    uint32_t connection = plan->nconnections;

    for (uint32_t i = 0; i < plan->nlanes; i++) {
        struct tutti_lane *lane = &plan->lanes[i];

        if (lane->peer != peer || lane->channel != channel)
            continue;
        if (lane->is_receive == is_receive)
            return lane;
        connection = lane->connection;
    }
    tutti_assert(plan->nlanes < 2 * plan->schedule->nsteps);
    if (connection == plan->nconnections)
        plan->nconnections++;
    plan->lanes[plan->nlanes] = (struct tutti_lane){
        .peer = peer, .channel = channel, .is_receive = is_receive, .connection = connection};
    return &plan->lanes[plan->nlanes++];
}

/* Adds the lanes with sends that depend on nothing. The executor visits lanes in the order in which
 * they were added. So the data of these lanes is under way before the executor visits a lane that
 * may have to wait. */
static void add_ready_lanes(struct tutti_plan *plan)
{
    const struct tutti_schedule *schedule = plan->schedule;

    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        if (step->kind == TUTTI_STEP_SEND && step->dep_count == 0)
            (void)get_lane(plan, step->to, step->channel, false);
    }
}

/* Adds all lanes, and counts the steps of each. */
static void add_lanes(struct tutti_plan *plan)
{
    const struct tutti_schedule *schedule = plan->schedule;

    add_ready_lanes(plan);
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        if (tutti_access_receives(step)) {
            struct tutti_lane *lane = get_lane(plan, step->from, step->channel, true);

            lane->count++;
            lane->needs_bounce |= step->kind == TUTTI_STEP_RECV_REDUCE_SEND;
        }
        if (tutti_access_sends(step))
            get_lane(plan, step->to, step->channel, false)->count++;
    }
}

/* Writes the indices of all steps into the lists of the plan. */
static void list_steps(struct tutti_plan *plan)
{
    const struct tutti_schedule *schedule = plan->schedule;
    uint32_t first = 0;

    for (uint32_t i = 0; i < plan->nlanes; i++) {
        plan->lanes[i].first = first;
        first += plan->lanes[i].count;
        plan->lanes[i].count = 0;
    }
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];
        bool receives = tutti_access_receives(step), sends = tutti_access_sends(step);

        if (receives) {
            struct tutti_lane *lane = get_lane(plan, step->from, step->channel, true);

            plan->lane_steps[lane->first + lane->count++] = i;
        }
        if (sends) {
            struct tutti_lane *lane = get_lane(plan, step->to, step->channel, false);

            plan->lane_steps[lane->first + lane->count++] = i;
        }
        if (!receives && !sends)
            plan->local_steps[plan->nlocal++] = i;
    }
    tutti_assert(first <= 2 * schedule->nsteps && plan->nlocal <= schedule->nsteps);
}

int tutti_plan_create(struct tutti_schedule *schedule, struct tutti_plan **ret_plan)
{
    struct tutti_plan *plan = calloc(1, sizeof *plan);
    size_t nsteps = schedule->nsteps;
    /* A step is in at most two lanes. One more entry, so that an empty array is not NULL. */
    size_t capacity = 2 * nsteps + 1;

    if (plan == NULL) {
        tutti_schedule_destroy(schedule);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    }
    plan->schedule = schedule;
    plan->lanes = calloc(capacity, sizeof *plan->lanes);
    plan->lane_steps = calloc(capacity, sizeof *plan->lane_steps);
    plan->local_steps = calloc(capacity, sizeof *plan->local_steps);
    if (plan->lanes == NULL || plan->lane_steps == NULL || plan->local_steps == NULL) {
        tutti_plan_destroy(plan);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan of %zu steps", nsteps);
    }
    add_lanes(plan);
    list_steps(plan);
    *ret_plan = plan;
    return TUTTI_OK;
}

void tutti_plan_destroy(struct tutti_plan *plan)
{
    if (plan == NULL)
        return;
    tutti_schedule_destroy(plan->schedule);
    free(plan->lanes);
    free(plan->lane_steps);
    free(plan->local_steps);
    free(plan);
}
