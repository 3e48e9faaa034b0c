/* SPDX-License-Identifier: Apache-2.0
 * Swing: a butterfly whose partners alternate between both directions and are nearer than those of
 * recursive doubling. On a ring or a torus of links each link carries less.
 *
 * In round s each even place of a ring pairs with the place rho(s) after it, and each odd place
 * with the place rho(s) before it; rho(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ...
 * Reduce-scatter takes the rounds upwards, so that most of the data goes to neighbors. The
 * all-gather takes them downwards, and partners exchange the blocks that the other one lacks.
 *
 *   d = 6, rank 0        has             partner    gets
 *   s = 2, rho = 3       0               3          3
 *   s = 1, rho = -1      0 3             5          5 2        5 and 2 are at rank 5, 5 - 3
 *   s = 0, rho = 1       0 2 3 5         1          1 4        1 has 1 5 4 2: two are not new
 *
 * Seen upwards from an even place and downwards from an odd one, all places hold blocks at the same
 * distances, so one list of distances describes all of them. Where d is not a power of two, some
 * blocks are already held and are not sent again; so d - 1 blocks arrive in all, for every even d.
 * An odd ring leaves its last rank out: that rank gives its block to the one before it at the start
 * and gets all other blocks from it in the end.
 *
 * On a torus the dimensions follow one another, the first one first in a reduce-scatter; the block
 * of a place is then everything in the planes through it. Within an all-reduce the chunks can be
 * numbered freely. They are numbered so that the chunks a rank holds are contiguous wherever d is a
 * power of two. Blocks of an all-gather or a reduce-scatter must be sent one by one.
 *
 * Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
 * allreduce", 2024.
 */
#include "algorithms/moves.h"
#include "algorithms/ranks.h"

#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------- */

#define DIMS_MOST 4

/* The torus: rank = x[0] + d[0] * (x[1] + ...). If the places have no torus, or one of another
 * size, it is a ring of all ranks. */
struct torus {
    uint32_t ndims;
    uint32_t d[DIMS_MOST]; /* places in each dimension */
    uint32_t x[DIMS_MOST]; /* this rank's place in each */
};

static struct torus torus_of(const struct tutti_shape *shape)
{
    struct torus torus = {.ndims = 1, .d = {shape->nranks}, .x = {shape->rank}};
    const struct tutti_placement *places = shape->places;
    uint64_t product = 1;

    if (places == NULL || places->ndims == 0 || places->ndims > DIMS_MOST)
        return torus;
    for (uint32_t i = 0; i < places->ndims; i++)
        product *= places->dims[i];
    if (product != shape->nranks)
        return torus;
    torus.ndims = places->ndims;
    for (uint32_t i = 0, rest = shape->rank; i < torus.ndims; i++) {
        torus.d[i] = places->dims[i];
        torus.x[i] = rest % torus.d[i];
        rest /= torus.d[i];
    }
    return torus;
}

/* The distance of the partners in a round (see the head of this file). */
static int64_t rho(uint32_t round)
{
    int64_t power = INT64_C(1) << (round + 1);

    return (1 - (round % 2 == 0 ? -power : power)) / 3;
}

/* Returns x + by (mod d) for even x, x - by (mod d) for odd x: `by` is a distance as an even place
 * sees it. */
static uint32_t swing(uint32_t x, int64_t by, uint32_t d)
{
    int64_t sum = ((int64_t)x + (x % 2 == 0 ? by : -by)) % d;

    return (uint32_t)(sum < 0 ? sum + d : sum);
}

/* Number the places of a ring of d = 2^k so that the blocks which a place holds after each round of
 * an all-gather have consecutive numbers. In each round an even place is paired with an odd one.
 * Before round s a place holds the blocks whose even places in round s differ by multiples of
 * 2^(s+1). So the bits of the even places, from the lowest on, are the digits of the number. */
static uint32_t label_of(uint32_t x, uint32_t d)
{
    uint32_t rounds = tutti_rounds_of(d), label = x % 2;

    for (uint32_t s = 1; s < rounds; s++) {
        uint32_t even = x % 2 == 0 ? x : swing(x, rho(s), d);

        label |= (even >> s & 1) << (rounds - s);
    }
    return label;
}

/* ---- chunks ------------------------------------------------------------------------- */

/* One dimension of the all-gather: the ranks on one line of the torus. The block of place x has
 * `count` chunks: base + number_of(x) * step, and the others at distances of `jump` chunks. */
