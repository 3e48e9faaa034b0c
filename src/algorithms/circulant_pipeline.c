/* SPDX-License-Identifier: Apache-2.0
 * Circulant pipeline: broadcast of N segments to p ranks in N - 1 + q rounds, q = ceil(log2 p). No
 * algorithm has fewer rounds, for any number of ranks. Reduce runs the same rounds backwards;
 * all-reduce is a reduce followed by a broadcast.
 *
 * A place is the position of a rank in the circle that begins at the root, so the root is place 0.
 * The skips are p halved, rounding up, again and again: skips[0] = 1, ..., skips[q] = p. The rounds
 * use skips[0] .. skips[q-1] one after another, and then from the beginning again. In a round with
 * skip k every place sends one segment to the place skips[k] after it, and receives one from the
 * place skips[k] before it. So a place receives q segments in each row of q rounds.
 *
 *   p = 5, q = 3, skips 1 2 3; N = 3, segments a b c, so 5 rounds
 *
 *                        segments that arrive at place
 *   row   k    skip      0   1   2   3   4
 *   0     1    2         .   .   a   .   .         The last round must end a row, so k = 0 of row 0
 *   0     2    3         .   .   .   b   .         is left out.
 *   1     0    1         .   c   .   a   b
 *   1     1    2         .   b   c   .   a
 *   1     2    3         .   a   b   c   c
 *
 * The root sends segment number k of a row in the round with skip k of that row, to place skips[k].
 * In the later rounds of the same row, which have larger skips, the segment also reaches some
 * places further on. All these places have base k (find_base). For example, c is segment number 0
 * of row 1. The root sends c to place 1, which sends c to place 1 + 3; these two places have base
 * 0. So each place other than the root receives one segment of the current row. The other q - 1
 * segments that it receives in a row belong to the row before. They come from places that have
 * received them in time to pass them on (find_receives).
 *
 * A rank often has a segment long before the round in which it sends the segment. Sent early, the
 * message would take a port that a message of an earlier round needs, and whatever waits for that
 * message would come later. So the messages of each direction are in a queue (build.h): they run in
 * the order of the rounds. Then a message waits only for messages of earlier rounds, at both of its
 * ranks. If all messages take equally long, round i ends after i + 1 of these times.
 *
 * Two ranks need no queue, because the messages between them run in order. Steps in queues are not
 * fused (fuse.c), so without one the ranks can forward slices of a segment.
 *
 * In an all-reduce the reduce and the broadcast have different queues, because the broadcast of the
 * first segments overlaps the reduce of the last ones.
 *
 * Source: Träff, "Optimal broadcast schedules in logarithmic time with applications to broadcast,
 * all-broadcast, reduction and all-reduction", 2024. It proves that the segments chosen here always
 * arrive before they are sent on.
 */
#include "algorithms/circulant_pipeline.h"

#include "algorithms/ranks.h"

#define MOST_SKIPS 32
#define MOST_SEGMENTS 4096

/* The queues of the messages (build.h). */
enum { NO_QUEUE, REDUCE_QUEUE, BROADCAST_QUEUE };

/* The segments that one rank sends and receives. recv[k] and send[k] are the numbers of the
 * segments in the round with skip k, counted from the first segment of the current row. A negative
 * number stands for a segment of the row before. */
struct pipeline {
    uint32_t nranks, place;
    uint32_t nskips;                /* q */
    uint32_t nsegments;             /* N */
    uint32_t skips[MOST_SKIPS + 1]; /* skips[0] .. skips[q] */
    int32_t recv[MOST_SKIPS], send[MOST_SKIPS];
};

/* ---- the segments of a row ------------------------------------------------------------------- */

/* Set nskips and skips, as the head of this file defines them. */
static void find_skips(struct pipeline *pipeline)
{
    uint32_t skip = pipeline->nranks;

    pipeline->nskips = tutti_rounds_of(pipeline->nranks);
    for (uint32_t k = pipeline->nskips; k > 0; k--) {
        pipeline->skips[k] = skip;
        skip -= skip / 2;
    }
    pipeline->skips[0] = skip;
}

/* Return the base of a place: the index of the smallest skip when the place is written as a sum of
 * skips, taking the largest possible skip first. With skips 1 2 3, place 4 = 3 + 1 has base 0. The
 * base of the root, an empty sum, is q. */
