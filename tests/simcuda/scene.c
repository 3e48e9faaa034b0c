/* SPDX-License-Identifier: Apache-2.0
 * Plays scenes. */
#include "simcuda/scene.h"

#include "base/result.h"
#include "simcuda/oracle.h"
#include "simcuda/sim_kernel.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/device/elements.h"

enum { MOST_RANKS = TUTTI_KERNEL_RANKS, GUARD_ELEMENTS = 3 };

/* One rank's part of a scene. */
struct part {
    struct tutti_plan *plan;
    struct tutti_program *program;
    struct tutti_cuda_program_image image;
    struct tutti_call call;        /* with the oracle's buffers */
    size_t *counts;                /* [4][nranks], of v-forms */
    size_t input_at, output_at;    /* bytes from the begin of the memory of both */
    size_t size_bytes;
    uint8_t *memory, *device;
    uint8_t *scratch, *scalar;
    uint8_t *copies; /* of the program, if it is in host memory */
};

struct played {
    struct part parts[MOST_RANKS];
    const struct scene *scene;
};

const char *scene_name(const struct scene *scene)
{
    static char text[300];

    snprintf(text, sizeof text, "%s %s, %u ranks, root %u, %s op %d%s%s, %zu elements%s%s, seed %"
             PRIu64, tutti_collective_name(scene->algorithm->collective), scene->algorithm->name,
             scene->shape.nranks, scene->shape.root, type_facts[scene->type].name, (int)scene->op,
             scene->is_average ? " average" : "", scene->is_premultiplied ? " premultiplied" : "",
             scene->count, scene->is_in_place ? ", in place" : "",
             scene->is_vector ? ", blocks that differ" : "", scene->seed);
    return text;
}

/* ---- stages ------------------------------------------------------------------------------ */

void stage_open(struct stage *stage, uint32_t nranks, const struct tutti_cuda_grid *grid,
                const struct domain_sizes *sizes, uint32_t threads)
{
    domain_init(&stage->domain, nranks, sizes);
    stage->grid = *grid;
    stage->grid.layout = stage->domain.layout;
    stage->threads = threads;
    stage->number = 0;
}

void stage_close(struct stage *stage)
{
    domain_fini(&stage->domain);
}

/* ---- buffers ----------------------------------------------------------------------------- */

/* Elements that rank `from` has for rank `to`. */
static size_t pair_count(const struct scene *scene, uint32_t from, uint32_t to)
{
    return (from * 7 + to * 3 + (uint32_t)scene->seed) % 5 * scene->count / 3;
}

/* One list of counts with displacements: gaps, and the last block first. */
static void fill_counts(const struct scene *scene, struct part *part, uint32_t rank, bool is_input)
{
    uint32_t nranks = scene->shape.nranks;
    size_t *counts = part->counts + (is_input ? 0 : 2 * nranks), *displs = counts + nranks;
    size_t end = 0;

    for (uint32_t i = nranks; i-- > 0;) {
        counts[i] = scene->algorithm->collective != TUTTI_ALLTOALL ? pair_count(scene, i, 0)
                    : is_input ? pair_count(scene, rank, i) : pair_count(scene, i, rank);
        displs[i] = end;
        end += counts[i] + i % 3;
    }
    if (is_input) {
        part->call.input_counts = counts;
        part->call.input_displs = displs;
    } else {
        part->call.output_counts = counts;
        part->call.output_displs = displs;
    }
}

static void lay_out_vectors(const struct scene *scene, struct part *part, uint32_t rank)
{
    enum tutti_collective collective = scene->algorithm->collective;

    part->counts = calloc(4 * (size_t)scene->shape.nranks, sizeof *part->counts);
    assert_non_null(part->counts);
    if (collective != TUTTI_ALLGATHER)
        fill_counts(scene, part, rank, true);
    if (collective != TUTTI_REDUCE_SCATTER)
        fill_counts(scene, part, rank, false);
    part->call.count = collective == TUTTI_ALLTOALL ? 0 : pair_count(scene, rank, 0);
}

