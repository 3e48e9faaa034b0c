/* SPDX-License-Identifier: Apache-2.0
 * Runs tutti-run, and checks its output and its exit status. Nothing remains afterwards.
 *
 * A process that remains would hold a pipe open. The tests detect it by reading the pipe to its
 * end. */
#include "base/clock.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "support/store.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

struct run {
    pid_t pid;
    int fds[2]; /* its output and its errors */
    char text[2][1 << 16];
    size_t length[2];
};

static struct run run;
static char scratch[64];
static char self[4096];

/* tutti-run with these arguments, up to NULL, writing there. */
static void start(const char *const *arguments, int out_fd, int err_fd)
{
    const char *argv[32] = {TUTTI_RUN};

    for (size_t i = 0; arguments[i] != NULL; i++)
        argv[i + 1] = arguments[i];
    memset(&run, 0, sizeof run);
    run.pid = fork();
    assert_true(run.pid >= 0);
    if (run.pid == 0) {
        dup2(out_fd, STDOUT_FILENO);
        dup2(err_fd, STDERR_FILENO);
        setenv("TMPDIR", scratch, 1);
        execv(TUTTI_RUN, (char *const *)(uintptr_t)argv);
        _exit(126);
    }
}

/* The same, with a pipe each for output and errors. */
static void begin(const char *const *arguments)
{
    int out[2], err[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    start(arguments, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    run.fds[0] = out[0];
    run.fds[1] = err[0];
}

/* The same with a terminal for output and errors; both are read as output. False: this system has
 * no pseudo-terminals. */
static bool begin_on_terminal(const char *const *arguments)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal;
    struct termios modes;

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return false;
    terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0);
    assert_int_equal(tcgetattr(terminal, &modes), 0);
    cfmakeraw(&modes);
    assert_int_equal(tcsetattr(terminal, TCSANOW, &modes), 0);
    start(arguments, terminal, terminal);
    close(terminal);
    run.fds[0] = master;
    run.fds[1] = -1;
    return true;
}

/* Read what comes, until `words` stand `times` times in the output, or to the end with NULL. */
static void read_until(const char *words, int times)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = run.fds[0], .events = POLLIN},
                                  {.fd = run.fds[1], .events = POLLIN}};
        int count = 0;

        for (const char *at = run.text[0]; words && (at = strstr(at, words)) != NULL; at++)
            count++;
        if ((words != NULL && count >= times) || (run.fds[0] < 0 && run.fds[1] < 0))
            return;
        assert_true(poll(ready, 2, 60000) > 0);
        for (int i = 0; i < 2; i++) {
            ssize_t moved;

            if (ready[i].revents == 0)
                continue;
            moved = read(run.fds[i], run.text[i] + run.length[i],
                         sizeof run.text[i] - 1 - run.length[i]);
            if (moved <= 0) {
                close(run.fds[i]);
                run.fds[i] = -1;
            } else {
                run.length[i] += (size_t)moved;
            }
        }
    }
}

/* Its exit status as a shell has it, and everything that was said. */
static int finish(void)
{
    int status;

    read_until(NULL, 0);
    assert_int_equal(waitpid(run.pid, &status, 0), run.pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_shell(const char *ranks, const char *tag, const char *script)
{
    const char *const arguments[] = {"-n", ranks, tag, "sh", "-c", script, NULL};

    begin(arguments);
    return finish();
}

static int count_lines(const char *text, const char *line)
{
    size_t length = strlen(line);
    int count = 0;

    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        assert_non_null(strchr(at, '\n'));
        count += strncmp(at, line, length) == 0 && at[length] == '\n';
    }
    return count;
}

static int make_scratch(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/tutti-test-XXXXXX");
    return mkdtemp(scratch) == NULL;
}

/* Fails when tutti-run has left its directory behind. */
static int remove_scratch(void **state)
{
    (void)state;
    return rmdir(scratch);
}

/* ---- output ------------------------------------------------------------------------------- */

static void lines_are_tagged_with_their_rank_and_completed(void **state)
{
    (void)state;
    assert_int_equal(run_shell("3", "--tag", "echo out; echo err >&2; echo; printf end"), 0);
    for (int rank = 0; rank < 3; rank++) {
        char line[32];

        snprintf(line, sizeof line, "[%d] out", rank);
        assert_int_equal(count_lines(run.text[0], line), 1);
        snprintf(line, sizeof line, "[%d] ", rank);
        assert_int_equal(count_lines(run.text[0], line), 1);
        snprintf(line, sizeof line, "[%d] end", rank);
        assert_int_equal(count_lines(run.text[0], line), 1);
        snprintf(line, sizeof line, "[%d] err", rank);
        assert_int_equal(count_lines(run.text[1], line), 1);
    }
}

static void lines_of_ranks_never_mix(void **state)
{
    int lines = 0;

    (void)state;
    assert_int_equal(run_shell("4", "--tag", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 "
                                             "18 19 20; do printf a; printf b; echo c; done"), 0);
    for (int rank = 0; rank < 4; rank++) {
        char line[32];

        snprintf(line, sizeof line, "[%d] abc", rank);
        assert_int_equal(count_lines(run.text[0], line), 20);
    }
    for (size_t i = 0; i < run.length[0]; i++)
        lines += run.text[0][i] == '\n';
    assert_int_equal(lines, 80);
}

static void a_long_line_stays_whole(void **state)
{
    (void)state;
    assert_int_equal(run_shell("1", "--tag", "head -c 50000 /dev/zero | tr '\\0' x; echo"), 0);
    assert_int_equal(run.length[0], 4 + 50000 + 1);
    assert_int_equal(strspn(run.text[0] + 4, "x"), 50000);
}

static void without_tags_output_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(run_shell("1", "--no-tag", "printf 'a\\nb'"), 0);
    assert_string_equal(run.text[0], "a\nb");
}

