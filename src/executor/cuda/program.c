/* SPDX-License-Identifier: Apache-2.0
 * Makes programs for GPUs: cuts calls into pieces, and encodes the tables that kernels read. */
#include "executor/cuda/program.h"

#include "base/result.h"
#include "base/round.h"
#include "executor/cuda/columns.h"
#include "executor/cuda/image.h"
#include "executor/cuda/staging.h"
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
    };
    struct tutti_cuda_columns columns;

    TUTTI_TRY(check_call(plan->schedule, call, grid));
    columns = tutti_cuda_columns_of(plan->schedule, call, grid);
    cuts.npieces = columns.ncopies;
    cuts.least_bytes = grid->least_piece_bytes * columns.ncolumns;
    /* If peers read this rank's input, a staged copy must fit into the window, which they see. */
    if (accesses_peer_buffers(plan->schedule))
        cuts.stage_bytes = cuts.scratch_bytes = cuts.half_bytes;
    return tutti_program_create_cut(plan, call, rank, &cuts, ret_program);
}

/* ---- schedules ------------------------------------------------------------------------ */

/* A program that is being encoded. */
struct encoding {
    const struct tutti_program *program;
    const struct tutti_plan *plan;
    const struct tutti_call *call;
    const struct tutti_cuda_grid *grid;
    struct tutti_cuda_columns columns;
    uint32_t *of_step;         /* [nsteps]: the column of each step */
    uint32_t *lane_order;      /* [nlanes]: the plan's lanes, column after column */
    uint32_t *lane_columns;    /* [nlanes]: the column of each of the plan's lanes */
    uint32_t *lane_numbers;    /* [nlanes]: the place of each of the plan's lanes in its column */
    struct tutti_kernel_column *list; /* [ncolumns] */
    struct tutti_cuda_staging full, last;
};

/* Returns the place in its column of the lane in which the receiving or sending half of a step
 * runs. */
static uint32_t lane_of(const struct encoding *encoding, const struct tutti_step *step,
                        bool is_receive)
{
    const struct tutti_plan *plan = encoding->plan;
    int32_t peer = is_receive ? step->from : step->to;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        if (plan->lanes[i].peer == peer && plan->lanes[i].channel == step->channel &&
            plan->lanes[i].is_receive == is_receive)
            return encoding->lane_numbers[i];
    tutti_assert(!"a lane for every step");
    return TUTTI_KERNEL_NO_LANE;
}

/* Encodes a step, without its spans. */
static struct tutti_kernel_step step_for(const struct encoding *encoding, uint32_t index)
{
    const struct tutti_step *step = &encoding->plan->schedule->steps[index];
    bool receives = tutti_access_receives(step), sends = tutti_access_sends(step);
    /* A step without a receiving or sending half is in the last lane of its column. */
    uint32_t other_lane = receives || sends
                              ? TUTTI_KERNEL_NO_LANE
                              : encoding->list[encoding->of_step[index]].count - 1;

    return (struct tutti_kernel_step){
        .kind = step->kind,
        .src = (uint8_t)step->src.buffer, .dst = (uint8_t)step->dst.buffer,
        .remote = (uint8_t)step->remote.buffer, .also = (uint8_t)step->also.buffer,
        .remote_dst = (uint8_t)step->remote_dst.buffer,
        .signal = step->signal,
        .from = step->from, .to = step->to,
        .receive_lane = receives ? lane_of(encoding, step, true) : other_lane,
        .send_lane = sends ? lane_of(encoding, step, false) : other_lane,
        .dep_first = step->dep_first, .dep_count = step->dep_count,
        .among_first = step->among_first, .among_count = step->among_count,
    };
}

/* Encodes the steps of the schedule, their dependencies, and their lists of ranks. */
static void encode_steps(struct tutti_cuda_writer *writer, const struct encoding *encoding)
{
    const struct tutti_schedule *schedule = encoding->plan->schedule;
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    struct tutti_kernel_step *steps =
        tutti_cuda_writer_table(writer, &head->steps, schedule->nsteps, sizeof *steps);

    for (uint32_t i = 0; steps != NULL && i < schedule->nsteps; i++)
        steps[i] = step_for(encoding, i);
    tutti_cuda_writer_copy(writer, &head->deps, schedule->deps, schedule->ndeps,
                           sizeof *schedule->deps);
    tutti_cuda_writer_copy(writer, &head->among, schedule->among, schedule->namong,
                           sizeof *schedule->among);
}

