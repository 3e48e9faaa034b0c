/* SPDX-License-Identifier: Apache-2.0
 * Provides the parts that all communicating kernels share: epochs, greetings, waiting, meetings of
 * the grid, and signals.
 *
 * Terms (see also work.h). A launch runs a list of works, such as one call each. The ranks of a
 * domain count their works in epochs. In each epoch each rank sends a greeting to every other rank,
 * which tells the receiver which call the sender runs. A mailbox is memory that one rank writes and
 * one other rank reads. It holds greetings, posts (addresses of the writer's buffers, and a counter
 * of signals), and data in LL and LL128 lines, which carry flags (ll.cuh). A meeting of the grid is
 * a barrier of all blocks of a launch. Below, "I" and "my" stand for this rank, and my inboxes are
 * the mailboxes that it reads.
 *
 * Results. If a function returns false because the launch must end, all its callers must return
 * too. By then the failure has been reported to the host (gpu_fail). An argument `is_fine` is false
 * if the calling thread has seen such a failure.
 *
 * Epochs and the reuse of memory. Every work except MESSAGES takes one epoch of its domain; all
 * ranks run the works in the same order. In epoch e a rank writes data for others only to half
 * e & 1 of their mailboxes (greetings, posts, lines) or of its own windows. That half still holds
 * the data of epoch e - 2. So the rank may write once every rank has finished epoch e - 2. The
 * greetings prove this, in two steps:
 *
 *  1. A rank begins an epoch, and sends its greeting, only after all its threads have finished the
 *     previous epoch. A launch begins after the end of the previous launch, and within a launch the
 *     grid meets between two works. So a greeting of epoch e - 1 proves that its sender has
 *     finished epoch e - 2.
 *  2. Before a rank writes in epoch e, it has seen the greetings of epoch e - 1 of all other ranks.
 *     In some works a rank reads ("hears") the greetings of all ranks, because it uses data of all
 *     of them. The next epoch then begins without waiting. Other works, such as a broadcast by
 *     lines, read only some greetings. After such a work the next epoch, whatever its own work is,
 *     begins by waiting for the greetings of all ranks (gpu_catch_up). `heard` is the last epoch of
 *     which all greetings have been read.
 *
 * Greetings themselves follow the same rule, because they are written like other data. A late block
 * could still miss a greeting that was overwritten. That does no harm, for these reasons:
 *
 *  - The peer overwrites its greeting of epoch e - 1 in epoch e + 1, after it has read my greeting
 *    of epoch e. My block 0 sends that greeting after it has read the peer's greeting of epoch
 *    e - 1. So block 0 always finds the greeting of epoch e - 1.
 *  - My other blocks may be later than block 0, and find the peer's greeting of epoch e + 1 in its
 *    place. It proves at least as much, so they accept it (gpu_wait_for_begin).
 *  - They cannot find the greeting of epoch e + 3, because the peer sends that only after the end
 *    of my epoch e.
 *
 * Mismatches. Greetings identify the call. So ranks that run different calls get an error instead
 * of waiting for each other. A rank that uses data of a peer reads that peer's greeting in the same
 * launch, before or after it uses the data.
 *
 * Flags. LL lines and greetings carry the epoch as a flag of 32 bits, which is never 0. (LL128
 * lines carry all 64 bits of the epoch.) A line that was written about 2^32 epochs ago would look
 * like a new one. So all LL lines are cleaned every 2^30 epochs, which means that their flags are
 * set to 0. Two successive epochs do this, one for each half: epoch e cleans half (e + 1) & 1 of my
 * inboxes, before it sends my greeting. Nothing else uses that half at this time:
 *
 *  - I have finished epoch e - 1, and thus read everything that was sent to me in it.
 *  - No peer writes for epoch e + 1 before it has my greeting of epoch e.
 */
#ifndef TUTTI_DEVICE_CUDA_CORE_CUH
#define TUTTI_DEVICE_CUDA_CORE_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/platform.cuh"
#include "device/cuda/work.h"
#include "schedule/step.h"

