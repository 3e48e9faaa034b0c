/* SPDX-License-Identifier: Apache-2.0
 * Writes the image of a program, which is a head followed by tables. There are two passes over the
 * same code, so that sizes and contents agree. The first pass finds the size of the image, and the
 * second pass writes it.
 *
 *     struct tutti_cuda_writer writer = {.bytes = NULL};
 *     do {
 *         TUTTI_TRY(tutti_cuda_writer_begin(&writer));
 *         fill the head, and get each table in turn, which is NULL in the first pass
 *     } while (!tutti_cuda_writer_end(&writer, grid, ret_image));
 */
#ifndef TUTTI_EXECUTOR_CUDA_IMAGE_H
#define TUTTI_EXECUTOR_CUDA_IMAGE_H

#include "executor/cuda/program.h"

struct tutti_cuda_writer {
    uint8_t *bytes;                /* NULL in the first pass */
    size_t size_bytes;             /* of the whole image; 0 in the first pass */
    size_t used_bytes;             /* of the head and the tables so far */
    struct tutti_kernel_program head; /* of the first pass */
};

/* Begins a pass. TUTTI_ERR_USAGE: the image is larger than 4 GiB. TUTTI_ERR_SYSTEM: no memory. */
int tutti_cuda_writer_begin(struct tutti_cuda_writer *writer);

/* Returns the head to be filled in this pass. */
struct tutti_kernel_program *tutti_cuda_writer_head(struct tutti_cuda_writer *writer);

/* Adds a table of `count` entries, zeroed, at the next multiple of 8 bytes. Returns where the
 * caller must write the entries; NULL in the first pass. */
void *tutti_cuda_writer_table(struct tutti_cuda_writer *writer,
                              struct tutti_kernel_table *ret_table, uint32_t count,
                              size_t entry_bytes);

/* Adds a table and copies its entries from `from`. */
void tutti_cuda_writer_copy(struct tutti_cuda_writer *writer, struct tutti_kernel_table *ret_table,
                            const void *from, uint32_t count, size_t entry_bytes);

/* Ends a pass. False: the first pass has ended, and the caller must write everything again. True:
 * the image is complete, and *ret_image owns its bytes. */
bool tutti_cuda_writer_end(struct tutti_cuda_writer *writer, const struct tutti_cuda_grid *grid,
                           struct tutti_cuda_program_image *ret_image);

#endif
