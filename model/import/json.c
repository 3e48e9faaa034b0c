/* SPDX-License-Identifier: Apache-2.0
 * Reads execution plans of MSCCL++, which are JSON files, into programs to import. This file reads
 * the gpus of a plan, their channels and their threadblocks. json_ops.c reads the ops.
 *
 * In a plan, gpus put data into the memory of other gpus and then send signals. Here each put
 * becomes a message to its destination, so that the steps run over any transport. If the plan has
 * no races (play.c), its signals, barriers and threadblocks order every access to a chunk before or
 * after the put. The receive takes the put's place in this order, so the message has the same
 * effect as the put.
 *
 * A plan may contain pipelines, which cut messages into slices. The slice size only affects speed.
 * So a plan is read as if each message were at most one slice, and the executor chooses its own
 * slices.
 */
#include "import/json.h"

#include "base/array.h"
#include "base/result.h"
#include "import/import.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upper bounds for numbers in a plan. A rank's buffer has at most CHUNKS_MAX chunks after they have
 * been cut. */
enum { CHUNKS_MAX = 1 << 20, BLOCK_ID_MAX = 1 << 16, SEMAPHORE_MAX = 1 << 20 };

void tutti_json_record(const struct tutti_json_plan *plan, const char *format, ...)
{
    char what[TUTTI_MESSAGE_BYTES], where[128] = "";
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    if (plan->word != NULL)
        snprintf(where, sizeof(where), "gpu %u, threadblock %u, op %u (%.32s): ", plan->rank,
                 plan->program.nblocks > 0 ? plan->program.blocks[plan->program.nblocks - 1].id : 0,
                 plan->step, plan->word);
    else if (plan->rank != UINT32_MAX)
        snprintf(where, sizeof(where), "gpu %u: ", plan->rank);
    tutti_message_record_failure("%s: %s%s", plan->program.file, where, what);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Reads a value that is a whole number from 0 to `most`. `name` names it in messages. */
static int read_whole(const struct tutti_json_plan *plan, const json_t *value, const char *name,
                      double most, double *ret_value)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;

    if (!(number >= 0 && number <= most) || number != floor(number))
        return tutti_json_refuse(plan, "%s is not a whole number from 0 to %.0f", name, most);
    *ret_value = number;
    return TUTTI_OK;
}

int tutti_json_number(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                      double fallback, double most, double *ret_value)
{
    const json_t *value = json_object_get(json, name);

    if (value == NULL && fallback == TUTTI_JSON_REQUIRED)
        return tutti_json_refuse(plan, "no %s; give it", name);
    if (value == NULL) {
        *ret_value = fallback;
        return TUTTI_OK;
    }
    return read_whole(plan, value, name, most, ret_value);
}

int tutti_json_count(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     double fallback, uint32_t most, uint32_t *ret_value)
{
    double value;

    TUTTI_TRY(tutti_json_number(plan, json, name, fallback, most, &value));
    *ret_value = (uint32_t)value;
    return TUTTI_OK;
}

int tutti_json_array(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     json_t **ret_array)
{
    json_t *array = json_object_get(json, name);

    if (array != NULL && !json_is_array(array))
        return tutti_json_refuse(plan, "%s is not a list", name);
    *ret_array = array;
    return TUTTI_OK;
}

int tutti_json_item(const struct tutti_json_plan *plan, const json_t *array, size_t i,
                    uint32_t most, uint32_t *ret_value)
{
    double value;

    TUTTI_TRY(read_whole(plan, json_array_get(array, i), "an item of a list", most, &value));
    *ret_value = (uint32_t)value;
    return TUTTI_OK;
}

