/* SPDX-License-Identifier: Apache-2.0
 * Places the boxes of a host's devices. Finds the widths from the leaves to the roots, and then the
 * positions from the roots to the leaves. */
#include "topo/layout.h"

#include "common/memory.h"
#include "draw/svg.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Horizontal space between neighboring boxes, by their kinds. */
#define GAP_LEAF 6.0
#define GAP_SWITCH 14.0
#define GAP_CPU 28.0
#define GAP_TWO_CPUS 84.0 /* wide enough for the link between them */

#define ROW_GAP    46.0 /* vertical space between rows, for links and their rates */
#define BUS_HEIGHT 44.0 /* space for the line above more than two cpus */
#define PADDING    8.0  /* space between a box and its children or its text, on either side */

/* Most characters of a cpu's model, and of its list of CPUs. */
enum { MODEL_CHARS = 36, CPUS_CHARS = 30 };

/* ---- what is drawn --------------------------------------------------------------------------- */

static enum tutti_graph_node_kind kind_of(const struct layout *layout, uint32_t node)
{
    return layout->subject->graph->nodes[node].kind;
}

/* Returns the node of the nearest ancestor device that has a node, or TUTTI_NO_NODE. */
static uint32_t node_above(const struct subject *subject, uint32_t node)
{
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t device = inventory->devices[subject->graph->nodes[node].device].parent;

    while (device != TUTTI_NO_DEVICE && subject->node_of[device] == TUTTI_NO_NODE)
        device = inventory->devices[device].parent;
    return device == TUTTI_NO_DEVICE ? TUTTI_NO_NODE : subject->node_of[device];
}

/* Chooses the nodes that are drawn: cpus, gpus and nics, and the switches above these. */
static void choose_nodes(struct layout *layout)
{
    const struct subject *subject = layout->subject;
    const struct tutti_inventory *inventory = subject->graph->inventory;

    for (uint32_t device = 0; device != TUTTI_NO_DEVICE;
         device = tutti_inventory_next(inventory, device)) {
        uint32_t node = subject->node_of[device];
        enum tutti_graph_node_kind kind;

        if (node == TUTTI_NO_NODE || subject->graph->nodes[node].host != layout->host)
            continue;
        kind = kind_of(layout, node);
        if (kind == TUTTI_NODE_NET)
            continue;
        layout->order[layout->norder++] = node;
        layout->parent[node] = node_above(subject, node);
        layout->ncpus += kind == TUTTI_NODE_CPU;
        if (kind == TUTTI_NODE_PCI)
            continue;
        for (uint32_t at = node; at != TUTTI_NO_NODE && layout->box[at].width == 0;
             at = layout->parent[at])
            layout->box[at].width = 1; /* marks the box as drawn until its width is known */
    }
}

static bool is_leaf(const struct layout *layout, uint32_t node)
{
    enum tutti_graph_node_kind kind = kind_of(layout, node);

    return kind == TUTTI_NODE_GPU || kind == TUTTI_NODE_NIC;
}

/* Returns the next drawn child of a node, or TUTTI_NO_NODE after the last. *at starts at 0. With
 * TUTTI_NO_NODE as the parent, returns the nodes without a parent. */
static uint32_t next_child(const struct layout *layout, uint32_t parent, uint32_t *at)
{
    while (*at < layout->norder) {
        uint32_t node = layout->order[(*at)++];

        if (layout->parent[node] == parent && layout->box[node].width > 0)
            return node;
    }
    return TUTTI_NO_NODE;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *layout_model(const struct subject *subject, uint32_t node)
{
    static const char *const makers[] = {"NVIDIA ", "AMD ", "Instinct "};
    const char *model = subject_model(subject, node);

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++)
        if (strncasecmp(model, makers[i], strlen(makers[i])) == 0)
            model += strlen(makers[i]);
    return model;
}

uint32_t layout_caches(const struct subject *subject, uint32_t node)
{
    const char *text = tutti_device_text(subject->graph->inventory,
                                         subject->graph->nodes[node].device, TUTTI_PROPERTY_CACHES);
    uint32_t count = *text != '\0';

    for (; *text != '\0'; text++)
        count += *text == ';';
    return count;
}

