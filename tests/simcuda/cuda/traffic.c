/* SPDX-License-Identifier: Apache-2.0
 * Counts traffic between memories (traffic.h). */
#include "simcuda/cuda/traffic.h"

static uint64_t bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES];

void sim_traffic_add(int from, int to, size_t size_bytes)
{
    if (sim_settings.counts_traffic)
        __atomic_fetch_add(&bytes[from + 1][to + 1], size_bytes, __ATOMIC_RELAXED);
}

void cuSimTraffic(uint64_t ret_bytes[SIM_TRAFFIC_SIDES][SIM_TRAFFIC_SIDES])
{
    for (int from = 0; from < SIM_TRAFFIC_SIDES; from++)
        for (int to = 0; to < SIM_TRAFFIC_SIDES; to++)
            ret_bytes[from][to] = __atomic_exchange_n(&bytes[from][to], 0, __ATOMIC_RELAXED);
}
