/* SPDX-License-Identifier: Apache-2.0
 * Runs the local and one-sided steps of a schedule, in program order. */
#include "base/hot.h"
#include "base/result.h"
#include "executor/host/host.h"
#include "schedule/access.h"

static uint8_t *own_base(const struct tutti_run *run, uint32_t buffer)
{
    return run->base[buffer];
}

/* Returns the address of member `index`'s buffer in the member's own address space, as posted. */
static uint8_t *posted_base(const struct tutti_engine *engine, uint32_t index, uint32_t buffer)
{
    const struct tutti_post *post = tutti_domain_post(engine->domain, index, engine->round);

    /* The owner wrote the addresses before the signal that this rank has waited for. */
    return (uint8_t *)(uintptr_t)(buffer == TUTTI_BUF_INPUT ? post->input : post->output);
}

/* Returns an address at which this rank can access member `index`'s buffer; NULL: there is none. */
static uint8_t *peer_base(const struct tutti_engine *engine, uint32_t index, uint32_t buffer)
{
    const struct tutti_domain *domain = engine->domain;

    if (buffer == TUTTI_BUF_WINDOW)
        return tutti_run_window(engine, index);
    if (domain->access[index] != TUTTI_DOMAIN_ACCESS_STORE)
        return tutti_run_lent_buffer(engine, index, buffer);
    return posted_base(engine, index, buffer);
}

TUTTI_HOT
static void copy_segments(struct tutti_engine *engine, const struct tutti_step *step,
                          const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;
    uint8_t *dst = own_base(run, step->dst.buffer);
    const uint8_t *src = own_base(run, step->src.buffer);
    bool stream = run->streams && step->dst.buffer == TUTTI_BUF_OUTPUT;

    for (uint32_t i = 0; i < bound->count; i++) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + i];

        if (dst + segment->at[TUTTI_AT_DST] != src + segment->at[TUTTI_AT_SRC])
            tutti_cpu_copy(dst + segment->at[TUTTI_AT_DST], src + segment->at[TUTTI_AT_SRC],
                           segment->bytes, stream);
    }
}

static void reduce_segments(struct tutti_engine *engine, const struct tutti_step *step,
                            const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;
    uint8_t *dst = own_base(run, step->dst.buffer);
    const uint8_t *src = own_base(run, step->src.buffer);
    enum tutti_type type = run->program->run_type;

    for (uint32_t i = 0; i < bound->count; i++) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + i];
        uint8_t *at = dst + segment->at[TUTTI_AT_DST];

        tutti_cpu_reduce2(type, run->call->op, at, at, src + segment->at[TUTTI_AT_SRC],
                          tutti_type_count(type, segment->bytes));
    }
}

/* Runs a PUT, which copies a segment to this rank's own destination and to those of the peers. */
static void put_segments(struct tutti_engine *engine, const struct tutti_step *step,
                         const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;
    uint32_t me = (uint32_t)engine->rank;
    struct tutti_step_ranks to = tutti_step_peers(run->program->plan->schedule, step, step->to);
    struct tutti_reduce_args args = { /* a sum of one source is a copy */
        .type = TUTTI_UINT8, .op = TUTTI_SUM, .nsrcs = 1, .srcs = engine->sources,
        .dsts = engine->sinks, .scale = TUTTI_NO_SCALE, .stream = run->streams,
    };

    for (uint32_t i = 0; i < bound->count; i++) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + i];
        uint32_t ndsts = 0;

        engine->sources[0] = own_base(run, step->src.buffer) + segment->at[TUTTI_AT_SRC];
        if (step->dst.buffer != TUTTI_BUF_NONE)
            engine->sinks[ndsts++] = own_base(run, step->dst.buffer) + segment->at[TUTTI_AT_DST];
        for (uint32_t m = 0; m < to.count; m++) {
            uint32_t rank = tutti_step_ranks_at(to, m);

            if (rank != me)
                engine->sinks[ndsts++] = peer_base(engine, rank, step->remote.buffer) +
                                         segment->at[TUTTI_AT_REMOTE];
        }
        args.ndsts = ndsts;
        args.count = segment->bytes;
        tutti_cpu_reduce(&args);
    }
}

/* Runs a GET, which copies a peer's segment by loads, or by the operating system if the peer's
 * buffer is not mapped here. */
static int get_segments(struct tutti_engine *engine, const struct tutti_step *step,
                        const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;
    uint32_t from = (uint32_t)step->from;
    uint8_t *dst = own_base(run, step->dst.buffer);
    const uint8_t *remote = peer_base(engine, from, step->remote.buffer);
    bool by_load = remote != NULL;
    bool stream = run->streams && step->dst.buffer == TUTTI_BUF_OUTPUT;

    /* A peer with an empty block may have no buffer, so do not look for its address. */
    if (bound->count == 0)
        return TUTTI_OK;
    if (!by_load) {
        const struct tutti_post *post = tutti_domain_post(engine->domain, from, engine->round);

        tutti_lend_learn(engine->lend, from, post->last_lent);
        remote = posted_base(engine, from, step->remote.buffer);
    }
    for (uint32_t i = 0; i < bound->count; i++) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + i];
        uint8_t *to = dst + segment->at[TUTTI_AT_DST];
        const uint8_t *at = remote + segment->at[TUTTI_AT_REMOTE];

        if (by_load)
            tutti_cpu_copy(to, at, segment->bytes, stream);
        else
            TUTTI_TRY(tutti_domain_read(engine->domain, from, to, (uint64_t)(uintptr_t)at,
                                        segment->bytes));
    }
    return TUTTI_OK;
}

/* Fills engine->sinks with the destinations of a gather_reduce and returns their number. `also`
 * comes first, because only the first args.nkept destinations are kept in the cache. */
