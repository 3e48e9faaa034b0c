/* SPDX-License-Identifier: Apache-2.0
 * The built-in table, the first row that fits wins.
 *
 * The limits are coarse: a few were tried with TUTTI_ALGORITHM and two ranks on a two-core host
 * (the all-reduces over sockets), the others follow from rounds and bytes alone. What memory, caches
 * and cores do to one-sided algorithms is not in the counts that prices are made of, so these rows
 * stand above prices; those of the two-sided algorithms stand below.
 */
#include "tuner/builtin.h"

#define ANY SIZE_MAX

struct rule {
    enum tutti_collective collective;
    size_t most_bytes; /* of the larger buffer of a rank */
    uint32_t least_ranks;
    const char *algorithm;
};

/* Ordered by preference: what needs more of the machine comes first. */
static const struct rule rules[] = {
    {TUTTI_BARRIER, ANY, 2, "direct"},
    {TUTTI_BARRIER, ANY, 1, "dissemination"},

    {TUTTI_ALLREDUCE, 4 << 10, 2, "one_shot"},
    {TUTTI_ALLREDUCE, ANY, 2, "mapped"},
    {TUTTI_ALLREDUCE, ANY, 2, "two_shot"},
    {TUTTI_ALLREDUCE, 64 << 10, 2, "recursive_doubling"},
    {TUTTI_ALLREDUCE, ANY, 1, "circulant"},

    {TUTTI_REDUCE, 4 << 10, 2, "direct_one_shot"},
    {TUTTI_REDUCE, ANY, 2, "mapped"},
    {TUTTI_REDUCE, ANY, 2, "direct"},
    {TUTTI_REDUCE, 64 << 10, 2, "knomial"},
    {TUTTI_REDUCE, ANY, 1, "chain"},

    {TUTTI_BROADCAST, 32 << 10, 2, "direct"},
    {TUTTI_BROADCAST, ANY, 2, "mapped"},
    {TUTTI_BROADCAST, ANY, 2, "direct"},
    {TUTTI_BROADCAST, 64 << 10, 2, "knomial"},
    {TUTTI_BROADCAST, ANY, 1, "chain"},

    {TUTTI_ALLGATHER, 64 << 10, 2, "direct"},
    {TUTTI_ALLGATHER, ANY, 2, "mapped"},
    {TUTTI_ALLGATHER, ANY, 2, "direct"},
    {TUTTI_ALLGATHER, ANY, 1, "circulant"},

    {TUTTI_REDUCE_SCATTER, 16 << 10, 2, "direct"},
    {TUTTI_REDUCE_SCATTER, ANY, 2, "mapped"},
    {TUTTI_REDUCE_SCATTER, ANY, 2, "direct"},
    {TUTTI_REDUCE_SCATTER, ANY, 1, "circulant"},

    {TUTTI_ALLTOALL, 64 << 10, 2, "direct"},
    {TUTTI_ALLTOALL, ANY, 2, "mapped"},
    {TUTTI_ALLTOALL, ANY, 2, "direct"},
    {TUTTI_ALLTOALL, 2 << 10, 8, "bruck"},
    {TUTTI_ALLTOALL, ANY, 1, "spread_out"},

    {TUTTI_GATHER, 64 << 10, 2, "direct"},
    {TUTTI_GATHER, ANY, 2, "mapped"},
    {TUTTI_GATHER, ANY, 2, "direct"},
    {TUTTI_GATHER, 16 << 10, 2, "knomial"},
    {TUTTI_GATHER, ANY, 1, "linear"},

    {TUTTI_SCATTER, 64 << 10, 2, "direct"},
    {TUTTI_SCATTER, ANY, 2, "mapped"},
    {TUTTI_SCATTER, ANY, 2, "direct"},
    {TUTTI_SCATTER, 16 << 10, 2, "knomial"},
    {TUTTI_SCATTER, ANY, 1, "linear"},
};

const struct tutti_algorithm *tutti_builtin_find(const struct tutti_tuner_view *view,
                                                 const struct tutti_tuner_query *query,
                                                 bool in_memory)
{
    size_t bytes = tutti_tuner_bytes(view, query);

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const struct tutti_algorithm *algorithm;

        if (rule->collective != query->collective || bytes > rule->most_bytes ||
            view->nranks < rule->least_ranks)
            continue;
        algorithm = tutti_algorithm_find(rule->collective, rule->algorithm);
        if (algorithm != NULL && (algorithm->needs != 0) == in_memory &&
            tutti_tuner_can_serve(view, query, algorithm))
            return algorithm;
    }
    return NULL;
}
