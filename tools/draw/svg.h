/* SPDX-License-Identifier: Apache-2.0
 * A picture: lines, shapes and text, dark on white, written as an SVG file. Lengths are pixels,
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

/* The title is also what a screen reader says. */
void svg_begin(struct svg *svg, double width, double height, const char *title);
void svg_line(struct svg *svg, double x1, double y1, double x2, double y2,
              struct svg_stroke stroke);
/* Through `count` points. */
void svg_path(struct svg *svg, const double *x, const double *y, size_t count,
              struct svg_stroke stroke);
/* A line whose head ends at the second point. */
void svg_arrow(struct svg *svg, double x1, double y1, double x2, double y2,
               struct svg_stroke stroke);
/* `fill` or the stroke's colour may be NULL: none. */
void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              struct svg_stroke stroke);
/* The same with round corners. */
void svg_box(struct svg *svg, double x, double y, double width, double height, double radius,
             const char *fill, struct svg_stroke stroke);
void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill,
                struct svg_stroke stroke);
/* The baseline begins (or has its middle, or end) at the point. */
void svg_text(struct svg *svg, double x, double y, struct svg_font font, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* About as wide as text is with the fonts that there may be. */
double svg_text_width(const char *text, double size);

/* Write the file; 0, or errno. The picture is released. */
int svg_end(struct svg *svg, const char *file_name);

#endif
