/* SPDX-License-Identifier: Apache-2.0
 * Which transport serves a pair of ranks. Both ends, and all others, must come to
 * the same answer, so only records and verdicts are looked at. */
#include "transport/fabric_private.h"

#include <stdio.h>
#include <string.h>

/* Best first. */
static const struct tutti_transport_ops *const transports[] = {
    &tutti_self_ops, &tutti_cma_ops, &tutti_shm_ops, &tutti_tcp_ops,
};
#define TRANSPORT_COUNT (sizeof transports / sizeof transports[0])

static bool may_both(const struct tutti_fabric *fabric, int a, int b, uint32_t use)
{
    return (fabric->records[a].uses & fabric->records[b].uses & use) != 0;
}

static bool same_host(const struct tutti_fabric *fabric, int a, int b)
{
    return tutti_identity_same_host(&fabric->records[a].identity, &fabric->records[b].identity);
}

static bool same_network(const struct tutti_fabric *fabric, int a, int b)
{
    return memcmp(fabric->records[a].identity.network, fabric->records[b].identity.network,
                  TUTTI_IDENTITY_BYTES) == 0;
}

bool tutti_route_shm(const struct tutti_fabric *fabric, int a, int b)
{
    /* settle has taken has_segment from all ranks of a host where one lacks it */
    return a != b && same_host(fabric, a, b) && may_both(fabric, a, b, TUTTI_USE_SHM) &&
           fabric->verdicts[a].has_segment && fabric->verdicts[b].has_segment;
}

bool tutti_route_cma(const struct tutti_fabric *fabric, int a, int b)
{
    if (!tutti_route_shm(fabric, a, b) || !may_both(fabric, a, b, TUTTI_USE_CMA))
        return false;
    return tutti_identity_same_process(&fabric->records[a].identity,
                                       &fabric->records[b].identity) ||
           (fabric->verdicts[a].can_read && fabric->verdicts[b].can_read);
}

bool tutti_route_tcp(const struct tutti_fabric *fabric, int a, int b)
{
    struct tutti_address addresses[TUTTI_MAX_CANDIDATES];

    /* The lower rank calls. */
    return a != b && may_both(fabric, a, b, TUTTI_USE_TCP) &&
           tutti_route_candidates(fabric, a < b ? a : b, a < b ? b : a, addresses) > 0;
}

/* ---- addresses ----------------------------------------------------------------------- */

/* The interface over which `record`'s host would reach a link-local neighbour. */
static uint32_t link_local_scope(const union tutti_record *record)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].family == 6 &&
            tutti_address_is_link_local(&record->candidates[i]))
            return record->candidates[i].scope;
    return 0;
}

static bool has_family(const union tutti_record *record, uint8_t family)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].family == family)
            return true;
    return false;
}

static bool is_reachable(const struct tutti_fabric *fabric, int from, int to,
                         struct tutti_address *address)
{
    const union tutti_record *caller = &fabric->records[from];

    if (!has_family(caller, address->family))
        return false;
    if (same_network(fabric, from, to))
        return true;
    if (address->is_loopback)
        return false;
    if (address->family == 6 && tutti_address_is_link_local(address)) {
        address->scope = link_local_scope(caller);
        return address->scope != 0;
    }
    return true;
}

size_t tutti_route_candidates(const struct tutti_fabric *fabric, int from, int to,
                              struct tutti_address ret_addresses[TUTTI_MAX_CANDIDATES])
{
    const union tutti_record *record = &fabric->records[to];
    size_t count = 0;

    if (record->port_be == 0)
        return 0;
    /* Loopback is last in a record; on one host it is the surest and the fastest. */
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < record->ncandidates; i++) {
            struct tutti_address address = record->candidates[i];

            if ((turn == 0) != (address.is_loopback != 0) ||
                !is_reachable(fabric, from, to, &address))
                continue;
            address.port_be = record->port_be;
            ret_addresses[count++] = address;
        }
    }
    return count;
}

/* ---- settling ------------------------------------------------------------------------ */

static const char *why_no_shm(const struct tutti_fabric *fabric, int a, int b)
{
    if (!same_host(fabric, a, b))
        return "not on one host";
    if (!may_both(fabric, a, b, TUTTI_USE_SHM))
        return "excluded by TUTTI_TRANSPORTS";
    if (fabric->verdicts[a].reason[0] != '\0')
        return fabric->verdicts[a].reason;
    return fabric->verdicts[b].reason[0] != '\0' ? fabric->verdicts[b].reason
                                                 : "another rank of the host could not";
}

/* The one of the two ranks that has said why it has no TCP; -1: neither. */
static int lacks_tcp(const struct tutti_fabric *fabric, int a, int b)
{
    const int ranks[] = {a, b};

    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if ((fabric->records[ranks[i]].uses & TUTTI_USE_TCP) == 0 &&
            fabric->records[ranks[i]].why_no_tcp[0] != '\0')
            return ranks[i];
    return -1;
}

static const char *why_no_tcp(const struct tutti_fabric *fabric, int a, int b)
{
    if (!may_both(fabric, a, b, TUTTI_USE_TCP))
        return "excluded by TUTTI_TRANSPORTS";
    return "no address of one that the other can reach (TUTTI_SOCKET_IFNAME, "
           "TUTTI_SOCKET_FAMILY)";
}

static int check_pair(const struct tutti_fabric *fabric, int a, int b)
{
    int lacking;

    if (a == b || tutti_route_shm(fabric, a, b) || tutti_route_tcp(fabric, a, b))
        return TUTTI_OK;
    lacking = lacks_tcp(fabric, a, b);
    if (lacking >= 0)
        return tutti_fail(!fabric->records[lacking].is_short ? TUTTI_ERR_USAGE
                          : lacking == fabric->rank          ? TUTTI_ERR_SYSTEM
                                                             : TUTTI_ERR_REMOTE,
                          "ranks %d and %d have no transport in common: shm: %s; cma: needs shm; "
                          "tcp: rank %d has none: %s",
                          a, b, why_no_shm(fabric, a, b), lacking,
                          fabric->records[lacking].why_no_tcp);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "ranks %d and %d have no transport in common: shm: %s; cma: needs shm; "
                      "tcp: %s",
                      a, b, why_no_shm(fabric, a, b), why_no_tcp(fabric, a, b));
}

int tutti_route_all(struct tutti_fabric *fabric)
{
    /* Pairs of others, too: their ranks will not come to the first operation. */
    for (int a = 0; a < fabric->nranks; a++)
        for (int b = a + 1; b < fabric->nranks; b++)
            TUTTI_TRY(check_pair(fabric, a, b));

    for (int peer = 0; peer < fabric->nranks; peer++)
        for (size_t i = 0; i < TRANSPORT_COUNT && fabric->routes[peer] == NULL; i++)
            if (transports[i]->reach(fabric, peer))
                fabric->routes[peer] = transports[i];
    return TUTTI_OK;
}

uint32_t tutti_member_index(const struct tutti_fabric *fabric, int rank)
{
    uint32_t low = 0, high = fabric->nmembers;

    while (low + 1 < high) {
        uint32_t middle = (low + high) / 2;

        if (fabric->members[middle] <= (uint32_t)rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}
