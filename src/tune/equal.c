/* SPDX-License-Identifier: Apache-2.0
 * Choices that have the same schedules, so that only one of them must be measured. On few ranks
 * many algorithms have equal schedules. For example, every ring on two ranks is an exchange. Each
 * rank hashes its own schedule, and the sums of the hashes over all ranks are compared. */
#include "tune/tune.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t mix_span(uint64_t hash, const struct tutti_span *span)
{
    return mix(mix(hash, span->buffer), (uint64_t)span->first << 32 | span->count);
}

/* Hashes all that the steps do. The rank is part of the hash, so sums over all ranks distinguish
 * which rank has which schedule. */
static uint64_t hash_of(const struct tutti_schedule *schedule)
{
    uint64_t hash =
        mix(schedule->rank + 1, (uint64_t)schedule->chunks_per_block << 32 | schedule->nsteps);

    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        hash = mix(hash, (uint64_t)step->kind << 40 | (uint64_t)step->channel << 32 |
                             (uint64_t)step->signal << 16 | step->queue);
        hash = mix(hash, (uint64_t)(uint32_t)step->from << 32 | (uint32_t)step->to);
        hash = mix_span(mix_span(hash, &step->src), &step->dst);
        hash = mix_span(mix_span(hash, &step->remote), &step->also);
        hash = mix(mix_span(hash, &step->remote_dst), step->dep_count);
        for (uint32_t m = 0; m < step->among_count; m++)
            hash = mix(hash, schedule->among[step->among_first + m]);
    }
    return hash;
}

static int hash_choice(const struct tutti_comm *comm, const struct tutti_choice *choice,
                       uint64_t *ret_hash)
{
    struct tutti_shape shape = {.nranks = (uint32_t)comm->nranks,
                                .rank = (uint32_t)comm->rank,
                                .options = choice->options,
                                .places = &comm->places,
                                .channels = 1}; /* as the schedules of queue/cache.c */
    struct tutti_schedule *schedule;

    TUTTI_TRY(tutti_algorithm_schedule(choice->algorithm, &shape, &schedule));
    *ret_hash = hash_of(schedule);
    tutti_schedule_destroy(schedule);
    return TUTTI_OK;
}

int tutti_trial_find_equal(struct tutti_comm *comm, const struct tutti_choice *choices,
                           uint32_t count, uint32_t *ret_equal)
{
    uint64_t hashes[TUTTI_TRIAL_COMPARED] = {0};
    struct tutti_call call;

    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(hash_choice(comm, &choices[i], &hashes[i]));
    tutti_call_of_bytes(TUTTI_ALLREDUCE, TUTTI_FOR_TUNE, hashes, hashes, count, &call);
    tutti_call_of_elements(&call, TUTTI_UINT64, TUTTI_SUM);
    TUTTI_TRY(tutti_batch_run_now(comm, &call, NULL));
    for (uint32_t i = 0; i < count; i++)
        for (ret_equal[i] = 0; hashes[ret_equal[i]] != hashes[i];)
            ret_equal[i]++;
    return TUTTI_OK;
}
