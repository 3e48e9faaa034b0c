/* SPDX-License-Identifier: Apache-2.0
 * Prepares works between the ranks' buffers (direct.cuh). In such a work a rank reads and writes
 * the buffers of other ranks. This file tells which rank has which buffers. It posts the addresses
 * of the buffers to the other ranks, and it divides a work into pieces. */
#ifndef TUTTI_DEVICE_CUDA_POSTED_CUH
#define TUTTI_DEVICE_CUDA_POSTED_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/core.cuh"
#include "device/cuda/local.h"

/* The signals of a work: the post is written, and the first phase is done. Each further phase adds
 * 1 to the last one. */
enum { GPU_SIGNAL_POSTED = 1, GPU_SIGNAL_DONE = 2 };

/* The data that the threads of a block share. */
struct gpu_direct_table {
    /* Per rank: the addresses of the parts of its buffers that this rank uses (0: unmapped), and
     * the number of elements in its largest block. */
    uint64_t inputs[TUTTI_KERNEL_RANKS], outputs[TUTTI_KERNEL_RANKS], most[TUTTI_KERNEL_RANKS];
    uint32_t is_input_unmapped[TUTTI_KERNEL_RANKS], is_output_unmapped[TUTTI_KERNEL_RANKS];
    /* The current reduction or copy. */
    tutti_kernel_reduction job;
    const void *srcs[TUTTI_KERNEL_RANKS];
    void *dsts[TUTTI_KERNEL_RANKS + 1];
};

/* The state of a work, of which each thread has a copy; all copies are the same. */
struct gpu_direct {
    struct gpu_run *run;
    const struct tutti_kernel_work *work;
    gpu_direct_table *table;
    uint64_t unmapped_inputs, unmapped_outputs; /* bit r: the buffer of rank r is unmapped */
    bool is_staged;       /* true if the work runs in pieces through windows */
    uint32_t size;        /* bytes of an element */
    uint64_t most;        /* elements of the largest block of all ranks */
    uint64_t piece_count; /* elements of each block in a piece */
    uint64_t npieces;
    /* The current piece: the elements of each block before it, and the half of the windows that it
     * uses. */
    uint64_t at;
    uint32_t half;
};

/* ---- the buffers of each rank -------------------------------------------------------------- */

GPU_INLINE bool gpu_has_input(const struct tutti_kernel_work *work, uint32_t rank)
{
    return tutti_collective_has_input(work->collective, rank, (uint32_t)work->root);
}

GPU_INLINE bool gpu_has_output(const struct tutti_kernel_work *work, uint32_t rank)
{
    return tutti_collective_has_output(work->collective, rank, (uint32_t)work->root);
}

/* Returns the number of blocks in an input. */
GPU_INLINE uint32_t gpu_input_blocks(const struct gpu_direct *d)
{
    return tutti_input_blocks(d->work->collective, d->run->nranks);
}

/* Returns the number of elements in the largest block of a buffer. */
GPU_INLINE uint64_t gpu_largest_block(const struct tutti_kernel_blocks *blocks, uint32_t nranks)
{
    uint64_t most = blocks->count;

    if (!blocks->counts)
        return most;
    most = 0;
    for (uint32_t i = 0; i < nranks; i++)
        most = blocks->counts[i] > most ? blocks->counts[i] : most;
    return most;
}

/* Returns the number of elements in the largest block of this rank's own buffers. */
GPU_INLINE uint64_t gpu_direct_most(const struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;
    const uint64_t in = gpu_largest_block(&work->in, run->nranks);
    const uint64_t out = gpu_largest_block(&work->out, run->nranks);
    const uint64_t given = gpu_has_input(work, run->rank) ? in : 0;
    const uint64_t taken = gpu_has_output(work, run->rank) ? out : 0;

    return given > taken ? given : taken;
}

/* True for an all-to-all in place, the only collective whose input is copied before a call in
 * place. */
GPU_INLINE bool gpu_is_swap(const struct tutti_kernel_work *work)
{
    return tutti_collective_in_place(work->collective) == TUTTI_AFTER_COPY &&
           work->input == work->output;
}

