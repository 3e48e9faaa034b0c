/* SPDX-License-Identifier: Apache-2.0
 * Rewrites a program so that its ranks add parts in one order (regroup.h). It follows the trace
 * and keeps, for each cell of the old program, the parts whose sum the cell holds. A sum is only
 * made when it is sent, copied, or written to OUTPUT for the last time. */
#include "import/regroup.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* A chunk of the new program. It is written before it is used, and never written again. */
struct atom {
    uint32_t rank, index;
    uint8_t buffer; /* enum tutti_import_buffer */
};

/* The content of a cell of the old program: the sum of these chunks. A cell that holds one chunk
 * holds one of its own rank. A cell that nothing has written has none. */
struct value {
    struct atom *atoms;
    uint32_t count, capacity;
};

struct regroup {
    const struct tutti_import_program *program; /* the old one */
    const struct tutti_import_trace *trace;
    struct tutti_import_program out; /* the new one; all its ops are MOVEs */
    struct value *values;            /* per cell of the old program */
    uint32_t *last_writes;           /* per cell: 1 + the event that writes it last, or 0 */
    struct atom **messages;          /* per event: of a SEND, the chunks that it sends; else NULL */
    struct value *sums;              /* per chunk of the current op: what it writes */
    uint32_t max_count;              /* the most chunks of an op */
    uint32_t event;                  /* the current one */
};

/* ---- chains ---------------------------------------------------------------------------------- */

static uint32_t first_cell(const struct tutti_import_program *program,
                           const struct tutti_import_ref *ref)
{
    return tutti_import_ref_cell(program, ref, 0);
}

/* Returns true if the ref reads a cell that holds a sum. */
static bool reads_sum(const struct tutti_import_program *program, const bool *is_sum,
                      const struct tutti_import_ref *ref)
{
    for (uint32_t i = 0; i < ref->count; i++)
        if (is_sum[first_cell(program, ref) + i])
            return true;
    return false;
}

/* Follows an op. Returns true if it adds to a sum of its own rank. A sum that is sent, copied or
 * read by another rank counts as one part from then on. */
static bool follow_chain(const struct tutti_import_program *program,
                         const struct tutti_import_op *op, bool *is_sum)
{
    const struct tutti_import_ref *srcs = program->refs + op->first_ref, *dsts = srcs + op->nsrcs;
    uint32_t nparts = op->nsrcs + (op->kind == TUTTI_IMPORT_RECV ? 1 : 0);

    for (uint32_t s = 0; s < op->nsrcs; s++) {
        if (nparts > 1 && srcs[s].rank == dsts[0].rank) {
            if (reads_sum(program, is_sum, &srcs[s]))
                return true;
        } else {
            memset(is_sum + first_cell(program, &srcs[s]), 0, srcs[s].count);
        }
    }
    for (uint32_t d = 0; d < op->ndsts; d++)
        memset(is_sum + first_cell(program, &dsts[d]), nparts > 1 && d == 0, dsts[d].count);
    return false;
}

int tutti_import_has_chains(const struct tutti_import_program *program,
                            const struct tutti_import_trace *trace, bool *ret_has_chains)
{
    bool *is_sum = calloc((size_t)program->first_cell[program->nranks] + 1, sizeof(*is_sum));
    bool found = false;

    if (is_sum == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to find the order of sums");
    for (uint32_t e = 0; e < trace->nevents && !found; e++)
        found = follow_chain(program, &program->ops[trace->events[e].op], is_sum);
    free(is_sum);
    *ret_has_chains = found;
    return TUTTI_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int add_atom(struct value *value, struct atom atom)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(value->atoms, value->count, value->capacity, "parts of a sum"));
    value->atoms[value->count++] = atom;
    return TUTTI_OK;
}

/* Adds the parts of `from` to a sum. A right sum has a part for each rank at most, so the limit
 * refuses no right program. */
static int add_atoms(const struct regroup *regroup, struct value *sum, const struct value *from)
{
    if (from->count == 0 || from->count > regroup->program->nranks - sum->count)
        return tutti_note(TUTTI_ERR_ARGUMENT, "a sum has no parts, or more parts than ranks");
    for (uint32_t i = 0; i < from->count; i++)
        TUTTI_TRY(add_atom(sum, from->atoms[i]));
    return TUTTI_OK;
}

