/* SPDX-License-Identifier: Apache-2.0
 * What has happened to a rank's memory so far, step after step: who wrote it last, and who has read
 * it since.
 *
 *   chunks         0 1 2 3 4 5 6 7
 *   step 0 writes  [-------------]    one run, of writer 0
 *   step 1 reads         [---]        three: it is told apart from what is before and after
 *   step 2 writes  [---------]        two: what was told apart in there is so no more
 *
 * Memory is kept in runs of chunks that have the same past, and a write makes one run of all that
 * it covers. So a step touches as many runs as others have told apart since the last write, and all
 * steps together little more than there are steps, however many chunks they move and how often.
 */
#ifndef TUTTI_SCHEDULE_HISTORY_H
#define TUTTI_SCHEDULE_HISTORY_H

#include "schedule/access.h"
#include "schedule/bits.h"

#define TUTTI_NO_STEP UINT32_MAX

struct tutti_run {
    uint32_t writer;  /* step, or TUTTI_NO_STEP */
    uint32_t readers; /* since then: the last in history->readers, or TUTTI_NO_STEP */
};

struct tutti_reader {
    uint32_t step, before; /* the reader before it, or TUTTI_NO_STEP */
};

struct tutti_history {
    struct tutti_cells cells;     /* in place */
    struct tutti_bits starts;     /* cells where a run begins, and the end of memory */
    struct tutti_run *runs;       /* per cell; where none begins it says nothing */
    struct tutti_reader *readers; /* lists that runs may share */
    uint32_t nreaders, capacity;
};

/* TUTTI_ERR_SYSTEM: no memory. */
int tutti_history_init(struct tutti_history *history, const struct tutti_schedule *schedule);
/* A zeroed object is ignored. */
void tutti_history_fini(struct tutti_history *history);

/* Tell a span of this rank's memory apart: its runs are runs[at] from the cell returned on, `at`
 * going on with tutti_history_next as long as it is less than *ret_end. */
uint32_t tutti_history_cut(struct tutti_history *history, struct tutti_span span,
                           uint32_t *ret_end);

static inline uint32_t tutti_history_next(const struct tutti_history *history, uint32_t at)
{
    return tutti_bits_from(&history->starts, at + 1);
}

/* Go on: this step, later than all before, reads or writes its span. TUTTI_ERR_SYSTEM: no memory.
 */
int tutti_history_read(struct tutti_history *history, uint32_t step, struct tutti_span span);
void tutti_history_write(struct tutti_history *history, uint32_t step, struct tutti_span span);

#endif
