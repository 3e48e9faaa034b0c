/* SPDX-License-Identifier: Apache-2.0 */
#include "simcuda/domain.h"
#include "simcuda/sim_kernel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + TUTTI_GPU_LINE - 1) / TUTTI_GPU_LINE * TUTTI_GPU_LINE;
}

static void *zeroed(size_t bytes)
{
    void *at = aligned_alloc(TUTTI_GPU_LINE, rounded(bytes));

    assert(at != NULL);
    return memset(at, 0, rounded(bytes));
}

static uint64_t or_else(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

static void lay_out(struct tutti_gpu_layout *layout, uint32_t nranks,
                    const struct domain_sizes *sizes)
{
    *layout = (struct tutti_gpu_layout){
        .nranks = nranks,
        .channels = (uint32_t)or_else(sizes->channels, 1),
        .slots = (uint32_t)or_else(sizes->slots, 2),
        .slot_bytes = (uint32_t)or_else(sizes->slot_bytes, 256),
        .flagged_bytes = sizes->flagged_bytes,
        .ll_bytes = or_else(sizes->ll_bytes, 16384),
        .ll128_bytes = or_else(sizes->ll128_bytes, 16384),
        .window_bytes = or_else(sizes->window_bytes, 16384),
        .ll_at = rounded(sizeof(struct tutti_gpu_mail)),
    };
    layout->ll128_at = layout->ll_at + 2 * layout->ll_bytes;
    layout->fifo_at = layout->ll128_at + 2 * layout->ll128_bytes;
    layout->fifo_stride = rounded(TUTTI_GPU_FIFO_BYTES(layout));
    layout->mailbox_bytes = layout->fifo_at + layout->channels * layout->fifo_stride;
}

static void rank_init(struct domain *domain, uint32_t rank, size_t arena_bytes)
{
    const struct tutti_gpu_layout *layout = &domain->layout;
    struct domain_rank *own = &domain->ranks[rank];

    own->mailboxes = zeroed(layout->nranks * layout->mailbox_bytes);
    own->windows = zeroed(2 * layout->window_bytes);
    own->counters = zeroed(TUTTI_GPU_COUNTERS_BYTES(layout->channels, layout->nranks));
    own->report = zeroed(sizeof *own->report);
    own->peers = zeroed(layout->nranks * sizeof *own->peers);
    own->arena_bytes = arena_bytes;
    own->arena = zeroed(arena_bytes);
    own->arena_used = 0;
    own->domain = zeroed(sizeof *own->domain);
    *own->domain = (struct tutti_gpu_domain){
        .layout = *layout,
        .nranks = layout->nranks,
        .rank = rank,
        .peers = own->peers,
        .counters = own->counters,
        .report = own->report,
    };
}

void domain_init(struct domain *domain, uint32_t nranks, const struct domain_sizes *sizes)
{
    const struct tutti_gpu_layout *layout = &domain->layout;

    memset(domain, 0, sizeof *domain);
    domain->nranks = nranks;
    lay_out(&domain->layout, nranks, sizes);
    for (uint32_t rank = 0; rank < nranks; rank++)
        rank_init(domain, rank, or_else(sizes->arena_bytes, 1 << 20));
    for (uint32_t rank = 0; rank < nranks; rank++)
        for (uint32_t peer = 0; peer < nranks; peer++) {
            struct tutti_gpu_peer *seen = &domain->ranks[rank].peers[peer];

            seen->to = domain->ranks[peer].mailboxes + rank * layout->mailbox_bytes;
            seen->from = domain->ranks[rank].mailboxes + peer * layout->mailbox_bytes;
            seen->window = domain->ranks[peer].windows;
            seen->maps[DOMAIN_MAP] = (uintptr_t)domain->ranks[peer].arena;
            seen->is_line_safe = 1;
        }
}

void domain_fini(struct domain *domain)
{
    for (uint32_t rank = 0; rank < domain->nranks; rank++) {
        struct domain_rank *own = &domain->ranks[rank];

        free(own->mailboxes);
        free(own->windows);
        free(own->counters);
        free(own->report);
        free(own->peers);
        free(own->arena);
        free(own->domain);
    }
    domain->nranks = 0;
}

void domain_set_epoch(struct domain *domain, uint64_t epoch)
{
    for (uint32_t rank = 0; rank < domain->nranks; rank++) {
        domain->ranks[rank].counters->epoch = epoch;
        domain->ranks[rank].counters->heard_epoch = epoch;
    }
}

uint8_t *domain_take(struct domain *domain, uint32_t rank, size_t bytes)
{
    struct domain_rank *own = &domain->ranks[rank];
    uint8_t *at = own->arena + own->arena_used;

    own->arena_used += rounded(bytes);
    assert(own->arena_used <= own->arena_bytes);
    return at;
}

void domain_take_back(struct domain *domain)
{
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        domain->ranks[rank].arena_used = 0;
}

void domain_run(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                const struct tutti_gpu_work *works, uint32_t nworks, uint64_t deadline_ns)
{
    struct tutti_gpu_launch *launches = zeroed(domain->nranks * sizeof *launches);
    struct sim_kernel_call calls[TUTTI_GPU_RANKS];

    for (uint32_t rank = 0; rank < domain->nranks; rank++) {
        launches[rank] = (struct tutti_gpu_launch){
            .domain = domain->ranks[rank].domain,
            .deadline_ns = deadline_ns,
            .nworks = nworks,
            .more = works + rank * nworks + 1,
            .first = works[rank * nworks],
        };
        calls[rank] = (struct sim_kernel_call){kernel, grids[rank].blocks, grids[rank].threads,
                                               &launches[rank]};
    }
    sim_kernel_run_all(calls, domain->nranks);
    free(launches);
}

bool domain_is_fine(const struct domain *domain)
{
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        if (domain->ranks[rank].report->fault != TUTTI_GPU_FINE)
            return false;
    return true;
}
