/* SPDX-License-Identifier: Apache-2.0
 * Writes the tables of a domain of GPUs. They tell kernels by which address to reach each rank. */
#include "executor/cuda/private.h"

#include <stdlib.h>
#include <string.h>

bool tutti_cuda_reaches(const struct tutti_cuda_gpu *gpu, int from, int owner)
{
    uint64_t bit = UINT64_C(1) << owner, back = UINT64_C(1) << from;

    tutti_assert(from >= 0 && from < gpu->args.nranks && owner >= 0 && owner < gpu->args.nranks);
    return (gpu->records[from].reached & bit) != 0 && (gpu->excluded[from] & bit) == 0 &&
           (gpu->excluded[owner] & back) == 0;
}

bool tutti_cuda_is_reached_by_all(const struct tutti_cuda_gpu *gpu, int owner)
{
    for (int from = 0; from < gpu->args.nranks; from++)
        if (!tutti_cuda_is_far(gpu, from, owner) && !tutti_cuda_reaches(gpu, from, owner))
            return false;
    return true;
}

struct tutti_kernel_peer tutti_cuda_peer_of(const struct tutti_cuda_gpu *gpu, int rank)
{
    const struct tutti_cuda_neighbor *neighbor = &gpu->neighbors[rank];
    const struct tutti_kernel_layout *layout = &gpu->grid.layout;
    int me = gpu->args.rank;
    tutti_cu_address to = tutti_cuda_reaches(gpu, me, rank) ? neighbor->own_at : neighbor->host_at;
    tutti_cu_address from =
        tutti_cuda_reaches(gpu, rank, me) ? gpu->own.address : gpu->host.address;
    tutti_cu_address window =
        tutti_cuda_is_reached_by_all(gpu, rank) ? neighbor->own_at : neighbor->host_at;
    struct tutti_kernel_peer far = {.window = NULL};

    if (tutti_cuda_is_far(gpu, me, rank)) {
        tutti_cuda_far_mailboxes(gpu, rank, &far);
        return far;
    }
    return (struct tutti_kernel_peer){
        .to = (uint8_t *)(uintptr_t)(to + tutti_cuda_mailbox_at(layout, (uint32_t)me)),
        .from = (uint8_t *)(uintptr_t)(from + tutti_cuda_mailbox_at(layout, (uint32_t)rank)),
        .window = (uint8_t *)(uintptr_t)(window + tutti_cuda_windows_at(layout)),
    };
}

int tutti_cuda_write_tables(struct tutti_cuda_gpu *gpu)
{
    size_t npeers = (size_t)gpu->args.nranks;
    size_t peers_at = sizeof(struct tutti_kernel_domain);
    size_t counters_at = peers_at + npeers * sizeof(struct tutti_kernel_peer);
    size_t bytes = counters_at + TUTTI_KERNEL_COUNTERS_BYTES(gpu->grid.layout.channels, npeers);
    struct tutti_kernel_peer *peers = calloc(npeers, sizeof *peers);
    struct tutti_kernel_domain domain = {.layout = gpu->grid.layout,
                                         .nranks = (uint32_t)gpu->args.nranks,
                                         .rank = (uint32_t)gpu->args.rank};
    tutti_cu_address report = 0;
    int code = TUTTI_CU_SUCCESS, rc = TUTTI_OK;

    tutti_assert(npeers <= TUTTI_KERNEL_RANKS);
    if (peers == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the tables of %zu GPUs", npeers);
    for (size_t rank = 0; rank < npeers; rank++)
        peers[rank] = tutti_cuda_peer_of(gpu, (int)rank);
    if (gpu->state.kind == TUTTI_GPUMEM_NONE &&
        tutti_gpumem_alloc(gpu->cuda, gpu->args.device, bytes, gpu->setup_stream, &gpu->state) !=
            TUTTI_OK) {
        free(peers);
        return TUTTI_ERR_DEVICE;
    }
    if (gpu->report == NULL) {
        code = gpu->cuda->host_alloc((void **)&gpu->report, sizeof *gpu->report,
                                     TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED);
        /* Later calls leave the report alone, because it may hold an abort by then. */
        if (code == TUTTI_CU_SUCCESS)
            memset(gpu->report, 0, sizeof *gpu->report);
    }
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->host_device_address(&report, gpu->report, 0);
    domain.peers = (struct tutti_kernel_peer *)(uintptr_t)(gpu->state.address + peers_at);
    domain.counters = (struct tutti_kernel_counters *)(uintptr_t)(gpu->state.address + counters_at);
    domain.report = (struct tutti_kernel_report *)(uintptr_t)report;
    gpu->domain = (struct tutti_kernel_domain *)(uintptr_t)gpu->state.address;
    gpu->peers_at = gpu->state.address + peers_at;
    if (code != TUTTI_CU_SUCCESS)
        rc = tutti_cuda_fail(gpu, code, "allocating page-locked memory");
    if (rc == TUTTI_OK)
        rc = tutti_cuda_copy_and_wait(gpu, gpu->state.address, (tutti_cu_address)(uintptr_t)&domain,
                                      sizeof domain);
    if (rc == TUTTI_OK)
        rc = tutti_cuda_copy_and_wait(gpu, gpu->peers_at, (tutti_cu_address)(uintptr_t)peers,
                                      npeers * sizeof *peers);
    free(peers);
    return rc;
}
