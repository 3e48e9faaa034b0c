/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical broadcast: the root scatters its vector in its node, each part goes along its rail,
 * then each node gathers. Reduce is the same backwards.
 *
 *   nodes of 3, 1, 2 ranks, root 0     node 0        node 1     node 2
 *   in the root's node                 a   b   c
 *   along the rails                    a   b   c  >  abc     >  ab   c      a > 3 > 4, b > 3 > 4,
 *   in the nodes                       abc abc abc   abc        abc  abc    c > 3 > 5
 *
 * With g ranks per node, each port carries 1/g of the vector. A rail is a circulant pipeline
 * (circulant_pipeline.c) of `segments`. With groups it has two levels: first one node of each
 * group, then the others of the group. Segments pass through all levels one after the other, each
 * level on its own ports.
 *
 * Source: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020, for the rails; Träff, 2024 (circulant_pipeline.c).
 */
#include "algorithms/circulant_pipeline.h"
#include "algorithms/nodes.h"
#include "algorithms/ranks.h"

#include <stdlib.h>

struct deal {
    struct tutti_nodes nodes;
    struct tutti_moves moves;
    uint32_t root, root_node, segments;
    uint32_t *team; /* ranks of a rail */
};

/* ---- inside the nodes ------------------------------------------------------------------------ */

static uint32_t member_rank(const struct deal *deal, uint32_t member)
{
    return deal->nodes.ranks.items[deal->nodes.ranks.first[deal->nodes.node] + member];
}

typedef int add_move(struct tutti_moves *moves, uint32_t peer, uint32_t first, uint32_t count);

/* Add a move of the chunks of a segment that `owner` serves. Chunks are ordered by segment, then
 * part. */
static int add_parts(struct deal *deal, add_move *add, uint32_t peer, uint32_t owner,
                     uint32_t segment)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(&deal->nodes, owner);

    return add(&deal->moves, peer, segment * deal->nodes.nparts + parts.first,
               parts.end - parts.first);
}

/* In the root's node each rank receives from the root the parts that it serves and those that the
 * root serves. */
static int deal_out(struct deal *deal, uint32_t segment)
{
    uint32_t me = deal->nodes.me, index = deal->nodes.ranks.index[me];
    uint32_t size = tutti_homes_size(&deal->nodes.ranks, deal->nodes.node);

    if (deal->nodes.node != deal->root_node)
        return TUTTI_OK;
    if (me != deal->root) {
        TUTTI_TRY(add_parts(deal, tutti_moves_recv, deal->root, me, segment));
        return add_parts(deal, tutti_moves_recv, deal->root, deal->root, segment);
    }
    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = member_rank(deal, tutti_rank_after(index, i, size));

        TUTTI_TRY(add_parts(deal, tutti_moves_send, to, to, segment));
    }
    for (uint32_t i = 1; i < size; i++)
        TUTTI_TRY(add_parts(deal, tutti_moves_send,
                            member_rank(deal, tutti_rank_after(index, i, size)), me, segment));
    return TUTTI_OK;
}

/* Every rank sends its parts to all others of the node. The root is left out: it has everything and
 * has already sent its own parts. */
static int gather(struct deal *deal, uint32_t segment)
{
    uint32_t me = deal->nodes.me, index = deal->nodes.ranks.index[me];
    uint32_t size = tutti_homes_size(&deal->nodes.ranks, deal->nodes.node);

    for (uint32_t i = 1; i < size && me != deal->root; i++) {
        uint32_t to = member_rank(deal, tutti_rank_after(index, i, size));
        uint32_t from = member_rank(deal, tutti_rank_before(index, i, size));

        if (to != deal->root)
            TUTTI_TRY(add_parts(deal, tutti_moves_send, to, me, segment));
        if (from != deal->root)
            TUTTI_TRY(add_parts(deal, tutti_moves_recv, from, from, segment));
    }
    return TUTTI_OK;
}

/* ---- along the rails ------------------------------------------------------------------------- */

