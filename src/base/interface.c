/* SPDX-License-Identifier: Apache-2.0
 * Lists the addresses of network interfaces, and reads their rates from /sys/class/net. */
#include "base/interface.h"

#include "base/address_native.h"
#include "base/file.h"
#include "base/result.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No link is faster than this. A higher number in /sys is wrong and means that the rate is not
 * known. */
#define MOST_MBITS 10000000L

static bool has(const char *root, const char *name, const char *what)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/sys/class/net/%s/%s", root, name, what);

    return length < (int)sizeof path && access(path, F_OK) == 0;
}

uint32_t tutti_interface_mbits(const char *root, const char *name)
{
    char path[PATH_MAX], text[32];
    long mbits;

    /* A bonding interface has no device of its own, but reports a true rate. */
    if (strchr(name, '/') != NULL || (!has(root, name, "device") && !has(root, name, "bonding")))
        return 0;
    snprintf(path, sizeof path, "%s/sys/class/net/%s/speed", root, name);
    tutti_file_line(path, text, sizeof text); /* "" if the link is down */
    mbits = strtol(text, NULL, 10);
    return mbits > 0 && mbits <= MOST_MBITS ? (uint32_t)mbits : 0;
}

bool tutti_interface_of_port(const char *root, const char *port,
                             char ret_name[TUTTI_INTERFACE_NAME_BYTES])
{
    char path[PATH_MAX], found[TUTTI_INTERFACE_NAME_BYTES] = "";
    const struct dirent *entry;
    DIR *folder;

    if (*port == '\0' || strchr(port, '/') != NULL)
        return false;
    if (strlen(port) < sizeof found && has(root, port, "address")) {
        snprintf(ret_name, TUTTI_INTERFACE_NAME_BYTES, "%s", port);
        return true;
    }
    snprintf(path, sizeof path, "%s/sys/class/infiniband/%s/device/net", root, port);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof found &&
            (found[0] == '\0' || strcmp(entry->d_name, found) < 0))
            snprintf(found, sizeof found, "%.15s", entry->d_name);
    if (folder != NULL)
        closedir(folder);
    if (found[0] == '\0')
        return false;
    memcpy(ret_name, found, sizeof found);
    return true;
}

int tutti_interface_list(struct tutti_interface *interfaces, size_t capacity, size_t *ret_count)
{
    struct ifaddrs *found;
    size_t count = 0;

    if (getifaddrs(&found) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "list network interfaces: %s", strerror(errno));
    for (const struct ifaddrs *at = found; at != NULL && count < capacity; at = at->ifa_next) {
        struct tutti_interface interface = {.is_up = (at->ifa_flags & IFF_UP) != 0};

        if (at->ifa_addr == NULL)
            continue;
        tutti_address_from_native(at->ifa_addr, &interface.address);
        if (interface.address.family == 0)
            continue;
        snprintf(interface.name, sizeof interface.name, "%s", at->ifa_name);
        interface.mbits = tutti_interface_mbits("", at->ifa_name);
        interfaces[count++] = interface;
    }
    freeifaddrs(found);
    *ret_count = count;
    return TUTTI_OK;
}

const char *tutti_interface_format_rate(uint32_t mbits, char text[TUTTI_INTERFACE_RATE_BYTES])
{
    if (mbits == 0)
        snprintf(text, TUTTI_INTERFACE_RATE_BYTES, "rate unknown");
    else if (mbits % 1000 == 0)
        snprintf(text, TUTTI_INTERFACE_RATE_BYTES, "%u Gbit/s", mbits / 1000);
    else
        snprintf(text, TUTTI_INTERFACE_RATE_BYTES, "%u Mbit/s", mbits);
    return text;
}
