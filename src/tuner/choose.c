/* SPDX-License-Identifier: Apache-2.0
 * Choosing an algorithm: a table of rules, the first that fits wins.
 *
 * The limits are coarse: a few were tried with TUTTI_ALGORITHM and two ranks on a two-core host (the
 * all-reduces over sockets), the others follow from rounds and bytes alone.
 */
#include "tuner/tuner.h"

#include "base/param.h"
#include "base/result.h"

#include <string.h>

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

bool tutti_tuner_can_serve(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_algorithm *algorithm)
{
    uint32_t needs = algorithm->needs;

    if (query->is_vector && !algorithm->serves_vector)
        return false;
    /* Window calls are cut in pieces, which v-forms are not. */
    if (query->is_vector && (needs & TUTTI_NEEDS_WINDOW))
        return false;
    if (needs != 0 && !view->is_one_domain)
        return false;
    if ((needs & TUTTI_NEEDS_PEER_READ) && !view->all_read && !view->all_store)
        return false;
    if ((needs & TUTTI_NEEDS_PEER_STORE) && !view->all_store)
        return false;
    /* A window half holds at most one line-sized slot per rank. */
    return !(needs & TUTTI_NEEDS_WINDOW) || view->half_bytes / view->nranks >= 64;
}

/* The algorithm that "collective:name,..." gives for the collective, NULL if none. */
static int find_override(enum tutti_collective collective,
                         const struct tutti_algorithm **ret_algorithm)
{
    const char *at = tutti_param_text(TUTTI_PARAM_ALGORITHM);

    *ret_algorithm = NULL;
    while (*at != '\0') {
        size_t length = strcspn(at, ",");
        const char *colon = memchr(at, ':', length);
        char name[64];
        size_t size;
        int found = -1;

        if (colon == NULL)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "TUTTI_ALGORITHM: \"%.*s\" is not of the form collective:algorithm",
                              (int)length, at);
        for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++)
            if (strlen(tutti_collective_name(i)) == (size_t)(colon - at) &&
                strncmp(tutti_collective_name(i), at, (size_t)(colon - at)) == 0)
                found = i;
        size = length - (size_t)(colon + 1 - at);
        if (found < 0 || size >= sizeof name)
            return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_ALGORITHM: \"%.*s\" names no collective",
                              (int)length, at);
        memcpy(name, colon + 1, size);
        name[size] = '\0';
        if (tutti_algorithm_find(found, name) == NULL)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "TUTTI_ALGORITHM: %s has no algorithm \"%s\"; docs/algorithms.md "
                              "lists them",
                              tutti_collective_name(found), name);
        if ((enum tutti_collective)found == collective)
            *ret_algorithm = tutti_algorithm_find(found, name);
        at += length + (at[length] == ',');
    }
    return TUTTI_OK;
}

int tutti_tuner_check(void)
{
    const struct tutti_algorithm *ignored;

    return find_override(TUTTI_ALLREDUCE, &ignored);
}

int tutti_tuner_choose(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       const struct tutti_algorithm **ret_algorithm)
{
    uint32_t inputs = tutti_input_blocks(query->collective, view->nranks);
    uint32_t outputs = tutti_output_blocks(query->collective, view->nranks);
    size_t bytes = query->block_bytes * (inputs > outputs ? inputs : outputs);
    const struct tutti_algorithm *wanted;

    TUTTI_TRY(find_override(query->collective, &wanted));
    if (wanted != NULL && tutti_tuner_can_serve(view, query, wanted)) {
        *ret_algorithm = wanted;
        return TUTTI_OK;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const struct tutti_algorithm *algorithm;

        if (rule->collective != query->collective || bytes > rule->most_bytes ||
            view->nranks < rule->least_ranks)
            continue;
        algorithm = tutti_algorithm_find(rule->collective, rule->algorithm);
        if (algorithm == NULL || !tutti_tuner_can_serve(view, query, algorithm))
            continue;
        *ret_algorithm = algorithm;
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_ERR_INTERNAL, "no algorithm serves %s over %u ranks",
                      tutti_collective_name(query->collective), view->nranks);
}
