/* SPDX-License-Identifier: Apache-2.0
 * Converts addresses to and from text and the kernel's form, and lists the addresses of this
 * host. */
#include "base/address_native.h"
#include "base/interface.h"
#include "base/limits.h"
#include "base/param.h"
#include "base/result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values follow the order of the choices of TUTTI_SOCKET_FAMILY in param_table.h. */
enum { FAMILY_ANY, FAMILY_IPV4, FAMILY_IPV6 };

socklen_t tutti_address_to_native(const struct tutti_address *address,
                                  struct sockaddr_storage *ret_native)
{
    memset(ret_native, 0, sizeof *ret_native);
    if (address->family == 4) {
        struct sockaddr_in *in4 = (struct sockaddr_in *)ret_native;

        in4->sin_family = AF_INET;
        in4->sin_port = address->port_be;
        memcpy(&in4->sin_addr, address->bytes, 4);
        return sizeof *in4;
    }

    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret_native;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = address->port_be;
    in6->sin6_scope_id = address->scope;
    memcpy(&in6->sin6_addr, address->bytes, 16);
    return sizeof *in6;
}

static void set_ipv4(struct tutti_address *address, const void *bytes)
{
    address->family = 4;
    memcpy(address->bytes, bytes, 4);
    address->is_loopback = address->bytes[0] == 127;
}

void tutti_address_from_native(const struct sockaddr *native, struct tutti_address *ret_address)
{
    struct tutti_address address = {.family = 0};

    if (native->sa_family == AF_INET) {
        struct sockaddr_in in4;

        memcpy(&in4, native, sizeof in4);
        address.port_be = in4.sin_port;
        set_ipv4(&address, &in4.sin_addr);
    } else if (native->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, native, sizeof in6);
        address.port_be = in6.sin6_port;
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
            set_ipv4(&address, in6.sin6_addr.s6_addr + 12);
        } else {
            address.family = 6;
            memcpy(address.bytes, &in6.sin6_addr, 16);
            address.is_loopback = IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
            address.scope = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? in6.sin6_scope_id : 0;
        }
    }
    *ret_address = address;
}

const char *tutti_address_format(const struct tutti_address *address,
                                 char text[TUTTI_ADDRESS_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN];
    unsigned port = ntohs(address->port_be);

    if (address->family == 4) {
        inet_ntop(AF_INET, address->bytes, host, sizeof host);
        snprintf(text, TUTTI_ADDRESS_TEXT_BYTES, "%s:%u", host, port);
    } else if (address->family == 6) {
        inet_ntop(AF_INET6, address->bytes, host, sizeof host);
        if (address->scope != 0)
            snprintf(text, TUTTI_ADDRESS_TEXT_BYTES, "[%.39s%%%u]:%u", host, address->scope, port);
        else
            snprintf(text, TUTTI_ADDRESS_TEXT_BYTES, "[%s]:%u", host, port);
    } else {
        snprintf(text, TUTTI_ADDRESS_TEXT_BYTES, "*:%u", port);
    }
    return text;
}

/* ---- from text ---------------------------------------------------------------- */

/* Split "host:port" or "[host]:port" into its parts. False: the text is neither. */
static bool split_host_port(const char *text, char *host, size_t host_bytes, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    const char *begin = text;
    const char *end = colon;
    char *rest;
    unsigned long port;

    if (colon == NULL || colon[1] < '0' || colon[1] > '9')
        return false;
    if (*begin == '[') {
        begin++;
        if (end == begin || *--end != ']')
            return false;
    } else if (memchr(text, ':', (size_t)(colon - text)) != NULL) {
        return false; /* an IPv6 address without brackets: its port would be ambiguous */
    }
    if (end <= begin || (size_t)(end - begin) >= host_bytes)
        return false;
    port = strtoul(colon + 1, &rest, 10);
    if (*rest != '\0' || port > UINT16_MAX)
        return false;
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    *ret_port = (uint16_t)port;
    return true;
}

static int wanted_native_family(void)
{
    switch (tutti_param_int(TUTTI_PARAM_SOCKET_FAMILY)) {
    case FAMILY_IPV4: return AF_INET;
    case FAMILY_IPV6: return AF_INET6;
    default: return AF_UNSPEC;
    }
}

