/* SPDX-License-Identifier: Apache-2.0
 * The memo of the cheapest choices (memo.h). It is a direct-mapped table, so a new query replaces
 * the older one in its slot. */
#include "tuner/memo.h"

#include "tuner/candidates.h"

size_t tutti_memo_class_bytes(size_t bytes)
{
    unsigned shift = 0;

    while (bytes >> shift >= 16)
        shift++;
    return bytes >> shift << shift;
}

static bool same_query(const struct tutti_tuner_query *a, const struct tutti_tuner_query *b)
{
    return a->collective == b->collective && a->is_vector == b->is_vector && a->root == b->root &&
           a->block_bytes == b->block_bytes && a->is_scaled == b->is_scaled &&
           a->widening == b->widening && a->is_lent == b->is_lent &&
           a->protocols == b->protocols;
}

static size_t slot_of(const struct tutti_tuner_query *query)
{
    uint64_t hash = query->block_bytes * UINT64_C(0x9E3779B97F4A7C15);

    hash = (hash ^ query->root ^ (uint64_t)query->collective << 32 ^
            (uint64_t)query->widening << 40 ^ (uint64_t)query->is_vector << 48) *
           UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 40) % TUTTI_MEMO_ENTRIES;
}

bool tutti_memo_cheapest(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                         struct tutti_choice *ret_choice)
{
    struct tutti_tuner_query of_class = *query;
    struct tutti_memo_entry *entry = NULL;
    double ignored;

    of_class.block_bytes = tutti_memo_class_bytes(query->block_bytes);
    if (view->memo != NULL)
        entry = &view->memo->entries[slot_of(&of_class)];
    if (entry != NULL && entry->is_known && same_query(&entry->query, &of_class)) {
        *ret_choice = entry->choice;
        return true;
    }
    if (!tutti_candidate_cheapest(view, &of_class, ret_choice, &ignored))
        return false;
    if (entry != NULL)
        *entry = (struct tutti_memo_entry){.is_known = true, .query = of_class,
                                           .choice = *ret_choice};
    return true;
}
