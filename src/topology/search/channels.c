/* SPDX-License-Identifier: Apache-2.0
 * Converts shares of any size to channels of one width (rate in B/s). For a given width, each
 * column (ring or tree) becomes as many channels as fit in its share. The remaining capacity of the
 * links is filled with the cheapest rings or trees that still fit. Few wide channels are tried
 * before many narrow ones, which are chosen only if they carry more.
 */
#include "topology/search/channels.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A larger number of channels must carry more by this factor. */
#define GAIN 1.001
/* The search for a width ends when the channels carry this part of the optimum. */
#define ENOUGH 0.9995
/* Single shares are divided into at most this many equal parts to get a width. */
enum { SHARE_PARTS = 4 };
/* Relative tolerances for sums of floating-point numbers: of capacities, and of shares. */
#define CAPACITY_TOLERANCE 1e-6
#define SHARE_TOLERANCE 1e-5
/* Of two values, the first one counts as larger only if it is larger by this part. */
#define EQUAL_TOLERANCE 1e-9
/* A link with a smaller part of the bound than this is no bottleneck. */
#define LEAST_BOUND_SHARE 1e-6

/* The channels for one width. */
struct packing {
    struct tutti_search_state *search;
    uint32_t most;                          /* upper bound for the channels */
    double *left;                           /* free capacity of each link */
    struct tutti_search_column column[TUTTI_SEARCH_CHANNELS]; /* borrowed from the search, or own */
    bool is_own[TUTTI_SEARCH_CHANNELS];
    uint32_t count; /* of channels */
    double width;   /* of each channel, in B/s */
};

static void remove_channels(struct packing *packing)
{
    for (uint32_t i = 0; i < packing->count; i++)
        if (packing->is_own[i])
            tutti_column_destroy(&packing->column[i]);
    packing->count = 0;
}

/* Adds a channel, which must fit. */
static void add_channel(struct packing *packing, const struct tutti_search_column *column,
                        bool is_own)
{
    for (uint32_t i = 0; i < packing->search->pricing.nlinks; i++)
        packing->left[i] -= packing->width * column->use[i];
    packing->is_own[packing->count] = is_own;
    packing->column[packing->count++] = *column;
}

/* Returns true if the links have room for one more channel. */
static bool fits(const struct packing *packing, const struct tutti_search_column *column)
{
    for (uint32_t i = 0; i < packing->search->pricing.nlinks; i++)
        if (packing->width * column->use[i] >
            packing->left[i] + CAPACITY_TOLERANCE * packing->search->pricing.capacity[i])
            return false;
    return true;
}

/* Adds the cheapest channels while they fit. A link's price grows as the link fills. A link that
 * cannot take one more channel has an infinite price. */
static int fill_up(struct packing *packing)
{
    struct tutti_search_state *search = packing->search;
    const struct tutti_pricing *pricing = &search->pricing;
    int rc = TUTTI_OK;

    while (packing->count < packing->most && rc == TUTTI_OK) {
        struct tutti_search_column column;
        double cost, least;
        bool is_good;

        for (uint32_t i = 0; i < pricing->nlinks; i++)
            search->price[i] = packing->left[i] < packing->width * (1 - CAPACITY_TOLERANCE)
                                   ? INFINITY
                                   : 1 / packing->left[i];
        tutti_pricing_costs(pricing, search->price, search->cost);
        TUTTI_TRY(tutti_column_create(pricing, &column));
        rc = search->pattern == TUTTI_PATTERN_RING
                 ? tutti_pricing_cheapest_ring(pricing, search->cost, false, &column, &cost, &least)
                 : tutti_pricing_cheapest_tree(pricing, search->cost, search->pattern, &column,
                                               &cost);
        is_good = rc == TUTTI_OK && isfinite(cost) && fits(packing, &column);
        if (!is_good) {
            tutti_column_destroy(&column);
            break;
        }
        add_channel(packing, &column, true);
    }
    return rc;
}

