/* SPDX-License-Identifier: Apache-2.0
 * The checker's model of all ranks together. Only the files of this folder include it.
 *
 * Halves. A step has one half, a fused step two: receiving and sending. Half 2 * step is the
 * receiving half of a fused step and the whole of any other; half 2 * step + 1 is the sending half
 * of a fused step. Steps are numbered through all ranks.
 *
 * Nodes. The schedules are run three times if ranks share memory, else once: runs alternate between
 * two window halves, so the third run is the first that uses a half again. In each run every half
 * has two nodes, its begin (no byte touched before it) and its end (all bytes touched). The run of
 * each rank has a begin and an end, too. Happens-before is reachability along the edges that
 * order.c lists. The nodes of a run have consecutive numbers: first begin and end of each half,
 * then begin and end of the run of each rank. So ends have odd numbers.
 *
 * Lanes. The sends from one rank to another on one channel are a lane, and so are the receives that
 * match them. The local and one-sided steps of a rank are its local lane; comments here call both
 * kinds local steps.
 */
#ifndef TUTTI_SCHEDULE_CHECK_MODEL_H
#define TUTTI_SCHEDULE_CHECK_MODEL_H

#include "schedule/access.h"
#include "schedule/check/check.h"

#define TUTTI_CHECK_NONE UINT32_MAX
#define TUTTI_CHECK_SHARED_RUNS 3

struct tutti_check {
    const struct tutti_schedule *const *schedules;
    struct tutti_check_options options;
    uint32_t nranks, nruns;
    bool is_shared; /* true if there are one-sided steps */
    struct tutti_check_report *report;

    uint32_t nsteps;      /* steps of all ranks, in one run */
    uint32_t *first_step; /* per rank: its first step; and one item more, which is nsteps */
    uint32_t *step_rank;  /* per step: its rank */
    /* Per half, NONE where there is none: its neighbors in its lane; and the half at the other end
     * of its message. */
    uint32_t *lane_before, *lane_after, *mate;
    uint32_t *lane_sends;   /* per lane of messages: its first send */
    uint32_t nlanes;
    uint32_t *local_index;  /* per step: its index in the local lane; NONE if it is two-sided */
    uint32_t *local_count;  /* per rank: its number of local steps */
    uint32_t *local_last;   /* per rank: its last local step, or NONE */
    uint32_t *signal_steps; /* the SIGNALs of all ranks, rank after rank */
    /* Per rank: the index of its first SIGNAL in signal_steps; and one item more, their number. */
    uint32_t *signal_first;

    /* The nodes in an order that respects all edges: the order in which play.c reached them. */
    uint32_t *log;
    uint32_t nlog;

    /* Vector clocks: how many local steps of each rank are known to be complete. Nodes that know
     * the same share a row. NULL if no memory is shared. */
    uint32_t *clock_row;  /* per node: its row in clock_rows */
    uint32_t *clock_rows; /* [nclock_rows * nranks], row after row */
    uint32_t nclock_rows, clock_rows_capacity;
    /* Per run and signal number: the row of a node that has this signal from all ranks; 0, which is
     * no row of such a node: not made. */
    uint32_t *clock_common;

    /* Working memory of the searches of order.c. */
    uint32_t stamp; /* the number of the current search */
    uint32_t *seen; /* per node or half: the last search that reached it */
    uint32_t *stack, stack_capacity;
    /* The result of tutti_check_preds. */
    uint32_t *preds, npreds, preds_capacity;
};

/* ---- numbering -------------------------------------------------------------- */

static inline const struct tutti_step *tutti_check_step(const struct tutti_check *check,
                                                        uint32_t step)
{
    uint32_t rank = check->step_rank[step];

    return &check->schedules[rank]->steps[step - check->first_step[rank]];
}

/* Number of nodes of halves in one run; the nodes of ranks come after them. */
static inline uint32_t tutti_check_half_nodes(const struct tutti_check *check)
{
    return 4 * check->nsteps;
}
/* Number of nodes of one run, and of all runs. */
static inline uint32_t tutti_check_run_nodes(const struct tutti_check *check)
{
    return tutti_check_half_nodes(check) + 2 * check->nranks;
}
static inline uint32_t tutti_check_nodes(const struct tutti_check *check)
{
    return check->nruns * tutti_check_run_nodes(check);
}
/* The nodes of a half in a run. */
static inline uint32_t tutti_check_begin(const struct tutti_check *check, uint32_t run,
                                         uint32_t half)
{
    return run * tutti_check_run_nodes(check) + 2 * half;
}
static inline uint32_t tutti_check_end(const struct tutti_check *check, uint32_t run, uint32_t half)
{
    return tutti_check_begin(check, run, half) + 1;
}
/* The nodes of a rank's run. */
static inline uint32_t tutti_check_run_begin(const struct tutti_check *check, uint32_t run,
                                             uint32_t rank)
{
    return run * tutti_check_run_nodes(check) + tutti_check_half_nodes(check) + 2 * rank;
}
static inline uint32_t tutti_check_run_end(const struct tutti_check *check, uint32_t run,
                                           uint32_t rank)
{
    return tutti_check_run_begin(check, run, rank) + 1;
}

/* ---- check.c ---------------------------------------------------------------- */

/* Fill the report with an error of a rank; `step` counts through all ranks, or is NONE. Always
 * returns TUTTI_ERR_ARGUMENT. */
