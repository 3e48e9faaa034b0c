/* SPDX-License-Identifier: Apache-2.0
 * Runs two-sided steps and messages. A lane moves the bytes of its current step slot by slot, as
 * soon as it can. So a block never waits for one peer while a lane of another peer could move.
 * executor/host/lanes.c does the same on hosts.
 *
 * A block alternates between two phases. In a scan each thread is responsible for some lanes. It
 * polls their FIFOs, checks their dependencies, and marks the lanes that can move one slot. After a
 * barrier all threads of the block together move one slot of each marked lane, one lane after
 * another. After each such move the lane's own thread passes the slot to the peer and advances the
 * lane. A scan may read the state of other threads' lanes without a race, because that state is
 * written only in the second phase.
 *
 * Fused steps. The receiving lane stores a slot, and the sending lane follows later. If the sending
 * lane is at the same offset and has a free slot, one move does both. A RECV_REDUCE_SEND stores
 * nothing, so for this step both lanes must move together. Its receiving lane then waits for its
 * sending lane.
 */
#ifndef TUTTI_DEVICE_CUDA_LANES_CUH
#define TUTTI_DEVICE_CUDA_LANES_CUH

#include "device/cuda/lanes_scan.cuh"

/* ---- moving ------------------------------------------------------------------------------ */

/* Returns the data of the slot that a lane receives next, or fills next. */
GPU_INLINE uint8_t *gpu_lane_data(const struct gpu_run *run, const struct gpu_lane *lane,
                                  bool is_receive)
{
    return gpu_slot_data(&run->domain->layout, is_receive ? lane->from : lane->to, lane->slots);
}

/* All threads: moves `size_bytes` bytes that are contiguous in all buffers. `src` and `dst` are in
 * this rank's buffers. `in` is in the received slot, or NULL. `out` is in the slot to be filled, or
 * NULL. */
GPU_FUNCTION void gpu_move_run(const struct gpu_run *run, const struct gpu_steps *steps,
                               const struct tutti_kernel_step *step, const uint8_t *src,
                               uint8_t *dst, const uint8_t *in, uint8_t *out, uint64_t size_bytes)
{
    const uint32_t kind = step->kind;
    const bool reduces = in && (kind == TUTTI_STEP_RECV_REDUCE ||
                                kind == TUTTI_STEP_RECV_REDUCE_SEND ||
                                kind == TUTTI_STEP_RECV_REDUCE_COPY_SEND);
    const bool stores = in && kind != TUTTI_STEP_RECV_REDUCE_SEND;
    const uint32_t type = reduces ? steps->program->run_type : (uint32_t)TUTTI_UINT8;
    const void *srcs[2];
    void *dsts[2];
    uint32_t ndsts = 0;
    tutti_kernel_reduction job;

    srcs[0] = reduces ? src : in ? in : kind == TUTTI_STEP_SEND ? src : dst;
    srcs[1] = in;
    if (stores)
        dsts[ndsts++] = dst;
    if (out)
        dsts[ndsts++] = out;
    job = gpu_plain_job(type, run->work->op, size_bytes / gpu_type_bytes(type), srcs,
                        reduces ? 2 : 1, dsts, ndsts);
    gpu_reduce(&job, gpu_crew_of_block());
}

/* Finds the segment that contains byte `at` of a step, by binary search. */
GPU_INLINE const struct tutti_kernel_segment *gpu_segment_at(const struct gpu_steps *steps,
                                                             uint32_t index, uint64_t at)
{
    const struct tutti_kernel_bound_step *bound = gpu_bound_step(steps, index);
    const struct tutti_kernel_segment *segments = gpu_segments(steps) + bound->first;
    uint32_t first = 0, count = bound->count;

    while (count > 1) {
        const uint32_t half = count / 2;

        if (segments[first + half].start <= at) {
            first += half;
            count -= half;
        } else {
            count = half;
        }
    }
    return segments + first;
}

/* All threads: moves bytes [at, at + size_bytes) of a step. `in` is the data of the slot that they
 * come from, or NULL if this move does not receive. `out` is the data of the slot that they go to,
 * or NULL if this move does not send. */
GPU_INLINE void gpu_move_bytes(const struct gpu_run *run, const struct gpu_steps *steps,
                               uint32_t index, uint64_t at, uint64_t size_bytes, const uint8_t *in,
                               uint8_t *out)
{
    const struct tutti_kernel_step *step = &steps->steps[index];
    const struct tutti_kernel_segment *segment = gpu_segment_at(steps, index, at);
    uint64_t done = 0;

    for (; done < size_bytes; segment++) {
        const uint64_t offset = at + done - segment->start;
        const uint64_t left = segment->bytes - offset, most = size_bytes - done;
        const uint64_t size = left < most ? left : most;

        gpu_move_run(run, steps, step,
                     gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC] + offset),
                     gpu_own(steps, step->dst, segment->at[TUTTI_AT_DST] + offset),
                     in ? in + done : NULL, out ? out + done : NULL, size);
        done += size;
    }
}

