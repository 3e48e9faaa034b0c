/* SPDX-License-Identifier: Apache-2.0
 * Makes a machine from the lines of a description: computes the place of each rank, and checks that
 * the lines fit together. */
#include "topology/machine/machine_cells.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

static int allocate_numbers(size_t count, uint32_t **ret_numbers)
{
    uint32_t *numbers = calloc(count, sizeof *numbers);

    if (numbers == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the places of %zu ranks", count);
    *ret_numbers = numbers;
    return TUTTI_OK;
}

/* ---- the number of ranks --------------------------------------------------------------------- */

/* Returns the number of ranks of a torus; 0: there is no torus. */
static uint64_t torus_volume(const struct tutti_numbers *torus)
{
    uint64_t volume = torus->count > 0 ? 1 : 0;

    for (size_t i = 0; i < torus->count && volume <= TUTTI_MACHINE_RANKS; i++)
        volume *= torus->values[i];
    return volume;
}

/* Finds the number of ranks: the number that the caller asks for, or else the first of these: the
 * line `ranks`, the volume of the torus, the length of the list of nodes. */
static int count_ranks(const struct tutti_draft *draft, uint32_t asked, uint32_t *ret_nranks)
{
    uint64_t volume = torus_volume(&draft->torus);
    uint64_t nranks = asked != 0 ? asked : draft->nranks != 0 ? draft->nranks : volume;
    struct tutti_word end = {.line = draft->words.line};

    end.column = (size_t)(draft->words.at - draft->words.line_start) + 1;
    if (nranks == 0 && draft->nodes_are_listed)
        nranks = draft->nodes.count;
    if (nranks == 0)
        return tutti_words_fail(&draft->words, end, "the number of ranks is not given; add a "
                                "line such as \"ranks 8\"");
    if (nranks > TUTTI_MACHINE_RANKS)
        return tutti_words_fail(&draft->words, end, "%lu ranks; there may be %u",
                                (unsigned long)nranks, TUTTI_MACHINE_RANKS);
    if (volume != 0 && volume != nranks)
        return tutti_words_fail(&draft->words, draft->torus.at, "this torus does not hold the %lu "
                                "ranks; the product of its dimensions must be their number",
                                (unsigned long)nranks);
    *ret_nranks = (uint32_t)nranks;
    return TUTTI_OK;
}

/* ---- nodes and groups ------------------------------------------------------------------------ */

/* Sets `of[i]` to the place of item i, and returns the number of places. Places are filled one
 * after the other, and the list of their sizes repeats. */
static uint32_t fill_blocks(const struct tutti_numbers *sizes, uint32_t *of, uint32_t count)
{
    uint32_t place = 0, held = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (held == sizes->values[place % sizes->count]) {
            place++;
            held = 0;
        }
        of[i] = place;
        held++;
    }
    return place + 1;
}

/* Assigns the ranks to as many nodes round-robin, skipping nodes that are full. */
static int place_cyclic(const struct tutti_numbers *sizes, uint32_t nnodes, uint32_t *of,
                        uint32_t count)
{
    uint32_t *held, node = 0;

    TUTTI_TRY(allocate_numbers(nnodes, &held));
    for (uint32_t rank = 0; rank < count; rank++) {
        while (held[node] == sizes->values[node % sizes->count])
            node = (node + 1) % nnodes;
        of[rank] = node;
        held[node]++;
        node = (node + 1) % nnodes;
    }
    free(held);
    return TUTTI_OK;
}

int tutti_draft_copy_list(const struct tutti_draft *draft, const struct tutti_numbers *list,
                          const char *items, uint32_t *of, uint32_t count, uint32_t *ret_nplaces)
{
    uint32_t nplaces = 0;

    if (list->count != count)
        return tutti_words_fail(&draft->words, list->at, "the places of %u %s, but there are %u; "
                                "each has one", list->count, items, count);
    for (uint32_t i = 0; i < count; i++) {
        if (list->values[i] > nplaces)
            return tutti_words_fail(&draft->words, list->at, "%u stands before %u; number them "
                                    "0, 1, 2, ... as they first appear", list->values[i], nplaces);
        nplaces += list->values[i] == nplaces;
        of[i] = list->values[i];
    }
    *ret_nplaces = nplaces;
    return TUTTI_OK;
}

