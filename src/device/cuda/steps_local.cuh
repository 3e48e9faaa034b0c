/* SPDX-License-Identifier: Apache-2.0
 * Steps without messages: copies and sums of a rank's own memory, and one-sided steps. All threads
 * of a block run each of them, and meet before the next.
 *
 * Rounds. One run of a one-sided schedule, over one piece, is a round; a block counts its rounds
 * from 0 in each epoch, as the same block of all ranks does. What it says of a round, places and
 * signals, it says to the same block of its peers, on lines of their own. Of the window half of the
 * epoch each block has a part, and of that its rounds use two parts in turns. The reuse rule is
 * that of executor/host/host.h: who has given his first signal of a round has left the one before, so
 * before round r writes anything everybody must have given his first signal of round r - 1, once r
 * is 2 or more. For rounds 0 and 1 the epochs see to that (core.cuh).
 */
#ifndef TUTTI_DEVICE_CUDA_STEPS_LOCAL_CUH
#define TUTTI_DEVICE_CUDA_STEPS_LOCAL_CUH

#include "device/cuda/steps_state.cuh"

/* ---- rounds ------------------------------------------------------------------------------ */

GPU_INLINE uint64_t gpu_round_signal(const struct gpu_run *run, const struct gpu_steps *steps,
                                     uint32_t round, uint32_t signal)
{
    return gpu_signal_value(run, round * steps->program->nsignals + signal);
}

/* Where the block has its part of the windows in this round, from the first one's beginning. */
GPU_INLINE uint64_t gpu_window_part(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const uint64_t half = run->domain->layout.window_bytes;
    const uint64_t part = half / steps->program->nblocks / 2 / TUTTI_GPU_LINE * TUTTI_GPU_LINE;

    return (run->epoch & 1) * half + (2 * gpu_block() + (steps->round & 1)) * part;
}

GPU_INLINE bool gpu_waits_for_signal(const struct gpu_run *run, uint32_t peer, uint64_t value)
{
    return gpu_wait_for(run, peer, &gpu_block_fifo(run, run->peers[peer].from)->signals, value);
}

GPU_INLINE void gpu_give_signal(const struct gpu_run *run, uint64_t value)
{
    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            gpu_store_release(&gpu_block_fifo(run, run->peers[peer].to)->signals, value);
}

/* One thread: says to that peer where my buffers are in this round. */
GPU_INLINE void gpu_tell_places(const struct gpu_run *run, const struct gpu_steps *steps,
                                uint32_t peer)
{
    const struct tutti_gpu_work *work = run->work;
    const struct tutti_gpu_program *program = steps->program;
    const uint64_t piece = steps->piece * program->piece_count * gpu_type_bytes(work->type);
    struct tutti_gpu_places *places =
        &gpu_block_fifo(run, run->peers[peer].to)->places[run->epoch & 1][steps->round & 1];
    const bool is_staged = program->stages_in_window;
    const uint32_t map = is_staged ? TUTTI_GPU_IN_WINDOW : work->input_map;

    gpu_store_relaxed(&places->input,
                      is_staged ? gpu_window_part(run, steps) : work->input_offset + piece);
    gpu_store_relaxed(&places->output, work->output_offset + piece);
    gpu_store_relaxed((uint64_t *)&places->input_map, (uint64_t)work->output_map << 32 | map);
}

/* All threads: false, for all of them, when the launch is to end. */
GPU_FUNCTION bool gpu_enter_round(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const bool is_later = steps->round >= 2;
    const uint64_t entered = gpu_round_signal(run, steps, steps->round - 1, 1);
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads()) {
        if (peer == run->rank)
            continue;
        if (is_later)
            is_fine = is_fine && gpu_waits_for_signal(run, peer, entered);
        gpu_tell_places(run, steps, peer);
    }
    return !gpu_barrier_or(!is_fine);
}

GPU_INLINE void gpu_leave_round(const struct gpu_run *run, const struct gpu_steps *steps,
                                uint32_t given)
{
    const uint32_t nsignals = steps->program->nsignals;

    if (given < nsignals)
        gpu_give_signal(run, gpu_round_signal(run, steps, steps->round, nsignals));
}

