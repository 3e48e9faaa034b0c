/* SPDX-License-Identifier: Apache-2.0
 * Swing: rounds in which pairs of ranks exchange blocks, as in recursive doubling. The partners of
 * one place alternate between both directions, and are nearer than those of recursive doubling. On
 * a ring or a torus of links each link therefore carries less.
 *
 * Consider a ring of d places, where d is even. In round s each even place x pairs with place
 * x + rho(s), and each odd place x with place x - rho(s), modulo d. The distances are
 * rho(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ... There are ceil(log2 d) rounds. The
 * all-gather takes them in descending order of s, and partners exchange the blocks that the other
 * one lacks. The reduce-scatter is the all-gather read backwards (moves.h). So most of its data
 * goes to neighbors.
 *
 *   All-gather with d = 6, place 0:
 *
 *   round                partner    the partner holds    place 0 gets   place 0 then holds
 *                                                                       0
 *   s = 2, rho = 3       3          3                    3              0 3
 *   s = 1, rho = -1      5          5 2                  5 2            0 3 5 2
 *   s = 0, rho = 1       1          1 4 2 5              1 4            0 3 5 2 1 4
 *
 * One list of distances describes what every place holds. The distance of a block is counted
 * upwards from an even place, and downwards from an odd one. Before round s = 0 of the example,
 * place 0 holds the blocks of places 0, 3, 5, 2, and place 1 those of places 1, 4, 2, 5. For both
 * the distances are 0, 3, 5, 2. Where d is not a power of two, the partner already holds some
 * blocks, and they are not sent again. So d - 1 blocks arrive in all, for every even d.
 *
 * In a ring of an odd number of places the last place takes no part in the rounds. It gives its
 * block to the place before it at the start, and gets all other blocks from there at the end.
 *
 * On a torus the all-gather handles one dimension after another, from the last to the first. In
 * each dimension the ranks that differ only in this coordinate form a line, which is treated as a
 * ring. What a rank has gathered in the dimensions so far is its block in the next one.
 *
 * Within an all-reduce any rank may own any chunk, so this file chooses the numbers of the chunks.
 * Where d is a power of two, they are chosen such that the chunks that a rank holds are always
 * contiguous (label_of). In an all-gather or a reduce-scatter, rank r owns chunk r. There most
 * blocks are not contiguous and are sent one by one.
 *
 * Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
 * allreduce", 2024.
 */
#include "algorithms/moves.h"
#include "algorithms/ranks.h"

#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------- */

#define DIMS_MOST 4

/* The torus: rank = x[0] + d[0] * (x[1] + d[1] * (x[2] + ...)). */
struct torus {
    uint32_t ndims;
    uint32_t d[DIMS_MOST]; /* number of places in each dimension */
    uint32_t x[DIMS_MOST]; /* this rank's place in each dimension, from 0 on */
};

/* Return the torus of the shape. If the shape has none, or one of another size, return a torus of
 * one dimension: a ring of all ranks. */
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

/* The distance between the partners of a round (see the head of this file). */
static int64_t rho(uint32_t round)
{
    int64_t power = INT64_C(1) << (round + 1);

    return (1 - (round % 2 == 0 ? -power : power)) / 3;
}

/* Return the place at a distance from place x on a ring of d places: x + distance (mod d) if x is
 * even, x - distance (mod d) if x is odd. */
static uint32_t place_at(uint32_t x, int64_t distance, uint32_t d)
{
    int64_t sum = ((int64_t)x + (x % 2 == 0 ? distance : -distance)) % d;

    return (uint32_t)(sum < 0 ? sum + d : sum);
}

/* Number the places of a ring of d = 2^k so that the blocks which a place holds after each round of
 * an all-gather have consecutive numbers. Return the number of place x.
 *
 *   d = 8, places in the order of their numbers    0 3 4 7 2 5 6 1
 *   blocks held together after round s = 2         0 3|4 7|2 5|6 1
 *   after round s = 1                              0 3 4 7|2 5 6 1
 *
 * In each round an even place pairs with an odd one. Let e(s) be the even place of the pair of x in
 * round s. After round s two places hold the same blocks if their e(s) differ by a multiple of
 * 2^(s+1). So bit 1 of e(1) tells the two halves apart, bit 2 of e(2) tells the two quarters of a
 * half apart, and so on. These bits, in this order, are the digits of the number. The last digit
 * tells the two places of a pair apart. */
static uint32_t label_of(uint32_t x, uint32_t d)
{
    uint32_t rounds = tutti_rounds_of(d), label = x % 2;

    for (uint32_t s = 1; s < rounds; s++) {
        uint32_t even = x % 2 == 0 ? x : place_at(x, rho(s), d);
        uint32_t digit = even >> s & 1;

        label |= digit << (rounds - s);
    }
    return label;
}

/* ---- lines -------------------------------------------------------------------------- */

/* The chunks of one message, in any order. */
struct message {
    uint32_t *chunks; /* room for all chunks */
    uint32_t count;
};

