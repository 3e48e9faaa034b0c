/* SPDX-License-Identifier: Apache-2.0
 * Lists all algorithms, and turns an algorithm into a schedule.
 */
#include "algorithms/algorithm.h"

#include "algorithms/cells.h"
#include "algorithms/moves.h"
#include "base/result.h"

#include <string.h>

/* Each algorithm is defined at the end of the file that emits it. Of algorithms with equal cost the
 * first in this list is chosen, so those with one partner per round come before those with two. */
#define ALGORITHMS(line)                                                                  \
    line(tutti_one_shot_allreduce)                                                        \
    line(tutti_two_shot_allreduce)                                                        \
    line(tutti_mapped_allreduce)                                                          \
    line(tutti_cells_allreduce)                                                           \
    line(tutti_cells_one_shot_allreduce)                                                  \
    line(tutti_recursive_doubling_allreduce)                                              \
    line(tutti_circulant_allreduce)                                                       \
    line(tutti_ring_allreduce)                                                            \
    line(tutti_rabenseifner_allreduce)                                                    \
    line(tutti_hybrid_allreduce)                                                          \
    line(tutti_hierarchical_allreduce)                                                    \
    line(tutti_swing_allreduce)                                                           \
    line(tutti_pat_allreduce)                                                             \
    line(tutti_multi_ring_allreduce)                                                      \
    line(tutti_walecki_allreduce)                                                         \
    line(tutti_bucket_allreduce)                                                          \
    line(tutti_tree_allreduce)                                                            \
    line(tutti_double_tree_allreduce)                                                     \
    line(tutti_circulant_pipeline_allreduce)                                              \
    line(tutti_direct_one_shot_reduce)                                                    \
    line(tutti_direct_reduce)                                                             \
    line(tutti_mapped_reduce)                                                             \
    line(tutti_cells_reduce)                                                              \
    line(tutti_linear_reduce)                                                             \
    line(tutti_knomial_reduce)                                                            \
    line(tutti_hierarchical_reduce)                                                       \
    line(tutti_chain_reduce)                                                              \
    line(tutti_tree_reduce)                                                               \
    line(tutti_double_tree_reduce)                                                        \
    line(tutti_circulant_pipeline_reduce)                                                 \
    line(tutti_direct_broadcast)                                                          \
    line(tutti_mapped_broadcast)                                                          \
    line(tutti_shared_broadcast)                                                          \
    line(tutti_stored_broadcast)                                                          \
    line(tutti_cells_broadcast)                                                           \
    line(tutti_linear_broadcast)                                                          \
    line(tutti_knomial_broadcast)                                                         \
    line(tutti_hierarchical_broadcast)                                                    \
    line(tutti_scatter_allgather_broadcast)                                               \
    line(tutti_chain_broadcast)                                                           \
    line(tutti_tree_broadcast)                                                            \
    line(tutti_double_tree_broadcast)                                                     \
    line(tutti_circulant_pipeline_broadcast)                                              \
    line(tutti_direct_allgather)                                                          \
    line(tutti_mapped_allgather)                                                          \
    line(tutti_stored_allgather)                                                          \
    line(tutti_cells_allgather)                                                           \
    line(tutti_recursive_doubling_allgather)                                              \
    line(tutti_circulant_allgather)                                                       \
    line(tutti_hierarchical_allgather)                                                    \
    line(tutti_ring_allgather)                                                            \
    line(tutti_swing_allgather)                                                           \
    line(tutti_pat_allgather)                                                             \
    line(tutti_multi_ring_allgather)                                                      \
    line(tutti_walecki_allgather)                                                         \
    line(tutti_bucket_allgather)                                                          \
    line(tutti_direct_reduce_scatter)                                                     \
    line(tutti_mapped_reduce_scatter)                                                     \
    line(tutti_cells_reduce_scatter)                                                      \
    line(tutti_recursive_halving_reduce_scatter)                                          \
    line(tutti_circulant_reduce_scatter)                                                  \
    line(tutti_hierarchical_reduce_scatter)                                               \
    line(tutti_ring_reduce_scatter)                                                       \
    line(tutti_swing_reduce_scatter)                                                      \
    line(tutti_pat_reduce_scatter)                                                        \
    line(tutti_multi_ring_reduce_scatter)                                                 \
    line(tutti_walecki_reduce_scatter)                                                    \
    line(tutti_bucket_reduce_scatter)                                                     \
    line(tutti_direct_alltoall)                                                           \
    line(tutti_mapped_alltoall)                                                           \
    line(tutti_bruck_alltoall)                                                            \
    line(tutti_spread_out_alltoall)                                                       \
    line(tutti_hierarchical_alltoall)                                                     \
    line(tutti_direct_gather)                                                             \
    line(tutti_mapped_gather)                                                             \
    line(tutti_knomial_gather)                                                            \
    line(tutti_linear_gather)                                                             \
    line(tutti_direct_scatter)                                                            \
    line(tutti_mapped_scatter)                                                            \
    line(tutti_knomial_scatter)                                                           \
    line(tutti_linear_scatter)                                                            \
    line(tutti_direct_barrier)                                                            \
    line(tutti_cells_barrier)                                                             \
    line(tutti_dissemination_barrier)                                                     \
    line(tutti_doubling_scan)                                                             \
    line(tutti_tree_scan)                                                                 \
    line(tutti_chain_scan)                                                                \
    line(tutti_linear_scan)                                                               \
    line(tutti_mapped_scan)                                                               \
    line(tutti_doubling_exclusive_scan)                                                   \
    line(tutti_tree_exclusive_scan)                                                       \
    line(tutti_chain_exclusive_scan)                                                      \
    line(tutti_linear_exclusive_scan)                                                     \
    line(tutti_mapped_exclusive_scan)

