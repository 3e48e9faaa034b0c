/* SPDX-License-Identifier: Apache-2.0
 * Splits and joins runs of memory with the same history, and records reads and writes in them.
 */
#include "schedule/chunk_history.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

int tutti_chunk_history_init(struct tutti_chunk_history *history,
                             const struct tutti_schedule *schedule)
{
    uint32_t ncells;

    *history = (struct tutti_chunk_history){.nreaders = 0};
    tutti_chunk_space_init(&history->cells, schedule, schedule->rank, true);
    ncells = history->cells.count;
    history->runs = malloc(((size_t)ncells + 1) * sizeof(*history->runs));
    if (!tutti_bits_init(&history->starts, ncells + 1) || history->runs == NULL) {
        tutti_chunk_history_fini(history);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the history of %u chunks", ncells);
    }
    history->runs[0] = (struct tutti_chunk_run){TUTTI_NO_STEP, TUTTI_NO_STEP};
    tutti_bits_add(&history->starts, 0);
    tutti_bits_add(&history->starts, ncells);
    return TUTTI_OK;
}

void tutti_chunk_history_fini(struct tutti_chunk_history *history)
{
    tutti_bits_fini(&history->starts);
    free(history->runs);
    free(history->readers);
    *history = (struct tutti_chunk_history){.nreaders = 0};
}

/* Begin a run at `cell`, with the history of the run that has contained the cell so far. */
static void cut_at(struct tutti_chunk_history *history, uint32_t cell)
{
    if (tutti_bits_has(&history->starts, cell))
        return;
    history->runs[cell] = history->runs[tutti_bits_upto(&history->starts, cell)];
    tutti_bits_add(&history->starts, cell);
}

uint32_t tutti_chunk_history_split(struct tutti_chunk_history *history, struct tutti_span span,
                                 uint32_t *ret_end)
{
    uint32_t first = tutti_chunk_number(&history->cells, span.buffer, span.first);

    tutti_assert(span.count <= history->cells.count && first <= history->cells.count - span.count);
    cut_at(history, first);
    cut_at(history, first + span.count);
    *ret_end = first + span.count;
    return first;
}

static int add_reader(struct tutti_chunk_history *history, uint32_t step,
                      struct tutti_chunk_run *run)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(history->readers, history->nreaders, history->capacity,
                               "reads of a schedule"));
    history->readers[history->nreaders] = (struct tutti_chunk_reader){step, run->readers};
    run->readers = history->nreaders++;
    return TUTTI_OK;
}

int tutti_chunk_history_read(struct tutti_chunk_history *history, uint32_t step,
                             struct tutti_span span)
{
    uint32_t end, at = tutti_chunk_history_split(history, span, &end);

    for (; at < end; at = tutti_chunk_history_next(history, at))
        TUTTI_TRY(add_reader(history, step, &history->runs[at]));
    return TUTTI_OK;
}

void tutti_chunk_history_write(struct tutti_chunk_history *history, uint32_t step,
                               struct tutti_span span)
{
    uint32_t end, first = tutti_chunk_history_split(history, span, &end);

    for (uint32_t at; (at = tutti_chunk_history_next(history, first)) < end;)
        tutti_bits_remove(&history->starts, at);
    history->runs[first] = (struct tutti_chunk_run){.writer = step, .readers = TUTTI_NO_STEP};
}