/* Makes the channels for one width: as many of each column as fit in its share, and then others. */
static int pack(struct packing *packing, double width)
{
    const struct tutti_search_state *search = packing->search;

    remove_channels(packing);
    packing->width = width;
    memcpy(packing->left, search->pricing.capacity, search->pricing.nlinks * sizeof *packing->left);
    for (uint32_t i = 0; i < search->ncolumns; i++)
        for (double share = search->share[i];
             share >= width * (1 - SHARE_TOLERANCE) && packing->count < packing->most &&
             fits(packing, &search->columns[i]);
             share -= width)
            add_channel(packing, &search->columns[i], false);
    return fill_up(packing);
}

/* Sets the greatest width at which all packed channels fit. */
static void widen(struct packing *packing)
{
    const struct tutti_pricing *pricing = &packing->search->pricing;

    packing->width = INFINITY;
    for (uint32_t i = 0; i < pricing->nlinks; i++) {
        double use = 0;

        for (uint32_t c = 0; c < packing->count; c++)
            use += packing->column[c].use[i];
        if (use > 0)
            packing->width = fmin(packing->width, pricing->capacity[i] / use);
    }
}

static double rate_of(const struct packing *packing)
{
    return packing->count == 0 ? 0 : packing->width * packing->count;
}

/* Returns the sum of all shares, which is the optimum. */
static double sum_of_shares(const struct tutti_search_state *search)
{
    double sum = 0;

    for (uint32_t i = 0; i < search->ncolumns; i++)
        sum += search->share[i];
    return sum;
}

/* Makes the channels for one width, unless they cannot carry more than *best. Updates *best and
 * *best_width if they carry more. */
static int try_width(struct packing *packing, double width, double *best, double *best_width)
{
    double sum = sum_of_shares(packing->search), most_channels;

    if (*best >= ENOUGH * sum || !(width > 0))
        return TUTTI_OK;
    most_channels = fmin(floor(sum / width + SHARE_TOLERANCE), packing->most);
    if (width * most_channels <= *best * GAIN)
        return TUTTI_OK;
    TUTTI_TRY(pack(packing, width));
    widen(packing);
    if (rate_of(packing) > *best * GAIN) {
        *best = rate_of(packing);
        *best_width = width;
    }
    return TUTTI_OK;
}

/* Finds the width with which the channels carry the most; infinite: nothing limits the channels.
 * Useful widths are equal parts of the sum of shares, and parts of single shares. */
