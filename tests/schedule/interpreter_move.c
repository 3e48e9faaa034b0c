/* SPDX-License-Identifier: Apache-2.0
 * Moves one slice at the head of a lane. */
#include "schedule/interpreter_machine.h"

#include "schedule/access.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CHUNKS 4096

static bool stores(const struct tutti_step *step)
{
    return step->kind != TUTTI_STEP_SEND && step->kind != TUTTI_STEP_RECV_REDUCE_SEND;
}

static uint32_t message_chunks(const struct tutti_step *step)
{
    return stores(step) ? step->dst.count : step->src.count;
}

static void finish_half(struct machine *machine, struct lane *lane)
{
    struct rank_state *state = &machine->ranks[lane->rank];
    uint32_t step = lane->items[lane->head].step;

    state->halves_left[step]--;
    state->nhalves_left--;
    if (!lane->sends && !lane->receives && --state->nlocal_left == 0)
        state->signals = (state->run + 1) * machine->schedules[lane->rank]->nsignals;
    lane->head++;
    lane->is_started = false;
}

static bool may_begin(const struct machine *machine, const struct lane *lane)
{
    const struct rank_state *state = &machine->ranks[lane->rank];
    const struct tutti_schedule *schedule = machine->schedules[lane->rank];
    const struct tutti_step *step;

    if (!state->is_running || lane->head == lane->count)
        return false;
    step = &schedule->steps[lane->items[lane->head].step];
    for (uint32_t d = 0; d < step->dep_count; d++)
        if (state->halves_left[schedule->deps[step->dep_first + d]] > 0)
            return false;
    return true;
}

/* The head of a sending lane could give a slice now. */
static bool has_slice(const struct machine *machine, const struct lane *lane)
{
    const struct rank_state *state = &machine->ranks[lane->rank];
    uint32_t at;

    if (!may_begin(machine, lane))
        return false;
    at = lane->items[lane->head].step;
    return !step_receives(&machine->schedules[lane->rank]->steps[at]) ||
           state->forwarded[at] < state->received[at];
}

/* Take the next slice from the head of a sending lane. */
static uint32_t take_slice(struct machine *machine, struct lane *lane, struct value *values)
{
    struct rank_state *state = &machine->ranks[lane->rank];
    uint32_t at = lane->items[lane->head].step, slice = state->forwarded[at];
    const struct tutti_step *step = &machine->schedules[lane->rank]->steps[at];
    struct tutti_span span = step->kind == TUTTI_STEP_SEND ? step->src : step->dst;
    uint32_t count = message_chunks(step);

    for (uint32_t i = 0; i < count; i++)
        values[i] = step->kind == TUTTI_STEP_RECV_REDUCE_SEND
                        ? state->bounce[state->bounce_first[at] + i]
                        : *memory_at(&machine->memory, lane->rank, state->run, span, i, slice);
    if (++state->forwarded[at] == SLICES) {
        finish_half(machine, lane);
        /* A step without a store ends its receive when its last slice is gone. */
        if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
            finish_half(machine, machine_lane(machine, lane->rank, (uint32_t)step->from,
                                              step->channel, false, true));
    }
    return count;
}

static void put_slice(struct machine *machine, struct lane *lane, const struct value *values)
{
    struct rank_state *state = &machine->ranks[lane->rank];
    uint32_t at = lane->items[lane->head].step, slice = state->received[at]++;
    const struct tutti_step *step = &machine->schedules[lane->rank]->steps[at];
    bool copies = step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_COPY_SEND;

    for (uint32_t i = 0; i < message_chunks(step); i++) {
        struct value value = values[i];

        if (!copies)
            value = value_add(*memory_at(&machine->memory, lane->rank, state->run, step->src, i,
                                         slice), value);
        if (step->kind == TUTTI_STEP_RECV_REDUCE_SEND)
            state->bounce[state->bounce_first[at] + i] = value;
        else
            *memory_at(&machine->memory, lane->rank, state->run, step->dst, i, slice) = value;
    }
    if (state->received[at] == SLICES && step->kind != TUTTI_STEP_RECV_REDUCE_SEND)
        finish_half(machine, lane);
}

static bool move_send(struct machine *machine, struct lane *lane)
{
    struct value values[MOST_CHUNKS];
    uint32_t count;

    if (!machine->options->is_buffered || !has_slice(machine, lane))
        return false;
    count = take_slice(machine, lane, values);
    lane->queue = realloc(lane->queue, (lane->nqueue + count + 1) * sizeof(*lane->queue));
    lane->queue_counts = realloc(lane->queue_counts, (lane->nslices + 1) * sizeof(uint32_t));
    memcpy(lane->queue + lane->nqueue, values, count * sizeof(*values));
    lane->nqueue += count;
    lane->queue_counts[lane->nslices++] = count;
    return true;
}

