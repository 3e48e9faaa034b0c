/* SPDX-License-Identifier: Apache-2.0
 * Deals ports out to gpus, and joins paths to ways across the network. */
#include "topology/graph/ports.h"

#include "base/result.h"
#include "topology/graph/virtual.h"

#include <stdlib.h>

static const struct tutti_path *path_between(const struct tutti_ports *ports, uint32_t gpu,
                                             uint32_t net)
{
    return tutti_paths_between(ports->paths, tutti_graph_gpu(ports->paths->graph, gpu),
                               tutti_graph_net(ports->paths->graph, net));
}

static uint32_t host_of_gpu(const struct tutti_graph *graph, uint32_t gpu)
{
    return graph->nodes[tutti_graph_gpu(graph, gpu)].host;
}

static uint32_t host_of_net(const struct tutti_graph *graph, uint32_t net)
{
    return graph->nodes[tutti_graph_net(graph, net)].host;
}

/* ---- dealing --------------------------------------------------------------------------------- */

/* Returns true if a gpu may send by this port: a port of its host that is not virtual. */
static bool is_choice(const struct tutti_graph *graph, uint32_t gpu, uint32_t net)
{
    return host_of_net(graph, net) == host_of_gpu(graph, gpu) &&
           !tutti_net_is_virtual(graph, tutti_graph_net(graph, net));
}

/* Returns true if a path to a port is better than another one: by its class, then by its rate. */
static bool is_better(const struct tutti_path *path, const struct tutti_path *than)
{
    if (path->class != than->class)
        return path->class < than->class;
    return path->bytes_per_s > than->bytes_per_s;
}

/* Returns the best path from a gpu to a port of its host; NULL: there is none. */
static const struct tutti_path *best_path(const struct tutti_ports *ports, uint32_t gpu)
{
    const struct tutti_graph *graph = ports->paths->graph;
    const struct tutti_path *best = NULL;

    for (uint32_t net = 0; net < graph->count[TUTTI_NODE_NET]; net++) {
        const struct tutti_path *path = path_between(ports, gpu, net);

        if (is_choice(graph, gpu, net) && path->class < TUTTI_PATH_NET &&
            (best == NULL || is_better(path, best)))
            best = path;
    }
    return best;
}

/* Returns true if the port is one of the nearest to the gpu, whose best path is given. */
static bool is_nearest(const struct tutti_ports *ports, uint32_t gpu, uint32_t net,
                       const struct tutti_path *best)
{
    const struct tutti_graph *graph = ports->paths->graph;

    return is_choice(graph, gpu, net) &&
           !is_better(best, path_between(ports, gpu, net));
}

static void give(struct tutti_ports *ports, uint32_t gpu, uint32_t net, uint32_t *owner)
{
    owner[net] = gpu;
    ports->of_gpu[gpu] = tutti_graph_net(ports->paths->graph, net);
}

/* Gives a port to a gpu: the first of its nearest ports that has no owner. `owner` has the gpu of
 * each port, TUTTI_NO_NODE for none. If all of its nearest ports have an owner, owners move to
 * other ports that are nearest to them, as long as this makes one free (Kuhn's augmenting paths,
 * 1955). Returns false if no port can be made free. `is_seen` marks the ports that were tried. */
static bool find_free(struct tutti_ports *ports, uint32_t gpu, uint32_t *owner, bool *is_seen)
{
    uint32_t nnets = ports->paths->graph->count[TUTTI_NODE_NET];
    const struct tutti_path *best = best_path(ports, gpu);

    for (uint32_t net = 0; best != NULL && net < nnets; net++)
        if (owner[net] == TUTTI_NO_NODE && is_nearest(ports, gpu, net, best)) {
            give(ports, gpu, net, owner);
            return true;
        }
    for (uint32_t net = 0; best != NULL && net < nnets; net++) {
        if (is_seen[net] || !is_nearest(ports, gpu, net, best))
            continue;
        is_seen[net] = true;
        if (find_free(ports, owner[net], owner, is_seen)) {
            give(ports, gpu, net, owner);
            return true;
        }
    }
    return false;
}

/* Deals one port to each gpu of those without a port. Returns true if some gpu got one. */
static bool deal_round(struct tutti_ports *ports, uint32_t *owner, bool *is_seen)
{
    const struct tutti_graph *graph = ports->paths->graph;
    uint32_t nnets = graph->count[TUTTI_NODE_NET];
    bool has_dealt = false;

    for (uint32_t net = 0; net < nnets; net++)
        owner[net] = TUTTI_NO_NODE;
    for (uint32_t gpu = 0; gpu < graph->count[TUTTI_NODE_GPU]; gpu++) {
        if (ports->of_gpu[gpu] != TUTTI_NO_NODE)
            continue;
        for (uint32_t net = 0; net < nnets; net++)
            is_seen[net] = false;
        has_dealt |= find_free(ports, gpu, owner, is_seen);
    }
    return has_dealt;
}

/* Numbers the ports of each host by their rails. If the description has no rails, ports in the same
 * position of their hosts are one rail, provided that all hosts with gpus have equally many. */
