/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of emitting share: the steps that move and add (sum.c), ops and cells
 * (emit.c). */
#ifndef TUTTI_IMPORT_EMIT_H
#define TUTTI_IMPORT_EMIT_H

#include "import/order.h"
#include "import/places.h"
#include "schedule/build.h"

/* A part of a sum, or the destination of one: `count` chunks of one rank, which need not be
 * contiguous. */
struct tutti_import_part {
    uint32_t rank;
    struct tutti_import_place *places;
    /* Lowest rank whose input is in it. */
    uint32_t lowest;
    uint32_t event; /* the event in whose place a step that sends it belongs */
};

struct tutti_import_emitter {
    const struct tutti_import_program *program;
    const struct tutti_import_trace *trace;
    struct tutti_import_places places;
    struct tutti_build *builds;        /* per rank */
    struct tutti_import_order *orders; /* per rank */
    /* Per cell: 1 + the event that reads it last; 0: it is never read. */
    uint32_t *last_read;
    struct tutti_import_place *
        *buffered; /* per event of a SEND: its message, if it is not direct */
    /* Of the current event. */
    uint32_t event;
    struct tutti_import_part *parts;
    uint32_t nparts;
    struct tutti_import_place *pool;
    size_t npool;
};

static inline struct tutti_span tutti_import_span(struct tutti_import_place place, uint32_t count)
{
    return tutti_span((enum tutti_buffer)place.buffer, place.chunk, count);
}

/* A new part of the current event. Its places come from one pool, which is large enough for the
 * refs of any event. */
struct tutti_import_part *tutti_import_new_part(struct tutti_import_emitter *emitter, uint32_t rank,
                                                uint32_t count);

/* Emit `dst` = the sum of `a` and `b`, or `dst` = `a` if b is NULL: `count` chunks each. If there
 * are two, at most one of them may belong to another rank than dst. */
int tutti_import_add(struct tutti_import_emitter *emitter, uint32_t count,
                     const struct tutti_import_part *a, const struct tutti_import_part *b,
                     const struct tutti_import_part *dst);

/* Emit `dst` = the sum of all parts, which are sorted here; chunk i has the size of classes[i]. */
int tutti_import_sum(struct tutti_import_emitter *emitter, uint32_t count,
                     struct tutti_import_part *parts, uint32_t nparts,
                     const struct tutti_import_part *dst, const uint32_t *classes);

#endif