/* Sets the node of each rank; places->node stays NULL if neither nodes nor groups are given. */
static int place_nodes(const struct tutti_draft *draft, struct tutti_placement *places)
{
    bool has_nodes = draft->nodes.count > 0;
    uint32_t *of;

    places->nnodes = places->nranks;
    if (!has_nodes && draft->groups.count == 0)
        return TUTTI_OK;
    TUTTI_TRY(allocate_numbers(places->nranks, &of));
    places->node = of;
    if (draft->nodes_are_listed)
        return tutti_draft_copy_list(draft, &draft->nodes, "ranks", of, places->nranks,
                                     &places->nnodes);
    if (!has_nodes) {
        for (uint32_t rank = 0; rank < places->nranks; rank++)
            of[rank] = rank;
        return TUTTI_OK;
    }
    places->nnodes = fill_blocks(&draft->nodes, of, places->nranks);
    return draft->is_cyclic ? place_cyclic(&draft->nodes, places->nnodes, of, places->nranks)
                            : TUTTI_OK;
}

/* Sets the group of each rank, which is the group of its node. */
static int place_groups(const struct tutti_draft *draft, struct tutti_placement *places)
{
    uint32_t *of, *of_node;
    int rc = TUTTI_OK;

    places->ngroups = 1;
    if (draft->groups.count == 0)
        return TUTTI_OK;
    TUTTI_TRY(allocate_numbers(places->nranks, &of));
    places->group = of;
    TUTTI_TRY(allocate_numbers(places->nnodes, &of_node));
    if (draft->groups_are_listed)
        rc = tutti_draft_copy_list(draft, &draft->groups, "nodes", of_node, places->nnodes,
                                   &places->ngroups);
    else
        places->ngroups = fill_blocks(&draft->groups, of_node, places->nnodes);
    for (uint32_t rank = 0; rank < places->nranks && rc == TUTTI_OK; rank++)
        of[rank] = of_node[places->node[rank]];
    free(of_node);
    return rc;
}

/* ---- rings and trees ------------------------------------------------------------------------- */

static int check_ring(const struct tutti_draft *draft, const struct tutti_numbers *ring,
                      uint32_t nranks, uint32_t *seen)
{
    memset(seen, 0, nranks * sizeof *seen);
    for (uint32_t i = 0; i < nranks; i++) {
        uint32_t rank = ring->values[i];

        if (rank >= nranks)
            return tutti_words_fail(&draft->words, ring->at, "a ring through rank %u; ranks are "
                                    "0 to %u", rank, nranks - 1);
        if (seen[rank]++ != 0)
            return tutti_words_fail(&draft->words, ring->at, "a ring through rank %u twice; it "
                                    "goes through each rank once", rank);
    }
    return TUTTI_OK;
}

/* Walks up from every rank. `seen` marks the ranks of the current walk, so a marked rank that
 * reappears shows a cycle. A rank that an earlier walk marked is known to lead to the root. */
static int check_tree(const struct tutti_draft *draft, const struct tutti_numbers *tree,
                      uint32_t nranks, uint32_t *seen)
{
    uint32_t nroots = 0;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t parent = tree->values[rank];

        nroots += parent == UINT32_MAX;
        if (parent != UINT32_MAX && parent >= nranks)
            return tutti_words_fail(&draft->words, tree->at, "a tree with parent %u; ranks are 0 "
                                    "to %u", parent, nranks - 1);
    }
    if (nroots != 1)
        return tutti_words_fail(&draft->words, tree->at, "a tree with %u roots; one rank has "
                                "parent -1", nroots);
    memset(seen, 0, nranks * sizeof *seen);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t at = rank;

        while (at != UINT32_MAX && seen[at] == 0) {
            seen[at] = rank + 1;
            at = tree->values[at];
        }
        if (at != UINT32_MAX && seen[at] == rank + 1)
            return tutti_words_fail(&draft->words, tree->at, "a tree with a cycle through rank %u; "
                                    "from every rank the parents lead to the root", at);
    }
    return TUTTI_OK;
}

