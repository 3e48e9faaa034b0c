/* SPDX-License-Identifier: Apache-2.0
 * Runs collectives by lines with flags on simulated GPUs. They are right to the last bit, epoch
 * after epoch, and never wait forever. */
#include "simcuda/attempt.h"
#include "simcuda/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL "tutti_kernel_work_small"
#define GROUP "tutti_kernel_group"

static const enum tutti_kernel_work_kind kinds[] = {TUTTI_KERNEL_WORK_LL, TUTTI_KERNEL_WORK_LL128};

static void same_grids(struct domain_grid grids[TUTTI_KERNEL_RANKS], uint32_t blocks,
                       uint32_t threads)
{
    for (uint32_t i = 0; i < TUTTI_KERNEL_RANKS; i++)
        grids[i] = (struct domain_grid){blocks, threads};
}

/* ---- right ----------------------------------------------------------------------------------- */

static void every_collective_is_right_for_every_rank_count_and_root(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct domain domain;

    (void)state;
    same_grids(grids, 1, 32);
    for (uint32_t nranks = 1; nranks <= DOMAIN_MATRIX_RANKS; nranks++) {
        uint64_t number = 0;

        domain_init(&domain, nranks, &sizes);
        for (uint32_t collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++)
            for (uint32_t root = 0; root < nranks; root++)
                for (uint32_t form = 0; form < 8; form++) {
                    const struct attempt_call call = {
                        .kind = kinds[form & 1],
                        .collective = (enum tutti_collective)collective,
                        .type = TUTTI_INT32,
                        .is_in_place = form & 2,
                        .is_vector = form & 4,
                        .root = root,
                        .count = 1 + number % 70,
                        .seed = number,
                    };

                    if (root > 0 && !tutti_collective_has_root(call.collective))
                        continue;
                    if (attempt_is_possible(&call))
                        attempt_run(&domain, &call, SMALL, grids, ++number);
                }
        domain_fini(&domain);
    }
}

static void every_type_and_operation_gives_the_processors_bits(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const uint32_t rank_counts[] = {1, 2, 3, 6, 9};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    uint64_t number = 0;

    (void)state;
    same_grids(grids, 1, 64);
    for (size_t n = 0; n < sizeof rank_counts / sizeof rank_counts[0]; n++) {
        struct domain domain;

        domain_init(&domain, rank_counts[n], &sizes);
        for (uint32_t type = 0; type < TUTTI_TYPE_COUNT; type++)
            for (uint32_t form = 0; form < ATTEMPT_REDUCTIONS * 2 * TUTTI_COLLECTIVE_COUNT;
                 form++) {
                const uint32_t collective = form / 2 / ATTEMPT_REDUCTIONS;
                struct attempt_call call = {
                    .kind = kinds[form & 1],
                    .collective = (enum tutti_collective)collective,
                    .type = (enum tutti_type)type,
                    .is_in_place = number % 3 == 0,
                    .is_vector = number % 5 == 0 && collective == TUTTI_REDUCE_SCATTER,
                    .root = number % rank_counts[n],
                    .count = 1 + number % 90,
                    .shift = number % 4,
                    .seed = number,
                };

                attempt_set_reduction(&call, form / 2);
                if (tutti_collective_reduces(collective) && attempt_is_possible(&call))
                    attempt_run(&domain, &call, SMALL, grids, ++number);
            }
        domain_fini(&domain);
    }
}

