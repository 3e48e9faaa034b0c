/* SPDX-License-Identifier: Apache-2.0
 * Declares the state of a running program, which the threads of a block share. */
#ifndef TUTTI_DEVICE_CUDA_STEPS_STATE_CUH
#define TUTTI_DEVICE_CUDA_STEPS_STATE_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/fifo.cuh"
#include "device/cuda/reduce.cuh"

enum { GPU_LANE_WORDS = (TUTTI_KERNEL_LANES + GPU_WARP - 1) / GPU_WARP };
#define GPU_NO_STEP UINT32_MAX

/* A lane and its current step. A lane is one direction of one connection, or the local steps. */
struct gpu_lane {
    struct tutti_kernel_fifo *to, *from; /* the FIFO that this rank writes, and the peer's */
    uint64_t slots; /* slots ever filled (sending lane) or emptied (receiving lane) */
    uint64_t seen;  /* receiving: last value of the peer's `tail`; local: next rank to wait for */
    /* Offsets in the step's bytes: the start of the next slot, and the end of the bytes that this
     * block moves. */
    uint64_t at, end;
    /* The index of the current step in the lane and in the program. If `step` is GPU_NO_STEP, all
     * steps of the lane are complete. */
    uint32_t position, step;
    uint32_t slots_left;     /* of the current step */
    bool is_free;            /* true if all steps that the step depends on are complete */
    bool is_heard;           /* true if the peer is known to run the same call */
    bool is_first;           /* true at the step's first slot, which in a message has a header */
    uint8_t move;            /* enum gpu_move, found by the last scan */
};

/* The move that a lane can make now. */
enum gpu_move {
    GPU_STAY,      /* the lane must wait */
    GPU_MOVE,      /* the lane moves one slot, runs a local step, or ends a step without bytes */
    GPU_MOVE_BOTH, /* the lane moves one slot together with the sending lane of its fused step */
};

/* The state of a program. */
struct gpu_steps {
    struct gpu_run run;
    const struct tutti_kernel_program *program;
    const struct tutti_kernel_bound *bound; /* of the current piece */
    const struct tutti_kernel_step *steps;  /* tables of the program */
    const uint32_t *deps, *among;
    const struct tutti_kernel_lane *lane_table; /* lanes of the block's column */
    uint32_t nlanes;  /* of them, including the one for local steps */
    uint32_t column, copy; /* of the block, as in program.h */
    uint64_t base[TUTTI_BUF_COUNT]; /* addresses of the buffers; 0 if the steps are messages */
    uint8_t *staged_input, *staged_output;
    uint8_t *flagged; /* data that are to be sent in a flagged slot */
    uint64_t piece;   /* the current piece */
    uint32_t round;   /* the block's pieces before this one in this epoch */
    uint32_t signals; /* signals that local steps have given in this round */
    struct gpu_lane lanes[TUTTI_KERNEL_LANES];
    /* One bit for each lane: the lane can move; the lane is not done. Scans alternate between two
     * sets of bits. */
    uint32_t can_move[2][GPU_LANE_WORDS], is_open[2][GPU_LANE_WORDS];
    const void *srcs[TUTTI_KERNEL_RANKS]; /* of the current segment, as are `dsts` */
    void *dsts[TUTTI_KERNEL_RANKS + 2];   /* 2: this rank's own `dst` and `also` */
};

/* Returns the entries of a table of the program. */
template <typename entry>
GPU_INLINE const entry *gpu_table(const struct tutti_kernel_program *program,
                                  struct tutti_kernel_table table)
{
    return (const entry *)((const uint8_t *)program + table.at);
}

GPU_INLINE const struct tutti_kernel_bound_step *gpu_bound_step(const struct gpu_steps *steps,
                                                                uint32_t index)
{
    return gpu_table<struct tutti_kernel_bound_step>(steps->program, steps->bound->steps) + index;
}

