/* SPDX-License-Identifier: Apache-2.0
 * Defines the colors and dashes of pictures. People can distinguish the colors on white, even with
 * a color vision deficiency.
 *
 * The colors follow Okabe and Ito, "Color universal design", 2008. Their yellow is left out,
 * because it is too light for a line on white. A brown and a gray are added. If there are more
 * series than colors, dashes distinguish them.
 */
#ifndef TUTTI_DRAW_COLOURS_H
#define TUTTI_DRAW_COLOURS_H

#include <stddef.h>

#define COLOUR_PAPER "#ffffff"
#define COLOUR_INK "#1d2329"   /* titles, labels */
#define COLOUR_SOFT "#5b6670"  /* explanatory text */
#define COLOUR_RULE "#c4cad0"  /* axes, rows */
#define COLOUR_FAINT "#e9ecef" /* grids */

#define COLOUR_BLUE "#0072b2"
#define COLOUR_VERMILION "#d55e00"
#define COLOUR_GREEN "#009e73"
#define COLOUR_PURPLE "#b8558f"
#define COLOUR_SKY "#4aa5d8"
#define COLOUR_ORANGE "#d99400"
#define COLOUR_BROWN "#7a4b2a"
#define COLOUR_GREY "#7d868e"

static const char *const colours[] = {
    COLOUR_BLUE, COLOUR_VERMILION, COLOUR_GREEN, COLOUR_PURPLE,
    COLOUR_SKY,  COLOUR_ORANGE,    COLOUR_BROWN, COLOUR_GREY,
};

#define COLOURS (sizeof colours / sizeof colours[0])

static const char *const dashes[] = {NULL, "7 3", "2 2.5", "9 3 2 3"};

#define DASHES (sizeof dashes / sizeof dashes[0])

/* Return the color and the dashes of the series with this index. Dashes are NULL for a solid
 * line. */
static inline const char *colour_of(size_t index)
{
    return colours[index % COLOURS];
}

static inline const char *dash_of(size_t index)
{
    return dashes[index / COLOURS % DASHES];
}

#endif