static uint32_t find_base(const struct pipeline *pipeline, uint32_t place)
{
    uint32_t base = pipeline->nskips;

    for (uint32_t k = pipeline->nskips; place > 0; k--)
        if (place >= pipeline->skips[k]) {
            place -= pipeline->skips[k];
            base = k;
        }
    return base;
}

/* True if one of the places low .. high - 1 has this base. Requires 1 <= low, high <= skips[k] and
 * base < q.
 *
 * Let half be skips[k-1]. The places from 1 to half - 1 together have all bases below k - 1. Place
 * half has base k - 1. The places half + 1, half + 2, ... have the same bases as places 1, 2, ...
 * So the question about a range leads to the same question about at most two ranges below half. */
static bool has_base(const struct pipeline *pipeline, uint32_t base, uint32_t low, uint32_t high,
                     uint32_t k)
{
    uint32_t half;

    if (low >= high)
        return false;
    if (low == 1 && high == pipeline->skips[k])
        return base < k;
    half = pipeline->skips[k - 1];
    if (high <= half)
        return has_base(pipeline, base, low, high, k - 1);
    if (low <= half && base == k - 1)
        return true;
    return has_base(pipeline, base, low > half ? low - half : 1, high - half, k - 1) ||
           (low < half && has_base(pipeline, base, low, half, k - 1));
}

/* True if one of `count` places, from `first` on around the circle, has this base. The base may
 * also be that of the root. */
static bool has_base_around(const struct pipeline *pipeline, uint32_t base, uint32_t first,
                            uint32_t count)
{
    uint32_t n = pipeline->nranks, q = pipeline->nskips;
    uint32_t upper = count < n - first ? count : n - first; /* places up to the end of the circle */
    bool has_root = first == 0 || upper < count;

    if (base == q)
        return has_root;
    return has_base(pipeline, base, first > 1 ? first : 1, first + upper, q) ||
           has_base(pipeline, base, 1, count - upper, q);
}

/* Return the largest base that one of the places between skips[k+1] - 1 and skips[k] before `place`
 * has, and whose bit is not set in `used`. If they have none, return the base of the place at
 * distance skips[k+1]. */
static uint32_t find_segment(const struct pipeline *pipeline, uint32_t place, uint32_t k,
                             uint64_t used)
{
    uint32_t n = pipeline->nranks;
    uint32_t farthest = tutti_rank_before(place, pipeline->skips[k + 1], n);
    uint32_t first = tutti_rank_after(farthest, 1, n);
    uint32_t count = pipeline->skips[k + 1] - pipeline->skips[k];

    for (uint32_t base = pipeline->nskips + 1; base-- > 0;)
        if (!(used >> base & 1) && has_base_around(pipeline, base, first, count))
            return base;
    return find_base(pipeline, farthest);
}

/* Find the segments that a place receives in a row of q rounds. All are different, so none is
 * received twice.
 *
 * In the round with skip k a place receives the segment whose number is the base of an earlier
 * place (find_segment), from the row before. The exception is the base q of the root: it stands for
 * the segment of this row whose number is the base of the receiving place itself.
 *
 *   p = 5, place 4, base 0        k = 0: place 3, base 2             receives 2 - 3 = -1
 *                                 k = 1: place 2, base 1             receives 1 - 3 = -2
 *                                 k = 2: places 0 and 1, base q      receives 0
 */
static void find_receives(const struct pipeline *pipeline, uint32_t place,
                          int32_t ret_recv[MOST_SKIPS])
{
    uint32_t q = pipeline->nskips, own_base = find_base(pipeline, place);
    uint64_t used = UINT64_C(1) << own_base; /* a bit for each base */

    for (uint32_t k = 0; k < q; k++) {
        uint32_t base = find_segment(pipeline, place, k, used);

        used |= UINT64_C(1) << base;
        ret_recv[k] = base == q ? (int32_t)own_base : (int32_t)base - (int32_t)q;
    }
}

static struct pipeline pipeline_of(const struct tutti_shape *shape)
{
    struct pipeline pipeline = {.nranks = shape->nranks,
                                .place = tutti_rank_relative(shape, shape->rank),
                                .nsegments = shape->options.value[TUTTI_SEGMENTS]};

