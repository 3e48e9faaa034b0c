/* SPDX-License-Identifier: Apache-2.0
 * Runs the meetings of collectives whose bytes the driver copies (executor/cuda/copy.c). In a
 * meeting, kernels of all ranks wait for each other between copies. Each meeting is a small launch
 * of its own, so that multiprocessors are free during copies.
 *
 *   meeting 0        begins the epoch and reads all greetings. So all ranks make this call and have
 *                    finished the previous epoch, and both windows of all ranks are free.
 *   meeting m > 0    gives signal m and waits for signal m of all other ranks. A rank that gives
 *                    the signal has put piece m - 1 of its input into a window. It has also fetched
 *                    all earlier pieces from the others' windows. So after the meeting all pieces
 *                    m - 1 can be fetched, and piece m may overwrite piece m - 2.
 *   last meeting     has no new piece. Its signal tells that the last pieces have been fetched.
 *
 * Pieces alternate between the two windows. They cannot follow the epoch as in other works, because
 * hosts do not know the epoch.
 * The last meeting makes both windows free for the next epoch.
 *
 * Two ranks with n pieces for each other meet n + 2 times. In v-forms (work.h) a rank may have more
 * pieces for one peer than for another. No rank knows the numbers of pieces between two other
 * ranks. So each rank waits for a peer only as often as that pair has to meet, and each pair has
 * window space of its own.
 */
#ifndef TUTTI_DEVICE_CUDA_COPIES_CUH
#define TUTTI_DEVICE_CUDA_COPIES_CUH

#include "device/cuda/core.cuh"

/* Returns the number of pieces that this rank has for `peer` or that `peer` has for this rank,
 * whichever is more. */
GPU_INLINE uint64_t gpu_copies_pieces(const struct tutti_kernel_work *work, uint32_t peer)
{
    uint64_t given, taken, most;

    if (work->npieces)
        return work->npieces;
    given = work->in.counts[peer];
    taken = work->out.counts[peer];
    most = given > taken ? given : taken;
    return (most + work->piece_count - 1) / work->piece_count;
}

/* All threads of the only block: meeting 0. False if the launch must end. */
GPU_INLINE bool gpu_copies_begin(struct gpu_run *run, const struct tutti_kernel_work *work)
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

/* All threads: waits for the signals of the peers that come to this meeting. False, to all threads,
 * if the launch must end. */
GPU_INLINE bool gpu_copies_await(const struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;
    bool is_fine = true;

    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads())
        if (peer != run->rank && work->meeting <= gpu_copies_pieces(work, peer) + 1)
            is_fine = is_fine && gpu_wait_for(run, peer, &gpu_post_from(run, peer)->counter,
                                              gpu_signal_value(run, work->meeting));
    return !gpu_barrier_or(!is_fine);
}

/* All threads of a launch of one block: runs the work's current meeting. False if the launch must
 * end. The order of the stream guarantees that copies enqueued before this launch are complete, and
 * that copies enqueued after it wait for its end. */
GPU_INLINE bool gpu_copies_meet(struct gpu_run *run, const struct tutti_kernel_work *work)
{
    if (work->meeting == 0)
        return gpu_copies_begin(run, work);
    run->work = work;
    gpu_signal(run, work->meeting);
    return gpu_copies_await(run);
}

#endif
