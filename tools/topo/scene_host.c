/* SPDX-License-Identifier: Apache-2.0
 * Draws one host. Its devices are boxes, and their links are lines. scene_stroke gives the look of
 * a link. */
#include "common/memory.h"
#include "common/units.h"
#include "draw/colors.h"
#include "topo/layout.h"
#include "topo/scene.h"

#include <math.h>
#include <string.h>

#define FILL_CPU "#eef0f3"
#define FILL_SWITCH "#ffffff"
#define FILL_GPU "#e3f3ec"
#define FILL_NIC "#e4eff8"
#define EDGE_GPU "#7fbfa6"
#define EDGE_NIC "#8ab6d6"
#define RADIUS 5.0

/* ---- looks ----------------------------------------------------------------------------------- */

static const struct {
    const char *color, *name;
} looks[TUTTI_LINK_COUNT] = {
    [TUTTI_LINK_NVLINK] = {COLOR_GREEN, "NVLink"},
    [TUTTI_LINK_C2C] = {COLOR_PURPLE, "coherent link"},
    [TUTTI_LINK_PCI] = {COLOR_GRAY, "PCIe"},
    [TUTTI_LINK_SYS] = {COLOR_BROWN, "between NUMA nodes"},
    [TUTTI_LINK_PORT] = {COLOR_BLUE, NULL},
    [TUTTI_LINK_FABRIC] = {COLOR_BLUE, NULL},
};

/* Returns true if the plan uses this part of a link, in one direction or the other. */
static bool is_used(const struct scene *scene, uint32_t index, double part)
{
    const struct tutti_graph_link *link = &scene->subject->graph->links[index];

    return scene->load != NULL &&
           fmax(scene->load[index], scene->load[link->reverse]) >= part * link->bytes_per_s;
}

bool scene_is_full(const struct scene *scene, uint32_t index)
{
    return is_used(scene, index, 0.999);
}

/* Returns true if the plan leaves at most a tenth of a link. */
static bool is_nearly_full(const struct scene *scene, uint32_t index)
{
    return !scene_is_full(scene, index) && is_used(scene, index, 0.9);
}

/* Returns the color that shows how full a link is. `usual` is that of a link with room. */
static const char *load_color(const struct scene *scene, uint32_t index, const char *usual)
{
    if (scene_is_full(scene, index))
        return COLOR_VERMILION;
    return is_nearly_full(scene, index) ? COLOR_ORANGE : usual;
}

struct svg_stroke scene_stroke(const struct scene *scene, uint32_t index)
{
    const struct tutti_graph_link *link = &scene->subject->graph->links[index];

    return (struct svg_stroke){
        .color = load_color(scene, index, looks[link->kind].color),
        .width = fmin(1.2 * log2(1 + link->bytes_per_s / 6e9) + 0.3, 9),
        .dash = link->found_by == TUTTI_SOURCE_ASSUMED ? "6 3" : NULL,
    };
}

/* Returns true if an end of the link is in the host. */
static bool is_of_host(const struct scene *scene, const struct tutti_graph_link *link)
{
    const struct tutti_graph *graph = scene->subject->graph;

    return graph->nodes[link->from].host == scene->host ||
           graph->nodes[link->to].host == scene->host;
}

bool scene_has_kind(const struct scene *scene, enum tutti_graph_link_kind kind)
{
    const struct tutti_graph *graph = scene->subject->graph;

    for (uint32_t i = 0; i < graph->nlinks; i++)
        if (graph->links[i].kind == kind && is_of_host(scene, &graph->links[i]))
            return true;
    return false;
}

void scene_fit(char *text, size_t size_bytes, double size, double width)
{
    static const char dots[] = "…";
    size_t length = strlen(text);

    if (svg_text_width(text, size) <= width)
        return;
    while (length > 0 && svg_text_width(text, size) + size > width) {
        /* Remove a whole UTF-8 character. */
        do
            length--;
        while (length > 0 && (text[length] & 0xc0) == 0x80);
        text[length] = '\0';
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '-'))
        text[--length] = '\0';
    if (length > 0 && length + sizeof dots <= size_bytes)
        strcpy(text + length, dots);
}

