/* SPDX-License-Identifier: Apache-2.0
 * Fuses random schedules that do not deadlock. They must not deadlock when they are fused.
 *
 * Messages and local steps of all ranks are generated one after the other, in an order in which
 * everything can happen. So nothing is needed but the steps. Each rank may then emit its own steps
 * in another order. It must preserve the order of a lane, of steps on the same memory, and of
 * local steps, so that each step waits for the same steps as before. The results need not be
 * meaningful. */
#include "schedule/access.h"
#include "schedule/build.h"
#include "schedule/check/check.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MUST(call) assert_int_equal(call, TUTTI_OK)

enum { RANKS = 5, SCRATCH_CHUNKS = 3, MOST_STEPS = 40, CASES = 20000 };

struct program {
    struct tutti_step steps[MOST_STEPS];
    uint32_t nsteps;
    struct tutti_span received; /* last */
};

struct drawn {
    struct program programs[RANKS];
    uint32_t nranks;
    uint64_t state;
};

static uint32_t draw(struct drawn *drawn, uint32_t below)
{
    drawn->state = drawn->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(drawn->state >> 33) % below;
}

/* Of a reduce-scatter, whose chunks are all of one size. */
static struct tutti_span draw_target(struct drawn *drawn)
{
    if (draw(drawn, 4) == 0)
        return tutti_span(TUTTI_BUF_OUTPUT, 0, 1);
    return tutti_span(TUTTI_BUF_SCRATCH, draw(drawn, SCRATCH_CHUNKS), 1);
}

static struct tutti_span draw_source(struct drawn *drawn)
{
    if (draw(drawn, 2) == 0)
        return draw_target(drawn);
    return tutti_span(TUTTI_BUF_INPUT, draw(drawn, drawn->nranks), 1);
}

static void add(struct program *program, struct tutti_step step)
{
    program->steps[program->nsteps++] = step;
}

static void draw_message(struct drawn *drawn)
{
    uint32_t from = draw(drawn, drawn->nranks);
    uint32_t to = (from + 1 + draw(drawn, drawn->nranks - 1)) % drawn->nranks;
    struct program *sender = &drawn->programs[from], *receiver = &drawn->programs[to];
    uint8_t channel = draw(drawn, 8) == 0;
    bool passes_on = sender->received.count > 0 && draw(drawn, 3) > 0;
    bool adds = draw(drawn, 3) > 0;
    struct tutti_step recv = {.kind = adds ? TUTTI_STEP_RECV_REDUCE : TUTTI_STEP_RECV,
                              .channel = channel, .from = (int32_t)from, .to = TUTTI_NO_RANK,
                              .dst = draw_target(drawn)};

    add(sender, (struct tutti_step){.kind = TUTTI_STEP_SEND, .channel = channel,
                                    .from = TUTTI_NO_RANK, .to = (int32_t)to,
                                    .src = passes_on ? sender->received : draw_source(drawn)});
    if (adds)
        recv.src = draw_source(drawn);
    add(receiver, recv);
    receiver->received = recv.dst;
}

static void draw_local(struct drawn *drawn)
{
    add(&drawn->programs[draw(drawn, drawn->nranks)],
        (struct tutti_step){.kind = draw(drawn, 2) == 0 ? TUTTI_STEP_COPY : TUTTI_STEP_REDUCE,
                            .from = TUTTI_NO_RANK, .to = TUTTI_NO_RANK, .src = draw_source(drawn),
                            .dst = draw_target(drawn)});
}

static struct drawn draw_all(uint32_t number)
{
    struct drawn drawn = {.state = number};
    uint32_t nevents;

    draw(&drawn, 1);
    drawn.nranks = 2 + draw(&drawn, RANKS - 1);
    nevents = 3 + draw(&drawn, MOST_STEPS / 2 - 3);
    for (uint32_t i = 0; i < nevents; i++)
        if (draw(&drawn, 10) == 0)
            draw_local(&drawn);
        else
            draw_message(&drawn);
    return drawn;
}

/* Up a tree in segments. Each rank hears its children in an order of its own. */
static struct drawn draw_tree(uint32_t number)
{
    struct drawn drawn = {.state = number};
    uint32_t nsegments, parents[RANKS];

