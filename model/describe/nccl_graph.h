/* SPDX-License-Identifier: Apache-2.0
 * Collects rings and trees, and writes them as XML in the format that NCCL reads from the file
 * named by NCCL_GRAPH_FILE. NCCL calls all channels of one pattern, such as ring or tree, a graph.
 *
 *   <graphs version="1">
 *     <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" ...>
 *       <channel>
 *         <net dev="0"/> <gpu dev="0"/> <gpu dev="1"/> <net dev="0"/>
 */
#ifndef TUTTI_DESCRIBE_NCCL_GRAPH_H
#define TUTTI_DESCRIBE_NCCL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Upper bounds for one list of graphs. No search needs more. */
#define TUTTI_NCCL_GRAPHS 64
#define TUTTI_NCCL_GRAPH_CHANNELS 1024   /* of all graphs */
#define TUTTI_NCCL_GRAPH_STOPS    131072 /* of all channels */

#define TUTTI_NCCL_NO_RANK INT64_MIN

/* NCCL's numbers of patterns. */
enum tutti_nccl_pattern {
    TUTTI_NCCL_BALANCED_TREE = 1,
    TUTTI_NCCL_SPLIT_TREE,
    TUTTI_NCCL_TREE,
    TUTTI_NCCL_RING,
    TUTTI_NCCL_NVLS,
    TUTTI_NCCL_COLLNET_DIRECT,
};

struct tutti_nccl_graph {
    int64_t id; /* NCCL's number of the graph: 0: ring, 1: tree, 2 and 3: reduction in the network,
                   4: NVLS (reduction in NVSwitches) */
    int64_t pattern;               /* usually a value of enum tutti_nccl_pattern */
    int64_t crossnic;              /* 1: a channel may leave by another NIC than it enters by */
    double speedintra, speedinter; /* GB/s of a channel, within a host and between hosts */
    double latencyinter;           /* between hosts, in us */
    char typeintra[8], typeinter[8]; /* the worst path: "NVL", "PIX", ...; "": not given */
    int64_t samechannels;          /* 1: all channels are alike */
    uint32_t first_channel, nchannels; /* a range of tutti_nccl_graphs.channels */
};

struct tutti_nccl_channel {
    uint32_t first_stop, nstops; /* a range of tutti_nccl_graphs.stops */
};

/* One stop of a channel: a net, which is a network port in NCCL's terms, or a gpu. The stops of a
 * channel are, in this order: the net by which it enters the host, the gpus, and the net by which
 * it leaves. */
struct tutti_nccl_stop {
    bool is_net; /* false: a gpu */
    int64_t dev; /* NCCL's index of the net or gpu */
    int64_t rank; /* TUTTI_NCCL_NO_RANK: not given */
};

struct tutti_nccl_graphs {
    struct tutti_nccl_graph *graphs;
    struct tutti_nccl_channel *channels; /* of all graphs, one after the other */
    struct tutti_nccl_stop *stops;       /* of all channels, one after the other */
    uint32_t ngraphs, nchannels, nstops;
    uint32_t graph_capacity, channel_capacity, stop_capacity;
};

/* Creates an empty list of graphs. The caller destroys it. TUTTI_ERR_SYSTEM: no memory. */
int tutti_nccl_graphs_create(struct tutti_nccl_graphs **ret_graphs);
void tutti_nccl_graphs_destroy(struct tutti_nccl_graphs *graphs);

/* These functions add a graph, a channel to the last graph, and a stop to the last channel. A new
 * graph has no channels: its first_channel and nchannels are ignored. TUTTI_ERR_ARGUMENT: one of
 * the limits above is exceeded; the message is recorded but not logged. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_nccl_graphs_add(struct tutti_nccl_graphs *graphs, const struct tutti_nccl_graph *graph);
int tutti_nccl_graphs_add_channel(struct tutti_nccl_graphs *graphs);
int tutti_nccl_graphs_add_stop(struct tutti_nccl_graphs *graphs, struct tutti_nccl_stop stop);

/* Writes all graphs as XML. *ret_text ends with a zero byte, and the caller frees the text.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_nccl_graphs_write(const struct tutti_nccl_graphs *graphs, char **ret_text);

#endif
