/* SPDX-License-Identifier: Apache-2.0
 * Tests exchanges that succeed: every way to meet, every size, with strangers who connect. */
#include "crew.h"

#include "base/socket.h"
#include "support/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct crew crew;

static uint64_t plenty(void)
{
    return tutti_now_ns() + PLENTY_NS;
}

static void every_meeting_serves_every_number_of_ranks_for_many_rounds(void **state)
{
    static const int counts[] = {1, 2, 3, 8, 64};
    static const size_t sizes[] = {1, 100, 0, TUTTI_BOOTSTRAP_RECORD_MAX, 7};

    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            crew_open(&crew, meeting);
            crew_fill(&crew, counts[c], plenty());
            for (size_t round = 0; round < sizeof sizes / sizeof sizes[0]; round++) {
                crew_round(&crew, sizes[round]);
                crew_expect(&crew, TUTTI_OK, "");
            }
            crew_close(&crew);
        }
}

static void hundreds_of_ranks_meet_over_tcp(void **state)
{
    struct rlimit limit;

    (void)state;
    /* Four descriptors per rank, and all in one process. */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 2000) {
        print_message("skipped: this process may have only %lu descriptors\n",
                      (unsigned long)limit.rlim_max);
        skip();
    }
    crew_open(&crew, BY_ID);
    crew_fill(&crew, 256, plenty());
    crew_round(&crew, 512);
    crew_round(&crew, 512);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
}

static void the_secret_is_shared_and_new_each_time(void **state)
{
    uint8_t last[TUTTI_SECRET_BYTES];

    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++) {
        memset(last, 0, sizeof last);
        for (int time = 0; time < 2; time++) {
            crew_open(&crew, meeting);
            crew_fill(&crew, 3, plenty());
            crew_round(&crew, 8);
            for (int i = 0; i < 3; i++)
                assert_memory_equal(crew.boots[i]->secret, crew.boots[0]->secret, sizeof last);
            assert_memory_not_equal(crew.boots[0]->secret, last, sizeof last);
            memcpy(last, crew.boots[0]->secret, sizeof last);
            crew_close(&crew);
        }
    }
}

static void a_store_serves_one_communicator_after_another(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        for (int time = 0; time < 3; time++) {
            crew_fill(&crew, 4, plenty());
            crew_round(&crew, 16);
            crew_expect(&crew, TUTTI_OK, "");
            for (int i = 0; i < 4; i++)
                crew_leave(&crew, (i + time) % 4, NULL);
            crew.count = 0;
        }
        crew_close(&crew);
    }
}

/* All ranks of several communicators at one place, one step each in turn. */
static void communicators_of_different_names_form_at_once(void **state)
{
    static const char *const names[] = {"gradients", "parameters", NULL};

    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        for (int rank = 2; rank >= 0; rank--)
            for (size_t i = 0; i < 3; i++) {
                crew.name = names[i];
                crew_add(&crew, 3, rank, plenty(), "secret");
            }
        crew_round(&crew, 16);
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
        for (int rank = 0; rank < 3; rank++)
            for (int i = 0; i < 3; i++)
                assert_memory_equal(crew.boots[3 * rank + i]->secret, crew.boots[i]->secret,
                                    TUTTI_SECRET_BYTES);
        assert_memory_not_equal(crew.boots[0]->secret, crew.boots[1]->secret, TUTTI_SECRET_BYTES);
        crew_close(&crew);
    }
}

/* A root that is busy with a communicator of another name has no time for the member, which calls
 * again until its own root is there. */
static void a_member_waits_while_the_root_forms_another_communicator(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < BY_FILE; meeting++) {
        crew_open(&crew, meeting);
        crew.name = "first";
        crew_add(&crew, 2, 0, plenty(), "secret");
        crew.name = "second";
        crew_add(&crew, 2, 1, plenty(), "secret");
        for (int turn = 0; turn < 2000; turn++)
            crew_step(&crew, 16);
        assert_int_equal(crew.rc[0], TUTTI_AGAIN);
        assert_int_equal(crew.rc[1], TUTTI_AGAIN);
        crew_add(&crew, 2, 0, plenty(), "secret");
        crew.name = "first";
        crew_add(&crew, 2, 1, plenty(), "secret");
        crew_round(&crew, 16);
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
    }
}

