/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-to-all: inside the nodes first, so that messages between nodes are fewer and
 * larger.
 *
 * A block that leaves its node first goes to a rank of the same node, its carrier. Each node has
 * one carrier for each destination rank. The carrier collects the blocks of all ranks of its node
 * for this destination, and sends them straight to it. If the ranks of the node are consecutive,
 * these blocks are one message. Blocks for the sender's own node go straight to their destinations.
 *
 * Each destination has a home part (tutti_nodes_pick_part): the part that it serves, or one of them
 * if it serves several (nodes.h). Its carrier in a node is the rank that serves this part there. If
 * all nodes have the same size, the carrier is the rank with the same index in its node.
 *
 *   nodes 0 1 | 2 3 | 4 5; "0>2" is the block from rank 0 to rank 2
 *
 *   rank 0 carries for ranks 2 and 4      rank 1 carries for ranks 3 and 5
 *   shift 1: rank 0 collects              0>2, and 1>2 from rank 1
 *            rank 0 sends to rank 2       0>2 1>2
 *            rank 0 receives from rank 4  4>0 5>0
 *   shift 2: rank 0 collects              0>4, and 1>4 from rank 1
 *            rank 0 sends to rank 4       0>4 1>4
 *            rank 0 receives from rank 2  2>0 3>0
 *
 * With n nodes of g ranks, each rank sends n - 1 messages of g blocks between nodes instead of
 * (n - 1) g messages of one block. In exchange each of these blocks also crosses its sender's node.
 *
 * In shift i a node sends to the node i after it and receives from the node i before it. So no rank
 * is the target of all others at once. A message goes out as soon as it is complete, while the next
 * ones are collected. Between nodes `window` shifts are in flight at a time, as in spread_out.c.
 *
 * Collected blocks are kept in SCRATCH. A carrier numbers its destinations in the order of the
 * shifts; for each number there is a row of blocks, one from each rank of the node.
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
    const uint32_t *members; /* ranks of this node, ascending; borrowed from `nodes` */
    uint32_t size, index;    /* ranks of this node, and the index of this rank among them */
};

/* A rank of a node, by its index among the ranks of the node. */
static uint32_t member_of(const struct tutti_nodes *nodes, uint32_t node, uint32_t index)
{
    return tutti_homes_item(&nodes->ranks, node, index);
}

/* Consecutive members of a node, by their indices: first .. end - 1. */
struct member_range {
    uint32_t first, end;
};

static uint32_t count_members(struct member_range range)
{
    return range.end - range.first;
}

/* Return the members of another node for which `carrier` carries: those whose home part `carrier`
 * serves. */
static struct member_range destinations_of(const struct tutti_nodes *nodes, uint32_t carrier,
                                           uint32_t node)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, carrier);
    uint32_t size = tutti_homes_size(&nodes->ranks, node);
    /* The members that share at least one part with `carrier`. */
    struct member_range members = {
        .first = tutti_nodes_share_member(nodes->nparts, size, parts.first),
        .end = tutti_nodes_share_member(nodes->nparts, size, parts.end - 1) + 1};
    uint32_t home_part;

    /* The first and the last of them may have their home part at another carrier. */
    home_part = tutti_nodes_pick_part(nodes, member_of(nodes, node, members.first));
    if (home_part < parts.first)
        members.first++;
    if (members.first == members.end)
        return members;
    home_part = tutti_nodes_pick_part(nodes, member_of(nodes, node, members.end - 1));
    if (home_part >= parts.end)
        members.end--;
    return members;
}

/* ---- inside the node ------------------------------------------------------------------------- */

/* Exchange the blocks between ranks of this node. */
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

/* Return the memory for the block from a member of this node to destination number `number` of this
 * carrier. */
static struct tutti_span collected_block(const struct exchange *exchange, uint32_t number,
                                         uint32_t member)
{
    return tutti_span(TUTTI_BUF_SCRATCH, number * exchange->size + member, 1);
}

/* Pass the blocks for `node` to their carriers in this node. The destinations there for which this
 * rank carries have the numbers from `first_number` on. */
static int collect_for(struct exchange *exchange, uint32_t node, uint32_t first_number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    struct member_range ours = destinations_of(nodes, nodes->me, node);

    for (uint32_t member = ours.first; member < ours.end; member++) {
        uint32_t number = first_number + member - ours.first;

        TUTTI_TRY(tutti_build_copy(exchange->build,
                                   tutti_span(TUTTI_BUF_INPUT, member_of(nodes, node, member), 1),
                                   collected_block(exchange, number, exchange->index)));
    }
    for (uint32_t i = 1; i < exchange->size; i++) {
        uint32_t carrier = exchange->members[tutti_rank_after(exchange->index, i, exchange->size)];
        uint32_t source = tutti_rank_before(exchange->index, i, exchange->size);
        struct member_range theirs = destinations_of(nodes, carrier, node);

        for (uint32_t member = theirs.first; member < theirs.end; member++)
            TUTTI_TRY(
                tutti_build_send(exchange->build, carrier,
                                 tutti_span(TUTTI_BUF_INPUT, member_of(nodes, node, member), 1)));
        for (uint32_t member = ours.first; member < ours.end; member++) {
            uint32_t number = first_number + member - ours.first;

            TUTTI_TRY(tutti_build_recv(exchange->build, exchange->members[source],
                                       collected_block(exchange, number, source)));
        }
    }
    return TUTTI_OK;
}

/* ---- between nodes --------------------------------------------------------------------------- */

/* Return the length of the run of consecutive ranks that begins with this member of a node. The
 * blocks from such a run are contiguous in OUTPUT, so one message can have them. Both ends of a
 * message cut it into the same runs. */
