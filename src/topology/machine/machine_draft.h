/* SPDX-License-Identifier: Apache-2.0
 * Holds a machine's description as it was read, before its lines are checked against each other.
 * The check comes later because the number of ranks may follow lines that depend on this number.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_DRAFT_H
#define TUTTI_TOPOLOGY_MACHINE_DRAFT_H

#include "topology/machine/machine.h"
#include "topology/machine/machine_words.h"

#include <stdio.h>

/* The numbers of one line. A tree's root, -1, is UINT32_MAX. */
struct tutti_numbers {
    struct tutti_word at; /* the first number, for errors; length 0: there is no such line */
    uint32_t *values;
    uint32_t count, capacity;
};

/* The lines that may appear once. The lines `ring`, `tree`, `link`, `path` and `parts` may be
 * repeated and are not listed here. */
enum tutti_machine_line {
    TUTTI_MACHINE_LINE_RANKS,
    TUTTI_MACHINE_LINE_NODE,
    TUTTI_MACHINE_LINE_GROUP,
    TUTTI_MACHINE_LINE_CELL,
    TUTTI_MACHINE_LINE_PLACE,
    TUTTI_MACHINE_LINE_LEVEL_NODE,
    TUTTI_MACHINE_LINE_LEVEL_GROUP,
    TUTTI_MACHINE_LINE_LEVEL_TOP,
    TUTTI_MACHINE_LINE_BRIDGE,
    TUTTI_MACHINE_LINE_NICS,
    TUTTI_MACHINE_LINE_TRUNK,
    TUTTI_MACHINE_LINE_TORUS,
    TUTTI_MACHINE_LINE_CORES,
    TUTTI_MACHINE_LINE_MEMORY,
    TUTTI_MACHINE_LINE_COPY,
    TUTTI_MACHINE_LINE_REDUCE,
    TUTTI_MACHINE_LINE_LOAD,
    TUTTI_MACHINE_LINE_SIGNAL,
    TUTTI_MACHINE_LINE_COUNT
};

/* A rate, and the rates of larger footprints. */
struct tutti_draft_speed {
    double bytes_per_s;
    struct tutti_footprint_rate beyond[TUTTI_MACHINE_FOOTPRINTS];
};

/* A path with its position in the text. The position is kept for errors, because links and ranks
 * may be given after the path. */
struct tutti_draft_path {
    uint32_t from, to;     /* ranks */
    bool has_channel;      /* the text gives a channel */
    uint8_t channel;
    uint32_t first, count; /* range in `crossings` */
    double latency_s;      /* below 0: latency of the level */
    uint32_t line, from_column, to_column; /* positions of `from` and `to` in the text */
};

/* A link of a path. Its line is that of the path. */
struct tutti_draft_crossing {
    double weight;
    uint32_t link;
    uint32_t column; /* position of the number of the link in the text */
};

struct tutti_draft_links {
    struct tutti_machine_link *links;
    struct tutti_draft_path *paths;
    struct tutti_draft_crossing *crossings;
    uint32_t nlinks, npaths, ncrossings;
    uint32_t link_capacity, path_capacity, crossing_capacity;
    struct tutti_machine_parts *kinds;
    uint32_t nkinds, kind_capacity;
    struct tutti_word parts_at; /* the last line `parts`, for errors */
};

struct tutti_draft {
    struct tutti_words words;
    struct tutti_word line_at[TUTTI_MACHINE_LINE_COUNT]; /* the keyword; length 0: no such line */
    uint32_t nranks; /* 0: not given */
    /* Sizes; or, after "of", the node of each rank, the group of each node, the cell of a rank. */
    struct tutti_numbers nodes, groups, cells;
    bool nodes_are_listed, groups_are_listed, cells_are_listed; /* true: given with "of" */
    struct tutti_numbers torus; /* dimensions */
    bool is_cyclic;             /* place cyclic */
    struct tutti_numbers rings[TUTTI_MACHINE_ORDERS], trees[TUTTI_MACHINE_ORDERS];
    uint32_t nrings, ntrees;
    struct tutti_rate level[TUTTI_MACHINE_LEVELS], bridge; /* rate 0: not given */
    uint32_t nics, cores;     /* 0: not given */
    double trunk_bytes_per_s; /* 0: not given */
    double signal_s;          /* 0: not given */
    struct tutti_draft_speed memory, copy, reduce, load;
    struct tutti_draft_links links;
};

