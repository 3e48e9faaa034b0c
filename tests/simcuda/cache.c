/* SPDX-License-Identifier: Apache-2.0
 * Makes threads see old data. */
#include "simcuda/cache.h"

#include "simcuda/die.h"
#include "simcuda/sanitizers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One in so many loads that find their line reads it again, as if the line had been evicted. */
enum { READS_AGAIN = 8 };

void sim_cache_init(struct sim_cache *cache)
{
    *cache = (struct sim_cache){.round = 1};
    cache->lines = calloc(SIM_CACHE_LINES, sizeof *cache->lines);
    if (cache->lines == NULL)
        sim_die("no memory for a cache");
}

void sim_cache_fini(struct sim_cache *cache)
{
    free(cache->lines);
    *cache = (struct sim_cache){0};
}

static uintptr_t line_of(uintptr_t at)
{
    return at & ~(uintptr_t)(SIM_CACHE_LINE_BYTES - 1);
}

static struct sim_cache_line *place_of(const struct sim_cache *cache, uintptr_t at)
{
    return &cache->lines[at / SIM_CACHE_LINE_BYTES % SIM_CACHE_LINES];
}

static bool is_there(const struct sim_cache *cache, const struct sim_cache_line *line, uintptr_t at)
{
    return line->round == cache->round && line->at == line_of(at);
}

/* The line may contain bytes that belong to nobody. They are in a page that exists. */
SIM_NO_ASAN static void fill(const struct sim_cache *cache, struct sim_cache_line *line,
                             uintptr_t at)
{
    const uint64_t *from = (const uint64_t *)line_of(at);

    line->at = line_of(at);
    line->round = cache->round;
    for (int i = 0; i < SIM_CACHE_LINE_BYTES / 8; i++)
        line->words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void sim_cache_load(struct sim_cache *cache, void *ret_value, const void *at, size_t size_bytes,
                    uint64_t random)
{
    const uintptr_t end = (uintptr_t)at + size_bytes;
    uint8_t *to = ret_value;

    for (uintptr_t from = (uintptr_t)at; from < end;) {
        struct sim_cache_line *line = place_of(cache, from);
        const uintptr_t line_end = line_of(from) + SIM_CACHE_LINE_BYTES;
        const size_t size = (end < line_end ? end : line_end) - from;

        if (!is_there(cache, line, from) || random % READS_AGAIN == 0)
            fill(cache, line, from);
        memcpy(to, (const uint8_t *)line->words + (from - line->at), size);
        to += size;
        from += size;
    }
}

void sim_cache_store(struct sim_cache *cache, const void *at, const uint8_t bytes[8], uint8_t mask)
{
    struct sim_cache_line *line = place_of(cache, (uintptr_t)at);
    uint8_t *to = (uint8_t *)line->words + ((uintptr_t)at - line->at);

    for (int i = 0; is_there(cache, line, (uintptr_t)at) && i < 8; i++)
        if (mask >> i & 1)
            to[i] = bytes[i];
}

void sim_cache_forget(struct sim_cache *cache, const void *at)
{
    struct sim_cache_line *line = place_of(cache, (uintptr_t)at);

    if (is_there(cache, line, (uintptr_t)at))
        line->round = 0;
}

void sim_cache_drop(struct sim_cache *cache)
{
    cache->round++;
}
