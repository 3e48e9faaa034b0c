/* SPDX-License-Identifier: Apache-2.0
 * Runs the two-sided steps of a schedule. Every lane works on its first unfinished step. */
#include "base/result.h"
#include "executor/host/lane.h"
#include "schedule/access.h"

#include <stdlib.h>
#include <string.h>

/* Size of the buffer in which RECV_REDUCE_SEND holds reduced bytes until they are sent. */
enum { BOUNCE_BYTES = 32 * 1024 };

static const struct tutti_step *current_step(const struct tutti_run *run,
                                             const struct tutti_lane *lane,
                                             const struct tutti_run_lane_state *state,
                                             uint32_t *ret_index)
{
    const struct tutti_plan *plan = run->program->plan;

    *ret_index = plan->lane_steps[lane->first + state->position];
    return &plan->schedule->steps[*ret_index];
}

/* Marks the current step's half in this lane as complete, and moves the lane to its next step. */
static void finish_half(struct tutti_run *run, struct tutti_run_lane_state *state, uint32_t index)
{
    run->halves_left[index]--;
    state->position++;
    state->segment = 0;
    state->offset = 0;
    state->moved = 0;
    state->filled = state->drained = 0;
    run->moved = true;
}

/* ---- sending -------------------------------------------------------------------- */

/* Returns the state of the lane in which the other half of a fused step receives. */
static struct tutti_run_lane_state *receiving_lane(struct tutti_run *run,
                                                   const struct tutti_step *step)
{
    const struct tutti_plan *plan = run->program->plan;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        if (plan->lanes[i].is_receive && plan->lanes[i].peer == step->from &&
            plan->lanes[i].channel == step->channel)
            return &run->lanes[i];
    return NULL;
}

/* Sends reduced bytes of a RECV_REDUCE_SEND, which wait in the receiving lane's bounce buffer. */
static int send_from_bounce(struct tutti_run *run, struct tutti_run_lane_state *state,
                            const struct tutti_step *step, uint32_t index)
{
    struct tutti_run_lane_state *source = receiving_lane(run, step);
    size_t waiting, taken;

    /* The receiving half may not have begun, because its lane is still at an earlier step. */
    if (run->received[index] == state->moved)
        return TUTTI_AGAIN;
    waiting = source->filled - source->drained;
    TUTTI_TRY(state->conn->ops->send(state->conn, source->bounce + source->drained, waiting,
                                     &taken));
    source->drained += taken;
    state->moved += taken;
    if (source->drained == source->filled)
        source->drained = source->filled = 0;
    if (taken > 0)
        run->moved = true;
    return taken < waiting ? TUTTI_AGAIN : TUTTI_OK;
}

/* Sends the rest of the lane's current step. The sending half of a fused step sends only bytes that
 * its receiving half has stored. */
static int send_step(struct tutti_run *run, struct tutti_run_lane_state *state,
                     const struct tutti_step *step, uint32_t index)
{
    const struct tutti_bound_step *bound = &run->bound->steps[index];
    bool is_fused = step->kind != TUTTI_STEP_SEND;
    const struct tutti_span *span = is_fused ? &step->dst : &step->src;
    int slot = is_fused ? TUTTI_AT_DST : TUTTI_AT_SRC;
    const uint8_t *base = run->base[span->buffer];

    while (state->moved < bound->bytes) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + state->segment];
        size_t size = segment->bytes - state->offset, taken;

        if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND) {
            TUTTI_TRY(send_from_bounce(run, state, step, index));
            continue;
        }
        if (is_fused && size > run->received[index] - state->moved)
            size = run->received[index] - state->moved;
        if (size == 0)
            return TUTTI_AGAIN;
        TUTTI_TRY(state->conn->ops->send(state->conn, base + segment->at[slot] + state->offset,
                                         size, &taken));
        tutti_run_lane_advance(run, state, segment, taken);
        if (taken < size)
            return TUTTI_AGAIN;
    }
    return TUTTI_OK;
}

/* ---- receiving ------------------------------------------------------------------- */

/* Receives bytes of a segment straight into their destination. */
static int receive_copy(struct tutti_run *run, struct tutti_run_lane_state *state,
                        const struct tutti_segment *segment, uint8_t *dst, uint32_t index)
{
    size_t size = segment->bytes - state->offset, got;

    TUTTI_TRY(state->conn->ops->recv(state->conn, dst + segment->at[TUTTI_AT_DST] + state->offset,
                                     size, &got));
    run->received[index] += got;
    tutti_run_lane_advance(run, state, segment, got);
    return got < size ? TUTTI_AGAIN : TUTTI_OK;
}

