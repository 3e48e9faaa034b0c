/* SPDX-License-Identifier: Apache-2.0
 * The checker on schedules written by hand: right ones pass, and each kind of
 * defect is reported with the rank and step that has it. */
#include "handwritten.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void no_copy_of_own_block(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, output(1 - rank, 1)));
}

static void wrong_block(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_copy(build, input(0, 1), output(rank, 1)));
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, rank == 1 ? output(1, 1) : output(1 - rank, 1)));
}

static void counted_twice(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(0, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_reduce(build, rank == 1 ? input(0, 1) : scratch(0, 1), output(0, 1)));
}

static void contribution_lost(struct tutti_build *build, uint32_t rank)
{
    if (rank == 0) {
        MUST(tutti_build_send(build, 1, input(0, 1)));
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    } else {
        MUST(tutti_build_recv_reduce(build, 0, input(0, 1), output(0, 1)));
    }
}

/* From rank to rank. */
static void scan(struct tutti_build *build, uint32_t rank)
{
    if (rank > 0)
        MUST(tutti_build_recv_reduce(build, rank - 1, input(0, 1), output(0, 1)));
    else
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    if (rank < 2)
        MUST(tutti_build_send(build, rank + 1, output(0, 1)));
}

/* Rank 2 gets only the input of rank 1. */
static void scan_of_two(struct tutti_build *build, uint32_t rank)
{
    if (rank > 0)
        MUST(tutti_build_recv_reduce(build, rank - 1, input(0, 1), output(0, 1)));
    else
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    if (rank < 2)
        MUST(tutti_build_send(build, rank + 1, input(0, 1)));
}

/* Each rank adds its input to what it gets, as in an inclusive scan. */
static void scan_with_the_own_input(struct tutti_build *build, uint32_t rank)
{
    if (rank > 0)
        MUST(tutti_build_recv_reduce(build, rank - 1, input(0, 1), output(0, 1)));
    if (rank < 2)
        MUST(tutti_build_send(build, rank + 1, rank > 0 ? output(0, 1) : input(0, 1)));
}

static void chunks_mixed(struct tutti_build *build, uint32_t rank)
{
    tutti_build_chunks(build, 2);
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 2);
    MUST(tutti_build_copy(build, input(0, 2), output(0, 2)));
    MUST(tutti_build_copy(build, input(1, 1), scratch(0, 1)));
    if (rank == 1)
        MUST(tutti_build_reduce(build, scratch(0, 1), output(0, 1)));
}

/* (0 + 1) + 2 here, 0 + (1 + 2) there. */
static void bracketed_differently(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 3);
    for (uint32_t peer = 0; peer < 3; peer++)
        if (peer == rank)
            MUST(tutti_build_copy(build, input(0, 1), scratch(rank, 1)));
        else
            MUST(tutti_build_send(build, peer, input(0, 1)));
    for (uint32_t peer = 0; peer < 3; peer++)
        if (peer != rank)
            MUST(tutti_build_recv(build, peer, scratch(peer, 1)));
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t from = rank == 2 ? 2 - i : i;

        if (i == 0)
            MUST(tutti_build_copy(build, scratch(from, 1), output(0, 1)));
        else
            MUST(tutti_build_reduce(build, scratch(from, 1), output(0, 1)));
    }
}

static void read_before_written(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    MUST(tutti_build_copy(build, rank == 1 ? scratch(0, 1) : input(0, 1), output(rank, 1)));
}

static void send_without_receive(struct tutti_build *build, uint32_t rank)
{
    if (rank == 1)
        MUST(tutti_build_send(build, 0, input(0, 1)));
}

static void receive_without_send(struct tutti_build *build, uint32_t rank)
{
    if (rank == 1)
        MUST(tutti_build_recv(build, 0, output(0, 1)));
}

static void other_length(struct tutti_build *build, uint32_t rank)
{
    tutti_build_chunks(build, 2);
    if (rank == 0)
        MUST(tutti_build_send(build, 1, input(0, 2)));
    else
        MUST(tutti_build_recv(build, 0, output(0, 1)));
}

static void other_size(struct tutti_build *build, uint32_t rank)
{
    tutti_build_chunks(build, 2);
    if (rank == 0)
        MUST(tutti_build_send(build, 1, input(0, 1)));
    else
        MUST(tutti_build_recv(build, 0, output(1, 1)));
}

