/* SPDX-License-Identifier: Apache-2.0
 * The cost functions of algorithms agree with their schedules: messages and bytes that follow one
 * another, bytes combined and copied, and memory loaded and stored. Every option and every place
 * is tried. */
#include "schedule/variants.h"
#include "unit/algorithms/ports.h"

#include "base/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The chunks that one rank's local and one-sided steps move. */
struct work {
    double phases;   /* signals waited for */
    double moved;    /* from and to other ranks' memory */
    double reduced, copied;
    double memory;   /* loads and stores; of one-sided algorithms, so local steps count too */
};

static void add_step(const struct tutti_step *step, uint32_t nranks, struct work *work)
{
    bool gathers = step->kind == TUTTI_STEP_GATHER_REDUCE;
    double count = gathers ? step->src.count : step->dst.count;
    double sources = nranks, others = nranks - 1;
    bool stores_everywhere = step->to == TUTTI_ALL_RANKS;

    switch (step->kind) {
    case TUTTI_STEP_COPY:
        work->copied += count;
        work->memory += 2 * count;
        break;
    case TUTTI_STEP_RECV_REDUCE:
        work->reduced += count;
        break;
    case TUTTI_STEP_REDUCE:
        work->reduced += count;
        work->memory += 3 * count;
        break;
    case TUTTI_STEP_GET:
        work->moved += count;
        work->memory += 2 * count;
        break;
    case TUTTI_STEP_PUT:
        work->moved += (stores_everywhere ? others : 1) * step->src.count;
        work->memory += (2 + (stores_everywhere ? others : 0)) * step->src.count;
        break;
    case TUTTI_STEP_GATHER_REDUCE:
        work->moved += others * count; /* each way, if it stores too */
        work->reduced += others * count;
        work->memory += (sources + 1 + (step->also.count > 0) + (stores_everywhere ? others : 0)) *
                        count;
        break;
    default:
        break;
    }
    if (step->kind == TUTTI_STEP_WAIT && step->signal > work->phases)
        work->phases = step->signal;
}

/* These are the values of the busiest rank. Only memory is the sum over all ranks. */
static struct work work_of(const struct world *world)
{
    struct work most = {.memory = 0};

    for (uint32_t rank = 0; rank < world->nranks; rank++) {
        const struct tutti_schedule *schedule = world->schedules[rank];
        struct work own = {.memory = 0};

        for (uint32_t at = 0; at < schedule->nsteps; at++)
            add_step(&schedule->steps[at], world->nranks, &own);
        most.phases = fmax(most.phases, own.phases);
        most.moved = fmax(most.moved, own.moved);
        most.reduced = fmax(most.reduced, own.reduced);
        most.copied = fmax(most.copied, own.copied);
        most.memory += own.memory;
    }
    return most;
}

/* `slack`: how much less than promised is well enough. */
static void expect(const struct tutti_algorithm *algorithm, const struct variant *variant,
                   const char *what, double promised, double found, double slack)
{
    if (found > promised * (1 + 1e-9) || found < promised * (1 - slack - 1e-9))
        fail_msg("%s %s, %u ranks, %s: %s is %g, promised was %g",
                 tutti_collective_name(algorithm->collective), algorithm->name,
                 variant->shape.nranks, variant->name, what, found, promised);
}

/* In odd rings swing's rounds overlap: the one left out is served while others go on; and in those
 * that are no powers of two it sends less in some rounds, and copies some blocks. */
static bool is_exact(const struct tutti_algorithm *algorithm)
{
    return strcmp(algorithm->name, "swing") != 0;
}

/* A barrier's messages are tokens (step.h); else a chunk is a byte. */
static double chunk_bytes(const struct tutti_algorithm *algorithm)
{
    return algorithm->collective == TUTTI_BARRIER ? 8 : 1;
}

static void hold_to_its_promise(const struct tutti_algorithm *algorithm,
                                const struct variant *variant)
{
    struct tutti_shape shape = variant->shape;
    double rounds = 0, bytes = 0;
    struct tutti_cost cost;
    struct world world;
    struct work work;
    double slack = is_exact(algorithm) ? 0 : 0.25;

    world_init(&world, algorithm, &shape);
    work = work_of(&world);
    assert_int_equal(tutti_algorithm_options(algorithm, &shape.options, &shape.options), TUTTI_OK);
    tutti_algorithm_cost(algorithm, &shape, world.schedules[0]->chunks_per_block, &cost);
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        rounds += cost.level[level].rounds + cost.level[level].posted;
        bytes += cost.level[level].bytes;
    }
    expect(algorithm, variant, "number of rounds", rounds,
           algorithm->needs == 0 ? world_rounds(&world) : work.phases, slack);
    expect(algorithm, variant, "longest path", bytes / chunk_bytes(algorithm),
           algorithm->needs == 0 ? world_chunks(&world) : work.moved, slack);
    expect(algorithm, variant, "what is reduced", cost.reduced, work.reduced, slack);
    if (is_exact(algorithm))
        expect(algorithm, variant, "what is copied", cost.copied / chunk_bytes(algorithm),
               work.copied, 0);
    assert_true(work.copied <= cost.copied / chunk_bytes(algorithm) + work.reduced / 4);
    expect(algorithm, variant, "memory traffic", cost.memory,
           algorithm->needs == 0 ? 0 : work.memory, 0);
    world_fini(&world);
}

static bool is_flat(const struct tutti_algorithm *algorithm)
{
    return !(algorithm->uses & (TUTTI_USES_NODES | TUTTI_USES_GROUPS | TUTTI_USES_CELLS));
}

/* Trees and pipelines promise at most, not exactly: test_rooted_cost_functions.c. */
static bool is_tree(const struct tutti_algorithm *algorithm)
{
    return algorithm->options[TUTTI_SEGMENTS].most != 0;
}

/* Rooted algorithms also depend on the root. Those for nodes have a price for each level.
 * test_cell_costs.c tests those for cells. */
static void costs_are_what_the_schedules_do(void **state)
{
    size_t nheld = 0;

    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(a);

        if (!is_flat(algorithm) || is_tree(algorithm) ||
            tutti_collective_has_root(algorithm->collective))
            continue;
        nheld++;
        for (size_t index = 0; index < variants_count(algorithm); index++)
            for (uint32_t nranks = 2; nranks <= 33; nranks++) {
                struct variant variant;

                variant_create(algorithm, index, nranks, &variant);
                hold_to_its_promise(algorithm, &variant);
                variant_destroy(&variant);
            }
    }
    assert_true(nheld > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_what_the_schedules_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
