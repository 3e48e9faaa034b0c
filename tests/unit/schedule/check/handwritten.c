/* SPDX-License-Identifier: Apache-2.0
 * Right schedules that are written by hand. */
#include "handwritten.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two ranks swap their inputs through scratch memory. */
void swap_allreduce(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(0, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_reduce(build, scratch(0, 1), output(0, 1)));
}

void ring_allgather(struct tutti_build *build, uint32_t rank)
{
    uint32_t nranks = build->schedule->nranks, next = (rank + 1) % nranks;
    uint32_t before = (rank + nranks - 1) % nranks;

    MUST(tutti_build_copy(build, input(0, 1), output(rank, 1)));
    for (uint32_t i = 0; i + 1 < nranks; i++) {
        MUST(tutti_build_send(build, next, output((rank + nranks - i) % nranks, 1)));
        MUST(tutti_build_recv(build, before, output((before + nranks - i) % nranks, 1)));
    }
}

/* Everyone puts into everyone's window. */
void window_allgather(struct tutti_build *build, uint32_t rank)
{
    uint32_t nranks = build->schedule->nranks;

    tutti_build_window(build, nranks);
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    MUST(tutti_build_copy(build, input(0, 1), output(rank, 1)));
    for (uint32_t peer = 0; peer < nranks; peer++)
        if (peer != rank)
            MUST(tutti_build_put(build, peer, input(0, 1), window(rank, 1)));
    MUST(tutti_build_signal(build));
    MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    for (uint32_t peer = 0; peer < nranks; peer++)
        if (peer != rank)
            MUST(tutti_build_copy(build, window(peer, 1), output(peer, 1)));
}

/* Each reads all inputs, and stays until all have read. */
void mapped_allreduce(struct tutti_build *build, uint32_t rank)
{
    (void)rank;
    tutti_build_window(build, 1);
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    MUST(tutti_build_copy(build, input(0, 1), window(0, 1)));
    MUST(tutti_build_signal(build));
    MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    MUST(tutti_build_gather_reduce(build, input(0, 1), window(0, 1), output(0, 1), TUTTI_NO_SPAN,
                                   TUTTI_NO_SPAN));
}

void mapped_broadcast(struct tutti_build *build, uint32_t rank)
{
    tutti_build_needs(build, TUTTI_NEEDS_PEER_READ);
    tutti_build_signals(build, 2);
    if (rank == 0)
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_signal(build));
    MUST(tutti_build_wait(build, rank == 0 ? TUTTI_ALL_RANKS : 0, rank == 0 ? 2 : 1));
    if (rank == 0)
        return;
    MUST(tutti_build_get(build, 0, input(0, 1), output(0, 1)));
    MUST(tutti_build_signal(build));
}

/* Each round sends what the round before received. */
void barrier(struct tutti_build *build, uint32_t rank)
{
    uint32_t nranks = build->schedule->nranks, round = 0;

    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 3);
    for (uint32_t distance = 1; distance < nranks; distance *= 2, round++) {
        MUST(tutti_build_send(build, (rank + distance) % nranks, scratch(round, 1)));
        MUST(tutti_build_recv(build, (rank + nranks - distance) % nranks, scratch(round + 1, 1)));
    }
}

void build_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS])
{
    for (uint32_t rank = 0; rank < row->nranks; rank++) {
        struct tutti_shape shape = {.nranks = row->nranks, .rank = rank, .root = 0};
        struct tutti_build build;

        MUST(tutti_build_init(&build, row->collective, &shape));
        row->emit(&build, rank);
        MUST(tutti_build_finish(&build, &schedules[rank]));
    }
}

int check_all(const struct row *row, struct tutti_schedule *const schedules[MOST_RANKS],
                     struct tutti_check_report *ret_report)
{
    const struct tutti_check_options options = {.is_vector = row->is_vector};
    const struct tutti_schedule *all[MOST_RANKS];

    for (uint32_t rank = 0; rank < row->nranks; rank++)
        all[rank] = schedules[rank];
    *ret_report = (struct tutti_check_report){.rank = ANY, .step = ANY};
    return tutti_check_prove(all, row->nranks, &options, ret_report);
}

void destroy_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS])
{
    for (uint32_t rank = 0; rank < row->nranks; rank++)
        tutti_schedule_destroy(schedules[rank]);
}
