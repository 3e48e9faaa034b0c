/* SPDX-License-Identifier: Apache-2.0
 * What was the cheapest before. Pricing everything takes about a millisecond for a thousand ranks;
 * sizes of a class have one answer, so a program that calls with many sizes asks only a few times.
 */
#ifndef TUTTI_TUNER_MEMO_H
#define TUTTI_TUNER_MEMO_H

#include "tuner/tuner.h"

enum { TUTTI_MEMO_ENTRIES = 32 };

/* For one view, whose policy may change. Zeroed in the beginning; one thread at a time. */
struct tutti_memo {
    struct tutti_memo_entry {
        bool is_known;
        struct tutti_tuner_query query;
        struct tutti_choice choice;
    } entries[TUTTI_MEMO_ENTRIES];
};

/* The size that stands for all of its class: its four leading bits. So powers of two stand for
 * themselves, and no size for one that is an eighth larger. */
size_t tutti_memo_class(size_t bytes);

/* tutti_cheapest of the size class. */
bool tutti_memo_cheapest(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         struct tutti_choice *ret_choice);

#endif
