/* SPDX-License-Identifier: Apache-2.0
 * Declares the structs by which the host instructs kernels, and by which kernels of different ranks
 * communicate. C and CUDA C++ share these plain structs.
 *
 * A domain is the set of a communicator's ranks whose kernels can load from and store to each
 * other's memory: device memory, or host memory that both can access. Between ranks of different
 * hosts, each side has a copy of the mailbox in host memory, and threads of the hosts carry what is
 * stored in one copy to the other (executor/cuda/proxy.c). All ranks launch the same
 * works in the same order. A work is what a kernel is told to do for one call, or for all messages
 * of a launch. Every work takes one epoch of the domain, except that messages take none. Epochs are
 * counted on the device, so that a launch may be captured in a graph and replayed.
 *
 * Each ordered pair of ranks has a mailbox, which one of the two writes and the other reads. It
 * lies in the reader's memory if the writer can reach that memory.
 */
#ifndef TUTTI_DEVICE_CUDA_WORK_H
#define TUTTI_DEVICE_CUDA_WORK_H

#include <stddef.h>
#include <stdint.h>

enum {
    TUTTI_KERNEL_RANKS = 64,    /* most ranks of a domain */
    TUTTI_KERNEL_THREADS = 256, /* most threads of a block; their number is a multiple of 32 */
    TUTTI_KERNEL_BLOCKS = 256,  /* most blocks of a launch */
    TUTTI_KERNEL_MAPS = 32,  /* maps of a rank: map 0, and allocations that its peers have mapped */
    TUTTI_KERNEL_LINE = 128, /* bytes that travel together */
    TUTTI_KERNEL_SIGNAL_BITS = 20, /* bits of a counter that count the signals of one epoch */
};

/* ---- between ranks ---------------------------------------------------------------------- */

/* At the beginning of every epoch each rank tells every other which call it runs. A greeting has
 * four values of 8 bytes: the two words of the signature, the chain of the calls before this one,
 * and the number of the call. Each value travels as two halves of 4 bytes, each followed by the
 * epoch's flag (gpu_store_flagged).
 *
 * The signature is that of executor/signature.h. If the counts of a v-form are by pair
 * (collective.h), its count is the number of elements that this writer sends to this reader. */
struct tutti_kernel_greeting {
    uint32_t words[4][4];
};

/* The addresses of the parts of the writer's buffers that this reader uses. Works that use the
 * buffers of other ranks write a post. It fills one line. The writer releases `counter` after the
 * other members, and again for each further signal of the epoch. */
struct tutti_kernel_post {
    uint64_t counter;       /* epoch << TUTTI_KERNEL_SIGNAL_BITS | signals given in it */
    uint64_t input, output; /* byte offsets in the maps below; addresses if the map is 0 */
    uint32_t input_map, output_map; /* indices of maps, or TUTTI_KERNEL_NOT_MAPPED */
    uint64_t most;          /* elements of the writer's largest block */
    uint64_t unused[11];
};

/* Stands in place of the index of a map if peers cannot use the address. */
#define TUTTI_KERNEL_NOT_MAPPED UINT32_MAX
/* Stands in place of the index of a map if the offset counts from the start of the owner's windows.
 */
#define TUTTI_KERNEL_IN_WINDOW (UINT32_MAX - 1)

/* The start of a mailbox: three lines, of which the two greetings share one. Epoch e uses entry
 * e & 1 of each array. */
struct tutti_kernel_mail {
    struct tutti_kernel_post posts[2];
    struct tutti_kernel_greeting greetings[2];
};

/* The addresses of a rank's buffers of a round, in the form of a post. A round is one run of a
 * schedule with one-sided steps over one piece. Offsets in the window count from the start of the
 * first of the rank's two windows. */
struct tutti_kernel_buffers {
    uint64_t input, output;
    uint32_t input_map, output_map;
};

/* One FIFO of a mailbox: counters, then slots. The mailbox's writer writes all of it, except that
 * the reader cleans flagged slots (fifo.cuh). `tail` counts slots of this FIFO. `head` acknowledges
 * slots of the FIFO in the opposite direction. So each side polls only the mailbox that it
 * reads. */
struct tutti_kernel_fifo {
    uint64_t tail;       /* slots of this FIFO that the writer has ever filled */
    uint64_t unused[15];
    uint64_t head;       /* slots of the opposite FIFO that the writer has ever emptied */
    uint64_t unused_too[15];
    /* For one-sided steps: the signals and buffers of the writer's block that owns this FIFO. */
    uint64_t signals;    /* epoch << TUTTI_KERNEL_SIGNAL_BITS | signals given in it */
    struct tutti_kernel_buffers places[2][2]; /* [epoch & 1][round & 1] */
    uint64_t unused_three[3];
    /* [slots] headers, one line each, then [slots][slot_bytes], then [slots][flagged_bytes] */
};

