/* SPDX-License-Identifier: Apache-2.0
 * Finds out which domains are alike, and builds the graph of each kind. The signature of a domain
 * lists, host by host, the texts of its ranks and the gpus that they use. Domains with the same
 * signature have the same kind and share one graph, in which gpus are identified by host and bus
 * id.
 */
#include "topology/cluster/kinds.h"

#include "base/result.h"
#include "topology/formats/nccl_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part that a rank contributes to the signature of its domain. */
struct entry {
    uint32_t domain;
    uint32_t host; /* index within its domain */
    uint32_t text; /* index in the cluster */
    int64_t gpu;   /* bus id, or TUTTI_CLUSTER_NO_GPU */
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;

    if (left->domain != right->domain)
        return left->domain < right->domain ? -1 : 1;
    if (left->host != right->host)
        return left->host < right->host ? -1 : 1;
    if (left->text != right->text)
        return left->text < right->text ? -1 : 1;
    return left->gpu < right->gpu ? -1 : left->gpu > right->gpu;
}

/* The signatures of all domains. */
struct signatures {
    struct tutti_cluster *cluster;
    struct entry *entry; /* sorted by domain, without duplicates */
    uint32_t *begin;     /* per domain: index of its first entry; one end follows */
};

/* Returns the index of a host within its domain. */
static uint32_t index_in_domain(const struct tutti_cluster *cluster, uint32_t host)
{
    const struct tutti_cluster_domain *domain = &cluster->domains[cluster->domain[host]];
    uint32_t place = 0;

    while (cluster->domain_host[domain->first_host + place] != host)
        place++;
    return place;
}

static int signatures_init(struct signatures *signatures, struct tutti_cluster *cluster)
{
    uint32_t count = 0;

    *signatures = (struct signatures){.cluster = cluster};
    signatures->entry = calloc(cluster->nranks, sizeof *signatures->entry);
    signatures->begin = calloc((size_t)cluster->ndomains + 1, sizeof *signatures->begin);
    if (signatures->entry == NULL || signatures->begin == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the kinds of %u ranks",
                          cluster->nranks);
    for (uint32_t rank = 0; rank < cluster->nranks; rank++) {
        uint32_t host = cluster->host[rank];

        signatures->entry[rank] = (struct entry){
            .domain = cluster->domain[host], .host = index_in_domain(cluster, host),
            .text = cluster->text_of[rank], .gpu = cluster->record[rank].gpu};
    }
    qsort(signatures->entry, cluster->nranks, sizeof *signatures->entry, compare_entries);
    for (uint32_t i = 0; i < cluster->nranks; i++)
        if (count == 0 ||
            compare_entries(&signatures->entry[i], &signatures->entry[count - 1]) != 0) {
            signatures->begin[signatures->entry[i].domain + 1] = count + 1;
            signatures->entry[count++] = signatures->entry[i];
        }
    return TUTTI_OK;
}

static void signatures_fini(struct signatures *signatures)
{
    free(signatures->entry);
    free(signatures->begin);
}

static bool is_same_kind(const struct signatures *signatures, uint32_t a, uint32_t b)
{
    uint32_t count = signatures->begin[a + 1] - signatures->begin[a];

    if (count != signatures->begin[b + 1] - signatures->begin[b])
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct entry *left = &signatures->entry[signatures->begin[a] + i];
        const struct entry *right = &signatures->entry[signatures->begin[b] + i];

        if (left->host != right->host || left->text != right->text || left->gpu != right->gpu)
            return false;
    }
    return true;
}

/* ---- the graph of a kind --------------------------------------------------------------------- */

/* Equal texts number their ports alike (tutti_cluster_describe), so ports of different hosts would
 * be taken for one. */
static void set_guid(struct tutti_inventory *inventory, uint32_t net, uint32_t host)
{
    int64_t guid = tutti_device_number(inventory, net, TUTTI_PROPERTY_GUID, 0);

    if (guid != 0)
        tutti_device_set_number(inventory, net, TUTTI_PROPERTY_GUID, TUTTI_SOURCE_FILE,
                                guid + ((int64_t)(host + 1) << 32));
}

/* Merges a host's text into the inventory of its domain. The host's index within the domain plus
 * one becomes its host_hash. If one NVSwitch joins the hosts, they all get the same fabric. */
static int add_text(const struct tutti_cluster *cluster, const struct entry *entry,
                    bool has_fabric, struct tutti_inventory *into)
{
    const struct tutti_cluster_text *text = &cluster->text[entry->text];
    struct tutti_inventory *one;
    char name[64];
    int rc;

    snprintf(name, sizeof name, "the description of a host from rank %u", text->owner);
    TUTTI_TRY(tutti_xml_read_nccl(name, text->text, text->size_bytes, TUTTI_SOURCE_FILE, &one));
    for (uint32_t device = 0; device != TUTTI_NO_DEVICE;
         device = tutti_inventory_next(one, device)) {
        if (one->devices[device].kind == TUTTI_DEVICE_CPU)
            tutti_device_set_number(one, device, TUTTI_PROPERTY_HOST_HASH, TUTTI_SOURCE_FILE,
                                    (int64_t)entry->host + 1);
        if (one->devices[device].kind == TUTTI_DEVICE_GPU && has_fabric)
            tutti_device_set_number(one, device, TUTTI_PROPERTY_FABRIC, TUTTI_SOURCE_FILE, 1);
        if (one->devices[device].kind == TUTTI_DEVICE_NET)
            set_guid(one, device, entry->host);
    }
    rc = tutti_inventory_merge(into, one);
    tutti_inventory_destroy(one);
    return rc;
}

