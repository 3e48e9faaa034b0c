/* SPDX-License-Identifier: Apache-2.0
 * Runs large collectives directly between the ranks' own buffers. One rank is responsible for each
 * byte. It reads the byte once and stores it directly to the byte's destinations:
 *
 *   all-reduce, reduce   rank r combines slice r of all inputs, in rank order, for all outputs
 *   scan                 the same, but each output gets what has been combined up to its rank
 *   reduce-scatter       rank r combines block r
 *   broadcast            rank r copies slice r of root's input into all outputs but root's own,
 *                        which root copies by itself
 *   all-gather, gather,  rank r copies what it gives into the outputs
 *   all-to-all
 *   scatter              rank r copies its block from root's input
 *
 * First each rank posts the addresses of its buffers (posted.cuh). It tells each peer where that
 * peer's part begins, because only the owner knows the displacements of a v-form. The last signal
 * of a rank tells that it no longer uses the buffers of others. A rank that has this signal from
 * all ranks is done.
 *
 * Some buffers are unmapped: only their owner can use them. Then everything that the ranks cannot
 * do directly goes through their windows, in pieces that fit. All ranks see the same posts, so they
 * decide alike. A piece takes three steps:
 *
 *   stage   Owners of unmapped inputs copy them into their windows.
 *   move    All ranks combine or copy. A rank leaves what it combines for an unmapped output in its
 *           own window. If data are only copied, the owner of an unmapped output fetches them.
 *   fetch   Owners of unmapped outputs fetch what was combined for them.
 *
 * The steps of successive pieces overlap. In each phase the ranks stage one piece, move the piece
 * before it, and fetch the one before that. Then each rank signals that its phase is done, and
 * waits for that signal of all others. Successive pieces alternate between the two halves of a
 * window. Data are staged in one phase, moved in the next, and their results are fetched in the one
 * after that. Only then does another piece overwrite them. Staging uses local memory, and moving
 * uses the links. So half of the blocks stage first, and half move first, to keep both in use.
 *
 * Two more kinds of buffers are treated as unmapped. One is an input that must be multiplied before
 * others may read it. The other is the buffer of an in-place all-to-all, where a direct store would
 * destroy data that other ranks have yet to read.
 */
#ifndef TUTTI_DEVICE_CUDA_DIRECT_CUH
#define TUTTI_DEVICE_CUDA_DIRECT_CUH

#include "device/cuda/posted.cuh"
#include "device/cuda/reduce.cuh"

/* ---- copying ------------------------------------------------------------------------------- */

/* All threads of the crew: copies to several destinations. If all buffers are aligned to words, the
 * source is read only once. */
GPU_FUNCTION void gpu_copy_to_all(void *const *dsts, uint32_t ndsts, const void *src,
                                  uint64_t size_bytes, gpu_crew crew)
{
    const uint64_t stride = (uint64_t)crew.count * GPU_WORD_BYTES;
    const uint32_t at_once = 4;
    uint64_t at = (uint64_t)crew.index * GPU_WORD_BYTES, whole = size_bytes;
    uintptr_t addresses = (uintptr_t)src;

    for (uint32_t k = 0; k < ndsts; k++)
        addresses |= (uintptr_t)dsts[k];
    whole -= whole % GPU_WORD_BYTES;
    if (addresses % GPU_WORD_BYTES != 0 || ndsts == 1)
        whole = 0;
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
        gpu_copy((uint8_t *)dsts[k] + whole, (const uint8_t *)src + whole, size_bytes - whole,
                 crew);
}

/* All threads of the grid: copies `count` elements. */
GPU_INLINE void gpu_direct_copy(const struct gpu_direct *d, void *dst, const void *src,
                                uint64_t count)
{
    gpu_copy(dst, src, count * d->size, gpu_crew_of_grid());
}

/* All threads of the grid: copies `part` of the piece at `src` into all mapped outputs of `ranks`,
 * which has a bit for each rank. `src` is the input of this rank or of the root. Without a mapped
 * output nothing is read. */
