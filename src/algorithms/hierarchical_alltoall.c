/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-to-all: inside the nodes first, so that messages between nodes are fewer and
 * larger.
 *
 *   0 1 | 2 3 | 4 5, rank 0:   collects   0>2 1>2, for rank 2     what both ranks of its node have
 *                                         0>4 1>4, for rank 4     for those with its own part
 *                              sends      0>2 1>2 to 2, then 0>4 1>4 to 4
 *                              receives   4>0 5>0 from 4, then 2>0 3>0 from 2
 *
 * Blocks for a rank of another node are carried by the rank of the sender's node that serves that
 * rank's part (its home part, if it has several: nodes.h). A message between nodes has the blocks
 * of all ranks of the sender's node and goes straight to the destination rank. With n nodes of g
 * ranks, each rank sends n - 1 messages of g blocks instead of (n - 1) g messages. In exchange each
 * block crosses its sender's node once more. Blocks for the sender's own node go straight.
 *
 * Collected blocks are kept in SCRATCH, by destination and then by source. In shift i a node sends
 * to the node i after it and receives from the node i before it. So no rank is the target of all
 * others at once. A message goes out as soon as it is complete, while the next ones are collected.
 * Between nodes `window` shifts are in flight at a time, as in spread_out.c.
 *
 * Source: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020, for the rails.
 */
#include "algorithms/algorithm.h"
#include "algorithms/nodes.h"
#include "algorithms/ranks.h"

struct exchange {
    struct tutti_nodes nodes;
    struct tutti_build *build;
    uint32_t window;         /* shifts in flight at a time */
    const uint32_t *members; /* ranks of this node */
    uint32_t size, index;    /* ranks of this node, and the index of this rank among them */
};

/* A rank of a node, by its index among them. */
static uint32_t member_of(const struct tutti_nodes *nodes, uint32_t node, uint32_t member)
{
    return tutti_homes_item(&nodes->ranks, node, member);
}

/* The members of another node whose blocks `carrier` carries: those whose home part it serves. They
 * are consecutive. */
static struct tutti_nodes_parts carried_by(const struct tutti_nodes *nodes, uint32_t carrier,
                                           uint32_t node)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, carrier);
    uint32_t size = tutti_homes_size(&nodes->ranks, node);
    struct tutti_nodes_parts served = {
        tutti_nodes_share_member(nodes->nparts, size, parts.first),
        tutti_nodes_share_member(nodes->nparts, size, parts.end - 1) + 1};

    /* The home part of the first and the last may be a part that `carrier` does not serve. */
    served.first +=
        tutti_nodes_pick_part(nodes, member_of(nodes, node, served.first)) < parts.first;
    if (served.first < served.end)
        served.end -=
            tutti_nodes_pick_part(nodes, member_of(nodes, node, served.end - 1)) >= parts.end;
    return served;
}

/* ---- inside the node ------------------------------------------------------------------------- */

static int exchange_in_node(struct exchange *exchange)
{
    for (uint32_t i = 1; i < exchange->size; i++) {
        uint32_t to = exchange->members[tutti_rank_after(exchange->index, i, exchange->size)];
        uint32_t from = exchange->members[tutti_rank_before(exchange->index, i, exchange->size)];

        TUTTI_TRY(tutti_build_send(exchange->build, to, tutti_span(TUTTI_BUF_INPUT, to, 1)));
        TUTTI_TRY(tutti_build_recv(exchange->build, from, tutti_span(TUTTI_BUF_OUTPUT, from, 1)));
    }
    return TUTTI_OK;
}

/* Where the block that a member of this node has for destination `number` is collected. */
static struct tutti_span collected(const struct exchange *exchange, uint32_t number,
                                   uint32_t member)
{
    return tutti_span(TUTTI_BUF_SCRATCH, number * exchange->size + member, 1);
}

/* The ranks of this node pass their blocks for `node` to the carriers. This rank numbers the
 * destinations that it carries for, from `number` on. */
