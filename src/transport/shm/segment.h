/* SPDX-License-Identifier: Apache-2.0
 * The memory that the ranks of one host share, as domain.h draws it: a memfd,
 * made by the first of them and mapped by all.
 *
 *     header | members[n] | doors[n] | activities[n] | posts[n][8] | slots[n][8] |
 *     windows[n][2] | fifos[channel][n][n] | shelves[n] | come[n][n] | boards[n] | counts[n]
 *
 * fifos[channel][from][to]. The part from the slots on is page-aligned and costs only what is
 * touched.
 */
#ifndef TUTTI_TRANSPORT_SHM_SEGMENT_H
#define TUTTI_TRANSPORT_SHM_SEGMENT_H

#include "transport/identity.h"
#include "transport/shm/bell.h"
#include "transport/domain.h"
#include "transport/shm/fifo.h"

#include <sys/types.h>

struct tutti_segment_header {
    uint64_t magic;
    uint64_t total_bytes;
    uint64_t half_bytes; /* of a window */
    uint64_t fifo_bytes; /* the ring alone */
    uint32_t nmembers;
    alignas(TUTTI_CACHE_LINE) uint32_t sleepers;
    struct tutti_abort_note note;
};

/* A member is present from its lock on the segment's byte [index] until it says otherwise. */
struct tutti_member {
    alignas(TUTTI_CACHE_LINE) uint32_t presence; /* enum below; written by its owner */
    uint32_t is_inside; /* other members' memory, just now; written by its owner */
};
enum { TUTTI_MEMBER_PRESENT, TUTTI_MEMBER_LEFT, TUTTI_MEMBER_DROPPED };

struct tutti_segment {
    struct tutti_domain domain; /* first: domain.c gets from one to the other */
    struct tutti_segment_header *header;
    struct tutti_member *members;
    uint8_t *fifos;
    size_t fifo_stride;
    uint32_t *ranks;            /* [nmembers], the domain's */
    int32_t *pids;              /* [nmembers] */
    enum tutti_access *access;  /* [nmembers], the domain's */
    struct tutti_bell bell;     /* this member's; without one (fd -1) unless opened later */
    bool lends;                 /* memory to other processes, or did once */
    uint32_t times_inside;      /* others' memory: calls of enter that exit has not ended */
    int fd;
    struct tutti_segment *next; /* in the process's list of segments, under its lock */
    struct tutti_kept_fd *kept; /* descriptors of this file to close with the last mapping */
    dev_t device;
    ino_t inode;
};

/* Make the file for `nmembers` members. Sizes come from the parameters. */
int tutti_segment_create(uint32_t nmembers, int *ret_fd);

/* Map the file (once per process) and take its lock as member `me`. Takes over `fd` in any case: a
 * process's locks on a file vanish when it closes any descriptor of it, so closing is left to the
 * segments of the process together. `ranks` (ascending) is copied. Pids and access are zero. */
int tutti_segment_map(int fd, uint32_t me, uint32_t nmembers, const uint32_t *ranks,
                      struct tutti_segment **ret_segment);

/* Unmap. NULL is ignored. */
void tutti_segment_destroy(struct tutti_segment *segment);

/* Does the process of member `index`, not our own, still hold its lock? */
bool tutti_segment_is_alive(const struct tutti_segment *segment, uint32_t index);

/* What this rank can do with the memory of the process that calls itself `theirs`; tries it. */
enum tutti_access tutti_segment_probe(const struct tutti_identity *mine,
                                      const struct tutti_identity *theirs, bool may_read);

/* Bytes of the host's memory that hold this rank's share: its windows, posts and outgoing FIFOs,
 * as touched so far by anybody. */
size_t tutti_segment_touched(const struct tutti_segment *segment);

static inline struct tutti_fifo *tutti_segment_fifo(const struct tutti_segment *segment,
                                                    int channel, uint32_t from, uint32_t to)
{
    size_t n = segment->domain.nmembers;
    size_t index = ((size_t)channel * n + from) * n + to;

    return (struct tutti_fifo *)(void *)(segment->fifos + index * segment->fifo_stride);
}

#endif
