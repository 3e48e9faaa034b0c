/* SPDX-License-Identifier: Apache-2.0
 * Shares the files of rank 0 over real fabrics, with one forked process per rank. */
#include "comm/share.h"

#include "base/result.h"
#include "transport/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct sizes {
    size_t schedules, tuning;
};

static uint8_t byte_at(size_t at, int item)
{
    return (uint8_t)(at * 131 + (at >> 9) + (size_t)item * 7 + 1);
}

static char *make(size_t size_bytes, int item)
{
    char *bytes = malloc(size_bytes + 1);

    CHECK(bytes != NULL);
    for (size_t at = 0; at < size_bytes; at++)
        bytes[at] = (char)byte_at(at, item);
    return bytes;
}

static void check_item(const struct tutti_share *share, enum tutti_share_item item, size_t expected)
{
    size_t size;
    const char *bytes = tutti_share_bytes(share, item, &size);

    CHECK(size == expected);
    CHECK((bytes == NULL) == (expected == 0));
    for (size_t at = 0; at < size; at++)
        CHECK((uint8_t)bytes[at] == byte_at(at, (int)item));
    CHECK(bytes == NULL || bytes[size] == '\0');
}

/* Every rank makes the header of rank 0 itself, because there is no bootstrap. */
static void make_head(const struct sizes *sizes, struct tutti_share *share,
                      uint8_t head[TUTTI_SHARE_HEAD_BYTES])
{
    char *schedules = make(sizes->schedules, TUTTI_SHARE_SCHEDULES);
    char *tuning = make(sizes->tuning, TUTTI_SHARE_TUNING);

    /* In the other order than they are kept. */
    CHECK(tutti_share_offer(share, TUTTI_SHARE_TUNING, tuning, sizes->tuning) == TUTTI_OK);
    CHECK(tutti_share_offer(share, TUTTI_SHARE_SCHEDULES, schedules, sizes->schedules) == TUTTI_OK);
    tutti_share_head(share, head);
    free(schedules);
    free(tuning);
}

static int share_all(struct tutti_fabric *fabric, int rank, int nranks, void *context)
{
    const struct sizes *sizes = context;
    struct tutti_share share = {.bytes = NULL};
    struct tutti_idle idle = {.passes = 0};
    uint8_t head[TUTTI_SHARE_HEAD_BYTES];
    int rc;

    make_head(sizes, &share, head);
    if (rank != 0)
        tutti_share_fini(&share);
    CHECK(tutti_share_expect(&share, head, nranks, rank) == TUTTI_OK);
    while ((rc = tutti_share_progress(&share, fabric, nranks, rank)) == TUTTI_AGAIN)
        tutti_fabric_idle(fabric, &idle);
    CHECK(rc == TUTTI_OK);
    check_item(&share, TUTTI_SHARE_SCHEDULES, sizes->schedules);
    check_item(&share, TUTTI_SHARE_TUNING, sizes->tuning);
    tutti_share_fini(&share);
    return 0;
}

static void every_rank_gets_the_bytes_of_rank_0(void **state)
{
    static const struct setting settings[] = {
        {.name = "shared memory", .route = "shm", .transports = "self,shm"},
        {.name = "single copy", .route = "cma", .transports = "self,cma,shm", .threshold = "1"},
        {.name = "sockets", .route = "tcp", .transports = "self,tcp"},
    };
    static const struct sizes sizes[] = {{0, 0}, {1, 0}, {0, 1}, {700001, 13}, {5, 3000000}};
    static const int ranks[] = {1, 2, 3, 7};

    (void)state;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
                struct sizes own = sizes[i];

                apply_setting(&settings[s]);
                run_processes(ranks[r], share_all, &own, -1);
            }
}

static void a_failure_of_rank_0_is_everybodys(void **state)
{
    struct tutti_share share = {.bytes = NULL}, other = {.bytes = NULL};
    uint8_t head[TUTTI_SHARE_HEAD_BYTES];

    (void)state;
    assert_int_equal(tutti_share_offer(&share, TUTTI_SHARE_TUNING, "x", 1), TUTTI_OK);
    tutti_share_fail(&share, TUTTI_ERR_USAGE, "ring.xml:3:7: no such step");
    tutti_share_head(&share, head);
    assert_int_equal(tutti_share_expect(&other, head, 4, 3), TUTTI_ERR_USAGE);
    assert_string_equal(tutti_message_last(), "rank 0: ring.xml:3:7: no such step");
    tutti_share_fini(&share);
    tutti_share_fini(&other);
}

static void more_than_can_be_shared_is_refused(void **state)
{
    struct tutti_share share = {.bytes = NULL};
    uint8_t head[TUTTI_SHARE_HEAD_BYTES];

    (void)state;
    assert_int_equal(tutti_share_offer(&share, TUTTI_SHARE_SCHEDULES, "", TUTTI_SHARE_ITEM_MAX + 1),
                     TUTTI_ERR_USAGE);
    memset(head, 0, sizeof head);
    memset(head + 4, 0xff, 4);
    assert_int_equal(tutti_share_expect(&share, head, 2, 1), TUTTI_ERR_REMOTE);
    tutti_share_fini(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_the_bytes_of_rank_0),
        cmocka_unit_test(a_failure_of_rank_0_is_everybodys),
        cmocka_unit_test(more_than_can_be_shared_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
