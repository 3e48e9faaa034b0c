/* SPDX-License-Identifier: Apache-2.0
 * Makes the variants: first the options one by one, then the places one by one, without options
 * and with them. */
#include "schedule/variants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- options -------------------------------------------------------------------------------- */

static const uint32_t tried_values[] = {1, 2, 3, 4, 7, 16};

#define TRIED (sizeof(tried_values) / sizeof(tried_values[0]))

static bool is_tried(const struct tutti_algorithm_range *range, uint32_t value)
{
    return range->most != 0 && value >= range->least && value <= range->most &&
           value != range->usual;
}

/* ---- places --------------------------------------------------------------------------------- */

struct pattern {
    const char *name;
    uint32_t uses;
    uint32_t sizes[4]; /* sizes of nodes, used in rotation; or of the cells of one node */
    bool is_cyclic;
    uint32_t group;    /* nodes of a group; 0: no groups */
};

static const struct pattern patterns[] = {
    {"one node", TUTTI_USES_NODES, {UINT32_MAX}, false, 0},
    {"nodes of 1", TUTTI_USES_NODES, {1}, false, 0},
    {"nodes of 2", TUTTI_USES_NODES, {2}, false, 0},
    {"nodes of 3", TUTTI_USES_NODES, {3}, false, 0},
    {"nodes of 8", TUTTI_USES_NODES, {8}, false, 0},
    {"nodes of 1, 4, 2", TUTTI_USES_NODES, {1, 4, 2}, false, 0},
    {"nodes of 4, cyclic", TUTTI_USES_NODES, {4}, true, 0},
    {"nodes of 2, groups of 2", TUTTI_USES_NODES | TUTTI_USES_GROUPS, {2}, false, 2},
    {"nodes of 4, groups of 3", TUTTI_USES_NODES | TUTTI_USES_GROUPS, {4}, false, 3},
    {"nodes of 3, 1, groups of 2", TUTTI_USES_NODES | TUTTI_USES_GROUPS, {3, 1}, false, 2},
    {"nodes of 2, cyclic, groups of 3", TUTTI_USES_NODES | TUTTI_USES_GROUPS, {2}, true, 3},
    {"one cell", TUTTI_USES_CELLS, {UINT32_MAX}, false, 0},
    {"cells of 1", TUTTI_USES_CELLS, {1}, false, 0},
    {"cells of 2", TUTTI_USES_CELLS, {2}, false, 0},
    {"cells of 4", TUTTI_USES_CELLS, {4}, false, 0},
    {"cells of 8", TUTTI_USES_CELLS, {8}, false, 0},
    {"cells of 3, 1, 4", TUTTI_USES_CELLS, {3, 1, 4}, false, 0},
    {"cells of 3, cyclic", TUTTI_USES_CELLS, {3}, true, 0},
    {"cells of 12, cyclic", TUTTI_USES_CELLS, {12}, true, 0},
    {"one ring", TUTTI_USES_RINGS, {0}, false, 0},
    {"three rings", TUTTI_USES_RINGS, {0}, false, 0},
    {"one tree", TUTTI_USES_TREES, {0}, false, 0},
    {"two trees", TUTTI_USES_TREES, {0}, false, 0},
    {"torus", TUTTI_USES_TORUS, {0}, false, 0},
    {"torus of 3 dimensions", TUTTI_USES_TORUS, {0}, false, 0},
};

#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void shuffle(uint32_t *numbers, uint32_t count, uint64_t *state)
{
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = next_random(state) % i, kept = numbers[i - 1];

        numbers[i - 1] = numbers[j];
        numbers[j] = kept;
    }
}

static uint32_t count_nodes(const struct pattern *pattern, uint32_t nranks)
{
    uint32_t nnodes = 0, at = 0;

    for (uint32_t left = nranks; left > 0; nnodes++) {
        uint32_t size = pattern->sizes[at];

        left -= size < left ? size : left;
        at = at + 1 < 4 && pattern->sizes[at + 1] != 0 ? at + 1 : 0;
    }
    return nnodes;
}

static void place_nodes(const struct pattern *pattern, struct variant *variant)
{
    uint32_t n = variant->shape.nranks, at = 0, node = 0, in_node = 0;
    uint32_t nnodes = count_nodes(pattern, n);
    uint32_t *of_node = variant->numbers, *of_group = variant->numbers + n;

    for (uint32_t rank = 0; rank < n; rank++) {
        if (in_node == pattern->sizes[at]) {
            at = at + 1 < 4 && pattern->sizes[at + 1] != 0 ? at + 1 : 0;
            node++;
            in_node = 0;
        }
        of_node[rank] = pattern->is_cyclic ? rank % nnodes : node;
        in_node++;
        if (pattern->group != 0)
            of_group[rank] = of_node[rank] / pattern->group;
    }
    variant->places.node = of_node;
    variant->places.nnodes = nnodes;
    variant->places.ngroups = 1;
    if (pattern->group == 0)
        return;
    variant->places.group = of_group;
    variant->places.ngroups = (nnodes + pattern->group - 1) / pattern->group;
}

static void place_rings(struct variant *variant, uint32_t nrings)
{
    uint32_t n = variant->shape.nranks;
    uint64_t state = n;

    for (uint32_t i = 0; i < nrings; i++)
        shuffle(variant->numbers + i * n, n, &state);
    variant->places.rings = variant->numbers;
    variant->places.nrings = nrings;
}

