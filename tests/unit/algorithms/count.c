/* SPDX-License-Identifier: Apache-2.0
 * Counting rounds: a message takes one, from when both of its ends are ready; sweeping over all
 * ranks goes on until no message gets any later. */
#include "count.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct tutti_schedule *emit_rank(const struct tutti_algorithm *algorithm,
                                 const struct tutti_shape *shape)
{
    struct tutti_shape resolved = *shape;
    struct tutti_schedule *schedule;
    struct tutti_build build;

    assert_int_equal(tutti_algorithm_options(algorithm, &shape->options, &resolved.options),
                     TUTTI_OK);
    assert_int_equal(tutti_build_init(&build, algorithm->collective, &resolved), TUTTI_OK);
    assert_int_equal(algorithm->emit(&resolved, &build), TUTTI_OK);
    assert_int_equal(tutti_build_finish(&build, &schedule), TUTTI_OK);
    return schedule;
}

void world_init(struct world *world, const struct tutti_algorithm *algorithm,
                const struct tutti_shape *shape)
{
    uint32_t nranks = shape->nranks;

    world->nranks = nranks;
    world->is_segmented = algorithm->options[TUTTI_SEGMENTS].most != 0;
    world->schedules = calloc(nranks, sizeof(*world->schedules));
    world->rounds = calloc(nranks, sizeof(*world->rounds));
    assert_non_null(world->schedules);
    assert_non_null(world->rounds);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape own = *shape;

        own.rank = rank;
        world->schedules[rank] = emit_rank(algorithm, &own);
        world->rounds[rank] = calloc(world->schedules[rank]->nsteps + 1, sizeof(uint32_t));
        assert_non_null(world->rounds[rank]);
    }
}

void world_fini(struct world *world)
{
    for (uint32_t rank = 0; rank < world->nranks; rank++) {
        tutti_schedule_destroy(world->schedules[rank]);
        free(world->rounds[rank]);
    }
    free(world->schedules);
    free(world->rounds);
}

/* Emitted steps are not fused yet: each two-sided one either sends or receives. */
static bool is_send(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_SEND;
}

static bool is_receive(const struct tutti_step *step)
{
    return step->kind == TUTTI_STEP_RECV || step->kind == TUTTI_STEP_RECV_REDUCE;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* What comes before a step on its own rank. */
struct before {
    uint32_t start;    /* of the step before in the same direction */
    uint32_t complete;
    int32_t peer;
};

static uint32_t start_of(const struct world *world, uint32_t rank, uint32_t at,
                         const struct before *before, int32_t peer)
{
    const struct tutti_schedule *schedule = world->schedules[rank];
    const struct tutti_step *step = &schedule->steps[at];
    bool shares = before->peer == peer && !world->is_segmented;
    uint32_t start = shares ? before->start : before->complete;

    for (uint32_t i = 0; i < step->dep_count; i++)
        start = later(start, world->rounds[rank][schedule->deps[step->dep_first + i]]);
    return start;
}

/* The step of `peer` that matches the `index`-th message between it and `rank`. */
static uint32_t find_mate(const struct world *world, uint32_t peer, uint32_t rank, bool wants_send,
                          uint32_t index)
{
    const struct tutti_schedule *schedule = world->schedules[peer];

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];
        bool matches = wants_send ? is_send(step) && step->to == (int32_t)rank
                                  : is_receive(step) && step->from == (int32_t)rank;

        if (matches && index-- == 0)
            return at;
    }
    fail_msg("rank %u has no match for a message of rank %u", peer, rank);
    return 0;
}

/* One sweep over a rank's steps; true if any round grew. */
static bool relax(struct world *world, uint32_t rank, uint32_t *counts)
{
    const struct tutti_schedule *schedule = world->schedules[rank];
    struct before before[2] = {{.peer = TUTTI_NO_RANK}, {.peer = TUTTI_NO_RANK}};
    uint32_t local = 0;
    bool grew = false;

    for (uint32_t i = 0; i < 2 * world->nranks; i++)
        counts[i] = 0;
    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];
        bool sends = is_send(step);
        int32_t peer = sends ? step->to : step->from;
        struct before *own = &before[sends];
        uint32_t start, *complete = &world->rounds[rank][at];

        if (!is_send(step) && !is_receive(step)) {
            struct before none = {.complete = local, .peer = TUTTI_NO_RANK - 1};

            local = start_of(world, rank, at, &none, TUTTI_NO_RANK);
            grew = grew || local > *complete;
            *complete = later(local, *complete);
            continue;
        }
        start = start_of(world, rank, at, own, peer);
        /* A message takes one round, from when both ends are ready. */
        if (start + 1 > *complete) {
            uint32_t mate = find_mate(world, (uint32_t)peer, rank, !sends,
                                      counts[2 * (uint32_t)peer + sends]);

            *complete = start + 1;
            world->rounds[peer][mate] = later(start + 1, world->rounds[peer][mate]);
            grew = true;
        }
        counts[2 * (uint32_t)peer + sends]++;
        *own = (struct before){.start = *complete - 1, .complete = *complete, .peer = peer};
    }
    return grew;
}

static uint32_t count_rounds(struct world *world)
{
    uint32_t *counts = calloc(2 * world->nranks, sizeof(*counts));
    uint32_t rounds = 0;
    bool grew = true;

    assert_non_null(counts);
    while (grew) {
        grew = false;
        for (uint32_t rank = 0; rank < world->nranks; rank++)
            grew = relax(world, rank, counts) || grew;
    }
    for (uint32_t rank = 0; rank < world->nranks; rank++)
        for (uint32_t at = 0; at < world->schedules[rank]->nsteps; at++)
            rounds = later(rounds, world->rounds[rank][at]);
    free(counts);
    return rounds;
}

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
    count.rounds = count_rounds(&world);
    world_fini(&world);
    return count;
}
