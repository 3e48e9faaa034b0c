/* SPDX-License-Identifier: Apache-2.0
 * Attacks ranks while they find each other. A relay changes bytes, a squatter greets at a port of
 * the range and is silent, and strangers use up all descriptors. */
#include "crew.h"

#include "base/socket.h"
#include "support/address.h"

#include <arpa/inet.h>
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

/* ---- a relay --------------------------------------------------------------------------------- */

enum { RECORD_BYTES = 16, TO_ROOT = 0, TO_MEMBER = 1 };

/* The messages of both sides of the handshake. */
enum {
    GREETING_BYTES = 8 + TUTTI_NONCE_BYTES,
    TO_ROOT_BEFORE = GREETING_BYTES + TUTTI_PURPOSE_BYTES + TUTTI_MAC_BYTES,
    TO_MEMBER_BEFORE = GREETING_BYTES + TUTTI_MAC_BYTES,
};

/* A man in the middle of one member and the root, who holds no secret. */
struct relay {
    int listen_fd;
    int fds[2];         /* toward root and member; -1: none yet, or gone */
    size_t carried[2];  /* by direction */
    int direction;      /* in which one byte is changed */
    size_t at;
};

static void carry(struct relay *relay, int direction)
{
    int from = relay->fds[!direction], to = relay->fds[direction];
    uint8_t bytes[256];
    ssize_t count;

    if (from < 0 || to < 0)
        return;
    while ((count = recv(from, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        size_t first = relay->carried[direction];

        if (direction == relay->direction && relay->at >= first &&
            relay->at < first + (size_t)count)
            bytes[relay->at - first] ^= 0x04;
        relay->carried[direction] += (size_t)count;
        (void)!send(to, bytes, (size_t)count, MSG_NOSIGNAL);
    }
    if (count == 0)
        shutdown(to, SHUT_WR);
}

static void relay_step(struct relay *relay, const struct tutti_address *root)
{
    if (relay->fds[TO_MEMBER] < 0 &&
        tutti_socket_accept(relay->listen_fd, &relay->fds[TO_MEMBER]) == TUTTI_OK) {
        while (tutti_socket_connect(root, &relay->fds[TO_ROOT]) == TUTTI_AGAIN)
            continue;
        assert_true(relay->fds[TO_ROOT] >= 0);
    }
    carry(relay, TO_ROOT);
    carry(relay, TO_MEMBER);
}

static void expect_record(const uint8_t *all, int rank)
{
    for (int i = 0; i < RECORD_BYTES; i++)
        assert_int_equal(all[rank * RECORD_BYTES + i], rank + 1);
}

/* One forming of two ranks with the relay between them. The words of the side that got the changed
 * byte, or "" if both were content. */
static void form_over(struct relay *relay, int ret_rc[2], char text[TUTTI_MESSAGE_BYTES])
{
    struct tutti_meeting_place place = {
        .where = "the relay", .name = "", .secret = "known to ranks"};
    struct tutti_address root, relayed;
    struct tutti_bootstrap *boots[2];
    struct tutti_listener *listener;
    uint16_t port_be;
    int fd;

    assert_int_equal(address_parse("127.0.0.1:0", &root), TUTTI_OK);
    relayed = root;
    assert_int_equal(tutti_socket_listen(&root, &fd, &root.port_be), TUTTI_OK);
    assert_int_equal(tutti_listener_adopt(fd, &listener), TUTTI_OK);
    assert_int_equal(tutti_socket_listen(&relayed, &relay->listen_fd, &port_be), TUTTI_OK);
    relayed.port_be = port_be;
    assert_int_equal(tutti_exchange_serve(listener, &place, 2, 0, plenty(), NULL, NULL, &boots[0]),
                     TUTTI_OK);
    assert_int_equal(tutti_exchange_join(&relayed, 1, NULL, &place, 2, 1, plenty(), &boots[1]),
                     TUTTI_OK);
    text[0] = '\0';
    ret_rc[0] = ret_rc[1] = TUTTI_AGAIN;
    while (ret_rc[0] == TUTTI_AGAIN || ret_rc[1] == TUTTI_AGAIN) {
        for (int rank = 0; rank < 2; rank++) {
            uint8_t mine[RECORD_BYTES], all[2 * RECORD_BYTES];

            if (ret_rc[rank] != TUTTI_AGAIN)
                continue;
            memset(mine, rank + 1, sizeof mine);
            ret_rc[rank] = boots[rank]->ops->allgather(boots[rank], mine, sizeof mine, all);
            if (ret_rc[rank] == TUTTI_OK) {
                expect_record(all, 0);
                expect_record(all, 1);
            } else if (ret_rc[rank] < 0 && rank == relay->direction) {
                snprintf(text, TUTTI_MESSAGE_BYTES, "%s", tutti_message_last());
            }
        }
        relay_step(relay, &root);
    }
    for (int rank = 0; rank < 2; rank++)
        boots[rank]->ops->destroy(boots[rank], NULL);
    for (int i = 0; i < 2; i++)
        if (relay->fds[i] >= 0)
            close(relay->fds[i]);
    close(relay->listen_fd);
}

static void every_byte_that_a_relay_changes_is_an_error(void **state)
{
    static const size_t before[2] = {TO_ROOT_BEFORE, TO_MEMBER_BEFORE};
    static const size_t frames[2] = {TUTTI_FRAME_BYTES + RECORD_BYTES,
                                     TUTTI_FRAME_BYTES + 2 * RECORD_BYTES};
    char text[TUTTI_MESSAGE_BYTES];
    int rc[2];

    (void)state;
    for (int direction = TO_ROOT; direction <= TO_MEMBER; direction++)
        for (size_t at = 0; at <= frames[direction]; at++) {
            struct relay relay = {.fds = {-1, -1}, .direction = direction,
                                  .at = before[direction] + at};
            bool is_changed = at < frames[direction];

            form_over(&relay, rc, text);
            if (is_changed && (rc[direction] != TUTTI_ERR_REMOTE || !strstr(text, "altered")))
                fail_msg("direction %d, byte %zu: results %d and %d, '%s'", direction, at, rc[0],
                         rc[1], text);
            if (!is_changed) {
                assert_int_equal(rc[0], TUTTI_OK);
                assert_int_equal(rc[1], TUTTI_OK);
            }
        }
}

/* ---- a squatter ------------------------------------------------------------------------------ */

/* Accepts callers at a port of the range, sends a greeting, which everybody can, and nothing
 * more. */
static void a_squatter_who_greets_and_is_silent_costs_seconds(void **state)
{
    static const char greeting[24] = "TUTi\0\0\0\2 a nonce";
    struct tutti_address address;
    int squatter, fds[64], count = 0;
    uint64_t begun_ns;
    uint16_t port_be;
    unsigned port;

    (void)state;
    crew_open(&crew, BY_TCP);
    assert_int_equal(address_parse(crew.url + 4, &address), TUTTI_OK);
    port = ntohs(address.port_be);
    if (port > 65000)
        skip();
    assert_int_equal(tutti_socket_listen(&address, &squatter, &port_be), TUTTI_OK);
    snprintf(crew.url, sizeof crew.url, "tcp:127.0.0.1:%u-%u", port, port + 8);
    begun_ns = tutti_now_ns();
    crew_fill(&crew, 2, plenty());
    crew.rc[0] = crew.rc[1] = TUTTI_AGAIN;
    while (crew.rc[0] == TUTTI_AGAIN || crew.rc[1] == TUTTI_AGAIN) {
        int fd;

        for (int i = 0; i < 2; i++)
            if (crew.rc[i] == TUTTI_AGAIN)
                crew_step_one(&crew, i, 16);
        while (count < 64 && tutti_socket_accept(squatter, &fd) == TUTTI_OK) {
            (void)!send(fd, greeting, sizeof greeting, MSG_NOSIGNAL);
            fds[count++] = fd;
        }
        usleep(1000);
    }
    crew_expect(&crew, TUTTI_OK, "");
    assert_true(count > 0);
    assert_true(tutti_now_ns() < begun_ns + PLENTY_NS / 2);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    close(squatter);
    crew_close(&crew);
}

/* ---- strangers ------------------------------------------------------------------------------- */

/* Idle connections until no descriptor is left: the root drops the oldest and takes its ranks. */
static void strangers_who_take_all_descriptors_do_not_end_the_forming(void **state)
{
    enum { FREE = 40, STRANGERS = 60 };
    struct rlimit limit, tight;
    int fds[STRANGERS], status, pipe_fds[2];
    char byte;
    pid_t root;

    (void)state;
    crew_open(&crew, BY_TCP);
    assert_int_equal(pipe(pipe_fds), 0);
    fflush(stdout);
    root = fork();
    assert_true(root >= 0);
    if (root == 0) {
        int lowest = dup(0);

        getrlimit(RLIMIT_NOFILE, &limit);
        tight = limit;
        tight.rlim_cur = (rlim_t)(lowest + FREE);
        setrlimit(RLIMIT_NOFILE, &tight);
        close(lowest);
        crew_add(&crew, 3, 0, plenty(), "secret");
        (void)!write(pipe_fds[1], "x", 1);
        crew_round(&crew, 16);
        _exit(crew.rc[0] == TUTTI_OK ? 0 : 1);
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    for (int i = 0; i < STRANGERS; i++)
        fds[i] = crew_call(&crew);
    crew_add(&crew, 3, 1, plenty(), "secret");
    crew_add(&crew, 3, 2, plenty(), "secret");
    crew_round(&crew, 16);
    crew_expect(&crew, TUTTI_OK, "");
    assert_int_equal(waitpid(root, &status, 0), root);
    assert_int_equal(status, 0);
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    crew_close(&crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_that_a_relay_changes_is_an_error),
        cmocka_unit_test(a_squatter_who_greets_and_is_silent_costs_seconds),
        cmocka_unit_test(strangers_who_take_all_descriptors_do_not_end_the_forming),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
