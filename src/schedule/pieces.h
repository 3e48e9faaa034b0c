/* SPDX-License-Identifier: Apache-2.0
 * Pieces of a rank's memory: runs of chunks that no step of its schedule tells apart.
 *
 *   chunks   0 1 2 3 4 5 6 7        a step on 0..7, one on 3..7, one on 3..4
 *   pieces   0 0 0 1 1 2 2 2        what is true of one chunk of a piece is true of all of it
 *
 * An algorithm of log p rounds names few spans, each of many chunks: its pieces are few, however
 * many ranks there are. So what is derived from a schedule is derived piece by piece.
 */
#ifndef TUTTI_SCHEDULE_PIECES_H
#define TUTTI_SCHEDULE_PIECES_H

#include "schedule/access.h"

struct tutti_pieces {
    struct tutti_cells cells; /* in place */
    uint64_t *starts;         /* one bit per cell: a piece begins here */
    uint32_t *before;         /* per word of bits: pieces that begin in earlier words */
    uint32_t count;
};

/* Bits that are set, counted in fields of 2, 4 and 8 bits and then summed up by one product. Asked for
 * several times per step; without a machine's own instruction the compiler would call a function. */
static inline uint32_t tutti_bits_set(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) + (word >> 2 & UINT64_C(0x3333333333333333));
    word = (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(word * UINT64_C(0x0101010101010101) >> 56);
}

/* The piece that a cell lies in. */
static inline uint32_t tutti_piece(const struct tutti_pieces *pieces, uint32_t cell)
{
    uint64_t upto = pieces->starts[cell / 64] & (UINT64_MAX >> (63 - cell % 64));

    return pieces->before[cell / 64] + tutti_bits_set(upto) - 1;
}

/* The pieces that make up a span of this rank's memory with a chunk at least: *ret_first and as
 * many as are returned, one after the other. */
static inline uint32_t tutti_pieces_of(const struct tutti_pieces *pieces, struct tutti_span span,
                                       uint32_t *ret_first)
{
    uint32_t cell = tutti_cell(&pieces->cells, span.buffer, span.first);

    *ret_first = tutti_piece(pieces, cell);
    if (span.count == 1)
        return 1;
    return tutti_piece(pieces, cell + span.count - 1) - *ret_first + 1;
}

int tutti_pieces_init(struct tutti_pieces *pieces, const struct tutti_schedule *schedule);
/* A zeroed object is ignored. */
void tutti_pieces_fini(struct tutti_pieces *pieces);

#endif
