/* SPDX-License-Identifier: Apache-2.0
 * Reads the ops of a JSON plan. A table lists, for the name of each op, which data the op moves and
 * how the op synchronizes.
 */
#include "import/json.h"

#include "base/result.h"

#include <string.h>

/* Upper bounds for a plan. A group is the threadblocks that divide the chunks of an op among
 * themselves. */
enum { REFS_MAX = 1024, GROUP_MAX = 1024, REF_CHUNKS_MAX = 1 << 20, BLOCKS_MAX = 1 << 16 };

/* The relation between the sources and the destinations of an op, or the way it synchronizes. */
enum shape {
    NOTHING,    /* the op moves nothing and synchronizes with nothing */
    PAIRS,      /* each source goes to its own destination */
    SPREAD,     /* the one source goes to all destinations */
    SUM,        /* the sum of all sources goes to all destinations */
    SIGNALS,    /* the op gives or takes signals on channels */
    SEMAPHORES, /* the op releases or acquires semaphores of its gpu */
    GATE,       /* the op is a barrier of threadblocks of one gpu */
    PIPELINE,   /* the op is a list of other ops */
    IMPOSSIBLE, /* the op uses a switch's memory or arithmetic, which no schedule can express */
};

enum {
    SOURCE_PACKETS = 1, /* the sources are packets; in a SUM, all but the first */
    TARGET_PACKETS = 2, /* the destinations are packets; in a SUM, all but the first */
    POSTS = 8,          /* the op gives signals or releases semaphores */
    WAITS = 16,         /* the op takes signals or acquires semaphores */
    RELAXED = 32,       /* the op's signals order no memory accesses */
};

static const struct op {
    const char *name;
    enum shape shape;
    int traits;
    uint32_t least_dsts; /* least number of destinations of a SUM */
} ops[] = {
    {"nop", NOTHING, 0, 0},
    {"flush", NOTHING, 0, 0},
    {"barrier", GATE, 0, 0},
    {"sem_acquire", SEMAPHORES, WAITS, 0},
    {"sem_release", SEMAPHORES, POSTS, 0},
    {"signal", SIGNALS, POSTS, 0},
    {"wait", SIGNALS, WAITS, 0},
    {"rlxsignal", SIGNALS, POSTS | RELAXED, 0},
    {"rlxwait", SIGNALS, WAITS | RELAXED, 0},
    {"put", PAIRS, 0, 0},
    {"pws", PAIRS, POSTS, 0},
    {"pwsf", PAIRS, POSTS, 0},
    {"get", PAIRS, 0, 0},
    {"copy", PAIRS, 0, 0},
    {"re", SUM, 0, 1},
    {"res", SUM, 0, 1},
    {"rre", SUM, 0, 1},
    {"rres", SUM, 0, 1},
    {"ppkt", PAIRS, TARGET_PACKETS, 0},
    {"rppkt", SPREAD, SOURCE_PACKETS | TARGET_PACKETS, 0},
    {"cpkt", PAIRS, TARGET_PACKETS, 0},
    {"upkt", PAIRS, SOURCE_PACKETS, 0},
    {"repkt", SUM, SOURCE_PACKETS | TARGET_PACKETS, 1},
    {"respkt", SUM, SOURCE_PACKETS | TARGET_PACKETS, 1},
    {"recpkt", SUM, SOURCE_PACKETS | TARGET_PACKETS, 2},
    {"recspkt", SUM, SOURCE_PACKETS | TARGET_PACKETS, 2},
    {"pipeline", PIPELINE, 0, 0},
    {"glre", IMPOSSIBLE, 0, 0},
    {"glres", IMPOSSIBLE, 0, 0},
    {"gstore", IMPOSSIBLE, 0, 0},
    {"gstorepkt", IMPOSSIBLE, 0, 0},
};

/* Returns the table's entry for an op of the plan, or NULL if its name is not known. */
static const struct op *find_op(const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "name"));

    for (size_t i = 0; name != NULL && i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(name, ops[i].name) == 0)
            return &ops[i];
    return NULL;
}

/* ---- references to chunks ---------------------------------------------------------------- */

/* Finds the threadblock's list for channels of a type. A threadblock has one list for each type.
 * Its ops name channels and remote buffers by their indices in these lists. */
