/* SPDX-License-Identifier: Apache-2.0
 * Runs programs step by step. */
#include "simcuda/oracle.h"

#include "device/cpu/cpu.h"
#include "schedule/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A message that has been sent and not received. */
struct letter {
    struct letter *next;
    uint32_t from, to, channel;
    size_t size_bytes;
    uint8_t bytes[];
};

struct seat {
    const struct tutti_program *program;
    const struct tutti_call *call;
    const struct tutti_bound *bound;
    uint8_t *base[TUTTI_BUF_COUNT];
    uint8_t *staged_input, *staged_output, *scratch, *window;
    uint32_t *positions;  /* of lanes, the local steps' last */
    uint8_t *halves_left; /* of steps */
    uint8_t **bounces;    /* of fused steps: what their sending halves pass on */
    uint32_t signals;     /* given in this piece */
};

struct oracle {
    uint32_t nranks, piece;
    struct seat *seats;
    struct letter *letters; /* in no order but that of each channel */
};

static void *room(size_t count, size_t size)
{
    void *at = calloc(count + 1, size);

    assert_non_null(at);
    return at;
}

static const struct tutti_schedule *schedule_of(const struct seat *seat)
{
    return seat->program->plan->schedule;
}

/* ---- letters ----------------------------------------------------------------------------- */

static void post_letter(struct oracle *oracle, uint32_t from, const struct tutti_step *step,
                        const uint8_t *bytes, size_t size_bytes)
{
    struct letter *letter = room(1, sizeof *letter + size_bytes), **at = &oracle->letters;

    letter->from = from;
    letter->to = (uint32_t)step->to;
    letter->channel = step->channel;
    letter->size_bytes = size_bytes;
    memcpy(letter->bytes, bytes, size_bytes);
    while (*at != NULL)
        at = &(*at)->next;
    *at = letter;
}

/* The oldest one for this receive, taken out; NULL: none has come. */
static struct letter *take_letter(struct oracle *oracle, uint32_t to, const struct tutti_step *step)
{
    for (struct letter **at = &oracle->letters; *at != NULL; at = &(*at)->next)
        if ((*at)->from == (uint32_t)step->from && (*at)->to == to &&
            (*at)->channel == step->channel) {
            struct letter *found = *at;

            *at = found->next;
            return found;
        }
    return NULL;
}

/* ---- two-sided steps --------------------------------------------------------------------- */

/* Copies the bytes of a step between its segments of a span and one run. */
static void gather(const struct seat *seat, uint32_t index, const struct tutti_span *span, int slot,
                   uint8_t *run, bool is_store)
{
    const struct tutti_bound_step *bound = &seat->bound->steps[index];

    for (uint32_t i = bound->first; i < bound->first + bound->count; i++) {
        const struct tutti_segment *segment = &seat->bound->segments[i];
        uint8_t *at = seat->base[span->buffer] + segment->at[slot];

        memcpy(is_store ? at : run, is_store ? run : at, segment->bytes);
        run += segment->bytes;
    }
}

static void receive(struct seat *seat, const struct tutti_step *step, uint32_t index,
                    uint8_t *bytes, size_t size)
{
    enum tutti_type type = seat->program->run_type;

    if (step->kind != TUTTI_STEP_RECV && step->kind != TUTTI_STEP_RECV_COPY_SEND) {
        uint8_t *own = room(1, size);

        gather(seat, index, &step->src, TUTTI_AT_SRC, own, false);
        tutti_cpu_reduce2(type, seat->call->op, bytes, own, bytes, size / tutti_type_size(type));
        free(own);
    }
    if (step->kind != TUTTI_STEP_RECV_REDUCE_SEND)
        gather(seat, index, &step->dst, TUTTI_AT_DST, bytes, true);
    if (tutti_access_sends(step)) {
        seat->bounces[index] = room(1, size);
        memcpy(seat->bounces[index], bytes, size);
    }
}

