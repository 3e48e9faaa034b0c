/* SPDX-License-Identifier: Apache-2.0
 * Stores expressions in the exact or the hashed form (expr.h).
 */
#include "schedule/check/expr.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A value other than TUTTI_CHECK_UNDEFINED. */
struct node {
    uint64_t order;                /* hash of the expression */
    uint32_t contributors, lowest; /* the number of its ranks, and the lowest of them */
};

/* Exact form: the operands of a reduction, by which an equal reduction is found again. */
struct key {
    uint32_t a, b, is_ordered;
};

struct tutti_check_exprs {
    uint32_t nranks;
    bool is_hashed;
    uint32_t nwords;     /* words of `sets` per node: a bit per rank, or, hashed, two sums */
    uint32_t nnodes, capacity;
    /* Value v is item v - 1 of each array; the leaves come first. */
    struct node *nodes;
    uint64_t *sets;
    struct key *keys;    /* exact form; leaves have none */
    uint32_t *table;     /* exact form: hash table with open addressing: a value, or 0 if free */
    uint32_t table_size; /* a power of two */
    /* Hashed form: two sums over the first n ranks, for each n <= nranks. Exact form: zeros. */
    uint64_t *sums;
};

/* The finalizer of SplitMix64 (Steele et al. 2014). */
uint64_t tutti_check_mix(uint64_t number)
{
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

static const struct node *node_of(const struct tutti_check_exprs *exprs, uint32_t value)
{
    return &exprs->nodes[value - 1];
}

static uint64_t *set_of(const struct tutti_check_exprs *exprs, uint32_t value)
{
    return exprs->sets + (size_t)(value - 1) * exprs->nwords;
}

/* Returns the slot of the table that has the value with this key, or that is free for it. */
static uint32_t *find_slot(struct tutti_check_exprs *exprs, const struct key *key)
{
    uint64_t hash = tutti_check_mix(((uint64_t)key->a << 32 | key->b) + key->is_ordered);
    uint32_t at = (uint32_t)hash & (exprs->table_size - 1);

    for (;; at = (at + 1) & (exprs->table_size - 1)) {
        const struct key *other;

        if (exprs->table[at] == 0)
            return &exprs->table[at];
        other = &exprs->keys[exprs->table[at] - 1];
        if (other->a == key->a && other->b == key->b && other->is_ordered == key->is_ordered)
            return &exprs->table[at];
    }
}

/* Make the keys and the table fit the capacity. */
static int grow_table(struct tutti_check_exprs *exprs)
{
    struct key *keys = realloc(exprs->keys, exprs->capacity * sizeof(*keys));
    uint32_t *table = calloc((size_t)exprs->capacity * 2, sizeof(*table));

    if (keys != NULL)
        exprs->keys = keys;
    if (keys == NULL || table == NULL) {
        free(table);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule: %u values",
                          exprs->capacity);
    }
    free(exprs->table);
    exprs->table = table;
    exprs->table_size = exprs->capacity * 2;
    for (uint32_t i = exprs->nranks; i < exprs->nnodes; i++)
        *find_slot(exprs, &exprs->keys[i]) = i + 1;
    return TUTTI_OK;
}

