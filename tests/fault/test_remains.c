/* SPDX-License-Identifier: Apache-2.0
 * Nothing remains after success and after every kind of failure. Strangers who connect to the
 * listeners of a communicator are refused, and everything continues. */
#include "crew.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NRANKS = 3, STRANGERS = 12 };

/* ---- remains -------------------------------------------------------------------------------- */

enum ending { IN_ORDER, BY_ABORT, BY_DEATH, BY_MISMATCH, BY_ABSENCE };

/* Entries of a directory with "tutti" in their names. */
static int count_named(const char *directory)
{
    DIR *dir = opendir(directory);
    int count = 0;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        count += strstr(entry->d_name, "tutti") != NULL;
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* The communicator is made, used, ended and destroyed in between two counts. */
static tuttiResult_t leave_nothing(struct crew_seat *seat)
{
    enum ending ending = *(const enum ending *)seat->crew->context;
    struct crew_call call = {CREW_ALLREDUCE, 5000, tuttiInt32, tuttiSum, 0};
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    int fds = crew_count_fds();
    tuttiStream_t stream;
    tuttiResult_t result;
    tuttiUniqueId id;

    config.initTimeoutMs = ending == BY_ABSENCE ? 300 : 20000;
    id = crew_share_id(seat);
    if (ending == BY_ABSENCE && seat->rank == NRANKS - 1)
        return tuttiSuccess;
    result = tuttiCommInitRankConfig(&seat->comm, NRANKS, id, seat->rank, &config);
    if ((result == tuttiSuccess) != (ending != BY_ABSENCE))
        return tuttiInternalError;
    if (result == tuttiSuccess)
        result = tuttiHostStreamCreate(&stream);
    for (int i = 0; i < 100 && result == tuttiSuccess; i++) {
        if (ending == BY_DEATH && seat->rank == 1 && i == 50)
            raise(SIGKILL);
        if (ending == BY_ABORT && seat->rank == 1 && i == 50)
            tuttiCommAbort(seat->comm);
        call.count += ending == BY_MISMATCH && seat->rank == 1 && i == 50;
        result = crew_call(seat, &call);
    }
    if (ending != BY_ABSENCE) {
        tuttiBarrier(seat->comm, stream);
        tuttiStreamSynchronize(stream);
        tuttiHostStreamDestroy(stream);
    }
    tuttiCommDestroy(seat->comm);
    seat->comm = NULL;
    if (crew_count_fds() != fds || crew_count_threads() != 1) {
        fprintf(stderr, "rank %d, ending %d: %d descriptors of %d, %d threads\n", seat->rank,
                (int)ending, crew_count_fds(), fds, crew_count_threads());
        return tuttiInternalError;
    }
    return (result == tuttiSuccess) == (ending == IN_ORDER) ? tuttiSuccess : tuttiInternalError;
}

static void no_pids(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    (void)crew, (void)board, (void)pids; /* it kills itself */
}

static void nothing_is_left_behind(void **state)
{
    const struct crew_way *way = *state;
    int memory = count_named("/dev/shm");

    for (enum ending ending = IN_ORDER; ending <= BY_ABSENCE; ending++) {
        struct crew_board *board = crew_run(
            &(struct crew){.nranks = NRANKS, .environment = way->environment, .forms_itself = true,
                           .run = leave_nothing, .meddle = no_pids, .context = &ending});

        for (int rank = 0; rank < NRANKS; rank++)
            if (board->reports[rank].result != tuttiSuccess && (ending != BY_DEATH || rank != 1))
                fail_msg("%s, ending %d: rank %d got %d: %s", way->name, (int)ending, rank,
                         (int)board->reports[rank].result, board->reports[rank].text);
        crew_clear(board);
        assert_int_equal(count_named("/dev/shm"), memory);
    }
}

/* ---- strangers ------------------------------------------------------------------------------- */

static bool owns_inode(pid_t pid, unsigned long inode)
{
    char directory[64], path[320], target[64], wanted[64];
    bool is_found = false;
    DIR *dir;

    snprintf(directory, sizeof directory, "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    dir = opendir(directory);
    for (struct dirent *entry; dir != NULL && !is_found && (entry = readdir(dir)) != NULL;) {
        ssize_t length;

        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        is_found = strcmp(target, wanted) == 0;
    }
    if (dir != NULL)
        closedir(dir);
    return is_found;
}

/* Ports on which the process listens. */
static int find_ports(pid_t pid, unsigned *ports, int most)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    int count = 0;

    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(tables[i], "r");
        char line[512];

        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            unsigned port, state;
            unsigned long inode;

            if (sscanf(line, "%*d: %*[^:]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port, &state,
                       &inode) == 3 && state == 10 && count < most && owns_inode(pid, inode))
                ports[count++] = port;
        }
        if (file != NULL)
            fclose(file);
    }
    return count;
}

