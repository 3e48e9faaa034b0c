/* SPDX-License-Identifier: Apache-2.0
 * A fabric in words, for the log and for users who ask where ranks are. */
#include "transport/fabric_private.h"

#include "base/interface.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tutti_fabric_host_name(const struct tutti_fabric *fabric, int rank)
{
    return fabric->records[rank].host_name;
}

int tutti_fabric_pid(const struct tutti_fabric *fabric, int rank)
{
    return fabric->records[rank].identity.pid;
}

/* Append to `text`, which has `length` of `size` bytes; gives the new length, at most size - 1. */
static size_t add(char *text, size_t length, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t add(char *text, size_t length, size_t size, const char *format, ...)
{
    va_list args;
    int more;

    va_start(args, format);
    more = vsnprintf(text + length, size - length, format, args);
    va_end(args);
    length += more > 0 ? (size_t)more : 0;
    return length < size ? length : size - 1;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The cost grows with the square of the ranks that are looked at. */
enum { MOST_RANKS = 64 };

enum { WITHIN_PROCESS, WITHIN_HOST, BETWEEN_HOSTS, CLASSES };
static const char *const class_names[CLASSES] = {"within a process", "within a host",
                                                 "between hosts"};
static const char *const way_names[] = {"cma", "shm", "tcp", "none"};
enum { WAYS = sizeof way_names / sizeof *way_names };

static int class_of(const struct tutti_fabric *fabric, int a, int b)
{
    const struct tutti_identity *one = &fabric->records[a].identity;
    const struct tutti_identity *other = &fabric->records[b].identity;

    if (tutti_identity_same_process(one, other))
        return WITHIN_PROCESS;
    return tutti_identity_same_host(one, other) ? WITHIN_HOST : BETWEEN_HOSTS;
}

/* In the order in which transports are preferred. */
static int way_of(const struct tutti_fabric *fabric, int a, int b)
{
    if (tutti_route_cma(fabric, a, b))
        return 0;
    if (tutti_route_shm(fabric, a, b))
        return 1;
    return tutti_route_tcp(fabric, a, b) ? 2 : 3;
}

void tutti_fabric_describe_pairs(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    bool is_used[CLASSES][WAYS] = {{false}};
    size_t length = 0;

    for (int a = 0; a < fabric->nranks && a < MOST_RANKS; a++)
        for (int b = a + 1; b < fabric->nranks; b++)
            is_used[class_of(fabric, a, b)][way_of(fabric, a, b)] = true;
    snprintf(ret_text, size, "none, there is one rank");
    for (int class = 0; class < CLASSES; class++) {
        bool is_first = true;

        for (int way = 0; way < WAYS; way++) {
            if (!is_used[class][way])
                continue;
            if (is_first)
                length = add(ret_text, length, size, "%s%s by %s", length > 0 ? ", " : "",
                             class_names[class], way_names[way]);
            else
                length = add(ret_text, length, size, " or %s", way_names[way]);
            is_first = false;
        }
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool has_several_processes(const struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nmembers; i++)
        if (fabric->segment->access[i] != TUTTI_ACCESS_STORE)
            return true;
    return false;
}

static size_t add_cma(const struct tutti_fabric *fabric, char *text, size_t length, size_t size)
{
    if (!has_several_processes(fabric))
        return add(text, length, size, "; CMA not needed, the ranks are threads of one process");
    for (uint32_t i = 0; i < fabric->nmembers; i++)
        if ((fabric->records[fabric->members[i]].uses & TUTTI_USE_CMA) == 0)
            return add(text, length, size, "; CMA no, excluded by TUTTI_TRANSPORTS on rank %u",
                       fabric->members[i]);
    if (fabric->cma_denied_by >= 0)
        return add(text, length, size, "; CMA no, the memory of rank %d cannot be read: %s; "
                   "tutti-info says more", fabric->cma_denied_by,
                   fabric->cma_error != 0 ? strerror(fabric->cma_error)
                                          : "it is in another pid namespace");
    for (uint32_t i = 0; i < fabric->nmembers; i++)
        if (!fabric->verdicts[fabric->members[i]].can_read)
            return add(text, length, size, "; CMA no, rank %u cannot read the others' memory",
                       fabric->members[i]);
    return add(text, length, size, "; CMA yes");
}

void tutti_fabric_describe_memory(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    const union tutti_verdict *mine = &fabric->verdicts[fabric->rank];
    size_t length;

    if ((fabric->mine.uses & TUTTI_USE_SHM) == 0) {
        snprintf(ret_text, size, "none: excluded by TUTTI_TRANSPORTS");
        return;
    }
    if (!fabric->has_domain) {
        snprintf(ret_text, size, "none: %s",
                 mine->reason[0] != '\0' ? mine->reason : "another rank of this host could not");
        return;
    }
    length = add(ret_text, 0, size, "windows of %zu KiB a rank, FIFOs of %llu KiB a pair",
                 fabric->segment->domain.half_bytes * 2 >> 10,
                 (unsigned long long)(fabric->segment->header->fifo_bytes >> 10));
    add_cma(fabric, ret_text, length, size);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool same_address(const struct tutti_address *one, const struct tutti_address *other)
{
    return one->family == other->family && one->scope == other->scope &&
           memcmp(one->bytes, other->bytes, sizeof one->bytes) == 0;
}

static const struct tutti_interface *find(const struct tutti_interface *interfaces, size_t count,
                                          const struct tutti_address *address)
{
    for (size_t i = 0; i < count; i++)
        if (same_address(&interfaces[i].address, address))
            return &interfaces[i];
    return NULL;
}

void tutti_fabric_describe_addresses(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    const union tutti_record *mine = &fabric->mine;
    struct tutti_interface interfaces[64];
    size_t count = 0, length = 0;

    if (fabric->nranks == 1) {
        snprintf(ret_text, size, "none needed");
        return;
    }
    snprintf(ret_text, size, "none");
    if (tutti_interface_list(interfaces, sizeof interfaces / sizeof *interfaces, &count) !=
        TUTTI_OK)
        count = 0;
    for (int i = 0; i < mine->ncandidates; i++) {
        struct tutti_address address = mine->candidates[i];
        const struct tutti_interface *interface = find(interfaces, count, &address);
        char text[TUTTI_ADDRESS_TEXT_BYTES], rate[TUTTI_INTERFACE_RATE_BYTES];

        address.port_be = mine->port_be;
        length = add(ret_text, length, size, "%s%s %s", length > 0 ? ", " : "",
                     interface != NULL ? interface->name : "?",
                     tutti_address_format(&address, text));
        if (interface != NULL && interface->mbits > 0)
            length = add(ret_text, length, size, " (%s)",
                         tutti_interface_format_rate(interface->mbits, rate));
    }
}
