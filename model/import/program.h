/* SPDX-License-Identifier: Apache-2.0
 * Declares programs of thread blocks. The foreign formats are read into this common form, and
 * schedules are made from this form.
 *
 *     xml.c  \                                play.c                       emit.c
 *              program: blocks of ops  ---->  an order that the   ---->   steps, rank by rank
 *     json.c /  on cells of memory            program allows, with         (then check.h)
 *                                             nothing left unordered
 *
 * A rank has any number of blocks. Blocks run concurrently; the ops of a block run one after
 * another. Blocks synchronize through objects: queues of messages, signals, semaphores, barriers.
 *
 * Memory consists of cells, one per chunk of a rank's buffer. If the program was written for
 * in-place calls, INPUT and OUTPUT share cells as described in step.h. Unlike in schedules, cells
 * of INPUT may be written; emit.c finds other places for them.
 */
#ifndef TUTTI_IMPORT_PROGRAM_H
#define TUTTI_IMPORT_PROGRAM_H

#include "base/result.h"
#include "schedule/text.h"

#define TUTTI_IMPORT_RANKS_MAX       4096u
#define TUTTI_IMPORT_CELLS_MAX       (1u << 24) /* cells of all ranks */
#define TUTTI_IMPORT_OPS_MAX         (1u << 22)
#define TUTTI_IMPORT_TOUCHES_MAX     (UINT64_C(1) << 25) /* cells in all refs together */
#define TUTTI_IMPORT_CLOCK_BYTES_MAX ((size_t)1 << 30)   /* all vector clocks (play.h) */

enum tutti_import_buffer {
    TUTTI_IMPORT_INPUT,
    TUTTI_IMPORT_OUTPUT,
    TUTTI_IMPORT_SCRATCH,
    TUTTI_IMPORT_TEMP, /* data that a block holds between two ops; each cell is written once */
    TUTTI_IMPORT_BUFFER_COUNT
};

/* `count` cells of a rank's buffer. */
struct tutti_import_ref {
    uint32_t rank;
    uint8_t buffer;  /* enum tutti_import_buffer */
    bool is_packets; /* flags travel with the data: a reader waits until the data have arrived */
    uint32_t first, count;
};

enum tutti_import_kind {
    /* Each of dsts = the sum of srcs; any of them may belong to another rank. */
    TUTTI_IMPORT_MOVE,
    TUTTI_IMPORT_SEND,    /* srcs[0] goes into the queue, which holds any number of messages */
    /* dsts[0] = the next message of the queue, plus srcs[0] if there is one */
    TUTTI_IMPORT_RECV,
    TUTTI_IMPORT_POST,    /* give a signal, or release a semaphore */
    TUTTI_IMPORT_WAIT,    /* wait for a signal, or acquire a semaphore */
    TUTTI_IMPORT_BARRIER, /* wait for `count` blocks */
    TUTTI_IMPORT_AFTER,   /* wait until block `object` has done its first `count` ops */
};

struct tutti_import_op {
    uint8_t kind;    /* enum tutti_import_kind */
    bool is_relaxed; /* of a POST or WAIT: it orders no memory accesses */
    uint16_t nsrcs, ndsts;
    uint32_t first_ref; /* index of the first of its refs: the srcs, then the dsts */
    uint32_t object;    /* index of an object; of an AFTER, index of a block; of a MOVE, unused */
    uint32_t count;     /* of a BARRIER: number of blocks; of an AFTER: number of ops */
    uint32_t step;      /* number in the file, for messages */
    const char *word;   /* name in the file, for messages; must outlive the program */
};

struct tutti_import_block {
    uint32_t rank;
    uint32_t id;             /* number in the file, unique in its rank */
    uint32_t first_op, nops; /* range in the program's ops */
};

/* The kinds of objects. */
enum tutti_import_object_kind {
    TUTTI_IMPORT_QUEUE,
    TUTTI_IMPORT_SIGNAL,
    TUTTI_IMPORT_SEMAPHORE,
    TUTTI_IMPORT_GATE, /* a barrier */
};

struct tutti_import_object {
    uint8_t kind;     /* enum tutti_import_object_kind */
    uint32_t key[4];  /* identifies the object among those of its kind: ranks, channels, ids. Of a
                         QUEUE: sender, receiver, channel */
    uint32_t initial; /* initial value of a semaphore */
};

struct tutti_import_program {
    const char *file;                     /* name of the file, for messages; borrowed */
    char name[TUTTI_ENSEMBLE_NAME_BYTES]; /* of the algorithm */
    enum tutti_collective collective;
    bool is_in_place;          /* true if the program was written for in-place calls */
    bool is_trial;             /* true if failures are expected, and are recorded but not logged */
    uint32_t nranks, root;     /* root: UINT32_MAX if the file does not name it */
    uint32_t chunks;           /* chunks per block of INPUT and OUTPUT */
    uint32_t *scratch, *temps; /* per rank: number of chunks */
    uint32_t *first_cell;      /* per rank, and one past the last; set by tutti_import_finish */

    struct tutti_import_block *blocks;
    struct tutti_import_op *ops;
    struct tutti_import_ref *refs;
    struct tutti_import_object *objects;
    uint32_t nblocks, nops, nrefs, nobjects;
    uint32_t block_capacity, op_capacity, ref_capacity, object_capacity;
    uint64_t touches; /* number of cells in all refs so far */
};

