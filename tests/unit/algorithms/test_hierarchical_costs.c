/* SPDX-License-Identifier: Apache-2.0
 * The cost functions of algorithms for nodes agree with their schedules, level by level. With them
 * the algorithms reach the targets for large machines. */
#include "algorithms/algorithm.h"

#include "base/result.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK_BYTES 1e6

/* ---- machines -------------------------------------------------------------------------------- */

/* Nodes have these sizes, in rotation, and groups have so many nodes; 0 means no groups. */
struct machine {
    const char *name;
    uint32_t sizes[3], group;
};

struct spread {
    struct tutti_placement places;
    uint32_t *node, *group;
};

static void spread_init(struct spread *spread, const struct machine *machine, uint32_t nranks)
{
    uint32_t at = 0, in_node = 0, nodes = 0;

    spread->node = calloc(nranks, sizeof(uint32_t));
    spread->group = calloc(nranks, sizeof(uint32_t));
    assert_non_null(spread->node);
    assert_non_null(spread->group);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (in_node == machine->sizes[at]) {
            at = at + 1 < 3 && machine->sizes[at + 1] != 0 ? at + 1 : 0;
            in_node = 0;
            nodes++;
        }
        in_node++;
        spread->node[rank] = nodes;
        spread->group[rank] = machine->group > 0 ? nodes / machine->group : 0;
    }
    spread->places = (struct tutti_placement){.nranks = nranks, .node = spread->node,
                                              .nnodes = nodes + 1, .ngroups = 1};
    if (machine->group > 0) {
        spread->places.group = spread->group;
        spread->places.ngroups = spread->group[nranks - 1] + 1;
    }
}

static void spread_fini(struct spread *spread)
{
    free(spread->node);
    free(spread->group);
}

static enum tutti_level level_between(const struct tutti_shape *shape, uint32_t a, uint32_t b)
{
    const struct tutti_placement *places = shape->places;

    if (places->node[a] == places->node[b])
        return TUTTI_LEVEL_NODE;
    return places->group != NULL && places->group[a] == places->group[b] ? TUTTI_LEVEL_GROUP
                                                                         : TUTTI_LEVEL_TOP;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Of the busiest rank at each level. Messages, in or out: neighbors from or to the same peer are
 * one. */
struct traffic {
    double sent[TUTTI_LEVEL_COUNT], received[TUTTI_LEVEL_COUNT];
    double messages_out[TUTTI_LEVEL_COUNT], messages_in[TUTTI_LEVEL_COUNT];
    double reduced, copied;
};

static void add_rank(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                     struct traffic *most)
{
    struct traffic own = {.reduced = 0};
    int32_t last_to[TUTTI_LEVEL_COUNT], last_from[TUTTI_LEVEL_COUNT];
    struct tutti_schedule *schedule;
    struct tutti_build build;
    double chunk;

    assert_int_equal(tutti_build_init(&build, algorithm->collective, shape), TUTTI_OK);
    assert_int_equal(tutti_algorithm_emit(algorithm, shape, &build), TUTTI_OK);
    assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_OK);
    chunk = BLOCK_BYTES / schedule->chunks_per_block;
    memset(last_to, 0xff, sizeof last_to);
    memset(last_from, 0xff, sizeof last_from);
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];

        if (step->to >= 0) {
            enum tutti_level level = level_between(shape, shape->rank, (uint32_t)step->to);

            own.sent[level] += step->src.count * chunk;
            own.messages_out[level] += step->to != last_to[level];
            last_to[level] = step->to;
            last_from[level] = TUTTI_NO_RANK;
        }
        if (step->from >= 0) {
            enum tutti_level level = level_between(shape, shape->rank, (uint32_t)step->from);

            own.received[level] += step->dst.count * chunk;
            own.messages_in[level] += step->from != last_from[level];
            last_from[level] = step->from;
            last_to[level] = TUTTI_NO_RANK;
        }
        if (step->kind == TUTTI_STEP_RECV_REDUCE || step->kind == TUTTI_STEP_REDUCE)
            own.reduced += step->dst.count * chunk;
        if (step->kind == TUTTI_STEP_COPY)
            own.copied += step->dst.count * chunk;
    }
    tutti_schedule_destroy(schedule);
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        most->sent[level] = fmax(most->sent[level], own.sent[level]);
        most->received[level] = fmax(most->received[level], own.received[level]);
        most->messages_out[level] = fmax(most->messages_out[level], own.messages_out[level]);
        most->messages_in[level] = fmax(most->messages_in[level], own.messages_in[level]);
    }
    most->reduced = fmax(most->reduced, own.reduced);
    most->copied = fmax(most->copied, own.copied);
}