GPU_INLINE void gpu_direct_copy_to_all(const struct gpu_direct *d, uint64_t ranks,
                                       const uint8_t *src, gpu_part part)
{
    gpu_direct_table *table = d->table;
    uint32_t ndsts = 0;

    gpu_barrier();
    if (gpu_thread() == 0) {
        for (uint32_t i = 0; i < d->run->nranks; i++) {
            const uint32_t rank = (d->run->rank + i) % d->run->nranks;

            if (gpu_is_in(ranks & ~d->unmapped_outputs, rank) && gpu_has_output(d->work, rank) &&
                gpu_direct_output(d, rank) != src)
                table->dsts[ndsts++] = gpu_direct_output(d, rank) + part.first * d->size;
        }
        table->job.ndsts = ndsts;
    }
    gpu_barrier();
    if (table->job.ndsts == 0)
        return;
    gpu_copy_to_all(table->dsts, table->job.ndsts, src + part.first * d->size, part.count * d->size,
                    gpu_crew_of_grid());
}

/* Copies the parts that all ranks, including this rank, give to this rank into its output. */
GPU_INLINE void gpu_direct_fetch(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;

    for (uint32_t i = 0; i < d->run->nranks; i++) {
        const uint32_t from = (rank + i) % d->run->nranks;

        gpu_direct_copy(d, gpu_direct_own_output(d, from), gpu_direct_input(d, from, rank),
                        gpu_in_piece(d, gpu_taken(d->work, rank, from).count));
    }
}

/* Runs a piece of a broadcast. The root copies its input to its own output, so that this data
 * crosses no link. */
GPU_INLINE void gpu_direct_broadcast(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank, root = (uint32_t)d->work->root;
    const uint64_t count = gpu_in_piece(d, d->most);
    const uint8_t *src = gpu_direct_input(d, root, rank);
    uint8_t *dst = gpu_direct_output(d, rank);

    gpu_direct_copy_to_all(d, ~(UINT64_C(1) << root), src, gpu_slice(d, count, rank));
    if (gpu_is_in(d->unmapped_outputs, rank) || (rank == root && dst != src))
        gpu_direct_copy(d, dst, src, count);
}

/* Runs a piece of an all-gather or a gather. */
GPU_INLINE void gpu_direct_gather(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;
    const uint64_t count = gpu_given(d->work, rank, (uint32_t)d->work->root).count;
    const gpu_part part = {0, gpu_in_piece(d, count)};

    gpu_direct_copy_to_all(d, UINT64_MAX, gpu_direct_input(d, rank, rank), part);
    if (gpu_has_output(d->work, rank) && gpu_is_in(d->unmapped_outputs, rank))
        gpu_direct_fetch(d);
}

/* Stores this rank's blocks into the mapped outputs of all ranks. An all-to-all uses this. The root
 * of a scatter also uses this if other ranks cannot fetch from its input. */
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

/* Runs a piece of an all-to-all or a scatter. */
GPU_INLINE void gpu_direct_exchange(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank, root = (uint32_t)d->work->root;
    const bool scatters = tutti_collective_sources(d->work->collective) == TUTTI_FROM_ROOT;
    const bool can_fetch = scatters && !gpu_is_in(d->unmapped_inputs, root);

    if (!can_fetch && (!scatters || rank == root))
        gpu_direct_deal(d);
    if (can_fetch || gpu_is_in(d->unmapped_outputs, rank))
        gpu_direct_fetch(d);
}

/* ---- combining ------------------------------------------------------------------------------ */

/* One thread: describes the reduction of elements [part.first, part.first + part.count) of the
 * piece over all ranks. `outputs` has a bit for each rank that needs the result. If another rank's
 * output is unmapped, the result also goes to the place for results in this rank's window. */
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
        table->dsts[ndsts++] = gpu_direct_results(d, rank, rank);
    table->job.type = d->work->type;
    table->job.op = d->work->op;
    table->job.nsrcs = nranks;
    table->job.ndsts = ndsts;
    table->job.srcs = table->srcs;
    table->job.dsts = table->dsts;
    table->job.count = part.count;
    table->job.scale = gpu_scale_of(d->work->is_average, nranks);
    table->job.premultiplied = TUTTI_KERNEL_NO_SOURCE;
    /* A single source would be copied as it is, so a single rank combines its input with itself. */
    if (nranks == 1 && gpu_operation_of(d->work->type, d->work->op).op >= TUTTI_LAND) {
        table->srcs[1] = table->srcs[0];
        table->job.nsrcs = 2;
        table->job.op = TUTTI_LOR;
    }
}

