/* SPDX-License-Identifier: Apache-2.0
 * Tests programs in the form that kernels read. Their tables are consistent and agree with the
 * plan, calls are divided for the available blocks, and programs that cannot run are refused. */
#include "executor/cuda/columns.h"

#include "algorithms/algorithm.h"
#include "base/result.h"
#include "schedule/access.h"
#include "schedule/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct tutti_cuda_grid grid = {
    .layout = {.nranks = 6, .channels = 16, .slots = 4, .slot_bytes = 4096, .flagged_bytes = 512,
               .window_bytes = 1 << 20},
    .nblocks = 4, .least_piece_bytes = 1 << 14, .least_share_bytes = 1 << 12};

static struct tutti_plan *plan_of(const struct tutti_algorithm *algorithm, uint32_t nranks,
                                  uint32_t rank, uint32_t channels)
{
    struct tutti_shape shape = {.nranks = nranks, .rank = rank, .channels = channels};
    struct tutti_schedule *schedule;
    struct tutti_plan *plan;

    assert_non_null(algorithm);
    assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
    assert_int_equal(tutti_plan_create(schedule, &plan), TUTTI_OK);
    return plan;
}

static struct tutti_call call_of(enum tutti_collective collective, enum tutti_type type,
                                 size_t count)
{
    static uint8_t input[8], output[8];

    return (struct tutti_call){.collective = collective, .type = type, .op = TUTTI_SUM,
                               .count = count, .input = input, .output = output};
}

/* ---- tables ------------------------------------------------------------------------------ */

static const struct tutti_kernel_program *head_of(const struct tutti_cuda_program_image *image)
{
    return (const struct tutti_kernel_program *)(const void *)image->bytes;
}

static const void *table_at(const struct tutti_cuda_program_image *image,
                            struct tutti_kernel_table table, size_t entry_bytes)
{
    assert_int_equal(table.at % 8, 0);
    assert_true(table.at >= sizeof(struct tutti_kernel_program));
    assert_true(table.at + table.count * entry_bytes <= image->size_bytes);
    return image->bytes + table.at;
}

/* Returns the column that a lane belongs to. */
static uint32_t column_of(const struct tutti_kernel_column *columns, uint32_t lane)
{
    uint32_t column = 0;

    while (lane >= columns[column].first + columns[column].count)
        column++;
    return column;
}

/* No step depends on a step of another column. */
static void check_deps(const struct tutti_cuda_program_image *image, const uint32_t *of_step)
{
    const struct tutti_kernel_program *head = head_of(image);
    const struct tutti_kernel_step *steps = table_at(image, head->steps, sizeof *steps);
    const uint32_t *deps = table_at(image, head->deps, sizeof *deps);

    for (uint32_t i = 0; i < head->nsteps; i++)
        for (uint32_t k = 0; k < steps[i].dep_count; k++)
            assert_int_equal(of_step[i], of_step[deps[steps[i].dep_first + k]]);
}

/* Each half of a step is in the lane that it names, once, and lanes are ascending. The last lane of
 * a column is the one for local steps. */
static void check_lanes(const struct tutti_cuda_program_image *image)
{
    const struct tutti_kernel_program *head = head_of(image);
    const struct tutti_kernel_step *steps = table_at(image, head->steps, sizeof *steps);
    const struct tutti_kernel_column *columns = table_at(image, head->columns, sizeof *columns);
    const struct tutti_kernel_lane *lanes = table_at(image, head->lanes, sizeof *lanes);
    const uint32_t *lane_steps = table_at(image, head->lane_steps, sizeof *lane_steps);
    uint32_t nhalves = 0, nnamed = 0, *of_step = calloc(head->nsteps + 1, sizeof *of_step);

    assert_int_equal(head->columns.count, head->ncolumns);
    assert_true(head->ncolumns * head->ncopies <= head->nblocks);
    for (uint32_t i = 0; i < head->lanes.count; i++) {
        const struct tutti_kernel_column *column = &columns[column_of(columns, i)];
        bool is_local = lanes[i].peer < 0;

        assert_int_equal(is_local, i + 1 == column->first + column->count);
        assert_int_equal(lanes[i].first, nhalves);
        nhalves += lanes[i].count;
        for (uint32_t k = lanes[i].first; k < nhalves; k++) {
            const struct tutti_kernel_step *step = &steps[lane_steps[k]];
            uint32_t place = i - column->first;

            of_step[lane_steps[k]] = column_of(columns, i);
            assert_true(k == lanes[i].first || lane_steps[k] > lane_steps[k - 1]);
            assert_true(is_local || lanes[i].is_receive ? step->receive_lane == place
                                                        : step->send_lane == place);
        }
    }
    for (uint32_t i = 0; i < head->nsteps; i++)
        nnamed += (steps[i].receive_lane != TUTTI_KERNEL_NO_LANE) +
                  (steps[i].send_lane != TUTTI_KERNEL_NO_LANE &&
                   steps[i].send_lane != steps[i].receive_lane);
    assert_int_equal(nhalves, nnamed);
    assert_int_equal(head->lane_steps.count, nhalves);
    check_deps(image, of_step);
    free(of_step);
}

