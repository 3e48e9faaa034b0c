/* SPDX-License-Identifier: Apache-2.0
 * Makes rings and trees over all ranks. It searches each kind of domain for channels, and joins
 * these channels from domain to domain. */
#include "topology/cluster/cluster.h"

#include "base/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ranks of all domains, sorted by domain and slot. A domain has a slot for each gpu that its
 * ranks use, and a last slot for ranks without a gpu. Slots are numbered across all domains. */
struct roster {
    const struct tutti_cluster *cluster;
    uint32_t *rank;       /* all ranks, in this order */
    uint32_t *first_slot; /* per domain: its first slot; one end follows */
    uint32_t *first_rank; /* per slot: index in `rank` of its first rank; one end follows */
};

static const struct tutti_cluster_kind *kind_of(const struct tutti_cluster *cluster,
                                                uint32_t domain)
{
    return &cluster->kind[cluster->domains[domain].kind];
}

/* Returns the slot of a rank. */
static uint32_t slot_of(const struct roster *roster, uint32_t rank)
{
    const struct tutti_cluster *cluster = roster->cluster;
    uint32_t domain = cluster->domain[cluster->host[rank]], slot = cluster->slot[rank];

    return roster->first_slot[domain] +
           (slot == TUTTI_NO_NODE ? kind_of(cluster, domain)->ngpus : slot);
}

static void roster_fini(struct roster *roster)
{
    free(roster->rank);
    free(roster->first_slot);
    free(roster->first_rank);
}

static int roster_init(struct roster *roster, const struct tutti_cluster *cluster)
{
    uint32_t nslots = 0, *next;

    *roster = (struct roster){.cluster = cluster};
    roster->first_slot = calloc((size_t)cluster->ndomains + 1, sizeof *roster->first_slot);
    roster->rank = calloc(cluster->nranks, sizeof *roster->rank);
    for (uint32_t i = 0; i < cluster->ndomains && roster->first_slot != NULL; i++) {
        roster->first_slot[i] = nslots;
        nslots += kind_of(cluster, i)->ngpus + 1;
        roster->first_slot[i + 1] = nslots;
    }
    roster->first_rank = calloc((size_t)nslots + 1, sizeof *roster->first_rank);
    next = calloc((size_t)nslots + 1, sizeof *next);
    if (roster->first_slot == NULL || roster->rank == NULL || roster->first_rank == NULL ||
        next == NULL) {
        free(next);
        roster_fini(roster);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the orders of %u ranks",
                          cluster->nranks);
    }
    for (uint32_t rank = 0; rank < cluster->nranks; rank++)
        roster->first_rank[slot_of(roster, rank) + 1]++;
    for (uint32_t i = 0; i < nslots; i++)
        roster->first_rank[i + 1] += roster->first_rank[i];
    for (uint32_t rank = 0; rank < cluster->nranks; rank++) {
        uint32_t slot = slot_of(roster, rank);

        roster->rank[roster->first_rank[slot] + next[slot]++] = rank;
    }
    free(next);
    return TUTTI_OK;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Returns the rail of a channel's port; -1: the channel has no port, or the port has no rail. */
static int64_t rail_of(const struct tutti_graph *graph, const struct tutti_channel *channel)
{
    if (channel->net_in == TUTTI_NO_NODE)
        return -1;
    return tutti_device_number(graph->inventory,
                               graph->nodes[tutti_graph_net(graph, channel->net_in)].device,
                               TUTTI_PROPERTY_RAIL, -1);
}

/* Sorts the channels of a plan by rail. Channel c of one domain connects to channel c of the next,
 * so connected channels then use the same rail. */
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
            .has_peers = cluster->ndomains > 1 && has_nets(kind->graph),
            .nparts = cluster->ndomains, .nchannels = nchannels};

        if (kind->ngpus == 0)
            continue;
        TUTTI_TRY(tutti_search(kind->paths, pattern, &options, &plans[i]));
        order_by_rail(kind->graph, plans[i]);
    }
    return TUTTI_OK;
}

