/* SPDX-License-Identifier: Apache-2.0
 * Chooses the transport that serves a pair of ranks. All ranks must make the same choice for each
 * pair. So the choice uses only records and verdicts, which are the same on all ranks. */
#include "transport/fabric_private.h"

#include <stdio.h>

const struct tutti_transport_ops *tutti_route_find(const struct tutti_fabric *fabric, int a, int b)
{
    uint32_t both = fabric->records[a].uses & fabric->records[b].uses;

    for (uint32_t i = 0; i < fabric->nparts; i++)
        if ((both >> i & 1) != 0 && fabric->parts[i].ops->reach(fabric, a, b))
            return fabric->parts[i].ops;
    return NULL;
}

/* ---- a pair without a route ---------------------------------------------------------- */

/* Appends the reason why transport `index` cannot serve the pair, for instance "<name>: not on one
 * host". Returns the new length of `text`, which is less than `size`. */
static size_t explain(const struct tutti_fabric *fabric, uint32_t index, int a, int b, char *text,
                      size_t length, size_t size)
{
    const struct tutti_transport_ops *ops = fabric->parts[index].ops;
    uint32_t both = fabric->records[a].uses & fabric->records[b].uses;
    char why[512] = "";
    int more;

    if (ops->explain != NULL)
        ops->explain(fabric, a, b, why, sizeof why);
    if (why[0] == '\0')
        snprintf(why, sizeof why, "%s",
                 (both >> index & 1) == 0 ? "excluded by TUTTI_TRANSPORTS"
                                          : "not between these ranks");
    more =
        snprintf(text + length, size - length, "%s%s: %s", length > 0 ? "; " : "", ops->name, why);
    length += (size_t)more;
    return length < size ? length : size - 1;
}

/* Returns the error code for a pair without a transport. If the host of a rank lacks descriptors or
 * memory for a transport, that rank is at fault. Otherwise the settings are wrong, and the code is
 * TUTTI_ERR_USAGE. */
static int fault_of(const struct tutti_fabric *fabric, int a, int b)
{
    if (fabric->records[a].lacks == 0 && fabric->records[b].lacks == 0)
        return TUTTI_ERR_USAGE;
    return (fabric->records[a].lacks != 0 ? a : b) == fabric->rank ? TUTTI_ERR_SYSTEM
                                                                   : TUTTI_ERR_REMOTE;
}

static int fail_pair(const struct tutti_fabric *fabric, int a, int b)
{
    char text[TUTTI_MESSAGE_BYTES - 64] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (!fabric->parts[i].ops->is_always_on)
            length = explain(fabric, i, a, b, text, length, sizeof text);
    return tutti_fail(fault_of(fabric, a, b), "ranks %d and %d have no transport in common: %s", a,
                      b, text);
}

/* ---- settling ------------------------------------------------------------------------ */

/* Records the transport that serves the peer, and marks its part as used. */
static void take_route(struct tutti_fabric *fabric, int peer)
{
    fabric->routes[peer] = tutti_route_find(fabric, fabric->rank, peer);
    for (uint32_t i = 0; i < fabric->nparts; i++)
        fabric->parts[i].is_used |= fabric->parts[i].ops == fabric->routes[peer];
}

int tutti_route_all(struct tutti_fabric *fabric)
{
    /* The loop checks the pairs of other ranks as well. If one of these pairs has no transport, its
     * ranks fail, and this rank would wait for them in its first operation. */
    for (int a = 0; a < fabric->nranks; a++)
        for (int b = a + 1; b < fabric->nranks; b++)
            if (tutti_route_find(fabric, a, b) == NULL)
                return fail_pair(fabric, a, b);

    for (int peer = 0; peer < fabric->nranks; peer++)
        take_route(fabric, peer);
    return TUTTI_OK;
}
