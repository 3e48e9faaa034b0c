/* SPDX-License-Identifier: Apache-2.0
 * Kernels that try the features of the machine for kernels on the host, and mistakes that it must
 * find. */
#include "device/cuda/platform.cuh"

#include "test_kernels.h"

/* ---- meeting ----------------------------------------------------------------------------- */

using row_of_values = uint64_t[1024];

/* One number after the other, through shared memory, halves added to halves. */
GPU_KERNEL(try_sum, 1024, struct try_sum, arg)
{
    GPU_SHARED(row_of_values, values);
    uint32_t n = gpu_threads(), me = gpu_thread();

    values[me] = gpu_block() * 1000 + me;
    gpu_barrier();
    for (uint32_t half = (n + 1) / 2; n > 1; n = half, half = (n + 1) / 2) {
        if (me + half < n)
            values[me] += values[me + half];
        gpu_barrier();
    }
    if (me == 0)
        gpu_store(&arg.sums[gpu_block()], values[0]);
}

GPU_KERNEL(try_warps, 1024, struct try_warps, arg)
{
    uint32_t me = gpu_thread(), lane = me % GPU_WARP;
    struct try_warp_row *row = &arg.rows[me];

    gpu_store(&row->votes, gpu_ballot(lane % 3 == 0));
    gpu_store(&row->all, (uint32_t)gpu_warp_all(lane < 32));
    gpu_store(&row->any, (uint32_t)gpu_warp_any(lane == 40));
}

