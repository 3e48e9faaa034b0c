/* SPDX-License-Identifier: Apache-2.0
 * Device memory for programs: the scratch memory that they use while they run, and the programs
 * themselves.
 *
 * Works run one after the other, so all of them use the same block of scratch memory. When a larger
 * block is needed, the old block stays, because captured launches refer to it. Each block is at
 * least twice as large as the block before, so the old blocks together are smaller than the newest.
 */
#include "base/round.h"
#include "executor/cuda/private.h"

#include <stdlib.h>

/* The scratch memory that a rank has from the beginning. Drivers hand out virtual memory in such
 * units, and the messages of most groups need less. */
enum { RESERVED_BYTES = 2 << 20 };

/* A block of device memory. */
struct tutti_cuda_scratch {
    struct tutti_cuda_scratch *previous; /* the block that was allocated before this block */
    struct tutti_gpumem memory;
};

/* Allocates a block, which becomes the newest block of the list. */
static int add_block(struct tutti_cuda_gpu *gpu, struct tutti_cuda_scratch **list,
                     size_t size_bytes)
{
    struct tutti_cuda_scratch *scratch = calloc(1, sizeof *scratch);
    int rc;

    if (scratch == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to manage a block of a GPU's memory");
    rc = tutti_gpumem_alloc(gpu->cuda, gpu->args.device,
                            size_bytes, gpu->setup_stream, &scratch->memory);
    if (rc != TUTTI_OK) {
        free(scratch);
        return rc;
    }
    scratch->previous = *list;
    *list = scratch;
    return TUTTI_OK;
}

int tutti_cuda_scratch_take(struct tutti_cuda_gpu *gpu, size_t size_bytes, uint8_t **ret_scratch)
{
    size_t before;

    if (size_bytes == 0) {
        *ret_scratch = NULL;
        return TUTTI_OK;
    }
    before = gpu->scratch != NULL ? gpu->scratch->memory.size_bytes : 0;
    if (before < size_bytes)
        TUTTI_TRY(add_block(gpu, &gpu->scratch, size_bytes > 2 * before ? size_bytes : 2 * before));
    *ret_scratch = (uint8_t *)(uintptr_t)gpu->scratch->memory.address;
    return TUTTI_OK;
}

int tutti_cuda_scratch_reserve(struct tutti_cuda_gpu *gpu)
{
    uint8_t *scratch;

    return tutti_cuda_scratch_take(gpu, RESERVED_BYTES, &scratch);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* The least size of a block that holds programs. */
enum { STORE_BLOCK_BYTES = 2 << 20 };

int tutti_cuda_store_reserve(struct tutti_cuda_gpu *gpu)
{
    int rc;

    if (gpu->store != NULL)
        return TUTTI_OK;
    TUTTI_TRY(tutti_cuda_enter(gpu));
    rc = add_block(gpu, &gpu->store, STORE_BLOCK_BYTES);
    tutti_cuda_leave(gpu);
    return rc;
}

int tutti_cuda_store(struct tutti_cuda_gpu *gpu, const void *bytes, size_t size_bytes,
                     const void **ret_image)
{
    size_t room = tutti_round_up(size_bytes, TUTTI_KERNEL_LINE);
    tutti_cu_address at;
    int mode, rc = TUTTI_OK;

    TUTTI_TRY(tutti_cuda_enter_relaxed(gpu, &mode));
    if (gpu->store == NULL || gpu->store->memory.size_bytes - gpu->stored_bytes < room) {
        rc = add_block(gpu, &gpu->store, room > STORE_BLOCK_BYTES ? room : STORE_BLOCK_BYTES);
        gpu->stored_bytes = rc == TUTTI_OK ? 0 : gpu->stored_bytes;
    }
    if (rc == TUTTI_OK) {
        at = gpu->store->memory.address + gpu->stored_bytes;
        rc = tutti_cuda_copy_and_wait(gpu, at, (tutti_cu_address)(uintptr_t)bytes, size_bytes);
        gpu->stored_bytes += room;
        tutti_assert(gpu->stored_bytes <= gpu->store->memory.size_bytes);
        *ret_image = (const void *)(uintptr_t)at;
    }
    tutti_cuda_leave_relaxed(gpu, mode);
    return rc;
}

struct tutti_cuda_mark tutti_cuda_store_mark(const struct tutti_cuda_gpu *gpu)
{
    return (struct tutti_cuda_mark){.block = gpu->store, .used_bytes = gpu->stored_bytes};
}

void tutti_cuda_store_rewind(struct tutti_cuda_gpu *gpu, const struct tutti_cuda_mark *mark)
{
    /* A newer block has only programs that were stored after the mark. */
    gpu->stored_bytes = gpu->store == mark->block ? mark->used_bytes : 0;
}

/* ---- buffers --------------------------------------------------------------------------------- */

int tutti_cuda_make_buffer(struct tutti_cuda_gpu *gpu, size_t size_bytes, uint8_t fill,
                           void **ret_buffer)
{
    tutti_cu_address address = 0;
    int code;

    *ret_buffer = NULL;
    TUTTI_TRY(tutti_cuda_enter(gpu));
    code = gpu->cuda->memory_alloc(&address, size_bytes);
    if (code == TUTTI_CU_SUCCESS) {
        *ret_buffer = (void *)(uintptr_t)address;
        code = gpu->cuda->set8_async(address, fill, size_bytes, gpu->setup_stream);
    }
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->stream_synchronize(gpu->setup_stream);
    tutti_cuda_leave(gpu);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK
                                    : tutti_cuda_fail(gpu, code, "allocating a buffer");
}

void tutti_cuda_drop_buffer(struct tutti_cuda_gpu *gpu, void *buffer)
{
    if (buffer == NULL || tutti_cuda_enter(gpu) != TUTTI_OK)
        return;
    gpu->cuda->memory_free((tutti_cu_address)(uintptr_t)buffer);
    tutti_cuda_leave(gpu);
}

static void free_all(struct tutti_cuda_gpu *gpu, struct tutti_cuda_scratch **list)
{
    while (*list != NULL) {
        struct tutti_cuda_scratch *previous = (*list)->previous;

        tutti_gpumem_free(gpu->cuda, &(*list)->memory);
        free(*list);
        *list = previous;
    }
}

static size_t total_bytes(const struct tutti_cuda_scratch *list)
{
    size_t bytes = 0;

    for (; list != NULL; list = list->previous)
        bytes += list->memory.size_bytes;
    return bytes;
}

void tutti_cuda_scratch_fini(struct tutti_cuda_gpu *gpu)
{
    free_all(gpu, &gpu->scratch);
    free_all(gpu, &gpu->store);
}

size_t tutti_cuda_scratch_bytes(const struct tutti_cuda_gpu *gpu)
{
    return total_bytes(gpu->scratch) + total_bytes(gpu->store);
}