    draw(&drawn, 1);
    drawn.nranks = 2 + draw(&drawn, RANKS - 1);
    nsegments = 1 + draw(&drawn, SCRATCH_CHUNKS);
    for (uint32_t rank = 1; rank < drawn.nranks; rank++)
        parents[rank] = draw(&drawn, rank);
    for (uint32_t rank = 0; rank < drawn.nranks; rank++)
        for (uint32_t segment = 0; segment < nsegments; segment++) {
            struct tutti_span sum = tutti_span(TUTTI_BUF_INPUT, 0, 1);
            uint32_t first = draw(&drawn, drawn.nranks);

            for (uint32_t i = 0; i < drawn.nranks; i++) {
                uint32_t child = (first + i) % drawn.nranks;
                struct tutti_span next = tutti_span(TUTTI_BUF_SCRATCH, segment, 1);

                if (child <= rank || parents[child] != rank)
                    continue;
                add(&drawn.programs[rank],
                    (struct tutti_step){.kind = TUTTI_STEP_RECV_REDUCE, .from = (int32_t)child,
                                        .to = TUTTI_NO_RANK, .src = sum, .dst = next});
                sum = next;
            }
            if (rank > 0)
                add(&drawn.programs[rank],
                    (struct tutti_step){.kind = TUTTI_STEP_SEND, .from = TUTTI_NO_RANK,
                                        .to = (int32_t)parents[rank], .src = sum});
        }
    return drawn;
}

/* ---- another order --------------------------------------------------------------------------- */

/* In place the output is the rank's own block of the input. */
static uint32_t cell_of(struct tutti_span span, uint32_t rank)
{
    if (span.buffer == TUTTI_BUF_SCRATCH)
        return RANKS + span.first;
    return span.buffer == TUTTI_BUF_OUTPUT ? rank : span.first;
}

static bool touches_same(const struct tutti_step *a, const struct tutti_step *b, uint32_t rank)
{
    struct tutti_touch of_a[TUTTI_STEP_ACCESSES], of_b[TUTTI_STEP_ACCESSES];
    uint32_t count_a = tutti_step_accesses(a, of_a), count_b = tutti_step_accesses(b, of_b);

    for (uint32_t i = 0; i < count_a; i++)
        for (uint32_t j = 0; j < count_b; j++)
            if ((of_a[i].is_write || of_b[j].is_write) &&
                cell_of(of_a[i].span, rank) == cell_of(of_b[j].span, rank))
                return true;
    return false;
}

static bool is_in_line(const struct tutti_step *a, const struct tutti_step *b, uint32_t rank)
{
    bool is_local = !tutti_step_is_two_sided(a) && !tutti_step_is_two_sided(b);
    bool is_lane = tutti_step_is_two_sided(a) && tutti_step_is_two_sided(b) &&
                   a->channel == b->channel && a->from == b->from && a->to == b->to;

    return is_local || is_lane || touches_same(a, b, rank);
}

static void shuffle(struct drawn *drawn, uint32_t rank)
{
    struct program *program = &drawn->programs[rank], old = *program;

    for (uint32_t placed = 0; placed < program->nsteps; placed++) {
        uint32_t ready[MOST_STEPS], nready = 0, chosen;

        for (uint32_t i = 0; i < old.nsteps; i++) {
            bool is_ready = true;

            for (uint32_t j = 0; j < i && is_ready; j++)
                is_ready = !is_in_line(&old.steps[j], &old.steps[i], rank);
            if (is_ready)
                ready[nready++] = i;
        }
        chosen = ready[draw(drawn, nready)];
        program->steps[placed] = old.steps[chosen];
        old.nsteps--;
        memmove(&old.steps[chosen], &old.steps[chosen + 1],
                (old.nsteps - chosen) * sizeof(old.steps[0]));
    }
}

/* ---- fused or not ---------------------------------------------------------------------------- */

static struct tutti_schedule *build(const struct drawn *drawn, uint32_t rank)
{
    struct tutti_shape shape = {.nranks = drawn->nranks, .rank = rank};
    struct tutti_schedule *schedule = NULL;
    struct tutti_build build;

    MUST(tutti_build_init(&build, TUTTI_REDUCE_SCATTER, &shape));
    tutti_build_scratch(&build, TUTTI_SCRATCH_VECTOR, SCRATCH_CHUNKS);
    for (uint32_t i = 0; i < drawn->programs[rank].nsteps; i++)
        MUST(tutti_build_step(&build, &drawn->programs[rank].steps[i]));
    MUST(tutti_build_finish(&build, &schedule));
    return schedule;
}

