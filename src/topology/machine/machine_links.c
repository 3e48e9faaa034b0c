/* SPDX-License-Identifier: Apache-2.0
 * Checks, sets and finds the links and paths of a machine that is known as a graph. */
#include "topology/machine/machine_draft.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tutti_links_free_array(const void *array)
{
    free((void *)(uintptr_t)array);
}

void tutti_links_fini(struct tutti_machine_links *links)
{
    tutti_links_free_array(links->links);
    tutti_links_free_array(links->paths);
    tutti_links_free_array(links->crossings);
    tutti_links_free_array(links->kinds);
    *links = (struct tutti_machine_links){.nlinks = 0};
}

/* ---- checks ---------------------------------------------------------------------------------- */

bool tutti_links_is_name(const char *name, size_t length)
{
    bool is_good = length > 0 && length < TUTTI_MACHINE_NAME_BYTES &&
                   ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));

    for (size_t i = 0; i < length && is_good; i++)
        is_good = name[i] > ' ' && name[i] <= '~' && name[i] != ';' && name[i] != '#';
    return is_good;
}

static int check_link(const struct tutti_machine_link *link, uint32_t number)
{
    size_t length = strnlen(link->name, sizeof link->name);

    if (!(link->bytes_per_s >= 1) || !isfinite(link->bytes_per_s))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "link %u carries %g B/s; a link carries 1 B/s or "
                          "more", number, link->bytes_per_s);
    if (length > 0 && !tutti_links_is_name(link->name, length))
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "link %u has the name \"%.*s\"; a name begins "
                          "with a letter, has no blank, ; or #, and at most %d characters",
                          number, (int)length, link->name, TUTTI_MACHINE_NAME_BYTES - 1);
    return TUTTI_OK;
}

static int check_crossing(const struct tutti_machine_links *links,
                          const struct tutti_machine_path *path, uint32_t at)
{
    const struct tutti_machine_crossing *crossing = &links->crossings[path->first + at];

    if (crossing->link >= tutti_machine_link_count(links))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u crosses link %u, but "
                          "there are %u", path->from, path->to, crossing->link,
                          tutti_machine_link_count(links));
    if (!tutti_links_may_cross(links, path->from, path->to, crossing->link))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u crosses link %u, which "
                          "is in neither of their parts", path->from, path->to, crossing->link);
    if (!(crossing->weight >= TUTTI_MACHINE_WEIGHT_LEAST &&
          crossing->weight <= TUTTI_MACHINE_WEIGHT_MOST))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u takes %g bytes of link "
                          "%u for each byte; give a weight from %g to %g", path->from, path->to,
                          crossing->weight, crossing->link, TUTTI_MACHINE_WEIGHT_LEAST,
                          TUTTI_MACHINE_WEIGHT_MOST);
    for (uint32_t i = 0; i < at; i++)
        if (links->crossings[path->first + i].link == crossing->link)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u crosses link %u "
                              "twice; give the link once, with the sum of the weights", path->from,
                              path->to, crossing->link);
    return TUTTI_OK;
}

static int check_path(const struct tutti_machine_links *links,
                      const struct tutti_machine_path *path, uint32_t nranks)
{
    uint32_t from = path->from, to = path->to;

    if (path->from >= nranks || path->to >= nranks || path->from == path->to)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "a path from rank %u to %u; it joins two of ranks 0 "
                          "to %u", path->from, path->to, nranks - 1);
    if (path->count > TUTTI_MACHINE_PATH_LINKS || path->first > links->ncrossings ||
        path->count > links->ncrossings - path->first)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u has crossings %u to %u "
                          "of %u; it has at most %u of those there are", path->from, path->to,
                          path->first, path->first + path->count, links->ncrossings,
                          TUTTI_MACHINE_PATH_LINKS);
    if (isnan(path->latency_s) || isinf(path->latency_s))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u has a latency of %g; "
                          "give seconds, or less than 0 for that of the level", path->from,
                          path->to, path->latency_s);
    if (!path->has_channel && path->channel != 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path from rank %u to %u is for all channels, "
                          "and for channel %u; set has_channel, or no channel", path->from,
                          path->to, path->channel);
    tutti_links_described(links, &from, &to);
    if (from != path->from || to != path->to)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "a path from rank %u to %u; of like parts, only the "
                          "path from rank %u to %u is described", path->from, path->to, from, to);
    for (uint32_t i = 0; i < path->count; i++)
        TUTTI_TRY(check_crossing(links, path, i));
    return TUTTI_OK;
}

static int check_links(const struct tutti_machine_links *links, uint32_t nranks)
{
    if (links->nlinks > TUTTI_MACHINE_LINKS || links->npaths > TUTTI_MACHINE_PATHS)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%u links and %u paths; there may be %u and %u",
                          links->nlinks, links->npaths, TUTTI_MACHINE_LINKS, TUTTI_MACHINE_PATHS);
    for (uint32_t i = 0; i < links->nlinks; i++)
        TUTTI_TRY(check_link(&links->links[i], i));
    for (uint32_t i = 0; i < links->npaths; i++)
        TUTTI_TRY(check_path(links, &links->paths[i], nranks));
    return TUTTI_OK;
}

/* ---- setting and finding --------------------------------------------------------------------- */

