/* SPDX-License-Identifier: Apache-2.0
 * Ranks of many hosts as one machine. Hosts of a cluster are of a few kinds, so what all ranks must
 * learn is little: a record of 48 bytes of each rank, and each kind of description once.
 *
 *   1. Each rank describes its host as it sees it: a text, alike on equal hosts, and its digest.
 *   2. An all-gather of records tells all ranks which texts there are, and one rank that has each.
 *   3. The texts that a rank lacks are fetched by whoever connects ranks: a broadcast each.
 *   4. What ranks of one host see is merged; hosts whose gpus share an NVSwitch are one domain; a
 *      domain of each kind is searched once.
 *
 * All ranks come to the same cluster, for they do the same with the same bytes. With n ranks and k
 * texts of b bytes each rank takes in 48 n + k b bytes.
 */
#ifndef TUTTI_TOPOLOGY_CLUSTER_CLUSTER_H
#define TUTTI_TOPOLOGY_CLUSTER_CLUSTER_H

#include "schedule/shape.h"
#include "topology/search/search.h"

#define TUTTI_CLUSTER_DIGEST 16
#define TUTTI_CLUSTER_TEXT_MAX (1u << 20)
#define TUTTI_CLUSTER_NO_GPU INT64_MIN

/* As it goes over the wire between ranks of one byte order. */
struct tutti_cluster_record {
    uint8_t digest[TUTTI_CLUSTER_DIGEST]; /* of the rank's text */
    uint64_t host;       /* alike for the ranks of a host */
    int64_t gpu;         /* bus id of the rank's gpu, or NO_GPU */
    uint64_t fabric;     /* gpus of several hosts behind one NVSwitch have it alike; 0: none */
    uint32_t size_bytes; /* of the text */
    uint32_t reserved;   /* 0 */
};

/* A rank's record, and the text to give to others: what does not tell equal hosts apart is left out
 * (UUIDs, ranks), and what does is numbered (GUIDs). The caller frees the text. */
int tutti_cluster_describe(const struct tutti_inventory *inventory, uint64_t host, int64_t gpu,
                           struct tutti_cluster_record *ret_record, char **ret_text);

/* One of the texts that there are. */
struct tutti_cluster_text {
    const uint8_t *digest;
    uint32_t size_bytes;
    uint32_t owner;  /* the first rank that has it */
    char *text;      /* NULL: not here yet */
};

/* Domains that are made of the same texts and use the same gpus. */
struct tutti_cluster_kind {
    uint32_t first_domain;
    struct tutti_graph *graph;
    struct tutti_paths *paths;
    uint32_t *gpu;             /* numbers of those that ranks use, ascending */
    uint32_t ngpus;
};

/* A host, or hosts that an NVSwitch joins. */
struct tutti_cluster_domain {
    uint32_t kind;
    uint32_t first_host, nhosts; /* in the order of hosts by domain */
    uint32_t first_rank;         /* the lowest */
};

struct tutti_cluster {
    uint32_t nranks;
    struct tutti_cluster_record *record; /* per rank */
    uint32_t *host;                      /* per rank, in the order of their first ranks */
    uint32_t *text_of;                   /* per rank */
    uint32_t *slot; /* per rank: which of its kind's gpus it uses; TUTTI_NO_NODE: none */
    uint32_t nhosts, ntexts, nkinds, ndomains;
    uint32_t *domain;                    /* per host */
    struct tutti_cluster_text *text;
    struct tutti_cluster_kind *kind;
    struct tutti_cluster_domain *domains;
    uint32_t *domain_host;               /* hosts, domain by domain */
};

/* From the records of all ranks, rank 0 first. TUTTI_ERR_REMOTE: a record that cannot be. */
int tutti_cluster_open(const struct tutti_cluster_record *records, uint32_t nranks,
                       struct tutti_cluster **ret_cluster);
/* Give one of its texts. TUTTI_ERR_REMOTE: it is not the one that was announced. */
int tutti_cluster_put(struct tutti_cluster *cluster, uint32_t text, const char *bytes,
                      size_t size_bytes);
/* All texts are there: make the kinds. TUTTI_ERR_REMOTE: a text is no description, or lacks a gpu
 * that a rank uses. */
int tutti_cluster_build(struct tutti_cluster *cluster);
void tutti_cluster_destroy(struct tutti_cluster *cluster);

/* What algorithms take: who lives where, and the rings and trees of all channels over all ranks. */
struct tutti_cluster_orders {
    struct tutti_places places; /* arrays owned by this struct */
    uint32_t *node, *rings;
    int32_t *trees;
    double ring_bytes_per_s, tree_bytes_per_s; /* of all channels; 0: there are none */
};

/* Search each kind and join domains: a ring goes through one domain after the other, a tree joins
 * their roots by one of two binary trees in turns (Sanders, Speck, Traeff, 2009). nchannels: at
 * most; 0: 32. Several ranks of one gpu follow each other; ranks without one come after the gpus of
 * their domain. */
int tutti_cluster_search(const struct tutti_cluster *cluster, uint32_t nchannels,
                         struct tutti_cluster_orders *ret_orders);
void tutti_cluster_orders_fini(struct tutti_cluster_orders *orders);

#endif
