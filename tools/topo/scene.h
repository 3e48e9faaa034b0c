/* SPDX-License-Identifier: Apache-2.0
 * A picture of a machine in the making: what its parts share.
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
    const double *load; /* of each link by the plan that is shown; NULL: none is */
};

/* The look of a link: colour by kind, or by being full; width by rate; dashed if assumed. */
struct svg_stroke scene_stroke(const struct scene *scene, uint32_t link);
bool scene_is_full(const struct scene *scene, uint32_t link);
/* Does the host have links of that kind? */
bool scene_has_kind(const struct scene *scene, enum tutti_link_kind kind);
/* Cut a text of `size_bytes` so that it fits the width, with dots at the end. */
void scene_fit(char *text, size_t size_bytes, double size, double width);

/* The devices of the host and their links, placed from (x, y) on; gives the corner at the lower
 * right. */
struct layout;
void scene_draw_host(const struct scene *scene, const struct layout *layout);
/* What the looks of links mean, in one line from (x, y) on; gives where it ends. */
double scene_draw_key(const struct scene *scene, double x, double y);

/* Gpus on a circle with the links between them, and a key: false where there are no such links. */
bool scene_has_mesh(const struct scene *scene);
void scene_mesh_size(const struct scene *scene, double *ret_width, double *ret_height);
void scene_draw_mesh(const struct scene *scene, double x, double y);

/* A plan's orders, each on a circle of its own, in rows of `ncolumns`. */
#define SCENE_ORDERS 8 /* more are told of, not drawn */
void scene_plan_size(const struct tutti_channels *plan, uint32_t ncolumns, double *ret_width,
                     double *ret_height);
void scene_draw_plan(const struct scene *scene, const struct tutti_channels *plan,
                     uint32_t ncolumns, double x, double y);

/* The whole, in Graphviz's language; to be freed. `plans` are of host `host`. */
char *scene_write_dot(const struct subject *subject, struct tutti_channels *const *plans,
                      uint32_t nplans);

#endif