/* Silent ones, ones that say nonsense, ones that begin well, ones that hang up at once. */
static int call(unsigned port, int manner)
{
    static const char *const words[] = {"", "GET / HTTP/1.0\r\n\r\n", "TUTi\0\0\0\2", NULL};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || words[manner] == NULL) {
        close(fd);
        return -1;
    }
    if (manner > 0)
        (void)!send(fd, words[manner], manner == 2 ? 8 : strlen(words[manner]), MSG_NOSIGNAL);
    return fd;
}

enum { MARK_ID, MARK_CALLED, MARK_FORMED, MARK_CALLED_AGAIN };

static void call_at_all_doors(const pid_t *pids, int nranks, int *fds, int *count)
{
    for (int rank = 0; rank < nranks; rank++) {
        unsigned ports[8];
        int nports = find_ports(pids[rank], ports, 8);

        for (int i = 0; i < nports; i++)
            for (int k = 0; k < STRANGERS; k++)
                fds[(*count)++] = call(ports[i], k % 4);
    }
}

static void be_strangers(const struct crew *crew, struct crew_board *board, const pid_t *pids)
{
    int fds[2 * NRANKS * 8 * STRANGERS], count = 0;

    (void)crew;
    if (crew_await(&board->marks[MARK_ID], 1))
        call_at_all_doors(pids, 1, fds, &count);
    assert_true(count > 0);
    crew_add(&board->marks[MARK_CALLED]);
    if (crew_await(&board->marks[MARK_FORMED], NRANKS))
        call_at_all_doors(pids, NRANKS, fds, &count);
    crew_add(&board->marks[MARK_CALLED_AGAIN]);
    for (int rank = 0; rank < NRANKS; rank++)
        crew_await(&board->steps[rank], 1);
    for (int i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static tuttiResult_t go_on_among_strangers(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    struct crew_call calls[] = {{CREW_BARRIER, 0, tuttiInt8, tuttiSum, 0},
                                {CREW_ALLREDUCE, 5000, tuttiInt32, tuttiSum, 0},
                                {CREW_SENDRECV, 5000, tuttiInt32, tuttiSum, 0}};
    tuttiUniqueId id = crew_share_id(seat);
    tuttiResult_t result;

    config.initTimeoutMs = 20000;
    crew_add(&seat->board->marks[MARK_ID]);
    if (!crew_await(&seat->board->marks[MARK_CALLED], 1))
        return tuttiInternalError;
    result = tuttiCommInitRankConfig(&seat->comm, NRANKS, id, seat->rank, &config);
    crew_add(&seat->board->marks[MARK_FORMED]);
    if (!crew_await(&seat->board->marks[MARK_CALLED_AGAIN], 1))
        return tuttiInternalError;
    for (int i = 0; i < 90 && result == tuttiSuccess; i++)
        result = crew_call(seat, &calls[i % 3]);
    crew_add(&seat->board->steps[seat->rank]);
    return result;
}

static void strangers_are_sent_away_and_all_goes_on(void **state)
{
    static const char *const by_tcp[] = {"TUTTI_TRANSPORTS", "tcp", NULL};
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = NRANKS, .environment = by_tcp, .forms_itself = true,
                                    .run = go_on_among_strangers, .meddle = be_strangers});
    for (int rank = 0; rank < NRANKS; rank++)
        if (board->reports[rank].result != tuttiSuccess)
            fail_msg("rank %d got %d: %s", rank, (int)board->reports[rank].result,
                     board->reports[rank].text);
    crew_clear(board);
}

int main(void)
{
    struct CMUnitTest tests[16];
    size_t count = 0;

    tests[count++] = (struct CMUnitTest)cmocka_unit_test(strangers_are_sent_away_and_all_goes_on);
    for (int i = 0; i < crew_way_count; i++)
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
            nothing_is_left_behind, (void *)(uintptr_t)&crew_ways[i]);
    return _cmocka_run_group_tests("what remains", tests, count, NULL, NULL);
}