enum {
    GPU_POLLS = 128, /* polls between two checks of the abort flags and the clock */
    GPU_GREETING_WORDS = 4, /* values of 8 bytes in a greeting */
};
/* In each period of this many epochs (2^30), the last two epochs clean the LL lines, one half
 * each. */
#define GPU_CLEANING_PERIOD UINT64_C(0x40000000)

/* The state of a launch, of which each thread has a copy; all copies in a block are the same. */
struct gpu_run {
    const struct tutti_kernel_domain *domain;
    const struct tutti_kernel_peer *peers;
    struct tutti_kernel_counters *counters;
    const struct tutti_kernel_work *work; /* the current work */
    uint32_t nranks, rank;
    uint32_t flag;     /* gpu_epoch_flag(epoch) */
    uint64_t epoch;    /* of the current work, or of the last work that took an epoch */
    uint64_t heard;    /* the last epoch of which all greetings have been read; works set this */
    uint64_t meetings; /* meetings of the grid in this launch, counting one that is under way */
    uint64_t start_ns;    /* time at the start of the launch */
    uint64_t deadline_ns; /* time that the launch may take; 0: there is no limit */
};

/* Returns the flag of an epoch. It is never 0, because cleaned memory has the flag 0. */
GPU_INLINE uint32_t gpu_epoch_flag(uint64_t epoch)
{
    return (uint32_t)(epoch % UINT32_MAX) + 1;
}

/* Returns the start of a mailbox, which holds its posts and greetings. */
GPU_INLINE struct tutti_kernel_mail *gpu_mail(uint8_t *mailbox)
{
    return (struct tutti_kernel_mail *)mailbox;
}

/* ---- failing ----------------------------------------------------------------------------
 * Functions that are not inlined take `run` by value. If they took its address, their callers could
 * not keep its members in registers. */

/* Returns value `word` of a greeting: 0 and 1 are the signature of the call, 2 is the chain, 3 is
 * the number of the call (work.h). If `is_mine`, this is the greeting from this rank to `peer`.
 * Otherwise it is the greeting that this rank expects from `peer`. The two differ if counts are by
 * pair, because value 1 is then the number of elements that the sender gives to the receiver. */
GPU_INLINE uint64_t gpu_greeting_word(const struct gpu_run *run, uint32_t peer, uint32_t word,
                                      bool is_mine)
{
    const struct tutti_kernel_work *work = run->work;

    if (word == 1 && work->has_pairs)
        return is_mine ? gpu_given(work, run->rank, peer).count
                       : gpu_taken(work, run->rank, peer).count;
    return word < 2 ? work->signature[word] : word == 2 ? work->chain : work->number;
}

/* Makes all kernels of this rank end. The first caller reports the fault to the host. `peer` is the
 * rank that the fault concerns, usually the one for which the caller was waiting. `theirs` is the
 * greeting of that rank if the fault is a mismatch, and otherwise NULL. */
GPU_FUNCTION void gpu_fail(const struct gpu_run run, enum tutti_kernel_fault fault, uint32_t peer,
                           const uint64_t theirs[GPU_GREETING_WORDS])
{
    struct tutti_kernel_report *report = run.domain->report;

    if (gpu_add(&report->claimed, 1) == 0) {
        gpu_store_relaxed(&report->rank, peer);
        gpu_store_relaxed(&report->number, run.work->number);
        for (uint32_t i = 0; i < 2; i++) {
            /* the word that this rank expects from the peer, to be compared with `theirs` */
            gpu_store_relaxed(&report->mine[i], gpu_greeting_word(&run, peer, i, false));
            gpu_store_relaxed(&report->theirs[i], theirs ? theirs[i] : 0);
        }
        gpu_store_relaxed(&report->their_number, theirs ? theirs[3] : 0);
        gpu_store_release(&report->fault, fault);
    }
    gpu_add(&run.counters->is_aborted, 1);
}

