/* SPDX-License-Identifier: Apache-2.0
 * Makes rings and trees over all ranks. It searches each kind of domain for channels, and joins
 * these channels from domain to domain. */
#include "topology/cluster/cluster.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of each domain, sorted by the gpu that they use; ranks without one come last. */
struct roll {
    const struct tutti_cluster *cluster;
    uint32_t *rank;   /* all ranks, by domain and slot */
    uint32_t *begin;  /* per domain, plus one end: index in `begins` */
    uint32_t *begins; /* per slot of each domain: index in `rank`. The last slot of a domain is for
                       * ranks without a gpu; one end follows. */
};

static const struct tutti_cluster_kind *kind_of(const struct tutti_cluster *cluster,
                                                uint32_t domain)
{
    return &cluster->kind[cluster->domains[domain].kind];
}

static uint32_t slot_of(const struct roll *roll, uint32_t rank)
{
    const struct tutti_cluster *cluster = roll->cluster;
    uint32_t domain = cluster->domain[cluster->host[rank]], slot = cluster->slot[rank];

    return roll->begin[domain] +
           (slot == TUTTI_NO_NODE ? kind_of(cluster, domain)->ngpus : slot);
}

static void roll_fini(struct roll *roll)
{
    free(roll->rank);
    free(roll->begin);
    free(roll->begins);
}

static int roll_init(struct roll *roll, const struct tutti_cluster *cluster)
{
    uint32_t nslots = 0, *next;

    *roll = (struct roll){.cluster = cluster};
    roll->begin = calloc((size_t)cluster->ndomains + 1, sizeof *roll->begin);
    roll->rank = calloc(cluster->nranks, sizeof *roll->rank);
    for (uint32_t i = 0; i < cluster->ndomains && roll->begin != NULL; i++) {
        roll->begin[i] = nslots;
        nslots += kind_of(cluster, i)->ngpus + 1;
        roll->begin[i + 1] = nslots;
    }
    roll->begins = calloc((size_t)nslots + 1, sizeof *roll->begins);
    next = calloc((size_t)nslots + 1, sizeof *next);
    if (roll->begin == NULL || roll->rank == NULL || roll->begins == NULL || next == NULL) {
        free(next);
        roll_fini(roll);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the orders of %u ranks",
                          cluster->nranks);
    }
    for (uint32_t rank = 0; rank < cluster->nranks; rank++)
        roll->begins[slot_of(roll, rank) + 1]++;
    for (uint32_t i = 0; i < nslots; i++)
        roll->begins[i + 1] += roll->begins[i];
    for (uint32_t rank = 0; rank < cluster->nranks; rank++) {
        uint32_t slot = slot_of(roll, rank);

        roll->rank[roll->begins[slot] + next[slot]++] = rank;
    }
    free(next);
    return TUTTI_OK;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Channel c of one domain connects to channel c of the next domain. The channels of each plan are
 * therefore sorted by the rails of their ports, so that connected channels use the same rail.
 * Returns -1 if the channel has no port or the port has no rail. */
static int64_t rail_of(const struct tutti_graph *graph, const struct tutti_channel *channel)
{
    if (channel->net_in == TUTTI_NO_NODE)
        return -1;
    return tutti_device_number(graph->inventory,
                               graph->nodes[tutti_graph_net(graph, channel->net_in)].device,
                               TUTTI_PROPERTY_RAIL, -1);
}

static void order_by_rail(const struct tutti_graph *graph, struct tutti_channels *plan)
{
    for (uint32_t i = 1; i < plan->nchannels; i++) {
        struct tutti_channel channel = plan->channel[i];
        uint32_t at = i;

        for (; at > 0 && rail_of(graph, &plan->channel[at - 1]) > rail_of(graph, &channel); at--)
            plan->channel[at] = plan->channel[at - 1];
        plan->channel[at] = channel;
    }
}

static bool has_nets(const struct tutti_graph *graph)
{
    return graph->count[TUTTI_NODE_NET] > 0;
}

/* Makes one plan per kind. The entry of a kind without gpus stays NULL. */
static int make_plans(const struct tutti_cluster *cluster, enum tutti_pattern pattern,
                      uint32_t nchannels, struct tutti_channels **plans)
{
    for (uint32_t i = 0; i < cluster->nkinds; i++) {
        const struct tutti_cluster_kind *kind = &cluster->kind[i];
        struct tutti_search_options options = {
            .host = TUTTI_ALL_HOSTS, .gpus = kind->gpu, .ngpus = kind->ngpus,
            .has_peers = cluster->ndomains > 1 && has_nets(kind->graph), .nchannels = nchannels};

        if (kind->ngpus == 0)
            continue;
        TUTTI_TRY(tutti_search(kind->paths, pattern, &options, &plans[i]));
        order_by_rail(kind->graph, plans[i]);
    }
    return TUTTI_OK;
}

