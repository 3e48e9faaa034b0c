/* SPDX-License-Identifier: Apache-2.0
 * Decides the layout of an area, which is the memory that a rank of a domain uses to communicate:
 *
 *     mailbox of rank 0 | ... of rank nranks - 1 | window | window
 *
 * and each mailbox:
 *
 *     posts | LL lines, even epochs, odd | LL128 lines, even, odd | FIFO of channel 0 | ...
 *
 * Half of an area goes to FIFOs and a quarter to windows. Of the rest, LL128 gets two thirds. A
 * domain of several hosts uses no lines, so these are as small as possible there. */
#include "base/round.h"
#include "executor/cuda/private.h"

enum {
    PROGRAM_BLOCKS = 8, /* most blocks that run a program */
    SLOTS = 8,          /* of each FIFO */
};

/* All of these are numbers of bytes. LEAST_LL and MOST_LL are of the LL lines of one parity. */
enum {
    LEAST_SLOT = 1024,
    MOST_SLOT = 128 << 10,
    FLAGGED = 2048, /* the part of each slot for messages that travel with flags */
    LEAST_LL = 2048,
    MOST_LL = 256 << 10,
    MOST_LL128 = 1 << 20,
    LEAST_WINDOW = 32 << 10,
    LEAST_PIECE = 64 << 10, /* of a schedule: a smaller piece is not worth a block */
    LEAST_SHARE = 16 << 10, /* of a message: a smaller share is not worth a block */
    PAGE = 4096,
};
/* Successive pieces alternate between the halves of a window (direct.cuh). A half has room for a
 * block and its results. */
_Static_assert(LEAST_WINDOW / 4 / TUTTI_KERNEL_LINE >= TUTTI_KERNEL_RANKS,
               "a piece of a staged scan has a line for each rank");

/* Returns `value`, or the limit that it exceeds, rounded down to whole lines. */
static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
    value = value < least ? least : value > most ? most : value;
    return value / TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;
}

void tutti_cuda_lay_out(uint32_t nranks, uint32_t most_blocks, uint64_t memory_bytes,
                        bool spans_hosts, struct tutti_cuda_grid *ret_grid)
{
    struct tutti_kernel_layout layout = {.nranks = nranks, .slots = SLOTS,
                                         .flagged_bytes = spans_hosts ? 0 : FLAGGED,
                                         .shows_sizes = spans_hosts};
    uint64_t mailbox_bytes = memory_bytes / nranks;
    uint32_t nblocks = 1;

    while (2 * nblocks <= most_blocks && 2 * nblocks <= PROGRAM_BLOCKS)
        nblocks *= 2;
    /* For each block, one channel for schedules and one for messages. */
    layout.channels = 2 * nblocks;
    layout.slot_bytes =
        (uint32_t)between(mailbox_bytes / 2 / (layout.channels * SLOTS), LEAST_SLOT, MOST_SLOT);
    layout.window_bytes = between(memory_bytes / 8, LEAST_WINDOW, UINT64_MAX);
    layout.ll_bytes = between(spans_hosts ? 0 : mailbox_bytes / 24, LEAST_LL, MOST_LL);
    layout.ll128_bytes = between(spans_hosts ? 0 : mailbox_bytes / 12, LEAST_LL, MOST_LL128);
    layout.ll_at = sizeof(struct tutti_kernel_mail);
    layout.ll128_at = layout.ll_at + 2 * layout.ll_bytes;
    layout.fifo_at = layout.ll128_at + 2 * layout.ll128_bytes;
    layout.fifo_stride = TUTTI_KERNEL_FIFO_BYTES(&layout);
    layout.mailbox_bytes =
        tutti_round_up(layout.fifo_at + layout.channels * layout.fifo_stride, PAGE);
    *ret_grid = (struct tutti_cuda_grid){.layout = layout, .nblocks = nblocks,
                                         .least_piece_bytes = LEAST_PIECE,
                                         .least_share_bytes = LEAST_SHARE};
}

size_t tutti_cuda_mailbox_at(const struct tutti_kernel_layout *layout, uint32_t writer)
{
    return (size_t)(writer * layout->mailbox_bytes);
}

size_t tutti_cuda_windows_at(const struct tutti_kernel_layout *layout)
{
    return (size_t)(layout->nranks * layout->mailbox_bytes);
}

size_t tutti_cuda_area_bytes(const struct tutti_kernel_layout *layout)
{
    return tutti_cuda_windows_at(layout) + (size_t)tutti_round_up(2 * layout->window_bytes, PAGE);
}