/* The node through which a part reaches a group. */
static uint32_t entry_of(const struct deal *deal, uint32_t group)
{
    const struct tutti_homes *groups = &deal->nodes.nodes;

    return group == groups->home[deal->root_node] ? deal->root_node
                                                  : groups->items[groups->first[group]];
}

/* Add the moves of a part from the root's group to the other groups. */
static int pass_to_groups(struct deal *deal, uint32_t part)
{
    const struct tutti_nodes *nodes = &deal->nodes;
    uint32_t count = nodes->nodes.count, first = nodes->nodes.home[deal->root_node];
    struct tutti_team team = {
        .ranks = deal->team, .count = count, .me = tutti_rank_before(nodes->group, first, count)};

    if (entry_of(deal, nodes->group) != nodes->node)
        return TUTTI_OK;
    for (uint32_t i = 0; i < count; i++)
        deal->team[i] = tutti_nodes_rank_serving(
            nodes, entry_of(deal, tutti_rank_after(first, i, count)), part);
    return tutti_circulant_pipeline_moves(&team, part, nodes->nparts, deal->segments, &deal->moves);
}

/* Add the moves of a part from its group's entry to the other nodes of the group. */
static int pass_in_group(struct deal *deal, uint32_t part)
{
    const struct tutti_nodes *nodes = &deal->nodes;
    const struct tutti_homes *groups = &nodes->nodes;
    uint32_t count = tutti_homes_size(groups, nodes->group);
    uint32_t first = groups->index[entry_of(deal, nodes->group)];
    struct tutti_team team = {.ranks = deal->team,
                              .count = count,
                              .me = tutti_rank_before(groups->index[nodes->node], first, count)};

    for (uint32_t i = 0; i < count; i++)
        deal->team[i] = tutti_nodes_rank_serving(
            nodes, groups->items[groups->first[nodes->group] + tutti_rank_after(first, i, count)],
            part);
    return tutti_circulant_pipeline_moves(&team, part, nodes->nparts, deal->segments, &deal->moves);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int add_all(struct deal *deal)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(&deal->nodes, deal->nodes.me);

    for (uint32_t segment = 0; segment < deal->segments; segment++)
        TUTTI_TRY(deal_out(deal, segment));
    for (uint32_t part = parts.first; part < parts.end; part++) {
        TUTTI_TRY(pass_to_groups(deal, part));
        TUTTI_TRY(pass_in_group(deal, part));
    }
    for (uint32_t segment = 0; segment < deal->segments; segment++)
        TUTTI_TRY(gather(deal, segment));
    return TUTTI_OK;
}

static void deal_fini(struct deal *deal)
{
    free(deal->team);
    tutti_moves_fini(&deal->moves);
    tutti_nodes_fini(&deal->nodes);
}

static int deal_init(const struct tutti_shape *shape, struct deal *ret_deal)
{
    struct deal deal = {.root = shape->root, .segments = shape->options.value[TUTTI_SEGMENTS]};
    int rc;

    TUTTI_TRY(tutti_nodes_init(shape, &deal.nodes));
    deal.root_node = deal.nodes.ranks.home[deal.root];
    deal.moves.nchunks = deal.segments * deal.nodes.nparts;
    deal.moves.own_count = deal.nodes.me == deal.root ? deal.moves.nchunks : 0;
    deal.team = malloc(deal.nodes.ranks.count * sizeof(*deal.team));
    if (deal.team == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a rail of %u nodes",
                        deal.nodes.ranks.count);
        goto fail;
    }
    TUTTI_TRY_OR(fail, rc, add_all(&deal));
    *ret_deal = deal;
    return TUTTI_OK;

