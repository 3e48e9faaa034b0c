/* SPDX-License-Identifier: Apache-2.0
 * Scans the lanes of a block for those that can move now (lanes.cuh). A sending lane needs a free
 * slot, and a receiving lane needs a slot that has arrived. The steps that the lane's step depends
 * on must be complete. A message must be the expected message. One thread is responsible for each
 * lane.
 */
#ifndef TUTTI_DEVICE_CUDA_LANES_SCAN_CUH
#define TUTTI_DEVICE_CUDA_LANES_SCAN_CUH

#include "device/cuda/steps_local.cuh"

/* ---- slots ------------------------------------------------------------------------------- */

/* Returns the number of slots that `size_bytes` bytes take. */
GPU_INLINE uint32_t gpu_slots_of(const struct tutti_kernel_layout *layout, uint64_t size_bytes)
{
    return (uint32_t)((size_bytes + layout->slot_bytes - 1) / layout->slot_bytes);
}

/* Returns the number of bytes in the lane's next slot. */
GPU_INLINE uint64_t gpu_next_slot_bytes(const struct gpu_run *run, const struct gpu_lane *lane)
{
    const uint64_t left = lane->end - lane->at, most = run->domain->layout.slot_bytes;

    return left < most ? left : most;
}

/* True if the lane's current step travels flagged (fifo.cuh). */
GPU_INLINE bool gpu_lane_is_flagged(const struct gpu_run *run, const struct gpu_steps *steps,
                                    const struct gpu_lane *lane)
{
    return gpu_is_flagged(&run->domain->layout, gpu_bound_step(steps, lane->step)->bytes);
}

/* True if a slot is free for this sending lane. Any thread may call this, because it changes
 * nothing. */
GPU_INLINE bool gpu_has_credit(const struct gpu_run *run, const struct gpu_lane *lane)
{
    return lane->slots - gpu_load_acquire(&lane->from->head) < run->domain->layout.slots;
}

/* True if the next slot of this receiving lane has arrived. */
GPU_INLINE bool gpu_has_slot(const struct gpu_run *run, const struct gpu_steps *steps,
                             struct gpu_lane *lane)
{
    const struct tutti_kernel_layout *layout = &run->domain->layout;
    uint64_t ignored;

    if (gpu_lane_is_flagged(run, steps, lane))
        return gpu_load_slot_word(gpu_slot_words(layout, lane->from, lane->slots), 0,
                                  gpu_slot_flag(lane->slots), &ignored);
    if (lane->slots < lane->seen)
        return true;
    lane->seen = gpu_load_acquire(&lane->from->tail);
    return lane->slots < lane->seen;
}

/* ---- headers of messages ----------------------------------------------------------------- */

/* Returns the content of the header of the message that is step `index`. */
GPU_INLINE const struct tutti_kernel_signature *gpu_signature_of(const struct gpu_steps *steps,
                                                                 uint32_t index)
{
    return gpu_table<struct tutti_kernel_signature>(steps->program, steps->program->signatures) +
           index;
}

/* Returns word `word` < GPU_HEADER_WORDS of a header, in the order in which the words travel. */
GPU_INLINE uint64_t gpu_signature_word(const struct tutti_kernel_signature *signature,
                                       uint32_t word)
{
    return word < 2 ? signature->signature[word] : word == 2 ? signature->chain
                                                             : signature->number;
}

/* One thread: reads the header of the slot that has arrived. False if the slot is flagged and some
 * words are still missing. */
