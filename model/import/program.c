/* SPDX-License-Identifier: Apache-2.0
 * Builds programs of thread blocks, numbers their cells, and turns them into schedules. */
#include "import/program.h"

#include "base/array.h"
#include "base/log.h"
#include "base/result.h"
#include "import/regroup.h"
#include "schedule/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tutti_import_init(struct tutti_import_program *program)
{
    size_t nranks = program->nranks;

    program->scratch = calloc(nranks + 1, sizeof(uint32_t));
    program->temps = calloc(nranks + 1, sizeof(uint32_t));
    program->first_cell = calloc(nranks + 2, sizeof(uint32_t));
    if (program->scratch == NULL || program->temps == NULL || program->first_cell == NULL) {
        tutti_import_fini(program);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read a schedule of %zu ranks", nranks);
    }
    return TUTTI_OK;
}

void tutti_import_fini(struct tutti_import_program *program)
{
    free(program->scratch);
    free(program->temps);
    free(program->first_cell);
    free(program->blocks);
    free(program->ops);
    free(program->refs);
    free(program->objects);
    program->scratch = program->temps = program->first_cell = NULL;
    program->blocks = NULL;
    program->ops = NULL;
    program->refs = NULL;
    program->objects = NULL;
}

void tutti_import_record(const struct tutti_import_program *program, uint32_t op,
                         const char *format, ...)
{
    char what[TUTTI_MESSAGE_BYTES];
    uint32_t low = 0, high = program->nblocks;
    const struct tutti_import_block *block;
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    /* Find the last block that begins at or before the op. */
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;

        if (program->blocks[middle].first_op <= op)
            low = middle;
        else
            high = middle;
    }
    block = &program->blocks[low];
    (program->is_trial ? tutti_message_record : tutti_message_record_failure)(
        "%s: gpu %u, threadblock %u, step %u (%s): %s", program->file, block->rank, block->id,
        program->ops[op].step, program->ops[op].word, what);
}

void tutti_import_set_name(struct tutti_import_program *program, const char *name,
                           const char *fallback)
{
    snprintf(program->name, sizeof(program->name), "%s", name != NULL ? name : fallback);
    for (char *at = program->name; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '#')
            *at = '_';
}

enum tutti_collective tutti_import_collective(const char *name)
{
    enum tutti_collective collective;

    if (strcmp(name, "reducescatter") == 0)
        name = "reduce_scatter";
    collective = tutti_collective_find(name, strlen(name));
    if (collective == TUTTI_COLLECTIVE_COUNT || tutti_collective_has_data(collective))
        return collective;
    return TUTTI_COLLECTIVE_COUNT;
}

int tutti_import_add_block(struct tutti_import_program *program, uint32_t rank, uint32_t id)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(program->blocks, program->nblocks, program->block_capacity,
                               "blocks of a schedule"));
    program->blocks[program->nblocks++] =
        (struct tutti_import_block){.rank = rank, .id = id, .first_op = program->nops};
    return TUTTI_OK;
}

int tutti_import_add_op(struct tutti_import_program *program, enum tutti_import_kind kind,
                        const char *word, uint32_t step, uint32_t object, uint32_t count)
{
    if (program->nops == TUTTI_IMPORT_OPS_MAX)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: more than %u operations; split the schedule",
                          program->file, TUTTI_IMPORT_OPS_MAX);
    TUTTI_TRY(TUTTI_ARRAY_ROOM(program->ops, program->nops, program->op_capacity,
                               "operations of a schedule"));
    program->ops[program->nops++] = (struct tutti_import_op){.kind = (uint8_t)kind,
                                                             .first_ref = program->nrefs,
                                                             .object = object,
                                                             .count = count,
                                                             .step = step,
                                                             .word = word};
    program->blocks[program->nblocks - 1].nops++;
    return TUTTI_OK;
}

static int add_ref(struct tutti_import_program *program, const struct tutti_import_ref *ref)
{
    uint32_t op = program->nops - 1, chunks;

    if (ref->rank >= program->nranks)
        return tutti_import_refuse(program, op, "names rank %u, but there are only %u ranks",
                                   ref->rank, program->nranks);
    chunks = tutti_import_chunks(program, ref->rank, (enum tutti_import_buffer)ref->buffer);
    if (ref->first > chunks || ref->count > chunks - ref->first || ref->count == 0)
        return tutti_import_refuse(program, op, "chunks %u + %u of the %s of gpu %u, which has %u",
                                   ref->first, ref->count, tutti_import_buffer_name(ref->buffer),
                                   ref->rank, chunks);
    program->touches += ref->count;
    if (program->touches > TUTTI_IMPORT_TOUCHES_MAX)
        return tutti_import_refuse(
            program, op, "the steps so far touch more than %llu chunks; split the schedule",
            (unsigned long long)TUTTI_IMPORT_TOUCHES_MAX);
    TUTTI_TRY(TUTTI_ARRAY_ROOM(program->refs, program->nrefs, program->ref_capacity,
                               "operands of a schedule"));
    program->refs[program->nrefs++] = *ref;
    if (program->refs[program->ops[op].first_ref].count != ref->count)
        return tutti_import_refuse(program, op,
                                   "combines %u chunks with %u; give all its buffers one size",
                                   program->refs[program->ops[op].first_ref].count, ref->count);
    return TUTTI_OK;
}

