/* SPDX-License-Identifier: Apache-2.0
 * Determines the hosts and cells of all ranks from their records. */
#include "transport/fabric_private.h"

#include <stdlib.h>
#include <string.h>

/* The same as tutti_fabric_same_host, for the unsigned ranks in this file. */
static bool same_host(const struct tutti_fabric *fabric, uint32_t a, uint32_t b)
{
    return tutti_fabric_same_host(fabric, (int)a, (int)b);
}

uint32_t tutti_fabric_hosts(const struct tutti_fabric *fabric, uint32_t *ret_host)
{
    uint32_t nhosts = 0;

    for (uint32_t rank = 0; rank < (uint32_t)fabric->nranks; rank++) {
        /* Find an earlier rank on the same host. The rank before is tried first, because it usually
         * is one. */
        uint32_t earlier = rank > 0 && same_host(fabric, rank, rank - 1) ? rank - 1 : 0;

        while (earlier < rank && !same_host(fabric, rank, earlier))
            earlier++;
        ret_host[rank] = earlier < rank ? ret_host[earlier] : nhosts++;
    }
    return nhosts;
}

uint32_t tutti_fabric_cores(const struct tutti_fabric *fabric)
{
    uint32_t ncores = 0;

    for (uint32_t rank = 0; rank < (uint32_t)fabric->nranks; rank++) {
        const struct tutti_identity *identity = &fabric->records[rank].identity;
        bool is_counted = !same_host(fabric, rank, 0); /* its cores are not to be added */

        /* Each set of cores is added once. Different sets are assumed to be disjoint. */
        for (uint32_t other = 0; other < rank && !is_counted; other++)
            is_counted = fabric->records[other].identity.cores_hash == identity->cores_hash &&
                         same_host(fabric, other, 0);
        ncores += is_counted ? 0 : identity->ncores;
    }
    return ncores;
}

uint32_t tutti_fabric_mbits(const struct tutti_fabric *fabric)
{
    uint32_t least = fabric->records[0].mbits;
    bool is_one_host = true;

    for (uint32_t rank = 1; rank < (uint32_t)fabric->nranks; rank++) {
        is_one_host = is_one_host && same_host(fabric, rank, 0);
        if (fabric->records[rank].mbits < least)
            least = fabric->records[rank].mbits;
    }
    return is_one_host ? 0 : least;
}

/* ---- cells --------------------------------------------------------------------------- */

/* Returns the cell of a rank in the division `level` of its host. TUTTI_CELL_LEVELS is the division
 * in which each host is one cell. */
static int32_t cell_at(const struct tutti_fabric *fabric, uint32_t rank, int level)
{
    return level < TUTTI_CELL_LEVELS ? fabric->records[rank].cells[level] : 0;
}

/* Returns the last rank before `rank` on its host; `rank` itself means that there is none. */
static uint32_t previous_on_host(const uint32_t *host, uint32_t rank)
{
    uint32_t before = rank;

    while (before > 0 && host[before - 1] != host[rank])
        before--;
    return before > 0 ? before - 1 : rank;
}

/* Finds the level at which each host is divided: the first level at which two of its ranks are in
 * different cells. If a cell is not known at that level, the host is not divided, and its level is
 * TUTTI_CELL_LEVELS. ret_level is indexed by host. */
static void find_levels(const struct tutti_fabric *fabric, const uint32_t *host, uint8_t *ret_level)
{
    uint32_t nranks = (uint32_t)fabric->nranks;

    for (uint32_t rank = 0; rank < nranks; rank++)
        ret_level[rank] = TUTTI_CELL_LEVELS; /* for each host; there are at most `nranks` */
    for (int level = TUTTI_CELL_LEVELS - 1; level >= 0; level--)
        for (uint32_t rank = 0; rank < nranks; rank++) {
            uint32_t previous = previous_on_host(host, rank);

            if (cell_at(fabric, rank, level) != cell_at(fabric, previous, level))
                ret_level[host[rank]] = (uint8_t)level;
        }
    for (uint32_t rank = 0; rank < nranks; rank++)
        if (cell_at(fabric, rank, ret_level[host[rank]]) < 0)
            ret_level[host[rank]] = TUTTI_CELL_LEVELS;
}

int tutti_fabric_cells(const struct tutti_fabric *fabric, const uint32_t *host, uint32_t *ret_cell,
                       uint32_t *ret_ncells)
{
    uint32_t nranks = (uint32_t)fabric->nranks, ncells = 0, nhosts = 0;
    uint8_t *level = malloc(nranks);

    if (level == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the cells of %u ranks", nranks);
    find_levels(fabric, host, level);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        int at = level[host[rank]];
        uint32_t after = rank; /* the rank after the last earlier one in the same cell; 0: none */

        while (after > 0 && (host[after - 1] != host[rank] ||
                             cell_at(fabric, after - 1, at) != cell_at(fabric, rank, at)))
            after--;
        ret_cell[rank] = after > 0 ? ret_cell[after - 1] : ncells++;
        nhosts = host[rank] >= nhosts ? host[rank] + 1 : nhosts;
    }
    free(level);
    *ret_ncells = ncells > nhosts ? ncells : 0;
    return TUTTI_OK;
}
