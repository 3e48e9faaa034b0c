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
 * of paths is not considered unless it is the narrowest link of these paths. */
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
    uint32_t *seen_in;       /* per link: one plus the last part that counted it; 0: none */
    double *counted;         /* per link: the rate that the part in `seen_in` counted */
};

static uint32_t part_of(const struct survey *survey, uint32_t rank)
{
    return survey->of ? survey->of[rank] : rank;
}

/* Returns the rate of a path on one of its links. */
static double rate_of(const struct tutti_machine *machine,
                      const struct tutti_machine_crossing *crossing)
{
    return machine->links.links[crossing->link].bytes_per_s / crossing->weight;
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

/* Sums the rates of the chosen links of one part's paths. Returns INFINITY if a path has no links,
 * because data between two ranks on one device crosses no link. */
static double sum_links(const struct survey *survey, uint32_t part, enum choice choice)
{
    const struct tutti_machine *machine = survey->machine;
    double sum = 0;

    for (uint32_t i = survey->begin[part]; i < survey->begin[part + 1]; i++) {
        const struct tutti_machine_path *path = &machine->links.paths[survey->order[i]];
        const struct tutti_machine_crossing *crossing;
        double rate;

        if (path->count == 0)
            return INFINITY;
        crossing = choose_link(machine, path, choice);
        rate = rate_of(machine, crossing);
        if (survey->seen_in[crossing->link] != part + 1)
            survey->counted[crossing->link] = 0;
        survey->seen_in[crossing->link] = part + 1;
        if (rate <= survey->counted[crossing->link])
            continue;
        sum += rate - survey->counted[crossing->link];
        survey->counted[crossing->link] = rate;
    }
    return sum;
}

static bool crosses(const struct survey *survey, const struct tutti_machine_path *path)
{
    return part_of(survey, path->from) != part_of(survey, path->to);
}

/* Returns the part that a path leaves (OUT) or enters (IN). */
static uint32_t part_at(const struct survey *survey, const struct tutti_machine_path *path, int way)
{
    return part_of(survey, way == OUT ? path->from : path->to);
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
        for (uint32_t i = 0; i < links->nlinks; i++)
            survey->seen_in[i] = 0;
        for (uint32_t part = 0; part < survey->nparts; part++)
            borders[part].bytes_per_s[way] = fmin(borders[part].bytes_per_s[way],
                                                  sum_links(survey, part, (enum choice)choice));
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

            (is_near ? border->near : border->far)[way]++;
        }
    }
}

int tutti_sim_borders(const struct tutti_machine *machine, const uint32_t *of, uint32_t nparts,
                      struct tutti_sim_border *ret_borders)
{
    struct survey survey = {
        .machine = machine, .of = of, .nparts = nparts,
        .order = calloc((size_t)machine->links.npaths + 1, sizeof(*survey.order)),
        .begin = calloc((size_t)nparts + 1, sizeof(*survey.begin)),
        .seen_in = calloc((size_t)machine->links.nlinks + 1, sizeof(*survey.seen_in)),
        .counted = calloc((size_t)machine->links.nlinks + 1, sizeof(*survey.counted)),
    };
    bool has_room = survey.order != NULL && survey.begin != NULL && survey.seen_in != NULL &&
                    survey.counted != NULL;

    for (uint32_t part = 0; part < nparts; part++)
        ret_borders[part] = (struct tutti_sim_border){.near = {0}};
    if (has_room && machine->links.npaths > 0) {
        survey_way(&survey, OUT, ret_borders);
        survey_way(&survey, IN, ret_borders);
        count_pairs(&survey, ret_borders);
    }
    free(survey.order);
    free(survey.begin);
    free(survey.seen_in);
    free(survey.counted);
    return has_room ? TUTTI_OK
                    : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for bounds of %u paths",
                                 machine->links.npaths);
}