GPU_INLINE const struct tutti_kernel_segment *gpu_segments(const struct gpu_steps *steps)
{
    return gpu_table<struct tutti_kernel_segment>(steps->program, steps->bound->segments);
}

/* Returns the address of byte `at` of this rank's own buffer. */
GPU_INLINE uint8_t *gpu_own(const struct gpu_steps *steps, uint32_t buffer, uint64_t at)
{
    return (uint8_t *)(uintptr_t)(steps->base[buffer] + at);
}

/* Returns the block's first FIFO in a mailbox, which holds the block's signals and places. */
GPU_INLINE struct tutti_kernel_fifo *gpu_block_fifo(const struct gpu_run *run, uint8_t *mailbox)
{
    return gpu_fifo_at(&run->domain->layout, mailbox, gpu_block());
}

GPU_INLINE const struct tutti_kernel_lane *gpu_lane_of(const struct gpu_steps *steps,
                                                       uint32_t number)
{
    return steps->lane_table + number;
}

/* True if the lane has completed its part of step `index`, or if there is no such lane. The steps
 * of a lane are in ascending order. */
GPU_INLINE bool gpu_lane_is_past(const struct gpu_steps *steps, uint32_t lane, uint32_t index)
{
    return lane == TUTTI_KERNEL_NO_LANE || steps->lanes[lane].step > index;
}

/* True if all steps that `step` depends on are complete. */
GPU_INLINE bool gpu_deps_are_done(const struct gpu_steps *steps,
                                  const struct tutti_kernel_step *step)
{
    for (uint32_t i = 0; i < step->dep_count; i++) {
        const uint32_t index = steps->deps[step->dep_first + i];

        if (!gpu_lane_is_past(steps, steps->steps[index].receive_lane, index) ||
            !gpu_lane_is_past(steps, steps->steps[index].send_lane, index))
            return false;
    }
    return true;
}

/* ---- a block's own part of a message ----------------------------------------------------- */

/* Bytes [from, to) of a message. */
struct gpu_share {
    uint64_t from, to;
    bool is_there; /* false: the block has no share; one block has a share of an empty message */
};

/* Returns this block's share of a message. The shares have whole lines, and go to the blocks in
 * order from block `rotation` on. */
GPU_INLINE struct gpu_share gpu_share_of(const struct tutti_kernel_program *program,
                                         uint32_t rotation, uint64_t size_bytes)
{
    const uint64_t most = size_bytes / program->share_bytes;
    const uint64_t count = most < 1 ? 1 : most < program->nblocks ? most : program->nblocks;
    const uint64_t share_bytes = ((size_bytes + count - 1) / count + TUTTI_KERNEL_LINE - 1) /
                                 TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;
    const uint32_t index = (gpu_block() + program->nblocks - rotation) % program->nblocks;
    const uint64_t from = index * share_bytes, to = from + share_bytes;

    return gpu_share{from < size_bytes ? from : size_bytes, to < size_bytes ? to : size_bytes,
                     index == 0 || from < size_bytes};
}

/* ---- greetings ----------------------------------------------------------------------------- */

/* One thread, without waiting. True if the peer has begun this epoch and runs the same call; false
 * if that is not known yet. If the peer runs another call, the function reports that, sets
 * *ret_is_fine to false and returns false. */
GPU_INLINE bool gpu_has_heard(const struct gpu_run *run, uint32_t peer, bool *ret_is_fine)
{
    const struct tutti_kernel_greeting *greeting =
        &gpu_mail(run->peers[peer].from)->greetings[run->epoch & 1];

    for (uint32_t word = 0; word < GPU_GREETING_WORDS; word++) {
        const gpu_word got = gpu_load_flagged(greeting->words[word]);

        if (got.y != run->flag || got.w != run->flag)
            return false;
        if (((uint64_t)got.z << 32 | got.x) != gpu_greeting_word(run, peer, word, false)) {
            gpu_mismatch(*run, peer);
            *ret_is_fine = false;
            return false;
        }
    }
    return true;
}

#endif