/* All threads: moves a flagged slot. A received slot is unpacked into the ordinary slot with the
 * same number. That slot is unused, and its sender may not fill it before this slot is
 * acknowledged. A slot to be sent is first assembled in this rank's own memory. False, to all
 * threads, if the launch must end. */
GPU_FUNCTION bool gpu_move_flagged(const struct gpu_run *run, const struct gpu_steps *steps,
                                   const struct gpu_lane *receiver, const struct gpu_lane *sender,
                                   uint32_t peer, uint32_t index, uint64_t size_bytes)
{
    const struct tutti_kernel_layout *layout = &run->domain->layout;
    uint8_t *in = receiver ? gpu_lane_data(run, receiver, true) : NULL;
    bool is_fine = true;

    if (receiver) {
        is_fine = gpu_unpack_slot(run, peer, in,
                                  gpu_slot_words(layout, receiver->from, receiver->slots),
                                  size_bytes, gpu_slot_flag(receiver->slots));
        if (gpu_barrier_or(!is_fine))
            return false;
    }
    gpu_move_bytes(run, steps, index, receiver ? receiver->at : sender->at, size_bytes, in,
                   sender ? steps->flagged : NULL);
    if (sender) {
        gpu_barrier();
        gpu_pack_slot(gpu_slot_words(layout, sender->to, sender->slots), steps->flagged,
                      size_bytes, gpu_slot_flag(sender->slots));
    }
    return true;
}

/* All threads: moves a slot of the lane, or of both lanes of its step. False if the launch must
 * end. */
GPU_INLINE bool gpu_move_slot(const struct gpu_run *run, const struct gpu_steps *steps,
                              uint32_t number)
{
    const struct gpu_lane *lane = &steps->lanes[number];
    const struct tutti_kernel_lane *table = gpu_lane_of(steps, number);
    const struct gpu_lane *receiver = table->is_receive ? lane : NULL;
    const struct gpu_lane *sender = table->is_receive ? NULL : lane;
    const struct tutti_kernel_layout *layout = &run->domain->layout;
    const uint64_t size = gpu_next_slot_bytes(run, lane);

    if (lane->move == GPU_MOVE_BOTH)
        sender = &steps->lanes[steps->steps[lane->step].send_lane];
    if (!gpu_lane_is_flagged(run, steps, lane))
        gpu_move_bytes(run, steps, lane->step, lane->at, size,
                       receiver ? gpu_lane_data(run, receiver, true) : NULL,
                       sender ? gpu_lane_data(run, sender, false) : NULL);
    else if (!gpu_move_flagged(run, steps, receiver, sender, (uint32_t)table->peer, lane->step,
                               size))
        return false;
    if (receiver && gpu_slot_must_be_cleaned(layout, receiver->slots)) {
        gpu_barrier();
        gpu_clean_slot(layout, receiver->from, receiver->slots);
    }
    return true;
}

/* ---- advancing ---------------------------------------------------------------------------- */

/* One thread: puts the lane at the beginning of its step number `position`, or past its last
 * step. */
GPU_INLINE void gpu_start_step(const struct gpu_run *run, struct gpu_steps *steps,
                               uint32_t number, uint32_t position)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_lane *table = gpu_lane_of(steps, number);
    struct gpu_lane *lane = &steps->lanes[number];
    struct gpu_share share;

    lane->position = position;
    lane->move = GPU_STAY;
    lane->is_free = false;
    lane->is_first = true;
    lane->slots_left = 0;
    lane->step = GPU_NO_STEP;
    if (position == table->count)
        return;
    lane->step = gpu_table<uint32_t>(program, program->lane_steps)[table->first + position];
    lane->at = 0;
    lane->end = gpu_bound_step(steps, lane->step)->bytes;
    if (table->peer < 0)
        lane->seen = 0;
    if (program->is_messages && table->peer >= 0) {
        share = gpu_share_of(program, table->rotation, lane->end);
        lane->at = share.from;
        lane->end = share.to;
        lane->slots_left = share.is_there && share.from == share.to;
    }
    lane->slots_left += gpu_slots_of(&run->domain->layout, lane->end - lane->at);
}

/* One thread, after a slot of the lane has been moved: tells the peer that the slot is filled, or
 * free again, and advances the lane. */
