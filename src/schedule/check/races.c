/* SPDX-License-Identifier: Apache-2.0
 * Finds races. Along the log, each stretch of memory keeps which half wrote it last and which
 * halves have read it since. The next half that touches it must be ordered after these.
 *
 * A peer may touch a rank's INPUT and OUTPUT only between that rank's first signal and its end of
 * the run. Before this signal the caller may not have made the call yet. After the end of the run
 * the memory belongs to the caller again.
 */
#include "schedule/check/model.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>

/* An access is written as one number, its half and its run: run * halves + half + 1. So 0 means
 * none. */

/* An item of a list of reads. */
struct reader {
    uint32_t access, next; /* `next`: index into `pool` + 1, or 0 */
};

struct history {
    uint32_t writer; /* the last access that wrote */
    /* The accesses that have read since then: index into `pool` + 1, or 0. Stretches that were once
     * one share the tail of the list. */
    uint32_t readers;
};

struct races {
    struct tutti_check *check;
    struct tutti_check_memory memory;
    bool is_overlaid;
    struct history *histories; /* per stretch, at the index of its first cell */
    struct reader *pool;
    uint32_t npool, pool_capacity;
};

/* The current half, and the memory that it is about to touch. */
struct touch {
    uint32_t run, half, owner;
    struct tutti_span span;
    bool is_write;
    uint32_t ordered; /* an access that is known to happen before it, or 0 */
};

static const char *form(const struct races *races)
{
    return races->is_overlaid ? "in place" : "out of place";
}

/* Report the step that should have waited: of two steps of one rank the later one, otherwise the
 * one that reaches into the other rank's memory. */
static int report_race(struct races *races, uint32_t run, uint32_t half, const struct touch *touch,
                       uint32_t chunk)
{
    struct tutti_check *check = races->check;
    uint32_t at = touch->half / 2, other = half / 2;

    if (check->step_rank[at] == check->step_rank[other] ? other > at
                                                        : check->step_rank[at] == touch->owner) {
        at = other;
        other = touch->half / 2;
    }
    return tutti_check_fail(check, check->step_rank[at], at,
                             "race %s: touches %s %u of rank %u, and so does step %u of rank %u; "
                             "one of them writes, and nothing orders them (runs %u and %u)",
                             form(races),
                             tutti_buffer_name((enum tutti_buffer)touch->span.buffer), chunk,
                             touch->owner, other - check->first_step[check->step_rank[other]],
                             check->step_rank[other], touch->run, run);
}

/* Check that an earlier access happens before the current half. */
static int check_pair(struct races *races, uint32_t access, struct touch *touch, uint32_t chunk)
{
    uint32_t nhalves = 2 * races->check->nsteps, run = (access - 1) / nhalves;
    uint32_t half = (access - 1) % nhalves;
    bool is_ordered;

    if (access == touch->ordered || (run == touch->run && half / 2 == touch->half / 2))
        return TUTTI_OK;
    TUTTI_TRY(tutti_check_is_ordered(races->check, run, half, touch->run, touch->half,
                                     &is_ordered));
    touch->ordered = access;
    return is_ordered ? TUTTI_OK : report_race(races, run, half, touch, chunk);
}

static int add_reader(struct races *races, struct history *history, uint32_t access)
{
    if (history->readers != 0 && races->pool[history->readers - 1].access == access)
        return TUTTI_OK;
    TUTTI_TRY(TUTTI_ARRAY_ROOM(races->pool, races->npool, races->pool_capacity, "reads"));
    races->pool[races->npool++] = (struct reader){.access = access, .next = history->readers};
    history->readers = races->npool;
    return TUTTI_OK;
}

/* Begin a stretch at `cell`, with the history that the cell has. */
static void split(struct races *races, uint32_t cell)
{
    uint32_t stretch = tutti_check_stretch(&races->memory, cell);

    if (tutti_check_split(&races->memory, cell))
        races->histories[cell] = races->histories[stretch];
}

/* Check an access to a stretch against the history of the stretch, and record it there. */
static int touch_stretch(struct races *races, struct touch *touch, uint32_t stretch, uint32_t chunk)
{
    uint32_t access = touch->run * 2 * races->check->nsteps + touch->half + 1;
    struct history *history = &races->histories[stretch];

    if (history->writer != 0)
        TUTTI_TRY(check_pair(races, history->writer, touch, chunk));
    if (!touch->is_write)
        return add_reader(races, history, access);
    for (uint32_t r = history->readers; r != 0; r = races->pool[r - 1].next)
        TUTTI_TRY(check_pair(races, races->pool[r - 1].access, touch, chunk));
    *history = (struct history){.writer = access};
    return TUTTI_OK;
}

/* Check that the owner's caller has made the call and has not returned yet. */
static int check_presence(struct races *races, const struct touch *touch)
{
    struct tutti_check *check = races->check;
    uint32_t rank = check->step_rank[touch->half / 2], owner = touch->owner;
    uint32_t first = check->signal_first[owner];
    uint32_t before = touch->run * check->local_count[owner], end;
    uint32_t own = touch->run * check->local_count[rank] + check->local_index[touch->half / 2];

    if (first == check->signal_first[owner + 1])
        return tutti_check_fail(check, rank, touch->half / 2,
                                "touches the %s of rank %u, which gives no signal that it is "
                                "there",
                                tutti_buffer_name((enum tutti_buffer)touch->span.buffer), owner);
    before += check->local_index[check->signal_steps[first]];
    if (tutti_check_clock(check, tutti_check_begin(check, touch->run, touch->half), owner) <=
        before)
        return tutti_check_fail(check, rank, touch->half / 2,
                                "may touch the %s of rank %u before that rank's first signal",
                                tutti_buffer_name((enum tutti_buffer)touch->span.buffer), owner);
    end = tutti_check_run_end(check, touch->run, owner);
    if (tutti_check_clock(check, end, rank) <= own)
        return tutti_check_fail(check, rank, touch->half / 2,
                                "may touch the %s of rank %u after that rank's end of the run",
                                tutti_buffer_name((enum tutti_buffer)touch->span.buffer), owner);
    return TUTTI_OK;
}

