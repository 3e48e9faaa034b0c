/* SPDX-License-Identifier: Apache-2.0
 * What the host tells kernels, and what kernels of different ranks tell each other: plain structs,
 * the same for C and CUDA C++.
 *
 * A domain is a communicator's ranks whose kernels can load from and store to each other's memory:
 * each other's device memory, or memory of the host that both see. Each rank launches the same
 * works in the same order; every work takes one epoch of the domain (messages take none). Epochs
 * are counted on the device, so that a launch may be captured in a graph and played again.
 *
 * Each ordered pair of ranks has a mailbox, which one of them writes and the other reads; it lies
 * in the reader's memory where the writer can reach that.
 */
#ifndef TUTTI_DEVICE_CUDA_WORK_H
#define TUTTI_DEVICE_CUDA_WORK_H

#include <stddef.h>
#include <stdint.h>

enum {
    TUTTI_GPU_RANKS = 64,    /* most ranks of a domain */
    TUTTI_GPU_THREADS = 256, /* most threads of a block; a multiple of 32, at least 32 */
    TUTTI_GPU_BLOCKS = 256,  /* most blocks of a launch */
    TUTTI_GPU_MAPS = 32,     /* allocations of a rank that its peers may have mapped */
    TUTTI_GPU_LINE = 128,    /* bytes that travel together */
    TUTTI_GPU_SIGNAL_BITS = 20, /* of a counter: for the signals of one epoch */
};

/* ---- between ranks ---------------------------------------------------------------------- */

/* What every rank tells every other at the begin of every epoch: which call it runs. Four words of
 * two times four bytes, each with the epoch's flag (gpu_store_flagged): signature (as in
 * executor/signature.h; its count is what the two of them exchange where ranks may have counts of
 * their own), chain of the calls before, number of the call. */
struct tutti_gpu_greeting {
    uint32_t words[4][4];
};

/* Where a rank's buffers are, as far as the reader is concerned: told in works that use each
 * other's buffers. One line; the counter is released last, and again with each further signal of
 * the epoch. */
struct tutti_gpu_post {
    uint64_t counter;       /* epoch << TUTTI_GPU_SIGNAL_BITS | signals given in it */
    uint64_t input, output; /* offsets in the maps below; with map 0 addresses */
    uint32_t input_map, output_map;
    uint64_t most;          /* elements of its largest block */
    uint64_t unused[11];
};

/* Maps of a post that are none: an address that only its owner can use, */
#define TUTTI_GPU_NOT_MAPPED UINT32_MAX
/* and its window, whatever the offset. */
#define TUTTI_GPU_IN_WINDOW (UINT32_MAX - 1)

/* One line each: posts, and the two greetings together. The writer's parity: epoch & 1. */
struct tutti_gpu_mail {
    struct tutti_gpu_post posts[2];
    struct tutti_gpu_greeting greetings[2];
};

/* Where a rank has the buffers of a round, one run of a one-sided schedule: as in its post. In
 * its window offsets count from the beginning of the first of the two. */
struct tutti_gpu_places {
    uint64_t input, output;
    uint32_t input_map, output_map;
};

/* One direction of one connection, on one channel: slots of `slot_bytes` behind its two counters.
 * Written by the sender, but for `head`, which lies in the other direction's (so that each side
 * polls its own memory). */
struct tutti_gpu_fifo {
    uint64_t tail;       /* slots ever filled by the writer */
    uint64_t unused[15];
    uint64_t head;       /* slots ever emptied by the writer, of the other direction */
    uint64_t unused_too[15];
    /* Of one-sided steps: what the writer's block says. */
    uint64_t signals;    /* epoch << TUTTI_GPU_SIGNAL_BITS | signals given in it */
    /* of its buffers: rounds take turns, and so do epochs */
    struct tutti_gpu_places places[2][2];
    uint64_t unused_three[3];
    /* [slots] headers, one line each, then [slots][slot_bytes], then [slots][flagged_bytes] */
};

/* The first slot of a message says what it belongs to. Schedules have greetings for that. */
struct tutti_gpu_header {
    uint64_t number;
    uint64_t signature[2];
    uint64_t chain;
    uint64_t unused[12];
};

/* How a pair's mailbox is laid out, and what ranks reserve: the same for all pairs of a domain. */
struct tutti_gpu_layout {
    uint32_t nranks, channels, slots;
    uint32_t slot_bytes;   /* a multiple of the line */
    uint32_t flagged_bytes; /* of each slot, for messages so small that they travel with flags, half
                               as many bytes; a multiple of the line, 0: none */
    uint32_t unused;
    uint64_t ll_bytes;     /* of lines, for each parity: a multiple of the line */
    uint64_t ll128_bytes;  /* likewise */
    uint64_t window_bytes; /* likewise, of each window */
    /* Where these are in a mailbox, each at a line; its size. */
    uint64_t ll_at, ll128_at, fifo_at, fifo_stride, mailbox_bytes;
};
/* Bytes of data that a rank may have for another in works of lines: by LL 16 of every 32, in whole
 * warps; by LL128 120 of every 128. */
#define TUTTI_GPU_LL_CAPACITY(layout) ((layout)->ll_bytes / 1024 * 512)
#define TUTTI_GPU_LL128_CAPACITY(layout) ((layout)->ll128_bytes / TUTTI_GPU_LINE * 120)
#define TUTTI_GPU_FIFO_BYTES(layout)                                    \
    (sizeof(struct tutti_gpu_fifo) + (uint64_t)(layout)->slots * \
     (sizeof(struct tutti_gpu_header) + (layout)->slot_bytes + (layout)->flagged_bytes))

/* ---- a rank's own ------------------------------------------------------------------------- */

