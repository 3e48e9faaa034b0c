/* SPDX-License-Identifier: Apache-2.0
 * The elements of a schedule: buffers, chunks, spans, steps.
 *
 * A schedule is one rank's part of one collective, as data: which chunk of which buffer goes to or
 * comes from which rank, in which order. It has no bytes, pointers or sockets; bind.h turns chunks
 * into bytes.
 *
 * Buffers. The collective determines how many blocks a buffer has, one or one per rank
 * (collective.h). Every block is cut into the same number of chunks,
 * schedule->chunks_per_block (k below). A chunk index counts through the blocks: chunk c of block b
 * is b * k + c.
 *
 *                    INPUT blocks   OUTPUT blocks   in place: same memory
 *   all-reduce            1              1          INPUT c        = OUTPUT c
 *   reduce                1              1 (root)   INPUT c        = OUTPUT c      (root)
 *   broadcast             1 (root)       1          INPUT c        = OUTPUT c      (root)
 *   all-gather            1              p          INPUT c        = OUTPUT rank*k+c
 *   reduce-scatter        p              1          INPUT rank*k+c = OUTPUT c
 *   gather                1              p (root)   INPUT c        = OUTPUT root*k+c (root)
 *   scatter               p (root)       1          INPUT root*k+c = OUTPUT c        (root)
 *   all-to-all            p              p          never: the caller's input is copied first
 *   barrier               0              0
 *   scan                  1              1          INPUT c        = OUTPUT c
 *   exclusive scan        1              1 (not 0)  INPUT c        = OUTPUT c      (not rank 0)
 *
 * Some ranks have no INPUT or no OUTPUT: for example, the OUTPUT of a reduce exists only at the
 * root, and that of an exclusive scan does not exist at rank 0. A rank's schedule must not name a
 * buffer that the rank does not have.
 *
 * SCRATCH is private memory of this rank, `scratch_chunks` chunks. With TUTTI_SCRATCH_VECTOR its
 * chunk c is as large as chunk c of the collective's larger buffer (the one with more blocks). With
 * TUTTI_SCRATCH_UNIFORM every chunk is as large as the largest chunk, rounded up. Messages need
 * VECTOR, because a UNIFORM chunk rarely has the size of a user's chunk. Where all blocks are
 * equal, VECTOR memory may have more blocks than the buffers; the numbering just continues.
 *
 * A barrier has no blocks and moves no data, but its two-sided form needs messages to wait for.
 * There every SCRATCH chunk has 8 bytes (bind.c), as with UNIFORM. Chunk 0 counts as written when
 * the schedule starts, so it can be sent first; every other chunk must be written before it is
 * read. A barrier promises only order: each rank's schedule ends after every other rank's schedule
 * has started. This order follows from messages, signals, dependencies and the program order of
 * local steps.
 *
 * WINDOW is memory of this rank that all ranks of a load/store domain map: `window_chunks` slots,
 * each as large as the largest chunk. A WINDOW span takes its sizes from another span of its step.
 * Operations larger than the window run in pieces: the whole schedule runs once per piece, and
 * alternates between two halves of the window.
 */
#ifndef TUTTI_SCHEDULE_STEP_H
#define TUTTI_SCHEDULE_STEP_H

#include "schedule/collective.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tutti_buffer {
    TUTTI_BUF_NONE,
    TUTTI_BUF_INPUT,
    TUTTI_BUF_OUTPUT,
    TUTTI_BUF_SCRATCH,
    TUTTI_BUF_WINDOW,
    TUTTI_BUF_COUNT
};

/* Chunks first .. first + count - 1 of a buffer. */
struct tutti_span {
    uint32_t buffer; /* enum tutti_buffer */
    uint32_t first;
    uint32_t count;
};

#define TUTTI_NO_SPAN ((struct tutti_span){.buffer = TUTTI_BUF_NONE})

enum tutti_step_kind {
    /* Two-sided. The k-th message from a to b on a channel matches b's k-th receive from a on that
     * channel and has as many bytes. No step may rely on a send being buffered: a send may complete
     * only when its receive has run. */
    TUTTI_STEP_SEND,        /* src -> to */
    TUTTI_STEP_RECV,        /* from -> dst */
    TUTTI_STEP_RECV_REDUCE, /* dst = src op (from) */
    /* Fused by tutti_schedule_fuse: the sending half follows the receiving half slice by slice. */
    TUTTI_STEP_RECV_COPY_SEND,        /* from -> dst, and the same to `to` */
    TUTTI_STEP_RECV_REDUCE_SEND,      /* src op (from) -> to, not stored */
    TUTTI_STEP_RECV_REDUCE_COPY_SEND, /* dst = src op (from), and the same to `to` */

    /* Local. */
    /* dst = src; does nothing where an in-place call makes the two the same */
    TUTTI_STEP_COPY,
    TUTTI_STEP_REDUCE, /* dst = dst op src */

