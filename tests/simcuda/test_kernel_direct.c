/* SPDX-License-Identifier: Apache-2.0
 * Collectives move data from the ranks' buffers into the ranks' buffers, on simulated GPUs. They
 * are right to the last bit, whichever buffers others can use, and never wait forever. */
#include "simcuda/attempt.h"
#include "simcuda/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIRECT "tutti_kernel_work_direct"
#define GROUP "tutti_kernel_group"

/* Which buffers of which ranks are unmapped. */
static const struct {
    uint64_t inputs, outputs;
} mixes[] = {{0, 0}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 0}, {0, UINT64_MAX}, {0x2, 0},
             {0, 0x1}, {0x5, 0xa}, {0xaa, 0xaa}};
enum { MIXES = sizeof mixes / sizeof mixes[0] };

static void same_grids(struct domain_grid grids[TUTTI_KERNEL_RANKS], uint32_t blocks,
                       uint32_t threads)
{
    for (uint32_t i = 0; i < TUTTI_KERNEL_RANKS; i++)
        grids[i] = (struct domain_grid){blocks, threads};
}

static void any_grids(struct domain_grid grids[TUTTI_KERNEL_RANKS])
{
    for (uint32_t i = 0; i < TUTTI_KERNEL_RANKS; i++)
        grids[i] = (struct domain_grid){1 + i * 3 % 4, 32 << i % 2};
}

static void every_collective_is_right_for_all_mixes_of_buffers(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 4096, .arena_bytes = 4 << 20};
    static const size_t counts[] = {0, 1, 37, 128, 1000, 3001};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    uint64_t number = 0;

    (void)state;
    any_grids(grids);
    for (uint32_t nranks = 1; nranks <= DOMAIN_MATRIX_RANKS; nranks++) {
        struct domain domain;

        domain_init(&domain, nranks, &sizes);
        for (uint32_t form = 0; form < TUTTI_COLLECTIVE_COUNT * MIXES * 4; form++) {
            const uint32_t mix = form / 4 % MIXES;
            const struct attempt_call call = {
                .kind = TUTTI_KERNEL_WORK_DIRECT,
                .collective = (enum tutti_collective)(form / 4 / MIXES),
                .type = TUTTI_INT32,
                .is_in_place = form & 1,
                .is_vector = form & 2,
                .root = (uint32_t)(number % nranks),
                .count = counts[number % 6],
                .shift = number % 7 == 0,
                .unmapped_inputs = mixes[mix].inputs,
                .unmapped_outputs = mixes[mix].outputs,
                .seed = number,
            };

            if (attempt_is_possible(&call))
                attempt_run(&domain, &call, DIRECT, grids, ++number);
        }
        domain_fini(&domain);
    }
}

static void many_ranks_share_a_domain(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 8192, .arena_bytes = 1 << 20};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct domain domain;

    (void)state;
    same_grids(grids, 2, 32);
    domain_init(&domain, 16, &sizes);
    for (uint32_t form = 0; form < TUTTI_COLLECTIVE_COUNT * 2; form++) {
        const struct attempt_call call = {
            .kind = TUTTI_KERNEL_WORK_DIRECT,
            .collective = (enum tutti_collective)(form / 2),
            .type = TUTTI_FLOAT32,
            .root = form % 16,
            .count = 500,
            .unmapped_inputs = form & 1 ? 0x8421 : 0,
            .unmapped_outputs = form & 1 ? 0x1248 : 0,
            .seed = form,
        };

        attempt_run(&domain, &call, DIRECT, grids, form);
    }
    domain_fini(&domain);
}

