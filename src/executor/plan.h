/* SPDX-License-Identifier: Apache-2.0
 * A plan is a schedule whose two-sided steps are sorted into lanes, so that the executors can run
 * it. One plan serves all runs of its schedule.
 */
#ifndef TUTTI_EXECUTOR_PLAN_H
#define TUTTI_EXECUTOR_PLAN_H

#include "schedule/step.h"

/* A lane consists of the steps that use one direction of one connection, in order. */
struct tutti_lane {
    int32_t peer;          /* rank at the other end of the connection */
    uint8_t channel;       /* of the schedule (step.h) */
    bool is_receive;       /* true: the steps receive from the peer; false: they send to it */
    uint32_t first, count; /* the steps are plan->lane_steps[first .. first + count - 1] */
    uint32_t connection;   /* lanes of one peer and channel share a number: 0 .. nconnections-1 */
    /* True if the lane has a RECV_REDUCE_SEND. Such a step sends sums on without storing them in a
     * buffer of the schedule, so the lane needs a bounce buffer. */
    bool needs_bounce;
};

struct tutti_plan {
    struct tutti_schedule *schedule; /* owned */
    uint32_t nlanes, nconnections;
    struct tutti_lane *lanes; /* [nlanes] */
    uint32_t *lane_steps;     /* indices of steps, lane after lane */
    uint32_t nlocal;
    uint32_t *local_steps;    /* [nlocal]: indices of local and one-sided steps, in order */
};

/* Makes a plan, which takes over `schedule`, also on failure. TUTTI_ERR_SYSTEM: no memory. */
int tutti_plan_create(struct tutti_schedule *schedule, struct tutti_plan **ret_plan);
/* Destroys the plan and its schedule. NULL is ignored. */
void tutti_plan_destroy(struct tutti_plan *plan);

#endif
