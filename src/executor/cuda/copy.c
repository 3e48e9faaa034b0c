/* SPDX-License-Identifier: Apache-2.0
 * Runs large collectives that only copy data by copies of the CUDA driver, if the user sets
 * TUTTI_GPU_COPY_ENGINE_BYTES. GPUs have engines for such copies, so their multiprocessors stay
 * free for other kernels.
 *
 * When a call is made, each rank knows only its own buffers. So each rank stages its data, piece by
 * piece, in its windows, and the other ranks fetch the pieces from there. Pieces alternate between
 * the two windows. Between copies the ranks meet. A meeting is a barrier in kernels of one block
 * (device/cuda/copies.cuh). These kernels watch the deadline and the abort word, as all kernels of
 * this library do, also in graphs that are replayed. A call of n pieces puts this on its stream:
 *
 *     meeting 0 | stage 0 | meeting 1 | stage 1, fetch 0 | meeting 2 | ... | fetch n - 1 | meeting
 *
 * All ranks must decide alike whether a call runs this way. So the decision depends only on values
 * that all ranks know. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <string.h>

/* MOST_OPERATIONS is the largest number of operations that a call may put on its stream. With too
 * many operations, the driver makes the caller wait for room in the stream. A thread that drives
 * several ranks could then wait for a rank whose call it has not made yet, which is a deadlock.
 * MEETING_THREADS is the number of threads of a meeting's kernel. */
enum { MOST_OPERATIONS = 512, MEETING_THREADS = 32 };

/* ---- which calls ---------------------------------------------------------------------------- */

/* Finds out whether two ranks of one process use the same GPU, and sets gpu->is_all_apart. A call
 * that runs by driver copies can block other streams of its process on the same GPU, and so the
 * other rank. */
static void find_sharers(struct tutti_cuda_gpu *gpu, bool *ret_share_device)
{
    *ret_share_device = false;
    gpu->is_all_apart = true;
    for (int a = 0; a < gpu->args.nranks; a++)
        for (int b = 0; b < a; b++) {
            const struct tutti_cuda_record *one = &gpu->records[a], *other = &gpu->records[b];

            if (!tutti_identity_same_process(&one->identity, &other->identity))
                continue;
            gpu->is_all_apart = false;
            if (memcmp(one->uuid, other->uuid, sizeof one->uuid) == 0)
                *ret_share_device = true;
        }
}

/* Returns why copy engines cannot be used, for the log. NULL: they can be used. */
static const char *find_hindrance(struct tutti_cuda_gpu *gpu)
{
    bool share_device;

    find_sharers(gpu, &share_device);
    if (share_device)
        return "ranks of one process share a GPU";
    if (!gpu->all_reach_all)
        return "not all GPUs reach each other's memory";
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (gpu->records[rank].is_copy_bad)
            return "copies of the driver from one GPU to another arrive changed";
    return NULL;
}

void tutti_cuda_copy_agree(struct tutti_cuda_gpu *gpu)
{
    uint64_t least_bytes = 0;
    const char *hindrance;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (gpu->records[rank].copy_bytes == 0)
            return;
        if (gpu->records[rank].copy_bytes > least_bytes)
            least_bytes = gpu->records[rank].copy_bytes;
    }
    hindrance = find_hindrance(gpu);
    if (hindrance == NULL)
        gpu->copy_bytes = least_bytes;
    else if (gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_WARN, "TUTTI_GPU_COPY_ENGINE_BYTES is set, but %s: kernels copy",
                  hindrance);
}

/* Returns the number of blocks that a rank puts into its window. If all ranks get the same data, it
 * is 1. Otherwise it is the number of ranks. */
static uint64_t count_slots(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    return tutti_input_blocks(call->collective, (uint32_t)gpu->args.nranks);
}

/* Returns the most bytes of a block in a piece, in whole lines. */
static uint64_t piece_bytes(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    return gpu->grid.layout.window_bytes / count_slots(gpu, call) / TUTTI_KERNEL_LINE *
           TUTTI_KERNEL_LINE;
}

/* Returns the number of pieces in which a block of `bytes` bytes is copied. */
static uint64_t pieces_of(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call,
                          uint64_t bytes)
{
    uint64_t piece = piece_bytes(gpu, call);

    return bytes / piece + (bytes % piece != 0);
}

/* If counts are by pair, no rank knows all counts. Such a call may need any number of pieces, so
 * MOST_OPERATIONS cannot be guaranteed. So it is taken only if each rank is in a process of its
 * own, where no thread can drive several ranks. */
