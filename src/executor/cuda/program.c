/* SPDX-License-Identifier: Apache-2.0
 * Makes programs for GPUs: cuts calls into pieces, and encodes the tables that kernels read. */
#include "executor/cuda/program.h"

#include "base/result.h"
#include "base/round.h"
#include "executor/cuda/image.h"
#include "schedule/access.h"

#include <stdlib.h>

/* ---- cutting ------------------------------------------------------------------------- */

/* Returns true if ranks access INPUT and OUTPUT of peers. */
static bool accesses_peer_buffers(const struct tutti_schedule *schedule)
{
    return (schedule->needs & (TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE)) != 0;
}

/* Returns the bytes of window that a round of one thread block can use. Each thread block has its
 * part of a window, and its rounds alternate between the halves of that part. */
static size_t window_bytes_per_round(const struct tutti_cuda_grid *grid)
{
    return grid->layout.window_bytes / grid->nblocks / 2 / TUTTI_KERNEL_LINE * TUTTI_KERNEL_LINE;
}

/* Checks that kernels can run the schedule of a call, before it is cut into pieces. */
static int check_call(const struct tutti_schedule *schedule, const struct tutti_call *call,
                      const struct tutti_cuda_grid *grid)
{
    uint32_t channels = tutti_cuda_grid_channels(grid);

    if (schedule->nchannels > channels)
        return tutti_fail(TUTTI_ERR_USAGE, "the schedule has %u channels, but kernels have only %u",
                          schedule->nchannels, channels);
    /* Blocks of a buffer that differ in size may have gaps, so they are packed first. There is no
     * room for a packed copy that peers could read. */
    if (accesses_peer_buffers(schedule) && call->input_counts != NULL)
        return tutti_fail(TUTTI_ERR_USAGE, "kernels do not read the blocks of a peer's %s when "
                          "these differ in size; choose an algorithm that does not",
                          tutti_collective_name(call->collective));
    return TUTTI_OK;
}

int tutti_cuda_program_create(const struct tutti_plan *plan, const struct tutti_call *call,
                              int rank, const struct tutti_cuda_grid *grid,
                              struct tutti_program **ret_program)
{
    struct tutti_cuts cuts = {
        .half_bytes = window_bytes_per_round(grid),
        .stage_bytes = TUTTI_STAGE_BYTES / grid->nblocks,
        .scratch_bytes = TUTTI_SCRATCH_BYTES / grid->nblocks,
        .npieces = grid->nblocks,
        .least_bytes = grid->least_piece_bytes,
    };

    TUTTI_TRY(check_call(plan->schedule, call, grid));
    /* If peers read this rank's input, a staged copy must fit into the window, which they see. */
    if (accesses_peer_buffers(plan->schedule))
        cuts.stage_bytes = cuts.scratch_bytes = cuts.half_bytes;
    return tutti_program_create_cut(plan, call, rank, &cuts, ret_program);
}

/* ---- schedules ------------------------------------------------------------------------ */

/* Returns the lane in which the receiving or sending half of a step runs. */
static uint32_t lane_of(const struct tutti_plan *plan, const struct tutti_step *step,
                        bool is_receive)
{
    int32_t peer = is_receive ? step->from : step->to;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        if (plan->lanes[i].peer == peer && plan->lanes[i].channel == step->channel &&
            plan->lanes[i].is_receive == is_receive)
            return i;
    tutti_assert(!"a lane for every step");
    return TUTTI_KERNEL_NO_LANE;
}

/* Encodes a step, without its spans. */
static struct tutti_kernel_step step_for(const struct tutti_plan *plan,
                                         const struct tutti_step *step)
{
    bool receives = tutti_access_receives(step), sends = tutti_access_sends(step);
    /* A step without a receiving or sending half is in the lane of local steps, after the plan's
     * lanes. */
    uint32_t other_lane = receives || sends ? TUTTI_KERNEL_NO_LANE : plan->nlanes;

    return (struct tutti_kernel_step){
        .kind = step->kind,
        .src = (uint8_t)step->src.buffer, .dst = (uint8_t)step->dst.buffer,
        .remote = (uint8_t)step->remote.buffer, .also = (uint8_t)step->also.buffer,
        .remote_dst = (uint8_t)step->remote_dst.buffer,
        .signal = step->signal,
        .from = step->from, .to = step->to,
        .receive_lane = receives ? lane_of(plan, step, true) : other_lane,
        .send_lane = sends ? lane_of(plan, step, false) : other_lane,
        .dep_first = step->dep_first, .dep_count = step->dep_count,
        .among_first = step->among_first, .among_count = step->among_count,
    };
}

