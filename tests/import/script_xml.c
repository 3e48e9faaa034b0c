/* SPDX-License-Identifier: Apache-2.0
 * Compiles scripts to the XML of MSCCL. A remote action is a step of the sender and a step of the
 * receiver. A step waits for all earlier steps of other threadblocks that conflict with it. */
#include "import/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS_MAX = 1024, WAITS_MAX = 64, NO_PEER = -1 };

struct wait {
    uint32_t block, step;
};

struct step {
    const char *type;
    struct at src, dst;
    uint32_t count, nwaits;
    struct wait waits[WAITS_MAX];
};

struct block {
    uint32_t rank, channel;
    int send, recv; /* peers */
    struct step *steps;
    uint32_t nsteps;
};

struct touch {
    struct at at;
    uint32_t count, block, step;
    bool writes;
};

struct compiler {
    enum layout layout;
    struct block *blocks;
    uint32_t nblocks;
    struct touch *touches;
    uint32_t ntouches;
};

/* Returns true if the block can hold a step with these peers; then *block gets them. */
static bool fits(enum layout layout, struct block *block, int send, int recv)
{
    int peer = send != NO_PEER ? send : recv;

    switch (layout) {
    case BY_PEER: return block->send == peer && block->recv == peer;
    case BY_DIRECTION: return block->send == send && block->recv == recv;
    default: break;
    }
    if ((send != NO_PEER && block->send != NO_PEER && block->send != send) ||
        (recv != NO_PEER && block->recv != NO_PEER && block->recv != recv))
        return false;
    block->send = send != NO_PEER ? send : block->send;
    block->recv = recv != NO_PEER ? recv : block->recv;
    return true;
}

/* Finds a block that has the peer already, if there is one, because two blocks must not share the
 * channel to a peer. */
static uint32_t find_block(struct compiler *compiler, uint32_t rank, uint32_t channel, int send,
                           int recv)
{
    int peer = compiler->layout == BY_PEER && send == NO_PEER ? recv : send;
    struct block *block;

    for (uint32_t b = 0; b < compiler->nblocks; b++) {
        block = &compiler->blocks[b];
        if (block->rank == rank && block->channel == channel && block->send == send &&
            (send != NO_PEER) && fits(compiler->layout, block, send, recv))
            return b;
        if (block->rank == rank && block->channel == channel && block->recv == recv &&
            (recv != NO_PEER) && fits(compiler->layout, block, send, recv))
            return b;
    }
    for (uint32_t b = 0; b < compiler->nblocks; b++) {
        block = &compiler->blocks[b];
        if (block->rank == rank && block->channel == channel &&
            fits(compiler->layout, block, send, recv))
            return b;
    }
    assert_true(compiler->nblocks < BLOCKS_MAX);
    block = &compiler->blocks[compiler->nblocks];
    *block = (struct block){.rank = rank,
                            .channel = channel,
                            .send = compiler->layout == BY_PEER ? peer : send,
                            .recv = compiler->layout == BY_PEER ? peer : recv};
    return compiler->nblocks++;
}

static bool overlaps(const struct touch *touch, struct at at, uint32_t count)
{
    return touch->at.rank == at.rank && touch->at.buffer == at.buffer &&
           touch->at.index < at.index + count && at.index < touch->at.index + touch->count;
}

/* Lets the step wait for a step of another block. Of one block only the last step counts. */
static void add_wait(struct step *step, uint32_t block, uint32_t other)
{
    uint32_t w = 0;

    while (w < step->nwaits && step->waits[w].block != block)
        w++;
    if (w == step->nwaits) {
        assert_true(step->nwaits < WAITS_MAX);
        step->waits[step->nwaits++] = (struct wait){block, other};
    }
    step->waits[w].step = other > step->waits[w].step ? other : step->waits[w].step;
}

