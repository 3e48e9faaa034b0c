/* SPDX-License-Identifier: Apache-2.0
 * Algorithms have the costs of their papers: rounds, and chunks sent and received per rank. */
#include "unit/algorithms/ports.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- formulas --------------------------------------------------------------- */

static uint32_t floor_log2(uint32_t p)
{
    return 31 - (uint32_t)__builtin_clz(p);
}

static uint32_t ceil_log2(uint32_t p)
{
    return p == 1 ? 0 : floor_log2(p - 1) + 1;
}

/* The doubling of an exclusive scan: skips 1, 2, 3, 6, 12, ... */
static uint32_t exclusive_rounds(uint32_t p)
{
    uint32_t rounds = 1, combined = 1;

    for (; combined < p - 1; combined = combined == 1 ? 3 : 2 * combined)
        rounds++;
    return rounds;
}

/* By rank 0 in two rounds, or by rank 1 in all in which there is a rank to send to. */
static uint32_t exclusive_most(uint32_t p)
{
    uint32_t sent = 0;

    for (uint32_t skip = 1; skip < p - 1; skip = skip == 2 ? 3 : 2 * skip)
        sent++;
    return p == 3 || sent == 0 ? p - 1 : sent;
}

static uint32_t one(uint32_t p) { return p > 1; }
static uint32_t none(uint32_t p) { return 0 * p; }
static uint32_t all(uint32_t p) { return p; }
static uint32_t others(uint32_t p) { return p - 1; }
static uint32_t twice_others(uint32_t p) { return 2 * (p - 1); }
static uint32_t twice_others_but_one(uint32_t p) { return 2 * p - 3; }
static uint32_t twice_log(uint32_t p) { return 2 * ceil_log2(p); }

/* Below the root of a k-nomial tree: a whole topmost one, or, if that is cut short, it or the one
 * next to it. */
static uint32_t largest_subtree_of(uint32_t p, uint32_t radix)
{
    uint32_t top = 1;

    while (top * radix < p)
        top *= radix;
    if (p >= 2 * top)
        return top;
    return p - top > top / radix ? p - top : top / radix;
}

static uint32_t largest_subtree(uint32_t p) { return largest_subtree_of(p, 2); }
static uint32_t largest_subtree_of_4(uint32_t p) { return largest_subtree_of(p, 4); }

/* Three children of the root for each digit to base 4 but the topmost, which p cuts short. */
static uint32_t knomial_rounds_of_4(uint32_t p)
{
    uint32_t top = 1, rounds = 0;

    for (; top * 4 < p; top *= 4)
        rounds += 3;
    return rounds + (p + top - 1) / top - 1;
}

/* All pipelines have their usual 8 segments, and double_tree as many on each of two trees. */
#define SEGMENTS 8

static uint32_t segments(uint32_t p) { return SEGMENTS * one(p); }
static uint32_t twice_segments(uint32_t p) { return 2 * SEGMENTS * one(p); }
static uint32_t chain_rounds(uint32_t p) { return SEGMENTS + p - 2; }
static uint32_t optimal_rounds(uint32_t p) { return SEGMENTS - 1 + ceil_log2(p); }
static uint32_t tree_children(uint32_t p) { return p == 2 ? SEGMENTS : 2 * SEGMENTS; }

/* To two children and, from five ranks on, to a parent as well. */
static uint32_t tree_messages(uint32_t p)
{
    return p == 2 ? SEGMENTS : p < 5 ? 2 * SEGMENTS : 3 * SEGMENTS;
}

/* To a parent in each tree and, from four ranks on, to two children in one of them. */
static uint32_t double_tree_messages(uint32_t p)
{
    return p == 2 ? 2 * SEGMENTS : p == 3 ? 3 * SEGMENTS : 4 * SEGMENTS;
}

static bool is_power_of_two(uint32_t p)
{
    return (p & (p - 1)) == 0;
}

/* With two ranks both halves go to the same one. */
static uint32_t scattered_rounds(uint32_t p)
{
    return p == 2 ? 1 : 2 * ceil_log2(p);
}

/* Folding in the ranks beyond a power of two takes a round before and one after. */
static uint32_t folded_rounds(uint32_t p)
{
    return floor_log2(p) + (is_power_of_two(p) ? 0 : 2);
}

