/* SPDX-License-Identifier: Apache-2.0
 * Collectives on a torus that use several ports of a rank at the same time.
 *
 * Every block is cut into parts of equal size. Each part is an all-gather of its own, on a channel
 * of its own (moves.h). In each of its rounds a part works in one dimension: a rank exchanges data
 * with ranks that differ from it only in their place in this dimension. Different parts begin in
 * different dimensions and directions, so they cross different links:
 *
 *   2 dimensions, 4 parts    part 0   x upwards,   then y upwards
 *                            part 1   y upwards,   then x upwards
 *                            part 2   x downwards, then y downwards
 *                            part 3   y downwards, then x downwards
 *
 * That is the order of a reduce-scatter. Its first dimension has the most data. An all-gather has
 * the opposite order.
 */
#ifndef TUTTI_ALGORITHMS_TORUS_H
#define TUTTI_ALGORITHMS_TORUS_H

#include "algorithms/moves.h"

#define TUTTI_TORUS_DIMS 4
#define TUTTI_TORUS_PARTS (2 * TUTTI_TORUS_DIMS)

/* The dimensions with more than one place: rank = x[0] * stride[0] + x[1] * stride[1] + ... */
struct tutti_torus {
    uint32_t ndims;                /* at least 1 if there are two ranks */
    uint32_t d[TUTTI_TORUS_DIMS];  /* number of places in each dimension */
    uint32_t x[TUTTI_TORUS_DIMS];  /* this rank's place in each dimension, from 0 on */
    uint32_t stride[TUTTI_TORUS_DIMS];
    uint32_t nparts;               /* parts to use, 1 .. 2 * ndims */
    bool is_given;                 /* false: a ring of all ranks, because the shape has no torus */
};

/* Return the torus of the shape. If the shape has none, or one of another size, return a torus of
 * one dimension: a ring of all ranks. The number of parts is the option channels, at most two for
 * each dimension. Without the option it is two for each dimension of a torus that is given, and
 * otherwise one. */
struct tutti_torus tutti_torus_of(const struct tutti_shape *shape);

/* The dimension that comes `index`-th in the reduce-scatter of a part. */
static inline uint32_t tutti_torus_dim(const struct tutti_torus *torus, uint32_t part,
                                       uint32_t index)
{
    return (part + index) % torus->ndims;
}

/* True if the part goes downwards: the first parts go upwards, one for each dimension. */
static inline bool tutti_torus_is_down(const struct tutti_torus *torus, uint32_t part)
{
    return part >= torus->ndims;
}

/* ---- moves ------------------------------------------------------------------------------ */

/* The chunks of one message, in any order. */
struct tutti_torus_message {
    uint32_t *chunks; /* room for a chunk of each rank */
    uint32_t count;
};

/* One part of the all-gather, from the point of view of one rank. The part has one chunk of each
 * rank. The chunk of the rank at places x[0], x[1], ... is base + weight[0][x[0]] + weight[1][x[1]]
 * + ... A rank always holds the chunks of a box: of all ranks whose place in each dimension is one
 * of the held ones. */
struct tutti_torus_part {
    uint32_t index;
    uint32_t base;
    uint32_t *weight[TUTTI_TORUS_DIMS]; /* per place */
    uint32_t *held[TUTTI_TORUS_DIMS];   /* places, this rank's own one first */
    uint32_t nheld[TUTTI_TORUS_DIMS];
    struct tutti_torus_message out, in; /* the next messages to and from one peer */
    uint32_t *memory;                   /* of all these lists; owned */
};

/* Create all parts of the all-gather, torus->nparts of them. In each dimension a rank holds its own
 * place. The weights are those of an all-gather or a reduce-scatter, in which rank r owns the
 * nparts chunks from r * nparts on; an all-reduce may set others below nranks, because its chunks
 * have any owners. Sets the chunks of `moves`. TUTTI_ERR_SYSTEM: no memory, and then there is
 * nothing to free. */
int tutti_torus_begin(const struct tutti_shape *shape, const struct tutti_torus *torus,
                      struct tutti_moves *moves, struct tutti_torus_part *ret_parts);
/* Free the parts. */
void tutti_torus_end(const struct tutti_torus *torus, struct tutti_torus_part *parts);

/* True if any rank may own any chunk. */
bool tutti_torus_is_free(const struct tutti_moves *moves);

/* Append to a message the chunks of the box, but of `place` in dimension `dim`. */
void tutti_torus_append(const struct tutti_torus *torus, const struct tutti_torus_part *part,
                        uint32_t dim, uint32_t place, struct tutti_torus_message *message);

/* Add both messages to the moves. The peer is at `place` in dimension `dim`, and otherwise at this
 * rank's places. The messages are empty afterwards. TUTTI_ERR_SYSTEM: no memory. */
int tutti_torus_send(const struct tutti_torus *torus, struct tutti_torus_part *part, uint32_t dim,
                     uint32_t place, struct tutti_moves *moves);
int tutti_torus_recv(const struct tutti_torus *torus, struct tutti_torus_part *part, uint32_t dim,
                     uint32_t place, struct tutti_moves *moves);

/* Hold another place in a dimension, or all of them. */
void tutti_torus_hold(struct tutti_torus_part *part, uint32_t dim, uint32_t place);
void tutti_torus_hold_all(const struct tutti_torus *torus, struct tutti_torus_part *part,
                          uint32_t dim);

/* ---- costs ------------------------------------------------------------------------------- */

/* The longest path of an all-gather, as one rank counts it. Blocks are chunks of a part. */
struct tutti_torus_path {
    double rounds, hops, blocks, reduced;  /* of one part; `reduced` is that of a reduce-scatter */
    double busiest;                        /* blocks over a link on the path of one part */
    double load[TUTTI_TORUS_DIMS][2];      /* blocks of all parts over a link, in each direction */
};

/* Fill in the cost of an all-gather, a reduce-scatter or an all-reduce with these counts. */
void tutti_torus_cost(const struct tutti_shape *shape, const struct tutti_torus *torus,
                      const struct tutti_torus_path *path, double block_bytes,
                      struct tutti_cost *ret_cost);

#endif