/* Returns the number of channels that all plans have, and the total rate of these channels. A
 * channel passes through all kinds, so its rate is the smallest of any plan. */
static void measure_plans(const struct tutti_cluster *cluster, struct tutti_channels *const *plans,
                          uint32_t *ret_nchannels, double *ret_bytes_per_s)
{
    uint32_t nchannels = UINT32_MAX;
    double width = INFINITY;

    for (uint32_t i = 0; i < cluster->nkinds; i++) {
        if (plans[i] == NULL)
            continue;
        if (plans[i]->nchannels < nchannels)
            nchannels = plans[i]->nchannels;
        width = fmin(width, plans[i]->channel_bytes_per_s);
    }
    *ret_nchannels = nchannels == UINT32_MAX ? 0 : nchannels;
    *ret_bytes_per_s = *ret_nchannels == 0 ? 0 : width * *ret_nchannels;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static uint32_t append_slot(const struct roll *roll, uint32_t slot, uint32_t *order,
                            uint32_t count)
{
    for (uint32_t i = roll->begins[slot]; i < roll->begins[slot + 1]; i++)
        order[count++] = roll->rank[i];
    return count;
}

static void join_ring(const struct roll *roll, struct tutti_channels *const *plans,
                      uint32_t channel, uint32_t *order)
{
    const struct tutti_cluster *cluster = roll->cluster;
    uint32_t count = 0;

    for (uint32_t domain = 0; domain < cluster->ndomains; domain++) {
        const struct tutti_channels *plan = plans[cluster->domains[domain].kind];
        uint32_t begin = roll->begin[domain];

        for (uint32_t i = 0; plan != NULL && i < plan->ngpus; i++)
            count = append_slot(roll, begin + plan->channel[channel].gpu[i], order, count);
        count = append_slot(roll, begin + kind_of(cluster, domain)->ngpus, order, count);
    }
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* Returns the parent of place `index` in a binary tree of n places, in which all odd places are
 * leaves; UINT32_MAX: the root. For n = 10:
 *
 *     0 ------------ 8
 *                   / \
 *                  4   9
 *                /   \
 *               2     6
 *              / \   / \
 *             1   3 5   7 */
static uint32_t binary_parent(uint32_t index, uint32_t n)
{
    uint32_t bit = index & (0 - index), parent;

    if (index == 0)
        return UINT32_MAX;
    parent = (index ^ bit) | (bit << 1);
    return parent < n ? parent : index ^ bit;
}

/* Channels alternate between two trees, so that the leaves of one tree are inner places of the
 * other. For even n the second tree is the mirror image of the first. For odd n it is the first
 * tree shifted by one place. */
static uint32_t domain_parent(uint32_t domain, uint32_t n, uint32_t channel)
{
    uint32_t parent, moved = (domain + n - 1) % n;

    if (channel % 2 == 0)
        return binary_parent(domain, n);
    if (n % 2 == 0) {
        parent = binary_parent(n - 1 - domain, n);
        return parent == UINT32_MAX ? parent : n - 1 - parent;
    }
    parent = binary_parent(moved, n);
    return parent == UINT32_MAX ? parent : (parent + 1) % n;
}

/* Returns the first rank of a slot, which represents the slot's gpu. In a domain without gpus, this
 * rank is the first rank of the domain. */
static uint32_t head_of(const struct roll *roll, uint32_t slot)
{
    return roll->rank[roll->begins[slot]];
}

static uint32_t root_of(const struct roll *roll, const struct tutti_channels *plan, uint32_t domain,
                        uint32_t channel)
{
    uint32_t gpu = 0;

    if (plan == NULL)
        return head_of(roll, roll->begin[domain]);
    while (plan->channel[channel].gpu[gpu] != TUTTI_NO_NODE)
        gpu++;
    return head_of(roll, roll->begin[domain] + gpu);
}

/* Places the first rank of a slot below `parent`, and the other ranks of the slot below the
 * first. */
static void hang_slot(const struct roll *roll, uint32_t slot, uint32_t parent, int32_t *tree)
{
    for (uint32_t i = roll->begins[slot]; i < roll->begins[slot + 1]; i++) {
        uint32_t rank = roll->rank[i];

        tree[rank] = (int32_t)(i == roll->begins[slot] ? parent : head_of(roll, slot));
    }
}

static void join_tree(const struct roll *roll, struct tutti_channels *const *plans,
                      uint32_t channel, int32_t *tree)
{
    const struct tutti_cluster *cluster = roll->cluster;

    for (uint32_t domain = 0; domain < cluster->ndomains; domain++) {
        const struct tutti_channels *plan = plans[cluster->domains[domain].kind];
        uint32_t begin = roll->begin[domain], ngpus = kind_of(cluster, domain)->ngpus;
        uint32_t root = root_of(roll, plan, domain, channel), above = UINT32_MAX;
        uint32_t parent = domain_parent(domain, cluster->ndomains, channel);

        if (parent != UINT32_MAX)
            above = root_of(roll, plans[cluster->domains[parent].kind], parent, channel);
        for (uint32_t i = 0; i < ngpus; i++) {
            uint32_t next = plan->channel[channel].gpu[i];

            hang_slot(roll, begin + i,
                      next == TUTTI_NO_NODE ? above : head_of(roll, begin + next), tree);
        }
        hang_slot(roll, begin + ngpus, ngpus == 0 ? above : root, tree);
        for (uint32_t i = roll->begins[begin + ngpus]; i < roll->begins[begin + ngpus + 1]; i++)
            if (roll->rank[i] != root)
                tree[roll->rank[i]] = (int32_t)root;
    }
}

/* ---- the whole cluster ----------------------------------------------------------------------- */

static int set_rings(const struct roll *roll, struct tutti_channels *const *plans,
                     struct tutti_cluster_orders *orders)
{
    uint32_t n = roll->cluster->nranks;

    measure_plans(roll->cluster, plans, &orders->places.nrings, &orders->ring_bytes_per_s);
    orders->rings = calloc((size_t)orders->places.nrings * n + 1, sizeof *orders->rings);
    if (orders->rings == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for rings of %u ranks", n);
    for (uint32_t c = 0; c < orders->places.nrings; c++)
        join_ring(roll, plans, c, orders->rings + (size_t)c * n);
    orders->places.rings = orders->rings;
    return TUTTI_OK;
}

static int set_trees(const struct roll *roll, struct tutti_channels *const *plans,
                     struct tutti_cluster_orders *orders)
{
    uint32_t n = roll->cluster->nranks;

    measure_plans(roll->cluster, plans, &orders->places.ntrees, &orders->tree_bytes_per_s);
    orders->trees = calloc((size_t)orders->places.ntrees * n + 1, sizeof *orders->trees);
    if (orders->trees == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for trees of %u ranks", n);
    for (uint32_t c = 0; c < orders->places.ntrees; c++)
        join_tree(roll, plans, c, orders->trees + (size_t)c * n);
    orders->places.trees = orders->trees;
    return TUTTI_OK;
}

static int set_orders(const struct roll *roll, enum tutti_pattern pattern, uint32_t nchannels,
                      struct tutti_cluster_orders *orders)
{
    const struct tutti_cluster *cluster = roll->cluster;
    struct tutti_channels **plans = calloc(cluster->nkinds, sizeof *plans);
    int rc;

    if (plans == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u plans", cluster->nkinds);
    rc = make_plans(cluster, pattern, nchannels, plans);
    if (rc == TUTTI_OK)
        rc = pattern == TUTTI_PATTERN_RING ? set_rings(roll, plans, orders)
                                           : set_trees(roll, plans, orders);
    for (uint32_t i = 0; i < cluster->nkinds; i++)
        tutti_channels_destroy(plans[i]);
    free(plans);
    return rc;
}

static int set_nodes(const struct tutti_cluster *cluster, struct tutti_cluster_orders *orders)
{
    orders->node = malloc(cluster->nranks * sizeof *orders->node);
    if (orders->node == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the places of %u ranks",
                          cluster->nranks);
    memcpy(orders->node, cluster->host, cluster->nranks * sizeof *orders->node);
    orders->places.nranks = cluster->nranks;
    orders->places.node = orders->node;
    orders->places.nnodes = cluster->nhosts;
    orders->places.ngroups = 1;
    tutti_placement_align(&orders->places);
    return TUTTI_OK;
}

int tutti_cluster_search(const struct tutti_cluster *cluster, uint32_t nchannels,
                         struct tutti_cluster_orders *ret_orders)
{
    struct tutti_cluster_orders orders = {0};
    struct roll roll;
    int rc;

    TUTTI_TRY(roll_init(&roll, cluster));
    TUTTI_TRY_OR(drop_roll, rc, set_nodes(cluster, &orders));
    TUTTI_TRY_OR(drop_roll, rc, set_orders(&roll, TUTTI_PATTERN_RING, nchannels, &orders));
    rc = set_orders(&roll, TUTTI_PATTERN_TREE, nchannels, &orders);

drop_roll:
    roll_fini(&roll);
    if (rc == TUTTI_OK)
        *ret_orders = orders;
    else
        tutti_cluster_orders_fini(&orders);
    return rc;
}

void tutti_cluster_orders_fini(struct tutti_cluster_orders *orders)
{
    free(orders->node);
    free(orders->rings);
    free(orders->trees);
    *orders = (struct tutti_cluster_orders){0};
}