void layout_cpu_text(const struct subject *subject, uint32_t node, char lines[3][NAME_BYTES])
{
    const struct tutti_inventory *inventory = subject->graph->inventory;
    uint32_t device = subject->graph->nodes[node].device;
    char *cpus = subject_cpus(tutti_device_text(inventory, device, TUTTI_PROPERTY_AFFINITY));
    const char *model = subject_model(subject, node);

    snprintf(lines[0], NAME_BYTES, "cpu %lld",
             (long long)tutti_device_number(inventory, device, TUTTI_PROPERTY_NUMA,
                                            subject->graph->nodes[node].number));
    if (tutti_device_has(inventory, device, TUTTI_PROPERTY_PACKAGE))
        snprintf(lines[0] + strlen(lines[0]), NAME_BYTES - strlen(lines[0]), ", package %lld",
                 (long long)tutti_device_number(inventory, device, TUTTI_PROPERTY_PACKAGE, 0));
    if (*model == '\0')
        model = tutti_device_text(inventory, device, TUTTI_PROPERTY_CPU_VENDOR);
    if (*model == '\0')
        model = tutti_device_text(inventory, device, TUTTI_PROPERTY_CPU_ARCH);
    snprintf(lines[1], NAME_BYTES, "%.*s", MODEL_CHARS, model);
    lines[2][0] = '\0';
    if (*cpus != '\0')
        snprintf(lines[2], NAME_BYTES, "CPUs %.*s%s", CPUS_CHARS, cpus,
                 strlen(cpus) > CPUS_CHARS ? "..." : "");
    free(cpus);
}

uint32_t layout_ports(const struct subject *subject, uint32_t nic, uint32_t *ret_count)
{
    const struct tutti_graph *graph = subject->graph;
    uint32_t first = TUTTI_NO_NODE, count = 0;

    for (uint32_t i = graph->nodes[nic].first_link;
         i < graph->nodes[nic].first_link + graph->nodes[nic].nlinks; i++)
        if (graph->links[i].kind == TUTTI_LINK_PORT) {
            first = count++ == 0 ? graph->links[i].to : first;
        }
    *ret_count = count;
    return first;
}

/* ---- widths ---------------------------------------------------------------------------------- */

/* Returns the width of a gpu or a port, between LAYOUT_PORT and 1.5 times as much. */
static double leaf_width(const struct layout *layout, uint32_t node)
{
    double text = svg_text_width(layout_model(layout->subject, node), LAYOUT_SMALL) + 4;

    return fmin(fmax(LAYOUT_PORT, text), 1.5 * LAYOUT_PORT);
}

/* Returns the width that a node needs for its own text, without its children. */
static double own_width(const struct layout *layout, uint32_t node)
{
    char lines[3][NAME_BYTES];
    double width = 0;
    uint32_t count, first;

    switch (kind_of(layout, node)) {
    case TUTTI_NODE_CPU:
        layout_cpu_text(layout->subject, node, lines);
        width = svg_text_width(lines[0], LAYOUT_BOLD);
        for (int i = 1; i < 3; i++)
            width = fmax(width, svg_text_width(lines[i], LAYOUT_SMALL));
        return width + 2 * PADDING;
    case TUTTI_NODE_NIC:
        first = layout_ports(layout->subject, node, &count);
        for (uint32_t i = 0; i < count; i++)
            width += leaf_width(layout, first + i);
        return fmax(width, LAYOUT_PORT);
    case TUTTI_NODE_PCI: return 2 * LAYOUT_PORT;
    default: return leaf_width(layout, node);
    }
}

/* Returns the space between two neighboring boxes of one row. */
static double gap_between(const struct layout *layout, uint32_t left, uint32_t right)
{
    if (kind_of(layout, left) == TUTTI_NODE_CPU)
        return layout->ncpus == 2 ? GAP_TWO_CPUS : GAP_CPU;
    return is_leaf(layout, left) && is_leaf(layout, right) ? GAP_LEAF : GAP_SWITCH;
}

/* Returns the width of all children of a node with the space between them. */
static double children_width(const struct layout *layout, uint32_t parent)
{
    uint32_t at = 0, last = TUTTI_NO_NODE, child;
    double width = 0;

    while ((child = next_child(layout, parent, &at)) != TUTTI_NO_NODE) {
        width += layout->box[child].width;
        if (last != TUTTI_NO_NODE)
            width += gap_between(layout, last, child);
        last = child;
    }
    return width;
}

