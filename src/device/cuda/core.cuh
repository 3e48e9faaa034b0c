/* SPDX-License-Identifier: Apache-2.0
 * What all communicating kernels share: epochs, greetings, waiting, meetings of the grid, signals.
 *
 * Epochs and the reuse of memory. Every work but MESSAGES takes one epoch of its domain, in the
 * same order on all ranks. What a rank writes for others in epoch e lies in half e & 1: of their
 * mailboxes (greetings, posts, lines), or of its own windows. It may write there when everybody has
 * finished epoch e - 2, whose data the half still holds.
 *
 *  - In every epoch each rank greets every other, and it begins an epoch only when all its threads
 *    are done with the one before: a new launch begins after the last one's end, and within a
 *    launch the grid meets between two works. So a greeting of epoch e - 1 tells that its rank has
 *    finished e - 2.
 *  - Works in which a rank reads everybody's greeting ("hears" all) leave nothing to be waited for:
 *    in the next epoch it just writes. After other works (a broadcast by lines, say, where only the
 *    root is listened to) the next epoch of any kind begins with waiting for the greetings that
 *    are missing. `heard` is the last epoch of which all are known.
 *  - That goes for greetings, too, for they are written like all else. The one of epoch e - 1 is
 *    overwritten in epoch e + 1, when its rank has read my greeting of epoch e. That is sent when
 *    the block that sends it has read theirs of e - 1; blocks that come later may find the one of
 *    e + 1, which tells them no less, but not that of e + 3, which waits for the end of my epoch e.
 *
 * Greetings name the call, so that ranks that do different things are told instead of waiting for
 * each other. Who uses what others sent reads their greetings, sooner or later in the same launch.
 *
 * Flags. Lines and greetings carry the epoch in 32 bits, never 0. Lines of some 2^32 epochs ago
 * would be taken for new ones, therefore all are cleaned every 2^30 epochs. In epoch e, before I
 * greet, half (e + 1) & 1 of my inboxes is idle: what was sent to me in epoch e - 1 has been read,
 * all of it, when I finished that; and nobody writes for epoch e + 1 before it has my greeting of
 * epoch e.
 */
#ifndef TUTTI_DEVICE_CUDA_CORE_CUH
#define TUTTI_DEVICE_CUDA_CORE_CUH

#include "device/cuda/platform.cuh"
#include "device/cuda/work.h"
#include "schedule/step.h"

enum {
    GPU_POLLS = 128, /* between two looks at the abort flag and the clock */
    GPU_GREETING_WORDS = 4,
};
/* In two epochs of so many mailboxes are cleaned, one half in each. */
#define GPU_CLEANING_PERIOD UINT64_C(0x40000000)

/* A launch as one of its threads sees it. All threads hold the same. */
struct gpu_run {
    const struct tutti_gpu_domain *domain;
    const struct tutti_gpu_peer *peers;
    struct tutti_gpu_counters *counters;
    const struct tutti_gpu_work *work; /* at hand */
    uint32_t nranks, rank;
    uint32_t flag;     /* of the epoch */
    uint64_t epoch;    /* of the work at hand, or the last one that took any */
    uint64_t heard;    /* the last epoch in which everybody's greeting was read */
    uint64_t meetings; /* of the grid, in this launch */
    uint64_t start_ns, deadline_ns;
};

GPU_INLINE uint32_t gpu_epoch_flag(uint64_t epoch)
{
    return (uint32_t)(epoch % UINT32_MAX) + 1;
}

GPU_INLINE struct tutti_gpu_mail *gpu_mail(uint8_t *mailbox)
{
    return (struct tutti_gpu_mail *)mailbox;
}

/* ---- failing ----------------------------------------------------------------------------
 * Functions that are not inlined take the run by value, so that it stays in registers elsewhere. */

/* Word of the greeting from me to a peer, or as I expect it from that peer. */
GPU_INLINE uint64_t gpu_greeting_word(const struct gpu_run *run, uint32_t peer, uint32_t word,
                                      bool is_mine)
{
    const struct tutti_gpu_work *work = run->work;

    if (word == 1 && work->collective == TUTTI_ALLTOALL && work->out.counts)
        return is_mine ? work->in.counts[peer] : work->out.counts[peer];
    return word < 2 ? work->signature[word] : word == 2 ? work->chain : work->number;
}

