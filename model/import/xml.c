/* SPDX-License-Identifier: Apache-2.0
 * Reads the XML of MSCCL, which describes one algorithm. An algo contains gpus, a gpu contains
 * thread blocks (tb), and a tb contains steps. All data are in attributes:
 *
 *   <algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce"
 *         inplace="1">
 *     <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
 *       <tb id="0" send="1" recv="1" chan="0">
 *         <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1"
 *               depid="-1" deps="-1" hasdep="0"/>
 *
 * A step that receives and sends becomes two ops. If a step waits for another block, an AFTER op
 * comes before the ops of the step. The step may name a block that comes later in the file, so
 * these references are resolved at the end.
 */
#include "import/import.h"

#include "base/expat.h"
#include "base/log.h"
#include "base/result.h"
#include "import/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING UINT32_MAX /* object of an AFTER op that waits for no block, as a nop may */

/* Upper bounds for numbers in the file. */
enum {
    CHANNELS_MAX = 256,
    BLOCK_ID_MAX = 1023,
    STEPS_MAX = 65536,
    BUFFER_CHUNKS_MAX = 1 << 20,
};
#define BYTES_MAX         (INT64_MAX / 16)     /* upper bound for minBytes and maxBytes */
#define DEFAULT_MAX_BYTES (INT64_C(128) << 20) /* largest call if the file has no maxBytes */

struct reader {
    XML_Parser parser;
    struct tutti_import_program program;
    struct tutti_ensemble limits; /* only its members least_bytes and most_bytes are used */
    int depth;                    /* number of open elements */
    bool *seen;                   /* per rank: true if its gpu has been read */
    uint32_t rank, first_block;   /* of the current gpu; index of its first block */
    /* Of the current tb: the number of its next step; its peers, or -1; the objects of its queues,
     * which are valid if there is a peer. */
    uint32_t step;
    int64_t send_peer, recv_peer;
    uint32_t send_queue, recv_queue;
    int rc; /* the failure that has stopped the parser, or TUTTI_OK */
};

