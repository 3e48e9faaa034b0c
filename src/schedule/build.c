/* SPDX-License-Identifier: Apache-2.0
 * Writes a schedule step by step. It checks only the form of each step (buffers, bounds, peers);
 * check.h proves whether the schedule is correct.
 */
#include "schedule/build.h"

#include "base/array.h"
#include "base/result.h"
#include "schedule/access.h"
#include "schedule/derive.h"

#include <stdlib.h>
#include <string.h>

int tutti_build_init(struct tutti_build *build, enum tutti_collective collective,
                     const struct tutti_shape *shape)
{
    struct tutti_schedule *schedule;

    if (shape->nranks == 0 || shape->rank >= shape->nranks || shape->root >= shape->nranks)
        return tutti_fail(TUTTI_ERR_INTERNAL,
                          "a schedule of rank %u with root %u; there are %u ranks", shape->rank,
                          shape->root, shape->nranks);
    schedule = calloc(1, sizeof(*schedule));
    if (schedule == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a schedule");

    schedule->collective = (uint8_t)collective;
    schedule->nranks = shape->nranks;
    schedule->rank = shape->rank;
    schedule->root = shape->root;
    schedule->chunks_per_block = 1;
    schedule->nchannels = 1;
    *build = (struct tutti_build){
        .schedule = schedule, .channels = shape->channels != 0 ? shape->channels : UINT8_MAX + 1};
    return TUTTI_OK;
}

void tutti_build_fini(struct tutti_build *build)
{
    tutti_schedule_destroy(build->schedule);
    *build = (struct tutti_build){.schedule = NULL};
}

void tutti_build_chunks(struct tutti_build *build, uint32_t chunks_per_block)
{
    tutti_assert(chunks_per_block > 0 && build->schedule->nsteps == 0);
    build->schedule->chunks_per_block = chunks_per_block;
}

void tutti_build_scratch(struct tutti_build *build, enum tutti_scratch_like like, uint32_t chunks)
{
    tutti_assert(build->schedule->nsteps == 0);
    build->schedule->scratch_like = (uint8_t)(chunks > 0 ? like : TUTTI_SCRATCH_NONE);
    build->schedule->scratch_chunks = like == TUTTI_SCRATCH_NONE ? 0 : chunks;
}

void tutti_build_trim_scratch(struct tutti_build *build, uint32_t chunks)
{
    tutti_assert(chunks <= build->schedule->scratch_chunks);
    build->schedule->scratch_chunks = chunks;
    if (chunks == 0)
        build->schedule->scratch_like = TUTTI_SCRATCH_NONE;
}

void tutti_build_window(struct tutti_build *build, uint32_t chunks)
{
    tutti_assert(build->schedule->nsteps == 0);
    build->schedule->window_chunks = chunks;
}

void tutti_build_signals(struct tutti_build *build, uint32_t nsignals)
{
    build->schedule->nsignals = nsignals;
}

void tutti_build_needs(struct tutti_build *build, uint32_t needs)
{
    build->schedule->needs = needs;
}

void tutti_build_one_tree(struct tutti_build *build)
{
    build->schedule->is_one_tree = true;
}

/* Check a list of ranks: they must exist and ascend, and include this rank. */
static int check_among(const struct tutti_build *build, const uint32_t *ranks, uint32_t count)
{
    const struct tutti_schedule *schedule = build->schedule;
    bool has_own = false;

    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] >= schedule->nranks || (i > 0 && ranks[i] <= ranks[i - 1]))
            return tutti_fail(TUTTI_ERR_INTERNAL, "%s, rank %u of %u, root %u: rank %u at index %u "
                              "of the ranks that a step addresses does not exist, or is not above "
                              "the one before it",
                              tutti_collective_name((enum tutti_collective)schedule->collective),
                              schedule->rank, schedule->nranks, schedule->root, ranks[i], i);
        has_own = has_own || ranks[i] == schedule->rank;
    }
    if (!has_own && count > 0)
        return tutti_fail(TUTTI_ERR_INTERNAL, "%s, rank %u of %u, root %u: the %u ranks that a "
                          "step addresses do not include this rank",
                          tutti_collective_name((enum tutti_collective)schedule->collective),
                          schedule->rank, schedule->nranks, schedule->root, count);
    return TUTTI_OK;
}

int tutti_build_among(struct tutti_build *build, const uint32_t *ranks, uint32_t count)
{
    struct tutti_schedule *schedule = build->schedule;

    TUTTI_TRY(check_among(build, ranks, count));
    build->among_count = 0;
    if (count == 0 || count == schedule->nranks)
        return TUTTI_OK;
    TUTTI_TRY(TUTTI_ARRAY_RESERVE(schedule->among, schedule->namong + count, build->among_capacity,
                                  "ranks of steps"));
    memcpy(schedule->among + schedule->namong, ranks, count * sizeof(*ranks));
    build->among_first = schedule->namong;
    build->among_count = count;
    schedule->namong += count;
    return TUTTI_OK;
}

