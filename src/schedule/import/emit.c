/* SPDX-License-Identifier: Apache-2.0
 * From a trace to schedules: what the program's ops do becomes steps, in the order of the trace, on
 * the places where the cells are kept. What must wait for what is derived from these by the builder.
 *
 * Both ends of a message are emitted at the same moment. So all ranks' steps together have an order in
 * which each message can be handed over from hand to hand: no timing can deadlock, with no credits at
 * all. A message of a queue is handed over when it is received, if what was sent is still there then
 * (event.is_direct); else when it is sent, into SCRATCH, which is what its buffer was in the program.
 *
 * A sum of several is added up in the order of the lowest ranks in its parts, so that all ranks that
 * add up the same parts get the same bits.
 */
#include "schedule/import/places.h"

#include "base/result.h"
#include "schedule/build.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE TUTTI_IMPORT_NOWHERE

/* A part of a sum, or where it goes: `count` chunks of one rank, not always one behind the other. */
struct part {
    uint32_t rank;
    struct tutti_import_place *places;
    uint32_t lowest;
};

struct emitter {
    const struct tutti_import_program *program;
    const struct tutti_import_trace *trace;
    struct tutti_import_places places;
    struct tutti_build *builds;    /* per rank */
    uint32_t *last_read;           /* per cell: 1 + event; 0: never */
    struct tutti_import_place **buffered; /* per SEND's event: its message, where it is not direct */
    /* Of the event at hand. */
    uint32_t event;
    struct part *parts;
    uint32_t nparts;
    struct tutti_import_place *pool;
    size_t npool;
};

/* ---- steps on places --------------------------------------------------------------------------- */

static struct tutti_span span_at(struct tutti_import_place place, uint32_t count)
{
    return tutti_span((enum tutti_buffer)place.buffer, place.chunk, count);
}

static bool is_same(struct tutti_import_place a, struct tutti_import_place b)
{
    return a.buffer == b.buffer && a.chunk == b.chunk;
}

static bool follows(const struct tutti_import_place *places, uint32_t i)
{
    return places[i].buffer == places[i - 1].buffer && places[i].chunk == places[i - 1].chunk + 1;
}

/* `dst` = the sum of `a` and `b`, or `a` where b is NULL: `count` chunks that lie one behind the other
 * in each. At most one of them is another rank's, if there are two. */
static int add_run(struct emitter *emitter, uint32_t at, uint32_t count, const struct part *a,
                   const struct part *b, const struct part *dst)
{
    struct tutti_build *build = &emitter->builds[dst->rank];
    struct tutti_span to = span_at(dst->places[at], count);

    if (b != NULL && a->rank != dst->rank) {
        const struct part *swapped = a;

        a = b;
        b = swapped;
    }
    if (a->rank != dst->rank) {
        TUTTI_TRY(tutti_build_send(&emitter->builds[a->rank], dst->rank,
                                   span_at(a->places[at], count)));
        return tutti_build_recv(build, a->rank, to);
    }
    if (b != NULL && b->rank != dst->rank) {
        TUTTI_TRY(tutti_build_send(&emitter->builds[b->rank], dst->rank,
                                   span_at(b->places[at], count)));
        return tutti_build_recv_reduce(build, b->rank, span_at(a->places[at], count), to);
    }
    /* Of two in one memory, the one that lies where the sum goes is added to. */
    if (b != NULL && (is_same(b->places[at], dst->places[at]) ||
                      tutti_import_is_overlay(&emitter->places, dst->rank, b->places[at],
                                              dst->places[at]))) {
        const struct part *swapped = a;

        a = b;
        b = swapped;
    }
    if (!is_same(a->places[at], dst->places[at]))
        TUTTI_TRY(tutti_build_copy(build, span_at(a->places[at], count), to));
    return b == NULL ? TUTTI_OK : tutti_build_reduce(build, span_at(b->places[at], count), to);
}

static int add(struct emitter *emitter, uint32_t count, const struct part *a, const struct part *b,
               const struct part *dst)
{
    for (uint32_t at = 0, end; at < count; at = end) {
        for (end = at + 1; end < count; end++)
            if (!follows(a->places, end) || (b != NULL && !follows(b->places, end)) ||
                !follows(dst->places, end))
                break;
        TUTTI_TRY(add_run(emitter, at, end - at, a, b, dst));
    }
    return TUTTI_OK;
}

