/* SPDX-License-Identifier: Apache-2.0
 * Declares programs in the form that kernels read. A program is one run of bytes that contains no
 * pointers. The host makes it (executor/cuda/program.h) and copies it to device memory, or for a
 * program of one launch to page-locked host memory. It starts with a head, struct
 * tutti_kernel_program. Tables follow the head, each at a multiple of 8 bytes. Their positions are
 * byte offsets from the start of the head.
 *
 * A program is either a bound schedule, with the contents of a struct tutti_program, or a list of
 * messages. Messages are encoded as the steps of a schedule without dependencies. Their buffers
 * start at address 0, so that their offsets are addresses.
 *
 * Blocks. `nblocks` blocks of threads are there for programs. This number is the same for all
 * programs of a domain. They are arranged in `ncolumns` columns: block b is in column b % ncolumns,
 * and it is copy b / ncolumns of that column. A column has the steps of some channels of the
 * schedule, so that each channel runs in blocks of its own. No step depends on a step of another
 * column. Copy c runs pieces c, c + ncopies, ... of the schedule. A program of messages has one
 * column, each copy of which moves its share of every message.
 *
 * FIFOs. Copy c of a lane uses the pair's FIFO number fifo + c * fifo_step. So each FIFO belongs to
 * one channel and one copy, and to one block of each rank. The last `nblocks` FIFOs of a pair are
 * for messages, and the others are for schedules. A program with one-sided steps has one column, so
 * that block b of a rank communicates only with block b of its peers.
 */
#ifndef TUTTI_DEVICE_CUDA_PROGRAM_H
#define TUTTI_DEVICE_CUDA_PROGRAM_H

#include "schedule/bind.h"

enum {
    TUTTI_KERNEL_PROGRAM_MAGIC = 0x50555454,
    TUTTI_KERNEL_LANES = 192, /* most lanes of a column, including the one for local steps */
};
#define TUTTI_KERNEL_NO_LANE UINT32_MAX
/* Each block copies a program of at most so many bytes into its shared memory. */
#define TUTTI_KERNEL_SHARED_PROGRAM 4096
/* The device memory that the copy of a longer program takes. */
#define TUTTI_KERNEL_COPY_BYTES(program_bytes) (((uint64_t)(program_bytes) + 127) / 128 * 128)

/* `count` entries, starting `at` bytes after the start of the head. */
struct tutti_kernel_table {
    uint32_t at, count;
};

/* The byte sizes and offsets of one run of a schedule over one piece. The last piece may be shorter
 * than the others, so a program has two of these. */
struct tutti_kernel_bound {
    struct tutti_kernel_table steps;    /* struct tutti_kernel_bound_step [nsteps] */
    struct tutti_kernel_table segments; /* struct tutti_kernel_segment */
    struct tutti_kernel_table staging;  /* struct tutti_kernel_staging [ncolumns] */
    struct tutti_kernel_table stretches; /* struct tutti_kernel_stretch */
    uint64_t slot_bytes;             /* distance between WINDOW slots */
};

/* The stretches of the user's buffers that the steps of a column use: indices in `stretches`. The
 * blocks of the column stage these parts of the input, and finish these parts of the output. */
struct tutti_kernel_staging {
    uint32_t input_first, input_count, output_first, output_count;
};

/* `count` elements of a buffer, from element `start` of the user's buffer in piece 0. `at` is their
 * byte offset in the staged copy of the buffer. */
struct tutti_kernel_stretch {
    uint64_t start, at, count;
};

struct tutti_kernel_bound_step {
    uint32_t first, count; /* its segments: [first, first + count) of the table `segments` */
    uint64_t bytes;        /* the sum of their bytes */
};

/* A run of bytes that is contiguous in every span of its step. */
struct tutti_kernel_segment {
    uint64_t start, bytes;       /* bytes of the step before this segment, and of this segment */
    uint64_t at[TUTTI_AT_COUNT]; /* byte offset in each span's buffer (enum tutti_slot) */
};