int tutti_json_channel_type(const struct tutti_json_plan *plan, const json_t *json,
                            const char *member, enum tutti_json_channel_type *ret_type)
{
    const json_t *value = json_object_get(json, member);
    const char *text = value == NULL ? "memory" : json_string_value(value);

    if (text != NULL && strcmp(text, "switch") == 0)
        return tutti_json_refuse(plan,
                                 "a channel of type switch reduces and stores in the network; "
                                 "that cannot be expressed");
    if (text == NULL || (strcmp(text, "memory") != 0 && strcmp(text, "port") != 0))
        return tutti_json_refuse(plan, "%s is not memory or port", member);
    *ret_type = strcmp(text, "port") == 0 ? TUTTI_JSON_PORT : TUTTI_JSON_MEMORY;
    return TUTTI_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Returns true if the plan has the schema that MSCCL++ wrote up to version 0.7. Its gpus have
 * inputChunks where those of newer plans have input_chunks. In its first version the collective
 * was misspelled. */
static bool is_old_schema(const json_t *root)
{
    json_t *gpu = json_array_get(json_object_get(root, "gpus"), 0);

    return json_object_get(root, "colletive") != NULL ||
           json_object_get(gpu, "inputChunks") != NULL ||
           json_object_get(gpu, "outputChunks") != NULL ||
           json_object_get(gpu, "scratchChunks") != NULL;
}

static int read_collective(struct tutti_json_plan *plan, const json_t *root)
{
    const char *text = json_string_value(json_object_get(root, "collective"));
    struct tutti_import_program *program = &plan->program;
    char list[TUTTI_COLLECTIVE_LIST_BYTES];

    if (text == NULL)
        return tutti_json_refuse(plan, "no collective; give it");
    program->collective = tutti_import_collective(text);
    if (program->collective != TUTTI_COLLECTIVE_COUNT)
        return TUTTI_OK;
    return tutti_json_refuse(plan, "collective \"%.40s\" cannot be proved or run; there are %s",
                             text, tutti_collective_list(TUTTI_LIST_WITH_DATA, list));
}

/* Reads the members that concern the whole plan, except for the gpus. Sets the limits of the sizes
 * of calls, which are members of *limits, if the plan gives any. */
static int read_head(struct tutti_json_plan *plan, const json_t *root,
                     struct tutti_ensemble *limits)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    const char *protocol = json_string_value(json_object_get(root, "protocol"));
    const double unbounded = 18446744073709551615.0; /* 2^64 - 1, which the double rounds to 2^64 */
    double least, most;

    TUTTI_TRY(read_collective(plan, root));
    if (protocol != NULL && strcmp(protocol, "Simple") != 0 && strcmp(protocol, "LL") != 0)
        return tutti_json_refuse(plan, "protocol \"%.40s\" is not Simple or LL", protocol);
    TUTTI_TRY(tutti_json_number(plan, root, "min_message_size", 0, unbounded, &least));
    TUTTI_TRY(tutti_json_number(plan, root, "max_message_size", unbounded, unbounded, &most));
    if (least > most || most < 1)
        return tutti_json_refuse(plan, "min_message_size is more than max_message_size, or "
                                       "max_message_size is 0");
    /* From 2^63 on, a limit counts as none. A double of 2^64 does not fit uint64_t. */
    if (least > 0 || most < 0x1p63) {
        limits->least_bytes = least < 0x1p63 ? (uint64_t)least : UINT64_MAX;
        limits->most_bytes = most < 0x1p63 ? (uint64_t)most : UINT64_MAX;
    }
    plan->program.is_in_place = json_is_true(json_object_get(root, "inplace"));
    plan->program.root = UINT32_MAX;
    tutti_import_set_name(&plan->program, name, "json");
    return TUTTI_OK;
}

