/* SPDX-License-Identifier: Apache-2.0
 * Draws curves and places their names beside their ends. */
#include "draw/plot.h"

#include "common/memory.h"
#include "draw/colors.h"
#include "draw/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The frame of the curves, in pixels of the picture. */
#define LEFT 78.0
#define TOP 74.0 /* without notes */
#define WIDTH 620.0
#define HEIGHT 430.0

#define LABEL_GAP  15.0 /* least distance of two names */
#define LABEL_SIZE 12.0 /* font size of a name */
#define TITLE_X    14.0
#define TITLE_Y    24.0
#define NOTE_GAP   17.0 /* distance of two lines of notes */
#define NOTE_CHARS 110  /* most characters of a line of notes */
#define TITLE_SIZE 16.0

/* Distances from the right edge of the frame: a line from the end of a curve to a sample of its
 * look, the sample, and the name. */
#define JOIN_FROM   4.0
#define SAMPLE_FROM 20.0
#define SAMPLE_TO   46.0
#define NAME_FROM   52.0

static const struct svg_font soft = {.size = 12, .color = COLOR_SOFT};

/* The picture and its axes. */
struct frame {
    struct svg svg;
    double top; /* the upper edge of the frame, below the notes */
    struct axis x, y;
};

/* The place of a curve's name. The curve ends at (end_x, end_y), and its name is at the height
 * y. */
struct label {
    size_t series;
    double end_x, end_y, y;
};

/* ---- labels ---------------------------------------------------------------------------------- */

/* With z = y - i * gap, this is isotonic regression: the values z must not fall. Neighbors that are
 * out of order form a pool and get its mean. The method is "pool adjacent violators"; see Barlow et
 * al., 1972. */
void plot_spread(double *y, size_t count, double gap, double low, double high)
{
    size_t *size = must_calloc(count, sizeof *size), npools = 0;
    double *mean = must_calloc(count, sizeof *mean);
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        mean[npools] = y[i] - (double)i * gap;
        size[npools++] = 1;
        while (npools > 1 && mean[npools - 2] > mean[npools - 1]) {
            size_t a = size[npools - 2], b = size[npools - 1];

            mean[npools - 2] = (mean[npools - 2] * (double)a + mean[npools - 1] * (double)b) /
                               (double)(a + b);
            size[--npools - 1] = a + b;
        }
    }
    /* Limiting the means to low .. high keeps the order. If the values do not fit into this range,
     * they extend beyond its low end. */
    high -= (double)(count > 0 ? count - 1 : 0) * gap;
    for (size_t pool = 0; pool < npools; pool++)
        for (size_t i = 0; i < size[pool]; i++, at++)
            y[at] = fmin(fmax(mean[pool], low), high) + (double)at * gap;
    free(size);
    free(mean);
}

static int by_height(const void *a, const void *b)
{
    const struct label *first = a, *second = b;

    if (first->end_y != second->end_y)
        return first->end_y < second->end_y ? -1 : 1;
    return first->series < second->series ? -1 : 1;
}

/* Finds the labels of the curves that reach the right edge of the frame, or of the other curves if
 * at_frame is false. Sorts the labels from top to bottom, and moves the names apart. Returns the
 * number of labels. */
static size_t find_labels(const struct plot *plot, const struct frame *frame, bool at_frame,
                          struct label *labels)
{
    size_t count = 0;
    double *y = must_calloc(plot->nseries, sizeof *y);

    for (size_t i = 0; i < plot->nseries; i++) {
        const struct plot_series *series = &plot->series[i];
        size_t last = series->count;
        struct label label = {.series = i};

        while (last > 0 && !isfinite(series->y[last - 1]))
            last--;
        if (last == 0)
            continue;
        label.end_x = axis_at(&frame->x, series->x[last - 1]);
        label.end_y = axis_at(&frame->y, series->y[last - 1]);
        if ((label.end_x > LEFT + WIDTH - 1) == at_frame)
            labels[count++] = label;
    }
    qsort(labels, count, sizeof *labels, by_height);
    for (size_t i = 0; i < count; i++)
        y[i] = labels[i].end_y;
    plot_spread(y, count, LABEL_GAP, frame->top + 6, frame->top + HEIGHT - 2);
    for (size_t i = 0; i < count; i++)
        labels[i].y = y[i];
    free(y);
    return count;
}

/* Returns the look of a curve. Bounds do not use up colors. */
static struct svg_stroke stroke_of(const struct plot *plot, size_t series)
{
    size_t index = 0;

    if (plot->series[series].is_bound) {
        const char *color = plot->series[series].color;

        return (struct svg_stroke){color == NULL ? COLOR_INK : color, 1.5, "5 4"};
    }
    for (size_t i = 0; i < series; i++)
        index += !plot->series[i].is_bound;
    return (struct svg_stroke){color_of(index), 2, dash_of(index)};
}