static void number_rails(struct tutti_ports *ports)
{
    const struct tutti_graph *graph = ports->paths->graph;
    uint32_t nnets = graph->count[TUTTI_NODE_NET], per_host = 0;

    for (uint32_t net = 0; net < nnets; net++) {
        uint32_t position = 0, device = graph->nodes[tutti_graph_net(graph, net)].device;

        while (position < net && host_of_net(graph, net - position - 1) == host_of_net(graph, net))
            position++;
        ports->rail[net] =
            tutti_device_number(graph->inventory, device, TUTTI_PROPERTY_RAIL, position);
        per_host = position + 1 > per_host ? position + 1 : per_host;
    }
    if (nnets != per_host * graph->nhosts)
        for (uint32_t net = 0; net < nnets; net++)
            ports->rail[net] = tutti_device_number(graph->inventory,
                                                   graph->nodes[tutti_graph_net(graph, net)].device,
                                                   TUTTI_PROPERTY_RAIL, -1);
}

int tutti_ports_deal(const struct tutti_paths *paths, struct tutti_ports **ret_ports)
{
    uint32_t ngpus = paths->graph->count[TUTTI_NODE_GPU];
    uint32_t nnets = paths->graph->count[TUTTI_NODE_NET];
    struct tutti_ports *ports = calloc(1, sizeof *ports);
    uint32_t *owner = calloc(nnets + 1, sizeof *owner);
    bool *is_seen = calloc(nnets + 1, sizeof *is_seen);
    int rc = TUTTI_OK;

    if (ports != NULL) {
        ports->paths = paths;
        ports->of_gpu = calloc(ngpus + 1, sizeof *ports->of_gpu);
        ports->rail = calloc(nnets + 1, sizeof *ports->rail);
    }
    if (ports == NULL || owner == NULL || is_seen == NULL || ports->of_gpu == NULL ||
        ports->rail == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the ports of %u gpus", ngpus);
        tutti_ports_destroy(ports);
    } else {
        for (uint32_t gpu = 0; gpu < ngpus; gpu++)
            ports->of_gpu[gpu] = TUTTI_NO_NODE;
        while (deal_round(ports, owner, is_seen))
            ;
        number_rails(ports);
        *ret_ports = ports;
    }
    free(owner);
    free(is_seen);
    return rc;
}

void tutti_ports_destroy(struct tutti_ports *ports)
{
    if (ports == NULL)
        return;
    free(ports->of_gpu);
    free(ports->rail);
    free(ports);
}

/* ---- ways ------------------------------------------------------------------------------------ */

static int64_t rail_of(const struct tutti_ports *ports, uint32_t node)
{
    return ports->rail[node - tutti_graph_net(ports->paths->graph, 0)];
}

/* Returns the port by which a gpu sends to a port of another host. It is the port of the same rail,
 * if the gpu reaches that port over NVLinks, or as well as its own port. Otherwise it is the gpu's
 * own port. */
static uint32_t sending_port(const struct tutti_ports *ports, uint32_t gpu, uint32_t target)
{
    const struct tutti_graph *graph = ports->paths->graph;
    uint32_t own = ports->of_gpu[gpu], from = tutti_graph_gpu(graph, gpu);
    int64_t rail = rail_of(ports, target);
    enum tutti_path_class worst = tutti_paths_between(ports->paths, from, own)->class;

    if (worst < TUTTI_PATH_PXN)
        worst = TUTTI_PATH_PXN;
    if (rail < 0 || rail == rail_of(ports, own))
        return own;
    for (uint32_t net = 0; net < graph->count[TUTTI_NODE_NET]; net++)
        if (host_of_net(graph, net) == host_of_gpu(graph, gpu) && ports->rail[net] == rail &&
            path_between(ports, gpu, net)->class <= worst)
            return tutti_graph_net(graph, net);
    return own;
}

void tutti_ports_way_through(const struct tutti_paths *paths, uint32_t from, uint32_t out,
                             uint32_t in, uint32_t to,
                             const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    ret_parts[0] = tutti_paths_between(paths, tutti_graph_gpu(paths->graph, from), out);
    ret_parts[1] = tutti_paths_between(paths, out, in);
    ret_parts[2] = tutti_paths_between(paths, in, tutti_graph_gpu(paths->graph, to));
}

uint32_t tutti_ports_way(const struct tutti_ports *ports, uint32_t from, uint32_t to,
                         const struct tutti_path *ret_parts[TUTTI_PORTS_PARTS])
{
    const struct tutti_graph *graph = ports->paths->graph;
    uint32_t sender = tutti_graph_gpu(graph, from), receiver = tutti_graph_gpu(graph, to);
    uint32_t in = ports->of_gpu[to];

    ret_parts[0] = tutti_paths_between(ports->paths, sender, receiver);
    if (ret_parts[0]->class != TUTTI_PATH_NET || in == TUTTI_NO_NODE ||
        ports->of_gpu[from] == TUTTI_NO_NODE)
        return 1;
    tutti_ports_way_through(ports->paths, from, sending_port(ports, from, in), in, to, ret_parts);
    return TUTTI_PORTS_PARTS;
}
