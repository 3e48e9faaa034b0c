/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-gather: along the rails first, where each rank has a network port of its own,
 * then inside the nodes. The reduce-scatter is the same backwards: inside the nodes first.
 *
 *   nodes of 3, 1, 2 ranks          0 1 2 | 3 | 4 5          parts 0 1 2, a rail for each (nodes.h)
 *   rail 0: 0, 3, 4                 0 . . | . | 4 .          carries blocks 0 and 4
 *   rail 1: 1, 3, 4                 . 1 . | 3 | . .          blocks 1 and 3
 *   rail 2: 2, 3, 5                 . . 2 | . | . 5          blocks 2 and 5
 *   in the nodes                    rank 0 passes on 0 and 4, rank 1 passes on 1 and 3, ...
 *
 * Rank 3 serves all parts of its node but has one block, which travels on one of its rails. On a
 * rail each block crosses the network once per node. With n nodes of the same size, each port
 * carries n - 1 blocks, those of one rail. With groups a rail has two levels: first between the
 * groups, among the nodes that serve the same seat, then inside each group.
 *
 * The rails are circulant (circulant.c). A rank sends the blocks that it receives in a round of its
 * rail to all others of its node at once, while the next round is in flight. The two do not
 * compete, because they use different ports.
 *
 * The last round brings half of all blocks. It comes in `segments` messages, and earlier rounds
 * come in messages of the same number of blocks. Each message is passed on while the next one is in
 * flight, so that little is left to do when the last one arrives. Blocks are cut only where a round
 * has fewer blocks than messages, so the number of steps hardly grows.
 *
 * Sources: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020, for the rails; Träff, 2024 (circulant.c).
 */
#include "algorithms/rails.h"
#include "algorithms/ranks.h"

/* The numbers of pieces into which the last round is cut: runs of its slots. If there are too few
 * slots, each slot is cut into runs of groups; if there are too few groups, each block is cut as
 * well. */
struct pieces {
    uint32_t slots, groups, cuts;
};

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Slots of the last round before it is cut; 0 if there is no round. */
static uint32_t most_slots(const struct tutti_nodes *nodes)
{
    return tutti_circulant_most(nodes->nodes.most > 1 ? nodes->nodes.most : nodes->nodes.count);
}

/* How the last round is cut into at least `segments` messages, if there are enough chunks. */
static struct pieces pieces_of_last(const struct tutti_nodes *nodes, uint32_t segments)
{
    struct pieces pieces = {1, 1, 1};

    if (most_slots(nodes) == 0)
        return pieces;
    pieces.slots = lesser(segments, most_slots(nodes));
    segments = (segments + pieces.slots - 1) / pieces.slots;
    if (nodes->nodes.most > 1)
        pieces.groups = lesser(segments, nodes->nodes.count);
    pieces.cuts = (segments + pieces.groups - 1) / pieces.groups;
    return pieces;
}

/* Where a rank has the blocks from that it passes on inside its node. */
enum source { OWN_BLOCK, FROM_GROUPS, FROM_NODES };

/* How any round is cut, into messages of about the same size. Rounds between groups of several
 * nodes are small and are not cut. */
static struct pieces pieces_of_round(const struct tutti_nodes *nodes, struct pieces last,
                                     enum source source, struct tutti_circulant_round round)
{
    uint64_t most = most_slots(nodes), slots = (uint64_t)tutti_circulant_slots(round) * last.slots;

    if (source == FROM_GROUPS && nodes->nodes.most > 1)
        return (struct pieces){1, 1, 1};
    return (struct pieces){(uint32_t)((slots + most - 1) / most), last.groups, last.cuts};
}

static uint32_t pieces_count(struct pieces pieces)
{
    return pieces.slots * pieces.groups * pieces.cuts;
}

struct gather {
    struct tutti_rails rails; /* first, so that add_seat can convert a pointer to it */
    struct pieces last;       /* how the last round is cut */
    /* The groups of each slot, and the cuts of each block, that the current message has. */
    struct tutti_nodes_parts groups, cuts;
    bool is_backwards;         /* the moves will be read backwards */
};