static void counts_up_to_the_capacity_are_shared_by_blocks_of_any_number(void **state)
{
    static const struct domain_sizes sizes = {.ll_bytes = 4096, .ll128_bytes = 4096};
    static const uint64_t capacities[] = {2048, 3840};
    static const size_t differences[] = {0, 1, 7, 8, 9, 15, 16, 119, 121, 1000, 2048 - 1, 2048};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct domain domain;
    uint64_t number = 0;

    (void)state;
    for (uint32_t i = 0; i < TUTTI_KERNEL_RANKS; i++)
        grids[i] = (struct domain_grid){1 + i * 3 % 5, 32 << i % 3};
    domain_init(&domain, 4, &sizes);
    for (uint32_t form = 0; form < 2 * TUTTI_COLLECTIVE_COUNT; form++)
        for (size_t d = 0; d < sizeof differences / sizeof differences[0]; d++) {
            const struct attempt_call call = {
                .kind = kinds[form & 1],
                .collective = (enum tutti_collective)(form / 2),
                .type = TUTTI_UINT8,
                .is_in_place = d & 1,
                .root = (uint32_t)d % 4,
                .count = capacities[form & 1] - differences[d],
                .shift = d % 3,
                .seed = number,
            };

            attempt_run(&domain, &call, SMALL, grids, ++number);
        }
    domain_fini(&domain);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Some call for every number. */
static struct attempt_call any_call(uint64_t number, uint32_t nranks)
{
    const uint64_t random = number * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    struct attempt_call call = {
        .kind = kinds[random & 1],
        .collective = (enum tutti_collective)(random / 2 % TUTTI_COLLECTIVE_COUNT),
        .type = (enum tutti_type)(random / 32 % TUTTI_TYPE_COUNT),
        .op = (enum tutti_op)(random / 512 % (TUTTI_MIN + 1)),
        .is_in_place = random >> 12 & 1,
        .is_vector = random >> 13 & 1,
        .root = (uint32_t)(random >> 14) % nranks,
        .count = (random >> 18) % 50,
        .seed = number,
    };

    call.is_vector = call.is_vector && attempt_is_possible(&call);
    return call;
}

/* Each rank a row of launches of some works each, with no look at the others. */
static void run_row_of_calls(struct domain *domain, const struct domain_grid *grids,
                             uint32_t nlaunches, uint32_t nworks, uint64_t first_number)
{
    const uint32_t ncalls = nlaunches * nworks;
    struct tutti_kernel_work *works = calloc(domain->nranks * ncalls, sizeof *works);
    struct attempt *attempts = calloc(ncalls, sizeof *attempts);

    assert_non_null(works);
    assert_non_null(attempts);
    domain_take_back(domain);
    for (uint32_t i = 0; i < ncalls; i++) {
        const struct attempt_call call = any_call(first_number + i, domain->nranks);

        attempt_begin(&attempts[i], domain, &call, first_number + i, works + i, ncalls);
    }
    domain_run_rows(domain, nworks > 1 ? GROUP : SMALL, grids, works, nworks, nlaunches,
                    2 * first_number + 1);
    assert_true(domain_is_fine(domain));
    for (uint32_t i = 0; i < ncalls; i++)
        attempt_end(&attempts[i], true);
    free(attempts);
    free(works);
}

static void ranks_may_run_ahead_of_each_other(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    for (uint32_t nranks = 2; nranks <= 8; nranks += 3) {
        struct domain domain;

        domain_init(&domain, nranks, &sizes);
        same_grids(grids, 1, 32);
        run_row_of_calls(&domain, grids, 100, 1, 1000 * nranks);
        same_grids(grids, 2, 32);
        run_row_of_calls(&domain, grids, 40, 1, 1000 * nranks + 200);
        domain_fini(&domain);
    }
}

/* The state in which rank 1 is at epoch 5. A block of rank 0 is late in epoch 4, whose predecessor
 * did not hear all ranks. It must accept this state. */
static void blocks_may_find_peers_an_epoch_further(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_LL, .count = 4,
                                             .collective = TUTTI_BROADCAST};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;
    struct domain domain;
    struct tutti_kernel_mail *mail;

    (void)state;
    same_grids(grids, 2, 32);
    domain_init(&domain, 2, &sizes);
    domain_set_epoch(&domain, 3);
    domain.ranks[0].counters->heard_epoch = 2;
    mail = (void *)domain.ranks[0].peers[1].from;
    for (uint32_t word = 0; word < 4; word++)
        for (uint32_t flag = 1; flag < 4; flag += 2) {
            mail->greetings[0].words[word][flag] = 4 + 1;
            mail->greetings[1].words[word][flag] = 5 + 1;
        }
    attempt_begin(&attempt, &domain, &call, 4, works, 1);
    domain.nranks = 1;
    domain_run(&domain, SMALL, grids, works, 1, 1000 * 1000 * 1000);
    domain.nranks = 2;
    assert_true(domain_is_fine(&domain));
    attempt_end(&attempt, false);
    domain_fini(&domain);
}

static void stores_may_become_visible_late(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    same_grids(grids, 2, 32);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct domain domain;

        sim_weak_set(seed);
        domain_init(&domain, 4, &sizes);
        run_row_of_calls(&domain, grids, 20, 1, 100 * seed);
        run_row_of_calls(&domain, grids, 4, 4, 100 * seed + 50);
        domain_fini(&domain);
    }
    sim_weak_set(0);
}