/* Returns the map that this rank posts for its input. Without input it is 0 and is not used.
 * TUTTI_KERNEL_NOT_MAPPED: other ranks must not access the input directly (direct.cuh). */
GPU_INLINE uint32_t gpu_posted_input_map(const struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;

    if (!gpu_has_input(work, run->rank))
        return 0;
    return work->is_premultiplied || gpu_is_swap(work) ? TUTTI_KERNEL_NOT_MAPPED : work->input_map;
}

/* Returns the same for the output. */
GPU_INLINE uint32_t gpu_posted_output_map(const struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;

    if (!gpu_has_output(work, run->rank))
        return 0;
    return gpu_is_swap(work) ? TUTTI_KERNEL_NOT_MAPPED : work->output_map;
}

/* ---- posts --------------------------------------------------------------------------------- */

/* One thread: writes the post for a peer. */
GPU_INLINE void gpu_direct_post(const struct gpu_run *run, uint32_t peer)
{
    const struct tutti_kernel_work *work = run->work;
    const uint32_t size = gpu_type_bytes(work->type);
    const uint64_t input = gpu_given(work, run->rank, peer).first * size;
    const uint64_t output = gpu_taken(work, run->rank, peer).first * size;

    gpu_store_relaxed(&gpu_post_to(run, peer)->most, gpu_direct_most(run));
    gpu_write_post(run, peer, work->input_offset + input, gpu_posted_input_map(run),
                   work->output_offset + output, gpu_posted_output_map(run), GPU_SIGNAL_POSTED);
}

/* Returns the address on this GPU of byte `offset` in a peer's map, or 0 if there is no such map.
 * The load must not be cached, because the host may have written the entry of the map since this
 * kernel began. The host always writes the entry before it lets the peer post the map. */
GPU_INLINE uint64_t gpu_mapped(const struct gpu_run *run, uint32_t peer, uint32_t map,
                               uint64_t offset)
{
    return map < TUTTI_KERNEL_MAPS ? gpu_load_relaxed(&run->peers[peer].maps[map]) + offset : 0;
}

/* One thread: waits for the post of a peer, and enters it into the table. False if the launch must
 * end. */
GPU_INLINE bool gpu_direct_read_post(const struct gpu_run *run, gpu_direct_table *table,
                                     uint32_t peer)
{
    const struct tutti_kernel_post *post = gpu_post_from(run, peer);
    uint64_t maps;

    if (!gpu_wait_for(run, peer, &post->counter, gpu_signal_value(run, GPU_SIGNAL_POSTED)))
        return false;
    maps = gpu_load_relaxed((const uint64_t *)&post->input_map);
    table->is_input_unmapped[peer] = (uint32_t)maps >= TUTTI_KERNEL_MAPS;
    table->is_output_unmapped[peer] = maps >> 32 >= TUTTI_KERNEL_MAPS;
    table->inputs[peer] = gpu_mapped(run, peer, (uint32_t)maps, gpu_load_relaxed(&post->input));
    table->outputs[peer] =
        gpu_mapped(run, peer, (uint32_t)(maps >> 32), gpu_load_relaxed(&post->output));
    table->most[peer] = gpu_load_relaxed(&post->most);
    return true;
}

/* Enters this rank's own buffers into the table. The addresses are valid for this rank even if its
 * peers cannot use the buffers. */
GPU_INLINE void gpu_direct_note_own(const struct gpu_run *run, gpu_direct_table *table)
{
    const struct tutti_kernel_work *work = run->work;
    const uint32_t rank = run->rank, size = gpu_type_bytes(work->type);

    table->is_input_unmapped[rank] = gpu_posted_input_map(run) >= TUTTI_KERNEL_MAPS;
    table->is_output_unmapped[rank] = gpu_posted_output_map(run) >= TUTTI_KERNEL_MAPS;
    table->inputs[rank] = (uint64_t)work->input + gpu_given(work, rank, rank).first * size;
    table->outputs[rank] = (uint64_t)work->output + gpu_taken(work, rank, rank).first * size;
    table->most[rank] = gpu_direct_most(run);
}