static size_t extent(const size_t *counts, const size_t *displs, size_t blocks, size_t count)
{
    size_t end = blocks * count;

    for (size_t i = 0; counts != NULL && i < blocks; i++)
        end = i == 0 || displs[i] + counts[i] > end ? displs[i] + counts[i] : end;
    return end;
}

/* Where input and output lie: with guards, at addresses aligned to an element and no more. */
static void lay_out(const struct scene *scene, struct part *part, uint32_t rank)
{
    const struct tutti_shape *shape = &scene->shape;
    enum tutti_collective collective = scene->algorithm->collective;
    size_t size = tutti_type_size(scene->type);
    size_t inputs = tutti_collective_has_input(collective, rank, shape->root)
                        ? tutti_input_blocks(collective, shape->nranks) : 0;
    size_t outputs = tutti_collective_has_output(collective, rank, shape->root)
                         ? tutti_output_blocks(collective, shape->nranks) : 0;
    size_t input = extent(part->call.input_counts, part->call.input_displs, inputs,
                          part->call.count);
    size_t output = extent(part->call.output_counts, part->call.output_displs, outputs,
                           part->call.count);
    int64_t shift = 0;

    part->input_at = GUARD_ELEMENTS * size;
    part->output_at = part->input_at + (input + GUARD_ELEMENTS) * size;
    part->size_bytes = part->output_at + (output + GUARD_ELEMENTS) * size;
    if (!scene->is_in_place || scene->is_vector)
        return;
    if (collective == TUTTI_ALLTOALL)
        part->output_at = part->input_at;
    else if (!tutti_collective_in_place_shift(collective, rank, shape->root, 1, &shift))
        return;
    else if (inputs <= outputs) /* the smaller within the larger */
        part->input_at = part->output_at + (size_t)shift * part->call.count * size;
    else
        part->output_at = part->input_at + (size_t)-shift * part->call.count * size;
}

static void fill(const struct scene *scene, struct part *part, uint32_t rank)
{
    size_t size = tutti_type_size(scene->type);
    uint64_t state = scene->seed * 64 + rank, scalar;

    for (size_t i = 0; i < part->size_bytes / size; i++) {
        uint64_t element = random_element(scene->type, &state);

        memcpy(part->memory + i * size, &element, size);
    }
    scalar = random_element(scene->type, &state);
    memcpy(part->call.scalar, &scalar, sizeof part->call.scalar);
    memcpy(part->scalar, &scalar, sizeof scalar);
    memcpy(part->device, part->memory, part->size_bytes);
}

/* ---- programs ---------------------------------------------------------------------------- */

static void sign(const struct scene *scene, struct tutti_call *call)
{
    call->signature = (struct tutti_signature){
        .magic = TUTTI_SIGNATURE_MAGIC,
        .call = tutti_collective_call(call->collective, scene->is_vector),
        .type = (uint8_t)scene->type, .op = (uint8_t)scene->op, .root = (uint16_t)scene->shape.root,
        .count = scene->is_vector ? 0 : scene->count};
}

static bool make_program(struct stage *stage, const struct scene *scene, struct part *part,
                         uint32_t rank)
{
    struct tutti_shape shape = scene->shape;
    struct tutti_schedule *schedule;

    shape.rank = rank;
    shape.channels = tutti_cuda_grid_channels(&stage->grid);
    assert_int_equal(tutti_algorithm_schedule(scene->algorithm, &shape, &schedule), TUTTI_OK);
    assert_int_equal(tutti_plan_create(schedule, &part->plan), TUTTI_OK);
    if (tutti_cuda_program_create(part->plan, &part->call, (int)rank, &stage->grid,
                                  &part->program) != TUTTI_OK)
        return false;
    return tutti_cuda_program_encode(part->program, &part->call, &stage->grid, &part->image) ==
           TUTTI_OK;
}

