/* SPDX-License-Identifier: Apache-2.0
 * The cost functions agree with the schedules: rounds and bytes on ranks with one port, and bytes
 * loaded and stored by one-sided algorithms. */
#include "unit/algorithms/ports.h"

#include "base/result.h"
#include "schedule/access.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BLOCK_BYTES 1e6

/* Both sums of the same terms. */
static bool is_equal(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static struct tutti_cost cost_of(const struct tutti_algorithm *algorithm, struct tutti_shape shape)
{
    struct tutti_cost cost;

    assert_non_null(algorithm->cost);
    assert_int_equal(tutti_algorithm_options(algorithm, &shape.options, &shape.options), TUTTI_OK);
    tutti_algorithm_cost(algorithm, &shape, BLOCK_BYTES, &cost);
    return cost;
}

static uint32_t chunks_per_block(const struct tutti_algorithm *algorithm, struct tutti_shape shape)
{
    struct tutti_schedule *schedule;
    uint32_t chunks;

    assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &schedule), TUTTI_OK);
    chunks = schedule->chunks_per_block;
    tutti_schedule_destroy(schedule);
    return chunks;
}

/* ---- two-sided ------------------------------------------------------------------------------- */

/* The limits for the cost function's rounds, relative to the counted ones, and for its bytes,
 * relative to the busiest rank's. Trees are charged two rounds for every hop, even if one is
 * enough. An all-reduce assumes that all data that comes down delays the data that goes up. */
struct range {
    double least, most;
};

static const struct range exactly = {1, 1};

static const struct {
    enum tutti_collective collective;
    const char *name;
    struct range rounds, bytes;
} two_sided[] = {
    {TUTTI_BROADCAST, "linear", {1, 1}, {1, 1}},
    {TUTTI_REDUCE, "linear", {1, 1}, {1, 1}},
    {TUTTI_GATHER, "linear", {1, 1}, {1, 1}},
    {TUTTI_SCATTER, "linear", {1, 1}, {1, 1}},
    {TUTTI_BROADCAST, "knomial", {1, 1}, {1, 1}},
    {TUTTI_REDUCE, "knomial", {1, 1}, {1, 1}},
    {TUTTI_GATHER, "knomial", {1, 1}, {1, 1}},
    {TUTTI_SCATTER, "knomial", {1, 1}, {1, 1}},
    {TUTTI_BROADCAST, "circulant_pipeline", {1, 1}, {1, 1}},
    {TUTTI_REDUCE, "circulant_pipeline", {1, 1}, {1, 1}},
    {TUTTI_ALLREDUCE, "circulant_pipeline", {1, 1.8}, {1, 2}},
    {TUTTI_BROADCAST, "scatter_allgather", {1, 1}, {1, 1}},
    {TUTTI_BROADCAST, "chain", {1, 1}, {1, 70.0 / 8}},
    {TUTTI_REDUCE, "chain", {1, 1}, {1, 70.0 / 8}},
    {TUTTI_SCAN, "chain", {1, 1}, {1, 70.0 / 8}},
    {TUTTI_EXCLUSIVE_SCAN, "chain", {1, 1}, {1, 70.0 / 8}},
    {TUTTI_BROADCAST, "tree", {1, 1.2}, {1, 2}},
    {TUTTI_REDUCE, "tree", {1, 1.2}, {1, 2}},
    {TUTTI_ALLREDUCE, "tree", {0.95, 1.8}, {1, 2}},
    {TUTTI_BROADCAST, "double_tree", {1, 1.1}, {1, 2}},
    {TUTTI_REDUCE, "double_tree", {1, 1.1}, {1, 2}},
    {TUTTI_ALLREDUCE, "double_tree", {1, 1.8}, {1, 2}},
};

static bool is_within(const struct range *range, double cost, double counted)
{
    return cost >= range->least * counted * (1 - 1e-9) &&
           cost <= range->most * counted * (1 + 1e-9);
}

