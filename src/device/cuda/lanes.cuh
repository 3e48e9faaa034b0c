/* SPDX-License-Identifier: Apache-2.0
 * Two-sided steps and messages: lanes move slot by slot, each as soon as it can, as in
 * executor/host_lanes.c; nothing waits for one peer while another could go on.
 *
 * A block takes turns of two halves. It scans: each thread looks after some lanes, whose FIFOs it polls
 * and whose dependencies it knows, and says which can move by a slot. When the block has met it
 * moves one slot of each of these after the other, by all its threads. Then the thread that looks
 * after the lane gives the slot to the peer and takes the lane on. Scans only read what other lanes'
 * threads write while slots move.
 *
 * Fused steps. The receiving lane stores a slot and the sending lane follows; or, when the sender is
 * as far and has room, one move does both. A step that stores nothing moves in no other way, so
 * its receiving lane waits for its sending lane, as a host's does when its bounce is full.
 */
#ifndef TUTTI_DEVICE_CUDA_LANES_CUH
#define TUTTI_DEVICE_CUDA_LANES_CUH

#include "device/cuda/steps_local.cuh"

/* ---- slots -------------------------------------------------------------------------------- */

GPU_INLINE uint32_t gpu_slots_of(const struct tutti_gpu_layout *layout, uint64_t size_bytes)
{
    return (uint32_t)((size_bytes + layout->slot_bytes - 1) / layout->slot_bytes);
}

GPU_INLINE uint64_t gpu_slice(const struct gpu_run *run, const struct gpu_lane *lane)
{
    const uint64_t left = lane->end - lane->at, most = run->domain->layout.slot_bytes;

    return left < most ? left : most;
}

GPU_INLINE bool gpu_lane_is_flagged(const struct gpu_run *run, const struct gpu_steps *steps,
                                    const struct gpu_lane *lane)
{
    return gpu_is_flagged(&run->domain->layout, gpu_bound_step(steps, lane->step)->bytes);
}

/* Is there a free slot? Polls, and writes nothing: any thread may ask. */
GPU_INLINE bool gpu_has_credit(const struct gpu_run *run, const struct gpu_lane *lane)
{
    return lane->slots - gpu_load_acquire(&lane->from->head) < run->domain->layout.slots;
}

/* Has the next slot come? */
GPU_INLINE bool gpu_has_slot(const struct gpu_run *run, const struct gpu_steps *steps,
                             struct gpu_lane *lane)
{
    const struct tutti_gpu_layout *layout = &run->domain->layout;
    uint64_t ignored;

    if (gpu_lane_is_flagged(run, steps, lane))
        return gpu_load_slot_word(gpu_slot_words(layout, lane->from, lane->slots), 0,
                                  gpu_slot_flag(lane->slots), &ignored);
    if (lane->slots < lane->seen)
        return true;
    lane->seen = gpu_load_acquire(&lane->from->tail);
    return lane->slots < lane->seen;
}

/* ---- headers of messages ------------------------------------------------------------------ */

GPU_INLINE const struct tutti_gpu_signature *gpu_signature_of(const struct gpu_steps *steps,
                                                              uint32_t index)
{
    return gpu_table<struct tutti_gpu_signature>(steps->program, steps->program->signatures) +
           index;
}

GPU_INLINE uint64_t gpu_signature_word(const struct tutti_gpu_signature *signature, uint32_t word)
{
    return word < 2 ? signature->signature[word] : word == 2 ? signature->chain
                                                             : signature->number;
}

/* One thread: the header of the slot that has come, or that is to be filled. */
GPU_FUNCTION bool gpu_read_header(const struct gpu_run run, const struct gpu_lane *lane,
                                  bool is_flagged, uint64_t ret_words[GPU_HEADER_WORDS])
{
    const struct tutti_gpu_layout *layout = &run.domain->layout;
    const struct tutti_gpu_header *header = gpu_slot_header(layout, lane->from, lane->slots);
    const uint8_t *words = gpu_slot_words(layout, lane->from, lane->slots);

    if (!is_flagged) {
        ret_words[0] = gpu_load(&header->signature[0]);
        ret_words[1] = gpu_load(&header->signature[1]);
        ret_words[2] = gpu_load(&header->chain);
        ret_words[3] = gpu_load(&header->number);
        return true;
    }
    for (uint32_t i = 0; i < GPU_HEADER_WORDS; i++)
        if (!gpu_load_slot_word(words, i, gpu_slot_flag(lane->slots), &ret_words[i]))
            return false;
    return true;
}

