/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the two halves of playing a program: clocks and cells (races.c), and blocks and
 * objects (play.c).
 *
 * A clock holds, for each block, how many of its ops are known to be over. Every block has one.
 * What blocks leave for each other (messages, signals, flags) carries a copy of the sender's clock.
 */
#ifndef TUTTI_IMPORT_PLAY_H
#define TUTTI_IMPORT_PLAY_H

#include "import/program.h"

#define TUTTI_IMPORT_NONE UINT32_MAX

struct tutti_import_cell {
    /* The block that wrote it last, NONE at first, and that block's own time after the op. */
    uint32_t writer, writer_time;
    uint32_t readers;             /* blocks that have read it since: a list in the pool */
    uint32_t event;               /* the event that wrote it */
    uint32_t packets_op;          /* the op that wrote packets into it, or NONE */
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
    size_t clock_bytes; /* bytes of all clocks in use */
};

int tutti_import_races_init(struct tutti_import_races *races,
                            const struct tutti_import_program *program);
void tutti_import_races_fini(struct tutti_import_races *races);

static inline uint32_t *tutti_import_clock(const struct tutti_import_races *races, uint32_t block)
{
    return races->clocks + (size_t)block * races->program->nblocks;
}

/* Copy the clock of `block`, for others to join; free it with tutti_import_clock_drop.
 * TUTTI_ERR_ARGUMENT: clocks take too much memory. TUTTI_ERR_SYSTEM: no memory. */
int tutti_import_clock_copy(struct tutti_import_races *races, uint32_t block, uint32_t **ret_clock);
void tutti_import_clock_drop(struct tutti_import_races *races, uint32_t *clock);
/* Raise `clock` to include all that `other` knows. */
void tutti_import_clock_join(const struct tutti_import_races *races, uint32_t *clock,
                             const uint32_t *other);

/* Record that an op of `block` touches its refs, as event `event`. TUTTI_ERR_ARGUMENT: the accesses
 * to the same cells before it are not all ordered before it. */
int tutti_import_touch(struct tutti_import_races *races, uint32_t block, uint32_t op,
                       uint32_t event);

#endif
