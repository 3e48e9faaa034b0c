/* SPDX-License-Identifier: Apache-2.0
 * Opens and destroys a cluster. From the records of all ranks, this file numbers the hosts, the
 * distinct texts and the domains, so that all ranks use the same numbers. */
#include "topology/cluster/cluster.h"

#include "base/result.h"
#include "topology/cluster/kinds.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* ---- records --------------------------------------------------------------------------------- */

/* Numbers keys in the order in which they first appear. The table uses open addressing, and mixes
 * the keys because host numbers tend to be regular. */
struct table {
    uint32_t *number; /* per entry: the number of its key plus one; 0: the entry is empty */
    uint32_t *first;  /* per entry: the first record with its key */
    uint32_t mask;    /* number of entries, a power of two, less one */
    uint32_t count;   /* of distinct keys */
};

static int table_init(struct table *table, uint32_t nkeys)
{
    uint32_t capacity = 16;

    while (capacity < 2 * nkeys)
        capacity *= 2;
    *table = (struct table){.mask = capacity - 1};
    table->number = calloc(capacity, sizeof *table->number);
    table->first = calloc(capacity, sizeof *table->first);
    if (table->number != NULL && table->first != NULL)
        return TUTTI_OK;
    free(table->number);
    free(table->first);
    return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u ranks of a cluster", nkeys);
}

static void table_fini(struct table *table)
{
    free(table->number);
    free(table->first);
}

/* Returns the first bytes of a text's digest as a key for the table. */
static uint64_t key_of_text(const struct tutti_cluster_record *record)
{
    uint64_t key;

    memcpy(&key, record->digest, sizeof key);
    return key;
}

static bool is_same_text(const struct tutti_cluster_record *a, const struct tutti_cluster_record *b)
{
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0 && a->size_bytes == b->size_bytes;
}

static bool is_same_host(const struct tutti_cluster_record *a, const struct tutti_cluster_record *b)
{
    return a->host == b->host;
}

/* Returns the number of the key of record `index`, and gives the next number to a new key.
 * `is_same` compares the keys of two records. */
static uint32_t table_number(struct table *table, const struct tutti_cluster_record *records,
                             uint32_t index, uint64_t key,
                             bool (*is_same)(const struct tutti_cluster_record *,
                                             const struct tutti_cluster_record *))
{
    /* The factor is 2^64 divided by the golden ratio, which spreads regular keys evenly. */
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & table->mask;

    while (table->number[at] != 0 && !is_same(&records[table->first[at]], &records[index]))
        at = (at + 1) & table->mask;
    if (table->number[at] == 0) {
        table->first[at] = index;
        table->number[at] = ++table->count;
    }
    return table->number[at] - 1;
}

static int number_hosts(struct tutti_cluster *cluster)
{
    struct table table;

    TUTTI_TRY(table_init(&table, cluster->nranks));
    for (uint32_t rank = 0; rank < cluster->nranks; rank++)
        cluster->host[rank] = table_number(&table, cluster->record, rank,
                                           cluster->record[rank].host, is_same_host);
    cluster->nhosts = table.count;
    table_fini(&table);
    return TUTTI_OK;
}

static int number_texts(struct tutti_cluster *cluster)
{
    struct table table;
    int rc = TUTTI_OK;

    TUTTI_TRY(table_init(&table, cluster->nranks));
    for (uint32_t rank = 0; rank < cluster->nranks && rc == TUTTI_OK; rank++) {
        const struct tutti_cluster_record *record = &cluster->record[rank];
        uint32_t text = table_number(&table, cluster->record, rank, key_of_text(record),
                                     is_same_text);

        cluster->text_of[rank] = text;
        if (text < cluster->ntexts)
            continue;
        cluster->text[cluster->ntexts++] = (struct tutti_cluster_text){
            .digest = record->digest, .size_bytes = record->size_bytes, .owner = rank};
        if (record->size_bytes > TUTTI_CLUSTER_TEXT_MAX || record->size_bytes == 0)
            rc = tutti_fail(TUTTI_ERR_REMOTE, "rank %u announces a description of %u bytes for its "
                            "host, which must have 1 to %u; use one version of the library on "
                            "all ranks", rank, record->size_bytes, TUTTI_CLUSTER_TEXT_MAX);
    }
    table_fini(&table);
    return rc;
}

/* The fabric of a host is the fabric of its first rank that has one. Hosts with the same fabric
 * form one domain, and a host without a fabric forms a domain of its own. In a whole cluster all
 * hosts have the same fabric. */
static void number_domains(struct tutti_cluster *cluster, uint64_t *fabric, uint32_t *first_host)
{
    for (uint32_t rank = 0; rank < cluster->nranks; rank++) {
        uint32_t host = cluster->host[rank];

        if (cluster->is_whole)
            fabric[host] = 1;
        else if (fabric[host] == 0)
            fabric[host] = cluster->record[rank].fabric;
    }
    /* The inner loop is short: there are few fabrics, and hosts without one skip it. */
    for (uint32_t host = 0; host < cluster->nhosts; host++) {
        uint32_t domain = cluster->ndomains;

        for (uint32_t i = 0; i < cluster->ndomains && fabric[host] != 0; i++)
            if (fabric[first_host[i]] == fabric[host]) {
                domain = i;
                break;
            }
        if (domain == cluster->ndomains)
            first_host[cluster->ndomains++] = host;
        cluster->domain[host] = domain;
        cluster->domains[domain].nhosts++;
    }
}

