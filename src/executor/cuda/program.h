/* SPDX-License-Identifier: Apache-2.0
 * Programs for GPUs. A program is a call that is cut into pieces for blocks that run side by side,
 * with the tables by which kernels run it (device/cuda/program.h). The host encodes a program once.
 * The code that launches it puts the image into memory that kernels read, and works refer to it.
 * Works that may run at the same time need separate scratch memory. */
#ifndef TUTTI_EXECUTOR_CUDA_PROGRAM_H
#define TUTTI_EXECUTOR_CUDA_PROGRAM_H

#include "device/cuda/program.h"
#include "device/cuda/work.h"
#include "executor/host/program.h"

/* The sizes by which programs are cut. They are the same on all ranks of a domain. */
struct tutti_cuda_grid {
    struct tutti_kernel_layout layout;
    uint32_t nblocks; /* blocks that run programs */
    size_t least_piece_bytes; /* of the larger buffer; a smaller piece is not worth a block */
    size_t least_share_bytes; /* of a message: a smaller share is not worth a block */
};

/* The most channels that a schedule may use: one for each FIFO of a pair that is not for messages.
 */
static inline uint32_t tutti_cuda_grid_channels(const struct tutti_cuda_grid *grid)
{
    return grid->layout.channels - grid->nblocks;
}

/* Binds `plan` to the sizes of `call`, in pieces for the blocks of the grid. `plan` is borrowed.
 * The caller destroys *ret_program with tutti_program_destroy. TUTTI_ERR_USAGE: kernels cannot run
 * the schedule; all ranks get this result. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_program_create(const struct tutti_plan *plan, const struct tutti_call *call,
                              int rank, const struct tutti_cuda_grid *grid,
                              struct tutti_program **ret_program);

/* An encoded program, to be copied into memory that kernels read. */
struct tutti_cuda_program_image {
    uint8_t *bytes;       /* 8-byte aligned; owned */
    size_t size_bytes;
    size_t scratch_bytes; /* scratch memory that a run takes, a multiple of TUTTI_KERNEL_LINE */
};
/* Returns the device memory that the copies of a program take if the program is in host memory: 0
 * if blocks copy it into shared memory. */
static inline size_t tutti_cuda_program_copies_bytes(const struct tutti_cuda_grid *grid,
                                                     size_t program_bytes)
{
    return program_bytes <= TUTTI_KERNEL_SHARED_PROGRAM
               ? 0
               : grid->nblocks * TUTTI_KERNEL_COPY_BYTES(program_bytes);
}

/* Frees the image's bytes. */
void tutti_cuda_program_image_fini(struct tutti_cuda_program_image *image);

/* Encodes `program`, which tutti_cuda_program_create made for `call`. The image has no addresses,
 * because buffers and scalar come from the work that runs it. TUTTI_ERR_USAGE: kernels cannot run
 * the program; all ranks get this result. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_program_encode(const struct tutti_program *program, const struct tutti_call *call,
                              const struct tutti_cuda_grid *grid,
                              struct tutti_cuda_program_image *ret_image);

/* One send or receive. */
struct tutti_cuda_message {
    int peer;
    bool sends;       /* true for a send, false for a receive */
    uint64_t address; /* device address of the data */
    size_t size_bytes;
    struct tutti_header header; /* its number counts the messages of the peer and direction */
};

/* Encodes the messages of a batch. Messages move at the same time, but those with the same peer and
 * direction move one after the other. TUTTI_ERR_USAGE: the batch has more peers than
 * TUTTI_KERNEL_LANES allows, or its sends of the rank to itself do not match its receives in
 * number, order and signature. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_messages_encode(const struct tutti_cuda_message *messages, size_t count, int rank,
                               const struct tutti_cuda_grid *grid,
                               struct tutti_cuda_program_image *ret_image);

#endif