/* Check and record an access to a span. */
static int touch_span(struct races *races, struct touch *touch)
{
    struct tutti_check_memory *memory = &races->memory;
    uint32_t rank = races->check->step_rank[touch->half / 2], count = touch->span.count;
    uint32_t first = tutti_check_cell(memory, touch->run, touch->owner, touch->span.buffer,
                                      touch->span.first);

    if (touch->owner != rank && touch->span.buffer != TUTTI_BUF_WINDOW)
        TUTTI_TRY(check_presence(races, touch));
    split(races, first);
    if (first + count < memory->count)
        split(races, first + count);
    for (uint32_t cell = first; cell < first + count;
         cell = tutti_check_stretch_end(memory, cell))
        TUTTI_TRY(touch_stretch(races, touch, cell, touch->span.first + cell - first));
    if (touch->is_write)
        tutti_check_join(memory, first, count);
    return TUTTI_OK;
}

/* Within one step a destination must be exactly a source, or not overlap it. */
static int check_overlap(struct races *races, uint32_t half, uint32_t owner,
                         const struct tutti_touch *read, const struct tutti_touch *write)
{
    struct tutti_check *check = races->check;
    uint32_t count = write->span.count;
    uint32_t from = tutti_check_cell(&races->memory, 0, owner, read->span.buffer, read->span.first);
    uint32_t to = tutti_check_cell(&races->memory, 0, owner, write->span.buffer,
                                   write->span.first);

    if (from >= to + count || to >= from + count || (from == to && !read->is_write))
        return TUTTI_OK;
    return tutti_check_fail(check, check->step_rank[half / 2], half / 2,
                             "%s: %s %u + %u overlaps its own %s %u + %u", form(races),
                             tutti_buffer_name((enum tutti_buffer)write->span.buffer),
                             write->span.first, count,
                             tutti_buffer_name((enum tutti_buffer)read->span.buffer),
                             read->span.first, count);
}

static int check_overlaps(struct races *races, uint32_t half, uint32_t owner,
                          const struct tutti_touch *accesses, uint32_t naccesses, uint32_t write)
{
    for (uint32_t a = 0; a < naccesses; a++) {
        bool is_same_owner = (accesses[a].rank == TUTTI_NO_RANK) ==
                             (accesses[write].rank == TUTTI_NO_RANK);

        if (a != write && is_same_owner)
            TUTTI_TRY(check_overlap(races, half, owner, &accesses[a], &accesses[write]));
    }
    return TUTTI_OK;
}

/* True for a copy of chunks onto themselves, which the executor skips (step.h). */
static bool is_idle(const struct races *races, uint32_t half)
{
    const struct tutti_step *step = tutti_check_step(races->check, half / 2);
    uint32_t rank = races->check->step_rank[half / 2];

    return step->kind == TUTTI_STEP_COPY &&
           tutti_check_cell(&races->memory, 0, rank, step->src.buffer, step->src.first) ==
               tutti_check_cell(&races->memory, 0, rank, step->dst.buffer, step->dst.first);
}

/* Check and record all accesses of a half. */
static int touch_half(struct races *races, uint32_t run, uint32_t half)
{
    struct tutti_check *check = races->check;
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t naccesses = tutti_check_accesses(check, half, accesses);
    uint32_t rank = check->step_rank[half / 2];

    if (is_idle(races, half))
        return TUTTI_OK;
    for (uint32_t a = 0; a < naccesses; a++) {
        struct touch touch = {.run = run, .half = half, .span = accesses[a].span,
                              .is_write = accesses[a].is_write};
        bool is_own = accesses[a].rank == TUTTI_NO_RANK;
        struct tutti_step_ranks owners =
            tutti_step_peers(check->schedules[rank], tutti_check_step(check, half / 2),
                             is_own ? (int32_t)rank : accesses[a].rank);

        for (uint32_t m = 0; m < owners.count; m++) {
            touch.owner = tutti_step_ranks_at(owners, m);
            if (!is_own && touch.owner == rank)
                continue;
            if (touch.is_write && run == 0)
                TUTTI_TRY(check_overlaps(races, half, touch.owner, accesses, naccesses, a));
            TUTTI_TRY(touch_span(races, &touch));
        }
    }
    return TUTTI_OK;
}

static int run_races(struct races *races)
{
    struct tutti_check *check = races->check;

    TUTTI_TRY(tutti_check_memory_init(&races->memory, check, races->is_overlaid));
    TUTTI_TRY(tutti_check_alloc(&races->histories, races->memory.count,
                                sizeof(*races->histories), 0));
    for (uint32_t i = 0; i < check->nlog; i++) {
        uint32_t run = check->log[i] / tutti_check_run_nodes(check);
        uint32_t at = check->log[i] % tutti_check_run_nodes(check);

        bool is_end_of_half = at < tutti_check_half_nodes(check) && (at & 1);

        if (is_end_of_half)
            TUTTI_TRY(touch_half(races, run, at / 2));
    }
    return TUTTI_OK;
}

int tutti_check_races(struct tutti_check *check, bool is_overlaid)
{
    struct races races = {.check = check, .is_overlaid = is_overlaid};
    int rc = run_races(&races);

    tutti_check_memory_fini(&races.memory);
    free(races.histories);
    free(races.pool);
    return rc;
}