/* True if `among` applies to the step. */
static bool addresses_all_ranks(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_GATHER_REDUCE ||
           (step->kind == TUTTI_STEP_PUT && step->to == TUTTI_ALL_RANKS);
}

static int append(struct tutti_build *build, const struct tutti_step *step)
{
    struct tutti_schedule *schedule = build->schedule;

    TUTTI_TRY(TUTTI_ARRAY_ROOM(schedule->steps, schedule->nsteps, build->step_capacity,
                               "steps of a schedule"));
    schedule->steps[schedule->nsteps] = *step;
    if (build->among_count > 0 && addresses_all_ranks(step)) {
        schedule->steps[schedule->nsteps].among_first = build->among_first;
        schedule->steps[schedule->nsteps].among_count = build->among_count;
    }
    schedule->nsteps++;
    return TUTTI_OK;
}

static int check_span(const struct tutti_build *build, const struct tutti_step *step, uint32_t rank,
                      struct tutti_span span)
{
    const struct tutti_schedule *schedule = build->schedule;
    uint32_t chunks = tutti_buffer_chunks(schedule, rank, (enum tutti_buffer)span.buffer);

    if (span.first <= chunks && span.count <= chunks - span.first)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_INTERNAL,
                      "%s, rank %u of %u, root %u: step %u (%s) names chunks %u + %u of %s, "
                      "which has %u at rank %u",
                      tutti_collective_name((enum tutti_collective)schedule->collective),
                      schedule->rank, schedule->nranks, schedule->root, schedule->nsteps,
                      tutti_step_name((enum tutti_step_kind)step->kind), span.first, span.count,
                      tutti_buffer_name((enum tutti_buffer)span.buffer), chunks, rank);
}

static int check_peer(const struct tutti_build *build, const struct tutti_step *step, int32_t peer)
{
    const struct tutti_schedule *schedule = build->schedule;

    if (peer < 0 || ((uint32_t)peer < schedule->nranks && (uint32_t)peer != schedule->rank))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_INTERNAL,
                      "%s, rank %u of %u, root %u: step %u (%s) names peer %d, which is this rank "
                      "or does not exist",
                      tutti_collective_name((enum tutti_collective)schedule->collective),
                      schedule->rank, schedule->nranks, schedule->root, schedule->nsteps,
                      tutti_step_name((enum tutti_step_kind)step->kind), peer);
}

/* Check the form of a step, and append it. */
static int emit(struct tutti_build *build, const struct tutti_step *step)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_step_accesses(step, accesses);

    TUTTI_TRY(check_peer(build, step, step->from));
    TUTTI_TRY(check_peer(build, step, step->to));
    for (uint32_t i = 0; i < naccesses; i++) {
        uint32_t rank = accesses[i].rank >= 0 ? (uint32_t)accesses[i].rank : build->schedule->rank;

        if (accesses[i].span.count != accesses[0].span.count)
            return tutti_fail(TUTTI_ERR_INTERNAL,
                              "%s: step %u (%s) joins %u chunks with %u; all spans of a step have "
                              "equally many",
                              tutti_collective_name(
                                  (enum tutti_collective)build->schedule->collective),
                              build->schedule->nsteps,
                              tutti_step_name((enum tutti_step_kind)step->kind),
                              accesses[0].span.count, accesses[i].span.count);
        TUTTI_TRY(check_span(build, step, rank, accesses[i].span));
    }
    return append(build, step);
}

int tutti_build_step(struct tutti_build *build, const struct tutti_step *step)
{
    return emit(build, step);
}

static uint8_t channel_of(const struct tutti_build *build)
{
    return (uint8_t)(build->channel % build->channels);
}

int tutti_build_send(struct tutti_build *build, uint32_t to, struct tutti_span src)
{
    if (src.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_SEND, .channel = channel_of(build),
                                            .queue = build->queue, .from = TUTTI_NO_RANK,
                                            .to = (int32_t)to, .src = src});
}

int tutti_build_recv(struct tutti_build *build, uint32_t from, struct tutti_span dst)
{
    if (dst.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_RECV, .channel = channel_of(build),
                                            .queue = build->queue, .from = (int32_t)from,
                                            .to = TUTTI_NO_RANK, .dst = dst});
}

int tutti_build_recv_reduce(struct tutti_build *build, uint32_t from, struct tutti_span own,
                            struct tutti_span dst)
{
    if (dst.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_RECV_REDUCE,
                                            .channel = channel_of(build), .queue = build->queue,
                                            .from = (int32_t)from, .to = TUTTI_NO_RANK,
                                            .src = own, .dst = dst});
}

static int emit_local(struct tutti_build *build, enum tutti_step_kind kind, struct tutti_span src,
                      struct tutti_span dst)
{
    if (dst.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = (uint8_t)kind, .from = TUTTI_NO_RANK,
                                            .to = TUTTI_NO_RANK, .src = src, .dst = dst});
}

