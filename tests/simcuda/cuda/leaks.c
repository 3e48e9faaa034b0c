/* SPDX-License-Identifier: Apache-2.0
 * If requested, lists at the end everything that was not freed. */
#include "simcuda/cuda/graph.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/cuda/stream.h"

#include <stdio.h>

static uint32_t ranges_left(enum sim_range_kind kind)
{
    uint32_t n = 0;

    for (const struct sim_range *range = sim_ranges; range != NULL; range = range->next)
        n += range->kind == kind;
    return n;
}

__attribute__((destructor)) static void count_leaks(void)
{
    if (!sim_settings.must_count_leaks)
        return;
    pthread_mutex_lock(&sim_lock);
    fprintf(stderr,
            "simulated driver: left: %u allocations, %u of the host, %u registered, %u opened, "
            "%u mapped, %u reserved, %u handles, %u streams, %u events, %u graphs, %u modules\n",
            ranges_left(SIM_RANGE_DEVICE), ranges_left(SIM_RANGE_HOST),
            ranges_left(SIM_RANGE_REGISTERED), ranges_left(SIM_RANGE_IPC),
            ranges_left(SIM_RANGE_MAPPED), sim_reservations_left(), sim_handles_left(),
            sim_streams_left(), sim_events_left(), sim_graphs_left(), sim_modules_left());
    pthread_mutex_unlock(&sim_lock);
}