/* Text that ends in ESC [ K and a carriage return. */
#define PROGRESS "printf '# 1 of 2\\033[K\\r' >&2; "

static void progress_is_shown_at_once_on_a_terminal(void **state)
{
    char script[256], fifo[128];
    const char *const arguments[] = {"-n", "1", "sh", "-c", script, NULL};
    FILE *gate;

    (void)state;
    snprintf(fifo, sizeof fifo, "%s/gate", scratch);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    snprintf(script, sizeof script,
             "echo $TUTTI_PROGRESS; " PROGRESS "read line < %s; echo end; echo more", fifo);
    if (!begin_on_terminal(arguments)) {
        unlink(fifo);
        print_message("skipped: this system gives no pseudo-terminal\n");
        skip();
    }
    /* The rank goes on when it is told to, so this has been passed on without the end of a line. */
    read_until("# 1 of 2", 1);
    gate = fopen(fifo, "w");
    assert_non_null(gate);
    fputs("go\n", gate);
    fclose(gate);
    assert_int_equal(finish(), 0);
    unlink(fifo);
    assert_string_equal(run.text[0], "[0] 1\n[0] # 1 of 2\r\033[K[0] end\n[0] more\n");
}

static void progress_is_ordinary_text_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(run_shell("1", "--tag", PROGRESS "echo end >&2; echo ${TUTTI_PROGRESS-no}"),
                     0);
    assert_string_equal(run.text[1], "[0] # 1 of 2\033[K\rend\n");
    assert_string_equal(run.text[0], "[0] no\n");
}

/* ---- environment -------------------------------------------------------------------------- */

static void ranks_are_told_who_they_are_and_where_to_meet(void **state)
{
    const char *const arguments[] = {
        "-n", "2", "--env", "COLOR=deep blue", "-e", "EMPTY=", "--", "sh", "-c",
        "echo $TUTTI_RANK $TUTTI_NRANKS $TUTTI_LOCAL_RANK $TUTTI_LOCAL_NRANKS \"$COLOR\" "
        "${EMPTY-unset} ${#TUTTI_SECRET}; echo secret $TUTTI_SECRET; echo root $TUTTI_ROOT",
        NULL};
    char secret[80], root[128], line[160];

    (void)state;
    begin(arguments);
    assert_int_equal(finish(), 0);
    assert_int_equal(count_lines(run.text[0], "[0] 0 2 0 2 deep blue 64"), 1);
    assert_int_equal(count_lines(run.text[0], "[1] 1 2 1 2 deep blue 64"), 1);

    assert_non_null(strstr(run.text[0], "[0] root "));
    assert_int_equal(sscanf(strstr(run.text[0], "[0] root ") + 9, "%127s", root), 1);
    assert_int_equal(strncmp(root, "unix:run-", 9), 0);
    assert_int_equal(strlen(root), 9 + 32);
    snprintf(line, sizeof line, "[1] root %s", root);
    assert_int_equal(count_lines(run.text[0], line), 1);
    assert_non_null(strstr(run.text[0], "[0] secret "));
    assert_int_equal(sscanf(strstr(run.text[0], "[0] secret ") + 11, "%66s", secret), 1);
    assert_int_equal(strlen(secret), 64);
    snprintf(root, sizeof root, "[1] secret %s", secret);
    assert_int_equal(count_lines(run.text[0], root), 1);
}