int tutti_import_add_src(struct tutti_import_program *program, struct tutti_import_ref ref)
{
    TUTTI_TRY(add_ref(program, &ref));
    program->ops[program->nops - 1].nsrcs++;
    return TUTTI_OK;
}

int tutti_import_add_dst(struct tutti_import_program *program, struct tutti_import_ref ref)
{
    TUTTI_TRY(add_ref(program, &ref));
    program->ops[program->nops - 1].ndsts++;
    return TUTTI_OK;
}

int tutti_import_object(struct tutti_import_program *program, enum tutti_import_object_kind kind,
                        const uint32_t key[4], uint32_t *ret_object)
{
    struct tutti_import_object object = {.kind = (uint8_t)kind};

    memcpy(object.key, key, sizeof(object.key));
    /* Search backwards, because the latest objects are looked up most often. */
    for (uint32_t i = program->nobjects; i-- > 0;)
        if (program->objects[i].kind == kind &&
            memcmp(program->objects[i].key, key, sizeof(object.key)) == 0) {
            *ret_object = i;
            return TUTTI_OK;
        }
    TUTTI_TRY(TUTTI_ARRAY_ROOM(program->objects, program->nobjects, program->object_capacity,
                               "objects of a schedule"));
    *ret_object = program->nobjects;
    program->objects[program->nobjects++] = object;
    return TUTTI_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

const char *tutti_import_buffer_name(uint8_t buffer)
{
    static const char *const names[TUTTI_IMPORT_BUFFER_COUNT] = {"input", "output", "scratch",
                                                                 "temporary"};

    return names[buffer];
}

uint32_t tutti_import_chunks(const struct tutti_import_program *program, uint32_t rank,
                             enum tutti_import_buffer buffer)
{
    switch (buffer) {
    case TUTTI_IMPORT_INPUT: return tutti_import_inputs(program);
    case TUTTI_IMPORT_OUTPUT: return tutti_import_outputs(program);
    case TUTTI_IMPORT_SCRATCH: return program->scratch[rank];
    default: return program->temps[rank];
    }
}

uint32_t tutti_import_cell(const struct tutti_import_program *program, uint32_t rank,
                           enum tutti_import_buffer buffer, uint32_t index)
{
    uint32_t inputs = tutti_import_inputs(program), outputs = tutti_import_outputs(program);
    uint32_t block = rank * program->chunks; /* the first chunk of this rank's own block */

    /* The smaller of the two buffers has no cells of its own. It is this rank's block of the larger
     * one. */
    if (program->is_in_place && inputs < outputs && buffer == TUTTI_IMPORT_INPUT)
        return tutti_import_cell(program, rank, TUTTI_IMPORT_OUTPUT, block + index);
    if (program->is_in_place && inputs >= outputs && buffer == TUTTI_IMPORT_OUTPUT)
        return tutti_import_cell(program, rank, TUTTI_IMPORT_INPUT,
                                 index + (inputs > outputs ? block : 0));
    switch (buffer) {
    case TUTTI_IMPORT_INPUT: break;
    case TUTTI_IMPORT_OUTPUT: index += inputs; break;
    case TUTTI_IMPORT_SCRATCH: index += inputs + outputs; break;
    default: index += inputs + outputs + program->scratch[rank]; break;
    }
    return program->first_cell[rank] + index;
}

int tutti_import_finish(struct tutti_import_program *program)
{
    uint64_t cells = 0;

    for (uint32_t rank = 0; rank <= program->nranks; rank++) {
        program->first_cell[rank] = (uint32_t)cells;
        if (rank == program->nranks)
            break;
        cells += (uint64_t)tutti_import_inputs(program) + tutti_import_outputs(program) +
                 program->scratch[rank] + program->temps[rank];
        if (cells > TUTTI_IMPORT_CELLS_MAX)
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "%s: the ranks have more than %u chunks of memory; use fewer chunks",
                              program->file, TUTTI_IMPORT_CELLS_MAX);
    }
    return TUTTI_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Emits boldly fused schedules. If they could deadlock without buffered messages, emits safely
 * fused schedules instead. */
static int emit(const struct tutti_import_program *program, const struct tutti_import_trace *trace,
                struct tutti_ensemble *ret_ensemble)
{
    struct tutti_check_report report;
    uint32_t credits = 0;
    int rc;

    TUTTI_TRY(tutti_import_emit(program, trace, true, ret_ensemble));
    rc = tutti_check_credits_needed((const struct tutti_schedule *const *)ret_ensemble->schedules,
                                    program->nranks, &credits, &report);
    if (rc == TUTTI_OK && credits == 0)
        return TUTTI_OK;
    tutti_ensemble_fini(ret_ensemble);
    if (rc != TUTTI_OK && rc != TUTTI_ERR_ARGUMENT)
        return rc;
    return tutti_import_emit(program, trace, false, ret_ensemble);
}

/* Emits schedules with `root` as the root, and finds out whether they are correct. On success the
 * caller releases *ret_ensemble, even if they are not. */
static int try_root(struct tutti_import_program *program, const struct tutti_import_trace *trace,
                    uint32_t root, struct tutti_ensemble *ret_ensemble, bool *ret_is_right)
{
    struct tutti_check_report report;
    int rc;

    program->root = root;
    TUTTI_TRY(emit(program, trace, ret_ensemble));
    rc = tutti_check_schedule((const struct tutti_schedule *const *)ret_ensemble->schedules,
                              program->nranks, &report);
    *ret_is_right = rc == TUTTI_OK;
    if (rc == TUTTI_OK || rc == TUTTI_ERR_ARGUMENT)
        return TUTTI_OK;
    tutti_ensemble_fini(ret_ensemble);
    return rc;
}

/* Emits schedules with the first rank as the root with which they are correct. */
static int find_root(struct tutti_import_program *program, const struct tutti_import_trace *trace,
                     struct tutti_ensemble *ret_ensemble)
{
    bool is_right = false;

    program->is_trial = true;
    for (uint32_t root = 0; root < program->nranks; root++) {
        int rc = try_root(program, trace, root, ret_ensemble, &is_right);

        if (rc == TUTTI_OK && is_right)
            return TUTTI_OK;
        if (rc == TUTTI_OK)
            tutti_ensemble_fini(ret_ensemble);
        else if (rc != TUTTI_ERR_ARGUMENT)
            return rc;
    }
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: this is not a right %s with any rank as its root",
                      program->file, tutti_collective_name(program->collective));
}

