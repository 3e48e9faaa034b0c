/* SPDX-License-Identifier: Apache-2.0
 * Declares the data and functions that the files of the transports "shm" and "cma" share. The two
 * are separate entries of the table of transports, but have one state, that of "shm", because both
 * use the host's segment.
 *
 *   shm.c      the byte stream over a pair's FIFOs
 *   fifo.c     a FIFO
 *   life.c     the two entries of the table; gives the ranks of a host their segment
 *   segment.c  makes, maps and releases the segment
 *   pass.c     passes the segment's descriptor between processes
 *   domain.c   wakes other ranks of the host, reads their memory, compares their counts
 *   bell.c     wakes a rank that sleeps on sockets
 *   memory.c   allocates memory that other processes can map
 *   lend.c     lends such memory to the other processes
 *   watch.c    detects which ranks of the host have given up, left or died
 *   guard.c    keeps ranks out of others' memory after a failure
 *   report.c   the memory of a host in words */
#ifndef TUTTI_TRANSPORT_SHM_SHM_H
#define TUTTI_TRANSPORT_SHM_SHM_H

#include "transport/fabric_private.h"
#include "transport/shm/lend.h"
#include "transport/shm/pass.h"
#include "transport/shm/segment.h"

extern const struct tutti_transport_ops tutti_shm_ops;
extern const struct tutti_transport_ops tutti_cma_ops;

/* The slice of "shm" in a rank's verdict. */
struct tutti_shm_verdict {
    uint8_t has_segment; /* the rank has mapped the segment. Settling clears this on all ranks of a
                            host if one of them has not mapped it. */
    uint8_t can_read; /* the rank can read the memory of all other processes of the domain */
    char reason[58];  /* the reason why there is no segment */
};

struct tutti_shm {
    struct tutti_pass *pass;       /* passes the segment's descriptor while joining; else NULL */
    struct tutti_shm_segment *segment; /* set and cleared under fabric->lock */
    bool has_domain;               /* after settle: the segment is used */
    uint32_t *members;             /* ranks of this host that may share memory, ascending */
    uint32_t nmembers, my_index;   /* my_index: this rank's index among the members */
    int cma_error;           /* errno of the first member whose memory this rank cannot read */
    int cma_denied_by;       /* that rank; -1: none */
    struct tutti_lend *lend; /* NULL: no member is a process that can read this rank's memory */
};

/* Returns the state of "shm"; NULL if TUTTI_TRANSPORTS excludes it, or if there is one rank. */
static inline struct tutti_shm *tutti_shm_of(const struct tutti_fabric *fabric)
{
    return tutti_part_state(fabric, &tutti_shm_ops);
}

/* Returns the verdict of `rank`, which is valid after settle has begun. */
static inline struct tutti_shm_verdict *tutti_shm_verdict(const struct tutti_fabric *fabric,
                                                          int rank)
{
    return tutti_verdict_slice(fabric, &tutti_shm_ops, rank);
}

/* Returns the index of a rank among the members. For a rank that is no member, it returns the index
 * of the last member before it, or 0 if there is none. */
uint32_t tutti_shm_index(const struct tutti_shm *shm, int rank);

/* ---- shm.c --------------------------------------------------------------------------- */

/* The `connect` operations of the two transports (transport.h). */
int tutti_shm_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);
int tutti_cma_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);

/* ---- watch.c ------------------------------------------------------------------------- */

/* Operations of "shm" (transport.h). */

bool tutti_shm_find_dead(const struct tutti_fabric *fabric, int *from, uint32_t most,
                         struct tutti_loss *ret_loss);
void tutti_shm_abort(struct tutti_fabric *fabric, struct tutti_cause *cause);
void tutti_shm_leave(struct tutti_fabric *fabric, bool is_orderly);
bool tutti_shm_has_left(const struct tutti_fabric *fabric, int rank);

/* ---- report.c ------------------------------------------------------------------------ */

/* Operations of "shm" (transport.h). */

void tutti_shm_usage(const struct tutti_fabric *fabric, struct tutti_fabric_usage *usage);
void tutti_shm_report(const struct tutti_fabric *fabric, char *ret_text, size_t size);

#endif
