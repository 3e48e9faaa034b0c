/* SPDX-License-Identifier: Apache-2.0
 * Groups of gpus and ports, and the order in which a gpu should use ports. */
#include "topology/graph/groups.h"

const char *tutti_grouping_name(enum tutti_grouping grouping)
{
    static const char *const names[TUTTI_GROUPINGS] = {
        "NVLink domain", "NUMA node", "host", "rail",
    };

    return names[grouping];
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Gives a label to the gpus that are one NVLink or one NVSwitch away, if their label is higher. */
static void spread(const struct tutti_graph *graph, uint32_t node, uint32_t label,
                   uint32_t *gpu_label, uint32_t depth)
{
    for (uint32_t i = 0; i < graph->nodes[node].nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[graph->nodes[node].first_link + i];
        enum tutti_node_kind kind = graph->nodes[link->to].kind;

        if (link->kind != TUTTI_LINK_NVLINK)
            continue;
        if (kind == TUTTI_NODE_NVSWITCH && depth == 0) {
            spread(graph, link->to, label, gpu_label, 1);
        } else if (kind == TUTTI_NODE_GPU &&
                   gpu_label[graph->nodes[link->to].number] > label) {
            gpu_label[graph->nodes[link->to].number] = label;
        }
    }
}

/* Each gpu's label falls to the lowest number in its domain. A label advances at least one gpu per
 * round, so ngpus rounds are enough. */
static void find_domains(const struct tutti_graph *graph, uint32_t *ret_key)
{
    uint32_t ngpus = graph->count[TUTTI_NODE_GPU];

    for (uint32_t i = 0; i < ngpus; i++)
        ret_key[i] = i;
    for (uint32_t round = 0; round < ngpus; round++)
        for (uint32_t i = 0; i < ngpus; i++)
            spread(graph, tutti_graph_gpu(graph, i), ret_key[i], ret_key, 0);
}

/* Without a known rail, the index of the port within its host. */
static uint32_t rail_of(const struct tutti_graph *graph, uint32_t net)
{
    const struct tutti_graph_node *node = &graph->nodes[tutti_graph_net(graph, net)];
    int64_t rail = tutti_device_number(graph->inventory, node->device, TUTTI_PROPERTY_RAIL, -1);
    uint32_t place = 0;

    if (rail >= 0)
        return (uint32_t)rail;
    while (place < net &&
           graph->nodes[tutti_graph_net(graph, net - place - 1)].host == node->host)
        place++;
    return place;
}

uint32_t tutti_groups_find(const struct tutti_graph *graph, enum tutti_grouping grouping,
                           uint32_t *ret_group)
{
    bool is_of_nets = grouping == TUTTI_GROUP_RAIL;
    uint32_t count = graph->count[is_of_nets ? TUTTI_NODE_NET : TUTTI_NODE_GPU], ngroups = 0;

    if (grouping == TUTTI_GROUP_NVLINK)
        find_domains(graph, ret_group);
    else
        for (uint32_t i = 0; i < count; i++) {
            const struct tutti_graph_node *node =
                &graph->nodes[is_of_nets ? tutti_graph_net(graph, i) : tutti_graph_gpu(graph, i)];

            ret_group[i] = is_of_nets                      ? rail_of(graph, i)
                           : grouping == TUTTI_GROUP_NUMA ? node->cpu
                                                           : node->host;
        }
    /* Replaces keys by numbers in two passes. The first goes backwards, so that the keys it still
     * compares are unchanged. */
    for (uint32_t i = count; i-- > 0;) {
        uint32_t first = 0;

        while (ret_group[first] != ret_group[i])
            first++;
        ret_group[i] = first;
    }
    for (uint32_t i = 0; i < count; i++)
        ret_group[i] = ret_group[i] == i ? ngroups++ : ret_group[ret_group[i]];
    return ngroups;
}

/* ---- a gpu's own ports ----------------------------------------------------------------------- */

static const struct tutti_path *path_to(const struct tutti_paths *paths, uint32_t gpu,
                                        uint32_t net)
{
    return tutti_paths_between(paths, tutti_graph_gpu(paths->graph, gpu),
                               tutti_graph_net(paths->graph, net));
}

static bool is_nearer(const struct tutti_path *a, const struct tutti_path *b)
{
    return a->class != b->class ? a->class < b->class : a->bytes_per_s > b->bytes_per_s;
}

static bool is_as_near(const struct tutti_path *a, const struct tutti_path *b)
{
    return !is_nearer(a, b) && !is_nearer(b, a);
}

/* The index of a gpu among those that are equally near to a net. */
static uint32_t place_at(const struct tutti_paths *paths, uint32_t gpu, uint32_t net)
{
    uint32_t place = 0;

    for (uint32_t other = 0; other < gpu; other++)
        place += is_as_near(path_to(paths, other, net), path_to(paths, gpu, net));
    return place;
}

uint32_t tutti_affinity_find(const struct tutti_paths *paths, uint32_t gpu, uint32_t *ret_net)
{
    const struct tutti_graph *graph = paths->graph;
    uint32_t nnets = graph->count[TUTTI_NODE_NET], count = 0;

    for (uint32_t net = 0; net < nnets; net++) {
        const struct tutti_path *path = path_to(paths, gpu, net);
        uint32_t at = count;

        if (path->class >= TUTTI_PATH_NET)
            continue;
        for (; at > 0 && is_nearer(path, path_to(paths, gpu, ret_net[at - 1])); at--)
            ret_net[at] = ret_net[at - 1];
        ret_net[at] = net;
        count++;
    }
    /* Rotates each run of equally near nets by the gpu's index. */
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        uint32_t turn;

        for (end = begin + 1; end < count && is_as_near(path_to(paths, gpu, ret_net[begin]),
                                                        path_to(paths, gpu, ret_net[end]));)
            end++;
        turn = place_at(paths, gpu, ret_net[begin]) % (end - begin);
        while (turn-- > 0) {
            uint32_t first = ret_net[begin];

            for (uint32_t i = begin; i + 1 < end; i++)
                ret_net[i] = ret_net[i + 1];
            ret_net[end - 1] = first;
        }
    }
    return count;
}