/* Marks the elements of the user's buffer that some stretches cover. */
static void mark(const struct tutti_kernel_stretch *stretches, uint32_t count, uint8_t *marks,
                 size_t nelements, bool may_overlap)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < stretches[i].count; k++) {
            assert_true(stretches[i].start + k < nelements);
            assert_true(may_overlap || marks[stretches[i].start + k] == 0);
            marks[stretches[i].start + k] = 1;
        }
}

/* The columns together stage all of the input of the first piece, and finish all of the output,
 * each element once. */
static void check_staging(const struct tutti_cuda_program_image *image,
                          const struct tutti_program *program, const struct tutti_call *call)
{
    const struct tutti_kernel_program *head = head_of(image);
    const struct tutti_kernel_bound *bound = program->npieces > 1 ? &head->full : &head->last;
    const struct tutti_kernel_staging *staging = table_at(image, bound->staging, sizeof *staging);
    const struct tutti_kernel_stretch *stretches =
        table_at(image, bound->stretches, sizeof *stretches);
    size_t ninputs = program->input_blocks * call->count;
    size_t noutputs = program->output_blocks * call->count;
    uint8_t *inputs = calloc(ninputs + 1, 1), *outputs = calloc(noutputs + 1, 1);

    assert_int_equal(bound->staging.count, head->ncolumns);
    for (uint32_t i = 0; i < head->ncolumns; i++) {
        mark(stretches + staging[i].input_first, staging[i].input_count, inputs, ninputs, true);
        mark(stretches + staging[i].output_first, staging[i].output_count, outputs, noutputs,
             false);
    }
    for (size_t k = 0; k < ninputs; k++)
        assert_int_equal(inputs[k], program->stages_input && k % call->count < program->piece_count);
    for (size_t k = 0; k < noutputs; k++)
        assert_int_equal(outputs[k],
                         program->finishes_output && k % call->count < program->piece_count);
    free(inputs);
    free(outputs);
}

static void check_bound(const struct tutti_cuda_program_image *image,
                        const struct tutti_kernel_bound *bound, const struct tutti_bound *wanted)
{
    const struct tutti_kernel_bound_step *steps = table_at(image, bound->steps, sizeof *steps);
    const struct tutti_kernel_segment *segments =
        table_at(image, bound->segments, sizeof *segments);

    assert_int_equal(bound->segments.count, wanted->nsegments);
    for (uint32_t i = 0; i < bound->steps.count; i++) {
        uint64_t bytes = 0;

        assert_int_equal(steps[i].count, wanted->steps[i].count);
        for (uint32_t k = steps[i].first; k < steps[i].first + steps[i].count; k++) {
            assert_int_equal(segments[k].start, bytes);
            for (int at = 0; at < TUTTI_AT_COUNT; at++)
                assert_int_equal(segments[k].at[at], wanted->segments[k].at[at]);
            bytes += segments[k].bytes;
        }
        assert_int_equal(steps[i].bytes, bytes);
        assert_int_equal(bytes, wanted->steps[i].bytes);
    }
}

static void check_image(const struct tutti_cuda_program_image *image,
                        const struct tutti_program *program, const struct tutti_call *call)
{
    const struct tutti_kernel_program *head = head_of(image);
    const struct tutti_schedule *schedule = program->plan->schedule;

    assert_int_equal(head->magic, TUTTI_KERNEL_PROGRAM_MAGIC);
    assert_int_equal(head->size_bytes, image->size_bytes);
    assert_int_equal(head->nsteps, schedule->nsteps);
    assert_memory_equal(table_at(image, head->deps, sizeof(uint32_t)),
                        schedule->ndeps > 0 ? (const void *)schedule->deps : image->bytes,
                        schedule->ndeps * sizeof(uint32_t));
    assert_true(image->scratch_bytes % TUTTI_KERNEL_LINE == 0);
    check_lanes(image);
    check_staging(image, program, call);
    check_bound(image, &head->last, &program->last);
    if (program->npieces > 1)
        check_bound(image, &head->full, &program->full);
}