GPU_INLINE void gpu_pass_slot(const struct gpu_run *run, struct gpu_steps *steps, uint32_t number)
{
    const struct tutti_kernel_lane *table = gpu_lane_of(steps, number);
    struct gpu_lane *lane = &steps->lanes[number];
    const bool is_flagged = gpu_lane_is_flagged(run, steps, lane);

    if (!table->is_receive && steps->program->is_messages && lane->is_first)
        gpu_write_header(run, lane, is_flagged, gpu_signature_of(steps, lane->step));
    if (!table->is_receive && !steps->program->is_messages && is_flagged)
        gpu_store_slot_word(gpu_slot_words(&run->domain->layout, lane->to, lane->slots), 0, 0,
                            gpu_slot_flag(lane->slots));
    if (!table->is_receive && run->domain->layout.shows_sizes)
        gpu_store_relaxed(
            &gpu_slot_header(&run->domain->layout, lane->to, lane->slots)->size_bytes,
            gpu_next_slot_bytes(run, lane));
    lane->slots++;
    if (table->is_receive)
        gpu_store_release(&lane->to->head, lane->slots);
    else if (!is_flagged)
        gpu_store_release(&lane->to->tail, lane->slots);
    lane->at += gpu_next_slot_bytes(run, lane);
    lane->is_first = false;
    if (--lane->slots_left == 0)
        gpu_start_step(run, steps, number, lane->position + 1);
}

/* The lane's thread, after a move: advances the lane. Also advances the sending lane if the move
 * included it. */
GPU_INLINE void gpu_advance_lane(const struct gpu_run *run, struct gpu_steps *steps,
                                 uint32_t number)
{
    struct gpu_lane *lane = &steps->lanes[number];
    const uint32_t step = lane->step;

    if (gpu_lane_of(steps, number)->peer < 0 || !lane->slots_left) {
        gpu_start_step(run, steps, number, lane->position + 1);
        return;
    }
    if (lane->move == GPU_MOVE_BOTH)
        gpu_pass_slot(run, steps, steps->steps[step].send_lane);
    gpu_pass_slot(run, steps, number);
}

/* All threads: runs the lane's local step, or moves one slot. False, to all threads, if the launch
 * must end. */
GPU_INLINE bool gpu_move_lane(const struct gpu_run *run, struct gpu_steps *steps, uint32_t number)
{
    const struct gpu_lane *lane = &steps->lanes[number];
    const bool is_local = gpu_lane_of(steps, number)->peer < 0;
    const uint32_t kind = steps->steps[lane->step].kind;
    bool is_fine = true;

    if (is_local && kind == TUTTI_STEP_SIGNAL) {
        gpu_give_signal(run, gpu_round_signal(run, steps, steps->round, steps->signals + 1));
        gpu_barrier();
        if (gpu_thread() == 0)
            steps->signals++;
    } else if (is_local && kind != TUTTI_STEP_WAIT) {
        is_fine = gpu_run_local_step(run, steps, lane->step);
    } else if (!is_local && lane->slots_left) {
        is_fine = gpu_move_slot(run, steps, number);
    }
    return !gpu_barrier_or(!is_fine);
}

/* Returns a rank that some lane waits for, preferably a rank that should send. Returns `me` if
 * there is none. */
GPU_FUNCTION uint32_t gpu_lanes_wait_for(const struct gpu_steps *steps, uint32_t me)
{
    uint32_t found = me;

    for (uint32_t i = 0; i < steps->nlanes; i++) {
        const struct tutti_kernel_lane *table = gpu_lane_of(steps, i);
        const struct gpu_lane *lane = &steps->lanes[i];

        if (lane->step == GPU_NO_STEP || !lane->is_free || table->peer < 0)
            continue;
        if (table->is_receive)
            return (uint32_t)table->peer;
        found = (uint32_t)table->peer;
    }
    return found;
}

/* One thread, from time to time while no lane can move: checks whether the block may wait on. False
 * if the launch must end. The function checks the greetings of all ranks. A rank that runs another
 * call may cause the delay even if no lane communicates with it. A rank without a greeting has not
 * begun this call. It is named as the one that is waited for, because the ranks with which lanes
 * communicate may wait for it, too. `polls` is as in gpu_may_go_on. */
GPU_FUNCTION bool gpu_lanes_may_wait(const struct gpu_run *run, const struct gpu_steps *steps,
                                     uint32_t *polls)
{
    uint32_t awaited = run->rank;
    bool is_fine = true;

    for (uint32_t peer = 0; peer < run->nranks && !steps->program->is_messages; peer++)
        if (is_fine && peer != run->rank && !gpu_has_heard(run, peer, &is_fine) &&
            awaited == run->rank)
            awaited = peer;
    if (awaited == run->rank)
        awaited = gpu_lanes_wait_for(steps, run->rank);
    return is_fine && gpu_may_go_on(run, awaited, polls);
}

