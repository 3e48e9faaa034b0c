/* SPDX-License-Identifier: Apache-2.0
 * Finds the addresses at which a rank may call another, from their records. */
#include "transport/tcp/tcp.h"

/* Returns the index of the interface over which the record's host would reach a link-local
 * neighbor; 0: none. */
static uint32_t link_local_scope(const struct tutti_tcp_record *record)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].family == 6 &&
            tutti_address_is_link_local(&record->candidates[i]))
            return record->candidates[i].scope;
    return 0;
}

static bool has_family(const struct tutti_tcp_record *record, uint8_t family)
{
    for (int i = 0; i < record->ncandidates; i++)
        if (record->candidates[i].family == family)
            return true;
    return false;
}

/* True if rank `from` can reach `address` of rank `to`. Sets the scope of a link-local address to
 * the interface of `from`. */
static bool is_reachable(const struct tutti_fabric *fabric, int from, int to,
                         struct tutti_address *address)
{
    const struct tutti_tcp_record *caller = tutti_tcp_record(fabric, from);

    if (!has_family(caller, address->family))
        return false;
    if (tutti_fabric_same_network(fabric, from, to))
        return true;
    if (address->is_loopback)
        return false;
    if (address->family == 6 && tutti_address_is_link_local(address)) {
        address->scope = link_local_scope(caller);
        return address->scope != 0;
    }
    return true;
}

size_t tutti_tcp_candidates(const struct tutti_fabric *fabric, int from, int to,
                            struct tutti_address ret_addresses[TUTTI_MAX_CANDIDATES])
{
    const struct tutti_tcp_record *record = tutti_tcp_record(fabric, to);
    size_t count = 0;

    if (record->port_be == 0)
        return 0;
    /* The loopback address is last in a record, but first here, because it is the most reliable and
     * the fastest on one host. So the first pass takes only loopback addresses. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < record->ncandidates; i++) {
            struct tutti_address address = record->candidates[i];

            if ((pass == 0) != (address.is_loopback != 0) ||
                !is_reachable(fabric, from, to, &address))
                continue;
            address.port_be = record->port_be;
            ret_addresses[count++] = address;
        }
    }
    return count;
}
