/* SPDX-License-Identifier: Apache-2.0
 * Whether two ranks look as if one command had started them.
 *
 * Where ranks meet at a port with neither a secret nor a launcher's name for the job, this is all
 * that tells two jobs apart: the parent process, the directory and the environment, without the
 * variables that differ between the ranks of one job. Looking different proves nothing (ranks may
 * be started in two terminals), so it only makes the root wait for a moment whether another process
 * claims the same rank. */
#include "bootstrap/exchange.h"
#include "bootstrap/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Set by launchers and scripts for each rank, or by the shell for each command. */
static bool is_of_one_rank(const char *variable)
{
    static const char *const parts[] = {"RANK", "PROCID", "LOCALID", "NODEID", "TASK", "GPU",
                                        "DEVICE", "_=", "SHLVL"};
    const char *equals = strchr(variable, '=');
    size_t length = equals != NULL ? (size_t)(equals - variable) + 1 : strlen(variable);
    char name[256];

    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
             variable);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i][0] == '_' ? strcmp(name, parts[i]) == 0 : strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

/* The sum of hashes does not depend on the order. */
static void add(uint64_t *sum, const char *text)
{
    uint8_t hash[TUTTI_SECRET_BYTES];

    tutti_secret_from_text(text, hash);
    *sum += tutti_get_u32(hash) | (uint64_t)tutti_get_u32(hash + 4) << 32;
}

uint64_t tutti_exchange_kin(void)
{
    char text[4096 + 16] = "in ";
    uint64_t sum = 0;

    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (!is_of_one_rank(*at))
            add(&sum, *at);
    if (getcwd(text + 3, sizeof text - 3) != NULL)
        add(&sum, text);
    tutti_job_parent(text, sizeof text);
    add(&sum, text);
    return sum;
}