int tutti_check_fail(struct tutti_check *check, uint32_t rank, uint32_t step, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Allocate an array of `count` items, and set every byte to `fill`. The array is not NULL even if
 * count is 0; the caller frees it. TUTTI_ERR_SYSTEM: no memory. */
int tutti_check_alloc(void *ret_array, size_t count, size_t size, int fill);
/* Append `value` to an array, which grows if needed. TUTTI_ERR_SYSTEM: no memory. */
int tutti_check_push(uint32_t **array, uint32_t *count, uint32_t *capacity, uint32_t value);

/* ---- one file each, in the order in which they run --------------------------- */

/* shape.c: check each schedule alone, and that all agree in what is not a step: the collective, the
 * number of ranks, chunks. */
int tutti_check_shape(struct tutti_check *check);

/* class.c: size class of a chunk. Chunks of one class have equal sizes for all counts of a call.
 * NONE: the chunk has no size of its own. It has room for the largest chunk, and what is stored
 * there determines the size. */
uint32_t tutti_check_class(const struct tutti_check *check, uint32_t rank, uint32_t buffer,
                           uint32_t chunk);
/* The first of `count` chunks in which two spans differ in class, or `count`. If `is_lenient`, a
 * chunk without a class matches any. */
uint32_t tutti_check_classes_differ(const struct tutti_check *check, uint32_t rank_a,
                                    const struct tutti_span *a, uint32_t rank_b,
                                    const struct tutti_span *b, uint32_t count, bool is_lenient);
/* The span that determines the sizes of the messages of a two-sided step. */
struct tutti_span tutti_check_sized_span(const struct tutti_check *check, uint32_t step);

/* lanes.c: sort steps into lanes, and pair the messages that join them. */
int tutti_check_lanes(struct tutti_check *check);

/* credits.c: play to the end with as few credits as possible, at most those of the options. Finds
 * deadlocks; fills the log and the report's credits. */
int tutti_check_credits(struct tutti_check *check);

/* order.c: happens-before. */
/* Fill check->preds with the direct predecessors of `node`. */
int tutti_check_preds(struct tutti_check *check, uint32_t node);
/* The node that gives signal `number` (1 = first) of a rank in a run. */
uint32_t tutti_check_signal_node(const struct tutti_check *check, uint32_t run, uint32_t rank,
                                 uint32_t number);
/* Find out whether the end of one half (in its run) happens before the begin of the other. */
int tutti_check_is_ordered(struct tutti_check *check, uint32_t run_a, uint32_t half_a,
                           uint32_t run_b, uint32_t half_b, bool *ret_is_ordered);
/* Check that each rank's end happens after every other rank's begin. */
int tutti_check_barrier(struct tutti_check *check);

/* clocks.c */
/* Compute the vector clocks of all nodes, if memory is shared. */
int tutti_check_clocks(struct tutti_check *check);
/* Number of local steps of `rank`, through all runs, that are known to be complete at `node`. */
uint32_t tutti_check_clock(const struct tutti_check *check, uint32_t node, uint32_t rank);

/* races.c: check that all conflicting accesses are ordered. Here and below, `is_overlaid` says that
 * INPUT and OUTPUT share memory, as in an in-place call. */
int tutti_check_races(struct tutti_check *check, bool is_overlaid);

/* flow.c: check the contents of the outputs. Out of place it also fills the orders of the
 * report. */
int tutti_check_flow(struct tutti_check *check, bool is_overlaid);

/* facts.c: fill in the rest of the report. */
int tutti_check_facts(struct tutti_check *check);

/* ---- memory.c ------------------------------------------------------------------ */

/* All ranks' memory as one space of cells. A cell is the memory of one chunk. Each run has INPUT
 * and OUTPUT of its own. Runs alternate between two window halves, and share the scratch memory.
 *
 * Neighboring cells with the same history form a stretch. The state of a stretch is stored in
 * arrays of the owner of this struct, at the index of the stretch's first cell. At the start each
 * rank's cells are one stretch. */
struct tutti_check_memory {
    const struct tutti_check *check;
    struct tutti_chunk_space *cells; /* per rank */
    uint32_t *first;           /* per rank: its first cell */
    uint32_t count;            /* number of cells */
    uint64_t *starts;          /* a bit per cell: set if a stretch begins here */
};
/* TUTTI_ERR_SYSTEM: no memory. The caller calls tutti_check_memory_fini in any case. */
int tutti_check_memory_init(struct tutti_check_memory *memory, const struct tutti_check *check,
                            bool is_overlaid);
void tutti_check_memory_fini(struct tutti_check_memory *memory);
/* The cell of a chunk of a rank's buffer in a run. */
uint32_t tutti_check_cell(const struct tutti_check_memory *memory, uint32_t run, uint32_t rank,
                          uint32_t buffer, uint32_t chunk);
/* First cell of the stretch that contains `cell`, and the cell after its last. */
uint32_t tutti_check_stretch(const struct tutti_check_memory *memory, uint32_t cell);
uint32_t tutti_check_stretch_end(const struct tutti_check_memory *memory, uint32_t cell);
/* Begin a stretch at `cell`; false if one already began there. */
bool tutti_check_split(struct tutti_check_memory *memory, uint32_t cell);
/* Join `count` cells into one stretch; the first must begin a stretch and the last must end one. */
void tutti_check_join(struct tutti_check_memory *memory, uint32_t first, uint32_t count);

/* List the accesses of one half, reads before writes; returns their number. */
uint32_t tutti_check_accesses(const struct tutti_check *check, uint32_t half,
                              struct tutti_touch accesses[TUTTI_STEP_ACCESSES]);

#endif
