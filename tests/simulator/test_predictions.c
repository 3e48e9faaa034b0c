/* SPDX-License-Identifier: Apache-2.0
 * Compares the costs of algorithms (algorithms/cost.h) with their schedules, played on a flat
 * machine with one port per rank, or on one node of such ranks. The time is rounds * alpha + bytes
 * * beta within 2 %. Exceptions are listed here with their reasons. */
#include "simulator/stage.h"
#include "tuner/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FLAT "ranks 2; level top overhead 5us bandwidth 50GB/s"
#define NODE "ranks 2; node 64; level node overhead 5us bandwidth 50GB/s"

enum { CHUNK_BYTES = 2048, MOST_RANKS = 32 };

/* Played time over promised time, at least and at most. */
struct exception {
    enum tutti_collective collective;
    const char *name;
    double least, most;
};

static const struct exception exceptions[] = {
    /* The promise is one of synchronous rounds. Where the number of ranks is not a power of two,
     * some have nothing to wait for; they run ahead, and come before others at a port. */
    {TUTTI_ALLREDUCE, "hybrid", 0.98, 1.4},
    {TUTTI_ALLREDUCE, "hierarchical", 0.98, 1.4},
    {TUTTI_ALLGATHER, "hierarchical", 0.98, 1.4},
    {TUTTI_REDUCE_SCATTER, "hierarchical", 0.98, 1.3},
    {TUTTI_BROADCAST, "scatter_allgather", 0.98, 1.6},
    /* These are rounds of scattered blocks, some of which are passed on by themselves. Each block
     * that the simulator cannot distinguish from one of a pipeline has its own overhead. The
     * collective determines the owner of each block, so they cannot be made contiguous. In swing's
     * all-reduce the owners are free, and with powers of two it takes the predicted time. */
    {TUTTI_ALLREDUCE, "swing", 0.98, 2.7},
    {TUTTI_ALLGATHER, "swing", 0.98, 2.2},
    {TUTTI_REDUCE_SCATTER, "swing", 0.98, 3.2},
    {TUTTI_ALLREDUCE, "pat", 0.98, 1.3},
    {TUTTI_ALLGATHER, "pat", 0.98, 1.3},
    {TUTTI_REDUCE_SCATTER, "pat", 0.98, 1.3},
    /* Pipelines: between two ranks all segments are one write; with more, a rank that has several
     * segments to send and to receive does not always meet its partner in the order of rounds. */
    {TUTTI_BROADCAST, "chain", 0.05, 1.02},
    {TUTTI_REDUCE, "chain", 0.05, 1.02},
    {TUTTI_SCAN, "chain", 0.05, 1.02},
    {TUTTI_EXCLUSIVE_SCAN, "chain", 0.05, 1.02},
    {TUTTI_SCAN, "tree", 0.3, 1.15},
    {TUTTI_EXCLUSIVE_SCAN, "tree", 0.1, 1.15},
    {TUTTI_BROADCAST, "tree", 0.05, 1.02},
    {TUTTI_REDUCE, "tree", 0.05, 1.02},
    {TUTTI_ALLREDUCE, "tree", 0.5, 1.15},
    {TUTTI_BROADCAST, "double_tree", 0.05, 1.02},
    {TUTTI_REDUCE, "double_tree", 0.05, 1.3},
    {TUTTI_ALLREDUCE, "double_tree", 0.4, 1.2},
    {TUTTI_BROADCAST, "hierarchical", 0.05, 1.5},
    {TUTTI_REDUCE, "hierarchical", 0.05, 1.6},
    /* Some ranks put parts while others still get theirs, so some ports have gaps. In an exclusive
     * scan this is so because one rank gets more than the others, and one puts more. */
    {TUTTI_BROADCAST, "stored", 0.98, 1.15},
    {TUTTI_EXCLUSIVE_SCAN, "mapped", 0.98, 1.3},
    /* These keep to the order of rounds, except that the two halves of the all-reduce overlap. */
    {TUTTI_BROADCAST, "circulant_pipeline", 0.05, 1.02},
    {TUTTI_REDUCE, "circulant_pipeline", 0.05, 1.02},
    {TUTTI_ALLREDUCE, "circulant_pipeline", 0.5, 1.02},
};

static struct exception tolerance_of(const struct tutti_algorithm *algorithm)
{
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
        if (exceptions[i].collective == algorithm->collective &&
            strcmp(exceptions[i].name, algorithm->name) == 0)
            return exceptions[i];
    return (struct exception){algorithm->collective, algorithm->name, 0.98, 1.02};
}

static double promised(const struct stage *stage, const struct tutti_algorithm *algorithm,
                       size_t block_bytes)
{
    struct tutti_tuner_view view = {.nranks = stage->machine->places.nranks,
                                    .places = &stage->machine->places, .machine = stage->machine};
    struct tutti_tuner_query query = {.collective = algorithm->collective, .root = stage->root,
                                      .block_bytes = block_bytes};
    struct tutti_choice choice = {.algorithm = algorithm};

    assert_int_equal(tutti_algorithm_options(algorithm, &choice.options, &choice.options), 0);
    return tutti_price(&view, &query, &choice);
}

static double compare(const struct tutti_algorithm *algorithm, const char *machine, uint32_t nranks)
{
    uint32_t blocks = tutti_input_blocks(algorithm->collective, nranks) +
                      tutti_output_blocks(algorithm->collective, nranks);
    size_t block_bytes = blocks == 2 ? nranks * CHUNK_BYTES : CHUNK_BYTES;
    struct tutti_sim_report report;
    struct stage stage;
    double ratio;

    stage_open(&stage, machine, nranks);
    stage.root = tutti_collective_has_root(algorithm->collective) ? nranks / 3 : 0;
    stage_play(&stage, algorithm->collective, algorithm->name, block_bytes, &report);
    ratio = report.seconds / promised(&stage, algorithm, block_bytes);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
    return ratio;
}

static const char *simplest(const struct tutti_algorithm *algorithm)
{
    return algorithm->needs == 0 ? FLAT : NODE;
}

static void algorithms_do_what_their_costs_promise(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        struct exception tolerance = tolerance_of(algorithm);

        for (uint32_t nranks = 2; nranks <= MOST_RANKS; nranks++) {
            double ratio = compare(algorithm, simplest(algorithm), nranks);

            if (ratio < tolerance.least || ratio > tolerance.most)
                fail_msg("%s %s, %u ranks: takes %.3f times what it promises",
                         tutti_collective_name(algorithm->collective), algorithm->name, nranks,
                         ratio);
        }
    }
}

/* An exception that is not needed would hide later errors. */
static void every_exception_is_needed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++) {
        const struct tutti_algorithm *algorithm =
            tutti_algorithm_find(exceptions[i].collective, exceptions[i].name);
        bool is_needed = false;

        assert_non_null(algorithm);
        for (uint32_t nranks = 2; nranks <= MOST_RANKS && !is_needed; nranks++) {
            double ratio = compare(algorithm, simplest(algorithm), nranks);

            is_needed = ratio < 0.98 || ratio > 1.02;
        }
        if (!is_needed)
            fail_msg("%s %s needs no exception",
                     tutti_collective_name(algorithm->collective), algorithm->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_do_what_their_costs_promise),
        cmocka_unit_test(every_exception_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
