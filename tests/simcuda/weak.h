/* SPDX-License-Identifier: Apache-2.0
 * Makes other threads see stores late, as on GPUs. Each thread keeps some of its stores private,
 * in no order. A barrier publishes stores to the block. They stay in the block until one of its
 * threads releases, or at random. Both levels hold cells of 8 bytes, each of which reaches memory
 * at once. */
#ifndef TUTTI_TESTS_SIMCUDA_WEAK_H
#define TUTTI_TESTS_SIMCUDA_WEAK_H

#include "simcuda/cache.h"

#include <stddef.h>
#include <stdint.h>

struct sim_weak_cell {
    uint64_t *at;
    uint8_t bytes[8];
    uint8_t mask; /* which of them were stored */
};

struct sim_weak_buffer {
    uint32_t ncells, capacity;
    struct sim_weak_cell *cells;
    struct sim_cache *cache; /* learns of every store that reaches memory */
};

/* No memory for stores in all is the end of the process. */
void sim_weak_init(struct sim_weak_buffer *buffer, uint32_t capacity, struct sim_cache *cache);
void sim_weak_fini(struct sim_weak_buffer *buffer);

/* Keep a store; where the buffer is full, one that `random` picks goes to memory first. Memory is
 * reached past `below`, whose older bytes of the same place are forgotten; NULL: nothing is
 * there. */
void sim_weak_store(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, void *at,
                    const void *value, size_t size_bytes, uint64_t random);
/* Put what is kept over what `ret_value` already holds. */
void sim_weak_load(const struct sim_weak_buffer *buffer, void *ret_value, const void *at,
                   size_t size_bytes);

/* One cell, to memory; all of them, in an order that `random` picks; all, into the buffer below. */
void sim_weak_drain(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, uint64_t random);
void sim_weak_drain_all(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below,
                        uint64_t random);
void sim_weak_sink(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, uint64_t random);

#endif
