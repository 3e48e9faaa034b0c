/* SPDX-License-Identifier: Apache-2.0
 * Runs tutti-info as users do, and tests the version of every tool. Its findings differ between
 * machines. On each of them it must report them, and never a secret. */
#include "base/build_info.h"
#include "support/no_cma.h"
#include "tools/running.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static int info(const char *variables, const char *arguments)
{
    return running_run("/usr/bin/env", "-i %s '%s' %s", variables, TUTTI_INFO, arguments);
}

static void it_tells_what_is_built_and_what_is_found(void **state)
{
    static const char *const words[] = {
        "build\n",      "compiler ",        "GPU kernels for",   "libraries\n", "libsodium ",
        "hwloc ",       "memory\n",         "CMA ",              "huge pages",  "processor\n",
        "instruction set", "GPUs\n",        "CUDA driver",       "NVML",        "RDMA\n",
        "libibverbs",   "limits\n",         "open files",        "hard limit",  "interfaces\n",
        "variables\n  none\n",
    };

    (void)state;
    assert_int_equal(info("", ""), 0);
    assert_string_equal(running.err, "");
    assert_memory_equal(running.out, "Tutti ", 6);
    running_says(tutti_version_text());
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        running_says(words[i]);
}

enum { NO_FILTERS = 77 };

static void it_says_what_forbids_to_read_the_memory_of_others(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        const char *line;

        if (!forbid_cma())
            _exit(NO_FILTERS);
        info("", "");
        line = strstr(running.out, "  CMA ");
        _exit(line == NULL || strstr(line, "no: Operation not permitted; ") == NULL ||
              (strstr(line, "seccomp filter") == NULL && strstr(line, "ptrace_scope") == NULL));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTERS)
        skip();
    assert_int_equal(status, 0);
}

static void json_has_the_same_facts(void **state)
{
    static const char *const sections[] = {"build", "libraries", "memory", "processor",
                                           "GPUs",  "RDMA",      "limits"};
    json_error_t error;
    json_t *facts;

    (void)state;
    assert_int_equal(info("TUTTI_RANK=3", "--json"), 0);
    facts = json_loads(running.out, 0, &error);
    if (facts == NULL)
        fail_msg("line %d: %s:\n%s", error.line, error.text, running.out);
    assert_string_equal(json_string_value(json_object_get(facts, "version")), tutti_version_text());
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        assert_true(json_object_size(json_object_get(facts, sections[i])) > 0);
    assert_true(json_is_array(json_object_get(facts, "interfaces")));
    assert_int_equal(json_array_size(json_object_get(facts, "variables")), 1);
    json_decref(facts);
}

static void a_secret_is_never_shown(void **state)
{
    static const char *const arguments[] = {"", "--json"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(info("TUTTI_SECRET=hush-hush", arguments[i]), 0);
        running_says("TUTTI_SECRET");
        running_says("(set, not shown)");
        assert_null(strstr(running.out, "hush-hush"));
    }
}

