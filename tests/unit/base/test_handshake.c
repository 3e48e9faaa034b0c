/* SPDX-License-Identifier: Apache-2.0
 * Tests the handshake: members find each other, and strangers learn nothing and are refused. */
#include "base/handshake.h"

#include "base/clock.h"
#include "base/result.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static const uint8_t secret[TUTTI_SECRET_BYTES] = "the secret of the tests";
static const uint8_t other_secret[TUTTI_SECRET_BYTES] = "the secret of others";
static const struct tutti_purpose purpose = {.bytes = "rank 3, data"};

enum { ACCEPTOR, CONNECTOR };

/* Step both sides in turn until neither says "again". */
static void run(struct tutti_handshake shakes[2], int ret_rc[2])
{
    ret_rc[ACCEPTOR] = ret_rc[CONNECTOR] = TUTTI_AGAIN;
    while (ret_rc[ACCEPTOR] == TUTTI_AGAIN || ret_rc[CONNECTOR] == TUTTI_AGAIN)
        for (int side = 0; side < 2; side++) {
            if (ret_rc[side] != TUTTI_AGAIN)
                continue;
            ret_rc[side] = tutti_handshake_step(&shakes[side]);
            if (ret_rc[side] < 0)
                shutdown(shakes[side].fd, SHUT_RDWR);
        }
}

static void pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void unpair(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static void equal_secrets_meet_and_the_purpose_arrives(void **state)
{
    struct tutti_handshake shakes[2];
    int fds[2], rc[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shakes[ACCEPTOR], fds[0], true, secret, NULL, TUTTI_NEVER);
    tutti_handshake_start(&shakes[CONNECTOR], fds[1], false, secret, &purpose, TUTTI_NEVER);
    run(shakes, rc);
    assert_int_equal(rc[ACCEPTOR], TUTTI_OK);
    assert_int_equal(rc[CONNECTOR], TUTTI_OK);
    assert_memory_equal(&shakes[ACCEPTOR].purpose, &purpose, sizeof purpose);
    unpair(fds);
}

/* Both sides derive the same keys, one for each label; no other connection has them. */
static void a_connection_has_keys_of_its_own(void **state)
{
    uint8_t keys[2][2][2][TUTTI_SECRET_BYTES]; /* by connection, side and label */
    static const char *const labels[] = {"there", "back"};

    (void)state;
    for (int time = 0; time < 2; time++) {
        struct tutti_handshake shakes[2];
        int fds[2], rc[2];

        pair(fds);
        tutti_handshake_start(&shakes[ACCEPTOR], fds[0], true, secret, NULL, TUTTI_NEVER);
        tutti_handshake_start(&shakes[CONNECTOR], fds[1], false, secret, &purpose, TUTTI_NEVER);
        run(shakes, rc);
        assert_int_equal(rc[ACCEPTOR], TUTTI_OK);
        assert_int_equal(rc[CONNECTOR], TUTTI_OK);
        for (int side = 0; side < 2; side++) {
            for (int label = 0; label < 2; label++)
                tutti_handshake_key(&shakes[side], labels[label], keys[time][side][label]);
            tutti_handshake_forget(&shakes[side]);
            for (size_t i = 0; i < TUTTI_SECRET_BYTES; i++)
                assert_int_equal(shakes[side].session[i] | shakes[side].key[i], 0);
        }
        for (int label = 0; label < 2; label++)
            assert_memory_equal(keys[time][0][label], keys[time][1][label], TUTTI_SECRET_BYTES);
        assert_memory_not_equal(keys[time][0][0], keys[time][0][1], TUTTI_SECRET_BYTES);
        unpair(fds);
    }
    for (int label = 0; label < 2; label++)
        assert_memory_not_equal(keys[0][0][label], keys[1][0][label], TUTTI_SECRET_BYTES);
}

static void different_secrets_part_on_both_sides(void **state)
{
    struct tutti_handshake shakes[2];
    int fds[2], rc[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shakes[ACCEPTOR], fds[0], true, secret, NULL, TUTTI_NEVER);
    tutti_handshake_start(&shakes[CONNECTOR], fds[1], false, other_secret, &purpose, TUTTI_NEVER);
    run(shakes, rc);
    assert_int_equal(rc[ACCEPTOR], TUTTI_ERR_REMOTE);
    assert_int_equal(rc[CONNECTOR], TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "secret"));
    unpair(fds);
}

