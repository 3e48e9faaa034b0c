/* SPDX-License-Identifier: Apache-2.0
 * Writing a run of bytes with a head and tables: once to see how large it becomes, once in earnest.
 *
 *     struct tutti_gpu_writer writer = {.bytes = NULL};
 *     do {
 *         TUTTI_TRY(tutti_gpu_writer_begin(&writer));
 *         fill the head, and ask for each table in turn; NULL while only the size is wanted
 *     } while (!tutti_gpu_writer_end(&writer, grid, ret_image));
 */
#ifndef TUTTI_EXECUTOR_CUDA_IMAGE_H
#define TUTTI_EXECUTOR_CUDA_IMAGE_H

#include "executor/cuda/program.h"

struct tutti_gpu_writer {
    uint8_t *bytes;                /* NULL: only the size is wanted */
    size_t size_bytes, used_bytes;
    struct tutti_gpu_program head; /* until there are bytes */
};

int tutti_gpu_writer_begin(struct tutti_gpu_writer *writer);

struct tutti_gpu_program *tutti_gpu_writer_head(struct tutti_gpu_writer *writer);

/* Room for so many entries, zeroed, at the next multiple of 8 bytes. */
void *tutti_gpu_writer_table(struct tutti_gpu_writer *writer, struct tutti_gpu_table *ret_table,
                             uint32_t count, size_t entry_bytes);

/* The same, filled from `from`. */
void tutti_gpu_writer_copy(struct tutti_gpu_writer *writer, struct tutti_gpu_table *ret_table,
                           const void *from, uint32_t count, size_t entry_bytes);

/* True: the image is complete. False: all must be written once more. */
bool tutti_gpu_writer_end(struct tutti_gpu_writer *writer, const struct tutti_gpu_grid *grid,
                          struct tutti_gpu_image *ret_image);

#endif