/* Returns the number of the gpu with this host index and bus id; TUTTI_NO_NODE: none. */
static uint32_t find_gpu(const struct tutti_graph *graph, uint32_t host, int64_t busid)
{
    const struct tutti_inventory *inventory = graph->inventory;

    for (uint32_t i = 0; i < graph->count[TUTTI_NODE_GPU]; i++) {
        uint32_t device = graph->nodes[tutti_graph_gpu(graph, i)].device;
        uint32_t pci = inventory->devices[device].parent;
        uint32_t cpu = tutti_inventory_above(inventory, device, TUTTI_DEVICE_CPU);

        if (tutti_device_number(inventory, pci, TUTTI_PROPERTY_BUSID, -1) == busid &&
            tutti_device_number(inventory, cpu, TUTTI_PROPERTY_HOST_HASH, 0) == host + 1)
            return i;
    }
    return TUTTI_NO_NODE;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* Lists the gpus that the ranks of a domain use, each once and in ascending order. */
static int list_gpus(const struct signatures *signatures, uint32_t domain,
                     struct tutti_cluster_kind *kind)
{
    uint32_t begin = signatures->begin[domain], end = signatures->begin[domain + 1], count = 0;

    kind->gpu = calloc(end - begin + 1, sizeof *kind->gpu);
    if (kind->gpu == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the gpus of a host");
    for (uint32_t i = begin; i < end; i++) {
        const struct entry *entry = &signatures->entry[i];
        char busid[32];

        if (entry->gpu == TUTTI_CLUSTER_NO_GPU)
            continue;
        kind->gpu[kind->ngpus] = find_gpu(kind->graph, entry->host, entry->gpu);
        if (kind->gpu[kind->ngpus++] != TUTTI_NO_NODE)
            continue;
        tutti_busid_write(entry->gpu, busid, sizeof busid);
        return tutti_fail(TUTTI_ERR_REMOTE, "a rank uses the gpu %s, which the description of its "
                          "host from rank %u does not list; describe all gpus of the host", busid,
                          signatures->cluster->text[entry->text].owner);
    }
    qsort(kind->gpu, kind->ngpus, sizeof *kind->gpu, compare_numbers);
    for (uint32_t i = 0; i < kind->ngpus; i++)
        if (count == 0 || kind->gpu[i] != kind->gpu[count - 1])
            kind->gpu[count++] = kind->gpu[i];
    kind->ngpus = count;
    return TUTTI_OK;
}

/* Builds the graph of a kind from the texts of one domain. Entries are sorted, so a text that
 * several ranks of a host share is added only once. */
static int build_kind(const struct signatures *signatures, uint32_t domain,
                      struct tutti_cluster_kind *kind)
{
    const struct tutti_cluster *cluster = signatures->cluster;
    bool has_fabric = cluster->domains[domain].nhosts > 1 && !cluster->is_whole;
    struct tutti_inventory *inventory;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_inventory_create(&inventory));
    for (uint32_t i = signatures->begin[domain];
         i < signatures->begin[domain + 1] && rc == TUTTI_OK; i++) {
        const struct entry *entry = &signatures->entry[i];

        if (i > signatures->begin[domain] && entry->host == entry[-1].host &&
            entry->text == entry[-1].text)
            continue;
        rc = add_text(cluster, entry, has_fabric, inventory);
    }
    TUTTI_TRY_OR(drop_inventory, rc, rc);
    TUTTI_TRY_OR(drop_inventory, rc, tutti_graph_build(inventory, &kind->graph));
    TUTTI_TRY_OR(drop_inventory, rc, tutti_paths_find(kind->graph, &kind->paths));
    rc = list_gpus(signatures, domain, kind);

drop_inventory:
    tutti_inventory_destroy(inventory);
    return rc;
}

/* Sets for each rank which of its kind's gpus it uses. */
static void set_slots(struct tutti_cluster *cluster)
{
    for (uint32_t rank = 0; rank < cluster->nranks; rank++) {
        uint32_t host = cluster->host[rank], number;
        const struct tutti_cluster_kind *kind =
            &cluster->kind[cluster->domains[cluster->domain[host]].kind];

        cluster->slot[rank] = TUTTI_NO_NODE;
        if (cluster->record[rank].gpu == TUTTI_CLUSTER_NO_GPU)
            continue;
        number = find_gpu(kind->graph, index_in_domain(cluster, host), cluster->record[rank].gpu);
        for (uint32_t i = 0; i < kind->ngpus; i++)
            if (kind->gpu[i] == number)
                cluster->slot[rank] = i;
    }
}

int tutti_cluster_build(struct tutti_cluster *cluster)
{
    struct signatures signatures;
    int rc;

    cluster->kind = calloc(cluster->ndomains, sizeof *cluster->kind);
    if (cluster->kind == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u domains", cluster->ndomains);
    TUTTI_TRY_OR(drop_signatures, rc, signatures_init(&signatures, cluster));
    for (uint32_t domain = 0; domain < cluster->ndomains && rc == TUTTI_OK; domain++) {
        uint32_t kind = 0;

        while (kind < cluster->nkinds &&
               !is_same_kind(&signatures, cluster->kind[kind].first_domain, domain))
            kind++;
        cluster->domains[domain].kind = kind;
        if (kind < cluster->nkinds)
            continue;
        cluster->kind[cluster->nkinds++].first_domain = domain;
        rc = build_kind(&signatures, domain, &cluster->kind[kind]);
    }
    if (rc == TUTTI_OK)
        set_slots(cluster);

drop_signatures:
    signatures_fini(&signatures);
    return rc;
}

void tutti_cluster_drop_kinds(struct tutti_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->nkinds; i++) {
        tutti_paths_destroy(cluster->kind[i].paths);
        tutti_graph_destroy(cluster->kind[i].graph);
        free(cluster->kind[i].gpu);
    }
    free(cluster->kind);
}
