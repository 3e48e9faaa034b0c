/* SPDX-License-Identifier: Apache-2.0
 * Tests exchanges that must fail on all ranks, with the message that gives the reason. */
#include "crew.h"

#include "base/socket.h"
#include "bootstrap/exchange.h"
#include "support/address.h"
#include "support/store.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct crew crew;

static uint64_t plenty(void)
{
    return tutti_now_ns() + PLENTY_NS;
}

static uint64_t soon(void)
{
    return tutti_now_ns() + 200 * TUTTI_NS_PER_MS;
}

static void missing_ranks_are_named_on_all_that_wait(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        uint64_t deadline_ns = soon();

        crew_open(&crew, meeting);
        for (int rank = 0; rank < 10; rank++)
            if (rank != 3 && rank != 5 && rank != 6 && rank != 7)
                crew_add(&crew, 10, rank, deadline_ns, "secret");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_TIMEOUT, "ranks 3, 5-7 of 10 have not joined within ");
        crew_expect(&crew, TUTTI_ERR_TIMEOUT, "check that they were started and");
        crew_close(&crew);
    }
}

static void a_member_whose_deadline_is_earlier_learns_who_is_missing_too(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        crew_add(&crew, 4, 0, plenty(), "secret");
        crew_add(&crew, 4, 1, soon(), "secret");
        crew_add(&crew, 4, 2, plenty(), "secret");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_TIMEOUT, "rank 3 of 4 has not joined");
        crew_close(&crew);
    }
}

static void a_rank_that_stops_between_rounds_is_named(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        struct tutti_bootstrap *stopped;

        crew_open(&crew, meeting);
        crew_fill(&crew, 3, tutti_now_ns() + TUTTI_NS_PER_S);
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
        stopped = crew.boots[2];
        crew.boots[2] = NULL;
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_TIMEOUT, "rank 2 of 3 has not gone on");
        crew.boots[2] = stopped;
        crew_close(&crew);
    }
}

static void a_root_that_never_comes_is_a_timeout_that_names_the_place(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        crew_add(&crew, 3, 1, soon(), "secret");
        crew_add(&crew, 3, 2, soon(), "secret");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_TIMEOUT, strchr(crew.url, ':') + 1);
        crew_close(&crew);
    }
}

static void disagreement_on_nranks_is_told_to_all(void **state)
{
    static const int others[] = {3, 5, 9};

    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++)
        for (size_t i = 0; i < 3; i++) {
            char words[64];
            int rank = others[i] > 5 ? 7 : 2;

            crew_open(&crew, meeting);
            crew_add(&crew, 4, 0, plenty(), "secret");
            crew_add(&crew, 4, 1, plenty(), "secret");
            crew_add(&crew, others[i], rank, plenty(), "secret");
            crew_add(&crew, 4, 3, plenty(), "secret");
            crew_round(&crew, 16);
            crew_expect(&crew, TUTTI_ERR_USAGE, "rank 0 says 4");
            snprintf(words, sizeof words, "rank %d says %d", rank, others[i]);
            crew_expect(&crew, TUTTI_ERR_USAGE, words);
            crew_close(&crew);
        }
}

static void disagreement_on_the_record_is_told_to_all(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        uint8_t mine[16] = {0}, all[3 * 16];
        int rc[3] = {TUTTI_AGAIN, TUTTI_AGAIN, TUTTI_AGAIN};
        int waiting = 3;

        crew_open(&crew, meeting);
        crew_fill(&crew, 3, plenty());
        while (waiting > 0)
            for (int i = 0; i < 3; i++) {
                if (rc[i] != TUTTI_AGAIN)
                    continue;
                rc[i] = crew.boots[i]->ops->allgather(crew.boots[i], mine, i == 1 ? 8 : 16, all);
                waiting -= rc[i] != TUTTI_AGAIN;
                if (rc[i] != TUTTI_AGAIN)
                    assert_non_null(strstr(tutti_message_last(), "rank 1 8"));
            }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(rc[i], TUTTI_ERR_USAGE);
            crew.rc[i] = rc[i];
        }
        crew_close(&crew);
    }
}