/* Returns true if the host has AMD's gpus. Their links are called xGMI. */
static bool has_amd(const struct scene *scene)
{
    const struct tutti_graph *graph = scene->subject->graph;
    uint32_t count, first = subject_first(scene->subject, scene->host, TUTTI_NODE_GPU, &count);

    return count > 0 && tutti_device_has(graph->inventory, graph->nodes[first].device,
                                         TUTTI_PROPERTY_GCN);
}

/* Draws an entry of the legend. Returns the x at which the next entry starts. */
static double draw_sample(const struct scene *scene, double x, double y, struct svg_stroke stroke,
                          const char *name)
{
    svg_line(scene->svg, x, y, x + 26, y, stroke);
    svg_text(scene->svg, x + 33, y + 4, (struct svg_font){.size = 11.5, .color = COLOR_SOFT}, "%s",
             name);
    return x + 33 + svg_text_width(name, 11.5) + 14;
}

double scene_draw_key(const struct scene *scene, double x, double y)
{
    const struct tutti_graph *graph = scene->subject->graph;
    bool has_full = false, has_nearly = false, has_assumed = false;

    for (int kind = 0; kind < TUTTI_LINK_COUNT; kind++)
        if (looks[kind].name != NULL && scene_has_kind(scene, (enum tutti_graph_link_kind)kind))
            x = draw_sample(scene, x, y, (struct svg_stroke){looks[kind].color, 3, NULL},
                            kind == TUTTI_LINK_NVLINK && has_amd(scene) ? "xGMI"
                                                                        : looks[kind].name);
    for (uint32_t i = 0; i < graph->nlinks; i++) {
        if (!is_of_host(scene, &graph->links[i]))
            continue;
        has_full = has_full || scene_is_full(scene, i);
        has_nearly = has_nearly ||
                     (looks[graph->links[i].kind].name != NULL && is_nearly_full(scene, i));
        has_assumed = has_assumed || graph->links[i].found_by == TUTTI_SOURCE_ASSUMED;
    }
    if (has_assumed)
        x = draw_sample(scene, x, y, (struct svg_stroke){COLOR_SOFT, 2, "6 3"}, "assumed");
    if (has_full)
        x = draw_sample(scene, x, y, (struct svg_stroke){COLOR_VERMILION, 3, NULL},
                        "full: it bounds");
    if (has_nearly)
        x = draw_sample(scene, x, y, (struct svg_stroke){COLOR_ORANGE, 3, NULL}, "90 %");
    return x;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Writes a link's rate in GB/s next to the line, for instance "24". `with_form` adds the form of
 * the link, such as its generation and width. */
static void draw_rate(const struct scene *scene, double x, double y, uint32_t link, bool with_form,
                      enum svg_anchor anchor)
{
    struct svg_font font = {.size = LAYOUT_SMALL, .has_halo = true, .anchor = anchor,
                            .color = load_color(scene, link, COLOR_SOFT),
                            .is_bold = scene_is_full(scene, link)};
    char form[NAME_BYTES] = "";

    if (with_form)
        subject_link_form(scene->subject, link, form, sizeof form);
    svg_text(scene->svg, x, y, font, "%.3g%s%s",
             scene->subject->graph->links[link].bytes_per_s / 1e9, *form != '\0' ? "  " : "", form);
}

/* Draws a vertical link from the top of the lower box to the bottom of the upper box. The line is
 * `aside` pixels to the right of the lower box's middle. A label to its left is higher than one to
 * the right of the box before it, which may be close. */
static void draw_vertical(const struct scene *scene, const struct box *upper,
                          const struct box *lower, double aside, uint32_t link, bool with_form)
{
    struct svg_stroke stroke = scene_stroke(scene, link);
    double x = lower->x + lower->width / 2 + aside;

    svg_line(scene->svg, x, lower->y, x, upper->y + upper->height, stroke);
    if (aside < 0)
        draw_rate(scene, x - stroke.width / 2 - 4, lower->y - 30, link, with_form, SVG_RIGHT);
    else
        draw_rate(scene, x + stroke.width / 2 + 4, lower->y - 16, link, with_form, SVG_LEFT);
}

/* Returns true if the gpu has another link to the cpu besides PCI, such as NVLink-C2C. */
static bool has_cpu_link(const struct scene *scene, uint32_t gpu)
{
    const struct tutti_graph *graph = scene->subject->graph;

    for (uint32_t i = 0; i < graph->nodes[gpu].nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[graph->nodes[gpu].first_link + i];

        if (link->kind != TUTTI_LINK_PCI && graph->nodes[link->to].kind == TUTTI_NODE_CPU)
            return true;
    }
    return false;
}

/* Draws a PCI link from a device to its parent, or between two switches. */
static void draw_pci(const struct scene *scene, const struct layout *layout, uint32_t index)
{
    const struct tutti_graph *graph = scene->subject->graph;
    const struct tutti_graph_link *link = &graph->links[index];
    const struct box *from = &layout->box[link->from], *to = &layout->box[link->to];

    if (layout->parent[link->from] == link->to) {
        /* The PCI link is drawn a little to the left if another link to the cpu is beside it. */
        bool is_moved = graph->nodes[link->from].kind == TUTTI_NODE_GPU &&
                        has_cpu_link(scene, link->from);

        draw_vertical(scene, to, from, is_moved ? -from->width / 8 : 0, index,
                      from->width >= 1.7 * LAYOUT_PORT);
    } else if (layout->parent[link->to] != link->from && link->from < link->to) {
        /* This link is not part of the tree: it connects two switches. */
        const struct box *left = from->x < to->x ? from : to, *right = left == from ? to : from;
        double y = left->y + left->height / 2;

        svg_line(scene->svg, left->x + left->width, y, right->x, right->y + right->height / 2,
                 scene_stroke(scene, index));
        draw_rate(scene, left->x + left->width + 4, y - 5, index, false, SVG_LEFT);
    }
}

/* Draws a gpu's link to the bar of an NVSwitch below, or to the cpu above. */
static void draw_nvlink(const struct scene *scene, const struct layout *layout, uint32_t index)
{
    const struct tutti_graph *graph = scene->subject->graph;
    const struct tutti_graph_link *link = &graph->links[index];
    const struct box *gpu = &layout->box[link->from], *to = &layout->box[link->to];
    enum tutti_graph_node_kind kind = graph->nodes[link->to].kind;

    if (graph->nodes[link->from].kind != TUTTI_NODE_GPU || to->width == 0)
        return;
    if (kind == TUTTI_NODE_NVSWITCH) {
        struct svg_stroke stroke = scene_stroke(scene, index);
        double x = gpu->x + gpu->width / 2;

        svg_line(scene->svg, x, gpu->y + gpu->height, x, to->y, stroke);
        draw_rate(scene, x + stroke.width / 2 + 4, to->y - 14, index, false, SVG_LEFT);
    } else if (kind == TUTTI_NODE_CPU) {
        draw_vertical(scene, to, gpu, gpu->width / 8, index, false);
    }
}

static void draw_two_cpus(const struct scene *scene, const struct layout *layout, uint32_t index)
{
    const struct tutti_graph_link *link = &scene->subject->graph->links[index];
    const struct box *a = &layout->box[link->from], *b = &layout->box[link->to];
    const struct box *left = a->x < b->x ? a : b, *right = left == a ? b : a;
    double y = left->y + left->height / 2, x = (left->x + left->width + right->x) / 2;
    struct svg_font font = {.size = LAYOUT_SMALL, .anchor = SVG_MIDDLE,
                            .color = load_color(scene, index, COLOR_SOFT),
                            .is_bold = scene_is_full(scene, index)};

    svg_line(scene->svg, left->x + left->width, y, right->x, y, scene_stroke(scene, index));
    svg_text(scene->svg, x, y - 9, font, "%.3g", link->bytes_per_s / 1e9);
}

/* Draws the links between more than two cpus as one common line above them. Single lines for all
 * pairs would cross the boxes. */
static void draw_bus(const struct scene *scene, const struct layout *layout)
{
    const struct tutti_graph *graph = scene->subject->graph;
    double left = INFINITY, right = -INFINITY, least = INFINITY, most = 0;
    /* The line has the look of this link, which is a full link if there is one. */
    uint32_t shown = TUTTI_NO_NODE;

    for (uint32_t i = 0; i < graph->nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[i];

        if (link->kind != TUTTI_LINK_SYS || !is_of_host(scene, link))
            continue;
        if (shown == TUTTI_NO_NODE || scene_is_full(scene, i))
            shown = i;
        least = fmin(least, link->bytes_per_s);
        most = fmax(most, link->bytes_per_s);
    }
    if (shown == TUTTI_NO_NODE)
        return;
    for (uint32_t i = 0; i < layout->norder; i++) {
        const struct box *box = &layout->box[layout->order[i]];
        double x = box->x + box->width / 2;

        if (graph->nodes[layout->order[i]].kind != TUTTI_NODE_CPU)
            continue;
        svg_line(scene->svg, x, layout->bus_y, x, box->y, scene_stroke(scene, shown));
        left = fmin(left, x);
        right = fmax(right, x);
    }
    svg_line(scene->svg, left, layout->bus_y, right, layout->bus_y, scene_stroke(scene, shown));
    svg_text(scene->svg, left, layout->bus_y - 8,
             (struct svg_font){.size = LAYOUT_SMALL,
                               .color = load_color(scene, shown, COLOR_SOFT)},
             most > least * 1.001 ? "any two: %.3g to %.3g" : "any two: %.3g", least / 1e9,
             most / 1e9);
}

static void draw_links(const struct scene *scene, const struct layout *layout)
{
    const struct tutti_graph *graph = scene->subject->graph;

    if (layout->bus_y > 0)
        draw_bus(scene, layout);
    for (uint32_t i = 0; i < graph->nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[i];

        if (graph->nodes[link->from].host != scene->host || layout->box[link->from].width == 0)
            continue;
        switch (link->kind) {
        case TUTTI_LINK_PCI: draw_pci(scene, layout, i); break;
        case TUTTI_LINK_NVLINK:
        case TUTTI_LINK_C2C: draw_nvlink(scene, layout, i); break;
        case TUTTI_LINK_SYS:
            if (layout->bus_y == 0 && link->from < link->to)
                draw_two_cpus(scene, layout, i);
            break;
        default: break;
        }
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Draws three lines of text in a box. The first is bold, and the last may be "". */
static void draw_lines(const struct scene *scene, const struct box *box, const char *bold,
                       const char *first, const char *second)
{
    double x = box->x + box->width / 2, y = box->y + (*second != '\0' ? 19 : 24);
    struct svg_font font = {.size = LAYOUT_BOLD, .color = COLOR_INK, .anchor = SVG_MIDDLE,
                            .is_bold = true};
    char text[NAME_BYTES];

    svg_text(scene->svg, x, y, font, "%s", bold);
    font = (struct svg_font){.size = LAYOUT_SMALL, .color = COLOR_SOFT, .anchor = SVG_MIDDLE};
    snprintf(text, sizeof text, "%s", first);
    scene_fit(text, sizeof text, font.size, box->width);
    svg_text(scene->svg, x, y + 15, font, "%s", text);
    snprintf(text, sizeof text, "%s", second);
    scene_fit(text, sizeof text, font.size, box->width);
    if (*text != '\0')
        svg_text(scene->svg, x, y + 28, font, "%s", text);
}

static void draw_gpu(const struct scene *scene, uint32_t node, const struct box *box)
{
    const struct tutti_inventory *inventory = scene->subject->graph->inventory;
    uint32_t gpu = scene->subject->graph->nodes[node].device;
    const char *model = layout_model(scene->subject, node);
    char name[NAME_BYTES], kind[NAME_BYTES] = "";

    svg_box(scene->svg, box->x, box->y, box->width, box->height, RADIUS, FILL_GPU,
            (struct svg_stroke){EDGE_GPU, 1, NULL});
    snprintf(name, sizeof name, "gpu %u", scene->subject->graph->nodes[node].number);
    if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_GCN))
        snprintf(kind, sizeof kind, "%s", tutti_device_text(inventory, gpu, TUTTI_PROPERTY_GCN));
    else if (tutti_device_has(inventory, gpu, TUTTI_PROPERTY_SM))
        snprintf(kind, sizeof kind, "sm %lld",
                 (long long)tutti_device_number(inventory, gpu, TUTTI_PROPERTY_SM, 0));
    draw_lines(scene, box, name, *model != '\0' ? model : kind, *model != '\0' ? kind : "");
}

/* Draws a nic with a cell for each port. A frame marks a port that is fully loaded. */
static void draw_nic(const struct scene *scene, uint32_t node, const struct box *box)
{
    const struct tutti_graph *graph = scene->subject->graph;
    uint32_t count, first = layout_ports(scene->subject, node, &count);

    svg_box(scene->svg, box->x, box->y, box->width, box->height, RADIUS, FILL_NIC,
            (struct svg_stroke){EDGE_NIC, 1, NULL});
    if (count == 0)
        draw_lines(scene, box, "nic", "", "");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t net = first + i, up = graph->nodes[net].first_link;
        struct box cell = {box->x + i * box->width / count, box->y, box->width / count,
                           box->height};
        char name[NAME_BYTES], form[NAME_BYTES];

        while (graph->links[up].kind != TUTTI_LINK_PORT)
            up++;
        snprintf(name, sizeof name, "net %u", graph->nodes[net].number);
        subject_link_form(scene->subject, up, form, sizeof form);
        if (strlen(form) > 7 && strcmp(form + strlen(form) - 7, " Gbit/s") == 0)
            strcpy(form + strlen(form) - 7, "G");
        if (i > 0)
            svg_line(scene->svg, cell.x, cell.y, cell.x, cell.y + cell.height,
                     (struct svg_stroke){EDGE_NIC, 1, NULL});
        if (scene_is_full(scene, up))
            svg_box(scene->svg, cell.x + 1.5, cell.y + 1.5, cell.width - 3, cell.height - 3,
                    RADIUS - 1.5, NULL, (struct svg_stroke){COLOR_VERMILION, 2, NULL});
        draw_lines(scene, &cell, name, subject_model(scene->subject, net), form);
    }
}