/* Arranges the lanes of the plan in columns. A column also has a lane for local steps. */
static int arrange_lanes(struct encoding *encoding)
{
    const struct tutti_plan *plan = encoding->plan;
    uint32_t first = 0, placed = 0;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        encoding->lane_columns[i] = encoding->of_step[plan->lane_steps[plan->lanes[i].first]];
    for (uint32_t column = 0; column < encoding->columns.ncolumns; column++) {
        uint32_t count = 0;

        for (uint32_t i = 0; i < plan->nlanes; i++)
            if (encoding->lane_columns[i] == column) {
                encoding->lane_order[placed++] = i;
                encoding->lane_numbers[i] = count++;
            }
        if (count + 1 > TUTTI_KERNEL_LANES)
            return tutti_fail(TUTTI_ERR_USAGE, "the schedule has %u lanes in one block, but "
                              "kernels have only %d", count, TUTTI_KERNEL_LANES - 1);
        encoding->list[column] = (struct tutti_kernel_column){first, count + 1};
        first += count + 1;
    }
    return TUTTI_OK;
}

/* Encodes the lanes of a column: those of the plan, and one more behind them for local steps.
 * Fills in the steps of the local lane, of which `*nplaced` of all columns are in `steps`. */
static void encode_column(const struct encoding *encoding, uint32_t column,
                          struct tutti_kernel_lane *lanes, uint32_t *steps, uint32_t *nplaced,
                          uint32_t *nlanes_placed)
{
    const struct tutti_plan *plan = encoding->plan;
    const struct tutti_kernel_column *own = &encoding->list[column];
    uint32_t first;

    for (uint32_t i = 0; i + 1 < own->count; i++) {
        const struct tutti_lane *lane = &plan->lanes[encoding->lane_order[(*nlanes_placed)++]];

        lanes[own->first + i] = (struct tutti_kernel_lane){
            .peer = lane->peer, .is_receive = lane->is_receive, .fifo = lane->channel,
            .first = *nplaced, .count = lane->count};
        for (uint32_t k = 0; k < lane->count; k++)
            steps[(*nplaced)++] = plan->lane_steps[lane->first + k];
    }
    first = *nplaced;
    for (uint32_t i = 0; i < plan->nlocal; i++)
        if (encoding->of_step[plan->local_steps[i]] == column)
            steps[(*nplaced)++] = plan->local_steps[i];
    lanes[own->first + own->count - 1] = (struct tutti_kernel_lane){
        .peer = TUTTI_NO_RANK, .first = first, .count = *nplaced - first};
}