struct line {
    uint32_t d, x;         /* places on the line; this rank's place */
    uint32_t rank, stride; /* this rank, and the distance to the next rank on the line */
    uint32_t base, step, jump, count;
    bool is_labeled;       /* numbered by label_of */
    uint32_t *held;        /* distances of the blocks held, as an even place sees them */
    bool *is_held;         /* per distance */
    uint32_t nheld;
    uint32_t *give, *take; /* chunks of the current messages */
    uint32_t ngive, ntake;
};

/* Number of places that take part in the rounds: d, rounded down to an even number. */
static uint32_t even_part(uint32_t d)
{
    return d - d % 2;
}

/* True if label_of can number the places of a ring of d. */
static bool has_labels(uint32_t d)
{
    uint32_t even = even_part(d);

    return (even & (even - 1)) == 0;
}

/* The number of a place, which tells where its chunks are. */
static uint32_t number_of(const struct line *line, uint32_t x)
{
    uint32_t even = even_part(line->d);

    return line->is_labeled && x < even ? label_of(x, even) : x;
}

/* Append the chunks of the block of place x to a message. */
static void list_block(const struct line *line, uint32_t x, uint32_t *chunks, uint32_t *count)
{
    uint32_t first = line->base + number_of(line, x) * line->step;

    for (uint32_t i = 0; i < line->count; i++)
        chunks[(*count)++] = first + i * line->jump;
}

static uint32_t rank_at(const struct line *line, uint32_t x)
{
    return line->rank - line->x * line->stride + x * line->stride;
}

/* Append the current messages, to and from place x, to the moves. */
static int flush(struct line *line, uint32_t x, struct tutti_moves *moves)
{
    TUTTI_TRY(tutti_moves_send_set(moves, rank_at(line, x), line->give, line->ngive));
    TUTTI_TRY(tutti_moves_recv_set(moves, rank_at(line, x), line->take, line->ntake));
    line->ngive = line->ntake = 0;
    return TUTTI_OK;
}

/* ---- rounds ------------------------------------------------------------------------- */

/* Partners at distance `by` see each other's distance h as by - h. The block of the place that an
 * odd ring leaves out travels with the block of the last even place. It has a message of its own,
 * because one of the two blocks may already be a sum when the other is not. */
static int add_round(struct line *line, int64_t by, struct tutti_moves *moves)
{
    uint32_t even = even_part(line->d), nheld = line->nheld, partner = swing(line->x, by, even);
    bool gives_last = false, takes_last = false;

    for (uint32_t i = 0; i < nheld; i++) {
        uint32_t theirs = swing(0, by - (int64_t)line->held[i], even);
        uint32_t give = swing(line->x, line->held[i], even), take = swing(line->x, theirs, even);

        if (line->is_held[theirs])
            continue;
        list_block(line, give, line->give, &line->ngive);
        list_block(line, take, line->take, &line->ntake);
        gives_last = gives_last || give + 1 == even;
        takes_last = takes_last || take + 1 == even;
        line->held[line->nheld++] = theirs;
    }
    for (uint32_t i = nheld; i < line->nheld; i++)
        line->is_held[line->held[i]] = true;
    TUTTI_TRY(flush(line, partner, moves));
    if (line->d == even)
        return TUTTI_OK;
    if (gives_last)
        list_block(line, even, line->give, &line->ngive);
    if (takes_last)
        list_block(line, even, line->take, &line->ntake);
    return flush(line, partner, moves);
}

/* Add all rounds of one dimension. An odd ring also has the messages of the rank that it leaves
 * out. */
static int add_line(struct line *line, struct tutti_moves *moves)
{
    uint32_t even = even_part(line->d);
    bool has_extra = line->d % 2 == 1;

    if (line->d == 1)
        return TUTTI_OK;
    if (has_extra && line->x == even) {
        list_block(line, even, line->give, &line->ngive);
        for (uint32_t x = 0; x < even; x++)
            list_block(line, x, line->take, &line->ntake);
        return flush(line, even - 1, moves);
    }
    if (has_extra && line->x + 1 == even) {
        list_block(line, even, line->take, &line->ntake);
        TUTTI_TRY(flush(line, even, moves));
    }

    line->held[0] = 0;
    line->nheld = 1;
    line->is_held[0] = true;
    for (uint32_t s = tutti_rounds_of(even); s-- > 0;)
        TUTTI_TRY(add_round(line, rho(s), moves));

    if (has_extra && line->x + 1 == even) {
        for (uint32_t x = 0; x < even; x++)
            list_block(line, x, line->give, &line->ngive);
        TUTTI_TRY(flush(line, even, moves));
    }
    return TUTTI_OK;
}

/* The last dimension comes first: each rank then has all of its line, which is its block in the
 * dimension before. `is_free`: the chunks may be numbered freely, so they are numbered by the
 * dimensions from the first to the last. */
