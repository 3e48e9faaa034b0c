/* SPDX-License-Identifier: Apache-2.0
 * Lends memory of tuttiMemAlloc: keeps this rank's own list, and maps the memory in the lists of
 * other members. lend.h explains the protocol. */
#include "transport/shm/lend.h"

#include "base/log.h"
#include "base/result.h"
#include "transport/shm/memory.h"
#include "transport/shm/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Memory of another member that this rank maps. */
struct borrowed {
    uint32_t number; /* its number on the owner's list; 0: nothing is mapped */
    uint64_t begin;  /* address in the owner's process */
    uint64_t size_bytes;
    uint8_t *here; /* address in this process */
};

struct peer {
    uint32_t last;             /* number up to which this rank has read the peer's list */
    struct borrowed *borrowed; /* [TUTTI_LEND_SLOTS]; NULL until the peer's list has an entry */
};

struct tutti_lend {
    struct tutti_domain *domain;
    /* This rank's list: allocations, and their numbers, at the positions of the numbers. */
    struct tutti_memory_part mine[TUTTI_LEND_SLOTS];
    uint32_t numbers[TUTTI_LEND_SLOTS]; /* 0: free */
    uint32_t last;                      /* the last number of this list */
    uint32_t mapped_by_all; /* the number up to which all peers had mapped this list when this rank
                               last looked */
    uint64_t generation;    /* tutti_memory_generation when this rank's list was last updated */
    struct peer peers[];    /* [nmembers] */
};

static struct tutti_shm_segment *segment_of(const struct tutti_lend *lend)
{
    return (struct tutti_shm_segment *)lend->domain;
}

int tutti_lend_create(struct tutti_domain *domain, struct tutti_lend **ret_lend)
{
    struct tutti_lend *lend =
        calloc(1, sizeof *lend + domain->nmembers * sizeof lend->peers[0]);

    if (lend == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to list the memory that %u ranks lend",
                          domain->nmembers);
    lend->domain = domain;
    *ret_lend = lend;
    return TUTTI_OK;
}

static void unmap_borrowed(struct borrowed *borrowed)
{
    if (borrowed->number != 0)
        tutti_memory_unmap(borrowed->here, (size_t)borrowed->size_bytes);
    *borrowed = (struct borrowed){.number = 0};
}

void tutti_lend_destroy(struct tutti_lend *lend)
{
    if (lend == NULL)
        return;
    for (uint32_t index = 0; index < lend->domain->nmembers; index++) {
        struct borrowed *borrowed = lend->peers[index].borrowed;

        for (uint32_t place = 0; borrowed != NULL && place < TUTTI_LEND_SLOTS; place++)
            unmap_borrowed(&borrowed[place]);
        free(borrowed);
    }
    free(lend);
}

size_t tutti_lend_bytes(const struct tutti_lend *lend)
{
    size_t bytes;

    if (lend == NULL)
        return 0;
    bytes = sizeof *lend + lend->domain->nmembers * sizeof lend->peers[0];
    for (uint32_t index = 0; index < lend->domain->nmembers; index++)
        if (lend->peers[index].borrowed != NULL)
            bytes += TUTTI_LEND_SLOTS * sizeof(struct borrowed);
    return bytes;
}

/* ---- this rank's list ------------------------------------------------------------------------ */

/* Adds an allocation to this rank's list, with the next number. */
static void publish(struct tutti_lend *lend, const struct tutti_memory_part *part)
{
    uint32_t number = ++lend->last, place = number % TUTTI_LEND_SLOTS;
    struct tutti_lend_slot *slot = tutti_lend_slots(lend->domain, lend->domain->me) + place;

    tutti_assert(part->fd >= 0 && part->size_bytes > 0);
    lend->mine[place] = *part;
    lend->numbers[place] = number;
    /* release, all: a reader that sees a word sees the zero before it; pairs with read_slot */
    tutti_store_release(&slot->number, 0);
    tutti_store_release(&slot->inode, part->inode);
    tutti_store_release(&slot->begin, part->begin);
    tutti_store_release(&slot->size_bytes, part->size_bytes);
    tutti_store_release(&slot->fd, part->fd);
    tutti_store_release(&slot->number, number);
}

