/* SPDX-License-Identifier: Apache-2.0
 * Compiles scripts to the JSON of MSCCL++. Each rank has a threadblock for each channel. Where an
 * action conflicts with an earlier one of another rank, that rank signals and this one waits. */
#include "import/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char buffers[] = "ios";

/* One threadblock: its ops as text, and what it knows of the others on its channel. */
struct actor {
    FILE *file;
    char *text;
    size_t size;
    uint32_t *known; /* per rank: number of ops that are known to be over */
};

struct touch {
    struct at at;
    uint32_t count, channel, actor, time;
    bool writes;
};

struct compiler {
    const struct script *script;
    enum style style;
    uint32_t nchannels;
    struct actor *actors; /* [rank][channel] */
    struct touch *touches;
    uint32_t ntouches;
    uint32_t *scratch; /* per rank: chunks of SCRATCH, with those for packets */
};

static struct actor *find_actor(struct compiler *compiler, uint32_t rank, uint32_t channel)
{
    assert_true(channel < compiler->nchannels);
    return &compiler->actors[rank * compiler->nchannels + channel];
}

/* The position of a peer in a rank's list of peers. */
static uint32_t slot_of(uint32_t rank, uint32_t peer)
{
    return peer < rank ? peer : peer - 1;
}

/* Begins an op. Returns its number among those of its threadblock, from 1 on. */
static uint32_t begin_op(struct actor *actor, uint32_t rank, const char *name)
{
    fprintf(actor->file, "%s     {\"name\": \"%s\"", actor->known[rank] > 0 ? ",\n" : "", name);
    return ++actor->known[rank];
}

static void order(struct compiler *compiler, const struct touch *touch, uint32_t rank,
                  uint32_t channel)
{
    struct actor *from = find_actor(compiler, touch->actor, channel);
    struct actor *to = find_actor(compiler, rank, channel);

    assert_int_equal(touch->channel, channel);
    if (touch->actor == rank || to->known[touch->actor] >= touch->time)
        return;
    begin_op(from, touch->actor, "signal");
    fprintf(from->file, ", \"channel_ids\": [%u], \"channel_type\": \"memory\"}",
            slot_of(touch->actor, rank));
    begin_op(to, rank, "wait");
    fprintf(to->file, ", \"channel_ids\": [%u], \"channel_type\": \"memory\"}",
            slot_of(rank, touch->actor));
    for (uint32_t r = 0; r < compiler->script->nranks; r++)
        if (to->known[r] < from->known[r])
            to->known[r] = from->known[r];
}

static bool overlaps(const struct touch *touch, struct at at, uint32_t count)
{
    return touch->at.rank == at.rank && touch->at.buffer == at.buffer &&
           touch->at.index < at.index + count && at.index < touch->at.index + touch->count;
}

/* Makes a rank's next op wait for what conflicts with it. Then records the access. */
static void touch(struct compiler *compiler, uint32_t rank, uint32_t channel, struct at at,
                  uint32_t count, bool writes)
{
    struct actor *actor = find_actor(compiler, rank, channel);

    for (uint32_t t = 0; t < compiler->ntouches; t++)
        if ((compiler->touches[t].writes || writes) && overlaps(&compiler->touches[t], at, count))
            order(compiler, &compiler->touches[t], rank, channel);
    compiler->touches =
        realloc(compiler->touches, (compiler->ntouches + 1) * sizeof(*compiler->touches));
    assert_non_null(compiler->touches);
    /* The time is that of the op to come, or of a wait before it, which is as good: whoever knows
     * of the op has got a signal that came after it. */
    compiler->touches[compiler->ntouches++] =
        (struct touch){at, count, channel, rank, actor->known[rank] + 1, writes};
}

/* Adds a list of one or two references. Those to another rank than `rank` are remote. */
static void print_refs(FILE *file, const char *name, uint32_t rank, const struct at *refs,
                       uint32_t nrefs, uint32_t count)
{
    fprintf(file, ", \"%s\": [", name);
    for (uint32_t i = 0; i < nrefs; i++) {
        uint32_t kind = refs[i].buffer == 'i' ? 0 : refs[i].buffer == 'o' ? 1 : 2;

        fprintf(file, "%s{", i > 0 ? ", " : "");
        if (refs[i].rank == rank)
            fprintf(file, "\"type\": \"%c\"", refs[i].buffer);
        else
            fprintf(file, "\"buffer_id\": %u", slot_of(rank, refs[i].rank) * 3 + kind);
        fprintf(file, ", \"index\": %u, \"size\": %u}", refs[i].index, count);
    }
    fprintf(file, "]");
}

/* Adds an op of a rank: dst = the sum of the sources. */
static void print_op(struct compiler *compiler, uint32_t rank, uint32_t channel, const char *name,
                     const struct at *srcs, uint32_t nsrcs, struct at dst, uint32_t count)
{
    struct actor *actor = find_actor(compiler, rank, channel);

    begin_op(actor, rank, name);
    print_refs(actor->file, "src_buff", rank, srcs, nsrcs, count);
    print_refs(actor->file, "dst_buff", rank, &dst, 1, count);
    fprintf(actor->file, ", \"channel_type\": \"memory\"%s}",
            nsrcs > 1 ? ", \"reduce_op\": \"sum\"" : "");
}