GPU_FUNCTION bool gpu_read_header(const struct gpu_run *run, const struct gpu_lane *lane,
                                  bool is_flagged, uint64_t ret_words[GPU_HEADER_WORDS])
{
    const struct tutti_kernel_layout *layout = &run->domain->layout;
    const struct tutti_kernel_header *header = gpu_slot_header(layout, lane->from, lane->slots);
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

/* One thread: writes the header of the slot that is being filled. */
GPU_INLINE void gpu_write_header(const struct gpu_run *run, const struct gpu_lane *lane,
                                 bool is_flagged, const struct tutti_kernel_signature *signature)
{
    const struct tutti_kernel_layout *layout = &run->domain->layout;
    struct tutti_kernel_header *header = gpu_slot_header(layout, lane->to, lane->slots);
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

/* Reports that the message that has arrived is not the expected one. */
GPU_FUNCTION void gpu_message_mismatch(struct gpu_run run, uint32_t peer,
                                       const struct tutti_kernel_signature *mine,
                                       const uint64_t theirs[GPU_HEADER_WORDS])
{
    struct tutti_kernel_work work = {};

    work.kind = TUTTI_KERNEL_WORK_MESSAGES;
    work.signature[0] = mine->signature[0];
    work.signature[1] = mine->signature[1];
    work.chain = mine->chain;
    work.number = mine->number;
    run.work = &work;
    gpu_fail(run, TUTTI_KERNEL_MISMATCH, peer, theirs);
}

/* True if the message that has arrived is the expected message. False if this is not known yet. If
 * it is another message, the function reports a mismatch, sets *ret_is_fine to false and returns
 * false. */
GPU_FUNCTION bool gpu_header_is_right(const struct gpu_run *run, const struct gpu_steps *steps,
                                      const struct gpu_lane *lane, uint32_t peer,
                                      bool *ret_is_fine)
{
    const struct tutti_kernel_signature *mine = gpu_signature_of(steps, lane->step);
    uint64_t theirs[GPU_HEADER_WORDS];

    if (!gpu_read_header(run, lane, gpu_lane_is_flagged(run, steps, lane), theirs))
        return false;
    for (uint32_t i = 0; i < GPU_HEADER_WORDS; i++)
        if (theirs[i] != gpu_signature_word(mine, i)) {
            gpu_message_mismatch(*run, peer, mine, theirs);
            *ret_is_fine = false;
            return false;
        }
    return true;
}

/* ---- scanning ---------------------------------------------------------------------------- */

/* Takes the sending lane of a step. Returns the offset in the step up to which the receiving half
 * has stored bytes, or lane->end if the step receives nothing. */
GPU_INLINE uint64_t gpu_received_bytes(const struct gpu_steps *steps, const struct gpu_lane *lane)
{
    const uint32_t number = steps->steps[lane->step].receive_lane;
    const struct gpu_lane *source;

    if (number == TUTTI_KERNEL_NO_LANE)
        return lane->end;
    source = &steps->lanes[number];
    return source->step > lane->step ? lane->end : source->step == lane->step ? source->at : 0;
}

/* Returns the move that a sending lane can make now. A RECV_REDUCE_SEND stores no bytes that its
 * sending lane could send later. So that lane moves only together with the receiving lane. */
GPU_INLINE enum gpu_move gpu_find_sender_move(const struct gpu_run *run,
                                              const struct gpu_steps *steps,
                                              const struct gpu_lane *lane)
{
    if (steps->steps[lane->step].kind == TUTTI_STEP_RECV_REDUCE_SEND ||
        gpu_received_bytes(steps, lane) < lane->at + gpu_next_slot_bytes(run, lane))
        return GPU_STAY;
    return gpu_has_credit(run, lane) ? GPU_MOVE : GPU_STAY;
}

/* True if the lane that forwards what this lane receives is at the same offset and has a free
 * slot. */
GPU_INLINE bool gpu_sender_follows(const struct gpu_run *run, const struct gpu_steps *steps,
                                   const struct gpu_lane *lane)
{
    const uint32_t number = steps->steps[lane->step].send_lane;
    const struct gpu_lane *sender;

    if (number == TUTTI_KERNEL_NO_LANE)
        return false;
    sender = &steps->lanes[number];
    return sender->step == lane->step && sender->at == lane->at && gpu_has_credit(run, sender);
}

/* Returns the move that a receiving lane can make now. */
GPU_INLINE enum gpu_move gpu_find_receiver_move(const struct gpu_run *run,
                                                const struct gpu_steps *steps,
                                                struct gpu_lane *lane, uint32_t peer,
                                                bool *ret_is_fine)
{
    const bool is_messages = steps->program->is_messages;

    if (!gpu_has_slot(run, steps, lane))
        return GPU_STAY;
    if (is_messages && lane->is_first &&
        !gpu_header_is_right(run, steps, lane, peer, ret_is_fine))
        return GPU_STAY;
    if (!is_messages && !lane->is_heard)
        return GPU_STAY;
    if (gpu_sender_follows(run, steps, lane))
        return GPU_MOVE_BOTH;
    return steps->steps[lane->step].kind == TUTTI_STEP_RECV_REDUCE_SEND ? GPU_STAY : GPU_MOVE;
}

/* Returns the move that the lane of local steps can make now. A local step can always run, except a
 * WAIT, whose signals must have arrived. */
GPU_INLINE enum gpu_move gpu_find_local_move(const struct gpu_run *run,
                                             const struct gpu_steps *steps, struct gpu_lane *lane,
                                             bool *ret_is_fine)
{
    const struct tutti_kernel_step *step = &steps->steps[lane->step];
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
        if (!gpu_has_heard(run, peer, ret_is_fine) ||
            gpu_load_acquire(&gpu_block_fifo(run, run->peers[peer].from)->signals) < value)
            return GPU_STAY;
    }
    return GPU_MOVE;
}

/* The lane's thread: returns the move that the lane can make now. *ret_is_fine becomes false if the
 * launch must end. */
GPU_FUNCTION enum gpu_move gpu_find_move(const struct gpu_run *run, const struct gpu_steps *steps,
                                         struct gpu_lane *lane, uint32_t number, bool *ret_is_fine)
{
    const struct tutti_kernel_lane *table = gpu_lane_of(steps, number);

    if (lane->step == GPU_NO_STEP)
        return GPU_STAY;
    lane->is_free = lane->is_free || gpu_deps_are_done(steps, &steps->steps[lane->step]);
    if (!lane->is_free)
        return GPU_STAY;
    if (table->peer < 0)
        return gpu_find_local_move(run, steps, lane, ret_is_fine);
    if (!lane->slots_left)
        return GPU_MOVE;
    if (!steps->program->is_messages && !lane->is_heard)
        lane->is_heard = gpu_has_heard(run, (uint32_t)table->peer, ret_is_fine);
    if (!*ret_is_fine)
        return GPU_STAY;
    if (table->is_receive)
        return gpu_find_receiver_move(run, steps, lane, (uint32_t)table->peer, ret_is_fine);
    return gpu_find_sender_move(run, steps, lane);
}

/* All threads: fills in can_move[turn] and is_open[turn], the bits of the lanes that can move and
 * of the lanes that are not done. False, to all threads, if the launch must end. */
GPU_INLINE bool gpu_lanes_scan(const struct gpu_run *run, struct gpu_steps *steps, uint32_t turn,
                               bool is_fine)
{
    const uint32_t nlanes = steps->nlanes;

    for (uint32_t row = 0; row < nlanes; row += gpu_threads()) {
        const uint32_t number = row + gpu_thread();
        struct gpu_lane *lane = &steps->lanes[number < nlanes ? number : 0];
        const bool is_mine = number < nlanes;
        enum gpu_move move = GPU_STAY;
        uint32_t can_move, is_open;

        if (is_mine) {
            move = gpu_find_move(run, steps, lane, number, &is_fine);
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

#endif