static void tables_say_what_the_plan_says(void **state)
{
    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (uint32_t rank = 0; rank < 6; rank++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(a);
            size_t count = algorithm->collective == TUTTI_BARRIER ? 0 : 77 + 10007 * (a % 3);
            /* Kernels do not sum narrow floats in stages in buffers that peers read. */
            bool is_refused = algorithm->sums_in_stages && algorithm->needs != 0;
            struct tutti_call call = call_of(algorithm->collective,
                                             is_refused ? TUTTI_FLOAT32 : TUTTI_BFLOAT16, count);
            struct tutti_plan *plan = plan_of(algorithm, 6, rank, tutti_cuda_grid_channels(&grid));
            struct tutti_cuda_program_image image;
            struct tutti_program *program;

            assert_int_equal(tutti_cuda_program_create(plan, &call, (int)rank, &grid, &program),
                             TUTTI_OK);
            assert_int_equal(tutti_cuda_program_encode(program, &call, &grid, &image), TUTTI_OK);
            check_image(&image, program, &call);
            tutti_cuda_program_image_fini(&image);
            tutti_program_destroy(program);
            tutti_plan_destroy(plan);
        }
}

/* Each channel of these algorithms runs in blocks of its own. */
static void channels_run_in_columns_of_their_own(void **state)
{
    static const struct {
        const char *name;
        uint32_t channels, ncolumns, ncopies;
    } rows[] = {{"ring", 0, 1, 4},    {"walecki", 2, 2, 2}, {"walecki", 4, 4, 1},
                {"walecki", 3, 3, 1}, {"two_shot", 0, 1, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct tutti_algorithm *algorithm =
            tutti_algorithm_find(TUTTI_ALLREDUCE, rows[i].name);
        struct tutti_shape shape = {.nranks = 6, .rank = 1};
        const struct tutti_call call = call_of(TUTTI_ALLREDUCE, TUTTI_INT32, 1000);
        struct tutti_cuda_columns columns;
        struct tutti_schedule *schedule;
        uint32_t *of_step, used = 0;

        if (rows[i].channels > 0)
            shape.options.value[TUTTI_CHANNELS] = rows[i].channels;
        assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
        columns = tutti_cuda_columns_of(schedule, &call, &grid);
        assert_int_equal(columns.ncolumns, rows[i].ncolumns);
        assert_int_equal(columns.ncopies, rows[i].ncopies);
        assert_int_equal(tutti_cuda_columns_divide(schedule, &columns, &of_step), TUTTI_OK);
        for (uint32_t k = 0; k < schedule->nsteps; k++)
            used |= 1u << of_step[k];
        assert_int_equal(used, (1u << rows[i].ncolumns) - 1);
        free(of_step);
        tutti_schedule_destroy(schedule);
    }
}

/* Steps that depend on each other share a column, and so do those of a lane. */
static void check_columns(const struct tutti_schedule *schedule, const uint32_t *of_step)
{
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];
        const uint32_t *deps = tutti_step_deps(schedule, step);

        for (uint32_t k = 0; k < step->dep_count; k++)
            assert_int_equal(of_step[deps[k]], of_step[i]);
        for (uint32_t k = 0; k < i; k++)
            if ((tutti_access_sends(step) && tutti_access_sends(&schedule->steps[k]) &&
                 schedule->steps[k].to == step->to) ||
                (tutti_access_receives(step) && tutti_access_receives(&schedule->steps[k]) &&
                 schedule->steps[k].from == step->from))
                assert_int_equal(of_step[k], of_step[i]);
    }
}

/* A v-form has one piece. So its lanes run side by side, as far as they do not depend on each
 * other. */