/* Posts this rank's buffers, and reads the posts of all other ranks into `table`. All threads of
 * all blocks must call it. All threads of a block get the same result; false: the launch must
 * end. */
GPU_INLINE bool gpu_direct_enter(struct gpu_run *run, gpu_direct_table *table)
{
    bool is_fine;

    for (uint32_t peer = gpu_thread(); peer < run->nranks && gpu_block() == 0;
         peer += gpu_threads())
        if (peer != run->rank)
            gpu_direct_post(run, peer);
    /* Check that every rank runs the same call before using its addresses. */
    is_fine = gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads());
    if (gpu_barrier_or(!is_fine))
        return false;
    run->heard = run->epoch;
    for (uint32_t peer = gpu_thread(); peer < run->nranks; peer += gpu_threads()) {
        if (peer == run->rank)
            gpu_direct_note_own(run, table);
        else
            is_fine = is_fine && gpu_direct_read_post(run, table, peer);
    }
    return !gpu_barrier_or(!is_fine);
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* True if each rank works on its own slice of the same block, as in all-reduce, reduce, broadcast
 * and the scans. */
GPU_INLINE bool gpu_is_sliced(const struct tutti_kernel_work *work)
{
    return !tutti_input_is_per_rank(work->collective) &&
           !tutti_output_is_per_rank(work->collective);
}

/* True if the ranks combine different numbers of inputs, so that each slice has a result for every
 * rank. */
GPU_INLINE bool gpu_is_scan(const struct tutti_kernel_work *work)
{
    return tutti_collective_reduces(work->collective) &&
           tutti_collective_sources(work->collective) != TUTTI_FROM_ALL;
}

/* True if the work must run through windows because of unmapped buffers. */
GPU_INLINE bool gpu_direct_stages(const struct gpu_direct *d)
{
    const bool reduces = tutti_collective_reduces(d->work->collective);

    /* If blocks are only copied, either the sender stores or the receiver fetches. So one unmapped
     * side alone needs no window. */
    if (!reduces && !gpu_is_sliced(d->work))
        return d->unmapped_inputs != 0 && d->unmapped_outputs != 0;
    /* Each rank reduces a slice of all inputs, and stores it to all outputs. */
    if (reduces && gpu_is_sliced(d->work))
        return (d->unmapped_inputs | d->unmapped_outputs) != 0;
    return d->unmapped_inputs != 0;
}

/* Returns the bytes of half a window. Pieces use the two halves alternately. */
GPU_INLINE uint64_t gpu_half_bytes(const struct gpu_direct *d)
{
    return d->run->domain->layout.window_bytes / 2 / TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;
}

/* Decides from the posts of all ranks whether the work is staged, and divides it into pieces. All
 * ranks come to the same decision, because they see the same posts. */
GPU_INLINE void gpu_direct_plan(struct gpu_direct *d)
{
    const gpu_direct_table *table = d->table;
    const uint64_t line_count = TUTTI_KERNEL_LINE / d->size; /* elements of a line */

    for (uint32_t rank = 0; rank < d->run->nranks && rank < TUTTI_KERNEL_RANKS; rank++) {
        d->unmapped_inputs |= (uint64_t)(table->is_input_unmapped[rank] != 0) << rank;
        d->unmapped_outputs |= (uint64_t)(table->is_output_unmapped[rank] != 0) << rank;
        d->most = table->most[rank] > d->most ? table->most[rank] : d->most;
    }
    d->is_staged = gpu_direct_stages(d);
    d->piece_count = d->most;
    if (d->is_staged) {
        uint64_t lines = gpu_half_bytes(d) / TUTTI_KERNEL_LINE / (gpu_input_blocks(d) + 1);

        /* Whole lines for each rank, so that one slice for each rank is no larger than a piece. */
        if (gpu_is_scan(d->work))
            lines -= lines % d->run->nranks;
        d->piece_count = lines * line_count;
    }
    d->npieces = d->most <= d->piece_count ? 1
                 : d->piece_count == 0      ? UINT64_MAX /* windows too small for this work */
                                            : (d->most + d->piece_count - 1) / d->piece_count;
}