/* ---- sums ---------------------------------------------------------------------------------------- */

/* Parts of the event at hand come from one pool, which is large enough for its refs. */
static struct part *new_part(struct emitter *emitter, uint32_t rank, uint32_t count)
{
    struct part *part = &emitter->parts[emitter->nparts++];

    *part = (struct part){.rank = rank, .places = emitter->pool + emitter->npool};
    emitter->npool += count;
    return part;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *one = a, *other = b;

    return (one->lowest > other->lowest) - (one->lowest < other->lowest);
}

/* Does a part lie, anywhere, where the sum goes? */
static bool is_at_home(const struct emitter *emitter, const struct part *part,
                       const struct part *dst, uint32_t count)
{
    if (part->rank != dst->rank)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (is_same(part->places[i], dst->places[i]) ||
            tutti_import_is_overlay(&emitter->places, dst->rank, part->places[i], dst->places[i]))
            return true;
    return false;
}

/* A place for a sum that may not yet go where it belongs, for a part is still there. */
static int make_aside(struct emitter *emitter, const struct part *dst, const uint32_t *classes,
                      uint32_t count, struct part **ret_part)
{
    *ret_part = new_part(emitter, dst->rank, count);
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(tutti_import_scratch(&emitter->places, dst->rank, classes[i],
                                       &(*ret_part)->places[i]));
    return TUTTI_OK;
}

static int add_all(struct emitter *emitter, uint32_t count, struct part *parts, uint32_t nparts,
                   const struct part *dst, const uint32_t *classes)
{
    const struct part *sum = &parts[0];
    struct part *aside = NULL;
    uint32_t home = 0;

    qsort(parts, nparts, sizeof(*parts), compare_parts);
    for (uint32_t i = 0; i < nparts; i++)
        if (is_at_home(emitter, &parts[i], dst, count))
            home = i;
    if (nparts == 1)
        return add(emitter, count, sum, NULL, dst);
    if (home >= 2)
        TUTTI_TRY(make_aside(emitter, dst, classes, count, &aside));
    for (uint32_t i = 1; i < nparts; i++) {
        const struct part *to = i < home ? aside : dst;

        if (sum->rank != dst->rank && parts[i].rank != dst->rank) {
            TUTTI_TRY(add(emitter, count, sum, NULL, to));
            sum = to;
        }
        TUTTI_TRY(add(emitter, count, sum, &parts[i], to));
        sum = to;
    }
    return TUTTI_OK;
}

/* ---- cells -------------------------------------------------------------------------------------- */

/* The places of what a ref reads. */
static int load(struct emitter *emitter, uint32_t op, const struct tutti_import_ref *ref,
                struct part *part, uint32_t *classes)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        const struct tutti_import_content *content =
            &emitter->places.contents[tutti_import_ref_cell(emitter->program, ref, i)];

        if (content->place.buffer == TUTTI_BUF_NONE)
            return tutti_import_refuse(emitter->program, op,
                                       "reads chunk %u of a buffer of gpu %u that nothing has "
                                       "written", ref->first + i, ref->rank);
        part->places[i] = content->place;
        classes[i] = content->class;
        part->lowest = content->lowest;
    }
    return TUTTI_OK;
}

/* Does the event read `cell` as another than the i-th chunk of a part? */
static bool reads_elsewhere(const struct emitter *emitter, const struct tutti_import_op *op,
                            uint32_t cell, uint32_t i)
{
    const struct tutti_import_ref *srcs = emitter->program->refs + op->first_ref;

    for (uint32_t s = 0; s < op->nsrcs; s++) {
        uint32_t first = tutti_import_ref_cell(emitter->program, &srcs[s], 0);

        if (cell >= first && cell - first < srcs[s].count && cell - first != i)
            return true;
    }
    return false;
}

/* Chunk `output` of OUTPUT is about to be written, which in place is one of INPUT: if that is still to
 * be read, it moves to SCRATCH. */
