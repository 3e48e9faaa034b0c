/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the two files about lanes share. lanes.c moves the bytes of steps, and header.c
 * moves the header that precedes the first bytes. */
#ifndef TUTTI_EXECUTOR_HOST_LANE_H
#define TUTTI_EXECUTOR_HOST_LANE_H

#include "executor/host/host.h"

/* Counts `bytes` bytes of `segment` as moved. `segment` must be the current segment of the lane's
 * current step, and the bytes must not reach beyond the end of the segment. */
static inline void tutti_run_lane_advance(struct tutti_run *run, struct tutti_run_lane_state *state,
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

/* True if the step stores the received bytes unchanged, straight to their destination. */
static inline bool tutti_run_lane_receives_in_place(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_COPY_SEND;
}

/* Sends the rest of the header. If the transport can send two buffers at once, also sends the
 * beginning of the data of `step`. TUTTI_OK: the header is sent. TUTTI_AGAIN: a part of the header
 * is still to be sent. */
int tutti_run_lane_send_header(struct tutti_run *run, struct tutti_run_lane_state *state,
                               const struct tutti_step *step, const struct tutti_bound_step *bound);

/* Receives the rest of the header before step `index`, and compares it with this rank's header.
 * TUTTI_OK: the header has arrived and is equal. TUTTI_AGAIN: a part has not arrived yet.
 * TUTTI_ERR_USAGE: the peer makes a different call. This rank's header has then been sent to the
 * peer, as far as the transport took it at once. */
int tutti_run_lane_receive_header(struct tutti_engine *engine, struct tutti_run_lane_state *state,
                                  const struct tutti_step *step, uint32_t index);

/* Makes room in state->words for `nwords` words of 64 bits, which hold a header and the counts
 * of a v-form that follow it. TUTTI_ERR_SYSTEM: no memory. */
int tutti_run_lane_reserve_words(struct tutti_run_lane_state *state, uint32_t nwords);

/* Writes into state->words the header that the sending lane `lane` sends, and the counts of a
 * v-form that follow it. */
void tutti_run_lane_write_counts(const struct tutti_engine *engine, const struct tutti_lane *lane,
                                 struct tutti_run_lane_state *state);

#endif