/* One dimension of the all-gather: the ranks of the torus that differ from this rank only in their
 * place in this dimension. Each of these places has a block. The block of place x consists of
 * `block_chunks` chunks. Its first chunk is base + number_of(x) * number_stride, and the others
 * follow at distances of `chunk_stride`. */
struct line {
    uint32_t d;                   /* number of places on the line */
    uint32_t x;                   /* this rank's place */
    uint32_t rank, rank_stride;   /* this rank; the rank at the next place is rank_stride higher */
    uint32_t base, number_stride; /* in chunks */
    uint32_t block_chunks, chunk_stride;
    bool is_labeled; /* label_of numbers the places; otherwise x is the number */
    /* The distances of the blocks that each place holds: as a list, and as a flag per distance. */
    uint32_t *held;
    uint32_t nheld;
    bool *is_held;
    struct message out, in; /* the current messages to and from the partner */
};

/* The number of places that take part in the rounds: d, rounded down to an even number. */
static uint32_t even_part(uint32_t d)
{
    return d - d % 2;
}

/* True if label_of can number the places of a ring of d. */
static bool has_labels(uint32_t d)
{
    uint32_t even = even_part(d);
    bool is_power_of_two = (even & (even - 1)) == 0;

    return is_power_of_two;
}

/* The number of a place among the places of its line. The place that an odd ring leaves out is the
 * last one. */
static uint32_t number_of(uint32_t x, uint32_t d, bool is_labeled)
{
    uint32_t even = even_part(d);

    return is_labeled && x < even ? label_of(x, even) : x;
}

static uint32_t first_chunk_of(const struct line *line, uint32_t x)
{
    return line->base + number_of(x, line->d, line->is_labeled) * line->number_stride;
}

/* Append the chunks of the block of place x to a message. */
static void append_block(const struct line *line, uint32_t x, struct message *message)
{
    uint32_t first = first_chunk_of(line, x);

    for (uint32_t i = 0; i < line->block_chunks; i++)
        message->chunks[message->count++] = first + i * line->chunk_stride;
}

/* Append the blocks of all places that take part in the rounds. */
static void append_even_part(const struct line *line, struct message *message)
{
    for (uint32_t x = 0; x < even_part(line->d); x++)
        append_block(line, x, message);
}

/* Add the current messages, to and from place x, to the moves. Then begin new ones. */
static int flush(struct line *line, uint32_t x, struct tutti_moves *moves)
{
    uint32_t rank_of_place_0 = line->rank - line->x * line->rank_stride;
    uint32_t peer = rank_of_place_0 + x * line->rank_stride;

    TUTTI_TRY(tutti_moves_send_set(moves, peer, line->out.chunks, line->out.count));
    TUTTI_TRY(tutti_moves_recv_set(moves, peer, line->in.chunks, line->in.count));
    line->out.count = line->in.count = 0;
    return TUTTI_OK;
}

/* ---- rounds ------------------------------------------------------------------------- */

/* Add one round. The partner is at distance `by`, and each place holds the blocks at the distances
 * in line->held. A block at distance h from the partner is at distance by - h from this place, and
 * the same is true the other way round. So if one of the two already holds the block at by - h, the
 * other one does as well, and the two blocks for this h need not be exchanged.
 *
 * The block of the place that an odd ring leaves out travels with the block of the place before it.
 * It has a message of its own, because in a reduce-scatter one of the two blocks may already be a
 * sum of several contributions when the other is not. */
static int add_round(struct line *line, int64_t by, struct tutti_moves *moves)
{
    uint32_t even = even_part(line->d), left_out = even;
    uint32_t nheld_before = line->nheld, partner = place_at(line->x, by, even);
    bool gives_left_out = false, takes_left_out = false;

    for (uint32_t i = 0; i < nheld_before; i++) {
        uint32_t distance = line->held[i];
        uint32_t new_distance = place_at(0, by - (int64_t)distance, even);
        uint32_t give = place_at(line->x, distance, even);
        uint32_t take = place_at(line->x, new_distance, even);

        if (line->is_held[new_distance])
            continue;
        append_block(line, give, &line->out);
        append_block(line, take, &line->in);
        gives_left_out = gives_left_out || give + 1 == left_out;
        takes_left_out = takes_left_out || take + 1 == left_out;
        line->held[line->nheld++] = new_distance;
        line->is_held[new_distance] = true; /* differs for each i, so later checks do not see it */
    }
    TUTTI_TRY(flush(line, partner, moves));
    if (line->d == even)
        return TUTTI_OK;

    if (gives_left_out)
        append_block(line, left_out, &line->out);
    if (takes_left_out)
        append_block(line, left_out, &line->in);
    return flush(line, partner, moves);
}

