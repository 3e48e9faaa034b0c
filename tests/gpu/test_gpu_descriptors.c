/* SPDX-License-Identifier: Apache-2.0
 * Ranks in different processes use each other's memory by descriptors that its owners show: without
 * the right to trace a process, with more allocations than are listed, when the kernel passes no
 * more descriptors, and when a rank dies. Nothing stays open. */
#include "gpu/listening.h"
#include "gpu/ranks.h"
#include "support/no_cma.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

static const struct place apart = {LAUNCH_PROCESSES, NRANKS, 2, -1};

static int32_t *allocate(struct member *member)
{
    void *memory = NULL;

    EXPECT_OK(member, tuttiMemAlloc(&memory, SUM_COUNT * sizeof(int32_t)));
    return memory;
}

/* No rank may be using the memory. */
static void deallocate(struct member *member, int32_t *memory)
{
    member_meet(member);
    EXPECT_OK(member, tuttiMemFree(memory));
}

static void form(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;

    member_share_id(member, &id);
    EXPECT_OK(member, tuttiCommInitRankConfig(&member->comm, member->nranks, id, member->rank,
                                              &config));
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* As in most containers, from before the communicator is formed. */
static void sum_without_rights(struct member *member)
{
    int32_t *memory = allocate(member);

    EXPECT(member, forbid_tracing());
    EXPECT(member, syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 && errno == EPERM);
    form(member);
    sum_often(member, memory, "without the right to trace");
    member_meet(member);
    EXPECT_OK(member, tuttiCommDestroy(member->comm));
    deallocate(member, memory);
}

static void processes_need_no_right_to_trace_each_other(void **state)
{
    const char *said = run_and_listen(&apart, false, "debug", "", sum_without_rights);

    (void)state;
    expect_lines(said, ": all ranks can access the", NRANKS);
    expect_lines(said, "ranks can access the", NRANKS);
}

/* ---- many allocations ------------------------------------------------------------------------ */

/* More than the catalog lists at a time, which is 31. */
enum { MANY = 40, EARLY = 12 };

static void sum_in_many(struct member *member)
{
    int32_t *memory[MANY];

    for (int i = 0; i < MANY; i++)
        memory[i] = allocate(member);
    sum_often(member, memory[0], "the oldest of many");
    sum_often(member, memory[MANY - 1], "one that is not listed");
    for (int i = 0; i < EARLY; i++)
        deallocate(member, memory[i]);
    sum_often(member, memory[MANY - 1], "one that is listed now");
    sum_often(member, memory[EARLY], "one that was listed before");
    for (int i = EARLY; i < MANY; i++)
        deallocate(member, memory[i]);
}

static void more_allocations_than_entries_are_listed_one_after_the_other(void **state)
{
    (void)state;
    expect_lines(run_and_listen(&apart, true, "debug", "", sum_in_many),
                 ": all ranks can access the", NRANKS * MANY);
}

/* ---- what is in sockets ---------------------------------------------------------------------- */

/* Counts the boards with a notice, by looking into all datagram sockets. A notice has at least a
 * word; bells are single bytes. */
static int count_notices(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        int type = 0;
        socklen_t size = sizeof type;
        uint32_t word;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM)
            count += recv(fd, &word, sizeof word, MSG_PEEK | MSG_DONTWAIT) == sizeof word;
    }
    return count;
}

/* The boards of the other ranks count as well, since each rank can look into all. */
static void sum_and_look(struct member *member)
{
    int32_t *memory = allocate(member);

    sum_often(member, memory, "shown memory");
    member_meet(member);
    EXPECT(member, count_notices() == 0);
    deallocate(member, memory);
}

static void nothing_stays_on_a_board_that_all_ranks_have_read(void **state)
{
    (void)state;
    at_place(&apart, true, sum_and_look);
}

/* ---- a kernel that passes no more descriptors ------------------------------------------------ */

/* The user without rights on most systems. Root may pass any number of descriptors. */
enum { NOBODY = 65534, ROOM = 24 };

/* From now on the kernel passes about as many descriptors for this process as it may have open.
 * There is room for ROOM more. */
