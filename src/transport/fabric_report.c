/* SPDX-License-Identifier: Apache-2.0
 * Describes a fabric in words, for the log and for users who ask where ranks are. */
#include "transport/fabric_private.h"

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

/* Appends to `text`, which has `length` bytes of at most `size`. Returns the new length, at most
 * size - 1. */
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

/* Pairs are considered only if one rank is among this many first ranks. The cost is the product of
 * this number and the number of all ranks. */
enum { MOST_RANKS = 64 };

/* The classes of pairs. */
enum { WITHIN_PROCESS, WITHIN_HOST, BETWEEN_HOSTS, CLASSES };
static const char *const class_names[CLASSES] = {"within a process", "within a host",
                                                 "between hosts"};

static int class_of(const struct tutti_fabric *fabric, int a, int b)
{
    const struct tutti_identity *one = &fabric->records[a].identity;
    const struct tutti_identity *other = &fabric->records[b].identity;

    if (tutti_identity_same_process(one, other))
        return WITHIN_PROCESS;
    return tutti_identity_same_host(one, other) ? WITHIN_HOST : BETWEEN_HOSTS;
}

/* Returns the index in the table of the transport that serves a pair. A pair without a transport
 * gets the index after the last. */
static uint32_t transport_of(const struct tutti_fabric *fabric, int a, int b)
{
    const struct tutti_transport_ops *ops = tutti_route_find(fabric, a, b);
    uint32_t index = 0;

    while (index < fabric->nparts && fabric->parts[index].ops != ops)
        index++;
    return index;
}

void tutti_fabric_describe_pairs(const struct tutti_fabric *fabric, char *ret_text, size_t size)
{
    bool is_used[CLASSES][TUTTI_MOST_TRANSPORTS + 1] = {{false}};
    size_t length = 0;

    for (int a = 0; a < fabric->nranks && a < MOST_RANKS; a++)
        for (int b = a + 1; b < fabric->nranks; b++)
            is_used[class_of(fabric, a, b)][transport_of(fabric, a, b)] = true;
    snprintf(ret_text, size, "none, there is one rank");
    for (int class = 0; class < CLASSES; class++) {
        bool is_first = true;

        for (uint32_t index = 0; index <= fabric->nparts; index++) {
            const char *name = index < fabric->nparts ? fabric->parts[index].ops->name : "none";

            if (!is_used[class][index])
                continue;
            if (is_first)
                length = add(ret_text, length, size, "%s%s by %s", length > 0 ? ", " : "",
                             class_names[class], name);
            else
                length = add(ret_text, length, size, " or %s", name);
            is_first = false;
        }
    }
}

/* ---- transports ------------------------------------------------------------------------------ */

bool tutti_fabric_describe_transport(const struct tutti_fabric *fabric, uint32_t index,
                                     char *ret_text, size_t size)
{
    if (index >= fabric->nparts)
        return false;
    ret_text[0] = '\0';
    if (fabric->parts[index].ops->report != NULL)
        fabric->parts[index].ops->report(fabric, ret_text, size);
    return true;
}
