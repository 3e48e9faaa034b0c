/* SPDX-License-Identifier: Apache-2.0
 * Runs steps without messages: copies and sums in a rank's own memory, and one-sided steps. All
 * threads of a block run each step, with a barrier before the next step.
 *
 * Rounds. A round is one run of a one-sided schedule over one piece. A block counts its rounds from
 * 0 in each epoch, and so does the same block of every other rank. It communicates only with the
 * same block of its peers: the places and signals of a round lie on lines of these blocks' own.
 * Each block has a part of the window half of the epoch, and its rounds alternate between two
 * halves of that part.
 *
 * The reuse rule is that of executor/host/host.h: a rank that has given its first signal of a round
 * has left the previous round. So a block in round r >= 2 writes nothing before all ranks have
 * given their first signal of round r - 1. In rounds 0 and 1 the rules for epochs are enough
 * (core.cuh).
 */
#ifndef TUTTI_DEVICE_CUDA_STEPS_LOCAL_CUH
#define TUTTI_DEVICE_CUDA_STEPS_LOCAL_CUH

#include "device/cuda/steps_state.cuh"

/* ---- rounds ------------------------------------------------------------------------------ */

/* Returns the counter value of signal number `signal` of a round. The first signal has number 1. */
GPU_INLINE uint64_t gpu_round_signal(const struct gpu_run *run, const struct gpu_steps *steps,
                                     uint32_t round, uint32_t signal)
{
    return gpu_signal_value(run, round * steps->program->nsignals + signal);
}

/* Returns the byte offset of the block's part of the window in this round. The offset counts from
 * the start of the first window. */
GPU_INLINE uint64_t gpu_window_part(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const uint64_t half = run->domain->layout.window_bytes;
    const uint64_t part =
        half / steps->program->nblocks / 2 / TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;

    return (run->epoch & 1) * half + (2 * gpu_block() + (steps->round & 1)) * part;
}

/* Waits until the same block of the peer has given the signal with counter value `value`. False if
 * the launch must end. */
GPU_INLINE bool gpu_wait_for_signal(const struct gpu_run *run, uint32_t peer, uint64_t value)
{
    return gpu_wait_for(run, peer, &gpu_block_fifo(run, run->peers[peer].from)->signals, value);
}

/* All threads: gives the signal with counter value `value` to the same block of all peers. A
 * barrier must come between the work that the signal announces and this call. */
GPU_INLINE void gpu_give_signal(const struct gpu_run *run, uint64_t value)
{
    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            gpu_store_release(&gpu_block_fifo(run, run->peers[peer].to)->signals, value);
}

/* One thread: tells the peer where this rank's buffers are in this round. */
GPU_INLINE void gpu_tell_places(const struct gpu_run *run, const struct gpu_steps *steps,
                                uint32_t peer)
{
    const struct tutti_kernel_work *work = run->work;
    const struct tutti_kernel_program *program = steps->program;
    const uint64_t piece = steps->piece * program->piece_count * gpu_type_bytes(work->type);
    struct tutti_kernel_buffers *places =
        &gpu_block_fifo(run, run->peers[peer].to)->places[run->epoch & 1][steps->round & 1];
    const bool is_staged = program->stages_in_window;
    const uint32_t map = is_staged ? TUTTI_KERNEL_IN_WINDOW : work->input_map;

    gpu_store_relaxed(&places->input,
                      is_staged ? gpu_window_part(run, steps) : work->input_offset + piece);
    gpu_store_relaxed(&places->output, work->output_offset + piece);
    gpu_store_relaxed((uint64_t *)&places->input_map, (uint64_t)work->output_map << 32 | map);
}

/* All threads: waits until the round's memory is free, and tells all peers the places of this
 * rank's buffers. False, to all threads, if the launch must end. */
GPU_FUNCTION bool gpu_enter_round(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const bool is_later = steps->round >= 2;
    const uint64_t entered = gpu_round_signal(run, steps, steps->round - 1, 1);
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads()) {
        if (peer == run->rank)
            continue;
        if (is_later)
            is_fine = is_fine && gpu_wait_for_signal(run, peer, entered);
        gpu_tell_places(run, steps, peer);
    }
    return !gpu_barrier_or(!is_fine);
}

/* All threads: gives the signals of the round that this rank's schedule has not given. All ranks
 * must give the same number of signals in a round. `given` is the number that the schedule has
 * given. */
