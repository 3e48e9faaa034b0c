/* SPDX-License-Identifier: Apache-2.0
 * Numbers the links of like parts. Like parts have like links in the same order, because nodes and
 * links are numbered in the order of the inventory. So link i of the second part of a kind stands
 * in the place of link i of the first part. */
#include "topology/search/like.h"

#include "base/result.h"

#include <stdlib.h>

bool tutti_search_is_described(const struct tutti_graph_parts *parts, uint32_t from, uint32_t to)
{
    uint32_t from_part = tutti_graph_part_of_gpu(parts, from);
    uint32_t to_part = tutti_graph_part_of_gpu(parts, to);

    if (!parts->has_copies)
        return true;
    return !tutti_graph_is_second(parts, from_part) &&
           (!tutti_graph_is_second(parts, to_part) || to_part == from_part + 1);
}

/* The numbering of the links of all parts. */
struct numbering {
    const struct tutti_graph *graph;
    const struct tutti_graph_parts *parts;
    uint32_t *part_of; /* per link of the graph: its part */
    uint32_t *base;    /* per link: the link of the first part of its kind in its place */
    uint32_t *number;  /* per link that is its own base: its number; TUTTI_NO_NODE: no path crosses
                          a link in its place */
    uint32_t *kind_of; /* per part: the index of its kind */
};

/* Returns the number of the part that has a link. A link of the network's fabric is in the part of
 * its port. */
static uint32_t part_of_link(const struct numbering *numbering, uint32_t index)
{
    const struct tutti_graph_link *link = &numbering->graph->links[index];
    const struct tutti_graph_node *from = &numbering->graph->nodes[link->from];
    const struct tutti_graph_node *to = &numbering->graph->nodes[link->to];

    return tutti_graph_part_of_host(numbering->parts,
                                    from->kind == TUTTI_NODE_FABRIC ? to->host : from->host);
}

/* Returns the next link of a part after `link`, or the number of links if there is none. */
static uint32_t next_link(const struct numbering *numbering, uint32_t part, uint32_t link)
{
    do
        link++;
    while (link < numbering->graph->nlinks && numbering->part_of[link] != part);
    return link;
}

static enum tutti_graph_link_kind kind_of_link(const struct numbering *numbering, uint32_t link)
{
    return numbering->graph->links[link].kind;
}

/* Finds the base of each link of a part. */
static int find_bases(struct numbering *numbering, uint32_t part)
{
    uint32_t first = part - tutti_graph_is_second(numbering->parts, part);
    uint32_t end = numbering->graph->nlinks, link = UINT32_MAX, base = UINT32_MAX;

    do {
        link = next_link(numbering, part, link);
        base = next_link(numbering, first, base);
        if ((link == end) != (base == end) ||
            (link < end && kind_of_link(numbering, link) != kind_of_link(numbering, base)))
            return tutti_fail(TUTTI_ERR_ARGUMENT, "part %u of the cluster has other links than "
                              "part %u, and stands for parts like it", part, first);
        if (link < end)
            numbering->base[link] = base;
    } while (link < end);
    return TUTTI_OK;
}