/* Each rank's parent is a random one of those before it in a random order. */
static void place_trees(struct variant *variant, uint32_t ntrees)
{
    uint32_t n = variant->shape.nranks;
    int32_t *trees = (int32_t *)variant->numbers;
    uint32_t *order = variant->numbers + ntrees * n;
    uint64_t state = n;

    for (uint32_t i = 0; i < ntrees; i++) {
        shuffle(order, n, &state);
        trees[i * n + order[0]] = TUTTI_NO_RANK;
        for (uint32_t j = 1; j < n; j++)
            trees[i * n + order[j]] = (int32_t)order[next_random(&state) % j];
    }
    variant->places.trees = trees;
    variant->places.ntrees = ntrees;
}

/* Return the largest divisor of n of which `power` factors are no larger than n. */
static uint32_t divisor_of(uint32_t n, uint32_t power)
{
    uint32_t width = 1;

    for (uint32_t i = 1; i <= n; i++) {
        uint64_t product = 1;

        for (uint32_t factor = 0; factor < power; factor++)
            product *= i;
        if (product <= n && n % i == 0)
            width = i;
    }
    return width;
}

/* Dimensions as equal as divisors of the number of ranks are, the shortest first. */
static void place_torus(struct variant *variant, uint32_t ndims)
{
    uint32_t n = variant->shape.nranks;

    for (uint32_t dim = 0; dim < ndims; dim++) {
        variant->places.dims[dim] = divisor_of(n, ndims - dim);
        n /= variant->places.dims[dim];
    }
    variant->places.ndims = ndims;
}

/* The groups that would be nodes are the cells of one node. */
static void place_cells(const struct pattern *pattern, struct variant *variant)
{
    struct tutti_placement *places = &variant->places;
    uint32_t n = places->nranks;

    place_nodes(pattern, variant);
    places->cell = places->node;
    places->ncells = places->nnodes;
    memset(variant->numbers + 2 * (size_t)n, 0, n * sizeof(uint32_t));
    places->node = variant->numbers + 2 * (size_t)n;
    places->nnodes = 1;
    places->group = NULL;
    places->ngroups = 1;
    tutti_placement_align(places);
}

static void place(const struct pattern *pattern, struct variant *variant)
{
    snprintf(variant->name, sizeof variant->name, "%s", pattern->name);
    variant->shape.places = &variant->places;
    if (pattern->uses & TUTTI_USES_NODES)
        place_nodes(pattern, variant);
    else if (pattern->uses & TUTTI_USES_CELLS)
        place_cells(pattern, variant);
    else if (pattern->uses & TUTTI_USES_RINGS)
        place_rings(variant, strcmp(pattern->name, "one ring") == 0 ? 1 : 3);
    else if (pattern->uses & TUTTI_USES_TREES)
        place_trees(variant, strcmp(pattern->name, "one tree") == 0 ? 1 : 2);
    else
        place_torus(variant, strcmp(pattern->name, "torus") == 0 ? 2 : 3);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* The options in places: all have this value, if they may. */
static const uint32_t together = 3;

static bool set_together(const struct tutti_algorithm *algorithm, struct variant *variant)
{
    bool has_any = false;

    for (int option = 0; option < TUTTI_OPTION_COUNT; option++) {
        if (!is_tried(&algorithm->options[option], together))
            continue;
        has_any = true;
        if (variant != NULL)
            variant->shape.options.value[option] = together;
    }
    return has_any;
}

/* Calls the variants of an algorithm by number; returns how many there are. */
static size_t find(const struct tutti_algorithm *algorithm, size_t index, struct variant *variant)
{
    size_t count = 1;

    for (int option = 0; option < TUTTI_OPTION_COUNT; option++)
        for (size_t i = 0; i < TRIED; i++) {
            if (!is_tried(&algorithm->options[option], tried_values[i]))
                continue;
            if (variant != NULL && count == index) {
                variant->shape.options.value[option] = tried_values[i];
                snprintf(variant->name, sizeof variant->name, "%s=%u",
                         tutti_option_name((enum tutti_option)option), tried_values[i]);
            }
            count++;
        }
    for (size_t i = 0; i < PATTERNS; i++) {
        if ((patterns[i].uses & algorithm->uses) != patterns[i].uses)
            continue;
        if (variant != NULL && count == index)
            place(&patterns[i], variant);
        count++;
        if (!set_together(algorithm, NULL))
            continue;
        if (variant != NULL && count == index) {
            place(&patterns[i], variant);
            set_together(algorithm, variant);
            strncat(variant->name, ", options 3", sizeof variant->name - strlen(variant->name) - 1);
        }
        count++;
    }
    return count;
}

size_t variants_count(const struct tutti_algorithm *algorithm)
{
    return find(algorithm, 0, NULL);
}

void variant_create(const struct tutti_algorithm *algorithm, size_t index, uint32_t nranks,
                    struct variant *ret_variant)
{
    *ret_variant = (struct variant){.shape = {.nranks = nranks}, .places = {.nranks = nranks}};
    ret_variant->numbers = calloc(4 * (size_t)nranks, sizeof(uint32_t));
    assert_non_null(ret_variant->numbers);
    find(algorithm, index, ret_variant);
}

void variant_destroy(struct variant *variant)
{
    free(variant->numbers);
    *variant = (struct variant){.numbers = NULL};
}