/* Carries bytes between two handshakes and flips one bit of byte `at` on the way to the acceptor
 * (`to_acceptor`) or from it. True when both sides were content. */
static bool survives_flip(bool to_acceptor, size_t at)
{
    struct tutti_handshake shakes[2];
    size_t carried[2] = {0, 0};
    int near_fds[2], far_fds[2];
    int rc[2] = {TUTTI_AGAIN, TUTTI_AGAIN};

    pair(near_fds);
    pair(far_fds);
    tutti_handshake_start(&shakes[ACCEPTOR], near_fds[0], true, secret, NULL, TUTTI_NEVER);
    tutti_handshake_start(&shakes[CONNECTOR], far_fds[0], false, secret, &purpose, TUTTI_NEVER);
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (int side = 0; side < 2; side++) {
            int from = side == ACCEPTOR ? near_fds[1] : far_fds[1];
            int to = side == ACCEPTOR ? far_fds[1] : near_fds[1];
            uint8_t byte;

            if (rc[side] == TUTTI_AGAIN)
                rc[side] = tutti_handshake_step(&shakes[side]);
            while (recv(from, &byte, 1, 0) == 1) {
                if ((side == CONNECTOR) == to_acceptor && carried[side] == at)
                    byte ^= 0x10;
                carried[side]++;
                is_moving = true;
                assert_int_equal(send(to, &byte, 1, MSG_NOSIGNAL), 1);
            }
        }
    }
    unpair(near_fds);
    unpair(far_fds);
    return rc[ACCEPTOR] == TUTTI_OK && rc[CONNECTOR] == TUTTI_OK;
}

static void every_flipped_byte_is_noticed(void **state)
{
    const size_t from_acceptor = 8 + TUTTI_NONCE_BYTES + TUTTI_MAC_BYTES;
    const size_t to_acceptor = 8 + TUTTI_NONCE_BYTES + TUTTI_PURPOSE_BYTES + TUTTI_MAC_BYTES;

    (void)state;
    assert_true(survives_flip(true, to_acceptor));    /* past the end: nothing is flipped */
    assert_true(survives_flip(false, from_acceptor));
    for (size_t at = 0; at < to_acceptor; at++)
        assert_false(survives_flip(true, at));
    for (size_t at = 0; at < from_acceptor; at++)
        assert_false(survives_flip(false, at));
}

static void a_stranger_is_known_by_its_first_wrong_byte(void **state)
{
    static const char *const texts[] = {"G", "T", "TUTx", "TUTi\1", "GET / HTTP/1.1\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int side = 0; side < 2; side++) {
            struct tutti_handshake shake;
            int expected = i == 1 ? TUTTI_AGAIN : TUTTI_ERR_REMOTE; /* "T" is a right beginning */
            int fds[2];

            pair(fds);
            tutti_handshake_start(&shake, fds[0], side == ACCEPTOR, secret, NULL, TUTTI_NEVER);
            assert_int_equal(send(fds[1], texts[i], strlen(texts[i]), 0), strlen(texts[i]));
            assert_int_equal(tutti_handshake_step(&shake), expected);
            unpair(fds);
        }
}

static void another_version_is_named(void **state)
{
    struct tutti_handshake shake;
    int fds[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shake, fds[0], false, secret, &purpose, TUTTI_NEVER);
    assert_int_equal(send(fds[1], "TUTi\0\0\0\x63", 8, 0), 8);
    assert_int_equal(tutti_handshake_step(&shake), TUTTI_ERR_REMOTE);
    assert_non_null(strstr(tutti_message_last(), "version 99"));
    unpair(fds);
}

static void a_connector_sends_nothing_to_a_silent_stranger(void **state)
{
    struct tutti_handshake shake;
    char byte;
    int fds[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shake, fds[0], false, secret, &purpose, 0);
    assert_int_equal(tutti_handshake_step(&shake), TUTTI_ERR_TIMEOUT);
    assert_int_equal(recv(fds[1], &byte, 1, 0), -1);
    unpair(fds);
}

