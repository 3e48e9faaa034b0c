/* SPDX-License-Identifier: Apache-2.0
 * TUTTI_STREAM_CPUS sets the CPUs on which the threads of streams run. It is read once, so each
 * value is tested in its own process. */
#include <tutti.h>

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { TEXT_BYTES = 64 };

/* True if the thread `task` of this process has this name. */
static bool is_named(const char *task, const char *name)
{
    char path[300], line[TEXT_BYTES] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, name) == 0;
}

/* The CPUs of the only stream's thread. */
static bool find_stream(cpu_set_t *ret_cpus)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    int found = 0;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL)
        if (is_named(entry->d_name, "tutti-stream") &&
            sched_getaffinity(atoi(entry->d_name), sizeof *ret_cpus, ret_cpus) == 0)
            found++;
    if (tasks != NULL)
        closedir(tasks);
    return found == 1;
}

/* Calls on a stream that has CPUs of its own are served by its thread, and all are. */
static bool is_of_use(tuttiStream_t stream)
{
    int64_t values[] = {11, 0, 0};
    tuttiUniqueId id;
    tuttiComm_t comm;
    bool is_good = tuttiGetUniqueId(&id) == tuttiSuccess &&
                   tuttiCommInitRank(&comm, 1, id, 0) == tuttiSuccess;

    for (int i = 0; is_good && i < 2; i++)
        is_good = tuttiAllReduce(&values[i], &values[i + 1], 1, tuttiInt64, tuttiSum, comm,
                                 stream) == tuttiSuccess;
    return is_good && tuttiStreamSynchronize(stream) == tuttiSuccess && values[2] == 11 &&
           tuttiCommDestroy(comm) == tuttiSuccess;
}

static int run_on(const char *list, const cpu_set_t *wanted)
{
    cpu_set_t before, after, cpus;
    tuttiStream_t stream;

    if (setenv("TUTTI_STREAM_CPUS", list, 1) != 0 ||
        sched_getaffinity(0, sizeof before, &before) != 0)
        return 1;
    if (tuttiHostStreamCreate(&stream) != tuttiSuccess)
        return 2;
    if (!find_stream(&cpus) || !CPU_EQUAL(&cpus, wanted))
        return 3;
    if (sched_getaffinity(0, sizeof after, &after) != 0 || !CPU_EQUAL(&before, &after))
        return 4;
    if (!is_of_use(stream) || tuttiHostStreamDestroy(stream) != tuttiSuccess)
        return 5;
    return 0;
}

static int be_refused(const char *list, const char *word)
{
    tuttiStream_t stream;

    if (setenv("TUTTI_STREAM_CPUS", list, 1) != 0)
        return 1;
    if (tuttiHostStreamCreate(&stream) != tuttiInvalidUsage)
        return 2;
    return strstr(tuttiGetLastError(NULL), word) != NULL &&
           strstr(tuttiGetLastError(NULL), list) != NULL ? 0 : 3;
}

static void expect_success(pid_t child)
{
    int status;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_thread_of_a_stream_runs_where_it_is_told_to(void **state)
{
    cpu_set_t allowed, one;
    int last = CPU_SETSIZE - 1;
    char lists[3][TEXT_BYTES];
    pid_t child;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET((size_t)last, &allowed))
        last--;
    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    snprintf(lists[0], TEXT_BYTES, "%d", last);
    snprintf(lists[1], TEXT_BYTES, "%d-%d", last, last);
    snprintf(lists[2], TEXT_BYTES, "%d,%d-%d", last, last, last);
    for (int i = 0; i < 3; i++) {
        child = fork();
        if (child == 0)
            _exit(run_on(lists[i], &one));
        expect_success(child);
    }
    /* Unset is the same as empty: the CPUs of the caller. */
    child = fork();
    if (child == 0)
        _exit(run_on("", &allowed));
    expect_success(child);
}

static void what_is_no_list_of_cpus_is_refused(void **state)
{
    static const char *const lists[] = {"x", "1-", "-1", "3-1", "0,", ",0", "0-1-2", "0 1",
                                        "99999", "0,99999999999999999999"};
    pid_t child;

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        child = fork();
        if (child == 0)
            _exit(be_refused(lists[i], "not a list of CPUs"));
        expect_success(child);
    }
}

static void cpus_that_are_not_there_are_refused(void **state)
{
    pid_t child;

    (void)state;
    if (sysconf(_SC_NPROCESSORS_CONF) >= CPU_SETSIZE)
        skip();
    child = fork();
    if (child == 0)
        _exit(be_refused("1023", "none of these CPUs"));
    expect_success(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_of_a_stream_runs_where_it_is_told_to),
        cmocka_unit_test(what_is_no_list_of_cpus_is_refused),
        cmocka_unit_test(cpus_that_are_not_there_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