/* ---- blocks of a rail ----------------------------------------------------------------------- */

/* Add the current cuts of the block of a rank to the message. */
static void add_rank_block(struct gather *gather, uint32_t rank)
{
    for (uint32_t cut = gather->cuts.first; cut < gather->cuts.end; cut++)
        tutti_rails_add(&gather->rails, rank * gather->last.cuts + cut);
}

/* Add the block of group `group` that travels with this part and seat, if there is one. A rank with
 * several parts has its block in only one of them, and likewise a node with several seats. */
static void add_block(struct gather *gather, uint32_t part, uint32_t seat, uint32_t group)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t node = tutti_nodes_node_serving(nodes, group, seat);
    uint32_t rank = tutti_nodes_rank_serving(nodes, node, part);

    if (tutti_nodes_pick_seat(nodes, node) == seat && tutti_nodes_pick_part(nodes, rank) == part)
        add_rank_block(gather, rank);
}

/* The same for `count` groups from `first` on, around the circle of groups. */
static void add_groups(struct gather *gather, uint32_t part, uint32_t seat, uint32_t first,
                       uint32_t count)
{
    uint32_t ngroups = gather->rails.nodes.nodes.count;

    for (uint32_t i = 0; i < count; i++)
        add_block(gather, part, seat, tutti_rank_after(first % ngroups, i, ngroups));
}

/* The blocks that a node holds after the rounds between the groups. */
static void add_seat(struct tutti_rails *rails, uint32_t part, uint32_t seat)
{
    struct gather *gather = (struct gather *)rails;

    add_groups(gather, part, seat, gather->groups.first,
               gather->groups.end - gather->groups.first);
}

/* ---- between the groups ---------------------------------------------------------------------- */

/* Add the moves of a round between the groups: one circle for each part and seat that this rank
 * serves. */
static int exchange_with_groups(struct gather *gather, struct tutti_circulant_round round)
{
    struct tutti_rails *rails = &gather->rails;
    const struct tutti_nodes *nodes = &rails->nodes;
    uint32_t ngroups = nodes->nodes.count, group = nodes->group;
    uint32_t to = tutti_rank_before(group, round.distance, ngroups),
             from = tutti_rank_after(group, round.distance, ngroups);
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, nodes->me),
                             seats = tutti_nodes_seats_of(nodes, nodes->node);

    for (uint32_t part = parts.first; part < parts.end; part++)
        for (uint32_t seat = seats.first; seat < seats.end; seat++) {
            add_groups(gather, part, seat, group + round.first, tutti_circulant_slots(round));
            TUTTI_TRY(tutti_rails_send(
                rails,
                tutti_nodes_rank_serving(nodes, tutti_nodes_node_serving(nodes, to, seat), part)));
            add_groups(gather, part, seat, group + round.distance + round.first,
                       tutti_circulant_slots(round));
            TUTTI_TRY(tutti_rails_recv(
                rails, tutti_nodes_rank_serving(nodes, tutti_nodes_node_serving(nodes, from, seat),
                                                part)));
        }
    return TUTTI_OK;
}

/* ---- inside the node ------------------------------------------------------------------------- */

/* Add the blocks that a rank of this node has received from `source` in a round. */
static void add_message(struct gather *gather, uint32_t rank, enum source source,
                        struct tutti_circulant_round round)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, rank),
                             seats = tutti_nodes_seats_of(nodes, nodes->node);
    uint32_t first = round.distance + round.first, count = tutti_circulant_slots(round);

    if (source == OWN_BLOCK) {
        add_rank_block(gather, rank);
        return;
    }
    for (uint32_t part = parts.first; part < parts.end; part++) {
        if (source == FROM_NODES)
            tutti_rails_add_members(&gather->rails, part,
                                    nodes->nodes.index[nodes->node] + first, count);
        for (uint32_t seat = seats.first; source == FROM_GROUPS && seat < seats.end; seat++)
            add_groups(gather, part, seat, nodes->group + first, count);
    }
}

