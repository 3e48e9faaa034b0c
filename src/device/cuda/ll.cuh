/* SPDX-License-Identifier: Apache-2.0
 * Runs all collectives with lines that carry flags. Small calls use this method. Each rank pushes
 * the data that its peers need into their mailboxes. Then it combines or copies the data that
 * arrive in its own mailboxes. The flags show which data have arrived, so there are no fences or
 * signals. There is no barrier at the end, because the next epoch uses other memory (core.cuh).
 *
 * Every rank that needs the result of a reduction computes the result itself. It combines the
 * inputs of its sources in rank order, and it reads its own input from its own memory. All ranks
 * use the same order, so they get the same bits.
 *
 * The data from one rank to another are divided into units, which lie in the mailbox in order. Each
 * block pushes and combines the same share of the units, with a barrier of the block in between. So
 * if the output is the input, each unit has been pushed before it is overwritten. Ranks may have
 * grids of different sizes.
 */
#ifndef TUTTI_DEVICE_CUDA_LL_CUH
#define TUTTI_DEVICE_CUDA_LL_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/core.cuh"

enum { GPU_LL_BATCH = 4 }; /* sources that a thread waits for at the same time */

/* ---- two kinds of lines -------------------------------------------------------------------
 * Each kind has
 *
 *   lanes            threads that share a unit
 *   unit_bytes       data bytes in a unit
 *   area             returns this epoch's lines in a mailbox
 *   capacity_bytes   returns the most data bytes of a transfer
 *   at               returns where thread `lane` of a unit stores or loads
 *   room             returns the data bytes of a unit that thread `lane` handles
 *   store            stores the thread's part of a unit; `bytes` of it are data
 *   fetch            loads the lines of the thread's part as they are
 *   open             returns true if fetched lines have their flags, and gives their data
 *   all, any         vote among the threads that must stay together
 */

/* An LL line has 16 bytes, with a flag after each 4 bytes of data. A unit is 16 bytes of data in
 * two such lines. The two lines lie GPU_WARP lines apart, so that each access of a warp is
 * contiguous. The second line is used only if there are data for it. */
struct gpu_ll_lines {
    enum { lanes = 1, unit_bytes = 16 };
    struct fetched {
        gpu_word low, high;
    };

    GPU_INLINE uint8_t *area(const struct gpu_run *run, uint8_t *mailbox)
    {
        const struct tutti_kernel_layout *layout = &run->domain->layout;

        return mailbox + layout->ll_at + (run->epoch & 1) * layout->ll_bytes;
    }
    GPU_INLINE uint64_t capacity_bytes(const struct tutti_kernel_layout *layout)
    {
        return TUTTI_KERNEL_LL_CAPACITY(layout);
    }
    GPU_INLINE uint8_t *at(uint8_t *area, uint32_t unit, uint32_t)
    {
        return area + ((uint64_t)(unit / GPU_WARP) * 2 * GPU_WARP + unit % GPU_WARP) * 16;
    }
    GPU_INLINE uint32_t room(uint32_t) { return 16; }
    GPU_INLINE void store(uint8_t *at, gpu_word word, uint32_t bytes, bool is_there,
                          const struct gpu_run *run)
    {
        if (!is_there)
            return;
        gpu_store_flagged(at, gpu_word{word.x, run->flag, word.y, run->flag});
        if (bytes > 8)
            gpu_store_flagged(at + GPU_WARP * 16, gpu_word{word.z, run->flag, word.w, run->flag});
    }
    GPU_INLINE fetched fetch(const uint8_t *at, uint32_t bytes, bool is_there)
    {
        fetched lines = {{0, 0, 0, 0}, {0, 0, 0, 0}};

        if (is_there)
            lines.low = gpu_load_flagged(at);
        if (is_there && bytes > 8)
            lines.high = gpu_load_flagged(at + GPU_WARP * 16);
        return lines;
    }
    GPU_INLINE bool open(fetched lines, uint32_t bytes, const struct gpu_run *run,
                         gpu_word *ret_word)
    {
        *ret_word = gpu_word{lines.low.x, lines.low.z, lines.high.x, lines.high.z};
        return lines.low.y == run->flag && lines.low.w == run->flag &&
               (bytes <= 8 || (lines.high.y == run->flag && lines.high.w == run->flag));
    }
    /* These two functions vote among the threads that must stay together. For LL lines each thread
     * is independent, so its own value is the result. */
    GPU_INLINE bool all(bool is_true) { return is_true; }
    GPU_INLINE bool any(bool is_true) { return is_true; }
};

