/* SPDX-License-Identifier: Apache-2.0
 * Circulant graphs with halving skips: the fewest rounds and the least volume for any number of
 * ranks.
 *
 * Slot i of a rank is block rank + i (mod p). Reduce-scatter starts with s = p open slots. In each
 * round, with h = ceil(s / 2), a rank sends the partial sums of its slots h .. s-1 to the rank h
 * after it. There they are added to slots 0 .. s-h-1. The next round has s = h. In the end slot 0
 * is complete.
 *
 *   p = 5, rank r       slots 0 1 2 3 4
 *   s = 5, h = 3              + + . > >      > sent to r+3, + received from r-3 and added
 *   s = 3, h = 2              + . >          > sent to r+2, + received from r-2
 *   s = 2, h = 1              + >            > sent to r+1, + received from r-1
 *
 * All-gather runs the same rounds backwards: it sends slots 0 .. s-h-1 to the rank h before and
 * receives slots h .. s-1 from the rank h after. Each takes ceil(log2 p) rounds and moves p - 1
 * blocks in and out. A run of slots is one message, or two where it wraps. All-reduce is a
 * reduce-scatter followed by an all-gather.
 *
 * Source: Träff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
 */
#include "algorithms/circulant.h"

#include <stdlib.h>

/* Add moves for `count` pieces of the circle from `first` on: one up to its end, and one from its
 * beginning on. */
static int add_pieces(struct tutti_moves *moves, const struct tutti_team *team, bool is_send,
                      uint32_t member, uint32_t first, uint32_t count)
{
    int (*add)(struct tutti_moves *, uint32_t, uint32_t, uint32_t) =
        is_send ? tutti_moves_send : tutti_moves_recv;
    uint32_t upper = count < team->count - first ? count : team->count - first;
    uint32_t begin = tutti_team_piece(moves->nchunks, team->count, first);
    uint32_t end = tutti_team_piece(moves->nchunks, team->count, first + upper);

    TUTTI_TRY(add(moves, team->ranks[member], begin, end - begin));
    return add(moves, team->ranks[member], 0,
               tutti_team_piece(moves->nchunks, team->count, count - upper));
}

static uint32_t holds_its_own(uint32_t member, uint32_t count)
{
    (void)member;
    (void)count;
    return 1;
}

/* Add the rounds of an all-gather in which member v already holds held(v) pieces: its own and those
 * after it. */
static int add_rounds(struct tutti_moves *moves, const struct tutti_team *team,
                      uint32_t (*held)(uint32_t member, uint32_t count))
{
    uint32_t n = team->count;

    for (uint32_t round = tutti_rounds_of(n); round-- > 0;) {
        /* s of this round is n halved `round` times, rounding up; h is s halved once more. */
        uint32_t s = (uint32_t)(((uint64_t)n + (1ull << round) - 1) >> round);
        uint32_t h = s - s / 2;
        uint32_t to = tutti_rank_before(team->me, h, n);
        uint32_t from = tutti_rank_after(team->me, h, n);
        uint32_t theirs = held(to, n) > h ? held(to, n) : h;
        uint32_t ours = held(team->me, n) > h ? held(team->me, n) : h;

        if (theirs < s)
            TUTTI_TRY(
                add_pieces(moves, team, true, to, tutti_rank_after(to, theirs, n), s - theirs));
        if (ours < s)
            TUTTI_TRY(add_pieces(moves, team, false, from, tutti_rank_after(team->me, ours, n),
                                 s - ours));
    }
    return TUTTI_OK;
}

int tutti_circulant_moves(const struct tutti_team *team, struct tutti_moves *moves)
{
    moves->own_first = tutti_team_piece(moves->nchunks, team->count, team->me);
    moves->own_count = tutti_team_piece(moves->nchunks, team->count, team->me + 1) -
                       moves->own_first;
    return add_rounds(moves, team, holds_its_own);
}

int tutti_circulant_gather(uint32_t nranks, uint32_t rank, uint32_t first_rank,
                           enum tutti_buffer source,
                           uint32_t (*held)(uint32_t rank, uint32_t nranks),
                           struct tutti_build *build)
{
    /* All chunks count as own, so that every send reads from `source`: INPUT on a rank that held
     * everything at the start, else OUTPUT, where chunks also arrive. */
    struct tutti_moves moves = {.nchunks = nranks, .own_count = nranks};
    struct tutti_team team = {.count = nranks, .me = rank};
    uint32_t *ranks;
    int rc;

    TUTTI_TRY(tutti_team_list(nranks, first_rank, &ranks));
    team.ranks = ranks;
    rc = add_rounds(&moves, &team, held);
    if (rc == TUTTI_OK)
        rc = tutti_moves_gather(&moves, build, tutti_span(source, 0, nranks),
                                tutti_span(TUTTI_BUF_OUTPUT, 0, nranks));
    tutti_moves_fini(&moves);
    free(ranks);
    return rc;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct tutti_team team = {.count = shape->nranks, .me = shape->rank};
    uint32_t *ranks;
    int rc;

    TUTTI_TRY(tutti_team_list(shape->nranks, 0, &ranks));
    team.ranks = ranks;
    moves->nchunks = shape->nranks;
    rc = tutti_circulant_moves(&team, moves);
    free(ranks);
    return rc;
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_team_cost_all(shape, block_bytes, 0, ret_cost);
}

static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    double others = (shape->nranks - 1.0) * block_bytes;

    tutti_cost_flat(shape, tutti_rounds_of(shape->nranks), others, others,
                    tutti_circulant_copied(shape->nranks) * block_bytes, ret_cost);
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    tutti_cost_flat(shape, tutti_rounds_of(shape->nranks), (shape->nranks - 1.0) * block_bytes, 0,
                    block_bytes, ret_cost);
}

const struct tutti_algorithm tutti_circulant_allreduce = {
    .name = "circulant",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .moves = make,
    .cost = cost_allreduce,
};

const struct tutti_algorithm tutti_circulant_reduce_scatter = {
    .name = "circulant",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .moves = make,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_circulant_allgather = {
    .name = "circulant",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .moves = make,
    .cost = cost_allgather,
};
