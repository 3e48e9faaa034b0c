/* SPDX-License-Identifier: Apache-2.0
 * Interprets programs (program.h), for works of kind STEPS and MESSAGES. It runs the same steps as
 * the host executor (executor/host/run.c). It combines elements in the same order, so that results
 * have the same bits.
 */
#ifndef TUTTI_DEVICE_CUDA_STEPS_CUH
#define TUTTI_DEVICE_CUDA_STEPS_CUH

#include "device/cuda/lanes.cuh"

/* ---- staging ----------------------------------------------------------------------------- */

/* Returns the scalar of a work on narrow floats, widened to float32. */
GPU_INLINE float gpu_narrow_scalar(const struct tutti_kernel_work *work)
{
    const uint64_t bits = gpu_scalar_of(work);

    switch (work->type) {
    case TUTTI_FLOAT16: return tutti_small_widen((uint32_t)bits & 0xffff, TUTTI_FORMAT_FLOAT16);
    case TUTTI_BFLOAT16: return tutti_bfloat16_widen((uint16_t)bits);
    case TUTTI_FLOAT8E4M3: return tutti_small_widen((uint32_t)bits & 0xff, TUTTI_FORMAT_E4M3);
    default: return tutti_small_widen((uint32_t)bits & 0xff, TUTTI_FORMAT_E5M2);
    }
}

/* Returns the number of elements of a block in the current piece. `block_count` is the block's
 * number of elements in all pieces. Only v-forms have blocks of different sizes, and they run in
 * one piece. */
GPU_INLINE uint64_t gpu_block_elements(const struct gpu_steps *steps, uint64_t block_count)
{
    const struct tutti_kernel_program *program = steps->program;
    const uint64_t left = program->call_count - steps->piece * program->piece_count;

    if (program->npieces == 1)
        return block_count;
    return left < program->piece_count ? left : program->piece_count;
}

/* All threads: copies `src` to `dst` and scales it. If `multiplied` is 0, the index of the only
 * source, the elements are first multiplied by `scalar`. Otherwise `multiplied` is
 * TUTTI_KERNEL_NO_SOURCE. */
GPU_FUNCTION void gpu_multiply(uint32_t type, void *dst, const void *src, uint64_t count,
                               uint32_t multiplied, uint64_t scalar, struct tutti_scale scale)
{
    const void *srcs[1] = {src};
    void *dsts[1] = {dst};
    tutti_kernel_reduction job = gpu_plain_job(type, TUTTI_SUM, count, srcs, 1, dsts, 1);

    job.scale = scale;
    job.premultiplied = multiplied;
    job.scalar = scalar;
    gpu_reduce(&job, gpu_crew_of_block());
}

/* All threads: copies the piece's part of the user's input to the staged INPUT, without gaps
 * between blocks. Widens or multiplies the elements if the work needs that. */
GPU_FUNCTION void gpu_stage_input(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_block *blocks = gpu_table<struct tutti_kernel_block>(program,
                                                                                   program->input);
    const struct tutti_kernel_work *work = run->work;
    const uint64_t bytes = gpu_type_bytes(work->type);
    uint8_t *to = steps->staged_input;

    for (uint32_t i = 0; i < program->input_blocks; i++) {
        const uint64_t count = gpu_block_elements(steps, blocks[i].count);
        const uint8_t *from = (const uint8_t *)work->input +
            (blocks[i].start + steps->piece * program->piece_count) * bytes;

        if (program->widens) {
            tutti_kernel_conversion job = {work->type, true, from, to, count,
                                           work->is_premultiplied ? gpu_narrow_scalar(work) : 1.0f,
                                           0};

            gpu_convert(&job, gpu_crew_of_block());
        } else if (work->is_premultiplied) {
            gpu_multiply(work->type, to, from, count, 0, gpu_scalar_of(work),
                         gpu_scale_of(false, run->nranks));
        } else {
            gpu_copy(to, from, count * bytes, gpu_crew_of_block());
        }
        to += count * gpu_type_bytes(program->run_type);
    }
}

/* All threads: narrows the staged OUTPUT into the user's output. If OUTPUT is not staged, scales
 * the user's output in place, or makes its elements truth values. */