/* True if waiting for `peer` must stop: a block has failed, the host has aborted, the peer has left,
 * or the deadline has passed. The function reports the last three to the host. */
GPU_FUNCTION bool gpu_gives_up(const struct gpu_run run, uint32_t peer, bool has_left)
{
    /* If `peer` is this rank itself, the caller waits for another block of this rank. That block
     * may be waiting for a peer. The caller waits twice as long, so that the block that knows the
     * missing peer reports the failure. */
    const uint64_t patience_ns = peer == run.rank ? 2 * run.deadline_ns : run.deadline_ns;

    if (gpu_load_relaxed(&run.counters->is_aborted))
        return true;
    if (gpu_load_relaxed(&run.domain->report->abort)) {
        gpu_fail(run, TUTTI_KERNEL_ABORTED, peer, NULL);
        return true;
    }
    if (has_left) {
        gpu_fail(run, TUTTI_KERNEL_LEFT, peer, NULL);
        return true;
    }
    /* The clock may step back, so the time since the start is signed. */
    if (patience_ns && (int64_t)(gpu_now_ns() - run.start_ns) > (int64_t)patience_ns) {
        gpu_fail(run, TUTTI_KERNEL_LATE, peer, NULL);
        return true;
    }
    return false;
}

/* Checks whether to give up. Call this for each GPU_POLLS-th pass of a loop that waits. A peer that
 * has left has stored everything before. So if one check sees that it has left, and it is still
 * waited for at the next check, it will never come. Between the checks *polls keeps this rank: it
 * is a multiple of 2 * GPU_POLLS, plus the number of passes since the last check. */
GPU_INLINE bool gpu_may_go_on(const struct gpu_run *run, uint32_t peer, uint32_t *polls)
{
    const uint32_t mark = 1 + peer, seen = *polls / (2 * GPU_POLLS);
    const bool has_left = gpu_load_relaxed(&run->domain->report->left) >> peer & 1;

    *polls = has_left ? mark * 2 * GPU_POLLS : 0;
    return !gpu_gives_up(*run, peer, has_left && seen == mark);
}

/* Every loop that waits for a rank calls this function once per pass. False if the loop must stop.
 * The caller sets *polls to 0 before the loop and does not change *polls in the loop. Most calls
 * only count; every GPU_POLLS-th call checks whether to give up. */
GPU_INLINE bool gpu_may_wait(const struct gpu_run *run, uint32_t peer, uint32_t *polls)
{
    gpu_pause();
    return ++*polls % GPU_POLLS != 0 || gpu_may_go_on(run, peer, polls);
}

/* Waits for `peer`, which may be this rank itself, until *at >= value. Then the caller can read
 * everything that the writer of *at stored before it released the value. False if the launch must
 * end. */
GPU_INLINE bool gpu_wait_for(const struct gpu_run *run, uint32_t peer, const uint64_t *at,
                             uint64_t value)
{
    uint32_t polls = 0;

    while (gpu_load_acquire(at) < value)
        if (!gpu_may_wait(run, peer, &polls))
            return false;
    return true;
}

/* ---- meetings of the grid ---------------------------------------------------------------
 * The counter `arrivals` only grows during a launch, and each block adds 1 per meeting. So meeting
 * number m, counted from 1, is complete when `arrivals` reaches m times the number of blocks. */

/* Thread 0 of each block, after a barrier of the block: records that the block has arrived at the
 * current meeting, whose number the caller has set in run->meetings. True if this block is the last
 * to arrive. */
GPU_INLINE bool gpu_arrive(struct gpu_run *run)
{
    gpu_fence();
    return gpu_add(&run->counters->arrivals, 1) + 1 == run->meetings * gpu_blocks();
}

/* Waits until all blocks of this rank have arrived at the current meeting. False if the launch must
 * end. */
