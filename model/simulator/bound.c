/* SPDX-License-Identifier: Apache-2.0
 * Computes lower bounds: no schedule takes less time on this machine.
 *
 * Latency. A message holds its port for the time `overhead`. So with one port per rank the number
 * of informed ranks at most doubles in this time; with k ports it grows at most (k+1)-fold. The
 * last rank is informed `latency` after that. Between nodes (groups) a node (group) has as many
 * ports as its ranks have together. Within a node a signal reaches all ranks at once.
 *
 * Bandwidth. The bytes that must cross the border of a set of ranks take as long as its links need.
 * The sets are each rank, each node, each group, and half of a torus. In a scan the vector crosses
 * each border once, because rank 0 is on one side of it. An all-reduce without help from the
 * network moves the vector 2(N - 1) times over the borders of N parts. Where all ranks share
 * memory, a byte passes from one rank to another through a single port: either the sender's way out
 * or the receiver's way in. Then only all ports together give a bound. Where pairs have paths, the
 * links of these count in place of ports, with a cut for each rank, node and group (bound_links.c).
 * A sender's overhead then occupies no port, so that one rank can inform all others at once. Its
 * part counts as having infinitely many ports.
 *
 * The sum of both bounds, sum_s, holds only for schedules of synchronous rounds; see simulator.h.
 *
 * Sources: Bar-Noy and Kipnis, "Designing broadcasting algorithms in the postal model", 1994;
 * Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.
 */
#include "simulator/simulator.h"

#include "base/result.h"
#include "simulator/bound_links.h"
#include "simulator/network.h"

#include <math.h>
#include <stdlib.h>

/* A set of ranks, such as a node. */
struct part {
    double ranks, bytes_per_s; /* its number of ranks; the rate over its border in one direction */
    double ports;              /* its number of network ports; infinite if overhead holds no port */
    bool has_root;
};