static void expect(const struct tutti_algorithm *algorithm, const struct machine *machine,
                   uint32_t nranks, const char *what, int level, double promised, double found,
                   double slack, double excess)
{
    if (found > promised * (1 + excess + 1e-9) || found * (1 + slack + 1e-9) < promised)
        fail_msg("%s %s, %u ranks, %s: level %d: %s: %g, promised %g",
                 tutti_collective_name(algorithm->collective), algorithm->name, nranks,
                 machine->name, level, what, found, promised);
}

/* `slack`: how much more may be promised than is done; `excess`: how much more may be done. */
static void hold_to_its_promise(const struct tutti_algorithm *algorithm,
                                const struct machine *machine, uint32_t nranks,
                                const struct tutti_options *options, double slack, double excess)
{
    struct tutti_shape shape = {.nranks = nranks, .root = nranks / 3};
    struct traffic most = {.reduced = 0};
    struct tutti_cost cost;
    struct spread spread;

    spread_init(&spread, machine, nranks);
    shape.places = &spread.places;
    assert_int_equal(tutti_algorithm_options(algorithm, options, &shape.options), TUTTI_OK);
    for (shape.rank = 0; shape.rank < nranks; shape.rank++)
        add_rank(algorithm, &shape, &most);
    shape.rank = 0;
    tutti_algorithm_cost(algorithm, &shape, BLOCK_BYTES, &cost);
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++) {
        expect(algorithm, machine, nranks, "bytes", level, cost.level[level].bytes,
               fmax(most.sent[level], most.received[level]), slack, excess);
        expect(algorithm, machine, nranks, "messages", level,
               cost.level[level].rounds + cost.level[level].posted,
               fmax(most.messages_out[level], most.messages_in[level]), slack, excess);
    }
    expect(algorithm, machine, nranks, "reduced", -1, cost.reduced, most.reduced, slack, excess);
    expect(algorithm, machine, nranks, "copied", -1, cost.copied, most.copied, slack, excess);
    spread_fini(&spread);
}

static const enum tutti_collective collectives[] = {
    TUTTI_ALLREDUCE, TUTTI_ALLGATHER, TUTTI_REDUCE_SCATTER,
    TUTTI_ALLTOALL,  TUTTI_BROADCAST, TUTTI_REDUCE,
};

static void levels_of_equal_nodes_carry_what_was_promised(void **state)
{
    static const struct machine machines[] = {
        {"nodes of 4", {4}, 0},
        {"nodes of 8", {8}, 0},
        {"nodes of 2, groups of 4", {2}, 4},
    };
    static const struct tutti_options options[] = {
        {{0}}, {{[TUTTI_SEGMENTS] = 3}}, {{[TUTTI_DOUBLINGS] = 1}}};

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
            for (size_t o = 0; o < (collectives[c] == TUTTI_ALLREDUCE ? 3 : 2); o++)
                hold_to_its_promise(tutti_algorithm_find(collectives[c], "hierarchical"),
                                    &machines[m], 64, &options[o], 0, 0);
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
        hold_to_its_promise(tutti_algorithm_find(TUTTI_ALLTOALL, "hierarchical"), &machines[m], 64,
                            &options[0], 0, 0);
}

/* On a rail not every rank has something to send or add in every round, and what the root deals out
 * and what it gives of its own are neighbors where there is one peer. */