static void a_launch_may_have_many_works(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    for (uint32_t i = 0; i < TUTTI_KERNEL_RANKS; i++)
        grids[i] = (struct domain_grid){1 + i % 3, 32 + 32 * (i % 2)};
    for (uint32_t nranks = 1; nranks <= 5; nranks++) {
        struct domain domain;

        domain_init(&domain, nranks, &sizes);
        run_row_of_calls(&domain, grids, 6, 12, 1000 * nranks);
        domain_fini(&domain);
    }
}

/* Lines have 32 bits of the epoch, which come again: the same flags for the same half
 * 2 * (2^32 - 1) epochs later. Lines from then would be taken for new ones, were they not cleaned
 * on the way. */
static void lines_of_long_ago_are_never_taken_for_new_ones(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct domain domain;

    (void)state;
    same_grids(grids, 2, 32);
    domain_init(&domain, 3, &sizes);
    run_row_of_calls(&domain, grids, 30, 1, 1);
    domain_set_epoch(&domain, (UINT64_C(1) << 30) - 10);
    run_row_of_calls(&domain, grids, 10, 2, 101);
    domain_set_epoch(&domain, 2 * (uint64_t)UINT32_MAX);
    run_row_of_calls(&domain, grids, 30, 1, 201);
    domain_fini(&domain);
}

/* ---- failing --------------------------------------------------------------------------------- */

static void make_calls(struct domain *domain, struct attempt *attempt,
                       const struct attempt_call *call, uint64_t number,
                       struct tutti_kernel_work *ret_works)
{
    domain_take_back(domain);
    attempt_begin(attempt, domain, call, number, ret_works, 1);
}

static void ranks_that_disagree_are_told_both_calls(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const struct attempt_call usual = {.kind = TUTTI_KERNEL_WORK_LL, .count = 20,
                                              .type = TUTTI_INT32};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    same_grids(grids, 2, 32);
    for (uint32_t wrong = 0; wrong < 8; wrong++) {
        struct tutti_kernel_work works[TUTTI_KERNEL_RANKS], others[TUTTI_KERNEL_RANKS];
        struct attempt attempt, other;
        struct attempt_call call = usual;
        struct domain domain;

        call.count = wrong == 0 ? 21 : wrong == 1 ? 19 : call.count;
        call.op = wrong == 2 ? TUTTI_MAX : call.op;
        call.type = wrong == 3 ? TUTTI_FLOAT64 : call.type;
        call.collective = wrong == 4 ? TUTTI_ALLGATHER : wrong == 5 ? TUTTI_GATHER
                          : wrong == 6 ? TUTTI_BARRIER : call.collective;
        call.root = 1;
        call.kind = wrong == 7 ? TUTTI_KERNEL_WORK_LL128 : call.kind;
        call.count = wrong == 7 ? 10 : call.count;
        domain_init(&domain, 4, &sizes);
        make_calls(&domain, &attempt, &usual, 5, works);
        attempt_begin(&other, &domain, &call, 5, others, 1);
        works[2] = others[2];
        domain_run(&domain, SMALL, grids, works, 1, 0);
        for (uint32_t rank = 0; rank < 4; rank++) {
            const struct tutti_kernel_report *report = domain.ranks[rank].report;

            /* The call of the odd rank may need no other rank. */
            if (rank == 2 && report->fault == TUTTI_KERNEL_FINE && call.collective == TUTTI_GATHER)
                continue;
            assert_int_equal(report->fault, TUTTI_KERNEL_MISMATCH);
            assert_true(rank == 2 ? report->rank != 2 : report->rank == 2);
            assert_memory_equal(report->mine, works[rank].signature, 16);
            assert_memory_equal(report->theirs, works[report->rank].signature, 16);
            assert_int_equal(report->number, 5);
            assert_int_equal(report->their_number, 5);
        }
        attempt_end(&attempt, false);
        attempt_end(&other, false);
        domain_fini(&domain);
    }
}

static void ranks_that_disagree_about_the_past_are_told(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_LL128, .count = 5};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;
    struct domain domain;

    (void)state;
    same_grids(grids, 1, 32);
    domain_init(&domain, 2, &sizes);
    make_calls(&domain, &attempt, &call, 5, works);
    works[1].chain++;
    domain_run(&domain, SMALL, grids, works, 1, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_MISMATCH);
        assert_int_equal(domain.ranks[rank].report->rank, 1 - rank);
    }
    attempt_end(&attempt, false);
    domain_fini(&domain);
}

