/* SPDX-License-Identifier: Apache-2.0
 * Data that leaves a part of a machine crosses the first link of some path. So all first links
 * together limit the rate of this data. The same holds for all last links, and for the narrowest
 * links of all paths. The least of these three sums is the bound. Each link counts once, at the
 * highest rate that any of the part's paths reaches on this link.
 *
 *   rank 0 ==a== switch ==b== rank 1      out of rank 0: first links a; last links b, c
 *                       ==c== rank 2      into rank 1: first links a, c'; last links b
 *
 * Each of these sets of links is a cut, but not always the minimum cut. A shared link in the middle
 * of paths is not considered unless it is the narrowest link of these paths.
 *
 * Of the like parts of a machine only the described one is surveyed. A path to another like part
 * then stands for paths to all of them. */
#include "simulator/bound_links.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>

/* The two ways over a border: data leave the part, or enter it. */
enum { OUT, IN, WAYS };

/* Selects the link of each path that counts in a sum. */
enum choice { FIRST, LAST, NARROWEST, CHOICES };

struct survey {
    const struct tutti_machine *machine;
    const uint32_t *of; /* per rank: its part; NULL: each rank is a part */
    uint32_t nparts;
    /* `order` lists the paths that cross a border, sorted by part. The paths of a part are
     * order[begin[part]] to order[begin[part + 1] - 1]. */
    uint32_t *order, *begin;
    /* Per described link, first those of the part's side, then those of the other side. */
    uint32_t *seen_in;       /* one plus the last part that counted the link; 0: none */
    double *counted;         /* the rate that the part in `seen_in` counted */
};

static uint32_t part_of(const struct survey *survey, uint32_t rank)
{
    return survey->of ? survey->of[rank] : rank;
}

/* Returns the rank in the same place of the first like part; without like parts, the rank. */
static uint32_t first_alike(const struct tutti_machine_links *links, uint32_t rank)
{
    uint32_t part;
    const struct tutti_machine_parts *kind = tutti_machine_part_of(links, rank, &part);

    return kind == NULL ? rank : rank - part * kind->nranks;
}

/* Returns the rate of a path on one of its links. */
static double rate_of(const struct tutti_machine *machine,
                      const struct tutti_machine_crossing *crossing)
{
    return tutti_machine_link(&machine->links, crossing->link)->bytes_per_s / crossing->weight;
}

/* The like parts of a path, as seen from one of its ends. */
struct ends {
    bool is_inside;  /* both ends are in one part, or there are no like parts */
    uint32_t copies; /* the paths of this end for which the path stands */
};

static struct ends find_ends(const struct tutti_machine_links *links,
                             const struct tutti_machine_path *path, int way)
{
    uint32_t from_part = 0, to_part = 0;
    const struct tutti_machine_parts *from = tutti_machine_part_of(links, path->from, &from_part);
    const struct tutti_machine_parts *to = tutti_machine_part_of(links, path->to, &to_part);
    struct ends ends = {.is_inside = from == to && from_part == to_part, .copies = 1};

    if (!ends.is_inside && from == to)
        ends.copies = from->nparts - 1;
    else if (!ends.is_inside)
        ends.copies = way == OUT ? to->nparts : from->nparts;
    return ends;
}

/* Returns true if a link is on the side of the part that the path leaves (OUT) or enters (IN). */
static bool is_own_link(const struct tutti_machine_links *links,
                        const struct tutti_machine_path *path, uint32_t link, int way)
{
    struct tutti_machine_shift shift = tutti_machine_shift_of(links, path->from, path->to);
    bool is_sender = link >= shift.first && link < shift.end;

    return is_sender == (way == OUT);
}

static const struct tutti_machine_crossing *choose_link(const struct tutti_machine *machine,
                                                        const struct tutti_machine_path *path,
                                                        enum choice choice)
{
    const struct tutti_machine_crossing *at = &machine->links.crossings[path->first], *best = at;

    if (choice == LAST)
        return &at[path->count - 1];
    for (uint32_t i = 1; i < path->count && choice == NARROWEST; i++)
        if (rate_of(machine, &at[i]) < rate_of(machine, best))
            best = &at[i];
    return best;
}

/* Returns the number of a path's link in `seen_in`. */
static uint32_t number_of(const struct tutti_machine_links *links, uint32_t link, bool is_own)
{
    uint32_t described = (uint32_t)(tutti_machine_link(links, link) - links->links);

    return described + (is_own ? 0 : links->nlinks);
}

/* Sums the rates of the chosen links of one part's paths. Returns INFINITY if a path has no links,
 * because data between two ranks on one device crosses no link. */
static double sum_links(const struct survey *survey, uint32_t part, enum choice choice, int way)
{
    const struct tutti_machine *machine = survey->machine;
    double sum = 0;

    for (uint32_t i = survey->begin[part]; i < survey->begin[part + 1]; i++) {
        const struct tutti_machine_path *path = &machine->links.paths[survey->order[i]];
        const struct tutti_machine_crossing *crossing;
        struct ends ends;
        uint32_t number;
        double rate;
        bool is_own;

        if (path->count == 0)
            return INFINITY;
        ends = find_ends(&machine->links, path, way);
        crossing = choose_link(machine, path, choice);
        rate = rate_of(machine, crossing);
        is_own = ends.is_inside || is_own_link(&machine->links, path, crossing->link, way);
        number = number_of(&machine->links, crossing->link, is_own);
        if (survey->seen_in[number] != part + 1)
            survey->counted[number] = 0;
        survey->seen_in[number] = part + 1;
        if (rate <= survey->counted[number])
            continue;
        sum += (rate - survey->counted[number]) * (is_own ? 1 : ends.copies);
        survey->counted[number] = rate;
    }
    return sum;
}