static void every_type_and_operation_gives_the_processors_bits(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 4096};
    static const uint32_t rank_counts[] = {1, 2, 3, 7};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    uint64_t number = 0;

    (void)state;
    same_grids(grids, 2, 32);
    for (size_t n = 0; n < sizeof rank_counts / sizeof rank_counts[0]; n++) {
        struct domain domain;

        domain_init(&domain, rank_counts[n], &sizes);
        for (uint32_t form = 0;
             form < TUTTI_TYPE_COUNT * ATTEMPT_REDUCTIONS * TUTTI_COLLECTIVE_COUNT; form++) {
            const uint32_t reduction = form / TUTTI_COLLECTIVE_COUNT, mix = number % MIXES;
            struct attempt_call call = {
                .kind = TUTTI_KERNEL_WORK_DIRECT,
                .collective = (enum tutti_collective)(form % TUTTI_COLLECTIVE_COUNT),
                .type = (enum tutti_type)(reduction / ATTEMPT_REDUCTIONS),
                .is_in_place = number % 3 == 0,
                .is_vector = number % 5 == 0 && form % TUTTI_COLLECTIVE_COUNT ==
                                                    TUTTI_REDUCE_SCATTER,
                .root = (uint32_t)(number % rank_counts[n]),
                .count = 1 + number * 7 % 1500,
                .shift = number % 4,
                .unmapped_inputs = mixes[mix].inputs,
                .unmapped_outputs = mixes[mix].outputs,
                .seed = number,
            };

            attempt_set_reduction(&call, reduction);
            if (tutti_collective_reduces(call.collective) && attempt_is_possible(&call))
                attempt_run(&domain, &call, DIRECT, grids, ++number);
        }
        domain_fini(&domain);
    }
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Some call for every number: most between buffers, some by lines. */
static struct attempt_call any_call(uint64_t number, uint32_t nranks)
{
    const uint64_t random = number * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    struct attempt_call call = {
        .kind = random % 4 == 0   ? TUTTI_KERNEL_WORK_LL
                : random % 4 == 1 ? TUTTI_KERNEL_WORK_LL128
                                  : TUTTI_KERNEL_WORK_DIRECT,
        .collective = (enum tutti_collective)(random / 4 % TUTTI_COLLECTIVE_COUNT),
        .type = TUTTI_BFLOAT16,
        .is_in_place = random >> 12 & 1,
        .is_vector = random >> 13 & 1,
        .root = (uint32_t)(random >> 14) % nranks,
        .count = (random >> 18) % 600,
        .unmapped_inputs = random >> 30 & 1 ? random >> 32 : 0,
        .unmapped_outputs = random >> 31 & 1 ? random >> 36 : 0,
        .seed = number,
    };

    call.is_vector = call.is_vector && attempt_is_possible(&call);
    return call;
}

/* Each rank a row of launches of some works each, with no look at the others. */
static void run_row_of_calls(struct domain *domain, uint32_t nlaunches, uint32_t nworks,
                             uint64_t first_number)
{
    const uint32_t ncalls = nlaunches * nworks;
    struct tutti_kernel_work *works = calloc(domain->nranks * ncalls, sizeof *works);
    struct attempt *attempts = calloc(ncalls, sizeof *attempts);
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    assert_non_null(works);
    assert_non_null(attempts);
    any_grids(grids);
    domain_take_back(domain);
    for (uint32_t i = 0; i < ncalls; i++) {
        const struct attempt_call call = any_call(first_number + i, domain->nranks);

        attempt_begin(&attempts[i], domain, &call, first_number + i, works + i, ncalls);
    }
    domain_run_rows(domain, GROUP, grids, works, nworks, nlaunches, 2 * first_number + 1);
    assert_true(domain_is_fine(domain));
    for (uint32_t i = 0; i < ncalls; i++)
        attempt_end(&attempts[i], true);
    free(attempts);
    free(works);
}

static void ranks_may_run_ahead_of_each_other(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 4096, .arena_bytes = 4 << 20};

    (void)state;
    for (uint32_t nranks = 2; nranks <= 6; nranks += 2) {
        struct domain domain;

        domain_init(&domain, nranks, &sizes);
        run_row_of_calls(&domain, 60, 1, 1000 * nranks);
        run_row_of_calls(&domain, 6, 10, 1000 * nranks + 200);
        domain_fini(&domain);
    }
}

static void stores_may_become_visible_late(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 4096, .arena_bytes = 1 << 20};

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct domain domain;

        sim_weak_set(seed);
        domain_init(&domain, 4, &sizes);
        run_row_of_calls(&domain, 8, 1, 100 * seed);
        run_row_of_calls(&domain, 2, 4, 100 * seed + 50);
        domain_fini(&domain);
    }
    sim_weak_set(0);
}

/* ---- failing --------------------------------------------------------------------------------- */

