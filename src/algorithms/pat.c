/* SPDX-License-Identifier: Apache-2.0
 * PAT, parallel aggregated trees: every block travels along a binomial tree of its own, far edges
 * first. All trees work at the same time, in messages of a bounded number of blocks.
 *
 * Slot s of a rank is block rank + s (mod p). In every block's tree node 0 is the owner, and the
 * parent of node s is s without its lowest set bit. So slot s comes from the rank at the distance
 * of that bit after this one, where the block is in slot s without that bit. Nodes from p on do not
 * exist.
 *
 *   p = 6, aggregate 2       slots  0  1  2  3  4  5
 *   far     slot 4, from r+4        .           <          one block
 *   near    slots 1 and 5, from r+1    <           <       two blocks each
 *           slot  2, from r+2             <                (6 does not exist)
 *           slot  3, from r+1                <             (nor does 7)
 *
 * Let P be the smallest power of two that is at least p, and A the largest number of blocks per
 * message. The far edges come first, with 1, 2, 4, ... A/2 blocks; that leaves A subtrees of P/A
 * nodes. These are walked together, depth first, which is the order of their numbers, in P/A - 1
 * messages of up to A blocks. The blocks of a message are not contiguous, so each is sent by
 * itself, one right after the other.
 *
 * Read backwards it is the reduce-scatter. A partial sum needs memory from the arrival of its first
 * child until it is sent. Depth first, only the nodes on one path need memory at a time: at most
 * one node for each number of bits set within the subtree. So A log2(P/A) slots of SCRATCH are
 * enough, whatever p and the size.
 *
 * Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
 * 2025.
 */
#include "algorithms/moves.h"
#include "algorithms/ranks.h"

#include <stdlib.h>

struct trees {
    uint32_t width;    /* P: nodes of a tree, including those that do not exist */
    uint32_t nodes;    /* P / A: nodes of a subtree */
    uint32_t subtrees; /* A */
};

static struct trees trees_of(const struct tutti_shape *shape)
{
    uint32_t rounds = tutti_rounds_of(shape->nranks);
    uint32_t aggregated = tutti_rounds_whole(shape->options.value[TUTTI_AGGREGATE]);

    aggregated = aggregated < rounds ? aggregated : rounds;
    return (struct trees){.width = 1u << rounds, .nodes = 1u << (rounds - aggregated),
                          .subtrees = 1u << aggregated};
}

/* One message: receive slots first, first + step, ..., and send the same slots to the rank
 * `distance` before this one. */
static int add_message(const struct tutti_shape *shape, struct tutti_moves *moves,
                       uint32_t distance, uint32_t first, uint32_t step)
{
    uint32_t n = shape->nranks;
    uint32_t to = tutti_rank_before(shape->rank, distance, n);
    uint32_t from = tutti_rank_after(shape->rank, distance, n);

    for (uint32_t slot = first; slot < n; slot += step)
        TUTTI_TRY(tutti_moves_send(moves, to, tutti_rank_after(to, slot, n), 1));
    for (uint32_t slot = first; slot < n; slot += step)
        TUTTI_TRY(tutti_moves_recv(moves, from, tutti_rank_after(shape->rank, slot, n), 1));
    return TUTTI_OK;
}

/* Assign the places where the reduce-scatter keeps its partial sums. */
static int assign_slots(const struct tutti_shape *shape, const struct trees *trees,
                        struct tutti_moves *moves)
{
    uint32_t n = shape->nranks;

    moves->slots = calloc(n, sizeof(*moves->slots));
    if (moves->slots == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the slots of %u blocks", n);
    for (uint32_t slot = 0; slot < n; slot++) {
        uint32_t node = slot % trees->nodes, subtree = slot / trees->nodes;
        bool is_leaf = node % 2 == 1; /* a leaf has no partial sum */
        uint32_t level = is_leaf ? 0 : (uint32_t)__builtin_popcount(node);

        moves->slots[tutti_rank_after(shape->rank, slot, n)] = level * trees->subtrees + subtree;
    }
    return TUTTI_OK;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct trees trees = trees_of(shape);

    moves->nchunks = shape->nranks;
    moves->own_first = shape->rank;
    moves->own_count = 1;
    for (uint32_t distance = trees.width / 2; distance >= trees.nodes; distance /= 2)
        TUTTI_TRY(add_message(shape, moves, distance, distance, 2 * distance));
    for (uint32_t node = 1; node < trees.nodes; node++)
        TUTTI_TRY(add_message(shape, moves, node & (0 - node), node, trees.nodes));
    return moves->use == TUTTI_MOVES_SCATTER ? assign_slots(shape, &trees, moves) : TUTTI_OK;
}

/* ---- costs -------------------------------------------------------------------------- */

static double messages(const struct tutti_shape *shape)
{
    struct trees trees = trees_of(shape);
    uint32_t nodes = trees.nodes < shape->nranks ? trees.nodes : shape->nranks;

    return tutti_rounds_whole(trees.subtrees) + nodes - 1.0;
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    double others = (shape->nranks - 1.0) / shape->nranks * block_bytes;

    tutti_cost_flat(shape, 2 * messages(shape), 2 * others, others, 0, ret_cost);
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, messages(shape), (shape->nranks - 1.0) * block_bytes, 0, block_bytes,
                    ret_cost);
}

static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double others = (shape->nranks - 1.0) * block_bytes;

    tutti_cost_flat(shape, messages(shape), others, others, 0, ret_cost);
}

#define AGGREGATE {[TUTTI_AGGREGATE] = {.least = 1, .most = 1024, .usual = 8}}

const struct tutti_algorithm tutti_pat_allreduce = {
    .name = "pat",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .options = AGGREGATE,
    .moves = make,
    .cost = cost_allreduce,
};

/* Not for the v-form: several blocks use a slot of SCRATCH one after another, so all must have the
 * same size. */
const struct tutti_algorithm tutti_pat_reduce_scatter = {
    .name = "pat",
    .collective = TUTTI_REDUCE_SCATTER,
    .options = AGGREGATE,
    .moves = make,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_pat_allgather = {
    .name = "pat",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .options = AGGREGATE,
    .moves = make,
    .cost = cost_allgather,
};
