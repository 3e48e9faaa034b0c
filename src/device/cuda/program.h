/* SPDX-License-Identifier: Apache-2.0
 * A program as kernels read it: one run of bytes without a pointer in it, made by the host
 * (executor/cuda/program.h) and put into device memory once. Tables follow the head, each at a
 * multiple of 8 bytes; where they are is told in bytes from the beginning of the head.
 *
 * It says of a schedule what struct tutti_program says, or it is a list of messages; those look
 * like the steps of a schedule without dependencies, whose buffers begin at address 0.
 *
 * Blocks. The program is run by `nblocks` blocks, the same number for all programs of a domain. Of
 * a schedule, block b runs pieces b, b + nblocks, ...; of a message it moves its share. Block b of
 * a rank pairs with block b of its peers: of each pair's FIFOs, those that are b modulo nblocks are
 * its own, one after the other for the schedule's channels, the last for messages.
 */
#ifndef TUTTI_DEVICE_CUDA_PROGRAM_H
#define TUTTI_DEVICE_CUDA_PROGRAM_H

#include "schedule/bind.h"

enum {
    TUTTI_GPU_PROGRAM_MAGIC = 0x50555454,
    TUTTI_GPU_LANES = 192, /* most lanes of a program, with one for its local steps */
};
#define TUTTI_GPU_NO_LANE UINT32_MAX

/* `count` entries from byte `at` on. */
struct tutti_gpu_table {
    uint32_t at, count;
};

/* One run of a schedule, in bytes: the pieces but the last, or the last. */
struct tutti_gpu_bound {
    struct tutti_gpu_table steps;    /* struct tutti_gpu_bound_step [nsteps] */
    struct tutti_gpu_table segments; /* struct tutti_gpu_segment */
    uint64_t slot_bytes;             /* distance of WINDOW slots */
};

struct tutti_gpu_bound_step {
    uint32_t first, count; /* its segments */
    uint64_t bytes;        /* their sum */
};

struct tutti_gpu_segment {
    uint64_t start, bytes;       /* bytes of the step before it, and its own */
    uint64_t at[TUTTI_AT_COUNT]; /* offset in each span's buffer */
};

struct tutti_gpu_step {
    uint8_t kind;      /* enum tutti_step_kind */
    uint8_t src, dst, remote, also, remote_dst; /* enum tutti_buffer */
    uint16_t signal;   /* WAIT */
    int32_t from, to;
    /* The lanes in which its halves run; TUTTI_GPU_NO_LANE. A local step has the lane of these. */
    uint32_t receive_lane, send_lane;
    uint32_t dep_first, dep_count;
    uint32_t among_first, among_count; /* 0: all ranks */
};

struct tutti_gpu_lane {
    int32_t peer;
    uint32_t is_receive;
    uint32_t fifo;         /* block b has number fifo + b of those of the peer */
    uint32_t first, count; /* in lane_steps; ascending */
    uint32_t rotation;     /* of messages: the block that moves the first share */
};

/* A block of the user's buffer, in elements: where it begins in piece 0, and how much it has in
 * all. */
struct tutti_gpu_block {
    uint64_t start, count;
};

/* What a message's first slot says, and must say. */
struct tutti_gpu_signature {
    uint64_t number, signature[2], chain;
};

struct tutti_gpu_program {
    uint32_t magic;
    uint32_t size_bytes;   /* with all tables */
    uint32_t nranks, rank, nblocks;
    uint32_t nsteps, nlanes;
    uint32_t nsignals;     /* given in one run */
    uint32_t needs;        /* TUTTI_NEEDS_* */
    uint8_t is_messages, is_one_sided;
    uint8_t run_type;      /* enum tutti_type: of what steps move */
    uint8_t widens;        /* INPUT and OUTPUT are staged as float32 */
    uint8_t stages_input;
    uint8_t stages_in_window; /* for peers read what is staged */
    uint8_t scales_output, scales_gathers; /* averages */
    uint8_t hears_all;     /* one of its steps waits for all ranks */
    uint8_t unused[7];
    uint32_t input_blocks, output_blocks;
    uint64_t npieces, piece_count, call_count; /* elements of each block */
    uint64_t share_bytes;  /* a block's least share of a message */
    /* Of each block's memory: staged INPUT, staged OUTPUT, SCRATCH, flagged words on their way. */
    uint64_t staged_input_bytes, staged_output_bytes, scratch_bytes, block_bytes;
    struct tutti_gpu_bound full, last;
    struct tutti_gpu_table steps;       /* struct tutti_gpu_step */
    struct tutti_gpu_table lanes;       /* struct tutti_gpu_lane; the local steps' is the last */
    struct tutti_gpu_table lane_steps, deps, among; /* uint32_t */
    struct tutti_gpu_table input, output; /* struct tutti_gpu_block */
    struct tutti_gpu_table signatures;  /* struct tutti_gpu_signature, of messages */
};

#endif