/* Draws a row of cells with the CPUs of each last-level cache. */
static void draw_caches(const struct scene *scene, uint32_t node, const struct box *box)
{
    char *copy = must_have(strdup(tutti_device_text(scene->subject->graph->inventory,
                                                    scene->subject->graph->nodes[node].device,
                                                    TUTTI_PROPERTY_CACHES)));
    char *rest = copy, *mask;
    uint32_t count = layout_caches(scene->subject, node);
    double width = (box->width - 12) / (count > 0 ? count : 1), x = box->x + 6;

    while ((mask = strsep(&rest, ";")) != NULL && count > 0) {
        char *cpus = subject_cpus(mask);

        svg_box(scene->svg, x + 1.5, box->y + box->height - 22, width - 3, 16, 3, COLOR_PAPER,
                (struct svg_stroke){COLOR_RULE, 1, NULL});
        cpus[strcspn(cpus, ",")] = '\0'; /* The first range suffices; the second hardware threads
                                            of the cores follow after a comma. */
        if (svg_text_width(cpus, 9) < width - 6)
            svg_text(scene->svg, x + width / 2, box->y + box->height - 10.5,
                     (struct svg_font){.size = 9, .color = COLOR_SOFT, .anchor = SVG_MIDDLE}, "%s",
                     cpus);
        free(cpus);
        x += width;
    }
    free(copy);
}