/* Encodes the steps of the schedule, their dependencies, and their lists of ranks. */
static void encode_steps(struct tutti_cuda_writer *writer, const struct tutti_plan *plan)
{
    const struct tutti_schedule *schedule = plan->schedule;
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    struct tutti_kernel_step *steps =
        tutti_cuda_writer_table(writer, &head->steps, schedule->nsteps, sizeof *steps);

    for (uint32_t i = 0; steps != NULL && i < schedule->nsteps; i++)
        steps[i] = step_for(plan, &schedule->steps[i]);
    tutti_cuda_writer_copy(writer, &head->deps, schedule->deps, schedule->ndeps,
                           sizeof *schedule->deps);
    tutti_cuda_writer_copy(writer, &head->among, schedule->among, schedule->namong,
                           sizeof *schedule->among);
}

/* Encodes the lanes of the plan, and one more behind them for its local steps. */
static void encode_lanes(struct tutti_cuda_writer *writer, const struct tutti_plan *plan,
                         uint32_t grid_blocks)
{
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    struct tutti_kernel_lane *lanes =
        tutti_cuda_writer_table(writer, &head->lanes, plan->nlanes + 1, sizeof *lanes);
    uint32_t nhalves = 0, *steps;

    for (uint32_t i = 0; i < plan->nlanes; i++) {
        const struct tutti_lane *lane = &plan->lanes[i];

        nhalves += lane->count;
        if (lanes != NULL)
            lanes[i] = (struct tutti_kernel_lane){
                .peer = lane->peer, .is_receive = lane->is_receive,
                .fifo = lane->channel * grid_blocks, .first = lane->first, .count = lane->count};
    }
    if (lanes != NULL)
        lanes[plan->nlanes] = (struct tutti_kernel_lane){
            .peer = TUTTI_NO_RANK, .first = nhalves, .count = plan->nlocal};
    steps = tutti_cuda_writer_table(writer, &head->lane_steps, nhalves + plan->nlocal,
                                    sizeof *steps);
    for (uint32_t i = 0; steps != NULL && i < nhalves + plan->nlocal; i++)
        steps[i] = i < nhalves ? plan->lane_steps[i] : plan->local_steps[i - nhalves];
}

/* Encodes the byte offsets of a piece. */
static void encode_bound(struct tutti_cuda_writer *writer, const struct tutti_bound *bound,
                         struct tutti_kernel_bound *ret_bound)
{
    uint32_t nsteps = bound->schedule->nsteps;
    struct tutti_kernel_bound_step *steps =
        tutti_cuda_writer_table(writer, &ret_bound->steps, nsteps, sizeof *steps);
    struct tutti_kernel_segment *segments =
        tutti_cuda_writer_table(writer, &ret_bound->segments, bound->nsegments, sizeof *segments);

    ret_bound->slot_bytes = bound->slot_bytes;
    for (uint32_t i = 0; steps != NULL && segments != NULL && i < nsteps; i++) {
        const struct tutti_bound_step *step = &bound->steps[i];
        uint64_t start = 0;

        steps[i] = (struct tutti_kernel_bound_step){step->first, step->count, step->bytes};
        for (uint32_t k = step->first; k < step->first + step->count; k++) {
            segments[k].start = start;
            segments[k].bytes = bound->segments[k].bytes;
            for (int at = 0; at < TUTTI_AT_COUNT; at++)
                segments[k].at[at] = bound->segments[k].at[at];
            start += segments[k].bytes;
        }
    }
}

/* Encodes where the blocks of a user's buffer are. */
static void encode_buffer_blocks(struct tutti_cuda_writer *writer, const struct tutti_call *call,
                                 size_t count, const size_t *counts, const size_t *displs,
                                 struct tutti_kernel_table *ret_table)
{
    struct tutti_kernel_block *blocks =
        tutti_cuda_writer_table(writer, ret_table, (uint32_t)count, sizeof *blocks);
    uint64_t packed = 0;

    for (size_t i = 0; blocks != NULL && i < count; i++) {
        blocks[i].count = counts != NULL ? counts[i] : call->count;
        blocks[i].start = counts != NULL && displs != NULL ? displs[i] : packed;
        packed += blocks[i].count;
    }
}

/* Returns true if a step waits for all ranks. */
static bool waits_for_all(const struct tutti_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->nsteps; i++)
        if (schedule->steps[i].kind == TUTTI_STEP_WAIT &&
            schedule->steps[i].from == TUTTI_ALL_RANKS)
            return true;
    return false;
}