static void lower_limit(struct member *member)
{
    struct rlimit limit;
    int highest = 0;

    EXPECT(member, getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (int fd = 0; fd < 1024; fd++)
        highest = fcntl(fd, F_GETFD) >= 0 ? fd : highest;
    limit.rlim_cur = (rlim_t)(highest + ROOM);
    EXPECT(member, setrlimit(RLIMIT_NOFILE, &limit) == 0);
    EXPECT(member, geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

/* Sends copies of a descriptor to the socket until the kernel refuses more. */
static void fill(struct member *member, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 0;
    struct iovec iov = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int passed = STDERR_FILENO;

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    while (sendmsg(fd, &message, MSG_DONTWAIT) == 1)
        continue;
    EXPECT(member, errno == ETOOMANYREFS);
}

/* Rank 0 cannot show its buffer at first. */
static void sum_while_kernel_refuses(struct member *member)
{
    int32_t *memory = allocate(member);
    int ends[2];

    if (member->rank == 0) {
        lower_limit(member);
        EXPECT(member, socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        fill(member, ends[0]);
    }
    sum_often(member, memory, "in a buffer that cannot be shown");
    if (member->rank == 0) {
        close(ends[0]);
        close(ends[1]);
        fprintf(stderr, "the kernel passes descriptors again\n");
    }
    sum_often(member, memory, "in a buffer that can be shown now");
    deallocate(member, memory);
}

static void buffers_are_shown_later_when_the_kernel_refuses(void **state)
{
    const char *said = run_and_listen(&apart, true, "debug", "", sum_while_kernel_refuses);
    const char *again = strstr(said, "the kernel passes descriptors again");

    (void)state;
    expect_lines(said, "rank 0 shows its buffers later", 1);
    expect_lines(said, ": all ranks can access the", NRANKS);
    assert_non_null(again);
    expect_lines(again, "rank 0: all ranks can access the", 1);
}

/* ---- what stays open ------------------------------------------------------------------------- */

/* Forms a communicator and a split of it, uses both, and ends both. */
static void use_and_end(struct member *member, tuttiResult_t (*end)(tuttiComm_t comm))
{
    tuttiComm_t whole;
    int32_t *memory;

    form(member);
    whole = member->comm;
    memory = allocate(member);
    sum_often(member, memory, "in the whole");
    EXPECT_OK(member, tuttiCommSplit(whole, 0, member->rank, &member->comm, NULL));
    sum_often(member, memory, "in the split");
    member_meet(member);
    EXPECT_OK(member, end(member->comm));
    member_meet(member);
    EXPECT_OK(member, end(whole));
    deallocate(member, memory);
}

static tuttiResult_t abort_and_destroy(tuttiComm_t comm)
{
    tuttiResult_t result = tuttiCommAbort(comm);

    return result != tuttiSuccess ? result : tuttiCommDestroy(comm);
}

/* Other ranks of this process open and close descriptors, too, and counting needs one. So ranks
 * count one after the other. */
static int count_fds(struct member *member)
{
    int count = 0;

    member_meet(member);
    for (int rank = 0; rank < member->nranks; rank++) {
        if (rank == member->rank)
            count = crew_count_fds();
        member_meet(member);
    }
    return count;
}

static void use_and_count(struct member *member)
{
    int before;

    use_and_end(member, tuttiCommDestroy); /* the first one opens what the process keeps */
    before = count_fds(member);
    use_and_end(member, tuttiCommDestroy);
    EXPECT(member, count_fds(member) == before);
    use_and_end(member, abort_and_destroy);
    EXPECT(member, count_fds(member) == before);
}

static void communicators_leave_no_descriptor_open(void **state)
{
    (void)state;
    at_place(&apart, false, use_and_count);
    at_place(&(struct place){LAUNCH_MIXED, 4, 2, -1}, false, use_and_count);
}

/* ---- a rank that dies ------------------------------------------------------------------------ */

static tuttiResult_t sum_once(void *memory, tuttiComm_t comm, struct tutti_cu_stream *stream)
{
    return tuttiAllReduce(memory, memory, SUM_COUNT, tuttiInt32, tuttiSum, comm,
                          (tuttiStream_t)(void *)stream);
}

/* Shows one more buffer, which the other ranks may open before or after this rank has died. */
static void show_another_and_stop(tuttiComm_t comm)
{
    struct tutti_cu_stream *stream;
    void *memory;

    must(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    if (tuttiMemAlloc(&memory, SUM_COUNT * sizeof(int32_t)) != tuttiSuccess ||
        sum_once(memory, comm, stream) != tuttiSuccess)
        _exit(9);
}

/* Rank 1 dies when all ranks use each other's buffers. */
static tuttiResult_t outlive(struct rank *rank)
{
    struct crew_seat *seat = rank->seat;
    tuttiResult_t result = tuttiSuccess;
    tuttiComm_t comm = NULL;
    void *memory = NULL;
    int before = crew_count_fds();

    if (tuttiCommSplit(seat->comm, 0, seat->rank, &comm, NULL) != tuttiSuccess ||
        tuttiMemAlloc(&memory, SUM_COUNT * sizeof(int32_t)) != tuttiSuccess)
        _exit(9);
    for (int i = 0; i < SUM_TIMES && result == tuttiSuccess; i++)
        result = sum_once(memory, comm, NULL);
    if (seat->rank == 1)
        show_another_and_stop(comm);
    crew_add(&seat->board->marks[MARK_CALLED]);
    while (seat->rank == 1)
        pause();
    while (result == tuttiSuccess)
        result = sum_once(memory, comm, NULL);
    tuttiCommDestroy(comm);
    tuttiMemFree(memory);
    if (crew_count_fds() > before) {
        fprintf(stderr, "%d descriptors, not %d\n", crew_count_fds(), before);
        _exit(10);
    }
    return result;
}

static void kill_rank_1(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    assert_true(crew_await(&board->marks[MARK_CALLED], (uint32_t)crew->nranks));
    kill(pids[1], SIGKILL);
}

static void ranks_close_the_descriptors_of_a_rank_that_has_died(void **state)
{
    const struct script script = {outlive, 0, SUM_COUNT, NULL};
    struct crew_board *board =
        crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = LONG_MS,
                                .run = form_and_act, .meddle = kill_rank_1, .context = &script});

    (void)state;
    expect_report(board, 0, tuttiRemoteError, "rank 1");
    expect_report(board, 2, tuttiRemoteError, "rank 1");
    crew_clear(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_need_no_right_to_trace_each_other),
        cmocka_unit_test(more_allocations_than_entries_are_listed_one_after_the_other),
        cmocka_unit_test(nothing_stays_on_a_board_that_all_ranks_have_read),
        cmocka_unit_test(buffers_are_shown_later_when_the_kernel_refuses),
        cmocka_unit_test(communicators_leave_no_descriptor_open),
        cmocka_unit_test(ranks_close_the_descriptors_of_a_rank_that_has_died),
    };

    return cmocka_run_group_tests_name("descriptors that ranks show each other", tests, NULL, NULL);
}