static uint32_t folded_most(uint32_t p)
{
    return floor_log2(p) + (is_power_of_two(p) ? 0 : 1);
}

static uint32_t folded_least(uint32_t p)
{
    return is_power_of_two(p) ? floor_log2(p) : 1;
}

/* Every block travels one hop for each set bit of its distance. */
static uint32_t bruck_blocks(uint32_t p)
{
    uint32_t blocks = 0;

    for (uint32_t slot = 1; slot < p; slot++)
        blocks += (uint32_t)__builtin_popcount(slot);
    return blocks;
}

typedef uint32_t formula(uint32_t p);

static uint32_t floored(uint32_t p)
{
    return 1u << floor_log2(p);
}

/* A pair exchanges halves and joins them before, and shares the result after. */
static uint32_t four_times_others(uint32_t p) { return 4 * (p - 1); }

static uint32_t rabenseifner_rounds(uint32_t p)
{
    return 2 * floor_log2(p) + (is_power_of_two(p) ? 0 : 3);
}

static uint32_t rabenseifner_sent_most(uint32_t p)
{
    uint32_t m = floored(p);

    return 2 * (m - 1) + (is_power_of_two(p) ? 0 : m / 2 + m);
}

/* Half the vector to its partner, half of the pair's sum to it. */
static uint32_t rabenseifner_sent_least(uint32_t p)
{
    return is_power_of_two(p) ? 2 * (p - 1) : floored(p);
}

static uint32_t rabenseifner_received_most(uint32_t p)
{
    uint32_t m = floored(p);

    return 2 * (m - 1) + (is_power_of_two(p) ? 0 : m);
}

/* Half of the rounds double, in groups of p / 2^j; the rest is folded. */
static uint32_t hybrid_doublings(uint32_t p)
{
    uint32_t half = (ceil_log2(p) + 1) / 2;

    return half < floor_log2(p) ? half : floor_log2(p);
}

static uint32_t hybrid_group(uint32_t p)
{
    return p >> hybrid_doublings(p);
}

static bool hybrid_folds(uint32_t p)
{
    return hybrid_group(p) << hybrid_doublings(p) != p;
}

static uint32_t hybrid_rounds(uint32_t p)
{
    return 2 * ceil_log2(hybrid_group(p)) + hybrid_doublings(p) + (hybrid_folds(p) ? 2 : 0);
}

static uint32_t hybrid_most(uint32_t p)
{
    uint32_t pieces = hybrid_group(p);

    return 2 * (pieces - 1) + hybrid_doublings(p) + (hybrid_folds(p) ? pieces : 0);
}

/* An odd ring gives the block of its last rank to the one before, and later all the others back. */
static uint32_t swing_rounds(uint32_t p)
{
    return p % 2 == 0 ? ceil_log2(p) : ceil_log2(p - 1) + 2;
}

static uint32_t twice_swing_rounds(uint32_t p)
{
    return 2 * swing_rounds(p);
}

/* Messages of up to 8 blocks: 1, 2, 4, then one for each node but the first of a subtree. */
static uint32_t pat_rounds(uint32_t p)
{
    uint32_t rounds = ceil_log2(p);

    return rounds <= 3 ? rounds : 3 + (1u << (rounds - 3)) - 1;
}

static uint32_t twice_pat_rounds(uint32_t p)
{
    return 2 * pat_rounds(p);
}

static uint32_t walecki_rings(uint32_t p)
{
    return p < 5 ? 2 : 4;
}

static uint32_t walecki(uint32_t p)
{
    return walecki_rings(p) * (p - 1);
}

static uint32_t twice_walecki(uint32_t p)
{
    return 2 * walecki(p);
}

