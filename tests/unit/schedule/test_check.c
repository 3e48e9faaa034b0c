/* SPDX-License-Identifier: Apache-2.0
 * The checker on schedules written by hand: right ones pass, and each kind of
 * defect is reported with the rank and step that has it. */
#include "schedule/build.h"
#include "schedule/check.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 4
#define ANY UINT32_MAX
#define MUST(call) assert_int_equal(call, TUTTI_OK)

static struct tutti_span input(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_INPUT, first, count);
}

static struct tutti_span output(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_OUTPUT, first, count);
}

static struct tutti_span scratch(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_SCRATCH, first, count);
}

static struct tutti_span window(uint32_t first, uint32_t count)
{
    return tutti_span(TUTTI_BUF_WINDOW, first, count);
}

/* ---- right schedules ---------------------------------------------------------------- */

/* Two ranks swap their inputs through scratch memory. */
static void swap_allreduce(struct tutti_build *build, uint32_t rank)
{
    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 1);
    MUST(tutti_build_send(build, 1 - rank, input(0, 1)));
    MUST(tutti_build_recv(build, 1 - rank, scratch(0, 1)));
    MUST(tutti_build_copy(build, input(0, 1), output(0, 1)));
    MUST(tutti_build_reduce(build, scratch(0, 1), output(0, 1)));
}

static void ring_allgather(struct tutti_build *build, uint32_t rank)
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
static void window_allgather(struct tutti_build *build, uint32_t rank)
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
static void mapped_allreduce(struct tutti_build *build, uint32_t rank)
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

static void mapped_broadcast(struct tutti_build *build, uint32_t rank)
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
static void barrier(struct tutti_build *build, uint32_t rank)
{
    uint32_t nranks = build->schedule->nranks, round = 0;

    tutti_build_scratch(build, TUTTI_SCRATCH_UNIFORM, 3);
    for (uint32_t distance = 1; distance < nranks; distance *= 2, round++) {
        MUST(tutti_build_send(build, (rank + distance) % nranks, scratch(round, 1)));
        MUST(tutti_build_recv(build, (rank + nranks - distance) % nranks, scratch(round + 1, 1)));
    }
}

/* ---- defects ------------------------------------------------------------------------- */

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
    (void)rank;
    MUST(tutti_build_copy(build, input(0, 3), output(0, 3)));
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

struct row {
    const char *name;
    void (*emit)(struct tutti_build *build, uint32_t rank);
    enum tutti_collective collective;
    uint32_t nranks;
    bool is_vector;
    const char *what; /* part of the report; NULL: right */
    uint32_t rank, step;
};

static const struct row rows[] = {
    {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, NULL, 0, 0},
    {"ring", ring_allgather, TUTTI_ALLGATHER, 4, true, NULL, 0, 0},
    {"windows", window_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0},
    {"n-source reduction", mapped_allreduce, TUTTI_ALLREDUCE, 3, true, NULL, 0, 0},
    {"reading the root's input", mapped_broadcast, TUTTI_BROADCAST, 3, true, NULL, 0, 0},
    {"dissemination", barrier, TUTTI_BARRIER, 4, true, NULL, 0, 0},
    {"equal blocks may lie rotated", rotated_allgather, TUTTI_ALLGATHER, 2, false, NULL, 0, 0},

    {"output never written", no_copy_of_own_block, TUTTI_ALLGATHER, 2, true, "never written", 0,
     ANY},
    {"wrong block", wrong_block, TUTTI_ALLGATHER, 2, false, "never written", 1, ANY},
    {"counted twice", counted_twice, TUTTI_ALLREDUCE, 2, true, "counts rank 1 twice", 1, 3},
    {"contribution lost", contribution_lost, TUTTI_ALLREDUCE, 2, true, "lacks rank 1", 0, ANY},
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
    {"overlapping copy", overlapping_copy, TUTTI_ALLREDUCE, 2, false, "overlaps", 0, 1},
    {"need not named", unnamed_need, TUTTI_ALLGATHER, 2, true, "needs", 1, 2},
};

static void build_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS])
{
    for (uint32_t rank = 0; rank < row->nranks; rank++) {
        struct tutti_shape shape = {.nranks = row->nranks, .rank = rank, .root = 0};
        struct tutti_build build;

        MUST(tutti_build_init(&build, row->collective, &shape));
        row->emit(&build, rank);
        MUST(tutti_build_finish(&build, &schedules[rank]));
    }
}

static int check_all(const struct row *row, struct tutti_schedule *const schedules[MOST_RANKS],
                     struct tutti_check_report *ret_report)
{
    const struct tutti_schedule *all[MOST_RANKS];