/* Sets the widths of a node and of all nodes below it. */
static void find_width(struct layout *layout, uint32_t node)
{
    uint32_t at = 0, child;
    double below;

    while ((child = next_child(layout, node, &at)) != TUTTI_NO_NODE)
        find_width(layout, child);
    below = children_width(layout, node);
    if (below > 0 && !is_leaf(layout, node))
        below += 2 * PADDING;
    layout->box[node].width = fmax(own_width(layout, node), below);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint32_t switches_above(const struct layout *layout, uint32_t node)
{
    uint32_t count = 0;

    for (node = layout->parent[node]; node != TUTTI_NO_NODE; node = layout->parent[node])
        count += kind_of(layout, node) == TUTTI_NODE_PCI;
    return count;
}

/* Sets the horizontal positions of all nodes below a node. The first child starts at x. */
static void place_children(struct layout *layout, uint32_t parent, double x)
{
    uint32_t at = 0, last = TUTTI_NO_NODE, child;

    while ((child = next_child(layout, parent, &at)) != TUTTI_NO_NODE) {
        struct box *box = &layout->box[child];

        if (last != TUTTI_NO_NODE)
            x += gap_between(layout, last, child);
        box->x = x;
        place_children(layout, child, x + (box->width - children_width(layout, child)) / 2);
        x += box->width;
        last = child;
    }
}

/* Sets the vertical positions and the heights of all nodes. The first row starts at y. */
static void place_rows(struct layout *layout, double y)
{
    uint32_t deepest = 0; /* the most PCI switches above a leaf */
    bool has_leaf = false;
    double cpu_height = LAYOUT_CPU, leaf_y;

    for (uint32_t i = 0; i < layout->norder; i++) {
        uint32_t node = layout->order[i];

        if (layout->box[node].width == 0)
            continue;
        if (is_leaf(layout, node)) {
            has_leaf = true;
            deepest = switches_above(layout, node) > deepest ? switches_above(layout, node)
                                                             : deepest;
        } else if (kind_of(layout, node) == TUTTI_NODE_CPU &&
                   layout_caches(layout->subject, node) > 0) {
            cpu_height = LAYOUT_CPU + LAYOUT_CACHES;
        }
    }
    if (layout->ncpus > 2) {
        layout->bus_y = y + 20;
        y += BUS_HEIGHT + 8;
    }
    leaf_y = y + cpu_height + ROW_GAP + deepest * (LAYOUT_SWITCH + ROW_GAP);
    for (uint32_t i = 0; i < layout->norder; i++) {
        struct box *box = &layout->box[layout->order[i]];
        uint32_t above = switches_above(layout, layout->order[i]);

        switch (kind_of(layout, layout->order[i])) {
        case TUTTI_NODE_CPU:
            box->y = y;
            box->height = cpu_height;
            break;
        case TUTTI_NODE_PCI:
            box->y = y + cpu_height + ROW_GAP + above * (LAYOUT_SWITCH + ROW_GAP);
            box->height = LAYOUT_SWITCH;
            break;
        default:
            box->y = leaf_y;
            box->height = LAYOUT_LEAF;
            break;
        }
    }
    layout->height = has_leaf ? leaf_y + LAYOUT_LEAF : y + cpu_height;
}

/* Places the bar of each NVSwitch below the gpus that the switch joins. */
static void place_nvswitches(struct layout *layout)
{
    const struct tutti_graph *graph = layout->subject->graph;

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_NVSWITCH]; i++) {
        uint32_t node = graph->first[TUTTI_NODE_NVSWITCH] + i;
        struct box *bar = &layout->box[node];
        double left = INFINITY, right = -INFINITY;

        for (uint32_t l = 0; l < graph->nodes[node].nlinks; l++) {
            uint32_t gpu = graph->links[graph->nodes[node].first_link + l].to;

            if (graph->nodes[gpu].host != layout->host)
                continue;
            left = fmin(left, layout->box[gpu].x);
            right = fmax(right, layout->box[gpu].x + layout->box[gpu].width);
        }
        if (!(right > left))
            continue;
        *bar = (struct box){left, layout->height + ROW_GAP, right - left, LAYOUT_BAR};
        layout->height = bar->y + bar->height;
    }
}

void layout_make(const struct subject *subject, uint32_t host, double x, double y,
                 struct layout *ret_layout)
{
    const struct tutti_graph *graph = subject->graph;
    struct layout layout = {.subject = subject, .host = host};
    uint32_t at = 0, root;

    layout.box = must_calloc(graph->nnodes, sizeof *layout.box);
    layout.parent = must_calloc(graph->nnodes, sizeof *layout.parent);
    layout.order = must_calloc(graph->nnodes, sizeof *layout.order);
    for (uint32_t i = 0; i < graph->nnodes; i++)
        layout.parent[i] = TUTTI_NO_NODE;
    choose_nodes(&layout);
    while ((root = next_child(&layout, TUTTI_NO_NODE, &at)) != TUTTI_NO_NODE)
        find_width(&layout, root);
    place_children(&layout, TUTTI_NO_NODE, x);
    layout.width = children_width(&layout, TUTTI_NO_NODE);
    place_rows(&layout, y);
    place_nvswitches(&layout);
    layout.height -= y; /* until here, this was the lower edge */
    *ret_layout = layout;
}

void layout_fini(struct layout *layout)
{
    free(layout->box);
    free(layout->parent);
    free(layout->order);
    *layout = (struct layout){.norder = 0};
}
