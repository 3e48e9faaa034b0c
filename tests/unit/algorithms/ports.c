/* SPDX-License-Identifier: Apache-2.0
 * Computes the times of all steps by relaxation: it sweeps over all ranks until no time grows. */
#include "unit/algorithms/ports.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Emitted steps are not fused yet: each two-sided one either sends or receives. */
bool is_send(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_SEND;
}

bool is_receive(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_REDUCE;
}

struct tutti_schedule *emit_rank(const struct tutti_algorithm *algorithm,
                                 const struct tutti_shape *shape)
{
    struct tutti_shape resolved = *shape;
    struct tutti_schedule *schedule;
    struct tutti_build build;

    assert_int_equal(tutti_algorithm_options(algorithm, &shape->options, &resolved.options),
                     TUTTI_OK);
    assert_int_equal(tutti_build_init(&build, algorithm->collective, &resolved), TUTTI_OK);
    assert_int_equal(tutti_algorithm_emit(algorithm, &resolved, &build), TUTTI_OK);
    assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_OK);
    return schedule;
}

/* The receives of `rank` from `peer` are met by the sends, in order, on each channel. */
static void find_mates(struct world *world, uint32_t rank)
{
    const struct tutti_schedule *own = world->schedules[rank];
    uint32_t *next = calloc((size_t)world->nranks * own->nchannels, sizeof(*next));

    assert_non_null(next);
    for (uint32_t at = 0; at < own->nsteps; at++) {
        const struct tutti_step *step = &own->steps[at];
        const struct tutti_schedule *peer;
        uint32_t *from;

        if (!is_receive(step))
            continue;
        peer = world->schedules[step->from];
        from = &next[(uint32_t)step->from * own->nchannels + step->channel];
        while (*from < peer->nsteps &&
               !(is_send(&peer->steps[*from]) && peer->steps[*from].to == (int32_t)rank &&
                 peer->steps[*from].channel == step->channel))
            ++*from;
        assert_true(*from < peer->nsteps);
        world->mates[rank][at] = (struct mate){.rank = (uint32_t)step->from, .step = *from};
        world->mates[step->from][*from] = (struct mate){.rank = rank, .step = at};
        ++*from;
    }
    free(next);
}

void world_init(struct world *world, const struct tutti_algorithm *algorithm,
                const struct tutti_shape *shape)
{
    uint32_t nranks = shape->nranks;
    struct tutti_options options;

    assert_int_equal(tutti_algorithm_options(algorithm, &shape->options, &options), TUTTI_OK);
    world->nranks = nranks;
    world->is_segmented = options.value[TUTTI_SEGMENTS] > 1;
    world->schedules = calloc(nranks, sizeof(*world->schedules));
    world->mates = calloc(nranks, sizeof(*world->mates));
    assert_true(world->schedules != NULL && world->mates != NULL);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape own = *shape;

        own.rank = rank;
        world->schedules[rank] = emit_rank(algorithm, &own);
        world->mates[rank] = calloc(world->schedules[rank]->nsteps + 1, sizeof(struct mate));
        assert_non_null(world->mates[rank]);
    }
    for (uint32_t rank = 0; rank < nranks; rank++)
        find_mates(world, rank);
}

void world_fini(struct world *world)
{
    for (uint32_t rank = 0; rank < world->nranks; rank++) {
        tutti_schedule_destroy(world->schedules[rank]);
        free(world->mates[rank]);
    }
    free(world->schedules);
    free(world->mates);
}

/* ---- time --------------------------------------------------------------------------- */

struct clock {
    const struct world *world;
    bool counts_chunks;
    uint32_t **complete; /* per rank and step: when it is */
};

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Returns the step before this one in the same direction on its own rank. */
struct before {
    uint32_t start, complete;
    int32_t peer;
    uint8_t channel;
};

static uint32_t ready_at(const struct clock *clock, uint32_t rank, uint32_t at, uint32_t start)
{
    const struct tutti_schedule *schedule = clock->world->schedules[rank];
    const struct tutti_step *step = &schedule->steps[at];

    for (uint32_t i = 0; i < step->dep_count; i++)
        start = later(start, clock->complete[rank][schedule->deps[step->dep_first + i]]);
    return start;
}

