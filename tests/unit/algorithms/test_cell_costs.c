/* SPDX-License-Identifier: Apache-2.0
 * The cost functions of algorithms for cells agree with their schedules, and the traffic between
 * cells is as expected. */
#include "algorithms/algorithm.h"

#include "base/result.h"
#include "schedule/access.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 64 };

struct house {
    uint32_t in_cell, cells;
    bool is_cyclic;
};

static const struct house houses[] = {{2, 2, false}, {4, 2, false}, {2, 4, true},  {8, 2, true},
                                      {3, 3, false}, {16, 2, false}, {8, 8, false}, {2, 32, true}};

struct spread {
    struct tutti_placement places;
    uint32_t node[MOST_RANKS], cell[MOST_RANKS];
};

static void spread_init(struct spread *spread, const struct house *house)
{
    uint32_t nranks = house->in_cell * house->cells;

    *spread = (struct spread){.places = {.nranks = nranks, .nnodes = 1, .ngroups = 1}};
    for (uint32_t rank = 0; rank < nranks; rank++)
        spread->cell[rank] = house->is_cyclic ? rank % house->cells : rank / house->in_cell;
    spread->places.node = spread->node;
    spread->places.cell = spread->cell;
    spread->places.ncells = house->cells;
    tutti_placement_align(&spread->places);
}

/* The traffic of the schedules of all ranks, in chunks. */
struct work {
    double moved, reduced, copied; /* by the busiest rank */
    double memory;                 /* by all: loads and stores */
    double crossing;               /* into the busiest cell, or out of it */
    double per_block;              /* chunks of a block */
};

struct tally {
    double moved[MOST_RANKS], reduced[MOST_RANKS], copied[MOST_RANKS];
    double in[MOST_RANKS], out[MOST_RANKS]; /* per cell */
    double memory;
};

static void add_step(const struct spread *spread, const struct tutti_schedule *schedule,
                     const struct tutti_step *step, struct tally *tally)
{
    struct tutti_touch touches[TUTTI_STEP_ACCESSES];
    uint32_t ntouches = tutti_step_accesses(step, touches), own = schedule->rank;

    for (uint32_t t = 0; t < ntouches; t++) {
        struct tutti_step_ranks owners = tutti_step_peers(schedule, step, touches[t].rank);
        double count = touches[t].span.count;

        if (touches[t].rank == TUTTI_NO_RANK)
            tally->memory += count;
        for (uint32_t i = 0; i < owners.count; i++) {
            uint32_t other = tutti_step_ranks_at(owners, i);
            uint32_t from = spread->cell[touches[t].is_write ? own : other];
            uint32_t to = spread->cell[touches[t].is_write ? other : own];

            if (other == own)
                continue;
            tally->memory += count;
            tally->moved[own] += count;
            tally->out[from] += from != to ? count : 0;
            tally->in[to] += from != to ? count : 0;
        }
    }
    if (step->kind == TUTTI_STEP_COPY)
        tally->copied[own] += step->dst.count;
    if (step->kind == TUTTI_STEP_GATHER_REDUCE)
        tally->reduced[own] += step->src.count * (tutti_step_ranks(schedule, step).count - 1.0);
}