static int find_list(const struct tutti_json_plan *plan, const char *lists_name,
                     const char *type_name, const char *list_name,
                     enum tutti_json_channel_type type, json_t **ret_list)
{
    json_t *lists;

    TUTTI_TRY(tutti_json_array(plan, plan->block, lists_name, &lists));
    for (size_t i = 0; i < json_array_size(lists); i++) {
        enum tutti_json_channel_type other;

        TUTTI_TRY(tutti_json_channel_type(plan, json_array_get(lists, i), type_name, &other));
        if (other == type)
            return tutti_json_array(plan, json_array_get(lists, i), list_name, ret_list);
    }
    return tutti_json_refuse(plan, "the threadblock has no %s of that type of channel", lists_name);
}

static int find_buffer(const struct tutti_json_plan *plan, const json_t *json,
                       struct tutti_import_ref *ref)
{
    const char *type = json_string_value(json_object_get(json, "type"));

    if (type == NULL || type[0] == '\0' || type[1] != '\0' || strchr("ios", type[0]) == NULL)
        return tutti_json_refuse(plan, "the type of a buffer is not i, o or s");
    ref->buffer = type[0] == 'i'   ? TUTTI_IMPORT_INPUT
                  : type[0] == 'o' ? TUTTI_IMPORT_OUTPUT
                                   : TUTTI_IMPORT_SCRATCH;
    return TUTTI_OK;
}

/* Finds the remote buffer that a reference names. Its member buffer_id is an index in the
 * threadblock's list. The entries of that list are indices in the gpu's list. */
static int find_remote(const struct tutti_json_plan *plan, const json_t *op, const json_t *json,
                       struct tutti_import_ref *ref)
{
    enum tutti_json_channel_type type;
    json_t *ids, *buffers;
    uint32_t index, id;

    TUTTI_TRY(tutti_json_channel_type(plan, op, "channel_type", &type));
    TUTTI_TRY(find_list(plan, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids",
                        type, &ids));
    TUTTI_TRY(tutti_json_count(plan, json, "buffer_id", TUTTI_JSON_REQUIRED, UINT32_MAX, &index));
    if (index >= json_array_size(ids))
        return tutti_json_refuse(plan,
                                 "buffer_id %u, and the threadblock refers to %zu remote "
                                 "buffers",
                                 index, json_array_size(ids));
    TUTTI_TRY(tutti_json_array(plan, plan->gpus[plan->rank].json, "remote_buffers", &buffers));
    TUTTI_TRY(tutti_json_item(plan, ids, index, UINT32_MAX, &id));
    if (id >= json_array_size(buffers))
        return tutti_json_refuse(plan, "remote buffer %u, and the gpu has %zu", id,
                                 json_array_size(buffers));
    TUTTI_TRY(tutti_json_count(plan, json_array_get(buffers, id), "rank", TUTTI_JSON_REQUIRED,
                               plan->program.nranks - 1, &ref->rank));
    return find_buffer(plan, json_array_get(buffers, id), ref);
}

/* Finds out which part of the op's chunks belongs to this threadblock. */
static int read_group(const struct tutti_json_plan *plan, const json_t *op, uint32_t *ret_part,
                      uint32_t *ret_parts)
{
    const json_t *group = json_object_get(op, "tbg_info");

    *ret_part = 0;
    *ret_parts = 1;
    if (group == NULL)
        return TUTTI_OK;
    TUTTI_TRY(tutti_json_count(plan, group, "tbg_size", TUTTI_JSON_REQUIRED, GROUP_MAX, ret_parts));
    TUTTI_TRY(tutti_json_count(plan, group, "tb_id", TUTTI_JSON_REQUIRED, GROUP_MAX, ret_part));
    if (*ret_part >= *ret_parts)
        return tutti_json_refuse(plan, "tb_id %u in a group of %u", *ret_part, *ret_parts);
    return TUTTI_OK;
}

/* Reads a reference of an op: a buffer, and the part of its chunks for this threadblock. */
static int read_ref(const struct tutti_json_plan *plan, const json_t *op, const json_t *json,
                    struct tutti_import_ref *ret_ref)
{
    struct tutti_import_ref ref = {.rank = plan->rank};
    uint32_t index, size, part, parts;

