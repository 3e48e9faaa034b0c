/* SPDX-License-Identifier: Apache-2.0
 * Builds scripts. */
#include "import/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct at input_at(const struct script *script, uint32_t rank, uint32_t index)
{
    uint32_t inputs = tutti_input_blocks(script->collective, script->nranks);
    uint32_t outputs = tutti_output_blocks(script->collective, script->nranks);

    if (script->is_in_place && inputs < outputs)
        return (struct at){rank, 'o', rank * script->chunks + index};
    return (struct at){rank, 'i', index};
}

struct at output_at(const struct script *script, uint32_t rank, uint32_t index)
{
    uint32_t inputs = tutti_input_blocks(script->collective, script->nranks);
    uint32_t outputs = tutti_output_blocks(script->collective, script->nranks);

    if (script->is_in_place && inputs >= outputs)
        return (struct at){rank, 'i', index + (inputs > outputs ? rank * script->chunks : 0)};
    return (struct at){rank, 'o', index};
}

struct at scratch_at(struct script *script, uint32_t rank, uint32_t index)
{
    script->scratch = index >= script->scratch ? index + 1 : script->scratch;
    return (struct at){rank, 's', index};
}

static void add_action(struct script *script, struct action action)
{
    if (script->nactions == script->capacity) {
        script->capacity = script->capacity * 2 + 64;
        script->actions = realloc(script->actions, script->capacity * sizeof(*script->actions));
        assert_non_null(script->actions);
    }
    script->actions[script->nactions++] = action;
}

void copy(struct script *script, struct at src, struct at dst, uint32_t count, uint32_t channel)
{
    if (src.rank != dst.rank || src.buffer != dst.buffer || src.index != dst.index)
        add_action(script,
                   (struct action){.src = src, .dst = dst, .count = count, .channel = channel});
}

void add_to(struct script *script, struct at src, struct at add, struct at dst, uint32_t count,
            uint32_t channel)
{
    assert_int_equal(add.rank, dst.rank);
    add_action(
        script,
        (struct action){
            .src = src, .add = add, .dst = dst, .adds = true, .count = count, .channel = channel});
}

void script_free(struct script *script)
{
    free(script->actions);
}

static struct at part_of(struct at at, uint32_t offset, uint32_t instances, uint32_t instance)
{
    at.index = (at.index + offset) * instances + instance;
    return at;
}

struct script script_repeat(const struct script *script, uint32_t instances, uint32_t channels)
{
    struct script repeated = *script;

    repeated.actions = NULL;
    repeated.nactions = repeated.capacity = 0;
    repeated.chunks *= instances;
    repeated.scratch *= instances;
    for (uint32_t a = 0; a < script->nactions; a++)
        for (uint32_t instance = 0; instance < instances; instance++)
            for (uint32_t i = 0; i < script->actions[a].count; i++) {
                struct action action = script->actions[a];

                action.src = part_of(action.src, i, instances, instance);
                action.add = part_of(action.add, i, instances, instance);
                action.dst = part_of(action.dst, i, instances, instance);
                action.count = 1;
                action.channel += instance * channels;
                add_action(&repeated, action);
            }
    return repeated;
}