/* An LL128 line has 128 bytes, of which the last 8 are the epoch. A unit is one line. Each of 8
 * threads accesses 16 bytes of the line. All threads of a warp must stay together. */
struct gpu_ll128_lines {
    enum { lanes = 8, unit_bytes = 120 };
    typedef gpu_word fetched;

    GPU_INLINE uint8_t *area(const struct gpu_run *run, uint8_t *mailbox)
    {
        const struct tutti_kernel_layout *layout = &run->domain->layout;

        return mailbox + layout->ll128_at + (run->epoch & 1) * layout->ll128_bytes;
    }
    GPU_INLINE uint64_t capacity_bytes(const struct tutti_kernel_layout *layout)
    {
        return TUTTI_KERNEL_LL128_CAPACITY(layout);
    }
    GPU_INLINE uint8_t *at(uint8_t *area, uint32_t unit, uint32_t lane)
    {
        return area + (uint64_t)unit * TUTTI_KERNEL_LINE + lane * 16;
    }
    GPU_INLINE uint32_t room(uint32_t lane) { return lane == 7 ? 8 : 16; }
    GPU_INLINE void store(uint8_t *at, gpu_word word, uint32_t, bool is_there,
                          const struct gpu_run *run)
    {
        if (gpu_thread() % 8 == 7)
            word = gpu_word{word.x, word.y, (uint32_t)run->epoch, (uint32_t)(run->epoch >> 32)};
        gpu_store_line(at, word, is_there);
    }
    GPU_INLINE fetched fetch(const uint8_t *at, uint32_t, bool is_there)
    {
        return gpu_load_line(at, is_there);
    }
    GPU_INLINE bool open(fetched word, uint32_t, const struct gpu_run *run, gpu_word *ret_word)
    {
        *ret_word = word;
        return gpu_thread() % 8 != 7 || gpu_half(word, 1) == run->epoch;
    }
    GPU_INLINE bool all(bool is_true) { return gpu_warp_all(is_true); }
    GPU_INLINE bool any(bool is_true) { return gpu_warp_any(is_true); }
};

/* ---- units --------------------------------------------------------------------------------- */

/* The units of each transfer that this block pushes and combines: [first, first + count). */
struct gpu_ll_share {
    uint32_t first, count;
};

/* Returns this block's share of transfers of which the largest has `most_bytes` bytes. */
template <typename lines> GPU_INLINE gpu_ll_share gpu_ll_share_of(uint64_t most_bytes)
{
    const uint32_t units = (uint32_t)((most_bytes + lines::unit_bytes - 1) / lines::unit_bytes);
    const uint32_t each = (units + gpu_blocks() - 1) / gpu_blocks();
    const uint32_t first = gpu_block() * each < units ? gpu_block() * each : units;

    return gpu_ll_share{first, units - first < each ? units - first : each};
}

/* The part of a unit that one thread handles: `bytes` bytes of the transfer's data, from byte `at`
 * on. */
struct gpu_ll_piece {
    uint32_t unit, at, bytes;
    bool is_there; /* true if the unit exists, even if this thread has no bytes of it */
};

/* Returns this thread's part of a unit of a transfer of `size_bytes` bytes. If `is_mine` is false,
 * the thread has no unit. */
template <typename lines>
GPU_INLINE gpu_ll_piece gpu_ll_piece_of(uint32_t unit, bool is_mine, uint64_t size_bytes)
{
    const uint32_t lane = gpu_thread() % lines::lanes, room = lines::room(lane);
    const uint32_t size = (uint32_t)size_bytes, at = unit * lines::unit_bytes + lane * 16;
    const uint32_t left = is_mine && at < size ? size - at : 0;

    return gpu_ll_piece{unit, at, left < room ? left : room,
                        is_mine && unit * lines::unit_bytes < size};
}

