/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo explain: shows which links limit the rings and trees, for each channel and for all
 * channels together. Also shows which rates are assumed, and what wider links would change. */
#include "base/result.h"
#include "common/memory.h"
#include "common/table.h"
#include "common/units.h"
#include "topo/bounds.h"
#include "topo/commands.h"

#include <math.h>
#include <string.h>

enum { WHAT_IFS = 3 }; /* most groups of links for which doubled rates are shown */

static const char help[] =
    "usage: tutti-topo explain [--from WHAT] [options]\n"
    "\n"
    "Shows the limits of the rings and trees that tutti-topo search finds: the links that all of\n"
    "them together fill, each with its share of the bound; the fullest link of each channel; the\n"
    "rates that are assumed; and the result if the links with the largest shares carried twice as\n"
    "much.\n"
    "\n"
    "  -f, --from WHAT      a file, a known name or a line, as of tutti-topo (default: this one)\n"
    "  -p, --pattern WHICH  ring (default), tree, broadcast or all\n"
    "  -g, --gpus LIST      some gpus of a host, such as 0,1,4 or 0-3 (default: all of each host)\n"
    "      --peers          other hosts take part: channels enter and leave by nets (default\n"
    "                       where there are several hosts)\n"
    "      --cross          ... and may leave by another net than they enter by\n"
    "  -c, --channels N     channels at most (default 32)\n";

/* One plan that is explained. */
struct story {
    const struct request *request;
    const struct subject *subject;
    const struct wish *wish;
    const struct tutti_channels *plan;
    uint32_t host;
    double *load; /* load of each link in bytes per second */
    struct bounds bounds;
};

/* ---- the bound ------------------------------------------------------------------------------- */

static void print_head(const struct story *story)
{
    const struct tutti_channels *plan = story->plan;
    char text[NAME_BYTES], count[NAME_BYTES];

    printf("%s%s of %s: ", subject_host(story->subject, story->host, text),
           plans_pattern_name(plan->pattern), subject_count(plan->ngpus, "gpu", count));
    if (!isfinite(plan->bytes_per_s)) {
        puts("it crosses no link, so nothing bounds it");
        return;
    }
    printf("%s, %s%s of the ", subject_count(plan->nchannels, "channel", count),
           plan->nchannels > 1 ? "together " : "", plans_rate(plan->bytes_per_s, text));
    printf("%s that can be (%.1f %%)\n", plans_rate(plan->bound_bytes_per_s, text),
           100 * plan->bytes_per_s / plan->bound_bytes_per_s);
}

static double fullness(const struct story *story, uint32_t link)
{
    return story->load[link] / story->subject->graph->links[link].bytes_per_s;
}

