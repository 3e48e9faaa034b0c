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
 * On a torus the ranks that differ only in one coordinate form a line, which is treated as a ring.
 * The rounds of the dimensions alternate, so that most data crosses few links. In the
 * reduce-scatter of 8 x 4 places these are the rounds:
 *
 *   s = 0 in x, s = 0 in y, s = 1 in x, s = 1 in y, s = 2 in x
 *
 * Dimensions with an odd number of places come after all others, one by one. A rank holds blocks of
 * a box: those of all ranks whose place in each dimension is at one of its distances there.
 *
 * The data is divided into parts that use different ports at the same time (torus.h). The parts
 * begin in different dimensions, and half of them are mirrored: an even place x pairs with
 * x - rho(s), and an odd one with x + rho(s). A part and its mirror image use different links in
 * the rounds between neighbors. Without a torus there is one part.
 *
 * Within an all-reduce any rank may own any chunk, so this file chooses the numbers of the chunks.
 * Where d is a power of two, they are chosen such that the chunks that a rank holds are always
 * contiguous (label_of). In an all-gather or a reduce-scatter, rank r owns block r. There most
 * blocks are not contiguous and are sent one by one.
 *
 * Source: De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
 * allreduce", 2024.
 */
#include "algorithms/swing.h"

#include "algorithms/ranks.h"

#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------- */

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
        uint32_t even = x % 2 == 0 ? x : tutti_swing_place(x, tutti_swing_rho(s), d);
        uint32_t digit = even >> s & 1;

        label |= digit << (rounds - s);
    }
    return label;
}

/* True if label_of can number the places of a ring of d. */
static bool has_labels(uint32_t d)
{
    uint32_t even = tutti_swing_even(d);
    bool is_power_of_two = (even & (even - 1)) == 0;

    return is_power_of_two;
}

/* The number of a place among the places of its line. In a mirrored part place x has the partners
 * that place -x has otherwise. The place that an odd ring leaves out is the last one. */
static uint32_t number_of(uint32_t x, uint32_t d, bool is_mirrored)
{
    uint32_t even = tutti_swing_even(d);

    if (!has_labels(d) || x >= even)
        return x;
    return label_of(is_mirrored ? (even - x) % even : x, even);
}

/* ---- numbers of the chunks ---------------------------------------------------------- */

/* Give a dimension the digit of its numbers at `weight`. Return the weight of the next digit. */
static uint32_t add_digit(const struct tutti_torus *torus, struct tutti_torus_part *part,
                          uint32_t dim, uint32_t weight)
{
    bool is_mirrored = tutti_torus_is_down(torus, part->index);

    for (uint32_t x = 0; x < torus->d[dim]; x++)
        part->weight[dim][x] = number_of(x, torus->d[dim], is_mirrored) * weight;
    return weight * torus->d[dim];
}

/* Number the chunks of a part so that those of a message form few runs. Dimensions whose rounds
 * come first in the all-gather have the lowest digits: odd rings. Above them are the bits of the
 * labels, in the order of their rounds. The digits of even rings that have no labels are the
 * highest, since what is held of such a ring is no run. */
static void lay_out_runs(const struct tutti_torus *torus, const struct tutti_swing_stages *stages,
                         struct tutti_torus_part *part)
{
    bool is_mirrored = tutti_torus_is_down(torus, part->index);
    uint32_t weight = 1;

    for (uint32_t i = 0; i < stages->count; i++)
        if (stages->list[i].kind == TUTTI_SWING_JOIN)
            weight = add_digit(torus, part, stages->list[i].dim, weight);
    for (uint32_t dim = 0; dim < torus->ndims; dim++)
        for (uint32_t x = 0; x < torus->d[dim] && torus->d[dim] % 2 == 0; x++)
            part->weight[dim][x] = 0;
    for (uint32_t i = 0; i < stages->count; i++) {
        uint32_t dim = stages->list[i].dim, d = torus->d[dim];
        uint32_t bit = tutti_rounds_of(d) - 1 - stages->list[i].round;

        if (d % 2 == 1 || !has_labels(d))
            continue;
        for (uint32_t x = 0; x < d; x++)
            part->weight[dim][x] += (number_of(x, d, is_mirrored) >> bit & 1) * weight;
        weight *= 2;
    }
    for (uint32_t dim = 0; dim < torus->ndims; dim++)
        if (torus->d[dim] % 2 == 0 && !has_labels(torus->d[dim]))
            weight = add_digit(torus, part, dim, weight);
}