/* Draws a sample of the curve's line and then the name, to the right of the frame. A thin line
 * joins the sample to the end of the curve. */
static void draw_label(const struct plot *plot, struct frame *frame, const struct label *label)
{
    struct svg_stroke stroke = stroke_of(plot, label->series);
    struct svg_font font = {.size = LABEL_SIZE, .color = COLOR_INK};
    double right = LEFT + WIDTH;
    double x[] = {right + JOIN_FROM, right + SAMPLE_FROM}, y[] = {label->end_y, label->y};

    svg_path(&frame->svg, x, y, 2, (struct svg_stroke){.color = stroke.color, .width = 0.8});
    svg_line(&frame->svg, right + SAMPLE_FROM, label->y, right + SAMPLE_TO, label->y, stroke);
    svg_text(&frame->svg, right + NAME_FROM, label->y + 4, font, "%s",
             plot->series[label->series].name);
}

/* Draws the name of a curve that ends inside the frame, at the end of the curve. */
static void draw_inner_label(const struct plot *plot, struct frame *frame,
                             const struct label *label)
{
    struct svg_font font = {.size = LABEL_SIZE, .color = COLOR_INK, .has_halo = true};
    const char *name = plot->series[label->series].name;
    /* The name is on the left of the curve's end if it would not fit on the right. */
    bool is_left = label->end_x + svg_text_width(name, font.size) > LEFT + WIDTH - 10;

    font.anchor = is_left ? SVG_RIGHT : SVG_LEFT;
    svg_circle(&frame->svg, label->end_x, label->end_y, 3, stroke_of(plot, label->series).color,
               (struct svg_stroke){.color = NULL});
    svg_text(&frame->svg, label->end_x + (is_left ? -7 : 7), label->y + 4, font, "%s", name);
}

