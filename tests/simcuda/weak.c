/* SPDX-License-Identifier: Apache-2.0
 * Makes other threads see stores late. */
#include "simcuda/weak.h"

#include "simcuda/die.h"

#include <stdlib.h>
#include <string.h>

void sim_weak_init(struct sim_weak_buffer *buffer, uint32_t capacity, struct sim_cache *cache)
{
    *buffer = (struct sim_weak_buffer){.capacity = capacity, .cache = cache};
    buffer->cells = calloc(capacity, sizeof *buffer->cells);
    if (buffer->cells == NULL)
        sim_die("no memory for stores that are kept");
}

void sim_weak_fini(struct sim_weak_buffer *buffer)
{
    free(buffer->cells);
    *buffer = (struct sim_weak_buffer){0};
}

static uint64_t *cell_of(const void *at)
{
    return (uint64_t *)((uintptr_t)at & ~(uintptr_t)7);
}

static struct sim_weak_cell *find(const struct sim_weak_buffer *buffer, const uint64_t *at)
{
    for (uint32_t i = 0; i < buffer->ncells; i++)
        if (buffer->cells[i].at == at)
            return &buffer->cells[i];
    return NULL;
}

static void forget(struct sim_weak_buffer *buffer, struct sim_weak_cell *cell)
{
    *cell = buffer->cells[--buffer->ncells];
}

/* ---- to memory ------------------------------------------------------------------------------- */

/* In the largest pieces that were stored whole. */
static void write_cell(const struct sim_weak_cell *cell)
{
    uint8_t *at = (uint8_t *)cell->at;
    uint64_t whole;

    memcpy(&whole, cell->bytes, 8);
    if (cell->mask == 0xff) {
        __atomic_store_n(cell->at, whole, __ATOMIC_RELAXED);
        return;
    }
    for (int i = 0; i < 8;) {
        uint32_t four;
        uint16_t two;

        if (i % 4 == 0 && (cell->mask >> i & 15) == 15) {
            memcpy(&four, cell->bytes + i, 4);
            __atomic_store_n((uint32_t *)(void *)(at + i), four, __ATOMIC_RELAXED);
            i += 4;
        } else if (i % 2 == 0 && (cell->mask >> i & 3) == 3) {
            memcpy(&two, cell->bytes + i, 2);
            __atomic_store_n((uint16_t *)(void *)(at + i), two, __ATOMIC_RELAXED);
            i += 2;
        } else {
            if (cell->mask >> i & 1)
                __atomic_store_n(at + i, cell->bytes[i], __ATOMIC_RELAXED);
            i++;
        }
    }
}

static void settle(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below,
                   struct sim_weak_cell *cell)
{
    struct sim_weak_cell *older = below != NULL ? find(below, cell->at) : NULL;

    write_cell(cell);
    sim_cache_store(buffer->cache, cell->at, cell->bytes, cell->mask);
    if (older != NULL) {
        older->mask &= (uint8_t)~cell->mask;
        if (older->mask == 0)
            forget(below, older);
    }
    forget(buffer, cell);
}

void sim_weak_drain(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, uint64_t random)
{
    if (buffer->ncells > 0)
        settle(buffer, below, &buffer->cells[random % buffer->ncells]);
}

void sim_weak_drain_all(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below,
                        uint64_t random)
{
    while (buffer->ncells > 0)
        sim_weak_drain(buffer, below, random >> buffer->ncells % 32);
}

/* ---- keeping --------------------------------------------------------------------------------- */

static void keep(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below,
                 const struct sim_weak_cell *stored, uint64_t random)
{
    struct sim_weak_cell *cell = find(buffer, stored->at);

    if (cell == NULL) {
        if (buffer->ncells == buffer->capacity)
            sim_weak_drain(buffer, below, random);
        buffer->cells[buffer->ncells++] = *stored;
        return;
    }
    for (int i = 0; i < 8; i++)
        if (stored->mask >> i & 1)
            cell->bytes[i] = stored->bytes[i];
    cell->mask |= stored->mask;
}

void sim_weak_store(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, void *at,
                    const void *value, size_t size_bytes, uint64_t random)
{
    uint8_t *to = at;
    const uint8_t *from = value;

    for (size_t done = 0; done < size_bytes;) {
        struct sim_weak_cell cell = {.at = cell_of(to + done)};
        size_t first = (uintptr_t)(to + done) % 8;

        for (size_t i = first; i < 8 && done < size_bytes; i++) {
            cell.bytes[i] = from[done++];
            cell.mask |= (uint8_t)(1u << i);
        }
        keep(buffer, below, &cell, random >> done);
    }
}

void sim_weak_load(const struct sim_weak_buffer *buffer, void *ret_value, const void *at,
                   size_t size_bytes)
{
    uintptr_t from = (uintptr_t)at;
    uint8_t *to = ret_value;

    for (uintptr_t cell_at = from & ~(uintptr_t)7; cell_at < from + size_bytes; cell_at += 8) {
        const struct sim_weak_cell *cell = find(buffer, (const uint64_t *)cell_at);

        for (int i = 0; cell != NULL && i < 8; i++)
            if ((cell->mask >> i & 1) && cell_at + i >= from && cell_at + i < from + size_bytes)
                to[cell_at + i - from] = cell->bytes[i];
    }
}

void sim_weak_sink(struct sim_weak_buffer *buffer, struct sim_weak_buffer *below, uint64_t random)
{
    while (buffer->ncells > 0) {
        keep(below, NULL, &buffer->cells[0], random >> buffer->ncells % 32);
        forget(buffer, &buffer->cells[0]);
    }
}
