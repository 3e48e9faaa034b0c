/* SPDX-License-Identifier: Apache-2.0
 * Circulant pipeline: broadcast of N segments in N - 1 + q rounds, q = ceil(log2 p). No algorithm
 * has fewer rounds, for any number of ranks. Reduce runs the same rounds backwards; all-reduce is a
 * reduce followed by a broadcast.
 *
 * Places count from the root. The skips are p halved, rounding up, again and again: skips[0] = 1,
 * ..., skips[q] = p. Rounds use them cyclically: in round i every place sends to the place skips[k]
 * after it and receives from the one skips[k] before it, k = i mod q. So a place receives q
 * segments in each row of q rounds, and always the ones that it can pass on in time:
 *
 *   p = 5, skips 1 2 3 (5)             round  skip   place 0   1   2   3   4   receives
 *   N = 3, segments a b c                1     2           .   .   a   .   .
 *   q = 3, so 5 rounds                   2     3           .   .   .   b   .
 *                                        3     1           .   c   .   a   b
 *                                        4     2           .   b   c   .   a
 *                                        5     3           .   a   b   c   c
 *
 * Source: Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast,
 * all-broadcast, reduction and all-reduction", 2024.
 */
#include "algorithms/circulant_pipeline.h"

#include "algorithms/ranks.h"

#define MOST_SKIPS 32
#define MOST_SEGMENTS 4096

/* The segments that one rank sends and receives. recv[k] and send[k] are the segments of the rounds
 * with skip k, counted from the first segment of the current row. */
struct rounds {
    uint32_t nranks, place;
    uint32_t nskips;                /* q */
    uint32_t segments;              /* N */
    uint32_t skips[MOST_SKIPS + 1]; /* skips[0] .. skips[q] */
    int32_t recv[MOST_SKIPS], send[MOST_SKIPS];
};

/* ---- schedules of segments ------------------------------------------------------------------- */

/* Set nskips and skips, as the head of this file defines them. */
static void find_skips(struct rounds *rounds)
{
    uint32_t skip = rounds->nranks;

    rounds->nskips = tutti_rounds_of(rounds->nranks);
    for (uint32_t k = rounds->nskips; k > 0; k--) {
        rounds->skips[k] = skip;
        skip -= skip / 2;
    }
    rounds->skips[0] = skip;
}

/* Write a place as a sum of skips, the largest possible first. Its base is the index of the last
 * skip in the sum. The place receives segment number `base` of each row of q segments before any
 * other segment of that row (find_receives). The base of the root is q. */
static uint32_t find_base(const struct rounds *rounds, uint32_t place)
{
    uint32_t base = rounds->nskips;

    for (uint32_t k = rounds->nskips; place > 0; k--)
        if (place >= rounds->skips[k]) {
            place -= rounds->skips[k];
            base = k;
        }
    return base;
}

/* True if one of the places low .. high - 1 has this base. Requires 1 <= low, high <= skips[k] and
 * base < q. Places skips[k-1] + 1, ... have the same bases as places 1, 2, ... Among the places
 * from 1 to below skips[k], all bases less than k occur. So only the two ends of a run need a
 * closer look. */
static bool has_base(const struct rounds *rounds, uint32_t base, uint32_t low, uint32_t high,
                     uint32_t k)
{
    uint32_t half;

    if (low >= high)
        return false;
    if (low == 1 && high == rounds->skips[k])
        return base < k;
    half = rounds->skips[k - 1];
    if (high <= half)
        return has_base(rounds, base, low, high, k - 1);
    if (low <= half && base == k - 1)
        return true;
    return has_base(rounds, base, low > half ? low - half : 1, high - half, k - 1) ||
           (low < half && has_base(rounds, base, low, half, k - 1));
}

/* The same for `count` places from `first` on, around the circle, and for any base. */
static bool has_base_around(const struct rounds *rounds, uint32_t base, uint32_t first,
                            uint32_t count)
{
    uint32_t n = rounds->nranks, q = rounds->nskips;
    uint32_t above = count < n - first ? count : n - first; /* places up to the end of the circle */
    bool has_root = first == 0 || above < count;

    if (base == q)
        return has_root;
    return has_base(rounds, base, first > 1 ? first : 1, first + above, q) ||
           has_base(rounds, base, 1, count - above, q);
}

/* The largest base that is not in `used` (a set of bits) and that one of the places between
 * skips[k+1] and skips[k] before this one has. The place at distance skips[k+1] is considered only
 * if none of the other places has such a base. */