static void draw_labels(const struct plot *plot, struct frame *frame)
{
    struct label *labels = must_calloc(plot->nseries, sizeof *labels);
    size_t count = find_labels(plot, frame, true, labels);

    for (size_t i = 0; i < count; i++)
        draw_label(plot, frame, &labels[i]);
    count = find_labels(plot, frame, false, labels);
    for (size_t i = 0; i < count; i++)
        draw_inner_label(plot, frame, &labels[i]);
    free(labels);
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Sets the ranges of both axes to those of all points. Returns false if there are no points. */
static bool find_range(const struct plot *plot, struct axis *x, struct axis *y)
{
    x->low = y->low = INFINITY;
    x->high = y->high = 0;
    for (size_t i = 0; i < plot->nseries; i++)
        for (size_t j = 0; j < plot->series[i].count; j++) {
            double at = plot->series[i].x[j], value = plot->series[i].y[j];

            if (!isfinite(value) || value <= 0)
                continue;
            x->low = fmin(x->low, at);
            x->high = fmax(x->high, at);
            y->low = fmin(y->low, value);
            y->high = fmax(y->high, value);
        }
    return x->high > 0;
}

static void draw_axes(const struct plot *plot, struct frame *frame)
{
    struct svg *svg = &frame->svg;
    struct axis_tick ticks[AXIS_TICKS];
    struct svg_stroke grid = {.color = COLOR_FAINT, .width = 1};
    struct svg_font middle = soft, right = soft;
    double bottom = frame->top + HEIGHT;
    /* Numbers without units are short, so more of them fit. */
    size_t labels = plot->x_unit == AXIS_COUNT ? 14 : 9;

    middle.anchor = SVG_MIDDLE;
    right.anchor = SVG_RIGHT;
    for (size_t i = 0, count = axis_ticks(&frame->x, labels, ticks); i < count; i++) {
        double x = axis_at(&frame->x, ticks[i].value);

        if (ticks[i].label[0] != '\0')
            svg_line(svg, x, frame->top, x, bottom, grid);
        svg_line(svg, x, bottom, x, bottom + (ticks[i].label[0] ? 5 : 3),
                 (struct svg_stroke){.color = COLOR_RULE, .width = 1});
        svg_text(svg, x, bottom + 19, middle, "%s", ticks[i].label);
    }
    for (size_t i = 0, count = axis_ticks(&frame->y, 9, ticks); i < count; i++) {
        double y = axis_at(&frame->y, ticks[i].value);

        if (ticks[i].label[0] != '\0')
            svg_line(svg, LEFT, y, LEFT + WIDTH, y, grid);
        svg_line(svg, LEFT - (ticks[i].label[0] ? 5 : 3), y, LEFT, y,
                 (struct svg_stroke){.color = COLOR_RULE, .width = 1});
        svg_text(svg, LEFT - 9, y + 4, right, "%s", ticks[i].label);
    }
    svg_rect(svg, LEFT, frame->top, WIDTH, HEIGHT, NULL,
             (struct svg_stroke){.color = COLOR_RULE, .width = 1});
    svg_text(svg, LEFT + WIDTH / 2, bottom + 40, middle, "%s", plot->x_name);
    svg_text(svg, TITLE_X, frame->top - 22, soft, "%s", plot->y_name);
}

/* Draws a curve, with a gap where it has no values. A single point between gaps is a dot. */
static void draw_curve(const struct plot *plot, struct frame *frame, size_t index)
{
    const struct plot_series *series = &plot->series[index];
    double *x = must_calloc(series->count, sizeof *x);
    double *y = must_calloc(series->count, sizeof *y);
    size_t count = 0;

    for (size_t i = 0; i <= series->count; i++) {
        if (i < series->count && isfinite(series->y[i])) {
            x[count] = axis_at(&frame->x, series->x[i]);
            y[count++] = axis_at(&frame->y, series->y[i]);
            continue;
        }
        if (count > 1)
            svg_path(&frame->svg, x, y, count, stroke_of(plot, index));
        if (count == 1)
            svg_circle(&frame->svg, x[0], y[0], 3.5, stroke_of(plot, index).color,
                       (struct svg_stroke){.color = NULL});
        count = 0;
    }
    free(x);
    free(y);
}

/* Returns how many bytes of a note fit in one line: up to a blank if there is one. */
static size_t line_length(const char *note)
{
    size_t length = strlen(note), at = NOTE_CHARS;

    if (length <= NOTE_CHARS)
        return length;
    while (at > 0 && note[at] != ' ')
        at--;
    return at > 0 ? at : NOTE_CHARS;
}

/* Returns the start of the line after this one. */
static const char *next_line(const char *note)
{
    note += line_length(note);
    return note + strspn(note, " ");
}

static size_t count_lines(const struct plot *plot)
{
    size_t count = 0;

    for (size_t i = 0; i < plot->nnotes; i++)
        for (const char *at = plot->notes[i]; *at != '\0'; at = next_line(at))
            count++;
    return count;
}

/* Draws the title, the text beside it, and the notes below it. */
static void draw_titles(const struct plot *plot, struct frame *frame)
{
    double y = TITLE_Y + 3;

    svg_text(&frame->svg, TITLE_X, TITLE_Y,
             (struct svg_font){.size = TITLE_SIZE, .color = COLOR_INK, .is_bold = true}, "%s",
             plot->title);
    svg_text(&frame->svg, TITLE_X + svg_text_width(plot->title, TITLE_SIZE) + 10, TITLE_Y, soft,
             "%s", plot->subtitle);
    for (size_t i = 0; i < plot->nnotes; i++)
        for (const char *at = plot->notes[i]; *at != '\0'; at = next_line(at)) {
            y += NOTE_GAP;
            svg_text(&frame->svg, TITLE_X, y, soft, "%.*s", (int)line_length(at), at);
        }
}

/* Returns the width that the picture needs for the texts beside and above the frame. */
static double width_of(const struct plot *plot)
{
    double widest_name = 0, titles;

    for (size_t i = 0; i < plot->nseries; i++)
        widest_name = fmax(widest_name, svg_text_width(plot->series[i].name, LABEL_SIZE));
    titles = svg_text_width(plot->title, TITLE_SIZE) + 10 +
             svg_text_width(plot->subtitle, soft.size);
    return fmax(LEFT + WIDTH + NAME_FROM + widest_name + 12, TITLE_X + titles + 12);
}

int plot_draw(const struct plot *plot, const char *file_name)
{
    double top = TOP + (double)count_lines(plot) * NOTE_GAP;
    struct frame frame = {
        .top = top,
        .x = {.unit = plot->x_unit, .is_log = true, .low_px = LEFT, .high_px = LEFT + WIDTH},
        .y = {.unit = plot->y_unit, .is_log = true, .low_px = top + HEIGHT, .high_px = top},
    };

    if (!find_range(plot, &frame.x, &frame.y))
        frame.x.low = frame.x.high = frame.y.low = frame.y.high = 1;
    axis_widen(&frame.x);
    axis_widen(&frame.y);
    svg_begin(&frame.svg, width_of(plot), top + HEIGHT + 54, plot->title);
    draw_titles(plot, &frame);
    draw_axes(plot, &frame);
    /* Draw the curves in reverse order, so that the first curve is on top. */
    for (size_t i = plot->nseries; i-- > 0;)
        draw_curve(plot, &frame, i);
    draw_labels(plot, &frame);
    return svg_end(&frame.svg, file_name);
}
