/* SPDX-License-Identifier: Apache-2.0
 * A machine described by hand, by a measurement, or by detection: who lives where, and what a
 * message costs at each level. A text file, or one line with ';' for line ends; '#' begins a
 * comment:
 *
 *   tutti-machine 1           # the version of this form; may be left out
 *   ranks 1024                # 128 nodes of 8, one network port per rank
 *   node 8                    # ranks of a node; "node 3 5 8" repeats 3, 5, 8, 3, ...
 *   group 16                  # nodes of a group; a list likewise
 *   cell 4                    # ranks of a cell of a node, in the order of their numbers; a list
 *                             # likewise, which begins anew with each node
 *   place block               # or cyclic: ranks are dealt to the nodes in turns, as long as there
 *                             # is room: with equal nodes rank r lives on node r mod nodes
 *   level node  latency 1us overhead 0us bandwidth 350GB/s
 *   level group latency 2us overhead 1us bandwidth 50GB/s
 *   level top   latency 0us overhead 5us bandwidth 50GB/s
 *   bridge latency 100ns bandwidth 40GB/s
 *                             # between the cells of a node: how much later messages and signals
 *                             # are there than within a cell, and what one cell carries to the
 *                             # others of its node, each way; default: no later, and unbounded
 *   nics 8                    # network ports of a node, dealt to its ranks in turns; default: one
 *                             # per rank
 *   trunk 400GB/s             # what one group carries to others, each way; default: unbounded
 *   torus 8 8 16              # links between neighbours instead of the levels' ports, each with
 *                             # the cost of level top
 *   cores 2                   # of a node: ranks beyond that take turns; default: one per rank
 *   memory 40GB/s             # the ranks of a node share memory: what they load and store in it
 *                             # together. Default: unbounded, and each rank's lies behind its port:
 *                             # what others load and store there goes through it too
 *   copy 10GB/s               # one rank, from place to place in its memory; default: free
 *   reduce 8GB/s              # one rank, bytes of result per second; default: free
 *   load 9GB/s                # one rank, from and to memory that others of its node store to and
 *                             # load from, windows too; default: the bandwidth of level node
 *   signal 300ns              # from a store of one rank until others of its node that wait for it
 *                             # have seen it; default: latency and overhead of level node
 *   ring 0 2 1 3              # a cyclic order of all ranks; may be repeated
 *   tree -1 0 0 1             # parents of all ranks; may be repeated
 *   link 80GB/s               # what a link carries, one way; links are numbered from 0 on in the
 *                             # order given. May be repeated, and hold several in a line
 *   link gpu0>gpu1 80GB/s     # with a name for reports: a letter, then no blanks, ; or #
 *   path 0 1 via 3 7x1.2      # the links from rank 0 to rank 1, in the order of crossing them. A
 *                             # byte takes 1.2 of link 7; "via" alone: both are on one device
 *   path 1 0 via 4 latency 2us  # default: that of the level that the two are apart
 *
 * A path says what goes from the first of its ranks to the second, messages and what they load and
 * store in each other's memory, instead of ports, trunks and torus: shared with all others that
 * cross a link, and alone at the rate of the narrowest. The overhead is that of the level, and
 * holds no link. Pairs without a path go by the levels. Links and paths describe a machine that is
 * known as a graph; they may stand in any order.
 *
 * Where nodes and groups have no pattern: "node of 0 1 1 0" is the node of each rank, "group of
 * 0 1" the group of each node, "cell of 0 0 1 1" the cell of each rank, counted through all nodes.
 *
 * A rank that is a core of a CPU moves its messages itself, both ways, and copies and reduces
 * besides. That is said of a level: `core` is what the core sends and receives there together, and
 * from then on a rank's messages, overheads and arithmetic share its core:
 *
 *   level node latency 1us overhead 0.3us bandwidth 9GB/s core 10GB/s
 *
 * Caches make rates depend on how much memory a call touches. After the rate of a bandwidth, core,
 * memory, copy, reduce or load may follow, up to four times, from which footprint on it is another
 * one; the footprint is the size of the call's buffers at a rank, INPUT and OUTPUT together:
 *
 *   copy 22GB/s beyond 512KiB 14GB/s beyond 8MiB 6GB/s
 *
 * Units: ns us ms s; B/s KB/s MB/s GB/s TB/s (powers of 1000), KiB/s ... (of 1024); B KiB MiB GiB.
 * Of a level latency and overhead may be left out (0). Levels that are not given cost what the next
 * outer one that is given costs, or else the next inner one; none at all is an error.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_H
#define TUTTI_TOPOLOGY_MACHINE_H

#include "schedule/shape.h"
#include "schedule/step.h"

#include <stddef.h>

/* What a description may hold at most. */
#define TUTTI_MACHINE_RANKS (1u << 20)
#define TUTTI_MACHINE_ORDERS 64 /* rings, and trees */
#define TUTTI_MACHINE_LINKS 65536u
#define TUTTI_MACHINE_PATHS (4096u * 4096u)
#define TUTTI_MACHINE_PATH_LINKS 64u /* of one path */

