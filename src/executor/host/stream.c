/* SPDX-License-Identifier: Apache-2.0
 * Decides whether a run or a received message bypasses the cache when it writes its results.
 *
 * An ordinary store needs its line in the cache. If the line is not there, the store costs a load
 * as well, and it evicts data that others need. Non-temporal stores avoid both. But if the line is
 * in the cache, a non-temporal store costs an extra trip to memory. The library cannot ask which
 * is the case, so it guesses. It assumes that a buffer is still in the cache if the buffer was the
 * result of a recent call. A call is recent if fewer bytes than the cache holds have gone through
 * the cache since.
 */
#include "base/file.h"
#include "executor/host/host.h"

#include <stdlib.h>
#include <unistd.h>

#define GUESSED_CACHE_BYTES ((size_t)32 << 20)

/* Asks the kernel first, because the kernel tells the size of one cache. The C library may tell the
 * sum of all last-level caches of a processor, of which a core uses only one. */
size_t tutti_engine_last_cache_bytes(void)
{
    unsigned long kib = 0;
    char line[32];
    long bytes;

    if (tutti_file_line("/sys/devices/system/cpu/cpu0/cache/index3/size", line, sizeof line))
        kib = strtoul(line, NULL, 10); /* such as "32768K" */
    if (kib > 0)
        return (size_t)kib << 10;
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : GUESSED_CACHE_BYTES;
}

/* Returns the index of a result in the table, which is a 7-bit hash of its cache line. */
static size_t index_of(uintptr_t address)
{
    uint64_t mixed = (uint64_t)(address / TUTTI_CACHE_LINE) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 57);
}

/* True if the result overwrites the input. The input was just read, so it is in the cache. */
static bool is_sum_in_place(const struct tutti_run *run, size_t input_bytes)
{
    uintptr_t input = (uintptr_t)run->call->input, output = (uintptr_t)run->call->output;

    return tutti_collective_reduces(run->call->collective) && output >= input &&
           output - input < input_bytes;
}

/* Records that a call writes a result at `output` and moves `footprint` bytes through the cache.
 * Returns true if an earlier result at `output` is likely to be still in the cache. */
static bool record_result(struct tutti_engine *engine, uintptr_t output, size_t footprint)
{
    struct tutti_recent *recent = &engine->recent;
    size_t index = index_of(output);
    bool is_in_cache;

    _Static_assert(sizeof recent->results / sizeof *recent->results == 128, "an index has 7 bits");
    is_in_cache = recent->results[index].address == output &&
                  recent->moved_bytes - recent->results[index].moved_bytes < engine->cache_bytes;
    recent->moved_bytes += footprint;
    recent->results[index].address = output;
    recent->results[index].moved_bytes = recent->moved_bytes;
    return is_in_cache;
}

bool tutti_run_decide_streaming(struct tutti_engine *engine)
{
    const struct tutti_run *run = &engine->run;
    size_t block_bytes = run->call->count * tutti_type_size(run->call->type);
    size_t input_bytes = block_bytes * run->program->input_blocks;
    size_t output_bytes = block_bytes * run->program->output_blocks;
    size_t footprint = (input_bytes + output_bytes) * (size_t)engine->nranks;
    uintptr_t output = (uintptr_t)(run->call->output ? run->call->output : run->call->input);
    bool is_in_cache =
        record_result(engine, output, footprint) || is_sum_in_place(run, input_bytes);

    return footprint > engine->cache_bytes || !is_in_cache;
}

bool tutti_engine_decide_streaming(struct tutti_engine *engine, const void *output,
                                   size_t size_bytes, bool is_mutual)
{
    /* If this rank both sends and receives, the other ranks most likely do the same. */
    size_t footprint = 2 * size_bytes * (is_mutual ? (size_t)engine->nranks : 1);

    if (size_bytes < TUTTI_LEAST_STREAMED_BYTES)
        return false;
    return !record_result(engine, (uintptr_t)output, footprint) ||
           footprint > engine->cache_bytes;
}