/* Emits the schedules of a program after its sums have been regrouped (regroup.h). If they are not
 * correct, or cannot be made, *ret_is_right is false and nothing is to be released. */
static int emit_regrouped(const struct tutti_import_program *program,
                          const struct tutti_import_trace *trace,
                          struct tutti_ensemble *ret_ensemble, bool *ret_is_right)
{
    struct tutti_import_program regrouped;
    struct tutti_import_trace order;
    int rc;

    *ret_is_right = false;
    rc = tutti_import_regroup(program, trace, &regrouped, &order);
    if (rc != TUTTI_OK)
        return rc == TUTTI_ERR_ARGUMENT ? TUTTI_OK : rc;
    rc = try_root(&regrouped, &order, program->root, ret_ensemble, ret_is_right);
    if (rc == TUTTI_OK && !*ret_is_right)
        tutti_ensemble_fini(ret_ensemble);
    tutti_import_trace_fini(&order);
    tutti_import_fini(&regrouped);
    return rc == TUTTI_ERR_ARGUMENT ? TUTTI_OK : rc;
}

/* Emits the schedules of a collective that gives all ranks one result. If they are wrong, the
 * reason may be that the ranks add in different orders. Then the sums are regrouped. If that does
 * not help, the schedules stay as they are, for a message about the file's own steps. */
static int emit_agreeing(struct tutti_import_program *program,
                         const struct tutti_import_trace *trace,
                         struct tutti_ensemble *ret_ensemble)
{
    struct tutti_ensemble regrouped;
    bool has_chains = false, is_right = false;
    int rc;

    TUTTI_TRY(tutti_import_has_chains(program, trace, &has_chains));
    if (!has_chains)
        return emit(program, trace, ret_ensemble);
    TUTTI_TRY(try_root(program, trace, program->root, ret_ensemble, &is_right));
    if (is_right)
        return TUTTI_OK;
    rc = emit_regrouped(program, trace, &regrouped, &is_right);
    if (rc != TUTTI_OK || is_right)
        tutti_ensemble_fini(ret_ensemble);
    if (rc == TUTTI_OK && is_right) {
        *ret_ensemble = regrouped;
        tutti_log(TUTTI_LOG_WARN,
                  "%s: its ranks add in different orders; here all of them add in "
                  "the order of ranks",
                  program->file);
    }
    return rc;
}

int tutti_import_run(struct tutti_import_program *program, struct tutti_ensemble *ret_ensemble)
{
    struct tutti_import_trace trace;
    int rc;

    TUTTI_TRY(tutti_import_finish(program));
    TUTTI_TRY(tutti_import_play(program, &trace));
    if (program->root == UINT32_MAX && tutti_collective_has_root(program->collective)) {
        rc = find_root(program, &trace, ret_ensemble);
    } else {
        program->root = program->root == UINT32_MAX ? 0 : program->root;
        rc = tutti_collective_gives_one_result(program->collective)
                 ? emit_agreeing(program, &trace, ret_ensemble)
                 : emit(program, &trace, ret_ensemble);
    }
    tutti_import_trace_fini(&trace);
    return rc;
}