static bool move_receive(struct machine *machine, struct lane *lane)
{
    const struct rank_state *state = &machine->ranks[lane->rank];
    struct value values[MOST_CHUNKS];
    const struct tutti_step *step;
    struct lane *sender;
    uint32_t at, count;

    if (!may_begin(machine, lane))
        return false;
    at = lane->items[lane->head].step;
    step = &machine->schedules[lane->rank]->steps[at];
    if (state->received[at] == SLICES || (step->kind == TUTTI_STEP_RECV_REDUCE_SEND &&
                                          state->received[at] != state->forwarded[at]))
        return false;
    sender = machine_lane(machine, lane->peer, lane->rank, lane->channel, true, false);
    if (machine->options->is_buffered) {
        if (sender->slices_head == sender->nslices)
            return false;
        count = sender->queue_counts[sender->slices_head++];
        memcpy(values, sender->queue + sender->queue_head, count * sizeof(*values));
        sender->queue_head += count;
    } else {
        if (!has_slice(machine, sender))
            return false;
        count = take_slice(machine, sender, values);
    }
    if (count != message_chunks(step))
        machine->outcome = OUTCOME_MISMATCH;
    else
        put_slice(machine, lane, values);
    return true;
}

static bool is_wait_over(const struct machine *machine, uint32_t rank,
                         const struct tutti_step *step)
{
    uint32_t number = machine->ranks[rank].run * machine->schedules[rank]->nsignals + step->signal;

    if (step->from != TUTTI_ALL_RANKS)
        return machine->ranks[step->from].signals >= number;
    for (uint32_t other = 0; other < machine->nranks; other++)
        if (other != rank && machine->ranks[other].signals < number)
            return false;
    return true;
}

/* One slice of a step of the local lane. */
static void run_local(struct machine *machine, uint32_t rank, const struct tutti_step *step,
                      uint32_t slice)
{
    uint32_t run = machine->ranks[rank].run;
    struct tutti_step_ranks among = tutti_step_ranks(machine->schedules[rank], step);
    uint32_t first = tutti_step_ranks_at(among, 0);
    struct memory *memory = &machine->memory;
    uint32_t from = step->kind == TUTTI_STEP_GET ? (uint32_t)step->from : rank;
    bool puts_one = step->kind == TUTTI_STEP_PUT && step->to >= 0;
    uint32_t to = puts_one ? (uint32_t)step->to : rank;
    struct tutti_span src = step->kind == TUTTI_STEP_GET ? step->remote : step->src;
    struct tutti_span dst = puts_one ? step->remote : step->dst;

    if (step->kind == TUTTI_STEP_GATHER_REDUCE && step->to >= 0) {
        to = (uint32_t)step->to;
        dst = step->remote_dst;
    }
    for (uint32_t i = 0; i < dst.count; i++) {
        struct value value, *into = memory_at(memory, to, run, dst, i, slice);

        if (step->kind != TUTTI_STEP_GATHER_REDUCE) {
            value = *memory_at(memory, from, run, src, i, slice);
            *into = step->kind == TUTTI_STEP_REDUCE ? value_add(*into, value) : value;
            for (uint32_t m = 0; m < among.count && step->to == TUTTI_ALL_RANKS; m++)
                if (tutti_step_ranks_at(among, m) != rank)
                    *memory_at(memory, tutti_step_ranks_at(among, m), run, step->remote, i, slice) =
                        value;
            continue;
        }
        value = *memory_at(memory, first, run, rank == first ? step->src : step->remote, i, slice);
        for (uint32_t m = 1; m < among.count; m++) {
            uint32_t other = tutti_step_ranks_at(among, m);

            value = value_fold(value, *memory_at(memory, other, run,
                                                 rank == other ? step->src : step->remote, i,
                                                 slice), among.count);
        }
        *into = value;
        if (step->also.buffer != TUTTI_BUF_NONE)
            *memory_at(memory, rank, run, step->also, i, slice) = value;
        for (uint32_t m = 0; m < among.count && step->to == TUTTI_ALL_RANKS; m++)
            if (tutti_step_ranks_at(among, m) != rank && step->remote_dst.buffer != TUTTI_BUF_NONE)
                *memory_at(memory, tutti_step_ranks_at(among, m), run, step->remote_dst, i, slice) =
                    value;
    }
}

static bool move_local(struct machine *machine, struct lane *lane)
{
    struct rank_state *state = &machine->ranks[lane->rank];
    const struct tutti_step *step;
    uint32_t at;

    if (!may_begin(machine, lane))
        return false;
    at = lane->items[lane->head].step;
    step = &machine->schedules[lane->rank]->steps[at];
    if (step->kind == TUTTI_STEP_WAIT && !is_wait_over(machine, lane->rank, step))
        return false;
    if (step->kind == TUTTI_STEP_SIGNAL)
        state->signals++;
    if (step->kind != TUTTI_STEP_WAIT && step->kind != TUTTI_STEP_SIGNAL) {
        run_local(machine, lane->rank, step, state->received[at]);
        if (++state->received[at] < SLICES)
            return true;
    }
    finish_half(machine, lane);
    return true;
}

bool machine_move_lane(struct machine *machine, struct lane *lane)
{
    return lane->sends      ? move_send(machine, lane)
           : lane->receives ? move_receive(machine, lane)
                            : move_local(machine, lane);
}