/* In the order of enum tutti_level (algorithms/cost.h). */
#define TUTTI_MACHINE_LEVELS 3

#define TUTTI_MACHINE_BEYONDS 4

/* The rate of footprints above `bytes`; ascending, up to one with rate 0. */
struct tutti_beyond {
    double bytes, bytes_per_s;
};

/* A message of n bytes holds the sending and the receiving port for overhead + n / bandwidth (alpha
 * of the one-port model is the overhead), and is there `latency` later. */
struct tutti_rate {
    double latency_s, overhead_s, bytes_per_s;
    double core_bytes_per_s; /* 0: ports alone move messages */
    struct tutti_beyond beyond[TUTTI_MACHINE_BEYONDS], core_beyond[TUTTI_MACHINE_BEYONDS];
};

#define TUTTI_MACHINE_NAME_BYTES 48

struct tutti_machine_link {
    double bytes_per_s;                  /* at least 1 */
    char name[TUTTI_MACHINE_NAME_BYTES]; /* "": none */
};

#define TUTTI_MACHINE_WEIGHT_LEAST 0.001
#define TUTTI_MACHINE_WEIGHT_MOST 1000.0

/* A byte takes `weight` bytes of the link. */
struct tutti_machine_crossing {
    uint32_t link;
    double weight; /* TUTTI_MACHINE_WEIGHT_LEAST .. TUTTI_MACHINE_WEIGHT_MOST */
};

struct tutti_machine_path {
    uint32_t from, to;     /* ranks */
    uint32_t first, count; /* of its crossings; no link twice */
    double latency_s;      /* less than 0: that of the level */
};

struct tutti_machine_links {
    const struct tutti_machine_link *links;
    uint32_t nlinks;
    const struct tutti_machine_path *paths; /* of a machine: ascending, by `from`, then `to` */
    uint32_t npaths;
    const struct tutti_machine_crossing *crossings;
    uint32_t ncrossings;
};

struct tutti_machine {
    struct tutti_places places; /* arrays owned by the machine */
    struct tutti_rate level[TUTTI_MACHINE_LEVELS];
    uint32_t nics;             /* 0: one per rank */
    uint32_t cores;            /* 0: one per rank */
    double trunk_bytes_per_s;  /* the rest: 0 is unbounded, or free */
    double bridge_latency_s, bridge_bytes_per_s;
    double memory_bytes_per_s;
    double copy_bytes_per_s;
    double reduce_bytes_per_s;
    double load_bytes_per_s;   /* 0: the bandwidth of level node */
    double signal_s;           /* 0: latency and overhead of level node */
    struct tutti_beyond memory_beyond[TUTTI_MACHINE_BEYONDS], copy_beyond[TUTTI_MACHINE_BEYONDS];
    struct tutti_beyond reduce_beyond[TUTTI_MACHINE_BEYONDS], load_beyond[TUTTI_MACHINE_BEYONDS];
    struct tutti_machine_links links; /* arrays owned by the machine */
    /* What 1, 2, ... of the rings carry together along paths, each first forwards, then backwards;
     * 0: some pair has no path, or no links bound it. NULL: there are no rings, or no paths. */
    const double *ring_rates;
};

