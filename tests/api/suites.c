/* SPDX-License-Identifier: Apache-2.0
 * Selects the combinations of trials that run, and their numbers of ranks. */
#include "suites.h"

#include <string.h>

static const int few[] = {1, 2, 3, 5, 8, 0};
static const int sized[] = {1, 2, 3, 4, 8, 16, 0};
static const int all[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0};

/* Give up after the first complaint, and let no rank wait, because everything after it is noise. */
static void run(struct member *member, const struct trial *trial)
{
    if (member_is_unhappy(member))
        tuttiCommAbort(member->comm);
    else
        trial_run(member, trial);
}

/* In place, too, where there is a place to be in. */
static void run_both(struct member *member, struct trial trial)
{
    trial.in_place = false;
    run(member, &trial);
    trial.in_place = act_can_be_in_place(trial.act);
    trial.is_shifted = true;
    if (trial.in_place)
        run(member, &trial);
}

static int last_rank_if_rooted(const struct member *member, enum act act)
{
    return act_has_root(act) ? member->nranks - 1 : 0;
}

/* ---- suites ---------------------------------------------------------------------------------- */

/* Every act over every small count that is special. */
static void run_counts(struct member *member)
{
    size_t p = (size_t)member->nranks;
    const size_t counts[] = {0, 1, p - 1, p, p + 1, 7, 127};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int act = 0; act < ACT_COUNT; act++)
            run_both(member, (struct trial){.act = act, .type = tuttiInt32, .op = tuttiSum,
                                            .count = counts[i], .counts = COUNTS_RAMP,
                                            .root = last_rank_if_rooted(member, act)});
}

/* Every act over the counts that need many pieces. */
static void run_sizes(struct member *member)
{
    size_t p = (size_t)member->nranks;

    for (int act = 0; act < ACT_COUNT; act++) {
        bool is_whole = act == ALL_REDUCE || act == REDUCE || act == BROADCAST;
        struct trial trial = {.act = act, .type = tuttiInt32, .op = tuttiSum, .count = 10007,
                              .counts = COUNTS_ONE_BIG, .root = member->nranks / 2};

        run_both(member, trial);
        /* A mebi of elements in all, and an odd one. */
        trial.count = is_whole ? 1048576 : 1048576 / p + 1;
        trial.type = tuttiFloat32;
        run_both(member, trial);
    }
}

/* Every type with every operation, and every type moved. */
static void run_types(struct member *member)
{
    for (int type = 0; type < tuttiNumTypes; type++)
        for (int act = 0; act < ACT_COUNT; act++)
            for (int op = 0; op < OP_COUNT; op++)
                if (act_has_op(act, op) && value_has_op(type, op))
                    run_both(member, (struct trial){.act = act, .type = type, .op = op,
                                                    .count = 67, .counts = COUNTS_RAMP, .root = 0});
}

/* The reductions again, long enough for kernels and pieces to have ends and middles. */
static void run_operations(struct member *member)
{
    enum act reductions[ACT_COUNT];
    int count = 0;

    for (int act = 0; act < ACT_COUNT; act++)
        if (act_reduces(act))
            reductions[count++] = (enum act)act;
    for (int type = 0; type < tuttiNumTypes; type++)
        for (int op = 0; op < OP_COUNT; op++) {
            struct trial trial = {.act = reductions[(type + op) % count], .type = type, .op = op,
                                  .count = 5003, .counts = COUNTS_SOME_ZERO,
                                  .places = PLACES_GAPS, .root = member->nranks - 1};

            trial.in_place = (type + op / 4) % 2;
            if (act_has_op(trial.act, op) && value_has_op(type, op))
                run(member, &trial);
        }
}

/* Every root of every act that has one. */
static void run_roots(struct member *member)
{
    const size_t counts[] = {1, (size_t)member->nranks + 1, 700};

    for (int root = 0; root < member->nranks; root++)
        for (int act = 0; act < ACT_COUNT; act++)
            for (int i = 0; i < (act_has_root(act) ? 3 : 0); i++)
                run_both(member, (struct trial){.act = act, .type = tuttiInt64, .op = tuttiSum,
                                                .count = counts[i], .root = root});
}

/* The v-forms: every law of counts in every place. */
static void run_vectors(struct member *member)
{
    static const size_t counts[] = {1, 13, 2003};

    for (int act = 0; act < ACT_COUNT; act++)
        for (int law = 0; law < (act_is_vector(act) ? COUNTS_LAWS : 0); law++)
            for (int places = 0; places < PLACES_COUNT; places++)
                for (int i = 0; i < 3; i++)
                    run_both(member, (struct trial){.act = act, .type = tuttiUint8 + i,
                                                    .op = tuttiSum, .count = counts[i],
                                                    .counts = law, .places = places,
                                                    .root = last_rank_if_rooted(member, act)});
}

static const struct suite suites[] = {
    {"counts", all, run_counts},   {"sizes", sized, run_sizes},
    {"types", few, run_types},     {"operations", sized, run_operations},
    {"roots", all, run_roots},     {"vectors", sized, run_vectors},
};

const struct suite *suite_find(const char *name)
{
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(suites[i].name, name) == 0)
            return &suites[i];
    return NULL;
}

void suite_every_act(struct member *member)
{
    for (int act = 0; act < ACT_COUNT; act++)
        run(member, &(struct trial){.act = act, .type = tuttiFloat32, .op = tuttiSum, .count = 33,
                                    .counts = COUNTS_RAMP, .places = PLACES_GAPS,
                                    .root = member->nranks / 2});
}
