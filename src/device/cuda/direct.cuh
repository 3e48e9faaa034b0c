/* SPDX-License-Identifier: Apache-2.0
 * Collectives from the ranks' buffers into the ranks' buffers, for large calls: every byte is read once
 * by whoever is responsible for it and stored straight to where it belongs.
 *
 *   all-reduce, reduce   rank r combines slice r of all inputs, in rank order, for all outputs (root's)
 *   reduce-scatter       rank r combines block r
 *   broadcast            rank r copies slice r of root's input into all outputs
 *   all-gather, gather,  rank r copies what it gives into the outputs
 *   all-to-all
 *   scatter              rank r copies its block from root's input
 *
 * First everybody posts where its buffers are: to each peer where that peer's part begins, for only
 * the owner knows the displacements of a v-form. A last signal says that a rank is done with all
 * others' buffers; who has it from all is done.
 *
 * Some buffers only their owner can use. Then all that the ranks cannot do directly goes through
 * their windows, in pieces that fit. All ranks see the same posts and decide alike. Of each piece
 *
 *   - owners of such inputs copy them into their windows, and all signal ("staged"). Inputs that are to
 *     be multiplied are never read by others as they are, so they count among these; so do the buffers
 *     of an all-to-all in place, where what is stored would destroy what others are to read;
 *   - what is combined for an output that cannot be stored to is left in the window of who did it; what
 *     is only copied is fetched by the output's owner. All signal ("done");
 *   - owners of such outputs fetch what was combined for them.
 */
#ifndef TUTTI_DEVICE_CUDA_DIRECT_CUH
#define TUTTI_DEVICE_CUDA_DIRECT_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/core.cuh"
#include "device/cuda/reduce.cuh"

enum { GPU_SIGNAL_POSTED = 1, GPU_SIGNAL_STAGED = 2, GPU_SIGNAL_DONE = 3 };

/* What the threads of a block share. */
struct gpu_direct_table {
    /* By rank: addresses of what concerns this one, 0 where there is none; its largest block. */
    uint64_t inputs[TUTTI_GPU_RANKS], outputs[TUTTI_GPU_RANKS], most[TUTTI_GPU_RANKS];
    uint32_t is_input_unmapped[TUTTI_GPU_RANKS], is_output_unmapped[TUTTI_GPU_RANKS];
    /* What is to be combined or copied now. */
    tutti_gpu_reduction job;
    const void *srcs[TUTTI_GPU_RANKS];
    void *dsts[TUTTI_GPU_RANKS + 1];
};

/* A work as one of its threads sees it; the same in all threads. */
struct gpu_direct {
    struct gpu_run *run;
    const struct tutti_gpu_work *work;
    gpu_direct_table *table;
    uint64_t unmapped_inputs, unmapped_outputs; /* by bits: those ranks' */
    bool is_staged;       /* in pieces, with what is unmapped in windows */
    uint32_t size;        /* of an element */
    uint64_t most;        /* elements of the largest block of all ranks */
    uint64_t piece_count; /* elements of a block that go at once */
    uint64_t at;          /* elements of each block that are behind us */
};

/* ---- who has what ------------------------------------------------------------------------- */

GPU_INLINE bool gpu_has_input(const struct tutti_gpu_work *work, uint32_t rank)
{
    const bool is_of_root = work->collective == TUTTI_BROADCAST || work->collective == TUTTI_SCATTER;

    return work->collective != TUTTI_BARRIER && (!is_of_root || rank == (uint32_t)work->root);
}

GPU_INLINE bool gpu_has_output(const struct tutti_gpu_work *work, uint32_t rank)
{
    const bool is_of_root = work->collective == TUTTI_REDUCE || work->collective == TUTTI_GATHER;

    return work->collective != TUTTI_BARRIER && (!is_of_root || rank == (uint32_t)work->root);
}

/* Blocks of an input. */
GPU_INLINE uint32_t gpu_input_blocks(const struct gpu_direct *d)
{
    return d->work->collective == TUTTI_REDUCE_SCATTER || d->work->collective == TUTTI_ALLTOALL ||
                   d->work->collective == TUTTI_SCATTER
               ? d->run->nranks
               : 1;
}

