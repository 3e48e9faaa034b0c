/* SPDX-License-Identifier: Apache-2.0
 * Lays out, makes and maps the shared segment of a host, and tests by locks which members live. */
#include "transport/shm/segment.h"

#include "base/memfd.h"
#include "base/param.h"
#include "base/result.h"
#include "base/round.h"
#include "transport/fabric.h"
#include "transport/shm/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3247455349545554) /* "TUTISEG2" */
#define PAGE 4096
/* The largest half of a window, and the largest ring of a FIFO, in a header that is accepted. */
#define MOST_BYTES (UINT64_C(1) << 31)

/* ---- layout -------------------------------------------------------------------------- */

/* Offsets of the parts of a segment (segment.h), in bytes. The strides are the distances between
 * two FIFOs, and between the rows of `mapped`. */
struct layout {
    size_t members, waiters, activities, posts, slots, windows, fifos, fifo_stride;
    size_t lend_slots, mapped, mapped_stride, areas, counts, total;
};

static struct layout lay_out(size_t n, size_t half_bytes, size_t fifo_bytes)
{
    struct layout at;

    at.members = tutti_round_up(sizeof(struct tutti_shm_segment_header), TUTTI_CACHE_LINE);
    at.waiters = at.members + n * sizeof(struct tutti_shm_member);
    at.activities = at.waiters + n * sizeof(struct tutti_waiter);
    at.posts = at.activities + n * sizeof(struct tutti_activities);
    at.slots = tutti_round_up(at.posts + n * TUTTI_POSTS * sizeof(struct tutti_post), PAGE);
    at.windows = at.slots + n * TUTTI_POSTS * TUTTI_SLOT_BYTES;
    at.fifos = at.windows + n * 2 * half_bytes;
    at.fifo_stride = tutti_round_up(sizeof(struct tutti_fifo) + fifo_bytes, PAGE);
    at.lend_slots = at.fifos + TUTTI_CHANNEL_COUNT * n * n * at.fifo_stride;
    at.mapped = at.lend_slots + n * TUTTI_LEND_SLOTS * sizeof(struct tutti_lend_slot);
    at.mapped = tutti_round_up(at.mapped, TUTTI_CACHE_LINE);
    at.mapped_stride = tutti_round_up(n * sizeof(uint32_t), TUTTI_CACHE_LINE);
    at.areas = tutti_round_up(at.mapped + n * at.mapped_stride, PAGE);
    at.counts = at.areas + n * TUTTI_AREA_BYTES;
    at.total =
        at.counts + n * TUTTI_DOMAIN_COUNTS_SIDES * TUTTI_ACTIVITIES * (1 + n) * sizeof(uint64_t);
    return at;
}

int tutti_shm_segment_create(uint32_t nmembers, int *ret_fd)
{
    struct tutti_shm_segment_header header = {
        .magic = MAGIC,
        .half_bytes = tutti_round_up((size_t)tutti_param_int(TUTTI_PARAM_WINDOW_BYTES) / 2, PAGE),
        .fifo_bytes = tutti_power_of_two_from((size_t)tutti_param_int(TUTTI_PARAM_FIFO_BYTES)),
        .nmembers = nmembers};
    int fd, rc;

    header.total_bytes = lay_out(nmembers, header.half_bytes, header.fifo_bytes).total;
    rc = tutti_memfd_create("tutti", header.total_bytes, &fd);
    if (rc != TUTTI_OK)
        return tutti_fail(rc, "%s", tutti_message_last());
    if (pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "write to the shared segment of %u ranks: %s", nmembers,
                        strerror(errno));
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return TUTTI_OK;
}

/* ---- descriptors --------------------------------------------------------------------- */

/* POSIX locks belong to (process, file). They are released when the process closes any descriptor
 * of the file, even one that another rank of the process has received. So every descriptor is kept
 * until the process's last segment of that file is destroyed. */
struct tutti_kept_fd {
    int fd;
    struct tutti_kept_fd *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tutti_shm_segment *segments;

/* Returns another segment of the list that has the same file, or NULL. */
static struct tutti_shm_segment *find_same_file(const struct tutti_shm_segment *segment)
{
    for (struct tutti_shm_segment *at = segments; at != NULL; at = at->next)
        if (at != segment && at->device == segment->device && at->inode == segment->inode)
            return at;
    return NULL;
}

/* Locks or unlocks this member's byte of the file. */
static int set_lock(const struct tutti_shm_segment *segment, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET,
                         .l_start = (off_t)segment->domain.me, .l_len = 1};