/* Parse; `name` is the file's, for messages. nranks: what the description says, or if this is
 * not 0, that many ranks (the pattern of nodes and groups goes on; what is given rank by rank must
 * fit). TUTTI_ERR_ARGUMENT with "name:line:column: what is wrong"; TUTTI_ERR_SYSTEM. */
int tutti_machine_parse(const char *name, const char *text, uint32_t nranks,
                        struct tutti_machine **ret_machine);
/* `text` is the name of a machine below, or the description itself when it has a space or ';' in
 * it, or else a file's name, "-" for standard input. */
int tutti_machine_load(const char *text, uint32_t nranks, struct tutti_machine **ret_machine);

/* Machines that have a name: examples to start from, of any number of ranks. */
struct tutti_named_machine {
    const char *name;
    const char *about; /* one line */
    const char *text;  /* the description, without ranks */
};

/* NULL from the last one on. */
const struct tutti_named_machine *tutti_machine_named(size_t index);

/* The description; parsing it gives the same machine again. The caller frees it. */
int tutti_machine_write(const struct tutti_machine *machine, char **ret_text);

void tutti_machine_destroy(struct tutti_machine *machine);

/* Give a parsed machine these links and paths, in any order, instead of those it has. They are
 * copied. Rings have to be there before. TUTTI_ERR_ARGUMENT: they do not fit each other, or the
 * ranks; TUTTI_ERR_SYSTEM. */
int tutti_machine_set_links(struct tutti_machine *machine, const struct tutti_machine_links *links);
/* NULL: the pair goes by the levels. */
const struct tutti_machine_path *tutti_machine_path(const struct tutti_machine *machine,
                                                    uint32_t from, uint32_t to);
/* What a path carries of something that is alone; 0: it crosses no link. */
double tutti_machine_path_rate(const struct tutti_machine *machine,
                               const struct tutti_machine_path *path);
/* That of the level where the path has none of its own. */
double tutti_machine_path_latency_s(const struct tutti_machine *machine,
                                    const struct tutti_machine_path *path);

/* What the first directed rings carry together along paths; 0: not known (ring_rates). */
double tutti_machine_rings_rate(const struct tutti_machine *machine, uint32_t ndirected);

/* Bytes of the buffers of a call at the rank that has most of them. */
double tutti_machine_footprint(enum tutti_collective collective, uint32_t nranks,
                               double block_bytes);
/* The machine as a call of that footprint finds it: one rate each, nothing beyond. Places and
 * links stay those of `machine`: do not destroy it. */
void tutti_machine_at(const struct tutti_machine *machine, double footprint_bytes,
                      struct tutti_machine *ret_machine);

/* Until a signal is seen. */
static inline double tutti_machine_signal_s(const struct tutti_machine *machine)
{
    return machine->signal_s > 0 ? machine->signal_s
                                 : machine->level[0].latency_s + machine->level[0].overhead_s;
}

/* Between them a bridge joins two cells of a node. */
static inline bool tutti_machine_is_bridged(const struct tutti_machine *machine, uint32_t a,
                                            uint32_t b)
{
    const struct tutti_places *places = &machine->places;

    return places->cell != NULL && places->cell[a] != places->cell[b] && places->node != NULL &&
           places->node[a] == places->node[b];
}

/* 0 node, 1 group, 2 top: how far apart two ranks live. */
uint32_t tutti_machine_level(const struct tutti_machine *machine, uint32_t a, uint32_t b);

#endif