/* NULL: no simple formula. */
static const struct expectation {
    enum tutti_collective collective;
    const char *name;
    formula *rounds, *sent_min, *sent_max, *received_min, *received_max;
} expectations[] = {
    {TUTTI_ALLREDUCE, "ring", twice_others, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_REDUCE_SCATTER, "ring", others, others, others, others, others},
    {TUTTI_ALLGATHER, "ring", others, others, others, others, others},
    {TUTTI_ALLREDUCE, "circulant", twice_log, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_REDUCE_SCATTER, "circulant", ceil_log2, others, others, others, others},
    {TUTTI_ALLGATHER, "circulant", ceil_log2, others, others, others, others},
    {TUTTI_ALLREDUCE, "recursive_doubling", folded_rounds, folded_least, folded_most, folded_least,
     folded_most},
    {TUTTI_ALLREDUCE, "rabenseifner", rabenseifner_rounds, rabenseifner_sent_least,
     rabenseifner_sent_most, NULL, rabenseifner_received_most},
    {TUTTI_REDUCE_SCATTER, "recursive_halving", folded_rounds, others, others, NULL, NULL},
    {TUTTI_ALLGATHER, "recursive_doubling", folded_rounds, NULL, NULL, others, others},
    {TUTTI_ALLREDUCE, "hybrid", hybrid_rounds, NULL, hybrid_most, NULL, hybrid_most},
    /* Without a torus bucket is a ring. */
    {TUTTI_ALLREDUCE, "bucket", twice_others, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_REDUCE_SCATTER, "bucket", others, others, others, others, others},
    {TUTTI_ALLGATHER, "bucket", others, others, others, others, others},
    {TUTTI_ALLREDUCE, "swing", twice_swing_rounds, NULL, NULL, NULL, NULL},
    {TUTTI_REDUCE_SCATTER, "swing", swing_rounds, others, others, NULL, NULL},
    {TUTTI_ALLGATHER, "swing", swing_rounds, NULL, NULL, others, others},
    {TUTTI_ALLREDUCE, "pat", twice_pat_rounds, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_REDUCE_SCATTER, "pat", pat_rounds, others, others, others, others},
    {TUTTI_ALLGATHER, "pat", pat_rounds, others, others, others, others},
    {TUTTI_ALLREDUCE, "multi_ring", four_times_others, four_times_others, four_times_others,
     four_times_others, four_times_others},
    {TUTTI_REDUCE_SCATTER, "multi_ring", twice_others, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_ALLGATHER, "multi_ring", twice_others, twice_others, twice_others, twice_others,
     twice_others},
    {TUTTI_ALLREDUCE, "walecki", twice_walecki, twice_walecki, twice_walecki, twice_walecki,
     twice_walecki},
    {TUTTI_REDUCE_SCATTER, "walecki", walecki, walecki, walecki, walecki, walecki},
    {TUTTI_ALLGATHER, "walecki", walecki, walecki, walecki, walecki, walecki},
    {TUTTI_BROADCAST, "knomial", ceil_log2, none, ceil_log2, none, one},
    {TUTTI_REDUCE, "knomial", ceil_log2, none, one, none, ceil_log2},
    {TUTTI_GATHER, "knomial", ceil_log2, none, largest_subtree, none, others},
    {TUTTI_SCATTER, "knomial", ceil_log2, none, others, none, largest_subtree},
    {TUTTI_BROADCAST, "scatter_allgather", scattered_rounds, NULL, NULL, none, all},
    {TUTTI_BROADCAST, "chain", chain_rounds, none, segments, none, segments},
    {TUTTI_REDUCE, "chain", chain_rounds, none, segments, none, segments},
    {TUTTI_BROADCAST, "tree", NULL, none, tree_children, none, segments},
    {TUTTI_REDUCE, "tree", NULL, none, segments, none, tree_children},
    {TUTTI_ALLREDUCE, "tree", NULL, segments, tree_messages, segments, tree_messages},
    {TUTTI_BROADCAST, "double_tree", NULL, NULL, twice_segments, none, twice_segments},
    {TUTTI_REDUCE, "double_tree", NULL, none, twice_segments, NULL, twice_segments},
    {TUTTI_ALLREDUCE, "double_tree", NULL, twice_segments, double_tree_messages, twice_segments,
     double_tree_messages},
    {TUTTI_BROADCAST, "circulant_pipeline", optimal_rounds, NULL, optimal_rounds, none, segments},
    {TUTTI_REDUCE, "circulant_pipeline", optimal_rounds, none, segments, NULL, optimal_rounds},
    {TUTTI_ALLREDUCE, "circulant_pipeline", NULL, NULL, NULL, NULL, NULL},
    {TUTTI_BROADCAST, "linear", others, none, others, none, one},
    {TUTTI_REDUCE, "linear", others, none, one, none, others},
    {TUTTI_GATHER, "linear", others, none, one, none, others},
    {TUTTI_SCATTER, "linear", others, none, others, none, one},
    {TUTTI_ALLTOALL, "spread_out", others, others, others, others, others},
    {TUTTI_ALLTOALL, "bruck", ceil_log2, bruck_blocks, bruck_blocks, bruck_blocks, bruck_blocks},
    /* Where nothing is known of nodes: what they are made of. */
    {TUTTI_ALLREDUCE, "hierarchical", hybrid_rounds, NULL, hybrid_most, NULL, hybrid_most},
    {TUTTI_ALLGATHER, "hierarchical", ceil_log2, others, others, others, others},
    {TUTTI_REDUCE_SCATTER, "hierarchical", ceil_log2, others, others, others, others},
    {TUTTI_BROADCAST, "hierarchical", optimal_rounds, NULL, optimal_rounds, none, segments},
    {TUTTI_REDUCE, "hierarchical", optimal_rounds, none, segments, NULL, optimal_rounds},
    {TUTTI_ALLTOALL, "hierarchical", others, others, others, others, others},
    {TUTTI_BARRIER, "dissemination", ceil_log2, ceil_log2, ceil_log2, ceil_log2, ceil_log2},
    {TUTTI_SCAN, "doubling", ceil_log2, none, ceil_log2, none, ceil_log2},
    {TUTTI_SCAN, "tree", NULL, NULL, NULL, none, NULL},
    {TUTTI_SCAN, "linear", others, none, others, none, others},
    {TUTTI_EXCLUSIVE_SCAN, "linear", others, none, others, none, others},
    {TUTTI_SCAN, "chain", chain_rounds, none, segments, none, segments},
    {TUTTI_EXCLUSIVE_SCAN, "doubling", exclusive_rounds, none, exclusive_most, none,
     exclusive_rounds},
    {TUTTI_EXCLUSIVE_SCAN, "tree", NULL, NULL, NULL, none, NULL},
    {TUTTI_EXCLUSIVE_SCAN, "chain", chain_rounds, none, segments, none, segments},
};