    return fcntl(segment->fd, F_SETLK, &lock);
}

/* Removes a segment from the list. If another segment has the same file, the mapping and the
 * descriptors pass to that segment. Otherwise they are released. */
static void leave_list(struct tutti_shm_segment *segment)
{
    struct tutti_shm_segment **link = &segments;
    struct tutti_shm_segment *successor;
    struct tutti_kept_fd **end = &segment->kept;

    pthread_mutex_lock(&list_lock);
    while (*link != segment) {
        tutti_assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = segment->next;
    successor = find_same_file(segment);

    if (successor != NULL) {
        (void)set_lock(segment, F_UNLCK);
        while (*end != NULL)
            end = &(*end)->next;
        *end = successor->kept;
        successor->kept = segment->kept;
        segment->kept = NULL;
    } else if (segment->header != NULL) {
        munmap(segment->header, segment->header->total_bytes);
    }
    /* The descriptors are closed under the lock, because otherwise a segment of the same file that
     * is just being mapped would lose its POSIX lock. */
    while (segment->kept != NULL) {
        struct tutti_kept_fd *kept = segment->kept;

        segment->kept = kept->next;
        close(kept->fd);
        free(kept);
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- mapping ------------------------------------------------------------------------- */

/* Reads and checks the header, which another process has written. */
static int check_header(int fd, uint32_t nmembers, struct tutti_shm_segment_header *ret_header,
                        struct stat *ret_status)
{
    struct tutti_shm_segment_header *header = ret_header;

    *ret_status = (struct stat){.st_ino = 0};
    if (fstat(fd, ret_status) != 0 || pread(fd, header, sizeof *header, 0) != sizeof *header)
        return tutti_fail(TUTTI_ERR_SYSTEM, "read the shared segment: %s", strerror(errno));
    if (header->magic != MAGIC || header->nmembers != nmembers || header->half_bytes % PAGE != 0 ||
        header->half_bytes > MOST_BYTES || header->fifo_bytes > MOST_BYTES ||
        (header->fifo_bytes & (header->fifo_bytes - 1)) != 0 ||
        header->fifo_bytes < TUTTI_CACHE_LINE ||
        header->total_bytes != lay_out(nmembers, header->half_bytes, header->fifo_bytes).total ||
        header->total_bytes != (uint64_t)ret_status->st_size)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "the shared segment is not one of %u ranks of this version", nmembers);
    return TUTTI_OK;
}

/* Sets the pointers of a segment that is mapped at `base`. */
static void set_pointers(struct tutti_shm_segment *segment, uint8_t *base,
                         const struct tutti_shm_segment_header *header)
{
    struct tutti_domain *domain = &segment->domain;
    struct layout at = lay_out(header->nmembers, header->half_bytes, header->fifo_bytes);

    tutti_assert(domain->me < header->nmembers && at.total == header->total_bytes);
    segment->header = (struct tutti_shm_segment_header *)(void *)base;
    segment->members = (struct tutti_shm_member *)(void *)(base + at.members);
    segment->fifos = base + at.fifos;
    segment->fifo_stride = at.fifo_stride;
    domain->waiters = (struct tutti_waiter *)(void *)(base + at.waiters);
    domain->activities = (struct tutti_activities *)(void *)(base + at.activities);
    domain->posts = (struct tutti_post *)(void *)(base + at.posts);
    domain->slots = base + at.slots;
    domain->windows = base + at.windows;
    domain->half_bytes = header->half_bytes;
    domain->lend_slots = (struct tutti_lend_slot *)(void *)(base + at.lend_slots);
    domain->mapped = (uint32_t *)(void *)(base + at.mapped);
    domain->mapped_stride = at.mapped_stride / sizeof(uint32_t);
    domain->areas = base + at.areas;
    domain->counts = (uint64_t *)(void *)(base + at.counts);
    domain->sleepers = &segment->header->sleepers;
    domain->note = &segment->header->note;
}

static void free_segment(struct tutti_shm_segment *segment)
{
    free(segment->ranks);
    free(segment->pids);
    free(segment->access);
    free(segment->kept);
    free(segment);
}

static struct tutti_shm_segment *alloc_segment(int fd, uint32_t me, uint32_t nmembers,
                                               const uint32_t *ranks)
{
    struct tutti_shm_segment *segment = calloc(1, sizeof *segment);

    if (segment == NULL)
        return NULL;
    segment->fd = fd;
    segment->bell.fd = -1;
    segment->ranks = calloc(nmembers, sizeof *segment->ranks);
    segment->pids = calloc(nmembers, sizeof *segment->pids);
    segment->access = calloc(nmembers, sizeof *segment->access);
    segment->kept = calloc(1, sizeof *segment->kept);
    if (!segment->ranks || !segment->pids || !segment->access || !segment->kept) {
        free_segment(segment);
        return NULL;
    }
    memcpy(segment->ranks, ranks, nmembers * sizeof *ranks);
    segment->kept->fd = fd;
    segment->domain = (struct tutti_domain){.nmembers = nmembers, .me = me,
                                            .ranks = segment->ranks, .access = segment->access};
    return segment;
}

/* There is one mapping per process, so that the ranks of a process share page tables. Tools that
 * look for data races between threads then also see that they access the same memory. */
static int map_or_share(struct tutti_shm_segment *segment,
                        const struct tutti_shm_segment_header *header)
{
    struct tutti_shm_segment *other = find_same_file(segment);
    void *base;

    if (other != NULL && other->header != NULL) {
        set_pointers(segment, (uint8_t *)other->header, header);
        return TUTTI_OK;
    }
    base = mmap(NULL, header->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                segment->fd, 0);
    if (base == MAP_FAILED)
        return tutti_fail(TUTTI_ERR_SYSTEM, "map the shared segment of %llu bytes: %s",
                          (unsigned long long)header->total_bytes, strerror(errno));
    set_pointers(segment, base, header);
    return TUTTI_OK;
}

int tutti_shm_segment_map(int fd, uint32_t me, uint32_t nmembers, const uint32_t *ranks,
                          struct tutti_shm_segment **ret_segment)
{
    struct tutti_shm_segment_header header;
    struct tutti_shm_segment *segment = alloc_segment(fd, me, nmembers, ranks);
    struct stat status;
    int rc;

    if (segment == NULL) {
        close(fd);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the segment of %u ranks", nmembers);
    }
    rc = check_header(fd, nmembers, &header, &status);

    pthread_mutex_lock(&list_lock);
    segment->device = status.st_dev;
    segment->inode = status.st_ino;
    if (rc == TUTTI_OK)
        rc = map_or_share(segment, &header);
    segment->next = segments;
    segments = segment;
    pthread_mutex_unlock(&list_lock);

    if (rc == TUTTI_OK && set_lock(segment, F_WRLCK) != 0)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "lock byte %u of the shared segment: %s", me,
                        strerror(errno));
    if (rc != TUTTI_OK) {
        tutti_shm_segment_destroy(segment);
        return rc;
    }
    *ret_segment = segment;
    return TUTTI_OK;
}

void tutti_shm_segment_destroy(struct tutti_shm_segment *segment)
{
    if (segment == NULL)
        return;
    tutti_bell_close(&segment->bell);
    leave_list(segment);
    free_segment(segment);
}

bool tutti_shm_segment_is_alive(const struct tutti_shm_segment *segment, uint32_t index)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)index,
                         .l_len = 1};

    return fcntl(segment->fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* ---- report -------------------------------------------------------------------------- */

/* Returns the bytes of the pages between these addresses that are in memory. */
static size_t resident_bytes(uint8_t *begin, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *at = (uint8_t *)((uintptr_t)begin / page * page);
    uint8_t *end = begin + size;
    unsigned char pages[1024];
    size_t bytes = 0;

    while (at < end) {
        size_t most = (size_t)(end - at) < sizeof pages * page ? (size_t)(end - at)
                                                               : sizeof pages * page;

        if (mincore(at, most, pages) != 0)
            return bytes;
        for (size_t i = 0; i * page < most; i++)
            bytes += (pages[i] & 1) * page;
        at += most;
    }
    return bytes;
}

size_t tutti_shm_segment_touched(const struct tutti_shm_segment *segment)
{
    const struct tutti_domain *domain = &segment->domain;
    size_t bytes = sizeof(struct tutti_waiter) + sizeof(struct tutti_shm_member) +
                   TUTTI_POSTS * sizeof(struct tutti_post);

    bytes += resident_bytes(tutti_domain_slot(domain, domain->me, 0),
                            TUTTI_POSTS * TUTTI_SLOT_BYTES);
    bytes += resident_bytes(tutti_domain_window(domain, domain->me, 0), 2 * domain->half_bytes);
    for (int channel = 0; channel < TUTTI_CHANNEL_COUNT; channel++)
        bytes += resident_bytes((uint8_t *)tutti_shm_segment_fifo(segment, channel, domain->me, 0),
                                domain->nmembers * segment->fifo_stride);
    return bytes;
}