static void other_size_in_one_step(struct tutti_build *build, uint32_t rank)
{
    tutti_build_chunks(build, 2);
    MUST(tutti_build_copy(build, input(0, 1), output(rank, 1)));
}

/* A block of rank 1 lies where rank 0's belongs: right only if both are equally long. */
static void rotated_allgather(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 2);
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(rank, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(rank, 1)));
    MUST(tutti_build_copy(build, scratch(rank, 1), output(1 - rank, 1)));
}

/* Both send first and receive into what they send. */
static void exchange_in_place(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_send(build, 1 - rank, output(0, 1)));
    MUST(tutti_build_recv_reduce(build, 1 - rank, output(0, 1), output(0, 1)));
}

static void crossed_waits(struct tutti_build *build, uint32_t rank)
{
    (void)rank;
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    MUST(tutti_build_signal(build));
}

static void no_wait_before_reading(struct tutti_build *build, uint32_t rank)
{
    tutti_build_window(build, 1);
    tutti_build_needs(build, TUTTI_NEEDS_WINDOW);
    tutti_build_signals(build, 1);
    MUST(tutti_build_copy(build, input(0, 1), window(0, 1)));
    MUST(tutti_build_signal(build));
    if (rank == 0)
        MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    MUST(tutti_build_gather_reduce(build, input(0, 1), window(0, 1), output(0, 1), TUTTI_NO_SPAN,
                                   TUTTI_NO_SPAN));
}

static void leaves_while_peers_read(struct tutti_build *build, uint32_t rank)
{
    tutti_build_needs(build, TUTTI_NEEDS_PEER_READ);
    tutti_build_signals(build, 1);
    MUST(tutti_build_signal(build));
    if (rank == 0)
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    else
        MUST(tutti_build_wait(build, 0, 1));
    if (rank == 1)
        MUST(tutti_build_get(build, 0, input(0, 1), output(0, 1)));
}

static void reads_before_peer_is_there(struct tutti_build *build, uint32_t rank)
{
    tutti_build_needs(build, TUTTI_NEEDS_PEER_READ);
    tutti_build_signals(build, 1);
    if (rank == 1)
        MUST(tutti_build_get(build, 0, input(0, 1), output(0, 1)));
    MUST(tutti_build_signal(build));
    MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    if (rank == 0)
        MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
}

/* The rounds do not wait for each other. */
static void loose_barrier(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 2);
    for (uint32_t distance = 1; distance < 4; distance *= 2) {
        MUST(tutti_build_send(build, (rank + distance) % 4, scratch(0, 1)));
        MUST(tutti_build_recv(build, (rank + 4 - distance) % 4, scratch(1, 1)));
    }
}

static void half_a_barrier(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 2);
    if (rank == 0)
        MUST(tutti_build_send(build, 1, scratch(0, 1)));
    else
        MUST(tutti_build_recv(build, 0, scratch(1, 1)));
}

static void writes_the_input(struct tutti_build *build, uint32_t rank)
{
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    if (rank == 1)
        MUST(tutti_build_recv(build, 0, input(0, 1)));
    else
        MUST(tutti_build_send(build, 1, input(0, 1)));
}

static void overlapping_copy(struct tutti_build *build, uint32_t rank)
{
    tutti_build_chunks(build, 3);
    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 3);
    MUST(tutti_build_copy(build, input(0, 3), output(0, 3)));
    if (rank == 1)
        MUST(tutti_build_copy(build, scratch(0, 2), scratch(1, 2)));
}

static void unnamed_need(struct tutti_build *build, uint32_t rank)
{
    tutti_build_needs(build, TUTTI_NEEDS_PEER_READ);
    MUST(tutti_build_signal(build));
    MUST(tutti_build_wait(build, TUTTI_ALL_RANKS, 1));
    if (rank == 1)
        MUST(tutti_build_put(build, 0, input(0, 1), output(1, 1)));
}

