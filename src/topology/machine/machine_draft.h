/* SPDX-License-Identifier: Apache-2.0
 * A description as it was read, before anything in it is held against anything else: the number of
 * ranks may come after what depends on it.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_DRAFT_H
#define TUTTI_TOPOLOGY_MACHINE_DRAFT_H

#include "topology/machine/machine.h"
#include "topology/machine/machine_words.h"

#include <stdio.h>

/* The numbers of one line. A tree's root, -1, is UINT32_MAX. */
struct tutti_numbers {
    struct tutti_word at; /* the first; length 0: the line is not there */
    uint32_t *values;
    size_t count, capacity;
};

/* Lines that stand once; `ring` and `tree` may be repeated. */
enum tutti_machine_line {
    TUTTI_LINE_RANKS,
    TUTTI_LINE_NODE,
    TUTTI_LINE_GROUP,
    TUTTI_LINE_CELL,
    TUTTI_LINE_PLACE,
    TUTTI_LINE_LEVEL_NODE,
    TUTTI_LINE_LEVEL_GROUP,
    TUTTI_LINE_LEVEL_TOP,
    TUTTI_LINE_BRIDGE,
    TUTTI_LINE_NICS,
    TUTTI_LINE_TRUNK,
    TUTTI_LINE_TORUS,
    TUTTI_LINE_CORES,
    TUTTI_LINE_MEMORY,
    TUTTI_LINE_COPY,
    TUTTI_LINE_REDUCE,
    TUTTI_LINE_LOAD,
    TUTTI_LINE_SIGNAL,
    TUTTI_LINE_COUNT
};

/* A rate, and those of larger footprints. */
struct tutti_speed {
    double bytes_per_s;
    struct tutti_beyond beyond[TUTTI_MACHINE_BEYONDS];
};

/* Where it stands is kept, for links and ranks may be given after it. */
struct tutti_draft_path {
    uint32_t from, to;
    uint32_t first, count;
    double latency_s;
    uint32_t line, from_column, to_column;
};

struct tutti_draft_crossing {
    double weight;
    uint32_t link, column;
};

struct tutti_draft_links {
    struct tutti_machine_link *links;
    struct tutti_draft_path *paths;
    struct tutti_draft_crossing *crossings;
    uint32_t nlinks, npaths, ncrossings;
    uint32_t link_capacity, path_capacity, crossing_capacity;
};

struct tutti_draft {
    struct tutti_words words;
    struct tutti_word line_at[TUTTI_LINE_COUNT]; /* the keyword; length 0: not there */
    uint32_t nranks;
    struct tutti_numbers nodes, groups, cells, torus; /* sizes ... */
    bool nodes_are_listed, groups_are_listed, cells_are_listed; /* ... or the place of each */
    bool is_cyclic;
    struct tutti_numbers rings[TUTTI_MACHINE_ORDERS], trees[TUTTI_MACHINE_ORDERS];
    uint32_t nrings, ntrees;
    struct tutti_rate level[TUTTI_MACHINE_LEVELS], bridge;
    uint32_t nics, cores;
    double trunk, signal_s;
    struct tutti_speed memory, copy, reduce, load;
    struct tutti_draft_links links;
};

/* A list of the place of each of `count` items: as many as there are, numbered as they first come.
 * `items` is their name, in messages. */
int tutti_draft_copy_list(const struct tutti_draft *draft, const struct tutti_numbers *list,
                          const char *items, uint32_t *of, uint32_t count, uint32_t *ret_nplaces);

/* Check what belongs together and fill `machine`; the caller destroys its arrays, on error too. */
int tutti_draft_place(const struct tutti_draft *draft, uint32_t nranks,
                      struct tutti_machine *machine);

/* machine_links_text.c: the rest of a line `link`, and of a line `path`. */
int tutti_draft_read_links(struct tutti_draft *draft);
int tutti_draft_read_path(struct tutti_draft *draft);
/* Check links and paths against the ranks of `machine`, and fill it. */
int tutti_draft_place_links(struct tutti_draft *draft, struct tutti_machine *machine);
void tutti_draft_links_fini(struct tutti_draft_links *links);
void tutti_links_write(FILE *out, const struct tutti_machine_links *links);

/* machine_links.c */
bool tutti_link_name_is_good(const char *name, size_t length);
void tutti_links_fini(struct tutti_machine_links *links);

/* machine_rings.c: find ring_rates. */
int tutti_links_ride(const struct tutti_machine *machine, const double **ret_rates);

#endif
