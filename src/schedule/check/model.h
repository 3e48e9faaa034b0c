/* SPDX-License-Identifier: Apache-2.0
 * The checker's model of all ranks together; inside check*.c only.
 *
 * Halves. A step has one half, a fused step two: receiving and sending. Half
 * 2 * step is the receiving one of a fused step and the whole of any other,
 * half 2 * step + 1 the sending one. Steps are numbered through all ranks.
 *
 * Nodes. Each run of the schedules (three where ranks share memory, else one)
 * has for each half its begin (no byte touched before it) and its end (all
 * bytes touched), and for each rank the begin and end of the run. Happens-before
 * is the reach of the edges that order.c lists.
 */
#ifndef TUTTI_SCHEDULE_CHECK_MODEL_H
#define TUTTI_SCHEDULE_CHECK_MODEL_H

#include "schedule/access.h"
#include "schedule/check/check.h"

#define TUTTI_CHECK_NONE UINT32_MAX
#define TUTTI_CHECK_SHARED_RUNS 3

struct check {
    const struct tutti_schedule *const *schedules;
    struct tutti_check_options options;
    uint32_t nranks, nruns;
    bool is_shared; /* there are one-sided steps */
    struct tutti_check_report *report;

    uint32_t nsteps;      /* of all ranks, in one run */
    uint32_t *first_step; /* per rank, and the end */
    uint32_t *step_rank;
    /* Per half, NONE where there is none: its neighbours in its lane, the other end of its
     * message. */
    uint32_t *lane_before, *lane_after, *mate;
    uint32_t *lane_sends;   /* per lane of messages: its first send */
    uint32_t nlanes;
    uint32_t *local_index;  /* per step of a local lane: its place in it */
    uint32_t *local_count;  /* per rank */
    uint32_t *local_last;   /* per rank: step, or NONE */
    uint32_t *signal_first; /* per rank, and the end: index into signal_steps */
    uint32_t *signal_steps;

    /* What the play saw: nodes in an order that respects all edges. */
    uint32_t *log;
    uint32_t nlog;

    /* Vector clocks: how many local steps of each rank are known to be complete. Nodes that know
     * the same share a row. NULL unless shared. */
    uint32_t *clock_row;  /* per node */
    uint32_t *clock_rows; /* [nclock_rows * nranks] */
    uint32_t nclock_rows, clock_rows_capacity;
    uint32_t *clock_common; /* per run and signal number: the row of who has all of them; 0: none */

    /* Scratch of searches. */
    uint32_t *seen, stamp, *stack;
    uint32_t stack_capacity;
    uint32_t *preds;
    uint32_t npreds, preds_capacity;
};

/* ---- numbering -------------------------------------------------------------- */

static inline const struct tutti_step *check_step(const struct check *check, uint32_t step)
{
    uint32_t rank = check->step_rank[step];

    return &check->schedules[rank]->steps[step - check->first_step[rank]];
}

static inline bool check_is_fused(const struct tutti_step *step)
{
    return step->kind >= TUTTI_STEP_RECV_COPY_SEND &&
           step->kind <= TUTTI_STEP_RECV_REDUCE_COPY_SEND;
}

static inline uint32_t check_run_nodes(const struct check *check)
{
    return 4 * check->nsteps + 2 * check->nranks;
}
static inline uint32_t check_nodes(const struct check *check)
{
    return check->nruns * check_run_nodes(check);
}
static inline uint32_t check_begin(const struct check *check, uint32_t run, uint32_t half)
{
    return run * check_run_nodes(check) + 2 * half;
}
static inline uint32_t check_end(const struct check *check, uint32_t run, uint32_t half)
{
    return check_begin(check, run, half) + 1;
}
static inline uint32_t check_run_begin(const struct check *check, uint32_t run, uint32_t rank)
{
    return run * check_run_nodes(check) + 4 * check->nsteps + 2 * rank;
}
static inline uint32_t check_run_end(const struct check *check, uint32_t run, uint32_t rank)
{
    return check_run_begin(check, run, rank) + 1;
}

/* ---- check.c ---------------------------------------------------------------- */

