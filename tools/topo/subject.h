/* SPDX-License-Identifier: Apache-2.0
 * Opens the machine that a command is about: this machine, or the one that --from names. Also
 * writes texts about the machine. If memory runs out, the program ends. */
#ifndef TUTTI_TOPO_SUBJECT_H
#define TUTTI_TOPO_SUBJECT_H

#include "common/request.h"
#include "topology/graph/parts.h"
#include "topology/graph/paths.h"

#define NAME_BYTES 160 /* size of a buffer for the texts below */

struct subject {
    char name[NAME_BYTES]; /* "this machine", or the argument of --from */
    struct tutti_graph *graph; /* the devices and links; owned */
    struct tutti_paths *paths; /* owned; NULL if subject_open was called without with_paths */
    struct tutti_graph_parts parts; /* hosts that are planned together; owned */
    uint32_t *node_of; /* the node of each device of the inventory, or TUTTI_NO_NODE; owned */
};

/* Opens the machine. Finds its paths if with_paths is true. Returns REQUEST_GO, and then the caller
 * closes it with subject_close. Otherwise returns the exit status after an error message, and there
 * is nothing to close. */
int subject_open(const struct request *request, bool with_paths, struct subject *ret_subject);
void subject_close(struct subject *subject);

/* Returns the first node of one kind in a host, or TUTTI_NO_NODE, and the number of these nodes.
 * Their indices are consecutive. */
uint32_t subject_first(const struct subject *subject, uint32_t host,
                       enum tutti_graph_node_kind kind, uint32_t *ret_count);
/* Returns true if both hosts have the same devices and links, so that results for one hold for the
 * other. */
bool subject_is_alike(const struct subject *subject, uint32_t a, uint32_t b);
/* Returns the first host that is like this host. This may be the host itself. */
uint32_t subject_first_alike(const struct subject *subject, uint32_t host);

/* Returns how many hosts from `host` on are planned together, because an NVSwitch joins them. For
 * TUTTI_ALL_HOSTS: all. */
uint32_t subject_planned_hosts(const struct subject *subject, uint32_t host);
/* Returns for how many like hosts a host of the description stands, itself included. */
uint32_t subject_copies(const struct subject *subject, uint32_t host);
/* Prints lines such as "host 1 stands for 2,047 like hosts" for such hosts and racks. */
void subject_print_copies(const struct subject *subject);
/* Returns true if a plan for `planned` is for `host`, too. */
bool subject_plans_host(const struct subject *subject, uint32_t planned, uint32_t host);

/* Returns the model of a cpu or gpu, such as "NVIDIA H100", or the name of a net, such as "mlx5_0".
 * Returns "" if it is not known, and for other nodes. The subject owns the text. */
const char *subject_model(const struct subject *subject, uint32_t node);
/* Writes a prefix for output: "host 1, " if there are several hosts, "hosts 0-17, " if these are
 * planned together, or "" if there is only one.
 * For TUTTI_ALL_HOSTS, writes "all hosts together, ". Returns the text. */
const char *subject_host(const struct subject *subject, uint32_t host, char text[NAME_BYTES]);
/* Writes a count with its noun, such as "2 gpus" or "1 gpu", and returns the text. */
const char *subject_count(uint32_t count, const char *what, char text[NAME_BYTES]);

/* Returns the CPUs of a mask as a list such as "0-3,8", or "" if there are none. The caller frees
 * the text. */
char *subject_cpus(const char *mask);

/* Returns true for a link between a gpu and its own device, which has several gpus. */
bool subject_is_own_link(const struct subject *subject, uint32_t link);

/* Writes the form of a link, such as "gen5 x16", "18 NVLinks" or "400 Gbit/s", or "" if it is not
 * known. */
void subject_link_form(const struct subject *subject, uint32_t link, char *ret_text, size_t size);

#endif
