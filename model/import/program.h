/* SPDX-License-Identifier: Apache-2.0
 * A program of thread blocks: the common form of the foreign formats, on their way to schedules.
 *
 *     xml.c  \                                play.c                       emit.c
 *              program: blocks of ops  ---->  an order that the   ---->   steps, rank by rank
 *     json.c /  on cells of memory            program allows, with         (then check.h)
 *                                             nothing left unordered
 *
 * Blocks run concurrently; the ops of a block run one after another. Blocks synchronize through
 * objects: queues of messages, signals, semaphores, barriers.
 *
 * Memory consists of cells, one per chunk. If the program was written for in-place calls, INPUT and
 * OUTPUT share cells as described in step.h. Unlike in schedules, cells of INPUT may be written;
 * emit.c finds other places for them.
 */
#ifndef TUTTI_IMPORT_PROGRAM_H
#define TUTTI_IMPORT_PROGRAM_H

#include "base/result.h"
#include "schedule/text.h"

#define TUTTI_IMPORT_RANKS_MAX       4096u
#define TUTTI_IMPORT_CELLS_MAX       (1u << 24) /* cells of all ranks */
#define TUTTI_IMPORT_OPS_MAX         (1u << 22)
#define TUTTI_IMPORT_TOUCHES_MAX     (UINT64_C(1) << 25)
#define TUTTI_IMPORT_CLOCK_BYTES_MAX ((size_t)1 << 30)

enum tutti_import_buffer {
    TUTTI_IMPORT_INPUT,
    TUTTI_IMPORT_OUTPUT,
    TUTTI_IMPORT_SCRATCH,
    TUTTI_IMPORT_TEMP, /* what a block holds between two ops; each cell is written once */
    TUTTI_IMPORT_BUFFER_COUNT
};

/* `count` cells of a rank's buffer. */
struct tutti_import_ref {
    uint32_t rank;
    uint8_t buffer;  /* enum tutti_import_buffer */
    bool is_packets; /* flags travel with the data: a reader waits until they have arrived */
    uint32_t first, count;
};

enum tutti_import_kind {
    /* Each of dsts = the sum of srcs; any of them may belong to another rank. */
    TUTTI_IMPORT_MOVE,
    TUTTI_IMPORT_SEND,    /* srcs[0] goes into the queue; buffered */
    /* dsts[0] = the next message of the queue, plus srcs[0] if there is one */
    TUTTI_IMPORT_RECV,
    TUTTI_IMPORT_POST,    /* give a signal, or release a semaphore */
    TUTTI_IMPORT_WAIT,    /* wait for a signal, or acquire a semaphore */
    TUTTI_IMPORT_BARRIER, /* wait for `count` blocks */
    TUTTI_IMPORT_AFTER,   /* wait until block `object` has done its first `count` ops */
};

struct tutti_import_op {
    uint8_t kind;
    bool is_relaxed; /* of a POST or WAIT: it orders no memory accesses */
    uint16_t nsrcs, ndsts;
    uint32_t first_ref; /* srcs, then dsts */
    uint32_t object, count;
    uint32_t step;    /* number in the file */
    const char *word; /* name in the file; must outlive the program */
};

struct tutti_import_block {
    uint32_t rank, id;
    uint32_t first_op, nops;
};

enum tutti_import_meeting {
    TUTTI_IMPORT_QUEUE,
    TUTTI_IMPORT_SIGNAL,
    TUTTI_IMPORT_SEMAPHORE,
    TUTTI_IMPORT_GATE
};

struct tutti_import_object {
    uint8_t kind;     /* enum tutti_import_meeting */
    uint32_t key[4];  /* its identity: ranks, channels, ids */
    uint32_t initial; /* initial value of a semaphore */
};

struct tutti_import_program {
    const char *file; /* for messages */
    char name[TUTTI_ENSEMBLE_NAME_BYTES];
    enum tutti_collective collective;
    bool is_in_place;
    uint32_t nranks, root;
    uint32_t chunks;           /* chunks per block of INPUT and OUTPUT */
    uint32_t *scratch, *temps; /* per rank: number of chunks */
    uint32_t *first_cell;      /* per rank, and one past the last; set by tutti_import_finish */

    struct tutti_import_block *blocks;
    struct tutti_import_op *ops;
    struct tutti_import_ref *refs;
    struct tutti_import_object *objects;
    uint32_t nblocks, nops, nrefs, nobjects;
    uint32_t block_capacity, op_capacity, ref_capacity, object_capacity;
    uint64_t touches;
};