/* A struct tutti_step of schedule/step.h, without its spans, which are in the segments. */
struct tutti_kernel_step {
    uint8_t kind;      /* enum tutti_step_kind */
    uint8_t src, dst, remote, also, remote_dst; /* enum tutti_buffer */
    uint16_t signal;   /* WAIT */
    int32_t from, to;  /* ranks, or TUTTI_NO_RANK / TUTTI_ALL_RANKS */
    /* The lanes that run the step's receiving half and its sending half, counted from the first
     * lane of its column. TUTTI_KERNEL_NO_LANE means that the step has no such half. For a local or
     * one-sided step both are the lane of local steps. */
    uint32_t receive_lane, send_lane;
    uint32_t dep_first, dep_count;     /* in deps: the steps that must be complete before it */
    uint32_t among_first, among_count; /* in among: ranks; among_count 0: all ranks */
};

/* One direction of one connection with its steps in order, or the local steps. */
struct tutti_kernel_lane {
    int32_t peer;          /* < 0: the lane of local steps */
    uint32_t is_receive;
    uint32_t fifo;         /* copy c uses the pair's FIFO number fifo + c * fifo_step */
    uint32_t first, count; /* its steps: [first, first + count) of lane_steps, ascending */
    uint32_t rotation;     /* messages: the block that moves the first share */
};

/* The lanes of a column: [first, first + count) of the table `lanes`. The last is the lane of local
 * steps. */
struct tutti_kernel_column {
    uint32_t first, count;
};

/* The content of the header in a message's first slot (struct tutti_kernel_header). */
struct tutti_kernel_signature {
    uint64_t number, signature[2], chain;
};

struct tutti_kernel_program {
    uint32_t magic;
    uint32_t size_bytes;   /* of the head and all tables */
    uint32_t nranks, rank, nblocks;
    uint32_t ncolumns, ncopies, fifo_step;
    uint32_t nsteps;
    uint32_t nsignals;     /* signals that each rank gives in one run of the schedule */
    uint32_t needs;        /* TUTTI_NEEDS_* */
    /* is_messages: the program is a list of messages. is_one_sided: the program has only local and
     * one-sided steps. */
    uint8_t is_messages, is_one_sided;
    uint8_t run_type;      /* enum tutti_type: the element type that steps move */
    uint8_t widens;        /* true if INPUT and OUTPUT are staged as float32 */
    uint8_t stages_input;  /* true if INPUT is a copy of the user's input */
    uint8_t stages_in_window; /* true if that copy lies in the window, because peers read it */
    /* True if an average is scaled when the output is finished, or in each GATHER_REDUCE. */
    uint8_t scales_output, scales_gathers;
    uint8_t makes_truth;   /* true if OUTPUT is made truth values when it is finished */
    uint8_t waits_for_all; /* true if one of its steps waits for all ranks */
    uint8_t unused[6];
    uint64_t npieces, piece_count; /* piece_count: elements of each block in a full piece */
    uint64_t share_bytes;  /* least share of a message that is worth a block */
    /* Memory of each block, in this order: staged INPUT (unless it is in the window), staged
     * OUTPUT, SCRATCH, data of a flagged slot. block_bytes is their sum. */
    uint64_t staged_input_bytes, staged_output_bytes, scratch_bytes, block_bytes;
    struct tutti_kernel_bound full, last; /* for all pieces but the last, and for the last */
    struct tutti_kernel_table steps;      /* struct tutti_kernel_step */
    struct tutti_kernel_table columns;    /* struct tutti_kernel_column [ncolumns] */
    struct tutti_kernel_table lanes;      /* struct tutti_kernel_lane, column after column */
    struct tutti_kernel_table lane_steps, deps, among; /* uint32_t */
    struct tutti_kernel_table signatures;   /* messages: struct tutti_kernel_signature [nsteps] */
};

#endif