GPU_INLINE uint64_t gpu_largest_block(const struct tutti_gpu_blocks *blocks, uint32_t nranks)
{
    uint64_t most = blocks->count;

    if (!blocks->counts)
        return most;
    most = 0;
    for (uint32_t i = 0; i < nranks; i++)
        most = blocks->counts[i] > most ? blocks->counts[i] : most;
    return most;
}

/* Of this rank's own buffers. */
GPU_INLINE uint64_t gpu_direct_most(const struct gpu_run *run)
{
    const struct tutti_gpu_work *work = run->work;
    const uint64_t in = gpu_largest_block(&work->in, run->nranks);
    const uint64_t out = gpu_largest_block(&work->out, run->nranks);
    const uint64_t given = gpu_has_input(work, run->rank) ? in : 0;
    const uint64_t taken = gpu_has_output(work, run->rank) ? out : 0;

    return given > taken ? given : taken;
}

GPU_INLINE bool gpu_is_swap(const struct tutti_gpu_work *work)
{
    return work->collective == TUTTI_ALLTOALL && work->input == work->output;
}

GPU_INLINE uint32_t gpu_posted_input_map(const struct gpu_run *run)
{
    const struct tutti_gpu_work *work = run->work;

    if (!gpu_has_input(work, run->rank))
        return 0;
    return work->is_premultiplied || gpu_is_swap(work) ? TUTTI_GPU_NOT_MAPPED : work->input_map;
}

GPU_INLINE uint32_t gpu_posted_output_map(const struct gpu_run *run)
{
    const struct tutti_gpu_work *work = run->work;

    if (!gpu_has_output(work, run->rank))
        return 0;
    return gpu_is_swap(work) ? TUTTI_GPU_NOT_MAPPED : work->output_map;
}

/* ---- posts --------------------------------------------------------------------------------- */

GPU_INLINE void gpu_direct_post(const struct gpu_run *run, uint32_t peer)
{
    const struct tutti_gpu_work *work = run->work;
    const uint32_t size = gpu_type_bytes(work->type);
    const uint64_t input = gpu_given(work, run->rank, peer).first * size;
    const uint64_t output = gpu_taken(work, run->rank, peer).first * size;

    gpu_store_relaxed(&gpu_post_to(run, peer)->most, gpu_direct_most(run));
    gpu_write_post(run, peer, work->input_offset + input, gpu_posted_input_map(run),
                   work->output_offset + output, gpu_posted_output_map(run), GPU_SIGNAL_POSTED);
}

/* The address of what a peer has at `offset` in that map; 0 if it cannot be used. */
GPU_INLINE uint64_t gpu_mapped(const struct gpu_run *run, uint32_t peer, uint32_t map,
                               uint64_t offset)
{
    return map < TUTTI_GPU_MAPS ? run->peers[peer].maps[map] + offset : 0;
}

GPU_INLINE bool gpu_direct_read_post(const struct gpu_run *run, gpu_direct_table *table,
                                     uint32_t peer)
{
    const struct tutti_gpu_post *post = gpu_post_from(run, peer);
    uint64_t maps;

    if (!gpu_wait_for(run, peer, &post->counter, gpu_signal_value(run, GPU_SIGNAL_POSTED)))
        return false;
    maps = gpu_load_relaxed((const uint64_t *)&post->input_map);
    table->is_input_unmapped[peer] = (uint32_t)maps >= TUTTI_GPU_MAPS;
    table->is_output_unmapped[peer] = maps >> 32 >= TUTTI_GPU_MAPS;
    table->inputs[peer] = gpu_mapped(run, peer, (uint32_t)maps, gpu_load_relaxed(&post->input));
    table->outputs[peer] =
        gpu_mapped(run, peer, (uint32_t)(maps >> 32), gpu_load_relaxed(&post->output));
    table->most[peer] = gpu_load_relaxed(&post->most);
    return true;
}

/* The same of this rank itself, to which all of its own is mapped, whatever others see. */
GPU_INLINE void gpu_direct_note_own(const struct gpu_run *run, gpu_direct_table *table)
{
    const struct tutti_gpu_work *work = run->work;
    const uint32_t rank = run->rank, size = gpu_type_bytes(work->type);

    table->is_input_unmapped[rank] = gpu_posted_input_map(run) >= TUTTI_GPU_MAPS;
    table->is_output_unmapped[rank] = gpu_posted_output_map(run) >= TUTTI_GPU_MAPS;
    table->inputs[rank] = (uint64_t)work->input + gpu_given(work, rank, rank).first * size;
    table->outputs[rank] = (uint64_t)work->output + gpu_taken(work, rank, rank).first * size;
    table->most[rank] = gpu_direct_most(run);
}

