/* SPDX-License-Identifier: Apache-2.0
 * Declares the segment: the memory that the ranks of one host share. These ranks are the members.
 * The segment is a memfd that the first member makes and all members map. domain.h explains the
 * parts of the segment.
 *
 *     header | members[n] | waiters[n] | activities[n] | posts[n][8] | slots[n][8] |
 *     windows[n][2] | fifos[channel][n][n] | lend_slots[n] | mapped[n][n] | areas[n] | counts[n]
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
    uint64_t total_bytes; /* size of the segment */
    uint64_t half_bytes; /* size of half a window */
    uint64_t fifo_bytes; /* size of a FIFO's ring */
    uint32_t nmembers;
    alignas(TUTTI_CACHE_LINE) uint32_t sleepers; /* struct tutti_domain points to these two */
    struct tutti_abort_note note;
};

/* A member is present from the moment when it locks byte number [its index] of the segment's file,
 * until it changes `presence` or its process ends, which releases the lock. */
struct tutti_shm_member {
    alignas(TUTTI_CACHE_LINE) uint32_t presence; /* enum below; its owner writes it */
    uint32_t is_inside; /* 1 while the owner accesses memory of other members (guard.c); its owner
                           writes it */
};
enum { TUTTI_SHM_MEMBER_PRESENT, TUTTI_SHM_MEMBER_LEFT, TUTTI_SHM_MEMBER_DROPPED };

/* One rank's mapping of a segment. */
struct tutti_shm_segment {
    struct tutti_domain domain; /* first, because domain.c converts between the two */
    struct tutti_shm_segment_header *header; /* NULL: not mapped */
    struct tutti_shm_member *members; /* [nmembers] */
    uint8_t *fifos;             /* use tutti_shm_segment_fifo */
    size_t fifo_stride;         /* bytes from one FIFO to the next */
    uint32_t *ranks;            /* [nmembers], which domain.ranks points to */
    int32_t *pids;              /* [nmembers] */
    enum tutti_domain_access *access; /* [nmembers], which domain.access points to */
    struct tutti_bell bell;     /* the bell of this member; its fd is -1 until it is opened */
    bool lends;                 /* this member lends memory to other processes, or once did */
    uint32_t times_inside;      /* calls of tutti_domain_enter that tutti_domain_exit has not yet
                                   undone */
    int fd;                     /* the descriptor of the file by which this rank holds its lock */
    struct tutti_shm_segment *next; /* in the process's list of segments, under its lock */
    struct tutti_kept_fd *kept; /* descriptors of this file to close with the last mapping */
    dev_t device;               /* `device` and `inode` identify the file */
    ino_t inode;
};

/* Make the file of a segment for `nmembers` members. Sizes come from the parameters. The caller
 * owns *ret_fd. */
int tutti_shm_segment_create(uint32_t nmembers, int *ret_fd);

/* Map the file, once per process, and lock its byte `me`. The function takes over `fd`, also on
 * failure. A process loses its locks on a file when it closes any descriptor of it, so the segments
 * of the process close their descriptors together. `ranks` (ascending) is copied. The caller fills
 * in `pids` and `access`, which are zero. */
int tutti_shm_segment_map(int fd, uint32_t me, uint32_t nmembers, const uint32_t *ranks,
                          struct tutti_shm_segment **ret_segment);

/* Release this rank's lock, and unmap the segment unless another rank of this process uses the
 * mapping. NULL is ignored. */
void tutti_shm_segment_destroy(struct tutti_shm_segment *segment);

/* True if the process of member `index`, which is not this process, still holds its lock. */
bool tutti_shm_segment_is_alive(const struct tutti_shm_segment *segment, uint32_t index);

/* Tests and returns this rank's access to the memory of the process that identifies itself as
 * `theirs`. If `may_read` is false, memory of another process is not read. Implemented in
 * domain.c. */
enum tutti_domain_access tutti_shm_segment_probe(const struct tutti_identity *mine,
                                                 const struct tutti_identity *theirs,
                                                 bool may_read);

/* Returns the bytes of the segment that hold this rank's windows, posts and outgoing FIFOs. Only
 * pages that any rank has touched count. */
size_t tutti_shm_segment_touched(const struct tutti_shm_segment *segment);

/* Returns the FIFO of a channel from member `from` to member `to`. */
static inline struct tutti_fifo *tutti_shm_segment_fifo(const struct tutti_shm_segment *segment,
                                                        int channel, uint32_t from, uint32_t to)
{
    size_t n = segment->domain.nmembers;
    size_t index = ((size_t)channel * n + from) * n + to;

    return (struct tutti_fifo *)(void *)(segment->fifos + index * segment->fifo_stride);
}

#endif
