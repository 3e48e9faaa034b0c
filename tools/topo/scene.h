/* SPDX-License-Identifier: Apache-2.0
 * A picture of a machine under construction: what its parts share.
 */
#ifndef TUTTI_TOPO_SCENE_H
#define TUTTI_TOPO_SCENE_H

#include "draw/svg.h"
#include "topo/plans.h"

#define SCENE_MARGIN 28.0

struct scene {
    const struct subject *subject;
    struct svg *svg;
    uint32_t host;
    const double *load; /* load of each link by the plan being shown; NULL: no plan */
};

/* The look of a link. The color shows its kind, or that it is full; the width shows its rate;
 * dashes show that the rate is assumed. */
struct svg_stroke scene_stroke(const struct scene *scene, uint32_t link);
bool scene_is_full(const struct scene *scene, uint32_t link);
/* True if the host has links of that kind. */
bool scene_has_kind(const struct scene *scene, enum tutti_link_kind kind);
/* Shortens a text in a buffer of `size_bytes` to fit the width, with dots at the end. */
void scene_fit(char *text, size_t size_bytes, double size, double width);

/* Draws the devices of the host and their links where the layout places them. */
struct layout;
void scene_draw_host(const struct scene *scene, const struct layout *layout);
/* Draws the legend of the links' looks in one line from (x, y) on. Returns the x at which it
 * ends. */
double scene_draw_key(const struct scene *scene, double x, double y);

/* The mesh: gpus on a circle with the links between them, and a legend. scene_has_mesh is false if
 * there are no such links. */
bool scene_has_mesh(const struct scene *scene);
void scene_mesh_size(const struct scene *scene, double *ret_width, double *ret_height);
void scene_draw_mesh(const struct scene *scene, double x, double y);

/* A plan's orders, each on its own circle, in rows of `ncolumns`. */
#define SCENE_ORDERS 8 /* further ones are mentioned, not drawn */
void scene_plan_size(const struct tutti_channels *plan, uint32_t ncolumns, double *ret_width,
                     double *ret_height);
void scene_draw_plan(const struct scene *scene, const struct tutti_channels *plan,
                     uint32_t ncolumns, double x, double y);

/* The whole graph in Graphviz's language, with the plans. The caller frees the text. */
char *scene_write_dot(const struct subject *subject, struct tutti_channels *const *plans,
                      uint32_t nplans);

#endif
