/* SPDX-License-Identifier: Apache-2.0
 * Writes a machine and its plans in the language of Graphviz. */
#include "common/memory.h"
#include "draw/colors.h"
#include "topo/scene.h"

#include <math.h>
#include <string.h>

/* Writes a text that stands between quotes, with escapes where they are needed. */
static void write_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
}

static void write_node(FILE *out, const struct subject *subject, uint32_t node)
{
    static const char *const fills[TUTTI_NODE_COUNT] = {
        [TUTTI_NODE_GPU] = "#e3f3ec", [TUTTI_NODE_NVSWITCH] = "#e3f3ec",
        [TUTTI_NODE_PCI] = "#ffffff", [TUTTI_NODE_CPU] = "#eef0f3", [TUTTI_NODE_NIC] = "#e4eff8",
        [TUTTI_NODE_NET] = "#e4eff8", [TUTTI_NODE_FABRIC] = "#ffffff"};
    const struct tutti_graph_node *at = &subject->graph->nodes[node];
    char name[NAME_BYTES];

    tutti_graph_node_name(subject->graph, node, name, sizeof name);
    fprintf(out, "    n%u [label=\"", node);
    write_text(out, name);
    if ((at->kind == TUTTI_NODE_GPU || at->kind == TUTTI_NODE_CPU) &&
        *subject_model(subject, node) != '\0') {
        fputs("\\n", out);
        write_text(out, subject_model(subject, node));
    }
    fprintf(out, "\", fillcolor=\"%s\"];\n", fills[at->kind]);
}

static void write_hosts(FILE *out, const struct subject *subject)
{
    const struct tutti_graph *graph = subject->graph;

    for (uint32_t host = 0; host < graph->nhosts; host++) {
        fprintf(out, "  subgraph cluster_%u {\n    label=\"host %u\"; color=\"%s\";\n", host, host,
                COLOR_RULE);
        for (uint32_t node = 0; node < graph->nnodes; node++)
            if (graph->nodes[node].host == host && graph->nodes[node].kind != TUTTI_NODE_FABRIC)
                write_node(out, subject, node);
        fputs("  }\n", out);
    }
    for (uint32_t node = 0; node < graph->nnodes; node++)
        if (graph->nodes[node].kind == TUTTI_NODE_FABRIC)
            write_node(out, subject, node);
}

/* Writes the upper end of each link first, because Graphviz draws this end above the other. */
static void write_links(FILE *out, const struct subject *subject)
{
    static const char *const inks[TUTTI_LINK_COUNT] = {
        [TUTTI_LINK_NVLINK] = COLOR_GREEN, [TUTTI_LINK_C2C] = COLOR_PURPLE,
        [TUTTI_LINK_PCI] = COLOR_GRAY, [TUTTI_LINK_SYS] = COLOR_BROWN,
        [TUTTI_LINK_PORT] = COLOR_BLUE, [TUTTI_LINK_FABRIC] = COLOR_BLUE};
    const struct tutti_graph *graph = subject->graph;

    for (uint32_t i = 0; i < graph->nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[i];
        bool joins_cpus = link->kind == TUTTI_LINK_SYS; /* neither end is above the other */
        enum tutti_graph_node_kind from = graph->nodes[link->from].kind;
        bool is_down = from == TUTTI_NODE_CPU || from == TUTTI_NODE_PCI || from == TUTTI_NODE_NIC;
        char form[NAME_BYTES];

        if (link->from > link->to) /* the other direction of a link that was written */
            continue;
        subject_link_form(subject, i, form, sizeof form);
        fprintf(out, "  n%u -> n%u [dir=none, color=\"%s\", penwidth=%.2f, label=\"%.3g GB/s",
                is_down ? link->from : link->to, is_down ? link->to : link->from,
                inks[link->kind], fmin(1.2 * log2(1 + link->bytes_per_s / 6e9) + 0.3, 9),
                link->bytes_per_s / 1e9);
        if (*form != '\0') {
            fputs("\\n", out);
            write_text(out, form);
        }
        fprintf(out, "\"%s%s];\n", link->found_by == TUTTI_SOURCE_ASSUMED ? ", style=dashed" : "",
                joins_cpus ? ", constraint=false" : "");
    }
}

static void write_hop(FILE *out, const struct subject *subject, uint32_t from, uint32_t to,
                      const char *color)
{
    fprintf(out, "  n%u -> n%u [color=\"%s\", penwidth=1.5, constraint=false];\n",
            tutti_graph_gpu(subject->graph, from), tutti_graph_gpu(subject->graph, to), color);
}

static void write_order(FILE *out, const struct subject *subject, const struct tutti_channels *plan,
                        const struct order *order, const char *color)
{
    const uint32_t *gpu = order->channel->gpu;
    bool is_ring = plan->pattern == TUTTI_PATTERN_RING;
    char *text = plans_order_text(plan, order->channel);

    fprintf(out, "  // %s %s: %u channels\n", tutti_pattern_name(plan->pattern), text,
            order->count);
    free(text);
    for (uint32_t i = 0; i < plan->ngpus; i++)
        if (!is_ring && gpu[i] != TUTTI_NO_NODE)
            write_hop(out, subject, plan->gpus[gpu[i]], plan->gpus[i], color);
        else if (is_ring && plan->ngpus > 1 &&
                 (i + 1 < plan->ngpus || order->channel->net_in == TUTTI_NO_NODE))
            write_hop(out, subject, plan->gpus[gpu[i]], plan->gpus[gpu[(i + 1) % plan->ngpus]],
                      color);
}

char *scene_write_dot(const struct subject *subject, struct tutti_channels *const *plans,
                      uint32_t nplans)
{
    char *text = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&text, &size));

    fputs("digraph \"", out);
    write_text(out, subject->name);
    fputs("\" {\n"
          "  graph [rankdir=TB, fontname=Helvetica];\n"
          "  node [shape=box, style=\"rounded,filled\", fontname=Helvetica, fontsize=11];\n"
          "  edge [fontname=Helvetica, fontsize=9];\n", out);
    write_hosts(out, subject);
    write_links(out, subject);
    for (uint32_t p = 0; p < nplans; p++) {
        struct order orders[TUTTI_SEARCH_CHANNELS];
        uint32_t count = plans_orders(plans[p], orders);

        for (uint32_t i = 0; i < count && i < SCENE_ORDERS; i++)
            write_order(out, subject, plans[p], &orders[i], color_of(i));
    }
    fputs("}\n", out);
    if (fclose(out) != 0)
        must_have(NULL);
    return text;
}
