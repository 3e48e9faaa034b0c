/* SPDX-License-Identifier: Apache-2.0
 * What the two files about lanes share: lanes.c moves the bytes of steps, header.c what
 * goes before the first of them. */
#ifndef TUTTI_EXECUTOR_HOST_LANE_H
#define TUTTI_EXECUTOR_HOST_LANE_H

#include "executor/host/host.h"

/* The lane has moved so many bytes of that segment of its current step. */
static inline void tutti_lane_advance(struct tutti_run *run, struct tutti_lane_state *state,
                                      const struct tutti_segment *segment, size_t bytes)
{
    state->moved += bytes;
    state->offset += bytes;
    if (state->offset == segment->bytes) {
        state->segment++;
        state->offset = 0;
    }
    if (bytes > 0)
        run->moved = true;
}

/* True if the step puts what it receives to its place as it is. */
static inline bool tutti_lane_receives_in_place(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_COPY_SEND;
}

/* Send what is left of the header, with the beginning of the step where that can be done in one go.
 * TUTTI_AGAIN: some of it is still to be sent. */
int tutti_lane_send_header(struct tutti_run *run, struct tutti_lane_state *state,
                           const struct tutti_step *step, const struct tutti_bound_step *bound);

/* Receive what is left of the header, and compare it with mine. TUTTI_ERR_USAGE: the peer calls
 * something else, and has been told so. */
int tutti_lane_receive_header(struct tutti_engine *engine, struct tutti_lane_state *state,
                              const struct tutti_step *step, uint32_t index);

/* In a run whose headers have counts behind them: room for both, and what a lane that sends
 * says. */
int tutti_lane_reserve_words(struct tutti_lane_state *state, uint32_t nwords);
void tutti_lane_write_counts(const struct tutti_run *run, const struct tutti_lane *lane,
                             struct tutti_lane_state *state);

#endif
