/* SPDX-License-Identifier: Apache-2.0
 * Processes reach the limit of descriptors, memory, keys, or the size of files. They get errors,
 * do not crash, and lose nothing. */
#include "crew.h"
#include "support/stderr_text.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NRANKS = 2, MOST_FDS = 48 };

/* Two ranks of one thread: form, all-reduce, destroy. */
static tuttiResult_t use_a_communicator(void)
{
    tuttiComm_t comms[NRANKS] = {NULL};
    tuttiResult_t result = tuttiCommInitAll(comms, NRANKS, NULL);
    int values[NRANKS] = {0};

    if (result != tuttiSuccess)
        return result;
    tuttiGroupStart();
    for (int rank = 0; rank < NRANKS; rank++) {
        values[rank] = rank + 1;
        tuttiAllReduce(&values[rank], &values[rank], 1, tuttiInt32, tuttiSum, comms[rank], NULL);
    }
    result = tuttiGroupEnd();
    for (int rank = 0; rank < NRANKS; rank++)
        tuttiCommDestroy(comms[rank]);
    return result != tuttiSuccess || values[0] == 3 ? result : tuttiInternalError;
}

static int lowest_free_fd(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

/* With ever more descriptors to spare; each attempt fails cleanly until one succeeds. */
static tuttiResult_t run_out_of_descriptors(struct crew_seat *seat)
{
    struct rlimit limit, before;
    int used = lowest_free_fd(), fds = crew_count_fds();
    tuttiResult_t result = tuttiSuccess;
    bool has_failed = false;

    getrlimit(RLIMIT_NOFILE, &before);
    for (int spare = 0; spare < MOST_FDS; spare++) {
        limit = (struct rlimit){.rlim_cur = (rlim_t)(used + spare), .rlim_max = before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &limit);
        result = use_a_communicator();
        setrlimit(RLIMIT_NOFILE, &before);
        if (result == tuttiInternalError || crew_count_fds() != fds) {
            fprintf(stderr, "%d descriptors: result %d, %d open of %d: %s\n", spare, (int)result,
                    crew_count_fds(), fds, tuttiGetLastError(NULL));
            return tuttiInternalError;
        }
        if (result != tuttiSuccess && *tuttiGetLastError(NULL) == '\0')
            return tuttiInternalError;
        has_failed |= result != tuttiSuccess;
        crew_add(&seat->board->steps[0]);
    }
    return has_failed ? result : tuttiInternalError;
}

static void without_descriptors_there_are_errors_and_no_leaks(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = 1, .forms_itself = true,
                                    .environment = (const char *const[]){"TUTTI_INIT_TIMEOUT_MS",
                                                                         "300", NULL},
                                    .run = run_out_of_descriptors});
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("after %u attempts: %d: %s", board->steps[0], (int)board->reports[0].result,
                 board->reports[0].text);
    crew_clear(board);
}

static void without_descriptors_tcp_gives_errors_and_no_leaks(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){
        .nranks = 1, .forms_itself = true, .run = run_out_of_descriptors,
        .environment = (const char *const[]){"TUTTI_INIT_TIMEOUT_MS", "300", "TUTTI_TRANSPORTS",
                                             "tcp", "TUTTI_TIMEOUT_MS", "300", NULL}});
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("after %u attempts: %d: %s", board->steps[0], (int)board->reports[0].result,
                 board->reports[0].text);
    crew_clear(board);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%zu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static tuttiResult_t run_out_of_memory(struct crew_seat *seat)
{
    size_t used = address_space();
    struct rlimit before;
    tuttiResult_t result = tuttiSuccess;
    bool has_failed = false;

    getrlimit(RLIMIT_AS, &before);
    for (size_t spare = 0; spare <= 256; spare = spare < 32 ? spare + 2 : spare * 2) {
        struct rlimit limit = {.rlim_cur = used + (spare << 17), .rlim_max = before.rlim_max};

        setrlimit(RLIMIT_AS, &limit);
        result = use_a_communicator();
        setrlimit(RLIMIT_AS, &before);
        if (result == tuttiInternalError)
            return result;
        has_failed |= result != tuttiSuccess;
        crew_add(&seat->board->steps[0]);
    }
    return has_failed ? result : tuttiInternalError;
}

static void without_memory_there_are_errors(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = 1, .forms_itself = true, .run = run_out_of_memory,
                                    .environment = (const char *const[]){"TUTTI_INIT_TIMEOUT_MS",
                                                                         "300", NULL}});
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("after %u attempts: %d: %s", board->steps[0], (int)board->reports[0].result,
                 board->reports[0].text);
    crew_clear(board);
}
#endif

/* No file may be as large as the memory that ranks of a host share. */
static tuttiResult_t go_without_shared_memory(struct crew_seat *seat)
{
    void *memory = NULL;

    (void)seat;
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 65536, .rlim_max = 65536});
    /* Memory that is larger than a file may be is memory all the same. */
    if (tuttiMemAlloc(&memory, 1 << 20) != tuttiSuccess)
        return tuttiSystemError;
    memset(memory, 1, 1 << 20);
    tuttiMemFree(memory);
    return use_a_communicator();
}

static void ranks_that_cannot_share_memory_go_without_it_and_say_why(void **state)
{
    struct crew_board *board;
    const char *said;

    (void)state;
    stderr_text_begin();
    board = crew_run(&(struct crew){.nranks = 1, .forms_itself = true,
                                    .environment = (const char *const[]){"TUTTI_DEBUG", "info",
                                                                         NULL},
                                    .run = go_without_shared_memory});
    said = stderr_text_end();
    if (board->reports[0].result != tuttiSuccess ||
        strstr(said, "no shared memory on this host, so its ranks use TCP: ") == NULL ||
        strstr(said, "(RLIMIT_FSIZE)") == NULL)
        fail_msg("%d: %s\n%s", (int)board->reports[0].result, board->reports[0].text, said);
    crew_clear(board);
}

/* Another library may have taken all that a process has. */
static tuttiResult_t run_out_of_keys(struct crew_seat *seat)
{
    pthread_key_t key;

    (void)seat;
    while (pthread_key_create(&key, NULL) == 0)
        ;
    for (int i = 0; i < 2; i++)
        if (tuttiGroupStart() != tuttiSystemError || *tuttiGetLastError(NULL) == '\0')
            return tuttiInternalError;
    return tuttiGroupEnd() == tuttiInvalidUsage ? tuttiSuccess : tuttiInternalError;
}

static void without_keys_of_threads_groups_give_errors(void **state)
{
    struct crew_board *board;

    (void)state;
    board = crew_run(&(struct crew){.nranks = 1, .forms_itself = true, .run = run_out_of_keys});
    if (board->reports[0].result != tuttiSuccess)
        fail_msg("%d: %s", (int)board->reports[0].result, board->reports[0].text);
    crew_clear(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_descriptors_there_are_errors_and_no_leaks),
        cmocka_unit_test(without_descriptors_tcp_gives_errors_and_no_leaks),
        cmocka_unit_test(ranks_that_cannot_share_memory_go_without_it_and_say_why),
        cmocka_unit_test(without_keys_of_threads_groups_give_errors),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(without_memory_there_are_errors),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
