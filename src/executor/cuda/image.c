/* SPDX-License-Identifier: Apache-2.0
 * Writes the image of a program for a GPU. image.h describes the two passes. */
#include "executor/cuda/image.h"

#include "base/result.h"
#include "base/round.h"

#include <stdlib.h>
#include <string.h>

int tutti_cuda_writer_begin(struct tutti_cuda_writer *writer)
{
    if (writer->size_bytes > 0) {
        /* The image stores the offsets of its tables in 32 bits. */
        if (writer->size_bytes > UINT32_MAX)
            return tutti_fail(TUTTI_ERR_USAGE, "a program of %zu bytes is too long for kernels",
                              writer->size_bytes);
        writer->bytes = calloc(1, writer->size_bytes);
        if (writer->bytes == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a program of %zu bytes",
                              writer->size_bytes);
    }
    writer->used_bytes = tutti_round_up(sizeof writer->head, 8);
    return TUTTI_OK;
}

struct tutti_kernel_program *tutti_cuda_writer_head(struct tutti_cuda_writer *writer)
{
    if (writer->bytes != NULL)
        return (struct tutti_kernel_program *)(void *)writer->bytes;
    return &writer->head;
}

void *tutti_cuda_writer_table(struct tutti_cuda_writer *writer,
                              struct tutti_kernel_table *ret_table, uint32_t count,
                              size_t entry_bytes)
{
    size_t at = writer->used_bytes;

    *ret_table = (struct tutti_kernel_table){.at = (uint32_t)at, .count = count};
    writer->used_bytes += tutti_round_up(count * entry_bytes, 8);
    return writer->bytes != NULL ? writer->bytes + at : NULL;
}

void tutti_cuda_writer_copy(struct tutti_cuda_writer *writer, struct tutti_kernel_table *ret_table,
                            const void *from, uint32_t count, size_t entry_bytes)
{
    void *table = tutti_cuda_writer_table(writer, ret_table, count, entry_bytes);

    if (table != NULL && count > 0)
        memcpy(table, from, count * entry_bytes);
}

bool tutti_cuda_writer_end(struct tutti_cuda_writer *writer, const struct tutti_cuda_grid *grid,
                           struct tutti_cuda_program_image *ret_image)
{
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    uint64_t staged = head->stages_in_window ? 0 : head->staged_input_bytes;
    uint64_t nused_copies = head->npieces < head->ncopies ? head->npieces : head->ncopies;

    if (writer->bytes == NULL) {
        writer->size_bytes = writer->used_bytes;
        return false;
    }
    tutti_assert(writer->used_bytes == writer->size_bytes);
    head->size_bytes = (uint32_t)writer->size_bytes;
    head->block_bytes = tutti_round_up(staged + head->staged_output_bytes + head->scratch_bytes +
                                           grid->layout.flagged_bytes / 2,
                                       TUTTI_KERNEL_LINE);
    *ret_image = (struct tutti_cuda_program_image){
        .bytes = writer->bytes, .size_bytes = writer->size_bytes,
        .scratch_bytes = head->block_bytes * nused_copies * head->ncolumns};
    return true;
}

void tutti_cuda_program_image_fini(struct tutti_cuda_program_image *image)
{
    free(image->bytes);
    *image = (struct tutti_cuda_program_image){.bytes = NULL};
}