static void draw_cpu(const struct scene *scene, uint32_t node, const struct box *box)
{
    char lines[3][NAME_BYTES];
    struct box upper = *box;

    layout_cpu_text(scene->subject, node, lines);
    upper.height = LAYOUT_CPU;
    svg_box(scene->svg, box->x, box->y, box->width, box->height, RADIUS, FILL_CPU,
            (struct svg_stroke){COLOR_RULE, 1, NULL});
    draw_lines(scene, &upper, lines[0], lines[1], lines[2]);
    if (layout_caches(scene->subject, node) > 0)
        draw_caches(scene, node, box);
}

static void draw_switch(const struct scene *scene, uint32_t node, const struct box *box)
{
    const struct tutti_graph *graph = scene->subject->graph;
    char busid[40] = "";

    tutti_busid_write(tutti_device_number(graph->inventory, graph->nodes[node].device,
                                          TUTTI_PROPERTY_BUSID, 0), busid, sizeof busid);
    svg_box(scene->svg, box->x, box->y, box->width, box->height, RADIUS, FILL_SWITCH,
            (struct svg_stroke){COLOR_GRAY, 1, NULL});
    svg_text(scene->svg, box->x + box->width / 2, box->y + 15,
             (struct svg_font){.size = LAYOUT_SMALL, .color = COLOR_SOFT, .anchor = SVG_MIDDLE},
             box->width > 140 ? "PCI %s" : "%s", busid);
}