/* Records that the last step of a block touches chunks, and adds what it must wait for. */
static void add_touch(struct compiler *compiler, uint32_t block, struct at at, uint32_t count,
                      bool writes)
{
    uint32_t own = compiler->blocks[block].nsteps - 1;

    for (uint32_t t = 0; t < compiler->ntouches; t++) {
        const struct touch *touch = &compiler->touches[t];

        if ((touch->writes || writes) && touch->block != block && overlaps(touch, at, count))
            add_wait(&compiler->blocks[block].steps[own], touch->block, touch->step);
    }
    compiler->touches =
        realloc(compiler->touches, (compiler->ntouches + 1) * sizeof(*compiler->touches));
    assert_non_null(compiler->touches);
    compiler->touches[compiler->ntouches++] = (struct touch){at, count, block, own, writes};
}

static struct step *add_step(struct compiler *compiler, uint32_t block, const char *type,
                             const struct action *action)
{
    struct block *own = &compiler->blocks[block];

    own->steps = realloc(own->steps, (own->nsteps + 1) * sizeof(*own->steps));
    assert_non_null(own->steps);
    own->steps[own->nsteps] =
        (struct step){.type = type, .src = action->src, .dst = action->dst, .count = action->count};
    return &own->steps[own->nsteps++];
}

static bool is_same(struct at a, struct at b)
{
    return a.rank == b.rank && a.buffer == b.buffer && a.index == b.index;
}

/* Returns true if the last step of a block wrote the chunks, and no step has written them since. */
static bool wrote_last(const struct compiler *compiler, uint32_t block, struct at at,
                       uint32_t count)
{
    uint32_t t = compiler->ntouches;

    while (t > 0 &&
           !(compiler->touches[t - 1].writes && overlaps(&compiler->touches[t - 1], at, count)))
        t--;
    return t > 0 && compiler->touches[t - 1].block == block &&
           compiler->touches[t - 1].step + 1 == compiler->blocks[block].nsteps;
}

/* Makes one step of a send and of the step before it in its block, if that receives the chunks. */
static bool join_send(struct compiler *compiler, uint32_t block, const struct action *action)
{
    struct block *own = &compiler->blocks[block];
    struct step *last = own->nsteps > 0 ? &own->steps[own->nsteps - 1] : NULL;

    if (compiler->layout != JOINED || last == NULL || last->count != action->count ||
        !is_same(last->dst, action->src) ||
        !wrote_last(compiler, block, action->src, action->count) ||
        (strcmp(last->type, "r") != 0 && strcmp(last->type, "rrc") != 0))
        return false;
    last->type = strcmp(last->type, "r") == 0 ? "rcs" : "rrcs";
    add_touch(compiler, block, action->src, action->count, false);
    return true;
}

static void compile_action(struct compiler *compiler, const struct action *action)
{
    uint32_t channel = action->channel, block, from = action->src.rank, to = action->dst.rank;
    struct step *step;

    if (from == to) {
        block = find_block(compiler, to, channel, NO_PEER, NO_PEER);
        step = add_step(compiler, block, action->adds ? "re" : "cpy", action);
        /* re adds to its destination, so another summand is copied there first. */
        if (action->adds && !is_same(action->add, action->dst)) {
            step->type = "cpy";
            step->src = action->add;
            add_touch(compiler, block, action->add, action->count, false);
            add_touch(compiler, block, action->dst, action->count, true);
            add_step(compiler, block, "re", action);
        }
        add_touch(compiler, block, action->src, action->count, false);
        add_touch(compiler, block, action->dst, action->count, true);
        return;
    }
    block = find_block(compiler, from, channel, (int)to, NO_PEER);
    if (!join_send(compiler, block, action)) {
        add_step(compiler, block, "s", action);
        add_touch(compiler, block, action->src, action->count, false);
    }
    block = find_block(compiler, to, channel, NO_PEER, (int)from);
    step = add_step(compiler, block, action->adds ? "rrc" : "r", action);
    step->src = action->adds ? action->add : action->dst;
    if (action->adds)
        add_touch(compiler, block, action->add, action->count, false);
    add_touch(compiler, block, action->dst, action->count, true);
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint32_t lines_of(const struct step *step)
{
    return step->nwaits > 1 ? step->nwaits : 1;
}

/* The number in the file of a step: a step that waits for several steps has nops before it. */
static uint32_t number_of(const struct block *block, uint32_t step)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < step; i++)
        number += lines_of(&block->steps[i]);
    return number + lines_of(&block->steps[step]) - 1;
}

