/* SPDX-License-Identifier: Apache-2.0
 * Prints the ports of a plan. */
#include "topo/ports.h"

#include "common/table.h"
#include "common/units.h"
#include "topology/graph/speeds.h"
#include "topology/search/taste.h"

static void name_of(const struct subject *subject, uint32_t net, char text[NAME_BYTES])
{
    tutti_graph_node_name(subject->graph, tutti_graph_net(subject->graph, net), text, NAME_BYTES);
}

void ports_print_left_out(const struct subject *subject, const struct tutti_channels *plan)
{
    for (uint32_t i = 0; i < plan->nleft_out; i++) {
        const struct tutti_left_out *port = &plan->left_out[i];
        char name[NAME_BYTES];

        name_of(subject, port->net, name);
        printf("%s%s: ", i == 0 ? "  left out: " : ", ", name);
        if (port->is_virtual)
            printf("virtual");
        else
            printf("would add %.1f %%", 100 * port->gain);
    }
    if (plan->nleft_out > 0)
        puts("");
}

static const struct tutti_left_out *find_left_out(const struct tutti_channels *plan, uint32_t net)
{
    for (uint32_t i = 0; i < plan->nleft_out; i++)
        if (plan->left_out[i].net == net)
            return &plan->left_out[i];
    return NULL;
}

/* Returns the number of channels that enter or leave by a port. */
static uint32_t count_channels(const struct tutti_channels *plan, uint32_t net)
{
    uint32_t count = 0;

    for (uint32_t c = 0; c < plan->nchannels; c++)
        count += plan->channel[c].net_in == net || plan->channel[c].net_out == net;
    return count;
}

/* Adds why a port has, or does not have, channels. */
static void add_reason(struct table *table, const struct tutti_channels *plan, uint32_t net)
{
    const struct tutti_left_out *left_out = find_left_out(plan, net);

    if (left_out != NULL && left_out->is_virtual)
        table_add(table, "virtual: its data leaves by another port");
    else if (left_out != NULL)
        table_add(table, "weak: it would add %.1f %%, and all weak ports add at most %.0f %%",
                  100 * left_out->gain, 100 * TUTTI_TASTE_WEAK);
    else if (count_channels(plan, net) > 0)
        table_add(table, "used");
    else
        table_add(table, "not needed: without it, %.1f %% of the bound are reached",
                  100 * plan->bytes_per_s / plan->bound_bytes_per_s);
}

void ports_explain(const struct subject *subject, const struct tutti_channels *plan, uint32_t host)
{
    const struct tutti_graph *graph = subject->graph;
    struct table table;

    if (plan->channel[0].net_in == TUTTI_NO_NODE)
        return;
    table_init(&table, "  port|>rate|>channels|why");
    for (uint32_t net = 0; net < graph->count[TUTTI_NODE_NET]; net++) {
        const struct tutti_graph_node *node = &graph->nodes[tutti_graph_net(graph, net)];
        char name[NAME_BYTES + 2] = "  ", rate[UNITS_TEXT];
        enum tutti_source source;
        double bytes_per_s = tutti_speed_net(graph->inventory, node->device, &source);

        if (!subject_plans_host(subject, host, node->host))
            continue;
        name_of(subject, net, name + 2);
        table_add(&table, "%s", name);
        table_add(&table, "%s%s", units_rate(bytes_per_s, rate),
                  source == TUTTI_SOURCE_ASSUMED ? " (assumed)" : "");
        table_add(&table, "%u", count_channels(plan, net));
        add_reason(&table, plan, net);
    }
    table_print(&table, stdout);
    table_fini(&table);
}
