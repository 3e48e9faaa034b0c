/* SPDX-License-Identifier: Apache-2.0
 * Recursive halving and doubling: reduce-scatter by exchanging halves, all-gather by exchanging
 * everything held so far, and Rabenseifner's all-reduce, which is one after the other.
 *
 * Doubling, round i: exchange all chunks held with the number that differs in bit i. Halving is
 * this backwards: the farthest partner first, with half of the vector, then a quarter, ...
 *
 *   numbers   0     1     2     3      chunks they hold
 *   start     a     b     c     d
 *   i = 0     ab    ab    cd    cd     0 with 1, 2 with 3
 *   i = 1     abcd  abcd  abcd  abcd   0 with 2, 1 with 3
 *
 * This is for a power of two, m. With p > m, e = p - m ranks are folded: of the first 2e ranks each
 * even one works together with the odd one after it. In the all-gather and the reduce-scatter the
 * odd one handles the blocks of both, which are contiguous:
 *
 *   p = 5     0 -> 1   2   3   4       numbers 0 1 2 3 have blocks 01 2 3 4
 *   gather    0 gives 1 its block, ..., 1 gives 0 all the others in the end
 *
 * In the all-reduce the two ranks of a pair exchange halves, so that each adds only one of them.
 * Then the even one passes on its sum, and receives the result in the end.
 *
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
 * MPICH", 2005; Rabenseifner, "Optimization of collective reduction operations", 2004.
 */
#include "algorithms/moves.h"
#include "algorithms/ranks.h"

/* Number of ranks beyond the largest power of two. */
static uint32_t extra_of(uint32_t nranks)
{
    return nranks - (1u << tutti_rounds_whole(nranks));
}

/* First block of a number, if each of the first `nextra` numbers has two blocks. */
static uint32_t first_block(uint32_t nextra, uint32_t number)
{
    return number < nextra ? 2 * number : number + nextra;
}

/* Add the rounds of a rank that takes part. The first `ndouble` numbers have two chunks each. */
static int add_rounds(const struct tutti_shape *shape, uint32_t ndouble, struct tutti_moves *moves)
{
    uint32_t nextra = extra_of(shape->nranks);
    uint32_t number = tutti_folded_number(nextra, shape->rank);

    for (uint32_t i = 0; i < tutti_rounds_whole(shape->nranks); i++) {
        uint32_t size = 1u << i;
        uint32_t partner = tutti_folded_rank(nextra, number ^ size);
        uint32_t ours = number & ~(size - 1);
        uint32_t theirs = ours ^ size;
        uint32_t give = first_block(ndouble, ours), take = first_block(ndouble, theirs);

        TUTTI_TRY(tutti_moves_send(moves, partner, give, first_block(ndouble, ours + size) - give));
        TUTTI_TRY(tutti_moves_recv(moves, partner, take,
                                   first_block(ndouble, theirs + size) - take));
    }
    return TUTTI_OK;
}

/* List the moves of the all-gather, with the messages of folded pairs before and after the
 * rounds. */
static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    uint32_t rank = shape->rank, nranks = shape->nranks, nextra = extra_of(nranks);

    moves->nchunks = nranks;
    moves->own_first = rank;
    moves->own_count = 1;
    if (tutti_folded_is_out(nextra, rank)) {
        TUTTI_TRY(tutti_moves_send(moves, rank + 1, rank, 1));
        TUTTI_TRY(tutti_moves_recv(moves, rank + 1, 0, rank));
        return tutti_moves_recv(moves, rank + 1, rank + 1, nranks - rank - 1);
    }
    if (rank >= 2 * nextra)
        return add_rounds(shape, nextra, moves);
    TUTTI_TRY(tutti_moves_recv(moves, rank - 1, rank - 1, 1));
    TUTTI_TRY(add_rounds(shape, nextra, moves));
    TUTTI_TRY(tutti_moves_send(moves, rank - 1, 0, rank - 1));
    return tutti_moves_send(moves, rank - 1, rank, nranks - rank);
}

/* The lower half of a buffer (0), or the upper half (1). */
static struct tutti_span half(enum tutti_buffer buffer, uint32_t which, uint32_t nchunks)
{
    return tutti_span(buffer, which * (nchunks / 2), nchunks / 2);
}

/* The even rank of a pair adds the lower halves, sends the sum to the odd rank, and receives the
 * result. */
static int fold_out(struct tutti_build *build, uint32_t other, uint32_t nchunks)
{
    struct tutti_span sum = half(TUTTI_BUF_OUTPUT, 0, nchunks);

    TUTTI_TRY(tutti_build_send(build, other, half(TUTTI_BUF_INPUT, 1, nchunks)));
    TUTTI_TRY(tutti_build_recv_reduce(build, other, half(TUTTI_BUF_INPUT, 0, nchunks), sum));
    TUTTI_TRY(tutti_build_send(build, other, sum));
    return tutti_build_recv(build, other, tutti_span(TUTTI_BUF_OUTPUT, 0, nchunks));
}