/* A slot is a group of `lanes` threads that handles one unit at a time. The functions return the
 * slot of this thread, and the number of slots in a block. */
template <typename lines> GPU_INLINE uint32_t gpu_ll_slot(void)
{
    return gpu_thread() / lines::lanes;
}

template <typename lines> GPU_INLINE uint32_t gpu_ll_slots(void)
{
    return gpu_threads() / lines::lanes;
}

/* ---- pushing --------------------------------------------------------------------------------- */

/* Returns the bytes of a piece from this rank's input, followed by zeros. Multiplies them by the
 * scalar if the work demands this. */
GPU_INLINE gpu_word gpu_ll_input(const struct gpu_run *run, gpu_part part, gpu_ll_piece piece,
                                 uint64_t scalar)
{
    const struct tutti_kernel_work *work = run->work;
    gpu_word word = {0, 0, 0, 0};

    if (piece.bytes == 0)
        return word;
    word = gpu_load_some((const uint8_t *)work->input +
                             part.first * gpu_type_bytes(work->type) + piece.at, piece.bytes);
    return work->is_premultiplied ? gpu_premultiplied(work->type, word, scalar) : word;
}

/* Stores this block's share of the data for each peer into the mailbox to that peer. */
template <typename lines>
GPU_INLINE void gpu_ll_push(const struct gpu_run *run, gpu_ll_share share, uint64_t scalar)
{
    const uint32_t size = gpu_type_bytes(run->work->type);
    const uint32_t total = share.count * (run->nranks - 1);

    for (uint32_t slot = gpu_ll_slot<lines>(); lines::any(slot < total);
         slot += gpu_ll_slots<lines>()) {
        const uint32_t turn = slot / share.count;
        const uint32_t peer = (run->rank + 1 + turn) % run->nranks;
        const gpu_part part = gpu_given(run->work, run->rank, peer);
        const gpu_ll_piece piece = gpu_ll_piece_of<lines>(
            share.first + slot % share.count, slot < total, part.count * size);
        uint8_t *area = lines::area(run, run->peers[peer].to);

        lines::store(lines::at(area, piece.unit, gpu_thread() % lines::lanes),
                     gpu_ll_input(run, part, piece, scalar), piece.bytes, piece.is_there, run);
    }
}

/* ---- combining ------------------------------------------------------------------------------- */

/* Waits for the words of a piece from the ranks [first, first + count), but from at most
 * GPU_LL_BATCH of them. Takes `own` as the word of this rank. False: the launch must end.
 *
 * All lines are loaded before any is looked at, so that their ways to this rank overlap. The
 * addresses are computed before the first load, because after a load the compiler reads memory
 * again. */
template <typename lines>
GPU_INLINE bool gpu_ll_receive(const struct gpu_run *run, uint32_t first, uint32_t count,
                               gpu_ll_piece piece, gpu_word own, gpu_word ret_words[GPU_LL_BATCH])
{
    const uint32_t nranks = run->nranks, rank = run->rank;
    const uint8_t *at[GPU_LL_BATCH];
    uint32_t polls = 0;

    GPU_UNROLL
    for (uint32_t k = 0; k < GPU_LL_BATCH; k++) {
        const uint32_t peer = first + k;

        at[k] = NULL;
        if (k < count && peer != rank && piece.is_there)
            at[k] = lines::at(lines::area(run, run->peers[peer].from), piece.unit,
                              gpu_thread() % lines::lanes);
    }
    for (;;) {
        typename lines::fetched fetched[GPU_LL_BATCH];
        uint32_t missing = nranks;

        GPU_UNROLL
        for (uint32_t k = 0; k < GPU_LL_BATCH; k++)
            fetched[k] = lines::fetch(at[k], piece.bytes, at[k] != NULL);
        GPU_UNROLL
        for (uint32_t k = 0; k < GPU_LL_BATCH; k++) {
            ret_words[k] = own;
            if (at[k] != NULL && !lines::open(fetched[k], piece.bytes, run, &ret_words[k]) &&
                missing > first + k)
                missing = first + k;
        }
        if (lines::all(missing == nranks))
            return true;
        if (lines::any(!gpu_may_wait(run, missing < nranks ? missing : rank, &polls)))
            return false;
    }
}

