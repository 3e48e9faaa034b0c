/* SPDX-License-Identifier: Apache-2.0
 * Draws gpus on circles: one circle with the links between the gpus, and one circle for each order
 * of channels. */
#include "common/memory.h"
#include "common/units.h"
#include "draw/colors.h"
#include "topo/scene.h"

#include <math.h>
#include <string.h>

#define TITLE    26.0 /* height of the title above a part of the picture */
#define KEY_LINE 19.0 /* height of a line of the legend */
#define CAPTION  40.0 /* height of the text below an order */
#define CELL_GAP 26.0 /* horizontal space between two orders */

static const double full_turn = 6.283185307179586;

struct circle {
    double x, y, radius, mark; /* the center, the radius, and the radius of the mark of a gpu */
    uint32_t count;
};

/* Finds the position of a gpu on a circle. The gpus run clockwise from the top. They start half a
 * step after it, so that for instance four gpus form an upright square. */
static void place(const struct circle *circle, uint32_t index, double *ret_x, double *ret_y)
{
    double angle = full_turn * ((index + 0.5) / circle->count - 0.25);

    *ret_x = circle->x + circle->radius * cos(angle);
    *ret_y = circle->y + circle->radius * sin(angle);
    if (circle->count == 1)
        *ret_y = circle->y;
    if (circle->count == 1)
        *ret_x = circle->x;
}

static void draw_gpu(const struct scene *scene, const struct circle *circle, uint32_t index,
                     uint32_t number, const char *edge, bool is_root)
{
    double x, y;

    place(circle, index, &x, &y);
    svg_circle(scene->svg, x, y, circle->mark + 2, COLOR_PAPER, (struct svg_stroke){.color = NULL});
    svg_circle(scene->svg, x, y, circle->mark, is_root ? edge : COLOR_PAPER,
               (struct svg_stroke){edge, 1.3, NULL});
    svg_text(scene->svg, x, y + circle->mark * 0.34,
             (struct svg_font){.size = circle->mark * 0.98,
                               .anchor = SVG_MIDDLE,
                               .is_bold = true,
                               .color = is_root ? COLOR_PAPER : COLOR_INK},
             "%u", number);
}

/* ---- links between gpus ---------------------------------------------------------------------- */

/* Returns true if a link joins two gpus of the host, and is a line in the circle. Of the two
 * directions of a link, only one counts. */
static bool is_chord(const struct scene *scene, uint32_t index)
{
    const struct tutti_graph *graph = scene->subject->graph;
    const struct tutti_graph_link *link = &graph->links[index];

    return link->kind == TUTTI_LINK_NVLINK && link->from < link->to &&
           graph->nodes[link->from].kind == TUTTI_NODE_GPU &&
           graph->nodes[link->to].kind == TUTTI_NODE_GPU &&
           graph->nodes[link->from].host == scene->host;
}

bool scene_has_mesh(const struct scene *scene)
{
    for (uint32_t i = 0; i < scene->subject->graph->nlinks; i++)
        if (is_chord(scene, i))
            return true;
    return false;
}

enum { RATES = 8 }; /* most rates that are distinguished */

/* Finds the rates of the links between gpus, from the highest on, with one link as an example of
 * each. Returns the number of rates. */
static uint32_t find_rates(const struct scene *scene, uint32_t examples[RATES])
{
    const struct tutti_graph_link *links = scene->subject->graph->links;
    uint32_t count = 0;

    for (uint32_t i = 0; i < scene->subject->graph->nlinks; i++) {
        uint32_t at = 0;

        if (!is_chord(scene, i))
            continue;
        while (at < count && links[examples[at]].bytes_per_s != links[i].bytes_per_s)
            at++;
        if (at < count || count == RATES)
            continue;
        for (at = count++; at > 0 && links[examples[at - 1]].bytes_per_s < links[i].bytes_per_s;
             at--)
            examples[at] = examples[at - 1];
        examples[at] = i;
    }
    return count;
}

