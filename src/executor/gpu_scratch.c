/* SPDX-License-Identifier: Apache-2.0
 * Device memory that programs stage in and keep. Works run one after the other, so one block is enough
 * for all. When it grows the old one stays, for captured launches name it; since each is twice as
 * large as the one before, all together are no more than twice what is needed. */
#include "executor/gpu_private.h"

#include <stdlib.h>

struct tutti_gpu_scratch {
    struct tutti_gpu_scratch *next; /* the one before */
    struct tutti_gpu_memory memory;
};

static int grow(struct tutti_gpu *gpu, size_t size_bytes)
{
    size_t before = gpu->scratch != NULL ? gpu->scratch->memory.size_bytes : 0;
    struct tutti_gpu_scratch *scratch = calloc(1, sizeof *scratch);
    int mode = TUTTI_CU_CAPTURE_RELAXED, rc;

    if (scratch == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a GPU's scratch");
    gpu->cuda->exchange_capture_mode(&mode);
    rc = tutti_gpu_memory_alloc(gpu->cuda, gpu->args.device,
                                size_bytes > 2 * before ? size_bytes : 2 * before, gpu->desk,
                                &scratch->memory);
    gpu->cuda->exchange_capture_mode(&mode);
    if (rc != TUTTI_OK) {
        free(scratch);
        return rc;
    }
    scratch->next = gpu->scratch;
    gpu->scratch = scratch;
    return TUTTI_OK;
}

int tutti_gpu_scratch_take(struct tutti_gpu *gpu, size_t size_bytes, uint8_t **ret_scratch)
{
    if (size_bytes == 0) {
        *ret_scratch = NULL;
        return TUTTI_OK;
    }
    if (gpu->scratch == NULL || gpu->scratch->memory.size_bytes < size_bytes)
        TUTTI_TRY(grow(gpu, size_bytes));
    *ret_scratch = (uint8_t *)(uintptr_t)gpu->scratch->memory.address;
    return TUTTI_OK;
}

void tutti_gpu_scratch_fini(struct tutti_gpu *gpu)
{
    while (gpu->scratch != NULL) {
        struct tutti_gpu_scratch *next = gpu->scratch->next;

        tutti_gpu_memory_free(gpu->cuda, &gpu->scratch->memory);
        free(gpu->scratch);
        gpu->scratch = next;
    }
}

size_t tutti_gpu_scratch_bytes(const struct tutti_gpu *gpu)
{
    size_t bytes = 0;

    for (const struct tutti_gpu_scratch *at = gpu->scratch; at != NULL; at = at->next)
        bytes += at->memory.size_bytes;
    return bytes;
}