/* Returns the ranks, as bits, whose outputs receive each slice of a reduction. */
GPU_INLINE uint64_t gpu_direct_sinks(const struct gpu_direct *d)
{
    const uint64_t all = UINT64_MAX >> (64 - d->run->nranks);

    return tutti_collective_has_root(d->work->collective) ? UINT64_C(1) << d->work->root : all;
}

/* Runs a piece of a reduction other than a scan. */
GPU_INLINE void gpu_direct_reduce(const struct gpu_direct *d)
{
    const uint32_t rank = d->run->rank;

    gpu_barrier();
    if (gpu_thread() == 0) {
        if (gpu_is_sliced(d->work)) {
            const gpu_part part = gpu_slice(d, gpu_in_piece(d, d->most), rank);

            gpu_direct_set_job(d, part, gpu_direct_sinks(d));
        } else {
            const gpu_part part = {0, gpu_in_piece(d, gpu_given(d->work, rank, rank).count)};

            gpu_direct_set_job(d, part, UINT64_C(1) << rank);
        }
    }
    gpu_barrier();
    gpu_reduce(&d->table->job, gpu_crew_of_grid());
}

/* One thread: describes the scan of elements [part.first, part.first + part.count) of the piece. A
 * result for another rank's unmapped output goes to this rank's window. */
GPU_INLINE void gpu_direct_set_scan(const struct gpu_direct *d, gpu_part part)
{
    gpu_direct_table *table = d->table;
    const uint32_t rank = d->run->rank, nranks = d->run->nranks;

    for (uint32_t k = 0; k < nranks; k++) {
        const bool is_left = k != rank && gpu_is_in(d->unmapped_outputs, k);

        table->srcs[k] = gpu_direct_input(d, k, rank) + part.first * d->size;
        table->dsts[k] = NULL;
        if (gpu_has_output(d->work, k))
            table->dsts[k] = is_left ? gpu_direct_results(d, rank, k)
                                     : gpu_direct_output(d, k) + part.first * d->size;
    }
    table->job = gpu_plain_job(d->work->type, d->work->op, part.count, table->srcs, nranks,
                               table->dsts, nranks);
}

/* Runs a piece of a scan. */
GPU_INLINE void gpu_direct_scan(const struct gpu_direct *d)
{
    const bool is_exclusive =
        tutti_collective_sources(d->work->collective) == TUTTI_FROM_BELOW;

    gpu_barrier();
    if (gpu_thread() == 0)
        gpu_direct_set_scan(d, gpu_slice(d, gpu_in_piece(d, d->most), d->run->rank));
    gpu_barrier();
    gpu_scan(&d->table->job, is_exclusive, gpu_crew_of_grid());
}

/* Copies the results that others have combined for this rank from their windows into its output. */
GPU_INLINE void gpu_direct_fetch_results(const struct gpu_direct *d)
{
    const uint64_t count = gpu_in_piece(d, d->most);

    for (uint32_t i = 1; i < d->run->nranks; i++) {
        const uint32_t from = (d->run->rank + i) % d->run->nranks;
        const gpu_part slice = gpu_slice(d, count, from);

        gpu_direct_copy(d, gpu_direct_output(d, d->run->rank) + slice.first * d->size,
                        gpu_direct_results(d, from, d->run->rank), slice.count);
    }
}

/* ---- a work --------------------------------------------------------------------------------- */

/* Copies the piece of this rank's input into its window, multiplied if need be. */
GPU_INLINE void gpu_direct_stage(const struct gpu_direct *d)
{
    const struct tutti_kernel_work *work = d->work;
    const tutti_scale none = {1.0, 1};

    for (uint32_t block = 0; block < gpu_input_blocks(d); block++) {
        const bool has_places = gpu_input_blocks(d) > 1 || work->in.counts;
        const gpu_part part = has_places ? gpu_block_part(&work->in, block)
                                         : gpu_part{0, work->in.count};
        const void *src = (const uint8_t *)work->input + (part.first + d->at) * d->size;
        void *dst = gpu_direct_window(d, d->run->rank, block);
        const tutti_kernel_reduction job = {work->type, TUTTI_SUM, 1, 1, &src, &dst,
                                            gpu_in_piece(d, part.count), none,
                                            work->is_premultiplied ? 0 : TUTTI_KERNEL_NO_SOURCE, 0,
                                            work->is_premultiplied ? gpu_scalar_of(work) : 0};

        gpu_reduce(&job, gpu_crew_of_grid());
    }
}