static const struct expectation of_radix_4[] = {
    {TUTTI_BROADCAST, "knomial", knomial_rounds_of_4, none, knomial_rounds_of_4, none, one},
    {TUTTI_REDUCE, "knomial", knomial_rounds_of_4, none, one, none, knomial_rounds_of_4},
    {TUTTI_GATHER, "knomial", knomial_rounds_of_4, none, largest_subtree_of_4, none, others},
    {TUTTI_SCATTER, "knomial", knomial_rounds_of_4, none, others, none, largest_subtree_of_4},
};

static void expect(const struct expectation *expected, uint32_t nranks, const char *what,
                   formula *known, uint32_t found)
{
    if (known != NULL && known(nranks) != found)
        fail_msg("%s %s, %u ranks: %s is %u, not %u", tutti_collective_name(expected->collective),
                 expected->name, nranks, what, found, known(nranks));
}

static void expect_costs(const struct expectation *expected, const struct tutti_options *options,
                         uint32_t nranks)
{
    uint32_t root = (nranks * 5 + 3) % nranks;
    const struct tutti_algorithm *algorithm =
        tutti_algorithm_find(expected->collective, expected->name);
    struct tutti_shape shape = {.nranks = nranks, .root = root, .options = *options};
    struct count count;

    assert_non_null(algorithm);
    count = count_messages(algorithm, &shape);
    expect(expected, nranks, "number of rounds", expected->rounds, count.rounds);
    expect(expected, nranks, "least sent", expected->sent_min, count.sent_min);
    expect(expected, nranks, "most sent", expected->sent_max, count.sent_max);
    expect(expected, nranks, "least received", expected->received_min, count.received_min);
    expect(expected, nranks, "most received", expected->received_max, count.received_max);
}

static void costs_are_those_of_the_papers_for_any_number_of_ranks(void **state)
{
    (void)state;
    for (uint32_t nranks = 2; nranks <= 64; nranks++) {
        for (size_t i = 0; i < sizeof(expectations) / sizeof(expectations[0]); i++)
            expect_costs(&expectations[i], &(struct tutti_options){0}, nranks);
        for (size_t i = 0; i < sizeof(of_radix_4) / sizeof(of_radix_4[0]); i++)
            expect_costs(&of_radix_4[i], &(struct tutti_options){{[TUTTI_RADIX] = 4}}, nranks);
    }
}

