/* SPDX-License-Identifier: Apache-2.0
 * Declares the types and functions that the two files which play a program share. races.c keeps the
 * clocks and cells, and it finds races. play.c runs the blocks and keeps the objects.
 *
 * A vector clock holds a number for each block: how many ops of that block are known to be over.
 * Every block has a clock. A message, a signal or a packet carries a copy of its sender's clock.
 * The block that receives it joins this copy into its own clock. A block's own time is the number
 * of its own ops that are over.
 */
#ifndef TUTTI_IMPORT_PLAY_H
#define TUTTI_IMPORT_PLAY_H

#include "import/program.h"

#define TUTTI_IMPORT_NONE UINT32_MAX

/* The last accesses to a cell. All members are NONE at first. */
struct tutti_import_cell {
    /* The block that wrote the cell last, and that block's own time after the op. */
    uint32_t writer, writer_time;
    uint32_t readers;    /* list in the pool: the blocks that have read the cell since then */
    uint32_t event;      /* the event that wrote the cell */
    uint32_t packets_op; /* the op that wrote packets into the cell; NONE: it holds no packets */
};

/* A block that has read a cell, its own time after the op, and the next entry of the list. */
struct tutti_import_reader {
    uint32_t block, time, next;
};

/* The clocks of all blocks and the last accesses to all cells while a program is played. */
struct tutti_import_races {
    const struct tutti_import_program *program;
    uint32_t *clocks; /* [nblocks][nblocks]: the clock of each block */
    struct tutti_import_cell *cells;  /* per cell of the program */
    struct tutti_import_reader *pool; /* entries of the lists of readers */
    uint32_t npool, pool_capacity;
    size_t clock_bytes; /* bytes of all clocks in use */
};

/* `program` is borrowed. The init function returns TUTTI_ERR_ARGUMENT if the clocks take too much
 * memory, and TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_races_init(struct tutti_import_races *races,
                            const struct tutti_import_program *program);
void tutti_import_races_fini(struct tutti_import_races *races);

static inline uint32_t *tutti_import_clock(const struct tutti_import_races *races, uint32_t block)
{
    return races->clocks + (size_t)block * races->program->nblocks;
}

/* Copies the clock of `block`, so that other blocks can join it later. The caller releases the copy
 * with tutti_import_clock_drop. Returns TUTTI_ERR_ARGUMENT if all clocks together take too much
 * memory, and TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_clock_copy(struct tutti_import_races *races, uint32_t block, uint32_t **ret_clock);
void tutti_import_clock_drop(struct tutti_import_races *races, uint32_t *clock);
/* Raises each number of `clock` to that of `other` if the latter is larger. */
void tutti_import_clock_join(const struct tutti_import_races *races, uint32_t *clock,
                             const uint32_t *other);

/* Records that an op of `block` accesses its cells, as event `event`. The block's clock must count
 * the op already. Returns TUTTI_ERR_ARGUMENT if a conflicting earlier access to one of the cells is
 * not ordered before the op, or if refs of the op overlap. Two accesses conflict if at least one of
 * them writes. Returns TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_touch(struct tutti_import_races *races, uint32_t block, uint32_t op,
                       uint32_t event);

#endif
