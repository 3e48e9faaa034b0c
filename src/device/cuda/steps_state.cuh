/* SPDX-License-Identifier: Apache-2.0
 * A program on its way: what the threads of a block share of it. */
#ifndef TUTTI_DEVICE_CUDA_STEPS_STATE_CUH
#define TUTTI_DEVICE_CUDA_STEPS_STATE_CUH

#include "device/cuda/blocks.cuh"
#include "device/cuda/fifo.cuh"
#include "device/cuda/reduce.cuh"

enum { GPU_LANE_WORDS = (TUTTI_GPU_LANES + GPU_WARP - 1) / GPU_WARP };
#define GPU_NO_STEP UINT32_MAX

/* One direction of one connection, with the step that it is at, or the local steps. */
struct gpu_lane {
    struct tutti_gpu_fifo *to, *from; /* the FIFO that I write, and the peer's */
    uint64_t slots;   /* ever filled or emptied */
    uint64_t seen;    /* of the peer's `head` or `tail`; of local steps the next rank to wait for */
    uint64_t at, end; /* bytes of the step: done, and to be done */
    uint32_t position, step; /* GPU_NO_STEP: all are complete */
    uint32_t slots_left;     /* of the step */
    bool is_free;            /* what the step depends on is complete */
    bool is_heard;           /* the peer does what I do */
    bool is_first;           /* the step's first slot: of messages it has a header */
    uint8_t move;            /* enum gpu_move */
};

enum gpu_move { GPU_STAY, GPU_MOVE, GPU_MOVE_BOTH };

struct gpu_steps {
    struct gpu_run run;
    const struct tutti_gpu_program *program;
    const struct tutti_gpu_bound *bound;
    const struct tutti_gpu_step *steps;
    const uint32_t *deps, *among;
    uint64_t base[TUTTI_BUF_COUNT]; /* addresses: those of messages begin at 0 */
    uint8_t *staged_input, *staged_output;
    uint8_t *flagged; /* data of a flagged slot on its way */
    uint64_t piece;
    uint32_t round;   /* of the block, in this epoch: one for each of its pieces */
    uint32_t signals; /* given in it, by local steps */
    struct gpu_lane lanes[TUTTI_GPU_LANES];
    /* A bit for each lane, of two scans in turns: those that can move, those that are not done. */
    uint32_t can_move[2][GPU_LANE_WORDS], is_open[2][GPU_LANE_WORDS];
    const void *srcs[TUTTI_GPU_RANKS];
    void *dsts[TUTTI_GPU_RANKS + 2];
};

template <typename entry>
GPU_INLINE const entry *gpu_table(const struct tutti_gpu_program *program,
                                  struct tutti_gpu_table table)
{
    return (const entry *)((const uint8_t *)program + table.at);
}

GPU_INLINE const struct tutti_gpu_bound_step *gpu_bound_step(const struct gpu_steps *steps,
                                                             uint32_t index)
{
    return gpu_table<struct tutti_gpu_bound_step>(steps->program, steps->bound->steps) + index;
}

GPU_INLINE const struct tutti_gpu_segment *gpu_segments(const struct gpu_steps *steps)
{
    return gpu_table<struct tutti_gpu_segment>(steps->program, steps->bound->segments);
}

/* In my own buffer. */
GPU_INLINE uint8_t *gpu_own(const struct gpu_steps *steps, uint32_t buffer, uint64_t at)
{
    return (uint8_t *)(uintptr_t)(steps->base[buffer] + at);
}

/* The block's first FIFO in a mailbox: where it gives its signals. */
GPU_INLINE struct tutti_gpu_fifo *gpu_block_fifo(const struct gpu_run *run, uint8_t *mailbox)
{
    return gpu_fifo_at(&run->domain->layout, mailbox, gpu_block());
}

GPU_INLINE const struct tutti_gpu_lane *gpu_lane_of(const struct gpu_steps *steps, uint32_t number)
{
    return gpu_table<struct tutti_gpu_lane>(steps->program, steps->program->lanes) + number;
}

/* A step runs in one lane or two; these are ascending lists of steps. */
GPU_INLINE bool gpu_lane_is_past(const struct gpu_steps *steps, uint32_t lane, uint32_t index)
{
    return lane == TUTTI_GPU_NO_LANE || steps->lanes[lane].step > index;
}

GPU_INLINE bool gpu_deps_are_done(const struct gpu_steps *steps, const struct tutti_gpu_step *step)
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

struct gpu_share {
    uint64_t from, to;
    bool is_there; /* a message of no bytes has one share, too */
};

GPU_INLINE struct gpu_share gpu_share_of(const struct tutti_gpu_program *program,
                                         uint32_t rotation, uint64_t size_bytes)
{
    const uint64_t most = size_bytes / program->share_bytes;
    const uint64_t count = most < 1 ? 1 : most < program->nblocks ? most : program->nblocks;
    const uint64_t share = ((size_bytes + count - 1) / count + TUTTI_GPU_LINE - 1) /
                           TUTTI_GPU_LINE * TUTTI_GPU_LINE;
    const uint32_t index = (gpu_block() + program->nblocks - rotation) % program->nblocks;
    const uint64_t from = index * share, to = from + share;

    return gpu_share{from < size_bytes ? from : size_bytes, to < size_bytes ? to : size_bytes,
                     index == 0 || from < size_bytes};
}

/* ---- hearing ----------------------------------------------------------------------------- */

/* One thread, without waiting: has that rank begun this epoch, and does it do what I do? If it does
 * something else all kernels end, and *ret_is_fine is false. */
GPU_INLINE bool gpu_hears_now(const struct gpu_run *run, uint32_t peer, bool *ret_is_fine)
{
    const struct tutti_gpu_greeting *greeting =
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