/* A member has its last table, and calls for the next communicator at the old root's listener. */
static void a_member_that_is_early_for_the_next_communicator_waits(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < BY_FILE; meeting++) {
        crew_open(&crew, meeting);
        crew_fill(&crew, 3, plenty());
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
        crew_leave(&crew, 1, NULL);
        crew_add(&crew, 3, 1, plenty(), "secret"); /* number 3 of the crew */
        for (int turn = 0; turn < 50; turn++) {
            crew_step_one(&crew, 3, 16);
            assert_int_equal(crew.rc[3], TUTTI_AGAIN);
        }
        crew_leave(&crew, 2, NULL);
        crew_leave(&crew, 0, NULL);
        crew_add(&crew, 3, 0, plenty(), "secret");
        crew_add(&crew, 3, 2, plenty(), "secret");
        crew_round(&crew, 16);
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
    }
}

static void who_is_done_may_leave_before_the_others_are(void **state)
{
    (void)state;
    for (enum meeting meeting = 0; meeting < MEETING_COUNT; meeting++)
        for (int first = 0; first < 4; first++) {
            int left = 4;

            crew_open(&crew, meeting);
            crew_fill(&crew, 4, plenty());
            for (int i = 0; i < 4; i++)
                crew.rc[i] = TUTTI_AGAIN;
            /* Each leaves the moment it is done; `first` is served first each time round. */
            while (left > 0) {
                struct crew before = crew;

                crew_step(&crew, TUTTI_BOOTSTRAP_RECORD_MAX);
                for (int k = 0; k < 4; k++) {
                    int i = (first + k) % 4;

                    if (before.boots[i] == NULL || crew.rc[i] == TUTTI_AGAIN)
                        continue;
                    assert_int_equal(crew.rc[i], TUTTI_OK);
                    crew_leave(&crew, i, NULL);
                    left--;
                }
            }
            crew_close(&crew);
        }
}

static void members_may_come_before_the_root(void **state)
{
    (void)state;
    for (enum meeting meeting = BY_TCP; meeting < MEETING_COUNT; meeting++) {
        crew_open(&crew, meeting);
        for (int rank = 1; rank < 4; rank++)
            crew_add(&crew, 4, rank, plenty(), NULL);
        for (int turn = 0; turn < 20; turn++)
            crew_step(&crew, 8);
        crew_add(&crew, 4, 0, plenty(), NULL);
        crew_round(&crew, 8);
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
    }
}

static void any_rank_of_the_process_that_made_the_id_may_be_the_root(void **state)
{
    (void)state;
    crew_open(&crew, BY_ID);
    for (int rank = 4; rank >= 0; rank--)
        crew_add(&crew, 5, rank, plenty(), NULL);
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
}

static void many_ids_live_side_by_side(void **state)
{
    static struct crew other;

    (void)state;
    crew_open(&crew, BY_ID);
    crew_open(&other, BY_ID);
    assert_memory_not_equal(crew.id, other.id, sizeof other.id);
    crew_fill(&other, 2, plenty());
    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 8);
    crew_round(&other, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_expect(&other, TUTTI_OK, "");
    crew_close(&crew);
    crew_close(&other);
}

static void ranks_meet_over_ipv6_loopback(void **state)
{
    (void)state;
    crew_open(&crew, BY_TCP);
    memmove(crew.url + 4 + 5, crew.url + 4 + 9, strlen(crew.url + 4 + 9) + 1);
    memcpy(crew.url + 4, "[::1]", 5);
    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
}

static void ranks_meet_by_name(void **state)
{
    char port[16];

    (void)state;
    crew_open(&crew, BY_TCP);
    snprintf(port, sizeof port, "%s", strrchr(crew.url, ':'));
    snprintf(crew.url, sizeof crew.url, "tcp:localhost%s", port);
    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
}

