/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo explain: shows which links limit the rings and trees, for each channel and for all
 * channels together. Also shows the sources of rates, and what wider links would change. */
#include "base/result.h"
#include "common/memory.h"
#include "common/table.h"
#include "common/units.h"
#include "topo/bounds.h"
#include "topo/commands.h"

#include <math.h>
#include <string.h>

enum { WHAT_IFS = 3 }; /* most groups of links for which doubled rates are shown */
#define NOTABLE 1.0001 /* the bound must rise by this factor to be shown */

static const char help[] =
    "usage: tutti-topo explain [--from WHAT] [options]\n"
    "\n"
    "Shows the limits of the rings and trees that tutti-topo search finds: the links that all of\n"
    "them together fill, each with its share of the bound; the fullest link of each channel, and\n"
    "the nets by which it enters and leaves; the sources of their rates, and which are guessed; and\n"
    "the result if the links with the largest shares carried twice as much.\n"
    "\n"
    "  -f, --from WHAT      a machine; see tutti-topo --help (default: this machine)\n"
    "  -p, --pattern WHICH  ring (default), tree, broadcast or all\n"
    "  -g, --gpus LIST      some gpus of a host, such as 0,1,4 or 0-3 (default: all of each host)\n"
    "      --peers          other hosts take part: channels enter and leave by nets (default\n"
    "                       where NVLinks do not join all hosts)\n"
    "      --cross          ... and may leave by another net than they enter by\n"
    "  -c, --channels N     channels at most (default 32)\n";

/* One plan that is explained, and what was found out about it. */
struct explanation {
    const struct request *request;
    const struct subject *subject;
    const struct wish *wish;
    const struct tutti_channels *plan;
    uint32_t host;        /* the host of the plan, or TUTTI_ALL_HOSTS */
    double *load;         /* load of each link in bytes per second; owned */
    struct bounds bounds; /* the links that limit the plan; owned */
};

/* ---- the bound ------------------------------------------------------------------------------- */

static void print_head(const struct explanation *explained)
{
    const struct tutti_channels *plan = explained->plan;
    char text[NAME_BYTES], count[NAME_BYTES];

    printf("%s%s of %s: ", subject_host(explained->subject, explained->host, text),
           plans_pattern_name(plan->pattern), subject_count(plan->ngpus, "gpu", count));
    if (!isfinite(plan->bytes_per_s)) {
        puts("it crosses no link, so nothing bounds it");
        return;
    }
    printf("%s, %s%s", subject_count(plan->nchannels, "channel", count),
           plan->nchannels > 1 ? "together " : "", plans_rate(plan->bytes_per_s, text));
    if (isinf(plan->bound_bytes_per_s)) {
        puts("; how much can be is not known");
        return;
    }
    printf(" of the %s that can be (%.1f %%)\n", plans_rate(plan->bound_bytes_per_s, text),
           100 * plan->bytes_per_s / plan->bound_bytes_per_s);
}

/* Returns the part of a link's rate that the plan uses, from 0 to 1. */
static double fullness(const struct explanation *explained, uint32_t link)
{
    return explained->load[link] / explained->subject->graph->links[link].bytes_per_s;
}