/* Returns the index of a link's rate among the examples. The last index also stands for all rates
 * that are not among them. */
static uint32_t rate_index(const struct scene *scene, const uint32_t *examples, uint32_t count,
                           uint32_t link)
{
    const struct tutti_graph_link *links = scene->subject->graph->links;
    uint32_t at = 0;

    while (at + 1 < count && links[examples[at]].bytes_per_s != links[link].bytes_per_s)
        at++;
    return at;
}

/* Returns the look of a link whose rate has this index. Faster links are darker, so that they are
 * easier to see. */
static struct svg_stroke shade_stroke(const struct scene *scene, uint32_t link, uint32_t index)
{
    static const char *const shades[] = {"#00664b", "#3fb38f", "#9fd8c4", "#c9c9a0"};
    struct svg_stroke stroke = scene_stroke(scene, link);

    stroke.color = shades[index < 4 ? index : 3];
    return stroke;
}

/* Returns the circle of the mesh, whose title is at (x, y). */
static struct circle mesh_circle(const struct scene *scene, double x, double y)
{
    struct circle circle = {.mark = 15};

    subject_first(scene->subject, scene->host, TUTTI_NODE_GPU, &circle.count);
    circle.radius = fmax(92, 9.5 * circle.count);
    circle.x = x + circle.radius + circle.mark + 2;
    circle.y = y + TITLE + circle.radius + circle.mark;
    return circle;
}

void scene_mesh_size(const struct scene *scene, double *ret_width, double *ret_height)
{
    struct circle circle = mesh_circle(scene, 0, 0);
    uint32_t examples[RATES];

    *ret_width = 2 * circle.x;
    *ret_height =
        circle.y + circle.radius + circle.mark + 20 + KEY_LINE * find_rates(scene, examples);
}

