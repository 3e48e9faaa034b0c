/* SPDX-License-Identifier: Apache-2.0
 * The rates of network interfaces, from /sys/class/net. */
#include "base/interface.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No link is faster; what is above was misread. */
#define MOST_MBITS 10000000L

static bool has(const char *root, const char *name, const char *what)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/sys/class/net/%s/%s", root, name, what);

    return length < (int)sizeof path && access(path, F_OK) == 0;
}

uint32_t tutti_interface_mbits(const char *root, const char *name)
{
    char path[PATH_MAX], text[32] = "";
    long mbits;
    FILE *file;

    /* Several devices bonded are one interface, which knows its rate. */
    if (strchr(name, '/') != NULL || (!has(root, name, "device") && !has(root, name, "bonding")))
        return 0;
    snprintf(path, sizeof path, "%s/sys/class/net/%s/speed", root, name);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '\0'; /* the link is down */
    fclose(file);
    mbits = strtol(text, NULL, 10);
    return mbits > 0 && mbits <= MOST_MBITS ? (uint32_t)mbits : 0;
}
