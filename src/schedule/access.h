/* SPDX-License-Identifier: Apache-2.0
 * What a step touches, and in which lanes it runs: the one place that knows the
 * kinds of steps, shared by the derivation of dependencies, fusing and the checker. Pure.
 */
#ifndef TUTTI_SCHEDULE_ACCESS_H
#define TUTTI_SCHEDULE_ACCESS_H

#include "schedule/step.h"

/* One span that a step reads or writes. `rank` is TUTTI_NO_RANK for this rank's own memory,
 * else a peer, or TUTTI_ALL_RANKS for every rank but this one. */
struct tutti_touch {
    int32_t rank;
    bool is_write;
    struct tutti_span span;
};

#define TUTTI_STEP_ACCESSES 5

/* Fills `accesses`, reads before writes, and returns how many. */
uint32_t tutti_step_accesses(const struct tutti_step *step,
                             struct tutti_touch accesses[TUTTI_STEP_ACCESSES]);

/* The halves of two-sided steps; both for fused ones. */
static inline bool tutti_access_receives(const struct tutti_step *step)
{
    return step->kind >= TUTTI_STEP_RECV && step->kind <= TUTTI_STEP_RECV_REDUCE_COPY_SEND;
}
static inline bool tutti_access_sends(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_SEND || (step->kind >= TUTTI_STEP_RECV_COPY_SEND &&
                                             step->kind <= TUTTI_STEP_RECV_REDUCE_COPY_SEND);
}
static inline bool tutti_step_is_two_sided(const struct tutti_step *step)
{
    return step->kind <= TUTTI_STEP_RECV_REDUCE_COPY_SEND;
}
/* Of a put or gather_reduce of rank `me`: is the result stored into `other`'s memory? */
static inline bool tutti_step_stores_into(const struct tutti_step *step, uint32_t me,
                                          uint32_t other)
{
    return other != me && (step->to == TUTTI_ALL_RANKS || step->to == (int32_t)other);
}

/* Has a put or gather_reduce the destinations that go together? */
bool tutti_step_stores_right(const struct tutti_step *step);

static inline bool tutti_step_is_one_sided(const struct tutti_step *step)
{
    return step->kind >= TUTTI_STEP_PUT;
}

/* Chunks of `rank`'s buffer; 0 if it has none (its user does not give it, say). */
uint32_t tutti_buffer_chunks(const struct tutti_schedule *schedule, uint32_t rank,
                             enum tutti_buffer buffer);

const char *tutti_buffer_name(enum tutti_buffer buffer);

/* Memory of a rank as one numbered space of cells, one per chunk: INPUT, OUTPUT, SCRATCH, WINDOW.
 * Overlaid, INPUT and OUTPUT share cells as in an in-place call, where the collective has one. */
struct tutti_cells {
    int64_t base[TUTTI_BUF_COUNT];
    uint32_t chunks[TUTTI_BUF_COUNT];
    uint32_t count;
};

void tutti_cells_init(struct tutti_cells *cells, const struct tutti_schedule *schedule,
                      uint32_t rank, bool is_overlaid);

static inline uint32_t tutti_cell(const struct tutti_cells *cells, uint32_t buffer, uint32_t chunk)
{
    return (uint32_t)(cells->base[buffer] + chunk);
}

#endif
