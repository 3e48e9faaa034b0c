/* SPDX-License-Identifier: Apache-2.0
 * Provides the cost model of a machine, which gives the node of each rank and the cost of messages
 * at each level. The level of two ranks is the smallest part of the machine that holds both: node,
 * group, or top, which is the whole machine. A model is written by hand, measured or detected. Its
 * description is a text file, or one line with ';' for line ends; '#' begins a comment:
 *
 *   tutti-machine 1           # version of this format; optional
 *   ranks 1024                # 128 nodes of 8, one network port per rank
 *   node 8                    # ranks per node; "node 3 5 8" repeats 3, 5, 8, 3, ...
 *   group 16                  # nodes per group; may be a list too
 *   cell 4                    # ranks per cell of a node, in rank order; may be a list too, which
 *                             # starts over with each node
 *   place block               # ranks fill one node after the other (default). Or cyclic: ranks are
 *                             # assigned to the nodes round-robin, skipping full ones, so that
 *                             # with equal nodes rank r is on node r mod nodes
 *   level node  latency 1us overhead 0us bandwidth 350GB/s
 *   level group latency 2us overhead 1us bandwidth 50GB/s
 *   level top   latency 0us overhead 5us bandwidth 50GB/s
 *   bridge latency 100ns bandwidth 40GB/s
 *                             # between the cells of a node: the extra latency of messages and
 *                             # signals compared with a single cell, and the bandwidth from one
 *                             # cell to the others of its node, each way. Default: no extra
 *                             # latency, unbounded bandwidth
 *   nics 8                    # network ports of a node, assigned to its ranks round-robin;
 *                             # default: one per rank
 *   trunk 400GB/s             # from one group to all others, each way; default: unbounded
 *   torus 8 8 16              # a torus of these dimensions, at most 4: links between neighbors
 *                             # replace the ports of the levels, and each has the cost of level top
 *   cores 2                   # cores of a node; if it has more ranks, they take turns on the
 *                             # cores. Default: one core per rank
 *   memory 40GB/s             # the ranks of a node share memory: the rate of all their loads and
 *                             # stores together. Default: unbounded, and each rank's memory is
 *                             # behind its port: loads and stores of other ranks cross it too
 *   copy 10GB/s               # rate at which one rank copies within its memory; default: free
 *   reduce 8GB/s              # rate at which one rank reduces, in bytes of result; default: free
 *   load 9GB/s                # rate at which one rank loads from and stores to memory that other
 *                             # ranks of its node use too; default: bandwidth of level node
 *   signal 300ns              # time from a store by one rank until waiting ranks of its node have
 *                             # seen the value; default: latency plus overhead of level node
 *   ring 0 2 1 3              # a cyclic order of all ranks; may be repeated
 *   tree -1 0 0 1             # the parent of each rank; may be repeated
 *   link 80GB/s               # bandwidth of a link, one way; links are numbered from 0 in the
 *                             # order given. May be repeated; one line may hold several links
 *   link gpu0>gpu1 80GB/s     # with a name for reports: starts with a letter; no blanks, ; or #
 *   path 0 1 via 3 7x1.2      # the links from rank 0 to rank 1, in the order they are crossed.
 *                             # Each byte takes 1.2 bytes of link 7. "via" without links: both
 *                             # ranks are on one device
 *   path 1 0 via 4 latency 2us  # default: latency of the level that joins the two ranks
 *   path 0 1 channel 3 via 5  # the links of the messages on channel 3 of a schedule, where they
 *                             # differ: channels may use different network ports
 *   parts 128 ranks 8 links 40
 *                             # 128 like parts, such as hosts, of 8 consecutive ranks and 40 links
 *                             # each. May be repeated; the parts of the next kind follow
 *
 * A path describes all traffic from its first rank to its second rank: messages, and loads and
 * stores in the memory of the other rank. The path replaces ports, trunks and torus. Traffic on a
 * path shares each link with all other traffic on this link; alone, it gets the rate of the
 * narrowest link. The overhead comes from the level and occupies no link. Pairs without a path use
 * the levels. Links and paths describe a machine that is known as a graph; they may stand in any
 * order.
 *
 * A machine of many like parts is described by a few of them. Parts of all kinds together have all
 * ranks. The lines `link` give the links of one part of each kind. Part p of the first kind has the
 * links p * 40 to p * 40 + 39, and so on. The lines `path` give the paths within the first part of
 * each kind, from the first part of a kind to the second one, and from the first part of each kind
 * to the first part of each other kind. Each crosses links of these two parts only. Paths between
 * other parts cross the same links of those parts.
 *
 * Irregular placements are listed: "node of 0 1 1 0" is the node of each rank, and "group of 0 1"
 * is the group of each node. "cell of 0 0 1 1" is the cell of each rank; cells are numbered across
 * all nodes.
 *
 * A rank that is a CPU core moves its messages itself, in both directions, and also copies and
 * reduces. A level states this with `core`: the rate at which the core sends and receives together
 * at that level. The rank's messages, overheads and arithmetic then share its core:
 *
 *   level node latency 1us overhead 0.3us bandwidth 9GB/s core 10GB/s
 *
 * Because of caches, rates depend on how much memory a call touches. The footprint of a call is the
 * size of its buffers at a rank, INPUT plus OUTPUT. The rate of a bandwidth, core, memory, copy,
 * reduce or load may be followed by up to four pairs, each of a footprint and the rate above it:
 *
 *   copy 22GB/s beyond 512KiB 14GB/s beyond 8MiB 6GB/s
 *
 * Units: ns us ms s; B/s KB/s MB/s GB/s TB/s (powers of 1000), KiB/s ... (of 1024); B KiB MiB GiB.
 * The latency and the overhead of a level may be left out (0). A level that is not given costs the
 * same as the next outer level that is given, or else the next inner one. A description without any
 * level is an error.
 */