/* Encodes the columns, their lanes, and the steps of each lane. */
static void encode_lanes(struct tutti_cuda_writer *writer, const struct encoding *encoding)
{
    const struct tutti_plan *plan = encoding->plan;
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    uint32_t ncolumns = encoding->columns.ncolumns, nhalves = 0;
    uint32_t nplaced = 0, nlanes_placed = 0;
    struct tutti_kernel_lane *lanes;
    uint32_t *steps;

    for (uint32_t i = 0; i < plan->nlanes; i++)
        nhalves += plan->lanes[i].count;
    tutti_cuda_writer_copy(writer, &head->columns, encoding->list, ncolumns,
                           sizeof *encoding->list);
    lanes = tutti_cuda_writer_table(writer, &head->lanes, plan->nlanes + ncolumns, sizeof *lanes);
    steps = tutti_cuda_writer_table(writer, &head->lane_steps, nhalves + plan->nlocal,
                                    sizeof *steps);
    for (uint32_t i = 0; lanes != NULL && steps != NULL && i < ncolumns; i++)
        encode_column(encoding, i, lanes, steps, &nplaced, &nlanes_placed);
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

/* Encodes the stretches that columns stage and finish. */
static void encode_staging(struct tutti_cuda_writer *writer, uint32_t ncolumns,
                           const struct tutti_cuda_staging *staging,
                           struct tutti_kernel_bound *ret_bound)
{
    tutti_cuda_writer_copy(writer, &ret_bound->staging, staging->of_column, ncolumns,
                           sizeof *staging->of_column);
    tutti_cuda_writer_copy(writer, &ret_bound->stretches, staging->stretches, staging->count,
                           sizeof *staging->stretches);
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
static void fill_head(const struct encoding *encoding, struct tutti_kernel_program *head)
{
    const struct tutti_program *program = encoding->program;
    const struct tutti_schedule *schedule = encoding->plan->schedule;
    const struct tutti_cuda_columns *columns = &encoding->columns;

    *head = (struct tutti_kernel_program){
        .magic = TUTTI_KERNEL_PROGRAM_MAGIC,
        .nranks = schedule->nranks,
        .rank = schedule->rank,
        .nblocks = encoding->grid->nblocks,
        .ncolumns = columns->ncolumns,
        .ncopies = columns->ncopies,
        .fifo_step = columns->fifo_step,
        .nsteps = schedule->nsteps,
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
        .scales_gathers = encoding->call->is_average && schedule->is_one_sided &&
                          !schedule->sums_in_stages,
        .waits_for_all = waits_for_all(schedule),
        .npieces = program->npieces,
        .piece_count = program->piece_count,
        .staged_input_bytes = program->staged_input_bytes,
        .staged_output_bytes = program->staged_output_bytes,
        .scratch_bytes = tutti_round_up(program->scratch_bytes, TUTTI_KERNEL_LINE),
    };
}

/* The signals of a block in all rounds of a call must fit into TUTTI_KERNEL_SIGNAL_BITS bits. */
static int check_signals(const struct tutti_program *program, uint32_t ncopies)
{
    size_t nrounds = tutti_divide_up(program->npieces, ncopies);

    if (nrounds * program->plan->schedule->nsignals >> TUTTI_KERNEL_SIGNAL_BITS == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "a call of %zu pieces with %u signals each has too "
                      "many signals; raise TUTTI_GPU_MEMORY_BYTES or choose another algorithm",
                      program->npieces, program->plan->schedule->nsignals);
}

/* Checks that kernels can run a program. */
static int check_program(const struct tutti_program *program, const struct tutti_call *call,
                         const struct tutti_cuda_grid *grid)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    const struct tutti_bound *bound = program->npieces > 1 ? &program->full : &program->last;
    size_t window_bytes = schedule->window_chunks * bound->slot_bytes;

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
    return check_signals(program, tutti_cuda_columns_of(schedule, call, grid).ncopies);
}

static void encoding_fini(struct encoding *encoding)
{
    free(encoding->of_step);
    free(encoding->lane_order);
    free(encoding->list);
    tutti_cuda_staging_fini(&encoding->full);
    tutti_cuda_staging_fini(&encoding->last);
}

/* Divides the schedule among columns. The caller calls encoding_fini, also on failure. */
static int prepare(struct encoding *encoding)
{
    const struct tutti_program *program = encoding->program;
    uint32_t nlanes = encoding->plan->nlanes, ncolumns = encoding->columns.ncolumns;

    TUTTI_TRY(tutti_cuda_columns_divide(encoding->plan->schedule, &encoding->columns,
                                        &encoding->of_step));
    encoding->lane_order = calloc(3 * (size_t)nlanes + 1, sizeof *encoding->lane_order);
    encoding->list = calloc(ncolumns, sizeof *encoding->list);
    if (encoding->lane_order == NULL || encoding->list == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u lanes", nlanes);
    encoding->lane_columns = encoding->lane_order + nlanes;
    encoding->lane_numbers = encoding->lane_columns + nlanes;
    TUTTI_TRY(arrange_lanes(encoding));
    TUTTI_TRY(tutti_cuda_staging_find(program, encoding->call, &program->last, ncolumns,
                                      encoding->of_step, &encoding->last));
    if (program->npieces > 1)
        TUTTI_TRY(tutti_cuda_staging_find(program, encoding->call, &program->full, ncolumns,
                                          encoding->of_step, &encoding->full));
    return TUTTI_OK;
}

/* Writes the image in two passes (image.h). */
static int write_image(const struct encoding *encoding, struct tutti_cuda_program_image *ret_image)
{
    const struct tutti_program *program = encoding->program;
    uint32_t ncolumns = encoding->columns.ncolumns;
    struct tutti_cuda_writer writer = {.bytes = NULL};

    do {
        struct tutti_kernel_program *head;

        TUTTI_TRY(tutti_cuda_writer_begin(&writer));
        head = tutti_cuda_writer_head(&writer);
        fill_head(encoding, head);
        encode_steps(&writer, encoding);
        encode_lanes(&writer, encoding);
        encode_bound(&writer, &program->last, &head->last);
        encode_staging(&writer, ncolumns, &encoding->last, &head->last);
        head->full = head->last;
        if (program->npieces > 1) {
            encode_bound(&writer, &program->full, &head->full);
            encode_staging(&writer, ncolumns, &encoding->full, &head->full);
        }
    } while (!tutti_cuda_writer_end(&writer, encoding->grid, ret_image));
    return TUTTI_OK;
}

int tutti_cuda_program_encode(const struct tutti_program *program, const struct tutti_call *call,
                              const struct tutti_cuda_grid *grid,
                              struct tutti_cuda_program_image *ret_image)
{
    struct encoding encoding = {.program = program, .plan = program->plan, .call = call,
                                .grid = grid};
    int rc;

    TUTTI_TRY(check_program(program, call, grid));
    encoding.columns = tutti_cuda_columns_of(program->plan->schedule, call, grid);
    rc = prepare(&encoding);
    if (rc == TUTTI_OK)
        rc = write_image(&encoding, ret_image);
    encoding_fini(&encoding);
    return rc;
}