static void pairs_that_disagree_about_their_counts_are_told(void **state)
{
    static const struct domain_sizes sizes = {0};
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_LL,
                                             .collective = TUTTI_ALLTOALL, .is_vector = true,
                                             .count = 10};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct attempt attempt;
    struct domain domain;
    uint64_t expected;

    (void)state;
    same_grids(grids, 1, 32);
    domain_init(&domain, 3, &sizes);
    make_calls(&domain, &attempt, &call, 5, works);
    expected = works[0].out.counts[2];
    ((uint64_t *)(uintptr_t)works[2].in.counts)[0]++;
    domain_run(&domain, SMALL, grids, works, 1, 0);
    assert_int_equal(domain.ranks[0].report->fault, TUTTI_KERNEL_MISMATCH);
    assert_int_equal(domain.ranks[0].report->rank, 2);
    assert_int_equal(domain.ranks[0].report->mine[1], expected);
    assert_int_equal(domain.ranks[0].report->theirs[1], expected + 1);
    attempt_end(&attempt, false);
    domain_fini(&domain);
}

/* All ranks but the last one come. */
static void run_without_the_last(struct domain *domain, const char *kernel, uint32_t nworks,
                                 uint64_t deadline_ns)
{
    static const struct attempt_call call = {.kind = TUTTI_KERNEL_WORK_LL, .count = 100};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];
    struct tutti_kernel_work works[2 * TUTTI_KERNEL_RANKS];
    struct attempt attempts[2];

    same_grids(grids, 3, 64);
    domain_take_back(domain);
    for (uint32_t i = 0; i < nworks; i++)
        attempt_begin(&attempts[i], domain, &call, 8 + i, works + i, nworks);
    domain->nranks--;
    domain_run(domain, kernel, grids, works, nworks, deadline_ns);
    domain->nranks++;
    for (uint32_t i = 0; i < nworks; i++)
        attempt_end(&attempts[i], false);
}

static void the_deadline_ends_kernels_that_wait(void **state)
{
    static const struct domain_sizes sizes = {0};

    (void)state;
    for (uint32_t nworks = 1; nworks <= 2; nworks++) {
        struct domain domain;

        domain_init(&domain, 4, &sizes);
        run_without_the_last(&domain, nworks > 1 ? GROUP : SMALL, nworks, 20 * 1000 * 1000);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_LATE);
            assert_int_equal(domain.ranks[rank].report->rank, 3);
            assert_int_equal(domain.ranks[rank].report->number, 8);
        }
        domain_fini(&domain);
    }
}

static void the_hosts_word_ends_kernels_that_wait(void **state)
{
    static const struct domain_sizes sizes = {0};
    struct domain domain;
    pthread_t thread;

    (void)state;
    domain_init(&domain, 4, &sizes);
    thread = domain_abort(&domain);
    run_without_the_last(&domain, SMALL, 1, 0);
    pthread_join(thread, NULL);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_ABORTED);
    /* Works that were launched meanwhile end at once. */
    run_without_the_last(&domain, GROUP, 2, 0);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(domain.ranks[rank].counters->leavers, 0);
    domain_fini(&domain);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct domain_sizes sizes = {.ll_bytes = 1024, .ll128_bytes = 1024};
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    (void)state;
    same_grids(grids, 1, 32);
    for (size_t i = 0; i < 2; i++) {
        const struct attempt_call call = {.kind = kinds[i], .count = i == 0 ? 513 : 961};
        struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
        struct attempt attempt;
        struct domain domain;

        domain_init(&domain, 2, &sizes);
        make_calls(&domain, &attempt, &call, 5, works);
        domain_run(&domain, SMALL, grids, works, 1, 0);
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_BROKEN);
            assert_int_equal(domain.ranks[rank].report->rank, rank);
        }
        attempt_end(&attempt, false);
        domain_fini(&domain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right_for_every_rank_count_and_root),
        cmocka_unit_test(every_type_and_operation_gives_the_processors_bits),
        cmocka_unit_test(counts_up_to_the_capacity_are_shared_by_blocks_of_any_number),
        cmocka_unit_test(ranks_may_run_ahead_of_each_other),
        cmocka_unit_test(blocks_may_find_peers_an_epoch_further),
        cmocka_unit_test(stores_may_become_visible_late),
        cmocka_unit_test(a_launch_may_have_many_works),
        cmocka_unit_test(lines_of_long_ago_are_never_taken_for_new_ones),
        cmocka_unit_test(ranks_that_disagree_are_told_both_calls),
        cmocka_unit_test(ranks_that_disagree_about_the_past_are_told),
        cmocka_unit_test(pairs_that_disagree_about_their_counts_are_told),
        cmocka_unit_test(the_deadline_ends_kernels_that_wait),
        cmocka_unit_test(the_hosts_word_ends_kernels_that_wait),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