static bool run_half(struct oracle *oracle, uint32_t rank, uint32_t index, bool is_receive)
{
    struct seat *seat = &oracle->seats[rank];
    const struct tutti_step *step = &schedule_of(seat)->steps[index];
    size_t size = seat->bound->steps[index].bytes;
    struct letter *letter;
    uint8_t *bytes;

    if (size == 0)
        return true;
    if (is_receive) {
        letter = take_letter(oracle, rank, step);
        if (letter == NULL)
            return false;
        assert_int_equal(letter->size_bytes, size);
        receive(seat, step, index, letter->bytes, size);
        free(letter);
        return true;
    }
    if (tutti_access_receives(step)) {
        if (seat->bounces[index] == NULL)
            return false;
        post_letter(oracle, rank, step, seat->bounces[index], size);
        free(seat->bounces[index]);
        seat->bounces[index] = NULL;
        return true;
    }
    bytes = room(1, size);
    gather(seat, index, &step->src, TUTTI_AT_SRC, bytes, false);
    post_letter(oracle, rank, step, bytes, size);
    free(bytes);
    return true;
}

/* ---- local and one-sided steps ----------------------------------------------------------- */

static void reduce(const struct seat *seat, const struct tutti_step *step, const void **srcs,
                   uint32_t nsrcs, void **dsts, uint32_t ndsts, size_t size_bytes, bool is_sum)
{
    enum tutti_type type = is_sum ? seat->program->run_type : TUTTI_UINT8;
    struct tutti_reduce_args args = {
        .type = type, .op = seat->call->op, .nsrcs = nsrcs, .ndsts = ndsts, .srcs = srcs,
        .dsts = dsts, .count = size_bytes / tutti_type_size(type), .scale = TUTTI_NO_SCALE};

    if (step->kind == TUTTI_STEP_GATHER_REDUCE && seat->call->is_average &&
        schedule_of(seat)->is_one_sided && !schedule_of(seat)->sums_in_stages)
        args.scale = (struct tutti_scale){.multiply = 1.0 / schedule_of(seat)->nranks,
                                          .divide = schedule_of(seat)->nranks};
    tutti_cpu_reduce(&args);
}

static void run_segment(struct oracle *oracle, uint32_t rank, const struct tutti_step *step,
                        const struct tutti_segment *segment)
{
    struct seat *seat = &oracle->seats[rank];
    bool gathers = step->kind == TUTTI_STEP_GATHER_REDUCE, is_put = step->kind == TUTTI_STEP_PUT;
    struct tutti_step_ranks among = tutti_step_ranks(schedule_of(seat), step);
    struct tutti_step_ranks to = tutti_step_peers(schedule_of(seat), step, step->to);
    const struct tutti_span *remote = is_put ? &step->remote : &step->remote_dst;
    int slot = is_put ? TUTTI_AT_REMOTE : TUTTI_AT_REMOTE_DST;
    const void *srcs[64];
    void *dsts[66];
    uint32_t nsrcs = 0, ndsts = 0;

    if (step->kind == TUTTI_STEP_REDUCE)
        srcs[nsrcs++] = seat->base[step->dst.buffer] + segment->at[TUTTI_AT_DST];
    if (step->kind == TUTTI_STEP_GET)
        srcs[nsrcs++] = oracle->seats[step->from].base[step->remote.buffer] +
                        segment->at[TUTTI_AT_REMOTE];
    else if (!gathers)
        srcs[nsrcs++] = seat->base[step->src.buffer] + segment->at[TUTTI_AT_SRC];
    for (uint32_t m = 0; gathers && m < among.count; m++) {
        uint32_t from = tutti_step_ranks_at(among, m);

        srcs[nsrcs++] = from == rank ? seat->base[step->src.buffer] + segment->at[TUTTI_AT_SRC]
                                     : oracle->seats[from].base[step->remote.buffer] +
                                           segment->at[TUTTI_AT_REMOTE];
    }
    if (step->dst.buffer != TUTTI_BUF_NONE)
        dsts[ndsts++] = seat->base[step->dst.buffer] + segment->at[TUTTI_AT_DST];
    if (step->also.buffer != TUTTI_BUF_NONE)
        dsts[ndsts++] = seat->base[step->also.buffer] + segment->at[TUTTI_AT_ALSO];
    for (uint32_t m = 0; (gathers || is_put) && m < to.count; m++)
        if (tutti_step_ranks_at(to, m) != rank)
            dsts[ndsts++] = oracle->seats[tutti_step_ranks_at(to, m)].base[remote->buffer] +
                            segment->at[slot];
    reduce(seat, step, srcs, nsrcs, dsts, ndsts, segment->bytes,
           gathers || step->kind == TUTTI_STEP_REDUCE);
}

