/* SPDX-License-Identifier: Apache-2.0
 * What a chunk holds, as an expression: leaves are the ranks' input chunks, other
 * nodes are reductions. Equal expressions are stored once (hash consing), so
 * comparing two results is comparing two numbers. */
#include "schedule/check_model.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t a, b, is_ordered;
    uint32_t chunk, contributors;
};

struct check_exprs {
    uint32_t nranks, chunks, nwords;
    uint32_t nnodes, capacity;
    struct node *nodes; /* without the leaves, which are computed from their numbers */
    uint64_t *sets;     /* per node: the ranks in it */
    uint32_t *table;    /* open addressing; node + 1, 0: free */
    uint32_t table_size;
};

int tutti_check_exprs_create(uint32_t nranks, uint32_t chunks, struct check_exprs **ret_exprs)
{
    struct check_exprs *exprs = calloc(1, sizeof(*exprs));

    if (exprs == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule");
    exprs->nranks = nranks;
    exprs->chunks = chunks;
    exprs->nwords = (nranks + 63) / 64;
    *ret_exprs = exprs;
    return TUTTI_OK;
}

void tutti_check_exprs_destroy(struct check_exprs *exprs)
{
    if (exprs == NULL)
        return;
    free(exprs->nodes);
    free(exprs->sets);
    free(exprs->table);
    free(exprs);
}

static uint32_t first_node(const struct check_exprs *exprs)
{
    return 1 + exprs->nranks * exprs->chunks;
}

uint32_t tutti_check_leaf(const struct check_exprs *exprs, uint32_t rank, uint32_t chunk)
{
    return 1 + rank * exprs->chunks + chunk;
}

static bool is_leaf(const struct check_exprs *exprs, uint32_t value)
{
    return value < first_node(exprs);
}

uint32_t tutti_check_chunk_of(const struct check_exprs *exprs, uint32_t value)
{
    return is_leaf(exprs, value) ? (value - 1) % exprs->chunks
                                 : exprs->nodes[value - first_node(exprs)].chunk;
}

uint32_t tutti_check_contributors(const struct check_exprs *exprs, uint32_t value)
{
    return is_leaf(exprs, value) ? 1 : exprs->nodes[value - first_node(exprs)].contributors;
}

/* Word `word` of the set of ranks in it. */
static uint64_t set_word(const struct check_exprs *exprs, uint32_t value, uint32_t word)
{
    uint32_t rank;

    if (!is_leaf(exprs, value))
        return exprs->sets[(size_t)(value - first_node(exprs)) * exprs->nwords + word];
    rank = (value - 1) / exprs->chunks;
    return rank / 64 == word ? 1ull << rank % 64 : 0;
}

static uint32_t lowest_bit(const struct check_exprs *exprs, uint32_t a, uint32_t b, bool invert)
{
    for (uint32_t w = 0; w < exprs->nwords; w++) {
        uint64_t bits = set_word(exprs, a, w) & set_word(exprs, b, w);

        bits = invert ? ~bits : bits;
        if (bits != 0)
            return w * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return TUTTI_CHECK_NONE;
}

uint32_t tutti_check_lowest(const struct check_exprs *exprs, uint32_t value)
{
    return lowest_bit(exprs, value, value, false);
}

uint32_t tutti_check_missing(const struct check_exprs *exprs, uint32_t value)
{
    return lowest_bit(exprs, value, value, true);
}

uint32_t tutti_check_common(const struct check_exprs *exprs, uint32_t a, uint32_t b)
{
    return lowest_bit(exprs, a, b, false);
}

static uint32_t hash(const struct node *node)
{
    uint64_t mixed = (((uint64_t)node->a << 32 | node->b) + node->is_ordered) * 0x9e3779b97f4a7c15u;

    return (uint32_t)(mixed >> 32);
}

/* The slot of `node` in the table, or the free one where it belongs. */
static uint32_t *find_slot(struct check_exprs *exprs, const struct node *node)
{
    uint32_t at = hash(node) & (exprs->table_size - 1);

    for (;; at = (at + 1) & (exprs->table_size - 1)) {
        const struct node *other;

        if (exprs->table[at] == 0)
            return &exprs->table[at];
        other = &exprs->nodes[exprs->table[at] - 1];
        if (other->a == node->a && other->b == node->b && other->is_ordered == node->is_ordered)
            return &exprs->table[at];
    }
}

static int grow(struct check_exprs *exprs)
{
    uint32_t capacity = exprs->capacity == 0 ? 256 : exprs->capacity * 2;
    struct node *nodes = realloc(exprs->nodes, capacity * sizeof(*nodes));
    uint64_t *sets;
    uint32_t *table;

    if (nodes != NULL)
        exprs->nodes = nodes;
    sets = realloc(exprs->sets, (size_t)capacity * exprs->nwords * sizeof(*sets));
    if (sets != NULL)
        exprs->sets = sets;
    table = calloc((size_t)capacity * 2, sizeof(*table));
    if (nodes == NULL || sets == NULL || table == NULL) {
        free(table);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to check a schedule: %u values", capacity);
    }
    free(exprs->table);
    exprs->table = table;
    exprs->table_size = capacity * 2;
    exprs->capacity = capacity;
    for (uint32_t i = 0; i < exprs->nnodes; i++)
        *find_slot(exprs, &exprs->nodes[i]) = i + 1;
    return TUTTI_OK;
}

int tutti_check_combine(struct check_exprs *exprs, uint32_t a, uint32_t b, bool is_ordered,
                        uint32_t *ret_value)
{
    bool is_swapped = !is_ordered && a > b;
    struct node node = {.a = is_swapped ? b : a, .b = is_swapped ? a : b, .is_ordered = is_ordered};
    uint32_t *slot;

    if (exprs->nnodes == exprs->capacity)
        TUTTI_TRY(grow(exprs));
    slot = find_slot(exprs, &node);
    if (*slot == 0) {
        uint64_t *set = exprs->sets + (size_t)exprs->nnodes * exprs->nwords;

        node.chunk = tutti_check_chunk_of(exprs, a);
        node.contributors = tutti_check_contributors(exprs, a) + tutti_check_contributors(exprs, b);
        for (uint32_t w = 0; w < exprs->nwords; w++)
            set[w] = set_word(exprs, a, w) | set_word(exprs, b, w);
        exprs->nodes[exprs->nnodes++] = node;
        *slot = exprs->nnodes;
    }
    *ret_value = first_node(exprs) + *slot - 1;
    return TUTTI_OK;
}
