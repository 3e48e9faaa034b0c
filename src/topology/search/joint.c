/* SPDX-License-Identifier: Apache-2.0
 * Joins the parts of a cluster by binary trees. */
#include "topology/search/joint.h"

#include "topology/graph/graph.h"

/* A part of a large cluster has three edges in one tree and one in the other. */
#define LOAD_OF_MANY 2

uint32_t tutti_search_joints(uint32_t nparts)
{
    return nparts > 2 ? 2 : 1;
}

uint32_t tutti_search_parent_part(uint32_t part, uint32_t nparts, uint32_t which)
{
    uint32_t place = which == 0 ? part : nparts - 1 - part, parent;

    if (place == 0)
        return TUTTI_NO_NODE;
    parent = (place - 1) / 2;
    return which == 0 ? parent : nparts - 1 - parent;
}

/* Returns the edges of a place in a binary tree of so many places: to its parent and children. */
static uint32_t edges_of(uint32_t place, uint32_t nplaces)
{
    return (place > 0) + (2 * place + 1 < nplaces) + (2 * place + 2 < nplaces);
}

double tutti_search_joint_load(uint32_t nparts)
{
    uint32_t most = 0;

    /* Beyond eight parts some part has three edges in one tree and one in the other, and none has
     * more. */
    if (nparts < 2 || nparts > 8)
        return LOAD_OF_MANY;
    for (uint32_t part = 0; part < nparts; part++) {
        uint32_t edges = edges_of(part, nparts);

        if (tutti_search_joints(nparts) == 2)
            edges += edges_of(nparts - 1 - part, nparts);
        most = edges > most ? edges : most;
    }
    return (double)most / tutti_search_joints(nparts);
}
