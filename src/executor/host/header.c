/* SPDX-License-Identifier: Apache-2.0
 * Sends, receives and compares headers. A header precedes the first bytes of an operation on each
 * lane, so that a rank detects a peer that makes a different call. */
#include "base/array.h"
#include "base/result.h"
#include "executor/host/lane.h"

#include <stdlib.h>
#include <string.h>

int tutti_run_lane_reserve_words(struct tutti_run_lane_state *state, uint32_t nwords)
{
    return TUTTI_ARRAY_RESERVE(state->words, nwords, state->word_capacity, "counts");
}

/* These return where a header and the counts behind it are, or are to be stored. Without counts,
 * all lanes send the header in the history. */
static const uint8_t *header_to_send(const struct tutti_run *run,
                                     const struct tutti_run_lane_state *state)
{
    return run->ncounts == 0 ? (const uint8_t *)run->header : (const uint8_t *)state->words;
}

static uint8_t *header_to_receive(const struct tutti_run *run, struct tutti_run_lane_state *state)
{
    return run->ncounts == 0 ? (uint8_t *)&state->header : (uint8_t *)state->words;
}

void tutti_run_lane_write_counts(const struct tutti_engine *engine, const struct tutti_lane *lane,
                                 struct tutti_run_lane_state *state)
{
    const struct tutti_run *run = &engine->run;
    const struct tutti_call *call = run->call;
    struct tutti_header header = *run->header;

    if (tutti_call_has_pairs(call)) {
        header.signature.count = tutti_call_gives(call, engine->rank, lane->peer);
        state->words[TUTTI_HEADER_WORDS] = tutti_call_takes(call, engine->rank, lane->peer);
    } else {
        memcpy(&state->words[TUTTI_HEADER_WORDS], tutti_call_shared_counts(call),
               run->ncounts * sizeof *state->words);
    }
    memcpy(state->words, &header, sizeof header);
}

/* Sends the header together with the first segment of the step if the transport can send two
 * buffers at once. A small step then travels with its header in one message instead of two. */
static int offer_header(const struct tutti_run *run, struct tutti_run_lane_state *state,
                        const struct tutti_step *step, const struct tutti_bound_step *bound,
                        size_t *ret_taken)
{
    const struct tutti_conn_ops *ops = state->conn->ops;
    const uint8_t *header = header_to_send(run, state);
    size_t done = state->header_bytes, size = run->header_bytes;
    const struct tutti_segment *segment;
    const uint8_t *data;

    if (step->kind != TUTTI_STEP_SEND || bound->bytes == 0)
        return ops->send(state->conn, header + done, size - done, ret_taken);
    segment = &run->bound->segments[bound->first];
    data = run->base[step->src.buffer] + segment->at[TUTTI_AT_SRC];
    if (ops->send_two != NULL)
        return ops->send_two(state->conn, header + done, size - done, data, segment->bytes,
                             ret_taken);
    return ops->send(state->conn, header + done, size - done, ret_taken);
}

int tutti_run_lane_send_header(struct tutti_run *run, struct tutti_run_lane_state *state,
                               const struct tutti_step *step, const struct tutti_bound_step *bound)
{
    size_t taken;

    if (state->header_bytes == run->header_bytes)
        return TUTTI_OK;
    TUTTI_TRY(offer_header(run, state, step, bound, &taken));
    if (taken == 0)
        return TUTTI_AGAIN;
    run->moved = true;
    taken += state->header_bytes;
    state->header_bytes = (uint32_t)(taken < run->header_bytes ? taken : run->header_bytes);
    if (taken > run->header_bytes)
        tutti_run_lane_advance(run, state, &run->bound->segments[bound->first],
                               taken - run->header_bytes);
    return state->header_bytes == run->header_bytes ? TUTTI_OK : TUTTI_AGAIN;
}

/* Receives bytes of the header together with data of the first segment, if the transport can
 * receive two buffers at once. If the step does not store data in place, `data` is NULL, and only
 * bytes of the header are received. */
static int take_header(const struct tutti_run *run, struct tutti_run_lane_state *state,
                       const struct tutti_step *step, const struct tutti_bound_step *bound,
                       size_t *ret_got)
{
    const struct tutti_conn_ops *ops = state->conn->ops;
    uint8_t *rest = header_to_receive(run, state) + state->header_bytes;
    size_t size = run->header_bytes - state->header_bytes;
    const struct tutti_segment *segment;
    uint8_t *data = NULL;

    if (ops->recv_two == NULL || bound->bytes == 0)
        return ops->recv(state->conn, rest, size, ret_got);
    segment = &run->bound->segments[bound->first];
    if (tutti_run_lane_receives_in_place(step))
        data = run->base[step->dst.buffer] + segment->at[TUTTI_AT_DST];
    return ops->recv_two(state->conn, rest, size, data, segment->bytes, ret_got);
}