static int collect_for(struct exchange *exchange, uint32_t node, uint32_t number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    struct tutti_nodes_parts ours = carried_by(nodes, nodes->me, node);

    for (uint32_t at = ours.first; at < ours.end; at++)
        TUTTI_TRY(tutti_build_copy(exchange->build,
                                   tutti_span(TUTTI_BUF_INPUT, member_of(nodes, node, at), 1),
                                   collected(exchange, number + at - ours.first, exchange->index)));
    for (uint32_t i = 1; i < exchange->size; i++) {
        uint32_t carrier = exchange->members[tutti_rank_after(exchange->index, i, exchange->size)];
        uint32_t source = tutti_rank_before(exchange->index, i, exchange->size);
        struct tutti_nodes_parts theirs = carried_by(nodes, carrier, node);

        for (uint32_t at = theirs.first; at < theirs.end; at++)
            TUTTI_TRY(tutti_build_send(
                exchange->build, carrier,
                tutti_span(TUTTI_BUF_INPUT, member_of(nodes, node, at), 1)));
        for (uint32_t at = ours.first; at < ours.end; at++)
            TUTTI_TRY(tutti_build_recv(exchange->build, exchange->members[source],
                                       collected(exchange, number + at - ours.first, source)));
    }
    return TUTTI_OK;
}

/* ---- between nodes --------------------------------------------------------------------------- */

/* Length of the run of consecutive ranks that begins with this member of a node. A run is one
 * message, because its blocks are contiguous in OUTPUT. */
static uint32_t run_of(const struct tutti_nodes *nodes, uint32_t node, uint32_t member)
{
    uint32_t size = tutti_homes_size(&nodes->ranks, node), run = 1;

    while (member + run < size &&
           member_of(nodes, node, member + run) == member_of(nodes, node, member) + run)
        run++;
    return run;
}

/* Send the blocks that this rank has collected for a rank of another node. */
static int send_collected(struct exchange *exchange, uint32_t to, uint32_t number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;

    if (exchange->size == 1)
        return tutti_build_send(exchange->build, to, tutti_span(TUTTI_BUF_INPUT, to, 1));
    for (uint32_t member = 0, run; member < exchange->size; member += run) {
        struct tutti_span span = collected(exchange, number, member);

        run = run_of(nodes, nodes->node, member);
        span.count = run;
        TUTTI_TRY(tutti_build_send(exchange->build, to, span));
    }
    return TUTTI_OK;
}

static int recv_collected(struct exchange *exchange, uint32_t node)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t carrier =
        tutti_nodes_rank_serving(nodes, node, tutti_nodes_pick_part(nodes, nodes->me));

    for (uint32_t member = 0, run; member < tutti_homes_size(&nodes->ranks, node); member += run) {
        run = run_of(nodes, node, member);
        TUTTI_TRY(tutti_build_recv(
            exchange->build, carrier,
            tutti_span(TUTTI_BUF_OUTPUT, member_of(nodes, node, member), run)));
    }
    return TUTTI_OK;
}

/* Emit one shift. *number is the number of destinations in the shifts before; it grows by those of
 * this shift. */
static int emit_shift(struct exchange *exchange, uint32_t shift, uint32_t *number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t nnodes = nodes->ranks.count;
    uint32_t to = tutti_rank_after(nodes->node, shift, nnodes);
    struct tutti_nodes_parts ours = carried_by(nodes, nodes->me, to);
    bool is_bounded = exchange->window < nnodes - 1;

    if (exchange->size > 1)
        TUTTI_TRY(collect_for(exchange, to, *number));
    exchange->build->queue = (uint16_t)(is_bounded ? 1 + (shift - 1) % exchange->window : 0);
    for (uint32_t at = ours.first; at < ours.end; at++)
        TUTTI_TRY(send_collected(exchange, member_of(nodes, to, at), (*number)++));
    TUTTI_TRY(recv_collected(exchange, tutti_rank_before(nodes->node, shift, nnodes)));
    exchange->build->queue = 0;
    return TUTTI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static uint32_t count_destinations(const struct exchange *exchange)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t count = 0;

    for (uint32_t node = 0; node < nodes->ranks.count; node++) {
        struct tutti_nodes_parts ours = carried_by(nodes, nodes->me, node);

        count += node != nodes->node ? ours.end - ours.first : 0;
    }
    return count;
}