/* Combines received bytes of a segment with this rank's own bytes. The result goes to the step's
 * destination, or to the bounce buffer if the step is a RECV_REDUCE_SEND. */
static int receive_reduce(struct tutti_run *run, struct tutti_run_lane_state *state,
                          const struct tutti_segment *segment, const struct tutti_step *step,
                          uint32_t index)
{
    enum tutti_type type = run->program->run_type;
    size_t element_bytes = tutti_type_size(type), most = segment->bytes - state->offset, size;
    const uint8_t *own = run->base[step->src.buffer] + segment->at[TUTTI_AT_SRC] + state->offset;
    const void *incoming;
    uint8_t *dst;

    if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND) {
        if (state->filled == BOUNCE_BYTES)
            return TUTTI_AGAIN;
        dst = state->bounce + state->filled;
        if (most > BOUNCE_BYTES - state->filled)
            most = BOUNCE_BYTES - state->filled;
    } else {
        dst = run->base[step->dst.buffer] + segment->at[TUTTI_AT_DST] + state->offset;
    }
    TUTTI_TRY(state->conn->ops->peek(state->conn, element_bytes, most, &incoming, &size));
    if (size == 0)
        return TUTTI_AGAIN;
    tutti_cpu_reduce2(type, run->call->op, dst, own, incoming, size / element_bytes);
    state->conn->ops->consume(state->conn, size);
    if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
        state->filled += size;
    run->received[index] += size;
    tutti_run_lane_advance(run, state, segment, size);
    return TUTTI_OK;
}

/* Receives the rest of the lane's current step. */
static int receive_step(struct tutti_run *run, struct tutti_run_lane_state *state,
                        const struct tutti_step *step, uint32_t index)
{
    const struct tutti_bound_step *bound = &run->bound->steps[index];

    while (state->moved < bound->bytes) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + state->segment];

        if (tutti_run_lane_receives_in_place(step))
            TUTTI_TRY(receive_copy(run, state, segment, run->base[step->dst.buffer], index));
        else
            TUTTI_TRY(receive_reduce(run, state, segment, step, index));
    }
    /* The next step must not use the bounce buffer before this step has sent its contents. */
    if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND && run->halves_left[index] > 1)
        return TUTTI_AGAIN;
    return TUTTI_OK;
}

/* ---- lanes ------------------------------------------------------------------------ */

/* Runs the steps of a lane, until all are complete or the lane must wait. */
static int advance_lane(struct tutti_engine *engine, uint32_t number)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_lane *lane = &run->program->plan->lanes[number];
    struct tutti_run_lane_state *state = &run->lanes[number];

    while (state->position < lane->count) {
        uint32_t index;
        const struct tutti_step *step = current_step(run, lane, state, &index);

        if (!tutti_run_deps_done(run, step))
            return TUTTI_AGAIN;
        if (run->bound->steps[index].bytes > 0 || run->is_vector) {
            if (state->conn == NULL)
                TUTTI_TRY(tutti_fabric_connect(engine->fabric, lane->peer, lane->channel,
                                               &state->conn));
            if (lane->is_receive) {
                TUTTI_TRY(tutti_run_lane_receive_header(engine, state, step, index));
                TUTTI_TRY(receive_step(run, state, step, index));
            } else {
                TUTTI_TRY(tutti_run_lane_send_header(run, state, step, &run->bound->steps[index]));
                TUTTI_TRY(send_step(run, state, step, index));
            }
        }
        finish_half(run, state, index);
    }
    return TUTTI_OK;
}

int tutti_run_lanes(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_plan *plan = run->program->plan;

    for (uint32_t i = 0; i < plan->nlanes && run->lanes_left > 0; i++) {
        int rc;

        if (run->lanes[i].position == plan->lanes[i].count)
            continue;
        rc = advance_lane(engine, i);
        if (rc == TUTTI_OK)
            run->lanes_left--;
        else if (rc != TUTTI_AGAIN)
            return rc;
    }
    return run->lanes_left == 0 ? TUTTI_OK : TUTTI_AGAIN;
}

void tutti_lanes_begin_piece(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_plan *plan = run->program->plan;
    const struct tutti_schedule *schedule = plan->schedule;

    tutti_assert(plan->nlanes <= run->lane_capacity && schedule->nsteps <= run->step_capacity);
    run->lanes_left = plan->nlanes;
    for (uint32_t i = 0; i < plan->nlanes; i++) {
        struct tutti_run_lane_state *state = &run->lanes[i];

        state->position = state->segment = 0;
        state->offset = state->moved = 0;
        state->filled = state->drained = 0;
        if (run->piece == 0) {
            state->conn = NULL;
            state->header_bytes = 0;
            if (run->ncounts > 0 && !plan->lanes[i].is_receive)
                tutti_run_lane_write_counts(engine, &plan->lanes[i], state);
        }
    }
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        run->halves_left[i] = tutti_access_receives(step) && tutti_access_sends(step) ? 2 : 1;
    }
    memset(run->received, 0, schedule->nsteps * sizeof *run->received);
}

