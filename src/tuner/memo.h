/* SPDX-License-Identifier: Apache-2.0
 * A memo of the cheapest choices. To price all candidates takes about a millisecond for a thousand
 * ranks. All sizes of a class have the same answer, so a program that calls with many sizes needs
 * only a few searches. */
#ifndef TUTTI_TUNER_MEMO_H
#define TUTTI_TUNER_MEMO_H

#include "tuner/tuner.h"

enum { TUTTI_MEMO_ENTRIES = 32 };

/* Belongs to one view. Entries stay valid when the view's policy changes, because prices do not
 * depend on it. Zero it before use. One thread at a time. */
struct tutti_memo {
    struct tutti_memo_entry {
        bool is_known;
        struct tutti_tuner_query query;
        struct tutti_choice choice;
    } entries[TUTTI_MEMO_ENTRIES];
};

/* The size that represents the class of `bytes`: its four leading bits, the rest 0. A power of two
 * represents itself. Every size is less than an eighth larger than the one that represents it. */
size_t tutti_memo_class(size_t bytes);

/* As tutti_cheapest for the size that represents the query's class, but remembered in view->memo,
 * if there is one. Returns false if no algorithm has a price. */
bool tutti_memo_cheapest(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         struct tutti_choice *ret_choice);

#endif
