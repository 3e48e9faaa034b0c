/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo search: prints the rings and trees with the highest rate, host by host. */
#include "base/result.h"
#include "common/memory.h"
#include "common/table.h"
#include "common/units.h"
#include "topo/commands.h"
#include "topo/ports.h"
#include "topology/graph/reached.h"

#include <math.h>
#include <string.h>

static const char help[] =
    "usage: tutti-topo search [--from WHAT] [options]\n"
    "\n"
    "Finds the rings and trees of gpus that carry most when all of a kind run at once. They are\n"
    "channels of one width. The output says how near they come to the upper bound.\n"
    "\n"
    "  -f, --from WHAT      a machine; see tutti-topo --help (default: this machine)\n"
    "  -p, --pattern WHICH  ring, tree, broadcast or all (default)\n"
    "  -g, --gpus LIST      some gpus of a host, such as 0,1,4 or 0-3 (default: all of each host)\n"
    "      --peers          other hosts take part: channels enter and leave by nets (default\n"
    "                       where NVLinks do not join all hosts)\n"
    "      --cross          ... and may leave by another net than they enter by\n"
    "  -c, --channels N     channels at most (default 32)\n"
    "      --explain        list all ports, with the reasons why some are left out\n"
    "\n"
    "Orders: a ring goes from each gpu to the next, and from the last to the first. In a tree\n"
    "0(1 2(3)), 0 is the root and the parent of 1 and 2, and 2 is the parent of 3.\n";

/* ---- one plan -------------------------------------------------------------------------------- */

static void print_head(const struct subject *subject, const struct tutti_channels *plan,
                       uint32_t host)
{
    static const double almost = 0.9999;
    char text[NAME_BYTES], count[NAME_BYTES];
    double share = plan->bytes_per_s / plan->bound_bytes_per_s;

    printf("%s%s of %s: ", subject_host(subject, host, text), plans_pattern_name(plan->pattern),
           subject_count(plan->ngpus, "gpu", count));
    if (!isfinite(plan->bytes_per_s)) {
        printf("%s, which crosses no link, so none bounds it\n",
               subject_count(plan->nchannels, "channel", text));
        return;
    }
    printf("%s of %s", subject_count(plan->nchannels, "channel", count),
           plans_rate(plan->channel_bytes_per_s, text));
    if (plan->nchannels > 1)
        printf(", together %s", plans_rate(plan->bytes_per_s, text));
    if (share >= almost)
        printf("; no more can be (100 %%)\n");
    else if (isinf(plan->bound_bytes_per_s))
        printf("; how much can be is not known\n");
    else
        printf("; at most %s can be (%.1f %%)\n", plans_rate(plan->bound_bytes_per_s, text),
               100 * share);
}

static void add_net(struct table *table, uint32_t net)
{
    if (net == TUTTI_NO_NODE)
        table_add(table, "-");
    else
        table_add(table, "net %u", net);
}

/* Adds the class of the paths between gpus, such as "NVL". If the channel has nets, adds the class
 * of the paths to them too, as "NVL, PIX to nets". */
static void add_class(struct table *table, const struct tutti_channel *channel)
{
    if (channel->net_in == TUTTI_NO_NODE)
        table_add(table, "%s", tutti_path_class_name(channel->intra));
    else
        table_add(table, "%s, %s to nets", tutti_path_class_name(channel->intra),
                  tutti_path_class_name(channel->inter));
}

static void print_orders(const struct subject *subject, const struct tutti_channels *plan)
{
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(plan, orders);
    bool has_nets = plan->channel[0].net_in != TUTTI_NO_NODE;
    bool is_bound = isfinite(plan->bytes_per_s);
    struct table table;
    char link[2 * NAME_BYTES];

    table_init(&table, has_nets ? ">  channels|class|in|order|out|fullest link"
                                : ">  channels|class|order|fullest link");
    for (uint32_t i = 0; i < count; i++) {
        const struct tutti_channel *channel = orders[i].channel;
        char *order = plans_order_text(plan, channel);

        table_add(&table, "%u", orders[i].count);
        add_class(&table, channel);
        if (has_nets)
            add_net(&table, channel->net_in);
        table_add(&table, "%s", order);
        if (has_nets)
            add_net(&table, channel->net_out);
        if (is_bound && channel->bound_link != TUTTI_NO_NODE)
            tutti_graph_link_name(subject->graph, channel->bound_link, link, sizeof link);
        else
            strcpy(link, "none");
        table_add(&table, "%s", link);
        free(order);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* With nets the other hosts decide the time, too, so nothing is printed. */
static void print_allreduce(const struct tutti_channels *plan)
{
    char rate[NAME_BYTES];

    if (isfinite(plan->bytes_per_s) && plan->channel[0].net_in == TUTTI_NO_NODE)
        printf("  a large all-reduce among them: %s of the buffer\n",
               plans_rate(tutti_channels_allreduce(plan, plan->bytes_per_s), rate));
}

/* Prints what NCCL's all-reduces reach if the NVSwitch that joins all gpus of a ring multicasts and
 * reduces. No schedule can do that. */
static void print_multicast(const struct subject *subject, const struct tutti_channels *plan)
{
    const struct tutti_graph *graph = subject->graph;
    uint32_t device = graph->nodes[tutti_graph_gpu(graph, plan->gpus[0])].device;
    double gain = tutti_reached_multicast(graph->inventory, device, plan->ngpus);
    double ring = plan->bytes_per_s * tutti_reached_nvlink(graph->inventory, device);
    char rate[NAME_BYTES], ring_rate[NAME_BYTES];

    if (plan->pattern != TUTTI_PATTERN_RING || !isfinite(plan->bytes_per_s) || gain <= 1 ||
        graph->count[TUTTI_NODE_NVSWITCH] == 0 || plan->channel[0].intra != TUTTI_PATH_NVL ||
        plan->channel[0].net_in != TUTTI_NO_NODE)
        return;
    printf("  NCCL on such gpus has a busbw of about %s by rings, and of %s if the\n"
           "  nvswitch reduces (NVLS), which Tutti does not use\n",
           plans_rate(ring, ring_rate), plans_rate(gain * ring, rate));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int print_plan(const struct request *request, const struct subject *subject,
                      const struct wish *wish, uint32_t host, const struct tutti_channels *plan)
{
    (void)wish;
    print_head(subject, plan, host);
    print_orders(subject, plan);
    ports_print_left_out(subject, plan);
    if (plan->pattern != TUTTI_PATTERN_BROADCAST)
        print_allreduce(plan);
    print_multicast(subject, plan);
    if (request->wants_explain)
        ports_explain(subject, plan, host);
    puts("");
    return REQUEST_GO;
}

static int run(const struct request *request)
{
    return plans_run(request, "all", print_plan);
}

const struct command topo_search = {
    .name = "tutti-topo search",
    .options = "from gpu nic cpu pattern gpus peers cross channels explain",
    .help = help,
    .run = run,
};