static int numbering_init(struct numbering *numbering)
{
    size_t n = (size_t)numbering->graph->nlinks + 1;

    numbering->part_of = calloc(n, sizeof *numbering->part_of);
    numbering->base = calloc(n, sizeof *numbering->base);
    numbering->number = calloc(n, sizeof *numbering->number);
    numbering->kind_of = calloc((size_t)numbering->parts->nparts + 1, sizeof *numbering->kind_of);
    if (numbering->part_of == NULL || numbering->base == NULL || numbering->number == NULL ||
        numbering->kind_of == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu links", n);
    for (uint32_t i = 0; i < numbering->graph->nlinks; i++) {
        numbering->part_of[i] = part_of_link(numbering, i);
        numbering->number[i] = TUTTI_NO_NODE;
    }
    for (uint32_t part = 0; part < numbering->parts->nparts; part++)
        TUTTI_TRY(find_bases(numbering, part));
    return TUTTI_OK;
}

static void numbering_fini(struct numbering *numbering)
{
    free(numbering->part_of);
    free(numbering->base);
    free(numbering->number);
    free(numbering->kind_of);
}

/* Makes a kind for each first part, without links. Parts without gpus have no ranks and are
 * none. */
static int make_kinds(struct numbering *numbering, struct tutti_machine_parts *kinds,
                      uint32_t *ret_nkinds)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < numbering->parts->nparts; i++) {
        const struct tutti_graph_part *part = &numbering->parts->part[i];

        if (part->ngpus > 0 && !tutti_graph_is_second(numbering->parts, i)) {
            if (count == TUTTI_MACHINE_KINDS)
                return tutti_fail(TUTTI_ERR_ARGUMENT, "the cluster has more than %u kinds of "
                                  "hosts; describe like hosts together", TUTTI_MACHINE_KINDS);
            kinds[count++] = (struct tutti_machine_parts){.nranks = part->ngpus};
        }
        if (part->ngpus > 0)
            kinds[count - 1].nparts += part->copies;
        numbering->kind_of[i] = count - 1;
    }
    *ret_nkinds = count;
    return TUTTI_OK;
}

/* Numbers the links of the first part of each kind that have a number other than TUTTI_NO_NODE,
 * kind after kind. */
static void number_used(struct numbering *numbering, struct tutti_machine_parts *kinds,
                        uint32_t *ret_used, uint32_t *ret_nused)
{
    uint32_t count = 0, first_link = 0;

    for (uint32_t part = 0; part < numbering->parts->nparts; part++) {
        struct tutti_machine_parts *kind;

        if (numbering->parts->part[part].ngpus == 0 ||
            tutti_graph_is_second(numbering->parts, part))
            continue;
        kind = &kinds[numbering->kind_of[part]];
        kind->first_described = count;
        kind->first_link = first_link;
        for (uint32_t link = next_link(numbering, part, UINT32_MAX);
             link < numbering->graph->nlinks; link = next_link(numbering, part, link)) {
            if (numbering->number[link] == TUTTI_NO_NODE)
                continue;
            numbering->number[link] = first_link + kind->nlinks++;
            ret_used[count++] = link;
        }
        first_link += kind->nparts * kind->nlinks;
    }
    *ret_nused = count;
}

static int number_like(struct numbering *numbering, struct tutti_machine_crossing *crossings,
                       uint32_t ncrossings, uint32_t *ret_used, uint32_t *ret_nused,
                       struct tutti_machine_parts *ret_kinds, uint32_t *ret_nkinds)
{
    TUTTI_TRY(numbering_init(numbering));
    TUTTI_TRY(make_kinds(numbering, ret_kinds, ret_nkinds));
    for (uint32_t i = 0; i < ncrossings; i++)
        numbering->number[numbering->base[crossings[i].link]] = 0;
    number_used(numbering, ret_kinds, ret_used, ret_nused);
    for (uint32_t i = 0; i < ncrossings; i++) {
        uint32_t link = crossings[i].link, part = numbering->part_of[link];
        const struct tutti_machine_parts *kind = &ret_kinds[numbering->kind_of[part]];

        crossings[i].link = numbering->number[numbering->base[link]] +
                            (tutti_graph_is_second(numbering->parts, part) ? kind->nlinks : 0);
    }
    return TUTTI_OK;
}

int tutti_search_number_like(const struct tutti_graph *graph, const struct tutti_graph_parts *parts,
                             struct tutti_machine_crossing *crossings, uint32_t ncrossings,
                             uint32_t *ret_used, uint32_t *ret_nused,
                             struct tutti_machine_parts *ret_kinds, uint32_t *ret_nkinds)
{
    struct numbering numbering = {.graph = graph, .parts = parts};
    int rc = number_like(&numbering, crossings, ncrossings, ret_used, ret_nused, ret_kinds,
                         ret_nkinds);

    numbering_fini(&numbering);
    return rc;
}