static void draw_nvswitch(const struct scene *scene, uint32_t node, const struct box *box)
{
    const struct tutti_graph *graph = scene->subject->graph;
    uint32_t link = graph->nodes[node].first_link;
    char form[NAME_BYTES], rate[UNITS_TEXT], text[3 * NAME_BYTES];

    subject_link_form(scene->subject, link, form, sizeof form);
    snprintf(text, sizeof text, "NVSwitch: %s of each gpu, %s each way", form,
             units_rate(graph->links[link].bytes_per_s, rate));
    if (svg_text_width(text, LAYOUT_BOLD) > box->width - 10)
        strcpy(text, "NVSwitch");
    svg_box(scene->svg, box->x, box->y, box->width, box->height, RADIUS, FILL_GPU,
            (struct svg_stroke){COLOR_GREEN, 1.2, NULL});
    svg_text(scene->svg, box->x + box->width / 2, box->y + 17,
             (struct svg_font){.size = LAYOUT_BOLD, .color = COLOR_INK, .anchor = SVG_MIDDLE}, "%s",
             text);
}

void scene_draw_host(const struct scene *scene, const struct layout *layout)
{
    const struct tutti_graph *graph = scene->subject->graph;

    draw_links(scene, layout);
    for (uint32_t node = 0; node < graph->nnodes; node++) {
        const struct box *box = &layout->box[node];

        if (box->width == 0)
            continue;
        switch (graph->nodes[node].kind) {
        case TUTTI_NODE_GPU: draw_gpu(scene, node, box); break;
        case TUTTI_NODE_NIC: draw_nic(scene, node, box); break;
        case TUTTI_NODE_CPU: draw_cpu(scene, node, box); break;
        case TUTTI_NODE_PCI: draw_switch(scene, node, box); break;
        case TUTTI_NODE_NVSWITCH: draw_nvswitch(scene, node, box); break;
        default: break;
        }
    }
}
