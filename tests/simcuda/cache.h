/* SPDX-License-Identifier: Apache-2.0
 * Makes threads see old data, as on GPUs. A multiprocessor has a first-level cache. It keeps the
 * lines that plain loads have read, and later plain loads may take their data from there, although
 * others have stored since. Only acquires, and the begin of a kernel, empty the cache. */
#ifndef TUTTI_TESTS_SIMCUDA_CACHE_H
#define TUTTI_TESTS_SIMCUDA_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_CACHE_LINE_BYTES = 128, SIM_CACHE_LINES = 256 };

struct sim_cache_line {
    uintptr_t at;
    uint64_t round; /* of the cache when the line was read */
    uint64_t words[SIM_CACHE_LINE_BYTES / 8];
};

struct sim_cache {
    uint64_t round; /* only lines of this round are in the cache */
    struct sim_cache_line *lines; /* by address, one line in each place */
};

/* If there is no memory, the process ends with a message. */
void sim_cache_init(struct sim_cache *cache);
void sim_cache_fini(struct sim_cache *cache);

/* A plain load. `random` decides whether a line that is in the cache is read again. */
void sim_cache_load(struct sim_cache *cache, void *ret_value, const void *at, size_t size_bytes,
                    uint64_t random);
/* The multiprocessor has stored 8 bytes, or those in `mask`, in memory. If the line is in the
 * cache, the cache gets them too. */
void sim_cache_store(struct sim_cache *cache, const void *at, const uint8_t bytes[8], uint8_t mask);
/* The line of this address leaves the cache. */
void sim_cache_forget(struct sim_cache *cache, const void *at);
/* All lines leave the cache. */
void sim_cache_drop(struct sim_cache *cache);

#endif
