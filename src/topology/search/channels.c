/* SPDX-License-Identifier: Apache-2.0
 * Describes packed channels as a plan. */
#include "topology/search/channels.h"

#include "base/result.h"
#include "topology/graph/virtual.h"
#include "topology/search/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of two values, the first one counts as larger only if it is larger by this part. */
#define EQUAL_TOLERANCE 1e-9
/* A link with a smaller part of the bound than this is no bottleneck. */
#define LEAST_BOUND_SHARE 1e-6

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
        bool is_edge =
            is_ring ? i + 1 < n || column->net_in == TUTTI_NO_NODE : from != TUTTI_NO_NODE;

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
static int copy_channels(const struct tutti_packing *packing, const struct tutti_paths *paths,
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

/* Lists the ports of the searched hosts that are left out: virtual ones, and weak ones. */
static int copy_left_out(const struct tutti_search_state *search, const struct tutti_taste *taste,
                         const struct tutti_paths *paths,
                         const struct tutti_search_options *options, struct tutti_channels *plan)
{
    const struct tutti_graph *graph = paths->graph;

    plan->left_out = calloc(graph->count[TUTTI_NODE_NET] + 1, sizeof *plan->left_out);
    if (plan->left_out == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    for (uint32_t net = 0; net < graph->count[TUTTI_NODE_NET] && search->pricing.nnets > 0; net++)
        if (tutti_pricing_has_host(options, graph->nodes[tutti_graph_net(graph, net)].host) &&
            tutti_net_is_virtual(graph, tutti_graph_net(graph, net)))
            plan->left_out[plan->nleft_out++] =
                (struct tutti_left_out){.net = net, .is_virtual = true};
    for (uint32_t i = 0; i < taste->nweak; i++)
        plan->left_out[plan->nleft_out++] = taste->weak[i];
    return TUTTI_OK;
}

static int make_plan(struct tutti_packing *packing, const struct tutti_taste *taste,
                     const struct tutti_paths *paths, const struct tutti_search_options *options,
                     struct tutti_channels **ret_plan)
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
    plan->joint_load = pricing->joint_load;
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
    TUTTI_TRY_OR(drop_plan, rc, copy_left_out(search, taste, paths, options, plan));
    plan->channel_bytes_per_s = packing->width / copies;
    plan->bytes_per_s = packing->width * packing->count;
    plan->bound_bytes_per_s = search->bound;
    *ret_plan = plan;
    return TUTTI_OK;

drop_plan:
    tutti_channels_destroy(plan);
    return rc;
}

/* Packs the fewest channels that carry enough. If several solutions have as few, it takes the one
 * with the most taste. */
static int pack_with_taste(struct tutti_packing *packing, const struct tutti_taste *taste)
{
    double least = (1 - TUTTI_TASTE_LOSS) * tutti_packing_rate(packing);
    uint32_t most = packing->count, chosen = 0;
    bool is_found = false;

    packing->search->pricing.is_quick = true;
    for (uint32_t i = 0; i < taste->nlevels; i++) {
        tutti_taste_use(packing->search, &taste->level[i]);
        TUTTI_TRY(tutti_packing_fewest(packing, least, most, &is_found));
        if (!is_found)
            continue;
        most = packing->count;
        chosen = i;
    }
    if (is_found)
        return TUTTI_OK;
    tutti_taste_use(packing->search, &taste->level[chosen]);
    TUTTI_TRY(tutti_packing_fewest(packing, least, most, &is_found));
    if (is_found)
        return TUTTI_OK;
    packing->search->pricing.is_quick = false;
    return tutti_packing_most(packing);
}

int tutti_channels_make(struct tutti_search_state *search, const struct tutti_taste *taste,
                        const struct tutti_paths *paths, const struct tutti_search_options *options,
                        struct tutti_channels **ret_plan)
{
    struct tutti_packing packing;
    int rc;

    TUTTI_TRY_OR(drop_packing, rc, tutti_packing_init(&packing, search));
    search->pricing.is_quick = false;
    tutti_taste_use(search, &taste->level[0]);
    TUTTI_TRY_OR(drop_packing, rc, tutti_packing_most(&packing));
    if (!options->for_rate_only && isfinite(packing.width)) {
        TUTTI_TRY_OR(drop_packing, rc, pack_with_taste(&packing, taste));
        TUTTI_TRY_OR(drop_packing, rc, tutti_search_spread(&packing, paths));
        tutti_packing_widen(&packing);
    }
    rc = make_plan(&packing, taste, paths, options, ret_plan);

drop_packing:
    tutti_packing_fini(&packing);
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
    free(plan->left_out);
    free(plan);
}

double tutti_channels_allreduce(const struct tutti_channels *plan, double bytes_per_s)
{
    double n = plan->ngpus;

    if (plan->pattern == TUTTI_PATTERN_RING && n > 1)
        return bytes_per_s * n / (2 * (n - 1));
    return plan->pattern == TUTTI_PATTERN_BROADCAST ? bytes_per_s / 2 : bytes_per_s;
}