static double most_of(const double *values, uint32_t count)
{
    double most = 0;

    for (uint32_t i = 0; i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

static struct work work_of(const struct tutti_algorithm *algorithm, const struct spread *spread,
                           uint32_t root)
{
    struct tutti_shape shape = {.nranks = spread->places.nranks, .root = root,
                                .places = &spread->places};
    struct tally tally = {.memory = 0};
    struct work work = {.per_block = 1};

    for (shape.rank = 0; shape.rank < shape.nranks; shape.rank++) {
        struct tutti_schedule *schedule;

        assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
        for (uint32_t at = 0; at < schedule->nsteps; at++)
            add_step(spread, schedule, &schedule->steps[at], &tally);
        work.per_block = schedule->chunks_per_block;
        tutti_schedule_destroy(schedule);
    }
    work.moved = most_of(tally.moved, shape.nranks);
    work.reduced = most_of(tally.reduced, shape.nranks);
    work.copied = most_of(tally.copied, shape.nranks);
    work.memory = tally.memory;
    work.crossing = fmax(most_of(tally.in, MOST_RANKS), most_of(tally.out, MOST_RANKS));
    return work;
}

static void expect(const struct tutti_algorithm *algorithm, const struct house *house,
                   const char *what, double promised, double found)
{
    if (fabs(promised - found) > 1e-9 * (1 + found))
        fail_msg("%s %s, %u cells of %u: %s is %g, promised was %g",
                 tutti_collective_name(algorithm->collective), algorithm->name, house->cells,
                 house->in_cell, what, found, promised);
}

/* Of the small all-reduce one rank reads and another copies: the path is longer than what any does
 * alone. Its members get the sum after the leader has read. */
static double path_beyond(const struct tutti_algorithm *algorithm)
{
    return strcmp(algorithm->name, "cells_one_shot") == 0;
}

static void costs_are_what_the_schedules_do(void **state)
{
    size_t nheld = 0;

    (void)state;
    for (size_t a = 0; a < tutti_algorithm_count(); a++)
        for (size_t h = 0; h < sizeof houses / sizeof *houses; h++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(a);
            const struct house *house = &houses[h];
            struct spread spread;
            struct tutti_shape shape;
            struct tutti_cost cost;
            struct work work;

            if (!(algorithm->uses & TUTTI_USES_CELLS))
                continue;
            nheld++;
            spread_init(&spread, house);
            shape = (struct tutti_shape){.nranks = spread.places.nranks, .places = &spread.places};
            shape.root = tutti_collective_has_root(algorithm->collective) ? shape.nranks / 2 : 0;
            work = work_of(algorithm, &spread, shape.root);
            tutti_algorithm_cost(algorithm, &shape, work.per_block, &cost);
            expect(algorithm, house, "what is moved",
                   cost.level[TUTTI_LEVEL_NODE].bytes - path_beyond(algorithm), work.moved);
            expect(algorithm, house, "what is reduced", cost.reduced, work.reduced);
            expect(algorithm, house, "what is copied", cost.copied, work.copied);
            expect(algorithm, house, "memory traffic", cost.memory, work.memory);
            expect(algorithm, house, "what crosses", cost.bridge.bytes, work.crossing);
        }
    assert_true(nheld > 0);
}

/* From about p / 2 vectors to about one, each way, for two sockets. */
static void what_crosses_does_not_grow_with_the_ranks_of_a_cell(void **state)
{
    (void)state;
    for (size_t h = 0; h < sizeof houses / sizeof *houses; h++) {
        const struct house *house = &houses[h];
        double s = house->in_cell, c = house->cells, p = s * c;
        const struct tutti_algorithm *flat = tutti_algorithm_find(TUTTI_ALLREDUCE, "two_shot");
        const struct tutti_algorithm *cells = tutti_algorithm_find(TUTTI_ALLREDUCE, "cells");
        struct spread spread;
        struct work of_flat, of_cells;

        spread_init(&spread, house);
        of_flat = work_of(flat, &spread, 0);
        of_cells = work_of(cells, &spread, 0);
        expect(flat, house, "what crosses", 2 * s * (p - s) / p,
               of_flat.crossing / of_flat.per_block);
        expect(cells, house, "what crosses", 2 * (c - 1) / c,
               of_cells.crossing / of_cells.per_block);
    }
}

static void blocks_of_others_come_into_a_cell_once(void **state)
{
    (void)state;
    for (size_t h = 0; h < sizeof houses / sizeof *houses; h++) {
        const struct house *house = &houses[h];
        double s = house->in_cell, p = s * house->cells;
        const struct tutti_algorithm *gather = tutti_algorithm_find(TUTTI_ALLGATHER, "cells");
        const struct tutti_algorithm *give = tutti_algorithm_find(TUTTI_BROADCAST, "cells");
        struct spread spread;
        struct work work;

        spread_init(&spread, house);
        work = work_of(gather, &spread, 0);
        expect(gather, house, "what crosses", p - s, work.crossing / work.per_block);
        work = work_of(give, &spread, 1);
        expect(give, house, "what crosses", house->cells - 1, work.crossing / work.per_block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_what_the_schedules_do),
        cmocka_unit_test(what_crosses_does_not_grow_with_the_ranks_of_a_cell),
        cmocka_unit_test(blocks_of_others_come_into_a_cell_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
