/* SPDX-License-Identifier: Apache-2.0
 * The machine that a command is about: this one, or the one of --from. */
#ifndef TUTTI_TOPO_SUBJECT_H
#define TUTTI_TOPO_SUBJECT_H

#include "common/request.h"
#include "topology/graph/paths.h"

#define NAME_BYTES 160

struct subject {
    char name[NAME_BYTES]; /* "this machine", or the argument of --from */
    struct tutti_graph *graph;
    struct tutti_paths *paths; /* NULL unless requested */
    uint32_t *node_of;         /* node of each device, or TUTTI_NO_NODE */
};

/* Opens the machine. Returns REQUEST_GO, or the exit status, and then there is nothing to close. */
int subject_open(const struct request *request, bool with_paths, struct subject *ret_subject);
void subject_close(struct subject *subject);

/* The first node of one kind in a host, and their number; they are consecutive. */
uint32_t subject_first(const struct subject *subject, uint32_t host, enum tutti_node_kind kind,
                       uint32_t *ret_count);
/* True if both hosts have the same devices and links, so that results for one hold for the
 * other. */
bool subject_is_alike(const struct subject *subject, uint32_t a, uint32_t b);
/* The first host that is like this one; the host itself if no earlier one is. */
uint32_t subject_first_alike(const struct subject *subject, uint32_t host);

/* The model of a cpu or gpu, or the name of a net: "NVIDIA H100", "mlx5_0"; "" if there is none,
 * and for other nodes. */
const char *subject_model(const struct subject *subject, uint32_t node);
/* True if one NVSwitch joins gpus of several hosts, which may then be searched together. */
bool subject_is_joined(const struct subject *subject);
/* A prefix for output: "host 1, " if there are several hosts, "all hosts together, ", or "". */
const char *subject_host(const struct subject *subject, uint32_t host, char text[NAME_BYTES]);
/* A count with its noun: "2 gpus", "1 gpu". */
const char *subject_count(uint32_t count, const char *what, char text[NAME_BYTES]);

/* The CPUs of a mask's text as a list such as "0-3,8"; "" for none. The caller frees it. */
char *subject_cpus(const char *mask);

/* The form of a link: "gen5 x16", "18 NVLinks", "400 Gbit/s"; "" if nothing is known. */
void subject_link_form(const struct subject *subject, uint32_t link, char *ret_text, size_t size);

#endif
