/* SPDX-License-Identifier: Apache-2.0
 * Some communicators cannot form. One line gives the reason, by the deadline, and nothing is left
 * open. */
#include "fault/crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNTOUCHED ((tuttiComm_t)(uintptr_t)0x5a5a)
enum { INIT_MS = 400 };

static tuttiUniqueId good_id, bad_id, zero_id;
static tuttiConfig_t good, no_magic, no_size, negative_blocking, no_init_time, negative_time;
static char taken[64], closed[64], silent[64];

static int gather_fails(void *context, const void *input, void *output, size_t bytes)
{
    (void)context, (void)input, (void)output, (void)bytes;
    return 7;
}

struct tutti_member_attempt {
    const char *text;
    tuttiResult_t (*make)(tuttiComm_t *comm);
    tuttiResult_t expected;
    const char *words[2];
};

#define ATTEMPT(name, call) static tuttiResult_t name(tuttiComm_t *c) { (void)c; return call; }
#define INIT(n, id, r, config) tuttiCommInitRankConfig(c, n, id, r, &config)
#define STORE(n, r, url) tuttiCommInitStore(c, n, r, url, "secret", &good)

ATTEMPT(rank_without_comm, tuttiCommInitRank(NULL, 1, good_id, 0))
ATTEMPT(rank_of_none, tuttiCommInitRank(c, 0, good_id, 0))
ATTEMPT(rank_of_minus_1, tuttiCommInitRank(c, -1, good_id, 0))
ATTEMPT(rank_minus_1, tuttiCommInitRank(c, 2, good_id, -1))
ATTEMPT(rank_2_of_2, tuttiCommInitRank(c, 2, good_id, 2))
ATTEMPT(damaged_id, tuttiCommInitRank(c, 2, bad_id, 1))
ATTEMPT(zeroed_id, tuttiCommInitRank(c, 2, zero_id, 1))
ATTEMPT(config_without_comm, tuttiCommInitRankConfig(NULL, 1, good_id, 0, &good))
ATTEMPT(config_without_magic, INIT(1, good_id, 0, no_magic))
ATTEMPT(config_without_size, INIT(1, good_id, 0, no_size))
ATTEMPT(config_blocking_minus_1, INIT(1, good_id, 0, negative_blocking))
ATTEMPT(config_init_time_0, INIT(1, good_id, 0, no_init_time))
ATTEMPT(config_time_minus_5, INIT(1, good_id, 0, negative_time))
ATTEMPT(all_of_null, tuttiCommInitAll(NULL, 1, NULL))
ATTEMPT(all_of_none, tuttiCommInitAll(c, 0, NULL))
ATTEMPT(all_on_devices, tuttiCommInitAll(c, 1, &(int){-2}))
ATTEMPT(env_without_comm, tuttiCommInitFromEnv(NULL, NULL))
ATTEMPT(env_without_magic, tuttiCommInitFromEnv(c, &no_magic))
ATTEMPT(store_without_comm, tuttiCommInitStore(NULL, 1, 0, "file:/tmp", NULL, NULL))
ATTEMPT(store_of_null, STORE(1, 0, NULL))
ATTEMPT(store_of_nothing, STORE(1, 0, ""))
ATTEMPT(store_of_unknown_kind, STORE(1, 0, "ftp:somewhere"))
ATTEMPT(store_without_directory, STORE(1, 0, "file:"))
ATTEMPT(store_without_port, STORE(1, 0, "tcp:localhost"))
ATTEMPT(store_with_port_0, STORE(1, 0, "tcp:localhost:0"))
ATTEMPT(store_with_port_70000, STORE(1, 0, "tcp:localhost:70000"))
ATTEMPT(store_with_port_of_letters, STORE(1, 0, "tcp:localhost:http"))
ATTEMPT(store_of_rank_2_of_2, STORE(2, 2, "tcp:localhost:4711"))
ATTEMPT(store_in_no_directory, STORE(2, 0, "file:/proc/no/such/place"))
ATTEMPT(store_on_port_taken, STORE(2, 0, taken))
ATTEMPT(store_nobody_listens, STORE(2, 1, closed))
ATTEMPT(store_silent, STORE(2, 1, silent))
ATTEMPT(root_alone, INIT(2, good_id, 0, good))
ATTEMPT(callback_without_comm, tuttiCommInitCallback(NULL, 1, 0, gather_fails, NULL, NULL))
ATTEMPT(callback_of_null, tuttiCommInitCallback(c, 1, 0, NULL, NULL, NULL))
ATTEMPT(callback_of_rank_2_of_2, tuttiCommInitCallback(c, 2, 2, gather_fails, NULL, NULL))
ATTEMPT(callback_fails, tuttiCommInitCallback(c, 2, 0, gather_fails, NULL, NULL))
ATTEMPT(callback_without_magic, tuttiCommInitCallback(c, 1, 0, gather_fails, NULL, &no_magic))

