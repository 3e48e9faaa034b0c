/* SPDX-License-Identifier: Apache-2.0
 * A picture of lines, shapes and text, dark on white, written as an SVG file. Lengths are pixels
 * from the upper left corner.
 */
#ifndef TUTTI_DRAW_SVG_H
#define TUTTI_DRAW_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct svg {
    FILE *out;
    char *text; /* owned; complete after svg_end */
    size_t size;
};

struct svg_stroke {
    const char *colour;
    double width;
    const char *dash; /* "6 3"; NULL: solid */
};

enum svg_anchor { SVG_LEFT, SVG_MIDDLE, SVG_RIGHT };

struct svg_font {
    double size;
    const char *colour;
    enum svg_anchor anchor;
    bool is_bold;
    bool has_halo; /* stays readable over lines */
};

/* Starts a picture. The title is also what a screen reader reads out. */
void svg_begin(struct svg *svg, double width, double height, const char *title);
void svg_line(struct svg *svg, double x1, double y1, double x2, double y2,
              struct svg_stroke stroke);
/* A line through `count` points. */
void svg_path(struct svg *svg, const double *x, const double *y, size_t count,
              struct svg_stroke stroke);
/* A line whose arrowhead ends at the second point. */
void svg_arrow(struct svg *svg, double x1, double y1, double x2, double y2,
               struct svg_stroke stroke);
/* A rectangle. `fill` or the stroke's color may be NULL for none. */
void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              struct svg_stroke stroke);
/* The same with rounded corners. */
void svg_box(struct svg *svg, double x, double y, double width, double height, double radius,
             const char *fill, struct svg_stroke stroke);
void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill,
                struct svg_stroke stroke);
/* Text whose baseline has its start, middle or end at the point, by font.anchor. */
void svg_text(struct svg *svg, double x, double y, struct svg_font font, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The approximate width of a text, whichever font the viewer has. */
double svg_text_width(const char *text, double size);

/* Writes the file and releases the picture. Returns 0, or errno. */
int svg_end(struct svg *svg, const char *file_name);

#endif