/* Fills in the head of a program, without its tables. */
static void fill_head(const struct tutti_program *program, const struct tutti_call *call,
                      const struct tutti_cuda_grid *grid, struct tutti_kernel_program *head)
{
    const struct tutti_schedule *schedule = program->plan->schedule;

    *head = (struct tutti_kernel_program){
        .magic = TUTTI_KERNEL_PROGRAM_MAGIC,
        .nranks = schedule->nranks,
        .rank = schedule->rank,
        .nblocks = grid->nblocks,
        .nsteps = schedule->nsteps,
        .nlanes = program->plan->nlanes + 1,
        .nsignals = schedule->nsignals,
        .needs = schedule->needs,
        .is_one_sided = schedule->is_one_sided,
        .run_type = (uint8_t)program->run_type,
        .widens = program->widens,
        .stages_input = program->stages_input,
        .stages_in_window = program->stages_input && accesses_peer_buffers(schedule),
        .scales_output = program->scales_output,
        .makes_truth = program->makes_truth,
        /* If the output is not scaled when it is finished, each GATHER_REDUCE scales. */
        .scales_gathers = call->is_average && schedule->is_one_sided && !schedule->sums_in_stages,
        .waits_for_all = waits_for_all(schedule),
        .input_blocks = (uint32_t)program->input_blocks,
        .output_blocks = (uint32_t)program->output_blocks,
        .npieces = program->npieces,
        .piece_count = program->piece_count,
        .call_count = call->count,
        .staged_input_bytes = program->staged_input_bytes,
        .staged_output_bytes = program->staged_output_bytes,
        .scratch_bytes = tutti_round_up(program->scratch_bytes, TUTTI_KERNEL_LINE),
    };
}

/* The signals of a block in all rounds of a call must fit into TUTTI_KERNEL_SIGNAL_BITS bits. */
static int check_signals(const struct tutti_program *program, const struct tutti_cuda_grid *grid)
{
    size_t nrounds = (program->npieces + grid->nblocks - 1) / grid->nblocks;

    if (nrounds * program->plan->schedule->nsignals >> TUTTI_KERNEL_SIGNAL_BITS == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "a call of %zu pieces with %u signals each has too "
                      "many signals; raise TUTTI_GPU_MEMORY_BYTES or choose another algorithm",
                      program->npieces, program->plan->schedule->nsignals);
}

/* Checks that kernels can run a program. */
static int check_program(const struct tutti_program *program, const struct tutti_cuda_grid *grid)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    const struct tutti_bound *bound = program->npieces > 1 ? &program->full : &program->last;
    size_t window_bytes = schedule->window_chunks * bound->slot_bytes;

    if (program->plan->nlanes + 1 > TUTTI_KERNEL_LANES)
        return tutti_fail(TUTTI_ERR_USAGE, "the schedule has %u lanes, but kernels have only %d",
                          program->plan->nlanes, TUTTI_KERNEL_LANES - 1);
    if (program->widens && accesses_peer_buffers(schedule))
        return tutti_fail(TUTTI_ERR_USAGE, "kernels cannot run a schedule that reads peers' "
                          "buffers and sums narrow floats in stages; choose another algorithm");
    if (accesses_peer_buffers(schedule))
        window_bytes += program->staged_input_bytes;
    /* Other calls were cut into pieces that fit, but v-forms run in one piece, which may not. */
    if (window_bytes > window_bytes_per_round(grid))
        return tutti_fail(TUTTI_ERR_USAGE, "no room for %zu bytes in a part of %zu bytes of a "
                          "window; raise "
                          "TUTTI_GPU_MEMORY_BYTES or choose another algorithm", window_bytes,
                          window_bytes_per_round(grid));
    return check_signals(program, grid);
}

int tutti_cuda_program_encode(const struct tutti_program *program, const struct tutti_call *call,
                              const struct tutti_cuda_grid *grid,
                              struct tutti_cuda_program_image *ret_image)
{
    struct tutti_cuda_writer writer = {.bytes = NULL};

    TUTTI_TRY(check_program(program, grid));
    do {
        struct tutti_kernel_program *head;

        TUTTI_TRY(tutti_cuda_writer_begin(&writer));
        head = tutti_cuda_writer_head(&writer);
        fill_head(program, call, grid, head);
        encode_steps(&writer, program->plan);
        encode_lanes(&writer, program->plan, grid->nblocks);
        encode_bound(&writer, &program->last, &head->last);
        head->full = head->last;
        if (program->npieces > 1)
            encode_bound(&writer, &program->full, &head->full);
        encode_buffer_blocks(&writer, call, program->input_blocks, call->input_counts,
                             call->input_displs, &head->input);
        encode_buffer_blocks(&writer, call, program->output_blocks, call->output_counts,
                             call->output_displs, &head->output);
    } while (!tutti_cuda_writer_end(&writer, grid, ret_image));
    return TUTTI_OK;
}