/* The call whose bounds are computed, and the bounds so far. */
struct bounds {
    const struct tutti_sim_network *network;
    const struct tutti_placement *places;
    enum tutti_collective collective;
    uint32_t root;
    double block_bytes;
    struct tutti_sim_bound bound;     /* the largest bounds so far */
    struct tutti_sim_border *borders; /* scratch for the borders of any partition */
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the part of a rank. If `rank_part` is NULL, each rank is a part. */
static uint32_t part_of(const uint32_t *rank_part, uint32_t rank)
{
    return rank_part ? rank_part[rank] : rank;
}

/* ---- bandwidth --------------------------------------------------------------------- */

/* Returns the bytes that must leave a part, or enter it, whichever is more. A collective whose
 * input is one block per rank deals blocks out. One whose output is one block per rank collects
 * them. */
static double bytes_over_border(const struct bounds *bounds, const struct part *part)
{
    double inside = part->ranks, outside = bounds->network->nranks - inside, blocks = 1;
    bool deals = tutti_input_is_per_rank(bounds->collective);
    bool collects = tutti_output_is_per_rank(bounds->collective);

    if (outside == 0 || !tutti_collective_has_data(bounds->collective))
        return 0;
    if (deals && collects)
        blocks = inside * outside;
    else if ((deals || collects) && tutti_collective_has_root(bounds->collective))
        blocks = part->has_root ? outside : inside;
    else if (deals || collects)
        blocks = larger(inside, outside);
    return blocks * bounds->block_bytes;
}

/* Raises the bound from bandwidth to `seconds` if it is lower. */
static void raise_bandwidth(struct bounds *bounds, double seconds)
{
    bounds->bound.bandwidth_s = larger(bounds->bound.bandwidth_s, seconds);
}

/* Applies the bounds of a partition: that of each part's border and, for an all-reduce, that of all
 * borders together. */
static void cut(struct bounds *bounds, const struct part *parts, uint32_t nparts)
{
    double total_rate = 0;

    if (nparts < 2)
        return;
    for (uint32_t i = 0; i < nparts; i++) {
        total_rate += parts[i].bytes_per_s;
        raise_bandwidth(bounds, bytes_over_border(bounds, &parts[i]) / parts[i].bytes_per_s);
    }
    if (tutti_collective_gives_one_result(bounds->collective))
        raise_bandwidth(bounds, 2.0 * (nparts - 1) * bounds->block_bytes / total_rate);
}

/* Applies the bound for ranks that share memory. A byte between two ranks passes through a port of
 * only one of them, in or out. So all ports together move at least the bytes of all ranks but the
 * one with the most traffic. An all-reduce moves the vector 2(N - 1) times, each time through one
 * port. */
static void cut_shared(struct bounds *bounds, const struct part *parts, uint32_t nparts)
{
    double total_rate = 0, bytes = 0, most = 0;

    for (uint32_t i = 0; i < nparts; i++) {
        total_rate += 2 * parts[i].bytes_per_s;
        bytes += bytes_over_border(bounds, &parts[i]);
        most = larger(most, bytes_over_border(bounds, &parts[i]));
    }
    if (tutti_collective_gives_one_result(bounds->collective))
        raise_bandwidth(bounds, 2.0 * (nparts - 1) * bounds->block_bytes / total_rate);
    raise_bandwidth(bounds, (bytes - most) / total_rate);
}

/* True if all ranks are on one node and share its memory. */
static bool is_one_memory(const struct tutti_sim_network *network)
{
    return network->memories != TUTTI_SIM_NONE && network->nics == TUTTI_SIM_NONE &&
           network->torus == TUTTI_SIM_NONE;
}

/* Applies the bound of each dimension of a torus, cut into two halves. Each rank must be a node of
 * its own: ranks of one node also exchange data through their ports, which the cut does not
 * count. */
static void cut_torus(struct bounds *bounds)
{
    double speed = bounds->network->machine->level[TUTTI_LEVEL_TOP].bytes_per_s;
    double nranks = bounds->network->nranks;

    for (uint32_t d = 0; d < bounds->places->ndims; d++) {
        uint32_t size = bounds->places->dims[d], half = size / 2;
        uint32_t ways = size > 2 ? 2 : 1; /* a ring of two is cut at one link, not at two */
        double across = nranks / size * speed * ways;
        struct part below = {.ranks = nranks / size * half, .bytes_per_s = across};
        uint32_t stride = 1;

        if (half == 0)
            continue;
        for (uint32_t e = 0; e < d; e++)
            stride *= bounds->places->dims[e];
        below.has_root = bounds->root / stride % size < half;
        raise_bandwidth(bounds, bytes_over_border(bounds, &below) / across);
    }
}

/* True if any output depends on the input of `rank`. It is enough to look at the outputs of the
 * root and of the last rank: if any output depends on the input, one of these two does. */
static bool is_needed(const struct bounds *bounds, uint32_t rank)
{
    uint32_t last = bounds->network->nranks - 1;

    return tutti_collective_is_source(bounds->collective, rank, bounds->root, bounds->root) ||
           tutti_collective_is_source(bounds->collective, rank, last, bounds->root);
}

/* On a single node, all inputs that any output depends on must be read once, and all outputs must
 * be written once. The bandwidth of the memory limits both together. */
static void bound_memory(struct bounds *bounds)
{
    double speed = bounds->network->machine->memory_bytes_per_s;
    double blocks = 0; /* number of blocks that are read or written */
    uint32_t nranks = bounds->network->nranks;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (tutti_collective_has_input(bounds->collective, rank, bounds->root) &&
            is_needed(bounds, rank))
            blocks += tutti_input_blocks(bounds->collective, nranks);
        if (tutti_collective_has_output(bounds->collective, rank, bounds->root))
            blocks += tutti_output_blocks(bounds->collective, nranks);
    }
    raise_bandwidth(bounds, blocks * bounds->block_bytes / speed);
}

