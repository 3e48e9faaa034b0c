/* SPDX-License-Identifier: Apache-2.0
 * Writes a picture as SVG. */
#include "draw/svg.h"

#include "common/file.h"
#include "common/memory.h"
#include "draw/colors.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define TEXT_BYTES      512 /* size of the buffer for a text; svg_text promises 511 bytes */
#define CHARACTER_WIDTH 0.6 /* mean width of a character, as a multiple of the font size */

/* The length and the width of an arrow's head, as multiples of the width of its shaft. */
#define HEAD_LENGTH 4.8
#define HEAD_WIDTH 3.6

/* Writes a text of the document. Escapes markup characters and replaces control characters by
 * blanks, because either would make the document invalid. */
static void write_escaped(FILE *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        switch (*at) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc((unsigned char)*at < ' ' ? ' ' : *at, out);
        }
}

void svg_begin(struct svg *svg, double width, double height, const char *title)
{
    *svg = (struct svg){.text = NULL};
    svg->out = must_have(open_memstream(&svg->text, &svg->size));
    fprintf(svg->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\" font-family=\"Helvetica, Arial, 'DejaVu Sans', "
            "sans-serif\">\n<title>", width, height, width, height);
    write_escaped(svg->out, title);
    fputs("</title>\n", svg->out);
    svg_rect(svg, 0, 0, width, height, COLOR_PAPER, (struct svg_stroke){.color = NULL});
}

/* Writes the attributes of a line's look. */
static void write_stroke(FILE *out, struct svg_stroke stroke)
{
    if (stroke.color == NULL)
        return;
    fprintf(out, " stroke=\"%s\" stroke-width=\"%.4g\"", stroke.color, stroke.width);
    if (stroke.dash != NULL)
        fprintf(out, " stroke-dasharray=\"%s\"", stroke.dash);
}

void svg_line(struct svg *svg, double x1, double y1, double x2, double y2, struct svg_stroke stroke)
{
    fprintf(svg->out, "<line x1=\"%.5g\" y1=\"%.5g\" x2=\"%.5g\" y2=\"%.5g\"", x1, y1, x2, y2);
    write_stroke(svg->out, stroke);
    fputs("/>\n", svg->out);
}

void svg_path(struct svg *svg, const double *x, const double *y, size_t count,
              struct svg_stroke stroke)
{
    fputs("<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"", svg->out);
    for (size_t i = 0; i < count; i++)
        fprintf(svg->out, "%s%.5g,%.5g", i > 0 ? " " : "", x[i], y[i]);
    fputc('"', svg->out);
    write_stroke(svg->out, stroke);
    fputs("/>\n", svg->out);
}

void svg_arrow(struct svg *svg, double x1, double y1, double x2, double y2,
               struct svg_stroke stroke)
{
    double length = hypot(x2 - x1, y2 - y1);
    double ux = (x2 - x1) / length, uy = (y2 - y1) / length; /* direction, of length 1 */
    double head = HEAD_LENGTH * stroke.width, half = HEAD_WIDTH * stroke.width / 2;
    double bx = x2 - ux * head, by = y2 - uy * head; /* middle of the base of the head */

    /* The shaft ends inside the head. If it ended at the tip, the tip would not be sharp. */
    svg_line(svg, x1, y1, bx + ux, by + uy, stroke);
    fprintf(svg->out, "<polygon points=\"%.5g,%.5g %.5g,%.5g %.5g,%.5g\" fill=\"%s\"/>\n", x2, y2,
            bx - uy * half, by + ux * half, bx + uy * half, by - ux * half, stroke.color);
}

void svg_box(struct svg *svg, double x, double y, double width, double height, double radius,
             const char *fill, struct svg_stroke stroke)
{
    fprintf(svg->out, "<rect x=\"%.5g\" y=\"%.5g\" width=\"%.5g\" height=\"%.5g\" fill=\"%s\"", x,
            y, width, height, fill == NULL ? "none" : fill);
    if (radius > 0)
        fprintf(svg->out, " rx=\"%.4g\"", radius);
    write_stroke(svg->out, stroke);
    fputs("/>\n", svg->out);
}

void svg_rect(struct svg *svg, double x, double y, double width, double height, const char *fill,
              struct svg_stroke stroke)
{
    svg_box(svg, x, y, width, height, 0, fill, stroke);
}

void svg_circle(struct svg *svg, double x, double y, double radius, const char *fill,
                struct svg_stroke stroke)
{
    fprintf(svg->out, "<circle cx=\"%.5g\" cy=\"%.5g\" r=\"%.4g\" fill=\"%s\"", x, y, radius,
            fill == NULL ? "none" : fill);
    write_stroke(svg->out, stroke);
    fputs("/>\n", svg->out);
}

void svg_text(struct svg *svg, double x, double y, struct svg_font font, const char *format, ...)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(svg->out, "<text x=\"%.5g\" y=\"%.5g\" font-size=\"%.4g\" fill=\"%s\"", x, y, font.size,
            font.color);
    if (font.anchor != SVG_LEFT)
        fprintf(svg->out, " text-anchor=\"%s\"", anchors[font.anchor]);
    if (font.is_bold)
        fputs(" font-weight=\"bold\"", svg->out);
    if (font.has_halo)
        fprintf(svg->out, " paint-order=\"stroke\" stroke=\"%s\" stroke-width=\"3\" "
                "stroke-linejoin=\"round\"", COLOR_PAPER);
    fputc('>', svg->out);
    write_escaped(svg->out, text);
    fputs("</text>\n", svg->out);
}

double svg_text_width(const char *text, double size)
{
    size_t characters = 0;

    for (; *text != '\0'; text++)
        characters += (*text & 0xc0) != 0x80; /* counts the first byte of each UTF-8 character */
    return CHARACTER_WIDTH * size * (double)characters;
}

int svg_end(struct svg *svg, const char *file_name)
{
    int error;

    fputs("</svg>\n", svg->out);
    error = fclose(svg->out) != 0 ? ENOMEM : file_write(file_name, svg->text);
    free(svg->text);
    *svg = (struct svg){.text = NULL};
    return error;
}
