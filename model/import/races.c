/* SPDX-License-Identifier: Apache-2.0
 * Finds races while a program is played: accesses to the same cell that nothing orders. It uses
 * vector clocks (Mattern 1989). One play is enough, because the relations that order the ops do not
 * depend on the order in which they run. */
#include "import/play.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NONE TUTTI_IMPORT_NONE

/* Counts the memory of `count` more clocks, and refuses them if all clocks take too much. */
static int reserve_clocks(struct tutti_import_races *races, size_t count)
{
    size_t bytes = count * races->program->nblocks * sizeof(uint32_t);

    if (bytes > TUTTI_IMPORT_CLOCK_BYTES_MAX - races->clock_bytes)
        return tutti_fail(
            TUTTI_ERR_ARGUMENT,
            "%s: %u threadblocks with so many messages and flags between them are too "
            "many to prove free of races",
            races->program->file, races->program->nblocks);
    races->clock_bytes += bytes;
    return TUTTI_OK;
}

int tutti_import_races_init(struct tutti_import_races *races,
                            const struct tutti_import_program *program)
{
    size_t nblocks = program->nblocks, ncells = program->first_cell[program->nranks];

    *races = (struct tutti_import_races){.program = program};
    TUTTI_TRY(reserve_clocks(races, nblocks));
    races->clocks = calloc(nblocks * nblocks + 1, sizeof(uint32_t));
    races->cells = malloc((ncells + 1) * sizeof(*races->cells));
    if (races->clocks == NULL || races->cells == NULL) {
        tutti_import_races_fini(races);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to play %zu threadblocks on %zu chunks",
                          nblocks, ncells);
    }
    memset(races->cells, 0xff, ncells * sizeof(*races->cells)); /* all members are NONE */
    return TUTTI_OK;
}

void tutti_import_races_fini(struct tutti_import_races *races)
{
    free(races->clocks);
    free(races->cells);
    free(races->pool);
    *races = (struct tutti_import_races){.program = NULL};
}