static int set_atom(struct value *value, struct atom atom)
{
    value->count = 0;
    return add_atom(value, atom);
}

/* Returns the number of leading values, `count` at most, whose chunks follow each other in all
 * parts. */
static uint32_t run_length(const struct value *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct value *before = &values[i - 1], *own = &values[i];

        if (own->count != before->count)
            return i;
        for (uint32_t a = 0; a < own->count; a++)
            if (own->atoms[a].rank != before->atoms[a].rank ||
                own->atoms[a].buffer != before->atoms[a].buffer ||
                own->atoms[a].index != before->atoms[a].index + 1)
                return i;
    }
    return count;
}

static struct tutti_import_ref ref_of(struct atom atom, uint32_t count)
{
    return (struct tutti_import_ref){
        .rank = atom.rank, .buffer = atom.buffer, .first = atom.index, .count = count};
}

/* Adds a MOVE to the new program: `to`, and the chunks behind it, get the sums of `count` values,
 * which are a run. */
static int add_move(struct regroup *regroup, const struct value *values, uint32_t count,
                    struct atom to)
{
    const struct tutti_import_op *op =
        &regroup->program->ops[regroup->trace->events[regroup->event].op];

    TUTTI_TRY(tutti_import_add_op(&regroup->out, TUTTI_IMPORT_MOVE, op->word, op->step, 0, 0));
    for (uint32_t a = 0; a < values->count; a++)
        TUTTI_TRY(tutti_import_add_src(&regroup->out, ref_of(values->atoms[a], count)));
    return tutti_import_add_dst(&regroup->out, ref_of(to, count));
}

/* Adds a MOVE of a run to new temporary chunks of `rank`. Then each value is its chunk. */
static int make_temps(struct regroup *regroup, struct value *values, uint32_t count, uint32_t rank)
{
    struct atom to = {.rank = rank, .buffer = TUTTI_IMPORT_TEMP, .index = regroup->out.temps[rank]};

    if (count > TUTTI_IMPORT_CELLS_MAX - to.index)
        return tutti_note(TUTTI_ERR_ARGUMENT, "the parts of sums take too many chunks");
    regroup->out.temps[rank] += count;
    TUTTI_TRY(add_move(regroup, values, count, to));
    for (uint32_t i = 0; i < count; i++, to.index++)
        TUTTI_TRY(set_atom(&values[i], to));
    return TUTTI_OK;
}