    find_skips(&pipeline);
    find_receives(&pipeline, pipeline.place, pipeline.recv);
    for (uint32_t k = 0; k < pipeline.nskips; k++) {
        uint32_t to = tutti_rank_after(pipeline.place, pipeline.skips[k], pipeline.nranks);
        int32_t recv_of_peer[MOST_SKIPS];

        find_receives(&pipeline, to, recv_of_peer);
        pipeline.send[k] = recv_of_peer[k];
    }
    return pipeline;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The messages of a round in a broadcast: at most one segment each way; count 0 is none. */
struct round {
    uint32_t to, from; /* ranks */
    struct tutti_span sent, received;
};

static uint32_t count_rounds(const struct pipeline *pipeline)
{
    return pipeline->nsegments - 1 + pipeline->nskips;
}

/* The number of rounds of the first row that are left out, so that the last round ends a row. */
static uint32_t count_idle_rounds(const struct pipeline *pipeline)
{
    uint32_t q = pipeline->nskips;

    return (q - (pipeline->nsegments - 1) % q) % q;
}

/* Return segment number `number` of a row. In the first rows some of these segments would come
 * before segment 0: they do not exist, and the result is empty. In the last rows some would come
 * after the last segment: each of them stands for the last one. */
static struct tutti_span segment_of(const struct pipeline *pipeline, int32_t number, uint32_t row)
{
    int64_t first_of_row = (int64_t)pipeline->nskips * row - count_idle_rounds(pipeline);
    int64_t segment = first_of_row + number;
    int64_t last = (int64_t)pipeline->nsegments - 1;