#ifndef TUTTI_TOPOLOGY_MACHINE_H
#define TUTTI_TOPOLOGY_MACHINE_H

#include "schedule/shape.h"
#include "schedule/step.h"

#include <stddef.h>

/* Upper bounds for a description. */
#define TUTTI_MACHINE_RANKS (1u << 20)
#define TUTTI_MACHINE_ORDERS 64 /* rings, and as many trees */
#define TUTTI_MACHINE_LINKS 65536u
#define TUTTI_MACHINE_PATHS (4096u * 4096u)
#define TUTTI_MACHINE_PATH_LINKS 64u /* of one path */
#define TUTTI_MACHINE_KINDS 256u     /* of like parts */
#define TUTTI_MACHINE_ALL_LINKS (1u << 22) /* those of all like parts */

/* The number of levels, which have the same order as enum tutti_level (algorithms/cost.h). */
#define TUTTI_MACHINE_LEVELS 3

/* The most pairs of a footprint and a rate after one rate. */
#define TUTTI_MACHINE_FOOTPRINTS 4

/* The rate that holds for footprints above `bytes`. Arrays ascend by `bytes`, and an entry with
 * rate 0 ends a list that is not full. */
struct tutti_footprint_rate {
    double bytes, bytes_per_s;
};

/* The costs of a level. A message of n bytes occupies the sending and the receiving port for
 * overhead_s + n / bytes_per_s, and arrives latency_s later. The overhead is the alpha (cost per
 * message) of the one-port model. */
struct tutti_rate {
    double latency_s, overhead_s, bytes_per_s;
    double core_bytes_per_s; /* what a core sends and receives together; 0: messages use no core */
    struct tutti_footprint_rate beyond[TUTTI_MACHINE_FOOTPRINTS],
        core_beyond[TUTTI_MACHINE_FOOTPRINTS];
};

/* The bytes of a link's name, with its terminating zero. */
#define TUTTI_MACHINE_NAME_BYTES 48

struct tutti_machine_link {
    double bytes_per_s;                  /* one way; at least 1 */
    char name[TUTTI_MACHINE_NAME_BYTES]; /* "": none */
};

/* The limits for the weight of a crossing. */
#define TUTTI_MACHINE_WEIGHT_LEAST 0.001
#define TUTTI_MACHINE_WEIGHT_MOST 1000.0

/* A link of a path. Each byte of the path takes `weight` bytes of the link. */
struct tutti_machine_crossing {
    uint32_t link;
    double weight; /* TUTTI_MACHINE_WEIGHT_LEAST .. TUTTI_MACHINE_WEIGHT_MOST */
};

struct tutti_machine_path {
    uint32_t from, to;     /* ranks; with like parts: those that are described */
    bool has_channel;      /* only messages on `channel` take the path; false: all traffic of the
                              two ranks does for whose channel there is no path */
    uint8_t channel;       /* of a step (schedule/step.h) */
    uint32_t first, count; /* range in `crossings`; no link twice */
    double latency_s;      /* below 0: latency of the level */
};