    /* One-sided, inside a load/store domain. `remote` is a span of another rank's buffer. A PUT to
     * all ranks or a GATHER_REDUCE may be restricted to some of the ranks, this one among them
     * (`among_count`). "All ranks" below then means these ranks. */
    /* `remote` of rank `to` = src. With to == TUTTI_ALL_RANKS: `remote` of every other rank = src,
     * and `dst` of this rank = src. */
    TUTTI_STEP_PUT,
    TUTTI_STEP_GET, /* dst = remote of rank `from` */
    /* dst (and `also`, unless NONE) = op over all ranks, in rank order, of src of this rank and
     * `remote` of every other rank. With to == TUTTI_ALL_RANKS the result is stored to the span
     * `remote_dst` of every other rank as well. With `to` a rank, it is stored to the `remote_dst`
     * of that rank alone, and there is neither `dst` nor `also`. */
    TUTTI_STEP_GATHER_REDUCE,
    /* This rank's signal number grows by one. The step makes all earlier steps of this rank visible
     * to all ranks. */
    TUTTI_STEP_SIGNAL,
    /* Wait until rank `from` (or every rank) has given its signal number `signal`; 1 is the
     * first. */
    TUTTI_STEP_WAIT,
    TUTTI_STEP_KIND_COUNT
};

#define TUTTI_ALL_RANKS (-2)
#define TUTTI_NO_RANK (-1)

struct tutti_step {
    uint8_t kind;     /* enum tutti_step_kind */
    uint8_t channel;  /* channel of a two-sided step */
    uint16_t signal;  /* of a WAIT: number of the signal */
    /* Two-sided steps of one direction in the same queue run one after another, even if their peers
     * differ; dependencies enforce it. 0: the step is in no queue. Steps in queues are not
     * fused. */
    uint16_t queue;
    int32_t from, to; /* ranks, or TUTTI_NO_RANK / TUTTI_ALL_RANKS */
    /* enum tutti_step_kind says which of these a step uses; the others are TUTTI_NO_SPAN. */
    struct tutti_span src, dst, remote, also, remote_dst;
    /* Steps of this rank that must be complete before this one starts: schedule->deps[dep_first ..
     * dep_first + dep_count - 1], indices of steps. They are derived (build.h). */
    uint32_t dep_first, dep_count;
    /* The ranks that TUTTI_ALL_RANKS stands for in this step: schedule->among[among_first ..
     * among_first + among_count - 1], ascending. 0: all ranks. */
    uint32_t among_first, among_count;
};

/* Bits of the accesses to other ranks' memory that a schedule requires. */
enum {
    TUTTI_NEEDS_WINDOW = 1u << 0,     /* all ranks map all windows and exchange signals */
    /* GET can read INPUT and OUTPUT of peers; ranks exchange signals. */
    TUTTI_NEEDS_PEER_READ = 1u << 1,
    /* Plain loads and stores can access INPUT and OUTPUT of peers; ranks exchange signals. */
    TUTTI_NEEDS_PEER_STORE = 1u << 2,
};

enum tutti_scratch_like { TUTTI_SCRATCH_NONE, TUTTI_SCRATCH_VECTOR, TUTTI_SCRATCH_UNIFORM };

struct tutti_schedule {
    uint8_t collective;        /* enum tutti_collective */
    uint8_t scratch_like;      /* enum tutti_scratch_like */
    uint16_t nchannels;
    uint32_t needs;            /* TUTTI_NEEDS_* bits */
    uint32_t nranks, rank, root;
    uint32_t chunks_per_block; /* >= 1 */
    uint32_t scratch_chunks;
    uint32_t window_chunks;
    /* Signal numbers that one run uses; the same on all ranks, and at least 1 if the schedule has
     * any one-sided step. */
    uint32_t nsignals;
    bool is_one_sided;         /* only local and one-sided steps: runs strictly in order */
    bool is_lean;              /* no rank's schedule uses SCRATCH; same on all ranks */
    /* The result of one GATHER_REDUCE is an operand of another, so a result must be rounded or
     * scaled only at the end. The same on all ranks. */
    bool sums_in_stages;
    bool is_one_tree;          /* all data goes up one tree: tutti_build_one_tree */
    uint32_t nsteps, ndeps, namong;
    struct tutti_step *steps;
    uint32_t *deps;
    uint32_t *among;
};

/* Indices of the steps that `step` waits for, dep_count of them. NULL if there are none, because a
 * schedule without dependencies has no array to point into. */
static inline const uint32_t *tutti_step_deps(const struct tutti_schedule *schedule,
                                              const struct tutti_step *step)
{
    return step->dep_count > 0 ? schedule->deps + step->dep_first : NULL;
}

/* "recv_reduce", ...; "unknown" if out of range. */
const char *tutti_step_name(enum tutti_step_kind kind);

/* Free a schedule; NULL is ignored. */
void tutti_schedule_destroy(struct tutti_schedule *schedule);

#endif