static void record(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Records a message with the position in the file, and returns TUTTI_ERR_ARGUMENT. This is a macro
 * so that the compiler sees a constant code, as with tutti_fail. */
#define refuse(reader, ...) \
    tutti_message_recorded((record(reader, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

static void record(const struct reader *reader, const char *format, ...)
{
    char what[TUTTI_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    tutti_message_record_failure("%s:%lu:%lu: %s", reader->program.file,
                                 (unsigned long)XML_GetCurrentLineNumber64(reader->parser),
                                 (unsigned long)XML_GetCurrentColumnNumber64(reader->parser) + 1,
                                 what);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Returns the value of an attribute, or NULL if it is missing. `attributes` are those of expat:
 * names and values in turn, then NULL. */
static const char *find(const char **attributes, const char *name)
{
    for (; attributes[0] != NULL; attributes += 2)
        if (strcmp(attributes[0], name) == 0)
            return attributes[1];
    return NULL;
}

enum { REQUIRED = -2 }; /* as a fallback: the attribute must be given */

/* Reads a number from `least`, which is -1 or 0, to `most`. If the attribute is missing, the value
 * is `fallback`, which is at least `least`, or REQUIRED. */
static int read_from(const struct reader *reader, const char **attributes, const char *name,
                     int64_t fallback, int64_t least, int64_t most, int64_t *ret_value)
{
    const char *text = find(attributes, name), *at = text;
    int64_t value = 0;

    if (text == NULL && fallback == REQUIRED)
        return refuse(reader, "no %s; give it", name);
    if (text == NULL || (least < 0 && strcmp(text, "-1") == 0)) {
        *ret_value = text == NULL ? fallback : -1;
        return TUTTI_OK;
    }
    for (; *at >= '0' && *at <= '9' && value <= most; at++)
        value = value * 10 + (*at - '0');
    if (at == text || *at != '\0' || value > most)
        return refuse(reader, "%s=\"%.40s\" is no number from %lld to %lld", name, text,
                      (long long)least, (long long)most);
    *ret_value = value;
    return TUTTI_OK;
}

/* Reads a number from -1 to `most`. Otherwise like read_from. */
static int read_number(const struct reader *reader, const char **attributes, const char *name,
                       int64_t fallback, int64_t most, int64_t *ret_value)
{
    return read_from(reader, attributes, name, fallback, -1, most, ret_value);
}

/* Reads a number from 0 to `most`. Otherwise like read_from. */
static int read_count(const struct reader *reader, const char **attributes, const char *name,
                      int64_t fallback, int64_t most, uint32_t *ret_value)
{
    int64_t value;

    TUTTI_TRY(read_from(reader, attributes, name, fallback, 0, most, &value));
    *ret_value = (uint32_t)value;
    return TUTTI_OK;
}

/* ---- algo ------------------------------------------------------------------------------------ */

static int read_collective(struct reader *reader, const char **attributes)
{
    const char *text = find(attributes, "coll");
    struct tutti_import_program *program = &reader->program;
    char list[TUTTI_COLLECTIVE_LIST_BYTES];

    if (text == NULL)
        return refuse(reader, "no coll; give it");
    program->collective = tutti_import_collective(text);
    if (program->collective != TUTTI_COLLECTIVE_COUNT)
        return TUTTI_OK;
    return refuse(reader, "coll=\"%.40s\" cannot be proved or run; there are %s", text,
                  tutti_collective_list(TUTTI_LIST_WITH_DATA, list));
}

/* Warns that the file does not give the attribute `name`, and names the value that is used. */
static void warn_missing(const struct reader *reader, const char *name, const char *taken)
{
    tutti_log(TUTTI_LOG_WARN, "%s: no %s; taken to be %s", reader->program.file, name, taken);
}

/* Stores the sizes of the calls that the algorithm is made for. As for the runtimes of these files,
 * maxBytes="0" is no upper limit; Microsoft's compiler writes it unless it is told a limit. */
static int set_sizes(struct reader *reader, int64_t least, int64_t most)
{
    if (most < 0 || (most > 0 && least > most))
        return refuse(reader, "minBytes is more than maxBytes, or maxBytes is negative");
    reader->limits.least_bytes = least > 0 ? (uint64_t)least : 0;
    reader->limits.most_bytes = (uint64_t)most;
    if (most == 0 && least > 0)
        reader->limits.most_bytes = UINT64_MAX;
    return TUTTI_OK;
}

/* Reads which calls the algorithm is made for. Attributes that are missing have defaults. An
 * algorithm of unknown form is out of place unless it is in place. */
static int read_limits(struct reader *reader, const char **attributes)
{
    int64_t in_place, out_of_place; /* 1: yes; 0 or -1: no */
    int64_t least, most;

    TUTTI_TRY(read_number(reader, attributes, "inplace", 0, 1, &in_place));
    TUTTI_TRY(read_number(reader, attributes, "outofplace", in_place != 1, 1, &out_of_place));
    TUTTI_TRY(read_number(reader, attributes, "minBytes", 0, BYTES_MAX, &least));
    TUTTI_TRY(read_number(reader, attributes, "maxBytes", DEFAULT_MAX_BYTES, BYTES_MAX, &most));
    if (find(attributes, "outofplace") == NULL)
        warn_missing(reader, "outofplace", in_place != 1 ? "1" : "0, because inplace is 1");
    if (find(attributes, "minBytes") == NULL)
        warn_missing(reader, "minBytes", "0");
    if (find(attributes, "maxBytes") == NULL)
        warn_missing(reader, "maxBytes", "128 MiB");
    /* A program that is correct out of place is also correct in place, because emit.c saves
     * inputs. */
    reader->program.is_in_place = in_place == 1 && out_of_place != 1;
    return set_sizes(reader, least, most);
}

static int begin_algo(struct reader *reader, const char **attributes)
{
    struct tutti_import_program *program = &reader->program;
    const char *name = find(attributes, "name"), *proto = find(attributes, "proto");
    uint32_t chunks, parts, channels;
    int64_t root;

    TUTTI_TRY(read_collective(reader, attributes));
    TUTTI_TRY(read_limits(reader, attributes));
    TUTTI_TRY(read_count(reader, attributes, "ngpus", REQUIRED, TUTTI_IMPORT_RANKS_MAX,
                         &program->nranks));
    TUTTI_TRY(read_count(reader, attributes, "nchannels", 1, CHANNELS_MAX, &channels));
    TUTTI_TRY(
        read_count(reader, attributes, "nchunksperloop", REQUIRED, BUFFER_CHUNKS_MAX, &chunks));
    TUTTI_TRY(read_number(reader, attributes, "root", -1, TUTTI_IMPORT_RANKS_MAX, &root));
    if (proto != NULL && strcmp(proto, "Simple") != 0 && strcmp(proto, "LL") != 0 &&
        strcmp(proto, "LL128") != 0)
        return refuse(reader, "proto=\"%.40s\" is not Simple, LL or LL128", proto);
    if (program->nranks == 0 || root >= (int64_t)program->nranks)
        return refuse(
            reader, "ngpus=\"%u\" and root=\"%lld\": give at least one gpu, and a root below ngpus",
            program->nranks, (long long)root);
    /* nchunksperloop counts the chunks of the larger buffer, which may have a block per rank. */
    parts = !tutti_collective_has_root(program->collective) &&
                    (tutti_input_is_per_rank(program->collective) ||
                     tutti_output_is_per_rank(program->collective))
                ? program->nranks
                : 1;
    if (chunks == 0 || chunks % parts != 0)
        return refuse(reader,
                      "nchunksperloop=\"%u\" is not a multiple of the %u parts that the "
                      "buffer of %s has",
                      chunks, parts, tutti_collective_name(program->collective));
    program->chunks = chunks / parts;
    if (program->chunks > BUFFER_CHUNKS_MAX / program->nranks)
        return refuse(reader, "%u chunks per block of %u ranks are too many; at most %d in all",
                      program->chunks, program->nranks, BUFFER_CHUNKS_MAX);
    program->root = root >= 0 ? (uint32_t)root : UINT32_MAX;
    tutti_import_set_name(program, name, "xml");
    reader->seen = calloc(program->nranks, sizeof(bool));
    if (reader->seen == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u ranks", program->nranks);
    return tutti_import_init(program);
}

/* ---- gpu and tb -------------------------------------------------------------------------- */

static int begin_gpu(struct reader *reader, const char **attributes)
{
    struct tutti_import_program *program = &reader->program;
    uint32_t inputs, outputs;

    TUTTI_TRY(read_count(reader, attributes, "id", REQUIRED, program->nranks - 1, &reader->rank));
    TUTTI_TRY(read_count(reader, attributes, "i_chunks", REQUIRED, BUFFER_CHUNKS_MAX, &inputs));
    TUTTI_TRY(read_count(reader, attributes, "o_chunks", REQUIRED, BUFFER_CHUNKS_MAX, &outputs));
    TUTTI_TRY(read_count(reader, attributes, "s_chunks", REQUIRED, BUFFER_CHUNKS_MAX,
                         &program->scratch[reader->rank]));
    if (reader->seen[reader->rank])
        return refuse(reader, "gpu %u for the second time; give each its own id", reader->rank);
    if ((inputs > 0 && inputs != tutti_import_inputs(program)) ||
        (outputs > 0 && outputs != tutti_import_outputs(program)))
        return refuse(reader,
                      "gpu %u has %u input and %u output chunks; by nchunksperloop %s has "
                      "%u and %u",
                      reader->rank, inputs, outputs, tutti_collective_name(program->collective),
                      tutti_import_inputs(program), tutti_import_outputs(program));
    reader->seen[reader->rank] = true;
    reader->first_block = program->nblocks;
    return TUTTI_OK;
}

/* Finds the queue of a sender, a receiver and a channel. Does nothing if there is no peer. */
static int find_queue(struct reader *reader, int64_t from, int64_t to, uint32_t channel,
                      uint32_t *ret_queue)
{
    uint32_t key[4] = {(uint32_t)from, (uint32_t)to, channel};

    if (from < 0 || to < 0)
        return TUTTI_OK;
    if (from == to)
        return refuse(reader, "gpu %u sends to or receives from itself; use cpy", reader->rank);
    return tutti_import_object(&reader->program, TUTTI_IMPORT_QUEUE, key, ret_queue);
}

static int begin_block(struct reader *reader, const char **attributes)
{
    struct tutti_import_program *program = &reader->program;
    uint32_t id, channel;

    TUTTI_TRY(read_count(reader, attributes, "id", REQUIRED, BLOCK_ID_MAX, &id));
    TUTTI_TRY(read_number(reader, attributes, "send", -1, program->nranks - 1, &reader->send_peer));
    TUTTI_TRY(read_number(reader, attributes, "recv", -1, program->nranks - 1, &reader->recv_peer));
    TUTTI_TRY(read_count(reader, attributes, "chan", 0, CHANNELS_MAX - 1, &channel));
    for (uint32_t b = reader->first_block; b < program->nblocks; b++)
        if (program->blocks[b].id == id)
            return refuse(reader, "tb %u of gpu %u for the second time; give each its own id", id,
                          reader->rank);
    TUTTI_TRY(find_queue(reader, reader->rank, reader->send_peer, channel, &reader->send_queue));
    TUTTI_TRY(find_queue(reader, reader->recv_peer, reader->rank, channel, &reader->recv_queue));
    reader->step = 0;
    return tutti_import_add_block(program, reader->rank, id);
}

/* ---- step -------------------------------------------------------------------------------- */

/* The effects of a type of step. READS and WRITES concern chunks in memory. ADDS means that the old
 * content of the destination is part of the sum. */
enum { RECEIVES = 1, SENDS = 2, READS = 4, WRITES = 8, ADDS = 16 };

static const struct step_type {
    const char *name;
    int does;
} types[] = {
    {"s", SENDS | READS},
    {"r", RECEIVES | WRITES},
    {"rcs", RECEIVES | SENDS | WRITES},
    {"rrs", RECEIVES | SENDS | READS},
    {"rrc", RECEIVES | READS | WRITES},
    {"rrcs", RECEIVES | SENDS | READS | WRITES},
    {"cpy", READS | WRITES},
    {"re", READS | WRITES | ADDS},
    {"nop", 0},
};

/* Returns NULL if there is no type of this name. */
static const struct step_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(name, types[i].name) == 0)
            return &types[i];
    return NULL;
}

/* Reads the reference to `size` chunks at `offset_name` in the buffer that `buffer_name` gives. */
static int read_ref(const struct reader *reader, const char **attributes, const char *buffer_name,
                    const char *offset_name, uint32_t size, struct tutti_import_ref *ret_ref)
{
    const char *text = find(attributes, buffer_name);
    uint32_t first;

    if (text == NULL || text[0] == '\0' || text[1] != '\0' || strchr("ios", text[0]) == NULL)
        return refuse(reader, "%s=\"%.40s\" is not i, o or s", buffer_name, text ? text : "");
    TUTTI_TRY(read_count(reader, attributes, offset_name, REQUIRED, BUFFER_CHUNKS_MAX, &first));
    *ret_ref = (struct tutti_import_ref){.rank = reader->rank,
                                         .first = first,
                                         .count = size,
                                         .buffer = text[0] == 'i'   ? TUTTI_IMPORT_INPUT
                                                   : text[0] == 'o' ? TUTTI_IMPORT_OUTPUT
                                                                    : TUTTI_IMPORT_SCRATCH};
    return TUTTI_OK;
}

/* Adds the ops of a step: a RECV or a MOVE, then a SEND. The sources of a RECV are reduced with the
 * message. A SEND after a RECV sends what the RECV has stored. `does` is that of the step's
 * type. */
static int add_ops(struct reader *reader, int does, const char *word, struct tutti_import_ref src,
                   struct tutti_import_ref dst)
{
    struct tutti_import_program *program = &reader->program;
    bool is_move = (does & (RECEIVES | SENDS)) == 0;

    if (does & RECEIVES)
        TUTTI_TRY(tutti_import_add_op(program, TUTTI_IMPORT_RECV, word, reader->step,
                                      reader->recv_queue, 0));
    if (is_move)
        TUTTI_TRY(tutti_import_add_op(program, TUTTI_IMPORT_MOVE, word, reader->step, 0, 0));
    if ((does & RECEIVES) || is_move) {
        if (does & ADDS)
            TUTTI_TRY(tutti_import_add_src(program, dst));
        if (does & READS)
            TUTTI_TRY(tutti_import_add_src(program, src));
        TUTTI_TRY(tutti_import_add_dst(program, dst));
    }
    if ((does & SENDS) == 0)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti_import_add_op(program, TUTTI_IMPORT_SEND, word, reader->step, reader->send_queue, 0));
    return tutti_import_add_src(program, does & RECEIVES ? dst : src);
}

/* Finds the type of a step, and checks that the current tb has the peers that the step needs. */
static int read_type(const struct reader *reader, const char **attributes,
                     const struct step_type **ret_type)
{
    const char *text = find(attributes, "type");
    const struct step_type *type = text != NULL ? find_type(text) : NULL;

    if (text != NULL && strcmp(text, "ra") == 0)
        return refuse(reader, "type ra adds a residual, which no collective promises; it cannot be "
                              "expressed");
    if (type == NULL)
        return refuse(reader, "type=\"%.40s\" is not s, r, rcs, rrs, rrc, rrcs, cpy, re or nop",
                      text != NULL ? text : "");
    if ((type->does & SENDS) && reader->send_peer < 0)
        return refuse(reader, "type %s in a tb with send=\"-1\"; give the peer", text);
    if ((type->does & RECEIVES) && reader->recv_peer < 0)
        return refuse(reader, "type %s in a tb with recv=\"-1\"; give the peer", text);
    *ret_type = type;
    return TUTTI_OK;
}

/* Reserves cells for a sum that a step holds between receiving and sending. */
static int reserve_temps(struct reader *reader, uint32_t size, struct tutti_import_ref *ret_ref)
{
    uint32_t *temps = &reader->program.temps[reader->rank];

    if (size > TUTTI_IMPORT_CELLS_MAX - *temps)
        return refuse(reader, "the steps of gpu %u hold too many chunks; at most %u", reader->rank,
                      TUTTI_IMPORT_CELLS_MAX);
    *ret_ref = (struct tutti_import_ref){
        .rank = reader->rank, .buffer = TUTTI_IMPORT_TEMP, .first = *temps, .count = size};
    *temps += size;
    return TUTTI_OK;
}

static int begin_step(struct reader *reader, const char **attributes)
{
    const struct step_type *type;
    struct tutti_import_ref src = {.rank = 0}, dst = {.rank = 0};
    uint32_t step, size;
    int64_t block, after; /* the block and its step that this step waits for, or -1 */
    bool waits;

    TUTTI_TRY(read_count(reader, attributes, "s", REQUIRED, STEPS_MAX, &step));
    TUTTI_TRY(read_count(reader, attributes, "cnt", REQUIRED, BUFFER_CHUNKS_MAX, &size));
    TUTTI_TRY(read_number(reader, attributes, "depid", -1, BLOCK_ID_MAX, &block));
    TUTTI_TRY(read_number(reader, attributes, "deps", -1, STEPS_MAX, &after));
    TUTTI_TRY(read_type(reader, attributes, &type));
    if (step != reader->step)
        return refuse(reader, "step %u where step %u is due", step, reader->step);
    waits = block >= 0 && after >= 0;
    /* The op names its block by id. The function `resolve` replaces the id when all blocks are
     * known. Even a nop that waits for nothing becomes an op, because other steps may wait for
     * it. */
    if (waits || type->does == 0)
        TUTTI_TRY(tutti_import_add_op(&reader->program, TUTTI_IMPORT_AFTER, type->name, step,
                                      waits ? (uint32_t)block : NOTHING, (uint32_t)after));
    if (type->does & READS)
        TUTTI_TRY(read_ref(reader, attributes, "srcbuf", "srcoff", size, &src));
    if (type->does & WRITES)
        TUTTI_TRY(read_ref(reader, attributes, "dstbuf", "dstoff", size, &dst));
    if (type->does == (RECEIVES | SENDS | READS)) /* rrs sends the sum, and writes it nowhere */
        TUTTI_TRY(reserve_temps(reader, size, &dst));
    if (type->does != 0)
        TUTTI_TRY(add_ops(reader, type->does, type->name, src, dst));
    reader->step++;
    return TUTTI_OK;
}

/* ---- the file ---------------------------------------------------------------------------- */

static int begin_element(struct reader *reader, const char *name, const char **attributes)
{
    static const char *const names[] = {"algo", "gpu", "tb", "step"};

    if (reader->depth == 0 && strcmp(name, "msccl_algos") == 0)
        return refuse(reader, "this is a list of files; import each of them");
    if (reader->depth >= 4 || strcmp(name, names[reader->depth]) != 0)
        return refuse(reader, "element <%.40s> where %s is due", name,
                      reader->depth < 4 ? names[reader->depth] : "none");
    switch (reader->depth++) {
    case 0: return begin_algo(reader, attributes);
    case 1: return begin_gpu(reader, attributes);
    case 2: return begin_block(reader, attributes);
    default: return begin_step(reader, attributes);
    }
}

static void on_begin(void *context, const char *name, const char **attributes)
{
    struct reader *reader = context;

    if (reader->rc != TUTTI_OK)
        return;
    reader->rc = begin_element(reader, name, attributes);
    if (reader->rc != TUTTI_OK)
        XML_StopParser(reader->parser, XML_FALSE);
}

static void on_end(void *context, const char *name)
{
    struct reader *reader = context;

    (void)name;
    reader->depth--;
}

/* Refuses document types, because the entities that they define may expand to gigabytes. Files of
 * MSCCL have none. */
static void on_doctype(void *context, const char *name, const char *system, const char *public,
                       int has_subset)
{
    struct reader *reader = context;

    (void)name, (void)system, (void)public, (void)has_subset;
    reader->rc = refuse(reader, "a document type; remove it");
    XML_StopParser(reader->parser, XML_FALSE);
}

/* Resolves the AFTER op number `at`, which is in block number `block`. Before, the op names the id
 * and the step of another tb. Afterwards it names that block's index, and how many of its ops are
 * complete when the step is complete. */
static int resolve(struct tutti_import_program *program, uint32_t block, uint32_t at)
{
    struct tutti_import_op *op = &program->ops[at];
    uint32_t rank = program->blocks[block].rank, other = block, ops = 0;

    if (op->object == NOTHING) {
        op->object = block;
        op->count = 0;
        return TUTTI_OK;
    }
    while (other > 0 && program->blocks[other - 1].rank == rank)
        other--;
    while (other < program->nblocks && program->blocks[other].rank == rank &&
           program->blocks[other].id != op->object)
        other++;
    if (other == program->nblocks || program->blocks[other].rank != rank)
        return tutti_import_refuse(program, at, "depid=\"%u\", and gpu %u has no such threadblock",
                                   op->object, rank);
    if (other == block)
        return tutti_import_refuse(program, at,
                                   "depid=\"%u\" is its own threadblock, whose steps run in order",
                                   op->object);
    for (uint32_t i = 0; i < program->blocks[other].nops; i++)
        if (program->ops[program->blocks[other].first_op + i].step == op->count)
            ops = i + 1;
    if (ops == 0)
        return tutti_import_refuse(program, at, "deps=\"%u\", and threadblock %u has no such step",
                                   op->count, op->object);
    op->object = other;
    op->count = ops;
    return TUTTI_OK;
}

static int finish(struct reader *reader)
{
    struct tutti_import_program *program = &reader->program;

    for (uint32_t rank = 0; rank < program->nranks; rank++)
        if (!reader->seen[rank])
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: ngpus is %u, and gpu %u is missing",
                              program->file, program->nranks, rank);
    for (uint32_t b = 0; b < program->nblocks; b++)
        for (uint32_t i = 0; i < program->blocks[b].nops; i++)
            if (program->ops[program->blocks[b].first_op + i].kind == TUTTI_IMPORT_AFTER)
                TUTTI_TRY(resolve(program, b, program->blocks[b].first_op + i));
    return TUTTI_OK;
}

static int parse(struct reader *reader, const char *text, size_t size_bytes)
{
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, on_begin, on_end);
    XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
    if (size_bytes > INT32_MAX)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s has %zu bytes; at most %d can be read",
                          reader->program.file, size_bytes, INT32_MAX);
    if (XML_Parse(reader->parser, text, (int)size_bytes, XML_TRUE) == XML_STATUS_OK)
        return reader->rc != TUTTI_OK ? reader->rc : finish(reader);
    if (reader->rc != TUTTI_OK)
        return reader->rc;
    return refuse(reader, "%s", XML_ErrorString(XML_GetErrorCode(reader->parser)));
}

int tutti_import_xml(const char *name, const char *text, size_t size_bytes,
                     struct tutti_ensemble *ret_ensemble)
{
    struct reader reader = {.parser = XML_ParserCreate(NULL), .program = {.file = name}};
    int rc;

    if (reader.parser == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", name);
    rc = parse(&reader, text, size_bytes);
    rc = rc != TUTTI_OK ? rc : tutti_import_run(&reader.program, ret_ensemble);
    if (rc == TUTTI_OK) {
        ret_ensemble->least_bytes = reader.limits.least_bytes;
        ret_ensemble->most_bytes = reader.limits.most_bytes;
    }
    XML_ParserFree(reader.parser);
    tutti_import_fini(&reader.program);
    free(reader.seen);
    return rc;
}