GPU_INLINE bool gpu_wait_for_blocks(const struct gpu_run *run)
{
    return gpu_wait_for(run, run->rank, &run->counters->arrivals, run->meetings * gpu_blocks());
}

/* All threads of all blocks: waits until all blocks have called this function. False, to all
 * threads of a block, if the launch must end. A block does not arrive if one of its threads passes
 * false for `is_fine`. The other blocks notice the failure while they wait. */
GPU_INLINE bool gpu_meet(struct gpu_run *run, bool is_fine)
{
    if (gpu_barrier_or(!is_fine))
        return false;
    if (gpu_blocks() == 1)
        return true;
    run->meetings++;
    if (gpu_thread() == 0) {
        gpu_arrive(run);
        is_fine = gpu_wait_for_blocks(run);
    }
    return !gpu_barrier_or(!is_fine);
}

/* ---- greetings -------------------------------------------------------------------------- */

/* All threads of one block: sends this epoch's greeting to all other ranks. Each thread sends some
 * of the values. A value of 8 bytes travels as two halves of 4 bytes, each followed by the flag. */
GPU_INLINE void gpu_greet(const struct gpu_run *run)
{
    for (uint32_t i = gpu_thread(); i < run->nranks * GPU_GREETING_WORDS; i += gpu_threads()) {
        const uint32_t peer = i / GPU_GREETING_WORDS, word = i % GPU_GREETING_WORDS;
        uint64_t value;

        if (peer == run->rank)
            continue;
        value = gpu_greeting_word(run, peer, word, true);
        gpu_store_flagged(gpu_mail(run->peers[peer].to)->greetings[run->epoch & 1].words[word],
                          gpu_word{(uint32_t)value, run->flag, (uint32_t)(value >> 32), run->flag});
    }
}

/* Waits for value `word` of the peer's greeting of this epoch. The value has arrived when both of
 * its halves carry the epoch's flag. False if the launch must end. */
GPU_INLINE bool gpu_read_greeting(const struct gpu_run *run, uint32_t peer, uint32_t word,
                                  uint64_t *ret_value)
{
    const uint32_t *at = gpu_mail(run->peers[peer].from)->greetings[run->epoch & 1].words[word];
    uint32_t polls = 0;

    for (;;) {
        const gpu_word got = gpu_load_flagged(at);

        if (got.y == run->flag && got.w == run->flag) {
            *ret_value = (uint64_t)got.z << 32 | got.x;
            return true;
        }
        if (!gpu_may_wait(run, peer, &polls))
            return false;
    }
}

/* Reports that the peer's greeting names another call. First waits for the rest of the greeting,
 * which the report needs. */
GPU_FUNCTION void gpu_mismatch(const struct gpu_run run, uint32_t peer)
{
    uint64_t theirs[GPU_GREETING_WORDS];

    for (uint32_t i = 0; i < GPU_GREETING_WORDS; i++)
        if (!gpu_read_greeting(&run, peer, i, &theirs[i]))
            return;
    gpu_fail(run, TUTTI_KERNEL_MISMATCH, peer, theirs);
}

/* Waits for the greetings of ranks [first, first + count) and compares them with this rank's call.
 * `nthreads` threads share the comparisons; the calling thread is number `index` of these threads.
 * False if the launch must end, also because of a mismatch. */
GPU_INLINE bool gpu_hear(const struct gpu_run *run, uint32_t first, uint32_t count, uint32_t index,
                         uint32_t nthreads)
{
    for (uint32_t i = index; i < count * GPU_GREETING_WORDS; i += nthreads) {
        const uint32_t peer = first + i / GPU_GREETING_WORDS, word = i % GPU_GREETING_WORDS;
        uint64_t value;

        if (peer == run->rank)
            continue;
        if (!gpu_read_greeting(run, peer, word, &value))
            return false;
        if (value != gpu_greeting_word(run, peer, word, false)) {
            gpu_mismatch(*run, peer);
            return false;
        }
    }
    return true;
}

