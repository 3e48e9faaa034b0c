/* SPDX-License-Identifier: Apache-2.0
 * Finds rings and trees for channels: orders of the gpus that carry the most bytes per second when
 * all channels run at once.
 *
 * A ring channel sends its share of the bytes along the path from each gpu to the next. A tree
 * channel sends its share along the path from each gpu to its parent and back. Links have limited
 * rates. The maximum that all rings, or all trees, carry together is a linear program with one
 * variable per ring or tree.
 *
 * Column generation solves this program: it sets a price for each link, finds the ring that is
 * cheapest at these prices, and computes new prices (Gilmore and Gomory, 1961). The prices also
 * bound the error of the result: if no ring costs less than 1, all rings together carry no more
 * than the total price of all links. The links with a price above 0 are the bottlenecks.
 *
 * The cheapest tree is found exactly for any number of gpus. The cheapest ring is found exactly for
 * up to TUTTI_SEARCH_EXACT_GPUS gpus (Held and Karp, 1962). For more gpus the ring is found
 * heuristically by exchanging edges, with a lower bound from the cheapest set of cycles.
 *
 * Many plans carry about as much as the best one. Virtual ports are always left out, and so are
 * weak ports, which together add at most 4 %. Of the plans that carry at least 98 % of the rest,
 * these are preferred, in this order:
 *
 *   1. few channels,
 *   2. only NVLinks between gpus,
 *   3. ports near the gpus that enter and leave by them, and otherwise better classes of paths,
 *   4. equally many channels on all ports,
 *   5. equally loaded links (taste.h, packing.h, spread.h).
 */
#ifndef TUTTI_TOPOLOGY_SEARCH_SEARCH_H
#define TUTTI_TOPOLOGY_SEARCH_SEARCH_H

#include "topology/graph/paths.h"

#define TUTTI_SEARCH_CHANNELS 64   /* upper bound for the channels of a plan */
#define TUTTI_SEARCH_USUAL 32      /* channels at most, if the caller gives no number */
#define TUTTI_SEARCH_EXACT_GPUS 16 /* gpus up to which the cheapest ring is exact */
#define TUTTI_SEARCH_GPUS 256      /* upper bound for the gpus of one search */

enum tutti_pattern {
    TUTTI_PATTERN_RING,      /* a cyclic order of all gpus */
    TUTTI_PATTERN_TREE,      /* a spanning tree used both ways: reduce up, broadcast down */
    TUTTI_PATTERN_BROADCAST, /* a spanning tree used only from the root down, or only up */
    TUTTI_PATTERN_COUNT
};

/* Returns the name of a pattern: "ring", "tree" or "broadcast". */
const char *tutti_pattern_name(enum tutti_pattern pattern);

struct tutti_channel {
    /* Ring: indexes into `gpus` of the plan, in ring order. Trees: per gpu of the plan, the index
     * of its parent; TUTTI_NO_NODE at the root. */
    uint32_t *gpu;
    /* Numbers of the nets through which the channel enters and leaves the host; TUTTI_NO_NODE:
     * none. A ring enters at its first gpu and leaves from its last gpu. A tree enters and leaves
     * at its root. */
    uint32_t net_in, net_out;
    enum tutti_path_class intra; /* worst class of its paths between gpus; LOC: none */
    enum tutti_path_class inter; /* worst class of its paths to and from nets; LOC: none */
    uint32_t bound_link; /* the most loaded link that it crosses; TUTTI_NO_NODE: it crosses none */
};

/* A port of the searched host that no channel uses. */
struct tutti_left_out {
    uint32_t net;    /* its number in the graph */
    bool is_virtual; /* it is a port of the kernel, such as a bridge of containers */
    double gain;     /* the part of the rate that it would add, unless it is virtual */
};

/* A plan: channels of one pattern, all of the same width. */
struct tutti_channels {
    enum tutti_pattern pattern;
    uint32_t ngpus;
    uint32_t *gpus;           /* numbers of the gpus in the graph, ascending */
    uint32_t nchannels;
    struct tutti_channel channel[TUTTI_SEARCH_CHANNELS];
    double joint_load; /* with nets: times that a tree used both ways enters and leaves (joint.h) */
    double channel_bytes_per_s; /* the width of each channel */
    double bytes_per_s;       /* of all channels together */
    double bound_bytes_per_s; /* upper bound for any set of channels of any widths over these
                               * paths */
    uint32_t nbounds;         /* number of bottleneck links */
    uint32_t *bound_link;     /* the bottleneck links, by falling bound_share */
    double *bound_share;      /* per bottleneck: its part of the bound; the parts add up to 1 */
    uint32_t nleft_out;       /* number of ports that are left out */
    struct tutti_left_out *left_out; /* virtual ports, then weak ones */
};

#define TUTTI_ALL_HOSTS UINT32_MAX

struct tutti_search_options {
    uint32_t host;        /* or TUTTI_ALL_HOSTS, if an NVSwitch joins the hosts */
    uint32_t nhosts;      /* hosts from `host` on, which an NVSwitch joins; 0: one */
    const uint32_t *gpus; /* numbers, ascending, all on these hosts; NULL: all their gpus */
    uint32_t ngpus;
    bool has_peers;       /* other hosts take part: channels enter and leave through nets */
    uint32_t nparts;      /* with peers: like parts of the cluster, these hosts included (joint.h);
                             0: many */
    bool may_cross;       /* a channel may leave through another net than it enters by */
    uint32_t nchannels;   /* upper bound; 0: TUTTI_SEARCH_USUAL */
    double channel_bytes_per_s; /* upper bound; 0: none */
    bool for_rate_only; /* find the highest rate, and do not prefer any plan that is as good */
};

/* Finds a plan; the caller destroys the plan. Equal graphs and options give the same plan on all
 * ranks. TUTTI_ERR_ARGUMENT: no gpu, too many gpus, no net, or no path between two gpus or from a
 * net to the gpus. TUTTI_ERR_SYSTEM: no memory. */
int tutti_search(const struct tutti_paths *paths, enum tutti_pattern pattern,
                 const struct tutti_search_options *options, struct tutti_channels **ret_plan);
/* Frees a plan; NULL is allowed. */
void tutti_channels_destroy(struct tutti_channels *plan);

/* Returns the rate of an all-reduce in bytes of the buffer per second, if the channels of the plan
 * carry bytes_per_s together. A ring sends each byte 2 (n - 1) / n times along the ring, and a tree
 * sends each byte up and down at once. With the pattern broadcast, reduce and broadcast each get
 * half the rate. */
double tutti_channels_allreduce(const struct tutti_channels *plan, double bytes_per_s);

#endif