static void expect_two_sided(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, const struct range *rounds,
                             const struct range *bytes)
{
    struct tutti_cost cost = cost_of(algorithm, *shape);
    struct count count = count_messages(algorithm, shape);
    uint32_t busiest = count.sent_max > count.received_max ? count.sent_max : count.received_max;
    double counted_bytes = busiest * BLOCK_BYTES / chunks_per_block(algorithm, *shape);
    double cost_rounds = cost.level[TUTTI_LEVEL_TOP].rounds;
    double cost_bytes = cost.level[TUTTI_LEVEL_TOP].bytes;

    if (!is_within(rounds, cost_rounds, count.rounds))
        fail_msg("%s %s, %u ranks: %g rounds promised, %u counted",
                 tutti_collective_name(algorithm->collective), algorithm->name, shape->nranks,
                 cost_rounds, count.rounds);
    if (!is_within(bytes, cost_bytes, counted_bytes))
        fail_msg("%s %s, %u ranks: %g bytes promised, %g counted",
                 tutti_collective_name(algorithm->collective), algorithm->name, shape->nranks,
                 cost_bytes, counted_bytes);
    assert_true(cost.memory == 0 && cost.level[TUTTI_LEVEL_NODE].rounds == 0 &&
                cost.level[TUTTI_LEVEL_GROUP].rounds == 0);
}

static void two_sided_rounds_and_bytes_are_those_of_the_schedules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(two_sided) / sizeof(two_sided[0]); i++)
        for (uint32_t nranks = 2; nranks <= 64; nranks++) {
            const struct tutti_algorithm *algorithm =
                tutti_algorithm_find(two_sided[i].collective, two_sided[i].name);
            struct tutti_shape shape = {.nranks = nranks, .root = nranks / 2};

            assert_non_null(algorithm);
            expect_two_sided(algorithm, &shape, &two_sided[i].rounds, &two_sided[i].bytes);
        }
}

static void options_count(void **state)
{
    static const uint32_t radixes[] = {2, 3, 5, 8, 64}, segments[] = {1, 2, 5, 17};

    (void)state;
    for (uint32_t nranks = 2; nranks <= 40; nranks++) {
        for (size_t i = 0; i < sizeof(radixes) / sizeof(radixes[0]); i++) {
            struct tutti_shape shape = {.nranks = nranks, .root = nranks / 3};

            shape.options.value[TUTTI_RADIX] = radixes[i];
            for (int c = 0; c < TUTTI_COLLECTIVE_COUNT; c++)
                if (tutti_algorithm_find((enum tutti_collective)c, "knomial") != NULL)
                    expect_two_sided(tutti_algorithm_find((enum tutti_collective)c, "knomial"),
                                     &shape, &exactly, &exactly);
        }
        for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
            struct tutti_shape shape = {.nranks = nranks, .root = nranks / 3};

            shape.options.value[TUTTI_SEGMENTS] = segments[i];
            expect_two_sided(tutti_algorithm_find(TUTTI_BROADCAST, "circulant_pipeline"), &shape,
                             &exactly, &exactly);
            expect_two_sided(tutti_algorithm_find(TUTTI_REDUCE, "circulant_pipeline"), &shape,
                             &exactly, &exactly);
        }
    }
}

/* Rows and stars are trees of which all is known. */
static void given_trees_cost_what_they_are_worth(void **state)
{
    const struct tutti_algorithm *tree = tutti_algorithm_find(TUTTI_BROADCAST, "tree");
    const struct tutti_algorithm *chain = tutti_algorithm_find(TUTTI_BROADCAST, "chain");

    (void)state;
    for (uint32_t nranks = 2; nranks <= 20; nranks++) {
        int32_t parents[2][20];
        struct tutti_placement places = {.nranks = nranks, .trees = parents[0], .ntrees = 1};
        struct tutti_shape shape = {.nranks = nranks, .places = &places};
        uint32_t segments = tree->options[TUTTI_SEGMENTS].usual;
        struct tutti_cost cost, of_chain = cost_of(chain, shape);

        for (uint32_t rank = 0; rank < nranks; rank++) {
            parents[0][rank] = (int32_t)rank - 1; /* a row; of rank 0, TUTTI_NO_RANK */
            parents[1][rank] = rank == 0 ? TUTTI_NO_RANK : 0;
        }
        cost = cost_of(tree, shape);
        assert_true(is_equal(cost.level[TUTTI_LEVEL_TOP].rounds,
                             of_chain.level[TUTTI_LEVEL_TOP].rounds));
        assert_int_equal(count_messages(tree, &shape).rounds, segments + nranks - 2);

        /* From its other end a row is a row. */
        shape.root = nranks - 1;
        cost = cost_of(tree, shape);
        assert_true(is_equal(cost.level[TUTTI_LEVEL_TOP].rounds,
                             of_chain.level[TUTTI_LEVEL_TOP].rounds));
        assert_int_equal(count_messages(tree, &shape).rounds, segments + nranks - 2);

        places.trees = parents[1];
        shape.root = 0;
        cost = cost_of(tree, shape);
        assert_true(is_equal(cost.level[TUTTI_LEVEL_TOP].rounds, segments * (nranks - 1.0)));
        assert_int_equal(count_messages(tree, &shape).rounds, segments * (nranks - 1));
    }
}