int tutti_build_copy(struct tutti_build *build, struct tutti_span src, struct tutti_span dst)
{
    return emit_local(build, TUTTI_STEP_COPY, src, dst);
}

int tutti_build_reduce(struct tutti_build *build, struct tutti_span src, struct tutti_span dst)
{
    return emit_local(build, TUTTI_STEP_REDUCE, src, dst);
}

int tutti_build_put(struct tutti_build *build, uint32_t to, struct tutti_span src,
                    struct tutti_span remote)
{
    if (src.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_PUT, .from = TUTTI_NO_RANK,
                                            .to = (int32_t)to, .src = src, .remote = remote});
}

int tutti_build_put_all(struct tutti_build *build, struct tutti_span src, struct tutti_span dst,
                        struct tutti_span remote)
{
    if (src.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_PUT, .from = TUTTI_NO_RANK,
                                            .to = TUTTI_ALL_RANKS, .src = src, .dst = dst,
                                            .remote = remote});
}

int tutti_build_get(struct tutti_build *build, uint32_t from, struct tutti_span remote,
                    struct tutti_span dst)
{
    if (dst.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_GET, .from = (int32_t)from,
                                            .to = TUTTI_NO_RANK, .dst = dst, .remote = remote});
}

int tutti_build_gather_reduce(struct tutti_build *build, struct tutti_span own,
                              struct tutti_span remote, struct tutti_span dst,
                              struct tutti_span also, struct tutti_span remote_dst)
{
    bool stores_remotely = remote_dst.buffer != TUTTI_BUF_NONE;

    if (dst.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_GATHER_REDUCE,
                                            .from = TUTTI_ALL_RANKS,
                                            .to = stores_remotely ? TUTTI_ALL_RANKS : TUTTI_NO_RANK,
                                            .src = own, .remote = remote, .dst = dst, .also = also,
                                            .remote_dst = remote_dst});
}

int tutti_build_gather_reduce_to(struct tutti_build *build, struct tutti_span own,
                                 struct tutti_span remote, uint32_t to,
                                 struct tutti_span remote_dst)
{
    if (own.count == 0)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_GATHER_REDUCE,
                                            .from = TUTTI_ALL_RANKS, .to = (int32_t)to,
                                            .src = own, .remote = remote,
                                            .remote_dst = remote_dst});
}

int tutti_build_signal(struct tutti_build *build)
{
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_SIGNAL, .from = TUTTI_NO_RANK,
                                            .to = TUTTI_NO_RANK});
}

int tutti_build_wait(struct tutti_build *build, int32_t from, uint32_t signal)
{
    if (build->schedule->nranks == 1 || from == (int32_t)build->schedule->rank)
        return TUTTI_OK;
    return emit(build, &(struct tutti_step){.kind = TUTTI_STEP_WAIT, .signal = (uint16_t)signal,
                                            .from = from, .to = TUTTI_NO_RANK});
}

/* Check the declared number of signals. A schedule that shares memory needs at least one signal
 * number even if this rank gives no signal, because the signal numbers of all ranks advance
 * alike. */
static int check_signals(struct tutti_schedule *schedule)
{
    uint32_t given = 0;
    bool is_sharing = schedule->needs != 0;

    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        is_sharing = is_sharing || tutti_step_is_one_sided(&schedule->steps[i]);
        if (schedule->steps[i].kind == TUTTI_STEP_SIGNAL)
            given++;
    }
    if (is_sharing && schedule->nsignals == 0)
        schedule->nsignals = 1;
    if (given > schedule->nsignals)
        return tutti_fail(TUTTI_ERR_INTERNAL,
                          "%s, rank %u: gives %u signals, but declares only %u",
                          tutti_collective_name((enum tutti_collective)schedule->collective),
                          schedule->rank, given, schedule->nsignals);
    return TUTTI_OK;
}

static int finish(struct tutti_build *build, int (*complete)(struct tutti_schedule *),
                  struct tutti_schedule **ret_schedule)
{
    TUTTI_TRY(check_signals(build->schedule));
    TUTTI_TRY(complete(build->schedule));
    *ret_schedule = build->schedule;
    *build = (struct tutti_build){.schedule = NULL};
    return TUTTI_OK;
}

int tutti_build_finish(struct tutti_build *build, struct tutti_schedule **ret_schedule)
{
    return finish(build, tutti_schedule_derive, ret_schedule);
}

static int fuse(struct tutti_schedule *schedule)
{
    return tutti_schedule_fuse(schedule, schedule->is_one_tree);
}

int tutti_build_finish_fused(struct tutti_build *build, struct tutti_schedule **ret_schedule)
{
    tutti_schedule_summarize(build->schedule);
    return finish(build, fuse, ret_schedule);
}
