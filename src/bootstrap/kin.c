/* SPDX-License-Identifier: Apache-2.0
 * A fingerprint that is equal for two ranks if one command seems to have started both. Such ranks
 * are akin.
 *
 * If ranks meet at a place with neither a secret nor a launcher's identity of the job, nothing else
 * distinguishes two jobs. The fingerprint covers the parent process, the working directory and the
 * environment, without the variables that differ between the ranks of one job. Different
 * fingerprints prove nothing, since ranks may be started in two terminals. So they only make the
 * root wait a short time for another process that claims the same rank. */
#include "bootstrap/exchange.h"
#include "bootstrap/launcher.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* True if the variable may differ between ranks of one job. Launchers and scripts set such
 * variables for each rank, and the shell sets some for each command. */
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

/* Hashes are summed up so that the order of variables does not matter. */
static void add(uint64_t *sum, const char *text)
{
    uint8_t hash[TUTTI_SECRET_BYTES];

    tutti_secret_from_text(text, hash);
    *sum += tutti_frame_get_u64(hash);
}

uint64_t tutti_exchange_kin(void)
{
    char text[PATH_MAX + 16] = "in "; /* then the working directory */
    uint64_t sum = 0;

    for (char **at = environ; at != NULL && *at != NULL; at++)
        if (!is_of_one_rank(*at))
            add(&sum, *at);
    if (getcwd(text + strlen("in "), PATH_MAX) != NULL)
        add(&sum, text);
    tutti_launch_parent(text, sizeof text);
    add(&sum, text);
    return sum;
}
