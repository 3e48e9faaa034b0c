/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the two files which emit schedules share. emit.c turns ops into steps and keeps
 * track of cells. sum.c emits the steps that move and add chunks. */
#ifndef TUTTI_IMPORT_EMIT_H
#define TUTTI_IMPORT_EMIT_H

#include "import/order.h"
#include "import/places.h"
#include "schedule/build.h"

/* A part of a sum, or the destination of a sum. It is some chunks of one rank, which need not be
 * contiguous. Functions take the number of chunks as `count`. */
struct tutti_import_part {
    uint32_t rank;
    struct tutti_import_place *places; /* per chunk */
    uint32_t lowest; /* lowest rank whose input is in the part */
    uint32_t event;  /* a step that sends the part moves to the position of this event (order.h) */
};

/* Where a message that is not direct is kept, in SCRATCH of the receiver, until it is received. */
struct tutti_import_message {
    uint32_t lowest;                    /* lowest rank whose input is in the message */
    struct tutti_import_place places[]; /* per chunk */
};

/* The state of emitting the schedules of all ranks. */
struct tutti_import_emitter {
    const struct tutti_import_program *program;
    const struct tutti_import_trace *trace;
    struct tutti_import_places places;
    struct tutti_build *builds;        /* per rank */
    struct tutti_import_order *orders; /* per rank */
    /* Per cell: 1 + the event that reads the cell last, or 0 if no event reads it. */
    uint32_t *last_read;
    /* Per event: the message of a SEND whose message is not direct; else NULL. */
    struct tutti_import_message **messages;
    /* The following fields belong to the current event. */
    uint32_t event;
    struct tutti_import_part *parts; /* the sources, then the destinations, then temporary ones */
    uint32_t nparts;
    struct tutti_import_place *pool; /* of the places of the parts */
    size_t npool;                    /* number of places in use */
};

static inline struct tutti_span tutti_import_span(struct tutti_import_place place, uint32_t count)
{
    return tutti_span((enum tutti_buffer)place.buffer, place.chunk, count);
}

/* Returns a new part of the current event, with `count` places. The places come from one pool,
 * which is large enough for the refs of any event. The emitter owns the part. Never fails. */
struct tutti_import_part *tutti_import_new_part(struct tutti_import_emitter *emitter, uint32_t rank,
                                                uint32_t count);

/* Emits `dst` = the sum of `a` and `b`, or `dst` = `a` if b is NULL. Each of them has `count`
 * chunks. If `b` is given, at most one of `a` and `b` may belong to another rank than `dst`. */
int tutti_import_add(struct tutti_import_emitter *emitter, uint32_t count,
                     const struct tutti_import_part *a, const struct tutti_import_part *b,
                     const struct tutti_import_part *dst);

/* Emits `dst` = the sum of all parts, of which there is at least one. Each has `count` chunks.
 * Sorts the array of parts by `lowest`. Chunk i has the size of class classes[i] (places.h). */
int tutti_import_sum(struct tutti_import_emitter *emitter, uint32_t count,
                     struct tutti_import_part *parts, uint32_t nparts,
                     const struct tutti_import_part *dst, const uint32_t *classes);

#endif