GPU_INLINE void gpu_leave_round(const struct gpu_run *run, const struct gpu_steps *steps,
                                uint32_t given)
{
    const uint32_t nsignals = steps->program->nsignals;

    if (given < nsignals)
        gpu_give_signal(run, gpu_round_signal(run, steps, steps->round, nsignals));
}

/* Returns the address at which this rank can access the peer's buffer, or NULL if the buffer is not
 * mapped. Call it only after a signal of the peer in this round has been received. */
GPU_INLINE uint8_t *gpu_remote_base(const struct gpu_run *run, const struct gpu_steps *steps,
                                    uint32_t peer, uint32_t buffer)
{
    const struct tutti_kernel_peer *remote = &run->peers[peer];
    const struct tutti_kernel_buffers *places =
        &gpu_block_fifo(run, remote->from)->places[run->epoch & 1][steps->round & 1];
    uint64_t at, maps;
    uint32_t map;

    if (buffer == TUTTI_BUF_WINDOW)
        return remote->window + gpu_window_part(run, steps);
    at = gpu_load_relaxed(buffer == TUTTI_BUF_INPUT ? &places->input : &places->output);
    maps = gpu_load_relaxed((const uint64_t *)&places->input_map);
    map = (uint32_t)(buffer == TUTTI_BUF_INPUT ? maps : maps >> 32);
    if (map == TUTTI_KERNEL_IN_WINDOW)
        return remote->window + at;
    return map < TUTTI_KERNEL_MAPS ? (uint8_t *)(uintptr_t)(remote->maps[map] + at) : NULL;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Returns rank number `index` of the ranks that a step addresses as "all ranks". */
GPU_INLINE uint32_t gpu_among(const struct gpu_steps *steps, const struct tutti_kernel_step *step,
                              uint32_t index)
{
    return step->among_count ? steps->among[step->among_first + index] : index;
}

/* Returns the number of the ranks that a step addresses as "all ranks". */
GPU_INLINE uint32_t gpu_among_count(const struct gpu_run *run, const struct tutti_kernel_step *step)
{
    return step->among_count ? step->among_count : run->nranks;
}

/* All threads, each for some ranks: stores into steps->dsts, from index `first` on, the addresses
 * of byte `at` of `buffer` at the step's target ranks, except this rank. Returns the number of
 * destinations including the first ones. *ret_is_fine becomes false if a buffer is not mapped. */
GPU_INLINE uint32_t gpu_find_sinks(const struct gpu_run *run, struct gpu_steps *steps,
                                   const struct tutti_kernel_step *step, uint32_t buffer,
                                   uint64_t at, uint32_t first, bool *ret_is_fine)
{
    const uint32_t count = step->to == TUTTI_ALL_RANKS ? gpu_among_count(run, step)
                                                       : step->to >= 0;
    uint32_t me = count; /* this rank's index in them; later ranks are stored one place earlier */

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

/* All threads: stores the sources of a GATHER_REDUCE into steps->srcs, in the order of ranks.
 * *ret_is_fine becomes false if a buffer is not mapped. */
GPU_INLINE void gpu_find_sources(const struct gpu_run *run, struct gpu_steps *steps,
                                 const struct tutti_kernel_step *step,
                                 const struct tutti_kernel_segment *segment, bool *ret_is_fine)
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

/* All threads: thread 0 stores the destinations in this rank's own memory into steps->dsts. Returns
 * their number. */
GPU_INLINE uint32_t gpu_find_own_sinks(struct gpu_steps *steps,
                                       const struct tutti_kernel_step *step,
                                       const struct tutti_kernel_segment *segment)
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

/* All threads: runs one segment of a PUT or a GATHER_REDUCE. It has one or more sources and any
 * number of destinations. False, to all threads, if the launch must end. */
GPU_FUNCTION bool gpu_spread_segment(const struct gpu_run *run, struct gpu_steps *steps,
                                     const struct tutti_kernel_step *step,
                                     const struct tutti_kernel_segment *segment)
{
    const struct tutti_kernel_program *program = steps->program;
    const bool is_put = step->kind == TUTTI_STEP_PUT;
    const int slot = is_put ? TUTTI_AT_REMOTE : TUTTI_AT_REMOTE_DST;
    const uint32_t type = is_put ? (uint32_t)TUTTI_UINT8 : program->run_type;
    tutti_kernel_reduction job = gpu_plain_job(type, run->work->op,
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
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, run->rank, NULL);
    if (gpu_barrier_or(!is_fine))
        return false;
    gpu_reduce(&job, gpu_crew_of_block());
    gpu_barrier(); /* the next segment overwrites the arrays */
    return true;
}

/* All threads: runs `size_bytes` bytes of a COPY, a GET or a REDUCE. */
GPU_INLINE void gpu_run_local_segment(const struct gpu_run *run, const struct gpu_steps *steps,
                                      const struct tutti_kernel_step *step, uint8_t *dst,
                                      const uint8_t *src, uint64_t size_bytes)
{
    const uint32_t type = steps->program->run_type;
    const void *srcs[2] = {dst, src};
    void *dsts[1] = {dst};
    tutti_kernel_reduction job;

    if (step->kind != TUTTI_STEP_REDUCE) {
        gpu_copy(dst, src, size_bytes, gpu_crew_of_block());
        return;
    }
    job = gpu_plain_job(type, run->work->op, size_bytes / gpu_type_bytes(type), srcs, 2, dsts, 1);
    gpu_reduce(&job, gpu_crew_of_block());
}

/* All threads: runs a step that moves data. If the step is a message to this rank itself, runs only
 * the block's share. A barrier must follow before the result is used. False, to all threads, if the
 * launch must end. */
GPU_FUNCTION bool gpu_run_local_step(const struct gpu_run *run, struct gpu_steps *steps,
                                     uint32_t index)
{
    const struct tutti_kernel_step *step = &steps->steps[index];
    const struct tutti_kernel_bound_step *bound = gpu_bound_step(steps, index);
    const struct tutti_kernel_segment *segment = gpu_segments(steps) + bound->first;
    const bool is_get = step->kind == TUTTI_STEP_GET;
    const uint8_t *remote = is_get ? gpu_remote_base(run, steps, (uint32_t)step->from,
                                                     step->remote) : NULL;

    if (is_get && !remote) {
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, (uint32_t)step->from, NULL);
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
        gpu_run_local_segment(run, steps, step,
                              gpu_own(steps, step->dst, segment->at[TUTTI_AT_DST] + from),
                              is_get ? remote + segment->at[TUTTI_AT_REMOTE] + from
                                     : gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC] + from),
                              to - from);
    }
    return true;
}