/* ---- rounds ------------------------------------------------------------------------- */

/* One part of the collective, from the point of view of one rank. In each dimension every place
 * holds the blocks at the same distances: as a list, and as a flag per distance. */
struct swing {
    const struct tutti_torus *torus;
    struct tutti_torus_part *part;
    struct tutti_swing_stages stages;
    uint32_t *distances[TUTTI_TORUS_DIMS]; /* nheld of the part */
    bool *is_held[TUTTI_TORUS_DIMS];
};

/* The distance between the partners of a stage, which a mirrored part reverses. */
static int64_t distance_of(const struct swing *swing, const struct tutti_swing_stage *stage)
{
    return tutti_torus_is_down(swing->torus, swing->part->index) ? -tutti_swing_rho(stage->round)
                                                                 : tutti_swing_rho(stage->round);
}

/* Add one round. The partner is at distance `by`, and each place holds the blocks at the distances
 * of the list. A block at distance h from the partner is at distance by - h from this place, and
 * the same is true the other way round. So if one of the two already holds the block at by - h, the
 * other one does as well, and the two blocks for this h need not be exchanged.
 *
 * The block of the place that an odd ring leaves out travels with the block of the place before it.
 * It has a message of its own, because in a reduce-scatter one of the two blocks may already be a
 * sum of several contributions when the other is not. */
static int add_round(struct swing *swing, const struct tutti_swing_stage *stage,
                     struct tutti_moves *moves)
{
    const struct tutti_torus *torus = swing->torus;
    struct tutti_torus_part *part = swing->part;
    uint32_t dim = stage->dim, d = torus->d[dim], x = torus->x[dim];
    uint32_t even = tutti_swing_even(d), left_out = even, nheld = part->nheld[dim];
    int64_t by = distance_of(swing, stage);
    uint32_t partner = tutti_swing_place(x, by, even);
    bool gives_left_out = false, takes_left_out = false;

    for (uint32_t i = 0; i < nheld; i++) {
        uint32_t distance = swing->distances[dim][i];
        uint32_t new_distance = tutti_swing_place(0, by - (int64_t)distance, even);
        uint32_t give = tutti_swing_place(x, distance, even);
        uint32_t take = tutti_swing_place(x, new_distance, even);

        if (swing->is_held[dim][new_distance])
            continue;
        tutti_torus_append(torus, part, dim, give, &part->out);
        tutti_torus_append(torus, part, dim, take, &part->in);
        gives_left_out = gives_left_out || give + 1 == left_out;
        takes_left_out = takes_left_out || take + 1 == left_out;
        swing->distances[dim][part->nheld[dim]] = new_distance;
        swing->is_held[dim][new_distance] = true; /* differs for each i: later checks are right */
        tutti_torus_hold(part, dim, take);
    }
    TUTTI_TRY(tutti_torus_send(torus, part, dim, partner, moves));
    TUTTI_TRY(tutti_torus_recv(torus, part, dim, partner, moves));
    if (d == even)
        return TUTTI_OK;

    if (gives_left_out)
        tutti_torus_append(torus, part, dim, left_out, &part->out);
    if (takes_left_out)
        tutti_torus_append(torus, part, dim, left_out, &part->in);
    TUTTI_TRY(tutti_torus_send(torus, part, dim, partner, moves));
    return tutti_torus_recv(torus, part, dim, partner, moves);
}

/* Add the message in which the place that is left out gives its block to the place before it, which
 * serves it. */
static int add_join(struct swing *swing, uint32_t dim, struct tutti_moves *moves)
{
    const struct tutti_torus *torus = swing->torus;
    struct tutti_torus_part *part = swing->part;
    uint32_t x = torus->x[dim], left_out = torus->d[dim] - 1, server = left_out - 1;

    if (x == left_out) {
        tutti_torus_append(torus, part, dim, left_out, &part->out);
        return tutti_torus_send(torus, part, dim, server, moves);
    }
    if (x != server)
        return TUTTI_OK;
    tutti_torus_append(torus, part, dim, left_out, &part->in);
    return tutti_torus_recv(torus, part, dim, left_out, moves);
}

