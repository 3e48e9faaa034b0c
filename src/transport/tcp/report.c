/* SPDX-License-Identifier: Apache-2.0
 * Describes the addresses of a rank as text, for an operator. */
#include "transport/tcp/tcp.h"

#include "base/interface.h"

#include <stdio.h>

enum { MOST_INTERFACES = 64 };

static bool same_address(const struct tutti_address *one, const struct tutti_address *other)
{
    return one->family == other->family && one->scope == other->scope &&
           memcmp(one->bytes, other->bytes, sizeof one->bytes) == 0;
}

/* Returns the interface that has the address, or NULL if there is none. */
static const struct tutti_interface *find(const struct tutti_interface *interfaces, size_t count,
                                          const struct tutti_address *address)
{
    for (size_t i = 0; i < count; i++)
        if (same_address(&interfaces[i].address, address))
            return &interfaces[i];
    return NULL;
}

/* Writes one address, such as "eth0 10.0.0.1:4711 (25 Gbit/s)". Returns the length of the text. */
static int describe(char *text, size_t size, const struct tutti_interface *interface,
                    const struct tutti_address *address)
{
    char formatted[TUTTI_ADDRESS_TEXT_BYTES], rate[TUTTI_INTERFACE_RATE_BYTES] = "";
    bool has_rate = interface != NULL && interface->mbits > 0;

    if (has_rate)
        tutti_interface_format_rate(interface->mbits, rate);
    return snprintf(text, size, "%s %s%s%s%s", interface != NULL ? interface->name : "?",
                    tutti_address_format(address, formatted), has_rate ? " (" : "", rate,
                    has_rate ? ")" : "");
}

void tutti_tcp_report(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    const struct tutti_tcp_record *mine = tutti_tcp_record(fabric, fabric->rank);
    struct tutti_interface interfaces[MOST_INTERFACES];
    size_t count = 0, length;

    length = (size_t)snprintf(ret_text, size, "addresses of rank %d:%s", fabric->rank,
                              mine->ncandidates == 0 ? " none" : "");
    if (tutti_interface_list(interfaces, MOST_INTERFACES, &count) != TUTTI_OK)
        count = 0; /* the addresses are then described without their interfaces */
    for (int i = 0; i < mine->ncandidates && length < size; i++) {
        struct tutti_address address = mine->candidates[i];

        address.port_be = mine->port_be;
        length += (size_t)snprintf(ret_text + length, size - length, i > 0 ? ", " : " ");
        if (length < size)
            length += (size_t)describe(ret_text + length, size - length,
                                       find(interfaces, count, &address), &address);
    }
}