static void two_ranks_that_claim_one_number_are_refused_on_all(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        crew_add(&crew, 4, 0, plenty(), "secret");
        crew_add(&crew, 4, 2, plenty(), "secret");
        crew_add(&crew, 4, 1, plenty(), "secret");
        crew_add(&crew, 4, 2, plenty(), "secret");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_USAGE, "claim number 2");
        crew_close(&crew);
    }
}

static void a_member_that_says_why_it_leaves_is_quoted_to_all(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++)
        for (int rounds = 1; rounds < 3; rounds++) {
            crew_open(&crew, meeting);
            crew_fill(&crew, 4, plenty());
            for (int round = 0; round < rounds; round++)
                crew_round(&crew, 16);
            crew_leave(&crew, 2, "no memory\nfor anything");
            crew_round(&crew, 16);
            crew_expect(&crew, TUTTI_ERR_REMOTE, "rank 2 of 4 gave up: no memory");
            crew_close(&crew);
        }
}

static void a_member_that_vanishes_is_named_at_once(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_ID; meeting <= BY_TCP; meeting++) {
        crew_open(&crew, meeting);
        crew_fill(&crew, 4, plenty());
        crew_round(&crew, 16);
        crew_leave(&crew, 1, NULL);
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_REMOTE, "rank 1 of 4 left");
        crew_close(&crew);
    }
}

/* Rank `dying` is a process of its own, which dies after the first round. The other's deadline is
 * far away. */
static void expect_notice_of_death(enum meeting meeting, int dying)
{
    int status;
    pid_t child;

    crew_open(&crew, meeting);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        crew_add(&crew, 2, dying, plenty(), "secret");
        crew_round(&crew, 16);
        raise(SIGKILL);
    }
    crew_add(&crew, 2, 1 - dying, plenty(), "secret");
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_OK, "");
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_ERR_REMOTE, "while the communicator was formed");
    assert_int_equal(waitpid(child, &status, 0), child);
    if (meeting == BY_FILE) { /* what the dead rank has left goes when the next crew has met */
        crew_leave(&crew, 0, "it failed");
        crew.count = 0;
        crew_fill(&crew, 2, plenty());
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
    }
    crew_close(&crew);
}

/* Rank 1 has joined and given its record. It dies while rank 2 is still missing. */
static void a_process_that_dies_while_others_are_missing_is_noticed_at_once(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting <= BY_FILE; meeting++) {
        uint64_t until_ns = tutti_now_ns() + 10 * TUTTI_NS_PER_S;
        int status;
        pid_t child;

        crew_open(&crew, meeting);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            crew_add(&crew, 3, 1, plenty(), "secret");
            for (;;)
                crew_step(&crew, 16);
        }
        crew_add(&crew, 3, 0, plenty(), "secret");
        for (int i = 0; i < 200; i++) {
            crew_step(&crew, 16);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        assert_int_equal(crew.rc[0], TUTTI_AGAIN);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        while (crew.rc[0] == TUTTI_AGAIN && tutti_now_ns() < until_ns) {
            crew_step(&crew, 16);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        crew_expect(&crew, TUTTI_ERR_REMOTE, "rank 1 of 3");
        if (meeting == BY_FILE) { /* what the dead rank has left goes when the next crew has met */
            crew_leave(&crew, 0, "it failed");
            crew.count = 0;
            crew_fill(&crew, 2, plenty());
            crew_round(&crew, 16);
            crew_expect(&crew, TUTTI_OK, "");
        }
        crew_close(&crew);
    }
}

static void a_process_that_dies_is_noticed_at_once(void **state)
{
    (void)state;
    if (access("/proc/self/ns/pid", F_OK) != 0) {
        print_message("[  SKIPPED ] no /proc, by which ranks in a directory look after each "
                      "other\n");
        skip();
    }
    for (enum meeting meeting = BY_TCP; meeting < MEETING_COUNT; meeting++)
        for (int dying = 0; dying < 2; dying++)
            expect_notice_of_death(meeting, dying);
}

/* The root's deadline passes; a rank that comes within the next moments is told who was missing. */
static void a_rank_that_comes_after_the_root_has_given_up_is_told(void **state)
{
    (void)state;
    crew_open(&crew, BY_TCP);
    crew_add(&crew, 3, 0, soon(), "secret");
    while (tutti_now_ns() < crew.boots[0]->deadline_ns)
        crew_step(&crew, 16);
    crew_add(&crew, 3, 1, plenty(), "secret");
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_ERR_TIMEOUT, "ranks 1, 2 of 3 have not joined");
    crew_close(&crew);
}