/* Waits until the peer has begun the previous epoch, which its greeting of that epoch shows. The
 * peer may already be one epoch ahead of this rank. Its greeting of that epoch lies in the same
 * place, and counts too. While the peer overwrites the one by the other, the two halves of a value
 * may have different flags. */
GPU_INLINE bool gpu_wait_for_begin(const struct gpu_run *run, uint32_t peer)
{
    const uint32_t *at = gpu_mail(run->peers[peer].from)->greetings[(run->epoch - 1) & 1].words[0];
    const uint32_t before = gpu_epoch_flag(run->epoch - 1), after = gpu_epoch_flag(run->epoch + 1);
    uint32_t polls = 0;

    for (;;) {
        const gpu_word got = gpu_load_flagged(at);

        if ((got.y == before || got.y == after) && (got.w == before || got.w == after))
            return true;
        if (!gpu_may_wait(run, peer, &polls))
            return false;
    }
}

/* All threads of the block: waits until every rank has begun the previous epoch. False, to all
 * threads of the block, if the launch must end. */
GPU_INLINE bool gpu_catch_up(const struct gpu_run *run)
{
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            is_fine = is_fine && gpu_wait_for_begin(run, peer);
    return !gpu_barrier_or(!is_fine);
}

/* All threads of the grid: each thread clears its share of the LL lines in the next epoch's half of
 * this rank's inboxes. The grid must meet before this epoch's greeting is sent, since a peer that
 * has the greeting may fill that half. */
GPU_FUNCTION void gpu_clean(const struct gpu_run run)
{
    const struct tutti_kernel_layout *layout = &run.domain->layout;
    const uint64_t from = layout->ll_at + ((run.epoch + 1) & 1) * layout->ll_bytes;
    const uint64_t step = (uint64_t)gpu_blocks() * gpu_threads() * sizeof(gpu_word);
    const uint64_t thread = (uint64_t)gpu_block() * gpu_threads() + gpu_thread();
    const uint64_t first = thread * sizeof(gpu_word);

    for (uint32_t peer = 0; peer < run.nranks; peer++)
        for (uint64_t at = first; peer != run.rank && at < layout->ll_bytes; at += step)
            gpu_store_flagged(run.peers[peer].from + from + at, gpu_word{0, 0, 0, 0});
    gpu_fence();
}

/* ---- posts and signals -------------------------------------------------------------------- */

/* Returns the value of a post's counter after signal `number` of this epoch. Values grow with the
 * epoch and, within one, with the number. So a rank waits for a signal with gpu_wait_for. */
GPU_INLINE uint64_t gpu_signal_value(const struct gpu_run *run, uint32_t number)
{
    return run->epoch << TUTTI_KERNEL_SIGNAL_BITS | number;
}

/* Returns this epoch's post from this rank to the peer. */
GPU_INLINE struct tutti_kernel_post *gpu_post_to(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].to)->posts[run->epoch & 1];
}

/* Returns this epoch's post from the peer to this rank. */
GPU_INLINE const struct tutti_kernel_post *gpu_post_from(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].from)->posts[run->epoch & 1];
}

/* One thread: tells the peer where this rank's buffers are, and gives signal `number`. The places
 * have the form of struct tutti_kernel_post: byte offsets in the maps with these indices. */
GPU_INLINE void gpu_write_post(const struct gpu_run *run, uint32_t peer, uint64_t input,
                               uint32_t input_map, uint64_t output, uint32_t output_map,
                               uint32_t number)
{
    struct tutti_kernel_post *post = gpu_post_to(run, peer);
    const uint64_t maps = (uint64_t)output_map << 32 | input_map; /* both members as one word */

    gpu_store_relaxed(&post->input, input);
    gpu_store_relaxed(&post->output, output);
    gpu_store_relaxed((uint64_t *)&post->input_map, maps);
    gpu_store_release(&post->counter, gpu_signal_value(run, number));
}