    if (json_object_get(json, "switch_channel_id") != NULL)
        return tutti_json_refuse(plan, "memory behind a switch cannot be expressed");
    if ((json_object_get(json, "type") != NULL) == (json_object_get(json, "buffer_id") != NULL))
        return tutti_json_refuse(plan, "a buffer has a type, or a buffer_id if it is remote");
    if (json_object_get(json, "buffer_id") != NULL)
        TUTTI_TRY(find_remote(plan, op, json, &ref));
    else
        TUTTI_TRY(find_buffer(plan, json, &ref));
    TUTTI_TRY(tutti_json_count(plan, json, "index", TUTTI_JSON_REQUIRED, REF_CHUNKS_MAX, &index));
    TUTTI_TRY(tutti_json_count(plan, json, "size", TUTTI_JSON_REQUIRED, REF_CHUNKS_MAX, &size));
    TUTTI_TRY(read_group(plan, op, &part, &parts));
    /* The refinement plan->refined was chosen so that this divides without remainder. */
    ref.count = (uint32_t)((uint64_t)size * plan->refined / parts);
    ref.first = index * plan->refined + part * ref.count;
    *ret_ref = ref;
    return TUTTI_OK;
}

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

_Static_assert(TUTTI_JSON_REFINED_MAX <= UINT32_MAX / GROUP_MAX, "no product wraps");

int tutti_json_refine(struct tutti_json_plan *plan, const json_t *op, uint32_t *refined)
{
    static const char *const names[] = {"src_buff", "dst_buff"};
    uint32_t part, parts, size;
    json_t *refs, *nested;

    TUTTI_TRY(tutti_json_array(plan, op, "ops", &nested));
    for (size_t i = 0; i < json_array_size(nested); i++) {
        /* Deeper nesting is refused when it is read. */
        if (json_object_get(json_array_get(nested, i), "ops") == NULL)
            TUTTI_TRY(tutti_json_refine(plan, json_array_get(nested, i), refined));
        if (*refined > TUTTI_JSON_REFINED_MAX)
            return TUTTI_OK;
    }
    TUTTI_TRY(read_group(plan, op, &part, &parts));
    for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
        TUTTI_TRY(tutti_json_array(plan, op, names[n], &refs));
        for (size_t i = 0; i < json_array_size(refs); i++) {
            uint32_t needed;

            TUTTI_TRY(tutti_json_count(plan, json_array_get(refs, i), "size", TUTTI_JSON_REQUIRED,
                                       REF_CHUNKS_MAX, &size));
            if (size == 0)
                return tutti_json_refuse(plan, "an entry of %s has size 0; leave it out", names[n]);
            /* size * needed is the least common multiple of both, so it can be divided. *refined
             * becomes the least common multiple of what all references need. */
            needed = parts / greatest_divisor(size, parts);
            *refined = *refined / greatest_divisor(*refined, needed) * needed;
            if (*refined > TUTTI_JSON_REFINED_MAX)
                return TUTTI_OK;
        }
    }
    return TUTTI_OK;
}

/* ---- ops --------------------------------------------------------------------------------- */

static int add_move(struct tutti_json_plan *plan, const struct op *op)
{
    return tutti_import_add_op(&plan->program, TUTTI_IMPORT_MOVE, op->name, plan->step, 0, 0);
}

static int read_refs(struct tutti_json_plan *plan, const json_t *json, json_t **ret_srcs,
                     json_t **ret_dsts)
{
    TUTTI_TRY(tutti_json_array(plan, json, "src_buff", ret_srcs));
    TUTTI_TRY(tutti_json_array(plan, json, "dst_buff", ret_dsts));
    if (json_array_size(*ret_srcs) == 0 || json_array_size(*ret_dsts) == 0 ||
        json_array_size(*ret_srcs) > REFS_MAX || json_array_size(*ret_dsts) > REFS_MAX)
        return tutti_json_refuse(plan, "src_buff and dst_buff have 1 to %d entries", REFS_MAX);
    return TUTTI_OK;
}