/* ---- all lanes --------------------------------------------------------------------------- */

/* Returns the number of the FIFO that a lane of this block uses. */
GPU_INLINE uint32_t gpu_lane_fifo(const struct gpu_steps *steps,
                                  const struct tutti_kernel_lane *lane)
{
    return lane->fifo + steps->copy * steps->program->fifo_step;
}

/* All threads, before the block's first piece: prepares the lanes and loads their FIFOs'
 * counters. */
GPU_INLINE void gpu_open_lanes(const struct gpu_run *run, struct gpu_steps *steps)
{
    for (uint32_t i = gpu_thread(); i < steps->nlanes; i += gpu_threads()) {
        const struct tutti_kernel_lane *table = gpu_lane_of(steps, i);
        struct gpu_lane *lane = &steps->lanes[i];
        const uint32_t fifo = gpu_lane_fifo(steps, table), peer = (uint32_t)table->peer;

        lane->seen = 0;
        lane->is_heard = false;
        if (table->peer < 0)
            continue;
        lane->to = gpu_fifo_at(&run->domain->layout, run->peers[peer].to, fifo);
        lane->from = gpu_fifo_at(&run->domain->layout, run->peers[peer].from, fifo);
        lane->slots = gpu_load(gpu_fifo_counter(run, fifo, peer, table->is_receive));
    }
}

/* All threads, after the block's last piece: stores the FIFOs' counters for the next launch. */
GPU_INLINE void gpu_close_lanes(const struct gpu_run *run, struct gpu_steps *steps)
{
    for (uint32_t i = gpu_thread(); i < steps->nlanes; i += gpu_threads()) {
        const struct tutti_kernel_lane *table = gpu_lane_of(steps, i);
        const uint32_t fifo = gpu_lane_fifo(steps, table);

        if (table->peer >= 0)
            gpu_store(gpu_fifo_counter(run, fifo, (uint32_t)table->peer, table->is_receive),
                      steps->lanes[i].slots);
    }
}

/* All threads: moves the lanes that can move. It begins at a group of 32 lanes that depends on
 * `first`, so that no group is always the last. False, to all threads, if the launch must end. */
GPU_INLINE bool gpu_move_lanes(const struct gpu_run *run, struct gpu_steps *steps, uint32_t turn,
                               uint32_t first)
{
    const uint32_t nlanes = steps->nlanes;
    const uint32_t nwords = (nlanes + GPU_WARP - 1) / GPU_WARP;

    for (uint32_t i = 0; i < nwords; i++) {
        const uint32_t word = (first + i) % nwords;

        for (uint32_t bit = 0, bits = steps->can_move[turn][word]; bits; bit++, bits >>= 1) {
            const uint32_t number = word * GPU_WARP + bit;

            if (!(bits & 1))
                continue;
            if (!gpu_move_lane(run, steps, number))
                return false;
            if (gpu_thread() == number % gpu_threads())
                gpu_advance_lane(run, steps, number);
        }
    }
    return true;
}

/* True if the bit of any lane is set. */
GPU_INLINE bool gpu_any_lane(const uint32_t words[GPU_LANE_WORDS], uint32_t nlanes)
{
    uint32_t any = 0;

    for (uint32_t i = 0; i < (nlanes + GPU_WARP - 1) / GPU_WARP; i++)
        any |= words[i];
    return any != 0;
}

/* All threads: runs all lanes of a piece. False, to all threads, if the launch must end. */
GPU_FUNCTION bool gpu_run_lanes(const struct gpu_run *run, struct gpu_steps *steps)
{
    uint32_t polls = 0, turn = 0;
    bool is_fine = true;

    for (uint32_t i = gpu_thread(); i < steps->nlanes; i += gpu_threads())
        gpu_start_step(run, steps, i, 0);
    if (gpu_thread() == 0)
        steps->signals = 0;
    for (uint32_t scans = 0;; scans++, turn ^= 1) {
        gpu_barrier(); /* all lanes have been advanced */
        if (!gpu_lanes_scan(run, steps, turn, is_fine))
            return false;
        if (!gpu_any_lane(steps->is_open[turn], steps->nlanes))
            break;
        if (gpu_any_lane(steps->can_move[turn], steps->nlanes)) {
            if (!gpu_move_lanes(run, steps, turn, scans))
                return false;
            polls = 0;
            continue;
        }
        gpu_pause();
        if (gpu_thread() == 0 && ++polls % GPU_POLLS == 0)
            is_fine = gpu_lanes_may_wait(run, steps, &polls);
    }
    if (steps->program->needs)
        gpu_leave_round(run, steps, steps->signals);
    return true;
}

#endif