static void an_id_that_is_used_again_is_named(void **state)
{
    struct tutti_bootstrap *boot;
    uint64_t begun_ns;
    int status;
    pid_t child;

    (void)state;
    crew_open(&crew, BY_ID);
    crew_fill(&crew, 2, plenty());
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_OK, "");
    /* While its communicator still forms, and afterwards: by the process that made it ... */
    assert_int_equal(tutti_bootstrap_from_id(crew.id, 2, 0, plenty(), &boot), TUTTI_ERR_USAGE);
    assert_non_null(strstr(tutti_message_last(), "an id serves one communicator"));
    crew_leave(&crew, 0, NULL);
    crew_leave(&crew, 1, NULL);
    crew.count = 0;
    assert_int_equal(tutti_bootstrap_from_id(crew.id, 2, 0, plenty(), &boot), TUTTI_ERR_USAGE);
    /* ... and by others, long before their deadline. */
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        begun_ns = tutti_now_ns();
        crew_add(&crew, 2, 1, plenty(), NULL);
        crew_round(&crew, 16);
        _exit(crew.rc[0] == TUTTI_ERR_REMOTE &&
                      strstr(crew.message[0], "an id serves one communicator") != NULL &&
                      tutti_now_ns() < begun_ns + PLENTY_NS / 2
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    crew_close(&crew);
}

static void a_root_whom_nobody_calls_asks_for_the_id(void **state)
{
    (void)state;
    crew_open(&crew, BY_ID);
    crew_add(&crew, 2, 1, soon(), NULL);
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_ERR_TIMEOUT, "do all ranks have the id of one rank?");
    crew_close(&crew);
}

static void a_root_that_leaves_is_noticed_by_all(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        crew_fill(&crew, 4, plenty());
        crew_round(&crew, 16);
        crew_leave(&crew, 0, "it has seen enough");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_REMOTE, "rank 0 of 4 gave up: it has seen enough");
        crew_close(&crew);
    }
    for (enum meeting meeting = BY_ID; meeting <= BY_TCP; meeting++) {
        crew_open(&crew, meeting);
        crew_fill(&crew, 4, plenty());
        crew_round(&crew, 16);
        crew_leave(&crew, 0, NULL);
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_ERR_REMOTE, "the root at ");
        crew_close(&crew);
    }
}

static void a_wrong_secret_joins_nothing(void **state)
{
    (void)state;
    crew_open(&crew, BY_TCP);
    crew_add(&crew, 3, 0, soon(), "secret");
    crew_add(&crew, 3, 1, soon(), "secret");
    crew_add(&crew, 3, 2, soon(), "other");
    crew_round(&crew, 16);
    for (int i = 0; i < 3; i++)
        assert_int_equal(crew.rc[i], TUTTI_ERR_TIMEOUT);
    assert_non_null(strstr(crew.message[0], "rank 2 of 3 has not joined"));
    assert_non_null(strstr(crew.message[1], "rank 2 of 3 has not joined"));
    assert_non_null(strstr(crew.message[2], "secret"));
    crew_close(&crew);
}

/* Prove to be a rank, then send this frame, sealed as a rank would. The crew's root is stepped
 * meanwhile. */
static int join_and_send(const struct tutti_frame *frame, size_t body_bytes)
{
    uint8_t secret[TUTTI_SECRET_BYTES], body[16] = {0};
    struct tutti_handshake shake;
    struct tutti_outbox outbox = {.size = 0};
    struct tutti_inbox inbox = {.done = 0};
    struct tutti_frame sealed = *frame;
    struct tutti_purpose purpose;
    struct tutti_meeting_place place;
    int fd = crew_call(&crew), rc;

    crew_place(&crew, "secret", &place);
    tutti_secret_derive(place.secret, "bootstrap", 0, secret);
    tutti_exchange_purpose(&place, 3, 2, &purpose);
    tutti_handshake_start(&shake, fd, false, secret, &purpose, plenty());
    while ((rc = tutti_handshake_step(&shake)) == TUTTI_AGAIN)
        crew_step(&crew, 16);
    assert_int_equal(rc, TUTTI_OK);
    tutti_exchange_seal(&shake, &inbox, &outbox);
    sealed.size = (uint32_t)body_bytes;
    tutti_frame_digest(&sealed, body);
    sealed.size = frame->size;
    tutti_outbox_load(&outbox, &sealed, body);
    outbox.size = TUTTI_FRAME_BYTES + body_bytes;
    assert_int_equal(tutti_outbox_step(&outbox, fd), TUTTI_OK);
    return fd;
}