/* Finds the entry of each gpu. The entries are in any order, and each gives the gpu's id. */
static int find_gpus(struct tutti_json_plan *plan, const json_t *root)
{
    json_t *gpus;

    TUTTI_TRY(tutti_json_array(plan, root, "gpus", &gpus));
    if (json_array_size(gpus) == 0 || json_array_size(gpus) > TUTTI_IMPORT_RANKS_MAX)
        return tutti_json_refuse(plan, "gpus is not a list of 1 to %u entries",
                                 TUTTI_IMPORT_RANKS_MAX);
    plan->program.nranks = (uint32_t)json_array_size(gpus);
    plan->gpus = calloc(plan->program.nranks, sizeof(*plan->gpus));
    if (plan->gpus == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u gpus", plan->program.nranks);
    for (size_t i = 0; i < plan->program.nranks; i++) {
        json_t *gpu = json_array_get(gpus, i);
        uint32_t id;

        TUTTI_TRY(
            tutti_json_count(plan, gpu, "id", TUTTI_JSON_REQUIRED, plan->program.nranks - 1, &id));
        if (plan->gpus[id].json != NULL)
            return tutti_json_refuse(plan, "gpu %u for the second time; give each its own id", id);
        plan->gpus[id].json = gpu;
    }
    return TUTTI_OK;
}

/* Computes into how many parts each chunk must be cut. Groups of threadblocks divide chunks among
 * themselves, so each threadblock of a group must get a whole number of parts. */
static int find_refined(struct tutti_json_plan *plan)
{
    uint32_t refined = 1;

    for (plan->rank = 0; plan->rank < plan->program.nranks; plan->rank++) {
        json_t *blocks, *ops;

        TUTTI_TRY(tutti_json_array(plan, plan->gpus[plan->rank].json, "threadblocks", &blocks));
        for (size_t b = 0; b < json_array_size(blocks); b++) {
            TUTTI_TRY(tutti_json_array(plan, json_array_get(blocks, b), "ops", &ops));
            for (size_t i = 0; i < json_array_size(ops); i++) {
                TUTTI_TRY(tutti_json_refine(plan, json_array_get(ops, i), &refined));
                if (refined > TUTTI_JSON_REFINED_MAX)
                    return tutti_json_refuse(plan,
                                             "its groups of threadblocks cut chunks in more "
                                             "than %u parts",
                                             TUTTI_JSON_REFINED_MAX);
            }
        }
    }
    plan->refined = refined;
    return TUTTI_OK;
}

/* Reads the sizes of the buffers of all gpus. The input and output sizes must all give the same
 * number of chunks per block. The sizes of scratch buffers may differ. */
static int read_chunks(struct tutti_json_plan *plan)
{
    struct tutti_import_program *program = &plan->program;
    uint32_t inputs = tutti_input_blocks(program->collective, program->nranks);
    uint32_t outputs = tutti_output_blocks(program->collective, program->nranks);
    uint32_t found = 0; /* chunks per block; 0: not known yet */

    for (plan->rank = 0; plan->rank < program->nranks; plan->rank++) {
        const json_t *gpu = plan->gpus[plan->rank].json;
        uint32_t input, output;

        TUTTI_TRY(tutti_json_count(plan, gpu, "input_chunks", 0, CHUNKS_MAX, &input));
        TUTTI_TRY(tutti_json_count(plan, gpu, "output_chunks", 0, CHUNKS_MAX, &output));
        if (found == 0)
            found = input > 0 ? input / inputs : output / outputs;
        if ((input > 0 && input != found * inputs) || (output > 0 && output != found * outputs))
            return tutti_json_refuse(plan,
                                     "%u input and %u output chunks; a chunk of %s must have "
                                     "one size in both, and at all gpus",
                                     input, output, tutti_collective_name(program->collective));
    }
    plan->rank = UINT32_MAX;
    if (found == 0)
        return tutti_json_refuse(
            plan, "no gpu has input or output chunks; give input_chunks or output_chunks");
    if ((uint64_t)found * plan->refined > CHUNKS_MAX / program->nranks)
        return tutti_json_refuse(plan,
                                 "%u chunks of %u parts per block are too many; at most %d in all",
                                 found, plan->refined, CHUNKS_MAX);
    program->chunks = found * plan->refined;
    TUTTI_TRY(tutti_import_init(program));
    for (plan->rank = 0; plan->rank < program->nranks; plan->rank++) {
        TUTTI_TRY(tutti_json_count(plan, plan->gpus[plan->rank].json, "scratch_chunks", 0,
                                   CHUNKS_MAX / plan->refined, &program->scratch[plan->rank]));
        program->scratch[plan->rank] *= plan->refined;
    }
    return TUTTI_OK;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* Adds a channel of the current gpu to `peer`. `ordinal` counts the channels of this type to this
 * peer. */
static int add_channel(struct tutti_json_plan *plan, enum tutti_json_channel_type type,
                       uint32_t peer, uint32_t ordinal)
{
    struct tutti_json_gpu *gpu = &plan->gpus[plan->rank];
    uint32_t out[4] = {plan->rank, peer, type, ordinal}, in[4] = {peer, plan->rank, type, ordinal};
    struct tutti_json_channel *channel;

    if (peer == plan->rank)
        return tutti_json_refuse(plan, "a channel to itself; connect it to another gpu");
    TUTTI_TRY(TUTTI_ARRAY_ROOM(gpu->channels[type], gpu->nchannels[type], gpu->capacity[type],
                               "channels"));
    channel = &gpu->channels[type][gpu->nchannels[type]];
    TUTTI_TRY(tutti_import_object(&plan->program, TUTTI_IMPORT_SIGNAL, out, &channel->out));
    TUTTI_TRY(tutti_import_object(&plan->program, TUTTI_IMPORT_SIGNAL, in, &channel->in));
    gpu->nchannels[type]++;
    return TUTTI_OK;
}

/* Reads the channels of the current gpu. The n-th channel of a type from gpu a to gpu b is
 * connected to the n-th channel of this type from b to a. */
static int read_channels(struct tutti_json_plan *plan)
{
    uint32_t *ordinals =
        calloc((size_t)plan->program.nranks * TUTTI_JSON_CHANNEL_TYPES, sizeof(*ordinals));
    json_t *channels, *peers;
    int rc;

    if (ordinals == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the channels of a gpu");
    TUTTI_TRY_OR(release, rc,
                 tutti_json_array(plan, plan->gpus[plan->rank].json, "channels", &channels));
    for (size_t c = 0; c < json_array_size(channels); c++) {
        enum tutti_json_channel_type type;

        TUTTI_TRY_OR(
            release, rc,
            tutti_json_channel_type(plan, json_array_get(channels, c), "channel_type", &type));
        TUTTI_TRY_OR(release, rc,
                     tutti_json_array(plan, json_array_get(channels, c), "connected_to", &peers));
        for (size_t i = 0; i < json_array_size(peers); i++) {
            uint32_t peer;

            TUTTI_TRY_OR(release, rc,
                         tutti_json_item(plan, peers, i, plan->program.nranks - 1, &peer));
            TUTTI_TRY_OR(
                release, rc,
                add_channel(plan, type, peer, ordinals[peer * TUTTI_JSON_CHANNEL_TYPES + type]++));
        }
    }

release:
    free(ordinals);
    return rc;
}

static int read_semaphores(struct tutti_json_plan *plan)
{
    json_t *semaphores;

    TUTTI_TRY(tutti_json_array(plan, plan->gpus[plan->rank].json, "semaphores", &semaphores));
    for (size_t i = 0; i < json_array_size(semaphores); i++) {
        uint32_t key[4] = {plan->rank, (uint32_t)i}, object;

        TUTTI_TRY(tutti_import_object(&plan->program, TUTTI_IMPORT_SEMAPHORE, key, &object));
        TUTTI_TRY(tutti_json_count(plan, json_array_get(semaphores, i), "init_value", 0,
                                   SEMAPHORE_MAX, &plan->program.objects[object].initial));
    }
    return TUTTI_OK;
}

/* ---- threadblocks ---------------------------------------------------------------------------- */

static int read_block(struct tutti_json_plan *plan, json_t *block, uint32_t first_block)
{
    struct tutti_import_program *program = &plan->program;
    json_t *ops;
    uint32_t id;

    TUTTI_TRY(tutti_json_count(plan, block, "id", TUTTI_JSON_REQUIRED, BLOCK_ID_MAX, &id));
    for (uint32_t b = first_block; b < program->nblocks; b++)
        if (program->blocks[b].id == id)
            return tutti_json_refuse(
                plan, "threadblock %u for the second time; give each its own id", id);
    TUTTI_TRY(tutti_import_add_block(program, plan->rank, id));
    TUTTI_TRY(tutti_json_array(plan, block, "ops", &ops));
    plan->block = block;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        plan->step = (uint32_t)i;
        TUTTI_TRY(tutti_json_read_op(plan, json_array_get(ops, i)));
    }
    plan->word = NULL; /* no op is current any more, for messages */
    return TUTTI_OK;
}

static int read_gpu(struct tutti_json_plan *plan)
{
    uint32_t first_block = plan->program.nblocks;
    json_t *blocks;

    TUTTI_TRY(tutti_json_array(plan, plan->gpus[plan->rank].json, "threadblocks", &blocks));
    for (size_t b = 0; b < json_array_size(blocks); b++)
        TUTTI_TRY(read_block(plan, json_array_get(blocks, b), first_block));
    return TUTTI_OK;
}

static int read_plan(struct tutti_json_plan *plan, const json_t *root,
                     struct tutti_ensemble *limits)
{
    plan->rank = UINT32_MAX;
    if (!json_is_object(root))
        return tutti_json_refuse(plan, "this is not an execution plan: the file is not a JSON "
                                       "object");
    if (is_old_schema(root))
        return tutti_json_refuse(plan, "this plan has the schema of MSCCL++ 0.7 and older, which "
                                       "version 0.8 replaced; rewrite the program in the language "
                                       "of version 0.8 or newer, and export it again");
    TUTTI_TRY(read_head(plan, root, limits));
    TUTTI_TRY(find_gpus(plan, root));
    TUTTI_TRY(find_refined(plan));
    TUTTI_TRY(read_chunks(plan));
    for (plan->rank = 0; plan->rank < plan->program.nranks; plan->rank++) {
        TUTTI_TRY(read_channels(plan));
        TUTTI_TRY(read_semaphores(plan));
    }
    for (plan->rank = 0; plan->rank < plan->program.nranks; plan->rank++)
        TUTTI_TRY(read_gpu(plan));
    return TUTTI_OK;
}

int tutti_import_json(const char *name, const char *text, size_t size_bytes,
                      struct tutti_ensemble *ret_ensemble)
{
    struct tutti_json_plan plan = {.program = {.file = name}};
    struct tutti_ensemble limits = {.nranks = 0};
    json_error_t error;
    /* Numbers are read as reals. Plans often give 2^64 - 1 as the largest size, and jansson's
     * integers end at 2^63 - 1. */
    json_t *root =
        json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    int rc;

    if (root == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s:%d:%d: %s", name, error.line, error.column,
                          error.text);
    rc = read_plan(&plan, root, &limits);
    rc = rc != TUTTI_OK ? rc : tutti_import_run(&plan.program, ret_ensemble);
    if (rc == TUTTI_OK) {
        ret_ensemble->least_bytes = limits.least_bytes;
        ret_ensemble->most_bytes = limits.most_bytes;
    }
    for (uint32_t rank = 0; rank < plan.program.nranks && plan.gpus != NULL; rank++)
        for (int type = 0; type < TUTTI_JSON_CHANNEL_TYPES; type++)
            free(plan.gpus[rank].channels[type]);
    free(plan.gpus);
    tutti_import_fini(&plan.program);
    json_decref(root);
    return rc;
}