GPU_INLINE void gpu_write_header(const struct gpu_run *run, const struct gpu_lane *lane,
                                 bool is_flagged, const struct tutti_gpu_signature *signature)
{
    const struct tutti_gpu_layout *layout = &run->domain->layout;
    struct tutti_gpu_header *header = gpu_slot_header(layout, lane->to, lane->slots);
    uint8_t *words = gpu_slot_words(layout, lane->to, lane->slots);

    if (!is_flagged) {
        gpu_store(&header->signature[0], signature->signature[0]);
        gpu_store(&header->signature[1], signature->signature[1]);
        gpu_store(&header->chain, signature->chain);
        gpu_store(&header->number, signature->number);
        return;
    }
    for (uint32_t i = 0; i < GPU_HEADER_WORDS; i++)
        gpu_store_slot_word(words, i, gpu_signature_word(signature, i),
                            gpu_slot_flag(lane->slots));
}

/* The message that has come is not the one that I expect. */
GPU_FUNCTION void gpu_message_mismatch(struct gpu_run run, uint32_t peer,
                                       const struct tutti_gpu_signature *mine,
                                       const uint64_t theirs[GPU_HEADER_WORDS])
{
    struct tutti_gpu_work work = {};

    work.kind = TUTTI_GPU_MESSAGES;
    work.signature[0] = mine->signature[0];
    work.signature[1] = mine->signature[1];
    work.chain = mine->chain;
    work.number = mine->number;
    run.work = &work;
    gpu_fail(run, TUTTI_GPU_MISMATCH, peer, theirs);
}

/* Is what has come what I expect? False, too, when that is not known yet. */
GPU_FUNCTION bool gpu_header_is_right(const struct gpu_run run, const struct gpu_steps *steps,
                                      const struct gpu_lane *lane, uint32_t peer,
                                      bool *ret_is_fine)
{
    const struct tutti_gpu_signature *mine = gpu_signature_of(steps, lane->step);
    uint64_t theirs[GPU_HEADER_WORDS];

    if (!gpu_read_header(run, lane, gpu_lane_is_flagged(&run, steps, lane), theirs))
        return false;
    for (uint32_t i = 0; i < GPU_HEADER_WORDS; i++)
        if (theirs[i] != gpu_signature_word(mine, i)) {
            gpu_message_mismatch(run, peer, mine, theirs);
            *ret_is_fine = false;
            return false;
        }
    return true;
}

/* ---- scanning ------------------------------------------------------------------------------ */

/* The receiving half of a fused step, as its sending lane sees it: bytes that have been stored. */
GPU_INLINE uint64_t gpu_received(const struct gpu_steps *steps, const struct gpu_lane *lane)
{
    const uint32_t number = steps->steps[lane->step].receive_lane;
    const struct gpu_lane *source;

    if (number == TUTTI_GPU_NO_LANE)
        return lane->end;
    source = &steps->lanes[number];
    return source->step > lane->step ? lane->end : source->step == lane->step ? source->at : 0;
}

GPU_INLINE enum gpu_move gpu_sender_can(const struct gpu_run *run, const struct gpu_steps *steps,
                                        const struct gpu_lane *lane)
{
    if (steps->steps[lane->step].kind == TUTTI_STEP_RECV_REDUCE_SEND ||
        gpu_received(steps, lane) < lane->at + gpu_slice(run, lane))
        return GPU_STAY;
    return gpu_has_credit(run, lane) ? GPU_MOVE : GPU_STAY;
}

/* The lane that sends on what this one receives, if it is as far and has room. */
GPU_INLINE bool gpu_sender_follows(const struct gpu_run *run, const struct gpu_steps *steps,
                                   const struct gpu_lane *lane)
{
    const uint32_t number = steps->steps[lane->step].send_lane;
    const struct gpu_lane *sender;

    if (number == TUTTI_GPU_NO_LANE)
        return false;
    sender = &steps->lanes[number];
    return sender->step == lane->step && sender->at == lane->at && gpu_has_credit(run, sender);
}

