/* SPDX-License-Identifier: Apache-2.0
 * Programs for GPUs: a call cut into pieces for blocks that work side by side, and the tables by
 * which kernels run it (device/cuda/program.h). The host encodes them once; whoever launches
 * puts the image into device memory and names it in works, with scratch memory of its own for
 * each work that may run at the same time. */
#ifndef TUTTI_EXECUTOR_CUDA_PROGRAM_H
#define TUTTI_EXECUTOR_CUDA_PROGRAM_H

#include "device/cuda/program.h"
#include "device/cuda/work.h"
#include "executor/host/program.h"

/* What all ranks of a domain know alike. */
struct tutti_gpu_grid {
    struct tutti_gpu_layout layout;
    /* That run programs: layout.channels is a multiple of it, twice at least. */
    uint32_t nblocks;
    size_t least_piece_bytes; /* of the larger buffer: with less a piece is not worth a block */
    size_t least_share_bytes; /* of a message, likewise */
};

/* Channels that a schedule may use: what shape->channels should be. */
static inline uint32_t tutti_gpu_grid_channels(const struct tutti_gpu_grid *grid)
{
    return grid->layout.channels / grid->nblocks - 1;
}

/* Bind `plan` (borrowed) to the sizes of `call`, in pieces for the blocks of the grid.
 * TUTTI_ERR_USAGE: it cannot be run by kernels, on any of the ranks. */
int tutti_gpu_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_gpu_grid *grid, struct tutti_program **ret_program);

/* Tables for device memory. */
struct tutti_gpu_image {
    uint8_t *bytes;       /* 8-byte aligned; owned */
    size_t size_bytes;
    size_t scratch_bytes; /* that a run takes, at a line */
};
void tutti_gpu_image_fini(struct tutti_gpu_image *image);

/* `program` as made above for `call`: its buffers and scalar are those of the work that runs it. */
int tutti_gpu_program_encode(const struct tutti_program *program, const struct tutti_call *call,
                             const struct tutti_gpu_grid *grid, struct tutti_gpu_image *ret_image);

/* One send or receive. */
struct tutti_gpu_message {
    int peer;
    bool sends;
    uint64_t address; /* as the device sees it */
    size_t size_bytes;
    struct tutti_header header; /* numbered for its peer and direction */
};

/* The messages of a batch, which move at the same time; those of one peer and direction one
 * after the other. What a rank sends to itself must be received in the same batch, as much and
 * in the same order: TUTTI_ERR_USAGE. */
int tutti_gpu_messages_encode(const struct tutti_gpu_message *messages, size_t count, int rank,
                              const struct tutti_gpu_grid *grid,
                              struct tutti_gpu_image *ret_image);

#endif
