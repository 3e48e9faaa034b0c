/* SPDX-License-Identifier: Apache-2.0
 * Describes the ranks of many hosts as one machine. A cluster has few kinds of hosts, so the ranks
 * need to exchange little: a record of 48 bytes per rank, and each distinct description once.
 *
 *   1. Each rank describes its host in a text, which is equal on equal hosts, and makes a digest.
 *   2. An all-gather of the records tells all ranks which texts exist, and one owner of each.
 *   3. The caller fetches the texts that a rank lacks, with one broadcast each.
 *   4. The views of ranks on one host are merged. Hosts whose gpus share an NVSwitch form one
 *      domain. One domain of each kind is searched.
 *
 * All ranks compute the same cluster, because they run the same computation on the same bytes. With
 * n ranks and k texts of b bytes, each rank receives 48 n + k b bytes.
 */
#ifndef TUTTI_TOPOLOGY_CLUSTER_CLUSTER_H
#define TUTTI_TOPOLOGY_CLUSTER_CLUSTER_H

#include "schedule/shape.h"
#include "topology/machine/machine.h"
#include "topology/search/search.h"

#define TUTTI_CLUSTER_DIGEST 16           /* bytes of a digest */
#define TUTTI_CLUSTER_TEXT_MAX (1u << 20) /* bytes of a text, at most */
#define TUTTI_CLUSTER_NO_GPU INT64_MIN

/* What a rank tells all others. Ranks send this struct as it is in memory, so all ranks must have
 * the same byte order. */
struct tutti_cluster_record {
    uint8_t digest[TUTTI_CLUSTER_DIGEST]; /* of the rank's text */
    uint64_t host;       /* equal for the ranks of a host */
    int64_t gpu;         /* bus id of the rank's gpu, or TUTTI_CLUSTER_NO_GPU */
    uint64_t fabric;     /* equal for gpus of several hosts behind one NVSwitch; 0: none */
    uint32_t size_bytes; /* of the text */
    uint32_t reserved;   /* 0 */
};

/* Makes a rank's record and the text for other ranks. Values that differ between equal hosts are
 * removed (UUIDs, ranks) or numbered (GUIDs). `host` identifies the rank's host; `gpu` is the bus
 * id of its gpu or TUTTI_CLUSTER_NO_GPU. The caller frees the text. TUTTI_ERR_ARGUMENT: the text
 * exceeds TUTTI_CLUSTER_TEXT_MAX bytes; TUTTI_ERR_SYSTEM: no memory. */
int tutti_cluster_describe(const struct tutti_inventory *inventory, uint64_t host, int64_t gpu,
                           struct tutti_cluster_record *ret_record, char **ret_text);

/* One of the distinct texts. */
struct tutti_cluster_text {
    const uint8_t *digest;
    uint32_t size_bytes;
    uint32_t owner;  /* the first rank that has it */
    char *text;      /* NULL: not received yet */
};

/* Domains that consist of the same texts and use the same gpus. */
struct tutti_cluster_kind {
    uint32_t first_domain;     /* the lowest domain of this kind */
    struct tutti_graph *graph; /* of all hosts of one such domain */
    struct tutti_paths *paths; /* of the graph */
    uint32_t *gpu;             /* numbers, in the graph, of the gpus that ranks use, ascending */
    uint32_t ngpus;            /* entries of `gpu` */
};

/* A host, or several hosts joined by an NVSwitch. */
struct tutti_cluster_domain {
    uint32_t kind;               /* index in `kind` of the cluster */
    uint32_t first_host, nhosts; /* range in `domain_host` */
    uint32_t first_rank;         /* lowest rank of the domain */
};

struct tutti_cluster {
    uint32_t nranks;
    bool is_whole;                       /* all hosts form one domain, and no NVSwitch joins them */
    struct tutti_cluster_record *record; /* per rank */
    uint32_t *host;                      /* per rank; numbered in the order of first ranks */
    uint32_t *text_of;                   /* per rank: index in `text` */
    uint32_t *slot; /* per rank: index in `gpu` of its kind; TUTTI_NO_NODE: no gpu */
    uint32_t nhosts, ntexts, nkinds, ndomains;
    uint32_t *domain;                    /* per host: index in `domains` */
    struct tutti_cluster_text *text;
    struct tutti_cluster_kind *kind;
    struct tutti_cluster_domain *domains;
    uint32_t *domain_host;               /* hosts, ordered by domain */
};

/* Opens a cluster from the records of all ranks, rank 0 first, and copies the records. The caller
 * destroys the cluster. TUTTI_ERR_REMOTE: a record is invalid; TUTTI_ERR_SYSTEM: no memory. */
int tutti_cluster_open(const struct tutti_cluster_record *records, uint32_t nranks,
                       struct tutti_cluster **ret_cluster);
/* Stores a copy of text number `text`; a second copy is ignored. TUTTI_ERR_REMOTE: the bytes differ
 * from the announced digest or size; TUTTI_ERR_SYSTEM: no memory. */
int tutti_cluster_put(struct tutti_cluster *cluster, uint32_t text, const char *bytes,
                      size_t size_bytes);
/* Makes the kinds, once; all texts must have been put. TUTTI_ERR_REMOTE: a gpu that a rank uses is
 * not in the text of its host; TUTTI_ERR_SYSTEM: no memory. For an invalid text it returns the
 * error of tutti_xml_read_nccl(). */
int tutti_cluster_build(struct tutti_cluster *cluster);
/* Opens and builds a cluster of the same ranks in which all hosts form one domain, with one graph
 * of all hosts. It should have few hosts. `cluster` has been built. The caller destroys the result.
 * Errors are those of tutti_cluster_build. */
int tutti_cluster_make_whole(const struct tutti_cluster *cluster, struct tutti_cluster **ret_whole);
/* Frees the cluster with everything in it; NULL is allowed. */
void tutti_cluster_destroy(struct tutti_cluster *cluster);

/* The input for the collective algorithms: the host of each rank, and for each channel a ring and a
 * tree over all ranks. */
struct tutti_cluster_orders {
    struct tutti_placement places; /* arrays owned by this struct */
    uint32_t *node, *rings;        /* the arrays that `places` refers to */
    int32_t *trees;                /* likewise */
    double ring_bytes_per_s, tree_bytes_per_s; /* of all channels; 0: no channels */
};

/* Searches each kind and joins the domains. A ring visits one domain after the other. A tree joins
 * the roots of the domains by one of two binary trees, which alternate between channels (Sanders,
 * Speck, Traeff, 2009). nchannels is an upper bound; 0: 32. Several ranks of one gpu are
 * consecutive, and ranks without a gpu follow the gpus of their domain. tutti_cluster_build() must
 * have succeeded. The caller frees the result with tutti_cluster_orders_fini(). TUTTI_ERR_ARGUMENT:
 * tutti_search() refuses a kind; TUTTI_ERR_SYSTEM: no memory. */
int tutti_cluster_search(const struct tutti_cluster *cluster, uint32_t nchannels,
                         struct tutti_cluster_orders *ret_orders);
/* Makes the machine of the ranks of a cluster: the links between their gpus, and the rings and
 * trees of `orders`. If there are several domains, the cluster should have few hosts. The caller
 * destroys the machine. TUTTI_ERR_ARGUMENT: a rank has no gpu, or two gpus have no path;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_cluster_machine(const struct tutti_cluster *cluster,
                          const struct tutti_cluster_orders *orders,
                          struct tutti_machine **ret_machine);
/* Frees the arrays; a zeroed struct is allowed. */
void tutti_cluster_orders_fini(struct tutti_cluster_orders *orders);

#endif
