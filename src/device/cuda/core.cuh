/* SPDX-License-Identifier: Apache-2.0
 * Provides the parts that all communicating kernels share: epochs, greetings, waiting, meetings of
 * the grid, and signals. A greeting tells a peer which call this rank runs (work.h). A meeting of
 * the grid is a barrier of all blocks of a launch.
 *
 * Results. If a function returns false because the launch must end, all its callers must return
 * too. By then the failure has been reported to the host (gpu_fail). An argument `is_fine` is false
 * if the calling thread has seen such a failure.
 *
 * Epochs and the reuse of memory. Every work except MESSAGES takes one epoch of its domain; all
 * ranks run the works in the same order. In epoch e a rank writes data for others only to half
 * e & 1 of their mailboxes (greetings, posts, lines) or of its own windows. That half still holds
 * the data of epoch e - 2. So the rank may write once every rank has finished epoch e - 2.
 *
 *  - In every epoch each rank sends a greeting to every other. A rank begins an epoch only after
 *    all its threads have finished the previous one: a launch begins after the end of the previous
 *    launch, and within a launch the grid meets between two works. So a greeting of epoch e - 1
 *    proves that its sender has finished epoch e - 2.
 *  - In some works a rank reads ("hears") the greetings of all ranks. Then it need not wait in the
 *    next epoch. Other works, such as a broadcast by lines, read only some greetings. After such a
 *    work the next epoch begins by waiting for the missing greetings, whatever its own work is.
 *    `heard` is the last epoch of which all greetings have been read.
 *  - Greetings follow the same rule, because they are written like other data. A peer overwrites
 *    its greeting of epoch e - 1 in epoch e + 1, after it has read my greeting of epoch e. Block 0
 *    sends my greeting of epoch e after it has read the peer's greeting of epoch e - 1. My other
 *    blocks may be later and find the peer's greeting of epoch e + 1, which proves at least as
 *    much. They cannot find the greeting of epoch e + 3, because the peer sends that only after the
 *    end of my epoch e.
 *
 * Mismatches. Greetings identify the call. So ranks that run different calls get an error instead
 * of waiting for each other. A rank that uses data of a peer reads that peer's greeting in the same
 * launch, before or after it uses the data.
 *
 * Flags. LL lines and greetings carry the epoch as a flag of 32 bits, which is never 0. A line that
 * was written about 2^32 epochs ago would look like a new one, so all LL lines are cleaned every
 * 2^30 epochs. (LL128 lines carry all 64 bits of the epoch.) Epoch e cleans half (e + 1) & 1 of my
 * inboxes, before it sends my greeting. Nothing else uses that half at this time. I have finished
 * epoch e - 1, and thus read everything that was sent to me in it. No peer writes for epoch e + 1
 * before it has my greeting of epoch e.
 */
#ifndef TUTTI_DEVICE_CUDA_CORE_CUH
#define TUTTI_DEVICE_CUDA_CORE_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/platform.cuh"
#include "device/cuda/work.h"
#include "schedule/step.h"

enum {
    GPU_POLLS = 128, /* polls between two checks of the abort flag and the clock */
    GPU_GREETING_WORDS = 4, /* values of 8 bytes in a greeting */
};
/* In each period of this many epochs, the last two epochs clean the LL lines, one half each. */
#define GPU_CLEANING_PERIOD UINT64_C(0x40000000)

/* The state of a launch, of which each thread has a copy; all copies in a block are the same. */
struct gpu_run {
    const struct tutti_kernel_domain *domain;
    const struct tutti_kernel_peer *peers;
    struct tutti_kernel_counters *counters;
    const struct tutti_kernel_work *work; /* the current work */
    uint32_t nranks, rank;
    uint32_t flag;     /* gpu_epoch_flag(epoch) */
    uint64_t epoch;    /* of the current work, or of the last one that took an epoch */
    uint64_t heard;    /* the last epoch of which all greetings have been read */
    uint64_t meetings; /* meetings of the grid in this launch, counting one that is under way */
    uint64_t start_ns;    /* time at the start of the launch */
    uint64_t deadline_ns; /* time that the launch may take; 0: there is no limit */
};

/* Returns the flag of an epoch, which is never 0. */
GPU_INLINE uint32_t gpu_epoch_flag(uint64_t epoch)
{
    return (uint32_t)(epoch % UINT32_MAX) + 1;
}

GPU_INLINE struct tutti_kernel_mail *gpu_mail(uint8_t *mailbox)
{
    return (struct tutti_kernel_mail *)mailbox;
}

/* ---- failing ----------------------------------------------------------------------------
 * Functions that are not inlined take the run by value: its address is never taken, so their
 * callers keep it in registers. */

/* Returns value `word` of a greeting. If `is_mine`, this is the greeting from this rank to `peer`.
 * Otherwise it is the greeting that this rank expects from `peer`. */
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
 * rank for which the caller was waiting. `theirs` is the greeting of that rank, or NULL. */
GPU_FUNCTION void gpu_fail(const struct gpu_run run, enum tutti_kernel_fault fault, uint32_t peer,
                           const uint64_t theirs[GPU_GREETING_WORDS])
{
    struct tutti_kernel_report *report = run.domain->report;

    if (gpu_add(&report->claimed, 1) == 0) {
        gpu_store_relaxed(&report->rank, peer);
        gpu_store_relaxed(&report->number, run.work->number);
        for (uint32_t i = 0; i < 2; i++) {
            gpu_store_relaxed(&report->mine[i], gpu_greeting_word(&run, peer, i, false));
            gpu_store_relaxed(&report->theirs[i], theirs ? theirs[i] : 0);
        }
        gpu_store_relaxed(&report->their_number, theirs ? theirs[3] : 0);
        gpu_store_release(&report->fault, fault);
    }
    gpu_add(&run.counters->is_aborted, 1);
}