static uint32_t find_segment(const struct rounds *rounds, uint32_t place, uint32_t k,
                             uint64_t used)
{
    uint32_t n = rounds->nranks, last = tutti_rank_before(place, rounds->skips[k + 1], n);
    uint32_t count = rounds->skips[k + 1] - rounds->skips[k];

    for (uint32_t base = rounds->nskips + 1; base-- > 0;)
        if (!(used >> base & 1) &&
            has_base_around(rounds, base, tutti_rank_after(last, 1, n), count))
            return base;
    return find_base(rounds, last);
}

/* The segments that a place receives in a row of q rounds, relative to the row. All are different,
 * so none is received twice. The segment of the place's base is of this row; all others belong to
 * the row before. */
static void find_receives(const struct rounds *rounds, uint32_t place, int32_t recv[MOST_SKIPS])
{
    uint32_t q = rounds->nskips, base = find_base(rounds, place);
    uint64_t used = UINT64_C(1) << base;

    for (uint32_t k = 0; k < q; k++) {
        uint32_t segment = find_segment(rounds, place, k, used);

        used |= UINT64_C(1) << segment;
        recv[k] = segment == q ? (int32_t)base : (int32_t)segment - (int32_t)q;
    }
}

/* A place sends in a round what the place `skip` after it receives. */
static struct rounds find_rounds(const struct tutti_shape *shape)
{
    struct rounds rounds = {.nranks = shape->nranks,
                            .place = tutti_rank_relative(shape, shape->rank),
                            .segments = shape->options.value[TUTTI_SEGMENTS]};

    find_skips(&rounds);
    find_receives(&rounds, rounds.place, rounds.recv);
    for (uint32_t k = 0; k < rounds.nskips; k++) {
        int32_t recv[MOST_SKIPS];

        find_receives(&rounds, tutti_rank_after(rounds.place, rounds.skips[k], rounds.nranks),
                      recv);
        rounds.send[k] = recv[k];
    }
    return rounds;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The messages of a round: at most one segment each way; count 0 is none. */
struct round {
    uint32_t to, from; /* ranks */
    struct tutti_span sent, received;
};

/* The segment of number `number` in a row. The last round must end a row of q rounds, so the first
 * row begins with `idle` rounds that are left out. In the first rows some segments have negative
 * numbers and do not exist. In the last rows numbers beyond the last segment stand for the last
 * one. */
static struct tutti_span segment_of(const struct rounds *rounds, int32_t number, uint32_t row,
                                    uint32_t idle)
{
    int64_t segment = (int64_t)rounds->nskips * row + number - idle;
    int64_t last = (int64_t)rounds->segments - 1;

    if (segment < 0)
        return tutti_span(TUTTI_BUF_OUTPUT, 0, 0);
    return tutti_span(TUTTI_BUF_OUTPUT, (uint32_t)(segment < last ? segment : last), 1);
}

static uint32_t count_rounds(const struct rounds *rounds)
{
    return rounds->segments - 1 + rounds->nskips;
}

/* The messages of round number `index`, counted from the first round that is not left out. */
static struct round find_round(const struct tutti_shape *shape, const struct rounds *rounds,
                               uint32_t index)
{
    uint32_t n = rounds->nranks, q = rounds->nskips;
    uint32_t idle = (q - (rounds->segments - 1) % q) % q;
    uint32_t row = (idle + index) / q, k = (idle + index) % q;
    uint32_t to = tutti_rank_after(rounds->place, rounds->skips[k], n);
    uint32_t from = tutti_rank_before(rounds->place, rounds->skips[k], n);
    struct round round = {.to = tutti_rank_absolute(shape, to),
                          .from = tutti_rank_absolute(shape, from)};

    /* The root has everything already. */
    if (to != 0)
        round.sent = segment_of(rounds, rounds->send[k], row, idle);
    if (rounds->place != 0)
        round.received = segment_of(rounds, rounds->recv[k], row, idle);
    return round;
}

static int broadcast(const struct tutti_shape *shape, const struct rounds *rounds,
                     enum tutti_buffer source, struct tutti_build *build)
{
    for (uint32_t i = 0; i < count_rounds(rounds); i++) {
        struct round round = find_round(shape, rounds, i);

        round.sent.buffer = source;
        TUTTI_TRY(tutti_build_send(build, round.to, round.sent));
        TUTTI_TRY(tutti_build_recv(build, round.from, round.received));
    }
    return TUTTI_OK;
}

/* The rounds of a broadcast backwards. Segments that the broadcast sends are received here and
 * added up in `kept`, and segments that it receives are sent. Segments count from the last, so the
 * first segments that the broadcast of an all-reduce needs are complete first. */
static int reduce(const struct tutti_shape *shape, const struct rounds *rounds,
                  enum tutti_buffer kept, struct tutti_build *build)
{
    bool is_sum[MOST_SEGMENTS] = {false}; /* per segment: `kept` has its sum so far */