/* The ranks for which each rank waits, and whether its report has precedence. */
static void a_rank_that_waits_says_for_whom(void **state)
{
    static const struct {
        enum meeting meeting;
        const char *of_root, *of_stranded, *of_joined;
    } cases[] = {
        {BY_TCP, "rank 2 of 3 has not joined at ", "has not been reached; last answer: connect to ",
         "has this rank's record and waits for other ranks"},
        {BY_FILE, "rank 2 of 3 has not joined in directory ", "rank 0 has not appeared in ",
         "has this rank's record and waits for other ranks"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256] = "";
        uint64_t end_ns = plenty();

        crew_open(&crew, cases[i].meeting);
        crew_add(&crew, 3, 1, end_ns, NULL);
        do {
            crew_step(&crew, 8);
            assert_true(crew.boots[0]->ops->describe_missing(crew.boots[0], text, sizeof text));
        } while (strstr(text, cases[i].of_stranded) == NULL && tutti_now_ns() < end_ns);
        crew_add(&crew, 3, 0, end_ns, NULL);
        while (crew.boots[0]->ops->describe_missing(crew.boots[0], text, sizeof text) ||
               !crew.boots[1]->ops->describe_missing(crew.boots[1], text, sizeof text) ||
               strstr(text, cases[i].of_root) == NULL) {
            assert_true(tutti_now_ns() < end_ns);
            crew_step(&crew, 8);
        }
        crew.boots[0]->ops->describe_missing(crew.boots[0], text, sizeof text);
        assert_non_null(strstr(text, cases[i].of_joined));
        crew_add(&crew, 3, 2, end_ns, NULL);
        crew_round(&crew, 8);
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
    }
}

static void strangers_who_call_disturb_nobody(void **state)
{
    static const char *const texts[] = {"", "G", "GET / HTTP/1.1\r\n\r\n", "TUTi"};
    enum { STRANGERS = 100 };
    int fds[STRANGERS];

    (void)state;
    for (enum meeting meeting = BY_ID; meeting <= BY_TCP; meeting++) {
        crew_open(&crew, meeting);
        crew_add(&crew, 4, 0, plenty(), "secret");
        for (int i = 0; i < STRANGERS; i++) {
            const char *text = texts[i % 4];

            fds[i] = crew_call(&crew);
            assert_int_equal(send(fds[i], text, strlen(text), MSG_NOSIGNAL), strlen(text));
        }
        for (int rank = 1; rank < 4; rank++)
            crew_add(&crew, 4, rank, plenty(), "secret");
        crew_round(&crew, 64);
        crew_expect(&crew, TUTTI_OK, "");
        for (int i = 0; i < STRANGERS; i++)
            close(fds[i]);
        crew_round(&crew, 64);
        crew_expect(&crew, TUTTI_OK, "");
        crew_close(&crew);
    }
}

static void a_range_of_ports_passes_by_what_others_occupy(void **state)
{
    struct tutti_address address;
    uint16_t port_be;
    unsigned port;
    int silent;

    (void)state;
    crew_open(&crew, BY_TCP);
    assert_int_equal(address_parse(crew.url + 4, &address), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&address, &silent, &port_be), TUTTI_OK);
    port = (unsigned)(address.port_be >> 8 | (address.port_be & 0xff) << 8);
    snprintf(crew.url, sizeof crew.url, "tcp:127.0.0.1:%u-%u", port,
             port > 65535 - 15 ? 65535 : port + 15);
    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew);
    close(silent);
}

static void a_directory_is_made_when_absent_and_goes_when_all_have_gone(void **state)
{
    char parent[sizeof crew.directory];

    (void)state;
    crew_open(&crew, BY_FILE);
    snprintf(parent, sizeof parent, "%s", crew.directory);
    snprintf(crew.url, sizeof crew.url, "file:%s/made", parent);
    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    crew_close(&crew); /* it would find "made" */
}