static void ranks_that_disagree_are_told_both_calls(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const struct attempt_call usual = {.kind = TUTTI_KERNEL_WORK_DIRECT, .count = 200,
                                              .type = TUTTI_INT32};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    same_grids(grids, 2, 32);
    for (uint32_t wrong = 0; wrong < 5; wrong++) {
        struct tutti_kernel_work works[TUTTI_KERNEL_RANKS], others[TUTTI_KERNEL_RANKS];
        struct attempt attempt, other;
        struct attempt_call call = usual;
        struct domain domain;

        call.count = wrong == 0 ? 20000 : wrong == 1 ? 10 : call.count;
        call.op = wrong == 2 ? TUTTI_MAX : call.op;
        call.collective = wrong == 3 ? TUTTI_ALLTOALL : call.collective;
        /* A rank whose count makes the call a small one uses another kind. */
        call.kind = wrong == 1 || wrong == 4 ? TUTTI_KERNEL_WORK_LL : call.kind;
        call.type = wrong == 4 ? TUTTI_UINT8 : call.type;
        domain_init(&domain, 4, &sizes);
        attempt_begin(&attempt, &domain, &usual, 5, works, 1);
        attempt_begin(&other, &domain, &call, 5, others, 1);
        works[2] = others[2];
        domain_run(&domain, GROUP, grids, works, 1, 0);
        for (uint32_t rank = 0; rank < 4; rank++) {
            const struct tutti_kernel_report *report = domain.ranks[rank].report;

            assert_int_equal(report->fault, TUTTI_KERNEL_MISMATCH);
            assert_true(rank == 2 ? report->rank != 2 : report->rank == 2);
            assert_memory_equal(report->mine, works[rank].signature, 16);
            assert_memory_equal(report->theirs, works[report->rank].signature, 16);
        }
        attempt_end(&attempt, false);
        attempt_end(&other, false);
        domain_fini(&domain);
    }
}

/* All ranks but the last one come. */
static void run_without_the_last(struct domain *domain, uint64_t deadline_ns)
{
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_DIRECT, .count = 100};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;

    same_grids(grids, 3, 64);
    attempt_begin(&attempt, domain, &call, 8, works, 1);
    domain->nranks--;
    domain_run(domain, DIRECT, grids, works, 1, deadline_ns);
    domain->nranks++;
    attempt_end(&attempt, false);
}

static void the_deadline_ends_kernels_that_wait(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain domain;

    (void)state;
    domain_init(&domain, 4, &sizes);
    run_without_the_last(&domain, 20 * 1000 * 1000);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_LATE);
        assert_int_equal(domain.ranks[rank].report->rank, 3);
    }
    domain_fini(&domain);
}

static void the_hosts_word_ends_kernels_that_wait(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain domain;
    pthread_t thread;

    (void)state;
    domain_init(&domain, 4, &sizes);
    thread = domain_abort(&domain);
    run_without_the_last(&domain, 0);
    pthread_join(thread, NULL);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_ABORTED);
    domain_fini(&domain);
}

static void windows_that_hold_nothing_are_refused(void **state)
{
    static const struct domain_sizes sizes = {.window_bytes = 128};
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_DIRECT, .count = 100,
                                             .unmapped_inputs = 1};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;
    struct domain domain;

    (void)state;
    same_grids(grids, 2, 32);
    domain_init(&domain, 2, &sizes);
    attempt_begin(&attempt, &domain, &call, 8, works, 1);
    domain_run(&domain, DIRECT, grids, works, 1, 0);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_BROKEN);
    attempt_end(&attempt, false);
    domain_fini(&domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right_for_all_mixes_of_buffers),
        cmocka_unit_test(many_ranks_share_a_domain),
        cmocka_unit_test(every_type_and_operation_gives_the_processors_bits),
        cmocka_unit_test(ranks_may_run_ahead_of_each_other),
        cmocka_unit_test(stores_may_become_visible_late),
        cmocka_unit_test(ranks_that_disagree_are_told_both_calls),
        cmocka_unit_test(the_deadline_ends_kernels_that_wait),
        cmocka_unit_test(the_hosts_word_ends_kernels_that_wait),
        cmocka_unit_test(windows_that_hold_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
