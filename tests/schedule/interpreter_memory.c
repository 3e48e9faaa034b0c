/* SPDX-License-Identifier: Apache-2.0
 * The interpreter's memory. Inputs and expected outputs follow directly from the definitions of
 * the collectives. */
#include "schedule/interpreter_memory.h"

#include <stdlib.h>
#include <string.h>

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

struct value value_add(struct value a, struct value b)
{
    return (struct value){.sum = a.sum + b.sum, .mix = scramble(a.mix + b.mix)};
}

struct value value_fold(struct value sum, struct value next, uint32_t nranks)
{
    if (nranks == 2)
        return value_add(sum, next);
    return (struct value){.sum = sum.sum + next.sum, .mix = scramble(sum.mix * 3 + next.mix)};
}

static struct value input_value(uint32_t run, uint32_t rank, uint32_t chunk, uint32_t slice)
{
    uint64_t key = (((uint64_t)run * 4096 + rank) * 65536 + chunk) * SLICES + slice + 1;

    return (struct value){.sum = scramble(key), .mix = scramble(key + 0x123456789abcdefu)};
}

/* Memory that was never written; it is never part of a right result. */
static void poison(struct value *values, size_t count, uint64_t what)
{
    for (size_t i = 0; values != NULL && i < count; i++)
        values[i] = (struct value){.sum = scramble(~(what * 1048576 + i)), .mix = i};
}

static struct value *array(size_t count)
{
    struct value *values = calloc(count + 1, sizeof(*values));

    if (values == NULL)
        abort();
    return values;
}

static void init_rank(struct memory *memory, uint32_t rank)
{
    const struct tutti_schedule *schedule = memory->schedules[rank];
    enum tutti_collective collective = (enum tutti_collective)schedule->collective;
    struct memory_rank *own = &memory->ranks[rank];
    uint32_t k = schedule->chunks_per_block;
    int64_t shift;

    if (tutti_collective_has_input(collective, rank, schedule->root))
        own->ninput = tutti_input_blocks(collective, memory->nranks) * k;
    if (tutti_collective_has_output(collective, rank, schedule->root))
        own->noutput = tutti_output_blocks(collective, memory->nranks) * k;
    own->nuser = own->ninput + own->noutput;
    own->output_at = own->ninput;
    if (memory->in_place &&
        tutti_collective_in_place_shift(collective, rank, schedule->root, k, &shift)) {
        own->nuser = own->ninput > own->noutput ? own->ninput : own->noutput;
        own->input_at = own->ninput > own->noutput ? 0 : (uint32_t)shift;
        own->output_at = own->ninput > own->noutput ? (uint32_t)-shift : 0;
    }
    for (uint32_t run = 0; run < memory->nruns; run++) {
        own->user[run] = array(own->nuser * (size_t)SLICES);
        poison(own->user[run], own->nuser * (size_t)SLICES, rank * 16 + run);
    }
    own->scratch = array(schedule->scratch_chunks * (size_t)SLICES);
    poison(own->scratch, schedule->scratch_chunks * (size_t)SLICES, rank * 16 + 8);
    for (uint32_t half = 0; half < 2; half++) {
        own->window[half] = array(schedule->window_chunks * (size_t)SLICES);
        poison(own->window[half], schedule->window_chunks * (size_t)SLICES, rank * 16 + 9 + half);
    }
}

void memory_init(struct memory *memory, struct tutti_schedule *const *schedules, uint32_t nranks,
                 uint32_t nruns, bool in_place)
{
    *memory = (struct memory){.schedules = schedules, .nranks = nranks, .nruns = nruns,
                              .in_place = in_place};
    memory->ranks = calloc(nranks, sizeof(*memory->ranks));
    if (memory->ranks == NULL)
        abort();
    for (uint32_t rank = 0; rank < nranks; rank++)
        init_rank(memory, rank);
}

void memory_fini(struct memory *memory)
{
    for (uint32_t rank = 0; rank < memory->nranks; rank++) {
        for (uint32_t run = 0; run < MOST_RUNS; run++)
            free(memory->ranks[rank].user[run]);
        free(memory->ranks[rank].scratch);
        free(memory->ranks[rank].window[0]);
        free(memory->ranks[rank].window[1]);
    }
    for (uint32_t run = 0; run < MOST_RUNS; run++)
        free(memory->agreed[run]);
    free(memory->ranks);
}