static void a_member_that_talks_nonsense_is_named_and_ends_all(void **state)
{
    static const struct {
        struct tutti_frame frame;
        size_t body_bytes;
    } cases[] = {
        {{.kind = TUTTI_FRAME_RECORD, .size = UINT32_MAX}, 0},
        {{.kind = TUTTI_FRAME_RECORD, .size = TUTTI_BOOTSTRAP_RECORD_MAX + 1}, 0},
        {{.kind = TUTTI_FRAME_RECORD, .size = 16, .round = 1}, 16},
        {{.kind = TUTTI_FRAME_RECORD, .size = 15}, 15},
        {{.kind = TUTTI_FRAME_TABLE, .size = 16}, 16},
        {{.kind = TUTTI_FRAME_LATER, .size = 16}, 16},
        {{.kind = TUTTI_FRAME_ERROR, .size = 3, .code = 17}, 3},
        {{.kind = 0, .size = 0}, 0},
        {{.kind = UINT32_MAX, .size = 0}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd;

        crew_open(&crew, BY_TCP);
        crew_add(&crew, 3, 0, plenty(), "secret");
        crew_add(&crew, 3, 1, plenty(), "secret");
        crew_step(&crew, 16); /* rank 1 is in, and hears of it */
        fd = join_and_send(&cases[i].frame, cases[i].body_bytes);
        crew_round(&crew, 16);
        for (int rank = 0; rank < 2; rank++) {
            if (crew.rc[rank] != TUTTI_ERR_REMOTE && crew.rc[rank] != TUTTI_ERR_USAGE)
                fail_msg("case %zu, rank %d: result %d: %s", i, rank, crew.rc[rank],
                         crew.message[rank]);
            assert_non_null(strstr(crew.message[rank], "rank 2"));
        }
        close(fd);
        crew_close(&crew);
    }
}

static void an_id_with_any_flipped_byte_is_refused(void **state)
{
    struct tutti_bootstrap *boot = NULL;

    (void)state;
    crew_open(&crew, BY_ID);
    for (size_t at = 0; at < sizeof crew.id; at++)
        for (int bit = 0; bit < 8; bit++) {
            crew.id[at] ^= (uint8_t)(1 << bit);
            assert_int_equal(tutti_bootstrap_from_id(crew.id, 2, 0, TUTTI_NEVER, &boot),
                             TUTTI_ERR_ARGUMENT);
            assert_null(boot);
            crew.id[at] ^= (uint8_t)(1 << bit);
        }
    crew_fill(&crew, 2, plenty());
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
}

static void ranks_out_of_range_are_refused(void **state)
{
    static const int pairs[][2] = {{0, 0}, {-1, 0}, {2, 2}, {2, -1}, {1, 1}};
    struct tutti_bootstrap *boot;

    (void)state;
    crew_open(&crew, BY_ID);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(tutti_bootstrap_from_id(crew.id, pairs[i][0], pairs[i][1], 0, &boot),
                         TUTTI_ERR_ARGUMENT);
        assert_int_equal(bootstrap_from_store("tcp:h:1", NULL, pairs[i][0], pairs[i][1], 0, &boot),
                         TUTTI_ERR_ARGUMENT);
    }
    crew_fill(&crew, 1, plenty()); /* claims the listener, so that nothing is left */
    crew_close(&crew);
}

static void stores_that_are_none_are_refused_by_name(void **state)
{
    static const char *const urls[] = {"", "tcp:", "tcp:host", "tcp:host:", "tcp:host:0",
                                       "tcp:host:65536", "tcp:host:x", "tcp:host:1-", "tcp::1",
                                       "tcp:host:9-8", "tcp:host:1-33", "file:", "http://x",
                                       "tcp:host:1x"};
    struct tutti_bootstrap *boot;

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_int_equal(bootstrap_from_store(urls[i], NULL, 2, 1, 0, &boot), TUTTI_ERR_ARGUMENT);
        assert_non_null(strstr(tutti_message_last(), urls[i]));
    }
}