static void compile_packets(struct compiler *compiler, const struct action *action)
{
    uint32_t from = action->src.rank, to = action->dst.rank;
    struct at packets = {to, 's', compiler->scratch[to]}, srcs[] = {action->add, packets};

    compiler->scratch[to] += action->count;
    print_op(compiler, from, action->channel, "ppkt", &action->src, 1, packets, action->count);
    if (action->adds)
        print_op(compiler, to, action->channel, "repkt", srcs, 2, action->dst, action->count);
    else
        print_op(compiler, to, action->channel, "upkt", &packets, 1, action->dst, action->count);
}

static void compile_action(struct compiler *compiler, const struct action *action)
{
    bool is_remote = action->src.rank != action->dst.rank;
    uint32_t actor = action->adds ? action->dst.rank : action->src.rank;
    struct at srcs[] = {action->add, action->src};

    if (compiler->style == PACKETS && is_remote) {
        compile_packets(compiler, action);
        return;
    }
    /* With packets no rank touches memory of another rank that the other touches, too. */
    if (compiler->style == SIGNALS) {
        touch(compiler, actor, action->channel, action->src, action->count, false);
        touch(compiler, actor, action->channel, action->dst, action->count, true);
        if (action->adds)
            touch(compiler, actor, action->channel, action->add, action->count, false);
    }
    if (action->adds)
        print_op(compiler, actor, action->channel, is_remote ? "rre" : "re", srcs, 2, action->dst,
                 action->count);
    else
        print_op(compiler, actor, action->channel, is_remote ? "put" : "copy", &action->src, 1,
                 action->dst, action->count);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_block(FILE *file, struct compiler *compiler, uint32_t rank, uint32_t channel)
{
    uint32_t npeers = compiler->script->nranks - 1;
    struct actor *actor = find_actor(compiler, rank, channel);

    fclose(actor->file);
    fprintf(file,
            "%s    {\"id\": %u, \"ops\": [\n%s],\n     \"channels\": [{\"channel_type\": "
            "\"memory\", \"channel_ids\": [",
            channel > 0 ? ",\n" : "", channel, actor->text);
    for (uint32_t i = 0; i < npeers; i++)
        fprintf(file, "%s%u", i > 0 ? ", " : "", channel * npeers + i);
    fprintf(file, "]}],\n     \"remote_buffer_refs\": [{\"access_channel_type\": \"memory\", "
                  "\"remote_buffer_ids\": [");
    for (uint32_t i = 0; i < npeers * 3; i++)
        fprintf(file, "%s%u", i > 0 ? ", " : "", i);
    fprintf(file, "]}]}");
    free(actor->text);
    free(actor->known);
}

static void print_gpu(FILE *file, struct compiler *compiler, uint32_t rank)
{
    const struct script *script = compiler->script;
    uint32_t p = script->nranks;

    fprintf(
        file,
        "%s  {\"id\": %u, \"input_chunks\": %u, \"output_chunks\": %u, \"scratch_chunks\": %u,\n"
        "   \"threadblocks\": [\n",
        rank > 0 ? ",\n" : "", rank, tutti_input_blocks(script->collective, p) * script->chunks,
        tutti_output_blocks(script->collective, p) * script->chunks, compiler->scratch[rank]);
    for (uint32_t channel = 0; channel < compiler->nchannels; channel++)
        print_block(file, compiler, rank, channel);
    fprintf(file, "],\n   \"channels\": [{\"channel_type\": \"memory\", \"connected_to\": [");
    for (uint32_t i = 0; i < compiler->nchannels * (p - 1); i++)
        fprintf(file, "%s%u", i > 0 ? ", " : "",
                i % (p - 1) < rank ? i % (p - 1) : i % (p - 1) + 1);
    fprintf(file, "]}],\n   \"remote_buffers\": [");
    for (uint32_t i = 0; i < 3 * (p - 1); i++)
        fprintf(file, "%s{\"rank\": %u, \"type\": \"%c\"}", i > 0 ? ", " : "",
                i / 3 < rank ? i / 3 : i / 3 + 1, buffers[i % 3]);
    fprintf(file, "], \"semaphores\": []}");
}

char *script_json(const struct script *script, uint32_t channels, enum style style)
{
    struct compiler compiler = {.script = script, .style = style, .nchannels = channels};
    uint32_t nactors = script->nranks * channels;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    compiler.actors = calloc(nactors, sizeof(*compiler.actors));
    compiler.scratch = calloc(script->nranks, sizeof(*compiler.scratch));
    assert_non_null(file);
    assert_non_null(compiler.actors);
    assert_non_null(compiler.scratch);
    for (uint32_t i = 0; i < nactors; i++) {
        compiler.actors[i].file =
            open_memstream(&compiler.actors[i].text, &compiler.actors[i].size);
        compiler.actors[i].known = calloc(script->nranks, sizeof(uint32_t));
        assert_non_null(compiler.actors[i].file);
        assert_non_null(compiler.actors[i].known);
    }
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        compiler.scratch[rank] = script->scratch;
    for (uint32_t a = 0; a < script->nactions; a++)
        compile_action(&compiler, &script->actions[a]);
    fprintf(file,
            "{\"name\": \"generated\", \"collective\": \"%s\", \"protocol\": \"%s\",\n"
            " \"inplace\": %s, \"gpus\": [\n",
            tutti_collective_name(script->collective), style == PACKETS ? "LL" : "Simple",
            script->is_in_place ? "true" : "false");
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        print_gpu(file, &compiler, rank);
    fprintf(file, "]}\n");
    fclose(file);
    free(compiler.actors);
    free(compiler.scratch);
    free(compiler.touches);
    return text;
}
