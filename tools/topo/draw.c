/* SPDX-License-Identifier: Apache-2.0
 * tutti-topo draw: draws a machine with its rings or trees. */
#include "base/result.h"
#include "common/file.h"
#include "common/memory.h"
#include "common/topo_remarks.h"
#include "draw/colors.h"
#include "topo/commands.h"
#include "topo/layout.h"
#include "topo/scene.h"

#include <math.h>
#include <string.h>

enum { DRAWN_NODES = 2048, DRAWN_HOSTS = 8 }; /* most devices and hosts of a picture */

/* Pixels. */
#define TOP         84.0 /* height of the title, the counts and the legend */
#define BETWEEN     40.0 /* space between parts of the picture */
#define LEAST_WIDTH 720.0
#define TITLE_Y     30.0 /* baselines of the title and the counts, and the height of the legend */
#define COUNTS_Y    49.0
#define LEGEND_Y    68.0
#define NAME_HEIGHT 30.0 /* above a host with its name, and above one without */
#define NO_NAME_HEIGHT 8.0
#define NAME_RISE   14.0 /* of the name's baseline above its host */

static const char help[] =
    "usage: tutti-topo draw [--from WHAT] --svg FILE [options]\n"
    "       tutti-topo draw [--from WHAT] --dot FILE [options]\n"
    "\n"
    "Draws the machine: NUMA nodes, PCI switches, gpus, nics and links. The width of a link shows\n"
    "its rate. Below are the links between gpus, and the orders of the rings or trees that\n"
    "tutti-topo search finds, with the number of channels of each. Links that they fill are red.\n"
    "Of equal hosts one is drawn.\n"
    "\n"
    "  -f, --from WHAT      a machine; see tutti-topo --help (default: this machine)\n"
    "      --svg FILE       a picture\n"
    "      --dot FILE       a graph for Graphviz, of all hosts\n"
    "      --plain          only the machine\n"
    "  -p, --pattern WHICH  ring (default), tree, broadcast or all\n"
    "  -g, --gpus LIST      some gpus of a host, such as 0,1,4 or 0-3 (default: all of each host)\n"
    "      --peers          other hosts take part: channels enter and leave by nets (default\n"
    "                       where NVLinks do not join all hosts)\n"
    "      --cross          ... and may leave by another net than they enter by\n"
    "  -c, --channels N     channels at most (default 32)\n";

/* The part of the picture for one host: the host itself, its mesh of gpus, and its plans. */
struct panel {
    uint32_t host;
    struct tutti_channels *plans[TUTTI_PATTERN_COUNT]; /* owned */
    uint32_t nplans;
    double *load;          /* load of each link by the first plan; NULL: no plan */
    struct layout layout;
    bool has_mesh;
    double mesh_width, mesh_height;
    double top, height, width; /* place and size of the panel in the picture */
};

struct picture {
    const struct request *request;
    const struct subject *subject;
    struct wish wish;
    struct panel panels[DRAWN_HOSTS];
    uint32_t npanels;
};

/* ---- plans ----------------------------------------------------------------------------------- */

/* Searches for the selected patterns on the host of a panel. */
static int find_plans(struct picture *picture, struct panel *panel)
{
    for (int p = 0; p < TUTTI_PATTERN_COUNT; p++) {
        int rc;

        if (!picture->wish.has_pattern[p] || picture->request->wants_plain ||
            !wish_has_host(&picture->wish, picture->subject, panel->host))
            continue;
        rc = plans_search(picture->subject, &picture->wish, panel->host, (enum tutti_pattern)p,
                          &panel->plans[panel->nplans]);
        if (rc != TUTTI_OK)
            return failure(picture->request, rc);
        panel->nplans++;
    }
    if (panel->nplans > 0)
        panel->load = plans_load(picture->subject, panel->plans[0]);
    return REQUEST_GO;
}

/* Makes a panel for each host. Of equal hosts, only the first has one. */
static int find_panels(struct picture *picture)
{
    uint32_t nhosts = picture->subject->graph->nhosts;
    int status = REQUEST_GO;

    for (uint32_t host = 0; host < nhosts && status == REQUEST_GO; host++) {
        if (subject_first_alike(picture->subject, host) < host)
            continue;
        if (picture->npanels == DRAWN_HOSTS)
            return mistake(picture->request,
                           "%s has more than %d kinds of hosts, and a picture "
                           "shows no more; give a machine with fewer",
                           picture->subject->name, DRAWN_HOSTS);
        picture->panels[picture->npanels].host = host;
        status = find_plans(picture, &picture->panels[picture->npanels++]);
    }
    return status;
}

