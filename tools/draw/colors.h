/* SPDX-License-Identifier: Apache-2.0
 * Defines the colors and dashes of pictures. People can distinguish the colors on white, even with
 * a color vision deficiency.
 *
 * The colors follow Okabe and Ito, "Color universal design", 2008. Their yellow is left out,
 * because it is too light for a line on white. A brown and a gray are added. If there are more
 * series than colors, dashes distinguish them.
 */
#ifndef TUTTI_DRAW_COLORS_H
#define TUTTI_DRAW_COLORS_H

#include <stddef.h>

#define COLOR_PAPER "#ffffff"
#define COLOR_INK "#1d2329"   /* titles, labels */
#define COLOR_SOFT "#5b6670"  /* explanatory text */
#define COLOR_RULE "#c4cad0"  /* axes, rows */
#define COLOR_FAINT "#e9ecef" /* grids */

#define COLOR_BLUE "#0072b2"
#define COLOR_VERMILION "#d55e00"
#define COLOR_GREEN "#009e73"
#define COLOR_PURPLE "#b8558f"
#define COLOR_SKY "#4aa5d8"
#define COLOR_ORANGE "#d99400"
#define COLOR_BROWN "#7a4b2a"
#define COLOR_GRAY "#7d868e"

static const char *const colors[] = {
    COLOR_BLUE, COLOR_VERMILION, COLOR_GREEN, COLOR_PURPLE,
    COLOR_SKY,  COLOR_ORANGE,    COLOR_BROWN, COLOR_GRAY,
};

#define COLORS (sizeof colors / sizeof colors[0])

static const char *const dashes[] = {NULL, "7 3", "2 2.5", "9 3 2 3"};

#define DASHES (sizeof dashes / sizeof dashes[0])

/* Return the color and the dashes of the series with this index. Dashes are NULL for a solid
 * line. */
static inline const char *color_of(size_t index)
{
    return colors[index % COLORS];
}

static inline const char *dash_of(size_t index)
{
    return dashes[index / COLORS % DASHES];
}

#endif
