/* SPDX-License-Identifier: Apache-2.0
 * Turns a trace (program.h) into schedules. The program's ops become steps, in the order of the
 * trace. The steps use the places where the cells are kept (places.h). From these places the
 * builder derives which steps depend on which.
 *
 * Both ends of a message are emitted at the same moment. So there is one order of all ranks' steps
 * in which each message is received as soon as it is sent. Therefore the steps cannot deadlock,
 * whatever the timing, even if no message is buffered.
 *
 * The queues of a program buffer messages, but schedules have no such buffers. A message is direct
 * (event.is_direct) if the sent data are still in the sender's cells when the program receives the
 * message. A direct message is emitted when the program receives it. Any other message is emitted
 * when the program sends it, and goes into SCRATCH of the receiver instead of a queue:
 *
 *   trace                             steps if direct       steps if not direct
 *
 *   gpu 0: SEND cell a                                      0: send a to 1      1: recv s from 0
 *   gpu 0: MOVE cell c to cell a      (not in this trace)   0: copy c to a
 *   gpu 1: RECV into cell b           0: send a to 1        1: copy s to b
 *                                     1: recv b from 0
 *
 * A cell of the program has no fixed place. The program may write its input, but a schedule must
 * not, so the place of a cell can change with each event.
 */
#include "import/emit.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE TUTTI_IMPORT_NOWHERE

/* The most parts of an event in addition to those of its refs. One is for the data of a message at
 * its other end. The other is for a temporary sum (make_aside in sum.c). */
enum { MORE_PARTS = 2 };

/* ---- cells ----------------------------------------------------------------------------------- */

/* Finds where the cells are that a ref reads. Fills in the places and `lowest` of the part, and
 * classes[i], the size class (places.h) of chunk i. `op_index` is the op's index, for messages. */
static int find_places(struct tutti_import_emitter *emitter, uint32_t op_index,
                       const struct tutti_import_ref *ref, struct tutti_import_part *part,
                       uint32_t *classes)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        const struct tutti_import_content *content =
            &emitter->places.contents[tutti_import_ref_cell(emitter->program, ref, i)];

        if (content->place.buffer == TUTTI_BUF_NONE)
            return tutti_import_refuse(emitter->program, op_index,
                                       "reads chunk %u of a buffer of gpu %u that nothing has "
                                       "written",
                                       ref->first + i, ref->rank);
        part->places[i] = content->place;
        classes[i] = content->class;
        part->lowest = content->lowest;
    }
    return TUTTI_OK;
}

/* Returns true if the data that a ref reads have not moved or changed since `event`. */
static bool is_unmoved_since(const struct tutti_import_emitter *emitter,
                             const struct tutti_import_ref *ref, uint32_t event)
{
    for (uint32_t i = 0; i < ref->count; i++)
        if (emitter->places.contents[tutti_import_ref_cell(emitter->program, ref, i)].since > event)
            return false;
    return true;
}

/* Returns true if one of the op's sources has `cell` as a chunk other than its i-th. */
static bool reads_as_other_chunk(const struct tutti_import_emitter *emitter,
                                 const struct tutti_import_op *op, uint32_t cell, uint32_t i)
{
    const struct tutti_import_ref *srcs = emitter->program->refs + op->first_ref;

    for (uint32_t s = 0; s < op->nsrcs; s++) {
        uint32_t first = tutti_import_ref_cell(emitter->program, &srcs[s], 0);

        if (cell >= first && cell - first < srcs[s].count && cell - first != i)
            return true;
    }
    return false;
}

/* Returns true if `cell` may be read after the current event has written chunk i of one of its
 * destinations. `is_first` is true for the op's first destination. */
static bool is_read_after_write(const struct tutti_import_emitter *emitter,
                                const struct tutti_import_op *op, uint32_t cell, uint32_t i,
                                bool is_first)
{
    uint32_t this_event = emitter->event + 1; /* last_read numbers the events from 1 */
    uint32_t last_read = emitter->last_read[cell];

    if (last_read != this_event)
        return last_read > this_event;
    /* The current event reads the cell last. The sum in the first destination is made chunk by
     * chunk, and tutti_import_sum reads chunk i of every source before it writes chunk i. So only
     * another chunk of a source can be read after the write. A later destination gets a copy of the
     * complete sum; true is then the safe answer, although all sources have been read. */
    return !is_first || reads_as_other_chunk(emitter, op, cell, i);
}