/* Combines or copies a piece. */
GPU_INLINE void gpu_direct_move(const struct gpu_direct *d)
{
    if (gpu_is_scan(d->work))
        gpu_direct_scan(d);
    else if (tutti_collective_reduces(d->work->collective))
        gpu_direct_reduce(d);
    switch (d->work->collective) {
    case TUTTI_BROADCAST: gpu_direct_broadcast(d); break;
    case TUTTI_ALLGATHER: case TUTTI_GATHER: gpu_direct_gather(d); break;
    case TUTTI_ALLTOALL: case TUTTI_SCATTER: gpu_direct_exchange(d); break;
    default: break;
    }
}

/* Returns the ranks, as bits, that fetch combined results because their outputs are unmapped. */
GPU_INLINE uint64_t gpu_direct_fetchers(const struct gpu_direct *d)
{
    const bool has_results =
        gpu_is_sliced(d->work) && tutti_collective_reduces(d->work->collective);

    return has_results ? gpu_direct_sinks(d) & d->unmapped_outputs : 0;
}

/* Ends a phase: tells all ranks that this rank has done it, and waits for them. False, to all
 * threads of a block, if the launch must end. */
GPU_INLINE bool gpu_direct_end_phase(const struct gpu_direct *d, uint32_t phase)
{
    gpu_signal(d->run, GPU_SIGNAL_DONE + phase);
    return gpu_await(d->run, GPU_SIGNAL_DONE + phase);
}

/* Runs a work through windows. False, to all threads of a block, if the launch must end. */
GPU_INLINE bool gpu_direct_run_staged(struct gpu_direct *d)
{
    const bool stages = gpu_is_in(d->unmapped_inputs, d->run->rank);
    const uint64_t fetchers = gpu_direct_fetchers(d);
    const bool fetches = gpu_is_in(fetchers, d->run->rank);
    const uint64_t nphases = d->npieces + (fetchers != 0 ? 2 : 1);

    for (uint64_t phase = 0; phase < nphases; phase++) {
        for (uint32_t turn = 0; turn < 2; turn++) {
            const bool is_turn_to_stage = (gpu_block() + turn) % 2 == 0;

            if (is_turn_to_stage && stages && phase < d->npieces) {
                gpu_direct_seek(d, phase);
                gpu_direct_stage(d);
            }
            if (!is_turn_to_stage && phase >= 1 && phase <= d->npieces) {
                gpu_direct_seek(d, phase - 1);
                gpu_direct_move(d);
            }
            if (!is_turn_to_stage && fetches && phase >= 2) {
                gpu_direct_seek(d, phase - 2);
                gpu_direct_fetch_results(d);
            }
        }
        if (!gpu_direct_end_phase(d, (uint32_t)phase))
            return false;
    }
    return true;
}

/* All threads of the grid: runs the current work. False, to all threads of a block, if the launch
 * must end. */
GPU_INLINE bool gpu_direct_run(struct gpu_run *run)
{
    GPU_SHARED(gpu_direct_table, table);
    struct gpu_direct d = {run, run->work, &table, 0, 0, false, gpu_type_bytes(run->work->type), 0,
                           0, 0, 0, 0};
    /* Each phase takes a signal. A few are left for those before and after the pieces. */
    const uint32_t most_pieces = (1u << TUTTI_KERNEL_SIGNAL_BITS) - 8;

    if (!gpu_direct_enter(run, &table))
        return false;
    gpu_direct_plan(&d);
    if (d.npieces > most_pieces) {
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, run->rank, NULL);
        return false;
    }
    if (d.is_staged)
        return gpu_direct_run_staged(&d);
    gpu_direct_move(&d);
    return gpu_direct_end_phase(&d, 0);
}

#endif
