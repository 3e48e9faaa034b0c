/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-gather: along the rails first, where each rank has a network port of its own,
 * then inside the nodes. The reduce-scatter is the same backwards: inside the nodes first.
 *
 *   nodes of 3, 1, 2 ranks          0 1 2 | 3 | 4 5          parts 0 1 2, a rail for each (nodes.h)
 *   rail 0: 0, 3, 4                 0 . . | . | 4 .          carries blocks 0 and 4
 *   rail 1: 1, 3, 4                 . 1 . | 3 | . .          blocks 1 and 3
 *   rail 2: 2, 3, 5                 . . 2 | . | . 5          blocks 2 and 5
 *   in the nodes                    0 passes on 0 and 4, 1 1 and 3, 2 2 and 5; ...
 *
 * Rank 3 serves all parts of its node, but has one block: it travels on one of its rails.
 * On a rail each block crosses the network once per node; of n nodes of g ranks each port carries
 * the blocks of one rail, (n - 1) b of them. With groups a rail has two levels: first between the
 * groups, among those who serve the same seat, then inside each group.
 *
 * The rails are circulant (circulant.c). What a rank gets in a round of its rail it sends to all
 * others of its node at once, while the next round is under way: these are other ports. Blocks are
 * cut in `segments`, which run one after the other, so that little is left to be sent when the
 * last round is over.
 *
 * Sources: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020, for the rails; Träff, 2024 (circulant.c).
 */
#include "algorithms/rails.h"
#include "algorithms/ranks.h"

struct gather {
    struct rails rails;
    uint32_t segments, segment; /* how many; the one at hand */
};

/* ---- blocks of a rail ----------------------------------------------------------------------- */

static void add_own(struct gather *gather, uint32_t rank)
{
    rails_add(&gather->rails, rank * gather->segments + gather->segment);
}

/* The block that travels with this part and seat from this group, if there is one: a rank with
 * several parts has a block in one of them only, likewise a node with several seats. */
static void add_block(struct gather *gather, uint32_t part, uint32_t seat, uint32_t group)
{
    const struct nodes *nodes = &gather->rails.nodes;
    uint32_t node = node_serving(nodes, group, seat);
    uint32_t rank = rank_serving(nodes, node, part);

    if (home_seat(nodes, node) == seat && home_part(nodes, rank) == part)
        add_own(gather, rank);
}

/* Those of `count` groups from `first` on, around the circle of groups. */
static void add_groups(struct gather *gather, uint32_t part, uint32_t seat, uint32_t first,
                       uint32_t count)
{
    uint32_t ngroups = gather->rails.nodes.nodes.count;

    for (uint32_t i = 0; i < count; i++)
        add_block(gather, part, seat, rank_after(first % ngroups, i, ngroups));
}

/* What a node has after the rounds between the groups. */
static void add_seat(struct rails *rails, uint32_t part, uint32_t seat)
{
    add_groups((struct gather *)rails, part, seat, 0, rails->nodes.nodes.count);
}

/* ---- between the groups ---------------------------------------------------------------------- */

/* One circle for each part and seat that this rank serves. */
static int exchange_with_groups(struct gather *gather, struct circulant_round round)
{
    struct rails *rails = &gather->rails;
    const struct nodes *nodes = &rails->nodes;
    uint32_t ngroups = nodes->nodes.count, group = nodes->group;
    uint32_t to = rank_before(group, round.h, ngroups), from = rank_after(group, round.h, ngroups);
    struct parts parts = parts_of(nodes, nodes->me), seats = seats_of(nodes, nodes->node);

    for (uint32_t part = parts.first; part < parts.end; part++)
        for (uint32_t seat = seats.first; seat < seats.end; seat++) {
            add_groups(gather, part, seat, group, round.s - round.h);
            TUTTI_TRY(tutti_rails_send(
                rails, rank_serving(nodes, node_serving(nodes, to, seat), part)));
            add_groups(gather, part, seat, group + round.h, round.s - round.h);
            TUTTI_TRY(tutti_rails_recv(
                rails, rank_serving(nodes, node_serving(nodes, from, seat), part)));
        }
    return TUTTI_OK;
}

/* ---- inside the node ------------------------------------------------------------------------- */

enum source { OWN_BLOCK, FROM_GROUPS, FROM_NODES };

/* What a rank of this node has got from there in a round. */
static void add_news(struct gather *gather, uint32_t rank, enum source source,
                     struct circulant_round round)
{
    const struct nodes *nodes = &gather->rails.nodes;
    struct parts parts = parts_of(nodes, rank), seats = seats_of(nodes, nodes->node);
    uint32_t count = round.s - round.h;

    if (source == OWN_BLOCK) {
        add_own(gather, rank);
        return;
    }
    for (uint32_t part = parts.first; part < parts.end; part++) {
        if (source == FROM_NODES)
            tutti_rails_add_members(&gather->rails, part,
                                    nodes->nodes.index[nodes->node] + round.h, count);
        for (uint32_t seat = seats.first; source == FROM_GROUPS && seat < seats.end; seat++)
            add_groups(gather, part, seat, nodes->group + round.h, count);
    }
}