/* Copies a list that gives the place (node, group or cell) of each of `count` items into `of`, and
 * counts the places. `items` names the items in messages. TUTTI_ERR_ARGUMENT: the length of the
 * list is not `count`, or places are not numbered in the order of their first items. */
int tutti_draft_copy_list(const struct tutti_draft *draft, const struct tutti_numbers *list,
                          const char *items, uint32_t *of, uint32_t count, uint32_t *ret_nplaces);

/* Checks lines against each other and fills `machine`, except links and paths. nranks has the same
 * meaning as in tutti_machine_parse(). The caller destroys the machine's arrays, on error too.
 * TUTTI_ERR_ARGUMENT: the lines do not fit together; TUTTI_ERR_SYSTEM: no memory. */
int tutti_draft_place(const struct tutti_draft *draft, uint32_t nranks,
                      struct tutti_machine *machine);

/* machine_links_text.c, machine_parts.c: these functions read the rest of a line `link`, `path` or
 * `parts`. TUTTI_ERR_ARGUMENT: the line is invalid; TUTTI_ERR_SYSTEM: no memory. */
int tutti_draft_read_links(struct tutti_draft *draft);
int tutti_draft_read_path(struct tutti_draft *draft);
int tutti_draft_read_parts(struct tutti_draft *draft, struct tutti_word keyword);
/* Checks links and paths against the ranks of `machine`, and moves them into `machine`.
 * TUTTI_ERR_ARGUMENT: they do not fit; TUTTI_ERR_SYSTEM: no memory. */
int tutti_draft_place_links(struct tutti_draft *draft, struct tutti_machine *machine);
/* Frees the arrays and leaves the struct empty. */
void tutti_draft_links_fini(struct tutti_draft_links *links);
/* Writes the lines `parts`, `link` and `path`. Errors stay in `out`. */
void tutti_links_write(FILE *out, const struct tutti_machine_links *links);

/* machine_links.c: returns true if a link may have this name; `length` is in bytes. */
bool tutti_links_is_name(const char *name, size_t length);
/* machine_rings.c: adds, to the load of each link of the path between two ranks, the bytes that
 * cross it when one sends `bytes` bytes to the other. Returns false if `path` is NULL. */
bool tutti_links_add_load(const struct tutti_machine *machine,
                          const struct tutti_machine_path *path, uint32_t from, uint32_t to,
                          double bytes, double *loads);

/* machine_links.c: frees an array that is const for users of the machine; NULL is allowed. */
void tutti_links_free_array(const void *array);
/* machine_links.c: frees the arrays and leaves the struct empty. */
void tutti_links_fini(struct tutti_machine_links *links);

/* machine_parts.c: counts the ranks and links of the parts of each kind, and writes the numbers of
 * the first ones to `kinds`. TUTTI_ERR_ARGUMENT: they are not those of `nranks` ranks and `nlinks`
 * described links, or too many; the message is recorded but not logged. */
int tutti_links_number_parts(struct tutti_machine_parts *kinds, uint32_t nkinds, uint32_t nranks,
                       uint32_t nlinks);
/* machine_parts.c: finds the ranks whose path is described, if `links` has like parts. */
void tutti_links_described(const struct tutti_machine_links *links, uint32_t *from, uint32_t *to);
/* machine_parts.c: returns true if a path between these ranks may cross a link. */
bool tutti_links_may_cross(const struct tutti_machine_links *links, uint32_t from, uint32_t to,
                           uint32_t link);
/* machine_parts.c: writes the lines `parts`. */
void tutti_links_write_parts(FILE *out, const struct tutti_machine_links *links);

/* machine_rings.c: computes ring_rates of a machine (machine.h). *ret_rates is NULL if the machine
 * has no rings or no paths. The caller frees *ret_rates. TUTTI_ERR_SYSTEM: no memory. */
int tutti_links_find_ring_rates(const struct tutti_machine *machine, const double **ret_rates);

#endif
