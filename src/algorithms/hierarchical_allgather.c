/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-gather: along the rails first, where each rank has a network port of its own,
 * then inside the nodes. The reduce-scatter is the same list of moves read backwards (moves.h):
 * inside the nodes first, then along the rails.
 *
 *   nodes of 3, 1, 2 ranks          0 1 2 | 3 | 4 5          parts 0 1 2, a rail for each (nodes.h)
 *   rail 0: 0, 3, 4                 0 . . | . | 4 .          carries blocks 0 and 4
 *   rail 1: 1, 3, 4                 . 1 . | 3 | . .          blocks 1 and 3
 *   rail 2: 2, 3, 5                 . . 2 | . | . 5          blocks 2 and 5
 *   in the nodes                    rank 0 passes on 0 and 4, rank 1 passes on 1 and 3, ...
 *
 * Rank 3 serves all parts of its node but has one block, which travels on one of its rails. On a
 * rail each block crosses the network once per node. With n nodes of the same size, each port
 * carries n - 1 blocks, those of one rail.
 *
 * With groups a rail has two levels: first between the groups, among the nodes that serve the same
 * seat, then inside each group, among the nodes of the group. Without groups each node is a group
 * of its own (nodes.h), and only the rounds between the groups exist.
 *
 * The rails are circulant (circulant.c, rails.h): the members of a rail form a circle, and slot i
 * of a member is the data of the member i places after it. In each round a member receives a run of
 * slots. A rank sends the blocks that it receives in a round of its rail to all others of its node
 * at once, while the next round is in flight. The two do not compete, because they use different
 * ports.
 *
 * The last round brings half of all blocks. If it were one message, the node could pass on nothing
 * until all of it has arrived. So the last round is divided into pieces (struct pieces), at least
 * as many as the option `segments` says, and each piece is a message. Earlier rounds are divided
 * into pieces of about the same size. Each piece is passed on while the next one is in flight, so
 * that little is left to do when the last one arrives. Blocks are cut only where a round has fewer
 * blocks than pieces, so the number of steps hardly grows.
 *
 * Sources: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020, for the rails; Träff, 2024 (circulant.c).
 */
#include "algorithms/rails.h"
#include "algorithms/ranks.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* How a round is divided into slot_runs * group_runs * cuts pieces. The slots of the round are
 * divided into `slot_runs` runs. In a round between the nodes of a group, a slot has a block from
 * each group; these groups are divided into `group_runs` runs. Each block is divided into `cuts`
 * chunks.
 *
 *   a last round of 3 slots, with 2 groups:
 *     segments =  2       2 runs of slots                                            2 pieces
 *     segments =  5       3 runs of 1 slot, each in 2 runs of 1 group                6 pieces
 *     segments = 16       the same, and each block is cut in 3                       18 pieces
 */
struct pieces {
    uint32_t slot_runs, group_runs, cuts;
};

static const struct pieces one_piece = {1, 1, 1};

static uint32_t count_pieces(struct pieces pieces)
{
    return pieces.slot_runs * pieces.group_runs * pieces.cuts;
}

/* The origin of the blocks that a rank passes on inside its node. */
enum source {
    OWN_BLOCK,   /* its own block, before the first round */
    FROM_GROUPS, /* a round between the groups */
    FROM_NODES   /* a round between the nodes of this group */
};

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

/* True if some group has several nodes. */
static bool has_groups(const struct tutti_nodes *nodes)
{
    return nodes->nodes.most > 1;
}

/* Number of slots of the last round; 0 if there is no round. */
static uint32_t slots_of_last(const struct tutti_nodes *nodes)
{
    return tutti_circulant_most(has_groups(nodes) ? nodes->nodes.most : nodes->nodes.count);
}

/* How the last round is divided into at least `segments` pieces. */
static struct pieces pieces_of_last(const struct tutti_nodes *nodes, uint32_t segments)
{
    struct pieces pieces = one_piece;
    uint32_t nslots = slots_of_last(nodes);
    uint32_t per_slot_run; /* pieces of each run of slots */

    if (nslots == 0)
        return pieces;
    pieces.slot_runs = lesser(segments, nslots);
    per_slot_run = divide_up(segments, pieces.slot_runs);
    if (has_groups(nodes))
        pieces.group_runs = lesser(per_slot_run, nodes->nodes.count);
    pieces.cuts = divide_up(per_slot_run, pieces.group_runs);
    return pieces;
}