/* Compares the received part of a header with this rank's header. The result is TUTTI_OK if no
 * difference has arrived yet. */
static int check_header(const struct tutti_engine *engine, const struct tutti_run_lane_state *state)
{
    const struct tutti_run *run = &engine->run;

    if (state->header_bytes < sizeof *run->header)
        return TUTTI_OK;
    if (run->ncounts > 0)
        return tutti_run_check_counts(engine, state->conn->peer, state->words,
                                      state->header_bytes);
    if (tutti_header_equal(&state->header, run->header))
        return TUTTI_OK;
    return tutti_run_mismatch(engine, run->header, state->conn->peer, &state->header);
}

/* Sends this rank's header to a peer that makes a different call, so that the peer detects the
 * mismatch too before this rank aborts. Sends only the bytes that the transport takes at once. */
static void tell_peer(struct tutti_run *run, struct tutti_conn *conn)
{
    const struct tutti_plan *plan = run->program->plan;

    for (uint32_t i = 0; i < plan->nlanes; i++) {
        struct tutti_run_lane_state *state = &run->lanes[i];
        size_t taken;

        if (plan->lanes[i].is_receive || plan->lanes[i].peer != conn->peer ||
            plan->lanes[i].channel != conn->channel || state->header_bytes == run->header_bytes)
            continue;
        if (conn->ops->send(conn, header_to_send(run, state) + state->header_bytes,
                            run->header_bytes - state->header_bytes, &taken) == TUTTI_OK)
            state->header_bytes += (uint32_t)taken;
    }
}

/* Calls tell_peer, and restores the message of the mismatch in case a failed send replaced it.
 * Returns `rc`. */
static int tell_peer_and_return(struct tutti_run *run, struct tutti_conn *conn, int rc)
{
    char message[TUTTI_MESSAGE_BYTES];

    memcpy(message, tutti_message_last(), sizeof message);
    tell_peer(run, conn);
    tutti_message_set_last(message);
    return rc;
}

int tutti_run_lane_receive_header(struct tutti_engine *engine, struct tutti_run_lane_state *state,
                                  const struct tutti_step *step, uint32_t index)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_bound_step *bound = &run->bound->steps[index];
    size_t got, left;
    int rc;

    if (state->header_bytes == run->header_bytes)
        return TUTTI_OK;
    do {
        TUTTI_TRY(take_header(run, state, step, bound, &got));
        if (got == 0)
            return TUTTI_AGAIN;
        left = run->header_bytes - state->header_bytes;
        state->header_bytes += (uint32_t)(got < left ? got : left);
        run->moved = true;
        rc = check_header(engine, state);
        if (rc != TUTTI_OK)
            return tell_peer_and_return(run, state->conn, rc);
    } while (got < left);
    if (got == left)
        return TUTTI_OK;
    run->received[index] += got - left;
    tutti_run_lane_advance(run, state, &run->bound->segments[bound->first], got - left);
    return TUTTI_OK;
}

/* Reads the rest of the header that a lane waits for, as far as it has arrived, but no data. */
static int read_header(struct tutti_engine *engine, const struct tutti_lane *lane,
                       struct tutti_run_lane_state *state)
{
    struct tutti_run *run = &engine->run;
    size_t got;

    if (state->conn == NULL)
        TUTTI_TRY(tutti_fabric_connect(engine->fabric, lane->peer, lane->channel, &state->conn));
    while (state->header_bytes < run->header_bytes) {
        TUTTI_TRY(state->conn->ops->recv(state->conn,
                                         header_to_receive(run, state) + state->header_bytes,
                                         run->header_bytes - state->header_bytes, &got));
        if (got == 0)
            return TUTTI_AGAIN;
        state->header_bytes += (uint32_t)got;
        TUTTI_TRY(check_header(engine, state));
    }
    return TUTTI_OK;
}

int tutti_lanes_read_headers(struct tutti_engine *engine)
{
    const struct tutti_plan *plan = engine->run.program->plan;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        if (plan->lanes[i].is_receive &&
            read_header(engine, &plan->lanes[i], &engine->run.lanes[i]) == TUTTI_ERR_USAGE)
            return TUTTI_ERR_USAGE;
    return TUTTI_OK;
}
