/* SPDX-License-Identifier: Apache-2.0
 * Programs for GPUs: a call cut into pieces for blocks that run side by side, and the tables by
 * which kernels run it (device/cuda/program.h). The host encodes a program once. The code that
 * launches it puts the image into device memory and names it in works. Works that may run at the
 * same time need separate scratch memory. */
#ifndef TUTTI_EXECUTOR_CUDA_PROGRAM_H
#define TUTTI_EXECUTOR_CUDA_PROGRAM_H

#include "device/cuda/program.h"
#include "device/cuda/work.h"
#include "executor/host/program.h"

/* The sizes by which programs are cut: the same on all ranks of a domain. */
struct tutti_gpu_grid {
    struct tutti_gpu_layout layout;
    /* Blocks that run a program. layout.channels is a multiple of it, at least twice. */
    uint32_t nblocks;
    size_t least_piece_bytes; /* of the larger buffer: a smaller piece is not worth a block */
    size_t least_share_bytes; /* of a message: a smaller share is not worth a block */
};

/* Most channels that a schedule may use; one more is for messages. */
static inline uint32_t tutti_gpu_grid_channels(const struct tutti_gpu_grid *grid)
{
    return grid->layout.channels / grid->nblocks - 1;
}

/* Binds `plan`, borrowed, to the sizes of `call`, in pieces for the blocks of the grid.
 * TUTTI_ERR_USAGE: kernels cannot run the schedule; all ranks get this result. */
int tutti_gpu_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_gpu_grid *grid, struct tutti_program **ret_program);

/* An encoded program, to be copied into device memory. */
struct tutti_gpu_image {
    uint8_t *bytes;       /* 8-byte aligned; owned */
    size_t size_bytes;
    size_t scratch_bytes; /* that a run takes, aligned to TUTTI_GPU_LINE */
};
void tutti_gpu_image_fini(struct tutti_gpu_image *image);

/* Encodes `program`, made by tutti_gpu_program_create for `call`. The image has no addresses:
 * buffers and scalar come from the work that runs it. TUTTI_ERR_USAGE: kernels cannot run it; all
 * ranks get this result. TUTTI_ERR_SYSTEM: no memory. */
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

/* Encodes the messages of a batch. They move at the same time; those with the same peer and
 * direction move one after the other. TUTTI_ERR_USAGE: a message of the rank to itself is not
 * received in the same batch, with the same size and order; or there are more peers than
 * TUTTI_GPU_LANES allows. TUTTI_ERR_SYSTEM: no memory. */
int tutti_gpu_messages_encode(const struct tutti_gpu_message *messages, size_t count, int rank,
                              const struct tutti_gpu_grid *grid,
                              struct tutti_gpu_image *ret_image);

#endif