/* Removes an allocation from this rank's list. */
static void unpublish(struct tutti_lend *lend, uint32_t place)
{
    tutti_assert(lend->numbers[place] != 0);
    lend->numbers[place] = 0;
    /* release: pairs with the acquire in read_slot */
    tutti_store_release(&tutti_lend_slots(lend->domain, lend->domain->me)[place].number, 0);
}

static bool contains(const struct tutti_memory_part *parts, size_t count, uint64_t inode)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].inode == inode)
            return true;
    return false;
}

static bool is_published(const struct tutti_lend *lend, uint64_t inode)
{
    for (uint32_t place = 0; place < TUTTI_LEND_SLOTS; place++)
        if (lend->numbers[place] != 0 && lend->mine[place].inode == inode)
            return true;
    return false;
}

/* Removes freed memory from the list, and then adds new memory, the newest last. New memory takes
 * at most half of the places, so that it does not replace all entries that peers have mapped. */
static void update_list(struct tutti_lend *lend)
{
    struct tutti_memory_part parts[TUTTI_LEND_SLOTS / 2];
    uint64_t generation = tutti_memory_generation();
    size_t count = tutti_memory_list(parts, sizeof parts / sizeof *parts);

    for (uint32_t place = 0; place < TUTTI_LEND_SLOTS; place++)
        if (lend->numbers[place] != 0 && !contains(parts, count, lend->mine[place].inode))
            unpublish(lend, place);
    while (count-- > 0)
        if (!is_published(lend, parts[count].inode))
            publish(lend, &parts[count]);
    lend->generation = generation;
    segment_of(lend)->lends = segment_of(lend)->lends || lend->last > 0;
}

/* Returns the number up to which all peers have mapped this rank's list. */
static uint32_t count_mapped_by_all(const struct tutti_lend *lend)
{
    const struct tutti_domain *domain = lend->domain;
    uint32_t least = lend->last;

    for (uint32_t index = 0; index < domain->nmembers; index++) {
        uint32_t mapped;

        if (index == domain->me || domain->access[index] == TUTTI_DOMAIN_ACCESS_STORE)
            continue;
        /* acquire: pairs with the release in tutti_lend_learn */
        mapped = tutti_load_acquire(tutti_lend_mapped(domain, index, domain->me));
        if (mapped < least)
            least = mapped;
    }
    return least;
}

uint32_t tutti_lend_number(struct tutti_lend *lend, const void *buffer, size_t size_bytes)
{
    uint64_t begin = (uint64_t)(uintptr_t)buffer;

    if (lend->generation != tutti_memory_generation())
        update_list(lend);
    if (lend->last == 0)
        return 0;
    for (uint32_t place = 0; place < TUTTI_LEND_SLOTS; place++) {
        const struct tutti_memory_part *part = &lend->mine[place];

        if (lend->numbers[place] != 0 && begin >= part->begin &&
            begin - part->begin <= part->size_bytes &&
            size_bytes <= part->size_bytes - (begin - part->begin))
            return lend->numbers[place];
    }
    return 0;
}

uint32_t tutti_lend_offer(struct tutti_lend *lend, const void *buffer, size_t size_bytes)
{
    uint32_t number = tutti_lend_number(lend, buffer, size_bytes);

    tutti_assert(lend->mapped_by_all <= lend->last && number <= lend->last);
    if (lend->mapped_by_all < lend->last)
        lend->mapped_by_all = count_mapped_by_all(lend);
    return number <= lend->mapped_by_all ? number : 0;
}

bool tutti_lend_is_mapped(const struct tutti_lend *lend, uint32_t index, uint32_t number)
{
    /* acquire: pairs with the release in tutti_lend_learn */
    return tutti_load_acquire(tutti_lend_mapped(lend->domain, index, lend->domain->me)) >= number;
}

uint32_t tutti_lend_last(const struct tutti_lend *lend)
{
    return lend->last;
}

/* ---- the lists of others -------------------------------------------------------------- */

/* Copies an entry of another member's list. Returns false if the entry is free or is being
 * written. */