static const struct row rows[] = {
    {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0},
    {"ring", ring_allgather, TUTTI_ALLGATHER, 4, true, NULL, 0, 0},
    {"windows", window_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0},
    {"n-source reduction", mapped_allreduce, TUTTI_ALLREDUCE, 3, true, NULL, 0, 0},
    {"scan", scan, TUTTI_SCAN, 3, true, NULL, 0, 0},
    {"reading the root's input", mapped_broadcast, TUTTI_BROADCAST, 3, true, NULL, 0, 0},
    {"dissemination", barrier, TUTTI_BARRIER, 4, true, NULL, 0, 0},
    {"equal blocks may lie rotated", rotated_allgather, TUTTI_ALLGATHER, 2, false, NULL, 0, 0},

    {"output never written", no_copy_of_own_block, TUTTI_ALLGATHER, 2, true, "never written", 0,
     ANY},
    {"wrong block", wrong_block, TUTTI_ALLGATHER, 2, false, "never written", 1, ANY},
    {"counted twice", counted_twice, TUTTI_ALLREDUCE, 2, true, "counts rank 1 twice", 1, 3},
    {"contribution lost", contribution_lost, TUTTI_ALLREDUCE, 2, true, "lacks rank 1", 0, ANY},
    {"scan lost a rank", scan_of_two, TUTTI_SCAN, 3, true, "lacks rank 0", 2, ANY},
    {"scan counts the own input", scan_with_the_own_input, TUTTI_EXCLUSIVE_SCAN, 3, true,
     "has 2 contributions, not one of each of the 1 ranks", 1, ANY},
    {"scan of all", swap_allreduce, TUTTI_SCAN, 2, true,
     "has 2 contributions, not one of each of the 1 ranks", 0, ANY},
    {"chunks mixed", chunks_mixed, TUTTI_ALLREDUCE, 2, false, "combines chunk 0 with chunk 1", 1,
     2},
    {"bracketed differently", bracketed_differently, TUTTI_ALLREDUCE, 3, true, "bracketed", 2, ANY},
    {"read before written", read_before_written, TUTTI_ALLGATHER, 2, false, "nothing has written",
     1, 0},
    {"send without receive", send_without_receive, TUTTI_ALLGATHER, 2, true, "receives no more", 1,
     0},
    {"receive without send", receive_without_send, TUTTI_ALLGATHER, 2, true, "sends no more", 1, 0},
    {"other length", other_length, TUTTI_ALLREDUCE, 2, true, "receives 1 chunks", 1, 0},
    {"other size", other_size, TUTTI_ALLREDUCE, 2, false, "differ in size", 1, 0},
    {"other size in one step", other_size_in_one_step, TUTTI_ALLREDUCE, 2, false,
     "differs in size", 1, 0},
    {"rotated blocks of different sizes", rotated_allgather, TUTTI_ALLGATHER, 2, true,
     "differs in size", 0, 3},
    {"exchange in place", exchange_in_place, TUTTI_ALLREDUCE, 2, true, "deadlock", 0, 1},
    {"crossed waits", crossed_waits, TUTTI_BARRIER, 2, true, "deadlock", 0, 0},
    {"no wait before reading", no_wait_before_reading, TUTTI_ALLREDUCE, 2, true, "race", 1, 2},
    {"leaves while peers read", leaves_while_peers_read, TUTTI_BROADCAST, 2, true, "after", 1, 2},
    {"reads before the peer is there", reads_before_peer_is_there, TUTTI_BROADCAST, 2, true,
     "before that rank's first signal", 1, 0},
    {"loose barrier", loose_barrier, TUTTI_BARRIER, 4, true, "may leave the barrier", 0, ANY},
    {"half a barrier", half_a_barrier, TUTTI_BARRIER, 2, true, "may leave the barrier", 0, ANY},
    {"writes the input", writes_the_input, TUTTI_ALLREDUCE, 2, true, "caller's input", 1, 1},
    {"overlapping copy", overlapping_copy, TUTTI_ALLREDUCE, 2, false, "overlaps", 1, 1},
    {"need not named", unnamed_need, TUTTI_ALLGATHER, 2, true, "needs", 1, 2},
};

static void right_schedules_pass_and_each_defect_is_told_where_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct tutti_schedule *schedules[MOST_RANKS];
        struct tutti_check_report why;
        int rc;

        build_all(row, schedules);
        rc = check_all(row, schedules, &why);
        if (rc != (row->what == NULL ? TUTTI_OK : TUTTI_ERR_ARGUMENT))
            fail_msg("%s: result %d, rank %u step %d: %s", row->name, rc, why.rank, (int)why.step,
                     why.what);
        if (row->what != NULL && (strstr(why.what, row->what) == NULL || why.rank != row->rank ||
                                  why.step != row->step))
            fail_msg("%s: rank %u step %d: %s", row->name, why.rank, (int)why.step, why.what);
        destroy_all(row, schedules);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_schedules_pass_and_each_defect_is_told_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