static void trees_of_equal_nodes_carry_at_most_what_was_promised(void **state)
{
    static const struct machine machines[] = {{"nodes of 4", {4}, 0},
                                              {"nodes of 2, groups of 4", {2}, 4}};
    static const struct tutti_options options[] = {{{[TUTTI_SEGMENTS] = 1}}, {{0}}};

    (void)state;
    for (size_t c = 4; c < 6; c++)
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
            for (size_t o = 0; o < sizeof options / sizeof *options; o++)
                hold_to_its_promise(tutti_algorithm_find(collectives[c], "hierarchical"),
                                    &machines[m], 64, &options[o], 1, 0);
}

static void unequal_nodes_carry_about_what_was_promised(void **state)
{
    static const struct machine machines[] = {
        {"nodes of 4, 2", {4, 2}, 0},
        {"nodes of 1, 4, 3", {1, 4, 3}, 0},
        {"nodes of 3, 1, groups of 3", {3, 1}, 3},
    };

    (void)state;
    for (size_t c = 0; c < 6; c++)
        for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
            hold_to_its_promise(tutti_algorithm_find(collectives[c], "hierarchical"), &machines[m],
                                48, &(struct tutti_options){{0}}, 1.5, 0.5);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Nodes of 8 at 350 GB/s with 1 us of latency, and per rank one port of 50 GB/s with 5 us of
 * overhead between the nodes. */
static double seconds(const struct tutti_cost *cost)
{
    static const struct {
        double latency, overhead, bandwidth;
    } rates[TUTTI_LEVEL_COUNT] = {{1e-6, 0, 350e9}, {0, 5e-6, 50e9}, {0, 5e-6, 50e9}};
    double level[TUTTI_LEVEL_COUNT];

    for (int i = 0; i < TUTTI_LEVEL_COUNT; i++)
        level[i] = cost->level[i].rounds * (rates[i].latency + rates[i].overhead) +
                   cost->level[i].posted * rates[i].overhead +
                   cost->level[i].bytes / rates[i].bandwidth;
    return tutti_cost_sum(cost, level);
}

static double best_allreduce(uint32_t nranks, double bytes, uint32_t most_segments)
{
    const struct tutti_algorithm *algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "hierarchical");
    struct tutti_shape shape = {.nranks = nranks};
    struct spread spread;
    double best = HUGE_VAL;

    spread_init(&spread, &(struct machine){"nodes of 8", {8}, 0}, nranks);
    shape.places = &spread.places;
    for (uint32_t segments = 1; segments <= most_segments; segments *= 2)
        for (uint32_t doublings = 1; doublings <= 11; doublings++) {
            struct tutti_cost cost;

            shape.options.value[TUTTI_SEGMENTS] = segments;
            shape.options.value[TUTTI_DOUBLINGS] = doublings;
            tutti_algorithm_cost(algorithm, &shape, bytes, &cost);
            best = fmin(best, seconds(&cost));
        }
    spread_fini(&spread);
    return best;
}

static void large_machines_are_used_well(void **state)
{
    static const struct {
        uint32_t nranks;
        double bytes, most_seconds;
        uint32_t most_segments;
    } targets[] = {
        {1024, 256 << 10, 45e-6, 1},
        {1024, 4 << 20, 115e-6, 1},
        {16384, 64 << 20, 0.8e-3, 1},
        {16384, 64 << 20, 0.70e-3, 64}, /* levels side by side */
    };

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        double best =
            best_allreduce(targets[i].nranks, targets[i].bytes, targets[i].most_segments);

        if (best > targets[i].most_seconds)
            fail_msg("%u ranks, %g bytes: %g us, not %g", targets[i].nranks, targets[i].bytes,
                     best * 1e6, targets[i].most_seconds * 1e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_of_equal_nodes_carry_what_was_promised),
        cmocka_unit_test(trees_of_equal_nodes_carry_at_most_what_was_promised),
        cmocka_unit_test(unequal_nodes_carry_about_what_was_promised),
        cmocka_unit_test(large_machines_are_used_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
