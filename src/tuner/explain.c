/* SPDX-License-Identifier: Apache-2.0
 * Explanations of a choice (explain.h). This file asks the same authorities again, and computes the
 * prices of the other algorithms. */
#include "tuner/explain.h"

#include "base/result.h"
#include "tuner/candidates.h"
#include "tuner/policy.h"
#include "tuner/price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tutti_choice_format(const struct tutti_choice *choice, char *text, size_t size)
{
    bool is_kernel = choice->protocol != TUTTI_PROTOCOL_STEPS;
    int at = snprintf(text, size, "%s%s%s", choice->algorithm->name, is_kernel ? "/" : "",
                      is_kernel ? tutti_protocol_name(choice->protocol) : "");
    const char *before = "[";

    for (int i = 0; i < TUTTI_OPTION_COUNT; i++) {
        uint32_t value = choice->options.value[i];

        if (value == 0 || value == choice->algorithm->options[i].usual || (size_t)at >= size)
            continue;
        at += snprintf(text + at, size - (size_t)at, "%s%s=%u", before,
                       tutti_option_name((enum tutti_option)i), value);
        before = ",";
    }
    if (*before == ',' && (size_t)at < size)
        snprintf(text + at, size - (size_t)at, "]");
}

/* Writes how the price of a candidate that can serve compares with the lowest one. */
static void say_price(double lowest, struct tutti_candidate *candidate)
{
    if (isnan(candidate->seconds) || !(lowest > 0))
        snprintf(candidate->reason, sizeof candidate->reason,
                 "nothing is known about the machine");
    else
        snprintf(candidate->reason, sizeof candidate->reason, "%.2f times the lowest price",
                 candidate->seconds / lowest);
}

/* Writes the reason why the algorithm is not used, or how its price compares with the lowest
 * one. */
static void say_why_not(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                        double lowest, struct tutti_candidate *candidate)
{
    const struct tutti_algorithm *algorithm = candidate->choice.algorithm;
    const char *why = "has no model of its cost, so it is used only if it is named";

    if (query->is_vector && !algorithm->serves_vector)
        why = "does not serve blocks of different sizes";
    else if (query->is_vector && (algorithm->needs & TUTTI_NEEDS_WINDOW))
        why = "runs calls in pieces, and v-forms cannot be cut";
    else if (algorithm->needs != 0 && !view->is_one_domain)
        why = "needs memory that all ranks share";
    else if (!candidate->can_serve && (algorithm->needs & TUTTI_NEEDS_PEER_STORE))
        why = "needs all ranks in one process";
    else if (!candidate->can_serve && (algorithm->needs & TUTTI_NEEDS_PEER_READ))
        why = "needs ranks that can read each other's memory";
    else if (!candidate->can_serve)
        why = "the window has no room for so many ranks; raise TUTTI_WINDOW_BYTES";
    else if (!tutti_tuner_is_candidate(view, query, algorithm))
        why = "uses the cells of a host, and this machine has none";
    else if (algorithm->needs != 0 && isnan(candidate->seconds))
        why = "shares memory: used if the built-in table, a measured one or the user names it";
    else if (view->machine == NULL)
        why = "nothing is known about the machine";
    snprintf(candidate->reason, sizeof candidate->reason, "%s", why);
    if (candidate->can_serve && !isnan(candidate->seconds) && lowest > 0)
        say_price(lowest, candidate);
}

void tutti_authority_format(const struct tutti_tuner_view *view,
                            const struct tutti_tuner_query *query, enum tutti_authority by,
                            char *text, size_t size)
{
    static const char *const names[TUTTI_POLICY_RULES] = {
        [TUTTI_POLICY_VARIABLE] = "TUTTI_ALGORITHM",
        [TUTTI_POLICY_RULE] = "TUTTI_TUNE",
        [TUTTI_POLICY_TABLE] = "TUTTI_TUNE_TABLE",
    };
    const char *why = "by the built-in table, since its cost is not modeled";

    if (by == TUTTI_BY_PRICE)
        why = "the lowest price of its size class";
    else if (by == TUTTI_BY_HOST)
        why = query->protocols != 0 ? "by the built-in table for GPUs"
                                    : "by the built-in table for ranks that share memory or cores";
    snprintf(text, size, "%s", why);
    for (int i = 0; i < TUTTI_POLICY_RULES; i++)
        if (by == tutti_policy_authority(i))
            snprintf(text, size, "by %s, line %u", names[i],
                     tutti_rules_find(&view->policy->rules[i], view, query)->line);
}