/* Saves a chunk of INPUT in SCRATCH if the current event would destroy it. The event writes `cell`,
 * which is chunk i of a destination, to chunk `output` of OUTPUT. In an in-place call, that chunk
 * shares its memory with a chunk of INPUT, which holds the data of another cell, the victim:
 *
 *   OUTPUT   [ chunk `output`: data of `cell`, after the write ]
 *   INPUT    [ the same memory: data of the victim, until the write ]
 *
 * If the victim is read after the write, a copy to SCRATCH is emitted, and the victim's place is
 * there from now on. A schedule serves in-place calls and others, so it always has this copy.
 * `is_first` is true for the op's first destination. */
static int save_input(struct tutti_import_emitter *emitter, const struct tutti_import_op *op,
                      uint32_t rank, uint32_t output, uint32_t cell, uint32_t i, bool is_first)
{
    const struct tutti_import_program *program = emitter->program;
    uint32_t input, victim = tutti_import_overlaid(&emitter->places, rank, output, &input);
    struct tutti_import_content *content;
    struct tutti_import_place saved;

    if (victim == NOWHERE)
        return TUTTI_OK;
    /* In a program for in-place calls, `cell` itself may be that cell of INPUT. The program then
     * means to overwrite it. */
    if (victim == cell)
        return TUTTI_OK;
    /* In an in-place call, the event copies the victim onto itself, which changes nothing. */
    if (op->kind == TUTTI_IMPORT_MOVE && op->nsrcs == 1 &&
        tutti_import_ref_cell(program, &program->refs[op->first_ref], i) == victim)
        return TUTTI_OK;
    content = &emitter->places.contents[victim];
    /* If the victim's data are elsewhere by now, nobody needs the chunk of INPUT. */
    if (content->place.buffer != TUTTI_BUF_INPUT ||
        !is_read_after_write(emitter, op, victim, i, is_first))
        return TUTTI_OK;
    TUTTI_TRY(tutti_import_scratch(&emitter->places, rank, content->class, &saved));
    TUTTI_TRY(tutti_build_copy(&emitter->builds[rank],
                               tutti_span(TUTTI_BUF_INPUT, content->place.chunk, 1),
                               tutti_import_span(saved, 1)));
    content->place = saved;
    content->since = emitter->event;
    return TUTTI_OK;
}

/* Chooses the places for the chunks that a destination of the op gets, and saves the input that a
 * write to these places would destroy. `is_first` is true for the op's first destination. */
static int choose_places(struct tutti_import_emitter *emitter, const struct tutti_import_op *op,
                         const struct tutti_import_ref *ref, struct tutti_import_part *part,
                         const uint32_t *classes, bool is_first)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        uint32_t cell = tutti_import_ref_cell(emitter->program, ref, i);

        TUTTI_TRY(
            tutti_import_home(&emitter->places, ref->rank, cell, classes[i], &part->places[i]));
        if (part->places[i].buffer == TUTTI_BUF_OUTPUT)
            TUTTI_TRY(save_input(emitter, op, ref->rank, part->places[i].chunk, cell, i, is_first));
    }
    return TUTTI_OK;
}

/* Records that the current event has put data into the cells of a ref. The data are in the places
 * of the part. `lowest` is the lowest rank whose input is in the data. */