/* The header of a slot. The first slot of a message has the first four values. The receiver uses
 * them to check that both ranks mean the same message. Schedules do not have them, because
 * greetings check their calls. */
struct tutti_kernel_header {
    uint64_t number;
    uint64_t signature[2];
    uint64_t chain;
    uint64_t size_bytes; /* of the slot's data, if the layout shows sizes; else unused */
    uint64_t unused[11];
};

/* The layout of a mailbox, and the sizes that all ranks reserve. It is the same for all pairs of a
 * domain. All sizes in bytes are multiples of TUTTI_KERNEL_LINE. */
struct tutti_kernel_layout {
    uint32_t nranks, channels, slots; /* channels: FIFOs of a mailbox; slots: of each FIFO */
    uint32_t slot_bytes;
    uint32_t flagged_bytes; /* area of each slot for a message so small that it travels with flags:
                               half of it is data; 0: none */
    uint32_t shows_sizes;  /* not 0: slots show their sizes to the hosts, which carry them */
    uint64_t ll_bytes;     /* LL lines for each parity of the epoch */
    uint64_t ll128_bytes;  /* LL128 lines for each parity of the epoch */
    uint64_t window_bytes; /* each of a rank's two windows */
    /* Byte offsets of the three areas in a mailbox; the distance between FIFOs; the mailbox's
     * size. */
    uint64_t ll_at, ll128_at, fifo_at, fifo_stride, mailbox_bytes;
};
/* The most bytes of data that one rank may send to another in a work of kind LL or LL128. LL has 16
 * bytes of data in every 32 bytes, in units of whole warps, which are 1024 bytes. LL128 has 120
 * bytes of data in every 128 bytes. */
#define TUTTI_KERNEL_LL_CAPACITY(layout) ((layout)->ll_bytes / 1024 * 512)
#define TUTTI_KERNEL_LL128_CAPACITY(layout) ((layout)->ll128_bytes / TUTTI_KERNEL_LINE * 120)
#define TUTTI_KERNEL_FIFO_BYTES(layout)                                 \
    (sizeof(struct tutti_kernel_fifo) + (uint64_t)(layout)->slots * \
     (sizeof(struct tutti_kernel_header) + (layout)->slot_bytes + (layout)->flagged_bytes))

/* ---- a rank's own ------------------------------------------------------------------------- */

/* A rank of the domain from the view of this rank. All addresses are valid in this rank's
 * context. */
struct tutti_kernel_peer {
    uint8_t *to;     /* the mailbox from this rank to the peer, which this rank writes */
    uint8_t *from;   /* the mailbox from the peer to this rank, which the peer writes */
    uint8_t *window; /* the peer's two windows, one after the other; this rank's own if it is me */
    uint64_t maps[TUTTI_KERNEL_MAPS]; /* base addresses here of the peer's allocations; [0] is 0,
                                         for offsets that are addresses valid for both ranks */
};

/* Counters in device memory that kernels keep from launch to launch; all 0 at first. After this
 * struct lie the FIFOs' counters: slots ever filled, [channels][nranks], then slots ever emptied,
 * [channels][nranks]. */
struct tutti_kernel_counters {
    uint64_t epoch;        /* the last epoch begun */
    uint64_t heard_epoch;  /* the last epoch in which this rank read every rank's greeting */
    uint64_t arrivals;     /* arrivals of this launch's blocks at meetings of the grid, which are
                              barriers of all blocks (core.cuh) */
    uint64_t leavers;      /* blocks of this launch that are done */
    uint64_t is_aborted;   /* not 0: some block has given up, so all blocks leave */
};
#define TUTTI_KERNEL_COUNTERS_BYTES(channels, nranks) \
    (sizeof(struct tutti_kernel_counters) + 2 * (size_t)(channels) * (nranks) * sizeof(uint64_t))

/* The reasons for which kernels give up. */
enum tutti_kernel_fault {
    TUTTI_KERNEL_FINE = 0, /* the kernel has not given up */
    TUTTI_KERNEL_ABORTED,  /* the host has set `abort` */
    TUTTI_KERNEL_LATE,     /* the deadline has passed */
    TUTTI_KERNEL_LEFT,     /* the rank that is waited for has destroyed its communicator */
    TUTTI_KERNEL_MISMATCH, /* another rank runs a different call */
    TUTTI_KERNEL_BROKEN,   /* a work, a program or a post is inconsistent */
};

/* A rank's report to its host, in page-locked host memory that both access. The first thread that
 * increments `claimed` fills in the members from `rank` to `their_number`. It releases `fault`
 * last. */
