/* SPDX-License-Identifier: Apache-2.0
 * Two ranks whose bytes pass through a relay that does not hold their secret. Without
 * TUTTI_ENCRYPT it can read and change what they send each other. With `auth` every change is an
 * error on both ranks, and with `on` it cannot read them either. */
#include "relay.h"
#include "tutti.h"

#include "base/param.h"
#include "transport/tcp/tcp.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An all-reduce whose every direction carries at least half of the bytes. */
enum { NRANKS = 2, ELEMENTS = 8192, LAST_BYTE = 15000 };

/* Of the first record: bytes that are left out of it are missed when the second one arrives. */
enum { EARLY_BYTE = 4000 };

enum { GUARD_MS = 30000 }; /* against hangs */

struct meeting {
    pthread_barrier_t all;
    uint8_t inputs[NRANKS][TUTTI_FABRIC_RECORD_BYTES];
    struct relay *relay;
    const struct mischief *mischief; /* NULL: none */
};

struct rank {
    struct meeting *meeting;
    int number;
    pthread_t thread;
    tuttiResult_t result;   /* of the call that is attacked */
    bool is_right;          /* all its values are */
    tuttiResult_t after;    /* of the call after it */
    char text[512];         /* why one of them failed */
};

/* Rank 0 is told that rank 1 listens where the relay does. */
static void divert(struct meeting *meeting, void *output, size_t bytes)
{
    union tutti_record *record = (union tutti_record *)((uint8_t *)output + bytes);
    /* TCP alone has a slice in records. */
    struct tutti_tcp_record *called = (struct tutti_tcp_record *)(void *)record->slices;

    if (bytes != sizeof *record)
        return;
    relay_lead_to(meeting->relay, called->port_be);
    called->port_be = relay_port_be(meeting->relay);
}

static int all_gather(void *context, const void *input, void *output, size_t bytes)
{
    struct rank *rank = context;
    struct meeting *meeting = rank->meeting;

    assert_true(bytes <= sizeof meeting->inputs[0]);
    memcpy(meeting->inputs[rank->number], input, bytes);
    pthread_barrier_wait(&meeting->all);
    for (int i = 0; i < NRANKS; i++)
        memcpy((uint8_t *)output + (size_t)i * bytes, meeting->inputs[i], bytes);
    if (rank->number == 0)
        divert(meeting, output, bytes);
    pthread_barrier_wait(&meeting->all);
    return 0;
}

static int32_t value_of(int rank, size_t index)
{
    return (int32_t)((uint32_t)(index * NRANKS + (size_t)rank + 1) * 2654435761u >> 3);
}

static bool is_sum(const int32_t *values)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        if (values[i] != value_of(0, i) + value_of(1, i))
            return false;
    return true;
}

/* One call to make the connections, then the one that is attacked. */
static void *live(void *argument)
{
    struct rank *rank = argument;
    struct meeting *meeting = rank->meeting;
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    int32_t *input = malloc(ELEMENTS * sizeof *input), *output = malloc(ELEMENTS * sizeof *output);
    tuttiComm_t comm = NULL;

    config.timeoutMs = GUARD_MS;
    for (size_t i = 0; i < ELEMENTS; i++)
        input[i] = value_of(rank->number, i);
    rank->result = tuttiCommInitCallback(&comm, NRANKS, rank->number, all_gather, rank, &config);
    if (rank->result == tuttiSuccess)
        rank->result = tuttiAllReduce(input, output, ELEMENTS, tuttiInt32, tuttiSum, comm, NULL);
    if (rank->result != tuttiSuccess || !is_sum(output)) {
        fprintf(stderr, "rank %d before any mischief: %s\n", rank->number, tuttiGetLastError(NULL));
        abort();
    }
    memset(output, 0, ELEMENTS * sizeof *output);
    pthread_barrier_wait(&meeting->all); /* nothing is on its way */
    if (rank->number == 0 && meeting->mischief != NULL)
        relay_arm(meeting->relay, meeting->mischief);
    pthread_barrier_wait(&meeting->all);
    rank->result = tuttiAllReduce(input, output, ELEMENTS, tuttiInt32, tuttiSum, comm, NULL);
    rank->is_right = is_sum(output);
    rank->after = tuttiBarrier(comm, NULL);
    snprintf(rank->text, sizeof rank->text, "%s", tuttiGetLastError(comm));
    tuttiCommDestroy(comm);
    free(input);
    free(output);
    return NULL;
}

/* The relay is the caller's to stop. */
static struct relay *meet(const char *encrypt, const struct mischief *mischief,
                          struct rank ret_ranks[NRANKS])
{
    struct meeting meeting = {.relay = relay_start(), .mischief = mischief};

    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    setenv("TUTTI_SOCKET_FAMILY", "ipv4", 1);
    setenv("TUTTI_ENCRYPT", encrypt, 1);
    tutti_param_reset();
    pthread_barrier_init(&meeting.all, NULL, NRANKS);
    for (int i = 0; i < NRANKS; i++) {
        ret_ranks[i] = (struct rank){.meeting = &meeting, .number = i};
        assert_int_equal(pthread_create(&ret_ranks[i].thread, NULL, live, &ret_ranks[i]), 0);
    }
    for (int i = 0; i < NRANKS; i++)
        pthread_join(ret_ranks[i].thread, NULL);
    pthread_barrier_destroy(&meeting.all);
    return meeting.relay;
}

/* ---- without protection -------------------------------------------------------------------- */

