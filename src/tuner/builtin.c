/* SPDX-License-Identifier: Apache-2.0
 * The built-in table, the first row that fits wins.
 *
 * The limits are coarse. Those of rows for ranks that share memory were measured on a two-core host
 * with 2 to 16 ranks while others used it too (bench/choices), but for ranks of one process; the
 * others follow from rounds and bytes alone. What memory, caches and cores do to one-sided
 * algorithms is not in the counts that prices are made of, so rows for ranks that share memory
 * stand above prices, and the others below. With more ranks than cores, knomial trees were often
 * the fastest of the small rooted ones; no row says so yet, TUTTI_TUNE and tuttiCommTune can. Ranks
 * that differ in the root are told all the same, by the call after (executor/history.h).
 */
#include "tuner/builtin.h"

#define ANY SIZE_MAX

/* For whom a row is. */
enum {
    ALL = 0,
    IN_MEMORY = 1,     /* all ranks share memory */
    IN_PROCESS = 2,    /* and are threads of a process: they read and write each other's buffers */
};

struct rule {
    enum tutti_collective collective;
    size_t most_bytes; /* of the larger buffer of a rank */
    uint32_t least_ranks;
    int whom;
    const char *algorithm;
};

/* Ordered by preference: what needs more of the machine comes first. */
static const struct rule rules[] = {
    {TUTTI_BARRIER, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_BARRIER, ANY, 1, ALL, "dissemination"},

    {TUTTI_ALLREDUCE, 32 << 10, 2, IN_MEMORY, "one_shot"},
    {TUTTI_ALLREDUCE, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_ALLREDUCE, ANY, 2, IN_MEMORY, "two_shot"},
    {TUTTI_ALLREDUCE, 64 << 10, 2, ALL, "recursive_doubling"},
    {TUTTI_ALLREDUCE, ANY, 1, ALL, "circulant"},

    {TUTTI_REDUCE, 4 << 10, 2, IN_MEMORY, "direct_one_shot"},
    {TUTTI_REDUCE, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_REDUCE, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_REDUCE, 64 << 10, 2, ALL, "knomial"},
    {TUTTI_REDUCE, ANY, 1, ALL, "chain"},

    {TUTTI_BROADCAST, 32 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_BROADCAST, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_BROADCAST, 512 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_BROADCAST, ANY, 2, IN_MEMORY, "mapped"},
    {TUTTI_BROADCAST, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_BROADCAST, 64 << 10, 2, ALL, "knomial"},
    {TUTTI_BROADCAST, ANY, 1, ALL, "chain"},

    {TUTTI_ALLGATHER, 64 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLGATHER, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_ALLGATHER, 4 << 20, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLGATHER, ANY, 2, IN_MEMORY, "mapped"},
    {TUTTI_ALLGATHER, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLGATHER, ANY, 1, ALL, "circulant"},

    {TUTTI_REDUCE_SCATTER, 16 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_REDUCE_SCATTER, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_REDUCE_SCATTER, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_REDUCE_SCATTER, ANY, 1, ALL, "circulant"},

    {TUTTI_ALLTOALL, 64 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLTOALL, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_ALLTOALL, 512 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLTOALL, 1 << 20, 3, IN_MEMORY, "direct"},
    {TUTTI_ALLTOALL, ANY, 2, IN_MEMORY, "mapped"},
    {TUTTI_ALLTOALL, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_ALLTOALL, 2 << 10, 8, ALL, "bruck"},
    {TUTTI_ALLTOALL, ANY, 1, ALL, "spread_out"},

    {TUTTI_GATHER, 64 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_GATHER, ANY, 2, IN_PROCESS, "mapped"},
    {TUTTI_GATHER, 2 << 20, 2, IN_MEMORY, "direct"},
    {TUTTI_GATHER, ANY, 2, IN_MEMORY, "mapped"},
    {TUTTI_GATHER, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_GATHER, 16 << 10, 2, ALL, "knomial"},
    {TUTTI_GATHER, ANY, 1, ALL, "linear"},

    {TUTTI_SCATTER, 64 << 10, 2, IN_MEMORY, "direct"},
    {TUTTI_SCATTER, ANY, 2, IN_MEMORY, "mapped"},
    {TUTTI_SCATTER, ANY, 2, IN_MEMORY, "direct"},
    {TUTTI_SCATTER, 16 << 10, 2, ALL, "knomial"},
    {TUTTI_SCATTER, ANY, 1, ALL, "linear"},
};

/* Whom this view's ranks are among. */
static int whom(const struct tutti_tuner_view *view)
{
    if (!view->is_one_domain)
        return ALL;
    return IN_MEMORY | (view->all_store ? IN_PROCESS : 0);
}

const struct tutti_algorithm *tutti_builtin_find(const struct tutti_tuner_view *view,
                                                 const struct tutti_tuner_query *query,
                                                 bool in_memory)
{
    size_t bytes = tutti_tuner_bytes(view, query);
    int ours = whom(view);

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const struct tutti_algorithm *algorithm;

        if (rule->collective != query->collective || bytes > rule->most_bytes ||
            view->nranks < rule->least_ranks || (rule->whom & ~ours) != 0 ||
            (rule->whom != ALL) != in_memory)
            continue;
        algorithm = tutti_algorithm_find(rule->collective, rule->algorithm);
        if (algorithm != NULL && tutti_tuner_can_serve(view, query, algorithm))
            return algorithm;
    }
    return NULL;
}