GPU_FUNCTION void gpu_finish_output(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_block *blocks = gpu_table<struct tutti_kernel_block>(program,
                                                                                   program->output);
    const struct tutti_kernel_work *work = run->work;
    const struct tutti_scale scale = gpu_scale_of(work->is_average, run->nranks);
    const uint8_t *from = steps->staged_output;

    for (uint32_t i = 0; i < program->output_blocks; i++) {
        const uint64_t count = gpu_block_elements(steps, blocks[i].count);
        uint8_t *to = (uint8_t *)work->output +
            (blocks[i].start + steps->piece * program->piece_count) * gpu_type_bytes(work->type);

        if (program->widens) {
            tutti_kernel_conversion job = {work->type, false, from, to, count,
                                           (float)scale.multiply, 0};

            gpu_convert(&job, gpu_crew_of_block());
        } else if (program->makes_truth) {
            const void *srcs[2] = {to, to};
            void *dsts[1] = {to};
            const tutti_kernel_reduction job = gpu_plain_job(work->type, TUTTI_LOR, count, srcs, 2,
                                                             dsts, 1);

            gpu_reduce(&job, gpu_crew_of_block());
        } else {
            gpu_multiply(work->type, to, to, count, TUTTI_KERNEL_NO_SOURCE, 0, scale);
        }
        from += count * sizeof(float);
    }
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* One thread: finds the program's tables, and divides the block's memory. */
GPU_INLINE void gpu_open_program(const struct gpu_run *run, struct gpu_steps *steps)
{
    const struct tutti_kernel_program *program =
        (const struct tutti_kernel_program *)run->work->program;
    uint8_t *memory = run->work->scratch + gpu_block() * program->block_bytes;

    steps->program = program;
    steps->steps = gpu_table<struct tutti_kernel_step>(program, program->steps);
    steps->deps = gpu_table<uint32_t>(program, program->deps);
    steps->among = gpu_table<uint32_t>(program, program->among);
    steps->staged_input = memory;
    if (!program->stages_in_window)
        memory += program->staged_input_bytes;
    steps->staged_output = memory;
    memory += program->staged_output_bytes;
    steps->base[TUTTI_BUF_NONE] = 0;
    steps->base[TUTTI_BUF_SCRATCH] = (uintptr_t)memory;
    steps->flagged = memory + program->scratch_bytes;
}

/* One thread: sets the addresses of the piece's buffers. */
GPU_INLINE void gpu_open_piece(const struct gpu_run *run, struct gpu_steps *steps, uint64_t piece)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_work *work = run->work;
    const uint64_t at = piece * program->piece_count * gpu_type_bytes(work->type);
    const uint64_t input = (uintptr_t)work->input + at, output = (uintptr_t)work->output + at;

    steps->piece = piece;
    steps->round = (uint32_t)(piece / program->nblocks);
    steps->bound = piece + 1 == program->npieces ? &program->last : &program->full;
    if (program->needs)
        steps->base[TUTTI_BUF_WINDOW] =
            (uintptr_t)run->peers[run->rank].window + gpu_window_part(run, steps);
    if (program->stages_in_window)
        steps->staged_input = gpu_own(steps, TUTTI_BUF_WINDOW, 0);
    steps->base[TUTTI_BUF_INPUT] = program->is_messages     ? 0
                                   : program->stages_input ? (uintptr_t)steps->staged_input
                                                           : input;
    steps->base[TUTTI_BUF_OUTPUT] = program->is_messages ? 0
                                    : program->widens    ? (uintptr_t)steps->staged_output
                                                         : output;
}

/* All threads: runs one piece. False, to all threads, if the launch must end. */
GPU_INLINE bool gpu_run_piece(const struct gpu_run *run, struct gpu_steps *steps, uint64_t piece)
{
    const struct tutti_kernel_program *program = steps->program;

    if (gpu_thread() == 0)
        gpu_open_piece(run, steps, piece);
    gpu_barrier();
    if (program->needs && !gpu_enter_round(run, steps))
        return false;
    if (program->stages_input) {
        gpu_stage_input(run, steps);
        gpu_barrier();
    }
    if (!(program->is_one_sided ? gpu_run_in_order(run, steps) : gpu_run_lanes(run, steps)))
        return false;
    if (program->widens || program->scales_output || program->makes_truth) {
        gpu_barrier();
        gpu_finish_output(run, steps);
    }
    gpu_barrier(); /* the next piece uses the same memory */
    return true;
}

/* True if the program cannot belong to this launch. */
GPU_INLINE bool gpu_program_is_wrong(const struct gpu_run *run,
                                     const struct tutti_kernel_program *program)
{
    return program->magic != TUTTI_KERNEL_PROGRAM_MAGIC || program->nranks != run->nranks ||
           program->rank != run->rank || program->nblocks > gpu_blocks() ||
           program->nlanes > TUTTI_KERNEL_LANES;
}

/* All threads: runs the current work's program. False, to all threads, if the launch must end. A
 * copy of `own` in shared memory serves all threads, so that it takes no registers across function
 * calls. */
GPU_FUNCTION bool gpu_run_program(const struct gpu_run *own)
{
    GPU_SHARED(gpu_steps, steps);
    const struct tutti_kernel_program *program =
        (const struct tutti_kernel_program *)own->work->program;
    const struct gpu_run *run = &steps.run;

    gpu_barrier(); /* no thread uses `steps` for the previous program any more */
    if (gpu_thread() == 0)
        steps.run = *own;
    gpu_barrier();

    if (gpu_program_is_wrong(run, program)) {
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, run->rank, NULL);
        return false;
    }
    if (gpu_block() < program->nblocks && gpu_block() < program->npieces) {
        if (gpu_thread() == 0)
            gpu_open_program(run, &steps);
        gpu_barrier();
        gpu_open_lanes(run, &steps);
        for (uint64_t piece = gpu_block(); piece < program->npieces; piece += program->nblocks)
            if (!gpu_run_piece(run, &steps, piece))
                return false;
        gpu_close_lanes(run, &steps);
    }
    if (!program->waits_for_all)
        return true;
    return !gpu_barrier_or(!gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads()));
}

/* All threads of all blocks: runs the current work, of kind STEPS or MESSAGES. False, to all
 * threads of a block, if the launch must end. */
GPU_INLINE bool gpu_run_steps(struct gpu_run *run)
{
    const struct tutti_kernel_program *program =
        (const struct tutti_kernel_program *)run->work->program;

    if (!gpu_run_program(run))
        return false;
    if (program->waits_for_all)
        run->heard = run->epoch;
    return true;
}

#endif
