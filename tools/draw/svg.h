/* SPDX-License-Identifier: Apache-2.0
 * Draws a picture of lines, shapes and text on white, and writes it as an SVG file. Lengths are in
 * pixels. Positions are measured from the upper left corner, x to the right and y downwards.
 */
#ifndef TUTTI_DRAW_SVG_H
#define TUTTI_DRAW_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct svg {
    FILE *out;
    char *text; /* the document that `out` writes; owned */
    size_t size;
};

/* The look of a line. */
struct svg_stroke {
    const char *color; /* NULL: no line */
    double width;
    const char *dash; /* for example "6 3"; NULL: solid */
};

enum svg_anchor { SVG_LEFT, SVG_MIDDLE, SVG_RIGHT };

struct svg_font {
    double size;
    const char *color;
    enum svg_anchor anchor;
    bool is_bold;
    bool has_halo; /* a white edge keeps the text readable over lines */
};

/* Starts a picture. Screen readers read the title aloud. svg_end must follow. If memory runs out,
 * the program ends. */
void svg_begin(struct svg *svg, double width, double height, const char *title);
void svg_line(struct svg *svg, double x1, double y1, double x2, double y2,
              struct svg_stroke stroke);
/* Draws a line through `count` points. */
void svg_path(struct svg *svg, const double *x, const double *y, size_t count,
              struct svg_stroke stroke);
/* Draws a line with an arrowhead, whose tip is at the second point. The points must differ. */
void svg_arrow(struct svg *svg, double x1, double y1, double x2, double y2,
               struct svg_stroke stroke);
/* svg_rect draws a rectangle, and svg_box a rectangle with rounded corners. `fill` may be NULL for
 * none. */
void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              struct svg_stroke stroke);
void svg_box(struct svg *svg, double x, double y, double width, double height, double radius,
             const char *fill, struct svg_stroke stroke);
void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill,
                struct svg_stroke stroke);
/* Draws a text of at most 511 bytes. font.anchor tells whether the left end, the middle or the
 * right end of the baseline is at the point. */
void svg_text(struct svg *svg, double x, double y, struct svg_font font, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Returns the approximate width of a text in a font of this size. The viewer chooses the font, so
 * the true width is not known. */
double svg_text_width(const char *text, double size);

/* Writes the file and releases the picture. Returns 0, or an error number of errno.h. */
int svg_end(struct svg *svg, const char *file_name);

#endif