    for (uint32_t rank = 0; rank < row->nranks; rank++)
        all[rank] = schedules[rank];
    *ret_report = (struct tutti_check_report){.rank = ANY, .step = ANY};
    return row->is_vector ? tutti_schedule_check_vector(all, row->nranks, ret_report)
                          : tutti_schedule_check(all, row->nranks, ret_report);
}

static void destroy_all(const struct row *row, struct tutti_schedule *schedules[MOST_RANKS])
{
    for (uint32_t rank = 0; rank < row->nranks; rank++)
        tutti_schedule_destroy(schedules[rank]);
}

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

static void a_lost_dependency_is_a_race(void **state)
{
    const struct row row = {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, "race", 1, 3};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    assert_int_equal(schedules[1]->steps[3].dep_count, 1);
    schedules[1]->steps[3].dep_count = 0;
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    assert_int_equal(why.rank, row.rank);
    assert_int_equal(why.step, row.step);
    destroy_all(&row, schedules);
}

static void a_dependency_on_a_later_step_is_refused(void **state)
{
    const struct row row = {"swap", swap_allreduce, TUTTI_ALLREDUCE, 2, true, "not before", 1, 3};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    schedules[1]->deps[schedules[1]->steps[3].dep_first] = 3;
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    assert_int_equal(why.step, row.step);
    destroy_all(&row, schedules);
}

static void ring_reduce_scatter(struct tutti_build *build, uint32_t rank)
{
    uint32_t next = (rank + 1) % 3, before = (rank + 2) % 3;

    tutti_build_scratch(build, TUTTI_SCRATCH_VECTOR, 3);
    MUST(tutti_build_send(build, next, input(before, 1)));
    MUST(tutti_build_recv_reduce(build, before, input(next, 1), scratch(next, 1)));
    MUST(tutti_build_send(build, next, scratch(next, 1)));
    MUST(tutti_build_recv_reduce(build, before, input(rank, 1), output(0, 1)));
}

/* Each would take a slice from the one before only when the next has taken one from it. */
static void a_ring_that_stores_nothing_waits_for_itself(void **state)
{
    const struct row row = {"ring", ring_reduce_scatter, TUTTI_REDUCE_SCATTER, 3, true, "deadlock",
                            0, 0};
    struct tutti_schedule *schedules[MOST_RANKS];
    struct tutti_check_report why;

    (void)state;
    build_all(&row, schedules);
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_OK);
    for (uint32_t rank = 0; rank < row.nranks; rank++) {
        MUST(tutti_schedule_fuse(schedules[rank]));
        assert_int_equal(schedules[rank]->steps[1].kind, TUTTI_STEP_RECV_REDUCE_COPY_SEND);
    }
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_OK);
    for (uint32_t rank = 0; rank < row.nranks; rank++) {
        schedules[rank]->steps[1].kind = TUTTI_STEP_RECV_REDUCE_SEND;
        schedules[rank]->steps[1].dst = TUTTI_NO_SPAN;
    }
    assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
    assert_non_null(strstr(why.what, row.what));
    destroy_all(&row, schedules);
}

/* Schedules may come from files: whatever they name is refused, not followed. */
static void numbers_out_of_range_are_refused(void **state)
{
    const struct row row = {"ring", ring_allgather, TUTTI_ALLGATHER, 3, true, NULL, 0, 0};

    (void)state;
    for (int edit = 0; edit < 9; edit++) {
        struct tutti_schedule *schedules[MOST_RANKS];
        struct tutti_check_report why;
        struct tutti_step *step;

        build_all(&row, schedules);
        step = &schedules[1]->steps[1]; /* a send */
        switch (edit) {
        case 0: step->kind = TUTTI_STEP_KIND_COUNT; break;
        case 1: step->to = 3; break;
        case 2: step->to = TUTTI_ALL_RANKS; break;
        case 3: step->src.buffer = 77; break;
        case 4: step->src.first = UINT32_MAX; break;
        case 5: step->src.count = 0; break;
        case 6: step->channel = 1; break;
        case 7: step->dep_first = UINT32_MAX; step->dep_count = 2; break;
        default: schedules[1]->root = 2; break;
        }
        assert_int_equal(check_all(&row, schedules, &why), TUTTI_ERR_ARGUMENT);
        assert_int_equal(why.rank, 1);
        assert_int_equal(why.step, edit == 8 ? ANY : 1);
        destroy_all(&row, schedules);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_dependency_is_a_race),
        cmocka_unit_test(a_dependency_on_a_later_step_is_refused),
        cmocka_unit_test(a_ring_that_stores_nothing_waits_for_itself),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(right_schedules_pass_and_each_defect_is_told_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