static void a_silent_connector_is_dropped_at_the_deadline(void **state)
{
    struct tutti_handshake shake;
    int fds[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shake, fds[0], true, secret, NULL, tutti_now_ns() - 1);
    assert_int_equal(tutti_handshake_step(&shake), TUTTI_ERR_TIMEOUT);
    unpair(fds);
}

static void a_peer_that_hangs_up_is_gone(void **state)
{
    struct tutti_handshake shake;
    int fds[2];

    (void)state;
    pair(fds);
    tutti_handshake_start(&shake, fds[0], true, secret, NULL, TUTTI_NEVER);
    assert_int_equal(tutti_handshake_step(&shake), TUTTI_AGAIN);
    close(fds[1]);
    assert_int_equal(tutti_handshake_step(&shake), TUTTI_ERR_REMOTE);
    close(fds[0]);
}

static void an_acceptors_own_words_do_not_prove_anything_to_it(void **state)
{
    struct tutti_handshake shakes[2];
    uint8_t echo[256];
    int fds[2];
    ssize_t size;

    (void)state;
    pair(fds);
    tutti_handshake_start(&shakes[ACCEPTOR], fds[0], true, secret, NULL, TUTTI_NEVER);
    while (tutti_handshake_step(&shakes[ACCEPTOR]) == TUTTI_AGAIN) {
        size = recv(fds[1], echo, sizeof echo, 0);
        if (size <= 0) { /* it waits for more than it said: repeat a byte of its own */
            size = 1;
            echo[0] = echo[8];
        }
        assert_int_equal(send(fds[1], echo, (size_t)size, MSG_NOSIGNAL), size);
    }
    assert_int_equal(tutti_handshake_step(&shakes[ACCEPTOR]), TUTTI_ERR_REMOTE);
    unpair(fds);
}

static void secrets_differ_by_parent_label_and_number(void **state)
{
    uint8_t secrets[6][TUTTI_SECRET_BYTES];
    uint8_t same[TUTTI_SECRET_BYTES];

    (void)state;
    tutti_secret_derive(secret, "data", 0, secrets[0]);
    tutti_secret_derive(secret, "data", 1, secrets[1]);
    tutti_secret_derive(secret, "control", 0, secrets[2]);
    tutti_secret_derive(other_secret, "data", 0, secrets[3]);
    tutti_secret_from_text("data", secrets[4]);
    tutti_secret_from_text("", secrets[5]);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(secrets[i], secrets[j], TUTTI_SECRET_BYTES);

    tutti_secret_derive(secret, "data", 0, same);
    assert_memory_equal(same, secrets[0], sizeof same);
    tutti_secret_from_text("data", same);
    assert_memory_equal(same, secrets[4], sizeof same);
}

static void random_bytes_do_not_repeat(void **state)
{
    uint8_t one[TUTTI_SECRET_BYTES], two[TUTTI_SECRET_BYTES];

    (void)state;
    tutti_random_bytes(one, sizeof one);
    tutti_random_bytes(two, sizeof two);
    assert_memory_not_equal(one, two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_secrets_meet_and_the_purpose_arrives),
        cmocka_unit_test(a_connection_has_keys_of_its_own),
        cmocka_unit_test(different_secrets_part_on_both_sides),
        cmocka_unit_test(every_flipped_byte_is_noticed),
        cmocka_unit_test(a_stranger_is_known_by_its_first_wrong_byte),
        cmocka_unit_test(another_version_is_named),
        cmocka_unit_test(a_connector_sends_nothing_to_a_silent_stranger),
        cmocka_unit_test(a_silent_connector_is_dropped_at_the_deadline),
        cmocka_unit_test(a_peer_that_hangs_up_is_gone),
        cmocka_unit_test(an_acceptors_own_words_do_not_prove_anything_to_it),
        cmocka_unit_test(secrets_differ_by_parent_label_and_number),
        cmocka_unit_test(random_bytes_do_not_repeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