static void lanes_of_a_v_form_run_in_columns(void **state)
{
    static const struct {
        enum tutti_collective collective;
        const char *name;
        uint32_t used; /* columns that have steps */
    } rows[] = {{TUTTI_ALLTOALL, "spread_out", 4}, {TUTTI_GATHER, "linear", 4},
                {TUTTI_ALLGATHER, "ring", 1}, {TUTTI_REDUCE_SCATTER, "ring", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tutti_plan *plan =
            plan_of(tutti_algorithm_find(rows[i].collective, rows[i].name), 6, 0, 8);
        struct tutti_call call = call_of(rows[i].collective, TUTTI_INT32, 1000);
        struct tutti_cuda_columns columns;
        uint32_t *of_step, used = 0;

        call.kind = TUTTI_CALL_VECTOR;
        columns = tutti_cuda_columns_of(plan->schedule, &call, &grid);
        assert_true(columns.divides_lanes);
        assert_int_equal(tutti_cuda_columns_divide(plan->schedule, &columns, &of_step), TUTTI_OK);
        check_columns(plan->schedule, of_step);
        for (uint32_t k = 0; k < plan->schedule->nsteps; k++)
            used |= 1u << of_step[k];
        assert_int_equal(used, (1u << rows[i].used) - 1);
        free(of_step);
        /* Another block may not have staged its input yet. */
        call.output = (void *)(uintptr_t)call.input;
        columns = tutti_cuda_columns_of(plan->schedule, &call, &grid);
        assert_int_equal(columns.ncolumns, rows[i].collective == TUTTI_ALLTOALL ? 1 : 4);
        tutti_plan_destroy(plan);
    }
}

/* The columns of a rank follow from its number of channels, so all ranks must have as many. */
static void all_ranks_have_the_same_number_of_channels(void **state)
{
    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (uint32_t nranks = 2; nranks <= 6; nranks += 2)
            for (size_t v = 0; v < variants_count(tutti_algorithm(a)); v++) {
                struct variant variant;
                uint32_t first = 0;

                variant_create(tutti_algorithm(a), v, nranks, &variant);
                variant.shape.channels = tutti_cuda_grid_channels(&grid);
                for (uint32_t rank = 0; rank < nranks; rank++) {
                    struct tutti_schedule *schedule;

                    variant.shape.rank = rank;
                    assert_int_equal(tutti_algorithm_schedule(tutti_algorithm(a), &variant.shape,
                                                              &schedule), TUTTI_OK);
                    first = rank == 0 ? schedule->nchannels : first;
                    assert_int_equal(schedule->nchannels, first);
                    tutti_schedule_destroy(schedule);
                }
                variant_destroy(&variant);
            }
}

/* ---- pieces ------------------------------------------------------------------------------ */

static struct tutti_program *program_of(const char *name, enum tutti_type type, size_t count,
                                        struct tutti_plan **ret_plan)
{
    struct tutti_call call = call_of(TUTTI_ALLREDUCE, type, count);
    struct tutti_program *program;

    *ret_plan = plan_of(tutti_algorithm_find(TUTTI_ALLREDUCE, name), 6, 0,
                        tutti_cuda_grid_channels(&grid));
    assert_int_equal(tutti_cuda_program_create(*ret_plan, &call, 0, &grid, &program), TUTTI_OK);
    return program;
}

static void expect_pieces(const char *name, enum tutti_type type, size_t count, size_t npieces)
{
    struct tutti_plan *plan;
    struct tutti_program *program = program_of(name, type, count, &plan);

    assert_int_equal(program->npieces, npieces);
    assert_true(program->piece_count * (npieces - 1) < count);
    assert_true(program->piece_count * npieces >= count);
    tutti_program_destroy(program);
    tutti_plan_destroy(plan);
}

static void each_block_has_a_piece_when_that_is_worth_it(void **state)
{
    (void)state;
    expect_pieces("ring", TUTTI_FLOAT32, 100, 1);
    expect_pieces("ring", TUTTI_FLOAT32, 8191, 1);
    expect_pieces("ring", TUTTI_FLOAT32, 8192, 2);
    expect_pieces("ring", TUTTI_FLOAT32, 12500, 3);
    expect_pieces("ring", TUTTI_FLOAT32, 1 << 14, 4);
    expect_pieces("ring", TUTTI_FLOAT32, 1 << 28, 4);
    /* Staged: by what a block's memory holds, and in whole turns of all blocks. */
    expect_pieces("ring", TUTTI_FLOAT16, 1 << 20, 4);
    expect_pieces("ring", TUTTI_FLOAT16, (1 << 22) + 1, 8);
    /* By windows, of which a block has its part. */
    expect_pieces("one_shot", TUTTI_FLOAT32, 1 << 12, 1);
}

static void no_piece_is_larger_than_its_part_of_the_window(void **state)
{
    (void)state;
    for (size_t count = 1 << 10; count < 1 << 20; count = count * 3 + 1) {
        struct tutti_plan *plan;
        struct tutti_program *program = program_of("two_shot", TUTTI_FLOAT64, count, &plan);
        const struct tutti_bound *bound = program->npieces > 1 ? &program->full : &program->last;

        assert_true(plan->schedule->window_chunks * bound->slot_bytes <=
                    grid.layout.window_bytes / grid.nblocks / 2);
        tutti_program_destroy(program);
        tutti_plan_destroy(plan);
    }
}

/* ---- what is refused --------------------------------------------------------------------- */

static void schedules_of_too_many_channels_are_refused(void **state)
{
    struct tutti_call call = call_of(TUTTI_ALLREDUCE, TUTTI_INT32, 1000);
    struct tutti_plan *plan = plan_of(tutti_algorithm_find(TUTTI_ALLREDUCE, "walecki"), 16, 0, 0);
    struct tutti_cuda_grid narrow = grid;
    struct tutti_program *program = NULL;

    (void)state;
    narrow.layout.channels = narrow.nblocks + 3;
    assert_true(plan->schedule->nchannels > tutti_cuda_grid_channels(&narrow));
    assert_int_equal(tutti_cuda_program_create(plan, &call, 0, &narrow, &program),
                     TUTTI_ERR_USAGE);
    assert_null(program);
    tutti_plan_destroy(plan);
}

static void schedules_of_too_many_lanes_are_refused(void **state)
{
    struct tutti_call call = call_of(TUTTI_ALLTOALL, TUTTI_INT32, 10);
    struct tutti_plan *plan = plan_of(tutti_algorithm_find(TUTTI_ALLTOALL, "spread_out"), 128, 0,
                                      1);
    struct tutti_cuda_program_image image = {.bytes = NULL};
    struct tutti_program *program;

    (void)state;
    assert_int_equal(tutti_cuda_program_create(plan, &call, 0, &grid, &program), TUTTI_OK);
    assert_int_equal(tutti_cuda_program_encode(program, &call, &grid, &image), TUTTI_ERR_USAGE);
    assert_null(image.bytes);
    tutti_program_destroy(program);
    tutti_plan_destroy(plan);
}

static void blocks_too_large_for_the_window_are_refused(void **state)
{
    size_t counts[6] = {10, 10, 1 << 18, 10, 10, 10};
    struct tutti_call call = call_of(TUTTI_ALLGATHER, TUTTI_INT32, 10);
    struct tutti_plan *plan = plan_of(tutti_algorithm_find(TUTTI_ALLGATHER, "direct"), 6, 0, 1);
    struct tutti_cuda_program_image image = {.bytes = NULL};
    struct tutti_program *program;

    (void)state;
    call.kind = TUTTI_CALL_VECTOR;
    call.output_counts = counts;
    assert_int_equal(tutti_cuda_program_create(plan, &call, 0, &grid, &program), TUTTI_OK);
    assert_int_equal(tutti_cuda_program_encode(program, &call, &grid, &image), TUTTI_ERR_USAGE);
    assert_null(image.bytes);
    tutti_program_destroy(program);
    tutti_plan_destroy(plan);
}

/* A terabyte through windows of a few lines. */
static void calls_of_too_many_rounds_are_refused(void **state)
{
    struct tutti_cuda_grid tiny = grid;
    struct tutti_call call = call_of(TUTTI_ALLREDUCE, TUTTI_INT64, (size_t)1 << 37);
    struct tutti_plan *plan = plan_of(tutti_algorithm_find(TUTTI_ALLREDUCE, "one_shot"), 6, 0, 1);
    struct tutti_cuda_program_image image = {.bytes = NULL};
    struct tutti_program *program;

    (void)state;
    tiny.layout.window_bytes = 1 << 13;
    assert_int_equal(tutti_cuda_program_create(plan, &call, 0, &tiny, &program), TUTTI_OK);
    assert_int_equal(tutti_cuda_program_encode(program, &call, &tiny, &image), TUTTI_ERR_USAGE);
    assert_null(image.bytes);
    tutti_program_destroy(program);
    tutti_plan_destroy(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_say_what_the_plan_says),
        cmocka_unit_test(channels_run_in_columns_of_their_own),
        cmocka_unit_test(lanes_of_a_v_form_run_in_columns),
        cmocka_unit_test(all_ranks_have_the_same_number_of_channels),
        cmocka_unit_test(each_block_has_a_piece_when_that_is_worth_it),
        cmocka_unit_test(no_piece_is_larger_than_its_part_of_the_window),
        cmocka_unit_test(schedules_of_too_many_channels_are_refused),
        cmocka_unit_test(schedules_of_too_many_lanes_are_refused),
        cmocka_unit_test(blocks_too_large_for_the_window_are_refused),
        cmocka_unit_test(calls_of_too_many_rounds_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