GPU_INLINE enum gpu_move gpu_receiver_can(const struct gpu_run *run, const struct gpu_steps *steps,
                                          struct gpu_lane *lane, uint32_t peer, bool *ret_is_fine)
{
    const bool is_messages = steps->program->is_messages;

    if (!gpu_has_slot(run, steps, lane))
        return GPU_STAY;
    if (is_messages && lane->is_first &&
        !gpu_header_is_right(*run, steps, lane, peer, ret_is_fine))
        return GPU_STAY;
    if (!is_messages && !lane->is_heard)
        return GPU_STAY;
    if (gpu_sender_follows(run, steps, lane))
        return GPU_MOVE_BOTH;
    return steps->steps[lane->step].kind == TUTTI_STEP_RECV_REDUCE_SEND ? GPU_STAY : GPU_MOVE;
}

/* Local steps can run but for waits, whose signals must have come. */
GPU_INLINE enum gpu_move gpu_local_can(const struct gpu_run *run, const struct gpu_steps *steps,
                                       struct gpu_lane *lane, bool *ret_is_fine)
{
    const struct tutti_gpu_step *step = &steps->steps[lane->step];
    const bool is_all = step->from == TUTTI_ALL_RANKS;
    const uint32_t last = is_all ? run->nranks : (uint32_t)step->from + 1;
    const uint64_t value = gpu_round_signal(run, steps, steps->round, step->signal);

    if (step->kind != TUTTI_STEP_WAIT)
        return GPU_MOVE;
    if (!is_all && lane->seen < last - 1)
        lane->seen = last - 1;
    for (; lane->seen < last; lane->seen++) {
        const uint32_t peer = (uint32_t)lane->seen;

        if (peer == run->rank)
            continue;
        if (!gpu_hears_now(run, peer, ret_is_fine) ||
            gpu_load_acquire(&gpu_block_fifo(run, run->peers[peer].from)->signals) < value)
            return GPU_STAY;
    }
    return GPU_MOVE;
}

/* The thread that looks after the lane: can it move? */
GPU_FUNCTION enum gpu_move gpu_lane_can(const struct gpu_run run, const struct gpu_steps *steps,
                                        struct gpu_lane *lane, uint32_t number, bool *ret_is_fine)
{
    const struct tutti_gpu_lane *table = gpu_lane_of(steps, number);

    if (lane->step == GPU_NO_STEP)
        return GPU_STAY;
    lane->is_free = lane->is_free || gpu_deps_are_done(steps, &steps->steps[lane->step]);
    if (!lane->is_free)
        return GPU_STAY;
    if (table->peer < 0)
        return gpu_local_can(&run, steps, lane, ret_is_fine);
    if (!lane->slots_left)
        return GPU_MOVE;
    if (!steps->program->is_messages && !lane->is_heard)
        lane->is_heard = gpu_hears_now(&run, (uint32_t)table->peer, ret_is_fine);
    if (!*ret_is_fine)
        return GPU_STAY;
    if (table->is_receive)
        return gpu_receiver_can(&run, steps, lane, (uint32_t)table->peer, ret_is_fine);
    return gpu_sender_can(&run, steps, lane);
}

/* All threads. A bit for each lane that can move, and for each that is not done. False, for all, when
 * the launch is to end. */
GPU_INLINE bool gpu_scan(const struct gpu_run *run, struct gpu_steps *steps, uint32_t turn,
                         bool is_fine)
{
    const uint32_t nlanes = steps->program->nlanes;

    for (uint32_t row = 0; row < nlanes; row += gpu_threads()) {
        const uint32_t number = row + gpu_thread();
        struct gpu_lane *lane = &steps->lanes[number < nlanes ? number : 0];
        const bool is_mine = number < nlanes;
        enum gpu_move move = GPU_STAY;
        uint32_t can_move, is_open;

        if (is_mine) {
            move = gpu_lane_can(*run, steps, lane, number, &is_fine);
            lane->move = (uint8_t)move;
        }
        can_move = gpu_ballot(move != GPU_STAY);
        is_open = gpu_ballot(is_mine && lane->step != GPU_NO_STEP);
        if (gpu_thread() % GPU_WARP == 0 && number < nlanes) {
            steps->can_move[turn][number / GPU_WARP] = can_move;
            steps->is_open[turn][number / GPU_WARP] = is_open;
        }
    }
    return !gpu_barrier_or(!is_fine);
}