static uint32_t find_sinks(struct tutti_engine *engine, const struct tutti_step *step,
                           const struct tutti_segment *segment)
{
    struct tutti_run *run = &engine->run;
    struct tutti_step_ranks to = tutti_step_peers(run->program->plan->schedule, step, step->to);
    uint32_t me = (uint32_t)engine->rank, ndsts = 0;

    if (step->also.buffer != TUTTI_BUF_NONE)
        engine->sinks[ndsts++] = own_base(run, step->also.buffer) + segment->at[TUTTI_AT_ALSO];
    if (step->dst.buffer != TUTTI_BUF_NONE)
        engine->sinks[ndsts++] = own_base(run, step->dst.buffer) + segment->at[TUTTI_AT_DST];
    for (uint32_t m = 0; m < to.count; m++) {
        uint32_t rank = tutti_step_ranks_at(to, m);

        if (rank != me)
            engine->sinks[ndsts++] = peer_base(engine, rank, step->remote_dst.buffer) +
                                     segment->at[TUTTI_AT_REMOTE_DST];
    }
    return ndsts;
}

TUTTI_HOT
static void gather_reduce_segments(struct tutti_engine *engine, const struct tutti_step *step,
                                   const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;
    struct tutti_step_ranks among = tutti_step_ranks(run->program->plan->schedule, step);
    uint32_t me = (uint32_t)engine->rank;
    struct tutti_reduce_args args = {
        .type = run->program->run_type, .op = run->call->op, .nsrcs = among.count,
        .srcs = engine->sources, .dsts = engine->sinks, .scale = run->scale,
        .stream = run->streams && step->dst.buffer != TUTTI_BUF_SCRATCH,
        .nkept = step->also.buffer != TUTTI_BUF_NONE, /* `also`: others read it next */
    };

    for (uint32_t i = 0; i < bound->count; i++) {
        const struct tutti_segment *segment = &run->bound->segments[bound->first + i];

        for (uint32_t m = 0; m < among.count; m++) {
            uint32_t rank = tutti_step_ranks_at(among, m);

            engine->sources[m] = rank == me
                                     ? own_base(run, step->src.buffer) + segment->at[TUTTI_AT_SRC]
                                     : peer_base(engine, rank, step->remote.buffer) +
                                           segment->at[TUTTI_AT_REMOTE];
        }
        args.ndsts = find_sinks(engine, step, segment);
        args.count = tutti_type_count(args.type, segment->bytes);
        tutti_cpu_reduce(&args);
    }
}

/* Runs a WAIT. TUTTI_AGAIN: a signal is missing; the next call continues with the same rank. */
static inline int wait_step(struct tutti_engine *engine, const struct tutti_step *step)
{
    struct tutti_run *run = &engine->run;

    if (step->from != TUTTI_ALL_RANKS)
        return tutti_run_poll_signal(engine, (uint32_t)step->from, step->signal);
    for (; run->wait_index < (uint32_t)engine->nranks; run->wait_index++)
        if (run->wait_index != (uint32_t)engine->rank)
            TUTTI_TRY(tutti_run_poll_signal(engine, run->wait_index, step->signal));
    run->wait_index = 0;
    engine->all_entered = engine->round;
    return TUTTI_OK;
}

static inline int run_step(struct tutti_engine *engine, const struct tutti_step *step,
                           const struct tutti_bound_step *bound)
{
    struct tutti_run *run = &engine->run;

    switch ((enum tutti_step_kind)step->kind) {
    case TUTTI_STEP_COPY: copy_segments(engine, step, bound); return TUTTI_OK;
    case TUTTI_STEP_REDUCE: reduce_segments(engine, step, bound); return TUTTI_OK;
    case TUTTI_STEP_PUT: put_segments(engine, step, bound); return TUTTI_OK;
    case TUTTI_STEP_GET: return get_segments(engine, step, bound);
    case TUTTI_STEP_GATHER_REDUCE: gather_reduce_segments(engine, step, bound); return TUTTI_OK;
    case TUTTI_STEP_SIGNAL:
        tutti_run_give_signals(engine, run->signals_given + 1);
        return TUTTI_OK;
    case TUTTI_STEP_WAIT: return wait_step(engine, step);
    default: return tutti_fail(TUTTI_ERR_INTERNAL, "step of kind %d is not local",
                               (int)step->kind);
    }
}

/* In a one-sided schedule each step depends on all steps before it, so no dependency is checked. */
static int run_in_order(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_schedule *schedule = run->program->plan->schedule;
    const struct tutti_bound_step *bound = run->bound->steps;
    uint32_t first = run->local_position, position = first;
    int rc = TUTTI_OK;

    for (; position < schedule->nsteps; position++) {
        rc = run_step(engine, &schedule->steps[position], &bound[position]);
        if (rc != TUTTI_OK)
            break;
    }
    run->local_position = position;
    run->moved |= position > first;
    return rc;
}

TUTTI_HOT
int tutti_run_local(struct tutti_engine *engine)
{
    struct tutti_run *run = &engine->run;
    const struct tutti_plan *plan = run->program->plan;
    const struct tutti_step *steps = plan->schedule->steps;

    if (plan->schedule->is_one_sided)
        return run_in_order(engine);
    while (run->local_position < plan->nlocal) {
        uint32_t index = plan->local_steps[run->local_position];

        tutti_assert(run->halves_left[index] == 1);
        if (!tutti_run_deps_done(run, &steps[index]))
            return TUTTI_AGAIN;
        TUTTI_TRY(run_step(engine, &steps[index], &run->bound->steps[index]));
        run->halves_left[index] = 0;
        run->local_position++;
        run->moved = true;
    }
    return TUTTI_OK;
}
