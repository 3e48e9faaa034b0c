/* SPDX-License-Identifier: Apache-2.0
 * Sets penalties of paths step by step, and keeps those that cost little. */
#include "topology/search/taste.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The penalty of an excluded path. A ring or tree that uses it has a negative value. */
#define EXCLUDING 2.0
/* The small penalties of a ring add up to at most about this. */
#define PREFERENCE 0.01
/* A port is weak only if its rate is below this part of the rate of the widest port. */
#define WEAK_RATE 0.25

/* ---- solutions ------------------------------------------------------------------------------- */

static size_t npairs(const struct tutti_search_state *search)
{
    return (size_t)search->pricing.nplaces * search->pricing.nplaces;
}

static double sum_of(const double *share, uint32_t count)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += share[i];
    return sum;
}

static double rate_of(const struct tutti_taste_level *level)
{
    return sum_of(level->share, level->nshares);
}

static void drop_level(struct tutti_taste_level *level)
{
    free(level->share);
    free(level->penalty);
    *level = (struct tutti_taste_level){0};
}

/* Stores the present solution with its penalties. */
static int store_level(const struct tutti_search_state *search, struct tutti_taste_level *level)
{
    struct tutti_taste_level found = {.nshares = search->ncolumns};

    found.penalty = malloc(npairs(search) * sizeof *found.penalty);
    if (found.penalty == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places",
                          search->pricing.nplaces);
    memcpy(found.penalty, search->pricing.penalty, npairs(search) * sizeof *found.penalty);
    if (tutti_search_shares(search, &found.share) != TUTTI_OK) {
        free(found.penalty);
        return TUTTI_ERR_SYSTEM;
    }
    drop_level(level);
    *level = found;
    return TUTTI_OK;
}

static void measure_columns(struct tutti_search_state *search)
{
    for (uint32_t i = 0; i < search->ncolumns; i++)
        tutti_column_measure(&search->pricing, search->pattern, &search->columns[i]);
}

void tutti_taste_use(struct tutti_search_state *search, const struct tutti_taste_level *level)
{
    memcpy(search->pricing.penalty, level->penalty, npairs(search) * sizeof *level->penalty);
    measure_columns(search);
    search->share = level->share;
    search->nshares = level->nshares;
}

/* Solves the linear program with the penalties of the search. If the shares add up to `least`, the
 * solution replaces *level. Otherwise the penalties become those of `before` again. */
static int try_penalties(struct tutti_search_state *search, double least,
                         const struct tutti_taste_level *before, struct tutti_taste_level *level,
                         bool *ret_is_kept)
{
    struct tutti_taste_level found = {0};

    measure_columns(search);
    TUTTI_TRY(tutti_search_revalue(search));
    TUTTI_TRY(tutti_search_generate(search, false));
    TUTTI_TRY(store_level(search, &found));
    *ret_is_kept = rate_of(&found) >= least;
    if (*ret_is_kept) {
        drop_level(level);
        *level = found;
        return TUTTI_OK;
    }
    drop_level(&found);
    memcpy(search->pricing.penalty, before->penalty, npairs(search) * sizeof *before->penalty);
    return TUTTI_OK;
}

/* ---- weak ports ------------------------------------------------------------------------------ */

/* Returns the rate of a single flow from the best gpu to a net. */
static double rate_of_net(const struct tutti_pricing *pricing, const struct tutti_paths *paths,
                          uint32_t net)
{
    double rate = 0;

    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++)
        rate = fmax(
            rate, tutti_paths_between(paths, pricing->node[gpu], pricing->node[net])->bytes_per_s);
    return rate;
}

static void exclude_net(struct tutti_pricing *pricing, uint32_t net)
{
    for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++) {
        pricing->penalty[gpu * pricing->nplaces + net] = EXCLUDING;
        pricing->penalty[net * pricing->nplaces + gpu] = EXCLUDING;
    }
}

/* Returns the net with the lowest rate among those at `limit` or below that were not tried;
 * TUTTI_NO_NODE: none. */
static uint32_t next_weak(const struct tutti_pricing *pricing, const double *rate,
                          const bool *is_tried, double limit)
{
    uint32_t next = TUTTI_NO_NODE;

    for (uint32_t net = pricing->ngpus; net < pricing->nplaces; net++)
        if (!is_tried[net] && rate[net] < limit &&
            (next == TUTTI_NO_NODE || rate[net] < rate[next]))
            next = net;
    return next;
}

/* Tries to leave out each weak port, beginning with the one of the lowest rate. */
static int leave_out(struct tutti_search_state *search, const struct tutti_paths *paths,
                     double *rate, bool *is_tried, struct tutti_taste *taste)
{
    struct tutti_pricing *pricing = &search->pricing;
    struct tutti_taste_level *base = &taste->level[0];
    double optimum = rate_of(base), widest = 0;
    uint32_t net;

    for (net = pricing->ngpus; net < pricing->nplaces; net++) {
        rate[net] = rate_of_net(pricing, paths, net);
        widest = fmax(widest, rate[net]);
    }
    while ((net = next_weak(pricing, rate, is_tried, WEAK_RATE * widest)) != TUTTI_NO_NODE) {
        double before = rate_of(base);
        bool is_kept;

        is_tried[net] = true;
        exclude_net(pricing, net);
        TUTTI_TRY(try_penalties(search, (1 - TUTTI_TASTE_WEAK) * optimum, base, base, &is_kept));
        if (is_kept)
            taste->weak[taste->nweak++] =
                (struct tutti_left_out){.net = paths->graph->nodes[pricing->node[net]].number,
                                        .gain = fmax(0, before - rate_of(base)) / optimum};
    }
    return TUTTI_OK;
}