/* ---- one-sided schedules ----------------------------------------------------------------- */

/* All threads: runs a WAIT. With `hears` it also reads the greetings of the ranks that it waits
 * for. False, to all threads, if the launch must end. */
GPU_INLINE bool gpu_run_wait(const struct gpu_run *run, const struct gpu_steps *steps,
                             const struct tutti_kernel_step *step, bool hears)
{
    const uint64_t value = gpu_round_signal(run, steps, steps->round, step->signal);
    const bool is_all = step->from == TUTTI_ALL_RANKS;
    bool is_fine = true;

    if (hears)
        is_fine = is_all ? gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads())
                         : gpu_hear(run, (uint32_t)step->from, 1, gpu_thread(), gpu_threads());
    if (is_all)
        for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
            is_fine = is_fine && (peer == run->rank || gpu_wait_for_signal(run, peer, value));
    else if (gpu_thread() == 0)
        is_fine = is_fine && gpu_wait_for_signal(run, (uint32_t)step->from, value);
    return !gpu_barrier_or(!is_fine);
}

/* All threads: runs all steps of a one-sided schedule, in order. False, to all threads, if the
 * launch must end. */
GPU_FUNCTION bool gpu_run_in_order(const struct gpu_run *run, struct gpu_steps *steps)
{
    uint32_t given = 0;

    for (uint32_t i = 0; i < steps->program->nsteps; i++) {
        const struct tutti_kernel_step *step = &steps->steps[i];

        if (step->kind == TUTTI_STEP_SIGNAL) {
            gpu_give_signal(run, gpu_round_signal(run, steps, steps->round, ++given));
        } else if (step->kind == TUTTI_STEP_WAIT) {
            if (!gpu_run_wait(run, steps, step, steps->round == 0))
                return false;
        } else {
            if (!gpu_run_local_step(run, steps, i))
                return false;
            gpu_barrier();
        }
    }
    if (steps->program->needs)
        gpu_leave_round(run, steps, given);
    return true;
}

#endif
