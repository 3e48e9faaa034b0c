/* SPDX-License-Identifier: Apache-2.0
 * Computes which ranks are in which node, and which nodes are in which group.
 */
#include "algorithms/nodes.h"

#include "base/result.h"

#include <stdlib.h>

static void homes_fini(struct tutti_homes *homes)
{
    free(homes->home);
    free(homes->index);
    free(homes->items);
    free(homes->first);
    *homes = (struct tutti_homes){.count = 0};
}

static int alloc_homes(uint32_t nhomes, uint32_t nitems, struct tutti_homes *ret_homes)
{
    struct tutti_homes homes = {.count = nhomes};

    homes.home = malloc(nitems * sizeof(uint32_t));
    homes.index = malloc(nitems * sizeof(uint32_t));
    homes.items = malloc(nitems * sizeof(uint32_t));
    homes.first = calloc((size_t)nhomes + 1, sizeof(uint32_t));
    if (homes.home == NULL || homes.index == NULL || homes.items == NULL || homes.first == NULL) {
        homes_fini(&homes);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to sort %u ranks into %u nodes or groups",
                          nitems, nhomes);
    }
    *ret_homes = homes;
    return TUTTI_OK;
}

/* Sort items into homes. `home_of[i]` is the home of item i; NULL: each item is a home of its own.
 * `item` and `kind` name an item and a home in messages. */
static int homes_init(const char *item, const char *kind, const uint32_t *home_of, uint32_t nhomes,
                      uint32_t nitems, struct tutti_homes *ret_homes)
{
    struct tutti_homes homes;

    TUTTI_TRY(alloc_homes(home_of != NULL ? nhomes : nitems, nitems, &homes));
    for (uint32_t i = 0; i < nitems; i++) {
        uint32_t home = home_of != NULL ? home_of[i] : i;

        if (home >= homes.count) {
            homes_fini(&homes);
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "places put %s %u in %s %u; there are only %u, numbered from 0", item,
                              i, kind, home, nhomes);
        }
        homes.home[i] = home;
        homes.index[i] = homes.first[home + 1]++; /* for now the size of `home` so far */
        if (homes.first[home + 1] > homes.most)
            homes.most = homes.first[home + 1];
    }
    homes.least = homes.most;
    for (uint32_t home = 0; home < homes.count; home++) {
        if (homes.first[home + 1] < homes.least)
            homes.least = homes.first[home + 1];
        if (homes.first[home + 1] == 0) {
            homes_fini(&homes);
            return tutti_fail(TUTTI_ERR_ARGUMENT, "places: no rank is in %s %u of %u", kind, home,
                              nhomes);
        }
        homes.first[home + 1] += homes.first[home];
    }
    for (uint32_t i = 0; i < nitems; i++)
        homes.items[homes.first[homes.home[i]] + homes.index[i]] = i;
    *ret_homes = homes;
    return TUTTI_OK;
}

/* Places give groups per rank; here they are needed per node. */
static int groups_init(const struct tutti_placement *places, struct tutti_nodes *nodes)
{
    uint32_t nnodes = nodes->ranks.count, *group_of;
    int rc;

    if (places == NULL || places->group == NULL || places->ngroups <= 1)
        return homes_init("node", "group", NULL, 0, nnodes, &nodes->nodes);
    group_of = malloc(nnodes * sizeof(*group_of));
    if (group_of == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the groups of %u nodes", nnodes);
    for (uint32_t node = 0; node < nnodes; node++)
        group_of[node] = places->group[tutti_homes_item(&nodes->ranks, node, 0)];
    rc = homes_init("node", "group", group_of, places->ngroups, nnodes, &nodes->nodes);
    free(group_of);
    return rc;
}

int tutti_nodes_init(const struct tutti_shape *shape, struct tutti_nodes *ret_nodes)
{
    const struct tutti_placement *places = shape->places;
    struct tutti_nodes nodes = {.me = shape->rank};
    int rc;

    TUTTI_TRY(homes_init("rank", "node", places != NULL ? places->node : NULL,
                         places != NULL ? places->nnodes : 0, shape->nranks, &nodes.ranks));
    TUTTI_TRY_OR(drop_ranks, rc, groups_init(places, &nodes));
    nodes.node = nodes.ranks.home[nodes.me];
    nodes.group = nodes.nodes.home[nodes.node];
    nodes.nparts = nodes.ranks.most;
    nodes.nseats = nodes.nodes.most;
    *ret_nodes = nodes;
    return TUTTI_OK;

drop_ranks:
    homes_fini(&nodes.ranks);
    return rc;
}

void tutti_nodes_fini(struct tutti_nodes *nodes)
{
    homes_fini(&nodes->ranks);
    homes_fini(&nodes->nodes);
}

/* A reduce-scatter among `size` members gives away all parts but the member's own, and gets the own
 * parts of every other member; an all-gather likewise, the other way round. */
double tutti_homes_exchanged(const struct tutti_homes *homes, uint32_t total)
{
    double most = 0;

    for (uint32_t home = 0; home < homes->count; home++) {
        uint32_t size = tutti_homes_size(homes, home);
        double least_share = (double)(total / size) / total;
        double most_share = (double)((total + size - 1) / size) / total;
        double given = 1 - least_share, got = most_share * (size - 1);

        most = given > most ? given : most;
        most = got > most ? got : most;
    }
    return most;
}
