/* SPDX-License-Identifier: Apache-2.0
 * Makes programs. It decides which buffers are staged and how large a piece is, and binds the
 * steps. */
#include "executor/host/program.h"

#include "base/result.h"
#include "base/round.h"

#include <stdlib.h>

/* Elements of a cache line or of several, for every type. */
enum { LINE_ELEMENTS = 64 };

/* Decides which buffers are staged, in which type, and what is done to the output at the end. */
static void decide_staging(struct tutti_program *program, const struct tutti_call *call, int rank)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    bool reduces = tutti_collective_reduces(call->collective);
    bool has_input = tutti_collective_has_input(call->collective, (uint32_t)rank, schedule->root);
    bool has_output = tutti_collective_has_output(call->collective, (uint32_t)rank, schedule->root);
    bool overwrites_input = tutti_call_is_swap(call);

    program->run_type = call->type;
    program->makes_truth = has_output &&
                           tutti_call_makes_truth(call, rank, (int)schedule->nranks);
    if (reduces && (!schedule->is_one_sided || schedule->sums_in_stages)) {
        program->widens = tutti_type_is_narrow_float(call->type);
        if (program->widens)
            program->run_type = TUTTI_FLOAT32;
        program->scales_output = call->is_average && has_output;
    }
    program->finishes_output = program->widens || program->scales_output || program->makes_truth;
    /* Peers that read this rank's input know its counts but not its displacements, so pack it. */
    program->stages_input = has_input &&
        (program->widens || (reduces && call->is_premultiplied) || overwrites_input ||
         (schedule->is_one_sided && call->input_displs != NULL));
    program->input_blocks =
        has_input ? tutti_input_blocks(call->collective, schedule->nranks) : 0;
    program->output_blocks =
        has_output ? tutti_output_blocks(call->collective, schedule->nranks) : 0;
}

/* Binds a piece of `count` elements per block. Staged blocks are packed, and the user's blocks lie
 * where the call says. */
static int bind_piece(const struct tutti_program *program, const struct tutti_call *call,
                      size_t count, struct tutti_bound *ret_bound)
{
    struct tutti_extent extent = {
        .element_bytes = tutti_type_size(program->run_type),
        .block_count = count,
        .input_counts = call->input_counts,
        .input_displs = program->stages_input ? NULL : call->input_displs,
        .output_counts = call->output_counts,
        .output_displs = program->widens ? NULL : call->output_displs,
        .input_stride = program->stages_input ? 0 : call->count,
        .output_stride = program->widens ? 0 : call->count,
    };

    return tutti_bind(program->plan->schedule, &extent, ret_bound);
}

/* Returns the most bytes of the larger buffer in a piece. All ranks must cut alike. So the limit
 * depends on the memory of the communicator that the call takes on any rank. */
static size_t most_piece_bytes(const struct tutti_program *program, const struct tutti_call *call,
                               const struct tutti_cuts *cuts)
{
    const struct tutti_schedule *schedule = program->plan->schedule;

    if (program->widens || call->is_premultiplied)
        return cuts->stage_bytes;
    /* Another rank may call the all-to-all in place, and then copies its input first. */
    if (tutti_collective_in_place(call->collective) == TUTTI_AFTER_COPY)
        return cuts->scratch_bytes;
    return schedule->is_one_sided || schedule->is_lean ? SIZE_MAX : cuts->scratch_bytes;
}

/* Returns the number of pieces that should run at the same time. Small calls have fewer. */
static size_t wanted_pieces(const struct tutti_call *call, const struct tutti_cuts *cuts,
                            size_t row_bytes)
{
    size_t wanted = cuts->npieces > 1 ? call->count * row_bytes / cuts->least_bytes : 1;

    if (wanted > cuts->npieces)
        return cuts->npieces;
    return wanted > 0 ? wanted : 1;
}

/* Returns the elements of each block in a piece. All pieces are about equal in size. They consist
 * of whole cache lines, so that they keep the alignment of the user's buffers. */
static size_t choose_piece_count(const struct tutti_program *program, const struct tutti_call *call,
                                 const struct tutti_cuts *cuts)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    size_t inputs = tutti_input_blocks(call->collective, schedule->nranks);
    size_t outputs = tutti_output_blocks(call->collective, schedule->nranks);
    /* The bytes that one element of each block takes in the larger buffer. */
    size_t row_bytes = tutti_type_size(program->run_type) * (outputs > inputs ? outputs : inputs);
    size_t most = most_piece_bytes(program, call, cuts) / row_bytes;
    size_t wanted = wanted_pieces(call, cuts, row_bytes), pieces, count;

    if (call->count <= most && wanted == 1)
        return call->count;
    if (most == 0)
        return 1;
    pieces = call->count / most + (call->count % most != 0);
    pieces = tutti_round_up(pieces, wanted);
    count = tutti_round_up(tutti_divide_up(call->count, pieces), LINE_ELEMENTS);
    return count < most ? count : most;
}

/* Cuts the call into pieces. V-forms have one piece. The function uses only values that are the
 * same on all ranks, so that all ranks cut the call alike. */