static bool make_part(struct stage *stage, const struct scene *scene, struct part *part,
                      uint32_t rank)
{
    size_t copies_bytes;

    *part = (struct part){.call = {
        .kind = scene->is_vector ? TUTTI_CALL_VECTOR : TUTTI_CALL_COLLECTIVE,
        .collective = scene->algorithm->collective, .type = scene->type, .op = scene->op,
        .is_average = scene->is_average, .is_premultiplied = scene->is_premultiplied,
        .count = scene->count, .root = (int)scene->shape.root}};
    if (scene->is_vector)
        lay_out_vectors(scene, part, rank);
    lay_out(scene, part, rank);
    sign(scene, &part->call);
    part->memory = malloc(part->size_bytes);
    part->scalar = domain_take(&stage->domain, rank, sizeof(uint64_t));
    part->device = domain_take(&stage->domain, rank, part->size_bytes);
    part->call.input = part->memory + part->input_at;
    part->call.output = part->memory + part->output_at;
    fill(scene, part, rank);
    if (!make_program(stage, scene, part, rank))
        return false;
    part->scratch = aligned_alloc(TUTTI_KERNEL_LINE, part->image.scratch_bytes + TUTTI_KERNEL_LINE);
    assert_non_null(part->scratch);
    /* Programs of ranks with odd numbers are in host memory, as those of v-forms between hosts. */
    copies_bytes = tutti_cuda_program_copies_bytes(&stage->grid, part->image.size_bytes);
    if (rank % 2 == 1 && copies_bytes > 0) {
        part->copies = aligned_alloc(TUTTI_KERNEL_LINE, copies_bytes);
        assert_non_null(part->copies);
    }
    return true;
}

static void drop_part(struct part *part)
{
    tutti_program_destroy(part->program);
    tutti_plan_destroy(part->plan);
    tutti_cuda_program_image_fini(&part->image);
    free(part->counts);
    free(part->memory);
    free(part->scratch);
    free(part->copies);
}

static struct tutti_kernel_work work_for(const struct stage *stage, const struct scene *scene,
                                         const struct part *part, uint32_t rank, uint64_t number)
{
    const struct domain_rank *own = &stage->domain.ranks[rank];
    struct tutti_kernel_work work = {
        .kind = TUTTI_KERNEL_WORK_STEPS, .collective = (uint8_t)scene->algorithm->collective,
        .type = (uint8_t)scene->type, .op = (uint8_t)scene->op,
        .is_premultiplied = scene->is_premultiplied, .is_average = scene->is_average,
        .root = (int32_t)scene->shape.root,
        .input_map = DOMAIN_MAP, .output_map = DOMAIN_MAP,
        .input = part->device + part->input_at, .output = part->device + part->output_at,
        .input_offset = (uint64_t)(part->device + part->input_at - own->arena),
        .output_offset = (uint64_t)(part->device + part->output_at - own->arena),
        .in = {.count = part->call.count, .counts = part->call.input_counts,
               .displs = part->call.input_displs},
        .out = {.count = part->call.count, .counts = part->call.output_counts,
                .displs = part->call.output_displs},
        .number = number, .program = part->image.bytes,
        .program_bytes = part->image.size_bytes, .copies = part->copies, .scratch = part->scratch,
        .scalar_address = scene->reads_scalar ? part->scalar : NULL,
    };

    memcpy(work.signature, &part->call.signature, sizeof work.signature);
    memcpy(&work.scalar, part->call.scalar, sizeof work.scalar);
    return work;
}

/* ---- playing ----------------------------------------------------------------------------- */

static bool make(struct stage *stage, const struct scene *scene, struct played *played)
{
    bool is_possible = true;

    played->scene = scene;
    for (uint32_t rank = 0; rank < scene->shape.nranks; rank++)
        if (!make_part(stage, scene, &played->parts[rank], rank)) {
            /* All ranks get the same result here. */
            assert_true(rank == 0 || !is_possible);
            is_possible = false;
        } else {
            assert_true(is_possible);
        }
    return is_possible;
}

static void ask_oracle(const struct played *played)
{
    const struct tutti_program *programs[MOST_RANKS];
    struct tutti_call calls[MOST_RANKS];
    uint32_t nranks = played->scene->shape.nranks;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        programs[rank] = played->parts[rank].program;
        calls[rank] = played->parts[rank].call;
    }
    oracle_run(programs, calls, nranks);
}