static void expect_no_deadlock(struct tutti_schedule *const *schedules, uint32_t nranks,
                               uint32_t number, const char *what)
{
    struct tutti_check_report report;
    uint32_t credits = 0;
    int rc = tutti_check_credits_needed((const struct tutti_schedule *const *)schedules, nranks,
                                        &credits, &report);

    if (rc != TUTTI_OK || credits != 0)
        fail_msg("schedule %u, %s: %u credits; %s", number, what, credits,
                 rc != TUTTI_OK ? report.what : "");
}

/* Returns how many steps of this kind came of it. */
static uint32_t fuse(struct drawn *drawn, uint32_t number, bool is_bold,
                     enum tutti_step_kind counted)
{
    struct tutti_schedule *schedules[RANKS];
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < drawn->nranks; rank++) {
        shuffle(drawn, rank);
        schedules[rank] = build(drawn, rank);
    }
    expect_no_deadlock(schedules, drawn->nranks, number, "unfused");
    for (uint32_t rank = 0; rank < drawn->nranks; rank++) {
        MUST(tutti_schedule_fuse(schedules[rank], is_bold));
        for (uint32_t i = 0; i < schedules[rank]->nsteps; i++)
            count += schedules[rank]->steps[i].kind == counted;
    }
    expect_no_deadlock(schedules, drawn->nranks, number, "fused");
    for (uint32_t rank = 0; rank < drawn->nranks; rank++)
        tutti_schedule_destroy(schedules[rank]);
    return count;
}

static void fused_in_any_order_they_deadlock_nowhere(void **state)
{
    uint32_t joined = 0;

    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct drawn drawn = draw_all(number);

        joined += fuse(&drawn, number, false, TUTTI_STEP_RECV_REDUCE_COPY_SEND);
    }
    assert_true(joined > CASES / 10);
}

static void without_stores_trees_deadlock_nowhere(void **state)
{
    uint32_t joined = 0;

    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct drawn drawn = draw_tree(number);

        joined += fuse(&drawn, number, true, TUTTI_STEP_RECV_REDUCE_SEND);
    }
    assert_true(joined > CASES / 10);
}

/* ---- why it takes one tree ------------------------------------------------------------------- */

/* The three ranks in the head of fuse.c: what 1 passes on without storing it, 2 takes only after
 * what 0 sends when 1 has taken everything. */
static void emit_triangle(struct tutti_build *build, uint32_t rank)
{
    struct tutti_span x = tutti_span(TUTTI_BUF_OUTPUT, 0, 1), y = tutti_span(TUTTI_BUF_INPUT, 2, 1);
    struct tutti_span sum = tutti_span(TUTTI_BUF_SCRATCH, 0, 1);

    if (rank == 0) {
        MUST(tutti_build_send(build, 1, x));
        MUST(tutti_build_copy(build, y, x));
        MUST(tutti_build_send(build, 2, x));
    } else if (rank == 1) {
        MUST(tutti_build_recv_reduce(build, 0, y, sum));
        MUST(tutti_build_send(build, 2, sum));
    } else {
        MUST(tutti_build_recv(build, 0, x));
        MUST(tutti_build_recv_reduce(build, 1, x, x));
    }
}

static uint32_t triangle_credits(bool is_bold)
{
    struct tutti_schedule *schedules[3];
    struct tutti_check_report report;
    uint32_t credits = 0;

    for (uint32_t rank = 0; rank < 3; rank++) {
        struct tutti_shape shape = {.nranks = 3, .rank = rank};
        struct tutti_build build;

        MUST(tutti_build_init(&build, TUTTI_REDUCE_SCATTER, &shape));
        tutti_build_scratch(&build, TUTTI_SCRATCH_VECTOR, 1);
        emit_triangle(&build, rank);
        MUST(tutti_build_finish(&build, &schedules[rank]));
        MUST(tutti_schedule_fuse(schedules[rank], is_bold));
    }
    MUST(tutti_check_credits_needed((const struct tutti_schedule *const *)schedules, 3, &credits,
                                    &report));
    for (uint32_t rank = 0; rank < 3; rank++)
        tutti_schedule_destroy(schedules[rank]);
    return credits;
}

static void the_store_is_needed_where_there_are_two_ways(void **state)
{
    (void)state;
    assert_int_equal(triangle_credits(false), 0);
    assert_int_equal(triangle_credits(true), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_in_any_order_they_deadlock_nowhere),
        cmocka_unit_test(without_stores_trees_deadlock_nowhere),
        cmocka_unit_test(the_store_is_needed_where_there_are_two_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