/* ---- latency ------------------------------------------------------------------------ */

/* Raises the bound from latency to `seconds` if it is lower. */
static void raise_latency(struct bounds *bounds, double seconds)
{
    bounds->bound.latency_s = larger(bounds->bound.latency_s, seconds);
}

/* Applies the bound that all parts must be informed. Each informed part can tell `ports` other
 * parts per overhead. */
static void spread(struct bounds *bounds, uint32_t nparts, double ports, double overhead_s,
                   double latency_s)
{
    double seconds = latency_s;

    if (nparts < 2)
        return;
    for (double known = 1; known < nparts; known *= ports + 1)
        seconds += overhead_s;
    raise_latency(bounds, seconds);
}

/* Applies the bound that the farthest rank of a torus must be informed, hop by hop. */
static void spread_torus(struct bounds *bounds)
{
    const struct tutti_rate *rate = &bounds->network->machine->level[TUTTI_LEVEL_TOP];
    uint32_t hops = 0;

    for (uint32_t d = 0; d < bounds->places->ndims; d++)
        hops += bounds->places->dims[d] / 2;
    if (hops > 0)
        raise_latency(bounds, rate->overhead_s + hops * rate->latency_s);
}

/* ---- parts of the machine -------------------------------------------------------------- */

/* Fills in the parts from the ranks and their network ports. `rank_part` holds the part of each
 * rank. If it is NULL, each rank is a part. */
static void fill_parts(const struct bounds *bounds, const uint32_t *rank_part, double bytes_per_s,
                       struct part *parts, uint32_t nparts)
{
    const struct tutti_sim_network *network = bounds->network;

    for (uint32_t i = 0; i < nparts; i++)
        parts[i] = (struct part){.ranks = 0};
    for (uint32_t rank = 0; rank < network->nranks; rank++) {
        struct part *part = &parts[part_of(rank_part, rank)];

        part->ranks++;
        if (rank == bounds->root)
            part->has_root = true;
    }
    for (uint32_t nic = 0; nic < network->nnics; nic++) {
        struct part *part = &parts[part_of(rank_part, network->nic_rank[nic])];

        part->ports++;
        part->bytes_per_s += bytes_per_s;
    }
}

/* True if every pair has a path in both directions, so that nothing goes through ports. */
static bool all_have_paths(const uint64_t npaths[2], double pairs)
{
    return pairs > 0 && (double)npaths[0] == pairs && (double)npaths[1] == pairs;
}

/* Adds the rates of the links of paths to the parts. If paths bypass all ports of a part, the rates
 * of these ports do not count. Of the two directions the faster one counts, because
 * bytes_over_border does not say in which direction the bytes go. */
static int add_links(const struct bounds *bounds, const uint32_t *rank_part, struct part *parts,
                     uint32_t nparts)
{
    const struct tutti_sim_network *network = bounds->network;

    if (network->machine->links.npaths == 0)
        return TUTTI_OK;
    TUTTI_TRY(tutti_sim_borders(network->machine, rank_part, nparts, bounds->borders));
    for (uint32_t i = 0; i < nparts; i++) {
        const struct tutti_sim_border *border = &bounds->borders[i];
        struct part *part = &parts[i];

        if (all_have_paths(border->far, part->ranks * (network->nranks - part->ranks)))
            part->bytes_per_s = 0;
        part->bytes_per_s += larger(border->bytes_per_s[0], border->bytes_per_s[1]);
        if (border->far[0] > 0 || border->far[1] > 0)
            part->ports = INFINITY;
    }
    return TUTTI_OK;
}

/* Returns the largest number of ports of a part, at least 1. */
static double most_ports(const struct part *parts, uint32_t nparts)
{
    double most = 1;

    for (uint32_t i = 0; i < nparts; i++)
        most = larger(most, parts[i].ports);
    return most;
}

