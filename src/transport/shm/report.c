/* SPDX-License-Identifier: Apache-2.0
 * Reports the shared memory of a host, in bytes for the memory report and in words for the log. */
#include "transport/shm/shm.h"

#include <stdio.h>
#include <string.h>

void tutti_shm_usage(const struct tutti_fabric *fabric, struct tutti_fabric_usage *usage)
{
    const struct tutti_shm *shm = tutti_shm_of(fabric);

    usage->private_bytes += sizeof *shm + (size_t)fabric->nranks * sizeof *shm->members;
    if (!shm->has_domain)
        return;
    usage->shared_bytes += tutti_shm_segment_touched(shm->segment);
    usage->reserved_bytes += shm->segment->header->total_bytes;
    usage->private_bytes += sizeof *shm->segment + tutti_lend_bytes(shm->lend);
    /* The arrays `ranks`, `pids` and `access` of the segment (segment.c). */
    usage->private_bytes +=
        shm->nmembers * (2 * sizeof(uint32_t) + sizeof(enum tutti_domain_access));
}

/* Returns true if some rank is in another process. A rank can store to the private memory of
 * another only within one process. */
static bool has_several_processes(const struct tutti_shm *shm)
{
    for (uint32_t i = 0; i < shm->nmembers; i++)
        if (shm->segment->access[i] != TUTTI_DOMAIN_ACCESS_STORE)
            return true;
    return false;
}

static void describe_cma(const struct tutti_fabric *fabric, const struct tutti_shm *shm,
                         char *ret_text, size_t size)
{
    snprintf(ret_text, size, "yes");
    if (!has_several_processes(shm)) {
        snprintf(ret_text, size, "not needed, the ranks are threads of one process");
        return;
    }
    for (uint32_t i = 0; i < shm->nmembers; i++)
        if (!tutti_part_is_used_by(fabric, &tutti_cma_ops, (int)shm->members[i])) {
            snprintf(ret_text, size, "no, excluded by TUTTI_TRANSPORTS on rank %u",
                     shm->members[i]);
            return;
        }
    if (shm->cma_denied_by >= 0) {
        snprintf(ret_text, size,
                 "no, the memory of rank %d cannot be read: %s; tutti-info says more",
                 shm->cma_denied_by,
                 shm->cma_error != 0 ? strerror(shm->cma_error) : "it is in another pid namespace");
        return;
    }
    for (uint32_t i = 0; i < shm->nmembers; i++)
        if (!tutti_shm_verdict(fabric, (int)shm->members[i])->can_read)
            snprintf(ret_text, size, "no, rank %u cannot read the others' memory", shm->members[i]);
}

void tutti_shm_report(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    const struct tutti_shm *shm = tutti_shm_of(fabric);
    char cma[256];

    if (shm == NULL) {
        snprintf(ret_text, size, "shared memory: none: excluded by TUTTI_TRANSPORTS");
        return;
    }
    if (!shm->has_domain) {
        const char *reason = tutti_shm_verdict(fabric, fabric->rank)->reason;

        snprintf(ret_text, size, "shared memory: none: %s",
                 reason[0] != '\0' ? reason : "another rank of this host could not use it");
        return;
    }
    describe_cma(fabric, shm, cma, sizeof cma);
    snprintf(ret_text, size,
             "shared memory: windows of %zu KiB a rank, FIFOs of %llu KiB a pair; CMA %s",
             shm->segment->domain.half_bytes * 2 >> 10,
             (unsigned long long)(shm->segment->header->fifo_bytes >> 10), cma);
}