static void record_places(struct tutti_import_emitter *emitter, const struct tutti_import_ref *ref,
                          const struct tutti_import_part *part, const uint32_t *classes,
                          uint32_t lowest)
{
    for (uint32_t i = 0; i < ref->count; i++) {
        struct tutti_import_content *content =
            &emitter->places.contents[tutti_import_ref_cell(emitter->program, ref, i)];

        content->place = part->places[i];
        content->class = classes[i];
        content->lowest = lowest;
        content->since = emitter->event;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Makes the part for the data of the message that a RECV of `rank` receives; `event` is that of the
 * RECV. The data of a direct message are in the sender's cells. Those of another message are in
 * SCRATCH of `rank`, where emit_send has put them. */
static int find_message(struct tutti_import_emitter *emitter, uint32_t op_index,
                        const struct tutti_import_event *event, uint32_t rank, uint32_t *classes)
{
    const struct tutti_import_program *program = emitter->program;
    const struct tutti_import_op *send = &program->ops[emitter->trace->events[event->mate].op];
    const struct tutti_import_ref *sent = &program->refs[send->first_ref];
    const struct tutti_import_message *message = emitter->messages[event->mate];
    struct tutti_import_part *part;

    if (event->is_direct) {
        part = tutti_import_new_part(emitter, sent->rank, sent->count);
        TUTTI_TRY(find_places(emitter, op_index, sent, part, classes));
        /* The step that sends the part may then move back to the position of the SEND (order.h). */
        if (is_unmoved_since(emitter, sent, event->mate))
            part->event = event->mate;
        return TUTTI_OK;
    }
    part = tutti_import_new_part(emitter, rank, sent->count);
    memcpy(part->places, message->places, sent->count * sizeof(*message->places));
    part->lowest = message->lowest;
    for (uint32_t i = 0; i < sent->count; i++)
        classes[i] = message->places[i].chunk % program->chunks; /* of SCRATCH: see places.h */
    return TUTTI_OK;
}

/* Emits a MOVE or a RECV. The emitter's parts are then, in this order: the op's sources, the
 * message of a RECV, and the destinations. The sources and the message are summed up in the first
 * destination, and the sum is copied to the other destinations. `classes` has room for the size
 * classes of the chunks of one part. */
static int emit_move(struct tutti_import_emitter *emitter, const struct tutti_import_op *op,
                     uint32_t op_index, const struct tutti_import_event *event, uint32_t *classes)
{
    const struct tutti_import_ref *srcs = emitter->program->refs + op->first_ref;
    const struct tutti_import_ref *dsts = srcs + op->nsrcs;
    uint32_t count = dsts[0].count, nsummands, lowest = UINT32_MAX;
    struct tutti_import_part *summands = emitter->parts, *results;

    /* The sources come first, because a destination is chosen for data of a known size class. */
    for (uint32_t s = 0; s < op->nsrcs; s++)
        TUTTI_TRY(find_places(emitter, op_index, &srcs[s],
                              tutti_import_new_part(emitter, srcs[s].rank, count), classes));
    if (op->kind == TUTTI_IMPORT_RECV)
        TUTTI_TRY(find_message(emitter, op_index, event, dsts[0].rank, classes));
    nsummands = emitter->nparts;
    results = summands + nsummands;
    for (uint32_t d = 0; d < op->ndsts; d++)
        TUTTI_TRY(choose_places(emitter, op, &dsts[d],
                                tutti_import_new_part(emitter, dsts[d].rank, count), classes,
                                d == 0));
    /* Find the places again, because choose_places may have saved sources in SCRATCH. */
    for (uint32_t s = 0; s < op->nsrcs; s++)
        TUTTI_TRY(find_places(emitter, op_index, &srcs[s], &summands[s], classes));
    for (uint32_t s = 0; s < nsummands; s++)
        lowest = summands[s].lowest < lowest ? summands[s].lowest : lowest;
    TUTTI_TRY(tutti_import_sum(emitter, count, summands, nsummands, &results[0], classes));
    record_places(emitter, &dsts[0], &results[0], classes, lowest);
    for (uint32_t d = 1; d < op->ndsts; d++) {
        TUTTI_TRY(tutti_import_add(emitter, count, &results[0], NULL, &results[d]));
        record_places(emitter, &dsts[d], &results[d], classes, lowest);
    }
    return TUTTI_OK;
}

/* Emits a SEND if its message is not direct, which means that the sent data may be overwritten
 * before the program receives the message. The message goes into SCRATCH of the receiver. Emits
 * nothing for a direct message, because emit_move does so when the message is received. */
static int emit_send(struct tutti_import_emitter *emitter, const struct tutti_import_op *op,
                     uint32_t op_index, uint32_t *classes)
{
    const struct tutti_import_ref *src = emitter->program->refs + op->first_ref;
    const struct tutti_import_event *event = &emitter->trace->events[emitter->event];
    const struct tutti_import_op *recv =
        &emitter->program->ops[emitter->trace->events[event->mate].op];
    uint32_t to = emitter->program->refs[recv->first_ref].rank, count = src->count;
    struct tutti_import_message *message;
    struct tutti_import_part *part, *dst;

    if (emitter->trace->events[event->mate].is_direct)
        return TUTTI_OK;
    part = tutti_import_new_part(emitter, src->rank, count);
    dst = tutti_import_new_part(emitter, to, count);
    TUTTI_TRY(find_places(emitter, op_index, src, part, classes));
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(tutti_import_scratch(&emitter->places, to, classes[i], &dst->places[i]));
    message = malloc(sizeof(*message) + count * sizeof(*message->places));
    if (message == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a message of %u chunks", count);
    message->lowest = part->lowest;
    memcpy(message->places, dst->places, count * sizeof(*message->places));
    emitter->messages[emitter->event] = message;
    return tutti_import_add(emitter, count, part, NULL, dst);
}

/* Records for the new steps of the op's ranks that they stay at the position of the current event.
 * The sends that may move to an earlier position (order.h) are not affected: send_run in sum.c has
 * recorded theirs already. */
static int note_steps(struct tutti_import_emitter *emitter, const struct tutti_import_op *op)
{
    for (uint32_t i = 0; i < (uint32_t)op->nsrcs + op->ndsts; i++) {
        uint32_t rank = emitter->program->refs[op->first_ref + i].rank;

        TUTTI_TRY(tutti_import_order_note(&emitter->orders[rank],
                                          emitter->builds[rank].schedule->nsteps, emitter->event,
                                          emitter->event));
    }
    return TUTTI_OK;
}

/* Emits the steps of the current event. */
static int emit_event(struct tutti_import_emitter *emitter, uint32_t *classes)
{
    const struct tutti_import_event *event = &emitter->trace->events[emitter->event];
    const struct tutti_import_op *op = &emitter->program->ops[event->op];

    emitter->nparts = 0;
    emitter->npool = 0;
    if (op->kind == TUTTI_IMPORT_SEND) {
        const struct tutti_import_op *recv =
            &emitter->program->ops[emitter->trace->events[event->mate].op];

        TUTTI_TRY(emit_send(emitter, op, event->op, classes));
        /* A SEND that is not direct also emits a step of the receiver, whose rank is in the refs of
         * the RECV. */
        TUTTI_TRY(note_steps(emitter, recv));
    } else {
        TUTTI_TRY(emit_move(emitter, op, event->op, event, classes));
    }
    return note_steps(emitter, op);
}

/* ---- preparing and finishing ----------------------------------------------------------------- */

/* Records in last_read that an event reads the cells of a ref. Events come in any order. */
static void note_read(struct tutti_import_emitter *emitter, const struct tutti_import_ref *ref,
                      uint32_t event)
{
    uint32_t number = event + 1; /* as in last_read */

    for (uint32_t i = 0; i < ref->count; i++) {
        uint32_t *last = &emitter->last_read[tutti_import_ref_cell(emitter->program, ref, i)];

        *last = *last > number ? *last : number;
    }
}

/* Fills in last_read. Sets *ret_parts and *ret_count to the largest numbers of parts, and of chunks
 * in a part, that an event needs. */
static void find_reads_and_sizes(struct tutti_import_emitter *emitter, uint32_t *ret_parts,
                                 uint32_t *ret_count)
{
    *ret_parts = *ret_count = 0;
    for (uint32_t e = 0; e < emitter->trace->nevents; e++) {
        const struct tutti_import_event *event = &emitter->trace->events[e];
        const struct tutti_import_op *op = &emitter->program->ops[event->op];
        const struct tutti_import_ref *refs = emitter->program->refs + op->first_ref;
        /* The data of a direct message are read when it is received. */
        bool is_later =
            op->kind == TUTTI_IMPORT_SEND && emitter->trace->events[event->mate].is_direct;
        uint32_t nparts;

        for (uint32_t s = 0; s < op->nsrcs; s++)
            note_read(emitter, &refs[s], is_later ? event->mate : e);
        nparts = (uint32_t)op->nsrcs + op->ndsts + MORE_PARTS;
        *ret_parts = nparts > *ret_parts ? nparts : *ret_parts;
        *ret_count = refs[0].count > *ret_count ? refs[0].count : *ret_count;
    }
}

/* Begins the schedules of all ranks. They have all the scratch memory that a schedule may have; the
 * function `finish` trims it. */
static int begin(struct tutti_import_emitter *emitter)
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

/* Returns the place of chunk `index` of a rank's OUTPUT. */
static struct tutti_import_place place_of_output(const struct tutti_import_emitter *emitter,
                                                 uint32_t rank, uint32_t index)
{
    uint32_t cell = tutti_import_cell(emitter->program, rank, TUTTI_IMPORT_OUTPUT, index);

    return emitter->places.contents[cell].place;
}

/* Copies to OUTPUT the chunks that no op has written. Such a chunk is part of the input of a
 * program for in-place calls. In a call with separate buffers it still has to get to OUTPUT.
 * Contiguous chunks are copied by one step. */
static int fill_outputs(struct tutti_import_emitter *emitter, uint32_t rank)
{
    const struct tutti_import_program *program = emitter->program;
    uint32_t nchunks = tutti_import_outputs(program);

    if (!tutti_collective_has_output(program->collective, rank, program->root))
        return TUTTI_OK;
    for (uint32_t i = 0, count; i < nchunks; i += count) {
        struct tutti_import_place from = place_of_output(emitter, rank, i);

        for (count = 1; i + count < nchunks; count++) {
            struct tutti_import_place next = place_of_output(emitter, rank, i + count);

            if (next.buffer != from.buffer || next.chunk != from.chunk + count)
                break;
        }
        if (from.buffer == TUTTI_BUF_INPUT)
            TUTTI_TRY(tutti_build_copy(&emitter->builds[rank], tutti_import_span(from, count),
                                       tutti_span(TUTTI_BUF_OUTPUT, i, count)));
    }
    return TUTTI_OK;
}

/* Ends the schedules of all ranks and passes them to the ensemble. */
static int finish(struct tutti_import_emitter *emitter, struct tutti_ensemble *ensemble)
{
    for (uint32_t rank = 0; rank < ensemble->nranks; rank++) {
        struct tutti_build *build = &emitter->builds[rank];

        TUTTI_TRY(fill_outputs(emitter, rank));
        TUTTI_TRY(tutti_import_order_note(&emitter->orders[rank], build->schedule->nsteps,
                                          emitter->event, emitter->event));
        TUTTI_TRY(tutti_import_order_apply(&emitter->orders[rank], build->schedule));
        tutti_build_trim_scratch(build, tutti_import_scratch_count(&emitter->places, rank));
        TUTTI_TRY(tutti_build_finish(build, &ensemble->schedules[rank]));
    }
    memcpy(ensemble->name, emitter->program->name, sizeof(ensemble->name));
    return TUTTI_OK;
}

/* Allocates the lists per rank, per cell and per event. The caller calls `release`, on errors
 * too. Here and below, an item more than needed is allocated, because calloc may return NULL for 0
 * items. */
static int allocate_lists(struct tutti_import_emitter *emitter)
{
    const struct tutti_import_program *program = emitter->program;
    size_t ncells = program->first_cell[program->nranks];

    emitter->builds = calloc(program->nranks, sizeof(*emitter->builds));
    emitter->orders = calloc(program->nranks, sizeof(*emitter->orders));
    emitter->last_read = calloc(ncells + 1, sizeof(uint32_t));
    emitter->messages = calloc((size_t)emitter->trace->nevents + 1, sizeof(*emitter->messages));
    if (emitter->builds == NULL || emitter->orders == NULL || emitter->last_read == NULL ||
        emitter->messages == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the steps of %u ranks", program->nranks);
    return TUTTI_OK;
}

static int emit_all(struct tutti_import_emitter *emitter, struct tutti_ensemble *ensemble)
{
    uint32_t max_parts, max_count, *classes;
    int rc = TUTTI_OK;

    TUTTI_TRY(allocate_lists(emitter));
    find_reads_and_sizes(emitter, &max_parts, &max_count);
    emitter->parts = calloc((size_t)max_parts + 1, sizeof(*emitter->parts));
    emitter->pool = calloc((size_t)max_parts * max_count + 1, sizeof(*emitter->pool));
    classes = calloc((size_t)max_count + 1, sizeof(*classes));
    if (emitter->parts == NULL || emitter->pool == NULL || classes == NULL)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for steps of %u chunks", max_count);
    rc = rc != TUTTI_OK ? rc : begin(emitter);
    for (uint32_t e = 0; rc == TUTTI_OK && e < emitter->trace->nevents; e++) {
        emitter->event = e;
        rc = emit_event(emitter, classes);
    }
    free(classes);
    return rc != TUTTI_OK ? rc : finish(emitter, ensemble);
}

static void release(struct tutti_import_emitter *emitter)
{
    for (uint32_t rank = 0; rank < emitter->program->nranks && emitter->builds != NULL; rank++)
        tutti_build_fini(&emitter->builds[rank]);
    for (uint32_t e = 0; e < emitter->trace->nevents && emitter->messages != NULL; e++)
        free(emitter->messages[e]);
    tutti_import_places_fini(&emitter->places);
    for (uint32_t rank = 0; rank < emitter->program->nranks && emitter->orders != NULL; rank++)
        tutti_import_order_fini(&emitter->orders[rank]);
    free(emitter->builds);
    free(emitter->orders);
    free(emitter->last_read);
    free(emitter->messages);
    free(emitter->parts);
    free(emitter->pool);
}

int tutti_import_emit(const struct tutti_import_program *program,
                      const struct tutti_import_trace *trace, bool is_bold,
                      struct tutti_ensemble *ret_ensemble)
{
    struct tutti_import_emitter emitter = {.program = program, .trace = trace};
    struct tutti_ensemble ensemble;
    int rc;

    TUTTI_TRY(tutti_ensemble_init(&ensemble, program->nranks));
    rc = tutti_import_places_init(&emitter.places, program);
    rc = rc != TUTTI_OK ? rc : emit_all(&emitter, &ensemble);
    for (uint32_t rank = 0; rc == TUTTI_OK && rank < program->nranks; rank++)
        rc = tutti_schedule_fuse(ensemble.schedules[rank], is_bold);
    release(&emitter);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
