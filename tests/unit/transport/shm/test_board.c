/* SPDX-License-Identifier: Apache-2.0
 * Boards show descriptors: to any number of readers, as often as they look, and until the owner
 * replaces them. No call waits, and nothing is left open. */
#include "transport/shm/board.h"

#include "base/result.h"
#include "base/socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The user without rights on most systems. Root may pass any number of descriptors. */
enum { NOBODY = 65534 };

static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static ino_t inode_of(int fd)
{
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    return status.st_ino;
}

/* A notice of new files with the numbers `first`, `first` + 1, ... */
static struct tutti_board_notice make_notice(uint32_t first, uint32_t count)
{
    struct tutti_board_notice notice = {.count = count};

    for (uint32_t i = 0; i < count; i++) {
        notice.numbers[i] = first + i;
        notice.fds[i] = memfd_create("board", MFD_CLOEXEC);
        assert_true(notice.fds[i] >= 0);
    }
    return notice;
}

/* The reader sees this notice, in copies of its descriptors. */
static void expect_notice(int far_fd, const struct tutti_board_notice *shown)
{
    struct tutti_board_notice seen;

    assert_int_equal(tutti_board_read(far_fd, &seen), TUTTI_OK);
    assert_int_equal(seen.count, shown->count);
    assert_false(seen.is_cut);
    for (uint32_t i = 0; i < shown->count; i++) {
        int fd = tutti_board_find(&seen, shown->numbers[i]);

        assert_true(fd >= 0 && fd != shown->fds[i]);
        assert_true(inode_of(fd) == inode_of(shown->fds[i]));
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(tutti_board_find(&seen, 9999), -1);
    tutti_board_close_copies(&seen);
}

static void readers_see_what_is_shown_until_it_is_replaced(void **state)
{
    static const uint32_t counts[] = {1, 5, TUTTI_BOARD_ENTRIES, 2, 0, 3};
    struct tutti_board_notice none = {.count = 0};
    struct tutti_board board;
    int before = count_fds(), reader;

    (void)state;
    assert_int_equal(tutti_board_open(&board), TUTTI_OK);
    reader = dup(board.far_fd);
    expect_notice(reader, &none);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct tutti_board_notice notice = make_notice((uint32_t)(100 * i + 1), counts[i]);
        int open_fds = count_fds();

        assert_int_equal(tutti_board_show(&board, &notice), TUTTI_OK);
        for (int times = 0; times < 3; times++)
            expect_notice(reader, &notice);
        assert_int_equal(count_fds(), open_fds);
        tutti_board_close_copies(&notice);
    }
    assert_int_equal(tutti_board_show(&board, &none), TUTTI_OK);
    expect_notice(reader, &none);
    close(reader);
    tutti_board_close(&board);
    tutti_board_close(&board);
    assert_int_equal(count_fds(), before);
}

/* A file that is only on the board is closed by what removes it there: its pipe ends. */
static void shown_descriptors_are_closed_with_the_notice(void **state)
{
    struct tutti_board_notice notice = {.count = 1, .numbers = {1}}, none = {.count = 0};
    char byte;

    (void)state;
    for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
        struct tutti_board board;
        int ends[2];

        assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
        notice.fds[0] = ends[1];
        assert_int_equal(tutti_board_open(&board), TUTTI_OK);
        assert_int_equal(tutti_board_show(&board, &notice), TUTTI_OK);
        close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), -1);
        assert_int_equal(errno, EAGAIN);
        if (is_replaced)
            assert_int_equal(tutti_board_show(&board, &none), TUTTI_OK);
        else
            tutti_board_close(&board);
        assert_int_equal(read(ends[0], &byte, 1), 0);
        tutti_board_close(&board);
        close(ends[0]);
    }
}

/* Runs `check` in a child, whose limits and rights it may lower. It returns NULL, or the claim that
 * is not so. */