GPU_KERNEL(try_votes, 1024, struct try_votes, arg)
{
    uint32_t me = gpu_thread();

    for (uint32_t i = 0; i < 100; i++) {
        if (gpu_barrier_or(me == i % gpu_threads()))
            gpu_add(&arg.counts[0], 1);
        if (!gpu_barrier_or(me == gpu_threads()))
            gpu_add(&arg.counts[1], 1);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

GPU_FUNCTION uint64_t try_word(uint64_t message, uint64_t word)
{
    return message * 1000003 + word;
}

GPU_FUNCTION void send_message(const struct try_send &arg, uint64_t number)
{
    struct try_message *message = arg.message;
    uint32_t me = gpu_thread();

    for (uint32_t i = me; i < arg.nwords; i += gpu_threads())
        gpu_store(&message->words[i], try_word(number, i));
    if (arg.how == TRY_BARRIER_RELEASE || gpu_threads() > 1)
        gpu_barrier();
    if (me != 0)
        return;
    if (arg.how == TRY_FENCE || arg.how == TRY_FENCES)
        gpu_fence();
    if (arg.how == TRY_RELEASE || arg.how == TRY_BARRIER_RELEASE || arg.how == TRY_NO_ACQUIRE)
        gpu_store_release(&message->sequence, number);
    else
        gpu_store_relaxed(&message->sequence, number);
}

GPU_FUNCTION void await_message(const struct try_send &arg, uint64_t number)
{
    const uint64_t *sequence = &arg.message->sequence;
    bool is_relaxed = arg.how == TRY_FENCES || arg.how == TRY_NO_ACQUIRE;

    while ((is_relaxed ? gpu_load_relaxed(sequence) : gpu_load_acquire(sequence)) < number)
        gpu_pause();
    if (arg.how == TRY_FENCES)
        gpu_fence();
}

GPU_FUNCTION void receive_message(const struct try_send &arg, uint64_t number)
{
    struct try_message *message = arg.message;
    uint64_t wrong = 0;

    if (gpu_thread() == 0)
        await_message(arg, number);
    gpu_barrier();
    for (uint32_t i = gpu_thread(); i < arg.nwords; i += gpu_threads())
        wrong += gpu_load(&message->words[i]) != try_word(number, i);
    if (wrong > 0)
        gpu_add(arg.wrong, wrong);
    gpu_barrier();
    if (gpu_thread() == 0)
        gpu_store_release(&message->received, number);
}

/* Two words of 16 bytes, each with its number in it. */
GPU_FUNCTION void exchange_flagged(const struct try_send &arg, uint64_t number, bool is_sender)
{
    uint32_t flag = (uint32_t)number;
    gpu_word word = {flag * 3, flag, flag * 5, flag};
    void *at = &arg.message->words[2 * gpu_thread()];

    if (is_sender) {
        gpu_store_flagged(at, word);
        return;
    }
    for (;;) {
        gpu_word seen = gpu_load_flagged(at);

        if (seen.y == flag && seen.w == flag) {
            if (seen.x != word.x || seen.z != word.z)
                gpu_add(arg.wrong, 1);
            break;
        }
        gpu_pause();
    }
    gpu_barrier();
    if (gpu_thread() == 0)
        gpu_store_release(&arg.message->received, number);
}

GPU_KERNEL(try_send, 1024, struct try_send, arg)
{
    bool is_sender = arg.is_sender && gpu_block() == 0;

    if (!is_sender && !arg.is_receiver)
        return;
    for (uint64_t number = 1; number <= arg.nmessages; number++) {
        if (arg.how == TRY_FLAGGED)
            exchange_flagged(arg, number, is_sender);
        else if (is_sender)
            send_message(arg, number);
        else
            receive_message(arg, number);
        if (is_sender) {
            if (gpu_thread() == 0)
                while (gpu_load_acquire(&arg.message->received) < number)
                    gpu_pause();
            gpu_barrier();
        }
    }
}

GPU_KERNEL(try_own, 1024, struct try_own, arg)
{
    uint32_t n = gpu_threads(), me = gpu_thread(), next = (me + 1) % n;
    uint64_t *row = arg.words + gpu_block() * n;

    for (uint64_t round = 1; round <= arg.nrounds; round++) {
        bool is_right;

        gpu_store(&row[me], round * n + me);
        is_right = gpu_load(&row[me]) == round * n + me;
        gpu_barrier();
        is_right = is_right && gpu_load(&row[next]) == round * n + next;
        gpu_barrier();
        if (!is_right)
            gpu_store(arg.wrong, round);
    }
}

/* ---- lines ------------------------------------------------------------------------------- */

/* Each line has the round's number in all its words. */
GPU_KERNEL(try_lines, 32, struct try_lines, arg)
{
    unsigned char *mine = arg.lines + gpu_thread() * 16;

    for (uint32_t round = 1; round <= arg.nrounds; round++) {
        gpu_word word = {round, round, round, round};

        if (gpu_block() == 0) {
            gpu_store_line(mine, word, true);
            if (gpu_thread() == 0)
                while (gpu_load_acquire(&arg.torn[1]) < round)
                    gpu_pause();
            gpu_barrier();
            continue;
        }
        for (bool is_new = false; !is_new; gpu_pause()) {
            gpu_word seen = gpu_load_line(mine, true);
            /* By the last word of the line, which 8 threads have. */
            bool has_come = gpu_ballot(seen.w == round) >> (gpu_thread() | 7) & 1;

            if (has_come && (seen.x != round || seen.y != round || seen.z != round ||
                             seen.w != round))
                gpu_add(&arg.torn[0], 1);
            is_new = gpu_warp_all(has_come);
        }
        if (gpu_thread() == 0)
            gpu_store_release(&arg.torn[1], round);
    }
}

/* ---- mistakes ---------------------------------------------------------------------------- */

using much = uint8_t[64 << 10];

GPU_FUNCTION uint64_t dig(uint64_t depth)
{
    volatile uint64_t frame[64];

    frame[depth % 64] = depth;
    return depth == 0 ? 0 : dig(depth - 1) + frame[depth % 64];
}

GPU_KERNEL(try_mistake, 64, struct try_mistake, arg)
{
    uint32_t me = gpu_thread();

    switch (arg.what) {
    case TRY_LEAVES_BEFORE_BARRIER:
        if (me == 5)
            return;
        gpu_barrier();
        break;
    case TRY_BARRIER_OF_HALF:
        if (me < gpu_threads() / 2)
            gpu_barrier();
        else
            gpu_ballot(true);
        if (me >= gpu_threads() / 2)
            gpu_barrier_or(false);
        break;
    case TRY_VOTE_OF_HALF:
        if (me % 2 == 0)
            gpu_ballot(true);
        break;
    case TRY_MISALIGNED:
        gpu_load((const uint64_t *)((const char *)arg.memory + 4));
        break;
    case TRY_TWO_BARRIERS:
        if (me % 2 == 0)
            gpu_barrier();
        else
            gpu_barrier_or(true);
        break;
    case TRY_MUCH_SHARED: {
        GPU_SHARED(much, all_of_it);
        all_of_it[me] = 1;
        break;
    }
    case TRY_DEEP_STACK:
        gpu_store(arg.memory, dig(1 << 20));
        break;
    case TRY_ENDLESS:
        while (gpu_load_acquire(arg.memory) != UINT64_MAX)
            gpu_pause();
        break;
    }
}

GPU_KERNEL(try_race, 64, struct try_race, arg)
{
    uint32_t me = gpu_thread();

    gpu_store(&arg.memory[me], (uint64_t)me);
    if (arg.has_barrier)
        gpu_barrier();
    gpu_store(&arg.memory[(me + 1) % gpu_threads()], (uint64_t)me);
}

/* ---- others ------------------------------------------------------------------------------ */

GPU_KERNEL(try_add, 1024, struct try_add, arg)
{
    for (uint32_t i = 0; i < arg.times; i++)
        gpu_add(arg.at, 1);
}

GPU_KERNEL(try_meet, 1024, struct try_meet, arg)
{
    for (uint64_t round = 1; round <= arg.rounds; round++) {
        if (gpu_thread() == 0) {
            gpu_add(arg.counter, 1);
            while (gpu_load_acquire(arg.counter) < round * arg.total)
                gpu_pause();
        }
        gpu_barrier();
    }
}

GPU_KERNEL(try_fill, 1024, struct try_fill, arg)
{
    for (uint64_t i = gpu_block() * gpu_threads() + gpu_thread(); i < arg.nwords;
         i += (uint64_t)gpu_blocks() * gpu_threads())
        gpu_store(&arg.words[i], arg.value + i);
}

GPU_KERNEL(try_wait, 1024, struct try_wait, arg)
{
    while (gpu_load_acquire(arg.at) != arg.value)
        gpu_pause();
}
