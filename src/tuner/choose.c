/* SPDX-License-Identifier: Apache-2.0
 * The choice of an algorithm. This file asks one authority after the other (tuner.h). */
#include "tuner/tuner.h"

#include "base/result.h"
#include "tuner/builtin.h"
#include "tuner/memo.h"
#include "tuner/policy.h"
#include "tuner/price.h"

size_t tutti_tuner_bytes(const struct tutti_tuner_view *view,
                         const struct tutti_tuner_query *query)
{
    uint32_t inputs = tutti_input_blocks(query->collective, view->nranks);
    uint32_t outputs = tutti_output_blocks(query->collective, view->nranks);

    return query->block_bytes * (inputs > outputs ? inputs : outputs);
}

bool tutti_tuner_can_serve(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_algorithm *algorithm)
{
    uint32_t needs = algorithm->needs;

    if (query->protocols != 0 && (query->protocols >> TUTTI_PROTOCOL_STEPS & 1) == 0)
        return false;
    if (query->is_vector && !algorithm->serves_vector)
        return false;
    /* Calls through windows run in pieces, and v-forms cannot be cut. */
    if (query->is_vector && (needs & TUTTI_NEEDS_WINDOW))
        return false;
    if (needs != 0 && !view->is_one_domain)
        return false;
    if ((needs & TUTTI_NEEDS_PEER_READ) && !view->all_read && !view->all_store)
        return false;
    if ((needs & TUTTI_NEEDS_PEER_STORE) && !view->all_store && !query->is_lent)
        return false;
    /* A window half must have room for a slot of one cache line (64 bytes) per rank. */
    return !(needs & TUTTI_NEEDS_WINDOW) || view->half_bytes / view->nranks >= 64;
}

bool tutti_tuner_can_run(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         const struct tutti_choice *choice)
{
    if (choice->protocol == TUTTI_PROTOCOL_STEPS)
        return tutti_tuner_can_serve(view, query, choice->algorithm);
    return (query->protocols >> choice->protocol & 1) != 0 &&
           choice->algorithm == tutti_protocol_form(choice->protocol, query->collective);
}

static bool has_cells(const struct tutti_tuner_view *view)
{
    return view->places != NULL && view->places->cell != NULL;
}

bool tutti_tuner_is_candidate(const struct tutti_tuner_view *view,
                              const struct tutti_tuner_query *query,
                              const struct tutti_algorithm *algorithm)
{
    if ((algorithm->uses & TUTTI_USES_CELLS) && !has_cells(view))
        return false;
    return algorithm->collective == query->collective &&
           tutti_tuner_can_serve(view, query, algorithm);
}

/* The price of a choice, and the part of it that the traffic between cells causes. */
struct bill {
    double seconds, bridge;
};

/* Prices a choice, and prices it again on a machine whose bridges between cells cost nothing. */
static struct bill bill_of(const struct tutti_tuner_view *view,
                           const struct tutti_tuner_query *query,
                           const struct tutti_choice *choice)
{
    struct tutti_machine unbounded = *view->machine;
    struct tutti_tuner_view without = *view;
    struct bill bill = {.seconds = tutti_price(view, query, choice)};

    unbounded.bridge_latency_s = unbounded.bridge_bytes_per_s = 0;
    without.machine = &unbounded;
    bill.bridge = bill.seconds - tutti_price(&without, query, choice);
    return bill;
}

/* Rows of the built-in table were measured on hosts without cells. An algorithm that uses cells
 * replaces the row's choice `than` if it saves more seconds between cells than it costs elsewhere.
 * A lower price elsewhere does not count, because there the measured row is more reliable than a
 * price. On a crowded host the row always stays. */
static bool find_cells(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       const struct tutti_choice *than, struct tutti_choice *ret_choice)
{
    struct tutti_choice found = {.algorithm = NULL};
    struct bill flat; /* of `than` */
    double most = 0;

    if (!has_cells(view) || view->machine == NULL || tutti_builtin_is_crowded(view))
        return false;
    flat = bill_of(view, query, than);
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        struct tutti_choice choice = {.algorithm = tutti_algorithm(i)};
        struct bill bill;
        double cost_elsewhere, saved;

        if (!(choice.algorithm->uses & TUTTI_USES_CELLS) ||
            !tutti_tuner_is_candidate(view, query, choice.algorithm))
            continue;
        bill = bill_of(view, query, &choice);
        cost_elsewhere = (bill.seconds - bill.bridge) - (flat.seconds - flat.bridge);
        saved = flat.bridge - bill.bridge - (cost_elsewhere > 0 ? cost_elsewhere : 0);
        if (saved > most) {
            most = saved;
            found = choice;
        }
    }
    if (found.algorithm != NULL)
        *ret_choice = found;
    return found.algorithm != NULL;
}

/* Asks the policy. TUTTI_BY_NONE: the policy has no rule for the call. */
static enum tutti_authority ask_policy(const struct tutti_tuner_view *view,
                                       const struct tutti_tuner_query *query,
                                       struct tutti_choice *ret_choice)
{
    for (int i = 0; view->policy != NULL && i < TUTTI_POLICY_RULES; i++) {
        const struct tutti_rule *rule = tutti_rules_find(&view->policy->rules[i], view, query);

        if (rule != NULL) {
            *ret_choice = rule->choice;
            return tutti_policy_authority(i);
        }
    }
    return TUTTI_BY_NONE;
}

/* Asks the authorities in order. TUTTI_BY_NONE: none of them names an algorithm. */
static enum tutti_authority ask_all(const struct tutti_tuner_view *view,
                                    const struct tutti_tuner_query *query,
                                    struct tutti_choice *ret_choice)
{
    enum tutti_authority by = ask_policy(view, query, ret_choice);

    if (by != TUTTI_BY_NONE)
        return by;
    if (query->protocols != 0) {
        if (view->is_even && tutti_builtin_find_protocol(view, query, ret_choice))
            return TUTTI_BY_HOST;
    } else if (tutti_builtin_find(view, query, true, ret_choice)) {
        struct tutti_choice of_host = *ret_choice;

        return find_cells(view, query, &of_host, ret_choice) ? TUTTI_BY_PRICE : TUTTI_BY_HOST;
    }
    if (tutti_memo_cheapest(view, query, ret_choice))
        return TUTTI_BY_PRICE;
    if (tutti_builtin_find_protocol(view, query, ret_choice))
        return TUTTI_BY_DEFAULT;
    return tutti_builtin_find(view, query, false, ret_choice) ? TUTTI_BY_DEFAULT : TUTTI_BY_NONE;
}

int tutti_tuner_choose(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       struct tutti_choice *ret_choice, enum tutti_authority *ret_authority)
{
    struct tutti_choice choice = {.algorithm = NULL};
    enum tutti_authority by = ask_all(view, query, &choice);

    if (by == TUTTI_BY_NONE)
        return tutti_fail(TUTTI_ERR_INTERNAL, "no algorithm serves %s over %u ranks",
                          tutti_collective_name(query->collective), view->nranks);
    TUTTI_TRY(tutti_algorithm_options(choice.algorithm, &choice.options, &choice.options));
    *ret_choice = choice;
    if (ret_authority != NULL)
        *ret_authority = by;
    return TUTTI_OK;
}