static uint32_t run_of(const struct tutti_nodes *nodes, uint32_t node, uint32_t member)
{
    uint32_t size = tutti_homes_size(&nodes->ranks, node), run = 1;

    while (member + run < size &&
           member_of(nodes, node, member + run) == member_of(nodes, node, member) + run)
        run++;
    return run;
}

/* Send the blocks that this rank has collected for a rank of another node, which is destination
 * number `number`. A rank that is alone in its node sends its block from INPUT. */
static int send_collected(struct exchange *exchange, uint32_t to, uint32_t number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;

    if (exchange->size == 1)
        return tutti_build_send(exchange->build, to, tutti_span(TUTTI_BUF_INPUT, to, 1));
    for (uint32_t member = 0, run; member < exchange->size; member += run) {
        struct tutti_span blocks = collected_block(exchange, number, member);

        run = run_of(nodes, nodes->node, member);
        blocks.count = run;
        TUTTI_TRY(tutti_build_send(exchange->build, to, blocks));
    }
    return TUTTI_OK;
}

/* Receive the blocks of all ranks of another node, from the rank there that carries for this
 * rank. */
static int recv_collected(struct exchange *exchange, uint32_t node)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t home_part = tutti_nodes_pick_part(nodes, nodes->me);
    uint32_t carrier = tutti_nodes_rank_serving(nodes, node, home_part);

    for (uint32_t member = 0, run; member < tutti_homes_size(&nodes->ranks, node); member += run) {
        uint32_t first_source = member_of(nodes, node, member);

        run = run_of(nodes, node, member);
        TUTTI_TRY(tutti_build_recv(exchange->build, carrier,
                                   tutti_span(TUTTI_BUF_OUTPUT, first_source, run)));
    }
    return TUTTI_OK;
}

/* Emit one shift. *number is the number of the first destination of this shift; the function sets
 * it to that of the next shift. */
static int emit_shift(struct exchange *exchange, uint32_t shift, uint32_t *number)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t nnodes = nodes->ranks.count;
    uint32_t to = tutti_rank_after(nodes->node, shift, nnodes);
    uint32_t from = tutti_rank_before(nodes->node, shift, nnodes);
    struct member_range ours = destinations_of(nodes, nodes->me, to);
    bool is_bounded = exchange->window < nnodes - 1;

    if (exchange->size > 1)
        TUTTI_TRY(collect_for(exchange, to, *number));
    /* In a queue each send waits for the send before it, and each receive likewise (build.h). With
     * `window` queues, a shift waits for the one `window` shifts earlier. Queue 0 is none. */
    exchange->build->queue = (uint16_t)(is_bounded ? 1 + (shift - 1) % exchange->window : 0);
    for (uint32_t member = ours.first; member < ours.end; member++)
        TUTTI_TRY(send_collected(exchange, member_of(nodes, to, member), (*number)++));
    TUTTI_TRY(recv_collected(exchange, from));
    exchange->build->queue = 0;
    return TUTTI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Return the number of ranks of other nodes for which this rank carries. */
static uint32_t count_destinations(const struct exchange *exchange)
{
    const struct tutti_nodes *nodes = &exchange->nodes;
    uint32_t count = 0;

    for (uint32_t node = 0; node < nodes->ranks.count; node++)
        if (node != nodes->node)
            count += count_members(destinations_of(nodes, nodes->me, node));
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

/* ---- cost ------------------------------------------------------------------------------------ */

/* Messages to other nodes, and the blocks in them, on the longest path. */
struct traffic {
    double rounds, messages, blocks;
};

/* Add a share of the traffic to the cost of a level. Messages that are not rounds are `posted`
 * (cost.h). */
static void add_traffic(struct tutti_cost *cost, enum tutti_level level, double share,
                        struct traffic traffic, double block_bytes)
{
    cost->level[level].rounds += share * traffic.rounds;
    cost->level[level].posted += share * (traffic.messages - traffic.rounds);
    cost->level[level].bytes += share * traffic.blocks * block_bytes;
}

/* A rank of the smallest node carries the most messages; a rank of the largest node collects the
 * most blocks. */
static void cost_alltoall(const struct tutti_shape *shape, double block_bytes,
                          struct tutti_cost *ret_cost)
{
    uint32_t window = shape->options.value[TUTTI_WINDOW], nnodes;
    double ranks = shape->nranks, least, most; /* ranks of all nodes, the smallest, the largest */
    double near; /* the share of the other nodes that are in this rank's group */
    struct traffic traffic;
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    nnodes = nodes.ranks.count;
    least = nodes.ranks.least;
    most = nodes.ranks.most;
    near = nodes.nseats > 1 ? (nodes.nseats - 1.0) / (nnodes - 1) : 0;
    traffic.messages = ceil((ranks - least) / least);
    traffic.rounds = ceil(traffic.messages / window);
    traffic.blocks = ranks - least;

    *ret_cost = (struct tutti_cost){.segments = nnodes > 1 ? nnodes - 1 : 1};
    add_traffic(ret_cost, tutti_level_of_shape(shape), 1 - near, traffic, block_bytes);
    add_traffic(ret_cost, TUTTI_LEVEL_GROUP, near, traffic, block_bytes);
    if (most > 1) {
        double size = fmax(least, 2); /* ranks of the smallest node that collects blocks */

        ret_cost->level[TUTTI_LEVEL_NODE].rounds += 1;
        ret_cost->level[TUTTI_LEVEL_NODE].posted += nnodes * (most - 1) - 1;
        ret_cost->level[TUTTI_LEVEL_NODE].bytes += (ranks - ranks / most) * block_bytes;
        /* A carrier copies its own block for each of its destinations. */
        ret_cost->copied = (ranks - size) / size * block_bytes;
    }
    ret_cost->copied += block_bytes; /* the block of a rank for itself */
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