int tutti_address_resolve(const char *text, struct tutti_address *addresses, size_t capacity,
                          size_t *ret_count)
{
    /* Without a socket type, getaddrinfo lists every address once for each type. */
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[256];
    uint16_t port;
    size_t count = 0;
    int rc;

    if (!split_host_port(text, host, sizeof host, &port))
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "'%s' is no address: write host:port, 10.0.0.1:4711 or [fe80::1]:4711",
                          text);

    /* A literal address determines its family. TUTTI_SOCKET_FAMILY only selects among the addresses
     * of a name. */
    hints.ai_flags = AI_NUMERICHOST;
    rc = getaddrinfo(host, NULL, &hints, &found);
    if (rc == EAI_NONAME) {
        hints.ai_flags = 0;
        hints.ai_family = wanted_native_family();
        rc = getaddrinfo(host, NULL, &hints, &found);
    }
    if (rc != 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "cannot resolve host '%s' of '%s': %s", host, text,
                          rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));

    for (struct addrinfo *at = found; at != NULL && count < capacity; at = at->ai_next) {
        tutti_address_from_native(at->ai_addr, &addresses[count]);
        addresses[count].port_be = htons(port);
        if (addresses[count].family != 0)
            count++;
    }
    freeaddrinfo(found);
    if (count == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "host '%s' of '%s' has no IP address", host, text);
    *ret_count = count;
    return TUTTI_OK;
}

/* ---- of this host --------------------------------------------------------------- */

/* True if one item of the filter, `prefix` or `=name`, matches this interface. */
static bool item_matches(const char *item, size_t length, const char *interface)
{
    if (length > 0 && item[0] == '=')
        return strlen(interface) == length - 1 && strncmp(item + 1, interface, length - 1) == 0;
    return length > 0 && strncmp(item, interface, length) == 0;
}

static bool list_matches(const char *list, const char *interface)
{
    while (list != NULL && *list != '\0') {
        const char *comma = strchr(list, ',');
        size_t length = comma ? (size_t)(comma - list) : strlen(list);

        if (item_matches(list, length, interface))
            return true;
        list = comma ? comma + 1 : NULL;
    }
    return false;
}

static bool passes_filter(const char *filter, const char *interface)
{
    if (*filter == '\0')
        return true;
    if (*filter == '^')
        return !list_matches(filter + 1, interface);
    return list_matches(filter, interface);
}

bool tutti_address_is_link_local(const struct tutti_address *address)
{
    if (address->family == 4)
        return address->bytes[0] == 169 && address->bytes[1] == 254;
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

/* The classes of addresses, in the order in which they are listed. LOOPBACK_FILTERED holds loopback
 * addresses of interfaces that TUTTI_SOCKET_IFNAME excludes. */
enum class { GLOBAL, LINK_LOCAL, LOOPBACK, LOOPBACK_FILTERED, CLASS_COUNT };

/* Convert and classify the address of `at`. False: the address must not be used. */
static bool classify(const struct ifaddrs *at, const char *filter, struct tutti_address *address,
                     enum class *ret_class)
{
    int64_t family = tutti_param_int(TUTTI_PARAM_SOCKET_FAMILY);
    bool passes;

    if (at->ifa_addr == NULL || !(at->ifa_flags & IFF_UP))
        return false;
    tutti_address_from_native(at->ifa_addr, address);
    if (address->family == 0 || (family == FAMILY_IPV4 && address->family != 4) ||
        (family == FAMILY_IPV6 && address->family != 6))
        return false;

    passes = passes_filter(filter, at->ifa_name);
    address->is_loopback = address->is_loopback || (at->ifa_flags & IFF_LOOPBACK) != 0;
    if (address->is_loopback)
        *ret_class = passes ? LOOPBACK : LOOPBACK_FILTERED;
    else
        *ret_class = tutti_address_is_link_local(address) ? LINK_LOCAL : GLOBAL;
    return passes || address->is_loopback;
}

static int fail_none_left(const char *filter)
{
    static const char *const families[] = {
        [FAMILY_ANY] = "any", [FAMILY_IPV4] = "ipv4", [FAMILY_IPV6] = "ipv6"};
    struct if_nameindex *interfaces = if_nameindex();
    char names[256] = "";
    size_t length = 0;

    for (struct if_nameindex *at = interfaces; at != NULL && at->if_index != 0; at++) {
        length += (size_t)snprintf(names + length, sizeof names - length, " %s", at->if_name);
        if (length >= sizeof names)
            break;
    }
    if (interfaces != NULL)
        if_freenameindex(interfaces);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "no usable network interface: TUTTI_SOCKET_IFNAME='%s' and "
                      "TUTTI_SOCKET_FAMILY=%s exclude all; change or unset them; interfaces:%s",
                      filter, families[tutti_param_int(TUTTI_PARAM_SOCKET_FAMILY)], names);
}

