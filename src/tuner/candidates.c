/* SPDX-License-Identifier: Apache-2.0
 * The search for the cheapest choice, and the option values that are worth trying.
 *
 * All values of doublings are tried, and powers of two for all other options. The best number of
 * segments of a pipeline is sqrt((h - 1) n beta / alpha), for h hops, n bytes, alpha seconds per
 * message and beta seconds per byte. Some power of two is within a factor of sqrt(2) of this
 * number. It costs at most 6 % more in the terms that depend on the number of segments. */
#include "tuner/candidates.h"

#include "tuner/price.h"

#include <math.h>

/* True if the difference is more than the rounding of sums. If costs are equal, the first candidate
 * stays, which has the usual options or is the earlier algorithm. */
static bool is_cheaper(double seconds, double than)
{
    return seconds < than * (1 - 1e-9);
}

/* Returns the largest useful value of an option. A tree node has fewer children, a round fewer
 * peers, and a message fewer blocks than there are ranks. */
static uint32_t most_of(const struct tutti_variants *variants, enum tutti_option option)
{
    uint32_t most = variants->algorithm->options[option].most, bound = UINT32_MAX;

    if (option == TUTTI_RADIX || option == TUTTI_WINDOW || option == TUTTI_AGGREGATE)
        bound = variants->nranks;
    if (option == TUTTI_DOUBLINGS)
        for (bound = 1; bound < 32 && (UINT32_C(1) << bound) < variants->nranks;)
            bound++;
    return most < bound ? most : bound;
}

/* Returns the value after `value`. If `value` is 0, returns the first one, and after the last one
 * returns 0. The largest value comes last even if it is not a power of two, because it is special.
 * It means all peers at a time, or all other ranks as children. */
static uint32_t value_after(const struct tutti_variants *variants, enum tutti_option option,
                            uint32_t value)
{
    uint32_t least = variants->algorithm->options[option].least;
    uint32_t most = most_of(variants, option), power = 1;

    least += least == 0;
    if (value == 0)
        return least <= most ? least : 0;
    if (value >= most)
        return 0;
    if (option == TUTTI_DOUBLINGS)
        return value + 1;
    while (power <= value && power <= most / 2)
        power *= 2;
    return power > value ? power : most;
}

/* Advances like an odometer: the last option changes fastest. */
static bool advance(struct tutti_variants *variants)
{
    for (int option = TUTTI_OPTION_COUNT - 1; option >= 0; option--) {
        uint32_t next = value_after(variants, (enum tutti_option)option, variants->value[option]);

        if (next != 0) {
            variants->value[option] = next;
            return true;
        }
        variants->value[option] = value_after(variants, (enum tutti_option)option, 0);
    }
    return false;
}

bool tutti_variants_next(struct tutti_variants *variants, struct tutti_choice *ret_choice)
{
    const struct tutti_algorithm *algorithm = variants->algorithm;

    *ret_choice = (struct tutti_choice){.algorithm = algorithm};
    if (!variants->has_begun) {
        variants->has_begun = true;
        for (int option = 0; option < TUTTI_OPTION_COUNT; option++)
            ret_choice->options.value[option] = algorithm->options[option].usual;
        return true;
    }
    if (!advance(variants))
        return false;
    for (int option = 0; option < TUTTI_OPTION_COUNT; option++)
        ret_choice->options.value[option] = variants->value[option] != 0
                                                ? variants->value[option]
                                                : algorithm->options[option].usual;
    return true;
}

void tutti_candidate_cheapest_variant(const struct tutti_tuner_view *view,
                                      const struct tutti_tuner_query *query,
                                      const struct tutti_algorithm *algorithm,
                                      struct tutti_choice *ret_choice, double *ret_seconds)
{
    struct tutti_variants variants = {.algorithm = algorithm, .nranks = view->nranks};
    struct tutti_choice choice;

    tutti_variants_next(&variants, ret_choice);
    *ret_seconds = tutti_price(view, query, ret_choice);
    while (!isnan(*ret_seconds) && tutti_variants_next(&variants, &choice)) {
        double seconds = tutti_price(view, query, &choice);

        if (is_cheaper(seconds, *ret_seconds)) {
            *ret_choice = choice;
            *ret_seconds = seconds;
        }
    }
}

/* If two algorithms have equal cost, the one that does not depend on places is better. */
static bool is_better(const struct tutti_algorithm *algorithm, double seconds,
                      const struct tutti_choice *than, double than_seconds)
{
    if (is_cheaper(seconds, than_seconds))
        return true;
    return than->algorithm != NULL && than->algorithm->uses != 0 && algorithm->uses == 0 &&
           !isnan(seconds) && !is_cheaper(than_seconds, seconds);
}

bool tutti_candidate_cheapest(const struct tutti_tuner_view *view,
                              const struct tutti_tuner_query *query,
                              struct tutti_choice *ret_choice, double *ret_seconds)
{
    *ret_choice = (struct tutti_choice){.algorithm = NULL};
    *ret_seconds = INFINITY;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        struct tutti_choice choice;
        double seconds;

        if (!tutti_tuner_is_candidate(view, query, algorithm))
            continue;
        tutti_candidate_cheapest_variant(view, query, algorithm, &choice, &seconds);
        if (is_better(algorithm, seconds, ret_choice, *ret_seconds)) {
            *ret_choice = choice;
            *ret_seconds = seconds;
        }
    }
    for (int i = TUTTI_PROTOCOL_STEPS + 1; i < TUTTI_PROTOCOL_COUNT; i++) {
        struct tutti_choice choice = {
            .algorithm = tutti_protocol_form((enum tutti_protocol)i, query->collective),
            .protocol = (enum tutti_protocol)i};
        double seconds;

        if (choice.algorithm == NULL || !tutti_tuner_can_run(view, query, &choice))
            continue;
        seconds = tutti_price(view, query, &choice);
        if (is_cheaper(seconds, *ret_seconds)) {
            *ret_choice = choice;
            *ret_seconds = seconds;
        }
    }
    return *ret_seconds < INFINITY;
}
