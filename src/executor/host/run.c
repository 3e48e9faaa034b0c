/* SPDX-License-Identifier: Apache-2.0
 * Carries out runs. For each piece of a call, it stages the input, enters the round, runs the
 * steps, leaves the round, and finishes the output. */
#include "base/hot.h"
#include "base/result.h"
#include "base/round.h"
#include "executor/host/host.h"
#include "executor/host/program.h"

#include <stdlib.h>
#include <string.h>

/* The next thing that a run has to do. */
enum phase {
    PHASE_AGREE, /* agree with all ranks whether to run on lent memory (lend.c) */
    PHASE_PIECE, /* begin the current piece, or end if there is none left */
    PHASE_ENTER, /* enter the round of the piece, if the schedule has one-sided steps */
    PHASE_STEPS, /* run the steps of the piece */
};

/* ---- engine ---------------------------------------------------------------------- */

int tutti_engine_init(struct tutti_engine *engine, struct tutti_fabric *fabric, int nranks,
                      int rank)
{
    tutti_assert(rank >= 0 && rank < nranks);
    *engine = (struct tutti_engine){.fabric = fabric, .nranks = nranks, .rank = rank};
    if (tutti_fabric_is_one_domain(fabric))
        engine->domain = tutti_fabric_domain(fabric);
    engine->cache_bytes = tutti_engine_last_cache_bytes();
    engine->sources = calloc((size_t)nranks, sizeof *engine->sources);
    engine->sinks = calloc((size_t)nranks + 2, sizeof *engine->sinks); /* 2: `dst` and `also` */
    if (engine->sources == NULL || engine->sinks == NULL) {
        tutti_engine_fini(engine);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for an engine of %d ranks", nranks);
    }
    if (tutti_fabric_all_read(fabric) && !tutti_fabric_all_store(fabric))
        engine->lend = tutti_fabric_lend(fabric);
    return TUTTI_OK;
}

void tutti_engine_fini(struct tutti_engine *engine)
{
    tutti_lanes_fini(&engine->run);
    free(engine->arena);
    free(engine->sources);
    free(engine->sinks);
    *engine = (struct tutti_engine){.fabric = NULL};
}

size_t tutti_engine_bytes(const struct tutti_engine *engine)
{
    return sizeof *engine + engine->arena_bytes + tutti_lanes_bytes(&engine->run) +
           (2 * (size_t)engine->nranks + 2) * sizeof(void *);
}