#define ROW(name, result, ...) {#name, name, result, {__VA_ARGS__}}
#define ARGUMENT tuttiInvalidArgument

static const struct tutti_member_attempt attempts[] = {
    ROW(rank_without_comm, ARGUMENT, "tuttiCommInitRank", "comm is NULL"),
    ROW(rank_of_none, ARGUMENT, "tuttiCommInitRank", "nranks is 0"),
    ROW(rank_of_minus_1, ARGUMENT, "tuttiCommInitRank", "nranks is -1"),
    ROW(rank_minus_1, ARGUMENT, "tuttiCommInitRank", "rank -1"),
    ROW(rank_2_of_2, ARGUMENT, "tuttiCommInitRank", "rank 2"),
    ROW(damaged_id, ARGUMENT, "unique id", "unchanged"),
    ROW(zeroed_id, ARGUMENT, "unique id", "unchanged"),
    ROW(config_without_comm, ARGUMENT, "tuttiCommInitRankConfig", "comm is NULL"),
    ROW(config_without_magic, ARGUMENT, "config", "TUTTI_CONFIG_INITIALIZER"),
    ROW(config_without_size, ARGUMENT, "config", "TUTTI_CONFIG_INITIALIZER"),
    ROW(config_blocking_minus_1, ARGUMENT, "config.blocking", "-1"),
    ROW(config_init_time_0, ARGUMENT, "config.initTimeoutMs", "0"),
    ROW(config_time_minus_5, ARGUMENT, "config.timeoutMs", "-5"),
    ROW(all_of_null, ARGUMENT, "tuttiCommInitAll", "comms is NULL"),
    ROW(all_of_none, ARGUMENT, "tuttiCommInitAll", "ndev"),
    ROW(all_on_devices, ARGUMENT, "devlist[0] is -2", "GPU"),
    ROW(env_without_comm, ARGUMENT, "tuttiCommInitFromEnv", "comm is NULL"),
    ROW(env_without_magic, ARGUMENT, "config", "TUTTI_CONFIG_INITIALIZER"),
    ROW(store_without_comm, ARGUMENT, "tuttiCommInitStore", "comm is NULL"),
    ROW(store_of_null, ARGUMENT, "tuttiCommInitStore", "store is NULL"),
    ROW(store_of_nothing, ARGUMENT, "store", "file:DIRECTORY"),
    ROW(store_of_unknown_kind, ARGUMENT, "store", "ftp:somewhere"),
    ROW(store_without_directory, ARGUMENT, "store", "file:DIRECTORY"),
    ROW(store_without_port, ARGUMENT, "store", "tcp:localhost"),
    ROW(store_with_port_0, ARGUMENT, "store", "port 1 to 65535"),
    ROW(store_with_port_70000, ARGUMENT, "store", "port 1 to 65535"),
    ROW(store_with_port_of_letters, ARGUMENT, "store", "port 1 to 65535"),
    ROW(store_of_rank_2_of_2, ARGUMENT, "tuttiCommInitStore", "rank 2"),
    ROW(store_in_no_directory, tuttiSystemError, "/proc/no/such/place", ""),
    ROW(store_on_port_taken, tuttiSystemError, "port", "in use"),
    ROW(store_nobody_listens, tuttiTimeout, "127.0.0.1", ""),
    ROW(store_silent, tuttiTimeout, "127.0.0.1", ""),
    ROW(root_alone, tuttiTimeout, "rank 1", "joined"),
    ROW(callback_without_comm, ARGUMENT, "tuttiCommInitCallback", "comm is NULL"),
    ROW(callback_of_null, ARGUMENT, "tuttiCommInitCallback", "allGather is NULL"),
    ROW(callback_of_rank_2_of_2, ARGUMENT, "tuttiCommInitCallback", "rank 2"),
    ROW(callback_fails, tuttiRemoteError, "all-gather", "7"),
    ROW(callback_without_magic, ARGUMENT, "config", "TUTTI_CONFIG_INITIALIZER"),
};