static bool crosses(const struct survey *survey, const struct tutti_machine_path *path)
{
    return part_of(survey, path->from) != part_of(survey, path->to);
}

/* Returns the part that a path leaves (OUT) or enters (IN), or the described one like it. */
static uint32_t part_at(const struct survey *survey, const struct tutti_machine_path *path, int way)
{
    return part_of(survey, first_alike(&survey->machine->links,
                                       way == OUT ? path->from : path->to));
}

/* Sorts the paths over borders by the part that they leave (OUT) or enter (IN). */
static void sort_paths(struct survey *survey, int way)
{
    const struct tutti_machine_links *links = &survey->machine->links;

    for (uint32_t part = 0; part <= survey->nparts; part++)
        survey->begin[part] = 0;
    for (uint32_t i = 0; i < links->npaths; i++)
        if (crosses(survey, &links->paths[i]))
            survey->begin[part_at(survey, &links->paths[i], way)]++;
    for (uint32_t part = 1; part <= survey->nparts; part++)
        survey->begin[part] += survey->begin[part - 1];
    /* begin[part] is now the end of the part's paths. Filling from the end moves it to the
     * start. */
    for (uint32_t i = links->npaths; i-- > 0;)
        if (crosses(survey, &links->paths[i]))
            survey->order[--survey->begin[part_at(survey, &links->paths[i], way)]] = i;
}

static void survey_way(struct survey *survey, int way, struct tutti_sim_border *borders)
{
    const struct tutti_machine_links *links = &survey->machine->links;

    sort_paths(survey, way);
    for (uint32_t part = 0; part < survey->nparts; part++)
        borders[part].bytes_per_s[way] = INFINITY;
    for (int choice = FIRST; choice < CHOICES; choice++) {
        for (uint32_t i = 0; i < 2 * links->nlinks; i++)
            survey->seen_in[i] = 0;
        for (uint32_t part = 0; part < survey->nparts; part++)
            borders[part].bytes_per_s[way] = fmin(borders[part].bytes_per_s[way],
                                                  sum_links(survey, part, (enum choice)choice,
                                                            way));
    }
}

static void count_pairs(const struct survey *survey, struct tutti_sim_border *borders)
{
    const struct tutti_machine *machine = survey->machine;

    for (uint32_t i = 0; i < machine->links.npaths; i++) {
        const struct tutti_machine_path *path = &machine->links.paths[i];
        bool is_near = tutti_machine_level(machine, path->from, path->to) == 0;

        if (!crosses(survey, path) || path->has_channel) /* another path of a pair */
            continue;
        for (int way = OUT; way < WAYS; way++) {
            struct tutti_sim_border *border = &borders[part_at(survey, path, way)];

            (is_near ? border->near : border->far)[way] +=
                find_ends(&machine->links, path, way).copies;
        }
    }
}

/* Returns true if some part reaches beyond one like part of the machine. `home` is scratch with an
 * entry for each part. */
static bool has_wide_part(const struct survey *survey, uint32_t *home)
{
    const struct tutti_machine_links *links = &survey->machine->links;

    for (uint32_t part = 0; part < survey->nparts; part++)
        home[part] = UINT32_MAX;
    for (uint32_t rank = 0; rank < survey->machine->places.nranks && links->nkinds > 0; rank++) {
        uint32_t number, first, *at = &home[part_of(survey, rank)];
        const struct tutti_machine_parts *kind = tutti_machine_part_of(links, rank, &number);

        first = kind->first_rank + number * kind->nranks;
        if (*at != UINT32_MAX && *at != first)
            return true;
        *at = first;
    }
    return false;
}

/* Copies the borders of the described parts to those that are like them. */
static void copy_borders(const struct survey *survey, struct tutti_sim_border *borders)
{
    const struct tutti_machine_links *links = &survey->machine->links;

    for (uint32_t rank = 0; rank < survey->machine->places.nranks && links->nkinds > 0; rank++)
        borders[part_of(survey, rank)] = borders[part_of(survey, first_alike(links, rank))];
}

static void survey_all(struct survey *survey, struct tutti_sim_border *borders)
{
    survey_way(survey, OUT, borders);
    survey_way(survey, IN, borders);
    count_pairs(survey, borders);
    copy_borders(survey, borders);
}

int tutti_sim_borders(const struct tutti_machine *machine, const uint32_t *of, uint32_t nparts,
                      struct tutti_sim_border *ret_borders)
{
    struct survey survey = {
        .machine = machine, .of = of, .nparts = nparts,
        .order = calloc((size_t)machine->links.npaths + 1, sizeof(*survey.order)),
        .begin = calloc((size_t)nparts + 1, sizeof(*survey.begin)),
        .seen_in = calloc(2 * (size_t)machine->links.nlinks + 1, sizeof(*survey.seen_in)),
        .counted = calloc(2 * (size_t)machine->links.nlinks + 1, sizeof(*survey.counted)),
    };
    bool has_room = survey.order != NULL && survey.begin != NULL && survey.seen_in != NULL &&
                    survey.counted != NULL;

    for (uint32_t part = 0; part < nparts; part++)
        ret_borders[part] = (struct tutti_sim_border){.near = {0}};
    if (has_room && machine->links.npaths > 0 && !has_wide_part(&survey, survey.begin))
        survey_all(&survey, ret_borders);
    else if (has_room && machine->links.npaths > 0)
        for (uint32_t part = 0; part < nparts; part++)
            ret_borders[part].bytes_per_s[OUT] = ret_borders[part].bytes_per_s[IN] = INFINITY;
    free(survey.order);
    free(survey.begin);
    free(survey.seen_in);
    free(survey.counted);
    return has_room ? TUTTI_OK
                    : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for bounds of %u paths",
                                 machine->links.npaths);
}
