/* SPDX-License-Identifier: Apache-2.0
 * Why the tuner chooses what it chooses: every algorithm of the collective with its price, or the
 * reason why it is out. Tools print this. */
#ifndef TUTTI_TUNER_EXPLAIN_H
#define TUTTI_TUNER_EXPLAIN_H

#include "tuner/tuner.h"

struct tutti_candidate {
    struct tutti_choice choice;   /* with the options that are best by price, or the usual ones */
    double seconds;               /* by price; NAN: its cost is not modelled, or it cannot serve */
    bool can_serve;
    bool is_chosen;               /* exactly one, and it is the first */
    enum tutti_authority by;      /* of the chosen one; else TUTTI_BY_NOBODY */
    char reason[96];              /* "by TUTTI_TUNE, line 3", "1.8 times the lowest price", ... */
};

/* All algorithms of the collective: the chosen one, then those that could serve, by price, then the
 * others. The caller frees the array. Errors as of tutti_tuner_choose; TUTTI_ERR_SYSTEM. */
int tutti_tuner_explain(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                        struct tutti_candidate **ret_candidates, size_t *ret_count);

/* Who made the choice: "by TUTTI_TUNE, line 3", "the lowest price of its size class". `size` of 96
 * is enough. */
void tutti_authority_format(const struct tutti_tuner_view *view,
                            const struct tutti_tuner_query *query, enum tutti_authority by,
                            char *text, size_t size);

/* "hybrid[doublings=3]": options that are not the usual ones in brackets. `size` of 96 is enough.
 */
void tutti_choice_format(const struct tutti_choice *choice, char *text, size_t size);

#endif