/* Finds the number of channels that all plans have, and the total rate of these channels. A channel
 * passes through domains of all kinds, so its rate is that of the slowest plan. */
static void compare_plans(const struct tutti_cluster *cluster, struct tutti_channels *const *plans,
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

/* Appends the ranks of a slot to an order of `count` ranks, and returns the new count. */
static uint32_t append_slot(const struct roster *roster, uint32_t slot, uint32_t *order,
                            uint32_t count)
{
    for (uint32_t i = roster->first_rank[slot]; i < roster->first_rank[slot + 1]; i++)
        order[count++] = roster->rank[i];
    return count;
}

/* Makes the ring of one channel, which visits one domain after the other. */
static void make_ring(const struct roster *roster, struct tutti_channels *const *plans,
                      uint32_t channel, uint32_t *order)
{
    const struct tutti_cluster *cluster = roster->cluster;
    uint32_t count = 0;

    for (uint32_t domain = 0; domain < cluster->ndomains; domain++) {
        const struct tutti_channels *plan = plans[cluster->domains[domain].kind];
        uint32_t begin = roster->first_slot[domain];

        for (uint32_t i = 0; plan != NULL && i < plan->ngpus; i++)
            count = append_slot(roster, begin + plan->channel[channel].gpu[i], order, count);
        count = append_slot(roster, begin + kind_of(cluster, domain)->ngpus, order, count);
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
    uint32_t lowest_bit = index & (0 - index), parent;

    if (index == 0)
        return UINT32_MAX;
    parent = (index ^ lowest_bit) | (lowest_bit << 1);
    return parent < n ? parent : index ^ lowest_bit;
}

/* Returns the parent of a domain in the tree of a channel; UINT32_MAX: the root. Channels alternate
 * between two trees, so that the leaves of one tree are inner places of the other. For even n the
 * second tree is the mirror image of the first. For odd n it is the first tree shifted by one
 * place. */
static uint32_t domain_parent(uint32_t domain, uint32_t n, uint32_t channel)
{
    uint32_t parent, shifted = (domain + n - 1) % n;

    if (channel % 2 == 0)
        return binary_parent(domain, n);
    if (n % 2 == 0) {
        parent = binary_parent(n - 1 - domain, n);
        return parent == UINT32_MAX ? parent : n - 1 - parent;
    }
    parent = binary_parent(shifted, n);
    return parent == UINT32_MAX ? parent : (parent + 1) % n;
}

/* Returns the first rank of a slot, which represents the slot's gpu. In a domain without gpus, this
 * rank is the first rank of the domain. */
static uint32_t head_of(const struct roster *roster, uint32_t slot)
{
    return roster->rank[roster->first_rank[slot]];
}

/* Returns the rank at the root of a channel's tree within a domain. */
static uint32_t root_of(const struct roster *roster, const struct tutti_channels *plan,
                        uint32_t domain, uint32_t channel)
{
    uint32_t gpu = 0;

    if (plan == NULL)
        return head_of(roster, roster->first_slot[domain]);
    while (plan->channel[channel].gpu[gpu] != TUTTI_NO_NODE)
        gpu++;
    return head_of(roster, roster->first_slot[domain] + gpu);
}

/* Places the first rank of a slot below `parent`, and the other ranks of the slot below the
 * first. */
static void attach_slot(const struct roster *roster, uint32_t slot, uint32_t parent, int32_t *tree)
{
    for (uint32_t i = roster->first_rank[slot]; i < roster->first_rank[slot + 1]; i++) {
        uint32_t rank = roster->rank[i];

        tree[rank] = (int32_t)(i == roster->first_rank[slot] ? parent : head_of(roster, slot));
    }
}

/* Makes the tree of one channel. Within a domain the tree of the plan joins the gpus, and ranks
 * without a gpu are below the root of the domain. */
static void make_tree(const struct roster *roster, struct tutti_channels *const *plans,
                      uint32_t channel, int32_t *tree)
{
    const struct tutti_cluster *cluster = roster->cluster;

    for (uint32_t domain = 0; domain < cluster->ndomains; domain++) {
        const struct tutti_channels *plan = plans[cluster->domains[domain].kind];
        uint32_t begin = roster->first_slot[domain], ngpus = kind_of(cluster, domain)->ngpus;
        uint32_t root = root_of(roster, plan, domain, channel), above = UINT32_MAX;
        uint32_t parent = domain_parent(domain, cluster->ndomains, channel);

        if (parent != UINT32_MAX)
            above = root_of(roster, plans[cluster->domains[parent].kind], parent, channel);
        for (uint32_t i = 0; i < ngpus; i++) {
            uint32_t next = plan->channel[channel].gpu[i];

            attach_slot(roster, begin + i,
                        next == TUTTI_NO_NODE ? above : head_of(roster, begin + next), tree);
        }
        attach_slot(roster, begin + ngpus, ngpus == 0 ? above : root, tree);
        for (uint32_t i = roster->first_rank[begin + ngpus];
             i < roster->first_rank[begin + ngpus + 1]; i++)
            if (roster->rank[i] != root)
                tree[roster->rank[i]] = (int32_t)root;
    }
}

/* ---- the whole cluster ----------------------------------------------------------------------- */

static int set_rings(const struct roster *roster, struct tutti_channels *const *plans,
                     struct tutti_cluster_orders *orders)
{
    uint32_t n = roster->cluster->nranks;

    compare_plans(roster->cluster, plans, &orders->places.nrings, &orders->ring_bytes_per_s);
    orders->rings = calloc((size_t)orders->places.nrings * n + 1, sizeof *orders->rings);
    if (orders->rings == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for rings of %u ranks", n);
    for (uint32_t c = 0; c < orders->places.nrings; c++)
        make_ring(roster, plans, c, orders->rings + (size_t)c * n);
    orders->places.rings = orders->rings;
    return TUTTI_OK;
}

static int set_trees(const struct roster *roster, struct tutti_channels *const *plans,
                     struct tutti_cluster_orders *orders)
{
    uint32_t n = roster->cluster->nranks;

    compare_plans(roster->cluster, plans, &orders->places.ntrees, &orders->tree_bytes_per_s);
    orders->trees = calloc((size_t)orders->places.ntrees * n + 1, sizeof *orders->trees);
    if (orders->trees == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for trees of %u ranks", n);
    for (uint32_t c = 0; c < orders->places.ntrees; c++)
        make_tree(roster, plans, c, orders->trees + (size_t)c * n);
    orders->places.trees = orders->trees;
    return TUTTI_OK;
}

/* Searches all kinds with a pattern, and makes the rings or trees of the cluster. */
static int set_orders(const struct roster *roster, enum tutti_pattern pattern, uint32_t nchannels,
                      struct tutti_cluster_orders *orders)
{
    const struct tutti_cluster *cluster = roster->cluster;
    struct tutti_channels **plans = calloc(cluster->nkinds, sizeof *plans);
    int rc;

    if (plans == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u plans", cluster->nkinds);
    rc = make_plans(cluster, pattern, nchannels, plans);
    if (rc == TUTTI_OK)
        rc = pattern == TUTTI_PATTERN_RING ? set_rings(roster, plans, orders)
                                           : set_trees(roster, plans, orders);
    for (uint32_t i = 0; i < cluster->nkinds; i++)
        tutti_channels_destroy(plans[i]);
    free(plans);
    return rc;
}

/* Sets the node of each rank, which is its host. */
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
    struct roster roster;
    int rc;

    TUTTI_TRY(roster_init(&roster, cluster));
    TUTTI_TRY_OR(drop_roster, rc, set_nodes(cluster, &orders));
    TUTTI_TRY_OR(drop_roster, rc, set_orders(&roster, TUTTI_PATTERN_RING, nchannels, &orders));
    rc = set_orders(&roster, TUTTI_PATTERN_TREE, nchannels, &orders);

drop_roster:
    roster_fini(&roster);
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
