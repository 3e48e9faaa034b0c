/* SPDX-License-Identifier: Apache-2.0
 * Runs schedules on numbers.
 *
 * A value is a pair: a sum, which shows contributions that were lost or counted twice, and a mix
 * that depends on the bracketing. Every chunk has three slices, and each slice has its own value.
 * One slice of one step moves at a time. */
#include "schedule/interpreter_machine.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_random(struct machine *machine)
{
    machine->random ^= machine->random << 13;
    machine->random ^= machine->random >> 7;
    machine->random ^= machine->random << 17;
    return machine->random;
}

static void *zeroed(size_t count, size_t size)
{
    void *array = calloc(count + 1, size);

    if (array == NULL)
        abort();
    return array;
}

/* ---- setting up ------------------------------------------------------------------- */

struct lane *machine_lane(struct machine *machine, uint32_t rank, uint32_t peer, uint32_t channel,
                            bool is_sending, bool is_receiving)
{
    struct lane *lane;

    for (uint32_t i = 0; i < machine->nlanes; i++) {
        lane = &machine->lanes[i];
        if (lane->rank == rank && lane->peer == peer && lane->channel == channel &&
            lane->sends == is_sending && lane->receives == is_receiving)
            return lane;
    }
    machine->lanes = realloc(machine->lanes, (machine->nlanes + 1) * sizeof(*lane));
    lane = &machine->lanes[machine->nlanes++];
    *lane = (struct lane){.rank = rank, .peer = peer, .channel = channel, .sends = is_sending,
                          .receives = is_receiving, .priority = next_random(machine)};
    lane->items = zeroed(machine->schedules[rank]->nsteps, sizeof(*lane->items));
    return lane;
}

static void add_item(struct lane *lane, uint32_t step)
{
    lane->items[lane->count++] =
        (struct item){.step = step, .sends = lane->sends, .receives = lane->receives};
}

static void set_up_rank(struct machine *machine, uint32_t rank)
{
    const struct tutti_schedule *schedule = machine->schedules[rank];
    struct rank_state *state = &machine->ranks[rank];
    uint32_t nbounce = 0;

    state->halves_left = zeroed(schedule->nsteps, 1);
    state->received = zeroed(schedule->nsteps, 1);
    state->forwarded = zeroed(schedule->nsteps, 1);
    state->bounce_first = zeroed(schedule->nsteps, sizeof(uint32_t));
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        state->bounce_first[i] = nbounce;
        nbounce += step->src.count;
        if (step_receives(step))
            add_item(machine_lane(machine, rank, (uint32_t)step->from, step->channel, false, true),
                     i);
        if (step_sends(step))
            add_item(machine_lane(machine, rank, (uint32_t)step->to, step->channel, true, false),
                     i);
        if (!step_receives(step) && !step_sends(step))
            add_item(machine_lane(machine, rank, rank, 0, false, false), i);
        if (step_is_one_sided(step))
            machine->nruns = 3;
    }
    state->bounce = zeroed(nbounce, sizeof(*state->bounce));
}

static void start_run(struct machine *machine, uint32_t rank)
{
    const struct tutti_schedule *schedule = machine->schedules[rank];
    struct rank_state *state = &machine->ranks[rank];

    state->is_running = true;
    state->nhalves_left = 0;
    state->nlocal_left = 0;
    memset(state->received, 0, schedule->nsteps);
    memset(state->forwarded, 0, schedule->nsteps);
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        state->halves_left[i] = step_receives(step) && step_sends(step) ? 2 : 1;
        state->nhalves_left += state->halves_left[i];
        state->nlocal_left += !step_receives(step) && !step_sends(step);
    }
    for (uint32_t i = 0; i < machine->nlanes; i++)
        if (machine->lanes[i].rank == rank)
            machine->lanes[i].head = 0;
    memory_give(&machine->memory, rank, state->run);
    if (state->nlocal_left == 0)
        state->signals = (state->run + 1) * schedule->nsignals;
}

static bool may_start(const struct machine *machine, uint32_t rank)
{
    const struct rank_state *state = &machine->ranks[rank];
    uint32_t nsignals = machine->schedules[rank]->nsignals;

    if (state->is_running || state->run == machine->nruns)
        return false;
    for (uint32_t other = 0; other < machine->nranks && state->run > 0; other++)
        if (other != rank && machine->ranks[other].run < state->run &&
            machine->ranks[other].signals < (state->run - 1) * nsignals + 1)
            return false;
    return true;
}

/* True if the rank has met all others in the barrier, which it must before it leaves. */
static bool has_met_all(const struct machine *machine, uint32_t rank)
{
    uint32_t run = machine->ranks[rank].run;

    if (machine->schedules[rank]->collective != TUTTI_BARRIER)
        return true;
    for (uint32_t other = 0; other < machine->nranks; other++)
        if (machine->ranks[other].run < run ||
            (machine->ranks[other].run == run && !machine->ranks[other].is_running))
            return false;
    return true;
}