int tutti_lanes_reserve(struct tutti_run *run, const struct tutti_plan *plan, uint32_t ncounts)
{
    uint32_t nsteps = plan->schedule->nsteps;

    if (plan->nlanes > run->lane_capacity) {
        void *grown = realloc(run->lanes, plan->nlanes * sizeof *run->lanes);

        if (grown == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u lanes", plan->nlanes);
        run->lanes = grown;
        memset(run->lanes + run->lane_capacity, 0,
               (plan->nlanes - run->lane_capacity) * sizeof *run->lanes);
        run->lane_capacity = plan->nlanes;
    }
    if (nsteps > run->step_capacity) {
        free(run->halves_left);
        free(run->received);
        run->step_capacity = 0;
        run->halves_left = malloc(nsteps);
        run->received = malloc(nsteps * sizeof *run->received);
        if (run->halves_left == NULL || run->received == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the state of %u steps", nsteps);
        run->step_capacity = nsteps;
    }
    for (uint32_t i = 0; ncounts > 0 && i < plan->nlanes; i++)
        TUTTI_TRY(tutti_run_lane_reserve_words(&run->lanes[i], TUTTI_HEADER_WORDS + ncounts));
    for (uint32_t i = 0; i < plan->nlanes; i++) {
        if (!plan->lanes[i].needs_bounce || run->lanes[i].bounce != NULL)
            continue;
        run->lanes[i].bounce = aligned_alloc(TUTTI_CACHE_LINE, BOUNCE_BYTES);
        if (run->lanes[i].bounce == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a buffer of %d bytes in which "
                              "received data is reduced", BOUNCE_BYTES);
    }
    return TUTTI_OK;
}

void tutti_lanes_fini(struct tutti_run *run)
{
    for (uint32_t i = 0; i < run->lane_capacity; i++) {
        free(run->lanes[i].bounce);
        free(run->lanes[i].words);
    }
    free(run->lanes);
    free(run->halves_left);
    free(run->received);
    run->lanes = NULL;
    run->halves_left = NULL;
    run->received = NULL;
    run->lane_capacity = run->step_capacity = 0;
}

size_t tutti_lanes_bytes(const struct tutti_run *run)
{
    size_t bytes = run->lane_capacity * sizeof *run->lanes +
                   run->step_capacity * (sizeof *run->halves_left + sizeof *run->received);

    for (uint32_t i = 0; i < run->lane_capacity; i++) {
        bytes += run->lanes[i].word_capacity * sizeof *run->lanes[i].words;
        if (run->lanes[i].bounce != NULL)
            bytes += BOUNCE_BYTES;
    }
    return bytes;
}

/* True if the lane waits for its peer. A lane whose bounce buffer is full does not wait for its
 * peer, but for the lane that sends the contents of the buffer. */
static bool is_starved(const struct tutti_run *run, const struct tutti_lane *lane,
                       const struct tutti_run_lane_state *state)
{
    const struct tutti_step *step;
    const void *bytes;
    uint32_t index;
    size_t size;

    if (state->position == lane->count)
        return false;
    step = current_step(run, lane, state, &index);
    if (!tutti_run_deps_done(run, step))
        return false;
    if (state->conn == NULL)
        return true;
    if (lane->is_receive)
        return state->filled < BOUNCE_BYTES &&
               (state->moved < run->bound->steps[index].bytes ||
                (run->is_vector && state->header_bytes < run->header_bytes)) &&
               (state->conn->ops->peek(state->conn, 1, 1, &bytes, &size) != TUTTI_OK || size == 0);
    return step->kind == TUTTI_STEP_SEND || run->received[index] > state->moved;
}

int tutti_lanes_awaited_rank(const struct tutti_run *run)
{
    const struct tutti_plan *plan = run->program->plan;

    for (int receives = 1; receives >= 0; receives--)
        for (uint32_t i = 0; i < plan->nlanes; i++)
            if (plan->lanes[i].is_receive == (receives == 1) &&
                is_starved(run, &plan->lanes[i], &run->lanes[i]))
                return plan->lanes[i].peer;
    return TUTTI_NO_RANK;
}