static bool has_signaled(const struct oracle *oracle, uint32_t me, const struct tutti_step *step)
{
    for (uint32_t rank = 0; rank < oracle->nranks; rank++)
        if (rank != me && (step->from == TUTTI_ALL_RANKS || step->from == (int32_t)rank) &&
            oracle->seats[rank].signals < step->signal)
            return false;
    return true;
}

static bool run_local(struct oracle *oracle, uint32_t rank, uint32_t index)
{
    struct seat *seat = &oracle->seats[rank];
    const struct tutti_step *step = &schedule_of(seat)->steps[index];
    const struct tutti_bound_step *bound = &seat->bound->steps[index];

    if (step->kind == TUTTI_STEP_WAIT)
        return has_signaled(oracle, rank, step);
    if (step->kind == TUTTI_STEP_SIGNAL)
        seat->signals++;
    else
        for (uint32_t i = bound->first; i < bound->first + bound->count; i++)
            run_segment(oracle, rank, step, &seat->bound->segments[i]);
    return true;
}

/* ---- pieces ------------------------------------------------------------------------------ */

static size_t elements(const struct oracle *oracle, const struct seat *seat, const size_t *counts,
                       size_t block)
{
    size_t done = oracle->piece * seat->program->piece_count, left = seat->call->count - done;

    if (counts != NULL)
        return counts[block];
    return left < seat->program->piece_count ? left : seat->program->piece_count;
}

static size_t start_of(const struct oracle *oracle, const struct seat *seat, const size_t *counts,
                       const size_t *displs, size_t block)
{
    size_t start = 0;

    if (counts == NULL)
        return block * seat->call->count + oracle->piece * seat->program->piece_count;
    for (size_t i = 0; displs == NULL && i < block; i++)
        start += counts[i];
    return displs != NULL ? displs[block] : start;
}

static void stage(const struct oracle *oracle, struct seat *seat)
{
    const struct tutti_call *call = seat->call;
    const struct tutti_program *program = seat->program;
    uint8_t *to = seat->staged_input;
    float scalar = 1.0f;

    if (program->widens && call->is_premultiplied)
        tutti_cpu_widen(call->type, &scalar, tutti_call_scalar(call), 1, 1.0f);
    for (size_t block = 0; block < program->input_blocks; block++) {
        size_t count = elements(oracle, seat, call->input_counts, block);
        const uint8_t *from = (const uint8_t *)call->input +
            start_of(oracle, seat, call->input_counts, call->input_displs, block) *
                tutti_type_size(call->type);

        if (program->widens)
            tutti_cpu_widen(call->type, (float *)(void *)to, from, count, scalar);
        else if (call->is_premultiplied)
            tutti_cpu_premultiply(call->type, to, from, count, tutti_call_scalar(call));
        else
            memcpy(to, from, count * tutti_type_size(call->type));
        to += count * tutti_type_size(program->run_type);
    }
}

static void finish(const struct oracle *oracle, struct seat *seat)
{
    const struct tutti_call *call = seat->call;
    const uint8_t *from = seat->staged_output;
    struct tutti_scale scale = TUTTI_NO_SCALE;

    if (call->is_average)
        scale = (struct tutti_scale){1.0 / oracle->nranks, oracle->nranks};
    for (size_t block = 0; block < seat->program->output_blocks; block++) {
        size_t count = elements(oracle, seat, call->output_counts, block);
        uint8_t *to = (uint8_t *)call->output +
            start_of(oracle, seat, call->output_counts, call->output_displs, block) *
                tutti_type_size(call->type);

        if (seat->program->widens)
            tutti_cpu_narrow(call->type, to, (const float *)(const void *)from, count,
                             (float)scale.multiply);
        else if (seat->program->makes_truth)
            tutti_cpu_reduce2(call->type, TUTTI_LOR, to, to, to, count);
        else
            tutti_cpu_scale(call->type, to, to, count, scale);
        from += count * sizeof(float);
    }
}

static uint8_t *piece_of(const struct oracle *oracle, const struct seat *seat, const void *buffer)
{
    if (buffer == NULL)
        return NULL;
    return (uint8_t *)(uintptr_t)buffer +
           oracle->piece * seat->program->piece_count * tutti_type_size(seat->call->type);
}

