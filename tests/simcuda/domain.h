/* SPDX-License-Identifier: Apache-2.0
 * The ranks of a domain in plain memory: mailboxes, windows, counters and reports as a host would
 * make them, and launches of all ranks at the same time on the machine of sim_kernel.h. */
#ifndef TUTTI_TESTS_SIMCUDA_DOMAIN_H
#define TUTTI_TESTS_SIMCUDA_DOMAIN_H

#include "device/cuda/work.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of a rank that its peers have mapped: they reach it by this map as well as by its
 * address. */
enum { DOMAIN_MAP = 1 };

/* The number of ranks up to which whole matrices are run. The thread sanitizer makes each run twenty
 * times slower, and kernels that race do so with 4 ranks. */
#ifdef __SANITIZE_THREAD__
enum { DOMAIN_MATRIX_RANKS = 4 };
#else
enum { DOMAIN_MATRIX_RANKS = 8 };
#endif

struct domain_rank {
    struct tutti_kernel_domain *domain; /* what launches are given */
    struct tutti_kernel_peer *peers;
    struct tutti_kernel_counters *counters;
    struct tutti_kernel_report *report;
    uint8_t *mailboxes;              /* that it reads, one for each rank */
    uint8_t *windows;
    uint8_t *arena;                  /* for buffers, from its begin on */
    size_t arena_used, arena_bytes;
};

struct domain {
    uint32_t nranks;
    struct tutti_kernel_layout layout;
    struct domain_rank ranks[TUTTI_KERNEL_RANKS];
};

/* The memory that a domain reserves. 0 means a small default. */
struct domain_sizes {
    uint32_t channels, slots, slot_bytes, flagged_bytes;
    uint64_t ll_bytes, ll128_bytes, window_bytes, arena_bytes;
};

void domain_init(struct domain *domain, uint32_t nranks, const struct domain_sizes *sizes);
void domain_fini(struct domain *domain);

/* Acts as if all ranks had completed that many works. */
void domain_set_epoch(struct domain *domain, uint64_t epoch);

/* So many bytes of the rank's arena; taken back, all together. */
uint8_t *domain_take(struct domain *domain, uint32_t rank, size_t bytes);
void domain_take_back(struct domain *domain);

/* How a rank launches. */
struct domain_grid {
    uint32_t blocks, threads;
};

/* Each rank runs its works, `nworks` from works[rank * nworks] on, in one launch of `kernel`. All
 * at the same time; returns when all have ended. */
void domain_run(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                const struct tutti_kernel_work *works, uint32_t nworks, uint64_t deadline_ns);

/* The same, but each rank has `nlaunches` of such launches, one after the other, and does not wait
 * for others between them but dawdles now and then. Works of rank r's launch i begin at works[(r *
 * nlaunches + i) * nworks]. */
void domain_run_rows(struct domain *domain, const char *kernel, const struct domain_grid *grids,
                     const struct tutti_kernel_work *works, uint32_t nworks, uint32_t nlaunches,
                     uint64_t seed);

/* All ranks' hosts tell their kernels to end, on a thread that the caller joins: meanwhile these
 * may begin, or wait. */
pthread_t domain_abort(struct domain *domain);

/* True if the reports of all ranks are clean. */
bool domain_is_fine(const struct domain *domain);

#endif