static int emit_all(struct exchange *exchange)
{
    uint32_t me = exchange->nodes.me, number = 0;

    if (exchange->size > 1)
        tutti_build_scratch(exchange->build, TUTTI_SCRATCH_VECTOR,
                            count_destinations(exchange) * exchange->size);
    TUTTI_TRY(tutti_build_copy(exchange->build, tutti_span(TUTTI_BUF_INPUT, me, 1),
                               tutti_span(TUTTI_BUF_OUTPUT, me, 1)));
    TUTTI_TRY(exchange_in_node(exchange));
    for (uint32_t shift = 1; shift < exchange->nodes.ranks.count; shift++)
        TUTTI_TRY(emit_shift(exchange, shift, &number));
    return TUTTI_OK;
}

static int emit_alltoall(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct exchange exchange = {.build = build, .window = shape->options.value[TUTTI_WINDOW]};
    const struct tutti_nodes *nodes = &exchange.nodes;
    int rc;

    TUTTI_TRY(tutti_nodes_init(shape, &exchange.nodes));
    exchange.members = &nodes->ranks.items[nodes->ranks.first[nodes->node]];
    exchange.size = tutti_homes_size(&nodes->ranks, nodes->node);
    exchange.index = nodes->ranks.index[nodes->me];
    rc = emit_all(&exchange);
    tutti_nodes_fini(&exchange.nodes);
    return rc;
}

/* A rank of the smallest node carries the most messages; a rank of the largest node collects the
 * most blocks. */
static void cost_alltoall(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    uint32_t window = shape->options.value[TUTTI_WINDOW], nnodes;
    double ranks = shape->nranks, least, most, messages, rounds, near;
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    nnodes = nodes.ranks.count;
    least = nodes.ranks.least;
    most = nodes.ranks.most;
    messages = ceil((ranks - least) / least);
    rounds = ceil(messages / window);
    /* The share of the other nodes that are in this rank's group. */
    near = nodes.nseats > 1 ? (nodes.nseats - 1.0) / (nnodes - 1) : 0;

    *ret_cost = (struct tutti_cost){.segments = nnodes > 1 ? nnodes - 1 : 1};
    /* The messages to nodes of other groups, then those to the nodes of this group. */
    for (int i = 0; i < 2; i++) {
        enum tutti_level level = i == 0 ? tutti_level_of_shape(shape) : TUTTI_LEVEL_GROUP;
        double share = i == 0 ? 1 - near : near;

        ret_cost->level[level].rounds += share * rounds;
        ret_cost->level[level].posted += share * (messages - rounds);
        ret_cost->level[level].bytes += share * (ranks - least) * block_bytes;
    }
    if (most > 1) {
        ret_cost->level[TUTTI_LEVEL_NODE].rounds += 1;
        ret_cost->level[TUTTI_LEVEL_NODE].posted += nnodes * (most - 1) - 1;
        ret_cost->level[TUTTI_LEVEL_NODE].bytes += (ranks - ranks / most) * block_bytes;
        ret_cost->copied = (ranks - fmax(least, 2)) / fmax(least, 2) * block_bytes;
    }
    ret_cost->copied += block_bytes;
    tutti_nodes_fini(&nodes);
}

const struct tutti_algorithm tutti_hierarchical_alltoall = {
    .name = "hierarchical",
    .collective = TUTTI_ALLTOALL,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = {[TUTTI_WINDOW] = {.least = 1, .most = 1024, .usual = 16}},
    .emit = emit_alltoall,
    .cost = cost_alltoall,
};
