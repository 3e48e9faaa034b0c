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

/* Returns the parts of the user's buffers that this block stages and finishes in this piece. */
GPU_INLINE const struct tutti_kernel_staging *gpu_staging(const struct gpu_steps *steps)
{
    return gpu_table<struct tutti_kernel_staging>(steps->program, steps->bound->staging) +
           steps->column;
}

GPU_INLINE const struct tutti_kernel_stretch *gpu_stretches(const struct gpu_steps *steps,
                                                            uint32_t first)
{
    return gpu_table<struct tutti_kernel_stretch>(steps->program, steps->bound->stretches) + first;
}

/* Returns the byte offset of a stretch in the user's buffer. */
GPU_INLINE uint64_t gpu_stretch_at(const struct gpu_run *run, const struct gpu_steps *steps,
                                   const struct tutti_kernel_stretch *stretch)
{
    return (stretch->start + steps->piece * steps->program->piece_count) *
           gpu_type_bytes(run->work->type);
}

/* All threads: copies the parts of the user's input that this block reads to the staged INPUT,
 * without gaps between the blocks of the buffer. Widens or multiplies the elements if the work
 * needs that. */
GPU_FUNCTION void gpu_stage_input(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_staging *staging = gpu_staging(steps);
    const struct tutti_kernel_stretch *stretches = gpu_stretches(steps, staging->input_first);
    const struct tutti_kernel_work *work = run->work;

    for (uint32_t i = 0; i < staging->input_count; i++) {
        const uint64_t count = stretches[i].count;
        const uint8_t *from =
            (const uint8_t *)work->input + gpu_stretch_at(run, steps, &stretches[i]);
        uint8_t *to = steps->staged_input + stretches[i].at;

        if (program->widens) {
            tutti_kernel_conversion job = {work->type, true, from, to, count,
                                           work->is_premultiplied ? gpu_narrow_scalar(work) : 1.0f,
                                           0};

            gpu_convert(&job, gpu_crew_of_block());
        } else if (work->is_premultiplied) {
            gpu_multiply(work->type, to, from, count, 0, gpu_scalar_of(work),
                         gpu_scale_of(false, run->nranks));
        } else {
            gpu_copy(to, from, count * gpu_type_bytes(work->type), gpu_crew_of_block());
        }
    }
}

/* All threads: narrows the parts of the staged OUTPUT that this block has written into the user's
 * output. If OUTPUT is not staged, scales the user's output in place, or makes its elements truth
 * values. */
GPU_FUNCTION void gpu_finish_output(const struct gpu_run *run, const struct gpu_steps *steps)
{
    const struct tutti_kernel_program *program = steps->program;
    const struct tutti_kernel_staging *staging = gpu_staging(steps);
    const struct tutti_kernel_stretch *stretches = gpu_stretches(steps, staging->output_first);
    const struct tutti_kernel_work *work = run->work;
    const struct tutti_scale scale = gpu_scale_of(work->is_average, run->nranks);

    for (uint32_t i = 0; i < staging->output_count; i++) {
        const uint64_t count = stretches[i].count;
        uint8_t *to = (uint8_t *)work->output + gpu_stretch_at(run, steps, &stretches[i]);

        if (program->widens) {
            tutti_kernel_conversion job = {work->type, false,
                                           steps->staged_output + stretches[i].at, to, count,
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
    }
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* Room for a short program in shared memory. */
struct gpu_program_room {
    uint64_t words[TUTTI_KERNEL_SHARED_PROGRAM / sizeof(uint64_t)];
};

/* All threads: returns the work's program in memory that is fast to read. Steps are read often, and
 * a read of host memory takes a microsecond. So the block copies a short program into shared
 * memory, and a longer one that is in host memory into device memory. A barrier must follow. */
GPU_INLINE const struct tutti_kernel_program *gpu_fetch_program(const struct gpu_run *run,
                                                                struct gpu_program_room *room)
{
    const struct tutti_kernel_work *work = run->work;
    const struct tutti_kernel_program *program = (const struct tutti_kernel_program *)work->program;
    uint64_t *to = room->words;

    if (work->program_bytes > sizeof room->words) {
        /* The blocks behind those of the grid run no steps, so they have no copy. */
        if (work->copies == NULL || gpu_block() >= program->nblocks)
            return program;
        to = (uint64_t *)(work->copies +
                          gpu_block() * TUTTI_KERNEL_COPY_BYTES(work->program_bytes));
    }
    for (uint64_t i = gpu_thread(); i < work->program_bytes / sizeof *to; i += gpu_threads())
        to[i] = ((const uint64_t *)program)[i];
    return (const struct tutti_kernel_program *)to;
}

/* One thread: finds the program's tables and those of the block's column, and divides the block's
 * memory. */
GPU_INLINE void gpu_open_program(const struct gpu_run *run, struct gpu_steps *steps,
                                 const struct tutti_kernel_program *program)
{
    const uint32_t column_number = gpu_block() % program->ncolumns;
    const struct tutti_kernel_column *column =
        gpu_table<struct tutti_kernel_column>(program, program->columns) + column_number;
    uint8_t *memory = run->work->scratch + gpu_block() * program->block_bytes;

    steps->program = program;
    steps->column = column_number;
    steps->copy = gpu_block() / program->ncolumns;
    steps->lane_table =
        gpu_table<struct tutti_kernel_lane>(program, program->lanes) + column->first;
    steps->nlanes = column->count;
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
    steps->round = (uint32_t)(piece / program->ncopies);
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
           program->ncolumns * program->ncopies > program->nblocks;
}

/* All threads of all blocks: runs the current work, of kind STEPS or MESSAGES. False, to all
 * threads of a block, if the launch must end. A copy of `own` in shared memory serves all threads,
 * so that it takes no registers across function calls. */
GPU_FUNCTION bool gpu_run_steps(struct gpu_run *own)
{
    GPU_SHARED(gpu_steps, steps);
    GPU_SHARED(gpu_program_room, room);
    const struct tutti_kernel_program *program;
    const struct gpu_run *run = &steps.run;
    uint32_t copy;

    gpu_barrier(); /* no thread uses `steps` and `room` for the previous program any more */
    if (gpu_thread() == 0)
        steps.run = *own;
    program = gpu_fetch_program(own, &room);
    gpu_barrier();

    if (gpu_program_is_wrong(run, program)) {
        gpu_fail(*run, TUTTI_KERNEL_BROKEN, run->rank, NULL);
        return false;
    }
    copy = gpu_block() / program->ncolumns;
    if (copy < program->ncopies && copy < program->npieces) {
        if (gpu_thread() == 0)
            gpu_open_program(run, &steps, program);
        gpu_barrier();
        gpu_open_lanes(run, &steps);
        for (uint64_t piece = copy; piece < program->npieces; piece += program->ncopies)
            if (!gpu_run_piece(run, &steps, piece))
                return false;
        gpu_close_lanes(run, &steps);
    }
    if (!program->waits_for_all)
        return true;
    if (gpu_barrier_or(!gpu_hear(run, 0, run->nranks, gpu_thread(), gpu_threads())))
        return false;
    own->heard = own->epoch;
    return true;
}

#endif
