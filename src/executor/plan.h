/* SPDX-License-Identifier: Apache-2.0
 * A plan is a schedule made ready for the host executor: its two-sided steps
 * sorted into lanes. One plan serves all runs of its schedule.
 */
#ifndef TUTTI_EXECUTOR_PLAN_H
#define TUTTI_EXECUTOR_PLAN_H

#include "schedule/step.h"

/* One direction of one connection: the steps that use it, in order. */
struct tutti_lane {
    int32_t peer;
    uint8_t channel;
    bool is_receive;
    uint32_t first, count; /* in plan->lane_steps */
    uint32_t connection;   /* lanes of one peer and channel share a number: 0 .. nconnections-1 */
    bool needs_bounce;     /* has a step that passes reduced data on without storing it */
};

struct tutti_plan {
    struct tutti_schedule *schedule; /* owned */
    uint32_t nlanes, nconnections;
    struct tutti_lane *lanes;
    uint32_t *lane_steps;  /* step indices */
    uint32_t nlocal;
    uint32_t *local_steps; /* local and one-sided steps, in order */
};

/* Takes the schedule, also on failure. */
int tutti_plan_create(struct tutti_schedule *schedule, struct tutti_plan **ret_plan);
void tutti_plan_destroy(struct tutti_plan *plan);

#endif