static void run_in_child(const char *(*check)(void))
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        const char *claim = check();

        if (claim != NULL)
            dprintf(STDERR_FILENO, "not so: %s\n", claim);
        _exit(claim != NULL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define CLAIM(claim)       \
    do {                   \
        if (!(claim))      \
            return #claim; \
    } while (0)

/* Shows file 7 on a board of its own, and passes the far end to the reader. */
static void show_and_end(int to_reader)
{
    struct tutti_board_notice notice = {.count = 1, .numbers = {7}};
    struct tutti_board board;

    notice.fds[0] = memfd_create("board", MFD_CLOEXEC);
    _exit(notice.fds[0] >= 0 && tutti_board_open(&board) == TUTTI_OK &&
          tutti_board_show(&board, &notice) == TUTTI_OK &&
          tutti_socket_send_fd(to_reader, board.far_fd) == TUTTI_OK ? 0 : 1);
}

static const char *read_after_death(void)
{
    struct tutti_board_notice seen;
    int ends[2], far_fd, status, before;
    pid_t owner;

    CLAIM(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    before = count_fds();
    owner = fork();
    if (owner == 0)
        show_and_end(ends[0]);
    CLAIM(waitpid(owner, &status, 0) == owner && status == 0);
    CLAIM(tutti_socket_recv_fd(ends[1], &far_fd) == TUTTI_OK);
    CLAIM(tutti_board_read(far_fd, &seen) == TUTTI_OK && seen.count == 1);
    CLAIM(tutti_board_find(&seen, 7) >= 0);
    tutti_board_close_copies(&seen);
    close(far_fd);
    CLAIM(count_fds() == before);
    return NULL;
}

static void a_reader_outlives_the_owner(void **state)
{
    (void)state;
    run_in_child(read_after_death);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* A child that lived on would keep the descriptors on the board open. */
static void a_child_has_no_copy_of_a_board(void **state)
{
    struct tutti_board board;
    int ends[2], far_fd, status;
    pid_t child;

    (void)state;
    assert_int_equal(tutti_board_open(&board), TUTTI_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(tutti_socket_send_fd(ends[0], board.far_fd), TUTTI_OK);
    assert_int_equal(tutti_socket_recv_fd(ends[1], &far_fd), TUTTI_OK);
    child = fork();
    if (child == 0)
        _exit(is_open(board.near_fd) || is_open(board.far_fd) || is_open(far_fd) ||
              !is_open(ends[0]));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tutti_board_close(&board);
    close(far_fd);
    close(ends[0]);
    close(ends[1]);
}

/* ---- limits ---------------------------------------------------------------------------------- */

enum { SHOWN = 8, ROOM = 3 };

/* Takes the descriptors for which there is room, and no more. */
static const char *read_with_little_room(void)
{
    struct tutti_board_notice shown = make_notice(1, SHOWN), seen;
    struct tutti_board board;
    struct rlimit limit;
    int before;

    CLAIM(tutti_board_open(&board) == TUTTI_OK);
    CLAIM(tutti_board_show(&board, &shown) == TUTTI_OK);
    before = count_fds();
    CLAIM(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = (rlim_t)board.far_fd + 1 + ROOM;
    CLAIM(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CLAIM(tutti_board_read(board.far_fd, &seen) == TUTTI_OK);
    CLAIM(seen.is_cut && seen.count >= ROOM && seen.count < SHOWN);
    CLAIM(inode_of(tutti_board_find(&seen, 1)) == inode_of(shown.fds[0]));
    CLAIM(tutti_board_find(&seen, SHOWN) == -1);
    tutti_board_close_copies(&seen);
    CLAIM(count_fds() == before);
    return NULL;
}

static void a_reader_without_room_takes_what_fits(void **state)
{
    (void)state;
    run_in_child(read_with_little_room);
}

/* Passes descriptors to nobody until the kernel refuses more. They are taken out again by closing
 * the sockets. Returns how many pairs of sockets it took; 0: the kernel never refused. */
static int fill(int pairs[][2], int most)
{
    int passed = 0, rc = TUTTI_OK;

    for (int count = 0; count < most; count++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[count]) != 0)
            return 0;
        while (passed < 1000 * (count + 1) &&
               (rc = tutti_socket_send_fd(pairs[count][0], STDERR_FILENO)) == TUTTI_OK)
            passed++;
        if (rc != TUTTI_OK && rc != TUTTI_AGAIN)
            return count + 1;
    }
    return 0;
}

enum { MOST_PAIRS = 20, FEW = 64 };

/* The kernel counts the descriptors that are in sockets for each user, and compares them with the
 * limit of open files. */
static const char *show_too_many(void)
{
    struct tutti_board_notice shown = make_notice(1, 2), seen;
    const struct rlimit few = {.rlim_cur = FEW, .rlim_max = FEW};
    int pairs[MOST_PAIRS][2], npairs;
    struct tutti_board board;

    CLAIM(tutti_board_open(&board) == TUTTI_OK);
    CLAIM(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CLAIM(geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0);
    npairs = fill(pairs, MOST_PAIRS);
    CLAIM(npairs > 0);
    CLAIM(tutti_board_show(&board, &shown) == TUTTI_AGAIN);
    CLAIM(tutti_board_read(board.far_fd, &seen) == TUTTI_OK && seen.count == 0);
    for (int i = 0; i < npairs; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    CLAIM(tutti_board_show(&board, &shown) == TUTTI_OK);
    CLAIM(tutti_board_read(board.far_fd, &seen) == TUTTI_OK && seen.count == 2);
    tutti_board_close_copies(&seen);
    return NULL;
}

static void an_owner_with_too_many_descriptors_in_sockets_tries_again(void **state)
{
    (void)state;
    run_in_child(show_too_many);
}

/* ---- messages that are no notices ------------------------------------------------------------ */

static void a_message_that_is_no_notice_is_refused(void **state)
{
    struct tutti_board_notice seen;
    struct tutti_board board;
    static const char bytes[1000];
    static const size_t sizes[] = {1, 4, 6, sizeof bytes};
    int before = count_fds();

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(tutti_board_open(&board), TUTTI_OK);
        assert_int_equal(send(board.near_fd, bytes, sizes[i], 0), sizes[i]);
        assert_int_equal(tutti_board_read(board.far_fd, &seen), TUTTI_ERR_REMOTE);
        tutti_board_close_copies(&seen);
        tutti_board_close(&board);
    }
    assert_int_equal(count_fds(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_what_is_shown_until_it_is_replaced),
        cmocka_unit_test(shown_descriptors_are_closed_with_the_notice),
        cmocka_unit_test(a_reader_outlives_the_owner),
        cmocka_unit_test(a_child_has_no_copy_of_a_board),
        cmocka_unit_test(a_reader_without_room_takes_what_fits),
        cmocka_unit_test(an_owner_with_too_many_descriptors_in_sockets_tries_again),
        cmocka_unit_test(a_message_that_is_no_notice_is_refused),
    };

    return cmocka_run_group_tests_name("boards", tests, NULL, NULL);
}