/* Combines the inputs of this rank's sources into its output. */
template <typename lines> struct gpu_ll_reduction {
    template <typename kind>
    GPU_INLINE bool run_by(const struct gpu_run *run, gpu_ll_share share, uint64_t scalar)
    {
        typedef gpu_reducer<kind> reducer;
        const struct tutti_kernel_work *work = run->work;
        const gpu_part given = gpu_given(work, run->rank, run->rank);
        const uint64_t size_bytes = gpu_taken(work, run->rank, 0).count * kind::element_bytes;
        const uint32_t nsrcs = tutti_collective_summands(work->collective, run->rank, run->nranks);
        const gpu_operation operation = gpu_operation_of(work->type, work->op);
        const typename kind::factor factor =
            kind::factor_of(work->type, gpu_scale_of(work->is_average, run->nranks));

        for (uint32_t slot = gpu_ll_slot<lines>(); lines::any(slot < share.count);
             slot += gpu_ll_slots<lines>()) {
            const gpu_ll_piece piece =
                gpu_ll_piece_of<lines>(share.first + slot, slot < share.count, size_bytes);
            const gpu_word own = gpu_ll_input(run, given, piece, scalar);
            typename reducer::sum sum = reducer::open(own);

            for (uint32_t first = 0; first < nsrcs; first += GPU_LL_BATCH) {
                const uint32_t count = nsrcs - first;
                gpu_word words[GPU_LL_BATCH];

                if (!gpu_ll_receive<lines>(run, first, count, piece, own, words))
                    return false;
                GPU_UNROLL
                for (uint32_t k = 0; k < GPU_LL_BATCH; k++)
                    if (first + k == 0)
                        sum = reducer::open(words[k]);
                    else if (k < count)
                        reducer::add(&sum, words[k], operation);
            }
            if (piece.bytes > 0)
                gpu_store_some((uint8_t *)work->output + piece.at, reducer::close(&sum, factor),
                               piece.bytes);
        }
        return true;
    }
};

/* True if this rank need not copy its own part. The part must already lie in its place in the
 * output, and it must not need a multiplication. */
GPU_INLINE bool gpu_ll_is_in_place(const struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;
    const uint32_t size = gpu_type_bytes(work->type);

    return (uint64_t)work->input + gpu_given(work, run->rank, run->rank).first * size ==
               (uint64_t)work->output + gpu_taken(work, run->rank, run->rank).first * size &&
           !work->is_premultiplied;
}

/* Copies each rank's part, including this rank's own, to its place in the output. False: the launch
 * must end. */
template <typename lines>
GPU_INLINE bool gpu_ll_copy(const struct gpu_run *run, gpu_ll_share share, uint64_t scalar)
{
    const struct tutti_kernel_work *work = run->work;
    const uint32_t size = gpu_type_bytes(work->type), total = share.count * run->nranks;
    const bool is_in_place = gpu_ll_is_in_place(run);

    for (uint32_t slot = gpu_ll_slot<lines>(); lines::any(slot < total);
         slot += gpu_ll_slots<lines>()) {
        const uint32_t from = (run->rank + slot / share.count) % run->nranks;
        const gpu_part part = gpu_taken(work, run->rank, from);
        const gpu_ll_piece piece = gpu_ll_piece_of<lines>(
            share.first + slot % share.count, slot < total, part.count * size);
        const bool is_mine = from == run->rank;
        gpu_word words[GPU_LL_BATCH], own = {0, 0, 0, 0};

        if (is_mine && !is_in_place)
            own = gpu_ll_input(run, gpu_given(work, from, from), piece, scalar);
        if (!gpu_ll_receive<lines>(run, from, 1, piece, own, words))
            return false;
        if (piece.bytes > 0 && !(is_mine && is_in_place))
            gpu_store_some((uint8_t *)work->output + part.first * size + piece.at, words[0],
                           piece.bytes);
    }
    return true;
}

