/* SPDX-License-Identifier: Apache-2.0
 * Reads the cells of nodes from a description, as a pattern of sizes or as a list, and writes them
 * in the shortest form. */
#include "topology/machine/machine_cells.h"

#include "base/result.h"

#include <stdlib.h>

/* ---- from a pattern -------------------------------------------------------------------------- */

/* Returns the cell, counted within the node, of the node's rank number `index`. The sizes of cells
 * repeat; `period` is the sum of all sizes. */
static uint32_t cell_in_node(const struct tutti_numbers *sizes, uint64_t period, uint32_t index)
{
    uint32_t at = 0;
    uint64_t rest = index % period;

    while (rest >= sizes->values[at])
        rest -= sizes->values[at++];
    return (uint32_t)(index / period * sizes->count) + at;
}

/* Sets the cell of each rank, and returns the number of cells. `seen` and `last` hold one entry per
 * node and are zero at first. `seen` counts the visited ranks of the node, and `last` is the cell
 * of the last of them. The ranks of a node are visited in order, and therefore its cells, too. */
static uint32_t fill_cells(const struct tutti_numbers *sizes, const struct tutti_placement *places,
                           uint32_t *seen, uint32_t *last, uint32_t *cell)
{
    uint64_t period = 0;
    uint32_t ncells = 0;

    for (size_t i = 0; i < sizes->count; i++)
        period += sizes->values[i];
    for (uint32_t rank = 0; rank < places->nranks; rank++) {
        uint32_t node = places->node[rank], index = seen[node]++;

        if (index == 0 ||
            cell_in_node(sizes, period, index) != cell_in_node(sizes, period, index - 1))
            last[node] = ncells++;
        cell[rank] = last[node];
    }
    return ncells;
}

static int place_pattern(const struct tutti_numbers *sizes, const struct tutti_placement *places,
                         uint32_t *cell, uint32_t *ret_ncells)
{
    uint32_t *work = calloc(2 * (size_t)places->nnodes, sizeof *work);

    if (work == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the cells of %u nodes", places->nnodes);
    *ret_ncells = fill_cells(sizes, places, work, work + places->nnodes, cell);
    free(work);
    return TUTTI_OK;
}

/* ---- from a list ----------------------------------------------------------------------------- */

/* Sets the cell of each rank from a list, and checks that no cell has ranks of two nodes. */
static int place_list(const struct tutti_draft *draft, const struct tutti_placement *places,
                      uint32_t *cell, uint32_t *ret_ncells)
{
    uint32_t ncells, *node;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_draft_copy_list(draft, &draft->cells, "ranks", cell, places->nranks, &ncells));
    node = calloc(ncells, sizeof *node);
    if (node == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u cells", ncells);
    for (uint32_t rank = 0, seen = 0; rank < places->nranks && rc == TUTTI_OK; rank++) {
        if (cell[rank] == seen)
            node[seen++] = places->node[rank];
        else if (node[cell[rank]] != places->node[rank])
            rc = tutti_words_fail(&draft->words, draft->cells.at, "cell %u has ranks of nodes %u "
                                  "and %u; a cell lies within a node", cell[rank],
                                  node[cell[rank]], places->node[rank]);
    }
    free(node);
    *ret_ncells = ncells;
    return rc;
}

int tutti_draft_place_cells(const struct tutti_draft *draft, struct tutti_placement *places)
{
    uint32_t *cell;

    if (draft->cells.count == 0)
        return TUTTI_OK;
    cell = calloc(places->nranks, sizeof *cell);
    if (cell == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the cells of %u ranks", places->nranks);
    places->cell = cell; /* The caller frees this array with the machine, on error too. */
    if (draft->cells_are_listed)
        TUTTI_TRY(place_list(draft, places, cell, &places->ncells));
    else
        TUTTI_TRY(place_pattern(&draft->cells, places, cell, &places->ncells));
    if (places->ncells > places->nnodes)
        return TUTTI_OK;
    /* One cell per node gives no more information than no cells. */
    free(cell);
    places->cell = NULL;
    places->ncells = 0;
    return TUTTI_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Returns the size of the first cell if "cell SIZE" describes all cells; else 0. `cell` is scratch,
 * with an entry per rank. */
static uint32_t find_uniform_size(const struct tutti_placement *places, uint32_t *cell)
{
    uint32_t size = 0, ncells;
    struct tutti_numbers sizes = {.values = &size, .count = 1};

    for (uint32_t rank = 0; rank < places->nranks; rank++)
        size += places->cell[rank] == 0;
    if (place_pattern(&sizes, places, cell, &ncells) != TUTTI_OK)
        return 0;
    for (uint32_t rank = 0; rank < places->nranks; rank++)
        if (cell[rank] != places->cell[rank])
            return 0;
    return size;
}

int tutti_machine_write_cells(FILE *out, const struct tutti_placement *places)
{
    uint32_t *cell, size;

    if (places->cell == NULL)
        return TUTTI_OK;
    cell = calloc(places->nranks, sizeof *cell);
    if (cell == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write %u ranks", places->nranks);
    size = find_uniform_size(places, cell);
    if (size > 0) {
        fprintf(out, "cell %u\n", size);
    } else {
        fputs("cell of", out);
        for (uint32_t rank = 0; rank < places->nranks; rank++)
            fprintf(out, " %u", places->cell[rank]);
        fputc('\n', out);
    }
    free(cell);
    return TUTTI_OK;
}