/* Add all rounds of one dimension. At the start each place holds its own block, at distance 0. */
static int add_rounds(struct line *line, struct tutti_moves *moves)
{
    for (uint32_t distance = 0; distance < line->d; distance++)
        line->is_held[distance] = distance == 0;
    line->held[0] = 0;
    line->nheld = 1;
    for (uint32_t s = tutti_rounds_of(even_part(line->d)); s-- > 0;)
        TUTTI_TRY(add_round(line, rho(s), moves));
    return TUTTI_OK;
}

/* Add all moves of one dimension: the rounds, and in an odd ring the messages between the place
 * that is left out and the place before it, which serves it. */
static int add_line(struct line *line, struct tutti_moves *moves)
{
    bool is_odd = line->d % 2 == 1;
    uint32_t left_out = line->d - 1, server = line->d - 2;

    if (line->d == 1)
        return TUTTI_OK;
    if (!is_odd)
        return add_rounds(line, moves);

    if (line->x == left_out) {
        append_block(line, left_out, &line->out);
        append_even_part(line, &line->in);
        return flush(line, server, moves);
    }
    if (line->x == server) {
        append_block(line, left_out, &line->in);
        TUTTI_TRY(flush(line, left_out, moves));
    }
    TUTTI_TRY(add_rounds(line, moves));
    if (line->x == server) {
        append_even_part(line, &line->out);
        TUTTI_TRY(flush(line, left_out, moves));
    }
    return TUTTI_OK;
}

/* ---- dimensions --------------------------------------------------------------------- */

/* Lay out the chunks of the blocks of dimension `dim` so that each block is contiguous. The number
 * of a chunk has one digit per dimension, the first dimension first; a digit is the number_of its
 * owner's place. `above` is the product of the sizes of the later dimensions. */
static void lay_out_freely(struct line *line, const struct torus *torus, uint32_t dim,
                           uint32_t above)
{
    uint32_t earlier_digits = 0;

    for (uint32_t i = 0; i < dim; i++) {
        uint32_t digit = number_of(torus->x[i], torus->d[i], has_labels(torus->d[i]));

        earlier_digits = earlier_digits * torus->d[i] + digit;
    }
    line->is_labeled = has_labels(line->d);
    line->base = earlier_digits * line->d * above;
    line->number_stride = above;
    line->chunk_stride = 1;
}

/* Lay out the chunks of the blocks so that rank r owns chunk r. The block of a place consists of
 * the chunks of all ranks at this place that agree with this rank in the earlier dimensions.
 * `below` is the product of the sizes of the earlier dimensions. */
static void lay_out_by_rank(struct line *line, uint32_t below)
{
    line->is_labeled = false;
    line->base = line->rank % below;
    line->number_stride = below;
    line->chunk_stride = below * line->d;
}

/* Add the moves of all dimensions, the last dimension first. `is_free`: any rank may own any
 * chunk. `line` brings the memory for its lists. */
static int add_dimensions(const struct tutti_shape *shape, const struct torus *torus, bool is_free,
                          struct line *line, struct tutti_moves *moves)
{
    uint32_t above = 1; /* product of the sizes of the later dimensions */

    for (uint32_t i = torus->ndims; i-- > 0; above *= torus->d[i]) {
        uint32_t below = shape->nranks / above / torus->d[i]; /* of the earlier dimensions */

        line->d = torus->d[i];
        line->x = torus->x[i];
        line->rank = shape->rank;
        line->rank_stride = below;
        line->block_chunks = above;
        if (is_free)
            lay_out_freely(line, torus, i, above);
        else
            lay_out_by_rank(line, below);
        if (i + 1 == torus->ndims)
            moves->own_first = first_chunk_of(line, line->x);
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
    /* One allocation has three lists of n elements: held, out.chunks and in.chunks. */
    struct line line = {.held = malloc(3 * n * sizeof(*line.held)),
                        .is_held = malloc(n * sizeof(*line.is_held))};
    int rc;

    if (line.held == NULL || line.is_held == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the blocks of %zu ranks", n);
        goto release;
    }
    line.out.chunks = line.held + n;
    line.in.chunks = line.out.chunks + n;
    moves->nchunks = shape->nranks;
    moves->own_count = 1;
    rc = add_dimensions(shape, &torus, is_free, &line, moves);

release:
    free(line.held);
    free(line.is_held);
    return rc;
}

/* ---- costs -------------------------------------------------------------------------- */

/* Messages one after the other, and blocks, on the longest path. */
struct path {
    double rounds, blocks;
    double reduced; /* blocks that a reduce-scatter adds up */
};

/* Count the path of the busiest rank. In an odd ring this is the rank that serves the rank left
 * out. The serving rank has two more messages, with one block and with d - 1 blocks, and an
 * additional block in each round. In even rings that are not a power of two a few blocks are copied
 * to join partial sums in one message; they are not counted. */
static struct path path_of(const struct tutti_shape *shape)
{
    struct torus torus = torus_of(shape);
    struct path path = {.rounds = 0};
    double above = 1; /* size of a block of this dimension, in blocks of a rank */

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
