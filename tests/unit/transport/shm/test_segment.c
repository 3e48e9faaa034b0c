/* SPDX-License-Identifier: Apache-2.0
 * Tests the segment and its locks from another process. */
#include "transport/shm/segment.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NMEMBERS 4
static const uint32_t ranks[NMEMBERS] = {2, 3, 5, 7};

/* Which members' locks a forked process sees: one bit per member. */
static int locks_seen_by_another_process(const struct tutti_shm_segment *segment)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int seen = 0;

        for (uint32_t i = 0; i < NMEMBERS; i++)
            seen |= tutti_shm_segment_is_alive(segment, i) << i;
        _exit(seen);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void map_all(struct tutti_shm_segment **ret_segments)
{
    int fd;

    assert_int_equal(tutti_shm_segment_create(NMEMBERS, &fd), TUTTI_OK);
    for (uint32_t i = 0; i < NMEMBERS; i++)
        assert_int_equal(
            tutti_shm_segment_map(i == 0 ? fd : dup(fd), i, NMEMBERS, ranks, &ret_segments[i]),
            TUTTI_OK);
}

static void a_lock_ends_with_its_member_and_no_other(void **state)
{
    (void)state;
    /* Whichever rank leaves first, the descriptors of the file that the others have stay open. */
    for (int first = 0; first < NMEMBERS; first++) {
        struct tutti_shm_segment *segments[NMEMBERS];
        int expected = (1 << NMEMBERS) - 1;

        map_all(segments);
        assert_int_equal(locks_seen_by_another_process(segments[0]), expected);
        for (int i = 0; i < NMEMBERS - 1; i++) {
            int goes = (first + i) % NMEMBERS;

            tutti_shm_segment_destroy(segments[goes]);
            expected &= ~(1 << goes);
            assert_int_equal(locks_seen_by_another_process(segments[(goes + 1) % NMEMBERS]),
                             expected);
        }
        tutti_shm_segment_destroy(segments[(first + NMEMBERS - 1) % NMEMBERS]);
    }
}

static void all_members_have_places_of_their_own(void **state)
{
    struct tutti_shm_segment *segments[NMEMBERS];
    struct tutti_shm_segment *any;

    (void)state;
    map_all(segments);
    any = segments[1];
    for (uint32_t i = 0; i < NMEMBERS; i++) {
        struct tutti_domain *domain = &segments[i]->domain;

        assert_int_equal(domain->me, i);
        memset(&domain->waiters[i], (int)(0x10 + i), sizeof domain->waiters[i]);
        memset(tutti_domain_post(domain, i, 0), (int)(0x20 + i),
               TUTTI_POSTS * sizeof(struct tutti_post));
        memset(tutti_domain_window(domain, i, 0), (int)(0x30 + i), 2 * domain->half_bytes);
        for (int channel = 0; channel < 2; channel++)
            for (uint32_t to = 0; to < NMEMBERS; to++)
                memset(tutti_shm_segment_fifo(segments[i], channel, i, to),
                       (int)(0x80 + 0x40 * channel + 8 * (int)i + (int)to),
                       segments[i]->fifo_stride);
    }
    for (uint32_t i = 0; i < NMEMBERS; i++) {
        const uint8_t *window = tutti_domain_window(&any->domain, i, 1);

        assert_int_equal(*(const uint8_t *)&any->domain.waiters[i], 0x10 + i);
        assert_int_equal(*(const uint8_t *)tutti_domain_post(&any->domain, i, 1), 0x20 + i);
        assert_int_equal(window[any->domain.half_bytes - 1], 0x30 + i);
        for (int channel = 0; channel < 2; channel++)
            for (uint32_t to = 0; to < NMEMBERS; to++) {
                const uint8_t *fifo = (const uint8_t *)tutti_shm_segment_fifo(any, channel, i, to);

                assert_int_equal(fifo[0], 0x80 + 0x40 * channel + 8 * (int)i + (int)to);
                assert_int_equal(fifo[any->fifo_stride - 1], fifo[0]);
            }
    }
    assert_int_equal(any->header->nmembers, NMEMBERS);
    for (uint32_t i = 0; i < NMEMBERS; i++)
        tutti_shm_segment_destroy(segments[i]);
}

static void a_file_that_is_no_segment_is_refused(void **state)
{
    static const struct {
        size_t offset;
        uint8_t change;
    } rows[] = {
        {offsetof(struct tutti_shm_segment_header, magic), 1},
        {offsetof(struct tutti_shm_segment_header, nmembers), 1},
        {offsetof(struct tutti_shm_segment_header, total_bytes) + 2, 1},
        {offsetof(struct tutti_shm_segment_header, half_bytes), 1},
        {offsetof(struct tutti_shm_segment_header, half_bytes) + 7, 0x80},
        {offsetof(struct tutti_shm_segment_header, fifo_bytes) + 1, 1},
        {offsetof(struct tutti_shm_segment_header, fifo_bytes) + 7, 0x80},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tutti_shm_segment *segment = NULL;
        uint8_t byte;
        int fd;

        assert_int_equal(tutti_shm_segment_create(NMEMBERS, &fd), TUTTI_OK);
        assert_int_equal(pread(fd, &byte, 1, (off_t)rows[i].offset), 1);
        byte ^= rows[i].change;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)rows[i].offset), 1);
        assert_int_equal(tutti_shm_segment_map(fd, 0, NMEMBERS, ranks, &segment), TUTTI_ERR_SYSTEM);
        assert_null(segment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_ends_with_its_member_and_no_other),
        cmocka_unit_test(all_members_have_places_of_their_own),
        cmocka_unit_test(a_file_that_is_no_segment_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
