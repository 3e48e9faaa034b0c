/* SPDX-License-Identifier: Apache-2.0
 * Maps the memory of arena.h. Its first page counts the processes that have joined. */
#include "arena.h"
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Maps a shared memory object of `total` bytes, which the first process makes. Its name is removed
 * when all processes have mapped it. */
static char *map_shared(const char *path, size_t total)
{
    int fd = shm_open(path, O_CREAT | O_RDWR, 0600);
    char *base;

    if (fd < 0 || ftruncate(fd, (off_t)total) != 0)
        bench_die("cannot make %zu bytes of shared memory at %s: %s", total, path, strerror(errno));
    base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        bench_die("cannot map %s: %s", path, strerror(errno));
    close(fd);
    /* Huge pages only make the measurement faster, so a failure does not matter. */
    (void)madvise(base, total, MADV_HUGEPAGE);
    return base;
}

struct bench_arena bench_arena_join(const char *directory, size_t head_bytes, int nranks,
                                    int process, int nprocesses)
{
    const char *name = strrchr(directory, '/'), *text = getenv("BENCH_ARENA");
    struct bench_arena arena = {0};
    _Atomic int *joined;
    char path[256], *base;

    arena.buffer_bytes = whole_pages(text == NULL ? 0 : (size_t)strtoull(text, NULL, 10));
    head_bytes = whole_pages(head_bytes);
    snprintf(path, sizeof(path), "/tutti-compare-%s", name == NULL ? directory : name + 1);
    base = map_shared(path, PAGE_BYTES + head_bytes + (size_t)nranks * 2 * arena.buffer_bytes);
    joined = (_Atomic int *)(void *)base;
    arena.head = base + PAGE_BYTES;
    arena.buffers = base + PAGE_BYTES + head_bytes;
    /* acq_rel: pairs with the acquire below; the count is all that is passed */
    atomic_fetch_add_explicit(joined, 1, memory_order_acq_rel);
    while (atomic_load_explicit(joined, memory_order_acquire) < nprocesses)
        usleep(1000);
    if (process == 0)
        shm_unlink(path);
    return arena;
}