/* ---- moving -------------------------------------------------------------------------------- */

/* The slot of the peer that a lane receives from, or sends to. */
GPU_INLINE uint8_t *gpu_lane_data(const struct gpu_run *run, const struct gpu_lane *lane,
                                  bool is_receive)
{
    return gpu_slot_data(&run->domain->layout, is_receive ? lane->from : lane->to, lane->slots);
}

/* So many bytes that lie together in all places. `in` and `out`: in the slots. */
GPU_FUNCTION void gpu_move_run(const struct gpu_run run, const struct gpu_steps *steps,
                               const struct tutti_gpu_step *step, const uint8_t *src, uint8_t *dst,
                               const uint8_t *in, uint8_t *out, uint64_t size_bytes)
{
    const uint32_t kind = step->kind;
    const bool reduces = in && (kind == TUTTI_STEP_RECV_REDUCE ||
                                kind == TUTTI_STEP_RECV_REDUCE_SEND ||
                                kind == TUTTI_STEP_RECV_REDUCE_COPY_SEND);
    const bool stores = in && kind != TUTTI_STEP_RECV_REDUCE_SEND;
    const void *srcs[2];
    void *dsts[2];
    tutti_gpu_reduction job = {};

    srcs[0] = reduces ? src : in ? in : kind == TUTTI_STEP_SEND ? src : dst;
    srcs[1] = in;
    if (stores)
        dsts[job.ndsts++] = dst;
    if (out)
        dsts[job.ndsts++] = out;
    job.type = reduces ? steps->program->run_type : (uint32_t)TUTTI_UINT8;
    job.op = run.work->op;
    job.nsrcs = reduces ? 2 : 1;
    job.srcs = srcs;
    job.dsts = dsts;
    job.count = size_bytes / gpu_type_bytes(job.type);
    job.scale = gpu_average(&run, false);
    job.premultiplied = TUTTI_GPU_NO_SOURCE;
    gpu_reduce(&job, gpu_crew_of_block());
}

