/* SPDX-License-Identifier: Apache-2.0
 * Pieces: every span begins one, and the chunk after a span begins the next. */
#include "schedule/pieces.h"

#include "base/result.h"

#include <stdlib.h>

static void begin_at(struct tutti_pieces *pieces, uint32_t cell)
{
    pieces->starts[cell / 64] |= UINT64_C(1) << (cell % 64);
}

static void mark(struct tutti_pieces *pieces, const struct tutti_schedule *schedule)
{
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];

    begin_at(pieces, 0);
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        uint32_t naccesses = tutti_step_accesses(&schedule->steps[at], accesses);

        for (uint32_t a = 0; a < naccesses; a++) {
            struct tutti_span span = accesses[a].span;
            uint32_t cell;

            if (accesses[a].rank != TUTTI_NO_RANK)
                continue;
            cell = tutti_cell(&pieces->cells, span.buffer, span.first);
            begin_at(pieces, cell);
            begin_at(pieces, cell + span.count);
        }
    }
}

int tutti_pieces_init(struct tutti_pieces *pieces, const struct tutti_schedule *schedule)
{
    uint32_t nwords;

    *pieces = (struct tutti_pieces){.count = 0};
    tutti_cells_init(&pieces->cells, schedule, schedule->rank, true);
    nwords = pieces->cells.count / 64 + 1; /* with room for the end of the last span */
    pieces->starts = calloc(nwords, sizeof(*pieces->starts));
    pieces->before = malloc(nwords * sizeof(*pieces->before));
    if (pieces->starts == NULL || pieces->before == NULL) {
        tutti_pieces_fini(pieces);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the pieces of %u chunks",
                          pieces->cells.count);
    }
    mark(pieces, schedule);
    for (uint32_t word = 0; word < nwords; word++) {
        pieces->before[word] = pieces->count;
        pieces->count += tutti_bits_set(pieces->starts[word]);
    }
    return TUTTI_OK;
}

void tutti_pieces_fini(struct tutti_pieces *pieces)
{
    free(pieces->starts);
    free(pieces->before);
    *pieces = (struct tutti_pieces){.count = 0};
}