static void ranks_find_each_other(void **state)
{
    const char *const arguments[] = {"-n", "5", self, "be-rank", NULL};

    (void)state;
    begin(arguments);
    assert_int_equal(finish(), 0);
    for (int rank = 0; rank < 5; rank++) {
        char line[32];

        snprintf(line, sizeof line, "[%d] 0 1 4 9 16", rank);
        assert_int_equal(count_lines(run.text[0], line), 1);
    }
}

/* ---- ends --------------------------------------------------------------------------------- */

static void the_first_failure_ends_all_and_is_the_status(void **state)
{
    static const struct {
        const char *how;
        int status;
        const char *words;
    } cases[] = {
        {"exit 7", 7, "tutti-run: rank 1 exited with status 7\n"},
        {"exit 255", 255, "tutti-run: rank 1 exited with status 255\n"},
        {"kill -SEGV $$", 139, "tutti-run: rank 1 was killed by signal 11 (Segmentation fault)\n"},
        {"kill -KILL $$", 137, "tutti-run: rank 1 was killed by signal 9 (Killed)\n"},
    };
    char script[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(script, sizeof script, "if [ $TUTTI_RANK = 1 ]; then %s; fi; sleep 1000",
                 cases[i].how);
        assert_int_equal(run_shell("4", "--tag", script), cases[i].status);
        assert_string_equal(run.text[1], cases[i].words);
    }
}

static void who_ignores_the_request_to_end_is_killed(void **state)
{
    (void)state;
    assert_int_equal(run_shell("2", "--tag",
                               "up=$TMPDIR/up; trap '' TERM; "
                               "if [ $TUTTI_RANK = 1 ]; then : >$up; sleep 1000; sleep 1000; fi; "
                               "until [ -e $up ]; do sleep 0.01; done; rm $up; exit 3"),
                     3);
    assert_string_equal(run.text[1], "tutti-run: rank 0 exited with status 3\n");
}

static void a_program_that_cannot_be_run_is_named(void **state)
{
    const char *const arguments[] = {"-n", "1", "/nonexistent/program", NULL};

    (void)state;
    begin(arguments);
    assert_int_equal(finish(), 127);
    assert_non_null(strstr(run.text[1], "cannot run /nonexistent/program: No such file"));
}

static void the_timeout_ends_all(void **state)
{
    const char *const arguments[] = {"-n", "2", "--timeout", "0.2", "sleep", "1000", NULL};

    (void)state;
    begin(arguments);
    assert_int_equal(finish(), 124);
    assert_string_equal(run.text[1], "tutti-run: 2 of 2 ranks still run after 0.2 s\n");
}

static void signals_are_passed_on_to_all(void **state)
{
    static const struct {
        int number;
        const char *name;
    } signals[] = {
        {SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};
    char script[256];

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const char *const arguments[] = {"-n", "3", "sh", "-c", script, NULL};

        /* `wait` is what a trap interrupts. */
        snprintf(script, sizeof script,
                 "trap 'echo got %s; exit 0' %s; echo ready; sleep 1000 & wait", signals[i].name,
                 signals[i].name);
        begin(arguments);
        read_until("ready", 3);
        assert_int_equal(kill(run.pid, signals[i].number), 0);
        assert_int_equal(finish(), 0);
        read_until(NULL, 0);
        for (int rank = 0; rank < 3; rank++) {
            char line[32];

            snprintf(line, sizeof line, "[%d] got %s", rank, signals[i].name);
            assert_int_equal(count_lines(run.text[0], line), 1);
        }
    }
}

static void what_ranks_have_started_ends_with_them(void **state)
{
    (void)state;
    /* finish() reads to the end of a pipe that the sleepers hold. */
    assert_int_equal(run_shell("2", "--no-tag", "sleep 1000 & echo started"), 0);
    assert_string_equal(run.text[0], "started\nstarted\n");
}

static void nothing_is_left_when_it_is_killed_itself(void **state)
{
    const char *const arguments[] = {"-n", "3", "--no-tag", "sh", "-c",
                                     "trap '' TERM HUP; sleep 1000 & echo ready; sleep 1000; "
                                     "sleep 1000", NULL};

    (void)state;
    begin(arguments);
    read_until("ready", 3);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    assert_int_equal(finish(), 128 + SIGKILL);
}

/* ---- options ------------------------------------------------------------------------------ */