struct tutti_kernel_report {
    uint64_t abort;     /* written by the host: not 0 ends all kernels of the communicator */
    uint64_t left;      /* likewise: a bit for each rank that has destroyed its communicator */
    uint64_t unused[14];
    uint64_t fault;     /* enum tutti_kernel_fault */
    uint64_t claimed;   /* threads that have tried to write the report */
    uint64_t rank;      /* the rank that the kernel was waiting for */
    uint64_t number;    /* of this rank's call */
    uint64_t mine[2], theirs[2]; /* signatures of a mismatch: as expected here, and as received */
    uint64_t their_number;
    uint64_t unused_too[7];
    /* The result of the test of lines (line_test.cuh): the number of torn lines seen from each
     * rank, or TUTTI_KERNEL_LINES_MISSING. */
    uint64_t torn[TUTTI_KERNEL_RANKS];
};
/* Stands in place of a number of torn lines if some lines have not arrived in time. */
#define TUTTI_KERNEL_LINES_MISSING UINT64_MAX

/* A domain, in device memory. The host writes it when the domain is formed, and later adds maps. */
struct tutti_kernel_domain {
    struct tutti_kernel_layout layout;
    uint32_t nranks, rank;
    struct tutti_kernel_peer *peers; /* [nranks] */
    struct tutti_kernel_counters *counters;
    struct tutti_kernel_report *report;
};

/* ---- works --------------------------------------------------------------------------------- */

enum tutti_kernel_work_kind {
    TUTTI_KERNEL_WORK_LL,       /* small calls: data travel in words with flags (ll.cuh) */
    TUTTI_KERNEL_WORK_LL128,    /* the same, but in lines of 128 bytes with one flag each */
    TUTTI_KERNEL_WORK_DIRECT,   /* large calls: ranks access each other's buffers (direct.cuh) */
    TUTTI_KERNEL_WORK_STEPS,    /* a schedule, step by step (steps.cuh) */
    TUTTI_KERNEL_WORK_MESSAGES, /* sends and receives, as steps between pairs (steps.cuh) */
    TUTTI_KERNEL_WORK_COPIES,   /* the driver copies; kernels only meet in between (copies.cuh) */
};

/* The positions of a buffer's blocks, in elements. In v-forms (all-gather-v and the like) each
 * rank's block has a count and a displacement of its own. */
struct tutti_kernel_blocks {
    uint64_t count;          /* of each block, and the distance between blocks, without `counts` */
    const uint64_t *counts;  /* v-forms: [nranks], in memory that the device can read; else NULL */
    const uint64_t *displs;  /* likewise; never NULL if `counts` is not */
};

struct tutti_kernel_work {
    uint8_t kind;       /* enum tutti_kernel_work_kind */
    uint8_t collective; /* enum tutti_collective of schedule/collective.h */
    uint8_t type, op;   /* enum tutti_type, enum tutti_op */
    uint8_t is_premultiplied; /* true if the input is multiplied by a scalar first */
    uint8_t is_average;
    uint8_t has_pairs;  /* true if counts are by pair (collective.h), so greetings compare them */
    uint8_t unused;
    int32_t root;
    uint32_t input_map, output_map; /* this rank's maps, the same for all peers; or
                                       TUTTI_KERNEL_NOT_MAPPED */
    const void *input;
    void *output;
    uint64_t input_offset, output_offset; /* bytes in those maps; addresses if the map is 0 */
    struct tutti_kernel_blocks in, out;
    uint64_t signature[2], chain, number; /* of the call, as in a greeting */
    const void *scalar_address; /* of one element, read when the kernel runs; NULL: use `scalar` */
    uint64_t scalar;    /* an element in the first bytes */
    /* STEPS and MESSAGES: */
    const void *program;    /* struct tutti_kernel_program, which the device can read */
    uint64_t program_bytes; /* a multiple of 8 */
    /* If the program is in host memory: device memory for a copy of it for each block, at a
     * distance of TUTTI_KERNEL_COPY_BYTES(program_bytes). NULL: the program is in device memory, or
     * it is so short that blocks copy it into shared memory. */
    uint8_t *copies;
    uint8_t *scratch;       /* block_bytes of device memory for each block */
    /* COPIES only: */
    uint32_t meeting;    /* index of this meeting among those of the call */
    uint32_t npieces;    /* between any two ranks; 0: the number follows from the pair's counts */
    uint64_t piece_count; /* elements of a piece */
};

/* The argument of the kernel that tests lines: it exchanges `rounds` rounds of lines with some
 * peers, all of which run the same test at the same time. It runs as one block. */
struct tutti_kernel_line_test {
    struct tutti_kernel_domain *domain;
    uint64_t peers;       /* bit r: rank r */
    uint64_t deadline_ns; /* counted from the start of the kernel; 0: none */
    uint32_t rounds;
    uint32_t unused;
};

/* The argument of the communicating kernels. CUDA limits arguments to 4 KiB. */
struct tutti_kernel_launch {
    struct tutti_kernel_domain *domain;
    uint64_t deadline_ns;  /* counted from the start of the kernel; 0: none */
    uint32_t nworks;
    uint32_t unused;
    const struct tutti_kernel_work *more; /* works [1, nworks); the device can read this memory */
    struct tutti_kernel_work first;
};

#endif