int tutti_import_clock_copy(struct tutti_import_races *races, uint32_t block, uint32_t **ret_clock)
{
    size_t bytes = races->program->nblocks * sizeof(uint32_t);
    uint32_t *clock;

    TUTTI_TRY(reserve_clocks(races, 1));
    clock = malloc(bytes);
    if (clock == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the clock of a message");
    memcpy(clock, tutti_import_clock(races, block), bytes);
    *ret_clock = clock;
    return TUTTI_OK;
}

void tutti_import_clock_drop(struct tutti_import_races *races, uint32_t *clock)
{
    if (clock == NULL)
        return;
    races->clock_bytes -= races->program->nblocks * sizeof(uint32_t);
    free(clock);
}

void tutti_import_clock_join(const struct tutti_import_races *races, uint32_t *clock,
                             const uint32_t *other)
{
    for (uint32_t i = 0; i < races->program->nblocks; i++)
        if (clock[i] < other[i])
            clock[i] = other[i];
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* Checks that an earlier access to cell i of `ref` is ordered before the op of `block`. The access
 * was by block `other`, whose own time after it was `time`. `other` is NONE if there was none. */
static int check_ordered(const struct tutti_import_races *races, uint32_t block, uint32_t op,
                         uint32_t other, uint32_t time, const struct tutti_import_ref *ref,
                         uint32_t i)
{
    const struct tutti_import_block *blocks = races->program->blocks;

    if (other == NONE || tutti_import_clock(races, block)[other] >= time)
        return TUTTI_OK;
    return tutti_import_refuse(races->program, op,
                               "race: it touches chunk %u of the %s of gpu %u, and so does "
                               "threadblock %u of gpu %u, and nothing orders the two; add a "
                               "dependency",
                               ref->first + i, tutti_import_buffer_name(ref->buffer), ref->rank,
                               blocks[other].id, blocks[other].rank);
}

/* Records that `block` has read a cell. A block that reads a cell several times in a row has one
 * entry, with the time of the last read. */
static int add_reader(struct tutti_import_races *races, struct tutti_import_cell *cell,
                      uint32_t block, uint32_t time)
{
    if (cell->readers != NONE && races->pool[cell->readers].block == block) {
        races->pool[cell->readers].time = time;
        return TUTTI_OK;
    }
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(races->pool, races->npool, races->pool_capacity, "reads of a schedule"));
    races->pool[races->npool] =
        (struct tutti_import_reader){.block = block, .time = time, .next = cell->readers};
    cell->readers = races->npool++;
    return TUTTI_OK;
}

static int read_cells(struct tutti_import_races *races, uint32_t block, uint32_t op,
                      const struct tutti_import_ref *ref)
{
    uint32_t time = tutti_import_clock(races, block)[block];

    for (uint32_t i = 0; i < ref->count; i++) {
        struct tutti_import_cell *cell =
            &races->cells[tutti_import_ref_cell(races->program, ref, i)];

        TUTTI_TRY(check_ordered(races, block, op, cell->writer, cell->writer_time, ref, i));
        TUTTI_TRY(add_reader(races, cell, block, time));
    }
    return TUTTI_OK;
}

static int write_cells(struct tutti_import_races *races, uint32_t block, uint32_t op,
                       uint32_t event, const struct tutti_import_ref *ref)
{
    uint32_t time = tutti_import_clock(races, block)[block];

    for (uint32_t i = 0; i < ref->count; i++) {
        struct tutti_import_cell *cell =
            &races->cells[tutti_import_ref_cell(races->program, ref, i)];

        TUTTI_TRY(check_ordered(races, block, op, cell->writer, cell->writer_time, ref, i));
        for (uint32_t r = cell->readers; r != NONE; r = races->pool[r].next)
            TUTTI_TRY(
                check_ordered(races, block, op, races->pool[r].block, races->pool[r].time, ref, i));
        *cell = (struct tutti_import_cell){.writer = block,
                                           .writer_time = time,
                                           .readers = NONE,
                                           .event = event,
                                           .packets_op = ref->is_packets ? op : NONE};
    }
    return TUTTI_OK;
}

/* Checks that a ref and a destination do not overlap. If `may_be_same`, they may also be equal. */
static int check_overlap(const struct tutti_import_program *program, uint32_t op,
                         const struct tutti_import_ref *src, const struct tutti_import_ref *dst,
                         bool may_be_same)
{
    uint32_t from = tutti_import_ref_cell(program, src, 0);
    uint32_t to = tutti_import_ref_cell(program, dst, 0);

    if (from >= to + dst->count || to >= from + src->count || (from == to && may_be_same))
        return TUTTI_OK;
    return tutti_import_refuse(program, op, "reads and writes overlapping chunks");
}

int tutti_import_touch(struct tutti_import_races *races, uint32_t block, uint32_t op,
                       uint32_t event)
{
    const struct tutti_import_op *own = &races->program->ops[op];
    const struct tutti_import_ref *srcs = races->program->refs + own->first_ref;
    const struct tutti_import_ref *dsts = srcs + own->nsrcs;

    for (uint32_t d = 0; d < own->ndsts; d++) {
        for (uint32_t s = 0; s < own->nsrcs; s++)
            TUTTI_TRY(check_overlap(races->program, op, &srcs[s], &dsts[d], true));
        for (uint32_t e = 0; e < d; e++)
            TUTTI_TRY(check_overlap(races->program, op, &dsts[e], &dsts[d], false));
    }
    for (uint32_t s = 0; s < own->nsrcs; s++)
        TUTTI_TRY(read_cells(races, block, op, &srcs[s]));
    for (uint32_t d = 0; d < own->ndsts; d++)
        TUTTI_TRY(write_cells(races, block, op, event, &dsts[d]));
    return TUTTI_OK;
}
