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

/* The broadcast as moves of one rank. A reduce emits them backwards. */
struct broadcast {
    struct tutti_nodes nodes;
    struct tutti_moves moves;
    uint32_t root, root_node, segments;
    uint32_t *team; /* room for the ranks of a rail */
};

/* ---- inside the nodes ------------------------------------------------------------------------ */

/* A rank of this node, by its index among them. */
static uint32_t member_rank(const struct broadcast *broadcast, uint32_t member)
{
    return tutti_homes_item(&broadcast->nodes.ranks, broadcast->nodes.node, member);
}

typedef int add_move(struct tutti_moves *moves, uint32_t peer, uint32_t first, uint32_t count);

/* Add a move of the chunks of a segment that `owner` serves. Chunks are ordered by segment, then
 * part. */
static int add_parts(struct broadcast *broadcast, add_move *add, uint32_t peer, uint32_t owner,
                     uint32_t segment)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(&broadcast->nodes, owner);

    return add(&broadcast->moves, peer, segment * broadcast->nodes.nparts + parts.first,
               parts.end - parts.first);
}

/* In the root's node each rank receives from the root the parts that it serves and those that the
 * root serves. */
static int scatter_in_node(struct broadcast *broadcast, uint32_t segment)
{
    uint32_t me = broadcast->nodes.me, index = broadcast->nodes.ranks.index[me];
    uint32_t size = tutti_homes_size(&broadcast->nodes.ranks, broadcast->nodes.node);

    if (broadcast->nodes.node != broadcast->root_node)
        return TUTTI_OK;
    if (me != broadcast->root) {
        TUTTI_TRY(add_parts(broadcast, tutti_moves_recv, broadcast->root, me, segment));
        return add_parts(broadcast, tutti_moves_recv, broadcast->root, broadcast->root, segment);
    }
    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = member_rank(broadcast, tutti_rank_after(index, i, size));

        TUTTI_TRY(add_parts(broadcast, tutti_moves_send, to, to, segment));
    }
    for (uint32_t i = 1; i < size; i++)
        TUTTI_TRY(add_parts(broadcast, tutti_moves_send,
                            member_rank(broadcast, tutti_rank_after(index, i, size)), me, segment));
    return TUTTI_OK;
}

/* Every rank sends its parts to all others of the node. The root is left out: it has everything and
 * has already sent its own parts. */
static int gather_in_node(struct broadcast *broadcast, uint32_t segment)
{
    uint32_t me = broadcast->nodes.me, index = broadcast->nodes.ranks.index[me];
    uint32_t size = tutti_homes_size(&broadcast->nodes.ranks, broadcast->nodes.node);

    for (uint32_t i = 1; i < size && me != broadcast->root; i++) {
        uint32_t to = member_rank(broadcast, tutti_rank_after(index, i, size));
        uint32_t from = member_rank(broadcast, tutti_rank_before(index, i, size));

        if (to != broadcast->root)
            TUTTI_TRY(add_parts(broadcast, tutti_moves_send, to, me, segment));
        if (from != broadcast->root)
            TUTTI_TRY(add_parts(broadcast, tutti_moves_recv, from, from, segment));
    }
    return TUTTI_OK;
}

/* ---- along the rails ------------------------------------------------------------------------- */

/* The node through which a part reaches a group. */
static uint32_t entry_of(const struct broadcast *broadcast, uint32_t group)
{
    const struct tutti_homes *groups = &broadcast->nodes.nodes;

    return group == groups->home[broadcast->root_node] ? broadcast->root_node
                                                       : tutti_homes_item(groups, group, 0);
}

/* Add the moves of a part from the root's group to the other groups. */
static int pass_to_groups(struct broadcast *broadcast, uint32_t part)
{
    const struct tutti_nodes *nodes = &broadcast->nodes;
    uint32_t count = nodes->nodes.count, first = nodes->nodes.home[broadcast->root_node];
    struct tutti_team team = {.ranks = broadcast->team,
                              .count = count,
                              .me = tutti_rank_before(nodes->group, first, count)};

    if (entry_of(broadcast, nodes->group) != nodes->node)
        return TUTTI_OK;
    for (uint32_t i = 0; i < count; i++)
        broadcast->team[i] = tutti_nodes_rank_serving(
            nodes, entry_of(broadcast, tutti_rank_after(first, i, count)), part);
    return tutti_circulant_pipeline_moves(&team, part, nodes->nparts, broadcast->segments,
                                          &broadcast->moves);
}