/* Lists the hosts of each domain, and finds its lowest rank. */
static void list_domains(struct tutti_cluster *cluster)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < cluster->ndomains; i++) {
        cluster->domains[i].first_host = count;
        count += cluster->domains[i].nhosts;
        cluster->domains[i].nhosts = 0;
        cluster->domains[i].first_rank = TUTTI_NO_NODE;
    }
    for (uint32_t host = 0; host < cluster->nhosts; host++) {
        struct tutti_cluster_domain *domain = &cluster->domains[cluster->domain[host]];

        cluster->domain_host[domain->first_host + domain->nhosts++] = host;
    }
    for (uint32_t rank = cluster->nranks; rank-- > 0;)
        cluster->domains[cluster->domain[cluster->host[rank]]].first_rank = rank;
}

static int find_domains(struct tutti_cluster *cluster)
{
    uint64_t *fabric = calloc(cluster->nhosts, sizeof *fabric);
    uint32_t *first_host = calloc(cluster->nhosts, sizeof *first_host);

    if (fabric == NULL || first_host == NULL) {
        free(fabric);
        free(first_host);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u hosts", cluster->nhosts);
    }
    number_domains(cluster, fabric, first_host);
    list_domains(cluster);
    free(fabric);
    free(first_host);
    return TUTTI_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int allocate(struct tutti_cluster *cluster, const struct tutti_cluster_record *records)
{
    size_t n = cluster->nranks;

    cluster->record = malloc(n * sizeof *cluster->record);
    cluster->host = calloc(n, sizeof *cluster->host);
    cluster->slot = calloc(n, sizeof *cluster->slot);
    cluster->text_of = calloc(n, sizeof *cluster->text_of);
    cluster->text = calloc(n, sizeof *cluster->text);
    cluster->domain = calloc(n, sizeof *cluster->domain);
    cluster->domains = calloc(n, sizeof *cluster->domains);
    cluster->domain_host = calloc(n, sizeof *cluster->domain_host);
    if (cluster->record == NULL || cluster->host == NULL || cluster->slot == NULL ||
        cluster->text_of == NULL || cluster->text == NULL || cluster->domain == NULL ||
        cluster->domains == NULL || cluster->domain_host == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a cluster of %zu ranks", n);
    memcpy(cluster->record, records, n * sizeof *cluster->record);
    return TUTTI_OK;
}

static int open_cluster(const struct tutti_cluster_record *records, uint32_t nranks, bool is_whole,
                        struct tutti_cluster **ret_cluster)
{
    struct tutti_cluster *cluster = calloc(1, sizeof *cluster);
    int rc;

    if (cluster == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a cluster");
    cluster->nranks = nranks;
    cluster->is_whole = is_whole;
    TUTTI_TRY_OR(drop_cluster, rc, allocate(cluster, records));
    TUTTI_TRY_OR(drop_cluster, rc, number_hosts(cluster));
    TUTTI_TRY_OR(drop_cluster, rc, number_texts(cluster));
    TUTTI_TRY_OR(drop_cluster, rc, find_domains(cluster));
    *ret_cluster = cluster;
    return TUTTI_OK;

drop_cluster:
    tutti_cluster_destroy(cluster);
    return rc;
}

int tutti_cluster_open(const struct tutti_cluster_record *records, uint32_t nranks,
                       struct tutti_cluster **ret_cluster)
{
    return open_cluster(records, nranks, false, ret_cluster);
}

int tutti_cluster_make_whole(const struct tutti_cluster *cluster, struct tutti_cluster **ret_whole)
{
    struct tutti_cluster *whole;
    int rc = TUTTI_OK;

    TUTTI_TRY(open_cluster(cluster->record, cluster->nranks, true, &whole));
    for (uint32_t i = 0; i < cluster->ntexts && rc == TUTTI_OK; i++)
        rc = tutti_cluster_put(whole, i, cluster->text[i].text, cluster->text[i].size_bytes);
    if (rc == TUTTI_OK)
        rc = tutti_cluster_build(whole);
    if (rc != TUTTI_OK) {
        tutti_cluster_destroy(whole);
        return rc;
    }
    *ret_whole = whole;
    return TUTTI_OK;
}

int tutti_cluster_put(struct tutti_cluster *cluster, uint32_t text, const char *bytes,
                      size_t size_bytes)
{
    struct tutti_cluster_text *place = &cluster->text[text];
    uint8_t digest[TUTTI_CLUSTER_DIGEST];

    crypto_generichash(digest, sizeof digest, (const unsigned char *)bytes, size_bytes, NULL, 0);
    if (size_bytes != place->size_bytes ||
        memcmp(digest, place->digest, sizeof digest) != 0)
        return tutti_fail(TUTTI_ERR_REMOTE, "the description of rank %u's host differs from its "
                          "digest; use one version of the library on all ranks", place->owner);
    if (place->text != NULL)
        return TUTTI_OK;
    place->text = malloc(size_bytes + 1);
    if (place->text == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a description of %zu bytes",
                          size_bytes);
    memcpy(place->text, bytes, size_bytes);
    place->text[size_bytes] = '\0';
    return TUTTI_OK;
}

void tutti_cluster_destroy(struct tutti_cluster *cluster)
{
    if (cluster == NULL)
        return;
    for (uint32_t i = 0; i < cluster->ntexts; i++)
        free(cluster->text[i].text);
    tutti_cluster_drop_kinds(cluster);
    free(cluster->record);
    free(cluster->host);
    free(cluster->slot);
    free(cluster->text_of);
    free(cluster->text);
    free(cluster->domain);
    free(cluster->domains);
    free(cluster->domain_host);
    free(cluster);
}