/* All threads of all blocks: everybody's buffers are known. */
GPU_INLINE bool gpu_direct_enter(struct gpu_run *run, gpu_direct_table *table)
{
    bool is_fine;

    for (uint32_t peer = gpu_thread(); peer < run->nranks && gpu_block() == 0;
         peer += gpu_threads())
        if (peer != run->rank)
            gpu_direct_post(run, peer);
    /* Nobody's address is used before it is known to be of the same call. */
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

/* Must windows help? */
GPU_INLINE bool gpu_direct_stages(const struct gpu_direct *d)
{
    switch (d->work->collective) {
    case TUTTI_ALLREDUCE: case TUTTI_REDUCE:
        return (d->unmapped_inputs | d->unmapped_outputs) != 0;
    case TUTTI_REDUCE_SCATTER: case TUTTI_BROADCAST: return d->unmapped_inputs != 0;
    default: return d->unmapped_inputs != 0 && d->unmapped_outputs != 0;
    }
}

/* How it goes, from what everybody has posted. */
GPU_INLINE void gpu_direct_plan(struct gpu_direct *d)
{
    const gpu_direct_table *table = d->table;
    const uint64_t line = TUTTI_GPU_LINE / d->size;

    for (uint32_t rank = 0; rank < d->run->nranks; rank++) {
        d->unmapped_inputs |= (uint64_t)(table->is_input_unmapped[rank] != 0) << rank;
        d->unmapped_outputs |= (uint64_t)(table->is_output_unmapped[rank] != 0) << rank;
        d->most = table->most[rank] > d->most ? table->most[rank] : d->most;
    }
    d->is_staged = gpu_direct_stages(d);
    d->piece_count = d->most;
    if (d->is_staged)
        d->piece_count = d->run->domain->layout.window_bytes / TUTTI_GPU_LINE /
                         (gpu_input_blocks(d) + 1) * line;
}

/* Of a block of so many elements, those in this piece. */
GPU_INLINE uint64_t gpu_in_piece(const struct gpu_direct *d, uint64_t count)
{
    const uint64_t left = count > d->at ? count - d->at : 0;

    return left < d->piece_count ? left : d->piece_count;
}

/* Of so many elements, those that a rank is responsible for: beginning at lines, if all does. */
GPU_INLINE gpu_part gpu_slice(const struct gpu_direct *d, uint64_t count, uint32_t rank)
{
    const uint64_t line = TUTTI_GPU_LINE / d->size, nranks = d->run->nranks;
    const uint64_t each = (count + nranks * line - 1) / (nranks * line) * line;
    const uint64_t first = rank * each < count ? rank * each : count;

    return gpu_part{first, count - first < each ? count - first : each};
}

GPU_INLINE bool gpu_is_in(uint64_t ranks, uint32_t rank)
{
    return (ranks >> rank & 1) != 0;
}

/* A rank's staged block, or, behind all of them, its results. */
GPU_INLINE uint8_t *gpu_direct_window(const struct gpu_direct *d, uint32_t rank, uint32_t block)
{
    return d->run->peers[rank].window +
           (d->run->epoch & 1) * d->run->domain->layout.window_bytes +
           block * d->piece_count * d->size;
}

GPU_INLINE uint8_t *gpu_direct_results(const struct gpu_direct *d, uint32_t rank)
{
    return gpu_direct_window(d, rank, gpu_input_blocks(d));
}

/* This piece of what that rank has for `to`, which is this rank, or that rank is. */
GPU_INLINE const uint8_t *gpu_direct_input(const struct gpu_direct *d, uint32_t rank, uint32_t to)
{
    if (d->is_staged && gpu_is_in(d->unmapped_inputs, rank))
        return gpu_direct_window(d, rank, gpu_input_blocks(d) > 1 ? to : 0);
    if (rank == d->run->rank)
        return (const uint8_t *)((uint64_t)d->work->input +
                                 (gpu_given(d->work, rank, to).first + d->at) * d->size);
    return (const uint8_t *)(d->table->inputs[rank] + d->at * d->size);
}

/* Of that rank's output, what goes there from this rank. */
GPU_INLINE uint8_t *gpu_direct_output(const struct gpu_direct *d, uint32_t rank)
{
    return (uint8_t *)(d->table->outputs[rank] + d->at * d->size);
}

/* Of this rank's output, what comes there from that rank. */
GPU_INLINE uint8_t *gpu_direct_own_output(const struct gpu_direct *d, uint32_t from)
{
    return (uint8_t *)((uint64_t)d->work->output +
                       (gpu_taken(d->work, d->run->rank, from).first + d->at) * d->size);
}

/* ---- copying ------------------------------------------------------------------------------- */

/* Into several places, reading once where all are aligned alike. */
GPU_FUNCTION void gpu_copy_to_all(void *const *dsts, uint32_t ndsts, const void *src,
                                  uint64_t size_bytes, gpu_crew crew)
{
    const uint64_t stride = (uint64_t)crew.count * GPU_WORD_BYTES;
    const uint32_t at_once = 4;
    uint64_t at = (uint64_t)crew.index * GPU_WORD_BYTES, whole = size_bytes;
    uintptr_t addresses = (uintptr_t)src;

    for (uint32_t k = 0; k < ndsts; k++)
        addresses |= (uintptr_t)dsts[k];
    whole = addresses % GPU_WORD_BYTES == 0 && ndsts > 1 ? whole / GPU_WORD_BYTES * GPU_WORD_BYTES : 0;
    GPU_NO_UNROLL
    for (; at < whole; at += at_once * stride) {
        gpu_word words[at_once];

        GPU_UNROLL
        for (uint32_t i = 0; i < at_once; i++)
            if (at + i * stride < whole)
                words[i] = gpu_load_word_once((const uint8_t *)src + at + i * stride);
        GPU_NO_UNROLL
        for (uint32_t k = 0; k < ndsts; k++)
            GPU_UNROLL
            for (uint32_t i = 0; i < at_once; i++)
                if (at + i * stride < whole)
                    gpu_store_word((uint8_t *)dsts[k] + at + i * stride, words[i]);
    }
    GPU_NO_UNROLL
    for (uint32_t k = 0; k < ndsts; k++)
        gpu_copy((uint8_t *)dsts[k] + whole, (const uint8_t *)src + whole, size_bytes - whole, crew);
}

GPU_INLINE void gpu_direct_copy(const struct gpu_direct *d, void *dst, const void *src,
                                uint64_t count)
{
    gpu_copy(dst, src, count * d->size, gpu_crew_of_grid());
}

/* Part of this rank's piece, or of root's, into all outputs that can be stored to. */
GPU_INLINE void gpu_direct_copy_to_all(const struct gpu_direct *d, const uint8_t *src,
                                       gpu_part part)
{
    gpu_direct_table *table = d->table;
    uint32_t ndsts = 0;

    gpu_barrier();
    if (gpu_thread() == 0) {
        for (uint32_t i = 0; i < d->run->nranks; i++) {
            const uint32_t rank = (d->run->rank + i) % d->run->nranks;

            if (gpu_has_output(d->work, rank) && !gpu_is_in(d->unmapped_outputs, rank) &&
                gpu_direct_output(d, rank) != src)
                table->dsts[ndsts++] = gpu_direct_output(d, rank) + part.first * d->size;
        }
        table->job.ndsts = ndsts;
    }
    gpu_barrier();
    gpu_copy_to_all(table->dsts, table->job.ndsts, src + part.first * d->size, part.count * d->size,
                    gpu_crew_of_grid());
}

/* What other ranks cannot store into this rank's output, and its own part. */
GPU_INLINE void gpu_direct_fetch(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;

    for (uint32_t i = 0; i < d->run->nranks; i++) {
        const uint32_t from = (rank + i) % d->run->nranks;

        gpu_direct_copy(d, gpu_direct_own_output(d, from), gpu_direct_input(d, from, rank),
                        gpu_in_piece(d, gpu_taken(d->work, rank, from).count));
    }
}

GPU_INLINE void gpu_direct_broadcast(const struct gpu_direct *d)
{
    const uint32_t root = (uint32_t)d->work->root;
    const uint64_t count = gpu_in_piece(d, d->most);
    const uint8_t *src = gpu_direct_input(d, root, d->run->rank);

    gpu_direct_copy_to_all(d, src, gpu_slice(d, count, d->run->rank));
    if (gpu_is_in(d->unmapped_outputs, d->run->rank))
        gpu_direct_copy(d, gpu_direct_output(d, d->run->rank), src, count);
}

/* All-gather and gather. */
GPU_INLINE void gpu_direct_gather(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;
    const gpu_part part = {0, gpu_in_piece(d, gpu_given(d->work, rank, (uint32_t)d->work->root).count)};

    gpu_direct_copy_to_all(d, gpu_direct_input(d, rank, rank), part);
    if (gpu_has_output(d->work, rank) && gpu_is_in(d->unmapped_outputs, rank))
        gpu_direct_fetch(d);
}

/* All-to-all, and what of a scatter others cannot fetch. */
GPU_INLINE void gpu_direct_deal(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;

    for (uint32_t i = 0; i < d->run->nranks; i++) {
        const uint32_t to = (rank + 1 + i) % d->run->nranks;

        if (!gpu_is_in(d->unmapped_outputs, to))
            gpu_direct_copy(d, gpu_direct_output(d, to), gpu_direct_input(d, rank, to),
                            gpu_in_piece(d, gpu_given(d->work, rank, to).count));
    }
}

GPU_INLINE void gpu_direct_exchange(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank, root = (uint32_t)d->work->root;
    const bool scatters = d->work->collective == TUTTI_SCATTER;
    const bool can_fetch = scatters && !gpu_is_in(d->unmapped_inputs, root);

    if (!can_fetch && (!scatters || rank == root))
        gpu_direct_deal(d);
    if (can_fetch || gpu_is_in(d->unmapped_outputs, rank))
        gpu_direct_fetch(d);
}

/* ---- combining ------------------------------------------------------------------------------ */

/* Elements [part.first, part.first + part.count) of the piece, of all ranks, into `outputs`, by bits,
 * and into the results' place if others' outputs cannot be stored to. By one thread. */
GPU_INLINE void gpu_direct_set_job(const struct gpu_direct *d, gpu_part part, uint64_t outputs)
{
    gpu_direct_table *table = d->table;
    const uint32_t rank = d->run->rank, nranks = d->run->nranks;
    const uint64_t left = outputs & d->unmapped_outputs & ~(UINT64_C(1) << rank);
    uint32_t ndsts = 0;

    for (uint32_t k = 0; k < nranks; k++) {
        table->srcs[k] = gpu_direct_input(d, k, rank) + part.first * d->size;
        if (gpu_is_in(outputs & ~left, k))
            table->dsts[ndsts++] = gpu_direct_output(d, k) + part.first * d->size;
    }
    if (left != 0)
        table->dsts[ndsts++] = gpu_direct_results(d, rank);
    table->job.type = d->work->type;
    table->job.op = d->work->op;
    table->job.nsrcs = nranks;
    table->job.ndsts = ndsts;
    table->job.srcs = table->srcs;
    table->job.dsts = table->dsts;
    table->job.count = part.count;
    table->job.scale = gpu_scale_of(d->work, nranks);
    table->job.premultiplied = TUTTI_GPU_NO_SOURCE;
}

/* Ranks whose outputs a rank's slice goes to. */
GPU_INLINE uint64_t gpu_direct_sinks(const struct gpu_direct *d)
{
    const uint64_t all = UINT64_MAX >> (64 - d->run->nranks);

    return d->work->collective == TUTTI_ALLREDUCE ? all : UINT64_C(1) << d->work->root;
}

GPU_INLINE void gpu_direct_reduce(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;

    gpu_barrier();
    if (gpu_thread() == 0) {
        if (d->work->collective == TUTTI_REDUCE_SCATTER) {
            const gpu_part part = {0, gpu_in_piece(d, gpu_given(d->work, rank, rank).count)};

            gpu_direct_set_job(d, part, UINT64_C(1) << rank);
        } else {
            const gpu_part part = gpu_slice(d, gpu_in_piece(d, d->most), rank);

            gpu_direct_set_job(d, part, gpu_direct_sinks(d));
        }
    }
    gpu_barrier();
    gpu_reduce(&d->table->job, gpu_crew_of_grid());
}

/* What others have combined for this rank. */
GPU_INLINE void gpu_direct_fetch_results(const struct gpu_direct *d)
{
    const uint64_t count = gpu_in_piece(d, d->most);

    for (uint32_t i = 1; i < d->run->nranks; i++) {
        const uint32_t from = (d->run->rank + i) % d->run->nranks;
        const gpu_part slice = gpu_slice(d, count, from);

        gpu_direct_copy(d, gpu_direct_output(d, d->run->rank) + slice.first * d->size,
                        gpu_direct_results(d, from), slice.count);
    }
}

/* ---- a work --------------------------------------------------------------------------------- */

/* This rank's input into its window. */
GPU_INLINE void gpu_direct_stage(const struct gpu_direct *d)
{
    const struct tutti_gpu_work *work = d->work;
    const tutti_scale none = {1.0, 1};

    for (uint32_t block = 0; block < gpu_input_blocks(d); block++) {
        const bool has_places = gpu_input_blocks(d) > 1 || work->in.counts;
        const gpu_part part = has_places ? gpu_block_part(&work->in, block)
                                         : gpu_part{0, work->in.count};
        const void *src = (const uint8_t *)work->input + (part.first + d->at) * d->size;
        void *dst = gpu_direct_window(d, d->run->rank, block);
        const tutti_gpu_reduction job = {work->type, TUTTI_SUM, 1, 1, &src, &dst,
                                         gpu_in_piece(d, part.count), none,
                                         work->is_premultiplied ? 0 : TUTTI_GPU_NO_SOURCE, 0,
                                         work->is_premultiplied ? gpu_scalar_of(work) : 0};

        gpu_reduce(&job, gpu_crew_of_grid());
    }
}

GPU_INLINE void gpu_direct_move(const struct gpu_direct *d)
{
    switch (d->work->collective) {
    case TUTTI_ALLREDUCE: case TUTTI_REDUCE: case TUTTI_REDUCE_SCATTER: gpu_direct_reduce(d); break;
    case TUTTI_BROADCAST: gpu_direct_broadcast(d); break;
    case TUTTI_ALLGATHER: case TUTTI_GATHER: gpu_direct_gather(d); break;
    case TUTTI_ALLTOALL: case TUTTI_SCATTER: gpu_direct_exchange(d); break;
    default: break;
    }
}

/* Does this rank fetch results? Does any? */
GPU_INLINE uint64_t gpu_direct_fetchers(const struct gpu_direct *d)
{
    const bool is_sliced =
        d->work->collective == TUTTI_ALLREDUCE || d->work->collective == TUTTI_REDUCE;

    return is_sliced ? gpu_direct_sinks(d) & d->unmapped_outputs : 0;
}

GPU_INLINE bool gpu_direct_run_piece(const struct gpu_direct *d, uint32_t signals)
{
    const uint32_t rank = d->run->rank;

    if (d->is_staged) {
        if (gpu_is_in(d->unmapped_inputs, rank))
            gpu_direct_stage(d);
        gpu_signal(d->run, signals + GPU_SIGNAL_STAGED);
        if (!gpu_await(d->run, signals + GPU_SIGNAL_STAGED))
            return false;
    }
    gpu_direct_move(d);
    gpu_signal(d->run, signals + GPU_SIGNAL_DONE);
    if (!gpu_await(d->run, signals + GPU_SIGNAL_DONE))
        return false;
    if (gpu_is_in(gpu_direct_fetchers(d), rank))
        gpu_direct_fetch_results(d);
    return true;
}

/* All threads of the grid. */
GPU_INLINE bool gpu_direct_run(struct gpu_run *run)
{
    GPU_SHARED(gpu_direct_table, table);
    struct gpu_direct d = {run, run->work, &table, 0, 0, false, gpu_type_bytes(run->work->type), 0,
                           0, 0};
    const uint32_t most_signals = (1u << TUTTI_GPU_SIGNAL_BITS) - 8;
    uint32_t signals = 0;

    if (!gpu_direct_enter(run, &table))
        return false;
    gpu_direct_plan(&d);
    if (d.most > 0 && d.piece_count < d.most / (most_signals / 2) + 1) {
        gpu_fail(*run, TUTTI_GPU_BROKEN, run->rank, NULL);
        return false;
    }
    do {
        if (!gpu_direct_run_piece(&d, signals))
            return false;
        d.at += d.piece_count;
        signals += 2;
    } while (d.at < d.most);
    /* Results may be overwritten when all have fetched theirs. */
    if (gpu_direct_fetchers(&d) == 0)
        return true;
    gpu_signal(run, signals + GPU_SIGNAL_STAGED);
    return gpu_await(run, signals + GPU_SIGNAL_STAGED);
}

#endif
