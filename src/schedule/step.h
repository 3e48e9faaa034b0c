/* SPDX-License-Identifier: Apache-2.0
 * What a schedule is made of: buffers, chunks, spans, steps.
 *
 * A schedule is one rank's part of one collective, as data: which chunk of
 * which buffer goes to or comes from whom, in which order. It knows no bytes,
 * pointers or sockets; bind.h turns chunks into bytes.
 *
 * Buffers. The collective fixes how many blocks a buffer has (1 or one per
 * rank, see tutti_layout); every block is cut into the same number of chunks,
 * schedule->chunks_per_block (k below). A chunk index counts through the blocks:
 * chunk c of block b is b * k + c.
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
 *
 * A buffer that this rank's user does not give (OUTPUT of a reduce off root,
 * INPUT of a broadcast off root) must not be named in its schedule.
 *
 * SCRATCH is private memory of this rank, `scratch_chunks` chunks. Its chunk c
 * is as large as chunk c of the collective's larger buffer (the one with more
 * blocks) when scratch_like is TUTTI_SCRATCH_VECTOR, or as the largest chunk, rounded up, when
 * TUTTI_SCRATCH_UNIFORM. Messages need VECTOR, for a UNIFORM chunk is as good as never the size of
 * a user's. Where all blocks are equal a VECTOR may have more blocks than the buffers; it just goes
 * on.
 *
 * A barrier has no blocks and moves no data, yet its two-sided form needs messages to wait for:
 * there every SCRATCH chunk is 8 bytes (bind), like UNIFORM, and chunk 0 is as good as written when
 * the schedule starts (check); the other chunks are not. Its promise is order alone: the end of
 * each rank's schedule happens after the start of every other rank's, along messages, signals,
 * dependencies and the program order of local steps.
 *
 * WINDOW is memory of this rank that all ranks of a load/store domain map:
 * `window_chunks` slots, each as large as the largest chunk. A WINDOW span takes
 * its sizes from the other span of its step. Operations larger than the window
 * are run in pieces: the whole schedule once per piece, with two window halves in turns.
 */
#ifndef TUTTI_SCHEDULE_STEP_H
#define TUTTI_SCHEDULE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tutti_collective {
    TUTTI_ALLREDUCE,
    TUTTI_REDUCE,
    TUTTI_BROADCAST,
    TUTTI_ALLGATHER,
    TUTTI_REDUCE_SCATTER,
    TUTTI_ALLTOALL,
    TUTTI_GATHER,
    TUTTI_SCATTER,
    TUTTI_BARRIER,
    TUTTI_COLLECTIVE_COUNT
};

enum tutti_buffer {
    TUTTI_BUF_NONE,
    TUTTI_BUF_INPUT,
    TUTTI_BUF_OUTPUT,
    TUTTI_BUF_SCRATCH,
    TUTTI_BUF_WINDOW,
    TUTTI_BUF_COUNT
};

/* `count` chunks of a buffer from `first` on. */
struct tutti_span {
    uint32_t buffer; /* enum tutti_buffer */
    uint32_t first;
    uint32_t count;
};

#define TUTTI_NO_SPAN ((struct tutti_span){.buffer = TUTTI_BUF_NONE})

enum tutti_step_kind {
    /* Two-sided. The k-th message from a to b on a channel matches b's k-th
     * receive from a on it, with as many bytes. No step may rely on a send
     * being buffered: a send may complete only when its receive has run. */
    TUTTI_STEP_SEND,        /* src -> to */
    TUTTI_STEP_RECV,        /* from -> dst */
    TUTTI_STEP_RECV_REDUCE, /* dst = src op (from) */
    /* Fused by tutti_schedule_fuse: the second half follows the first slice by slice. */
    TUTTI_STEP_RECV_COPY_SEND,        /* from -> dst, and on -> to */
    TUTTI_STEP_RECV_REDUCE_SEND,      /* src op (from) -> to, stored nowhere */
    TUTTI_STEP_RECV_REDUCE_COPY_SEND, /* dst = src op (from), and on -> to */

    /* Local. */
    TUTTI_STEP_COPY,   /* dst = src; touches nothing where, in place, the two are one */
    TUTTI_STEP_REDUCE, /* dst = dst op src */