/* Adds a MOVE for each destination, from its own source or, in a SPREAD, from the only one. */
static int read_copies(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    enum tutti_json_channel_type type;
    json_t *srcs, *dsts;

    TUTTI_TRY(tutti_json_channel_type(plan, json, "channel_type", &type));
    TUTTI_TRY(read_refs(plan, json, &srcs, &dsts));
    if (op->shape == SPREAD && json_array_size(srcs) != 1)
        return tutti_json_refuse(plan, "%zu sources; give one, which goes to all destinations",
                                 json_array_size(srcs));
    if (op->shape == PAIRS && json_array_size(srcs) != json_array_size(dsts))
        return tutti_json_refuse(plan, "%zu sources for %zu destinations; give one source for each",
                                 json_array_size(srcs), json_array_size(dsts));
    for (size_t i = 0; i < json_array_size(dsts); i++) {
        struct tutti_import_ref src, dst;

        TUTTI_TRY(read_ref(plan, json, json_array_get(srcs, op->shape == SPREAD ? 0 : i), &src));
        TUTTI_TRY(read_ref(plan, json, json_array_get(dsts, i), &dst));
        src.is_packets = (op->traits & SOURCE_PACKETS) != 0;
        dst.is_packets = (op->traits & TARGET_PACKETS) != 0;
        TUTTI_TRY(add_move(plan, op));
        TUTTI_TRY(tutti_import_add_src(&plan->program, src));
        TUTTI_TRY(tutti_import_add_dst(&plan->program, dst));
    }
    return TUTTI_OK;
}

/* Adds one MOVE of all sources to all destinations. */
static int read_sum(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    json_t *srcs, *dsts, *reduce_op = json_object_get(json, "reduce_op");
    struct tutti_import_ref ref;

    TUTTI_TRY(read_refs(plan, json, &srcs, &dsts));
    if (json_array_size(dsts) < op->least_dsts)
        return tutti_json_refuse(plan, "%zu destinations; it has %u or more", json_array_size(dsts),
                                 op->least_dsts);
    if (reduce_op != NULL &&
        (!json_is_string(reduce_op) || strcmp(json_string_value(reduce_op), "sum") != 0))
        return tutti_json_refuse(plan,
                                 "reduce_op \"%.20s\": a schedule reduces by the operation of "
                                 "the call; write \"sum\", which stands for it, or nothing",
                                 json_is_string(reduce_op) ? json_string_value(reduce_op) : "?");
    TUTTI_TRY(add_move(plan, op));
    for (size_t i = 0; i < json_array_size(srcs); i++) {
        TUTTI_TRY(read_ref(plan, json, json_array_get(srcs, i), &ref));
        ref.is_packets = i > 0 && (op->traits & SOURCE_PACKETS);
        TUTTI_TRY(tutti_import_add_src(&plan->program, ref));
    }
    for (size_t i = 0; i < json_array_size(dsts); i++) {
        TUTTI_TRY(read_ref(plan, json, json_array_get(dsts, i), &ref));
        ref.is_packets = i > 0 && (op->traits & TARGET_PACKETS);
        TUTTI_TRY(tutti_import_add_dst(&plan->program, ref));
    }
    return TUTTI_OK;
}

/* Adds a POST or a WAIT for each channel of an op. */
static int read_signals(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    const struct tutti_json_gpu *gpu = &plan->gpus[plan->rank];
    enum tutti_json_channel_type type;
    json_t *ids, *own;

    TUTTI_TRY(tutti_json_channel_type(plan, json, "channel_type", &type));
    TUTTI_TRY(tutti_json_array(plan, json, "channel_ids", &own));
    if (json_array_size(own) == 0)
        return tutti_json_refuse(plan, "no channel_ids; give them");
    TUTTI_TRY(find_list(plan, "channels", "channel_type", "channel_ids", type, &ids));
    for (size_t i = 0; i < json_array_size(own); i++) {
        uint32_t index, id;

        TUTTI_TRY(tutti_json_item(plan, own, i, UINT32_MAX, &index));
        if (index >= json_array_size(ids))
            return tutti_json_refuse(plan, "channel %u, and the threadblock has %zu", index,
                                     json_array_size(ids));
        TUTTI_TRY(tutti_json_item(plan, ids, index, UINT32_MAX, &id));
        if (id >= gpu->nchannels[type])
            return tutti_json_refuse(plan, "channel %u of the gpu, which has %u", id,
                                     gpu->nchannels[type]);
        TUTTI_TRY(tutti_import_add_op(
            &plan->program, op->traits & POSTS ? TUTTI_IMPORT_POST : TUTTI_IMPORT_WAIT, op->name,
            plan->step,
            op->traits & POSTS ? gpu->channels[type][id].out : gpu->channels[type][id].in, 0));
        plan->program.ops[plan->program.nops - 1].is_relaxed = (op->traits & RELAXED) != 0;
    }
    return TUTTI_OK;
}