struct value *memory_at(struct memory *memory, uint32_t rank, uint32_t run, struct tutti_span span,
                        uint32_t i, uint32_t slice)
{
    struct memory_rank *own = &memory->ranks[rank];
    size_t at = (size_t)span.first + i;

    switch (span.buffer) {
    case TUTTI_BUF_INPUT:
        return &own->user[run][(own->input_at + at) * SLICES + slice];
    case TUTTI_BUF_OUTPUT:
        return &own->user[run][(own->output_at + at) * SLICES + slice];
    case TUTTI_BUF_SCRATCH:
        return &own->scratch[at * SLICES + slice];
    case TUTTI_BUF_WINDOW:
        return &own->window[run & 1][at * SLICES + slice];
    default:
        abort();
    }
}

void memory_give(struct memory *memory, uint32_t rank, uint32_t run)
{
    struct memory_rank *own = &memory->ranks[rank];

    for (uint32_t c = 0; c < own->ninput; c++)
        for (uint32_t slice = 0; slice < SLICES; slice++)
            own->user[run][(own->input_at + c) * (size_t)SLICES + slice] =
                input_value(run, rank, c, slice);
}

/* The expected output chunk c of `rank`. For a reduction only the sum is known in advance. */
static struct value expected(const struct memory *memory, uint32_t rank, uint32_t run, uint32_t c,
                             uint32_t slice)
{
    const struct tutti_schedule *schedule = memory->schedules[rank];
    uint32_t k = schedule->chunks_per_block;
    struct value value = {0};

    switch (schedule->collective) {
    case TUTTI_BROADCAST:
        return input_value(run, schedule->root, c, slice);
    case TUTTI_SCATTER:
        return input_value(run, schedule->root, rank * k + c, slice);
    case TUTTI_ALLGATHER:
    case TUTTI_GATHER:
        return input_value(run, c / k, c % k, slice);
    case TUTTI_ALLTOALL:
        return input_value(run, c / k, rank * k + c % k, slice);
    default:
        if (schedule->collective == TUTTI_REDUCE_SCATTER)
            c += rank * k;
        for (uint32_t other = 0; other < memory->nranks; other++)
            if (tutti_collective_is_source(schedule->collective, other, rank, schedule->root))
                value.sum += input_value(run, other, c, slice).sum;
        return value;
    }
}

static bool agrees(struct memory *memory, uint32_t run, uint32_t count, const struct value *output)
{
    if (memory->agreed[run] == NULL) {
        memory->agreed[run] = array(count);
        memcpy(memory->agreed[run], output, count * sizeof(*output));
    }
    return memcmp(memory->agreed[run], output, count * sizeof(*output)) == 0;
}

bool memory_take(struct memory *memory, uint32_t rank, uint32_t run)
{
    struct memory_rank *own = &memory->ranks[rank];
    struct value *output = own->user[run] + own->output_at * (size_t)SLICES;
    const struct tutti_schedule *schedule = memory->schedules[rank];
    bool reduces = tutti_collective_reduces((enum tutti_collective)schedule->collective);
    bool is_right = true, is_overlaid = own->nuser < own->ninput + own->noutput;

    for (uint32_t c = 0; c < own->noutput; c++)
        for (uint32_t slice = 0; slice < SLICES; slice++) {
            struct value found = output[c * SLICES + slice];
            struct value right = expected(memory, rank, run, c, slice);

            if (found.sum != right.sum || (!reduces && found.mix != right.mix))
                is_right = false;
        }
    for (uint32_t i = 0; i < own->ninput * SLICES && !is_overlaid; i++) {
        struct value right = input_value(run, rank, i / SLICES, i % SLICES);

        if (memcmp(&own->user[run][own->input_at * SLICES + i], &right, sizeof(right)) != 0)
            is_right = false;
    }
    if (schedule->collective == TUTTI_ALLREDUCE &&
        !agrees(memory, run, own->noutput * SLICES, output))
        is_right = false;
    poison(own->user[run], own->nuser * (size_t)SLICES, rank * 16 + run);
    return is_right;
}

bool memory_is_right(const struct memory *memory)
{
    bool is_right = true;

    for (uint32_t rank = 0; rank < memory->nranks; rank++)
        for (uint32_t run = 0; run < memory->nruns; run++) {
            const struct memory_rank *own = &memory->ranks[rank];
            size_t count = own->nuser * (size_t)SLICES;
            struct value *fresh = array(count);

            poison(fresh, count, rank * 16 + run);
            if (memcmp(fresh, own->user[run], count * sizeof(*fresh)) != 0)
                is_right = false;
            free(fresh);
        }
    return is_right;
}