/* Allocate the lists per rank; collective, nranks and chunks must be set. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_import_init(struct tutti_import_program *program);
void tutti_import_fini(struct tutti_import_program *program);

/* Building: add a block, then its ops, and after each op its refs (sources before destinations).
 * Bounds are checked. TUTTI_ERR_ARGUMENT, with a message that names gpu, threadblock and step.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_import_add_block(struct tutti_import_program *program, uint32_t rank, uint32_t id);
int tutti_import_add_op(struct tutti_import_program *program, enum tutti_import_kind kind,
                        const char *word, uint32_t step, uint32_t object, uint32_t count);
int tutti_import_add_src(struct tutti_import_program *program, struct tutti_import_ref ref);
int tutti_import_add_dst(struct tutti_import_program *program, struct tutti_import_ref ref);
/* Find the object of a kind and key; create it if it is new. */
int tutti_import_object(struct tutti_import_program *program, enum tutti_import_meeting kind,
                        const uint32_t key[4], uint32_t *ret_object);

/* Record a failure with its position: "file: gpu 1, threadblock 2, step 3 (rrc): " and the
 * message. */
void tutti_import_record(const struct tutti_import_program *program, uint32_t op,
                         const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* The same, and returns TUTTI_ERR_ARGUMENT; it is a macro for the same reason as tutti_fail. */
#define tutti_import_refuse(program, op, ...) \
    tutti_recorded((tutti_import_record(program, op, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* Number the cells; nothing may be added after it. TUTTI_ERR_ARGUMENT: there are too many. */
int tutti_import_finish(struct tutti_import_program *program);

/* ---- cells ----------------------------------------------------------------------------------- */

static inline uint32_t tutti_import_inputs(const struct tutti_import_program *program)
{
    return tutti_input_blocks(program->collective, program->nranks) * program->chunks;
}
static inline uint32_t tutti_import_outputs(const struct tutti_import_program *program)
{
    return tutti_output_blocks(program->collective, program->nranks) * program->chunks;
}

/* Number of chunks of a rank's buffer. */
uint32_t tutti_import_chunks(const struct tutti_import_program *program, uint32_t rank,
                             enum tutti_import_buffer buffer);
/* Number of the cell of chunk `index` of a rank's buffer, among the cells of all ranks. */
uint32_t tutti_import_cell(const struct tutti_import_program *program, uint32_t rank,
                           enum tutti_import_buffer buffer, uint32_t index);
static inline uint32_t tutti_import_ref_cell(const struct tutti_import_program *program,
                                             const struct tutti_import_ref *ref, uint32_t i)
{
    return tutti_import_cell(program, ref->rank, (enum tutti_import_buffer)ref->buffer,
                             ref->first + i);
}

/* ---- order: play.c --------------------------------------------------------------------------- */

/* The ops that move data, in an order that the program allows. */
struct tutti_import_event {
    uint32_t op;
    uint32_t mate;  /* of a SEND or a RECV: the event of the other */
    /* Of a RECV: true if what the SEND read is still there, so that the message needs no buffer. */
    bool is_direct;
};

struct tutti_import_trace {
    struct tutti_import_event *events;
    uint32_t nevents;
};

/* Play the program; the caller calls tutti_import_trace_fini. TUTTI_ERR_ARGUMENT: blocks wait for
 * each other forever, messages or packets never come, or two blocks touch a cell, at least one of
 * them writes it, and nothing orders the two. */
int tutti_import_play(const struct tutti_import_program *program,
                      struct tutti_import_trace *ret_trace);
void tutti_import_trace_fini(struct tutti_import_trace *trace);

/* ---- steps: emit.c --------------------------------------------------------------------------- */

/* Emit the schedules of all ranks, fused boldly (build.h) or safely. The caller calls
 * tutti_ensemble_fini. */
int tutti_import_emit(const struct tutti_import_program *program,
                      const struct tutti_import_trace *trace, bool is_bold,
                      struct tutti_ensemble *ret_ensemble);

/* Finish, play and emit. If a collective has a root that the file does not name (program->root ==
 * UINT32_MAX), the root is the first rank with which the result is proved correct. The caller calls
 * tutti_ensemble_fini. */
int tutti_import_run(struct tutti_import_program *program, struct tutti_ensemble *ret_ensemble);

#endif
