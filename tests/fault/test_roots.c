/* SPDX-License-Identifier: Apache-2.0
 * Ranks pass different roots, so that each of them only sends or only receives, and none compares
 * that call. The next calls do compare. If all ranks wait, they compare their operations. The
 * error names the call, all ranks get it, and none waits forever. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { MOST_ALGORITHMS = 9 };

struct rooted {
    enum crew_kind kind;
    const char *algorithms[MOST_ALGORITHMS]; /* two-sided ones */
};

static const struct rooted rooted[] = {
    {CREW_BROADCAST, {"knomial", "knomial[radix=4]", "chain", "linear", "tree", "double_tree",
                      "scatter_allgather", "hierarchical", "circulant_pipeline"}},
    {CREW_REDUCE, {"knomial", "chain", "linear", "tree", "double_tree", "hierarchical",
                   "circulant_pipeline"}},
    {CREW_GATHER, {"knomial", "linear"}},
    {CREW_SCATTER, {"knomial", "linear"}},
};

/* The root that each rank passes. */
struct roots {
    const char *what;
    int nranks, of[CREW_MOST];
};

static const struct roots roots[] = {
    {"two ranks, each itself", 2, {0, 1}},
    {"two ranks, each the other", 2, {1, 0}},
    {"three ranks, one itself", 3, {0, 1, 0}},
    {"three ranks, each the next", 3, {1, 2, 0}},
    {"four ranks, each itself", 4, {0, 1, 2, 3}},
    {"five ranks, one another", 5, {4, 4, 4, 1, 4}},
};

/* The call after it. */
static const char *const followers[] = {
    "barrier:direct,allreduce:one_shot",
    "barrier:direct,allreduce:ring",
    "barrier:dissemination,allreduce:recursive_doubling",
};

struct way {
    const char *name, *transports;
    bool is_threads;
    int nfollowers, first_follower;
};

static const struct way ways[] = {
    {"threads", "shm,cma", true, 3, 0},
    {"processes", "shm", false, 3, 0},
    {"processes that read", "shm,cma", false, 1, 0},
    {"tcp", "tcp", false, 1, 2},
};

struct scene {
    const struct rooted *rooted;
    const struct roots *roots;
    size_t count;
};

static tuttiResult_t differ(struct crew_seat *seat)
{
    const struct scene *scene = seat->crew->context;
    struct crew_call barrier = {.kind = CREW_BARRIER};
    struct crew_call allreduce = {CREW_ALLREDUCE, 2, tuttiInt32, tuttiSum, 0};
    struct crew_call call = {scene->rooted->kind, scene->count, tuttiInt32, tuttiSum,
                             scene->roots->of[seat->rank]};
    tuttiResult_t result = crew_call(seat, &barrier);

    if (result == tuttiSuccess)
        result = crew_call(seat, &call);
    if (result == tuttiSuccess)
        result = crew_call(seat, &allreduce);
    if (result == tuttiSuccess)
        result = crew_call(seat, &barrier);
    return result;
}

/* The call, by its number, and the rank that differs. */
static bool names_it(const char *text, const struct scene *scene)
{
    char call[64];

    snprintf(call, sizeof call, "%s(count %zu", crew_names[scene->rooted->kind], scene->count);
    return strstr(text, call) != NULL && strstr(text, "number 2") != NULL &&
           strstr(text, "root ") != NULL && strstr(text, "rank ") != NULL;
}

static void check(const struct crew *crew, const char *title)
{
    struct crew_board *board = crew_run(crew);
    bool is_named = false;

    for (int rank = 0; rank < crew->nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != tuttiInvalidUsage && report->result != tuttiRemoteError)
            fail_msg("%s: rank %d got %d: %s", title, rank, (int)report->result, report->text);
        is_named |= names_it(report->text, crew->context);
    }
    for (int rank = 0; rank < crew->nranks && !is_named; rank++)
        print_error("%d: %s\n", rank, board->reports[rank].text);
    if (!is_named)
        fail_msg("%s: nobody names the call", title);
    crew_clear(board);
}

/* Tries each way to continue with each algorithm and with each of the roots, one after the
 * other. */
static void check_algorithm(const struct way *way, const struct rooted *kind, size_t algorithm,
                            size_t k)
{
    const struct roots *who = &roots[k];
    struct scene scene = {kind, who, who->nranks % 2 ? 30000 : 3};
    char choice[160], title[256];
    const char *environment[] = {"TUTTI_TRANSPORTS", way->transports, "TUTTI_ALGORITHM", choice,
                                 NULL};

    if (kind->algorithms[algorithm] == NULL)
        return;
    snprintf(choice, sizeof choice, "%s:%s,%s", crew_names[kind->kind],
             kind->algorithms[algorithm],
             followers[way->first_follower + (int)(algorithm + k) % way->nfollowers]);
    snprintf(title, sizeof title, "%s, %s, %s", way->name, who->what, choice);
    check(&(struct crew){.nranks = who->nranks, .is_threads = way->is_threads,
                         .environment = environment, .run = differ, .timeout_ms = 600000,
                         .context = &scene},
          title);
}

static void roots_that_differ_are_named_in_the_calls_after(void **state)
{
    for (size_t i = 0; i < sizeof rooted / sizeof *rooted; i++)
        for (size_t algorithm = 0; algorithm < MOST_ALGORITHMS; algorithm++)
            for (size_t k = 0; k < sizeof roots / sizeof *roots; k++)
                check_algorithm(*state, &rooted[i], algorithm, k);
}

int main(void)
{
    struct CMUnitTest tests[sizeof ways / sizeof *ways];
    size_t count = 0;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].is_threads || !CREW_FIRST_LAUNCH)
            tests[count++] = (struct CMUnitTest){
                .name = ways[i].name, .test_func = roots_that_differ_are_named_in_the_calls_after,
                .initial_state = (void *)(uintptr_t)&ways[i]};
    return _cmocka_run_group_tests("roots that differ", tests, count, NULL, NULL);
}