static void without_encryption_a_flipped_bit_is_a_wrong_sum(void **state)
{
    (void)state;
    for (int from_caller = 0; from_caller < 2; from_caller++) {
        struct mischief mischief = {MISCHIEF_FLIP, from_caller == 1, 4001, 1, 2};
        struct rank ranks[NRANKS];

        relay_stop(meet("off", &mischief, ranks));
        assert_int_equal(ranks[0].result, tuttiSuccess);
        assert_int_equal(ranks[1].result, tuttiSuccess);
        assert_int_equal(ranks[0].after, tuttiSuccess);
        assert_int_equal(ranks[1].after, tuttiSuccess);
        assert_false(ranks[0].is_right && ranks[1].is_right);
    }
}

/* ---- with it ------------------------------------------------------------------------------- */

static void relay_that_only_passes_on_does_no_harm(void **state)
{
    static const struct {
        const char *encrypt;
        bool is_readable;
    } rows[] = {{"off", true}, {"auth", true}, {"on", false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t secret[4] = {value_of(0, 3), value_of(0, 4), value_of(0, 5), value_of(0, 6)};
        struct rank ranks[NRANKS];
        struct relay *relay = meet(rows[i].encrypt, NULL, ranks);

        for (int rank = 0; rank < NRANKS; rank++) {
            assert_int_equal(ranks[rank].result, tuttiSuccess);
            assert_true(ranks[rank].is_right);
        }
        assert_int_equal(relay_has_seen(relay, secret, sizeof secret), rows[i].is_readable);
        relay_stop(relay);
    }
}

static void expect_error(const char *encrypt, const struct mischief *mischief)
{
    char setting[32];
    struct rank ranks[NRANKS];
    struct relay *relay = meet(encrypt, mischief, ranks);
    bool is_named = false;

    snprintf(setting, sizeof setting, "TUTTI_ENCRYPT=%s", encrypt);
    if (!relay_has_struck(relay))
        fail_msg("the relay had no occasion for mischief %d at byte %zu", (int)mischief->kind,
                 mischief->at);
    relay_stop(relay);
    for (int rank = 0; rank < NRANKS; rank++) {
        if (ranks[rank].after != tuttiRemoteError)
            fail_msg("%s, mischief %d at byte %zu: rank %d has %s (%s)", setting,
                     (int)mischief->kind, mischief->at, rank,
                     tuttiGetErrorString(ranks[rank].after), ranks[rank].text);
        /* A rank that had all that it needed learns of it in the next call. */
        if (ranks[rank].result == tuttiSuccess && !ranks[rank].is_right)
            fail_msg("%s, mischief %d at byte %zu: rank %d has wrong values and no error", setting,
                     (int)mischief->kind, mischief->at, rank);
        is_named |= strstr(ranks[rank].text, "changed on the way") != NULL &&
                    strstr(ranks[rank].text, setting) != NULL;
    }
    if (!is_named && mischief->kind != MISCHIEF_CUT)
        fail_msg("%s, mischief %d at byte %zu is not named: %s; %s", setting, (int)mischief->kind,
                 mischief->at, ranks[0].text, ranks[1].text);
}

static const char *const protections[] = {"auth", "on"};

static void a_flipped_bit_is_an_error_on_both_ranks_wherever_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < 100; at += at < 8 ? 1 : 7) {
            struct mischief mischief = {MISCHIEF_FLIP, at % 2 == 0, at, 1, (int)(at % 8)};

            expect_error(protections[i], &mischief);
        }
    }
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

/* The bytes differ from those that follow, so that every repetition and exchange is a change. */
static void changed_repeated_moved_and_missing_bytes_are_errors_on_both_ranks(void **state)
{
    uint64_t seed = 20;

    (void)state;
    for (int i = 0; i < 40; i++) {
        struct mischief mischief = {.kind = (enum mischief_kind)(i % MISCHIEF_KINDS)};

        mischief.from_caller = draw(&seed) % 2 == 0;
        mischief.size = draw(&seed) % 300 + 4;
        mischief.at = draw(&seed) % (LAST_BYTE - 2 * mischief.size);
        if (mischief.kind == MISCHIEF_DROP)
            mischief.at %= EARLY_BYTE;
        mischief.bit = (int)(draw(&seed) % 8);
        expect_error(protections[i / MISCHIEF_KINDS % 2], &mischief);
    }
}

/* Without a secret everybody could compute the keys. */
static void encryption_over_a_tcp_store_needs_a_secret(void **state)
{
    static const char *const secrets[] = {NULL, ""};
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    (void)state;
    config.initTimeoutMs = 100;
    for (size_t i = 0; i < 4; i++) {
        tuttiComm_t comm = NULL;

        setenv("TUTTI_ENCRYPT", protections[i / 2], 1);
        tutti_param_reset();
        assert_int_equal(tuttiCommInitStore(&comm, NRANKS, 1, "tcp:127.0.0.1:1", secrets[i % 2],
                                            &config),
                         tuttiInvalidUsage);
        assert_non_null(strstr(tuttiGetLastError(NULL), "TUTTI_SECRET"));
        assert_null(comm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encryption_over_a_tcp_store_needs_a_secret),
        cmocka_unit_test(without_encryption_a_flipped_bit_is_a_wrong_sum),
        cmocka_unit_test(relay_that_only_passes_on_does_no_harm),
        cmocka_unit_test(a_flipped_bit_is_an_error_on_both_ranks_wherever_it_is),
        cmocka_unit_test(changed_repeated_moved_and_missing_bytes_are_errors_on_both_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