/* Every rank of the node sends the blocks that it has just received to all others of the node. */
static int share_messages(struct gather *gather, enum source source,
                          struct tutti_circulant_round round)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t size = tutti_homes_size(&nodes->ranks, nodes->node),
             me = nodes->ranks.index[nodes->me];
    const uint32_t *members = &nodes->ranks.items[nodes->ranks.first[nodes->node]];

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = members[tutti_rank_after(me, i, size)],
                 from = members[tutti_rank_before(me, i, size)];

        add_message(gather, nodes->me, source, round);
        TUTTI_TRY(tutti_rails_send(&gather->rails, to));
        add_message(gather, from, source, round);
        TUTTI_TRY(tutti_rails_recv(&gather->rails, from));
    }
    return TUTTI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Add one message of a round, and then the moves that pass its blocks on inside the node. */
static int add_piece(struct gather *gather, enum source source, struct tutti_circulant_round piece)
{
    if (source == FROM_GROUPS)
        TUTTI_TRY(exchange_with_groups(gather, piece));
    else
        TUTTI_TRY(tutti_rails_exchange(&gather->rails, piece));
    return share_messages(gather, source, piece);
}

/* Send the last slots first, because they arrived first in the round before. If older slots were
 * sent first, they would overtake the messages of that round at the network port, but not inside
 * the node. The links of the node would then be idle. A reduce-scatter reads the list backwards,
 * and its sums wait for one another; there it is better to send the last slots last. */
static int add_round(struct gather *gather, enum source source, struct tutti_circulant_round round)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    struct tutti_nodes_parts all_groups = gather->groups, all_cuts = gather->cuts;
    struct pieces pieces = pieces_of_round(nodes, gather->last, source, round);
    uint32_t count = pieces_count(pieces);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = gather->is_backwards ? i : count - 1 - i;
        uint32_t slot = at / pieces.cuts / pieces.groups;

        gather->groups =
            tutti_nodes_share_of(all_groups.end, pieces.groups, at / pieces.cuts % pieces.groups);
        gather->cuts = tutti_nodes_share_of(all_cuts.end, pieces.cuts, at % pieces.cuts);
        TUTTI_TRY(add_piece(gather, source, tutti_circulant_piece(round, pieces.slots, slot)));
    }
    gather->groups = all_groups;
    gather->cuts = all_cuts;
    return TUTTI_OK;
}

static int add_all(struct gather *gather)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t ngroups = nodes->nodes.count, size = tutti_homes_size(&nodes->nodes, nodes->group);

    TUTTI_TRY(share_messages(gather, OWN_BLOCK, (struct tutti_circulant_round){.distance = 0}));
    for (uint32_t i = 0; i < tutti_rounds_of(ngroups); i++)
        TUTTI_TRY(add_round(gather, FROM_GROUPS, tutti_circulant_round(ngroups, i)));
    for (uint32_t i = 0; i < tutti_rounds_of(size); i++)
        TUTTI_TRY(add_round(gather, FROM_NODES, tutti_circulant_round(size, i)));
    return TUTTI_OK;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct gather gather = {.is_backwards = moves->use == TUTTI_MOVES_SCATTER};
    uint32_t cuts;
    int rc;

    TUTTI_TRY(tutti_rails_init(shape, &gather.rails));
    gather.last = pieces_of_last(&gather.rails.nodes, shape->options.value[TUTTI_SEGMENTS]);
    cuts = gather.last.cuts;
    gather.groups = (struct tutti_nodes_parts){0, gather.rails.nodes.nodes.count};
    gather.cuts = (struct tutti_nodes_parts){0, cuts};
    moves->nchunks = shape->nranks * cuts;
    moves->own_first = shape->rank * cuts;
    moves->own_count = cuts;
    gather.rails.moves = moves;
    gather.rails.add_seat = add_seat;
    rc = tutti_rails_reserve(&gather.rails, moves->nchunks);
    if (rc == TUTTI_OK)
        rc = add_all(&gather);
    tutti_rails_fini(&gather.rails);
    return rc;
}

