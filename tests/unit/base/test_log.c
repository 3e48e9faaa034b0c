/* SPDX-License-Identifier: Apache-2.0
 * Tests the log: levels, the rank and communicator in a line, and the file. Each case is a process
 * of its own, because the level and the file are read once. */
#include "base/log.h"

#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[64];

static int enter_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tutti-test-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int leave_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* The output on stderr of a child with this level and file ("": none), and its process id. */
static const char *run(void (*fn)(void), const char *level, const char *file, pid_t *ret_pid)
{
    int status;
    pid_t pid;

    stderr_text_begin();
    pid = fork();
    if (pid == 0) {
        setenv("TUTTI_DEBUG", level, 1);
        setenv("TUTTI_DEBUG_FILE", file, 1);
        fn();
        fflush(stderr);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    if (ret_pid != NULL)
        *ret_pid = pid;
    return stderr_text_end();
}

static void say_one_of_each(void)
{
    tutti_log(TUTTI_LOG_VERSION, "one");
    tutti_log(TUTTI_LOG_ERROR, "two");
    tutti_log(TUTTI_LOG_WARN, "three");
    tutti_log(TUTTI_LOG_INFO, "four");
    tutti_log(TUTTI_LOG_DEBUG, "five");
    tutti_log(TUTTI_LOG_TRACE, "six");
}

static void a_level_has_the_lines_of_those_before_and_the_version_is_alone(void **state)
{
    static const struct {
        const char *level, *words[7];
    } cases[] = {
        {"none", {NULL}},
        {"Version", {"VERSION one", NULL}},
        {"error", {"ERROR two", NULL}},
        {"WARN", {"ERROR two", "WARN three", NULL}},
        {"info", {"ERROR two", "WARN three", "INFO four", NULL}},
        {"debug", {"ERROR two", "WARN three", "INFO four", "DEBUG five", NULL}},
        {"TRACE", {"ERROR two", "WARN three", "INFO four", "DEBUG five", "TRACE six", NULL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = run(say_one_of_each, cases[i].level, "", NULL);
        size_t count = 0;

        for (; cases[i].words[count] != NULL; count++)
            if (count_lines_with(said, cases[i].words[count]) != 1)
                fail_msg("%s, %s:\n%s", cases[i].level, cases[i].words[count], said);
        assert_int_equal(count_lines_with(said, "tutti["), count);
    }
}

static void say_in_scopes(void)
{
    struct tutti_log_scope named = {.rank = 3, .nranks = 8, .name = "gradients"};
    struct tutti_log_scope nameless = {.rank = 0, .nranks = 2, .name = ""};

    tutti_log_enter(&named);
    tutti_log(TUTTI_LOG_WARN, "first");
    tutti_log_enter(&nameless);
    tutti_log(TUTTI_LOG_WARN, "second");
    tutti_log_enter(NULL);
    tutti_log(TUTTI_LOG_WARN, "third");
}

static void lines_name_the_rank_and_the_communicator_that_they_are_about(void **state)
{
    const char *said = run(say_in_scopes, "warn", "", NULL);

    (void)state;
    assert_int_equal(count_lines_with(said, "] WARN rank 3/8 comm 'gradients': first"), 1);
    assert_int_equal(count_lines_with(said, "] WARN rank 0/2: second"), 1);
    assert_int_equal(count_lines_with(said, "] WARN third"), 1);
}

static void say_something_nasty(void)
{
    static char tooth[4000];
    struct tutti_log_scope scope = {.rank = 0, .nranks = 1, .name = "a\nb"};

    memset(tooth, 'x', sizeof tooth - 1);
    tutti_log_enter(&scope);
    tutti_log(TUTTI_LOG_WARN, "new\nline, \033[31mred, tab\t.");
    tutti_log(TUTTI_LOG_WARN, "%s", tooth);
    tutti_log_enter(NULL);
}

static void a_line_is_one_line_without_control_characters_and_of_bounded_length(void **state)
{
    const char *said = run(say_something_nasty, "warn", "", NULL);

    (void)state;
    assert_non_null(strstr(said, "comm 'a?b': new?line, ?[31mred, tab?.\n"));
    assert_int_equal(count_lines_with(said, "tutti["), 2);
    assert_int_equal(count_lines_with(said, "tutti"), 2);
    assert_true(strlen(said) < 2400);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *read_file(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *read_file(const char *format, ...)
{
    static char text[4096];
    char path[512];
    va_list args;
    FILE *file;

    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    file = fopen(path, "r");
    if (file == NULL)
        fail_msg("there is no %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void say_here_and_in_a_child(void)
{
    pid_t pid;
    int status;

    tutti_log(TUTTI_LOG_WARN, "parent");
    pid = fork();
    if (pid == 0) {
        tutti_log(TUTTI_LOG_WARN, "child");
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        _exit(1);
    fprintf(stderr, "%d", (int)pid);
}

static void the_name_of_the_file_has_the_host_and_the_process(void **state)
{
    char pattern[128], names[256];
    struct utsname host;
    pid_t pid, child;

    (void)state;
    assert_int_equal(uname(&host), 0);
    snprintf(pattern, sizeof pattern, "%s/%%h-%%p-100%%%%.log", folder);
    child = atoi(run(say_here_and_in_a_child, "warn", pattern, &pid));
    snprintf(names, sizeof names, "%s/%s", folder, host.nodename);
    assert_non_null(strstr(read_file("%s-%d-100%%.log", names, (int)pid), "WARN parent\n"));
    assert_null(strstr(read_file("%s-%d-100%%.log", names, (int)pid), "child"));
    assert_non_null(strstr(read_file("%s-%d-100%%.log", names, (int)child), "WARN child\n"));
}

static void lines_are_appended_to_a_file_that_is_there(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/appended", folder);
    assert_string_equal(run(say_one_of_each, "error", path, NULL), "");
    assert_string_equal(run(say_one_of_each, "error", path, NULL), "");
    assert_int_equal(count_lines_with(read_file("%s", path), "ERROR two"), 2);
}

static void what_is_no_file_of_ours_is_refused_and_stderr_used(void **state)
{
    char link_path[128], target[128], fifo[128], nowhere[128];
    const struct {
        const char *path, *words;
    } cases[] = {{link_path, "it is a symbolic link"},
                 {fifo, "No such device or address"},
                 {nowhere, "No such file or directory"}};
    struct stat status;

    (void)state;
    snprintf(target, sizeof target, "%s/target", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    snprintf(nowhere, sizeof nowhere, "%s/no/where", folder);
    assert_int_equal(symlink(target, link_path), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = run(say_one_of_each, "warn", cases[i].path, NULL);

        if (count_lines_with(said, cases[i].words) != 1 ||
            count_lines_with(said, "ERROR two") != 1 || count_lines_with(said, "tutti") != 3)
            fail_msg("%s:\n%s", cases[i].path, said);
    }
    assert_int_not_equal(stat(target, &status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_has_the_lines_of_those_before_and_the_version_is_alone),
        cmocka_unit_test(lines_name_the_rank_and_the_communicator_that_they_are_about),
        cmocka_unit_test(a_line_is_one_line_without_control_characters_and_of_bounded_length),
        cmocka_unit_test(the_name_of_the_file_has_the_host_and_the_process),
        cmocka_unit_test(lines_are_appended_to_a_file_that_is_there),
        cmocka_unit_test(what_is_no_file_of_ours_is_refused_and_stderr_used),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