void scene_draw_mesh(const struct scene *scene, double x, double y)
{
    const struct tutti_graph *graph = scene->subject->graph;
    struct circle circle = mesh_circle(scene, x, y);
    uint32_t examples[RATES], nrates = find_rates(scene, examples), count;
    uint32_t first = subject_first(scene->subject, scene->host, TUTTI_NODE_GPU, &count);

    svg_text(scene->svg, x, y + 12,
             (struct svg_font){.size = 13, .color = COLOR_INK, .is_bold = true},
             "Links between gpus");
    for (uint32_t index = nrates; index-- > 0;)
        for (uint32_t i = 0; i < graph->nlinks; i++) {
            double x1, y1, x2, y2;

            if (!is_chord(scene, i) || rate_index(scene, examples, nrates, i) != index)
                continue;
            place(&circle, graph->links[i].from - first, &x1, &y1);
            place(&circle, graph->links[i].to - first, &x2, &y2);
            svg_line(scene->svg, x1, y1, x2, y2, shade_stroke(scene, i, index));
            if (scene_is_full(scene, i))
                svg_line(scene->svg, x1, y1, x2, y2,
                         (struct svg_stroke){COLOR_VERMILION, 1.5, NULL});
        }
    for (uint32_t i = 0; i < count; i++)
        draw_gpu(scene, &circle, i, graph->nodes[first + i].number, COLOR_GREEN, false);
    y = circle.y + circle.radius + circle.mark + 24;
    for (uint32_t index = 0; index < nrates; index++, y += KEY_LINE) {
        char text[NAME_BYTES], rate[UNITS_TEXT];

        subject_link_form(scene->subject, examples[index], text, sizeof text);
        svg_line(scene->svg, x, y, x + 26, y, shade_stroke(scene, examples[index], index));
        svg_text(scene->svg, x + 34, y + 4, (struct svg_font){.size = 11.5, .color = COLOR_SOFT},
                 "%s, %s", text, units_rate(graph->links[examples[index]].bytes_per_s, rate));
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Returns the radius of the circle of an order. */
static double order_radius(const struct tutti_channels *plan)
{
    return fmax(46, 5.2 * plan->ngpus);
}

static bool has_nets(const struct tutti_channels *plan)
{
    return plan->channel[0].net_in != TUTTI_NO_NODE;
}

/* Returns the width of an order's cell. The cell includes the arrows of nets outside the circle. */
static double cell_size(const struct tutti_channels *plan)
{
    return 2 * (order_radius(plan) + 12 + (has_nets(plan) ? 18 : 0));
}

/* Returns the distance from the top of the heading to the first cells. It is smaller with nets,
 * because the cells then include space for their arrows. */
static double heading(const struct tutti_channels *plan)
{
    return TITLE + (has_nets(plan) ? 6 : 16);
}

void scene_plan_size(const struct tutti_channels *plan, uint32_t ncolumns, double *ret_width,
                     double *ret_height)
{
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(plan, orders);
    uint32_t drawn = count < SCENE_ORDERS ? count : SCENE_ORDERS;
    uint32_t nrows = (drawn + ncolumns - 1) / ncolumns, used = drawn < ncolumns ? drawn : ncolumns;

    *ret_width = used * (cell_size(plan) + CELL_GAP) - CELL_GAP;
    *ret_height = heading(plan) + nrows * (cell_size(plan) + CAPTION) + (count > drawn ? 12 : -12);
}

/* Draws an arrow from the edge of one gpu to the edge of another. */
static void draw_hop(const struct scene *scene, const struct circle *circle, uint32_t from,
                     uint32_t to, const char *color)
{
    double x1, y1, x2, y2, length;

    place(circle, from, &x1, &y1);
    place(circle, to, &x2, &y2);
    length = hypot(x2 - x1, y2 - y1);
    if (length < 2 * circle->mark + 8)
        return;
    svg_arrow(scene->svg, x1 + (x2 - x1) * circle->mark / length,
              y1 + (y2 - y1) * circle->mark / length, x2 - (x2 - x1) * (circle->mark + 1) / length,
              y2 - (y2 - y1) * (circle->mark + 1) / length, (struct svg_stroke){color, 1.7, NULL});
}

/* Draws an arrow from outside the circle to a gpu, or from the gpu to the outside. A gpu may have
 * both, so each arrow is a little to one side. */
static void draw_net(const struct scene *scene, const struct circle *circle, uint32_t gpu,
                     bool is_in, const char *color)
{
    double x, y, dx, dy, length, side = is_in ? -4 : 4;

    place(circle, gpu, &x, &y);
    dx = x - circle->x;
    dy = y - circle->y;
    length = hypot(dx, dy);
    if (length < 1) {
        dy = -1;
        dx = 0;
        length = 1;
    }
    dx /= length;
    dy /= length;
    x += -dy * side + dx * (circle->mark + 1);
    y += dx * side + dy * (circle->mark + 1);
    if (is_in)
        svg_arrow(scene->svg, x + 19 * dx, y + 19 * dy, x, y,
                  (struct svg_stroke){color, 1.7, NULL});
    else
        svg_arrow(scene->svg, x, y, x + 19 * dx, y + 19 * dy,
                  (struct svg_stroke){color, 1.7, NULL});
}

/* Draws the number of channels and their nets below an order. */
static void draw_caption(const struct scene *scene, const struct tutti_channels *plan,
                         const struct order *order, double x, double y, const char *color)
{
    struct svg_font font = {.size = 12, .color = color, .anchor = SVG_MIDDLE, .is_bold = true};
    char count[NAME_BYTES];

    svg_text(scene->svg, x, y, font, "%s", subject_count(order->count, "channel", count));
    if (!has_nets(plan))
        return;
    font = (struct svg_font){.size = 11, .color = COLOR_SOFT, .anchor = SVG_MIDDLE};
    if (order->channel->net_in == order->channel->net_out)
        svg_text(scene->svg, x, y + 15, font, "in and out by net %u", order->channel->net_in);
    else
        svg_text(scene->svg, x, y + 15, font, "in by net %u, out by %u", order->channel->net_in,
                 order->channel->net_out);
}

/* Draws an order on a circle around (x, y). */
static void draw_order(const struct scene *scene, const struct tutti_channels *plan,
                       const struct order *order, double x, double y, const char *color)
{
    struct circle circle = {x, y, order_radius(plan), 10, plan->ngpus};
    const struct tutti_channel *channel = order->channel;
    bool is_ring = plan->pattern == TUTTI_PATTERN_RING;
    uint32_t n = plan->ngpus, root = is_ring ? 0 : plans_root(plan, channel);
    uint32_t first = is_ring ? channel->gpu[0] : root, last = is_ring ? channel->gpu[n - 1] : root;

    svg_circle(scene->svg, x, y, circle.radius, NULL, (struct svg_stroke){COLOR_FAINT, 1, NULL});
    for (uint32_t i = 0; i < n; i++)
        if (is_ring && n > 1 && (i + 1 < n || !has_nets(plan)))
            draw_hop(scene, &circle, channel->gpu[i], channel->gpu[(i + 1) % n], color);
        else if (!is_ring && i != root)
            draw_hop(scene, &circle, channel->gpu[i], i, color);
    if (has_nets(plan)) {
        draw_net(scene, &circle, first, true, color);
        draw_net(scene, &circle, last, false, color);
    }
    for (uint32_t i = 0; i < n; i++)
        draw_gpu(scene, &circle, i, plan->gpus[i], color, !is_ring && i == root);
    draw_caption(scene, plan, order, x, y + cell_size(plan) / 2 + (has_nets(plan) ? 8 : 14), color);
}

/* Draws the pattern, the number of channels and their rate above the orders. */
static void draw_heading(const struct scene *scene, const struct tutti_channels *plan, double x,
                         double y)
{
    static const char *const names[TUTTI_PATTERN_COUNT] = {"Rings", "Trees", "Broadcast trees"};
    char text[NAME_BYTES], rate[NAME_BYTES], count[NAME_BYTES];
    double share = plan->bytes_per_s / plan->bound_bytes_per_s;

    svg_text(scene->svg, x, y + 12,
             (struct svg_font){.size = 13, .color = COLOR_INK, .is_bold = true}, "%s",
             names[plan->pattern]);
    snprintf(text, sizeof text, "%s of %s", subject_count(plan->nchannels, "channel", count),
             plans_rate(plan->channel_bytes_per_s, rate));
    if (plan->nchannels > 1 && isfinite(share))
        snprintf(text + strlen(text), sizeof text - strlen(text), ", together %s",
                 plans_rate(plan->bytes_per_s, rate));
    if (isfinite(share) && share >= 0.9999)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; no more can be");
    else if (isfinite(share) && share > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; %.1f %% of what can be",
                 100 * share);
    svg_text(scene->svg, x, y + 29, (struct svg_font){.size = 12, .color = COLOR_SOFT}, "%s", text);
}

void scene_draw_plan(const struct scene *scene, const struct tutti_channels *plan,
                     uint32_t ncolumns, double x, double y)
{
    struct order orders[TUTTI_SEARCH_CHANNELS];
    uint32_t count = plans_orders(plan, orders), left = 0;
    uint32_t drawn = count < SCENE_ORDERS ? count : SCENE_ORDERS;
    double size = cell_size(plan), top = y + heading(plan);
    char more[NAME_BYTES], channels[NAME_BYTES];

    draw_heading(scene, plan, x, y);
    for (uint32_t i = 0; i < drawn; i++)
        draw_order(scene, plan, &orders[i], x + i % ncolumns * (size + CELL_GAP) + size / 2,
                   top + i / ncolumns * (size + CAPTION) + size / 2, color_of(i));
    for (uint32_t i = drawn; i < count; i++)
        left += orders[i].count;
    if (left > 0)
        svg_text(scene->svg, x, top + (drawn + ncolumns - 1) / ncolumns * (size + CAPTION) + 6,
                 (struct svg_font){.size = 12, .color = COLOR_SOFT},
                 "and %s with %s", subject_count(count - drawn, "more order", more),
                 subject_count(left, "channel", channels));
}
