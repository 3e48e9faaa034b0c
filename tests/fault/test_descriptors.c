/* SPDX-License-Identifier: Apache-2.0
 * A rank runs out of descriptors over TCP. It reports this itself, and its peers do not take it
 * for a refusal. The soft limit alone stops no rank. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NRANKS = 8, TIMEOUT_MS = 6000 };

/* The lowest descriptor above all that are open. Those between them are filled. */
static int first_after_all_fds(void)
{
    int most = (int)sysconf(_SC_OPEN_MAX), highest = 0, fd;

    for (fd = 0; fd < most && fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            highest = fd;
    do
        fd = dup(0);
    while (fd >= 0 && fd < highest);
    close(fd);
    return fd;
}

static tuttiResult_t exchange_with_all(struct crew_seat *seat)
{
    static const struct crew_call call = {CREW_ALLTOALL, 100, tuttiInt32, tuttiSum, 0};

    return crew_call(seat, &call);
}

/* ---- beyond the hard limit ------------------------------------------------------------------- */

static tuttiResult_t exchange_with_few_descriptors(struct crew_seat *seat)
{
    const int *short_rank = seat->crew->context;
    struct rlimit limit;

    if (seat->rank == *short_rank) {
        limit.rlim_cur = limit.rlim_max = (rlim_t)first_after_all_fds() + 2;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return exchange_with_all(seat);
}

/* Rank 0 calls all others, the last rank is called by all, one in the middle does both. */
static void a_rank_without_descriptors_names_the_cause_and_its_peers_name_it(void **state)
{
    static const int short_ranks[] = {0, 3, NRANKS - 1};

    (void)state;
    for (size_t i = 0; i < sizeof short_ranks / sizeof *short_ranks; i++) {
        int who = short_ranks[i];
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = NRANKS, .timeout_ms = TIMEOUT_MS, .run = exchange_with_few_descriptors,
            .context = &short_ranks[i],
            .environment = (const char *const[]){"TUTTI_TRANSPORTS", "tcp", NULL}});
        const struct crew_report *report = &board->reports[who];
        bool is_named = false;
        char name[32];

        snprintf(name, sizeof name, "rank %d", who);
        if (report->result != tuttiSystemError ||
            strstr(report->text, "Too many open files") == NULL ||
            strstr(report->text, "ulimit -n") == NULL)
            fail_msg("rank %d itself: %d: %s", who, (int)report->result, report->text);
        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *other = &board->reports[rank];

            if (rank == who)
                continue;
            /* It may have had all that it needed before. */
            if (other->result == tuttiSuccess)
                continue;
            if (other->result != tuttiRemoteError || strstr(other->text, name) == NULL ||
                strstr(other->text, "Too many open files") == NULL)
                fail_msg("rank %d: %d: %s", rank, (int)other->result, other->text);
            is_named = true;
        }
        if (!is_named)
            fail_msg("no other rank names rank %d; rank 1: %s", who, board->reports[1].text);
        crew_clear(board);
    }
}

/* ---- while the communicator forms ------------------------------------------------------------ */

/* How many more descriptors a rank may have, in a job of NRANKS. */
struct shortage {
    int rank, left;
};

static tuttiResult_t form_with_few_descriptors(struct crew_seat *seat)
{
    const struct shortage *shortage = seat->crew->context;
    tuttiUniqueId id = crew_share_id(seat);
    tuttiResult_t result;
    struct rlimit limit;

    if (seat->rank == shortage->rank) {
        limit.rlim_cur = limit.rlim_max = (rlim_t)first_after_all_fds() + (rlim_t)shortage->left;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    result = tuttiCommInitRank(&seat->comm, seat->nranks, id, seat->rank);
    return result == tuttiSuccess ? exchange_with_all(seat) : result;
}

/* A job whose rank `who` has room for so many descriptors. It and all others are told the cause, but for
 * those that had all they needed before. Returns how many ranks failed. */
static int count_told(int who, int room)
{
    struct shortage shortage = {.rank = who, .left = room};
    struct crew_board *board = crew_run(&(struct crew){
        .nranks = NRANKS, .run = form_with_few_descriptors, .forms_itself = true,
        .context = &shortage,
        .environment = (const char *const[]){"TUTTI_TRANSPORTS", "tcp", "TUTTI_INIT_TIMEOUT_MS",
                                             "60000", NULL}});
    int failed = 0;
    char name[32];

    snprintf(name, sizeof name, "rank %d", who);
    for (int rank = 0; rank < NRANKS; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (rank != who && report->result == tuttiSuccess)
            continue;
        if (report->result != (rank == who ? tuttiSystemError : tuttiRemoteError) ||
            strstr(report->text, name) == NULL ||
            strstr(report->text, "Too many open files") == NULL)
            fail_msg("rank %d has room for %d: rank %d: %d: %s", who, room, rank,
                     (int)report->result, report->text);
        failed++;
    }
    crew_clear(board);
    return failed;
}

/* Rank 0 has some room for its own sockets, and none or too little for those of the others. */
static void a_root_without_descriptors_tells_all_ranks_that_come(void **state)
{
    int failed = 0;

    (void)state;
    for (int room = 6; room <= 10; room++)
        failed += count_told(0, room);
    assert_true(failed >= 2 * NRANKS);
}

/* It can join, and has too little room for what it needs afterwards. */
static void a_member_without_descriptors_tells_all_ranks(void **state)
{
    int failed = 0;

    (void)state;
    for (int room = 4; room <= 9; room++)
        failed += count_told(3, room);
    assert_true(failed >= 3 * NRANKS);
}

/* ---- the soft limit -------------------------------------------------------------------------- */

static tuttiResult_t exchange_below_a_soft_limit(struct crew_seat *seat)
{
    struct rlimit limit;
    tuttiResult_t result;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)first_after_all_fds() + 9;
    setrlimit(RLIMIT_NOFILE, &limit);
    result = tuttiCommInitRank(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank);
    return result == tuttiSuccess ? exchange_with_all(seat) : result;
}

static void a_soft_limit_is_raised_unless_that_is_switched_off(void **state)
{
    static const char *const settings[] = {"on", "off"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        bool is_off = strcmp(settings[i], "off") == 0, has_failed = false;
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = NRANKS, .run = exchange_below_a_soft_limit, .forms_itself = true,
            .environment = (const char *const[]){
                "TUTTI_TRANSPORTS", "tcp", "TUTTI_RAISE_LIMITS", settings[i],
                "TUTTI_INIT_TIMEOUT_MS", "2500", "TUTTI_TIMEOUT_MS", "2500", NULL}});

        for (int rank = 0; rank < NRANKS; rank++) {
            const struct crew_report *report = &board->reports[rank];

            if (!is_off && report->result != tuttiSuccess)
                fail_msg("rank %d: %d: %s", rank, (int)report->result, report->text);
            has_failed |= report->result == tuttiSystemError &&
                          strstr(report->text, "Too many open files") != NULL;
        }
        if (has_failed != is_off)
            fail_msg("%s: rank 0: %d: %s", settings[i], (int)board->reports[0].result,
                     board->reports[0].text);
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_without_descriptors_names_the_cause_and_its_peers_name_it),
        cmocka_unit_test(a_root_without_descriptors_tells_all_ranks_that_come),
        cmocka_unit_test(a_member_without_descriptors_tells_all_ranks),
        cmocka_unit_test(a_soft_limit_is_raised_unless_that_is_switched_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