/* How any round is divided, into pieces of about the same size as those of the last round, which
 * `last` describes. If groups have several nodes, the rounds between the groups are small compared
 * with the last round, and are not divided. */
static struct pieces pieces_of_round(const struct tutti_nodes *nodes, struct pieces last,
                                     enum source source, struct tutti_circulant_round round)
{
    uint64_t nslots_of_last = slots_of_last(nodes), nslots = tutti_circulant_slots(round);
    struct pieces pieces = last;

    if (source == FROM_GROUPS && has_groups(nodes))
        return one_piece;
    pieces.slot_runs = (uint32_t)((nslots * last.slot_runs + nslots_of_last - 1) / nslots_of_last);
    return pieces;
}

/* ---- blocks of a rail ------------------------------------------------------------------------ */

struct gather {
    struct tutti_rails rails; /* first, so that add_seat can convert a pointer to it */
    struct pieces last;       /* how the last round is divided */
    /* The current piece: the groups whose blocks it has in each slot, and the cuts of each of these
     * blocks. */
    struct tutti_nodes_parts groups, cuts;
    bool is_backwards; /* the moves will be read backwards */
};

/* Append the current cuts of the block of a rank to the message. */
static void add_rank_block(struct gather *gather, uint32_t rank)
{
    for (uint32_t cut = gather->cuts.first; cut < gather->cuts.end; cut++)
        tutti_rails_add(&gather->rails, rank * gather->last.cuts + cut);
}

/* Return the rank that serves a part, in the node of a group that serves a seat. */
static uint32_t rank_serving(const struct tutti_nodes *nodes, uint32_t group, uint32_t seat,
                             uint32_t part)
{
    return tutti_nodes_rank_serving(nodes, tutti_nodes_node_serving(nodes, group, seat), part);
}

/* Append the block of a group that travels with this part and seat, if there is one. A rank with
 * several parts has its block in only one of them, and likewise a node with several seats. */
static void add_group_block(struct gather *gather, uint32_t part, uint32_t seat, uint32_t group)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t node = tutti_nodes_node_serving(nodes, group, seat);
    uint32_t rank = tutti_nodes_rank_serving(nodes, node, part);

    if (tutti_nodes_pick_seat(nodes, node) == seat && tutti_nodes_pick_part(nodes, rank) == part)
        add_rank_block(gather, rank);
}

/* Append the blocks of `count` groups that travel with this part and seat, from group `first` on
 * around the circle of groups. */
static void add_group_blocks(struct gather *gather, uint32_t part, uint32_t seat, uint32_t first,
                             uint32_t count)
{
    uint32_t ngroups = gather->rails.nodes.nodes.count;

    for (uint32_t i = 0; i < count; i++)
        add_group_block(gather, part, seat, tutti_rank_after(first % ngroups, i, ngroups));
}

/* Append, of the blocks that a node holds after the rounds between the groups, those that belong to
 * the current piece. Implements add_seat of struct tutti_rails. */
static void add_seat(struct tutti_rails *rails, uint32_t part, uint32_t seat)
{
    struct gather *gather = (struct gather *)rails;
    struct tutti_nodes_parts groups = gather->groups;

    add_group_blocks(gather, part, seat, groups.first, groups.end - groups.first);
}

/* ---- between the groups ---------------------------------------------------------------------- */

/* Add the moves of a round, or of a piece of one, between the groups. There is one circle for each
 * part and seat that this rank serves. */
static int exchange_with_groups(struct gather *gather, struct tutti_circulant_round round)
{
    struct tutti_rails *rails = &gather->rails;
    const struct tutti_nodes *nodes = &rails->nodes;
    uint32_t ngroups = nodes->nodes.count, group = nodes->group;
    uint32_t to = tutti_rank_before(group, round.distance, ngroups);
    uint32_t from = tutti_rank_after(group, round.distance, ngroups);
    uint32_t first_sent = group + round.first, first_received = first_sent + round.distance;
    uint32_t nslots = tutti_circulant_slots(round);
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, nodes->me);
    struct tutti_nodes_parts seats = tutti_nodes_seats_of(nodes, nodes->node);

    for (uint32_t part = parts.first; part < parts.end; part++)
        for (uint32_t seat = seats.first; seat < seats.end; seat++) {
            add_group_blocks(gather, part, seat, first_sent, nslots);
            TUTTI_TRY(tutti_rails_send(rails, rank_serving(nodes, to, seat, part)));
            add_group_blocks(gather, part, seat, first_received, nslots);
            TUTTI_TRY(tutti_rails_recv(rails, rank_serving(nodes, from, seat, part)));
        }
    return TUTTI_OK;
}