/* Add the message in which the place that is left out gets all other blocks. */
static int add_serve(struct swing *swing, uint32_t dim, struct tutti_moves *moves)
{
    const struct tutti_torus *torus = swing->torus;
    struct tutti_torus_part *part = swing->part;
    uint32_t x = torus->x[dim], left_out = torus->d[dim] - 1, server = left_out - 1;

    for (uint32_t place = 0; place < left_out && x >= server; place++)
        tutti_torus_append(torus, part, dim, place, x == server ? &part->out : &part->in);
    if (x == server)
        TUTTI_TRY(tutti_torus_send(torus, part, dim, left_out, moves));
    if (x == left_out)
        TUTTI_TRY(tutti_torus_recv(torus, part, dim, server, moves));
    tutti_torus_hold_all(torus, part, dim);
    return TUTTI_OK;
}

static int add_stage_moves(struct swing *swing, const struct tutti_swing_stage *stage,
                           struct tutti_moves *moves)
{
    uint32_t d = swing->torus->d[stage->dim], x = swing->torus->x[stage->dim];
    bool is_left_out = d % 2 == 1 && x == d - 1;

    switch (stage->kind) {
    case TUTTI_SWING_JOIN: return add_join(swing, stage->dim, moves);
    case TUTTI_SWING_SERVE: return add_serve(swing, stage->dim, moves);
    case TUTTI_SWING_ROUND: break;
    }
    return is_left_out ? TUTTI_OK : add_round(swing, stage, moves);
}

/* Begin a part: in each dimension each place holds its own block, at distance 0. `distances` and
 * `is_held` have room for the places of all dimensions. */
static void begin(const struct tutti_torus *torus, struct tutti_torus_part *part, bool is_free,
                  uint32_t *distances, bool *is_held, struct swing *ret_swing)
{
    struct swing swing = {.torus = torus, .part = part};

    tutti_swing_stages(torus, part->index, &swing.stages);
    if (is_free)
        lay_out_runs(torus, &swing.stages, part);
    for (uint32_t dim = 0; dim < torus->ndims; dim++) {
        swing.distances[dim] = distances;
        swing.is_held[dim] = is_held;
        distances[0] = 0;
        is_held[0] = true;
        distances += torus->d[dim];
        is_held += torus->d[dim];
    }
    *ret_swing = swing;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct tutti_torus torus = tutti_torus_of(shape);
    struct tutti_torus_part parts[TUTTI_TORUS_PARTS];
    struct swing swings[TUTTI_TORUS_PARTS];
    uint32_t nplaces = 0, *distances;
    bool *is_held;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_torus_begin(shape, &torus, moves, parts));
    for (uint32_t dim = 0; dim < torus.ndims; dim++)
        nplaces += torus.d[dim];
    distances = calloc((size_t)torus.nparts * nplaces, sizeof(*distances));
    is_held = calloc((size_t)torus.nparts * nplaces, sizeof(*is_held));
    if (distances == NULL || is_held == NULL) {
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the blocks of %u ranks", shape->nranks);
        goto release;
    }
    for (uint32_t i = 0; i < torus.nparts; i++)
        begin(&torus, &parts[i], tutti_torus_is_free(moves), distances + (size_t)i * nplaces,
              is_held + (size_t)i * nplaces, &swings[i]);
    /* All ranks add the stages of all parts in this order, so parts can share a channel. */
    for (uint32_t stage = 0; stage < swings[0].stages.count; stage++)
        for (uint32_t i = 0; i < torus.nparts; i++)
            TUTTI_TRY_OR(release, rc,
                         add_stage_moves(&swings[i], &swings[i].stages.list[stage], moves));

release:
    free(distances);
    free(is_held);
    tutti_torus_end(&torus, parts);
    return rc;
}

/* The usual value is 0, which stands for two parts for each dimension of a torus. */
#define PARTS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_TORUS_PARTS}}

const struct tutti_algorithm tutti_swing_allreduce = {
    .name = "swing",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = tutti_swing_cost,
};

const struct tutti_algorithm tutti_swing_reduce_scatter = {
    .name = "swing",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = tutti_swing_cost,
};

const struct tutti_algorithm tutti_swing_allgather = {
    .name = "swing",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = tutti_swing_cost,
};