fail:
    deal_fini(&deal);
    return rc;
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct deal deal;
    struct tutti_span input, output;
    int rc;

    TUTTI_TRY(deal_init(shape, &deal));
    input = tutti_span(TUTTI_BUF_INPUT, 0, deal.moves.own_count);
    output = tutti_span(TUTTI_BUF_OUTPUT, 0, deal.moves.nchunks);
    tutti_build_chunks(build, deal.moves.nchunks);
    rc = tutti_moves_gather(&deal.moves, build, input, output);
    if (rc == TUTTI_OK && shape->rank == shape->root)
        rc = tutti_build_copy(build, input, output);
    deal_fini(&deal);
    return rc;
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    bool is_root = shape->rank == shape->root;
    enum tutti_buffer kept = is_root ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH;
    struct deal deal;
    uint32_t nchunks;
    int rc;

    TUTTI_TRY(deal_init(shape, &deal));
    nchunks = deal.moves.nchunks;
    tutti_build_chunks(build, nchunks);
    if (!is_root)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, nchunks);
    rc = tutti_moves_reduce_scatter(&deal.moves, build, tutti_span(TUTTI_BUF_INPUT, 0, nchunks),
                                    tutti_span(kept, 0, nchunks),
                                    tutti_span(kept, 0, deal.moves.own_count));
    deal_fini(&deal);
    return rc;
}

/* The cost common to both collectives. The root is in the busiest node: it scatters, and sends its
 * own parts to all others of the node. */
static void cost_both(const struct tutti_shape *shape, const struct tutti_nodes *nodes,
                      double bytes, struct tutti_cost *ret_cost)
{
    double segments = shape->options.value[TUTTI_SEGMENTS];
    double parts = tutti_nodes_most_parts(nodes), peers = nodes->nparts - 1.0;
    double part_bytes = bytes / nodes->nparts / segments;
    double top_rounds = segments - 1 + tutti_rounds_of(nodes->nodes.count);
    double group_rounds = segments - 1 + tutti_rounds_of(nodes->nseats);
    enum tutti_level top = tutti_level_of_shape(shape);

    *ret_cost = (struct tutti_cost){.segments = segments};
    if (nodes->nodes.count > 1) {
        ret_cost->level[top].rounds = top_rounds;
        ret_cost->level[top].posted = top_rounds * (parts - 1);
        ret_cost->level[top].bytes = top_rounds * parts * part_bytes;
    }
    if (nodes->nseats > 1) {
        ret_cost->level[TUTTI_LEVEL_GROUP].rounds = group_rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].posted = group_rounds * (parts - 1);
        ret_cost->level[TUTTI_LEVEL_GROUP].bytes = group_rounds * parts * part_bytes;
    }
    if (nodes->nparts > 1) {
        ret_cost->level[TUTTI_LEVEL_NODE].rounds = 2 * segments;
        ret_cost->level[TUTTI_LEVEL_NODE].posted = 2 * segments * (peers - 1);
        ret_cost->level[TUTTI_LEVEL_NODE].bytes = 2 * peers * bytes / nodes->nparts;
    }
}

static void cost_broadcast(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, block_bytes, ret_cost);
    ret_cost->copied = block_bytes;
    tutti_nodes_fini(&nodes);
}

/* Contributions are added to one sum, peer after peer. */
static void cost_reduce(const struct tutti_shape *shape, double block_bytes,
                        struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;
    double chained;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_both(shape, &nodes, block_bytes, ret_cost);
    chained = nodes.nparts > 2 ? nodes.nparts - 2.0 : 0;
    ret_cost->level[TUTTI_LEVEL_NODE].rounds += chained;
    ret_cost->level[TUTTI_LEVEL_NODE].posted -= chained;
    for (int level = 0; level < TUTTI_LEVEL_COUNT; level++)
        ret_cost->reduced += ret_cost->level[level].bytes;
    tutti_nodes_fini(&nodes);
}

const struct tutti_algorithm tutti_hierarchical_broadcast = {
    .name = "hierarchical",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = {[TUTTI_SEGMENTS] = {.least = 1, .most = 256, .usual = 8}},
    .emit = emit_broadcast,
    .cost = cost_broadcast,
};

const struct tutti_algorithm tutti_hierarchical_reduce = {
    .name = "hierarchical",
    .collective = TUTTI_REDUCE,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    .options = {[TUTTI_SEGMENTS] = {.least = 1, .most = 256, .usual = 8}},
    .emit = emit_reduce,
    .cost = cost_reduce,
};
