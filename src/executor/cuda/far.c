/* SPDX-License-Identifier: Apache-2.0
 * The ranks of a domain that are on other hosts, and the mailboxes for them in this rank's host
 * memory: for each such rank an outgoing and an incoming one (proxy.h). */
#include "executor/cuda/private.h"

#include "executor/cuda/proxy.h"

#include <stdlib.h>

bool tutti_cuda_is_far(const struct tutti_cuda_gpu *gpu, int from, int to)
{
    return !tutti_identity_same_host(&gpu->records[from].identity, &gpu->records[to].identity);
}

/* Counts the far ranks among the ranks below `end`. */
static uint32_t count_far(const struct tutti_cuda_gpu *gpu, int end)
{
    uint32_t count = 0;

    for (int rank = 0; rank < end; rank++)
        count += tutti_cuda_is_far(gpu, gpu->args.rank, rank);
    return count;
}

/* Returns the offset of the outgoing mailbox to a far rank. The incoming one follows it. */
static size_t pair_at(const struct tutti_cuda_gpu *gpu, int rank)
{
    return 2 * count_far(gpu, rank) * (size_t)gpu->grid.layout.mailbox_bytes;
}

int tutti_cuda_far_reserve(struct tutti_cuda_gpu *gpu)
{
    size_t count = count_far(gpu, gpu->args.nranks);

    if (count == 0)
        return TUTTI_OK;
    return tutti_gpumem_alloc_host(gpu->cuda, 2 * count * (size_t)gpu->grid.layout.mailbox_bytes,
                                   &gpu->far);
}

void tutti_cuda_far_mailboxes(const struct tutti_cuda_gpu *gpu, int rank,
                              struct tutti_kernel_peer *peer)
{
    tutti_cu_address at = gpu->far.address + pair_at(gpu, rank);

    peer->to = (uint8_t *)(uintptr_t)at;
    peer->from = (uint8_t *)(uintptr_t)(at + gpu->grid.layout.mailbox_bytes);
}

int tutti_cuda_far_begin(struct tutti_cuda_gpu *gpu)
{
    struct tutti_cuda_proxy_pair pairs[TUTTI_KERNEL_RANKS];
    struct tutti_cuda_proxy_args args = {.fabric = gpu->network.fabric,
                                         .layout = gpu->grid.layout, .pairs = pairs,
                                         .rank = gpu->args.rank, .left = &gpu->report->left,
                                         .fail = gpu->network.fail,
                                         .context = gpu->network.context};

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        uint8_t *at = (uint8_t *)gpu->far.host + pair_at(gpu, rank);

        if (tutti_cuda_is_far(gpu, gpu->args.rank, rank))
            pairs[args.npairs++] = (struct tutti_cuda_proxy_pair){
                .rank = rank, .outgoing = at, .incoming = at + gpu->grid.layout.mailbox_bytes};
    }
    return args.npairs > 0 ? tutti_cuda_proxy_begin(&args, &gpu->proxy) : TUTTI_OK;
}

void tutti_cuda_end_network(struct tutti_cuda_gpu *gpu, bool is_orderly)
{
    tutti_cuda_proxy_end(gpu->proxy, is_orderly);
    gpu->proxy = NULL;
}