/* The parts of one kind. */
struct tutti_machine_parts {
    uint32_t nparts;
    uint32_t nranks, nlinks; /* of each part */
    /* Of the first part: its first rank, and its first link, counted among the links of all parts
     * and among those that are described. tutti_machine_set_links() computes these. */
    uint32_t first_rank, first_link, first_described;
};

struct tutti_machine_links {
    const struct tutti_machine_link *links; /* of one part of each kind; without parts: all */
    uint32_t nlinks;
    const struct tutti_machine_path *paths; /* in a machine: sorted by `from`, then `to`,
                                               then `channel` */
    uint32_t npaths;
    const struct tutti_machine_crossing *crossings;
    uint32_t ncrossings;
    const struct tutti_machine_parts *kinds; /* NULL: the machine has no like parts */
    uint32_t nkinds;
};

struct tutti_machine {
    struct tutti_placement places; /* arrays owned by the machine */
    struct tutti_rate level[TUTTI_MACHINE_LEVELS]; /* node, group, top */
    uint32_t nics;             /* per node; 0: one per rank */
    uint32_t cores;            /* per node; 0: one per rank */
    double trunk_bytes_per_s;  /* 0: unbounded */
    double bridge_latency_s;   /* extra latency between the cells of a node */
    double bridge_bytes_per_s; /* 0: unbounded */
    double memory_bytes_per_s; /* of a node; 0: each rank's memory is behind its port */
    double copy_bytes_per_s;   /* 0: free */
    double reduce_bytes_per_s; /* 0: free */
    double load_bytes_per_s;   /* 0: the bandwidth of level node */
    double signal_s;           /* 0: latency plus overhead of level node */
    struct tutti_footprint_rate memory_beyond[TUTTI_MACHINE_FOOTPRINTS],
        copy_beyond[TUTTI_MACHINE_FOOTPRINTS];
    struct tutti_footprint_rate reduce_beyond[TUTTI_MACHINE_FOOTPRINTS],
        load_beyond[TUTTI_MACHINE_FOOTPRINTS];
    struct tutti_machine_links links; /* arrays owned by the machine */
    bool has_channel_paths;           /* some path is for one channel */
    /* Entry i is the total rate of the first i + 1 directed rings along their paths, in B/s. Each
     * ring counts twice, first forwards, then backwards. 0: some pair has no path, or no link
     * bounds the rings. NULL: the machine has no rings or no paths. */
    const double *ring_rates;
};

/* Parses a description. `name` is the file's name, for messages. If nranks is 0, the description
 * gives the number of ranks. Otherwise the machine has nranks ranks: patterns of nodes and groups
 * continue, and lists with an entry per rank must have that length. The caller destroys the
 * machine. TUTTI_ERR_ARGUMENT: the text is invalid, and the message begins with
 * "name:line:column:". TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_parse(const char *name, const char *text, uint32_t nranks,
                        struct tutti_machine **ret_machine);
/* Loads a machine from `text`, which is the name of a built-in machine (below). Else `text` is a
 * description if it contains a space or ';', or a file name ("-" for standard input). nranks and
 * the errors are those of tutti_machine_parse(). TUTTI_ERR_ARGUMENT also means that the file cannot
 * be read. */
int tutti_machine_load(const char *text, uint32_t nranks, struct tutti_machine **ret_machine);

/* Built-in example machines, for any number of ranks. */
struct tutti_machine_example {
    const char *name;
    const char *about; /* one line */
    const char *text;  /* the description, without ranks */
};

/* Returns the static machine with this index; NULL: the index is past the last one. */
const struct tutti_machine_example *tutti_machine_example_at(size_t index);

/* Writes the description; parsing it gives an equal machine. The caller frees *ret_text.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_write(const struct tutti_machine *machine, char **ret_text);

/* Frees a machine with its arrays; NULL is allowed. */
void tutti_machine_destroy(struct tutti_machine *machine);

/* Replaces the links and paths of a machine with copies of `links`, whose paths may have any order.
 * The machine's rings must be set before, because this call computes ring_rates. On error the
 * machine is unchanged. TUTTI_ERR_ARGUMENT: the links do not match the paths or the ranks;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_set_links(struct tutti_machine *machine, const struct tutti_machine_links *links);
/* Returns the number of links of a machine, those of all like parts included. */
uint32_t tutti_machine_link_count(const struct tutti_machine_links *links);
/* Returns the link with this number, or the described one of a like part. */
const struct tutti_machine_link *tutti_machine_link(const struct tutti_machine_links *links,
                                                    uint32_t number);
