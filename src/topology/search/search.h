/* SPDX-License-Identifier: Apache-2.0
 * Rings and trees for channels: which orders of the gpus carry most when all run at once.
 *
 * A channel of a ring sends its share of the bytes along the path of each gpu to the next; a channel
 * of a tree along the path of each gpu to its parent and back. Links carry what they can. We look
 * for the channels whose shares add up to most, and prove how near that is: a price for each link
 * such that no ring costs less than 1 bounds all rings together by the price of all links (the dual
 * of the linear programme). The links that have a price are what bounds.
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_SEARCH_H
#define TUTTI_TOPOLOGY_SEARCH_SEARCH_H

#include "topology/graph/paths.h"

#define TUTTI_SEARCH_CHANNELS 64

enum tutti_pattern {
    TUTTI_PATTERN_RING, /* a cyclic order of all gpus */
    TUTTI_PATTERN_TREE, /* a spanning tree, used both ways: reduce up, broadcast down */
};

struct tutti_channel {
    uint32_t *gpu;       /* gpu numbers. Ring: the order. Tree: the parent of each gpu of the search,
                          * by index in `gpus`; TUTTI_NO_NODE at the root */
    uint32_t net_in, net_out; /* net numbers by which it enters and leaves the host; TUTTI_NO_NODE */
    enum tutti_path_class intra, inter; /* the worst class within, and to the nets */
    uint32_t bound_link; /* the link that limits this channel most; TUTTI_NO_NODE: none */
};

/* One pattern's channels, all of the same width. */
struct tutti_plan {
    enum tutti_pattern pattern;
    uint32_t ngpus;
    uint32_t *gpus;          /* gpu numbers of the search, ascending */
    uint32_t nchannels;
    struct tutti_channel channel[TUTTI_SEARCH_CHANNELS];
    double channel_bytes_per_s;
    double bytes_per_s;      /* of all channels together */
    double bound_bytes_per_s; /* no set of channels carries more over these paths */
    uint32_t nbound;         /* the links that bound it, the dearest first */
    uint32_t *bound_link;
    double *bound_share;     /* of each in the bound; they add up to 1 */
};

struct tutti_search_options {
    uint32_t nchannels;       /* at most; 0: 32 */
    const uint32_t *gpus;     /* of these only (numbers, ascending); NULL: all of the host */
    uint32_t ngpus;
    bool has_peers;           /* other hosts take part: channels enter and leave by nets */
};

/* The same on all ranks that have equal graphs. TUTTI_ERR_ARGUMENT: no gpus, or some that cannot
 * reach others. */
int tutti_search(const struct tutti_paths *paths, enum tutti_pattern pattern,
                 const struct tutti_search_options *options, struct tutti_plan **ret_plan);
void tutti_plan_destroy(struct tutti_plan *plan);

#endif