/* The segment that has byte `at` of a step. */
GPU_INLINE const struct tutti_gpu_segment *gpu_segment_at(const struct gpu_steps *steps,
                                                          uint32_t index, uint64_t at)
{
    const struct tutti_gpu_bound_step *bound = gpu_bound_step(steps, index);
    const struct tutti_gpu_segment *segments = gpu_segments(steps) + bound->first;
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

/* Bytes [at, at + size) of a step: from the slot `in` (NULL: not received), to the slot `out`. */
GPU_INLINE void gpu_move_bytes(const struct gpu_run *run, const struct gpu_steps *steps,
                               uint32_t index, uint64_t at, uint64_t size_bytes, const uint8_t *in,
                               uint8_t *out)
{
    const struct tutti_gpu_step *step = &steps->steps[index];
    const struct tutti_gpu_segment *segment = gpu_segment_at(steps, index, at);
    uint64_t done = 0;

    for (; done < size_bytes; segment++) {
        const uint64_t offset = at + done - segment->start;
        const uint64_t left = segment->bytes - offset, most = size_bytes - done;
        const uint64_t size = left < most ? left : most;

        gpu_move_run(*run, steps, step,
                     gpu_own(steps, step->src, segment->at[TUTTI_AT_SRC] + offset),
                     gpu_own(steps, step->dst, segment->at[TUTTI_AT_DST] + offset),
                     in ? in + done : NULL, out ? out + done : NULL, size);
        done += size;
    }
}

/* A flagged slot is unpacked into the slot of its number, where nothing else is: its sender has not
 * got it back. One that is to be sent is put together in memory of my own. */
GPU_FUNCTION bool gpu_move_flagged(const struct gpu_run run, const struct gpu_steps *steps,
                                   const struct gpu_lane *receiver, const struct gpu_lane *sender,
                                   uint32_t peer, uint32_t index, uint64_t size_bytes)
{
    const struct tutti_gpu_layout *layout = &run.domain->layout;
    uint8_t *in = receiver ? gpu_lane_data(&run, receiver, true) : NULL;
    bool is_fine = true;

    if (receiver) {
        is_fine = gpu_unpack_slot(&run, peer, in,
                                  gpu_slot_words(layout, receiver->from, receiver->slots),
                                  size_bytes, gpu_slot_flag(receiver->slots));
        if (gpu_barrier_or(!is_fine))
            return false;
    }
    gpu_move_bytes(&run, steps, index, receiver ? receiver->at : sender->at, size_bytes, in,
                   sender ? steps->flagged : NULL);
    if (sender) {
        gpu_barrier();
        gpu_pack_slot(gpu_slot_words(layout, sender->to, sender->slots), steps->flagged,
                      size_bytes, gpu_slot_flag(sender->slots));
    }
    return true;
}

/* All threads: a slot of the lane, or of both lanes of its step. False when the launch is to end. */
GPU_INLINE bool gpu_move_slot(const struct gpu_run *run, const struct gpu_steps *steps,
                              uint32_t number)
{
    const struct gpu_lane *lane = &steps->lanes[number];
    const struct tutti_gpu_lane *table = gpu_lane_of(steps, number);
    const struct gpu_lane *receiver = table->is_receive ? lane : NULL;
    const struct gpu_lane *sender = table->is_receive ? NULL : lane;
    const uint64_t size = gpu_slice(run, lane);

    if (lane->move == GPU_MOVE_BOTH)
        sender = &steps->lanes[steps->steps[lane->step].send_lane];
    if (gpu_lane_is_flagged(run, steps, lane))
        return gpu_move_flagged(*run, steps, receiver, sender, (uint32_t)table->peer, lane->step,
                                size);
    gpu_move_bytes(run, steps, lane->step, lane->at, size,
                   receiver ? gpu_lane_data(run, receiver, true) : NULL,
                   sender ? gpu_lane_data(run, sender, false) : NULL);
    return true;
}

/* ---- going on ------------------------------------------------------------------------------ */

/* One thread: the lane's step number `position`, from its beginning. */
GPU_INLINE void gpu_start_step(const struct gpu_run *run, struct gpu_steps *steps,
                               uint32_t number, uint32_t position)
{
    const struct tutti_gpu_program *program = steps->program;
    const struct tutti_gpu_lane *table = gpu_lane_of(steps, number);
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

/* The thread that looks after the lane: a slot has been moved. */
GPU_INLINE void gpu_pass_slot(const struct gpu_run *run, struct gpu_steps *steps, uint32_t number)
{
    const struct tutti_gpu_lane *table = gpu_lane_of(steps, number);
    struct gpu_lane *lane = &steps->lanes[number];
    const bool is_flagged = gpu_lane_is_flagged(run, steps, lane);

    if (!table->is_receive && steps->program->is_messages && lane->is_first)
        gpu_write_header(run, lane, is_flagged, gpu_signature_of(steps, lane->step));
    if (!table->is_receive && !steps->program->is_messages && is_flagged)
        gpu_store_slot_word(gpu_slot_words(&run->domain->layout, lane->to, lane->slots), 0, 0,
                            gpu_slot_flag(lane->slots));
    lane->slots++;
    if (table->is_receive)
        gpu_store_release(&lane->to->head, lane->slots);
    else if (!is_flagged)
        gpu_store_release(&lane->to->tail, lane->slots);
    lane->at += gpu_slice(run, lane);
    lane->is_first = false;
    if (--lane->slots_left == 0)
        gpu_start_step(run, steps, number, lane->position + 1);
}

/* The same, of a lane that can move. */
GPU_INLINE void gpu_go_on(const struct gpu_run *run, struct gpu_steps *steps, uint32_t number)
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

/* All threads: what the lane has to do. False, for all, when the launch is to end. */
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
        is_fine = gpu_local_step(*run, steps, lane->step);
    } else if (!is_local && lane->slots_left) {
        is_fine = gpu_move_slot(run, steps, number);
    }
    return !gpu_barrier_or(!is_fine);
}

/* A rank that keeps a lane from going on, rather one that should send. */
GPU_FUNCTION uint32_t gpu_lanes_wait_for(const struct gpu_steps *steps, uint32_t me)
{
    uint32_t found = me;

    for (uint32_t i = 0; i < steps->program->nlanes; i++) {
        const struct tutti_gpu_lane *table = gpu_lane_of(steps, i);
        const struct gpu_lane *lane = &steps->lanes[i];

        if (lane->step == GPU_NO_STEP || !lane->is_free || table->peer < 0)
            continue;
        if (table->is_receive)
            return (uint32_t)table->peer;
        found = (uint32_t)table->peer;
    }
    return found;
}