/* Returns the rate at which a rank can send to other nodes through its ports. */
static double rate_to_other_nodes(const struct bounds *bounds)
{
    const struct tutti_sim_network *network = bounds->network;
    double link_rate = network->machine->level[TUTTI_LEVEL_TOP].bytes_per_s, rate = 0;

    if (network->nics != TUTTI_SIM_NONE)
        return network->links[network->nics].nominal;
    for (uint32_t d = 0; d < bounds->places->ndims; d++) {
        uint32_t size = bounds->places->dims[d];

        rate += link_rate * (size > 2 ? 2 : size == 2 ? 1 : 0); /* neighbors in this dimension */
    }
    return rate;
}

/* Applies the bounds of the partition in which each rank is a part. */
static int bound_ranks(struct bounds *bounds, struct part *parts)
{
    const struct tutti_sim_network *network = bounds->network;
    const struct tutti_rate *within = &network->machine->level[TUTTI_LEVEL_NODE];
    double outer = rate_to_other_nodes(bounds);

    TUTTI_TRY(tutti_sim_borders(network->machine, NULL, network->nranks, bounds->borders));
    for (uint32_t rank = 0; rank < network->nranks; rank++) {
        uint32_t node = part_of(bounds->places->node, rank);
        uint32_t neighbors = network->node_size[node] - 1;
        const struct tutti_sim_border *border = &bounds->borders[rank];

        parts[rank] = (struct part){.ranks = 1, .has_root = rank == bounds->root};
        if (!all_have_paths(border->far, network->nranks - 1 - neighbors))
            parts[rank].bytes_per_s += outer;
        if (neighbors > 0 && !all_have_paths(border->near, neighbors))
            parts[rank].bytes_per_s += within->bytes_per_s;
        parts[rank].bytes_per_s += larger(border->bytes_per_s[0], border->bytes_per_s[1]);
        if (neighbors > 0) /* some neighbor must be informed, by a message or by a signal */
            raise_latency(bounds, smaller(within->overhead_s + within->latency_s,
                                          tutti_machine_signal_s(network->machine)));
    }
    if (is_one_memory(network))
        cut_shared(bounds, parts, network->nranks);
    else
        cut(bounds, parts, network->nranks);
    return TUTTI_OK;
}

/* Applies the bounds of the partition into nodes. */
static int bound_nodes(struct bounds *bounds, struct part *parts)
{
    const struct tutti_sim_network *network = bounds->network;
    const struct tutti_rate *level = network->machine->level;
    uint32_t nnodes = bounds->places->node ? bounds->places->nnodes : network->nranks;
    struct tutti_rate cheapest = level[TUTTI_LEVEL_TOP]; /* message between two nodes */

    if (network->nics == TUTTI_SIM_NONE)
        return TUTTI_OK;
    if (tutti_sim_has_level(network, TUTTI_LEVEL_GROUP)) {
        cheapest = level[TUTTI_LEVEL_GROUP];
        if (tutti_sim_has_level(network, TUTTI_LEVEL_TOP)) {
            cheapest.overhead_s = smaller(cheapest.overhead_s, level[TUTTI_LEVEL_TOP].overhead_s);
            cheapest.latency_s = smaller(cheapest.latency_s, level[TUTTI_LEVEL_TOP].latency_s);
        }
    }
    fill_parts(bounds, bounds->places->node, network->links[network->nics].nominal, parts, nnodes);
    TUTTI_TRY(add_links(bounds, bounds->places->node, parts, nnodes));
    cut(bounds, parts, nnodes);
    spread(bounds, nnodes, most_ports(parts, nnodes), cheapest.overhead_s, cheapest.latency_s);
    return TUTTI_OK;
}

