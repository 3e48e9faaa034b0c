/* SPDX-License-Identifier: Apache-2.0
 * Makes the keys by which calls are looked up in caches. */
#include "queue/calls.h"

/* Returns `hash` with `value` mixed into it. */
static uint64_t mix_into(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Hashes the counts and displacements of a v-form. Equal hashes do not prove equal counts, so users
 * of the key must compare these too. */
static uint64_t hash_counts(const struct tutti_call *call, int nranks)
{
    uint64_t hash = mix_into(0, call->count);

    for (int i = 0; i < TUTTI_CALL_ARRAYS; i++) {
        const size_t *array = tutti_call_array(call, i);

        hash = mix_into(hash, (uint64_t)i + 1);
        for (int rank = 0; array != NULL && rank < nranks; rank++)
            hash = mix_into(hash, array[rank]);
    }
    return hash;
}

struct tutti_calls_key tutti_calls_key_of(const struct tutti_call *call, int nranks,
                                          bool is_in_place)
{
    uint8_t op = call->is_average         ? TUTTI_OP_AVERAGE
                 : call->is_premultiplied ? TUTTI_OP_PREMULTIPLIED
                                          : (uint8_t)call->op;
    struct tutti_calls_key key = tutti_calls_key(call->kind, (uint8_t)call->collective,
                                                 (uint8_t)call->type, op, call->root, call->count,
                                                 is_in_place);

    if (tutti_call_is_vector(call))
        key.count = hash_counts(call, nranks);
    return key;
}
