/* SPDX-License-Identifier: Apache-2.0
 * Tests whether a line is always complete when its reader sees its flag. LL128 works depend on this
 * (work.h). Ranks send each other lines of known content, and check each line as soon as they see
 * its flag.
 *
 * Each warp is responsible for one or more peers. In a round it sends some lines to each of them.
 * Then it waits for their lines, polling all these peers in rotation. The lines use the area of
 * LL128 works in the mailboxes, and rounds alternate between its two halves. A rank sends its lines
 * of round r + 2 only after it has received all lines of round r + 1. The senders of those had read
 * the lines of round r before, so nothing is overwritten before it is read.
 *
 * The report to the host counts torn lines, which have a flag but are not complete. The flags have
 * values that no epoch has, so a late line cannot be mistaken for a line of a work.
 */
#ifndef TUTTI_DEVICE_CUDA_LINE_TEST_CUH
#define TUTTI_DEVICE_CUDA_LINE_TEST_CUH

#include "device/cuda/core.cuh"
#include "device/cuda/words.cuh"

enum {
    GPU_LINE_THREADS = 8,
    /* The bytes that a warp stores at once. */
    GPU_ROUND_BYTES = GPU_WARP / GPU_LINE_THREADS * TUTTI_KERNEL_LINE,
};
/* Bit i: thread i of a warp has the last 16 bytes of a line, which contain the flag. */
#define GPU_FLAG_THREADS 0x80808080u
/* Multiplying by an odd number gives different contents for different numbers. */
#define GPU_ODD_FACTOR 2654435761u

/* Returns the index of the calling thread in its warp. */
GPU_INLINE uint32_t gpu_warp_thread(void)
{
    return gpu_thread() % GPU_WARP;
}

/* Returns the address of the calling thread's part of a round's lines in a mailbox. Successive
 * rounds use different places. */
GPU_INLINE uint8_t *gpu_round_at(const struct tutti_kernel_layout *layout, uint8_t *mailbox,
                                 uint32_t round)
{
    const uint32_t places = (uint32_t)(layout->ll128_bytes / GPU_ROUND_BYTES);

    return mailbox + layout->ll128_at + (round & 1) * layout->ll128_bytes +
           (uint64_t)(round / 2 % places) * GPU_ROUND_BYTES + gpu_warp_thread() * GPU_WORD_BYTES;
}

/* Returns the content of the calling thread's part of a round's lines. The content differs between
 * the rounds that use the same place. The last 8 bytes of a line are its flag. */
GPU_INLINE gpu_word gpu_round_word(uint32_t round, uint32_t sender)
{
    const uint32_t number =
        (round * TUTTI_KERNEL_RANKS + sender) * GPU_WARP + gpu_warp_thread() + 1;
    const uint32_t mixed = number * GPU_ODD_FACTOR;

    if (GPU_FLAG_THREADS >> gpu_warp_thread() & 1)
        return gpu_word{mixed, ~mixed, round + 1, UINT32_MAX};
    return gpu_word{mixed, ~mixed, mixed ^ 0x55555555u, mixed + 1};
}

/* All threads of the warp must call this. Returns true if the warp may go on waiting. Returns false
 * after an abort or the deadline. */
GPU_INLINE bool gpu_test_may_wait(const struct tutti_kernel_line_test *test, uint64_t start_ns,
                                  uint32_t *polls)
{
    gpu_pause();
    if (++*polls % GPU_POLLS != 0)
        return true;
    return !gpu_warp_any(gpu_load_relaxed(&test->domain->report->abort) != 0 ||
                         (test->deadline_ns != 0 &&
                          (int64_t)(gpu_now_ns() - start_ns) > (int64_t)test->deadline_ns));
}

/* All threads of the warp must call this. Returns true if all lines of a round have arrived from
 * the peer. Adds the number of lines that have a flag but are not complete to *torn. */