static void write_text(const char *directory, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void what_a_dead_run_left_in_the_directory_is_no_hindrance(void **state)
{
    static struct crew dead;
    char path[256];

    (void)state;
    crew_open(&crew, BY_FILE);
    /* A larger crew dies in its second round, all ranks at once, so that none cleans up. */
    dead = crew;
    crew_fill(&dead, 8, plenty());
    crew_round(&dead, 100);
    crew_step(&dead, 100);
    write_text(crew.directory, "welcome.1", "cut short");
    write_text(crew.directory, "join.2", "");
    write_text(crew.directory, "s0123456789abcdef.error", "old");

    crew_fill(&crew, 3, plenty());
    crew_round(&crew, 50);
    crew_expect(&crew, TUTTI_OK, "");
    crew_round(&crew, 50);
    crew_expect(&crew, TUTTI_OK, "");
    for (int i = 0; i < 3; i++)
        crew_leave(&crew, i, NULL);
    for (int i = 0; i < 8; i++)
        crew_leave(&dead, i, NULL);

    /* The dead crew's drafts apart, only what is not ours may remain. */
    snprintf(path, sizeof path, "%s/s0123456789abcdef.error", crew.directory);
    assert_int_equal(access(path, F_OK), -1);
    crew_close(&crew);
}

static void a_forked_child_does_not_serve_in_place_of_its_parent(void **state)
{
    int status;
    pid_t child;

    (void)state;
    crew_open(&crew, BY_ID);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        crew_add(&crew, 2, 1, plenty(), NULL);
        crew_round(&crew, 8);
        _exit(crew.rc[0] == TUTTI_OK ? 0 : 1);
    }
    crew_add(&crew, 2, 0, plenty(), NULL);
    crew_round(&crew, 8);
    crew_expect(&crew, TUTTI_OK, "");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    crew_close(&crew);
}

static void one_rank_alone_needs_nobody(void **state)
{
    struct tutti_bootstrap *boot;
    int all = 0;

    (void)state;
    assert_int_equal(tutti_bootstrap_alone(&boot), TUTTI_OK);
    assert_int_equal(boot->nranks, 1);
    assert_int_equal(boot->rank, 0);
    assert_int_equal(boot->ops->allgather(boot, &(int){17}, sizeof(int), &all), TUTTI_OK);
    assert_int_equal(all, 17);
    boot->ops->destroy(boot, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_meeting_serves_every_number_of_ranks_for_many_rounds),
        cmocka_unit_test(hundreds_of_ranks_meet_over_tcp),
        cmocka_unit_test(the_secret_is_shared_and_new_each_time),
        cmocka_unit_test(a_store_serves_one_communicator_after_another),
        cmocka_unit_test(communicators_of_different_names_form_at_once),
        cmocka_unit_test(a_member_waits_while_the_root_forms_another_communicator),
        cmocka_unit_test(a_member_that_is_early_for_the_next_communicator_waits),
        cmocka_unit_test(who_is_done_may_leave_before_the_others_are),
        cmocka_unit_test(members_may_come_before_the_root),
        cmocka_unit_test(any_rank_of_the_process_that_made_the_id_may_be_the_root),
        cmocka_unit_test(many_ids_live_side_by_side),
        cmocka_unit_test(ranks_meet_over_ipv6_loopback),
        cmocka_unit_test(ranks_meet_by_name),
        cmocka_unit_test(a_rank_that_waits_says_for_whom),
        cmocka_unit_test(strangers_who_call_disturb_nobody),
        cmocka_unit_test(a_range_of_ports_passes_by_what_others_occupy),
        cmocka_unit_test(a_directory_is_made_when_absent_and_goes_when_all_have_gone),
        cmocka_unit_test(what_a_dead_run_left_in_the_directory_is_no_hindrance),
        cmocka_unit_test(a_forked_child_does_not_serve_in_place_of_its_parent),
        cmocka_unit_test(one_rank_alone_needs_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