#define DECLARE(algorithm) extern const struct tutti_algorithm algorithm;
#define ADDRESS(algorithm) &algorithm,

ALGORITHMS(DECLARE)

static const struct tutti_algorithm *const algorithms[] = {ALGORITHMS(ADDRESS)};

size_t tutti_algorithm_count(void)
{
    return sizeof(algorithms) / sizeof(algorithms[0]);
}

const struct tutti_algorithm *tutti_algorithm(size_t index)
{
    return index < tutti_algorithm_count() ? algorithms[index] : NULL;
}

const struct tutti_algorithm *tutti_algorithm_find(enum tutti_collective collective,
                                                   const char *name)
{
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        if (algorithms[i]->collective == collective && strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}

/* With one rank every collective is a copy; in an in-place call the copy does nothing. */
static int emit_alone(enum tutti_collective collective, struct tutti_build *build)
{
    if (!tutti_collective_has_output(collective, 0, 0))
        return TUTTI_OK;
    return tutti_build_copy(build,
                            tutti_span(TUTTI_BUF_INPUT, 0, tutti_input_blocks(collective, 1)),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, tutti_output_blocks(collective, 1)));
}

int tutti_algorithm_emit(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                         struct tutti_build *build)
{
    struct tutti_shape own = *shape;

    own.collective = algorithm->collective;
    if (algorithm->moves != NULL)
        return tutti_moves_emit(&own, build, algorithm->moves);
    if (algorithm->in_cells != NULL)
        return tutti_cells_emit(&own, build, algorithm->in_cells);
    return algorithm->emit(&own, build);
}

void tutti_algorithm_cost(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                          double block_bytes, struct tutti_cost *ret_cost)
{
    struct tutti_shape own = *shape;

    own.collective = algorithm->collective;
    if (algorithm->in_cells != NULL)
        tutti_cells_cost(&own, block_bytes, algorithm->in_cells, ret_cost);
    else
        algorithm->cost(&own, block_bytes, ret_cost);
}

static int emit(const struct tutti_algorithm *algorithm, const struct tutti_shape *shape,
                struct tutti_build *build)
{
    if (shape->nranks == 1)
        return emit_alone(algorithm->collective, build);
    tutti_build_needs(build, algorithm->needs);
    return tutti_algorithm_emit(algorithm, shape, build);
}

int tutti_algorithm_options(const struct tutti_algorithm *algorithm,
                            const struct tutti_options *options, struct tutti_options *ret_options)
{
    struct tutti_options resolved;

    for (int i = 0; i < TUTTI_OPTION_COUNT; i++) {
        const struct tutti_algorithm_range *range = &algorithm->options[i];
        uint32_t value = options->value[i];

        resolved.value[i] = value == 0 ? range->usual : value;
        if (value == 0)
            continue;
        if (range->most == 0)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s %s has no option \"%s\"",
                              tutti_collective_name(algorithm->collective), algorithm->name,
                              tutti_option_name((enum tutti_option)i));
        if (value < range->least || value > range->most)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s %s: %s=%u; it may be %u to %u",
                              tutti_collective_name(algorithm->collective), algorithm->name,
                              tutti_option_name((enum tutti_option)i), value, range->least,
                              range->most);
    }
    *ret_options = resolved;
    return TUTTI_OK;
}

int tutti_algorithm_schedule(const struct tutti_algorithm *algorithm,
                             const struct tutti_shape *shape, struct tutti_schedule **ret_schedule)
{
    struct tutti_build build = {0};
    struct tutti_schedule *schedule;
    struct tutti_shape resolved = *shape;
    int rc;

    TUTTI_TRY(tutti_algorithm_options(algorithm, &shape->options, &resolved.options));
    TUTTI_TRY(tutti_build_init(&build, algorithm->collective, shape));
    TUTTI_TRY_OR(drop_build, rc, emit(algorithm, &resolved, &build));
    TUTTI_TRY_OR(drop_build, rc, tutti_build_finish_fused(&build, &schedule));
    schedule->is_lean = algorithm->is_lean;
    schedule->sums_in_stages = algorithm->sums_in_stages;

    *ret_schedule = schedule;
    return TUTTI_OK;

drop_build:
    tutti_build_fini(&build);
    return rc;
}
