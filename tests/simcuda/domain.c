/* SPDX-License-Identifier: Apache-2.0 */
#include "simcuda/domain.h"
#include "simcuda/sim_kernel.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + TUTTI_KERNEL_LINE - 1) / TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;
}

static void *zeroed(size_t bytes)
{
    void *at = aligned_alloc(TUTTI_KERNEL_LINE, rounded(bytes));

    assert(at != NULL);
    return memset(at, 0, rounded(bytes));
}

static uint64_t or_else(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

static void lay_out(struct tutti_kernel_layout *layout, uint32_t nranks,
                    const struct domain_sizes *sizes)
{
    *layout = (struct tutti_kernel_layout){
        .nranks = nranks,
        .channels = (uint32_t)or_else(sizes->channels, 1),
        .slots = (uint32_t)or_else(sizes->slots, 2),
        .slot_bytes = (uint32_t)or_else(sizes->slot_bytes, 256),
        .flagged_bytes = sizes->flagged_bytes,
        .ll_bytes = or_else(sizes->ll_bytes, 16384),
        .ll128_bytes = or_else(sizes->ll128_bytes, 16384),
        .window_bytes = or_else(sizes->window_bytes, 16384),
        .ll_at = rounded(sizeof(struct tutti_kernel_mail)),
    };
    layout->ll128_at = layout->ll_at + 2 * layout->ll_bytes;
    layout->fifo_at = layout->ll128_at + 2 * layout->ll128_bytes;
    layout->fifo_stride = rounded(TUTTI_KERNEL_FIFO_BYTES(layout));
    layout->mailbox_bytes = layout->fifo_at + layout->channels * layout->fifo_stride;
}

static void rank_init(struct domain *domain, uint32_t rank, size_t arena_bytes)
{
    const struct tutti_kernel_layout *layout = &domain->layout;
    struct domain_rank *own = &domain->ranks[rank];

    own->mailboxes = zeroed(layout->nranks * layout->mailbox_bytes);
    own->windows = zeroed(2 * layout->window_bytes);
    own->counters = zeroed(TUTTI_KERNEL_COUNTERS_BYTES(layout->channels, layout->nranks));
    own->report = zeroed(sizeof *own->report);
    own->peers = zeroed(layout->nranks * sizeof *own->peers);
    own->arena_bytes = arena_bytes;
    own->arena = zeroed(arena_bytes);
    own->arena_used = 0;
    own->domain = zeroed(sizeof *own->domain);
    *own->domain = (struct tutti_kernel_domain){
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
    const struct tutti_kernel_layout *layout = &domain->layout;

    memset(domain, 0, sizeof *domain);
    domain->nranks = nranks;
    lay_out(&domain->layout, nranks, sizes);
    for (uint32_t rank = 0; rank < nranks; rank++)
        rank_init(domain, rank, or_else(sizes->arena_bytes, 1 << 20));
    for (uint32_t rank = 0; rank < nranks; rank++)
        for (uint32_t peer = 0; peer < nranks; peer++) {
            struct tutti_kernel_peer *seen = &domain->ranks[rank].peers[peer];

            seen->to = domain->ranks[peer].mailboxes + rank * layout->mailbox_bytes;
            seen->from = domain->ranks[rank].mailboxes + peer * layout->mailbox_bytes;
            seen->window = domain->ranks[peer].windows;
            seen->maps[DOMAIN_MAP] = (uintptr_t)domain->ranks[peer].arena;
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

/* ---- launches -------------------------------------------------------------------------------- */

struct row {
    pthread_t thread;
    const char *kernel;
    struct domain_grid grid;
    const struct tutti_kernel_launch *launches;
    uint32_t nlaunches;
    uint64_t seed; /* 0: never waits */
};

static void *run_row(void *context)
{
    struct row *row = context;

    for (uint32_t i = 0; i < row->nlaunches; i++) {
        row->seed = row->seed * UINT64_C(6364136223846793005);
        for (uint64_t turns = row->seed >> 60; turns > 8; turns--)
            sched_yield();
        sim_kernel_run(row->kernel, row->grid.blocks, row->grid.threads, &row->launches[i]);
    }
    return NULL;
}

static void run_rows(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                     const struct tutti_kernel_launch *launches, uint32_t nlaunches, uint64_t seed)
{
    struct row rows[TUTTI_KERNEL_RANKS];

    for (uint32_t rank = 0; rank < domain->nranks; rank++) {
        int failed;

        rows[rank] = (struct row){.kernel = kernel, .grid = grids[rank],
                                  .launches = launches + rank * nlaunches,
                                  .nlaunches = nlaunches, .seed = seed * (2 * rank + 1)};
        failed = pthread_create(&rows[rank].thread, NULL, run_row, &rows[rank]);
        assert(failed == 0);
    }
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        pthread_join(rows[rank].thread, NULL);
}

static struct tutti_kernel_launch *make_launches(struct domain *domain,
                                                 const struct tutti_kernel_work *works,
                                                 uint32_t nworks, uint32_t nlaunches,
                                                 uint64_t deadline_ns)
{
    struct tutti_kernel_launch *launches = zeroed(domain->nranks * nlaunches * sizeof *launches);

    for (uint32_t i = 0; i < domain->nranks * nlaunches; i++)
        launches[i] = (struct tutti_kernel_launch){
            .domain = domain->ranks[i / nlaunches].domain,
            .deadline_ns = deadline_ns,
            .nworks = nworks,
            .more = works + i * nworks + 1,
            .first = works[i * nworks],
        };
    return launches;
}

void domain_run(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                const struct tutti_kernel_work *works, uint32_t nworks, uint64_t deadline_ns)
{
    struct tutti_kernel_launch *launches = make_launches(domain, works, nworks, 1, deadline_ns);

    run_rows(domain, kernel, grids, launches, 1, 0);
    free(launches);
}

void domain_run_rows(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                     const struct tutti_kernel_work *works, uint32_t nworks, uint32_t nlaunches,
                     uint64_t seed)
{
    struct tutti_kernel_launch *launches = make_launches(domain, works, nworks, nlaunches, 0);

    run_rows(domain, kernel, grids, launches, nlaunches, seed);
    free(launches);
}

static void *abort_all(void *context)
{
    struct domain *domain = context;

    for (uint32_t rank = 0; rank < domain->layout.nranks; rank++)
        __atomic_store_n(&domain->ranks[rank].report->abort, 1, __ATOMIC_RELEASE);
    return NULL;
}

pthread_t domain_abort(struct domain *domain)
{
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, abort_all, domain);

    assert(failed == 0);
    return thread;
}

bool domain_is_fine(const struct domain *domain)
{
    for (uint32_t rank = 0; rank < domain->nranks; rank++)
        if (domain->ranks[rank].report->fault != TUTTI_KERNEL_FINE)
            return false;
    return true;
}