/* Checks rings or trees, and copies them into one array, which the caller frees. */
static int place_orders(const struct tutti_draft *draft, const struct tutti_numbers *orders,
                        uint32_t count, uint32_t nranks, bool are_trees, uint32_t **ret_orders)
{
    uint32_t *all, *seen;
    int rc = TUTTI_OK;

    TUTTI_TRY(allocate_numbers((size_t)count * nranks, &all));
    TUTTI_TRY_OR(free_all, rc, allocate_numbers(nranks, &seen));
    for (uint32_t i = 0; i < count && rc == TUTTI_OK; i++) {
        const struct tutti_numbers *order = &orders[i];

        if (order->count != nranks)
            rc = tutti_words_fail(&draft->words, order->at, "%u numbers, but there are %u ranks; "
                                  "each has one", order->count, nranks);
        else if (are_trees)
            rc = check_tree(draft, order, nranks, seen);
        else
            rc = check_ring(draft, order, nranks, seen);
        if (rc == TUTTI_OK)
            memcpy(all + (size_t)i * nranks, order->values, nranks * sizeof *all);
    }
    free(seen);
    if (rc != TUTTI_OK)
        goto free_all;
    *ret_orders = all;
    return TUTTI_OK;

free_all:
    free(all);
    return rc;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* A level that is not given costs the same as the next outer level, or else the next inner one. */
static int fill_levels(const struct tutti_draft *draft, struct tutti_machine *machine)
{
    struct tutti_word begin = {.line = 1, .column = 1};
    int last = TUTTI_MACHINE_LEVELS - 1;

    while (last >= 0 && draft->level[last].bytes_per_s == 0)
        last--;
    if (last < 0)
        return tutti_words_fail(&draft->words, begin, "no level is given; add a line such as "
                                "\"level top overhead 5us bandwidth 50GB/s\"");
    for (int i = TUTTI_MACHINE_LEVELS - 1; i >= 0; i--)
        machine->level[i] = draft->level[i].bytes_per_s != 0 ? draft->level[i]
                            : i > last                       ? draft->level[last]
                                                             : machine->level[i + 1];
    return TUTTI_OK;
}

/* Refuses lines that refer to something that no other line gives. */
static int check_lines(const struct tutti_draft *draft)
{
    if (draft->is_cyclic && (draft->nodes.count == 0 || draft->nodes_are_listed))
        return tutti_words_fail(&draft->words, draft->line_at[TUTTI_MACHINE_LINE_PLACE],
                                "place cyclic needs the sizes of nodes; add a line such as "
                                "\"node 8\"");
    if (draft->trunk_bytes_per_s != 0 && draft->groups.count == 0)
        return tutti_words_fail(&draft->words, draft->line_at[TUTTI_MACHINE_LINE_TRUNK],
                                "a trunk joins groups; add a line such as \"group 16\", the "
                                "nodes of a group");
    if (draft->cells.count > 0 && draft->nodes.count == 0)
        return tutti_words_fail(&draft->words, draft->line_at[TUTTI_MACHINE_LINE_CELL],
                                "a cell is a part of a node; add a line such as \"node 8\", the "
                                "ranks of a node");
    return TUTTI_OK;
}

static void copy_speed(const struct tutti_draft_speed *speed, double *ret_bytes_per_s,
                       struct tutti_footprint_rate ret_beyond[TUTTI_MACHINE_FOOTPRINTS])
{
    *ret_bytes_per_s = speed->bytes_per_s;
    memcpy(ret_beyond, speed->beyond, sizeof speed->beyond);
}

int tutti_draft_place(const struct tutti_draft *draft, uint32_t nranks,
                      struct tutti_machine *machine)
{
    struct tutti_placement *places = &machine->places;
    uint32_t *orders;

    TUTTI_TRY(check_lines(draft));
    TUTTI_TRY(fill_levels(draft, machine));
    TUTTI_TRY(count_ranks(draft, nranks, &places->nranks));
    TUTTI_TRY(place_nodes(draft, places));
    TUTTI_TRY(place_groups(draft, places));
    TUTTI_TRY(tutti_draft_place_cells(draft, places));
    tutti_placement_align(places);
    if (draft->nrings > 0) {
        TUTTI_TRY(place_orders(draft, draft->rings, draft->nrings, places->nranks, false, &orders));
        places->rings = orders;
    }
    places->nrings = draft->nrings;
    if (draft->ntrees > 0) {
        TUTTI_TRY(place_orders(draft, draft->trees, draft->ntrees, places->nranks, true, &orders));
        places->trees = (const int32_t *)orders;
    }
    places->ntrees = draft->ntrees;
    places->ndims = (uint32_t)draft->torus.count;
    for (uint32_t i = 0; i < places->ndims; i++)
        places->dims[i] = draft->torus.values[i];
    machine->nics = draft->nics;
    machine->cores = draft->cores;
    machine->trunk_bytes_per_s = draft->trunk_bytes_per_s;
    machine->bridge_latency_s = draft->bridge.latency_s;
    machine->bridge_bytes_per_s = draft->bridge.bytes_per_s;
    machine->signal_s = draft->signal_s;
    copy_speed(&draft->memory, &machine->memory_bytes_per_s, machine->memory_beyond);
    copy_speed(&draft->copy, &machine->copy_bytes_per_s, machine->copy_beyond);
    copy_speed(&draft->reduce, &machine->reduce_bytes_per_s, machine->reduce_beyond);
    copy_speed(&draft->load, &machine->load_bytes_per_s, machine->load_beyond);
    return TUTTI_OK;
}
