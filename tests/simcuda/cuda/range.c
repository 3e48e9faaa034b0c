/* SPDX-License-Identifier: Apache-2.0
 * Finds the allocation or mapping that contains an address. */
#include "simcuda/cuda/memory.h"

#include "simcuda/cuda/faults.h"
#include "simcuda/die.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)256 << 30)
#define PAGE_BYTES ((size_t)4096)
#define FILL_BYTES ((size_t)16 << 20) /* so much of an allocation is filled */

struct sim_range *sim_ranges;

pthread_rwlock_t sim_ranges_lock = PTHREAD_RWLOCK_INITIALIZER;
static uintptr_t arena, arena_used;

/* ---- addresses ------------------------------------------------------------------------------- */

uintptr_t sim_addresses(size_t size_bytes, size_t alignment)
{
    uintptr_t at;

    if (arena == 0) {
        void *reserved = mmap(NULL, ARENA_BYTES, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (reserved == MAP_FAILED)
            sim_die("no addresses for device memory: %s", strerror(errno));
        arena = (uintptr_t)reserved;
        arena_used = arena;
    }
    at = (arena_used + alignment - 1) & ~(alignment - 1);
    if (size_bytes > ARENA_BYTES || at + size_bytes + PAGE_BYTES > arena + ARENA_BYTES)
        return 0;
    arena_used = at + size_bytes + PAGE_BYTES;
    return at;
}

bool sim_is_reserved(uintptr_t at)
{
    return arena != 0 && at >= arena && at < arena + ARENA_BYTES;
}

void sim_forbid(uintptr_t at, size_t size_bytes)
{
    if (mmap((void *)at, size_bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        sim_die("cannot forbid memory: %s", strerror(errno));
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void fill(int file, size_t size_bytes)
{
    size_t filled = size_bytes < FILL_BYTES ? size_bytes : FILL_BYTES;
    void *at = mmap(NULL, filled, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (at == MAP_FAILED)
        sim_die("cannot map memory of a device: %s", strerror(errno));
    memset(at, 0xa5, filled);
    munmap(at, filled);
}

struct sim_pages *sim_pages_create(struct sim_device *device, size_t size_bytes)
{
    struct sim_pages *pages;

    if (sim_faults_allocation() || size_bytes > sim_settings.memory_bytes - device->used_bytes)
        return NULL;
    pages = calloc(1, sizeof *pages);
    if (pages == NULL)
        sim_die("no memory to note a device's");
    *pages = (struct sim_pages){.nrefs = 1, .size_bytes = size_bytes, .device = device};
    pages->file = memfd_create("simcuda", MFD_CLOEXEC);
    if (pages->file < 0 || ftruncate(pages->file, (off_t)size_bytes) != 0)
        sim_die("no file for %zu bytes of a device's memory: %s", size_bytes, strerror(errno));
    fill(pages->file, size_bytes);
    device->used_bytes += size_bytes;
    return pages;
}

struct sim_pages *sim_pages_import(int file, struct sim_device *device, size_t size_bytes)
{
    struct sim_pages *pages = calloc(1, sizeof *pages);

    if (pages == NULL)
        sim_die("no memory to note a device's");
    *pages = (struct sim_pages){.nrefs = 1, .size_bytes = size_bytes, .device = device,
                                .is_imported = true};
    pages->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (pages->file < 0)
        sim_die("no file for memory of another process: %s", strerror(errno));
    return pages;
}

void sim_pages_drop(struct sim_pages *pages)
{
    if (--pages->nrefs > 0)
        return;
    if (!pages->is_imported)
        pages->device->used_bytes -= pages->size_bytes;
    close(pages->file);
    free(pages);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct sim_range *sim_range_of(uintptr_t at)
{
    struct sim_range *range = sim_ranges;

    while (range != NULL && (at < range->base || at - range->base >= range->size_bytes))
        range = range->next;
    return range;
}

struct sim_device *sim_range_device(const struct sim_range *range)
{
    return range != NULL && range->pages != NULL ? range->pages->device : NULL;
}

int sim_range_check(uintptr_t at, size_t size_bytes, struct sim_range **ret_range)
{
    struct sim_range *first = sim_range_of(at);
    uintptr_t end = at + size_bytes;

    if (first == NULL) {
        *ret_range = NULL;
        return sim_is_reserved(at) ? TUTTI_CU_INVALID_VALUE : TUTTI_CU_SUCCESS;
    }
    /* Pieces that are mapped side by side are one. */
    while (at < end) {
        struct sim_range *range = sim_range_of(at);

        if (range == NULL || (range->kind == SIM_RANGE_MAPPED && range->devices == 0))
            return TUTTI_CU_INVALID_VALUE;
        at = range->base + range->size_bytes;
    }
    *ret_range = first;
    return TUTTI_CU_SUCCESS;
}

struct sim_range *sim_range_add(const struct sim_range *range)
{
    struct sim_range *added = malloc(sizeof *added);

    if (added == NULL)
        sim_die("no memory to note a device's");
    *added = *range;
    pthread_rwlock_wrlock(&sim_ranges_lock);
    added->next = sim_ranges;
    sim_ranges = added;
    pthread_rwlock_unlock(&sim_ranges_lock);
    return added;
}

void sim_range_remove(struct sim_range *range)
{
    struct sim_range **link = &sim_ranges;

    pthread_rwlock_wrlock(&sim_ranges_lock);
    while (*link != range)
        link = &(*link)->next;
    *link = range->next;
    pthread_rwlock_unlock(&sim_ranges_lock);
    sim_rights_shrink();
    if (range->kind != SIM_RANGE_REGISTERED)
        sim_forbid(range->pages_at, range->pages_bytes);
    if (range->pages != NULL)
        sim_pages_drop(range->pages);
    free(range);
}