static int add_dimensions(const struct tutti_shape *shape, const struct torus *torus, bool is_free,
                          struct line *line, struct tutti_moves *moves)
{
    uint32_t above = 1; /* number of places in the dimensions after this one */

    for (uint32_t i = torus->ndims; i-- > 0; above *= torus->d[i]) {
        uint32_t below = shape->nranks / above / torus->d[i], prefix = 0;

        line->d = torus->d[i];
        line->x = torus->x[i];
        line->rank = shape->rank;
        line->stride = below;
        line->count = above;
        line->is_labeled = is_free && has_labels(line->d);
        for (uint32_t j = 0; j < i; j++) {
            struct line other = {.d = torus->d[j], .is_labeled = has_labels(torus->d[j])};

            prefix = prefix * torus->d[j] + number_of(&other, torus->x[j]);
        }
        line->base = is_free ? prefix * torus->d[i] * above : shape->rank % below;
        line->step = is_free ? above : below;
        line->jump = is_free ? 1 : below * torus->d[i];
        if (i + 1 == torus->ndims)
            moves->own_first = line->base + number_of(line, line->x) * line->step;
        for (uint32_t x = 0; x < line->d; x++)
            line->is_held[x] = false;
        TUTTI_TRY(add_line(line, moves));
    }
    return TUTTI_OK;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    bool is_free =
        moves->use == TUTTI_MOVES_ALLREDUCE_GATHER || moves->use == TUTTI_MOVES_ALLREDUCE_SCATTER;
    struct torus torus = torus_of(shape);
    size_t n = shape->nranks;
    struct line line = {.held = malloc(3 * n * sizeof(*line.held)),
                        .is_held = malloc(n * sizeof(*line.is_held))};
    int rc;

    if (line.held == NULL || line.is_held == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the blocks of %zu ranks", n);
        goto release;
    }
    line.give = line.held + n;
    line.take = line.give + n;
    moves->nchunks = shape->nranks;
    moves->own_count = 1;
    rc = add_dimensions(shape, &torus, is_free, &line, moves);

release:
    free(line.held);
    free(line.is_held);
    return rc;
}

/* ---- costs -------------------------------------------------------------------------- */

struct path {
    double rounds, blocks;
    double reduced; /* blocks, in a reduce-scatter */
};

/* The path of the rank that serves the rank left out of an odd ring, and so has two blocks to give.
 * In even rings that are not a power of two a few blocks are copied to join partial sums in one
 * message; they are not counted. */
static struct path path_of(const struct tutti_shape *shape)
{
    struct torus torus = torus_of(shape);
    struct path path = {.rounds = 0};
    double above = 1;

    for (uint32_t i = torus.ndims; i-- > 0; above *= torus.d[i]) {
        uint32_t d = torus.d[i], rounds = d > 1 ? tutti_rounds_of(even_part(d)) : 0;

        path.rounds += rounds;
        path.blocks += (d - 1.0) * above;
        path.reduced += (d - 1.0) * above;
        if (d % 2 == 1 && d > 1) {
            path.rounds += 2;
            path.blocks += (d - 1.0 + rounds) * above;
            path.reduced += (d - 2.0 + rounds) * above; /* the rank left out adds its own block */
        }
    }
    return path;
}

static void cost_allreduce(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct path path = path_of(shape);
    double chunk = block_bytes / shape->nranks;

    tutti_cost_flat(shape, 2 * path.rounds, 2 * path.blocks * chunk, path.reduced * chunk, 0,
                    ret_cost);
}

static void cost_allgather(const struct tutti_shape *shape, double block_bytes,
                           struct tutti_cost *ret_cost)
{
    struct path path = path_of(shape);

    tutti_cost_flat(shape, path.rounds, path.blocks * block_bytes, 0, block_bytes, ret_cost);
}

static void cost_reduce_scatter(const struct tutti_shape *shape, double block_bytes,
                                struct tutti_cost *ret_cost)
{
    struct path path = path_of(shape);

    tutti_cost_flat(shape, path.rounds, path.blocks * block_bytes, path.reduced * block_bytes, 0,
                    ret_cost);
}

const struct tutti_algorithm tutti_swing_allreduce = {
    .name = "swing",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .moves = make,
    .cost = cost_allreduce,
};

const struct tutti_algorithm tutti_swing_reduce_scatter = {
    .name = "swing",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_TORUS,
    .moves = make,
    .cost = cost_reduce_scatter,
};

const struct tutti_algorithm tutti_swing_allgather = {
    .name = "swing",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .moves = make,
    .cost = cost_allgather,
};