/* Makes the sums of `count` cells of `rank` that still stand for several parts. */
static int make_sums(struct regroup *regroup, struct value *values, uint32_t count, uint32_t rank)
{
    for (uint32_t at = 0, run; at < count; at += run) {
        run = run_length(values + at, count - at);
        if (values[at].count == 0)
            return tutti_note(TUTTI_ERR_ARGUMENT, "a chunk is read that nothing has written");
        if (values[at].count > 1)
            TUTTI_TRY(make_temps(regroup, values + at, run, rank));
    }
    return TUTTI_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Returns true if the current event writes chunk i of a destination for the last time, and the
 * chunk is one of OUTPUT. Such a chunk is written in the new program, too. In a program for
 * in-place calls, INPUT is OUTPUT. */
static bool is_final(const struct regroup *regroup, const struct tutti_import_ref *dst, uint32_t i)
{
    const struct tutti_import_program *program = regroup->program;

    return (dst->buffer == TUTTI_IMPORT_OUTPUT ||
            (dst->buffer == TUTTI_IMPORT_INPUT && program->is_in_place)) &&
           regroup->last_writes[first_cell(program, dst) + i] == regroup->event + 1;
}

/* Puts the first values of regroup->sums into the cells of a destination. */
static int store(struct regroup *regroup, const struct tutti_import_ref *dst)
{
    struct value *sums = regroup->sums;
    struct value *cells = regroup->values + first_cell(regroup->program, dst);

    for (uint32_t at = 0, run; at < dst->count; at += run) {
        struct atom to = {
            .rank = dst->rank, .buffer = TUTTI_IMPORT_OUTPUT, .index = dst->first + at};
        bool is_run_final = is_final(regroup, dst, at);
        uint32_t most = run_length(sums + at, dst->count - at);

        for (run = 1; run < most && is_final(regroup, dst, at + run) == is_run_final; run++)
            continue;
        if (is_run_final) {
            TUTTI_TRY(add_move(regroup, sums + at, run, to));
            for (uint32_t i = 0; i < run; i++, to.index++)
                TUTTI_TRY(set_atom(&sums[at + i], to));
        } else if (sums[at].count == 1 && sums[at].atoms[0].rank != dst->rank) {
            TUTTI_TRY(make_temps(regroup, sums + at, run, dst->rank));
        }
    }
    for (uint32_t i = 0; i < dst->count; i++) {
        struct value old = cells[i];

        cells[i] = sums[i];
        sums[i] = old;
    }
    return TUTTI_OK;
}

/* Follows a SEND. The data that it sends is no longer regrouped. */
static int follow_send(struct regroup *regroup, const struct tutti_import_ref *src)
{
    struct value *values = regroup->values + first_cell(regroup->program, src);
    struct atom *message = malloc(src->count * sizeof(*message));

    regroup->messages[regroup->event] = message;
    if (message == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a message of %u chunks", src->count);
    TUTTI_TRY(make_sums(regroup, values, src->count, src->rank));
    for (uint32_t i = 0; i < src->count; i++)
        message[i] = values[i].atoms[0];
    return TUTTI_OK;
}

/* Adds the cells of a source to the sums. Parts of a sum that is read by another rank, or only
 * copied, are not regrouped. */
static int add_source(struct regroup *regroup, const struct tutti_import_ref *src, bool is_kept)
{
    struct value *values = regroup->values + first_cell(regroup->program, src);

    if (!is_kept)
        TUTTI_TRY(make_sums(regroup, values, src->count, src->rank));
    for (uint32_t i = 0; i < src->count; i++)
        TUTTI_TRY(add_atoms(regroup, &regroup->sums[i], &values[i]));
    return TUTTI_OK;
}

/* Follows a MOVE or a RECV. */
static int follow_move(struct regroup *regroup, const struct tutti_import_op *op)
{
    const struct tutti_import_ref *srcs = regroup->program->refs + op->first_ref;
    const struct tutti_import_ref *dsts = srcs + op->nsrcs;
    const struct tutti_import_event *event = &regroup->trace->events[regroup->event];
    struct value *cells = regroup->values + first_cell(regroup->program, dsts);
    uint32_t nparts = op->nsrcs + (op->kind == TUTTI_IMPORT_RECV ? 1 : 0);

    for (uint32_t i = 0; i < dsts->count; i++)
        regroup->sums[i].count = 0;
    for (uint32_t s = 0; s < op->nsrcs; s++)
        TUTTI_TRY(add_source(regroup, &srcs[s], nparts > 1 && srcs[s].rank == dsts[0].rank));
    for (uint32_t i = 0; op->kind == TUTTI_IMPORT_RECV && i < dsts->count; i++) {
        struct value message = {.atoms = regroup->messages[event->mate] + i, .count = 1};

        TUTTI_TRY(add_atoms(regroup, &regroup->sums[i], &message));
    }
    TUTTI_TRY(store(regroup, &dsts[0]));
    if (op->ndsts == 1)
        return TUTTI_OK;
    TUTTI_TRY(make_sums(regroup, cells, dsts->count, dsts->rank));
    for (uint32_t d = 1; d < op->ndsts; d++) {
        for (uint32_t i = 0; i < dsts->count; i++)
            TUTTI_TRY(set_atom(&regroup->sums[i], cells[i].atoms[0]));
        TUTTI_TRY(store(regroup, &dsts[d]));
    }
    return TUTTI_OK;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Fills in last_writes and max_count. */
static void survey(struct regroup *regroup)
{
    const struct tutti_import_program *program = regroup->program;

    for (uint32_t e = 0; e < regroup->trace->nevents; e++) {
        const struct tutti_import_op *op = &program->ops[regroup->trace->events[e].op];
        const struct tutti_import_ref *refs = program->refs + op->first_ref;

        if (refs->count > regroup->max_count)
            regroup->max_count = refs->count;
        for (uint32_t d = op->nsrcs; d < (uint32_t)op->nsrcs + op->ndsts; d++)
            for (uint32_t i = 0; i < refs[d].count; i++)
                regroup->last_writes[first_cell(program, &refs[d]) + i] = e + 1;
    }
}

/* Begins the new program, and gives each rank its input. */
static int begin(struct regroup *regroup)
{
    const struct tutti_import_program *program = regroup->program;
    size_t ncells = program->first_cell[program->nranks];

    regroup->out = (struct tutti_import_program){.file = program->file,
                                                 .collective = program->collective,
                                                 .nranks = program->nranks,
                                                 .root = program->root,
                                                 .is_trial = true,
                                                 .chunks = program->chunks};
    memcpy(regroup->out.name, program->name, sizeof(program->name));
    TUTTI_TRY(tutti_import_init(&regroup->out));
    TUTTI_TRY(tutti_import_add_block(&regroup->out, 0, 0));
    regroup->values = calloc(ncells + 1, sizeof(*regroup->values));
    regroup->last_writes = calloc(ncells + 1, sizeof(*regroup->last_writes));
    regroup->messages = calloc((size_t)regroup->trace->nevents + 1, sizeof(*regroup->messages));
    if (regroup->values == NULL || regroup->last_writes == NULL || regroup->messages == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to order the sums of %zu chunks", ncells);
    survey(regroup);
    regroup->sums = calloc((size_t)regroup->max_count + 1, sizeof(*regroup->sums));
    if (regroup->sums == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for sums of %u chunks", regroup->max_count);
    for (uint32_t rank = 0; rank < program->nranks; rank++)
        for (uint32_t i = 0; i < tutti_import_inputs(program); i++)
            TUTTI_TRY(
                set_atom(&regroup->values[tutti_import_cell(program, rank, TUTTI_IMPORT_INPUT, i)],
                         (struct atom){.rank = rank, .buffer = TUTTI_IMPORT_INPUT, .index = i}));
    return TUTTI_OK;
}

/* Finishes the new program and makes its trace, in which its ops run one after the other. */
static int finish(struct regroup *regroup, struct tutti_import_trace *ret_trace)
{
    struct tutti_import_trace trace = {.nevents = regroup->out.nops};

    TUTTI_TRY(tutti_import_finish(&regroup->out));
    trace.events = calloc((size_t)trace.nevents + 1, sizeof(*trace.events));
    if (trace.events == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u sums", trace.nevents);
    for (uint32_t e = 0; e < trace.nevents; e++)
        trace.events[e] = (struct tutti_import_event){.op = e, .mate = UINT32_MAX};
    *ret_trace = trace;
    return TUTTI_OK;
}

static int rewrite(struct regroup *regroup, struct tutti_import_trace *ret_trace)
{
    const struct tutti_import_program *program = regroup->program;

    TUTTI_TRY(begin(regroup));
    for (uint32_t e = 0; e < regroup->trace->nevents; e++) {
        const struct tutti_import_op *op = &program->ops[regroup->trace->events[e].op];

        regroup->event = e;
        if (op->kind == TUTTI_IMPORT_SEND)
            TUTTI_TRY(follow_send(regroup, &program->refs[op->first_ref]));
        else
            TUTTI_TRY(follow_move(regroup, op));
    }
    return finish(regroup, ret_trace);
}

static void release(struct regroup *regroup)
{
    size_t ncells = regroup->program->first_cell[regroup->program->nranks];

    for (size_t i = 0; i < ncells && regroup->values != NULL; i++)
        free(regroup->values[i].atoms);
    for (uint32_t i = 0; i < regroup->max_count && regroup->sums != NULL; i++)
        free(regroup->sums[i].atoms);
    for (uint32_t e = 0; e < regroup->trace->nevents && regroup->messages != NULL; e++)
        free(regroup->messages[e]);
    free(regroup->values);
    free(regroup->last_writes);
    free(regroup->messages);
    free(regroup->sums);
}

int tutti_import_regroup(const struct tutti_import_program *program,
                         const struct tutti_import_trace *trace,
                         struct tutti_import_program *ret_program,
                         struct tutti_import_trace *ret_trace)
{
    struct regroup regroup = {.program = program, .trace = trace};
    int rc = rewrite(&regroup, ret_trace);

    release(&regroup);
    if (rc != TUTTI_OK) {
        tutti_import_fini(&regroup.out);
        return rc;
    }
    *ret_program = regroup.out;
    return TUTTI_OK;
}