/* Number of messages of a rank on one rail of `count` members. */
static double messages_of(const struct tutti_nodes *nodes, struct pieces last, enum source source,
                          uint32_t count)
{
    double messages = 0;

    for (uint32_t i = 0; i < tutti_rounds_of(count); i++)
        messages +=
            pieces_count(pieces_of_round(nodes, last, source, tutti_circulant_round(count, i)));
    return messages;
}

/* The cost common to both collectives. A rank receives the blocks of its rails from the network and
 * all other blocks from its node. The node passes one message on while the next one is in flight.
 * Only the last message is not overlapped: half of the blocks divided by the segments. */
static void cost_both(const struct tutti_shape *shape, const struct tutti_nodes *nodes,
                      double bytes, struct tutti_cost *ret_cost)
{
    struct pieces last = pieces_of_last(nodes, shape->options.value[TUTTI_SEGMENTS]);
    uint32_t ngroups = nodes->nodes.count, size = nodes->nodes.most;
    double parts = tutti_nodes_most_parts(nodes), seats = tutti_nodes_most_seats(nodes);
    double group_rounds = tutti_rounds_of(size), top_rounds = tutti_rounds_of(ngroups);
    double group_messages = messages_of(nodes, last, FROM_NODES, size);
    double top_messages = messages_of(nodes, last, FROM_GROUPS, ngroups);
    double rail_bytes = bytes * parts / nodes->nparts;
    double least = (double)nodes->ranks.least * nodes->nodes.least; /* ranks of a group */
    enum tutti_level top = tutti_level_of_shape(shape);

    *ret_cost = (struct tutti_cost){
        .segments = group_rounds + top_rounds > 0 ? 2.0 * pieces_count(last) : 1};
    ret_cost->level[top].rounds = top_rounds;
    ret_cost->level[top].posted = top_messages * parts * seats - top_rounds;
    ret_cost->level[top].bytes = rail_bytes * seats / nodes->nseats * (1 - least / shape->nranks);
    if (nodes->nseats > 1) {
        ret_cost->level[TUTTI_LEVEL_GROUP].rounds = group_rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].posted = group_messages * parts - group_rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].bytes =
            rail_bytes * tutti_homes_exchanged(&nodes->nodes, nodes->nseats);
    }
    if (nodes->nparts > 1) {
        double rounds = 1 + group_rounds + top_rounds, messages = 1 + group_messages + top_messages;

        ret_cost->level[TUTTI_LEVEL_NODE].rounds = rounds;
        ret_cost->level[TUTTI_LEVEL_NODE].posted = messages * (nodes->nparts - 1.0) - rounds;
        ret_cost->level[TUTTI_LEVEL_NODE].bytes =
            bytes * tutti_homes_exchanged(&nodes->ranks, nodes->nparts);
    }
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, shape->nranks * block_bytes, ret_cost);
    /* With more than four messages per round, messages of several rounds alternate at the port
     * while the node waits for them in order. So more messages gain nothing. */
    ret_cost->segments = fmin(ret_cost->segments, 2 * 4);
    ret_cost->copied = block_bytes;
    tutti_nodes_fini(&nodes);
}

/* In each round the contributions of a node's peers are added to one sum, peer after peer; these
 * sums wait for those that came along the rail in the round before. */
static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;
    double chained;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, shape->nranks * block_bytes, ret_cost);
    chained = ret_cost->level[TUTTI_LEVEL_NODE].posted;
    ret_cost->level[TUTTI_LEVEL_NODE].rounds += chained;
    ret_cost->level[TUTTI_LEVEL_NODE].posted = 0;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++)
        ret_cost->reduced += ret_cost->level[level].bytes;
    tutti_nodes_fini(&nodes);
}

#define SEGMENTS {[TUTTI_SEGMENTS] = {.least = 1, .most = 16, .usual = 1}}

const struct tutti_algorithm tutti_hierarchical_allgather = {
    .name = "hierarchical",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = SEGMENTS,
    .moves = make,
    .cost = cost_allgather,
};

const struct tutti_algorithm tutti_hierarchical_reduce_scatter = {
    .name = "hierarchical",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = SEGMENTS,
    .moves = make,
    .cost = cost_reduce_scatter,
};
