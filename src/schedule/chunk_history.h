/* SPDX-License-Identifier: Apache-2.0
 * The history of a rank's memory, step after step: which step wrote it last, and which steps have
 * read it since.
 *
 *   chunks         0 1 2 3 4 5 6 7
 *   step 0 writes  [-------------]    one run, of writer 0
 *   step 1 reads         [---]        three runs: the middle one has another history
 *   step 2 writes  [---------]        two runs: the write makes one run of what it covers
 *
 * Memory is kept in runs of chunks that have the same history. An access that covers only part of a
 * run splits the run. A write joins all chunks that it covers into one run. So an access touches at
 * most as many runs as other steps have split off since the last write to these chunks. All steps
 * together touch only a few more runs than there are steps, however many chunks they move.
 */
#ifndef TUTTI_SCHEDULE_CHUNK_HISTORY_H
#define TUTTI_SCHEDULE_CHUNK_HISTORY_H

#include "schedule/access.h"
#include "schedule/bits.h"

#define TUTTI_NO_STEP UINT32_MAX

struct tutti_chunk_run {
    uint32_t writer; /* the step that wrote the run last, or TUTTI_NO_STEP */
    /* Head of the list of steps that have read the run since then, the latest first: an index of
     * history->readers, or TUTTI_NO_STEP. */
    uint32_t readers;
};

struct tutti_chunk_reader {
    uint32_t step;
    uint32_t before; /* the next item of the list, an earlier reader; or TUTTI_NO_STEP */
};

struct tutti_chunk_history {
    struct tutti_chunk_space cells;     /* overlaid, as in an in-place call */
    struct tutti_bits starts;           /* cells where a run begins, and the end of memory */
    struct tutti_chunk_run *runs;       /* per cell; valid where a run begins */
    struct tutti_chunk_reader *readers; /* linked lists; runs may share their tails */
    uint32_t nreaders, capacity;        /* of `readers` */
};

/* Begin the history of the schedule's rank: no step has touched its memory. TUTTI_ERR_SYSTEM: no
 * memory; there is nothing left to free. */
int tutti_chunk_history_init(struct tutti_chunk_history *history,
                             const struct tutti_schedule *schedule);
/* Free the memory; a zeroed object is ignored. */
void tutti_chunk_history_fini(struct tutti_chunk_history *history);

/* Split runs so that a span of this rank's memory is a whole number of runs. Returns the cell `at`
 * of the first run, which is history->runs[at]. tutti_chunk_history_next gives the cell of each
 * following run, as long as that cell is less than *ret_end. */
uint32_t tutti_chunk_history_split(struct tutti_chunk_history *history, struct tutti_span span,
                                 uint32_t *ret_end);

static inline uint32_t tutti_chunk_history_next(const struct tutti_chunk_history *history,
                                                uint32_t at)
{
    return tutti_bits_from(&history->starts, at + 1);
}

/* Record that a step reads or writes a span. The step must come after all steps recorded before.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_chunk_history_read(struct tutti_chunk_history *history, uint32_t step,
                             struct tutti_span span);
void tutti_chunk_history_write(struct tutti_chunk_history *history, uint32_t step,
                               struct tutti_span span);

#endif