static int read_semaphore_op(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    json_t *ids, *semaphores;

    TUTTI_TRY(tutti_json_array(plan, json, "semaphore_ids", &ids));
    TUTTI_TRY(tutti_json_array(plan, plan->gpus[plan->rank].json, "semaphores", &semaphores));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        uint32_t key[4] = {plan->rank}, object;

        TUTTI_TRY(tutti_json_item(plan, ids, i, UINT32_MAX, &key[1]));
        if (key[1] >= json_array_size(semaphores))
            return tutti_json_refuse(plan, "semaphore %u, and the gpu has %zu", key[1],
                                     json_array_size(semaphores));
        TUTTI_TRY(tutti_import_object(&plan->program, TUTTI_IMPORT_SEMAPHORE, key, &object));
        TUTTI_TRY(tutti_import_add_op(&plan->program,
                                      op->traits & POSTS ? TUTTI_IMPORT_POST : TUTTI_IMPORT_WAIT,
                                      op->name, plan->step, object, 0));
    }
    return TUTTI_OK;
}

/* Reads a barrier. */
static int read_gate(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    uint32_t key[4] = {plan->rank}, object, members;

    TUTTI_TRY(tutti_json_count(plan, json, "barrier_id", TUTTI_JSON_REQUIRED, BLOCKS_MAX, &key[1]));
    TUTTI_TRY(tutti_json_count(plan, json, "num_threadblocks", TUTTI_JSON_REQUIRED, BLOCKS_MAX,
                               &members));
    if (members == 0)
        return tutti_json_refuse(plan, "a barrier of 0 threadblocks");
    TUTTI_TRY(tutti_import_object(&plan->program, TUTTI_IMPORT_GATE, key, &object));
    return tutti_import_add_op(&plan->program, TUTTI_IMPORT_BARRIER, op->name, plan->step, object,
                               members);
}

/* Reads an op that is not a pipeline. */
static int read_simple(struct tutti_json_plan *plan, const json_t *json, const struct op *op)
{
    switch (op->shape) {
    case NOTHING: return TUTTI_OK;
    case PAIRS:
    case SPREAD:
        TUTTI_TRY(read_copies(plan, json, op));
        return op->traits & POSTS ? read_signals(plan, json, op) : TUTTI_OK;
    case SUM: return read_sum(plan, json, op);
    case SIGNALS: return read_signals(plan, json, op);
    case SEMAPHORES: return read_semaphore_op(plan, json, op);
    case GATE: return read_gate(plan, json, op);
    case PIPELINE: return tutti_json_refuse(plan, "a pipeline in a pipeline");
    default:
        return tutti_json_refuse(plan,
                                 "it reduces or stores in a switch, which cannot be expressed");
    }
}

int tutti_json_read_op(struct tutti_json_plan *plan, const json_t *json)
{
    const struct op *op = find_op(json);
    const char *name = json_string_value(json_object_get(json, "name"));
    json_t *nested;

    plan->word = name != NULL ? name : "?";
    if (op == NULL)
        return tutti_json_refuse(plan, "no such op is known");
    if (op->shape != PIPELINE)
        return read_simple(plan, json, op);
    TUTTI_TRY(tutti_json_array(plan, json, "ops", &nested));
    for (size_t i = 0; i < json_array_size(nested); i++) {
        const struct op *inner = find_op(json_array_get(nested, i));

        name = json_string_value(json_object_get(json_array_get(nested, i), "name"));
        plan->word = name != NULL ? name : "?";
        if (inner == NULL)
            return tutti_json_refuse(plan, "no such op is known");
        TUTTI_TRY(read_simple(plan, json_array_get(nested, i), inner));
    }
    return TUTTI_OK;
}