/* ---- one-sided ------------------------------------------------------------------------------- */

/* Chunks that a step loads and stores, here and elsewhere. */
static uint32_t count_memory(const struct tutti_schedule *schedule, const struct tutti_step *step)
{
    struct tutti_touch touches[TUTTI_STEP_ACCESSES];
    uint32_t ntouches = tutti_step_accesses(step, touches), chunks = 0;

    for (uint32_t i = 0; i < ntouches; i++)
        chunks += touches[i].span.count *
                  (touches[i].rank == TUTTI_NO_RANK
                       ? 1
                       : tutti_step_count_peers(schedule, step, touches[i].rank));
    return chunks;
}

static const struct {
    enum tutti_collective collective;
    const char *name;
    uint32_t phases; /* signals given and waited for, one after the other */
} one_sided[] = {
    {TUTTI_REDUCE, "direct_one_shot", 1}, {TUTTI_REDUCE, "direct", 2},
    {TUTTI_REDUCE, "mapped", 2},          {TUTTI_BROADCAST, "direct", 1},
    {TUTTI_BROADCAST, "mapped", 2},       {TUTTI_GATHER, "direct", 1},
    {TUTTI_GATHER, "mapped", 2},          {TUTTI_SCATTER, "direct", 1},
    {TUTTI_SCATTER, "mapped", 2},         {TUTTI_BARRIER, "direct", 1},
    {TUTTI_BROADCAST, "shared", 2},       {TUTTI_BROADCAST, "stored", 2},
};

static void one_sided_ones_load_and_store_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(one_sided) / sizeof(one_sided[0]); i++)
        for (uint32_t nranks = 2; nranks <= 33; nranks++) {
            const struct tutti_algorithm *algorithm =
                tutti_algorithm_find(one_sided[i].collective, one_sided[i].name);
            uint32_t nodes[33] = {0};
            struct tutti_placement places = {.nranks = nranks, .node = nodes, .nnodes = 1};
            struct tutti_shape shape = {.nranks = nranks, .root = nranks / 2, .places = &places};
            struct tutti_cost cost = cost_of(algorithm, shape);
            uint32_t chunks = 0;
            struct world world;

            world_init(&world, algorithm, &shape);
            for (uint32_t rank = 0; rank < nranks; rank++)
                for (uint32_t at = 0; at < world.schedules[rank]->nsteps; at++)
                    chunks += count_memory(world.schedules[rank],
                                           &world.schedules[rank]->steps[at]);
            if (!is_equal(cost.memory, chunks * BLOCK_BYTES / world.schedules[0]->chunks_per_block))
                fail_msg("%s %s, %u ranks: %g bytes promised, %u chunks counted",
                         tutti_collective_name(algorithm->collective), algorithm->name, nranks,
                         cost.memory, chunks);
            assert_true(cost.level[TUTTI_LEVEL_NODE].rounds == one_sided[i].phases);
            assert_true(cost.level[TUTTI_LEVEL_TOP].rounds == 0);
            world_fini(&world);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_sided_rounds_and_bytes_are_those_of_the_schedules),
        cmocka_unit_test(options_count),
        cmocka_unit_test(given_trees_cost_what_they_are_worth),
        cmocka_unit_test(one_sided_ones_load_and_store_what_they_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
