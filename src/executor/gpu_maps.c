/* SPDX-License-Identifier: Apache-2.0
 * Which of a rank's buffers its peers' kernels can use where they lie. Where all ranks are threads of
 * one process, that is all memory that its device lets the others have; elsewhere, or of other
 * memory, nothing: then it is copied through the rank's window. */
#include "executor/gpu_private.h"

#include <string.h>

/* Plain device memory: what access between contexts is enabled for. Memory of pools and virtual
 * memory has rights of its own, which nobody can ask for. */
static bool is_plain(const struct tutti_gpu *gpu, const void *buffer)
{
    int is_plain = 0;
    int attributes[] = {TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE};
    void *values[] = {&is_plain};

    return gpu->cuda->pointer_attributes(1, attributes, values,
                                         (tutti_cu_address)(uintptr_t)buffer) ==
               TUTTI_CU_SUCCESS && is_plain;
}

void tutti_gpu_locate(const struct tutti_gpu *gpu, const void *buffer, uint32_t *ret_map,
                      uint64_t *ret_offset)
{
    bool is_seen = buffer != NULL && gpu->is_one_process &&
                   (gpu->is_one_device || (gpu->all_reach_all && is_plain(gpu, buffer)));

    *ret_map = is_seen ? 0 : TUTTI_GPU_NOT_MAPPED;
    *ret_offset = is_seen ? (uint64_t)(uintptr_t)buffer : 0;
}