static int compare_paths(const void *a, const void *b)
{
    const struct tutti_machine_path *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->has_channel != y->has_channel)
        return x->has_channel ? 1 : -1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

/* Copies `count` elements into a new array; *ret_copy, which is a pointer, is NULL for none. */
static int copy_array(const void *from, size_t count, size_t size_bytes, void *ret_copy)
{
    void *to = NULL;

    if (count > 0) {
        to = malloc(count * size_bytes);
        if (to == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu links or paths", count);
        memcpy(to, from, count * size_bytes);
    }
    memcpy(ret_copy, &to, sizeof to);
    return TUTTI_OK;
}

/* Sorts the paths, and refuses two paths of the same pair and channel. */
static int sort_paths(struct tutti_machine_path *paths, uint32_t npaths)
{
    if (npaths > 1)
        qsort(paths, npaths, sizeof *paths, compare_paths);
    for (uint32_t i = 1; i < npaths; i++)
        if (compare_paths(&paths[i - 1], &paths[i]) == 0)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "two paths from rank %u to %u; there is one for "
                              "each pair, and one for each of its channels", paths[i].from,
                              paths[i].to);
    return TUTTI_OK;
}

int tutti_machine_set_links(struct tutti_machine *machine, const struct tutti_machine_links *links)
{
    struct tutti_machine_links own = {.nlinks = links->nlinks, .npaths = links->npaths,
                                      .ncrossings = links->ncrossings, .nkinds = links->nkinds};
    struct tutti_machine changed = *machine;
    struct tutti_machine_parts *kinds;
    struct tutti_machine_path *paths;
    const double *ring_rates;
    int rc;

    TUTTI_TRY(copy_array(links->kinds, links->nkinds, sizeof *links->kinds, &kinds));
    own.kinds = kinds;
    TUTTI_TRY_OR(fail, rc, tutti_links_number_parts(kinds, own.nkinds, machine->places.nranks,
                                              links->nlinks));
    changed.links = *links;
    changed.links.kinds = kinds;
    TUTTI_TRY_OR(fail, rc, check_links(&changed.links, machine->places.nranks));
    TUTTI_TRY_OR(fail, rc, copy_array(links->paths, links->npaths, sizeof *links->paths, &paths));
    own.paths = paths;
    TUTTI_TRY_OR(fail, rc, sort_paths(paths, links->npaths));
    TUTTI_TRY_OR(fail, rc,
                 copy_array(links->links, links->nlinks, sizeof *links->links, &own.links));
    TUTTI_TRY_OR(fail, rc, copy_array(links->crossings, links->ncrossings, sizeof *links->crossings,
                                &own.crossings));
    changed.links = own;
    changed.has_channel_paths = false;
    for (uint32_t i = 0; i < own.npaths; i++)
        changed.has_channel_paths |= paths[i].has_channel;
    TUTTI_TRY_OR(fail, rc, tutti_links_find_ring_rates(&changed, &ring_rates));
    tutti_links_fini(&machine->links);
    tutti_links_free_array(machine->ring_rates);
    machine->links = own;
    machine->has_channel_paths = changed.has_channel_paths;
    machine->ring_rates = ring_rates;
    return TUTTI_OK;

fail:
    tutti_links_fini(&own);
    return rc;
}

static const struct tutti_machine_path *find_path(const struct tutti_machine *machine,
                                                  const struct tutti_machine_path *wanted)
{
    struct tutti_machine_path described = *wanted;

    if (machine->links.npaths == 0)
        return NULL;
    tutti_links_described(&machine->links, &described.from, &described.to);
    return bsearch(&described, machine->links.paths, machine->links.npaths, sizeof described,
                   compare_paths);
}

const struct tutti_machine_path *tutti_machine_path(const struct tutti_machine *machine,
                                                    uint32_t from, uint32_t to)
{
    return find_path(machine, &(struct tutti_machine_path){.from = from, .to = to});
}

const struct tutti_machine_path *tutti_machine_channel_path(const struct tutti_machine *machine,
                                                            uint32_t from, uint32_t to,
                                                            uint8_t channel)
{
    const struct tutti_machine_path wanted = {
        .from = from, .to = to, .has_channel = true, .channel = channel};
    const struct tutti_machine_path *path = NULL;

    if (machine->has_channel_paths)
        path = find_path(machine, &wanted);
    return path != NULL ? path : tutti_machine_path(machine, from, to);
}

double tutti_machine_path_rate(const struct tutti_machine *machine,
                               const struct tutti_machine_path *path)
{
    const struct tutti_machine_links *links = &machine->links;
    double narrowest = 0;

    for (uint32_t i = path->first; i < path->first + path->count; i++) {
        double rate = tutti_machine_link(links, links->crossings[i].link)->bytes_per_s /
                      links->crossings[i].weight;

        narrowest = narrowest == 0 || rate < narrowest ? rate : narrowest;
    }
    return narrowest;
}

double tutti_machine_path_latency_s(const struct tutti_machine *machine,
                                    const struct tutti_machine_path *path, uint32_t from,
                                    uint32_t to)
{
    return path->latency_s >= 0
               ? path->latency_s
               : machine->level[tutti_machine_level(machine, from, to)].latency_s;
}
