/* SPDX-License-Identifier: Apache-2.0
 * The machine that a command is about: this one, or what --from says. */
#ifndef TUTTI_TOPO_SUBJECT_H
#define TUTTI_TOPO_SUBJECT_H

#include "common/request.h"
#include "topology/graph/paths.h"

#define NAME_BYTES 160

struct subject {
    char name[NAME_BYTES]; /* "this machine", or what --from says */
    struct tutti_graph *graph;
    struct tutti_paths *paths; /* NULL unless asked for */
    uint32_t *node_of;         /* of each device; TUTTI_NO_NODE */
};

/* REQUEST_GO or the exit status, and then nothing is left to close. */
int subject_open(const struct request *request, bool with_paths, struct subject *ret_subject);
void subject_close(struct subject *subject);

/* The nodes of one kind in a host: the first, and how many; they follow each other. */
uint32_t subject_first(const struct subject *subject, uint32_t host, enum tutti_node_kind kind,
                       uint32_t *ret_count);
/* Do both hosts have the same, link by link? Then what is said of one holds for the other. */
bool subject_is_alike(const struct subject *subject, uint32_t a, uint32_t b);
/* The first host that is like this one; itself if none before it is. */
uint32_t subject_first_alike(const struct subject *subject, uint32_t host);

/* What a device is called by people, from the nearest name: "NVIDIA H100", "mlx5_0"; "" if nobody
 * says. */
const char *subject_model(const struct subject *subject, uint32_t node);
/* Does one NVSwitch join gpus of several hosts? Then they may be searched together. */
bool subject_is_joined(const struct subject *subject);
/* "host 1 " where there are several, "all hosts together, ", else "". */
const char *subject_host(const struct subject *subject, uint32_t host, char text[NAME_BYTES]);
/* "2 gpus", "1 gpu" */
const char *subject_count(uint32_t count, const char *what, char text[NAME_BYTES]);

/* "0-3,8" of the CPUs of a mask's written form; "" for none. To be freed. */
char *subject_cpus(const char *mask);

/* What a link is made of: "gen5 x16", "18 NVLinks", "400 Gbit/s"; "" if nothing is known. */
void subject_link_form(const struct subject *subject, uint32_t link, char *ret_text, size_t size);

#endif