static int listen_somewhere(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 8) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    snprintf(url, size, "tcp:127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

static void every_failure_to_form_says_why_and_leaves_nothing(void **state)
{
    tuttiConfig_t fresh = TUTTI_CONFIG_INITIALIZER;
    int listeners[3];

    (void)state;
    listeners[0] = listen_somewhere(taken, sizeof taken);
    listeners[1] = listen_somewhere(silent, sizeof silent);
    close(listen_somewhere(closed, sizeof closed));
    good = fresh;
    good.initTimeoutMs = INIT_MS;
    no_magic = no_size = negative_blocking = no_init_time = negative_time = good;
    no_magic.magic = 0;
    no_size.size = 3;
    negative_blocking.blocking = -1;
    no_init_time.initTimeoutMs = 0;
    negative_time.timeoutMs = -5;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        const struct tutti_member_attempt *attempt = &attempts[i];
        tuttiComm_t comm = UNTOUCHED;
        tuttiResult_t result;
        const char *text;
        int before;

        assert_int_equal(tuttiGetUniqueId(&good_id), tuttiSuccess);
        bad_id = good_id;
        bad_id.internal[40] ^= 1;
        before = crew_count_fds();
        result = attempt->make(&comm);
        text = tuttiGetLastError(NULL);
        if (result != attempt->expected)
            fail_msg("%s: result %d, not %d: %s", attempt->text, (int)result,
                     (int)attempt->expected, text);
        if (strchr(text, '\n') != NULL || strstr(text, attempt->words[0]) == NULL ||
            strstr(text, attempt->words[1]) == NULL)
            fail_msg("%s: \"%s\" is not one line with \"%s\" and \"%s\"", attempt->text, text,
                     attempt->words[0], attempt->words[1]);
        if (crew_count_fds() > before)
            fail_msg("%s: %d descriptors, %d before", attempt->text, crew_count_fds(), before);
        if (comm != UNTOUCHED && comm != NULL)
            fail_msg("%s: has set comm", attempt->text);
    }
    close(listeners[0]);
    close(listeners[1]);
}

static void every_byte_of_an_id_counts(void **state)
{
    (void)state;
    assert_int_equal(tuttiGetUniqueId(&good_id), tuttiSuccess);
    for (size_t i = 0; i < TUTTI_UNIQUE_ID_BYTES; i++) {
        tuttiComm_t comm = UNTOUCHED;

        bad_id = good_id;
        bad_id.internal[i] ^= (char)(1 << i % 8);
        assert_int_equal(tuttiCommInitRank(&comm, 2, bad_id, 1), tuttiInvalidArgument);
        assert_ptr_equal(comm, UNTOUCHED);
    }
}

/* ---- ranks that disagree --------------------------------------------------------------------- */

enum disagreement { ON_NRANKS, ON_NUMBER, ABOUT_COMING };

static tuttiResult_t disagree(struct crew_seat *seat)
{
    enum disagreement what = *(const enum disagreement *)seat->crew->context;
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiUniqueId id = crew_share_id(seat);
    int nranks = seat->nranks, rank = seat->rank;

    config.initTimeoutMs = 3000;
    if (seat->rank == 2) {
        nranks += what == ON_NRANKS;
        rank -= what == ON_NUMBER;
        if (what == ABOUT_COMING)
            return tuttiTimeout;
    }
    return tuttiCommInitRankConfig(&seat->comm, nranks, id, rank, &config);
}

static void ranks_that_disagree_are_told(void **state)
{
    static const struct {
        enum disagreement what;
        tuttiResult_t expected[2];
        const char *word;
    } cases[] = {
        {ON_NRANKS, {tuttiInvalidUsage, tuttiRemoteError}, "4"},
        {ON_NUMBER, {tuttiInvalidUsage, tuttiRemoteError}, "number 1"},
        /* The rank whose deadline is a moment later may learn of the other's first. */
        {ABOUT_COMING, {tuttiTimeout, tuttiRemoteError}, "rank 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct crew_board *board = crew_run(&(struct crew){
            .nranks = 3, .forms_itself = true, .run = disagree, .context = &cases[i].what});
        bool is_named = false;

        for (int rank = 0; rank < 3; rank++) {
            tuttiResult_t result = board->reports[rank].result;

            if (result != cases[i].expected[0] && result != cases[i].expected[1])
                fail_msg("case %zu: rank %d got %d: %s", i, rank, (int)result,
                         board->reports[rank].text);
            is_named |= strstr(board->reports[rank].text, cases[i].word) != NULL;
            assert_null(strstr(board->reports[rank].text, "closed the connection"));
        }
        if (!is_named)
            fail_msg("case %zu: %s / %s / %s", i, board->reports[0].text, board->reports[1].text,
                     board->reports[2].text);
        crew_clear(board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_disagree_are_told), /* forks: before the library is used */
        cmocka_unit_test(every_failure_to_form_says_why_and_leaves_nothing),
        cmocka_unit_test(every_byte_of_an_id_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