static void begin(struct oracle *oracle, struct seat *seat)
{
    const struct tutti_program *program = seat->program;
    const struct tutti_schedule *schedule = schedule_of(seat);

    seat->bound = oracle->piece + 1 == program->npieces ? &program->last : &program->full;
    seat->base[TUTTI_BUF_INPUT] = program->stages_input ? seat->staged_input
                                                        : piece_of(oracle, seat, seat->call->input);
    seat->base[TUTTI_BUF_OUTPUT] = program->widens ? seat->staged_output
                                                   : piece_of(oracle, seat, seat->call->output);
    seat->base[TUTTI_BUF_SCRATCH] = seat->scratch;
    seat->base[TUTTI_BUF_WINDOW] = seat->window;
    seat->signals = 0;
    memset(seat->positions, 0, (program->plan->nlanes + 1) * sizeof *seat->positions);
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        seat->halves_left[i] = tutti_access_receives(&schedule->steps[i]) &&
                               tutti_access_sends(&schedule->steps[i]) ? 2 : 1;
    if (program->stages_input)
        stage(oracle, seat);
}

static bool deps_are_done(const struct seat *seat, const struct tutti_step *step)
{
    for (uint32_t i = 0; i < step->dep_count; i++)
        if (seat->halves_left[schedule_of(seat)->deps[step->dep_first + i]] != 0)
            return false;
    return true;
}

/* One lane as far as it goes. */
static bool run_lane(struct oracle *oracle, uint32_t rank, uint32_t number)
{
    struct seat *seat = &oracle->seats[rank];
    const struct tutti_plan *plan = seat->program->plan;
    bool is_local = number == plan->nlanes, moved = false;
    const struct tutti_lane *lane = is_local ? NULL : &plan->lanes[number];
    uint32_t count = is_local ? plan->nlocal : lane->count;

    for (; seat->positions[number] < count; seat->positions[number]++) {
        uint32_t position = seat->positions[number];
        uint32_t index = is_local ? plan->local_steps[position]
                                  : plan->lane_steps[lane->first + position];

        if (!deps_are_done(seat, &plan->schedule->steps[index]) ||
            !(is_local ? run_local(oracle, rank, index)
                       : run_half(oracle, rank, index, lane->is_receive)))
            break;
        seat->halves_left[index]--;
        moved = true;
    }
    return moved;
}

static void run_piece(struct oracle *oracle)
{
    bool moved = true;

    for (uint32_t rank = 0; rank < oracle->nranks; rank++)
        begin(oracle, &oracle->seats[rank]);
    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < oracle->nranks; rank++)
            for (uint32_t i = 0; i <= oracle->seats[rank].program->plan->nlanes; i++)
                moved |= run_lane(oracle, rank, i);
    }
    for (uint32_t rank = 0; rank < oracle->nranks; rank++) {
        struct seat *seat = &oracle->seats[rank];

        for (uint32_t i = 0; i < schedule_of(seat)->nsteps; i++)
            assert_int_equal(seat->halves_left[i], 0);
        if (seat->program->finishes_output)
            finish(oracle, seat);
    }
}

void oracle_run(const struct tutti_program *const *programs, const struct tutti_call *calls,
                uint32_t nranks)
{
    struct oracle oracle = {.nranks = nranks, .seats = room(nranks, sizeof *oracle.seats)};

    for (uint32_t rank = 0; rank < nranks; rank++) {
        const struct tutti_program *program = programs[rank];
        const struct tutti_schedule *schedule = program->plan->schedule;
        struct seat *seat = &oracle.seats[rank];
        size_t slot = program->npieces > 1 ? program->full.slot_bytes : program->last.slot_bytes;

        seat->program = program;
        seat->call = &calls[rank];
        seat->staged_input = room(1, program->staged_input_bytes);
        seat->staged_output = room(1, program->staged_output_bytes);
        seat->scratch = room(1, program->scratch_bytes);
        seat->window = room(schedule->window_chunks, slot);
        seat->positions = room(program->plan->nlanes + 1, sizeof *seat->positions);
        seat->halves_left = room(schedule->nsteps, 1);
        seat->bounces = room(schedule->nsteps, sizeof *seat->bounces);
        assert_int_equal(program->npieces, programs[0]->npieces);
    }
    for (; oracle.piece < programs[0]->npieces; oracle.piece++)
        run_piece(&oracle);
    assert_null(oracle.letters);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        free(oracle.seats[rank].staged_input);
        free(oracle.seats[rank].staged_output);
        free(oracle.seats[rank].scratch);
        free(oracle.seats[rank].window);
        free(oracle.seats[rank].positions);
        free(oracle.seats[rank].halves_left);
        free(oracle.seats[rank].bounces);
    }
    free(oracle.seats);
}