/* Makes piece `number` the current one. */
GPU_INLINE void gpu_direct_seek(struct gpu_direct *d, uint64_t number)
{
    d->at = number * d->piece_count;
    d->half = number & 1;
}

/* Returns the number of elements that a block of `count` elements has in the current piece. */
GPU_INLINE uint64_t gpu_in_piece(const struct gpu_direct *d, uint64_t count)
{
    const uint64_t left = count > d->at ? count - d->at : 0;

    return left < d->piece_count ? left : d->piece_count;
}

/* Returns the number of elements in each slice of `count` elements but the last ones, which may be
 * shorter. It is a multiple of a line. So the slices are aligned to lines if the buffers are. */
GPU_INLINE uint64_t gpu_slice_count(const struct gpu_direct *d, uint64_t count)
{
    const uint64_t line_count = TUTTI_KERNEL_LINE / d->size, nranks = d->run->nranks;

    return (count + nranks * line_count - 1) / (nranks * line_count) * line_count;
}

/* Returns the slice of `count` elements for which a rank is responsible. */
GPU_INLINE gpu_part gpu_slice(const struct gpu_direct *d, uint64_t count, uint32_t rank)
{
    const uint64_t each = gpu_slice_count(d, count);
    const uint64_t first = rank * each < count ? rank * each : count;

    return gpu_part{first, count - first < each ? count - first : each};
}

/* True if bit `rank` is set in the set `ranks`. */
GPU_INLINE bool gpu_is_in(uint64_t ranks, uint32_t rank)
{
    return (ranks >> rank & 1) != 0;
}

/* Return the addresses on this GPU of a staged block in a rank's window, and of the results in that
 * window that the rank has combined for rank `to`. The results lie after all blocks. */
GPU_INLINE uint8_t *gpu_direct_window(const struct gpu_direct *d, uint32_t rank, uint32_t block)
{
    return d->run->peers[rank].window +
           (d->run->epoch & 1) * d->run->domain->layout.window_bytes +
           d->half * gpu_half_bytes(d) + block * d->piece_count * d->size;
}

GPU_INLINE uint8_t *gpu_direct_results(const struct gpu_direct *d, uint32_t rank, uint32_t to)
{
    const uint64_t each =
        gpu_is_scan(d->work) ? gpu_slice_count(d, gpu_in_piece(d, d->most)) : 0;

    return gpu_direct_window(d, rank, gpu_input_blocks(d)) + to * each * d->size;
}

/* Returns the address of the current piece of the data that `rank` gives to rank `to`. One of the
 * two must be this rank. */
GPU_INLINE const uint8_t *gpu_direct_input(const struct gpu_direct *d, uint32_t rank, uint32_t to)
{
    if (d->is_staged && gpu_is_in(d->unmapped_inputs, rank))
        return gpu_direct_window(d, rank, gpu_input_blocks(d) > 1 ? to : 0);
    if (rank == d->run->rank)
        return (const uint8_t *)((uint64_t)d->work->input +
                                 (gpu_given(d->work, rank, to).first + d->at) * d->size);
    return (const uint8_t *)(d->table->inputs[rank] + d->at * d->size);
}

/* Returns the address of the current piece in the part of `rank`'s output to which this rank
 * stores. */
GPU_INLINE uint8_t *gpu_direct_output(const struct gpu_direct *d, uint32_t rank)
{
    return (uint8_t *)(d->table->outputs[rank] + d->at * d->size);
}

/* Returns the address of the current piece in the part of this rank's output that comes from rank
 * `from`. */
GPU_INLINE uint8_t *gpu_direct_own_output(const struct gpu_direct *d, uint32_t from)
{
    return (uint8_t *)((uint64_t)d->work->output +
                       (gpu_taken(d->work, d->run->rank, from).first + d->at) * d->size);
}

#endif
