/* SPDX-License-Identifier: Apache-2.0
 * Allocates, frees and lists memory that other processes can map. */
#include "transport/shm/memory.h"

#include "base/atomic.h"
#include "base/log.h"
#include "base/memfd.h"
#include "base/result.h"
#include "base/round.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
/* The smallest allocation that has a memfd. Calls on smaller allocations go through windows, so a
 * descriptor would be wasted. */
#define LEAST_BYTES ((size_t)64 << 10)
/* The most allocations that have a memfd at the same time. Descriptors are scarce: a process may
 * usually have 1024, and needs them for other purposes. */
#define MOST_FILES 128

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

struct allocation {
    struct tutti_memory_part part; /* fd is -1 if the memory cannot be lent */
    struct allocation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /* newest first */
static int nfiles;                     /* allocations that have a memfd, or are about to get one */
static uint64_t generation; /* grows with every change of the list that peers can notice */

static size_t whole_pages(size_t size)
{
    return tutti_round_up(size, (size_t)sysconf(_SC_PAGESIZE));
}

void *tutti_memory_map(int fd, size_t size_bytes)
{
    size_t size = whole_pages(size_bytes), align = size >= HUGE_PAGE ? HUGE_PAGE : 1;
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    uint8_t *room, *at, *end;

    /* Reserve more address space than needed, and give back the parts around the aligned part. */
    room = mmap(NULL, size + align - 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
    if (room == MAP_FAILED)
        return NULL;
    at = (uint8_t *)tutti_round_up((uintptr_t)room, align);
    end = room + whole_pages(size + align - 1);
    if (mmap(at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int error = errno;

        munmap(room, (size_t)(end - room));
        errno = error;
        return NULL;
    }
    if (at > room)
        munmap(room, (size_t)(at - room));
    if (end > at + size)
        munmap(at + size, (size_t)(end - at) - size);
    return at;
}

void tutti_memory_unmap(void *address, size_t size_bytes)
{
    munmap(address, whole_pages(size_bytes));
}

/* Returns a memory file of `size` bytes, or -1. Without a file the memory is not lent. */
static int make_file(size_t size, uint64_t *ret_inode)
{
    struct stat status = {.st_ino = 0};
    int fd;

    if (tutti_memfd_create("tutti-memory", whole_pages(size), &fd) != TUTTI_OK) {
        tutti_log(TUTTI_LOG_WARN, "tuttiMemAlloc: other ranks cannot map these %zu bytes, which "
                  "makes calls on them slower: %s", size, tutti_message_last());
        return -1;
    }
    (void)fstat(fd, &status);
    *ret_inode = status.st_ino;
    return fd;
}

/* True if `size` is at most the number of pages that sysconf gives for `pages_name`, divided by
 * `divisor`. */
static bool is_within(size_t size, int pages_name, size_t divisor)
{
    long pages = sysconf(pages_name);

    return pages > 0 &&
           whole_pages(size) / (size_t)sysconf(_SC_PAGESIZE) <= (size_t)pages / divisor;
}

/* Asks the kernel for huge pages. If it refuses, the memory has small pages, which is no error. The
 * kernel seldom gives huge pages to shared memory by itself, but it can gather existing pages into
 * huge ones. Gathering commits the memory, so it is only done while much memory is free. */
static void want_huge_pages(uint8_t *at, size_t size, bool is_shared)
{
    madvise(at, size, MADV_HUGEPAGE);
    if (!is_shared || !is_within(size, _SC_AVPHYS_PAGES, 2))
        return;
    for (size_t page = 0; page + HUGE_PAGE <= size; page += HUGE_PAGE) {
        *(volatile uint8_t *)(at + page) = 0; /* the kernel skips addresses that have no page yet */
        if (madvise(at + page, HUGE_PAGE, MADV_COLLAPSE) != 0)
            return;
    }
}

/* Decides whether a new allocation gets a memfd, and counts the memfd if so. */
static bool reserve_file(size_t size_bytes)
{
    bool is_file;

    pthread_mutex_lock(&lock);
    /* The kernel does not refuse a file that is larger than the machine's memory, but it does
     * refuse ordinary memory of that size. */
    is_file = size_bytes >= LEAST_BYTES && nfiles < MOST_FILES &&
              is_within(size_bytes, _SC_PHYS_PAGES, 1);
    nfiles += is_file;
    pthread_mutex_unlock(&lock);
    return is_file;
}

static void uncount_file(void)
{
    pthread_mutex_lock(&lock);
    nfiles--;
    pthread_mutex_unlock(&lock);
}

/* Makes and maps the memory of a new allocation, whose size is in `part`. */
static int map_new(struct tutti_memory_part *part)
{
    uint8_t *at;

    part->fd = -1;
    if (reserve_file(part->size_bytes)) {
        part->fd = make_file(part->size_bytes, &part->inode);
        if (part->fd < 0)
            uncount_file();
    }
    at = tutti_memory_map(part->fd, part->size_bytes);
    if (at == NULL) {
        int error = errno;

        if (part->fd >= 0) {
            close(part->fd);
            uncount_file();
        }
        return tutti_fail(TUTTI_ERR_SYSTEM, "tuttiMemAlloc: %zu bytes: %s", part->size_bytes,
                          strerror(error));
    }
    if (part->size_bytes >= HUGE_PAGE)
        want_huge_pages(at, part->size_bytes, part->fd >= 0);
    part->begin = (uint64_t)(uintptr_t)at;
    return TUTTI_OK;
}

int tutti_memory_alloc(size_t size_bytes, void **ret_address)
{
    struct allocation *allocation;
    int rc;

    if (size_bytes > (size_t)PTRDIFF_MAX - 2 * HUGE_PAGE)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMemAlloc: size %zu is negative or overflows",
                          size_bytes);
    allocation = malloc(sizeof *allocation);
    if (allocation == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "tuttiMemAlloc: no memory");
    allocation->part = (struct tutti_memory_part){.size_bytes = size_bytes};
    rc = map_new(&allocation->part);
    if (rc != TUTTI_OK) {
        free(allocation);
        return rc;
    }

    pthread_mutex_lock(&lock);
    allocation->next = allocations;
    allocations = allocation;
    if (allocation->part.fd >= 0)
        /* release: pairs with the load in tutti_memory_generation, whose callers order the rest */
        (void)tutti_fetch_add(&generation, 1);
    pthread_mutex_unlock(&lock);
    *ret_address = (void *)(uintptr_t)allocation->part.begin;
    return TUTTI_OK;
}

int tutti_memory_free(void *address)
{
    struct allocation **at = &allocations;
    struct allocation *found;

    pthread_mutex_lock(&lock);
    while (*at != NULL && (*at)->part.begin != (uint64_t)(uintptr_t)address)
        at = &(*at)->next;
    found = *at;
    if (found != NULL) {
        *at = found->next;
        if (found->part.fd >= 0) {
            nfiles--;
            /* release: pairs with the load in tutti_memory_generation, whose callers order the rest
             */
            (void)tutti_fetch_add(&generation, 1);
        }
    }
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMemFree: %p is not from tuttiMemAlloc, or is "
                          "free already", address);
    tutti_memory_unmap(address, found->part.size_bytes);
    if (found->part.fd >= 0) {
        /* Other processes may map the file for some time yet. Its pages are released at once. */
        (void)fallocate(found->part.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        (off_t)whole_pages(found->part.size_bytes));
        close(found->part.fd);
    }
    free(found);
    return TUTTI_OK;
}

uint64_t tutti_memory_generation(void)
{
    /* relaxed: a thread that passes memory to another thread orders that itself */
    return tutti_load_relaxed(&generation);
}

size_t tutti_memory_list(struct tutti_memory_part *ret_parts, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&lock);
    for (struct allocation *at = allocations; at != NULL && count < most; at = at->next)
        if (at->part.fd >= 0)
            ret_parts[count++] = at->part;
    pthread_mutex_unlock(&lock);
    return count;
}