static int leave_weak_ports_out(struct tutti_search_state *search, const struct tutti_paths *paths,
                                struct tutti_taste *taste)
{
    uint32_t nplaces = search->pricing.nplaces;
    double *rate = calloc(nplaces, sizeof *rate);
    bool *is_tried = calloc(nplaces, sizeof *is_tried);
    int rc;

    taste->weak = calloc(search->pricing.nnets + 1, sizeof *taste->weak);
    if (rate == NULL || is_tried == NULL || taste->weak == NULL)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a search of %u places", nplaces);
    else
        rc = leave_out(search, paths, rate, is_tried, taste);
    free(rate);
    free(is_tried);
    return rc;
}

/* ---- better paths ---------------------------------------------------------------------------- */

/* Excludes all paths between gpus that do not consist of NVLinks. Returns false if that excludes
 * none, or all. */
static bool prefer_nvlinks(struct tutti_pricing *pricing)
{
    bool has_nvlinks = false, has_others = false;

    for (uint32_t from = 0; from < pricing->ngpus; from++)
        for (uint32_t to = 0; to < pricing->ngpus; to++) {
            uint32_t pair = from * pricing->nplaces + to;

            if (from == to || pricing->path[pair].class <= TUTTI_PATH_NVB) {
                has_nvlinks = has_nvlinks || from != to;
                continue;
            }
            has_others = true;
            pricing->penalty[pair] = EXCLUDING;
        }
    return has_nvlinks && has_others;
}

/* Excludes the paths between gpus and nets that are worse than the best one of the net, except over
 * NVLinks. Returns false if there is no such path. */
static bool prefer_near_ports(struct tutti_pricing *pricing)
{
    bool has_far = false;

    for (uint32_t net = pricing->ngpus; net < pricing->nplaces; net++) {
        enum tutti_path_class best = TUTTI_PATH_DIS;

        for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++)
            if (pricing->path[net * pricing->nplaces + gpu].class < best)
                best = pricing->path[net * pricing->nplaces + gpu].class;
        best = best < TUTTI_PATH_PXN ? TUTTI_PATH_PXN : best;
        for (uint32_t gpu = 0; gpu < pricing->ngpus; gpu++) {
            if (pricing->path[net * pricing->nplaces + gpu].class <= best)
                continue;
            has_far = true;
            pricing->penalty[net * pricing->nplaces + gpu] = EXCLUDING;
            pricing->penalty[gpu * pricing->nplaces + net] = EXCLUDING;
        }
    }
    return has_far;
}

/* Half of the small penalties is for the paths between gpus, and half for those to nets. */
void tutti_taste_prefer(struct tutti_search_state *search)
{
    struct tutti_pricing *pricing = &search->pricing;

    for (uint32_t from = 0; from < pricing->nplaces; from++)
        for (uint32_t to = 0; to < pricing->nplaces; to++) {
            uint32_t pair = from * pricing->nplaces + to;
            bool has_net = from >= pricing->ngpus || to >= pricing->ngpus;
            double weight = (double)pricing->path[pair].class / TUTTI_PATH_CLASSES;

            if (pricing->penalty[pair] < TUTTI_TASTE_EXCLUDED)
                pricing->penalty[pair] =
                    PREFERENCE / 2 * weight / (has_net ? 2 : (double)pricing->ngpus);
        }
    measure_columns(search);
}

/* Takes the steps 2 to 4. A step that costs too much is undone. */
static int prefer_paths(struct tutti_search_state *search, struct tutti_taste *taste)
{
    double least = (1 - TUTTI_TASTE_LOSS) * rate_of(&taste->level[0]);

    for (int step = 2; step <= 4; step++) {
        const struct tutti_taste_level *before = &taste->level[taste->nlevels - 1];
        bool has_changed = true, is_kept;

        if (step == 2)
            has_changed = prefer_nvlinks(&search->pricing);
        else if (step == 3)
            has_changed = prefer_near_ports(&search->pricing);
        else
            tutti_taste_prefer(search);
        if (!has_changed) {
            memcpy(search->pricing.penalty, before->penalty,
                   npairs(search) * sizeof *before->penalty);
            continue;
        }
        TUTTI_TRY(try_penalties(search, least, before, &taste->level[taste->nlevels], &is_kept));
        taste->nlevels += is_kept;
    }
    return TUTTI_OK;
}

int tutti_taste_find(struct tutti_search_state *search, const struct tutti_paths *paths,
                     bool for_rate_only, struct tutti_taste *taste)
{
    *taste = (struct tutti_taste){.nlevels = 1};
    TUTTI_TRY(store_level(search, &taste->level[0]));
    if (for_rate_only || tutti_search_is_hasty(search))
        return TUTTI_OK;
    search->pricing.is_quick = true;
    TUTTI_TRY(leave_weak_ports_out(search, paths, taste));
    return prefer_paths(search, taste);
}

void tutti_taste_fini(struct tutti_taste *taste)
{
    for (uint32_t i = 0; i < TUTTI_TASTE_LEVELS; i++)
        drop_level(&taste->level[i]);
    free(taste->weak);
    *taste = (struct tutti_taste){0};
}