/* Where I see that rank's buffer; NULL: nowhere. After its signal. */
GPU_INLINE uint8_t *gpu_remote_base(const struct gpu_run *run, const struct gpu_steps *steps,
                                    uint32_t peer, uint32_t buffer)
{
    const struct tutti_gpu_peer *remote = &run->peers[peer];
    const struct tutti_gpu_places *places =
        &gpu_block_fifo(run, remote->from)->places[run->epoch & 1][steps->round & 1];
    uint64_t at, maps;
    uint32_t map;

    if (buffer == TUTTI_BUF_WINDOW)
        return remote->window + gpu_window_part(run, steps);
    at = gpu_load_relaxed(buffer == TUTTI_BUF_INPUT ? &places->input : &places->output);
    maps = gpu_load_relaxed((const uint64_t *)&places->input_map);
    map = (uint32_t)(buffer == TUTTI_BUF_INPUT ? maps : maps >> 32);
    if (map == TUTTI_GPU_IN_WINDOW)
        return remote->window + at;
    return map < TUTTI_GPU_MAPS ? (uint8_t *)(uintptr_t)(remote->maps[map] + at) : NULL;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Member `index` of those that a step goes by. */
GPU_INLINE uint32_t gpu_among(const struct gpu_steps *steps, const struct tutti_gpu_step *step,
                              uint32_t index)
{
    return step->among_count ? steps->among[step->among_first + index] : index;
}

GPU_INLINE uint32_t gpu_among_count(const struct gpu_run *run, const struct tutti_gpu_step *step)
{
    return step->among_count ? step->among_count : run->nranks;
}

/* All threads, each for some ranks: fills steps->srcs or ->dsts from `first` on with where `to` has
 * these bytes of the buffer; my own rank is left out. Gives how many there are. */
GPU_INLINE uint32_t gpu_find_sinks(const struct gpu_run *run, struct gpu_steps *steps,
                                   const struct tutti_gpu_step *step, uint32_t buffer, uint64_t at,
                                   uint32_t first, bool *ret_is_fine)
{
    const uint32_t count = step->to == TUTTI_ALL_RANKS ? gpu_among_count(run, step)
                                                       : step->to >= 0;
    uint32_t me = count; /* my index among them: those behind me move up */

    for (uint32_t i = 0; i < count && step->to == TUTTI_ALL_RANKS; i++)
        if (gpu_among(steps, step, i) == run->rank)
            me = i;
    for (uint32_t i = gpu_thread(); i < count; i += gpu_threads()) {
        const uint32_t rank = step->to >= 0 ? (uint32_t)step->to : gpu_among(steps, step, i);
        uint8_t *base;

        if (rank == run->rank)
            continue;
        base = gpu_remote_base(run, steps, rank, buffer);
        *ret_is_fine = *ret_is_fine && base;
        steps->dsts[first + i - (i > me)] = base ? base + at : NULL;
    }
    return first + count - (me < count);
}

/* All threads: the sources of a gather_reduce, in the order of ranks. */
GPU_INLINE void gpu_find_sources(const struct gpu_run *run, struct gpu_steps *steps,
                                 const struct tutti_gpu_step *step,
                                 const struct tutti_gpu_segment *segment, bool *ret_is_fine)
{
    for (uint32_t i = gpu_thread(); i < gpu_among_count(run, step); i += gpu_threads()) {
        const uint32_t rank = gpu_among(steps, step, i);
        const bool is_mine = rank == run->rank;
        const uint8_t *base = is_mine ? gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC])
                                      : gpu_remote_base(run, steps, rank, step->remote);

        *ret_is_fine = *ret_is_fine && base;
        steps->srcs[i] = is_mine || !base ? base : base + segment->at[TUTTI_AT_REMOTE];
    }
}

/* The own destinations, by one thread. */
GPU_INLINE uint32_t gpu_find_own_sinks(struct gpu_steps *steps, const struct tutti_gpu_step *step,
                                       const struct tutti_gpu_segment *segment)
{
    uint32_t count = 0;

    if (step->also != TUTTI_BUF_NONE) {
        if (gpu_thread() == 0)
            steps->dsts[count] = gpu_own(steps, step->also, segment->at[TUTTI_AT_ALSO]);
        count++;
    }
    if (step->dst != TUTTI_BUF_NONE) {
        if (gpu_thread() == 0)
            steps->dsts[count] = gpu_own(steps, step->dst, segment->at[TUTTI_AT_DST]);
        count++;
    }
    return count;
}

/* PUT and GATHER_REDUCE: one source or many, any number of destinations. */
GPU_FUNCTION bool gpu_spread_segment(const struct gpu_run *run, struct gpu_steps *steps,
                                     const struct tutti_gpu_step *step,
                                     const struct tutti_gpu_segment *segment)
{
    const struct tutti_gpu_program *program = steps->program;
    const bool is_put = step->kind == TUTTI_STEP_PUT;
    const int slot = is_put ? TUTTI_AT_REMOTE : TUTTI_AT_REMOTE_DST;
    const uint32_t type = is_put ? (uint32_t)TUTTI_UINT8 : program->run_type;
    tutti_gpu_reduction job = gpu_plain_job(type, run->work->op,
                                            segment->bytes / gpu_type_bytes(type), steps->srcs,
                                            is_put ? 1 : gpu_among_count(run, step), steps->dsts,
                                            0);
    bool is_fine = true;

    job.scale = gpu_scale_of(!is_put && program->scales_gathers, run->nranks);
    if (!is_put)
        gpu_find_sources(run, steps, step, segment, &is_fine);
    else if (gpu_thread() == 0)
        steps->srcs[0] = gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC]);
    job.ndsts = gpu_find_own_sinks(steps, step, segment);
    job.ndsts = gpu_find_sinks(run, steps, step, is_put ? step->remote : step->remote_dst,
                               segment->at[slot], job.ndsts, &is_fine);
    if (!is_fine)
        gpu_fail(*run, TUTTI_GPU_BROKEN, run->rank, NULL);
    if (gpu_barrier_or(!is_fine))
        return false;
    gpu_reduce(&job, gpu_crew_of_block());
    gpu_barrier(); /* the arrays are written anew */
    return true;
}