static void print_step(FILE *file, const struct compiler *compiler, uint32_t number,
                       const struct step *step, const uint32_t *ids)
{
    for (uint32_t line = 0; line < lines_of(step); line++) {
        bool is_last = line + 1 == lines_of(step), waits = line < step->nwaits;

        fprintf(file,
                "   <step s=\"%u\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
                "dstoff=\"%d\" cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"1\"/>\n",
                number + line, is_last ? step->type : "nop", is_last ? step->src.buffer : 'i',
                is_last ? (int)step->src.index : -1, is_last ? step->dst.buffer : 'o',
                is_last ? (int)step->dst.index : -1, is_last ? step->count : 0,
                waits ? (int)ids[step->waits[line].block] : -1,
                waits ? (int)number_of(&compiler->blocks[step->waits[line].block],
                                       step->waits[line].step)
                      : -1);
    }
}

static void print_gpu(FILE *file, const struct compiler *compiler, const struct script *script,
                      uint32_t rank)
{
    uint32_t inputs = tutti_input_blocks(script->collective, script->nranks) * script->chunks;
    uint32_t outputs = tutti_output_blocks(script->collective, script->nranks) * script->chunks;
    uint32_t ids[BLOCKS_MAX], id = 0;

    fprintf(file, " <gpu id=\"%u\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", rank,
            script->is_in_place && inputs < outputs ? 0 : inputs,
            script->is_in_place && inputs >= outputs ? 0 : outputs, script->scratch);
    for (uint32_t b = 0; b < compiler->nblocks; b++)
        ids[b] = compiler->blocks[b].rank == rank ? id++ : 0;
    for (uint32_t b = 0; b < compiler->nblocks; b++) {
        const struct block *block = &compiler->blocks[b];

        if (block->rank != rank)
            continue;
        fprintf(file, "  <tb id=\"%u\" send=\"%d\" recv=\"%d\" chan=\"%u\">\n", ids[b], block->send,
                block->recv, block->channel);
        for (uint32_t i = 0; i < block->nsteps; i++)
            print_step(file, compiler, number_of(block, i) + 1 - lines_of(&block->steps[i]),
                       &block->steps[i], ids);
        fprintf(file, "  </tb>\n");
    }
    fprintf(file, " </gpu>\n");
}

char *script_xml(const struct script *script, const char *protocol, enum layout layout)
{
    struct compiler compiler = {.layout = layout};
    uint32_t inputs = tutti_input_blocks(script->collective, script->nranks);
    uint32_t outputs = tutti_output_blocks(script->collective, script->nranks);
    uint32_t blocks = inputs > outputs ? inputs : outputs;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    compiler.blocks = calloc(BLOCKS_MAX, sizeof(*compiler.blocks));
    assert_non_null(file);
    assert_non_null(compiler.blocks);
    if (tutti_collective_has_root(script->collective))
        blocks = 1;
    for (uint32_t a = 0; a < script->nactions; a++)
        compile_action(&compiler, &script->actions[a]);
    fprintf(file,
            "<algo name=\"generated\" proto=\"%s\" nchannels=\"9\" nchunksperloop=\"%u\" "
            "ngpus=\"%u\" coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"0\" "
            "maxBytes=\"0\">\n",
            protocol, blocks * script->chunks, script->nranks,
            tutti_collective_name(script->collective), script->is_in_place, !script->is_in_place);
    for (uint32_t rank = 0; rank < script->nranks; rank++)
        print_gpu(file, &compiler, script, rank);
    fprintf(file, "</algo>\n");
    fclose(file);
    for (uint32_t b = 0; b < compiler.nblocks; b++)
        free(compiler.blocks[b].steps);
    free(compiler.blocks);
    free(compiler.touches);
    return text;
}