/* The odd rank of a pair adds the upper halves, and receives the sum of the lower halves. */
static int fold_in(struct tutti_build *build, uint32_t other, uint32_t nchunks)
{
    TUTTI_TRY(tutti_build_send(build, other, half(TUTTI_BUF_INPUT, 0, nchunks)));
    TUTTI_TRY(tutti_build_recv_reduce(build, other, half(TUTTI_BUF_INPUT, 1, nchunks),
                                      half(TUTTI_BUF_OUTPUT, 1, nchunks)));
    return tutti_build_recv(build, other, half(TUTTI_BUF_OUTPUT, 0, nchunks));
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    uint32_t nchunks = 1u << tutti_rounds_whole(shape->nranks), nextra = extra_of(shape->nranks);
    struct tutti_moves moves = {.nchunks = nchunks, .own_count = 1};
    bool is_paired = shape->rank < 2 * nextra;
    struct tutti_span sum = tutti_span(TUTTI_BUF_OUTPUT, 0, nchunks), own;
    int rc;

    tutti_build_chunks(build, nchunks);
    if (tutti_folded_is_out(nextra, shape->rank))
        return fold_out(build, shape->rank + 1, nchunks);
    if (is_paired)
        TUTTI_TRY(fold_in(build, shape->rank - 1, nchunks));

    moves.own_first = tutti_folded_number(nextra, shape->rank);
    own = tutti_span(TUTTI_BUF_OUTPUT, moves.own_first, 1);
    TUTTI_TRY_OR(release, rc, add_rounds(shape, 0, &moves));
    TUTTI_TRY_OR(release, rc, tutti_moves_reduce_scatter(
                                  &moves, build,
                                  is_paired ? sum : tutti_span(TUTTI_BUF_INPUT, 0, nchunks), sum,
                                  own));
    TUTTI_TRY_OR(release, rc, tutti_moves_gather(&moves, build, own, sum));
    if (is_paired)
        rc = tutti_build_send(build, shape->rank - 1, sum);

release:
    tutti_moves_fini(&moves);
    return rc;
}

/* ---- costs -------------------------------------------------------------------------- */

/* Round i is within runs of 2^(i+1) numbers. Folding adds three messages per pair: two halves, one
 * after the other, and the result. */
static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    uint32_t n = shape->nranks, rounds = tutti_rounds_whole(n), nextra = extra_of(n);
    double chunk = block_bytes / (1u << rounds), is_folded = nextra > 0;

    *ret_cost = (struct tutti_cost){
        .reduced = block_bytes - chunk + is_folded * block_bytes / 2,
    };
    for (uint32_t i = 0; i < rounds; i++)
        tutti_cost_add(shape, 0, tutti_folded_run(nextra, 2u << i, n), 2, 2 * chunk * (1u << i),
                       ret_cost);
    if (nextra > 0)
        tutti_cost_add(shape, 0, 2, 3, 2 * block_bytes, ret_cost);
}

/* Add the longest path of the all-gather, that of the first numbers, which have two blocks each.
 * Returns its number of blocks. */
static double add_path(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *cost)
{
    uint32_t n = shape->nranks, nextra = extra_of(n);
    double blocks = 0;

    for (uint32_t i = 0; i < tutti_rounds_whole(n); i++) {
        double given = first_block(nextra, 1u << i);

        tutti_cost_add(shape, 0, tutti_folded_run(nextra, 2u << i, n), 1, given * block_bytes,
                       cost);
        blocks += given;
    }
    if (nextra > 0)
        tutti_cost_add(shape, 0, 2, 2, n * block_bytes, cost);
    return blocks + (nextra > 0 ? n : 0);
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    *ret_cost = (struct tutti_cost){.copied = block_bytes};
    add_path(shape, block_bytes, ret_cost);
}

/* A rank that handles two blocks adds everything except its partner's own block, which the partner
 * adds. It copies two blocks: the partner's, to join the partial sums, and its own, out of them. */
static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double is_folded = extra_of(shape->nranks) > 0;

    *ret_cost = (struct tutti_cost){.copied = 2 * is_folded * block_bytes};
    ret_cost->reduced = (add_path(shape, block_bytes, ret_cost) - is_folded) * block_bytes;
}

const struct tutti_algorithm tutti_rabenseifner_allreduce = {
    .name = "rabenseifner",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .emit = emit_allreduce,
    .cost = cost_allreduce,
};

const struct tutti_algorithm tutti_recursive_halving_reduce_scatter = {
    .name = "recursive_halving",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .moves = make,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_recursive_doubling_allgather = {
    .name = "recursive_doubling",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .moves = make,
    .cost = cost_allgather,
};
