/* SPDX-License-Identifier: Apache-2.0
 * Bucket: rings along the dimensions of a torus, one dimension after another, through all ports of
 * a rank at the same time.
 *
 * The all-gather of one part (torus.h) handles the dimensions one by one. In a dimension of d
 * places the ranks that differ only in this coordinate form a ring. In each of d - 1 rounds a rank
 * sends to the next place what came in the round before; at first it sends what it has. What it has
 * gathered in the dimensions so far is its block in the next one.
 *
 *   torus of 3 x 2, rank 0, a part that ends with x:       3 4 5
 *                                                           0 1 2
 *   round             sends      to    receives    from
 *   y, 1              0          3     3           3
 *   x upwards, 1      0 3        1     2 5         2
 *   x upwards, 2      2 5        1     1 4         2
 *
 * Every message goes to a neighbor. A torus of n dimensions has 2n parts, each with its own first
 * dimension and direction. So if all dimensions are equal, every link carries one part at a time,
 * and every port is busy until the end. The reduce-scatter is the all-gather read backwards
 * (moves.h).
 *
 * Without a torus all ranks form one ring, and there is one part: this is the algorithm of ring.c.
 *
 * Within an all-reduce the chunks are numbered such that every message is contiguous. In an
 * all-gather or a reduce-scatter, rank r owns block r, and every block is sent by itself.
 *
 * Sources: Sack and Gropp, "Collective algorithms for multiported torus networks", 2015; Jain and
 * Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects", 2010.
 */
#include "algorithms/ranks.h"
#include "algorithms/torus.h"

/* Number the chunks of a part. The first dimension of the reduce-scatter has the highest digit, so
 * a block of the all-gather is a run. */
static void lay_out_runs(const struct tutti_torus *torus, struct tutti_torus_part *part)
{
    uint32_t run = 1; /* chunks of a block of this dimension */

    for (uint32_t i = torus->ndims; i-- > 0;) {
        uint32_t dim = tutti_torus_dim(torus, part->index, i);

        for (uint32_t place = 0; place < torus->d[dim]; place++)
            part->weight[dim][place] = place * run;
        run *= torus->d[dim];
    }
}

/* Add round number `round` of one dimension. */
static int add_round(const struct tutti_torus *torus, struct tutti_torus_part *part, uint32_t dim,
                     uint32_t round, struct tutti_moves *moves)
{
    uint32_t d = torus->d[dim], x = torus->x[dim];
    bool is_down = tutti_torus_is_down(torus, part->index);
    uint32_t next = is_down ? tutti_rank_before(x, 1, d) : tutti_rank_after(x, 1, d);
    uint32_t previous = is_down ? tutti_rank_after(x, 1, d) : tutti_rank_before(x, 1, d);
    uint32_t give = is_down ? tutti_rank_after(x, round, d) : tutti_rank_before(x, round, d);
    uint32_t take = is_down ? tutti_rank_after(x, round + 1, d)
                            : tutti_rank_before(x, round + 1, d);

    tutti_torus_append(torus, part, dim, give, &part->out);
    tutti_torus_append(torus, part, dim, take, &part->in);
    TUTTI_TRY(tutti_torus_send(torus, part, dim, next, moves));
    TUTTI_TRY(tutti_torus_recv(torus, part, dim, previous, moves));
    if (round + 2 == d)
        tutti_torus_hold_all(torus, part, dim);
    return TUTTI_OK;
}

/* Add round number `round` of a part, counted over all dimensions. */
static int add_round_of_part(const struct tutti_torus *torus, struct tutti_torus_part *part,
                             uint32_t round, struct tutti_moves *moves)
{
    for (uint32_t i = torus->ndims; i-- > 0;) {
        uint32_t dim = tutti_torus_dim(torus, part->index, i);

        if (round < torus->d[dim] - 1)
            return add_round(torus, part, dim, round, moves);
        round -= torus->d[dim] - 1;
    }
    return TUTTI_OK;
}

static int make(const struct tutti_shape *shape, struct tutti_moves *moves)
{
    struct tutti_torus torus = tutti_torus_of(shape);
    struct tutti_torus_part parts[TUTTI_TORUS_PARTS];
    uint32_t rounds = 0;
    int rc = TUTTI_OK;

    TUTTI_TRY(tutti_torus_begin(shape, &torus, moves, parts));
    for (uint32_t i = 0; i < torus.nparts && tutti_torus_is_free(moves); i++)
        lay_out_runs(&torus, &parts[i]);
    for (uint32_t dim = 0; dim < torus.ndims; dim++)
        rounds += torus.d[dim] - 1;
    /* All ranks add the rounds of all parts in this order, so parts can share a channel. */
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t i = 0; i < torus.nparts; i++)
            TUTTI_TRY_OR(release, rc, add_round_of_part(&torus, &parts[i], round, moves));

release:
    tutti_torus_end(&torus, parts);
    return rc;
}

static void cost(const struct tutti_shape *shape, double block_bytes, struct tutti_cost *ret_cost)
{
    struct tutti_torus torus = tutti_torus_of(shape);
    struct tutti_torus_path path = {.blocks = shape->nranks - 1.0, .reduced = shape->nranks - 1.0};
    bool goes_both_ways = torus.nparts > torus.ndims;

    for (uint32_t dim = 0; dim < torus.ndims; dim++)
        path.rounds += torus.d[dim] - 1;
    path.hops = path.rounds;
    for (uint32_t part = 0; part < torus.nparts; part++) {
        double block = 1, busiest = 0;

        for (uint32_t i = torus.ndims; i-- > 0;) {
            uint32_t dim = tutti_torus_dim(&torus, part, i), d = torus.d[dim];
            bool is_down = d > 2 && tutti_torus_is_down(&torus, part);

            /* Two places have one link, which is up and down at once. */
            busiest += (d - 1) * block * (d == 2 && goes_both_ways ? 2 : 1);
            path.load[dim][is_down] += (d - 1) * block;
            block *= d;
        }
        path.busiest = busiest > path.busiest ? busiest : path.busiest;
    }
    tutti_torus_cost(shape, &torus, &path, block_bytes, ret_cost);
}

/* The usual value is 0, which stands for two parts for each dimension. */
#define PARTS {[TUTTI_CHANNELS] = {.least = 1, .most = TUTTI_TORUS_PARTS}}

const struct tutti_algorithm tutti_bucket_allreduce = {
    .name = "bucket",
    .collective = TUTTI_ALLREDUCE,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_bucket_reduce_scatter = {
    .name = "bucket",
    .collective = TUTTI_REDUCE_SCATTER,
    .serves_vector = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = cost,
};

const struct tutti_algorithm tutti_bucket_allgather = {
    .name = "bucket",
    .collective = TUTTI_ALLGATHER,
    .serves_vector = true,
    .is_lean = true,
    .uses = TUTTI_USES_TORUS,
    .options = PARTS,
    .moves = make,
    .cost = cost,
};