static void print_bounds(const struct story *story)
{
    const struct tutti_graph *graph = story->subject->graph;
    struct table table;

    if (story->bounds.count == 0)
        return;
    puts("\nWhat bounds it: whatever the channels, all of them need these links");
    table_init(&table, ">  share|links|>carries|form|>full");
    for (uint32_t i = 0; i < story->bounds.count; i++) {
        const struct bound *bound = &story->bounds.bounds[i];
        const struct tutti_graph_link *link = &graph->links[bound->links[0]];
        char name[3 * NAME_BYTES], form[NAME_BYTES], rate[UNITS_TEXT];
        double full = 0;

        for (uint32_t j = 0; j < bound->nlinks; j++)
            full = fmax(full, fullness(story, bound->links[j]));
        bounds_name(story->subject, bound, name, sizeof name);
        subject_link_form(story->subject, bound->links[0], form, sizeof form);
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

static void print_channels(const struct story *story)
{
    const struct tutti_graph *graph = story->subject->graph;
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(story->plan, orders);
    struct table table;

    puts("\nThe fullest link of each channel");
    table_init(&table, ">  channels|order|link|>full");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t link = orders[i].channel->bound_link;
        char *order = plans_order_text(story->plan, orders[i].channel);
        char name[2 * NAME_BYTES];

        table_add(&table, "%u", orders[i].count);
        table_add(&table, "%s", order);
        free(order);
        if (link == TUTTI_NO_NODE) {
            table_add(&table, "none");
            table_add(&table, "-");
            continue;
        }
        tutti_graph_link_name(graph, link, name, sizeof name);
        table_add(&table, "%s", name);
        table_add(&table, "%.0f %%", 100 * fullness(story, link));
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* ---- what is assumed, and what if ------------------------------------------------------------ */

static void print_assumed(const struct story *story)
{
    double share = 0;

    for (uint32_t i = 0; i < story->bounds.count; i++)
        if (story->subject->graph->links[story->bounds.bounds[i].links[0]].found_by ==
            TUTTI_SOURCE_ASSUMED)
            share += story->bounds.bounds[i].share;
    puts("");
    if (share == 0) {
        puts("Nothing of that is assumed: the forms of these links are known, and their rates are\n"
             "what programs reach over such links.");
        return;
    }
    printf("Assumed rates, since no source gives them (%.0f %% of the bound):\n", 100 * share);
    for (uint32_t i = 0; i < story->bounds.count; i++) {
        const struct bound *bound = &story->bounds.bounds[i];
        char name[3 * NAME_BYTES], rate[UNITS_TEXT];

        if (story->subject->graph->links[bound->links[0]].found_by != TUTTI_SOURCE_ASSUMED)
            continue;
        bounds_name(story->subject, bound, name, sizeof name);
        printf("  %s: %s\n", name,
               units_rate(story->subject->graph->links[bound->links[0]].bytes_per_s, rate));
    }
}

static int print_what_if(const struct story *story, const struct bound *bound,
                         const char *before, const char *same)
{
    const struct tutti_channels *plan = story->plan;
    char rate[NAME_BYTES], carried[NAME_BYTES];
    double bytes_per_s, bound_bytes_per_s;
    int rc = bounds_doubled(story->subject, bound, story->wish, story->host, plan->pattern,
                            &bytes_per_s, &bound_bytes_per_s);

    if (rc != TUTTI_OK)
        return failure(story->request, rc);
    if (bound_bytes_per_s < plan->bound_bytes_per_s * 1.0001)
        printf("%s: %s\n", before, same);
    else
        printf("%s: %s could be (%.2f times); channels carry %s\n", before,
               plans_rate(bound_bytes_per_s, rate), bound_bytes_per_s / plan->bound_bytes_per_s,
               plans_rate(bytes_per_s, carried));
    return REQUEST_GO;
}

/* Shows the effect of doubled rates: first on the links of each group, then on all similar
 * links. */
static int print_what_ifs(const struct story *story)
{
    int status = REQUEST_GO;

    if (story->bounds.count > 0)
        puts("\nIf they carried twice as much");
    for (uint32_t i = 0; i < story->bounds.count && i < WHAT_IFS && status == REQUEST_GO; i++) {
        const struct bound *bound = &story->bounds.bounds[i];
        char name[3 * NAME_BYTES], before[4 * NAME_BYTES];
        struct bound alike;

        bounds_alike(story->subject, bound, story->host, &alike);
        bounds_name(story->subject, bound, name, sizeof name);
        snprintf(before, sizeof before, "  %s", name);
        status = print_what_if(story, bound, before, "no more than now, others bound it as well");
        snprintf(before, sizeof before, "    with all %u links like that", alike.nlinks);
        if (status == REQUEST_GO && alike.nlinks > bound->nlinks + (bound->nlinks == 1))
            status = print_what_if(story, &alike, before, "no more than now, either");
        bounds_fini_one(&alike);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int tell(struct story *story)
{
    int status = REQUEST_GO;

    print_head(story);
    if (isfinite(story->plan->bytes_per_s)) {
        story->load = plans_load(story->subject, story->plan);
        bounds_find(story->subject, story->plan, &story->bounds);
        print_bounds(story);
        print_channels(story);
        print_assumed(story);
        status = print_what_ifs(story);
        bounds_fini(&story->bounds);
        free(story->load);
    }
    puts("");
    return status;
}

static int explain_plan(const struct request *request, const struct subject *subject,
                        const struct wish *wish, uint32_t host, const struct tutti_channels *plan)
{
    struct story story = {.request = request, .subject = subject, .wish = wish, .host = host,
                          .plan = plan};

    return tell(&story);
}

static int run(const struct request *request)
{
    return plans_run(request, "ring", explain_plan);
}

const struct command topo_explain = {
    .name = "tutti-topo explain",
    .options = "from pattern gpus peers cross channels",
    .help = help,
    .run = run,
};
