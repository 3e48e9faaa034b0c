/* SPDX-License-Identifier: Apache-2.0
 * A memo of the cheapest choices. The search for the cheapest of all candidates takes about a
 * millisecond for a thousand ranks. All sizes of a class get the same choice, so a program that
 * calls with many sizes needs only a few searches. */
#ifndef TUTTI_TUNER_MEMO_H
#define TUTTI_TUNER_MEMO_H

#include "tuner/tuner.h"

enum { TUTTI_MEMO_ENTRIES = 32 };

/* A memo belongs to one view. Its entries stay valid when the view's policy changes, because prices
 * do not depend on the policy. The caller zeroes the memo before use. Only one thread at a time may
 * use it. */
struct tutti_memo {
    struct tutti_memo_entry {
        bool is_known; /* false: the entry is empty */
        struct tutti_tuner_query query; /* with the size that represents its class */
        struct tutti_choice choice;
    } entries[TUTTI_MEMO_ENTRIES];
};

/* Returns the size that represents the class of `bytes`. It has the four leading bits of `bytes`,
 * and all other bits are 0. A power of two represents itself. Every size is less than an eighth
 * larger than the size that represents it. */
size_t tutti_memo_class_bytes(size_t bytes);

/* Does the same as tutti_candidate_cheapest for the size that represents the query's class.
 * Remembers the result in view->memo, if there is one. Returns false if no algorithm has a
 * price. */
bool tutti_memo_cheapest(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         struct tutti_choice *ret_choice);

#endif