static int choose_width(struct packing *packing, double *ret_width)
{
    const struct tutti_search_state *search = packing->search;
    double sum = sum_of_shares(search), best = 0;

    *ret_width = INFINITY;
    if (isinf(sum))
        return TUTTI_OK;
    for (uint32_t parts = 1; parts <= packing->most; parts++) {
        TUTTI_TRY(try_width(packing, sum / parts, &best, ret_width));
        for (uint32_t i = 0; i < search->ncolumns && parts <= SHARE_PARTS; i++)
            if (search->share[i] > 0)
                TUTTI_TRY(try_width(packing, search->share[i] / parts, &best, ret_width));
    }
    return TUTTI_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static enum tutti_path_class class_between(const struct tutti_pricing *pricing, uint32_t from,
                                           uint32_t to)
{
    return pricing->path[from * pricing->nplaces + to].class;
}

/* Returns the worst class of the paths between gpus of a channel. */
static enum tutti_path_class worst_between_gpus(const struct tutti_pricing *pricing,
                                                enum tutti_pattern pattern,
                                                const struct tutti_search_column *column)
{
    enum tutti_path_class worst = TUTTI_PATH_LOC;
    uint32_t n = pricing->ngpus;

    for (uint32_t i = 0; i < n; i++) {
        bool is_ring = pattern == TUTTI_PATTERN_RING;
        uint32_t from = column->gpu[i]; /* of a tree: the parent of gpu i */
        uint32_t to = is_ring ? column->gpu[(i + 1) % n] : i;
        /* A ring with nets is not closed within the host, and a root has no parent. */
        bool is_edge = is_ring ? i + 1 < n || column->net_in == TUTTI_NO_NODE
                               : from != TUTTI_NO_NODE;

        if (is_edge && from != to && class_between(pricing, from, to) > worst)
            worst = class_between(pricing, from, to);
    }
    return worst;
}

/* Returns the worst class of the paths of a channel to and from its nets; LOC: it has no nets. */
static enum tutti_path_class worst_to_nets(const struct tutti_pricing *pricing,
                                           enum tutti_pattern pattern,
                                           const struct tutti_search_column *column)
{
    uint32_t first = column->gpu[0], last = column->gpu[pricing->ngpus - 1];
    enum tutti_path_class in, out;

    if (column->net_in == TUTTI_NO_NODE)
        return TUTTI_PATH_LOC;
    if (pattern != TUTTI_PATTERN_RING) {
        for (first = 0; column->gpu[first] != TUTTI_NO_NODE; first++)
            ; /* up to the root */
        last = first;
    }
    in = class_between(pricing, column->net_in, first);
    out = class_between(pricing, last, column->net_out);
    return in > out ? in : out;
}

/* Returns the link of the graph, among those that a channel crosses, that all channels together
 * fill the most; TUTTI_NO_NODE: the channel crosses none. load[i] is the use of link i by all
 * channels. */
static uint32_t fullest_link(const struct tutti_pricing *pricing, const double *load,
                             const struct tutti_search_column *column)
{
    uint32_t fullest = TUTTI_NO_NODE;
    double most = 0;

    for (uint32_t i = 0; i < pricing->nlinks; i++) {
        double fill = load[i] / pricing->capacity[i];

        if (column->use[i] > 0 && fill > most * (1 + EQUAL_TOLERANCE)) {
            most = fill;
            fullest = pricing->link[i];
        }
    }
    return fullest;
}

/* Returns the number, within the graph, of the net at a place. */
static uint32_t net_number(const struct tutti_paths *paths, const struct tutti_pricing *pricing,
                           uint32_t place)
{
    return place == TUTTI_NO_NODE ? TUTTI_NO_NODE
                                  : paths->graph->nodes[pricing->node[place]].number;
}

/* Copies the channels `copies` times into the plan. */
static int copy_channels(const struct packing *packing, const struct tutti_paths *paths,
                         uint32_t copies, struct tutti_channels *plan)
{
    const struct tutti_pricing *pricing = &packing->search->pricing;
    enum tutti_pattern pattern = packing->search->pattern;
    double *load = calloc(pricing->nlinks + 1, sizeof *load);

    if (load == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    for (uint32_t c = 0; c < packing->count; c++)
        for (uint32_t i = 0; i < pricing->nlinks; i++)
            load[i] += packing->column[c].use[i];
    for (uint32_t copy = 0; copy < copies; copy++)
        for (uint32_t c = 0; c < packing->count; c++) {
            struct tutti_channel *channel = &plan->channel[plan->nchannels];
            const struct tutti_search_column *column = &packing->column[c];

            channel->gpu = malloc(pricing->ngpus * sizeof *channel->gpu);
            if (channel->gpu == NULL) {
                free(load);
                return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
            }
            plan->nchannels++;
            memcpy(channel->gpu, column->gpu, pricing->ngpus * sizeof *channel->gpu);
            channel->net_in = net_number(paths, pricing, column->net_in);
            channel->net_out = net_number(paths, pricing, column->net_out);
            channel->intra = worst_between_gpus(pricing, pattern, column);
            channel->inter = worst_to_nets(pricing, pattern, column);
            channel->bound_link = fullest_link(pricing, load, column);
        }
    free(load);
    return TUTTI_OK;
}

/* Lists the bottleneck links in the plan, by falling part of the bound. */
static int copy_bounds(const struct tutti_search_state *search, struct tutti_channels *plan)
{
    const struct tutti_pricing *pricing = &search->pricing;
    double sum = 0;

    plan->bound_link = calloc(pricing->nlinks + 1, sizeof *plan->bound_link);
    plan->bound_share = calloc(pricing->nlinks + 1, sizeof *plan->bound_share);
    if (plan->bound_link == NULL || plan->bound_share == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    for (uint32_t i = 0; i < pricing->nlinks; i++)
        sum += search->bound_price[i];
    for (uint32_t i = 0; i < pricing->nlinks; i++) {
        double share = sum > 0 ? search->bound_price[i] / sum : 0;
        uint32_t at = plan->nbounds;

        if (share < LEAST_BOUND_SHARE)
            continue;
        for (; at > 0 && plan->bound_share[at - 1] < share * (1 - EQUAL_TOLERANCE); at--) {
            plan->bound_share[at] = plan->bound_share[at - 1];
            plan->bound_link[at] = plan->bound_link[at - 1];
        }
        plan->bound_share[at] = share;
        plan->bound_link[at] = pricing->link[i];
        plan->nbounds++;
    }
    return TUTTI_OK;
}

static int make_plan(struct packing *packing, const struct tutti_paths *paths,
                     const struct tutti_search_options *options, struct tutti_channels **ret_plan)
{
    const struct tutti_search_state *search = packing->search;
    const struct tutti_pricing *pricing = &search->pricing;
    struct tutti_channels *plan = calloc(1, sizeof *plan);
    uint32_t copies = 1;
    int rc;

    if (plan == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    plan->pattern = search->pattern;
    plan->gpus = calloc(pricing->ngpus, sizeof *plan->gpus);
    if (plan->gpus == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan of %u gpus", pricing->ngpus);
        goto drop_plan;
    }
    plan->ngpus = pricing->ngpus;
    for (uint32_t i = 0; i < pricing->ngpus; i++)
        plan->gpus[i] = paths->graph->nodes[pricing->node[i]].number;
    /* Channels that are wider than allowed are split into equal copies, as far as their number
     * allows. */
    if (options->channel_bytes_per_s > 0 && isfinite(packing->width))
        copies = (uint32_t)fmin(
            ceil(packing->width / options->channel_bytes_per_s * (1 - EQUAL_TOLERANCE)),
            (double)(packing->most / packing->count));
    TUTTI_TRY_OR(drop_plan, rc, copy_channels(packing, paths, copies, plan));
    TUTTI_TRY_OR(drop_plan, rc, copy_bounds(search, plan));
    plan->channel_bytes_per_s = packing->width / copies;
    plan->bytes_per_s = packing->width * packing->count;
    plan->bound_bytes_per_s = search->bound;
    *ret_plan = plan;
    return TUTTI_OK;

drop_plan:
    tutti_channels_destroy(plan);
    return rc;
}

int tutti_channels_make(struct tutti_search_state *search, const struct tutti_paths *paths,
                        const struct tutti_search_options *options,
                        struct tutti_channels **ret_plan)
{
    struct packing packing = {.search = search, .most = search->pricing.nchannels};
    double width;
    int rc;

    packing.left = calloc(search->pricing.nlinks + 1, sizeof *packing.left);
    if (packing.left == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    TUTTI_TRY_OR(drop_packing, rc, choose_width(&packing, &width));
    if (isinf(width)) { /* no link is used, so there is one column, whose rate nothing limits */
        remove_channels(&packing);
        packing.width = INFINITY;
        add_channel(&packing, &search->columns[0], false);
    } else {
        TUTTI_TRY_OR(drop_packing, rc, pack(&packing, width));
        widen(&packing);
    }
    rc = make_plan(&packing, paths, options, ret_plan);

drop_packing:
    remove_channels(&packing);
    free(packing.left);
    return rc;
}

void tutti_channels_destroy(struct tutti_channels *plan)
{
    if (plan == NULL)
        return;
    for (uint32_t i = 0; i < plan->nchannels; i++)
        free(plan->channel[i].gpu);
    free(plan->gpus);
    free(plan->bound_link);
    free(plan->bound_share);
    free(plan);
}

double tutti_channels_allreduce(const struct tutti_channels *plan, double bytes_per_s)
{
    double n = plan->ngpus;

    if (plan->pattern == TUTTI_PATTERN_RING && n > 1)
        return bytes_per_s * n / (2 * (n - 1));
    return plan->pattern == TUTTI_PATTERN_BROADCAST ? bytes_per_s / 2 : bytes_per_s;
}
