/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical all-reduce: sums inside the nodes, then along the rails, then all-gather inside the
 * nodes.
 *
 *   nodes of 3, 1, 2 ranks    part    0    1    2       Each part is summed up in each node by the
 *   reduce-scatter in nodes   node 0  0    1    2       rank that serves it (nodes.h),
 *   all-reduce on rails       node 1  3    3    3       then by those ranks of all nodes: a rail,
 *   all-gather in nodes       node 2  4    4    5       then sent to all ranks of the node.
 *
 * With n nodes of g ranks, each port carries 2 (n - 1) / n of N / g bytes, and a rail has n ranks
 * instead of n g. With groups the rails have two levels. A reduce-scatter inside each group gives
 * each node the sums of some seats (nodes.h). An all-reduce among the nodes that serve the same
 * seat in all groups follows, then an all-gather inside the group. The top level is the all-reduce
 * of team.h, with its option doublings; the level inside the group is circulant (circulant.c).
 *
 * Inside a node all pairs exchange at once, in one round. A rank keeps up to MOST_SUMS sums and
 * adds the data of its peers to them in turn. The first sum is in OUTPUT and begins with this
 * rank's own data; the others are in SCRATCH and begin with the data of a peer. In the end the sums
 * are added up in order.
 *
 * With `segments` the levels work at the same time, each on its own ports and on another segment:
 *
 *   turn             0    1    2    3    4
 *   reduce-scatter   a    b    c    d           A level that gathers is emitted after the one that
 *   rails                 a    b    c    d      scatters the next segments: messages between two
 *   all-gather                 a    b    c      ranks go in this order.
 *
 * Sources: Träff and Hunold, "Decomposing MPI collectives for exploiting multi-lane communication",
 * 2020; Cho, Finkler, Serrano, Kung and Hunter, "BlueConnect: decomposing all-reduce for deep
 * learning on heterogeneous network hierarchy", 2019.
 */
#include "algorithms/rails.h"
#include "algorithms/ranks.h"
#include "algorithms/team.h"

#include <stdlib.h>

#define MOST_SUMS 8

struct levels {
    struct tutti_rails rails;   /* first, so that add_seat can convert a pointer to it */
    struct tutti_build *build;
    uint32_t segments, segment; /* number of segments; the current one */
    uint32_t doublings, pieces; /* of the top level; a piece is a chunk of one part and seat */
    uint32_t nchunks;
    uint32_t *team;             /* the ranks of one team at the top level */
    /* Buffer that a level reads: INPUT until a level below it has summed anything. */
    enum tutti_buffer group_source, top_source;
};

static uint32_t node_size(const struct levels *levels)
{
    return tutti_homes_size(&levels->rails.nodes.ranks, levels->rails.nodes.node);
}

static uint32_t group_size(const struct levels *levels)
{
    return tutti_homes_size(&levels->rails.nodes.nodes, levels->rails.nodes.group);
}

/* Chunks are ordered by segment, then part, then seat, then piece. */
static uint32_t chunk_at(const struct levels *levels, uint32_t part, uint32_t seat)
{
    const struct tutti_nodes *nodes = &levels->rails.nodes;

    return ((levels->segment * nodes->nparts + part) * nodes->nseats + seat) * levels->pieces;
}

/* ---- inside the node ------------------------------------------------------------------------ */

/* A rank of this node, by its index among them. */
static uint32_t member_rank(const struct levels *levels, uint32_t member)
{
    const struct tutti_nodes *nodes = &levels->rails.nodes;

    return tutti_homes_item(&nodes->ranks, nodes->node, member);
}

/* The chunks of the current segment that a member of this node serves. */
static struct tutti_span member_span(const struct levels *levels, enum tutti_buffer buffer,
                                     uint32_t member)
{
    struct tutti_nodes_parts parts =
        tutti_nodes_share_of(levels->rails.nodes.nparts, node_size(levels), member);
    uint32_t first = chunk_at(levels, parts.first, 0);

    return tutti_span(buffer, first, chunk_at(levels, parts.end, 0) - first);
}