/* The addresses that are listed so far. */
struct listing {
    const char *nearest; /* the interface whose addresses come first */
    bool by_rate;        /* the others are sorted by rate */
    struct tutti_address *addresses; /* [capacity] */
    uint32_t *mbits;                 /* [capacity] */
    size_t capacity, count;
};

/* Insert an address at index `first` if `is_first`. Else insert it behind those before `first`, and
 * behind those that are as fast, or at the end without by_rate. */
static void insert(struct listing *listing, size_t first, bool is_first,
                   const struct tutti_address *address, uint32_t rate)
{
    size_t at = listing->count++;

    for (; at > first && (is_first || (listing->by_rate && listing->mbits[at - 1] < rate)); at--) {
        listing->addresses[at] = listing->addresses[at - 1];
        listing->mbits[at] = listing->mbits[at - 1];
    }
    listing->addresses[at] = *address;
    listing->mbits[at] = rate;
}

/* Append this host's addresses of one class. If there are too many, those of the nearest interface
 * take the place of others, and so do faster ones with by_rate. Returns how many addresses of this
 * class there are. */
static size_t list_class(const struct ifaddrs *interfaces, enum class class,
                         struct listing *listing)
{
    const char *filter = tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME);
    size_t first = listing->count, passed = 0; /* `first`: behind those of the nearest */

    for (const struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        bool is_nearest = strcmp(at->ifa_name, listing->nearest) == 0;
        struct tutti_address address;
        enum class of;
        uint32_t rate;

        if (!classify(at, filter, &address, &of) || of != class)
            continue;
        passed++;
        rate = tutti_interface_mbits("", at->ifa_name);
        if (listing->count == listing->capacity && listing->count > first &&
            (is_nearest || (listing->by_rate && listing->mbits[listing->count - 1] < rate)))
            listing->count--;
        if (listing->count == listing->capacity)
            continue;
        insert(listing, first, is_nearest, &address, rate);
        first += is_nearest;
    }
    return passed;
}

int tutti_address_list_rated(const char *nearest, struct tutti_address *addresses, uint32_t *mbits,
                             size_t capacity, size_t *ret_count)
{
    const char *filter = tutti_param_text(TUTTI_PARAM_SOCKET_IFNAME);
    bool names_wanted = *filter != '\0' && *filter != '^';
    struct listing listing = {.nearest = nearest, .by_rate = !names_wanted,
                              .addresses = addresses, .mbits = mbits, .capacity = capacity};
    char text[TUTTI_LIMITS_TEXT_BYTES];
    struct ifaddrs *interfaces;
    size_t passed = 0;

    if (getifaddrs(&interfaces) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "list network interfaces: %s",
                          tutti_limits_describe(errno, text));

    for (enum class turn = GLOBAL; turn < CLASS_COUNT; turn++) {
        /* A filter of names that matches nothing is a user error. A fallback to loopback would hide
         * the error until another host cannot connect. Without such a filter, excluded loopback
         * addresses are listed only if there is no other address. */
        if (turn == LOOPBACK_FILTERED && (names_wanted ? passed == 0 : passed > 0))
            break;
        passed += list_class(interfaces, turn, &listing);
    }
    freeifaddrs(interfaces);
    if (listing.count == 0)
        return fail_none_left(filter);
    *ret_count = listing.count;
    return TUTTI_OK;
}

int tutti_address_list(struct tutti_address *addresses, size_t capacity, size_t *ret_count)
{
    uint32_t *mbits = calloc(capacity, sizeof *mbits);
    int rc;

    if (mbits == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu addresses", capacity);
    rc = tutti_address_list_rated("", addresses, mbits, capacity, ret_count);
    free(mbits);
    return rc;
}
