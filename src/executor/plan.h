/* SPDX-License-Identifier: Apache-2.0
 * A plan is a schedule whose two-sided steps are sorted into lanes, so that the executors can run
 * it. One plan serves all runs of its schedule.
 */
#ifndef TUTTI_EXECUTOR_PLAN_H
#define TUTTI_EXECUTOR_PLAN_H

#include "schedule/step.h"

/* A lane: the steps that use one direction of one connection, in order. */
struct tutti_lane {
    int32_t peer;
    uint8_t channel;
    bool is_receive;
    uint32_t first, count; /* in plan->lane_steps */
    uint32_t connection;   /* lanes of one peer and channel share a number: 0 .. nconnections-1 */
    bool needs_bounce;     /* has a RECV_REDUCE_SEND, which sends sums on without storing them */
};

struct tutti_plan {
    struct tutti_schedule *schedule; /* owned */
    uint32_t nlanes, nconnections;
    struct tutti_lane *lanes;
    uint32_t *lane_steps;  /* step indices */
    uint32_t nlocal;
    uint32_t *local_steps; /* local and one-sided steps, in order */
};

/* Makes a plan, which takes over `schedule`, also on failure. TUTTI_ERR_SYSTEM: no memory. */
int tutti_plan_create(struct tutti_schedule *schedule, struct tutti_plan **ret_plan);
/* Destroys the plan and its schedule. NULL is ignored. */
void tutti_plan_destroy(struct tutti_plan *plan);

#endif