static void bad_options_are_refused_in_one_line(void **state)
{
    static const char *const cases[][6] = {
        {NULL},
        {"-n", "2", NULL},
        {"true", NULL},
        {"-n", "0", "true", NULL},
        {"-n", "-1", "true", NULL},
        {"-n", "4097", "true", NULL},
        {"-n", "2x", "true", NULL},
        {"-n", "p", "2", "true", NULL},
        {"-np", "true", NULL},
        {"-np", NULL},
        {"-n", NULL},
        {"-n", "2", "--bogus", "true", NULL},
        {"-n", "2", "-q", "true", NULL},
        {"-n", "2", "--env", "NAME", "true", NULL},
        {"-n", "2", "--env", "=text", "true", NULL},
        {"-n", "2", "--timeout", "0", "true", NULL},
        {"-n", "2", "--timeout", "soon", "true", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i]);
        assert_int_equal(finish(), 2);
        assert_string_equal(run.text[0], "");
        assert_int_equal(strncmp(run.text[1], "tutti-run: ", 11), 0);
        assert_ptr_equal(strchr(run.text[1], '\n'), run.text[1] + run.length[1] - 1);
    }
}

static void help_and_version_are_shown_and_the_programs_options_are_its_own(void **state)
{
    const char *const ask[] = {"--help", NULL};
    const char *const version[] = {"--version", NULL};
    const char *const pass[] = {"-n", "1", "echo", "-n", "--help", NULL};
    const char *const as_mpirun[] = {"-np", "2", "sh", "-c", "echo $TUTTI_NRANKS", NULL};

    (void)state;
    begin(ask);
    assert_int_equal(finish(), 0);
    assert_non_null(strstr(run.text[0], "--timeout"));
    begin(pass);
    assert_int_equal(finish(), 0);
    assert_string_equal(run.text[0], "[0] --help\n");
    begin(version);
    assert_int_equal(finish(), 0);
    assert_string_equal(run.text[0], "tutti-run " VERSION "\n");
    begin(as_mpirun);
    assert_int_equal(finish(), 0);
    assert_int_equal(count_lines(run.text[0], "[1] 2"), 1);
}

/* ---- a rank that meets the others --------------------------------------------------------- */

static int be_rank(void)
{
    struct tutti_launch launch;
    struct tutti_bootstrap *boot;
    int all[16], rc;

    if (tutti_launch_detect(&launch) != TUTTI_OK ||
        bootstrap_from_store(launch.store, launch.secret, launch.nranks, launch.rank,
                             tutti_now_ns() + 60 * TUTTI_NS_PER_S, &boot) != TUTTI_OK)
        return 1;
    for (int round = 1; round < 3; round++) {
        int mine = round == 1 ? launch.rank : launch.rank * launch.rank;

        while ((rc = boot->ops->allgather(boot, &mine, sizeof mine, all)) == TUTTI_AGAIN) {
            struct pollfd ready = {.fd = boot->ops->wait_fd(boot), .events = POLLIN};

            poll(&ready, 1, -1);
        }
        if (rc != TUTTI_OK)
            return 1;
    }
    boot->ops->destroy(boot, NULL);
    for (int rank = 0; rank < launch.nranks; rank++)
        printf("%s%d", rank > 0 ? " " : "", all[rank]);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_tagged_with_their_rank_and_completed),
        cmocka_unit_test(lines_of_ranks_never_mix),
        cmocka_unit_test(a_long_line_stays_whole),
        cmocka_unit_test(without_tags_output_is_left_alone),
        cmocka_unit_test(progress_is_shown_at_once_on_a_terminal),
        cmocka_unit_test(progress_is_ordinary_text_elsewhere),
        cmocka_unit_test(ranks_are_told_who_they_are_and_where_to_meet),
        cmocka_unit_test(ranks_find_each_other),
        cmocka_unit_test(the_first_failure_ends_all_and_is_the_status),
        cmocka_unit_test(who_ignores_the_request_to_end_is_killed),
        cmocka_unit_test(a_program_that_cannot_be_run_is_named),
        cmocka_unit_test(the_timeout_ends_all),
        cmocka_unit_test(signals_are_passed_on_to_all),
        cmocka_unit_test(what_ranks_have_started_ends_with_them),
        cmocka_unit_test(nothing_is_left_when_it_is_killed_itself),
        cmocka_unit_test(bad_options_are_refused_in_one_line),
        cmocka_unit_test(help_and_version_are_shown_and_the_programs_options_are_its_own),
    };
    if (argc == 2 && strcmp(argv[1], "be-rank") == 0)
        return be_rank();
    /* Not by /proc, which a bare tree lacks. */
    if (realpath(argv[0], self) == NULL)
        return 1;
    /* The directory goes only when it is empty. */
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch) +
           (access(scratch, F_OK) == 0);
}