/* Applies the bounds of the partition into groups of nodes. */
static int bound_groups(struct bounds *bounds, struct part *parts)
{
    const struct tutti_machine *machine = bounds->network->machine;
    const struct tutti_rate *top = &machine->level[TUTTI_LEVEL_TOP];
    uint32_t ngroups = bounds->places->ngroups;

    if (bounds->network->nics == TUTTI_SIM_NONE || bounds->places->group == NULL || ngroups < 2)
        return TUTTI_OK;
    fill_parts(bounds, bounds->places->group, top->bytes_per_s, parts, ngroups);
    for (uint32_t i = 0; i < ngroups; i++)
        if (machine->trunk_bytes_per_s > 0)
            parts[i].bytes_per_s = smaller(parts[i].bytes_per_s, machine->trunk_bytes_per_s);
    TUTTI_TRY(add_links(bounds, bounds->places->group, parts, ngroups));
    cut(bounds, parts, ngroups);
    spread(bounds, ngroups, most_ports(parts, ngroups), top->overhead_s, top->latency_s);
    return TUTTI_OK;
}

/* Applies all bounds. `parts` is scratch for any partition. */
static int bound_all(struct bounds *bounds, struct part *parts)
{
    const struct tutti_sim_network *network = bounds->network;
    bool is_torus = network->torus != TUTTI_SIM_NONE && network->machine->links.npaths == 0;

    TUTTI_TRY(bound_ranks(bounds, parts));
    TUTTI_TRY(bound_nodes(bounds, parts));
    TUTTI_TRY(bound_groups(bounds, parts));
    if (is_torus)
        spread_torus(bounds);
    if (is_torus && network->ports == TUTTI_SIM_NONE)
        cut_torus(bounds);
    if (is_one_memory(network))
        bound_memory(bounds);
    return TUTTI_OK;
}

/* A lower bound must assume the nearest pair: lower each level's latency to that of its nearest
 * path. */
static void take_nearest_latencies(struct tutti_machine *machine)
{
    for (uint32_t i = 0; i < machine->links.npaths; i++) {
        const struct tutti_machine_path *path = &machine->links.paths[i];
        struct tutti_rate *rate = &machine->level[tutti_machine_level(machine, path->from,
                                                                      path->to)];

        if (path->latency_s >= 0)
            rate->latency_s = smaller(rate->latency_s, path->latency_s);
    }
}

int tutti_sim_bound(const struct tutti_machine *machine, enum tutti_collective collective,
                    uint32_t root, double block_bytes, struct tutti_sim_bound *ret_bound)
{
    uint32_t nranks = machine->places.nranks;
    struct tutti_sim_network network;
    struct tutti_machine scaled;
    struct bounds bounds = {.network = &network, .places = &machine->places,
                            .collective = collective, .root = root, .block_bytes = block_bytes};
    struct part *parts;
    int rc = TUTTI_OK;

    tutti_machine_for_footprint(machine, tutti_machine_footprint(collective, nranks, block_bytes),
                                &scaled);
    /* Within a node schedules may use messages or loads, so assume the faster of the two. */
    scaled.level[TUTTI_LEVEL_NODE].bytes_per_s =
        larger(scaled.level[TUTTI_LEVEL_NODE].bytes_per_s, scaled.load_bytes_per_s);
    take_nearest_latencies(&scaled);
    TUTTI_TRY(tutti_sim_network_init(&network, &scaled, nranks));
    parts = calloc((size_t)nranks + 1, sizeof(*parts));
    bounds.borders = calloc((size_t)nranks + 1, sizeof(*bounds.borders));
    if (parts == NULL || bounds.borders == NULL)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for bounds of %u ranks", nranks);
    else if (nranks > 1)
        rc = bound_all(&bounds, parts);
    bounds.bound.sum_s = bounds.bound.latency_s + bounds.bound.bandwidth_s;
    free(parts);
    free(bounds.borders);
    tutti_sim_network_fini(&network);
    TUTTI_TRY(rc);
    *ret_bound = bounds.bound;
    return TUTTI_OK;
}