/* Add the moves of a part from its group's entry to the other nodes of the group. */
static int pass_in_group(struct broadcast *broadcast, uint32_t part)
{
    const struct tutti_nodes *nodes = &broadcast->nodes;
    const struct tutti_homes *groups = &nodes->nodes;
    uint32_t count = tutti_homes_size(groups, nodes->group);
    uint32_t first = groups->index[entry_of(broadcast, nodes->group)];
    struct tutti_team team = {.ranks = broadcast->team,
                              .count = count,
                              .me = tutti_rank_before(groups->index[nodes->node], first, count)};

    for (uint32_t i = 0; i < count; i++)
        broadcast->team[i] = tutti_nodes_rank_serving(
            nodes, tutti_homes_item(groups, nodes->group, tutti_rank_after(first, i, count)), part);
    return tutti_circulant_pipeline_moves(&team, part, nodes->nparts, broadcast->segments,
                                          &broadcast->moves);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int add_all(struct broadcast *broadcast)
{
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(&broadcast->nodes, broadcast->nodes.me);

    for (uint32_t segment = 0; segment < broadcast->segments; segment++)
        TUTTI_TRY(scatter_in_node(broadcast, segment));
    for (uint32_t part = parts.first; part < parts.end; part++) {
        TUTTI_TRY(pass_to_groups(broadcast, part));
        TUTTI_TRY(pass_in_group(broadcast, part));
    }
    for (uint32_t segment = 0; segment < broadcast->segments; segment++)
        TUTTI_TRY(gather_in_node(broadcast, segment));
    return TUTTI_OK;
}

static void broadcast_fini(struct broadcast *broadcast)
{
    free(broadcast->team);
    tutti_moves_fini(&broadcast->moves);
    tutti_nodes_fini(&broadcast->nodes);
}

static int broadcast_init(const struct tutti_shape *shape, struct broadcast *ret_broadcast)
{
    struct broadcast broadcast = {.root = shape->root,
                                  .segments = shape->options.value[TUTTI_SEGMENTS]};
    int rc;

    TUTTI_TRY(tutti_nodes_init(shape, &broadcast.nodes));
    broadcast.root_node = broadcast.nodes.ranks.home[broadcast.root];
    broadcast.moves.nchunks = broadcast.segments * broadcast.nodes.nparts;
    broadcast.moves.own_count = broadcast.nodes.me == broadcast.root ? broadcast.moves.nchunks : 0;
    broadcast.team = malloc(broadcast.nodes.ranks.count * sizeof(*broadcast.team));
    if (broadcast.team == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a rail of %u nodes",
                        broadcast.nodes.ranks.count);
        goto fail;
    }
    TUTTI_TRY_OR(fail, rc, add_all(&broadcast));
    *ret_broadcast = broadcast;
    return TUTTI_OK;

fail:
    broadcast_fini(&broadcast);
    return rc;
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct broadcast broadcast;
    struct tutti_span input, output;
    int rc;

    TUTTI_TRY(broadcast_init(shape, &broadcast));
    input = tutti_span(TUTTI_BUF_INPUT, 0, broadcast.moves.own_count);
    output = tutti_span(TUTTI_BUF_OUTPUT, 0, broadcast.moves.nchunks);
    tutti_build_chunks(build, broadcast.moves.nchunks);
    rc = tutti_moves_gather(&broadcast.moves, build, input, output);
    if (rc == TUTTI_OK && shape->rank == shape->root)
        rc = tutti_build_copy(build, input, output);
    broadcast_fini(&broadcast);
    return rc;
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    bool is_root = shape->rank == shape->root;
    enum tutti_buffer kept = is_root ? TUTTI_BUF_OUTPUT : TUTTI_BUF_SCRATCH;
    struct broadcast broadcast;
    uint32_t nchunks;
    int rc;

    TUTTI_TRY(broadcast_init(shape, &broadcast));
    nchunks = broadcast.moves.nchunks;
    tutti_build_chunks(build, nchunks);
    if (!is_root)
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, nchunks);
    rc = tutti_moves_reduce_scatter(&broadcast.moves, build,
                                    tutti_span(TUTTI_BUF_INPUT, 0, nchunks),
                                    tutti_span(kept, 0, nchunks),
                                    tutti_span(kept, 0, broadcast.moves.own_count));
    broadcast_fini(&broadcast);
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