static void variables_that_are_not_understood_are_named_and_fail(void **state)
{
    static const struct {
        const char *variables, *words;
        int status;
    } cases[] = {
        {"TUTTI_ALGORITHM=allreduce:ring", "TUTTI_ALGORITHM=allreduce:ring\n", 0},
        {"TUTTI_ALGORITM=x", "TUTTI_ALGORITM=x   <- unknown; did you mean TUTTI_ALGORITHM?\n", 1},
        {"TUTTI_MY_OWN_THING=x", "TUTTI_MY_OWN_THING=x   <- unknown\n", 1},
        {"TUTTI_DEBUG=loud", "TUTTI_DEBUG=loud   <- not accepted; ", 1},
        {"TUTTI_DEBUG=INFO", "TUTTI_DEBUG=INFO\n", 0},
        {"TUTTI_LOCAL_RANK=0", "TUTTI_LOCAL_RANK=0\n", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(info(cases[i].variables, ""), cases[i].status);
        running_says(cases[i].words);
    }
}

static void interfaces_say_whether_they_are_used(void **state)
{
    (void)state;
    info("TUTTI_SOCKET_IFNAME=^lo", "");
    if (strstr(running.out, "  lo  ") == NULL)
        skip(); /* there is no loopback here */
    running_says("used: ");
}

static void mistakes_in_the_command_line_are_one_line(void **state)
{
    (void)state;
    running_is_mistake(info("", "everything"), "tutti-info: ", "\"everything\" is one word");
    running_is_mistake(info("", "--ranks 3"), "tutti-info: ", "--ranks");
}

static void every_tool_tells_its_version(void **state)
{
    static const struct {
        const char *path, *arguments, *name;
    } tools[] = {
        {TUTTI_INFO, "--version", "tutti-info"},   {TUTTI_SCHED, "--version", "tutti-sched"},
        {TUTTI_SCHED, "list --version", "tutti-sched"}, {TUTTI_SIM, "--version", "tutti-sim"},
        {TUTTI_TOPO, "--version", "tutti-topo"},   {TUTTI_TOPO, "draw --version", "tutti-topo"},
    };
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        snprintf(text, sizeof text, "%s (Tutti) %s\n", tools[i].name, tutti_version_text());
        assert_int_equal(running_run(tools[i].path, "%s", tools[i].arguments), 0);
        assert_string_equal(running.out, text);
        assert_string_equal(running.err, "");
    }
}

/* Fails unless the tool says that its output was lost when it writes to a full device. */
static void loses_output(const char *program, const char *name, const char *arguments)
{
    int status = running_run("sh", "-c '\"%s\" %s >/dev/full'", program, arguments);
    char line[256];

    snprintf(line, sizeof line, "%s: cannot write to stdout", name);
    if (status != 1 || strncmp(running.err, line, strlen(line)) != 0)
        fail_msg("%s %s: %d\n%s", name, arguments, status, running.err);
    assert_int_equal(running_count(running.err, "\n"), 1);
}

static void lost_output_is_told(void **state)
{
    (void)state;
    loses_output(TUTTI_INFO, "tutti-info", "");
    loses_output(TUTTI_INFO, "tutti-info", "--json");
    loses_output(TUTTI_INFO, "tutti-info", "--version");
    loses_output(TUTTI_SCHED, "tutti-sched list", "list");
    loses_output(TUTTI_SCHED, "tutti-sched print", "print allreduce ring --ranks 4");
    loses_output(TUTTI_SCHED, "tutti-sched list", "list --help");
    loses_output(TUTTI_SIM, "tutti-sim", "allreduce --ranks 4 --size 1K");
    loses_output(TUTTI_TOPO, "tutti-topo", "--from dgx-a100");
    loses_output(TUTTI_TOPO, "tutti-topo matrix", "matrix --from dgx-a100");
    loses_output(TUTTI_TOPO, "tutti-topo search", "search --from dgx-a100");
    loses_output(TUTTI_TOPO, "tutti-topo machine", "machine");
    /* A tool that prints nothing loses nothing, and a mistake keeps its status. */
    assert_int_equal(
        running_run("sh", "-c '\"%s\" machine -o here.txt >/dev/full'", TUTTI_TOPO), 0);
    assert_int_equal(running_run("sh", "-c '\"%s\" --no-such >/dev/full'", TUTTI_TOPO), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_tells_what_is_built_and_what_is_found),
        cmocka_unit_test(it_says_what_forbids_to_read_the_memory_of_others),
        cmocka_unit_test(json_has_the_same_facts),
        cmocka_unit_test(a_secret_is_never_shown),
        cmocka_unit_test(variables_that_are_not_understood_are_named_and_fail),
        cmocka_unit_test(interfaces_say_whether_they_are_used),
        cmocka_unit_test(mistakes_in_the_command_line_are_one_line),
        cmocka_unit_test(every_tool_tells_its_version),
        cmocka_unit_test(lost_output_is_told),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