/* The same chunks in one of the blocks of SCRATCH, each of which is as large as the vector. */
static struct tutti_span scratch_block(const struct levels *levels, struct tutti_span span,
                                       uint32_t block)
{
    return tutti_span(TUTTI_BUF_SCRATCH, block * levels->nchunks + span.first, span.count);
}

/* Number of sums that a rank of a node of this size keeps. */
static uint32_t sums_of(uint32_t size)
{
    return size - 1 < MOST_SUMS ? size - 1 : MOST_SUMS;
}

/* Receive from the peer `index` after the first one, into sum number index mod MOST_SUMS. The first
 * of these sums is in OUTPUT and begins with this rank's own data. */
static int recv_sum(struct levels *levels, uint32_t from, uint32_t index, struct tutti_span own)
{
    struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, own.first, own.count);
    struct tutti_span landing;

    if (index % MOST_SUMS == 0)
        return tutti_build_recv_reduce(levels->build, from, index == 0 ? own : output, output);
    landing = scratch_block(levels, own, index % MOST_SUMS - 1);
    if (index < MOST_SUMS)
        return tutti_build_recv(levels->build, from, landing);
    return tutti_build_recv_reduce(levels->build, from, landing, landing);
}

/* The reduce-scatter inside the node: every rank sends to every other one the parts that the other
 * one serves, and adds up what arrives for its own parts. */
static int scatter_in_node(struct levels *levels)
{
    uint32_t size = node_size(levels), me = levels->rails.nodes.ranks.index[levels->rails.nodes.me];
    struct tutti_span own = member_span(levels, TUTTI_BUF_INPUT, me);

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = tutti_rank_after(me, i, size), from = tutti_rank_before(me, i, size);

        TUTTI_TRY(tutti_build_send(levels->build, member_rank(levels, to),
                                   member_span(levels, TUTTI_BUF_INPUT, to)));
        TUTTI_TRY(recv_sum(levels, member_rank(levels, from), i - 1, own));
    }
    for (uint32_t i = 1; i < sums_of(size); i++)
        TUTTI_TRY(tutti_build_reduce(levels->build, scratch_block(levels, own, i - 1),
                                     tutti_span(TUTTI_BUF_OUTPUT, own.first, own.count)));
    return TUTTI_OK;
}

/* The all-gather inside the node: every rank sends the sums of its parts to every other one. */
static int gather_in_node(struct levels *levels)
{
    uint32_t size = node_size(levels), me = levels->rails.nodes.ranks.index[levels->rails.nodes.me];

    for (uint32_t i = 1; i < size; i++) {
        uint32_t to = tutti_rank_after(me, i, size), from = tutti_rank_before(me, i, size);

        TUTTI_TRY(tutti_build_send(levels->build, member_rank(levels, to),
                                   member_span(levels, TUTTI_BUF_OUTPUT, me)));
        TUTTI_TRY(tutti_build_recv(levels->build, member_rank(levels, from),
                                   member_span(levels, TUTTI_BUF_OUTPUT, from)));
    }
    return TUTTI_OK;
}

/* ---- between the nodes of a group ------------------------------------------------------------ */

static void add_seat(struct tutti_rails *rails, uint32_t part, uint32_t seat)
{
    const struct levels *levels = (const struct levels *)rails;

    for (uint32_t i = 0; i < levels->pieces; i++)
        tutti_rails_add(rails, chunk_at(levels, part, seat) + i);
}

