/* SPDX-License-Identifier: Apache-2.0
 * Counts traffic between memories (traffic.h). */
#include "simcuda/cuda/traffic.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIDES = SIM_DEVICES + 1 }; /* the host's is the first */

static uint64_t bytes[SIDES][SIDES];

void sim_traffic_add(int from, int to, size_t size_bytes)
{
    if (sim_settings.counts_traffic)
        __atomic_fetch_add(&bytes[from + 1][to + 1], size_bytes, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void write_traffic(void)
{
    const char *path = getenv("SIMCUDA_TRAFFIC");
    int file;

    if (!sim_settings.counts_traffic || path == NULL)
        return;
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int from = 0; file >= 0 && from < SIDES; from++)
        for (int to = 0; to < SIDES; to++)
            if (from != to && bytes[from][to] > 0)
                dprintf(file, "%d %d %llu\n", from - 1, to - 1,
                        (unsigned long long)bytes[from][to]);
    if (file >= 0)
        close(file);
}
