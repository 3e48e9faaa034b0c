/* SPDX-License-Identifier: Apache-2.0
 * All-reduce among a team: reduce-scatter over some factors of the team, exchange of whole pieces
 * over the others, then all-gather.
 *
 * Members stand in 2^doublings groups. Each group scatters its sums over its members. Then the
 * members that hold the same piece in different groups exchange it by recursive doubling. Then each
 * group gathers.
 *
 *   7 members, doublings 1         0 -> 1    2 3    4 5 6       0 is folded into 1
 *
 *   groups of three                { 1  2  3 }    { 4  5  6 }
 *   reduce-scatter                   a  b  c        a  b  c      sums of three; piece of each
 *   exchange, i = 0                  a <-----------> a           sums of six, and of 0
 *                                       b <-----------> b
 *   all-gather                      abc abc abc    abc abc abc
 *   unfold                         1 -> 0
 *
 * Folding: let e be count modulo 2^doublings. Of the first 2e members each even one sends its
 * vector to the odd one after it, does not take part, and receives the result in the end.
 *
 * A sum must not change while it is being sent. A send may also complete only when its receive has
 * run, so both partners of an exchange must send at the same time. Therefore what arrives is kept
 * in SCRATCH until this rank's own send is done.
 */
#include "algorithms/team.h"

#include "algorithms/circulant.h"

#include <stdlib.h>

/* The number of doublings that a team of `count` members can use. */
static uint32_t doublings_of(uint32_t count, uint32_t doublings)
{
    uint32_t most = tutti_rounds_whole(count);

    return doublings < most ? doublings : most;
}

/* Number of members that are folded into others. */
static uint32_t extra_of(uint32_t count, uint32_t doublings)
{
    return count & ((1u << doublings_of(count, doublings)) - 1);
}

uint32_t tutti_team_pieces(uint32_t count, uint32_t doublings)
{
    return count >> doublings_of(count, doublings);
}

/* A team without the members that are folded into others. */
struct square {
    uint32_t ngroups, group_size, nextra;
    uint32_t group, place; /* this rank's group, and its place in it */
};

static struct square square_of(const struct tutti_team *team, uint32_t doublings)
{
    struct square square = {
        .ngroups = 1u << doublings_of(team->count, doublings),
        .group_size = tutti_team_pieces(team->count, doublings),
        .nextra = extra_of(team->count, doublings),
    };
    uint32_t number = tutti_folded_number(square.nextra, team->me);

    square.group = number / square.group_size;
    square.place = number % square.group_size;
    return square;
}

/* The rank of the member at a place of a group. */
static uint32_t rank_at(const struct tutti_team *team, const struct square *square, uint32_t group,
                        uint32_t place)
{
    return team->ranks[tutti_folded_rank(square->nextra, group * square->group_size + place)];
}

static struct tutti_span part(struct tutti_span span, uint32_t first, uint32_t count)
{
    return tutti_span((enum tutti_buffer)span.buffer, span.first + first, count);
}

/* Sum a piece over all groups. The result goes to `sum`, which begins `at` chunks into the whole;
 * the group's own sum is in `current`. */
static int exchange(struct tutti_build *build, const struct tutti_team *team,
                    const struct square *square, struct tutti_span current, struct tutti_span sum,
                    uint32_t at, const uint32_t arrival[2])
{
    for (uint32_t i = 0; 1u << i < square->ngroups; i++) {
        uint32_t partner = rank_at(team, square, square->group ^ (1u << i), square->place);
        /* Two places for arrivals, so that a partner that is ahead need not wait. */
        struct tutti_span arrived = tutti_span(TUTTI_BUF_SCRATCH, arrival[i % 2] + at, sum.count);

        TUTTI_TRY(tutti_build_send(build, partner, current));
        TUTTI_TRY(tutti_build_recv(build, partner, arrived));
        TUTTI_TRY(tutti_build_reduce(build, arrived, sum));
        current = sum;
    }
    return TUTTI_OK;
}

/* Reduce-scatter in the group, exchange between groups, all-gather in the group. */
static int reduce_in_square(struct tutti_build *build, const struct tutti_team *team,
                            const struct square *square, struct tutti_span own,
                            struct tutti_span sum, const uint32_t arrival[2])
{
    struct tutti_team group = {.count = square->group_size, .me = square->place};
    struct tutti_moves moves = {.nchunks = sum.count};
    uint32_t *ranks = malloc(square->group_size * sizeof(*ranks));
    struct tutti_span piece, current;
    int rc;

