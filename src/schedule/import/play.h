/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of playing a program share: clocks and cells (races.c), blocks and objects
 * (play.c).
 *
 * A clock says of each block how many of its ops are known to be over. Every block has one; what
 * blocks leave for each other (messages, signals, flags) carries a copy of the sender's.
 */
#ifndef TUTTI_SCHEDULE_IMPORT_PLAY_H
#define TUTTI_SCHEDULE_IMPORT_PLAY_H

#include "schedule/import/program.h"

#define TUTTI_IMPORT_NONE UINT32_MAX

struct tutti_import_cell {
    uint32_t writer, writer_time; /* block, NONE at first, and its own clock after the op */
    uint32_t readers;             /* since, in the pool */
    uint32_t event;               /* by which it was written */
    uint32_t packets_op;          /* that wrote packets into it; NONE */
};

struct tutti_import_reader {
    uint32_t block, time, next;
};

struct tutti_import_races {
    const struct tutti_import_program *program;
    uint32_t *clocks; /* [nblocks][nblocks] */
    struct tutti_import_cell *cells;
    struct tutti_import_reader *pool;
    uint32_t npool, pool_capacity;
    size_t clock_bytes; /* of all clocks alive */
};

int tutti_import_races_init(struct tutti_import_races *races,
                            const struct tutti_import_program *program);
void tutti_import_races_fini(struct tutti_import_races *races);

static inline uint32_t *tutti_import_clock(const struct tutti_import_races *races, uint32_t block)
{
    return races->clocks + (size_t)block * races->program->nblocks;
}

/* A copy of the clock of `block`, for others to join. */
int tutti_import_clock_copy(struct tutti_import_races *races, uint32_t block, uint32_t **ret_clock);
void tutti_import_clock_drop(struct tutti_import_races *races, uint32_t *clock);
void tutti_import_clock_join(const struct tutti_import_races *races, uint32_t *clock,
                             const uint32_t *other);

/* The op of `block` touches its refs, as event `event`; it must be ordered after who touched them
 * before. TUTTI_ERR_ARGUMENT: it is not. */
int tutti_import_touch(struct tutti_import_races *races, uint32_t block, uint32_t op,
                       uint32_t event);

#endif