/* `capacity` is a power of two. */
static int grow(struct tutti_check_exprs *exprs, uint32_t capacity)
{
    struct node *nodes = realloc(exprs->nodes, capacity * sizeof(*nodes));
    uint64_t *sets;

    if (nodes != NULL)
        exprs->nodes = nodes;
    sets = realloc(exprs->sets, (size_t)capacity * exprs->nwords * sizeof(*sets));
    if (sets != NULL)
        exprs->sets = sets;
    if (nodes == NULL || sets == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule: %u values", capacity);
    exprs->capacity = capacity;
    return exprs->is_hashed ? TUTTI_OK : grow_table(exprs);
}

int tutti_check_exprs_create(uint32_t nranks, bool is_hashed, struct tutti_check_exprs **ret_exprs)
{
    struct tutti_check_exprs *exprs = calloc(1, sizeof(*exprs));
    uint32_t capacity = 256;

    if (exprs == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule");
    exprs->nranks = nranks;
    exprs->is_hashed = is_hashed;
    exprs->nwords = is_hashed ? 2 : (nranks + 63) / 64;
    *ret_exprs = exprs;
    while (capacity < 2 * nranks)
        capacity *= 2;
    TUTTI_TRY(grow(exprs, capacity));
    exprs->sums = calloc(2 * ((size_t)nranks + 1), sizeof(*exprs->sums));
    if (exprs->sums == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule");

    memset(exprs->sets, 0, (size_t)nranks * exprs->nwords * sizeof(*exprs->sets));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint64_t *set = set_of(exprs, tutti_check_leaf(rank)), *sums;

        exprs->nodes[rank] = (struct node){.order = tutti_check_mix(rank), .contributors = 1,
                                           .lowest = rank};
        if (is_hashed) {
            /* The two random numbers of a rank; their seeds differ from those of the orders. */
            set[0] = tutti_check_mix(rank * UINT64_C(2) + (UINT64_C(1) << 40));
            set[1] = tutti_check_mix(set[0] ^ 0xd1b54a32d192ed03u);
            sums = exprs->sums + 2 * (size_t)rank;
            sums[2] = sums[0] + set[0];
            sums[3] = sums[1] + set[1];
        } else {
            set[rank / 64] = 1ull << rank % 64;
        }
    }
    exprs->nnodes = nranks;
    return TUTTI_OK;
}

void tutti_check_exprs_destroy(struct tutti_check_exprs *exprs)
{
    if (exprs == NULL)
        return;
    free(exprs->nodes);
    free(exprs->sets);
    free(exprs->sums);
    free(exprs->keys);
    free(exprs->table);
    free(exprs);
}

bool tutti_check_is_same(const struct tutti_check_exprs *exprs, uint32_t a, uint32_t b)
{
    return a == b || (exprs->is_hashed && node_of(exprs, a)->order == node_of(exprs, b)->order);
}

bool tutti_check_is_sum(const struct tutti_check_exprs *exprs, uint32_t value, uint32_t count)
{
    const uint64_t *set = set_of(exprs, value), *sums = exprs->sums + 2 * (size_t)count;

    /* In the exact form nothing is counted twice, because combine is only called without common
     * ranks. */
    if (node_of(exprs, value)->contributors != count)
        return false;
    return exprs->is_hashed ? set[0] == sums[0] && set[1] == sums[1]
                            : tutti_check_missing(exprs, value, count) == NONE;
}

uint32_t tutti_check_contributors(const struct tutti_check_exprs *exprs, uint32_t value)
{
    return node_of(exprs, value)->contributors;
}

uint32_t tutti_check_lowest(const struct tutti_check_exprs *exprs, uint32_t value)
{
    return node_of(exprs, value)->lowest;
}

uint64_t tutti_check_order_of(const struct tutti_check_exprs *exprs, uint32_t value)
{
    return node_of(exprs, value)->order;
}

uint32_t tutti_check_missing(const struct tutti_check_exprs *exprs, uint32_t value, uint32_t count)
{
    const uint64_t *set = set_of(exprs, value);

    if (exprs->is_hashed) /* sums do not tell the ranks of a set */
        return NONE;
    for (uint32_t w = 0; w * 64 < count; w++) {
        uint32_t left = count - w * 64;
        uint64_t missing = ~set[w] & (left < 64 ? (UINT64_C(1) << left) - 1 : UINT64_MAX);

        if (missing != 0)
            return w * 64 + (uint32_t)__builtin_ctzll(missing);
    }
    return NONE;
}

uint32_t tutti_check_common(const struct tutti_check_exprs *exprs, uint32_t a, uint32_t b)
{
    const uint64_t *set_a = set_of(exprs, a), *set_b = set_of(exprs, b);

    if (exprs->is_hashed) /* sums do not tell the ranks of a set */
        return NONE;
    for (uint32_t w = 0; w < exprs->nwords; w++)
        if ((set_a[w] & set_b[w]) != 0)
            return w * 64 + (uint32_t)__builtin_ctzll(set_a[w] & set_b[w]);
    return NONE;
}

static void add_node(struct tutti_check_exprs *exprs, const struct key *key)
{
    const struct node *a = node_of(exprs, key->a), *b = node_of(exprs, key->b);
    const uint64_t *set_a = set_of(exprs, key->a), *set_b = set_of(exprs, key->b);
    uint64_t first = a->order, second = b->order, *set;

    if (!key->is_ordered && first > second) {
        first = b->order;
        second = a->order;
    }
    exprs->nodes[exprs->nnodes++] = (struct node){
        .order = tutti_check_mix(tutti_check_mix(first + key->is_ordered) ^ second),
        .contributors = a->contributors + b->contributors,
        .lowest = a->lowest < b->lowest ? a->lowest : b->lowest,
    };
    set = set_of(exprs, exprs->nnodes);
    for (uint32_t w = 0; w < exprs->nwords; w++)
        set[w] = exprs->is_hashed ? set_a[w] + set_b[w] : set_a[w] | set_b[w];
}

int tutti_check_combine(struct tutti_check_exprs *exprs, uint32_t a, uint32_t b, bool is_ordered,
                        uint32_t *ret_value)
{
    bool is_swapped = !is_ordered && a > b;
    struct key key = {.a = is_swapped ? b : a, .b = is_swapped ? a : b, .is_ordered = is_ordered};
    uint32_t *slot;

    if (exprs->nnodes == exprs->capacity)
        TUTTI_TRY(grow(exprs, exprs->capacity * 2));
    if (exprs->is_hashed) {
        add_node(exprs, &key);
        *ret_value = exprs->nnodes;
        return TUTTI_OK;
    }
    slot = find_slot(exprs, &key);
    if (*slot == 0) {
        exprs->keys[exprs->nnodes] = key;
        add_node(exprs, &key);
        *slot = exprs->nnodes;
    }
    *ret_value = *slot;
    return TUTTI_OK;
}
