/* SPDX-License-Identifier: Apache-2.0
 * A program of thread blocks: what the foreign forms have in common, on their way to schedules.
 *
 *     xml.c  \                                play.c                       emit.c
 *              program: blocks of ops  ---->  an order that the   ---->   steps, rank by rank
 *     json.c /  on cells of memory            program allows, with         (then check.h)
 *                                             nothing left unordered
 *
 * Blocks run beside each other, the ops of a block one after the other. Blocks meet in objects:
 * queues of messages, signals, semaphores, barriers.
 *
 * Memory is cells, one per chunk. Where the program was written for calls in place, INPUT and
 * OUTPUT share cells as step.h tells; but in contrast to schedules, cells of INPUT may be written:
 * emit.c finds other places for them.
 */
#ifndef TUTTI_SCHEDULE_IMPORT_PROGRAM_H
#define TUTTI_SCHEDULE_IMPORT_PROGRAM_H

#include "base/result.h"
#include "schedule/text.h"

#define TUTTI_IMPORT_RANKS_MAX       4096u
#define TUTTI_IMPORT_CELLS_MAX       (1u << 24) /* of all ranks */
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
    bool is_packets; /* flags travel with the data: who reads waits until they are there */
    uint32_t first, count;
};

enum tutti_import_kind {
    TUTTI_IMPORT_MOVE,    /* each of dsts = the sum of srcs; any of them may be another rank's */
    TUTTI_IMPORT_SEND,    /* srcs[0] into the queue; buffered */
    TUTTI_IMPORT_RECV,    /* dsts[0] = what the queue gives, plus srcs[0] if there is one */
    TUTTI_IMPORT_POST,    /* a signal, or the release of a semaphore */
    TUTTI_IMPORT_WAIT,    /* for a signal, or to acquire a semaphore */
    TUTTI_IMPORT_BARRIER, /* of `count` blocks */
    TUTTI_IMPORT_AFTER,   /* block `object` has done its first `count` ops */
};

struct tutti_import_op {
    uint8_t kind;
    bool is_relaxed; /* of a POST or WAIT: it orders nothing */
    uint16_t nsrcs, ndsts;
    uint32_t first_ref; /* srcs, then dsts */
    uint32_t object, count;
    uint32_t step;    /* as the file numbers it */
    const char *word; /* as the file names it; lives for ever */
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
    uint32_t key[4];  /* what makes it this one: ranks, channels, ids */
    uint32_t initial; /* of a semaphore */
};

struct tutti_import_program {
    const char *file; /* for messages */
    char name[TUTTI_ENSEMBLE_NAME_BYTES];
    enum tutti_collective collective;
    bool is_in_place;
    uint32_t nranks, root;
    uint32_t chunks;           /* per block of INPUT and OUTPUT */
    uint32_t *scratch, *temps; /* per rank: chunks */
    uint32_t *first_cell;      /* per rank, and the end; when finished */

    struct tutti_import_block *blocks;
    struct tutti_import_op *ops;
    struct tutti_import_ref *refs;
    struct tutti_import_object *objects;
    uint32_t nblocks, nops, nrefs, nobjects;
    uint32_t block_capacity, op_capacity, ref_capacity, object_capacity;
    uint64_t touches;
};

/* collective, nranks and chunks are known. */
int tutti_import_init(struct tutti_import_program *program);
void tutti_import_fini(struct tutti_import_program *program);

/* Building: blocks, then the ops of the last block, then their refs (sources before destinations).
 * Bounds are checked; messages name gpu, threadblock and step. */
int tutti_import_add_block(struct tutti_import_program *program, uint32_t rank, uint32_t id);
int tutti_import_add_op(struct tutti_import_program *program, enum tutti_import_kind kind,
                        const char *word, uint32_t step, uint32_t object, uint32_t count);
int tutti_import_add_src(struct tutti_import_program *program, struct tutti_import_ref ref);
int tutti_import_add_dst(struct tutti_import_program *program, struct tutti_import_ref ref);
/* The object of a kind and key, made when new. */
int tutti_import_object(struct tutti_import_program *program, enum tutti_import_meeting kind,
                        const uint32_t key[4], uint32_t *ret_object);

/* "file: gpu 1, threadblock 2, step 3 (rrc): " and the rest. */
void tutti_import_record(const struct tutti_import_program *program, uint32_t op,
                         const char *format, ...) __attribute__((format(printf, 3, 4), cold));
/* The same, and TUTTI_ERR_ARGUMENT; a macro for the reason that tutti_fail is one. */
#define tutti_import_refuse(program, op, ...) \
    tutti_recorded((tutti_import_record(program, op, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* Number the cells; nothing is added after it. */
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

/* Chunks of a rank's buffer. */
uint32_t tutti_import_chunks(const struct tutti_import_program *program, uint32_t rank,
                             enum tutti_import_buffer buffer);
/* Cell of chunk `index` of a rank's buffer, among those of all ranks. */
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
    uint32_t mate;  /* of a SEND and a RECV: the other's event */
    bool is_direct; /* of a RECV: what the SEND read is still there, so the message needs no buffer
                     */
};

struct tutti_import_trace {
    struct tutti_import_event *events;
    uint32_t nevents;
};

/* TUTTI_ERR_ARGUMENT: blocks wait for each other for ever, messages or packets never come, or two
 * blocks touch a cell, one of them to write it, and nothing orders the two. */
int tutti_import_play(const struct tutti_import_program *program,
                      struct tutti_import_trace *ret_trace);
void tutti_import_trace_fini(struct tutti_import_trace *trace);

/* ---- steps: emit.c --------------------------------------------------------------------------- */

/* Fused: boldly (build.h), or as is right anyhow. */
int tutti_import_emit(const struct tutti_import_program *program,
                      const struct tutti_import_trace *trace, bool is_bold,
                      struct tutti_ensemble *ret_ensemble);

/* All of it: finish, play, emit; where a collective has a root that the file does not name
 * (program->root == UINT32_MAX), the first rank as which the result is proved right. */
int tutti_import_run(struct tutti_import_program *program, struct tutti_ensemble *ret_ensemble);

#endif