/* ---- inside the node ------------------------------------------------------------------------- */

/* Append to the message the blocks that a rank of this node has received from `source` in a piece
 * of a round, or its own block. */
static void add_received(struct gather *gather, uint32_t rank, enum source source,
                         struct tutti_circulant_round piece)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, rank);
    struct tutti_nodes_parts seats = tutti_nodes_seats_of(nodes, nodes->node);
    uint32_t first_slot = piece.distance + piece.first, nslots = tutti_circulant_slots(piece);

    if (source == OWN_BLOCK) {
        add_rank_block(gather, rank);
        return;
    }
    for (uint32_t part = parts.first; part < parts.end; part++) {
        if (source == FROM_NODES) {
            uint32_t index_in_group = nodes->nodes.index[nodes->node];

            tutti_rails_add_members(&gather->rails, part, index_in_group + first_slot, nslots);
            continue;
        }
        for (uint32_t seat = seats.first; seat < seats.end; seat++)
            add_group_blocks(gather, part, seat, nodes->group + first_slot, nslots);
    }
}

/* Every rank of the node sends the blocks that it has just received to all others of the node. */
static int share_in_node(struct gather *gather, enum source source,
                         struct tutti_circulant_round piece)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t size = tutti_homes_size(&nodes->ranks, nodes->node);
    uint32_t me = nodes->ranks.index[nodes->me];

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = tutti_homes_item(&nodes->ranks, nodes->node, tutti_rank_after(me, i, size));
        uint32_t from =
            tutti_homes_item(&nodes->ranks, nodes->node, tutti_rank_before(me, i, size));

        add_received(gather, nodes->me, source, piece);
        TUTTI_TRY(tutti_rails_send(&gather->rails, to));
        add_received(gather, from, source, piece);
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
    return share_in_node(gather, source, piece);
}

/* Add all pieces of a round. Pieces are numbered by run of slots, then by run of groups, then by
 * cut.
 *
 * Send the last slots first, because they arrived first in the round before. If older slots were
 * sent first, they would overtake the messages of that round at the network port, but not inside
 * the node. The links of the node would then be idle. A reduce-scatter reads the list backwards,
 * and its sums wait for one another; there it is better to send the last slots last. */
static int add_round(struct gather *gather, enum source source, struct tutti_circulant_round round)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    struct pieces pieces = pieces_of_round(nodes, gather->last, source, round);
    uint32_t npieces = count_pieces(pieces);

    for (uint32_t i = 0; i < npieces; i++) {
        uint32_t number = gather->is_backwards ? i : npieces - 1 - i;
        uint32_t cut = number % pieces.cuts;
        uint32_t group_run = number / pieces.cuts % pieces.group_runs;
        uint32_t slot_run = number / pieces.cuts / pieces.group_runs;

        gather->groups = tutti_nodes_share_of(nodes->nodes.count, pieces.group_runs, group_run);
        gather->cuts = tutti_nodes_share_of(gather->last.cuts, pieces.cuts, cut);
        TUTTI_TRY(
            add_piece(gather, source, tutti_circulant_piece(round, pieces.slot_runs, slot_run)));
    }
    return TUTTI_OK;
}