/* Emit the all-gather, or the reduce-scatter, which is the same backwards. */
static int move_in_group(struct levels *levels, bool is_gather)
{
    struct tutti_moves moves = {.nchunks = levels->nchunks};
    uint32_t size = group_size(levels);
    int rc = TUTTI_OK;

    levels->rails.moves = &moves;
    for (uint32_t i = 0; rc == TUTTI_OK && i < tutti_rounds_of(size); i++)
        rc = tutti_rails_exchange(&levels->rails, tutti_circulant_round(size, i));
    if (rc == TUTTI_OK) {
        struct tutti_span output = tutti_span(TUTTI_BUF_OUTPUT, 0, levels->nchunks);
        struct tutti_span source = tutti_span(levels->group_source, 0, levels->nchunks);

        rc = is_gather ? tutti_moves_gather(&moves, levels->build, output, output)
                       : tutti_moves_reduce_scatter(&moves, levels->build, source, output, output);
    }
    tutti_moves_fini(&moves);
    return rc;
}

static int scatter_in_group(struct levels *levels)
{
    return move_in_group(levels, false);
}

static int gather_in_group(struct levels *levels)
{
    return move_in_group(levels, true);
}

/* ---- the top level --------------------------------------------------------------------------- */

/* The all-reduces between the groups: one for each part and seat that this rank serves. */
static int reduce_at_top(struct levels *levels)
{
    const struct tutti_nodes *nodes = &levels->rails.nodes;
    struct tutti_team team = {
        .ranks = levels->team, .count = nodes->nodes.count, .me = nodes->group};
    struct tutti_nodes_parts parts = tutti_nodes_parts_of(nodes, nodes->me),
                             seats = tutti_nodes_seats_of(nodes, nodes->node);

    for (uint32_t part = parts.first; part < parts.end; part++)
        for (uint32_t seat = seats.first; seat < seats.end; seat++) {
            uint32_t first = chunk_at(levels, part, seat);
            uint32_t arrival[2] = {first, levels->nchunks + first};

            for (uint32_t group = 0; group < team.count; group++)
                levels->team[group] = tutti_nodes_rank_serving(
                    nodes, tutti_nodes_node_serving(nodes, group, seat), part);
            TUTTI_TRY(tutti_team_allreduce(
                levels->build, &team, tutti_span(levels->top_source, first, levels->pieces),
                tutti_span(TUTTI_BUF_OUTPUT, first, levels->pieces), arrival, levels->doublings));
        }
    return TUTTI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static uint32_t doublings_of(const struct tutti_shape *shape, uint32_t ngroups)
{
    uint32_t given = shape->options.value[TUTTI_DOUBLINGS];

    return given != 0 ? given : (tutti_rounds_of(ngroups) + 1) / 2;
}

/* Emit all levels. A level's turns are delayed by the number of levels before it. */
static int emit_turns(struct levels *levels)
{
    enum { STAGES = 5 };
    int (*const stages[STAGES])(struct levels *) = {scatter_in_node, scatter_in_group,
                                                    reduce_at_top, gather_in_group, gather_in_node};
    bool has_groups = levels->rails.nodes.nseats > 1;
    uint32_t delays[STAGES] = {0, 1, 1 + has_groups, 2 + has_groups, 2 + 2 * has_groups};

    for (uint32_t turn = 0; turn < levels->segments + delays[STAGES - 1]; turn++)
        for (int stage = 0; stage < STAGES; stage++) {
            levels->segment = turn - delays[stage];
            if (turn >= delays[stage] && levels->segment < levels->segments)
                TUTTI_TRY(stages[stage](levels));
        }
    return TUTTI_OK;
}

static void declare(struct levels *levels)
{
    uint32_t blocks = sums_of(node_size(levels)) > 1 ? sums_of(node_size(levels)) - 1 : 0;

    if (levels->rails.nodes.nodes.count > 1 && levels->doublings > 0 && blocks < 2)
        blocks = 2;
    tutti_build_chunks(levels->build, levels->nchunks);
    tutti_build_scratch(levels->build, TUTTI_SCRATCH_VECTOR, blocks * levels->nchunks);
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct levels levels = {.build = build, .segments = shape->options.value[TUTTI_SEGMENTS]};
    struct tutti_nodes *nodes = &levels.rails.nodes;
    int rc;

    TUTTI_TRY(tutti_rails_init(shape, &levels.rails));
    levels.rails.add_seat = add_seat;
    levels.doublings = doublings_of(shape, nodes->nodes.count);
    levels.pieces = tutti_team_pieces(nodes->nodes.count, levels.doublings);
    levels.nchunks = levels.segments * nodes->nparts * nodes->nseats * levels.pieces;
    levels.group_source = node_size(&levels) > 1 ? TUTTI_BUF_OUTPUT : TUTTI_BUF_INPUT;
    levels.top_source = group_size(&levels) > 1 ? TUTTI_BUF_OUTPUT : levels.group_source;
    levels.team = malloc(nodes->nodes.count * sizeof(*levels.team));
    if (levels.team == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a team of %u ranks", nodes->nodes.count);
        goto release;
    }
    TUTTI_TRY_OR(release, rc, tutti_rails_reserve(&levels.rails, nodes->nseats * levels.pieces));
    declare(&levels);
    rc = emit_turns(&levels);

release:
    free(levels.team);
    tutti_rails_fini(&levels.rails);
    return rc;
}

static void cost_levels(const struct tutti_shape *shape, const struct tutti_nodes *nodes,
                        double bytes, struct tutti_cost *ret_cost)
{
    double segments = shape->options.value[TUTTI_SEGMENTS];
    double parts = tutti_nodes_most_parts(nodes), seats = tutti_nodes_most_seats(nodes);
    double rail_bytes = bytes * parts / nodes->nparts;
    double peers = nodes->nparts - 1.0;
    double node_bytes = bytes * tutti_homes_exchanged(&nodes->ranks, nodes->nparts);
    double group_bytes = rail_bytes * tutti_homes_exchanged(&nodes->nodes, nodes->nseats);
    double group_rounds = 2 * segments * tutti_rounds_of(nodes->nodes.most);
    struct tutti_team_cost team =
        tutti_team_cost(nodes->nodes.count, doublings_of(shape, nodes->nodes.count),
                        rail_bytes * seats / nodes->nseats);
    enum tutti_level top = tutti_level_of_shape(shape);

    *ret_cost = (struct tutti_cost){.segments = segments, .copied = team.copied,
                                    .reduced = node_bytes + group_bytes + team.reduced};
    ret_cost->level[top].rounds = segments * team.rounds;
    ret_cost->level[top].posted = segments * team.rounds * (parts * seats - 1);
    ret_cost->level[top].bytes = team.bytes;
    if (nodes->nseats > 1) {
        ret_cost->level[TUTTI_LEVEL_GROUP].rounds = group_rounds;
        ret_cost->level[TUTTI_LEVEL_GROUP].posted = group_rounds * (parts - 1);
        ret_cost->level[TUTTI_LEVEL_GROUP].bytes = 2 * group_bytes;
    }
    if (nodes->nparts > 1) {
        double chained = ceil(peers / MOST_SUMS);

        ret_cost->level[TUTTI_LEVEL_NODE].rounds = segments * (chained + 1);
        ret_cost->level[TUTTI_LEVEL_NODE].posted = segments * (2 * peers - chained - 1);
        ret_cost->level[TUTTI_LEVEL_NODE].bytes = 2 * node_bytes;
    }
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct tutti_nodes nodes;

    *ret_cost = TUTTI_COST_UNKNOWN;
    if (tutti_nodes_init(shape, &nodes) != TUTTI_OK)
        return;
    cost_levels(shape, &nodes, block_bytes, ret_cost);
    tutti_nodes_fini(&nodes);
}

const struct tutti_algorithm tutti_hierarchical_allreduce = {
    .name = "hierarchical",
    .collective = TUTTI_ALLREDUCE,
    .uses = TUTTI_USES_NODES | TUTTI_USES_GROUPS,
    /* Usual doublings: half of the rounds. */
    .options = {[TUTTI_SEGMENTS] = {.least = 1, .most = 64, .usual = 1},
                [TUTTI_DOUBLINGS] = {.least = 1, .most = 32}},
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};