static bool read_slot(const struct tutti_lend_slot *slot, struct tutti_lend_slot *ret_place)
{
    /* acquire, all: pairs with publish */
    ret_place->number = tutti_load_acquire(&slot->number);
    ret_place->inode = tutti_load_acquire(&slot->inode);
    ret_place->begin = tutti_load_acquire(&slot->begin);
    ret_place->size_bytes = tutti_load_acquire(&slot->size_bytes);
    ret_place->fd = tutti_load_acquire(&slot->fd);
    return ret_place->number != 0 && tutti_load_acquire(&slot->number) == ret_place->number;
}

/* Returns a copy of descriptor `fd` of process `pid`, which the caller closes; -1: errno tells
 * why. */
static int fetch_descriptor(int pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0), ours, error;

    if (process < 0)
        return -1;
    ours = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    error = errno;
    close(process);
    errno = error;
    return ours;
}

/* Maps an allocation of member `index`, in place of the memory in `borrowed`. Returns false if this
 * process cannot map the allocation. Memory that the owner has freed meanwhile counts as mapped,
 * since it is not offered any more. The descriptor of such memory is closed, or denotes another
 * file. */
static bool borrow(struct tutti_lend *lend, uint32_t index, const struct tutti_lend_slot *place,
                   struct borrowed *borrowed)
{
    struct tutti_shm_segment *segment = segment_of(lend);
    int fd = fetch_descriptor(segment->pids[index], place->fd);
    struct stat status;
    uint8_t *here;

    unmap_borrowed(borrowed);
    if (fd < 0 && errno == EBADF)
        return true;
    if (fd < 0) {
        tutti_log(TUTTI_LOG_INFO, "memory of rank %u is not shared: pidfd_getfd: %s",
                  lend->domain->ranks[index], strerror(errno));
        return false;
    }
    if (fstat(fd, &status) != 0 || (uint64_t)status.st_ino != place->inode ||
        (uint64_t)status.st_size < place->size_bytes) {
        close(fd);
        return true;
    }
    here = tutti_memory_map(fd, (size_t)place->size_bytes);
    close(fd);
    if (here == NULL) {
        tutti_log(TUTTI_LOG_INFO, "memory of rank %u is not shared: map %llu bytes: %s",
                  lend->domain->ranks[index], (unsigned long long)place->size_bytes,
                  strerror(errno));
        return false;
    }
    *borrowed = (struct borrowed){.number = (uint32_t)place->number, .begin = place->begin,
                                  .size_bytes = place->size_bytes, .here = here};
    return true;
}

void tutti_lend_learn(struct tutti_lend *lend, uint32_t index, uint32_t last)
{
    struct peer *peer = &lend->peers[index];
    const struct tutti_lend_slot *list = tutti_lend_slots(lend->domain, index);

    tutti_assert(index < lend->domain->nmembers && index != lend->domain->me);
    if (peer->last == last || lend->domain->access[index] == TUTTI_DOMAIN_ACCESS_STORE)
        return;
    peer->last = last;
    if (peer->borrowed == NULL)
        peer->borrowed = calloc(TUTTI_LEND_SLOTS, sizeof *peer->borrowed);
    if (peer->borrowed == NULL || lend->domain->access[index] != TUTTI_DOMAIN_ACCESS_READ)
        return;
    for (uint32_t i = 0; i < TUTTI_LEND_SLOTS; i++) {
        struct tutti_lend_slot place;

        if (!read_slot(&list[i], &place))
            unmap_borrowed(&peer->borrowed[i]);
        else if (place.number != peer->borrowed[i].number &&
                 !borrow(lend, index, &place, &peer->borrowed[i]))
            return; /* the owner will never learn that this rank has mapped it */
    }
    /* release: pairs with the acquire in count_mapped_by_all and in tutti_lend_is_mapped */
    tutti_store_release(tutti_lend_mapped(lend->domain, lend->domain->me, index), last);
}

uint8_t *tutti_lend_at(const struct tutti_lend *lend, uint32_t index, uint32_t number,
                       uint64_t address, uint64_t size_bytes)
{
    const struct borrowed *borrowed = lend->peers[index].borrowed;
    uint64_t offset;

    if (number == 0 || number == TUTTI_NOT_THERE || borrowed == NULL)
        return NULL;
    borrowed += number % TUTTI_LEND_SLOTS;
    offset = address - borrowed->begin;
    if (borrowed->number != number || offset > borrowed->size_bytes ||
        size_bytes > borrowed->size_bytes - offset)
        return NULL;
    return borrowed->here + offset;
}