/* One thread, now and then while no lane can move: may they still wait? Whoever does something else,
 * neighbour or not, may be what all wait for. */
GPU_FUNCTION bool gpu_lanes_may_wait(const struct gpu_run run, const struct gpu_steps *steps)
{
    bool is_fine = true;

    for (uint32_t peer = 0; peer < run.nranks && !steps->program->is_messages; peer++)
        if (is_fine && peer != run.rank)
            gpu_hears_now(&run, peer, &is_fine);
    return is_fine && !gpu_gives_up(run, gpu_lanes_wait_for(steps, run.rank));
}

/* ---- all lanes ------------------------------------------------------------------------------ */

/* One thread for each lane: before its first piece, and after its last. */
GPU_INLINE void gpu_open_lanes(const struct gpu_run *run, struct gpu_steps *steps)
{
    for (uint32_t i = gpu_thread(); i < steps->program->nlanes; i += gpu_threads()) {
        const struct tutti_gpu_lane *table = gpu_lane_of(steps, i);
        struct gpu_lane *lane = &steps->lanes[i];
        const uint32_t fifo = table->fifo + gpu_block(), peer = (uint32_t)table->peer;

        lane->seen = 0;
        lane->is_heard = false;
        if (table->peer < 0)
            continue;
        lane->to = gpu_fifo_at(&run->domain->layout, run->peers[peer].to, fifo);
        lane->from = gpu_fifo_at(&run->domain->layout, run->peers[peer].from, fifo);
        lane->slots = gpu_load(gpu_fifo_counter(run, fifo, peer, table->is_receive));
    }
}

GPU_INLINE void gpu_close_lanes(const struct gpu_run *run, struct gpu_steps *steps)
{
    for (uint32_t i = gpu_thread(); i < steps->program->nlanes; i += gpu_threads()) {
        const struct tutti_gpu_lane *table = gpu_lane_of(steps, i);
        const uint32_t fifo = table->fifo + gpu_block();

        if (table->peer >= 0)
            gpu_store(gpu_fifo_counter(run, fifo, (uint32_t)table->peer, table->is_receive),
                      steps->lanes[i].slots);
    }
}

/* All threads: the lanes that can move, those behind `first` before those ahead of it. */
GPU_INLINE bool gpu_move_lanes(const struct gpu_run *run, struct gpu_steps *steps, uint32_t turn,
                               uint32_t first)
{
    const uint32_t nlanes = steps->program->nlanes;
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
                gpu_go_on(run, steps, number);
        }
    }
    return true;
}

GPU_INLINE bool gpu_any(const uint32_t words[GPU_LANE_WORDS], uint32_t nlanes)
{
    uint32_t any = 0;

    for (uint32_t i = 0; i < (nlanes + GPU_WARP - 1) / GPU_WARP; i++)
        any |= words[i];
    return any != 0;
}

/* All threads: all lanes of a piece. False, for all, when the launch is to end. */
GPU_FUNCTION bool gpu_run_lanes(const struct gpu_run run, struct gpu_steps *steps)
{
    uint32_t polls = 0, turn = 0;
    bool is_fine = true;

    for (uint32_t i = gpu_thread(); i < steps->program->nlanes; i += gpu_threads())
        gpu_start_step(&run, steps, i, 0);
    if (gpu_thread() == 0)
        steps->signals = 0;
    for (uint32_t scans = 0;; scans++, turn ^= 1) {
        gpu_barrier(); /* lanes have gone on */
        if (!gpu_scan(&run, steps, turn, is_fine))
            return false;
        if (!gpu_any(steps->is_open[turn], steps->program->nlanes))
            break;
        if (gpu_any(steps->can_move[turn], steps->program->nlanes)) {
            if (!gpu_move_lanes(&run, steps, turn, scans))
                return false;
            polls = 0;
            continue;
        }
        gpu_pause();
        if (gpu_thread() == 0 && ++polls % GPU_POLLS == 0)
            is_fine = gpu_lanes_may_wait(run, steps);
    }
    if (steps->program->needs)
        gpu_leave_round(&run, steps, steps->signals);
    return true;
}

#endif