    /* One-sided, inside a load/store domain. `remote` is a span of another rank's buffer. A PUT or
     * GATHER_REDUCE may go by some of the ranks, its own one of them, instead of by all
     * (`among_count`): then read these where it says all ranks. */
    /* remote of rank `to` = src. With to == TUTTI_ALL_RANKS that of every other rank, and `dst`. */
    TUTTI_STEP_PUT,
    TUTTI_STEP_GET, /* dst = remote of rank `from` */
    /* dst (and `also`, unless NONE) = op over all ranks in rank order of
     * (rank == me ? src : remote of that rank). With to == TUTTI_ALL_RANKS the
     * result is stored into the span `remote_dst` of every other rank as well; with `to` a rank,
     * into that of this rank alone, and there is neither `dst` nor `also`. */
    TUTTI_STEP_GATHER_REDUCE,
    TUTTI_STEP_SIGNAL, /* my signal number grows by one; publishes all my earlier steps to all */
    TUTTI_STEP_WAIT, /* until rank `from` (or all) has given its signal number `signal` (1 = first)
                      */
    TUTTI_STEP_KIND_COUNT
};

#define TUTTI_ALL_RANKS (-2)
#define TUTTI_NO_RANK (-1)

struct tutti_step {
    uint8_t kind;     /* enum tutti_step_kind */
    uint8_t channel;  /* lane of two-sided steps */
    uint16_t signal;  /* WAIT */
    /* Two-sided steps of one direction in the same queue run one after the other, whoever their
     * peers are: dependencies say so. 0: in none. Steps in queues are not fused. */
    uint16_t queue;
    int32_t from, to; /* ranks, or TUTTI_NO_RANK / TUTTI_ALL_RANKS */
    struct tutti_span src, dst, remote, also, remote_dst;
    /* Steps of this rank that must be complete before this one starts:
     * schedule->deps[dep_first .. + dep_count). Derived, see build.h. */
    uint32_t dep_first, dep_count;
    /* schedule->among[among_first .. + among_count): ranks, ascending. 0: all there are. */
    uint32_t among_first, among_count;
};

/* What a schedule asks of the ranks' memory. */
enum {
    TUTTI_NEEDS_WINDOW = 1u << 0,     /* windows mapped by all ranks, and signals */
    TUTTI_NEEDS_PEER_READ = 1u << 1,  /* signals, and INPUT/OUTPUT of peers readable by GET */
    TUTTI_NEEDS_PEER_STORE = 1u << 2, /* the same, by plain loads and stores */
};

enum tutti_scratch_like { TUTTI_SCRATCH_NONE, TUTTI_SCRATCH_VECTOR, TUTTI_SCRATCH_UNIFORM };

struct tutti_schedule {
    uint8_t collective;        /* enum tutti_collective */
    uint8_t scratch_like;      /* enum tutti_scratch_like */
    uint16_t nchannels;
    uint32_t needs;
    uint32_t nranks, rank, root;
    uint32_t chunks_per_block; /* >= 1 */
    uint32_t scratch_chunks;
    uint32_t window_chunks;
    uint32_t nsignals;         /* signal numbers used up by one run, the same on all ranks, >= 1 if
                                  the schedule has any one-sided step */
    bool is_one_sided;         /* local and one-sided steps only: runs strictly in order */
    bool is_lean;              /* no rank's schedule uses SCRATCH; the same on all ranks */
    bool sums_in_stages;       /* sums of one GATHER_REDUCE are summed by another: to be rounded, or
                                  scaled, at the end only; the same on all ranks */
    bool is_one_tree;          /* all goes up one tree: tutti_build_one_tree */
    uint32_t nsteps, ndeps, namong;
    struct tutti_step *steps;
    uint32_t *deps;
    uint32_t *among;
};

/* The steps that `step` waits for: dep_count indices. NULL if there are none: a schedule without any
 * has no array to point into. */
static inline const uint32_t *tutti_step_deps(const struct tutti_schedule *schedule,
                                              const struct tutti_step *step)
{
    return step->dep_count > 0 ? schedule->deps + step->dep_first : NULL;
}

/* Blocks of INPUT and OUTPUT of a collective over nranks ranks (the table above). */
uint32_t tutti_input_blocks(enum tutti_collective collective, uint32_t nranks);
uint32_t tutti_output_blocks(enum tutti_collective collective, uint32_t nranks);

/* Does this rank's user give the buffer? */
bool tutti_has_input(enum tutti_collective collective, uint32_t rank, uint32_t root);
bool tutti_has_output(enum tutti_collective collective, uint32_t rank, uint32_t root);

/* Where in-place calls overlay the buffers: INPUT chunk c is OUTPUT chunk c + *ret_shift. False
 * when this rank has none. */
bool tutti_in_place_shift(enum tutti_collective collective, uint32_t rank, uint32_t root,
                          uint32_t chunks_per_block, int64_t *ret_shift);

bool tutti_collective_reduces(enum tutti_collective collective);
bool tutti_collective_has_root(enum tutti_collective collective);

/* "allreduce", "reduce_scatter", ... / "recv_reduce", ... */
const char *tutti_collective_name(enum tutti_collective collective);
const char *tutti_step_name(enum tutti_step_kind kind);

void tutti_schedule_destroy(struct tutti_schedule *schedule);

#endif