/* Fill the report; `step` counts through all ranks, or is NONE. Returns TUTTI_ERR_ARGUMENT. */
int tutti_check_found(struct check *check, uint32_t rank, uint32_t step, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* An array that is never empty, every byte `fill`; reports like calloc would not. */
int tutti_check_alloc(void *ret_array, size_t count, size_t size, int fill);
int tutti_check_push(uint32_t **array, uint32_t *count, uint32_t *capacity, uint32_t value);

/* ---- one file each, in the order in which they run --------------------------- */

/* shape.c: every schedule alone, and that their heads agree. */
int tutti_check_shape(struct check *check);

/* class.c: size classes of chunks, equal where sizes are equal for all counts. NONE: sized
 * for the largest chunk, or by the other end. */
uint32_t tutti_check_class(const struct check *check, uint32_t rank, uint32_t buffer,
                           uint32_t chunk);
/* The first of `count` chunks in which two spans differ in class, or `count`. Chunks without a
 * class fit any if `is_lenient`. */
uint32_t tutti_check_classes_differ(const struct check *check, uint32_t rank_a,
                                    const struct tutti_span *a, uint32_t rank_b,
                                    const struct tutti_span *b, uint32_t count, bool is_lenient);
/* The span that gives the sizes of the messages of a two-sided step. */
struct tutti_span tutti_check_sized_span(const struct check *check, uint32_t step);

/* lanes.c: lanes, and the messages that join them. */
int tutti_check_lanes(struct check *check);

/* credits.c: play until the end with as few credits as it takes, at most those of the
 * options; deadlocks; fills the log and the report's credits. */
int tutti_check_credits(struct check *check);

/* order.c: happens-before. */
/* Fill check->preds with the nodes right before `node`. */
int tutti_check_preds(struct check *check, uint32_t node);
/* The node that gives signal `number` (1 = first) of a rank in a run. */
uint32_t tutti_check_signal(const struct check *check, uint32_t run, uint32_t rank,
                            uint32_t number);
/* Is the end of one half (of its run) known before the begin of the other? */
int tutti_check_is_ordered(struct check *check, uint32_t run_a, uint32_t half_a, uint32_t run_b,
                           uint32_t half_b, bool *ret_is_ordered);
int tutti_check_barrier(struct check *check);

/* clocks.c */
int tutti_check_clocks(struct check *check);
/* Local steps of `rank` through all runs that are known to be complete at `node`. */
uint32_t tutti_check_clock(const struct check *check, uint32_t node, uint32_t rank);

/* races.c */
int tutti_check_races(struct check *check, bool is_overlaid);

/* flow.c; fills the report's orders when out of place. */
int tutti_check_flow(struct check *check, bool is_overlaid);

/* facts.c: the rest of the report. */
int tutti_check_facts(struct check *check);

/* ---- memory.c ------------------------------------------------------------------ */

/* All ranks' memory as one space of cells, one per chunk. Each run has INPUT and OUTPUT of its own,
 * runs take turns on two window halves, and share the scratch memory.
 *
 * Neighbouring cells with one history form a stretch, whose first cell speaks for all of it; what
 * is known of a stretch lies in arrays of their owner, at that cell. In the beginning each rank's
 * cells are one stretch. */
struct check_memory {
    const struct check *check;
    struct tutti_cells *cells; /* per rank */
    uint32_t *first;           /* per rank */
    uint32_t count;
    uint64_t *starts;          /* a bit per cell: a stretch begins here */
};
int tutti_check_memory_init(struct check_memory *memory, const struct check *check,
                            bool is_overlaid);
void tutti_check_memory_fini(struct check_memory *memory);
uint32_t tutti_check_cell(const struct check_memory *memory, uint32_t run, uint32_t rank,
                          uint32_t buffer, uint32_t chunk);
/* First cell of the stretch that `cell` is in, and the cell after its last. */
uint32_t tutti_check_stretch(const struct check_memory *memory, uint32_t cell);
uint32_t tutti_check_stretch_end(const struct check_memory *memory, uint32_t cell);
/* Begin a stretch at `cell`; false if one began there already. */
bool tutti_check_split(struct check_memory *memory, uint32_t cell);
/* Make one stretch of `count` cells, which begin and end with stretches. */
void tutti_check_join(struct check_memory *memory, uint32_t first, uint32_t count);

/* What one half touches, reads before writes; returns how many. */
uint32_t tutti_check_accesses(const struct check *check, uint32_t half,
                              struct tutti_touch accesses[TUTTI_STEP_ACCESSES]);

#endif