static void print_bounds(const struct explanation *explained)
{
    const struct tutti_graph *graph = explained->subject->graph;
    struct table table;

    if (explained->bounds.count == 0)
        return;
    puts("\nWhat bounds it: whatever the channels, all of them need these links");
    table_init(&table, ">  share|links|>carries|form|>full");
    for (uint32_t i = 0; i < explained->bounds.count; i++) {
        const struct bound *bound = &explained->bounds.bounds[i];
        const struct tutti_graph_link *link = &graph->links[bound->links[0]];
        char name[3 * NAME_BYTES], form[NAME_BYTES], rate[UNITS_TEXT];
        double full = 0;

        for (uint32_t j = 0; j < bound->nlinks; j++)
            full = fmax(full, fullness(explained, bound->links[j]));
        bounds_name(explained->subject, bound, name, sizeof name);
        subject_link_form(explained->subject, bound->links[0], form, sizeof form);
        table_add(&table, "%.0f %%", 100 * bound->share);
        table_add(&table, "%s", name);
        table_add(&table, "%s%s", units_rate(link->bytes_per_s, rate),
                  bound->nlinks > 1 ? " each" : "");
        table_add(&table, "%s", form);
        table_add(&table, "%.0f %%", 100 * full);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* ---- channels -------------------------------------------------------------------------------- */

static void print_channels(const struct explanation *explained)
{
    const struct tutti_graph *graph = explained->subject->graph;
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(explained->plan, orders);
    bool has_nets = explained->plan->channel[0].net_in != TUTTI_NO_NODE;
    struct table table;

    puts("\nThe fullest link of each channel");
    table_init(&table, has_nets ? ">  channels|in|order|out|link|>full"
                                : ">  channels|order|link|>full");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t link = orders[i].channel->bound_link;
        char *order = plans_order_text(explained->plan, orders[i].channel);
        char name[2 * NAME_BYTES];

        table_add(&table, "%u", orders[i].count);
        if (has_nets)
            table_add(&table, "net %u", orders[i].channel->net_in);
        table_add(&table, "%s", order);
        if (has_nets)
            table_add(&table, "net %u", orders[i].channel->net_out);
        free(order);
        if (link == TUTTI_NO_NODE) {
            table_add(&table, "none");
            table_add(&table, "-");
            continue;
        }
        tutti_graph_link_name(graph, link, name, sizeof name);
        table_add(&table, "%s", name);
        table_add(&table, "%.0f %%", 100 * fullness(explained, link));
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* ---- sources of the rates, and wider links --------------------------------------------------- */

/* Returns the part of the bound, from 0 to 1, whose rates have a source from `first` to `last`. */
static double share_of(const struct explanation *explained, enum tutti_source first,
                       enum tutti_source last)
{
    double share = 0;

    for (uint32_t i = 0; i < explained->bounds.count; i++) {
        const struct bound *bound = &explained->bounds.bounds[i];
        enum tutti_source source =
            explained->subject->graph->links[bound->links[0]].found_by;

        if (source >= first && source <= last)
            share += bound->share;
    }
    return share;
}

/* Prints the sources of the rates among the limits of the plan, and the rates that are guesses. */
static void print_sources(const struct explanation *explained)
{
    double guessed = share_of(explained, TUTTI_SOURCE_NONE, TUTTI_SOURCE_ASSUMED);
    double known = share_of(explained, TUTTI_SOURCE_PRODUCT, TUTTI_SOURCE_PRODUCT);
    double told = share_of(explained, TUTTI_SOURCE_PRODUCT + 1, TUTTI_SOURCE_COUNT);

    printf("\nSources of these rates: %.0f %% of the bound is told by the machine or the file, "
           "%.0f %% is\nknown by products, and %.0f %% is guessed.\n", 100 * told, 100 * known,
           100 * guessed);
    for (uint32_t i = 0; i < explained->bounds.count; i++) {
        const struct bound *bound = &explained->bounds.bounds[i];
        const struct tutti_graph_link *link = &explained->subject->graph->links[bound->links[0]];
        char name[3 * NAME_BYTES], rate[UNITS_TEXT];

        if (link->found_by > TUTTI_SOURCE_ASSUMED)
            continue;
        bounds_name(explained->subject, bound, name, sizeof name);
        printf("  guessed: %s: %s\n", name, units_rate(link->bytes_per_s, rate));
    }
}

/* Prints the effect of doubled rates on the links of a group. The line begins with `before`. `same`
 * says that there is no effect. */
static int print_what_if(const struct explanation *explained, const struct bound *bound,
                         const char *before, const char *same)
{
    const struct tutti_channels *plan = explained->plan;
    char rate[NAME_BYTES], carried[NAME_BYTES];
    double bytes_per_s, bound_bytes_per_s;
    int rc = bounds_doubled(explained->subject, bound, explained->wish, explained->host,
                            plan->pattern, &bytes_per_s, &bound_bytes_per_s);

    if (rc != TUTTI_OK)
        return failure(explained->request, rc);
    if (bound_bytes_per_s < plan->bound_bytes_per_s * NOTABLE)
        printf("%s: %s\n", before, same);
    else
        printf("%s: %s could be (%.2f times); channels carry %s\n", before,
               plans_rate(bound_bytes_per_s, rate), bound_bytes_per_s / plan->bound_bytes_per_s,
               plans_rate(bytes_per_s, carried));
    return REQUEST_GO;
}

/* Shows the effect of doubled rates: first on the links of each group, then on all similar
 * links. */
static int print_what_ifs(const struct explanation *explained)
{
    int status = REQUEST_GO;

    if (explained->bounds.count > 0)
        puts("\nIf they carried twice as much");
    for (uint32_t i = 0; i < explained->bounds.count && i < WHAT_IFS && status == REQUEST_GO; i++) {
        const struct bound *bound = &explained->bounds.bounds[i];
        char name[3 * NAME_BYTES], before[4 * NAME_BYTES];
        struct bound alike;

        bounds_alike(explained->subject, bound, explained->host, &alike);
        bounds_name(explained->subject, bound, name, sizeof name);
        snprintf(before, sizeof before, "  %s", name);
        status =
            print_what_if(explained, bound, before, "no more than now, others bound it as well");
        snprintf(before, sizeof before, "    with all %u links like that", alike.nlinks);
        /* For a group of one link, both directions of this link are no news. */
        if (status == REQUEST_GO && alike.nlinks > bound->nlinks + (bound->nlinks == 1))
            status = print_what_if(explained, &alike, before, "no more than now, either");
        bound_fini(&alike);
    }
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int explain_plan(const struct request *request, const struct subject *subject,
                        const struct wish *wish, uint32_t host, const struct tutti_channels *plan)
{
    struct explanation explained = {
        .request = request, .subject = subject, .wish = wish, .host = host, .plan = plan};
    int status = REQUEST_GO;

    print_head(&explained);
    if (isfinite(plan->bytes_per_s)) {
        explained.load = plans_load(subject, plan);
        bounds_find(subject, plan, &explained.bounds);
        print_bounds(&explained);
        print_channels(&explained);
        print_sources(&explained);
        status = print_what_ifs(&explained);
        bounds_fini(&explained.bounds);
        free(explained.load);
    }
    puts("");
    return status;
}

static int run(const struct request *request)
{
    return plans_run(request, "ring", explain_plan);
}

const struct command topo_explain = {
    .name = "tutti-topo explain",
    .options = "from gpu nic cpu pattern gpus peers cross channels",
    .help = help,
    .run = run,
};