/* Makes room in the arena for staged INPUT and OUTPUT and for SCRATCH. */
static int reserve_arena(struct tutti_engine *engine, const struct tutti_program *program)
{
    struct tutti_run *run = &engine->run;
    size_t staged = program->staged_input_bytes + program->staged_output_bytes;
    size_t bytes = staged + program->scratch_bytes;

    if (bytes > engine->arena_bytes) {
        free(engine->arena);
        engine->arena_bytes = 0;
        bytes = tutti_round_up(bytes, TUTTI_CACHE_LINE);
        engine->arena = aligned_alloc(TUTTI_CACHE_LINE, bytes);
        if (engine->arena == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes of staging", bytes);
        engine->arena_bytes = bytes;
    }
    tutti_assert(staged + program->scratch_bytes <= engine->arena_bytes);
    run->staged_input = run->staged_output = run->scratch = engine->arena;
    if (bytes == 0) /* the arena may be NULL, so add no offsets to it */
        return TUTTI_OK;
    run->staged_output = engine->arena + program->staged_input_bytes;
    run->scratch = engine->arena + staged;
    return TUTTI_OK;
}

/* ---- staging ---------------------------------------------------------------------- */

/* Returns the elements of a block in the current piece. In a v-form, which has one piece, this is
 * the block's own count. */
static size_t block_elements(const struct tutti_run *run, const size_t *counts, size_t block)
{
    const struct tutti_program *program = run->program;
    size_t done = run->piece * program->piece_count;

    if (counts)
        return counts[block];
    return run->call->count - done < program->piece_count ? run->call->count - done
                                                         : program->piece_count;
}

/* Returns where a block of the current piece begins in the user's buffer, in elements. */
static size_t block_start(const struct tutti_run *run, const size_t *counts, const size_t *displs,
                          size_t block)
{
    size_t start = 0;

    if (!counts)
        return block * run->call->count + run->piece * run->program->piece_count;
    if (displs)
        return displs[block];
    for (size_t i = 0; i < block; i++)
        start += counts[i];
    return start;
}

/* Returns the scalar of a pre-multiplied call on narrow floats, as float32. Returns 1 if the call
 * is not pre-multiplied. */
static float narrow_scalar(const struct tutti_call *call)
{
    float value = 1.0f;

    if (call->is_premultiplied)
        tutti_cpu_widen(call->type, &value, tutti_call_scalar(call), 1, 1.0f);
    return value;
}

/* Copies the current piece of the user's input to the staged INPUT, without gaps between blocks. */
static void stage_input(struct tutti_run *run)
{
    const struct tutti_call *call = run->call;
    const struct tutti_program *program = run->program;
    size_t from_size = tutti_type_size(call->type), to_size = tutti_type_size(program->run_type);
    uint8_t *to = run->staged_input;

    for (size_t block = 0; block < program->input_blocks; block++) {
        size_t count = block_elements(run, call->input_counts, block);
        const uint8_t *from = (const uint8_t *)call->input +
            block_start(run, call->input_counts, call->input_displs, block) * from_size;

        if (program->widens)
            tutti_cpu_widen(call->type, (float *)(void *)to, from, count, narrow_scalar(call));
        else if (call->is_premultiplied)
            tutti_cpu_premultiply(call->type, to, from, count, tutti_call_scalar(call));
        else
            tutti_cpu_copy(to, from, count * from_size, false);
        to += count * to_size;
    }
}

static struct tutti_scale scale_of(const struct tutti_call *call, int nranks)
{
    if (!call->is_average)
        return TUTTI_NO_SCALE;
    return (struct tutti_scale){.multiply = 1.0 / nranks, .divide = nranks};
}

/* Narrows, scales or makes truth values of the results of the current piece. The function is not
 * inlined, because small calls have nothing to finish. */
static void __attribute__((noinline)) finish_output(const struct tutti_engine *engine)
{
    const struct tutti_run *run = &engine->run;
    const struct tutti_call *call = run->call;
    const struct tutti_program *program = run->program;
    struct tutti_scale scale = scale_of(call, engine->nranks);
    size_t size = tutti_type_size(call->type);
    const uint8_t *from = run->staged_output;

    for (size_t block = 0; block < program->output_blocks; block++) {
        size_t count = block_elements(run, call->output_counts, block);
        uint8_t *to = (uint8_t *)call->output +
            block_start(run, call->output_counts, call->output_displs, block) * size;

        if (program->widens)
            tutti_cpu_narrow(call->type, to, (const float *)(const void *)from, count,
                             (float)scale.multiply);
        else if (program->makes_truth)
            tutti_cpu_reduce2(call->type, TUTTI_LOR, to, to, to, count);
        else
            tutti_cpu_scale(call->type, to, to, count, scale);
        from += count * sizeof(float); /* only a widened output is staged */
    }
}

/* ---- pieces ------------------------------------------------------------------------ */

/* Returns where the current piece begins in a buffer of the user. */
static uint8_t *piece_base(const struct tutti_run *run, const void *buffer)
{
    uint8_t *base = (uint8_t *)(uintptr_t)buffer;

    if (run->piece == 0 || buffer == NULL)
        return base;
    return base + run->piece * run->program->piece_count * tutti_type_size(run->call->type);
}

/* Sets the buffers of the current piece, stages its input, and begins its round. */
static void begin_piece(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_program *program = run->program;
    const struct tutti_schedule *schedule = program->plan->schedule;

    tutti_assert(run->piece < program->npieces);
    run->bound = run->piece + 1 == program->npieces ? &program->last : &program->full;
    tutti_assert(run->bound->schedule == schedule);
    run->base[TUTTI_BUF_INPUT] = program->stages_input ? run->staged_input
                                                       : piece_base(run, run->call->input);
    run->base[TUTTI_BUF_OUTPUT] = program->widens ? run->staged_output
                                                  : piece_base(run, run->call->output);
    run->base[TUTTI_BUF_SCRATCH] = run->scratch;
    run->local_position = 0;
    run->wait_index = 0;
    run->signals_given = 0;
    if (program->stages_input)
        stage_input(run);
    if (!schedule->is_one_sided)
        tutti_lanes_begin_piece(engine);
    if (schedule->needs)
        engine->round++;
}

/* Returns the last round before the current one that member `index` has entered, as its posts show.
 * The result is engine->all_entered if the posts show no later round. */
static uint64_t last_entered(const struct tutti_engine *engine, uint32_t index)
{
    uint64_t round = engine->round - 1;

    while (round > engine->all_entered && !tutti_domain_has_signal(engine->domain, index, round, 1))
        round--;
    return round;
}

int tutti_run_await_entry(struct tutti_engine *engine, uint64_t needed)
{
    const struct tutti_domain *domain = engine->domain;
    struct tutti_run *run = &engine->run;
    uint64_t all_entered = engine->round - 1;

    tutti_assert(needed < engine->round && engine->all_entered < needed);
    for (run->wait_index = 0; run->wait_index < domain->nmembers; run->wait_index++) {
        uint64_t entered;

        if (run->wait_index == domain->me)
            continue;
        entered = last_entered(engine, run->wait_index);
        if (entered < needed)
            return TUTTI_AGAIN;
        /* The peer must have entered that round for the same call as this rank. */
        if (entered > engine->all_entered)
            TUTTI_TRY(tutti_run_check_earlier_post(engine, run->wait_index, entered));
        if (entered < all_entered)
            all_entered = entered;
    }
    run->wait_index = 0;
    engine->all_entered = all_entered;
    return TUTTI_OK;
}

/* Takes this rank's post of the round, and writes the addresses that other ranks need. */
TUTTI_HOT
static int enter_round(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    enum tutti_run_window_location place = run->program->window_place;

    TUTTI_TRY(tutti_run_take_post(engine, place == TUTTI_IN_HALF ? 1 : TUTTI_POSTS - 1));
    run->base[TUTTI_BUF_WINDOW] = tutti_run_window(engine, engine->domain->me);
    if (place == TUTTI_IN_POST)
        return TUTTI_OK;
    run->post->input = (uint64_t)(uintptr_t)run->base[TUTTI_BUF_INPUT];
    run->post->output = (uint64_t)(uintptr_t)run->base[TUTTI_BUF_OUTPUT];
    if (engine->lend != NULL)
        tutti_run_offer(engine, run->post);
    return TUTTI_OK;
}

/* Gives the signals of the round that the schedule of this rank has not given, because all ranks
 * must have given the same number at the end. */
static void leave_round(struct tutti_engine *engine)
{
    uint32_t nsignals = engine->run.program->plan->schedule->nsignals;

    if (engine->run.signals_given < nsignals)
        tutti_run_give_signals(engine, nsignals);
}

/* Runs lanes before local steps, so that data is under way while this core copies. */
static int run_steps_unguarded(struct tutti_engine *engine)
{
    int lanes = TUTTI_OK, local;

    if (!engine->run.program->plan->schedule->is_one_sided) {
        lanes = tutti_run_lanes(engine);
        if (lanes != TUTTI_OK && lanes != TUTTI_AGAIN)
            return lanes;
    }
    local = tutti_run_local(engine);
    return local != TUTTI_OK ? local : lanes;
}

/* Runs the steps of the current piece. TUTTI_AGAIN: some step must wait. */
static int run_steps(struct tutti_engine *engine)
{
    const struct tutti_schedule *schedule = engine->run.program->plan->schedule;
    int rc;

    /* Windows and FIFOs stay mapped even if a peer goes, so steps on these alone need no guard. */
    if (schedule->is_one_sided &&
        (schedule->needs & (TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE)) == 0)
        return run_steps_unguarded(engine);
    /* If a rank has aborted, the caller's next tutti_fabric_check returns the error. */
    if (!tutti_fabric_enter(engine->fabric))
        return TUTTI_AGAIN;
    rc = run_steps_unguarded(engine);
    return tutti_fabric_exit(engine->fabric) || rc != TUTTI_OK ? rc : TUTTI_AGAIN;
}

/* Shows the call to the other ranks of the domain, so that they can compare it with their calls. */
static void announce(struct tutti_domain *domain, const struct tutti_header *header)
{
    uint64_t words[TUTTI_ACTIVITY_WORDS];

    _Static_assert(sizeof words == sizeof *header, "a header is what an activity holds");
    memcpy(words, header, sizeof words);
    tutti_domain_announce(domain, words);
}

/* Enters the call into the history, shows it to the peers, and resets the run. */
static inline void begin_call(struct tutti_engine *engine, const struct tutti_program *program,
                              const struct tutti_call *call)
{
    struct tutti_run *run = &engine->run;

    tutti_assert(!run->is_active);
    run->program = program;
    run->call = call;
    run->header = tutti_call_history_add(&engine->history, &call->signature);
    engine->nchecks = 0;
    if (engine->domain != NULL)
        announce(engine->domain, run->header);
    run->scale = program->plan->schedule->is_one_sided &&
                         !program->plan->schedule->sums_in_stages
                     ? scale_of(call, engine->nranks)
                     : TUTTI_NO_SCALE;
    run->piece = 0;
    run->local_position = 0;
    run->wait_index = 0;
    run->signals_given = 0;
    run->lends = false;
    run->moved = false;
    run->is_active = true;
}

/* Decides which counts travel behind headers, and shows the counts of a v-form in the domain. A
 * peer that finds a different call reads the counts at once. So they must be in the domain before
 * the call is announced. */
static void prepare_counts(struct tutti_engine *engine, const struct tutti_call *call)
{
    struct tutti_run *run = &engine->run;
    bool is_vector = tutti_call_is_vector(call), has_pairs = tutti_call_has_pairs(call);
    bool has_hash = is_vector && !has_pairs;

    run->is_vector = is_vector;
    run->ncounts = has_pairs ? 1 : 0;
    if (has_hash && engine->domain != NULL)
        tutti_domain_show_counts(engine->domain, TUTTI_DOMAIN_COUNTS_OF_HOST,
                                 engine->history.sequence + 1, tutti_call_shared_counts(call));
    else if (has_hash && engine->nranks <= TUTTI_MOST_COUNTS)
        run->ncounts = (uint32_t)engine->nranks;
    run->header_bytes = (uint32_t)(sizeof *run->header + run->ncounts * sizeof(uint64_t));
}

int tutti_run_begin(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call)
{
    struct tutti_run *run = &engine->run;

    tutti_assert(program->plan->schedule->needs == 0 || engine->domain != NULL);
    prepare_counts(engine, call);
    if (!program->plan->schedule->is_one_sided)
        TUTTI_TRY(tutti_lanes_reserve(run, program->plan, run->ncounts));
    TUTTI_TRY(reserve_arena(engine, program));
    begin_call(engine, program, call);
    run->streams = program->may_stream && tutti_run_decide_streaming(engine);
    run->phase = program->lent != NULL ? PHASE_AGREE : PHASE_PIECE;
    engine->round += program->lent != NULL;
    return TUTTI_OK;
}

/* Starts a call whose program is one round. Nearly all small calls are of this kind, and a few
 * hundred instructions are half of their time. So this function does the same as tutti_run_begin
 * and tutti_run_progress, but leaves out the tests whose outcome is known. */
TUTTI_HOT
static int start_one_round(struct tutti_engine *engine, const struct tutti_program *program,
                           const struct tutti_call *call)
{
    struct tutti_run *run = &engine->run;

    begin_call(engine, program, call);
    run->streams = false;
    run->bound = &program->last;
    run->base[TUTTI_BUF_INPUT] = (uint8_t *)(uintptr_t)call->input;
    run->base[TUTTI_BUF_OUTPUT] = call->output;
    engine->round++;
    run->phase = PHASE_ENTER;
    TUTTI_TRY(enter_round(engine));
    run->phase = PHASE_STEPS;
    TUTTI_TRY(tutti_run_local(engine));
    leave_round(engine);
    run->is_active = false;
    return TUTTI_OK;
}

TUTTI_HOT
int tutti_run_start(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call)
{
    if (program->is_one_round)
        return start_one_round(engine, program, call);
    TUTTI_TRY(tutti_run_begin(engine, program, call));
    return tutti_run_progress(engine);
}

/* Asserts that all steps of the piece are complete. */
static void check_piece_is_complete(const struct tutti_run *run)
{
    const struct tutti_plan *plan = run->program->plan;

    if (plan->schedule->is_one_sided)
        tutti_assert(run->local_position == plan->schedule->nsteps);
    else
        tutti_assert(run->local_position == plan->nlocal && run->lanes_left == 0);
}

int tutti_run_progress(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_program *program;
    bool has_round;

    tutti_assert(run->is_active);
    if (run->phase == PHASE_AGREE) {
        TUTTI_TRY(tutti_run_agree_on_loan(engine));
        run->phase = PHASE_PIECE;
    }
    program = run->program;
    has_round = program->plan->schedule->needs != 0;
    while (run->piece < program->npieces) {
        if (run->phase == PHASE_PIECE) {
            begin_piece(engine);
            run->phase = PHASE_ENTER;
        }
        if (run->phase == PHASE_ENTER) {
            if (has_round)
                TUTTI_TRY(enter_round(engine));
            run->phase = PHASE_STEPS;
        }
        TUTTI_TRY(run_steps(engine));
        check_piece_is_complete(run);
        if (has_round)
            leave_round(engine);
        if (program->finishes_output)
            finish_output(engine);
        run->moved = true;
        run->piece++;
        run->phase = PHASE_PIECE;
    }
    run->is_active = false;
    return TUTTI_OK;
}

void tutti_run_cancel(struct tutti_engine *engine)
{
    engine->run.is_active = false;
    tutti_fabric_drain(engine->fabric);
}

int tutti_run_explain(struct tutti_engine *engine, int rc)
{
    const struct tutti_run *run = &engine->run;
    char message[TUTTI_MESSAGE_BYTES];
    int found;

    if (!run->is_active || run->phase != PHASE_STEPS ||
        run->program->plan->schedule->is_one_sided)
        return rc;
    memcpy(message, tutti_message_last(), sizeof message);
    found = tutti_lanes_read_headers(engine);
    if (found != TUTTI_OK)
        return found;
    tutti_message_set_last(message);
    return rc;
}

int tutti_run_awaited_rank(const struct tutti_engine *engine)
{
    const struct tutti_run *run = &engine->run;
    const struct tutti_plan *plan;

    if (!run->is_active)
        return TUTTI_NO_RANK;
    plan = run->program->plan;
    if (run->phase == PHASE_AGREE || run->phase == PHASE_ENTER)
        return (int)run->wait_index;
    if (run->local_position < plan->nlocal) {
        const struct tutti_step *step =
            &plan->schedule->steps[plan->local_steps[run->local_position]];

        if (step->kind == TUTTI_STEP_WAIT)
            return step->from == TUTTI_ALL_RANKS ? (int)run->wait_index : step->from;
    }
    return plan->schedule->is_one_sided ? TUTTI_NO_RANK : tutti_lanes_awaited_rank(run);
}
