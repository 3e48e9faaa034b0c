/* SPDX-License-Identifier: Apache-2.0
 * Tells which spans a step reads and writes, and whether it sends, receives or is one-sided. The
 * derivation of dependencies, fusing and the checker use these functions, so the properties of each
 * kind of step are written down only once. All are pure functions.
 */
#ifndef TUTTI_SCHEDULE_ACCESS_H
#define TUTTI_SCHEDULE_ACCESS_H

#include "schedule/step.h"

/* One span that a step reads or writes. `rank` is the owner of the memory: TUTTI_NO_RANK for this
 * rank, a peer, or TUTTI_ALL_RANKS for every other rank that the step addresses. */
struct tutti_touch {
    int32_t rank;
    bool is_write;
    struct tutti_span span;
};

#define TUTTI_STEP_ACCESSES 5 /* the most accesses that any kind of step makes */

/* List the accesses of a step, reads before writes, and return their number. Empty spans are left
 * out. */
uint32_t tutti_step_accesses(const struct tutti_step *step,
                             struct tutti_touch accesses[TUTTI_STEP_ACCESSES]);

/* True if steps of this kind receive a message, or send one; fused steps do both. */
static inline bool tutti_step_kind_receives(uint32_t kind)
{
    switch (kind) {
    case TUTTI_STEP_RECV: case TUTTI_STEP_RECV_REDUCE: case TUTTI_STEP_RECV_COPY_SEND:
    case TUTTI_STEP_RECV_REDUCE_SEND: case TUTTI_STEP_RECV_REDUCE_COPY_SEND: return true;
    default: return false;
    }
}
static inline bool tutti_step_kind_sends(uint32_t kind)
{
    switch (kind) {
    case TUTTI_STEP_SEND: case TUTTI_STEP_RECV_COPY_SEND: case TUTTI_STEP_RECV_REDUCE_SEND:
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND: return true;
    default: return false;
    }
}
static inline bool tutti_access_receives(const struct tutti_step *step)
{
    return tutti_step_kind_receives(step->kind);
}
static inline bool tutti_access_sends(const struct tutti_step *step)
{
    return tutti_step_kind_sends(step->kind);
}
static inline bool tutti_step_is_fused(const struct tutti_step *step)
{
    return tutti_access_receives(step) && tutti_access_sends(step);
}
static inline bool tutti_step_is_two_sided(const struct tutti_step *step)
{
    return tutti_access_receives(step) || tutti_access_sends(step);
}
static inline bool tutti_step_is_one_sided(const struct tutti_step *step)
{
    switch (step->kind) {
    case TUTTI_STEP_PUT: case TUTTI_STEP_GET: case TUTTI_STEP_GATHER_REDUCE:
    case TUTTI_STEP_SIGNAL: case TUTTI_STEP_WAIT: return true;
    default: return false;
    }
}

/* A set of ranks, ascending. */
struct tutti_step_ranks {
    const uint32_t *ranks; /* NULL: `count` ranks from `first` on */
    uint32_t first, count;
};

static inline uint32_t tutti_step_ranks_at(struct tutti_step_ranks set, uint32_t index)
{
    return set.ranks != NULL ? set.ranks[index] : set.first + index;
}

/* The ranks that TUTTI_ALL_RANKS stands for in a put or gather_reduce, including this rank. */
static inline struct tutti_step_ranks tutti_step_ranks(const struct tutti_schedule *schedule,
                                                       const struct tutti_step *step)
{
    if (step->among_count == 0)
        return (struct tutti_step_ranks){NULL, 0, schedule->nranks};
    return (struct tutti_step_ranks){schedule->among + step->among_first, 0, step->among_count};
}

/* The ranks that `peer` stands for, where `peer` is a step's `from` or `to` or the rank of an
 * access. TUTTI_NO_RANK stands for none. TUTTI_ALL_RANKS stands for the ranks of tutti_step_ranks,
 * which include this rank although the step does not address it. */
static inline struct tutti_step_ranks tutti_step_peers(const struct tutti_schedule *schedule,
                                                       const struct tutti_step *step, int32_t peer)
{
    if (peer == TUTTI_ALL_RANKS)
        return tutti_step_ranks(schedule, step);
    return (struct tutti_step_ranks){NULL, peer >= 0 ? (uint32_t)peer : 0, peer >= 0};
}

/* Number of ranks other than this one that `peer` stands for. */
static inline uint32_t tutti_step_count_peers(const struct tutti_schedule *schedule,
                                              const struct tutti_step *step, int32_t peer)
{
    return tutti_step_peers(schedule, step, peer).count - (peer == TUTTI_ALL_RANKS);
}

/* True if a put or gather_reduce has a valid combination of destinations: `dst` alone, `dst` and
 * the remote span with to == TUTTI_ALL_RANKS, or the remote span alone with `to` a rank. A put to
 * all needs `dst` as well. */
bool tutti_step_has_valid_stores(const struct tutti_step *step);

/* Number of chunks of a buffer of `rank`; 0 if the rank does not have the buffer. */
uint32_t tutti_buffer_chunks(const struct tutti_schedule *schedule, uint32_t rank,
                             enum tutti_buffer buffer);

const char *tutti_buffer_name(enum tutti_buffer buffer);

/* The memory of a rank as one numbered space of cells, one per chunk: INPUT, OUTPUT, SCRATCH,
 * WINDOW. In an overlaid space INPUT and OUTPUT share cells as in an in-place call, provided that
 * this rank has in-place calls. These cells are not those of algorithms/cells.h. */
struct tutti_chunk_space {
    /* Per buffer: the cell of its chunk 0. */
    int64_t base[TUTTI_BUF_COUNT];
    uint32_t chunks[TUTTI_BUF_COUNT]; /* per buffer: its number of chunks */
    uint32_t count;                   /* number of cells */
};

/* Lay out the memory of `rank`. */
void tutti_chunk_space_init(struct tutti_chunk_space *cells, const struct tutti_schedule *schedule,
                            uint32_t rank, bool is_overlaid);

/* Number of the cell of a chunk; the chunk must exist. */
static inline uint32_t tutti_chunk_number(const struct tutti_chunk_space *cells, uint32_t buffer,
                                          uint32_t chunk)
{
    return (uint32_t)(cells->base[buffer] + chunk);
}

#endif
