/* SPDX-License-Identifier: Apache-2.0
 * Puts the ranks of a test on several hosts, as far as the library knows. */
#ifndef TUTTI_TESTS_HOSTS_H
#define TUTTI_TESTS_HOSTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With TEST_HOSTS set to a number, the ranks, each a process, are on so many hosts. With "3+5", the
 * first 3 are on one and the others on another. A rank calls this before it forms its
 * communicator. */
static inline void hosts_choose(int rank, int nranks)
{
    const char *hosts = getenv("TEST_HOSTS");
    char host[16];

    if (hosts == NULL)
        return;
    if (strchr(hosts, '+') != NULL)
        snprintf(host, sizeof host, "host %d", rank >= atoi(hosts));
    else
        snprintf(host, sizeof host, "host %d", rank * atoi(hosts) / nranks);
    setenv("TUTTI_HOST_ID", host, 1);
}

#endif
