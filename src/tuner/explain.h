/* SPDX-License-Identifier: Apache-2.0
 * Explanations of the tuner's choice. An explanation lists every algorithm of the collective with
 * its price, or with the reason why it is not used. Tools print such lists. */
#ifndef TUTTI_TUNER_EXPLAIN_H
#define TUTTI_TUNER_EXPLAIN_H

#include "tuner/tuner.h"

struct tutti_candidate {
    struct tutti_choice choice;   /* the options are the cheapest ones, or the usual ones */
    double seconds;               /* the price; NAN: there is none */
    bool can_serve;
    bool is_chosen;               /* true for exactly one candidate, the first */
    enum tutti_authority by;      /* of the choice; TUTTI_BY_NONE if it is not chosen */
    char reason[96];              /* "by TUTTI_TUNE, line 3", "1.8 times the lowest price", ... */
};

/* Lists all algorithms of the collective. The chosen one comes first, then those that could serve,
 * by price, then the others. The caller frees the array. Returns the errors of tutti_tuner_choose.
 * TUTTI_ERR_SYSTEM: there is no memory. */
int tutti_tuner_explain(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                        struct tutti_candidate **ret_candidates, size_t *ret_count);

/* Writes the authority that decided, such as "by TUTTI_TUNE, line 3" or "the lowest price of its
 * size class". `by` is the authority that tutti_tuner_choose returned for `query`. A `size` of 96
 * bytes is enough. */
void tutti_authority_format(const struct tutti_tuner_view *view,
                            const struct tutti_tuner_query *query, enum tutti_authority by,
                            char *text, size_t size);

/* Writes a choice, such as "hybrid[doublings=3]". The brackets contain the options that do not have
 * their usual values. A `size` of 96 bytes is enough. */
void tutti_choice_format(const struct tutti_choice *choice, char *text, size_t size);

#endif