    if (segment < 0)
        return tutti_span(TUTTI_BUF_OUTPUT, 0, 0);
    return tutti_span(TUTTI_BUF_OUTPUT, (uint32_t)(segment < last ? segment : last), 1);
}

/* The messages of round number `index`, counted from the first round that is not left out. */
static struct round find_round(const struct tutti_shape *shape, const struct pipeline *pipeline,
                               uint32_t index)
{
    uint32_t n = pipeline->nranks, q = pipeline->nskips;
    uint32_t index_with_idle = count_idle_rounds(pipeline) + index;
    uint32_t row = index_with_idle / q, k = index_with_idle % q;
    uint32_t to = tutti_rank_after(pipeline->place, pipeline->skips[k], n);
    uint32_t from = tutti_rank_before(pipeline->place, pipeline->skips[k], n);
    struct round round = {.to = tutti_rank_absolute(shape, to),
                          .from = tutti_rank_absolute(shape, from)};

    /* The root has all segments from the start, so nothing is sent to it. */
    if (to != 0)
        round.sent = segment_of(pipeline, pipeline->send[k], row);
    if (pipeline->place != 0)
        round.received = segment_of(pipeline, pipeline->recv[k], row);
    return round;
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* Emit a broadcast to OUTPUT. `source` is the buffer from which this rank sends. */
static int broadcast(const struct tutti_shape *shape, const struct pipeline *pipeline,
                     enum tutti_buffer source, struct tutti_build *build)
{
    build->queue = pipeline->nranks > 2 ? BROADCAST_QUEUE : NO_QUEUE;
    for (uint32_t i = 0; i < count_rounds(pipeline); i++) {
        struct round round = find_round(shape, pipeline, i);

        round.sent.buffer = source;
        TUTTI_TRY(tutti_build_send(build, round.to, round.sent));
        TUTTI_TRY(tutti_build_recv(build, round.from, round.received));
    }
    build->queue = NO_QUEUE;
    return TUTTI_OK;
}

/* Emit a reduce: the rounds of a broadcast backwards. A segment that the broadcast sends is
 * received here and added up in the buffer `sums`; a segment that the broadcast receives is sent
 * here. Segment i of the broadcast is segment N - 1 - i here. The first segments that the
 * broadcast of an all-reduce sends are then those that are complete first. */
static int reduce(const struct tutti_shape *shape, const struct pipeline *pipeline,
                  enum tutti_buffer sums, struct tutti_build *build)
{
    /* Per segment: `sums` has the sum so far. Until then INPUT has this rank's contribution. */
    bool has_sum[MOST_SEGMENTS] = {false};
    uint32_t last = pipeline->nsegments - 1;

    build->queue = pipeline->nranks > 2 ? REDUCE_QUEUE : NO_QUEUE;
    for (uint32_t i = count_rounds(pipeline); i-- > 0;) {
        struct round round = find_round(shape, pipeline, i);
        uint32_t out = last - round.received.first, nout = round.received.count;
        uint32_t in = last - round.sent.first, nin = round.sent.count;
        enum tutti_buffer out_buffer = has_sum[out] ? sums : TUTTI_BUF_INPUT;
        enum tutti_buffer in_buffer = has_sum[in] ? sums : TUTTI_BUF_INPUT;

        TUTTI_TRY(tutti_build_send(build, round.from, tutti_span(out_buffer, out, nout)));
        TUTTI_TRY(tutti_build_recv_reduce(build, round.to, tutti_span(in_buffer, in, nin),
                                          tutti_span(sums, in, nin)));
        has_sum[in] = has_sum[in] || nin > 0;
    }
    build->queue = NO_QUEUE;
    return TUTTI_OK;
}

/* The team's first member is the root, rank 0 of `shape`; ranks of `shape` are members. */
int tutti_circulant_pipeline_moves(const struct tutti_team *team, uint32_t first, uint32_t stride,
                                   uint32_t segments, struct tutti_moves *moves)
{
    struct tutti_shape shape = {
        .nranks = team->count, .rank = team->me, .options = {{[TUTTI_SEGMENTS] = segments}}};
    struct pipeline pipeline;

    if (team->count == 1)
        return TUTTI_OK;
    pipeline = pipeline_of(&shape);
    for (uint32_t i = 0; i < count_rounds(&pipeline); i++) {
        struct round round = find_round(&shape, &pipeline, i);

        TUTTI_TRY(tutti_moves_send(moves, team->ranks[round.to], first + round.sent.first * stride,
                                   round.sent.count));
        TUTTI_TRY(tutti_moves_recv(moves, team->ranks[round.from],
                                   first + round.received.first * stride, round.received.count));
    }
    return TUTTI_OK;
}

static int emit_broadcast(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct pipeline pipeline = pipeline_of(shape);
    enum tutti_buffer source = pipeline.place == 0 ? TUTTI_BUF_INPUT : TUTTI_BUF_OUTPUT;

    tutti_build_chunks(build, pipeline.nsegments);
    TUTTI_TRY(broadcast(shape, &pipeline, source, build));
    if (pipeline.place != 0)
        return TUTTI_OK;
    return tutti_build_copy(build, tutti_span(TUTTI_BUF_INPUT, 0, pipeline.nsegments),
                            tutti_span(TUTTI_BUF_OUTPUT, 0, pipeline.nsegments));
}

static int emit_reduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct pipeline pipeline = pipeline_of(shape);

    tutti_build_chunks(build, pipeline.nsegments);
    if (pipeline.place == 0)
        return reduce(shape, &pipeline, TUTTI_BUF_OUTPUT, build);
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, pipeline.nsegments);
    return reduce(shape, &pipeline, TUTTI_BUF_SCRATCH, build);
}

static int emit_allreduce(const struct tutti_shape *shape, struct tutti_build *build)
{
    struct pipeline pipeline = pipeline_of(shape);

    tutti_build_chunks(build, pipeline.nsegments);
    TUTTI_TRY(reduce(shape, &pipeline, TUTTI_BUF_OUTPUT, build));
    return broadcast(shape, &pipeline, TUTTI_BUF_OUTPUT, build);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* In a reduce or an all-reduce the busiest rank is the root, which adds a segment in every round of
 * the reduce. In a broadcast the root copies its block. */
static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    uint32_t segments = shape->options.value[TUTTI_SEGMENTS];
    double rounds = segments - 1 + tutti_rounds_of(shape->nranks);
    double bytes = rounds * block_bytes / segments;
    double passes = shape->collective == TUTTI_ALLREDUCE ? 2 : 1;
    bool reduces = tutti_collective_reduces(shape->collective);

    tutti_cost_flat(shape, passes * rounds, passes * bytes, reduces ? bytes : 0,
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
