/* SPDX-License-Identifier: Apache-2.0
 * Recursive doubling: in round i everyone exchanges all it has with the rank that differs in bit i.
 *
 *   numbers   0   1   2   3   4   5   6   7
 *   i = 0     +---+   +---+   +---+   +---+      sums of 2
 *   i = 1     +-------+ ...                      sums of 4 (0 with 2, 1 with 3, ...)
 *   i = 2     +---------------+ ...              sums of 8
 *
 * Fewest rounds, but the whole vector in each: for small ones. Ranks beyond the largest power of
 * two m <= p are folded in: of the first 2(p - m) ranks each even one gives its vector to the odd
 * one after it, sits out, and gets the result in the end. The order of the sum depends on p only,
 * neither on the size nor on the place of an element.
 *
 *   p = 5     0 -> 1   2   3   4        numbers of 1 2 3 4 in the rounds: 0 1 2 3
 *
 * A sum in OUTPUT must not change while it is being sent, and without buffers on the way both
 * partners send at once: what arrives is kept in SCRATCH until the own send is done.
 *
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
 * in MPICH", 2005.
 */
#include "algorithms/algorithm.h"
#include "algorithms/ranks.h"

struct fold {
    uint32_t rounds; /* m = 2^rounds */
    uint32_t extra;  /* p - m, each folded into the odd rank after it */
};

static struct fold fold_of(uint32_t nranks)
{
    struct fold fold = {.rounds = rounds_of(nranks)};

    if (((uint64_t)1 << fold.rounds) != nranks)
        fold.rounds--;
    fold.extra = nranks - (1u << fold.rounds);
    return fold;
}

/* Number in the rounds of a rank that takes part, and back. */
static uint32_t number_of(const struct fold *fold, uint32_t rank)
{
    return rank < 2 * fold->extra ? rank / 2 : rank - fold->extra;
}

static uint32_t rank_of(const struct fold *fold, uint32_t number)
{
    return number < fold->extra ? 2 * number + 1 : number + fold->extra;
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct fold fold = fold_of(shape->nranks);
    struct tutti_span input = tutti_span(TUTTI_BUF_INPUT, 0, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    struct tutti_span current = input;
    bool is_paired = shape->rank < 2 * fold.extra;

    if (is_paired && shape->rank % 2 == 0) {
        TUTTI_TRY(tutti_build_send(build, shape->rank + 1, input));
        return tutti_build_recv(build, shape->rank + 1, sum);
    }

    /* Two places for what arrives, so that an early partner need not wait. */
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, fold.rounds < 2 ? 1 : 2);
    if (is_paired) {
        TUTTI_TRY(tutti_build_recv_reduce(build, shape->rank - 1, input, sum));
        current = sum;
    } else {
        TUTTI_TRY(tutti_build_copy(build, input, sum));
    }
    for (uint32_t i = 0; i < fold.rounds; i++) {
        uint32_t partner = rank_of(&fold, number_of(&fold, shape->rank) ^ (1u << i));
        struct tutti_span arrived = tutti_span(TUTTI_BUF_SCRATCH, i % 2, 1);

        TUTTI_TRY(tutti_build_send(build, partner, current));
        TUTTI_TRY(tutti_build_recv(build, partner, arrived));
        TUTTI_TRY(tutti_build_reduce(build, arrived, sum));
        current = sum;
    }
    if (is_paired)
        TUTTI_TRY(tutti_build_send(build, shape->rank - 1, sum));
    return TUTTI_OK;
}

const struct tutti_algorithm tutti_recursive_doubling_allreduce = {
    .name = "recursive_doubling",
    .collective = TUTTI_ALLREDUCE,
    .emit = emit_allreduce,
};
