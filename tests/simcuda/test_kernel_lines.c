/* SPDX-License-Identifier: Apache-2.0
 * Runs the test of lines on simulated GPUs. It finds torn lines and no others, and it ends. */
#include "simcuda/domain.h"
#include "simcuda/launch.h"
#include "simcuda/sim_kernel.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define EVERYBODY UINT64_MAX

static const struct domain_sizes sizes = {.ll128_bytes = 1536};

/* All ranks but the last `absent` ones; each with those of `peers` that are others. */
static void try_lines(struct domain *domain, uint32_t absent, uint64_t peers,
                      uint64_t deadline_ns, uint32_t rounds, uint32_t threads)
{
    _Alignas(16) struct tutti_kernel_line_test tests[TUTTI_KERNEL_RANKS];
    struct sim_kernel_call calls[TUTTI_KERNEL_RANKS];
    uint64_t all = UINT64_MAX >> (64 - domain->nranks);

    for (uint32_t rank = 0; rank < domain->nranks - absent; rank++) {
        tests[rank] = (struct tutti_kernel_line_test){
            .domain = domain->ranks[rank].domain, .deadline_ns = deadline_ns, .rounds = rounds,
            .peers = peers & all & ~(UINT64_C(1) << rank)};
        /* A rank that is not in the list has no peers. */
        if ((peers >> rank & 1) == 0)
            tests[rank].peers = 0;
        calls[rank] =
            (struct sim_kernel_call){"tutti_kernel_test_lines", 1, threads, &tests[rank]};
    }
    sim_kernel_run_all(calls, domain->nranks - absent);
}

/* Of the last 8 bytes of lines in what that rank has sent to the other, those that are
 * something. */
static uint32_t count_flags(const struct domain *domain, uint32_t from, uint32_t to)
{
    const struct tutti_kernel_layout *layout = &domain->layout;
    const uint8_t *mail = domain->ranks[to].mailboxes + from * layout->mailbox_bytes;
    const uint64_t *words = (const uint64_t *)(const void *)(mail + layout->ll128_at);
    uint32_t nflags = 0;

    for (uint64_t i = 15; i < 2 * layout->ll128_bytes / sizeof *words; i += 16)
        nflags += words[i] != 0;
    return nflags;
}

static void lines_that_are_whole_are_found_so(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint32_t nranks = 2; nranks <= 7; nranks++) {
            struct domain domain;

            sim_weak_set(seed);
            domain_init(&domain, nranks, &sizes);
            try_lines(&domain, 0, EVERYBODY, 0, 9, 32 + 32 * (nranks % 3));
            for (uint32_t rank = 0; rank < nranks; rank++)
                for (uint32_t peer = 0; peer < nranks; peer++) {
                    assert_int_equal(domain.ranks[rank].report->torn[peer], 0);
                    /* The memory was gone through, all of it. */
                    assert_int_equal(count_flags(&domain, peer, rank), rank == peer ? 0 : 24);
                }
            domain_fini(&domain);
        }
    sim_weak_set(0);
}

static void lines_that_are_torn_are_found_by_every_rank(void **state)
{
    (void)state;
    sim_lines_set_torn(true);
    for (uint32_t nranks = 2; nranks <= 5; nranks++) {
        struct domain domain;

        domain_init(&domain, nranks, &sizes);
        try_lines(&domain, 0, EVERYBODY, 0, 32, 64);
        for (uint32_t rank = 0; rank < nranks; rank++)
            for (uint32_t peer = 0; peer < nranks; peer++) {
                uint64_t torn = domain.ranks[rank].report->torn[peer];

                assert_int_equal(torn != 0, rank != peer);
                assert_int_not_equal(torn, TUTTI_KERNEL_LINES_MISSING);
            }
        domain_fini(&domain);
    }
    sim_lines_set_torn(false);
}

static void only_those_that_are_named_get_lines(void **state)
{
    const uint64_t named = 0x16; /* 1, 2 and 4 of 5 */
    struct domain domain;

    (void)state;
    domain_init(&domain, 5, &sizes);
    try_lines(&domain, 0, named, 0, 6, 64);
    for (uint32_t rank = 0; rank < 5; rank++)
        for (uint32_t peer = 0; peer < 5; peer++) {
            bool is_named = rank != peer && (named >> rank & 1) != 0 && (named >> peer & 1) != 0;

            assert_int_equal(domain.ranks[rank].report->torn[peer], 0);
            assert_int_equal(count_flags(&domain, peer, rank), is_named ? 24 : 0);
        }
    domain_fini(&domain);
}

static void the_deadline_ends_it_where_a_rank_does_not_come(void **state)
{
    struct domain domain;

    (void)state;
    domain_init(&domain, 3, &sizes);
    try_lines(&domain, 1, EVERYBODY, 20 * 1000 * 1000, 6, 64);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_true(domain.ranks[rank].report->torn[2] == TUTTI_KERNEL_LINES_MISSING);
        assert_int_equal(domain.ranks[rank].report->fault, TUTTI_KERNEL_FINE);
    }
    domain_fini(&domain);
}

static void *abort_all(void *context)
{
    struct domain *domain = context;

    for (uint32_t rank = 0; rank < 2; rank++)
        __atomic_store_n(&domain->ranks[rank].report->abort, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void the_hosts_word_ends_it_too(void **state)
{
    struct domain domain;
    pthread_t thread;

    (void)state;
    domain_init(&domain, 3, &sizes);
    assert_int_equal(pthread_create(&thread, NULL, abort_all, &domain), 0);
    try_lines(&domain, 1, EVERYBODY, 0, 6, 32);
    pthread_join(thread, NULL);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_true(domain.ranks[rank].report->torn[2] == TUTTI_KERNEL_LINES_MISSING ||
                    domain.ranks[rank].report->torn[1 - rank] == TUTTI_KERNEL_LINES_MISSING);
    domain_fini(&domain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_whole_are_found_so),
        cmocka_unit_test(lines_that_are_torn_are_found_by_every_rank),
        cmocka_unit_test(only_those_that_are_named_get_lines),
        cmocka_unit_test(the_deadline_ends_it_where_a_rank_does_not_come),
        cmocka_unit_test(the_hosts_word_ends_it_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