/* Allocates the lists per rank. The other members must be zero, except that collective, nranks and
 * chunks are set. Returns TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_init(struct tutti_import_program *program);
void tutti_import_fini(struct tutti_import_program *program);

/* These functions build a program. The caller adds a block, then its ops, and after each op its
 * refs, sources before destinations. Each function returns TUTTI_ERR_ARGUMENT if a limit or the
 * size of a buffer is exceeded, or if the refs of an op differ in their number of cells. It returns
 * TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_add_block(struct tutti_import_program *program, uint32_t rank, uint32_t id);
int tutti_import_add_op(struct tutti_import_program *program, enum tutti_import_kind kind,
                        const char *word, uint32_t step, uint32_t object, uint32_t count);
int tutti_import_add_src(struct tutti_import_program *program, struct tutti_import_ref ref);
int tutti_import_add_dst(struct tutti_import_program *program, struct tutti_import_ref ref);
/* Finds the object of a kind and key, or creates it if there is none. TUTTI_ERR_SYSTEM: no memory.
 */
int tutti_import_object(struct tutti_import_program *program, enum tutti_import_object_kind kind,
                        const uint32_t key[4], uint32_t *ret_object);

/* Sets program->name to `name`, or to `fallback` if `name` is NULL. Cuts the name off if it is too
 * long, and replaces the characters that Tutti's own text form cannot hold. */
void tutti_import_set_name(struct tutti_import_program *program, const char *name,
                           const char *fallback);
/* Returns the collective of a name in the file, or TUTTI_COLLECTIVE_COUNT if there is none that a
 * schedule can be made for. */
enum tutti_collective tutti_import_collective(const char *name);

/* Records a failure with the position of op `op`: "file: gpu 1, threadblock 2, step 3 (rrc): " and
 * the message. */
void tutti_import_record(const struct tutti_import_program *program, uint32_t op,
                         const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* Records a failure in the same way and returns TUTTI_ERR_ARGUMENT. This is a macro for the same
 * reason as tutti_fail. */
#define tutti_import_refuse(program, op, ...) \
    tutti_message_recorded((tutti_import_record(program, op, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* Numbers the cells. After this nothing may be added to the program. Returns TUTTI_ERR_ARGUMENT if
 * there are too many cells. */
int tutti_import_finish(struct tutti_import_program *program);

/* ---- cells ----------------------------------------------------------------------------------- */

/* Return the number of chunks of INPUT and of OUTPUT, which is the same at all ranks. */
static inline uint32_t tutti_import_inputs(const struct tutti_import_program *program)
{
    return tutti_input_blocks(program->collective, program->nranks) * program->chunks;
}
static inline uint32_t tutti_import_outputs(const struct tutti_import_program *program)
{
    return tutti_output_blocks(program->collective, program->nranks) * program->chunks;
}

/* Returns the name of a buffer, for messages. */
const char *tutti_import_buffer_name(uint8_t buffer);
/* Returns the number of chunks of a rank's buffer. */
uint32_t tutti_import_chunks(const struct tutti_import_program *program, uint32_t rank,
                             enum tutti_import_buffer buffer);
/* Returns the number of the cell of chunk `index` of a rank's buffer. Cells are numbered across all
 * ranks. */
uint32_t tutti_import_cell(const struct tutti_import_program *program, uint32_t rank,
                           enum tutti_import_buffer buffer, uint32_t index);
/* Returns the number of cell i of a ref. */
static inline uint32_t tutti_import_ref_cell(const struct tutti_import_program *program,
                                             const struct tutti_import_ref *ref, uint32_t i)
{
    return tutti_import_cell(program, ref->rank, (enum tutti_import_buffer)ref->buffer,
                             ref->first + i);
}

/* ---- order: play.c --------------------------------------------------------------------------- */

/* One run of an op that moves data: a MOVE, a SEND or a RECV. */
struct tutti_import_event {
    uint32_t op;
    uint32_t mate;  /* of a SEND: the event of its RECV; of a RECV: the event of its SEND */
    /* Of a RECV: true if the sent data are still in the sender's cells at this event. Then the
     * message needs no buffer. */
    bool is_direct;
};

/* All events, in an order that the program allows. */
struct tutti_import_trace {
    struct tutti_import_event *events;
    uint32_t nevents;
};

/* Plays the program. On success the caller releases *ret_trace with tutti_import_trace_fini.
 * Returns TUTTI_ERR_ARGUMENT if blocks wait forever, if a message is never received, or if there is
 * a race. A race is two accesses to a cell that nothing orders, of which at least one writes.
 * Returns TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_play(const struct tutti_import_program *program,
                      struct tutti_import_trace *ret_trace);
void tutti_import_trace_fini(struct tutti_import_trace *trace);

/* ---- steps: emit.c --------------------------------------------------------------------------- */

/* Emits the schedules of all ranks, with steps fused boldly if `is_bold` (tutti_schedule_fuse). On
 * success the caller releases *ret_ensemble with tutti_ensemble_fini. Returns TUTTI_ERR_ARGUMENT if
 * the program reads a cell that nothing has written, or needs too much scratch memory. Returns
 * TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_emit(const struct tutti_import_program *program,
                      const struct tutti_import_trace *trace, bool is_bold,
                      struct tutti_ensemble *ret_ensemble);

/* Numbers the cells, plays the program and emits the schedules. If the collective has a root and
 * program->root is UINT32_MAX, the function sets program->root. It takes the first rank with which
 * the result is proved correct. On success the caller releases *ret_ensemble with
 * tutti_ensemble_fini. The errors are those of these three steps. */
int tutti_import_run(struct tutti_import_program *program, struct tutti_ensemble *ret_ensemble);

#endif