/* A rank of the domain as this rank sees it: all addresses are of this rank's context. */
struct tutti_gpu_peer {
    uint8_t *to;     /* the mailbox that I write */
    uint8_t *from;   /* the one that it writes */
    uint8_t *window; /* its two windows, one behind the other; mine where it is me */
    uint64_t maps[TUTTI_GPU_MAPS]; /* where I see its allocations; [0] is 0: addresses are the same
                                      for both of us */
};

/* Kept by kernels from launch to launch, in device memory, zero at first. */
struct tutti_gpu_counters {
    uint64_t epoch;        /* the last one begun */
    uint64_t heard_epoch;  /* the last in which everybody's greeting was read */
    uint64_t arrivals;     /* of this launch's blocks at meetings of the grid */
    uint64_t leavers;      /* blocks of this launch that are done */
    uint64_t is_aborted;   /* seen by any block: all leave */
    /* of FIFOs: slots ever filled, and slots ever emptied, [channels][nranks] each, behind this */
};
#define TUTTI_GPU_COUNTERS_BYTES(channels, nranks) \
    (sizeof(struct tutti_gpu_counters) + 2 * (size_t)(channels) * (nranks) * sizeof(uint64_t))

/* Why kernels wait in vain. */
enum tutti_gpu_fault {
    TUTTI_GPU_FINE = 0,
    TUTTI_GPU_ABORTED,   /* the host said so */
    TUTTI_GPU_LATE,      /* the deadline has passed */
    TUTTI_GPU_MISMATCH,  /* another rank does something else */
    TUTTI_GPU_BROKEN,    /* what was read makes no sense */
};

/* Page-locked memory of the host, which both sides see. */
struct tutti_gpu_report {
    uint64_t abort;     /* the host's: anything but 0 ends all kernels of the communicator */
    uint64_t unused[15];
    uint64_t fault;     /* enum tutti_gpu_fault: released last, by whoever is first (claimed) */
    uint64_t claimed;
    uint64_t rank;      /* that was waited for */
    uint64_t number;    /* of the call */
    uint64_t mine[2], theirs[2]; /* signatures, of a mismatch */
    uint64_t their_number;
    uint64_t unused_too[7];
    /* Of the test of lines: how often one of that rank was seen that was not whole. */
    uint64_t torn[TUTTI_GPU_RANKS];
};
/* Of a rank from which not all have come. */
#define TUTTI_GPU_LINES_MISSING UINT64_MAX

/* In device memory; written by the host when the domain is formed. */
struct tutti_gpu_domain {
    struct tutti_gpu_layout layout;
    uint32_t nranks, rank;
    struct tutti_gpu_peer *peers; /* [nranks] */
    struct tutti_gpu_counters *counters;
    struct tutti_gpu_report *report;
};

/* ---- works --------------------------------------------------------------------------------- */

enum tutti_gpu_work_kind {
    TUTTI_GPU_LL,       /* lines with flags, pushed to all who need them: for small calls */
    TUTTI_GPU_LL128,
    TUTTI_GPU_DIRECT,   /* from the ranks' buffers into the ranks' buffers */
    TUTTI_GPU_STEPS,    /* a schedule, step by step */
    TUTTI_GPU_MESSAGES, /* sends and receives: steps too, but of pairs */
    TUTTI_GPU_COPIES,   /* the driver copies; kernels only meet in between (copies.cuh) */
};

/* How a buffer's blocks lie, in elements. */
struct tutti_gpu_blocks {
    uint64_t count;          /* of each block, `count` apart; of v-forms: */
    const uint64_t *counts;  /* [nranks]; NULL: no v-form */
    const uint64_t *displs;  /* [nranks]; never NULL with counts */
};

struct tutti_gpu_work {
    uint8_t kind;       /* enum tutti_gpu_work_kind */
    uint8_t collective; /* enum tutti_collective of schedule/step.h */
    uint8_t type, op;   /* enum tutti_type, enum tutti_op */
    uint8_t is_premultiplied; /* by `scalar`, or what `scalar_address` has when the kernel runs */
    uint8_t is_average;
    uint8_t unused[2];
    int32_t root;
    uint32_t input_map, output_map; /* by which all peers see them; TUTTI_GPU_NOT_MAPPED */
    const void *input;
    void *output;
    uint64_t input_offset, output_offset; /* in those maps; addresses with map 0 */
    struct tutti_gpu_blocks in, out;
    uint64_t signature[2], chain, number;
    const void *scalar_address; /* NULL: */
    uint64_t scalar;    /* its first bytes are one element */
    const void *program; /* STEPS and MESSAGES: in device memory */
    uint8_t *scratch;    /* what its program stages and keeps */
    /* Of COPIES: */
    uint32_t meeting;    /* how many of this work's came before it */
    uint32_t npieces;    /* between any two ranks; 0: by their counts, and */
    uint64_t piece_count; /* elements of a piece */
};

/* The argument of the kernel that tries lines: so many rounds to and from some peers, which run the
 * same. One block. */
struct tutti_gpu_line_test {
    struct tutti_gpu_domain *domain;
    uint64_t peers;       /* by bits */
    uint64_t deadline_ns; /* from its begin on; 0: none */
    uint32_t rounds;
    uint32_t unused;
};

/* The one argument of the communicating kernels: at most 4 KiB. */
struct tutti_gpu_launch {
    struct tutti_gpu_domain *domain;
    uint64_t deadline_ns;  /* from its begin on; 0: none */
    uint32_t nworks;
    uint32_t unused;
    const struct tutti_gpu_work *more; /* works [1, nworks), in memory that the device sees */
    struct tutti_gpu_work first;
};

#endif