/* Orders the chosen candidate first, then those that can serve, then by price. Those without a
 * price are last. */
static int compare(const void *left, const void *right)
{
    const struct tutti_candidate *a = left, *b = right;

    if (a->is_chosen != b->is_chosen)
        return a->is_chosen ? -1 : 1;
    if (a->can_serve != b->can_serve)
        return a->can_serve ? -1 : 1;
    if (isnan(a->seconds) != isnan(b->seconds))
        return isnan(a->seconds) ? 1 : -1;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return strcmp(a->choice.algorithm->name, b->choice.algorithm->name);
}

static void mark_chosen(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                        const struct tutti_choice *chosen, enum tutti_authority by,
                        struct tutti_candidate *candidate)
{
    candidate->is_chosen = true;
    candidate->by = by;
    candidate->choice = *chosen;
    candidate->seconds = tutti_price(view, query, chosen);
    tutti_authority_format(view, query, by, candidate->reason, sizeof candidate->reason);
}

int tutti_tuner_explain(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                        struct tutti_candidate **ret_candidates, size_t *ret_count)
{
    size_t most = tutti_algorithm_count() + TUTTI_PROTOCOL_COUNT;
    struct tutti_candidate *candidates = calloc(most, sizeof *candidates);
    struct tutti_choice chosen, cheapest;
    enum tutti_authority by;
    double lowest = NAN;
    size_t count = 0;
    int rc;

    if (candidates == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu candidates", most);
    TUTTI_TRY_OR(fail, rc, tutti_tuner_choose(view, query, &chosen, &by));
    if (!tutti_candidate_cheapest(view, query, &cheapest, &lowest))
        lowest = NAN;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        struct tutti_candidate *candidate = &candidates[count];

        if (algorithm->collective != query->collective)
            continue;
        count++;
        candidate->can_serve = tutti_tuner_can_serve(view, query, algorithm);
        candidate->by = TUTTI_BY_NONE;
        tutti_candidate_cheapest_variant(view, query, algorithm, &candidate->choice,
                                         &candidate->seconds);
        if (!tutti_tuner_is_candidate(view, query, algorithm))
            candidate->seconds = NAN;
        say_why_not(view, query, lowest, candidate);
        if (algorithm == chosen.algorithm && chosen.protocol == TUTTI_PROTOCOL_STEPS)
            mark_chosen(view, query, &chosen, by, candidate);
    }
    for (int i = TUTTI_PROTOCOL_STEPS + 1; i < TUTTI_PROTOCOL_COUNT; i++) {
        struct tutti_candidate *candidate = &candidates[count];
        struct tutti_choice choice = {
            .algorithm = tutti_protocol_form((enum tutti_protocol)i, query->collective),
            .protocol = (enum tutti_protocol)i};

        if (choice.algorithm == NULL || !tutti_tuner_can_run(view, query, &choice))
            continue;
        count++;
        candidate->can_serve = true;
        candidate->by = TUTTI_BY_NONE;
        candidate->choice = choice;
        candidate->seconds = tutti_price(view, query, &choice);
        say_price(lowest, candidate);
        if (chosen.protocol == choice.protocol)
            mark_chosen(view, query, &chosen, by, candidate);
    }
    qsort(candidates, count, sizeof *candidates, compare);
    *ret_candidates = candidates;
    *ret_count = count;
    return TUTTI_OK;

fail:
    free(candidates);
    return rc;
}