static int decide_pieces(struct tutti_program *program, const struct tutti_call *call,
                         const struct tutti_cuts *cuts)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    size_t element_bytes = tutti_type_size(program->run_type);
    size_t most;

    program->piece_count = call->count;
    program->npieces = 1;
    if (tutti_call_is_vector(call) || call->count == 0)
        return TUTTI_OK;

    program->piece_count =
        tutti_bind_piece(schedule, element_bytes, call->count, cuts->half_bytes);
    if (program->piece_count == 0)
        return tutti_fail(
            TUTTI_ERR_USAGE,
            "a window of %zu bytes has no room for %u slots; raise TUTTI_WINDOW_BYTES "
            "or choose another algorithm",
            2 * cuts->half_bytes, schedule->window_chunks);
    most = choose_piece_count(program, call, cuts);
    if (program->piece_count > most)
        program->piece_count = most;
    program->npieces = tutti_divide_up(call->count, program->piece_count);
    return TUTTI_OK;
}

/* Returns the bytes of a staged buffer, in whole cache lines. */
static size_t staged_bytes(const struct tutti_program *program, const size_t *counts, size_t blocks)
{
    size_t elements = 0, bytes;

    for (size_t block = 0; block < blocks; block++)
        elements += counts ? counts[block] : program->piece_count;
    bytes = elements * tutti_type_size(program->run_type);
    return tutti_round_up(bytes, TUTTI_CACHE_LINE);
}

/* Decides where the window of a round is, by the size of the first piece, which is the largest. */
static enum tutti_run_window_location place_window(const struct tutti_program *program)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    const struct tutti_bound *bound = program->npieces > 1 ? &program->full : &program->last;
    size_t bytes = schedule->window_chunks * bound->slot_bytes;

    if (bytes > TUTTI_SLOT_BYTES)
        return TUTTI_IN_HALF;
    if (bytes > sizeof((struct tutti_post *)NULL)->window || schedule->needs != TUTTI_NEEDS_WINDOW)
        return TUTTI_IN_SLOT;
    return TUTTI_IN_POST;
}

/* Decides which memory of the communicator a piece takes, once the steps are bound. */
static void decide_memory(struct tutti_program *program, const struct tutti_call *call)
{
    const struct tutti_schedule *schedule = program->plan->schedule;
    size_t full = program->full.scratch_bytes, last = program->last.scratch_bytes;
    /* A rank without a result of its own may write the result of another rank. */
    size_t result_blocks = program->output_blocks > 0 ? program->output_blocks
                                                      : program->input_blocks;

    if (program->stages_input)
        program->staged_input_bytes =
            staged_bytes(program, call->input_counts, program->input_blocks);
    if (program->widens)
        program->staged_output_bytes =
            staged_bytes(program, call->output_counts, program->output_blocks);
    program->scratch_bytes = full > last ? full : last;
    program->window_place = place_window(program);
    program->may_stream = result_blocks * call->count * tutti_type_size(call->type) >=
                          TUTTI_LEAST_STREAMED_BYTES;
    program->is_one_round = program->npieces == 1 && !program->may_stream &&
                            schedule->needs == TUTTI_NEEDS_WINDOW && !program->stages_input &&
                            !program->finishes_output && program->scratch_bytes == 0;
}

int tutti_program_create_cut(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                             const struct tutti_cuts *cuts, struct tutti_program **ret_program)
{
    struct tutti_program *program = calloc(1, sizeof *program);
    size_t last;
    int rc;

    if (program == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a program");
    program->plan = plan;
    decide_staging(program, call, rank);
    TUTTI_TRY_OR(fail, rc, decide_pieces(program, call, cuts));
    tutti_assert(program->npieces > 0 &&
                 (program->npieces - 1) * program->piece_count <= call->count);
    last = call->count - (program->npieces - 1) * program->piece_count;
    tutti_assert(last <= program->piece_count);
    TUTTI_TRY_OR(fail, rc, bind_piece(program, call, last, &program->last));
    if (program->npieces > 1)
        TUTTI_TRY_OR(fail, rc, bind_piece(program, call, program->piece_count, &program->full));
    decide_memory(program, call);
    *ret_program = program;
    return TUTTI_OK;

fail:
    tutti_program_destroy(program);
    return rc;
}

int tutti_program_create(const struct tutti_plan *plan, const struct tutti_call *call, int rank,
                         size_t half_bytes, struct tutti_program **ret_program)
{
    const struct tutti_cuts cuts = {.half_bytes = half_bytes, .stage_bytes = TUTTI_STAGE_BYTES,
                                    .scratch_bytes = TUTTI_SCRATCH_BYTES, .npieces = 1};

    return tutti_program_create_cut(plan, call, rank, &cuts, ret_program);
}

void tutti_program_destroy(struct tutti_program *program)
{
    if (program == NULL)
        return;
    tutti_bound_fini(&program->full);
    tutti_bound_fini(&program->last);
    tutti_program_destroy(program->lent);
    free(program);
}

void tutti_program_set_lent(struct tutti_program *program, struct tutti_program *lent)
{
    tutti_assert(program->lent == NULL && lent->lent == NULL);
    program->lent = lent;
    program->is_one_round = false;
    if (lent->scratch_bytes > program->scratch_bytes)
        program->scratch_bytes = lent->scratch_bytes;
}

size_t tutti_program_bytes(const struct tutti_program *program)
{
    size_t nsteps = program->plan->schedule->nsteps;
    size_t bound_bytes = nsteps * sizeof(struct tutti_bound_step);
    size_t nbounds = program->npieces > 1 ? 2 : 1;
    size_t nsegments = program->full.nsegments + program->last.nsegments;
    size_t lent_bytes = program->lent != NULL ? tutti_program_bytes(program->lent) : 0;

    return lent_bytes + sizeof *program + nbounds * bound_bytes +
           nsegments * sizeof(struct tutti_segment);
}