static int save_input(struct emitter *emitter, const struct tutti_import_op *op, uint32_t rank,
                      uint32_t output, uint32_t cell, uint32_t i, bool is_first)
{
    uint32_t chunk, input = tutti_import_overlaid(&emitter->places, rank, output, &chunk);
    uint32_t now = emitter->event + 1;
    struct tutti_import_content *content;
    struct tutti_import_place to;

    if (input == NOWHERE || input == cell)
        return TUTTI_OK;
    content = &emitter->places.contents[input];
    if (content->place.buffer != TUTTI_BUF_INPUT || emitter->last_read[input] < now ||
        (emitter->last_read[input] == now && is_first &&
         !reads_elsewhere(emitter, op, input, i)))
        return TUTTI_OK;
    TUTTI_TRY(tutti_import_scratch(&emitter->places, rank, content->class, &to));
    TUTTI_TRY(tutti_build_copy(&emitter->builds[rank],
                               tutti_span(TUTTI_BUF_INPUT, content->place.chunk, 1),
                               span_at(to, 1)));
    content->place = to;
    return TUTTI_OK;
}

/* The places where a ref's chunks go. */
static int choose(struct emitter *emitter, const struct tutti_import_op *op,
                  const struct tutti_import_ref *ref, struct part *part, const uint32_t *classes,
                  bool is_first)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        uint32_t cell = tutti_import_ref_cell(emitter->program, ref, i);

        TUTTI_TRY(tutti_import_home(&emitter->places, ref->rank, cell, classes[i],
                                    &part->places[i]));
        if (part->places[i].buffer == TUTTI_BUF_OUTPUT)
            TUTTI_TRY(save_input(emitter, op, ref->rank, part->places[i].chunk, cell, i, is_first));
    }
    return TUTTI_OK;
}

static void store(struct emitter *emitter, const struct tutti_import_ref *ref,
                  const struct part *part, const uint32_t *classes, uint32_t lowest)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        struct tutti_import_content *content =
            &emitter->places.contents[tutti_import_ref_cell(emitter->program, ref, i)];

        content->place = part->places[i];
        content->class = classes[i];
        content->lowest = lowest;
    }
}

/* ---- events ------------------------------------------------------------------------------------- */

/* The destinations' places come before the sources', for saving an input moves these. */
static int emit_move(struct emitter *emitter, const struct tutti_import_op *op, uint32_t at,
                     const struct tutti_import_event *event, uint32_t *classes)
{
    const struct tutti_import_ref *srcs = emitter->program->refs + op->first_ref;
    const struct tutti_import_ref *dsts = srcs + op->nsrcs, *sent = NULL;
    uint32_t count = dsts[0].count, nparts = op->nsrcs, lowest = UINT32_MAX;
    struct part *parts, *dst, *first;

    if (op->kind == TUTTI_IMPORT_RECV)
        sent = &emitter->program->refs[emitter->program->ops[emitter->trace->events[event->mate].op]
                                           .first_ref];
    parts = &emitter->parts[emitter->nparts];
    for (uint32_t s = 0; s < op->nsrcs; s++)
        TUTTI_TRY(load(emitter, at, &srcs[s], new_part(emitter, srcs[s].rank, count), classes));
    if (sent != NULL && event->is_direct)
        TUTTI_TRY(load(emitter, at, sent, new_part(emitter, sent->rank, count), classes));
    if (sent != NULL && !event->is_direct) {
        const struct tutti_import_place *from = emitter->buffered[event->mate];
        struct part *part = new_part(emitter, dsts[0].rank, count);

        memcpy(part->places, from, count * sizeof(*from));
        part->lowest = from[count].chunk; /* see emit_send */
        for (uint32_t i = 0; i < count; i++)
            classes[i] = from[i].chunk % emitter->program->chunks;
    }
    nparts += sent != NULL;
    first = new_part(emitter, dsts[0].rank, count);
    for (uint32_t d = 0; d < op->ndsts; d++) {
        dst = d == 0 ? first : new_part(emitter, dsts[d].rank, count);
        TUTTI_TRY(choose(emitter, op, &dsts[d], dst, classes, d == 0));
    }
    /* Where the sources are now. */
    for (uint32_t s = 0; s < op->nsrcs; s++)
        TUTTI_TRY(load(emitter, at, &srcs[s], &parts[s], classes));
    for (uint32_t s = 0; s < nparts; s++)
        lowest = parts[s].lowest < lowest ? parts[s].lowest : lowest;
    dst = first;
    TUTTI_TRY(add_all(emitter, count, parts, nparts, first, classes));
    store(emitter, &dsts[0], first, classes, lowest);
    for (uint32_t d = 1; d < op->ndsts; d++) {
        TUTTI_TRY(add(emitter, count, first, NULL, ++dst));
        store(emitter, &dsts[d], dst, classes, lowest);
    }
    return TUTTI_OK;
}

