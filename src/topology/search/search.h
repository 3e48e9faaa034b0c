/* SPDX-License-Identifier: Apache-2.0
 * Rings and trees for channels: which orders of the gpus carry most when all run at once.
 *
 * A channel of a ring sends its share of the bytes along the path of each gpu to the next; a
 * channel of a tree along the path of each gpu to its parent and back. Links carry what they can.
 * How much all rings, or all trees, together can carry is a linear programme with a variable for
 * each of them. It is solved by generating columns: a price for each link, the ring that is
 * cheapest at these prices, new prices (Gilmore and Gomory, 1961). The prices prove how good the
 * result is: if no ring costs less than 1, all rings together carry no more than the price of all
 * links. The links that have a price are what bounds.
 *
 * The cheapest tree is exact for any number of gpus. The cheapest ring is exact up to
 * TUTTI_SEARCH_EXACT_GPUS (Held and Karp, 1962) and else looked for by exchanging edges, with a
 * bound from the cheapest set of cycles.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_SEARCH_H
#define TUTTI_TOPOLOGY_SEARCH_SEARCH_H

#include "topology/graph/paths.h"

#define TUTTI_SEARCH_CHANNELS 64
#define TUTTI_SEARCH_USUAL 32 /* channels, if nobody says how many */
#define TUTTI_SEARCH_EXACT_GPUS 16
#define TUTTI_SEARCH_GPUS 256 /* in one search */

enum tutti_pattern {
    TUTTI_PATTERN_RING,      /* a cyclic order of all gpus */
    TUTTI_PATTERN_TREE,      /* a spanning tree that is used both ways: reduce up, broadcast down */
    TUTTI_PATTERN_BROADCAST, /* a spanning tree that is used from the root down, or only up */
    TUTTI_PATTERN_COUNT
};

/* "ring", "tree", "broadcast" */
const char *tutti_pattern_name(enum tutti_pattern pattern);

struct tutti_channel {
    /* Ring: indexes of `gpus` of the plan, in the order of the ring. Trees: the parent of each gpu
     * of the plan, as an index; TUTTI_NO_NODE at the root. */
    uint32_t *gpu;
    /* Numbers of the nets by which the channel enters and leaves the host; TUTTI_NO_NODE: none. A
     * ring enters at its first gpu and leaves from its last, a tree does both at its root. */
    uint32_t net_in, net_out;
    enum tutti_path_class intra, inter; /* the worst between gpus, and to nets; LOC: none */
    uint32_t bound_link;     /* the fullest of its links; TUTTI_NO_NODE: it crosses none */
};

/* Channels of one pattern, all of the same width. */
struct tutti_channels {
    enum tutti_pattern pattern;
    uint32_t ngpus;
    uint32_t *gpus;           /* numbers, ascending */
    uint32_t nchannels;
    struct tutti_channel channel[TUTTI_SEARCH_CHANNELS];
    double channel_bytes_per_s;
    double bytes_per_s;       /* of all channels together */
    double bound_bytes_per_s; /* no set of channels of any widths carries more over these paths */
    uint32_t nbounds;         /* the links that bound it, the dearest first */
    uint32_t *bound_link;
    double *bound_share;      /* of each link in the bound; they add up to 1 */
};

#define TUTTI_ALL_HOSTS UINT32_MAX

struct tutti_search_options {
    uint32_t host;        /* or ALL_HOSTS, where an NVSwitch joins them */
    const uint32_t *gpus; /* numbers, ascending, all of the host; NULL: those of the host */
    uint32_t ngpus;
    bool has_peers;       /* other hosts take part: channels enter and leave by nets */
    bool may_cross;       /* ... and may leave by another net than they enter by */
    uint32_t nchannels;   /* at most; 0: TUTTI_SEARCH_USUAL */
    double channel_bytes_per_s; /* at most; 0: no limit */
};

/* The same on all ranks that have equal graphs. TUTTI_ERR_ARGUMENT: no gpu, no net, or no way
 * between some. */
int tutti_search(const struct tutti_paths *paths, enum tutti_pattern pattern,
                 const struct tutti_search_options *options, struct tutti_channels **ret_plan);
void tutti_channels_destroy(struct tutti_channels *plan);

/* What an all-reduce gets out of it, in bytes of the buffer per second: a ring sends each byte
 * 2 (n - 1) / n times along, a tree both ways at once. */
double tutti_channels_allreduce(const struct tutti_channels *plan, double bytes_per_s);

#endif
