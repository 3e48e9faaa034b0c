/* SPDX-License-Identifier: Apache-2.0
 * Collectives whose bytes the driver copies (executor/cuda/copy.c): here ranks only meet, each time
 * in a small launch of its own, so that multiprocessors are free while copies are under way.
 *
 *   meeting 0        begins the epoch and reads everybody's greeting: all make this call, and both
 *                    windows of all ranks are free, for all have finished the epoch before
 *   meeting m > 0    a signal, and that of all others. Its rank has put piece m - 1 of its input
 *                    into a window, and has fetched all pieces before that from the others'
 *                    windows. So behind it all pieces m - 1 can be fetched, and piece m may
 *                    overwrite piece m - 2
 *   the last one     no piece is new: it says that the last ones have been fetched
 *
 * Pieces use the two windows in turns, whatever the epoch is, for hosts do not know it. The last
 * meeting makes both of them free for the next epoch.
 *
 * Two ranks with n pieces for each other meet n + 2 times. With counts of their own ranks have more
 * for one than for another; no rank knows how many the others have among themselves, so each waits
 * for each only as often as the two of them have to. Window space is a pair's own then.
 */
#ifndef TUTTI_DEVICE_CUDA_COPIES_CUH
#define TUTTI_DEVICE_CUDA_COPIES_CUH

#include "device/cuda/core.cuh"

/* Pieces that this rank has for that one, or that one for this: the greater number. */
GPU_INLINE uint64_t gpu_copies_pieces(const struct tutti_gpu_work *work, uint32_t peer)
{
    uint64_t given, taken, most;

    if (work->npieces)
        return work->npieces;
    given = work->in.counts[peer];
    taken = work->out.counts[peer];
    most = given > taken ? given : taken;
    return (most + work->piece_count - 1) / work->piece_count;
}

/* All threads of the one block: everybody makes this call. */
GPU_INLINE bool gpu_copies_begin(struct gpu_run *run, const struct tutti_gpu_work *work)
{
    bool is_fine;

    if (!gpu_work_begin(run, work))
        return false;
    is_fine = gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads());
    if (gpu_barrier_or(!is_fine))
        return false;
    run->heard = run->epoch;
    return true;
}

GPU_INLINE bool gpu_copies_await(const struct gpu_run *run)
{
    const struct tutti_gpu_work *work = run->work;
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank && work->meeting <= gpu_copies_pieces(work, peer) + 1)
            is_fine = is_fine && gpu_wait_for(run, peer, &gpu_post_from(run, peer)->counter,
                                              gpu_signal_value(run, work->meeting));
    return !gpu_barrier_or(!is_fine);
}

/* A launch of one block. What comes before it on its stream is done, what comes behind it waits. */
GPU_INLINE bool gpu_copies_meet(struct gpu_run *run, const struct tutti_gpu_work *work)
{
    if (work->meeting == 0)
        return gpu_copies_begin(run, work);
    run->work = work;
    gpu_signal(run, work->meeting);
    return gpu_copies_await(run);
}

#endif
