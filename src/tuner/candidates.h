/* SPDX-License-Identifier: Apache-2.0
 * Candidates: the option values of an algorithm that are worth trying, and the cheapest of them. */
#ifndef TUTTI_TUNER_CANDIDATES_H
#define TUTTI_TUNER_CANDIDATES_H

#include "tuner/tuner.h"

/* Iterator over the combinations of an algorithm's options. The caller sets `algorithm` and
 * `nranks`, and zeroes the rest. */
struct tutti_variants {
    const struct tutti_algorithm *algorithm;
    uint32_t nranks;
    bool has_begun;                     /* the usual values were given */
    uint32_t value[TUTTI_OPTION_COUNT]; /* of the last combination; 0: the usual value */
};

/* Gives the next combination; the first one has all usual values. Returns false if there are no
 * more. */
bool tutti_variants_next(struct tutti_variants *variants, struct tutti_choice *ret_choice);

/* Finds the cheapest combination of an algorithm's options, and its price in seconds. Without a
 * machine the price is NAN, and the options are the usual ones. */
void tutti_candidate_cheapest_variant(const struct tutti_tuner_view *view,
                                      const struct tutti_tuner_query *query,
                                      const struct tutti_algorithm *algorithm,
                                      struct tutti_choice *ret_choice, double *ret_seconds);

/* Finds the cheapest of all candidates for the call (tutti_tuner_is_candidate), and its price in
 * seconds. Returns false if no candidate has a finite price, for example without a machine. */
bool tutti_candidate_cheapest(const struct tutti_tuner_view *view,
                              const struct tutti_tuner_query *query,
                              struct tutti_choice *ret_choice, double *ret_seconds);

#endif