bool tutti_cuda_copy_serves(const struct tutti_cuda_gpu *gpu, const struct tutti_call *call)
{
    uint64_t bytes;

    if (gpu->copy_bytes == 0 || tutti_collective_work(call->collective) != TUTTI_COPIES ||
        piece_bytes(gpu, call) == 0)
        return false;
    if (tutti_call_has_pairs(call))
        return gpu->is_all_apart;
    bytes = tutti_cuda_largest_send(gpu, call);
    return bytes >= gpu->copy_bytes &&
           pieces_of(gpu, call, bytes) <= MOST_OPERATIONS / 2 / (uint64_t)gpu->args.nranks;
}

/* ---- which bytes ----------------------------------------------------------------------------- */

/* The state of a call while its copies are enqueued. */
struct copying {
    struct tutti_cuda_gpu *gpu;
    const struct tutti_call *call;
    struct tutti_cu_stream *stream;
    uint64_t piece_count; /* elements of each block in a piece */
    uint64_t at;          /* elements of each block before the current piece */
    uint64_t window_at;   /* byte offset of the current piece's window from the first window */
};

/* A range of elements in a buffer. */
struct part {
    uint64_t first, count;
};

static const struct part no_part;

/* Returns the part of a buffer that is the block of `rank`. */
static struct part block_part(const struct copying *copying, const size_t *counts,
                              const size_t *displs, int rank)
{
    struct part part = {(uint64_t)rank * copying->call->count, copying->call->count};

    if (counts == NULL)
        return part;
    part = (struct part){0, counts[rank]};
    for (int before = 0; displs == NULL && before < rank; before++)
        part.first += counts[before];
    if (displs != NULL)
        part.first = displs[rank];
    return part;
}

/* given() returns the part of this rank's input that goes to rank `to`. taken() returns the part of
 * this rank's output that comes from rank `from`. */
static struct part given(const struct copying *copying, int to)
{
    const struct tutti_call *call = copying->call;
    uint32_t rank = (uint32_t)copying->gpu->args.rank, root = (uint32_t)call->root;

    if (!tutti_collective_is_source(call->collective, rank, (uint32_t)to, root))
        return no_part;
    if (tutti_input_is_per_rank(call->collective))
        return block_part(copying, call->input_counts, call->input_displs, to);
    return (struct part){0, call->count};
}

static struct part taken(const struct copying *copying, int from)
{
    const struct tutti_call *call = copying->call;
    uint32_t rank = (uint32_t)copying->gpu->args.rank, root = (uint32_t)call->root;

    if (!tutti_collective_is_source(call->collective, (uint32_t)from, rank, root))
        return no_part;
    if (tutti_output_is_per_rank(call->collective))
        return block_part(copying, call->output_counts, call->output_displs, from);
    return (struct part){0, call->count};
}

/* Returns the part of a block that is in the current piece. */
static struct part in_piece(const struct copying *copying, struct part part)
{
    uint64_t left = part.count > copying->at ? part.count - copying->at : 0;

    return (struct part){part.first + copying->at,
                         left < copying->piece_count ? left : copying->piece_count};
}

/* ---- copies ---------------------------------------------------------------------------------- */

static int enqueue_copy(const struct copying *copying, const void *to, const void *from,
                        uint64_t count)
{
    struct tutti_cuda_gpu *gpu = copying->gpu;
    int code;

    if (count == 0 || to == from)
        return TUTTI_OK;
    code = gpu->cuda->copy_async((tutti_cu_address)(uintptr_t)to, (tutti_cu_address)(uintptr_t)from,
                                 count * tutti_type_size(copying->call->type), copying->stream);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK : tutti_cuda_fail(gpu, code, "copying");
}

static const uint8_t *element_address(const struct copying *copying, const void *buffer,
                                      uint64_t index)
{
    return (const uint8_t *)buffer + index * tutti_type_size(copying->call->type);
}

/* Returns the address at which rank `owner` puts the current piece of its data for rank `to`. */
static const uint8_t *window_address(const struct copying *copying, int owner, int to)
{
    const struct tutti_cuda_gpu *gpu = copying->gpu;
    uint64_t slot = count_slots(gpu, copying->call) > 1 ? (uint64_t)to : 0;
    tutti_cu_address windows =
        gpu->neighbors[owner].own_at + tutti_cuda_windows_at(&gpu->grid.layout);

    return (const uint8_t *)(uintptr_t)(windows + copying->window_at +
                                        slot * piece_bytes(gpu, copying->call));
}

/* Sets the position and the window of a piece. */
static void select_piece(struct copying *copying, uint64_t piece)
{
    copying->at = piece * copying->piece_count;
    copying->window_at = piece % 2 * copying->gpu->grid.layout.window_bytes;
}

/* Copies a piece of this rank's input into its own window. */
static int stage(struct copying *copying, uint64_t piece)
{
    int nranks = copying->gpu->args.nranks, me = copying->gpu->args.rank;
    bool is_for_all = count_slots(copying->gpu, copying->call) == 1;

    select_piece(copying, piece);
    for (int i = 1; i < nranks; i++) {
        int to = (me + i) % nranks;
        struct part part = in_piece(copying, given(copying, to));

        if (part.count == 0)
            continue;
        TUTTI_TRY(enqueue_copy(copying, window_address(copying, me, to),
                               element_address(copying, copying->call->input, part.first),
                               part.count));
        if (is_for_all)
            break;
    }
    return TUTTI_OK;
}