static void compare(const struct stage *stage, const struct played *played)
{
    for (uint32_t rank = 0; rank < played->scene->shape.nranks; rank++) {
        const struct part *part = &played->parts[rank];
        const struct tutti_kernel_report *report = stage->domain.ranks[rank].report;

        if (report->fault != TUTTI_KERNEL_FINE)
            fail_msg("%s: fault %d on rank %u, waiting for %d", scene_name(played->scene),
                     (int)report->fault, rank, (int)report->rank);
        for (size_t i = 0; i < part->size_bytes; i++)
            if (part->memory[i] != part->device[i])
                fail_msg("%s: rank %u byte %zu of %s: %02x, not %02x", scene_name(played->scene),
                         rank, i >= part->output_at ? i - part->output_at : i,
                         i >= part->output_at ? "output" : "input", part->device[i],
                         part->memory[i]);
    }
}

static void run(struct stage *stage, const struct played *played, uint32_t count)
{
    uint32_t nranks = stage->domain.nranks;
    struct tutti_kernel_work *works = calloc(count * nranks, sizeof *works);
    struct domain_grid grids[MOST_RANKS];

    assert_non_null(works);
    for (uint32_t i = 0; i < count; i++) {
        stage->number++;
        for (uint32_t rank = 0; rank < nranks; rank++) {
            works[rank * count + i] = work_for(stage, played[i].scene, &played[i].parts[rank],
                                               rank, stage->number);
            grids[rank] = (struct domain_grid){stage->grid.nblocks, stage->threads};
        }
    }
    domain_run(&stage->domain, "tutti_kernel_group", grids, works, count, 0);
    free(works);
}

static bool play(struct stage *stage, const struct scene *scenes, uint32_t count)
{
    struct played *played = calloc(count, sizeof *played);
    bool is_possible = true;

    assert_non_null(played);
    for (uint32_t i = 0; i < count; i++)
        is_possible = make(stage, &scenes[i], &played[i]) && is_possible;
    if (is_possible) {
        run(stage, played, count);
        for (uint32_t i = 0; i < count; i++) {
            ask_oracle(&played[i]);
            compare(stage, &played[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t rank = 0; rank < stage->domain.nranks; rank++)
            drop_part(&played[i].parts[rank]);
    free(played);
    domain_take_back(&stage->domain);
    return is_possible;
}

bool scene_play(struct stage *stage, const struct scene *scene)
{
    return play(stage, scene, 1);
}

void scenes_play(struct stage *stage, const struct scene *scenes, uint32_t count)
{
    assert_true(play(stage, scenes, count));
}

void scene_play_apart(struct stage *stage, const struct scene *scene, const struct scene *other,
                      int odd, int absent, uint64_t deadline_ns)
{
    struct played *played = calloc(2, sizeof *played);
    struct tutti_kernel_launch launches[MOST_RANKS];
    struct sim_kernel_call calls[MOST_RANKS];
    uint32_t ncalls = 0;

    assert_non_null(played);
    assert_true(make(stage, scene, &played[0]) && make(stage, other, &played[1]));
    stage->number++;
    for (uint32_t rank = 0; rank < stage->domain.nranks; rank++) {
        const struct played *own = &played[(int)rank == odd];

        if ((int)rank == absent)
            continue;
        launches[rank] = (struct tutti_kernel_launch){
            .domain = stage->domain.ranks[rank].domain, .deadline_ns = deadline_ns, .nworks = 1,
            .first = work_for(stage, own->scene, &own->parts[rank], rank, stage->number)};
        calls[ncalls++] = (struct sim_kernel_call){"tutti_kernel_group", stage->grid.nblocks,
                                                   stage->threads, &launches[rank]};
    }
    sim_kernel_run_all(calls, ncalls);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t rank = 0; rank < stage->domain.nranks; rank++)
            drop_part(&played[i].parts[rank]);
    free(played);
}
