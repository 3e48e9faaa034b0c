/* SPDX-License-Identifier: Apache-2.0
 * Computes how far apart the ranks of a shape are. Costs depend on this distance (cost.h).
 *
 *   nodes of 8 and 4      0 1 2 3 4 5 6 7 | 8 9 10 11      node_align 4 divides all ranks at which
 *   runs of 4 from 0      ------- -------   ---------      a node begins: runs are within nodes if
 *   runs of 4 from 2          ------- ------- ---------    their length divides it and the first
 *                                                          run begins at a multiple of the length
 */
#include "algorithms/cost.h"

#include <stddef.h>

enum tutti_level tutti_level_of_shape(const struct tutti_shape *shape)
{
    const struct tutti_placement *places = shape->places;

    if (places == NULL || places->node == NULL)
        return TUTTI_LEVEL_TOP;
    if (places->nnodes == 1)
        return TUTTI_LEVEL_NODE;
    return places->group != NULL && places->ngroups == 1 ? TUTTI_LEVEL_GROUP : TUTTI_LEVEL_TOP;
}

bool tutti_cost_is_block(const struct tutti_shape *shape)
{
    return shape->places == NULL || shape->places->is_block;
}

/* True if every run is within one home, where homes begin at multiples of `align`. Runs that do not
 * begin at rank 0 go on past the last rank. The run there begins at a multiple of its length only
 * if nranks is such a multiple, too. */
static bool is_inside(const struct tutti_shape *shape, uint32_t align, uint32_t first, uint32_t run)
{
    return align % run == 0 && first % run == 0 && (first == 0 || shape->nranks % run == 0);
}

enum tutti_level tutti_level_of_run(const struct tutti_shape *shape, uint32_t first, uint32_t run)
{
    const struct tutti_placement *places = shape->places;
    enum tutti_level outermost = tutti_level_of_shape(shape);

    if (run == 0 || outermost == TUTTI_LEVEL_NODE || places == NULL || places->node == NULL)
        return outermost;
    if (places->node_align > 0 && is_inside(shape, places->node_align, first, run))
        return TUTTI_LEVEL_NODE;
    if (places->group_align > 0 && is_inside(shape, places->group_align, first, run))
        return TUTTI_LEVEL_GROUP;
    return outermost;
}

void tutti_cost_add(const struct tutti_shape *shape, uint32_t first, uint32_t run, double rounds,
                    double bytes, struct tutti_cost *cost)
{
    enum tutti_level level = tutti_level_of_run(shape, first, run);

    cost->level[level].rounds += rounds;
    cost->level[level].bytes += bytes;
}

void tutti_level_count_others(const struct tutti_shape *shape, uint32_t rank,
                              uint32_t ret_count[TUTTI_LEVEL_COUNT])
{
    const struct tutti_placement *places = shape->places;
    enum tutti_level outermost = tutti_level_of_shape(shape);

    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++)
        ret_count[level] = 0;
    if (places == NULL || places->node == NULL) {
        ret_count[outermost] = shape->nranks - 1;
        return;
    }
    for (uint32_t other = 0; other < shape->nranks; other++) {
        bool is_in_group = places->group != NULL && places->group[other] == places->group[rank];

        if (places->node[other] == places->node[rank])
            ret_count[TUTTI_LEVEL_NODE] += other != rank;
        else
            ret_count[is_in_group ? TUTTI_LEVEL_GROUP : outermost]++;
    }
}