    if (ranks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a group of %u", square->group_size);
    for (uint32_t i = 0; i < square->group_size; i++)
        ranks[i] = rank_at(team, square, square->group, i);
    group.ranks = ranks;
    TUTTI_TRY_OR(release, rc, tutti_circulant_moves(&group, &moves));

    piece = part(sum, moves.own_first, moves.own_count);
    /* A group of one has its sum from the start and may send it from `own`. */
    current = square->group_size == 1 ? own : piece;
    TUTTI_TRY_OR(release, rc, tutti_moves_reduce_scatter(&moves, build, own, sum, piece));
    TUTTI_TRY_OR(release, rc, exchange(build, team, square, current, piece, moves.own_first,
                                       arrival));
    rc = tutti_moves_gather(&moves, build, piece, sum);

release:
    tutti_moves_fini(&moves);
    free(ranks);
    return rc;
}

int tutti_team_allreduce(struct tutti_build *build, const struct tutti_team *team,
                         struct tutti_span own, struct tutti_span sum, const uint32_t arrival[2],
                         uint32_t doublings)
{
    struct square square = square_of(team, doublings);
    bool is_paired = team->me < 2 * square.nextra;

    if (tutti_folded_is_out(square.nextra, team->me)) {
        TUTTI_TRY(tutti_build_send(build, team->ranks[team->me + 1], own));
        return tutti_build_recv(build, team->ranks[team->me + 1], sum);
    }
    if (is_paired) {
        TUTTI_TRY(tutti_build_recv_reduce(build, team->ranks[team->me - 1], own, sum));
        own = sum;
    }
    TUTTI_TRY(reduce_in_square(build, team, &square, own, sum, arrival));
    return is_paired ? tutti_build_send(build, team->ranks[team->me - 1], sum) : TUTTI_OK;
}

struct tutti_team_cost tutti_team_cost(uint32_t count, uint32_t doublings, double bytes)
{
    double exchanges = doublings_of(count, doublings);
    uint32_t pieces = tutti_team_pieces(count, doublings);
    double is_folded = extra_of(count, doublings) > 0;
    double scattered = (pieces - 1.0) / pieces;

    return (struct tutti_team_cost){
        .rounds = 2 * tutti_rounds_of(pieces) + exchanges + 2 * is_folded,
        .bytes = bytes * (2 * scattered + exchanges / pieces + 2 * is_folded),
        .reduced = bytes * (scattered + exchanges / pieces + is_folded),
        .copied = pieces == 1 ? bytes : tutti_circulant_copied(pieces) * bytes / pieces,
    };
}

/* ---- all ranks ---------------------------------------------------------------------- */

int tutti_team_list(uint32_t nranks, uint32_t first, uint32_t **ret_ranks)
{
    uint32_t *ranks = malloc(nranks * sizeof(*ranks));

    if (ranks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a list of %u ranks", nranks);
    for (uint32_t i = 0; i < nranks; i++)
        ranks[i] = tutti_rank_after(first, i, nranks);
    *ret_ranks = ranks;
    return TUTTI_OK;
}

int tutti_team_allreduce_all(const struct tutti_shape *shape, struct tutti_build *build,
                             uint32_t doublings)
{
    uint32_t pieces = tutti_team_pieces(shape->nranks, doublings);
    uint32_t exchanges = doublings_of(shape->nranks, doublings);
    uint32_t arrival[2] = {0, pieces};
    struct tutti_team team = {.count = shape->nranks, .me = shape->rank};
    uint32_t *ranks;
    int rc;

    TUTTI_TRY(tutti_team_list(shape->nranks, 0, &ranks));
    team.ranks = ranks;
    tutti_build_chunks(build, pieces);
    if (!tutti_folded_is_out(extra_of(shape->nranks, doublings), shape->rank))
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR,
                            (exchanges < 2 ? exchanges : 2) * pieces);
    rc = tutti_team_allreduce(build, &team, tutti_span(TUTTI_BUF_INPUT, 0, pieces),
                              tutti_span(TUTTI_BUF_OUTPUT, 0, pieces), arrival, doublings);
    free(ranks);
    return rc;
}

void tutti_team_cost_all(const struct tutti_shape *shape, double bytes, uint32_t doublings,
                         struct tutti_cost *ret_cost)
{
    uint32_t n = shape->nranks, pieces = tutti_team_pieces(n, doublings);
    uint32_t nextra = extra_of(n, doublings);
    struct tutti_team_cost all = tutti_team_cost(n, doublings, bytes);

    *ret_cost = (struct tutti_cost){.reduced = all.reduced, .copied = all.copied};
    if (pieces > 1)
        tutti_cost_add(shape, 0, tutti_folded_run(nextra, pieces, n), 2 * tutti_rounds_of(pieces),
                       2 * bytes * (pieces - 1) / pieces, ret_cost);
    for (uint32_t i = 0; i < doublings_of(n, doublings); i++)
        tutti_cost_add(shape, 0, tutti_folded_run(nextra, pieces << (i + 1), n), 1, bytes / pieces,
                       ret_cost);
    if (nextra > 0)
        tutti_cost_add(shape, 0, 2, 2, 2 * bytes, ret_cost);
}
