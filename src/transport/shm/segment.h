/* SPDX-License-Identifier: Apache-2.0
 * The memory that the ranks of one host share, as domain.h draws it. It is a memfd that the first
 * of them makes and all of them map.
 *
 *     header | members[n] | waiters[n] | activities[n] | posts[n][8] | slots[n][8] |
 *     windows[n][2] | fifos[channel][n][n] | lend_slots[n] | come[n][n] | boards[n] | counts[n]
 *
 * The index of a FIFO is fifos[channel][from][to]. The part from the slots on is page-aligned, and
 * uses only the pages that are touched. */
#ifndef TUTTI_TRANSPORT_SHM_SEGMENT_H
#define TUTTI_TRANSPORT_SHM_SEGMENT_H

#include "transport/identity.h"
#include "transport/shm/bell.h"
#include "transport/domain.h"
#include "transport/shm/fifo.h"

#include <sys/types.h>

struct tutti_shm_segment_header {
    uint64_t magic;
    uint64_t total_bytes;
    uint64_t half_bytes; /* of a window */
    uint64_t fifo_bytes; /* the ring alone */
    uint32_t nmembers;
    alignas(TUTTI_CACHE_LINE) uint32_t sleepers;
    struct tutti_abort_note note;
};

/* A member is present from its lock on the segment's byte [index] until it announces otherwise. */
struct tutti_member {
    alignas(TUTTI_CACHE_LINE) uint32_t presence; /* enum below; its owner writes it */
    uint32_t is_inside; /* the other members' memory that it is inside now; its owner writes it */
};
enum { TUTTI_MEMBER_PRESENT, TUTTI_MEMBER_LEFT, TUTTI_MEMBER_DROPPED };

struct tutti_shm_segment {
    struct tutti_domain domain; /* first, because domain.c converts between the two */
    struct tutti_shm_segment_header *header;
    struct tutti_member *members;
    uint8_t *fifos;
    size_t fifo_stride;
    uint32_t *ranks;            /* [nmembers], the domain's */
    int32_t *pids;              /* [nmembers] */
    enum tutti_access *access;  /* [nmembers], the domain's */
    struct tutti_bell bell;     /* of this member; if fd is -1 it has none unless it is opened
                                   later */
    bool lends;                 /* true if it lends memory to other processes, or did once */
    uint32_t times_inside;      /* accesses to others' memory: calls of enter without an exit so
                                   far */
    int fd;
    struct tutti_shm_segment *next; /* in the process's list of segments, under its lock */
    struct tutti_kept_fd *kept; /* descriptors of this file to close with the last mapping */
    dev_t device;
    ino_t inode;
};

/* Make the file for `nmembers` members. Sizes come from the parameters. */
int tutti_shm_segment_create(uint32_t nmembers, int *ret_fd);

/* Map the file (once per process) and take its lock as member `me`. Takes over `fd` in any case: a
 * process's locks on a file are released when it closes any descriptor of it, so the segments of
 * the process close them together. `ranks` (ascending) is copied. Pids and access are zero. */
int tutti_shm_segment_map(int fd, uint32_t me, uint32_t nmembers, const uint32_t *ranks,
                          struct tutti_shm_segment **ret_segment);

/* Unmap. NULL is ignored. */
void tutti_shm_segment_destroy(struct tutti_shm_segment *segment);

/* True if the process of member `index`, which is not this process, still holds its lock. */
bool tutti_shm_segment_is_alive(const struct tutti_shm_segment *segment, uint32_t index);

/* Tests and returns this rank's access to the memory of the process that identifies itself as
 * `theirs`. */
enum tutti_access tutti_shm_segment_probe(const struct tutti_identity *mine,
                                          const struct tutti_identity *theirs, bool may_read);

/* Bytes of the host's memory that hold this rank's share: its windows, posts and outgoing FIFOs.
 * Only pages that any rank has touched count. */
size_t tutti_shm_segment_touched(const struct tutti_shm_segment *segment);

static inline struct tutti_fifo *tutti_shm_segment_fifo(const struct tutti_shm_segment *segment,
                                                        int channel, uint32_t from, uint32_t to)
{
    size_t n = segment->domain.nmembers;
    size_t index = ((size_t)channel * n + from) * n + to;

    return (struct tutti_fifo *)(void *)(segment->fifos + index * segment->fifo_stride);
}

#endif
