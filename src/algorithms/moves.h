/* SPDX-License-Identifier: Apache-2.0
 * An all-gather as a list of moves, and the reduce-scatter that is the same list read backwards.
 *
 * In an all-gather each chunk travels from its owner along a tree, and every rank receives it once.
 * Turn time around, and the tree collects: what was sent is received and added, what was received
 * is sent. So who can list one rank's moves of an all-gather has a reduce-scatter too, and with
 * both an all-reduce.
 *
 *   all-gather of chunk b         0 --b--> 1,  then 0 --b--> 2, 1 --b--> 3
 *   reduce-scatter, backwards     2 --b--> 0, 3 --b--> 1,  then 1 --b--> 0, which has the sum
 */
#ifndef TUTTI_ALGORITHMS_MOVES_H
#define TUTTI_ALGORITHMS_MOVES_H

#include "algorithms/algorithm.h"

/* One message of the all-gather: chunks first .. first + count - 1, to or from `peer`. */
struct move {
    uint32_t peer;
    uint32_t first, count;
    uint8_t channel;
    bool is_send;
};

/* One rank's moves, in an order that would be right if each ran alone; those between two ranks on a
 * channel are in the same order on both. */
struct moves {
    struct move *list;
    uint32_t count, capacity;
    uint32_t nchunks;              /* of all owners */
    uint32_t own_first, own_count; /* the chunks that this rank owns */
    uint8_t channel;               /* of the moves added next */
    /* Where in the partial sums' memory chunk c lies: slots[c], so that chunks can follow each
     * other in one place; then each move is of one chunk. NULL: in place c. Owned. */
    uint32_t *slots;
    uint64_t *marks; /* of the set at hand, a bit per chunk; owned */
};

/* Without chunks: nothing is added. */
int tutti_moves_send(struct moves *moves, uint32_t to, uint32_t first, uint32_t count);
int tutti_moves_recv(struct moves *moves, uint32_t from, uint32_t first, uint32_t count);
/* Chunks that need not be neighbours, in any order: one move for each run, in rising order. */
int tutti_moves_send_set(struct moves *moves, uint32_t to, const uint32_t *chunks, uint32_t count);
int tutti_moves_recv_set(struct moves *moves, uint32_t from, const uint32_t *chunks,
                         uint32_t count);

/* Free the lists; a zeroed object is ignored. */
void tutti_moves_fini(struct moves *moves);

/* Play the list: this rank's own chunks are sent from `own`, all others from where they have
 * arrived, chunk c in place c of `whole`. The own ones there are the caller's. */
int tutti_moves_gather(const struct moves *moves, struct tutti_build *build, struct tutti_span own,
                       struct tutti_span whole);

/* Play the list backwards. Chunk c of this rank's contribution is in place c of `input`; partial
 * sums lie in `partial`; those of the own chunks end in `result`. */
int tutti_moves_reduce_scatter(const struct moves *moves, struct tutti_build *build,
                               struct tutti_span input, struct tutti_span partial,
                               struct tutti_span result);

/* What the list is made for. */
enum moves_use {
    MOVES_GATHER,   /* chunk numbers are blocks' times own_count: an all-gather's */
    MOVES_SCATTER,  /* the same, to be read backwards by a reduce-scatter */
    MOVES_ALLREDUCE_GATHER,  /* chunks may belong to ranks as is best: parts of an all-reduce */
    MOVES_ALLREDUCE_SCATTER,
};

typedef int make_moves(const struct tutti_shape *shape, enum moves_use use,
                       struct moves *ret_moves);

/* Emit the all-gather, reduce-scatter or all-reduce that `make`'s lists are. On error what `make`
 * has allocated so far is freed here too. */
int tutti_moves_emit(const struct tutti_shape *shape, struct tutti_build *build, make_moves *make);

#endif
