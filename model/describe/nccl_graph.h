/* SPDX-License-Identifier: Apache-2.0
 * Writes NCCL's XML of a search's result, the format of the file that NCCL_GRAPH_FILE names.
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

/* Limits that no search exceeds. */
#define TUTTI_NCCL_GRAPHS 64
#define TUTTI_NCCL_GRAPH_CHANNELS 1024
#define TUTTI_NCCL_GRAPH_STOPS 131072
#define TUTTI_NCCL_NO_RANK INT64_MIN

enum tutti_nccl_pattern {
    TUTTI_NCCL_BALANCED_TREE = 1,
    TUTTI_NCCL_SPLIT_TREE,
    TUTTI_NCCL_TREE,
    TUTTI_NCCL_RING,
    TUTTI_NCCL_NVLS,
    TUTTI_NCCL_COLLNET_DIRECT,
};

struct tutti_nccl_graph {
    int64_t id;                    /* 0 ring, 1 tree, 2 and 3 the network's reduction, 4 NVLS */
    int64_t pattern;               /* usually a value of enum tutti_nccl_pattern */
    int64_t crossnic;              /* 1: a channel may leave by another NIC than it enters by */
    double speedintra, speedinter; /* GB/s of a channel, within a host and between them */
    double latencyinter;           /* us */
    char typeintra[8], typeinter[8]; /* type of the worst path: "NVL", "PIX", ...; "": not given */
    int64_t samechannels;          /* 1: all channels are alike */
    uint32_t first_channel, nchannels;
};

struct tutti_nccl_channel {
    uint32_t first_stop, nstops;
};

/* One stop of a channel. The stops are in this order: a net to enter by, gpus, a net to leave
 * by. */
struct tutti_nccl_stop {
    bool is_net;
    int64_t dev;
    int64_t rank; /* TUTTI_NCCL_NO_RANK: not given */
};

struct tutti_nccl_graphs {
    struct tutti_nccl_graph *graphs;
    struct tutti_nccl_channel *channels; /* of all graphs, one after the other */
    struct tutti_nccl_stop *stops;       /* of all channels, one after the other */
    uint32_t ngraphs, nchannels, nstops;
    uint32_t graph_capacity, channel_capacity, stop_capacity;
};

/* Without any graph, to be added to. */
int tutti_nccl_graphs_create(struct tutti_nccl_graphs **ret_graphs);
void tutti_nccl_graphs_destroy(struct tutti_nccl_graphs *graphs);

/* Add a graph (without channels, whatever it says), a channel to the last graph, a stop to the last
 * channel. TUTTI_ERR_ARGUMENT, noted not logged: too many. */
int tutti_nccl_graphs_add(struct tutti_nccl_graphs *graphs, const struct tutti_nccl_graph *graph);
int tutti_nccl_graphs_add_channel(struct tutti_nccl_graphs *graphs);
int tutti_nccl_graphs_add_stop(struct tutti_nccl_graphs *graphs, struct tutti_nccl_stop stop);

/* Write them as XML. *ret_text ends in zero; the caller frees it. TUTTI_ERR_SYSTEM: no memory. */
int tutti_nccl_graphs_write(const struct tutti_nccl_graphs *graphs, char **ret_text);

#endif