/* Copies a piece of the data of all ranks for this rank into this rank's output. This rank's own
 * data does not pass through a window. */
static int fetch(struct copying *copying, uint64_t piece)
{
    int nranks = copying->gpu->args.nranks, me = copying->gpu->args.rank;

    select_piece(copying, piece);
    for (int i = 0; i < nranks; i++) {
        int from = (me + i) % nranks;
        struct part part = in_piece(copying, taken(copying, from));
        const uint8_t *source;

        if (part.count == 0)
            continue;
        source = from == me ? element_address(copying, copying->call->input,
                                              in_piece(copying, given(copying, me)).first)
                            : window_address(copying, from, me);
        TUTTI_TRY(enqueue_copy(copying, element_address(copying, copying->call->output, part.first),
                               source, part.count));
    }
    return TUTTI_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Enqueues the kernel of meeting number `meeting`. */
static int enqueue_meeting(const struct copying *copying, struct tutti_kernel_launch *launch,
                           uint64_t meeting)
{
    launch->first.meeting = (uint32_t)meeting;
    return tutti_kernel_module_launch(copying->gpu->kernels, TUTTI_KERNEL_MEETING, 1,
                                      MEETING_THREADS, launch, copying->stream);
}

/* Computes the number of pieces that this rank sends or receives. If counts are by pair, this
 * number differs between ranks. */
static int count_pieces(const struct copying *copying, uint64_t *ret_npieces)
{
    const struct tutti_call *call = copying->call;
    uint64_t bytes = tutti_cuda_largest_send(copying->gpu, call), npieces;

    if (tutti_call_has_pairs(call)) {
        bytes = 0;
        for (int rank = 0; rank < copying->gpu->args.nranks; rank++) {
            uint64_t gives = given(copying, rank).count, takes = taken(copying, rank).count;

            bytes = gives > bytes ? gives : bytes;
            bytes = takes > bytes ? takes : bytes;
        }
        bytes *= tutti_type_size(call->type);
    }
    npieces = pieces_of(copying->gpu, call, bytes);
    if (npieces + 2 >= UINT64_C(1) << TUTTI_KERNEL_SIGNAL_BITS)
        return tutti_fail(TUTTI_ERR_USAGE, "rank %d: %llu bytes in pieces of %llu are too many "
                          "pieces; raise TUTTI_GPU_MEMORY_BYTES", copying->gpu->args.rank,
                          (unsigned long long)bytes,
                          (unsigned long long)piece_bytes(copying->gpu, call));
    *ret_npieces = npieces;
    return TUTTI_OK;
}

/* Enqueues all operations of the call, as the head of this file shows. */
static int enqueue_pieces(struct copying *copying, struct tutti_kernel_launch *launch,
                          uint64_t npieces)
{
    TUTTI_TRY(enqueue_meeting(copying, launch, 0));
    for (uint64_t piece = 0; piece < npieces; piece++) {
        TUTTI_TRY(stage(copying, piece));
        if (piece > 0)
            TUTTI_TRY(fetch(copying, piece - 1));
        TUTTI_TRY(enqueue_meeting(copying, launch, piece + 1));
    }
    if (npieces > 0)
        TUTTI_TRY(fetch(copying, npieces - 1));
    return enqueue_meeting(copying, launch, npieces + 1);
}

int tutti_cuda_copy_run(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_item *item,
                        bool is_captured, struct tutti_cu_stream *stream, uint64_t timeout_ns)
{
    struct tutti_kernel_launch launch = {.domain = gpu->domain, .deadline_ns = timeout_ns,
                                         .nworks = 1};
    struct copying copying = {.gpu = gpu, .call = item->call, .stream = stream};
    uint64_t npieces;

    copying.piece_count = piece_bytes(gpu, item->call) / tutti_type_size(item->call->type);
    TUTTI_TRY(count_pieces(&copying, &npieces));
    TUTTI_TRY(tutti_cuda_work_fill(gpu, item, is_captured, &launch.first));
    launch.first.kind = TUTTI_KERNEL_WORK_COPIES;
    launch.first.npieces = tutti_call_has_pairs(item->call) ? 0 : (uint32_t)npieces;
    launch.first.piece_count = copying.piece_count;
    tutti_cuda_log_call(gpu, item->call, "is left to copy engines; pieces: %llu",
                        (unsigned long long)npieces);
    TUTTI_TRY(enqueue_pieces(&copying, &launch, npieces));
    return tutti_cuda_slabs_launched(gpu, stream);
}