/* A message that cannot wait: into SCRATCH of the receiver. One place more tells the lowest rank. */
static int emit_send(struct emitter *emitter, const struct tutti_import_op *op, uint32_t at,
                     uint32_t *classes)
{
    const struct tutti_import_ref *src = emitter->program->refs + op->first_ref;
    const struct tutti_import_event *event = &emitter->trace->events[emitter->event];
    const struct tutti_import_op *recv = &emitter->program->ops[emitter->trace->events[event->mate].op];
    uint32_t to = emitter->program->refs[recv->first_ref].rank, count = src->count;
    struct part *part, *dst;

    if (emitter->trace->events[event->mate].is_direct)
        return TUTTI_OK;
    part = new_part(emitter, src->rank, count);
    dst = new_part(emitter, to, count);
    TUTTI_TRY(load(emitter, at, src, part, classes));
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(tutti_import_scratch(&emitter->places, to, classes[i], &dst->places[i]));
    emitter->buffered[emitter->event] = malloc((count + 1) * sizeof(*dst->places));
    if (emitter->buffered[emitter->event] == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a message of %u chunks", count);
    memcpy(emitter->buffered[emitter->event], dst->places, count * sizeof(*dst->places));
    emitter->buffered[emitter->event][count].chunk = part->lowest;
    return add(emitter, count, part, NULL, dst);
}

static int emit_event(struct emitter *emitter, uint32_t *classes)
{
    const struct tutti_import_event *event = &emitter->trace->events[emitter->event];
    const struct tutti_import_op *op = &emitter->program->ops[event->op];

    emitter->nparts = 0;
    emitter->npool = 0;
    if (op->kind == TUTTI_IMPORT_SEND)
        return emit_send(emitter, op, event->op, classes);
    return emit_move(emitter, op, event->op, event, classes);
}

/* ---- before and after ------------------------------------------------------------------------- */

static void note_read(struct emitter *emitter, const struct tutti_import_ref *ref, uint32_t event)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        uint32_t *last = &emitter->last_read[tutti_import_ref_cell(emitter->program, ref, i)];

        *last = *last > event ? *last : event;
    }
}

/* When every cell is read last, and how large the largest event is. */
static void survey(struct emitter *emitter, uint32_t *ret_parts, uint32_t *ret_count)
{
    *ret_parts = *ret_count = 0;
    for (uint32_t e = 0; e < emitter->trace->nevents; e++) {
        const struct tutti_import_event *event = &emitter->trace->events[e];
        const struct tutti_import_op *op = &emitter->program->ops[event->op];
        const struct tutti_import_ref *refs = emitter->program->refs + op->first_ref;
        bool is_later = op->kind == TUTTI_IMPORT_SEND && emitter->trace->events[event->mate].is_direct;

        for (uint32_t s = 0; s < op->nsrcs; s++)
            note_read(emitter, &refs[s], 1 + (is_later ? event->mate : e));
        if ((uint32_t)op->nsrcs + op->ndsts + 3 > *ret_parts)
            *ret_parts = (uint32_t)op->nsrcs + op->ndsts + 3;
        *ret_count = refs[0].count > *ret_count ? refs[0].count : *ret_count;
    }
}

static int begin(struct emitter *emitter)
{
    const struct tutti_import_program *program = emitter->program;
    struct tutti_shape shape = {.nranks = program->nranks, .root = program->root};

    for (shape.rank = 0; shape.rank < program->nranks; shape.rank++) {
        struct tutti_build *build = &emitter->builds[shape.rank];

        TUTTI_TRY(tutti_build_init(build, program->collective, &shape));
        tutti_build_chunks(build, program->chunks);
        tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, TUTTI_TEXT_CHUNKS_MAX);
    }
    return TUTTI_OK;
}

