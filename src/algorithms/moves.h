/* SPDX-License-Identifier: Apache-2.0
 * An all-gather as a list of moves; the same list read backwards is a reduce-scatter.
 *
 * In an all-gather each chunk travels from its owner along a tree, and every rank receives it once.
 * With time reversed, the tree collects: what was sent is now received and added, and what was
 * received is now sent. So an algorithm that can list one rank's moves of an all-gather also has a
 * reduce-scatter and, with both, an all-reduce.
 *
 *   all-gather of chunk b         0 --b--> 1,  then 0 --b--> 2, 1 --b--> 3
 *   reduce-scatter, backwards     2 --b--> 0, 3 --b--> 1,  then 1 --b--> 0, which has the sum
 */
#ifndef TUTTI_ALGORITHMS_MOVES_H
#define TUTTI_ALGORITHMS_MOVES_H

#include "algorithms/algorithm.h"

/* One message of the all-gather: chunks first .. first + count - 1, to or from `peer`. */
struct tutti_move {
    uint32_t peer;
    uint32_t first, count;
    uint8_t channel;
    bool is_send;
};

/* The collective that a list of moves is made for. */
enum tutti_moves_use {
    TUTTI_MOVES_GATHER,  /* an all-gather; the chunks of block b begin at b * own_count */
    TUTTI_MOVES_SCATTER, /* a reduce-scatter, which reads the list backwards; chunks as above */
    TUTTI_MOVES_ALLREDUCE_GATHER, /* the two halves of an all-reduce; any rank may own any chunk */
    TUTTI_MOVES_ALLREDUCE_SCATTER,
};

/* The moves of one rank, in an order that is correct if each completes before the next begins. Two
 * ranks list the moves between them on a channel in the same order. */
struct tutti_moves {
    enum tutti_moves_use use;
    struct tutti_move *list;
    uint32_t count, capacity;
    uint32_t nchunks;              /* chunks of all owners together */
    uint32_t own_first, own_count; /* the chunks that this rank owns */
    uint8_t channel;               /* channel of the moves added next */
    /* Chunk c of the partial sums is kept at index slots[c], so that several chunks can use the
     * same memory one after another; each move then has one chunk. NULL: at index c. Owned. */
    uint32_t *slots;
    uint64_t *marks; /* working memory of the _set functions: a bit per chunk; owned */
};

/* Append a move. With count 0 nothing is appended. TUTTI_ERR_SYSTEM: no memory (here and below). */
int tutti_moves_send(struct tutti_moves *moves, uint32_t to, uint32_t first, uint32_t count);
int tutti_moves_recv(struct tutti_moves *moves, uint32_t from, uint32_t first, uint32_t count);
/* Append the moves of a set of chunks, given in any order: one move for each run of consecutive
 * chunks, ascending. */
int tutti_moves_send_set(struct tutti_moves *moves, uint32_t to, const uint32_t *chunks,
                         uint32_t count);
int tutti_moves_recv_set(struct tutti_moves *moves, uint32_t from, const uint32_t *chunks,
                         uint32_t count);

/* Free the lists; a zeroed object is ignored. */
void tutti_moves_fini(struct tutti_moves *moves);

/* Emit the list as an all-gather. This rank's own chunks are sent from `own`; chunk c of another
 * rank arrives at index c of `whole` and is sent on from there. The caller puts this rank's own
 * chunks into `whole`. Errors are those of build.h. */
int tutti_moves_gather(const struct tutti_moves *moves, struct tutti_build *build,
                       struct tutti_span own, struct tutti_span whole);

/* Emit the list backwards, as a reduce-scatter. Chunk c of this rank's contribution is at index c
 * of `input`. Partial sums are kept in `partial`; those of this rank's own chunks end up in
 * `result`. Errors are those of build.h. */
int tutti_moves_reduce_scatter(const struct tutti_moves *moves, struct tutti_build *build,
                               struct tutti_span input, struct tutti_span partial,
                               struct tutti_span result);

/* Emit the collective of the shape from the lists of moves that `make` returns. The collective is
 * an all-gather, a reduce-scatter or an all-reduce. Before each call of `make` the list is zeroed,
 * except for its use. This function frees the lists, also a list that `make` had begun when it
 * failed. */
int tutti_moves_emit(const struct tutti_shape *shape, struct tutti_build *build,
                     int (*make)(const struct tutti_shape *shape, struct tutti_moves *ret_moves));

#endif
