/* SPDX-License-Identifier: Apache-2.0
 * What is worth trying: for one algorithm, all option values that can make a difference. */
#ifndef TUTTI_TUNER_CANDIDATES_H
#define TUTTI_TUNER_CANDIDATES_H

#include "tuner/tuner.h"

/* Walks through the combinations of an algorithm's options. */
struct tutti_variants {
    const struct tutti_algorithm *algorithm; /* given, with nranks; the rest starts zeroed */
    uint32_t nranks;
    bool has_begun;
    uint32_t value[TUTTI_OPTION_COUNT];
};

/* The next combination; the first one has all usual values. False: there are no more. */
bool tutti_variants_next(struct tutti_variants *variants, struct tutti_choice *ret_choice);

/* The cheapest combination; *ret_seconds is NAN, and the options are the usual ones, when the
 * algorithm has no price. */
void tutti_cheapest_variant(const struct tutti_tuner_view *view,
                            const struct tutti_tuner_query *query,
                            const struct tutti_algorithm *algorithm,
                            struct tutti_choice *ret_choice, double *ret_seconds);

/* The cheapest of all algorithms that can serve the call. False: none has a price. */
bool tutti_cheapest(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                    struct tutti_choice *ret_choice, double *ret_seconds);

#endif