/* Start and end runs; true if anything changed. */
static bool move_runs(struct machine *machine)
{
    bool has_moved = false;

    for (uint32_t rank = 0; rank < machine->nranks; rank++) {
        struct rank_state *state = &machine->ranks[rank];

        if (state->is_running && state->nhalves_left == 0) {
            if (!memory_take(&machine->memory, rank, state->run) || !has_met_all(machine, rank))
                machine->outcome = OUTCOME_WRONG_RESULT;
            state->is_running = false;
            state->run++;
            has_moved = true;
        }
        /* Calling late is the caller's right. */
        if (may_start(machine, rank) && next_random(machine) % (state->is_late ? 200 : 4) == 0) {
            state->is_late = (next_random(machine) & 3) == 0;
            start_run(machine, rank);
            has_moved = true;
        }
    }
    return has_moved;
}

static bool move_one(struct machine *machine)
{
    uint32_t nlanes = machine->nlanes, first = 0;

    if (machine->options->is_uniform && nlanes > 0)
        first = (uint32_t)(next_random(machine) % nlanes);
    for (uint32_t i = 0; i < nlanes; i++)
        if (machine_move_lane(machine, &machine->lanes[(first + i) % nlanes]))
            return true;
    return false;
}

static int compare_priority(const void *a, const void *b)
{
    const struct lane *left = a, *right = b;

    return left->priority < right->priority ? -1 : left->priority > right->priority;
}

static bool is_over(const struct machine *machine)
{
    for (uint32_t rank = 0; rank < machine->nranks; rank++)
        if (machine->ranks[rank].run < machine->nruns)
            return false;
    return true;
}

static void run_machine(struct machine *machine)
{
    uint32_t nidle = 0;

    /* A run may start late by chance; being idle for so long is no chance. */
    while (machine->outcome == OUTCOME_RIGHT && !is_over(machine) && nidle < 5000) {
        bool has_moved = move_runs(machine);

        nidle = move_one(machine) || has_moved ? 0 : nidle + 1;
    }
    if (machine->outcome != OUTCOME_RIGHT)
        return;
    if (!is_over(machine))
        machine->outcome = OUTCOME_DEADLOCK;
    else if (!memory_is_right(&machine->memory))
        machine->outcome = OUTCOME_WRONG_RESULT;
    for (uint32_t i = 0; i < machine->nlanes; i++)
        if (machine->outcome == OUTCOME_RIGHT &&
            machine->lanes[i].slices_head != machine->lanes[i].nslices)
            machine->outcome = OUTCOME_MISMATCH;
}

static void tear_down(struct machine *machine)
{
    for (uint32_t i = 0; i < machine->nlanes; i++) {
        free(machine->lanes[i].items);
        free(machine->lanes[i].queue);
        free(machine->lanes[i].queue_counts);
    }
    for (uint32_t rank = 0; rank < machine->nranks; rank++) {
        free(machine->ranks[rank].halves_left);
        free(machine->ranks[rank].received);
        free(machine->ranks[rank].forwarded);
        free(machine->ranks[rank].bounce);
        free(machine->ranks[rank].bounce_first);
    }
    free(machine->ranks);
    free(machine->lanes);
    memory_fini(&machine->memory);
}

enum outcome interpret(struct tutti_schedule *const *schedules, uint32_t nranks,
                       const struct interpreter_options *options)
{
    struct machine machine = {.schedules = schedules, .nranks = nranks, .nruns = 1,
                              .options = options, .outcome = OUTCOME_RIGHT,
                              .random = options->seed * 0x9e3779b97f4a7c15u + 1};

    machine.ranks = zeroed(nranks, sizeof(*machine.ranks));
    for (uint32_t rank = 0; rank < nranks; rank++) {
        set_up_rank(&machine, rank);
        machine.ranks[rank].is_late = (next_random(&machine) & 3) == 0;
    }
    /* A receive without any send still asks for the sender's lane. */
    for (uint32_t rank = 0; rank < nranks; rank++)
        for (uint32_t i = 0; i < schedules[rank]->nsteps; i++)
            if (step_receives(&schedules[rank]->steps[i]))
                machine_lane(&machine, (uint32_t)schedules[rank]->steps[i].from, rank,
                        schedules[rank]->steps[i].channel, true, false);
    if (!options->is_uniform && machine.nlanes > 0)
        qsort(machine.lanes, machine.nlanes, sizeof(*machine.lanes), compare_priority);
    memory_init(&machine.memory, schedules, nranks, machine.nruns, options->in_place);
    run_machine(&machine);
    tear_down(&machine);
    return machine.outcome;
}