/* Combines or copies what has arrived into the output. False: the launch must end. */
template <typename lines>
GPU_INLINE bool gpu_ll_combine(const struct gpu_run *run, gpu_ll_share share, uint64_t scalar)
{
    const struct tutti_kernel_work *work = run->work;

    /* With a single source there is nothing to combine, so its bits are copied without a
     * reduction. */
    if (!tutti_collective_reduces(work->collective) ||
        tutti_collective_summands(work->collective, run->rank, run->nranks) == 1)
        return gpu_ll_copy<lines>(run, share, scalar);
    GPU_WITH_KIND(work->type, gpu_ll_reduction<lines>::template run_by, run, share, scalar)
}

/* ---- a work ---------------------------------------------------------------------------------- */

/* Returns the number of bytes in the largest part that this rank gives to another rank, or takes
 * from another rank. */
GPU_INLINE uint64_t gpu_ll_most(const struct gpu_run *run, bool gives)
{
    const struct tutti_kernel_work *work = run->work;
    uint64_t most = 0;

    if ((gives ? work->in.counts : work->out.counts) == NULL) {
        /* Without a root, rank 0 gives to every rank that takes anything, and the last rank takes
         * from every rank that gives anything. */
        const bool has_root = tutti_collective_has_root(work->collective);
        const uint32_t from = has_root ? (uint32_t)work->root : 0;
        const uint32_t to = has_root ? from : run->nranks - 1;

        most = (gives ? gpu_given(work, run->rank, to) : gpu_taken(work, run->rank, from)).count;
    } else {
        for (uint32_t i = 0; i < run->nranks; i++) {
            const gpu_part part =
                gives ? gpu_given(work, run->rank, i) : gpu_taken(work, run->rank, i);

            most = part.count > most ? part.count : most;
        }
    }
    return most * gpu_type_bytes(work->type);
}

/* Reads the greetings of all ranks whose data this rank needs. All threads must call it, but only
 * block 0 reads greetings. False: the launch must end. Threads may get different results. */
GPU_INLINE bool gpu_ll_hear(struct gpu_run *run)
{
    const struct tutti_kernel_work *work = run->work;
    const uint32_t root = (uint32_t)work->root;
    /* The first threads of the block may have units to combine, so the last threads read the
     * greetings. */
    const uint32_t index = gpu_threads() - 1 - gpu_thread();
    uint32_t first = 0, count = run->nranks;

    if (tutti_collective_sources(work->collective) == TUTTI_FROM_ROOT) {
        first = root;
        count = 1;
    } else if (run->rank != root && tutti_collective_has_root(work->collective)) {
        count = 0;
    } else if (tutti_collective_reduces(work->collective)) {
        count = tutti_collective_summands(work->collective, run->rank, run->nranks);
    }
    if (count == run->nranks)
        run->heard = run->epoch;
    return gpu_block() != 0 || gpu_hear(run, first, count, index, gpu_threads());
}

/* Runs the current work. All threads of the grid must call it. False: the calling thread has found
 * that the launch must end. Threads may get different results. */
template <typename lines> GPU_INLINE bool gpu_ll(struct gpu_run *run)
{
    const uint64_t gives_bytes = gpu_ll_most(run, true), takes_bytes = gpu_ll_most(run, false);
    const uint64_t scalar = run->work->is_premultiplied ? gpu_scalar_of(run->work) : 0;
    bool is_fine;

    if (gives_bytes > lines::capacity_bytes(&run->domain->layout) ||
        takes_bytes > lines::capacity_bytes(&run->domain->layout)) {
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, run->rank, NULL);
        return false;
    }
    gpu_ll_push<lines>(run, gpu_ll_share_of<lines>(gives_bytes), scalar);
    gpu_barrier();
    is_fine = gpu_ll_hear(run);
    is_fine = gpu_ll_combine<lines>(run, gpu_ll_share_of<lines>(takes_bytes), scalar) && is_fine;
    if (!tutti_collective_has_data(run->work->collective))
        gpu_fence();
    return is_fine;
}

#endif
