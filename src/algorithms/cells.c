/* SPDX-License-Identifier: Apache-2.0
 * Counts cells as the nodes of nodes.h, and chooses between an algorithm that uses cells and its
 * fallback.
 */
#include "algorithms/cells.h"

#include "base/result.h"

#include <stdlib.h>

/* Sort the ranks of the shape into cells, as into nodes. */
static int cells_as_nodes(const struct tutti_shape *shape, struct tutti_nodes *ret_nodes)
{
    struct tutti_placement places = {
        .nranks = shape->nranks, .node = shape->places->cell, .nnodes = shape->places->ncells};
    struct tutti_shape by_cell = *shape;

    by_cell.places = &places;
    return tutti_nodes_init(&by_cell, ret_nodes);
}

/* Errors are those of tutti_nodes_init. */
static int cells_init(const struct tutti_shape *shape, struct tutti_cells_view *ret_cells)
{
    struct tutti_cells_view cells = {.me = shape->rank};

    TUTTI_TRY(cells_as_nodes(shape, &cells.nodes));
    cells.count = cells.nodes.ranks.count;
    cells.cell = cells.nodes.node;
    cells.nparts = cells.nodes.nparts;
    cells.own = tutti_nodes_parts_of(&cells.nodes, shape->rank);
    cells.members = cells.nodes.ranks.items + cells.nodes.ranks.first[cells.cell];
    cells.nmembers = tutti_homes_size(&cells.nodes.ranks, cells.cell);
    cells.servers = calloc(cells.count, sizeof(*cells.servers));
    if (cells.servers == NULL) {
        tutti_nodes_fini(&cells.nodes);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u cells", cells.count);
    }
    *ret_cells = cells;
    return TUTTI_OK;
}

static void cells_fini(struct tutti_cells_view *cells)
{
    tutti_nodes_fini(&cells->nodes);
    free(cells->servers);
    *cells = (struct tutti_cells_view){.count = 0};
}

/* True if there are several cells and at least one of them has several ranks. */
static bool has_cells(const struct tutti_shape *shape)
{
    const struct tutti_placement *places = shape->places;

    return places != NULL && places->cell != NULL && places->ncells > 1 &&
           places->ncells < shape->nranks;
}

int tutti_cells_emit(const struct tutti_shape *shape, struct tutti_build *build,
                     const struct tutti_cells_ops *in_cells)
{
    struct tutti_cells_view cells;
    int rc;

    if (!has_cells(shape))
        return in_cells->flat->emit(shape, build);
    TUTTI_TRY(cells_init(shape, &cells));
    rc = in_cells->emit(shape, &cells, build);
    cells_fini(&cells);
    return rc;
}

uint32_t tutti_cells_stand_in(const struct tutti_cells_view *cells, uint32_t cell, uint32_t rank)
{
    if (cells->nodes.ranks.home[rank] == cell)
        return rank;
    return tutti_cells_server(cells, cell, tutti_nodes_pick_part(&cells->nodes, rank));
}

int tutti_cells_wait_members(const struct tutti_cells_view *cells, struct tutti_build *build,
                             uint32_t signal)
{
    for (uint32_t i = 0; i < cells->nmembers; i++)
        TUTTI_TRY(tutti_build_wait(build, (int32_t)cells->members[i], signal));
    return TUTTI_OK;
}

int tutti_cells_wait_servers(const struct tutti_cells_view *cells, struct tutti_build *build,
                             uint32_t part, uint32_t signal)
{
    for (uint32_t cell = 0; cell < cells->count; cell++)
        if (cell != cells->cell)
            TUTTI_TRY(
                tutti_build_wait(build, (int32_t)tutti_cells_server(cells, cell, part), signal));
    return TUTTI_OK;
}

int tutti_cells_among_members(const struct tutti_cells_view *cells, struct tutti_build *build)
{
    return tutti_build_among(build, cells->members, cells->nmembers);
}

static int ascending(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int tutti_cells_among_servers(struct tutti_cells_view *cells, struct tutti_build *build,
                              uint32_t part)
{
    for (uint32_t cell = 0; cell < cells->count; cell++)
        cells->servers[cell] = tutti_cells_server(cells, cell, part);
    qsort(cells->servers, cells->count, sizeof(*cells->servers), ascending);
    return tutti_build_among(build, cells->servers, cells->count);
}

void tutti_cells_cost(const struct tutti_shape *shape, double block_bytes,
                      const struct tutti_cells_ops *in_cells, struct tutti_cost *ret_cost)
{
    struct tutti_cells_counts counts = {.ranks = shape->nranks};
    struct tutti_nodes nodes;

    if (!has_cells(shape)) {
        in_cells->flat->cost(shape, block_bytes, ret_cost);
        return;
    }
    if (cells_as_nodes(shape, &nodes) != TUTTI_OK) {
        *ret_cost = TUTTI_COST_UNKNOWN;
        return;
    }
    counts.cells = nodes.ranks.count;
    counts.in_cell = nodes.nparts;
    counts.share = (double)tutti_nodes_most_parts(&nodes) / nodes.nparts;
    tutti_nodes_fini(&nodes);
    in_cells->cost(shape, &counts, block_bytes, ret_cost);
}