/* Ends all kernels of this rank; whoever is first tells the host why. `theirs`: their greeting. */
GPU_FUNCTION void gpu_fail(const struct gpu_run run, enum tutti_gpu_fault fault, uint32_t peer,
                           const uint64_t theirs[GPU_GREETING_WORDS])
{
    struct tutti_gpu_report *report = run.domain->report;

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

/* Has waiting for that rank become pointless? */
GPU_FUNCTION bool gpu_gives_up(const struct gpu_run run, uint32_t peer)
{
    /* Blocks of this rank wait for each other as one of them waits for a peer: it shall tell. */
    const uint64_t patience_ns = run.deadline_ns << (peer == run.rank);

    if (gpu_load_relaxed(&run.counters->is_aborted))
        return true;
    if (gpu_load_relaxed(&run.domain->report->abort)) {
        gpu_fail(run, TUTTI_GPU_ABORTED, peer, NULL);
        return true;
    }
    if (patience_ns && gpu_now_ns() - run.start_ns > patience_ns) {
        gpu_fail(run, TUTTI_GPU_LATE, peer, NULL);
        return true;
    }
    return false;
}

/* In every loop that waits for a rank: false when there is nothing to wait for any more. `polls` is
 * the loop's own, 0 at first. */
GPU_INLINE bool gpu_may_wait(const struct gpu_run *run, uint32_t peer, uint32_t *polls)
{
    gpu_pause();
    return ++*polls % GPU_POLLS != 0 || !gpu_gives_up(*run, peer);
}

/* Until the word is as large as that. What its writer released with it can be read then. */
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

/* Thread 0, in the name of its block, whose threads it has met. True for the last block. */
GPU_INLINE bool gpu_arrive(struct gpu_run *run)
{
    gpu_fence();
    return gpu_add(&run->counters->arrivals, 1) + 1 == run->meetings * gpu_blocks();
}

GPU_INLINE bool gpu_wait_for_blocks(const struct gpu_run *run)
{
    return gpu_wait_for(run, run->rank, &run->counters->arrivals, run->meetings * gpu_blocks());
}

/* All threads of all blocks, each of which says whether it is fine; false, for all of the block,
 * when the launch is to end. */
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

GPU_FUNCTION void gpu_mismatch(const struct gpu_run run, uint32_t peer)
{
    uint64_t theirs[GPU_GREETING_WORDS];

    for (uint32_t i = 0; i < GPU_GREETING_WORDS; i++)
        if (!gpu_read_greeting(&run, peer, i, &theirs[i]))
            return;
    gpu_fail(run, TUTTI_GPU_MISMATCH, peer, theirs);
}

/* The calling thread's share, among so many, of reading the greetings of ranks [first, first +
 * count) and comparing them with its own call. */
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

/* That peer has begun the epoch before this one: it may be one further than this rank already. */
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

/* All of the block: everybody has begun the epoch before this one. */
GPU_INLINE bool gpu_catch_up(const struct gpu_run *run)
{
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank)
            is_fine = is_fine && gpu_wait_for_begin(run, peer);
    return !gpu_barrier_or(!is_fine);
}

/* The calling thread's share in that no line in the half of the next epoch has a flag. */
GPU_FUNCTION void gpu_clean(const struct gpu_run run)
{
    const struct tutti_gpu_layout *layout = &run.domain->layout;
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

GPU_INLINE uint64_t gpu_signal_value(const struct gpu_run *run, uint32_t number)
{
    return run->epoch << TUTTI_GPU_SIGNAL_BITS | number;
}

GPU_INLINE struct tutti_gpu_post *gpu_post_to(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].to)->posts[run->epoch & 1];
}

GPU_INLINE const struct tutti_gpu_post *gpu_post_from(const struct gpu_run *run, uint32_t peer)
{
    return &gpu_mail(run->peers[peer].from)->posts[run->epoch & 1];
}

/* By one thread: tell that peer where my buffers are, with this signal. */
GPU_INLINE void gpu_write_post(const struct gpu_run *run, uint32_t peer, uint64_t input,
                               uint32_t input_map, uint64_t output, uint32_t output_map,
                               uint32_t number)
{
    struct tutti_gpu_post *post = gpu_post_to(run, peer);
    const uint64_t maps = (uint64_t)output_map << 32 | input_map;

    gpu_store_relaxed(&post->input, input);
    gpu_store_relaxed(&post->output, output);
    gpu_store_relaxed((uint64_t *)&post->input_map, maps);
    gpu_store_release(&post->counter, gpu_signal_value(run, number));
}

/* All threads of all blocks: what they all did before this is done when peers have the signal. Does
 * not wait: gpu_await does, for the other blocks, too, and follows before the next meeting. */
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

/* All threads of a block: all ranks, this one's blocks among them, have given their signal of that
 * number. False, for all of the block, when the launch is to end. */
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

/* All threads. False, for all of the block: the communicator has ended. */
GPU_INLINE bool gpu_run_begin(struct gpu_run *run, const struct tutti_gpu_launch *launch)
{
    const struct tutti_gpu_domain *domain = launch->domain;

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

/* All threads, before each work of a launch: begins its epoch, if it takes one. */
GPU_INLINE bool gpu_work_begin(struct gpu_run *run, const struct tutti_gpu_work *work)
{
    run->work = work;
    if (work->kind == TUTTI_GPU_MESSAGES)
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

/* All threads, whatever has happened. The last block takes the counters on to the next launch. */
GPU_INLINE void gpu_run_end(const struct gpu_run *run)
{
    struct tutti_gpu_counters *counters = run->counters;

    gpu_barrier();
    if (gpu_thread() != 0 || gpu_add(&counters->leavers, 1) + 1 != gpu_blocks())
        return;
    gpu_store_relaxed(&counters->leavers, 0);
    gpu_store_relaxed(&counters->arrivals, 0);
    gpu_store_relaxed(&counters->epoch, run->epoch);
    gpu_store_relaxed(&counters->heard_epoch, run->heard);
}

#endif