static void a_port_in_use_is_an_error_that_names_it(void **state)
{
    struct tutti_bootstrap *boot;
    struct tutti_address address;
    uint16_t port_be;
    int fd;

    (void)state;
    crew_open(&crew, BY_TCP);
    assert_int_equal(address_parse(crew.url + 4, &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &fd, &port_be), TUTTI_OK);
    assert_int_equal(bootstrap_from_store(crew.url, NULL, 2, 0, 0, &boot), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), crew.url + 4));
    close(fd);
}

static void an_unusable_directory_is_an_error_that_names_it(void **state)
{
    struct tutti_bootstrap *boot;
    char url[128], link[96];

    (void)state;
    crew_open(&crew, BY_FILE);
    snprintf(url, sizeof url, "file:%s/absent/below", crew.directory);
    assert_int_equal(bootstrap_from_store(url, NULL, 2, 0, 0, &boot), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), url + 5));

    assert_int_equal(chmod(crew.directory, 0777), 0);
    assert_int_equal(bootstrap_from_store(crew.url, NULL, 2, 0, 0, &boot), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), "writable by everybody"));
    assert_int_equal(chmod(crew.directory, 0770), 0);
    assert_int_equal(bootstrap_from_store(crew.url, NULL, 2, 0, 0, &boot), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), "writable by its group"));
    assert_int_equal(chmod(crew.directory, 0700), 0);

    snprintf(link, sizeof link, "%s-link", crew.directory);
    assert_int_equal(symlink(crew.directory, link), 0);
    snprintf(url, sizeof url, "file:%s", link);
    assert_int_equal(bootstrap_from_store(url, NULL, 2, 0, 0, &boot), TUTTI_ERR_SYSTEM);
    assert_non_null(strstr(tutti_message_last(), "symbolic link"));
    assert_int_equal(unlink(link), 0);
    crew_close(&crew);
}

static void a_record_too_large_is_refused(void **state)
{
    static uint8_t mine[TUTTI_BOOTSTRAP_RECORD_MAX + 1], all[2 * sizeof mine];

    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        crew_fill(&crew, 2, plenty());
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                crew.boots[i]->ops->allgather(crew.boots[i], mine, sizeof mine, all),
                TUTTI_ERR_INTERNAL);
        crew_close(&crew);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_ranks_are_named_on_all_that_wait),
        cmocka_unit_test(a_member_whose_deadline_is_earlier_learns_who_is_missing_too),
        cmocka_unit_test(a_rank_that_stops_between_rounds_is_named),
        cmocka_unit_test(a_root_that_never_comes_is_a_timeout_that_names_the_place),
        cmocka_unit_test(disagreement_on_nranks_is_told_to_all),
        cmocka_unit_test(disagreement_on_the_record_is_told_to_all),
        cmocka_unit_test(two_ranks_that_claim_one_number_are_refused_on_all),
        cmocka_unit_test(a_member_that_says_why_it_leaves_is_quoted_to_all),
        cmocka_unit_test(a_member_that_vanishes_is_named_at_once),
        cmocka_unit_test(a_root_that_leaves_is_noticed_by_all),
        cmocka_unit_test(a_process_that_dies_is_noticed_at_once),
        cmocka_unit_test(a_process_that_dies_while_others_are_missing_is_noticed_at_once),
        cmocka_unit_test(a_rank_that_comes_after_the_root_has_given_up_is_told),
        cmocka_unit_test(an_id_that_is_used_again_is_named),
        cmocka_unit_test(a_root_whom_nobody_calls_asks_for_the_id),
        cmocka_unit_test(a_wrong_secret_joins_nothing),
        cmocka_unit_test(a_member_that_talks_nonsense_is_named_and_ends_all),
        cmocka_unit_test(an_id_with_any_flipped_byte_is_refused),
        cmocka_unit_test(ranks_out_of_range_are_refused),
        cmocka_unit_test(stores_that_are_none_are_refused_by_name),
        cmocka_unit_test(a_port_in_use_is_an_error_that_names_it),
        cmocka_unit_test(an_unusable_directory_is_an_error_that_names_it),
        cmocka_unit_test(a_record_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
