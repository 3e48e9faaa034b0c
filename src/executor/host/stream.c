/* SPDX-License-Identifier: Apache-2.0
 * Whether a run writes its results past the cache.
 *
 * A line that is stored to must be in the cache, so storing to memory that is not there costs a
 * load as well, and what is stored pushes out what others need; non-temporal stores save both. To
 * memory that is in the cache they cost a trip more. Nobody tells us which it is. But a result
 * that was the result of another call not long ago, in bytes that went through the cache since,
 * is most likely still there, and any other most likely is not.
 */
#include "executor/host/host.h"

#include <stdio.h>
#include <unistd.h>

/* The last level's size as the kernel tells it; the C library may tell the sum of all a processor
 * has, of which a core uses one. */
size_t tutti_last_cache_bytes(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    unsigned long kib = 0;
    long bytes = 0;

    if (file != NULL) {
        if (fscanf(file, "%luK", &kib) != 1)
            kib = 0;
        fclose(file);
    }
    if (kib == 0)
        bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (kib == 0 && bytes <= 0)
        return (size_t)32 << 20;
    return kib > 0 ? (size_t)kib << 10 : (size_t)bytes;
}

/* Where in the table: neighbouring buffers at neighbouring places, whatever their size is. */
static size_t place_of(uintptr_t address)
{
    uint64_t mixed = (uint64_t)(address / TUTTI_CACHE_LINE) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 57);
}

/* Is what is written what was just read? Then it is in the cache. */
static bool is_sum_in_place(const struct tutti_run *run, size_t input_bytes)
{
    uintptr_t input = (uintptr_t)run->call->input, output = (uintptr_t)run->call->output;

    switch (run->call->collective) {
    case TUTTI_ALLREDUCE:
    case TUTTI_REDUCE_SCATTER:
    case TUTTI_REDUCE: return output >= input && output - input < input_bytes;
    default: return false;
    }
}

/* Was the result there one of those that are likely still in the cache? Remembers it, and that
 * `footprint` bytes go through the cache. */
static bool is_recent(struct tutti_engine *engine, uintptr_t output, size_t footprint)
{
    struct tutti_recent *recent = &engine->recent;
    size_t place = place_of(output);
    bool is_there;

    _Static_assert(sizeof recent->results / sizeof *recent->results == 128, "a place has 7 bits");
    is_there = recent->results[place].address == output &&
               recent->moved_bytes - recent->results[place].moved_bytes < engine->cache_bytes;
    recent->moved_bytes += footprint;
    recent->results[place].address = output;
    recent->results[place].moved_bytes = recent->moved_bytes;
    return is_there;
}

bool tutti_run_streams(struct tutti_engine *engine)
{
    const struct tutti_run *run = &engine->run;
    size_t block = run->call->count * tutti_type_size(run->call->type);
    size_t input_bytes = block * run->program->input_blocks;
    size_t output_bytes = block * run->program->output_blocks;
    size_t footprint = (input_bytes + output_bytes) * (size_t)engine->nranks;
    uintptr_t output = (uintptr_t)(run->call->output ? run->call->output : run->call->input);
    bool is_near = is_recent(engine, output, footprint) || is_sum_in_place(run, input_bytes);

    return footprint > engine->cache_bytes || !is_near;
}

bool tutti_message_streams(struct tutti_engine *engine, const void *output, size_t size_bytes,
                           bool is_mutual)
{
    /* Who both sends and receives most likely does as all the others do. */
    size_t footprint = 2 * size_bytes * (is_mutual ? (size_t)engine->nranks : 1);

    if (size_bytes < TUTTI_LEAST_STREAMED_BYTES)
        return false;
    return !is_recent(engine, (uintptr_t)output, footprint) || footprint > engine->cache_bytes;
}