/* All threads of all blocks: gives signal `number` to all peers. This is a meeting of the grid at
 * which no block waits for the others: the block that arrives last gives the signal. A peer that
 * has the signal sees everything that these threads stored before. Before the next meeting, all
 * threads must call gpu_await, which waits for the other blocks too. */
GPU_INLINE void gpu_signal(struct gpu_run *run, uint32_t number)
{
    bool is_last = false;

    gpu_barrier();
    run->meetings++;
    if (gpu_thread() == 0)
        is_last = gpu_arrive(run);
    if (!gpu_barrier_or(is_last))
        return;
    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            gpu_store_release(&gpu_post_to(run, peer)->counter, gpu_signal_value(run, number));
}

/* All threads of a block: waits until all peers have given signal `number` and all blocks of this
 * rank have arrived. False, to all threads of the block, if the launch must end. */
GPU_INLINE bool gpu_await(const struct gpu_run *run, uint32_t number)
{
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        is_fine = is_fine &&
                  (peer == run->rank ? gpu_wait_for_blocks(run)
                                     : gpu_wait_for(run, peer, &gpu_post_from(run, peer)->counter,
                                                    gpu_signal_value(run, number)));
    return !gpu_barrier_or(!is_fine);
}

/* ---- from the launch to its end ----------------------------------------------------------- */

/* All threads of all blocks, at the start of every launch: initializes `run` from the launch and
 * the counters. False, to all threads of the block, if an earlier failure or abort has ended the
 * communicator. */
GPU_INLINE bool gpu_run_begin(struct gpu_run *run, const struct tutti_kernel_launch *launch)
{
    const struct tutti_kernel_domain *domain = launch->domain;

    run->domain = domain;
    run->peers = domain->peers;
    run->counters = domain->counters;
    run->work = &launch->first;
    run->nranks = domain->nranks;
    run->rank = domain->rank;
    run->epoch = gpu_load_relaxed(&domain->counters->epoch);
    run->heard = gpu_load_relaxed(&domain->counters->heard_epoch);
    run->flag = gpu_epoch_flag(run->epoch);
    run->meetings = 0;
    run->start_ns = gpu_now_ns();
    run->deadline_ns = launch->deadline_ns;
    return !gpu_barrier_or(gpu_load_relaxed(&domain->counters->is_aborted) != 0);
}

/* All threads of all blocks, before each work of a launch: begins the work's epoch if the work
 * takes one. The grid has met since the previous work. False, to all threads of the block, if the
 * launch must end. */
GPU_INLINE bool gpu_work_begin(struct gpu_run *run, const struct tutti_kernel_work *work)
{
    run->work = work;
    if (work->kind == TUTTI_KERNEL_WORK_MESSAGES)
        return true;
    run->epoch++;
    run->flag = gpu_epoch_flag(run->epoch);
    if (run->epoch % GPU_CLEANING_PERIOD >= GPU_CLEANING_PERIOD - 2) {
        gpu_clean(*run);
        if (!gpu_meet(run, true))
            return false;
    }
    if (run->heard + 1 != run->epoch && !gpu_catch_up(run))
        return false;
    if (gpu_block() == 0)
        gpu_greet(run);
    return true;
}

/* All threads of all blocks, at the end of every launch, even of a launch that has failed. The last
 * block to leave stores the counters for the next launch. */
GPU_INLINE void gpu_run_end(const struct gpu_run *run)
{
    struct tutti_kernel_counters *counters = run->counters;

    gpu_barrier();
    if (gpu_thread() != 0 || gpu_add(&counters->leavers, 1) + 1 != gpu_blocks())
        return;
    gpu_store_relaxed(&counters->leavers, 0);
    gpu_store_relaxed(&counters->arrivals, 0);
    gpu_store_relaxed(&counters->epoch, run->epoch);
    gpu_store_relaxed(&counters->heard_epoch, run->heard);
}

#endif