/* COPY, GET and REDUCE of so many bytes from `at` on. */
GPU_INLINE void gpu_local_segment(const struct gpu_run *run, const struct gpu_steps *steps,
                                  const struct tutti_gpu_step *step, uint8_t *dst,
                                  const uint8_t *src, uint64_t size_bytes)
{
    const uint32_t type = steps->program->run_type;
    const void *srcs[2] = {dst, src};
    void *dsts[1] = {dst};
    tutti_gpu_reduction job;

    if (step->kind != TUTTI_STEP_REDUCE) {
        gpu_copy(dst, src, size_bytes, gpu_crew_of_block());
        return;
    }
    job = gpu_plain_job(type, run->work->op, size_bytes / gpu_type_bytes(type), srcs, 2, dsts, 1);
    gpu_reduce(&job, gpu_crew_of_block());
}

/* What a step that moves data does, or of a copied message the block's share of it. All threads;
 * they meet before they use the result. False, for all, when the launch is to end. */
GPU_FUNCTION bool gpu_local_step(const struct gpu_run *run, struct gpu_steps *steps, uint32_t index)
{
    const struct tutti_gpu_step *step = &steps->steps[index];
    const struct tutti_gpu_bound_step *bound = gpu_bound_step(steps, index);
    const struct tutti_gpu_segment *segment = gpu_segments(steps) + bound->first;
    const bool is_get = step->kind == TUTTI_STEP_GET;
    const uint8_t *remote = is_get ? gpu_remote_base(run, steps, (uint32_t)step->from,
                                                     step->remote) : NULL;

    if (is_get && !remote) {
        gpu_fail(*run, TUTTI_GPU_BROKEN, (uint32_t)step->from, NULL);
        return false;
    }
    for (uint32_t i = 0; i < bound->count; i++, segment++) {
        uint64_t from = 0, to = segment->bytes;

        if (step->kind == TUTTI_STEP_PUT || step->kind == TUTTI_STEP_GATHER_REDUCE) {
            if (!gpu_spread_segment(run, steps, step, segment))
                return false;
            continue;
        }
        if (steps->program->is_messages) {
            const struct gpu_share share = gpu_share_of(steps->program, 0, segment->bytes);

            from = share.from;
            to = share.to;
        }
        gpu_local_segment(run, steps, step,
                          gpu_own(steps, step->dst, segment->at[TUTTI_AT_DST] + from),
                          is_get ? remote + segment->at[TUTTI_AT_REMOTE] + from
                                 : gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC] + from),
                          to - from);
    }
    return true;
}

/* ---- schedules of these alone: in order -------------------------------------------------- */

/* All threads. Who waits for a rank hears it. */
GPU_INLINE bool gpu_wait_step(const struct gpu_run *run, const struct gpu_steps *steps,
                              const struct tutti_gpu_step *step, bool hears)
{
    const uint64_t value = gpu_round_signal(run, steps, steps->round, step->signal);
    const bool is_all = step->from == TUTTI_ALL_RANKS;
    bool is_fine = true;

    if (hears)
        is_fine = is_all ? gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads())
                         : gpu_hear(run, (uint32_t)step->from, 1, gpu_thread(), gpu_threads());
    if (is_all)
        for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
            is_fine = is_fine && (peer == run->rank || gpu_waits_for_signal(run, peer, value));
    else if (gpu_thread() == 0)
        is_fine = is_fine && gpu_waits_for_signal(run, (uint32_t)step->from, value);
    return !gpu_barrier_or(!is_fine);
}

/* False, for all of the block, when the launch is to end. */
GPU_FUNCTION bool gpu_run_in_order(const struct gpu_run *run, struct gpu_steps *steps)
{
    uint32_t given = 0;

    for (uint32_t i = 0; i < steps->program->nsteps; i++) {
        const struct tutti_gpu_step *step = &steps->steps[i];

        if (step->kind == TUTTI_STEP_SIGNAL) {
            gpu_give_signal(run, gpu_round_signal(run, steps, steps->round, ++given));
        } else if (step->kind == TUTTI_STEP_WAIT) {
            if (!gpu_wait_step(run, steps, step, steps->round == 0))
                return false;
        } else {
            if (!gpu_local_step(run, steps, i))
                return false;
            gpu_barrier();
        }
    }
    if (steps->program->needs)
        gpu_leave_round(run, steps, given);
    return true;
}

#endif