static void free_panels(struct picture *picture)
{
    for (uint32_t i = 0; i < picture->npanels; i++) {
        struct panel *panel = &picture->panels[i];

        for (uint32_t p = 0; p < panel->nplans; p++)
            tutti_channels_destroy(panel->plans[p]);
        free(panel->load);
        layout_fini(&panel->layout);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static struct scene scene_of(const struct picture *picture, const struct panel *panel,
                             struct svg *svg)
{
    return (struct scene){picture->subject, svg, panel->host, panel->load};
}

/* Returns the number of columns for a plan's circles. Finds how many fit, but at least 2, and then
 * makes the rows nearly equal in length. A plan has at least one order. */
static uint32_t columns_of(const struct tutti_channels *plan, double width)
{
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(plan, orders), most = 2, nrows;
    double own_width, height;

    count = count < SCENE_ORDERS ? count : SCENE_ORDERS;
    for (uint32_t columns = 2; columns <= count; columns++) {
        scene_plan_size(plan, columns, &own_width, &height);
        most = own_width <= width ? columns : most;
    }
    nrows = (count + most - 1) / most;
    return (count + nrows - 1) / nrows;
}

/* Returns the x at which the plans begin. */
static double left_of_plans(const struct panel *panel)
{
    return SCENE_MARGIN + (panel->has_mesh ? panel->mesh_width + BETWEEN : 0);
}

/* Computes the size of a panel whose top is y, and the places of what is in it. The mesh and the
 * plans are below the host, side by side. */
static void place_panel(const struct picture *picture, struct panel *panel, double y)
{
    struct scene scene = scene_of(picture, panel, NULL);
    double plans_height = 0, height;

    panel->top = y;
    layout_make(picture->subject, panel->host, SCENE_MARGIN, y, &panel->layout);
    panel->has_mesh = scene_has_mesh(&scene);
    if (panel->has_mesh)
        scene_mesh_size(&scene, &panel->mesh_width, &panel->mesh_height);
    panel->width = fmax(panel->layout.width + 2 * SCENE_MARGIN, LEAST_WIDTH);
    for (uint32_t p = 0; p < panel->nplans; p++) {
        double own_width, own_height, room = panel->width - left_of_plans(panel) - SCENE_MARGIN;

        scene_plan_size(panel->plans[p], columns_of(panel->plans[p], room), &own_width,
                        &own_height);
        panel->width = fmax(panel->width, left_of_plans(panel) + own_width + SCENE_MARGIN);
        plans_height += own_height + (p > 0 ? BETWEEN / 2 : 0);
    }
    height = fmax(plans_height, panel->has_mesh ? panel->mesh_height : 0);
    panel->height = panel->layout.height + (height > 0 ? BETWEEN + height : 0);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_panel(const struct picture *picture, const struct panel *panel, struct svg *svg)
{
    struct scene scene = scene_of(picture, panel, svg);
    double y = panel->top + panel->layout.height + BETWEEN;

    scene_draw_host(&scene, &panel->layout);
    if (panel->has_mesh)
        scene_draw_mesh(&scene, SCENE_MARGIN, y);
    for (uint32_t p = 0; p < panel->nplans; p++) {
        double width, height, room = panel->width - left_of_plans(panel) - SCENE_MARGIN;
        uint32_t ncolumns = columns_of(panel->plans[p], room);

        scene_plan_size(panel->plans[p], ncolumns, &width, &height);
        scene_draw_plan(&scene, panel->plans[p], ncolumns, left_of_plans(panel), y);
        y += height + BETWEEN / 2;
    }
}

/* Writes the host's name, such as "host 0, and 3 more like it", if there are several hosts. */
static void draw_host_name(const struct picture *picture, const struct panel *panel,
                           struct svg *svg)
{
    uint32_t alike = 0;
    char text[NAME_BYTES];

    if (picture->subject->graph->nhosts < 2)
        return;
    for (uint32_t host = panel->host + 1; host < picture->subject->graph->nhosts; host++)
        alike += subject_first_alike(picture->subject, host) == panel->host
                     ? subject_copies(picture->subject, host)
                     : 0;
    snprintf(text, sizeof text, alike > 0 ? "host %u, and %u more like it" : "host %u", panel->host,
             alike);
    svg_text(svg, SCENE_MARGIN, panel->top - NAME_RISE,
             (struct svg_font){.size = 13, .color = COLOR_INK, .is_bold = true}, "%s", text);
}

static void draw_head(const struct picture *picture, struct svg *svg)
{
    static const struct {
        enum tutti_graph_node_kind kind;
        const char *what;
    } counted[] = {{TUTTI_NODE_CPU, "cpu"}, {TUTTI_NODE_GPU, "gpu"}, {TUTTI_NODE_NET, "net"}};
    struct scene scene = scene_of(picture, &picture->panels[0], svg);
    const struct tutti_graph *graph = picture->subject->graph;
    char text[4 * NAME_BYTES] = "", count[NAME_BYTES];

    snprintf(text, sizeof text, "%s", subject_count(graph->nhosts, "host", count));
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
        if (graph->count[counted[i].kind] > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), ", %s",
                     subject_count(graph->count[counted[i].kind], counted[i].what, count));
    svg_text(svg, SCENE_MARGIN, TITLE_Y,
             (struct svg_font){.size = 17, .color = COLOR_INK, .is_bold = true}, "%s",
             picture->subject->name);
    svg_text(svg, SCENE_MARGIN, COUNTS_Y, (struct svg_font){.size = 12, .color = COLOR_SOFT},
             "%s; numbers beside links are GB/s each way", text);
    scene_draw_key(&scene, SCENE_MARGIN, LEGEND_Y);
}

static int draw_svg(struct picture *picture)
{
    bool has_names = picture->subject->graph->nhosts > 1;
    double y = TOP, width = 0;
    struct svg svg;
    int error;

    for (uint32_t i = 0; i < picture->npanels; i++) {
        y += has_names ? NAME_HEIGHT : NO_NAME_HEIGHT;
        place_panel(picture, &picture->panels[i], y);
        y += picture->panels[i].height + BETWEEN;
        width = fmax(width, picture->panels[i].width);
    }
    svg_begin(&svg, width, y - BETWEEN + SCENE_MARGIN, picture->subject->name);
    draw_head(picture, &svg);
    for (uint32_t i = 0; i < picture->npanels; i++) {
        draw_host_name(picture, &picture->panels[i], &svg);
        draw_panel(picture, &picture->panels[i], &svg);
    }
    error = svg_end(&svg, picture->request->svg);
    if (error != 0)
        return write_failure(picture->request, picture->request->svg, error);
    return REQUEST_GO;
}

/* Writes the whole machine, with the rings or trees of its first host. */
static int draw_dot(const struct picture *picture)
{
    const struct panel *panel = &picture->panels[0];
    char *text = scene_write_dot(picture->subject, panel->plans, panel->nplans);
    int error = file_write(picture->request->dot, text);

    free(text);
    if (error != 0)
        return write_failure(picture->request, picture->request->dot, error);
    return REQUEST_GO;
}

static int draw(const struct request *request, const struct subject *subject)
{
    struct picture picture = {.request = request, .subject = subject};
    int status = wish_read(request, subject, "ring", &picture.wish);

    if (status != REQUEST_GO)
        return status;
    status = find_panels(&picture);
    if (status == REQUEST_GO && request->svg != NULL)
        status = draw_svg(&picture);
    if (status == REQUEST_GO && request->dot != NULL)
        status = draw_dot(&picture);
    free_panels(&picture);
    wish_fini(&picture.wish);
    return status;
}

static int run(const struct request *request)
{
    struct subject subject;
    int status;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-topo draw --help",
                       request->words[0]);
    if (request->svg == NULL && request->dot == NULL)
        return mistake(request, "no file is given; add --svg FILE, --dot FILE or both");
    if (request->wants_plain && request->pattern != NULL)
        return mistake(request, "--plain shows no rings or trees; leave out --plain or --pattern");
    status = subject_open(request, !request->wants_plain, &subject);
    if (status != REQUEST_GO)
        return status;
    if (subject.graph->nnodes > DRAWN_NODES)
        status = mistake(request,
                         "%s has %u devices; a picture shows %d at most, so give a "
                         "smaller machine with --from",
                         subject.name, subject.graph->nnodes, DRAWN_NODES);
    else
        status = draw(request, &subject);
    topo_remarks_print(subject.graph, stderr);
    subject_close(&subject);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}

const struct command topo_draw = {
    .name = "tutti-topo draw",
    .options = "from gpu nic cpu svg dot plain pattern gpus peers cross channels",
    .help = help,
    .run = run,
};
