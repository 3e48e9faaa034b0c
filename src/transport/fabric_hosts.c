/* SPDX-License-Identifier: Apache-2.0
 * Who lives with whom, from the records of all ranks. */
#include "transport/fabric_private.h"

static bool same_host(const struct tutti_fabric *fabric, uint32_t a, uint32_t b)
{
    return tutti_identity_same_host(&fabric->records[a].identity, &fabric->records[b].identity);
}

uint32_t tutti_fabric_hosts(const struct tutti_fabric *fabric, uint32_t *ret_host)
{
    uint32_t nhosts = 0;

    for (uint32_t rank = 0; rank < (uint32_t)fabric->nranks; rank++) {
        uint32_t like = rank > 0 && same_host(fabric, rank, rank - 1) ? rank - 1 : 0;

        while (like < rank && !same_host(fabric, rank, like))
            like++;
        ret_host[rank] = like < rank ? ret_host[like] : nhosts++;
    }
    return nhosts;
}

bool tutti_fabric_shares_hosts(const struct tutti_fabric *fabric, const uint32_t *host)
{
    /* A rank alone on its host has no segment, and needs none. */
    for (int rank = 1; rank < fabric->nranks; rank++)
        for (int other = rank - 1; other >= 0; other--)
            if (host[other] == host[rank]) {
                if (!tutti_route_shm(fabric, other, rank))
                    return false;
                break;
            }
    return true;
}

uint32_t tutti_fabric_cores(const struct tutti_fabric *fabric)
{
    uint32_t ncores = 0;

    for (uint32_t rank = 0; rank < (uint32_t)fabric->nranks; rank++) {
        const struct tutti_identity *identity = &fabric->records[rank].identity;
        bool is_counted = !same_host(fabric, rank, 0);

        /* Ranks bound to different sets of cores: taken as disjoint. */
        for (uint32_t other = 0; other < rank && !is_counted; other++)
            is_counted = fabric->records[other].identity.cores_hash == identity->cores_hash &&
                         same_host(fabric, other, 0);
        ncores += is_counted ? 0 : identity->ncores;
    }
    return ncores;
}