static void every_two_sided_algorithm_is_expected(void **state)
{
    size_t nexpectations = sizeof(expectations) / sizeof(expectations[0]);

    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        bool found = algorithm->needs != 0;

        for (size_t e = 0; e < nexpectations; e++)
            found = found || (expectations[e].collective == algorithm->collective &&
                              strcmp(expectations[e].name, algorithm->name) == 0);
        if (!found)
            fail_msg("%s %s: no expectation", tutti_collective_name(algorithm->collective),
                     algorithm->name);
    }
}

/* ---- one-sided ones: chunks copied between ranks or into windows ------------------ */

static const struct {
    enum tutti_collective collective;
    const char *name;
    uint32_t nsignals;
    formula *laid_out, *taken; /* by the busiest rank */
} one_sided[] = {
    {TUTTI_ALLREDUCE, "one_shot", 1, one, none},
    {TUTTI_ALLREDUCE, "two_shot", 2, others, others},
    {TUTTI_ALLREDUCE, "mapped", 2, none, none},
    {TUTTI_REDUCE_SCATTER, "direct", 1, others, none},
    {TUTTI_REDUCE_SCATTER, "mapped", 2, none, none},
    {TUTTI_ALLGATHER, "direct", 1, one, others},
    {TUTTI_ALLGATHER, "mapped", 2, none, others},
    {TUTTI_ALLGATHER, "stored", 2, none, others},
    {TUTTI_ALLTOALL, "direct", 1, others, others},
    {TUTTI_ALLTOALL, "mapped", 2, none, others},
    {TUTTI_BROADCAST, "direct", 1, one, one},
    {TUTTI_BROADCAST, "mapped", 1, none, one},
    {TUTTI_BROADCAST, "shared", 2, none, others},
    {TUTTI_BROADCAST, "stored", 2, none, others},
    {TUTTI_REDUCE, "direct_one_shot", 1, one, none},
    {TUTTI_REDUCE, "direct", 2, others, others},
    {TUTTI_REDUCE, "mapped", 2, none, none},
    {TUTTI_GATHER, "direct", 1, one, others},
    {TUTTI_GATHER, "mapped", 1, none, others},
    {TUTTI_SCATTER, "direct", 1, others, one},
    {TUTTI_SCATTER, "mapped", 1, none, one},
    {TUTTI_BARRIER, "direct", 1, none, none},
    {TUTTI_SCAN, "mapped", 2, none, twice_others},
    {TUTTI_EXCLUSIVE_SCAN, "mapped", 2, none, twice_others_but_one},
};

static void one_sided_algorithms_move_no_chunk_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(one_sided) / sizeof(one_sided[0]); i++)
        for (uint32_t nranks = 2; nranks <= 33; nranks++) {
            struct world world;
            uint32_t laid_out = 0, taken = 0;

            world_init(&world, tutti_algorithm_find(one_sided[i].collective, one_sided[i].name),
                       &(struct tutti_shape){.nranks = nranks, .root = nranks / 2});
            for (uint32_t rank = 0; rank < nranks; rank++) {
                const struct tutti_schedule *schedule = world.schedules[rank];
                uint32_t copied = 0, got = 0;

                assert_int_equal(schedule->nsignals, one_sided[i].nsignals);
                for (uint32_t at = 0; at < schedule->nsteps; at++) {
                    const struct tutti_step *step = &schedule->steps[at];

                    if (step->kind == TUTTI_STEP_COPY && step->dst.buffer == TUTTI_BUF_WINDOW)
                        copied += step->dst.count;
                    if (step->kind == TUTTI_STEP_GET || step->kind == TUTTI_STEP_PUT)
                        got += step->remote.count *
                               (step->to == TUTTI_ALL_RANKS ? nranks - 1 : 1);
                }
                laid_out = copied > laid_out ? copied : laid_out;
                taken = got > taken ? got : taken;
            }
            world_fini(&world);
            if (laid_out != one_sided[i].laid_out(nranks) || taken != one_sided[i].taken(nranks))
                fail_msg("%s %s, %u ranks: %u laid out, %u taken",
                         tutti_collective_name(one_sided[i].collective), one_sided[i].name, nranks,
                         laid_out, taken);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_those_of_the_papers_for_any_number_of_ranks),
        cmocka_unit_test(every_two_sided_algorithm_is_expected),
        cmocka_unit_test(one_sided_algorithms_move_no_chunk_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