/* Output that was never written, for in place it is there from the beginning. */
static int fill_outputs(struct emitter *emitter, uint32_t rank)
{
    const struct tutti_import_program *program = emitter->program;

    if (!tutti_has_output(program->collective, rank, program->root))
        return TUTTI_OK;
    for (uint32_t i = 0, count; i < tutti_import_outputs(program); i += count) {
        struct tutti_import_place from =
            emitter->places.contents[tutti_import_cell(program, rank, TUTTI_IMPORT_OUTPUT, i)].place;

        for (count = 1; i + count < tutti_import_outputs(program); count++) {
            struct tutti_import_place next =
                emitter->places
                    .contents[tutti_import_cell(program, rank, TUTTI_IMPORT_OUTPUT, i + count)]
                    .place;

            if (next.buffer != from.buffer || next.chunk != from.chunk + count)
                break;
        }
        if (from.buffer == TUTTI_BUF_INPUT)
            TUTTI_TRY(tutti_build_copy(&emitter->builds[rank], span_at(from, count),
                                       tutti_span(TUTTI_BUF_OUTPUT, i, count)));
    }
    return TUTTI_OK;
}

static int finish(struct emitter *emitter, struct tutti_ensemble *ensemble)
{
    for (uint32_t rank = 0; rank < ensemble->nranks; rank++) {
        struct tutti_build *build = &emitter->builds[rank];

        TUTTI_TRY(fill_outputs(emitter, rank));
        tutti_build_trim_scratch(build, tutti_import_scratch_count(&emitter->places, rank));
        TUTTI_TRY(tutti_build_finish(build, &ensemble->schedules[rank]));
        TUTTI_TRY(tutti_schedule_fuse(ensemble->schedules[rank]));
    }
    memcpy(ensemble->name, emitter->program->name, sizeof(ensemble->name));
    return TUTTI_OK;
}

static int emit_all(struct emitter *emitter, struct tutti_ensemble *ensemble)
{
    const struct tutti_import_program *program = emitter->program;
    uint32_t parts, count, *classes;
    int rc = TUTTI_OK;

    emitter->builds = calloc(program->nranks, sizeof(*emitter->builds));
    emitter->last_read = calloc((size_t)program->first_cell[program->nranks] + 1, sizeof(uint32_t));
    emitter->buffered = calloc((size_t)emitter->trace->nevents + 1, sizeof(*emitter->buffered));
    if (emitter->builds == NULL || emitter->last_read == NULL || emitter->buffered == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the steps of %u ranks", program->nranks);
    survey(emitter, &parts, &count);
    emitter->parts = calloc((size_t)parts + 1, sizeof(*emitter->parts));
    emitter->pool = calloc((size_t)parts * count + 1, sizeof(*emitter->pool));
    classes = calloc((size_t)count + 1, sizeof(*classes));
    if (emitter->parts == NULL || emitter->pool == NULL || classes == NULL)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for steps of %u chunks", count);
    rc = rc != TUTTI_OK ? rc : begin(emitter);
    for (uint32_t e = 0; rc == TUTTI_OK && e < emitter->trace->nevents; e++) {
        emitter->event = e;
        rc = emit_event(emitter, classes);
    }
    free(classes);
    return rc != TUTTI_OK ? rc : finish(emitter, ensemble);
}

static void release(struct emitter *emitter)
{
    for (uint32_t rank = 0; rank < emitter->program->nranks && emitter->builds != NULL; rank++)
        tutti_build_fini(&emitter->builds[rank]);
    for (uint32_t e = 0; e < emitter->trace->nevents && emitter->buffered != NULL; e++)
        free(emitter->buffered[e]);
    tutti_import_places_fini(&emitter->places);
    free(emitter->builds);
    free(emitter->last_read);
    free(emitter->buffered);
    free(emitter->parts);
    free(emitter->pool);
}

int tutti_import_emit(const struct tutti_import_program *program,
                      const struct tutti_import_trace *trace, struct tutti_ensemble *ret_ensemble)
{
    struct emitter emitter = {.program = program, .trace = trace};
    struct tutti_ensemble ensemble;
    int rc;

    TUTTI_TRY(tutti_ensemble_init(&ensemble, program->nranks));
    rc = tutti_import_places_init(&emitter.places, program);
    rc = rc != TUTTI_OK ? rc : emit_all(&emitter, &ensemble);
    release(&emitter);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