static int add_all(struct gather *gather)
{
    const struct tutti_nodes *nodes = &gather->rails.nodes;
    uint32_t ngroups = nodes->nodes.count, size = tutti_homes_size(&nodes->nodes, nodes->group);

    gather->cuts = (struct tutti_nodes_parts){0, gather->last.cuts};
    TUTTI_TRY(share_in_node(gather, OWN_BLOCK, (struct tutti_circulant_round){.distance = 0}));
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
    gather.rails.moves = moves;
    gather.rails.add_seat = add_seat;
    gather.last = pieces_of_last(&gather.rails.nodes, shape->options.value[TUTTI_SEGMENTS]);
    cuts = gather.last.cuts;
    moves->nchunks = shape->nranks * cuts;
    moves->own_first = shape->rank * cuts;
    moves->own_count = cuts;
    rc = tutti_rails_reserve(&gather.rails, moves->nchunks);
    if (rc == TUTTI_OK)
        rc = add_all(&gather);
    tutti_rails_fini(&gather.rails);
    return rc;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* The rounds on one rail, and the messages in these rounds together. */
struct rail_cost {
    double rounds, messages;
};

static struct rail_cost rail_cost_of(const struct tutti_nodes *nodes, struct pieces last,
                                     enum source source, uint32_t nmembers)
{
    struct rail_cost cost = {.rounds = tutti_rounds_of(nmembers)};

    for (uint32_t i = 0; i < tutti_rounds_of(nmembers); i++)
        cost.messages +=
            count_pieces(pieces_of_round(nodes, last, source, tutti_circulant_round(nmembers, i)));
    return cost;
}

/* The cost common to both collectives; `bytes` is the size of all blocks together. A rank receives
 * the blocks of its rails from the network and all other blocks from its node. The node passes one
 * message on while the next one is in flight. Only the last message is not overlapped: half of the
 * blocks divided by the segments. Of the messages that a rank sends at one level in a round, all
 * but one are `posted` (cost.h). */
static void cost_both(const struct tutti_shape *shape, const struct tutti_nodes *nodes,
                      double bytes, struct tutti_cost *ret_cost)
{
    struct pieces last = pieces_of_last(nodes, shape->options.value[TUTTI_SEGMENTS]);
    struct rail_cost inside = rail_cost_of(nodes, last, FROM_NODES, nodes->nodes.most);
    struct rail_cost between = rail_cost_of(nodes, last, FROM_GROUPS, nodes->nodes.count);
    /* The busiest rank serves the most parts, in a node that serves the most seats. */
    double parts = tutti_nodes_most_parts(nodes), seats = tutti_nodes_most_seats(nodes);
    double rail_bytes = bytes * parts / nodes->nparts;
    double least_ranks = (double)nodes->ranks.least * nodes->nodes.least; /* of a group */
    enum tutti_level top = tutti_level_of_shape(shape);

    *ret_cost = (struct tutti_cost){
        .segments = inside.rounds + between.rounds > 0 ? 2.0 * count_pieces(last) : 1};
    ret_cost->level[top].rounds = between.rounds;
    ret_cost->level[top].posted = between.messages * parts * seats - between.rounds;
    ret_cost->level[top].bytes =
        rail_bytes * seats / nodes->nseats * (1 - least_ranks / shape->nranks);
    if (nodes->nseats > 1) {
        ret_cost->level[TUTTI_LEVEL_GROUP].rounds = inside.rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].posted = inside.messages * parts - inside.rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].bytes =
            rail_bytes * tutti_homes_exchanged(&nodes->nodes, nodes->nseats);
    }
    if (nodes->nparts > 1) {
        /* The ranks of the node first share their own blocks, and then each message. */
        double rounds = 1 + inside.rounds + between.rounds;
        double messages = 1 + inside.messages + between.messages;

        ret_cost->level[TUTTI_LEVEL_NODE].rounds = rounds;
        ret_cost->level[TUTTI_LEVEL_NODE].posted = messages * (nodes->nparts - 1.0) - rounds;
        ret_cost->level[TUTTI_LEVEL_NODE].bytes =
            bytes * tutti_homes_exchanged(&nodes->ranks, nodes->nparts);
    }
}

/* With more messages per round than this, messages of several rounds alternate at the port while
 * the node waits for them in order. So more messages gain nothing in an all-gather. */
#define USEFUL_MESSAGES 4

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, shape->nranks * block_bytes, ret_cost);
    ret_cost->segments = fmin(ret_cost->segments, 2 * USEFUL_MESSAGES);
    ret_cost->copied = block_bytes;
    tutti_nodes_fini(&nodes);
}

/* In each round the contributions of a node's peers are added to one sum, peer after peer. These
 * sums wait for those that came along the rail in the round before. So the messages inside the node
 * that are `posted` in an all-gather follow one another here. */
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
