/* SPDX-License-Identifier: Apache-2.0
 * Writes the image of a program, which is a head followed by tables. There are two passes over the
 * same code, so that sizes and contents agree. The first pass finds the size of the image, and the
 * second pass writes it.
 *
 *     struct tutti_gpu_writer writer = {.bytes = NULL};
 *     do {
 *         TUTTI_TRY(tutti_gpu_writer_begin(&writer));
 *         fill the head, and get each table in turn, which is NULL in the first pass
 *     } while (!tutti_gpu_writer_end(&writer, grid, ret_image));
 */
#ifndef TUTTI_EXECUTOR_CUDA_IMAGE_H
#define TUTTI_EXECUTOR_CUDA_IMAGE_H

#include "executor/cuda/program.h"

struct tutti_gpu_writer {
    uint8_t *bytes;                /* NULL in the first pass */
    size_t size_bytes, used_bytes;
    struct tutti_gpu_program head; /* of the first pass */
};

/* Begins a pass. TUTTI_ERR_USAGE: the image is larger than 4 GiB. TUTTI_ERR_SYSTEM: no memory. */
int tutti_gpu_writer_begin(struct tutti_gpu_writer *writer);

/* The head to be filled in this pass. */
struct tutti_gpu_program *tutti_gpu_writer_head(struct tutti_gpu_writer *writer);

/* Adds a table of `count` entries, zeroed, at the next multiple of 8 bytes. Returns where to write
 * it; NULL in the first pass. */
void *tutti_gpu_writer_table(struct tutti_gpu_writer *writer, struct tutti_gpu_table *ret_table,
                             uint32_t count, size_t entry_bytes);

/* Adds a table and fills it from `from`. */
void tutti_gpu_writer_copy(struct tutti_gpu_writer *writer, struct tutti_gpu_table *ret_table,
                           const void *from, uint32_t count, size_t entry_bytes);

/* Ends a pass. False: the first pass has ended, and the caller must write everything again. True:
 * the image is complete, and *ret_image owns its bytes. */
bool tutti_gpu_writer_end(struct tutti_gpu_writer *writer, const struct tutti_gpu_grid *grid,
                          struct tutti_gpu_image *ret_image);

#endif