/* Returns the number of the part of a rank within its kind, and the kind. NULL: no like parts. */
const struct tutti_machine_parts *tutti_machine_part_of(const struct tutti_machine_links *links,
                                                        uint32_t rank, uint32_t *ret_part);

/* The difference between the links of a described path and those of a pair of ranks that has this
 * path in other parts. Without like parts both numbers are 0. */
struct tutti_machine_shift {
    uint32_t first, end;  /* the links of the described sender's part; others are the receiver's */
    int64_t from_difference, to_difference; /* to add to numbers of links */
};

/* Returns the shift of a pair of ranks. */
struct tutti_machine_shift tutti_machine_shift_of(const struct tutti_machine_links *links,
                                                  uint32_t from, uint32_t to);
/* Returns the number of the link that takes the place of a described path's link. */
static inline uint32_t tutti_machine_shifted(const struct tutti_machine_shift *shift, uint32_t link)
{
    bool is_sender = link >= shift->first && link < shift->end;

    return (uint32_t)(link + (is_sender ? shift->from_difference : shift->to_difference));
}

/* Returns the path of a pair of ranks; NULL: the pair uses the levels. In a machine of like parts
 * it is the described path of ranks in the same places. */
const struct tutti_machine_path *tutti_machine_path(const struct tutti_machine *machine,
                                                    uint32_t from, uint32_t to);
/* Returns the path of the messages on a channel: the path of this channel if there is one, else
 * that of the pair. */
const struct tutti_machine_path *tutti_machine_channel_path(const struct tutti_machine *machine,
                                                            uint32_t from, uint32_t to,
                                                            uint8_t channel);
/* Returns the rate in B/s of a flow that is alone on the path; 0: the path crosses no link. */
double tutti_machine_path_rate(const struct tutti_machine *machine,
                               const struct tutti_machine_path *path);
/* Returns the latency of a pair of ranks with this path: the path's own, or that of the level. */
double tutti_machine_path_latency_s(const struct tutti_machine *machine,
                                    const struct tutti_machine_path *path, uint32_t from,
                                    uint32_t to);

/* Returns the total rate in B/s of the first `ndirected` directed rings along paths; 0: not known
 * (see ring_rates). */
double tutti_machine_rings_rate(const struct tutti_machine *machine, uint32_t ndirected);

/* The rates in B/s at which all ranks send at once along the paths. 0: some pair has no path, or no
 * link bounds the rate. */
struct tutti_machine_exchange {
    double pairs_bytes_per_s;  /* each rank sends equally much to each other rank */
    double rounds_bytes_per_s; /* each rank sends to the one 1, 2, 4, ... places after it: the lowest
                                  rate of these rounds */
};

/* Finds these rates. TUTTI_ERR_SYSTEM: no memory. */
int tutti_machine_exchange_rates(const struct tutti_machine *machine,
                                 struct tutti_machine_exchange *ret_rates);

/* Returns the footprint of a call with blocks of `block_bytes`: the bytes of its buffers at the
 * rank that has the most. */
double tutti_machine_footprint(enum tutti_collective collective, uint32_t nranks,
                               double block_bytes);
/* Stores in *ret_machine the machine with the rates that apply to a call of this footprint, and
 * without `beyond` entries. *ret_machine shares the arrays of `machine`, so the caller must not
 * destroy it, and must not use it after `machine` is destroyed. */
void tutti_machine_for_footprint(const struct tutti_machine *machine, double footprint_bytes,
                                 struct tutti_machine *ret_machine);

/* Returns the seconds from a store until a waiting rank of the node has seen the value. */
static inline double tutti_machine_signal_s(const struct tutti_machine *machine)
{
    return machine->signal_s > 0 ? machine->signal_s
                                 : machine->level[0].latency_s + machine->level[0].overhead_s;
}

/* Returns true if both ranks are on one node but in different cells, which the bridge joins. */
static inline bool tutti_machine_is_bridged(const struct tutti_machine *machine, uint32_t a,
                                            uint32_t b)
{
    const struct tutti_placement *places = &machine->places;

    return places->cell != NULL && places->cell[a] != places->cell[b] && places->node != NULL &&
           places->node[a] == places->node[b];
}

/* Returns the level that joins two ranks: 0 node, 1 group, 2 top. */
uint32_t tutti_machine_level(const struct tutti_machine *machine, uint32_t a, uint32_t b);

#endif