static bool relax_message(struct clock *clock, uint32_t rank, uint32_t at, struct before *before)
{
    const struct tutti_step *step = &clock->world->schedules[rank]->steps[at];
    const struct mate *mate = &clock->world->mates[rank][at];
    uint32_t length = !clock->counts_chunks ? 1 : is_send(step) ? step->src.count : step->dst.count;
    int32_t peer = is_send(step) ? step->to : step->from;
    bool is_joined = !clock->counts_chunks && !clock->world->is_segmented &&
                     before->peer == peer && before->channel == step->channel;
    uint32_t start = ready_at(clock, rank, at, is_joined ? before->start : before->complete);
    uint32_t *complete = &clock->complete[rank][at];
    uint32_t *theirs = &clock->complete[mate->rank][mate->step];
    bool grew = start + length > *complete;

    /* From when both ends are ready. */
    *complete = later(start + length, *complete);
    *theirs = later(*complete, *theirs);
    *before = (struct before){.start = *complete - length, .complete = *complete, .peer = peer,
                              .channel = step->channel};
    return grew;
}

/* One sweep over a rank's steps; true if any is later than before. */
static bool relax(struct clock *clock, uint32_t rank)
{
    const struct tutti_schedule *schedule = clock->world->schedules[rank];
    struct before before[2] = {{.peer = TUTTI_NO_RANK}, {.peer = TUTTI_NO_RANK}};
    uint32_t local = 0;
    bool grew = false;

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];
        uint32_t *complete = &clock->complete[rank][at];

        if (is_send(step) || is_receive(step)) {
            grew = relax_message(clock, rank, at, &before[is_send(step)]) || grew;
            continue;
        }
        local = ready_at(clock, rank, at, local);
        grew = grew || local > *complete;
        *complete = later(local, *complete);
    }
    return grew;
}

static uint32_t last_time(const struct world *world, bool counts_chunks)
{
    struct clock clock = {.world = world, .counts_chunks = counts_chunks,
                          .complete = calloc(world->nranks, sizeof(*clock.complete))};
    uint32_t last = 0;
    bool grew = true;

    assert_non_null(clock.complete);
    for (uint32_t rank = 0; rank < world->nranks; rank++) {
        clock.complete[rank] = calloc(world->schedules[rank]->nsteps + 1, sizeof(uint32_t));
        assert_non_null(clock.complete[rank]);
    }
    while (grew) {
        grew = false;
        for (uint32_t rank = 0; rank < world->nranks; rank++)
            grew = relax(&clock, rank) || grew;
    }
    for (uint32_t rank = 0; rank < world->nranks; rank++) {
        for (uint32_t at = 0; at < world->schedules[rank]->nsteps; at++)
            last = later(last, clock.complete[rank][at]);
        free(clock.complete[rank]);
    }
    free(clock.complete);
    return last;
}

uint32_t world_rounds(const struct world *world)
{
    return last_time(world, false);
}

uint32_t world_chunks(const struct world *world)
{
    return last_time(world, true);
}

/* ---- counts --------------------------------------------------------------------------- */

struct count count_messages(const struct tutti_algorithm *algorithm,
                            const struct tutti_shape *shape)
{
    struct count count = {.sent_min = UINT32_MAX, .received_min = UINT32_MAX};
    struct world world;

    world_init(&world, algorithm, shape);
    for (uint32_t rank = 0; rank < shape->nranks; rank++) {
        const struct tutti_schedule *schedule = world.schedules[rank];
        uint32_t sent = 0, received = 0;

        for (uint32_t at = 0; at < schedule->nsteps; at++) {
            const struct tutti_step *step = &schedule->steps[at];

            if (is_send(step))
                sent += step->src.count;
            if (is_receive(step))
                received += step->dst.count;
        }
        count.sent_max = later(count.sent_max, sent);
        count.received_max = later(count.received_max, received);
        count.sent_min = sent < count.sent_min ? sent : count.sent_min;
        count.received_min = received < count.received_min ? received : count.received_min;
    }
    count.rounds = world_rounds(&world);
    world_fini(&world);
    return count;
}