    for (uint32_t i = count_rounds(rounds); i-- > 0;) {
        struct round round = find_round(shape, rounds, i);
        uint32_t out = rounds->segments - 1 - round.received.first;
        uint32_t in = rounds->segments - 1 - round.sent.first;

        TUTTI_TRY(tutti_build_send(build, round.from,
                                   tutti_span(is_sum[out] ? kept : TUTTI_BUF_INPUT, out,
                                              round.received.count)));
        TUTTI_TRY(tutti_build_recv_reduce(build, round.to,
                                          tutti_span(is_sum[in] ? kept : TUTTI_BUF_INPUT, in,
                                                     round.sent.count),
                                          tutti_span(kept, in, round.sent.count)));
        is_sum[in] = is_sum[in] || round.sent.count > 0;
    }
    return TUTTI_OK;
}

int tutti_circulant_pipeline_moves(const struct tutti_team *team, uint32_t first, uint32_t stride,
                                   uint32_t segments, struct tutti_moves *moves)
{
    struct tutti_shape shape = {.nranks = team->count, .rank = team->me,
                                .options = {{[TUTTI_SEGMENTS] = segments}}};
    struct rounds rounds;

    if (team->count == 1)
        return TUTTI_OK;
    rounds = find_rounds(&shape);
    for (uint32_t i = 0; i < count_rounds(&rounds); i++) {
        struct round round = find_round(&shape, &rounds, i);

        TUTTI_TRY(tutti_moves_send(moves, team->ranks[round.to],
                                   first + round.sent.first * stride, round.sent.count));
        TUTTI_TRY(tutti_moves_recv(moves, team->ranks[round.from],
                                   first + round.received.first * stride, round.received.count));
    }
    return TUTTI_OK;
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct rounds rounds = find_rounds(shape);
    enum tutti_buffer source = rounds.place == 0 ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT;

    tutti_build_chunks(build, rounds.segments);
    TUTTI_TRY(broadcast(shape, &rounds, source, build));
    if (rounds.place != 0)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, rounds.segments),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, rounds.segments));
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct rounds rounds = find_rounds(shape);

    tutti_build_chunks(build, rounds.segments);
    if (rounds.place == 0)
        return reduce(shape, &rounds, TUTTI_BUF_OUTPUT, build);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, rounds.segments);
    return reduce(shape, &rounds, TUTTI_BUF_SCRATCH, build);
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct rounds rounds = find_rounds(shape);

    tutti_build_chunks(build, rounds.segments);
    TUTTI_TRY(reduce(shape, &rounds, TUTTI_BUF_OUTPUT, build));
    return broadcast(shape, &rounds, TUTTI_BUF_OUTPUT, build);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* In a reduction the busiest rank is the root, which adds a segment in every round. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    uint32_t segments = shape->options.value[TUTTI_SEGMENTS];
    double rounds = segments - 1 + tutti_rounds_of(shape->nranks);
    double bytes = rounds * block_bytes / segments;
    double times = shape->collective == TUTTI_ALLREDUCE ? 2 : 1;
    bool reduces = tutti_collective_reduces(shape->collective);

    tutti_cost_flat(shape, times * rounds, times * bytes, reduces ? bytes : 0,
                    reduces ? 0 : block_bytes, ret_cost);
}

#define PIPELINE_OPTIONS {[TUTTI_SEGMENTS] = {.least = 1, .most = MOST_SEGMENTS, .usual = 8}}

const struct tutti_algorithm tutti_circulant_pipeline_broadcast = {
    .name = "circulant_pipeline",
    .collective = TUTTI_BROADCAST,
    .is_lean = true,
    .options = PIPELINE_OPTIONS,
    .emit = emit_broadcast,
    .cost = cost,
};

const struct tutti_algorithm tutti_circulant_pipeline_reduce = {
    .name = "circulant_pipeline",
    .collective = TUTTI_REDUCE,
    .options = PIPELINE_OPTIONS,
    .emit = emit_reduce,
    .cost = cost,
};

const struct tutti_algorithm tutti_circulant_pipeline_allreduce = {
    .name = "circulant_pipeline",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .options = PIPELINE_OPTIONS,
    .emit = emit_allreduce,
    .cost = cost,
};