GPU_INLINE bool gpu_test_check_lines(const struct tutti_kernel_domain *domain, uint32_t peer,
                                     uint32_t round, uint64_t *torn)
{
    const gpu_word wanted = gpu_round_word(round, peer);
    const gpu_word word =
        gpu_load_line(gpu_round_at(&domain->layout, domain->peers[peer].from, round), true);
    const bool is_flagged = gpu_half(word, 1) == gpu_half(wanted, 1);
    const uint32_t flags = gpu_ballot(is_flagged) & GPU_FLAG_THREADS;
    const uint32_t wrong = gpu_ballot(!is_flagged || gpu_half(word, 0) != gpu_half(wanted, 0));
    const uint32_t line_mask = (1u << GPU_LINE_THREADS) - 1;

    for (uint32_t first = 0; first < GPU_WARP; first += GPU_LINE_THREADS)
        if ((flags >> first & line_mask) != 0 && (wrong >> first & line_mask) != 0)
            ++*torn;
    return flags == GPU_FLAG_THREADS;
}

/* All threads of the warp must call this. The first thread adds the peer's torn lines to the
 * report. */
GPU_INLINE void gpu_test_report_torn(const struct tutti_kernel_domain *domain, uint32_t peer,
                                     uint64_t torn)
{
    uint64_t *at = &domain->report->torn[peer];

    if (gpu_warp_thread() == 0 && torn != 0)
        gpu_store_relaxed(at,
                          torn == TUTTI_KERNEL_LINES_MISSING ? torn : gpu_load_relaxed(at) + torn);
}

/* Returns the first rank from `peer` on whose bit is set in `list`, or the number of ranks if there
 * is none. */
GPU_INLINE uint32_t gpu_test_next_peer(const struct tutti_kernel_domain *domain, uint64_t list,
                                       uint32_t peer)
{
    while (peer < domain->nranks && (list >> peer & 1) == 0)
        peer++;
    return peer;
}

/* All threads of the warp must call this. Waits for a round's lines from all these peers. Returns
 * false if some have not arrived in time. */
GPU_INLINE bool gpu_test_receive(const struct tutti_kernel_line_test *test, uint64_t peers,
                                 uint32_t round, uint64_t start_ns)
{
    const struct tutti_kernel_domain *domain = test->domain;
    uint32_t polls = 0;

    for (;;) {
        for (uint32_t peer = gpu_test_next_peer(domain, peers, 0); peer < domain->nranks;
             peer = gpu_test_next_peer(domain, peers, peer + 1)) {
            uint64_t torn = 0;

            if (gpu_test_check_lines(domain, peer, round, &torn))
                peers &= ~(UINT64_C(1) << peer);
            gpu_test_report_torn(domain, peer, torn);
        }
        if (peers == 0)
            return true;
        if (gpu_test_may_wait(test, start_ns, &polls))
            continue;
        gpu_test_report_torn(domain, gpu_test_next_peer(domain, peers, 0),
                             TUTTI_KERNEL_LINES_MISSING);
        return false;
    }
}

/* All threads of the only block must call this. Runs the test. If lines are missing, the report
 * says so. */
GPU_INLINE void gpu_test_lines(const struct tutti_kernel_line_test *test)
{
    const struct tutti_kernel_domain *domain = test->domain;
    const uint32_t warps = gpu_threads() / GPU_WARP;
    const uint64_t start_ns = gpu_now_ns();
    uint64_t peers = 0;

    for (uint32_t peer = gpu_thread() / GPU_WARP; peer < domain->nranks; peer += warps)
        peers |= test->peers & UINT64_C(1) << peer;
    for (uint32_t round = 0; round < test->rounds; round++) {
        for (uint32_t peer = gpu_test_next_peer(domain, peers, 0); peer < domain->nranks;
             peer = gpu_test_next_peer(domain, peers, peer + 1))
            gpu_store_line(gpu_round_at(&domain->layout, domain->peers[peer].to, round),
                           gpu_round_word(round, domain->rank), true);
        if (!gpu_test_receive(test, peers, round, start_ns))
            return;
    }
}

#endif