/* Everyone tells everyone in the node its news. */
static int share_news(struct gather *gather, enum source source, struct circulant_round round)
{
    const struct nodes *nodes = &gather->rails.nodes;
    uint32_t size = homes_size(&nodes->ranks, nodes->node), me = nodes->ranks.index[nodes->me];
    const uint32_t *members = &nodes->ranks.items[nodes->ranks.first[nodes->node]];

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = members[rank_after(me, i, size)], from = members[rank_before(me, i, size)];

        add_news(gather, nodes->me, source, round);
        TUTTI_TRY(tutti_rails_send(&gather->rails, to));
        add_news(gather, from, source, round);
        TUTTI_TRY(tutti_rails_recv(&gather->rails, from));
    }
    return TUTTI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int add_segment(struct gather *gather)
{
    const struct nodes *nodes = &gather->rails.nodes;
    uint32_t ngroups = nodes->nodes.count, size = homes_size(&nodes->nodes, nodes->group);

    TUTTI_TRY(share_news(gather, OWN_BLOCK, (struct circulant_round){0, 0}));
    for (uint32_t i = 0; i < rounds_of(ngroups); i++) {
        TUTTI_TRY(exchange_with_groups(gather, circulant_round(ngroups, i)));
        TUTTI_TRY(share_news(gather, FROM_GROUPS, circulant_round(ngroups, i)));
    }
    for (uint32_t i = 0; i < rounds_of(size); i++) {
        TUTTI_TRY(tutti_rails_exchange(&gather->rails, circulant_round(size, i)));
        TUTTI_TRY(share_news(gather, FROM_NODES, circulant_round(size, i)));
    }
    return TUTTI_OK;
}

static int make(const struct tutti_shape *shape, enum moves_use use, struct moves *moves)
{
    struct gather gather = {.segments = shape->options.value[TUTTI_SEGMENTS]};
    int rc;

    (void)use;
    moves->nchunks = shape->nranks * gather.segments;
    moves->own_first = shape->rank * gather.segments;
    moves->own_count = gather.segments;
    TUTTI_TRY(tutti_rails_init(shape, &gather.rails));
    gather.rails.moves = moves;
    gather.rails.add_seat = add_seat;
    rc = tutti_rails_reserve(&gather.rails, shape->nranks);
    for (; rc == TUTTI_OK && gather.segment < gather.segments; gather.segment++)
        rc = add_segment(&gather);
    tutti_rails_fini(&gather.rails);
    return rc;
}

static int emit(const struct tutti_shape *shape, struct tutti_build *build)
{
    return tutti_moves_emit(shape, build, make);
}

/* What both cost. A rank gets the blocks of its rails from the network, and from its node the
 * others', a round's news at a time while the next round is under way; the last one, which
 * brings half of the blocks of a segment, is not overlapped. */
static void cost_both(const struct tutti_shape *shape, const struct nodes *nodes, double bytes,
                      struct tutti_cost *ret_cost)
{
    double segments = shape->options.value[TUTTI_SEGMENTS];
    double parts = nodes_most_parts(nodes), seats = nodes_most_seats(nodes);
    double group_rounds = segments * rounds_of(nodes->nodes.most);
    double top_rounds = segments * rounds_of(nodes->nodes.count);
    double rail_bytes = bytes * parts / nodes->nparts;
    double least = (double)nodes->ranks.least * nodes->nodes.least; /* ranks of a group */
    enum tutti_level top = tutti_shape_level(shape);

    *ret_cost = (struct tutti_cost){.segments = group_rounds + top_rounds > 0 ? 2 * segments : 1};
    ret_cost->level[top].rounds = top_rounds;
    ret_cost->level[top].posted = top_rounds * (parts * seats - 1);
    ret_cost->level[top].bytes = rail_bytes * seats / nodes->nseats * (1 - least / shape->nranks);
    if (nodes->nseats > 1) {
        ret_cost->level[TUTTI_LEVEL_GROUP].rounds = group_rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].posted = group_rounds * (parts - 1);
        ret_cost->level[TUTTI_LEVEL_GROUP].bytes =
            rail_bytes * tutti_homes_exchanged(&nodes->nodes, nodes->nseats);
    }
    if (nodes->nparts > 1) {
        ret_cost->level[TUTTI_LEVEL_NODE].rounds = segments + group_rounds + top_rounds;
        ret_cost->level[TUTTI_LEVEL_NODE].posted =
            (segments + group_rounds + top_rounds) * (nodes->nparts - 2.0);
        ret_cost->level[TUTTI_LEVEL_NODE].bytes =
            bytes * tutti_homes_exchanged(&nodes->ranks, nodes->nparts);
    }
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, shape->nranks * block_bytes, ret_cost);
    ret_cost->copied = block_bytes;
    tutti_nodes_fini(&nodes);
}

/* What comes in is added to one sum in the node, peer after peer. */
static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    struct nodes nodes;
    double chained;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, shape->nranks * block_bytes, ret_cost);
    chained = nodes.nparts > 2 ? nodes.nparts - 2.0 : 0;
    ret_cost->level[TUTTI_LEVEL_NODE].rounds += chained;
    ret_cost->level[TUTTI_LEVEL_NODE].posted -= chained;
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
    .emit = emit,
    .cost = cost_allgather,
};

const struct tutti_algorithm tutti_hierarchical_reduce_scatter = {
    .name = "hierarchical",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = SEGMENTS,
    .emit = emit,
    .cost = cost_reduce_scatter,
};
