/* SPDX-License-Identifier: Apache-2.0
 * The table of transports that keep all promises: the tests of streams and of failures run for
 * every row. A new transport is a row here. */
#ifndef TESTS_TRANSPORT_SETTINGS_H
#define TESTS_TRANSPORT_SETTINGS_H

#include "harness.h"

#include <string.h>

static const struct setting settings[] = {
    {.name = "shm", .route = "shm", .transports = "self,shm"},
    {.name = "cma", .route = "cma", .transports = "self,shm,cma", .threshold = "32K"},
    {.name = "tcp over IPv4", .route = "tcp", .transports = "self,tcp", .family = "ipv4"},
    {.name = "tcp over IPv6", .route = "tcp", .transports = "self,tcp", .family = "ipv6"},
    {.name = "tcp, authenticated", .route = "tcp", .transports = "self,tcp", .encrypt = "auth"},
    {.name = "tcp, encrypted", .route = "tcp", .transports = "self,tcp", .encrypt = "on"},
    {.name = "pipes", .route = "pipes", .transports = "self,pipes"},
};
enum {
    SETTING_COUNT = sizeof settings / sizeof settings[0],
    SHM_SETTING = 0,
    TCP_SETTING = 2
};

/* The row after `setting` (NULL: the first row) that this machine can run. NULL after the last. */
static inline const struct setting *next_setting(const struct setting *setting)
{
    setting = setting == NULL ? settings : setting + 1;
    while (setting < settings + SETTING_COUNT && setting->family != NULL &&
           strcmp(setting->family, "ipv6") == 0 && !has_ipv6()) {
        printf("skipped: %s: this machine has no IPv6 loopback\n", setting->name);
        setting++;
    }
    return setting < settings + SETTING_COUNT ? setting : NULL;
}

#define EACH_SETTING(setting)                                                                      \
    (const struct setting *setting = next_setting(NULL); setting != NULL;                          \
     setting = next_setting(setting))

#endif
