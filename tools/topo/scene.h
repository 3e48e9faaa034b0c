/* SPDX-License-Identifier: Apache-2.0
 * Draws the parts of a picture of a machine: the host's devices, the mesh of its gpus, and the
 * orders of plans. A scene is what these parts share while the picture is being drawn. Lengths and
 * positions are in pixels.
 */
#ifndef TUTTI_TOPO_SCENE_H
#define TUTTI_TOPO_SCENE_H

#include "draw/svg.h"
#include "topo/plans.h"

#define SCENE_MARGIN 28.0 /* space around the whole picture */

struct scene {
    const struct subject *subject;
    struct svg *svg;
    uint32_t host;      /* the host that is drawn */
    const double *load; /* load of each link by the plan being shown, in bytes per second; NULL if
                         * there is no plan */
};

/* Returns the look of a link. The color shows the link's kind, or shows that the plan uses all of
 * the link, or nearly all. The width shows the rate, and dashes show that the rate is assumed. */
struct svg_stroke scene_stroke(const struct scene *scene, uint32_t link);
/* Returns true if the plan uses all of the link, in one direction or the other. */
bool scene_is_full(const struct scene *scene, uint32_t link);
/* Returns true if the host has links of that kind. */
bool scene_has_kind(const struct scene *scene, enum tutti_graph_link_kind kind);
/* Shortens the text in a buffer of `size_bytes`, so that it fits `width` in a font of `size`. A
 * text that was shortened ends with an ellipsis. */
void scene_fit(char *text, size_t size_bytes, double size, double width);

/* Draws the devices of the host and their links where the layout places them. */
struct layout;
void scene_draw_host(const struct scene *scene, const struct layout *layout);
/* Draws the legend of the links' looks in one line from (x, y) on. Returns the x at which it
 * ends. */
double scene_draw_key(const struct scene *scene, double x, double y);

/* The mesh shows the host's gpus on a circle with the links between them, and a legend below.
 * scene_has_mesh returns false if there are no such links. (x, y) is the top left corner. */
bool scene_has_mesh(const struct scene *scene);
void scene_mesh_size(const struct scene *scene, double *ret_width, double *ret_height);
void scene_draw_mesh(const struct scene *scene, double x, double y);

/* The picture of a plan shows each of its orders on a circle, in rows of `ncolumns` circles. (x, y)
 * is the top left corner. */
#define SCENE_ORDERS 8 /* most orders that are drawn; a line of text counts the others */
void scene_plan_size(const struct tutti_channels *plan, uint32_t ncolumns, double *ret_width,
                     double *ret_height);
void scene_draw_plan(const struct scene *scene, const struct tutti_channels *plan,
                     uint32_t ncolumns, double x, double y);

/* Returns the whole graph and the plans in the language of Graphviz. The caller frees the text. */
char *scene_write_dot(const struct subject *subject, struct tutti_channels *const *plans,
                      uint32_t nplans);

#endif