/* True if waiting for `peer` must stop: a block has failed, the host has aborted, or the deadline
 * has passed. The function reports an abort or a missed deadline to the host. */
GPU_FUNCTION bool gpu_gives_up(const struct gpu_run run, uint32_t peer)
{
    /* While one block waits for a peer, other blocks of this rank may wait for that block. They
     * wait twice as long, so that the block that knows the missing peer reports the failure. */
    const uint64_t patience_ns = peer == run.rank ? 2 * run.deadline_ns : run.deadline_ns;

    if (gpu_load_relaxed(&run.counters->is_aborted))
        return true;
    if (gpu_load_relaxed(&run.domain->report->abort)) {
        gpu_fail(run, TUTTI_KERNEL_ABORTED, peer, NULL);
        return true;
    }
    if (patience_ns && gpu_now_ns() - run.start_ns > patience_ns) {
        gpu_fail(run, TUTTI_KERNEL_LATE, peer, NULL);
        return true;
    }
    return false;
}

/* Every loop that waits for a rank calls this in each pass. False if the loop must stop. The caller
 * sets *polls to 0 before the loop and does not change it in the loop. */
GPU_INLINE bool gpu_may_wait(const struct gpu_run *run, uint32_t peer, uint32_t *polls)
{
    gpu_pause();
    return ++*polls % GPU_POLLS != 0 || !gpu_gives_up(*run, peer);
}

/* Waits until *at >= value. Then everything that its writer stored before it released *at can be
 * read. False if the launch must end. */
GPU_INLINE bool gpu_wait_for(const struct gpu_run *run, uint32_t peer, const uint64_t *at,
                             uint64_t value)
{
    uint32_t polls = 0;

    while (gpu_load_acquire(at) < value)
        if (!gpu_may_wait(run, peer, &polls))
            return false;
    return true;
}

/* ---- meetings of the grid --------------------------------------------------------------- */

/* Thread 0 of each block, after a barrier of the block: records that the block has arrived at the
 * current meeting. True if this block is the last one. */
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

/* All threads of all blocks: waits until all blocks have called it. False, to all threads of a
 * block, if the launch must end. A block does not arrive if one of its threads passes false for
 * `is_fine`. The other blocks notice the failure while they wait. */
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

/* All threads of one block: sends this epoch's greeting to all other ranks. */
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

/* Waits for value `word` of the peer's greeting of this epoch. False if the launch must end. */
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

/* Reports that the peer's greeting names another call. */
GPU_FUNCTION void gpu_mismatch(const struct gpu_run run, uint32_t peer)
{
    uint64_t theirs[GPU_GREETING_WORDS];

    for (uint32_t i = 0; i < GPU_GREETING_WORDS; i++)
        if (!gpu_read_greeting(&run, peer, i, &theirs[i]))
            return;
    gpu_fail(run, TUTTI_KERNEL_MISMATCH, peer, theirs);
}

/* Waits for the greetings of ranks [first, first + count) and compares them with this rank's call.
 * `nthreads` threads share this work; the calling thread is number `index` of them. False if the
 * launch must end, also because of a mismatch. */
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

/* Waits until the peer has begun the previous epoch. The peer may already be one epoch ahead of
 * this rank; its greeting of that epoch counts, too. */
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

/* All threads of the block: waits until every rank has begun the previous epoch. */
GPU_INLINE bool gpu_catch_up(const struct gpu_run *run)
{
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            is_fine = is_fine && gpu_wait_for_begin(run, peer);
    return !gpu_barrier_or(!is_fine);
}

/* All threads of the grid: each thread clears its share of the LL lines in the next epoch's half of
 * this rank's inboxes. The grid must meet before the next greeting is sent. */
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

/* Returns the value of a post's counter after signal `number` of this epoch. */
GPU_INLINE uint64_t gpu_signal_value(const struct gpu_run *run, uint32_t number)
{
    return run->epoch << TUTTI_KERNEL_SIGNAL_BITS | number;
}

/* These return this epoch's post from this rank to the peer, and from the peer to this rank. */
GPU_INLINE struct tutti_kernel_post *gpu_post_to(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].to)->posts[run->epoch & 1];
}

GPU_INLINE const struct tutti_kernel_post *gpu_post_from(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].from)->posts[run->epoch & 1];
}

/* One thread: tells the peer where this rank's buffers are, and gives signal `number`. */
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

/* All threads of all blocks: gives signal `number` to all peers when the last block has arrived. A
 * peer that has the signal sees everything that these threads did before. The function does not
 * wait. gpu_await, which also waits for this rank's other blocks, must be called before the next
 * meeting. */
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

/* All threads: initializes `run` from the launch and the counters. False, to all threads of the
 * block, if an earlier failure or abort has ended the communicator. */
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

/* All threads, before each work of a launch: begins the work's epoch if it takes one. False, to all
 * threads of the block, if the launch must end. */
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

/* All threads, at the end of every launch, even of a launch that has failed. The last block to
 * leave stores the counters for the next launch. */
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
