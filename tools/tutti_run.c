/* SPDX-License-Identifier: Apache-2.0
 * tutti-run: starts the ranks of a communicator on this host.
 *
 * The ranks find each other by a Unix socket with a random name (a "unix:" store), not by a port. A
 * port that is free when tutti-run chooses it may be in use before rank 0 listens on it. A sandbox
 * may also have no loopback interface. The socket is not a file, so no file remains.
 *
 * All ranks are in one process group. Its leader is the keeper, a child process that only waits
 * until a pipe from tutti-run is closed. When tutti-run ends in any way, even by SIGKILL, the
 * kernel closes the pipe. The keeper then kills the group, including all processes that the ranks
 * have started in it.
 */
#include "tutti_run_output.h"

#include <tutti.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS         5000    /* time from SIGTERM to SIGKILL */
#define LONGEST_SLEEP_MS 3600000 /* poll takes an int; after this time, it is called again */
#define RANKS_MAX 4096

/* Exit statuses besides those of the ranks. The last two are those of timeout(1) and of shells. */
#define EXIT_USAGE 2
#define EXIT_TIMEOUT 124
#define EXIT_NO_EXEC 127 /* the program cannot be started */

static const char help[] =
    "usage: tutti-run -n RANKS [options] program [arguments]\n"
    "\n"
    "Starts RANKS processes of the program on this host; tuttiCommInitFromEnv() joins them.\n"
    "\n"
    "  -n, --ranks RANKS   number of ranks, 1 to 4096; -np RANKS does the same\n"
    "  -e, --env NAME=TEXT set a variable for all ranks; may be repeated\n"
    "      --tag           begin each line of output with its rank, [0] (default)\n"
    "      --no-tag        leave output alone\n"
    "  -t, --timeout S     end all ranks after S seconds, with status 124\n"
    "  -h, --help          show this\n"
    "      --version       show the version\n"
    "\n"
    "When one rank fails, the others are ended (SIGTERM, SIGKILL after 5 s), and tutti-run exits\n"
    "with its status, or 128 + signal. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 go to all.\n";

struct run {
    int nranks;
    bool is_tagged;   /* true if lines of output begin with the rank */
    double timeout_s; /* 0: no timeout */
    char **command;   /* the program and its arguments; NULL after the last */

    sigset_t kept_mask; /* the signals that were blocked at the start; ranks get them back */
    int signal_fd;
    int keeper_fd; /* write end of the keeper's pipe; closing it kills the group */
    pid_t keeper;
    char root[64];   /* address of the socket, for TUTTI_ROOT */
    char secret[65]; /* for TUTTI_SECRET */

    pid_t *pids;            /* process of each rank; 0: the rank has ended */
    struct output *outputs; /* stdout and stderr of rank r are outputs 2 r and 2 r + 1 */
    int running; /* number of ranks that have not ended */
    int status; /* exit status of tutti-run, set by the first failure; 0: there is none */
    int64_t kill_ms;    /* time at which to send SIGKILL, as of now_ms; -1: never */
    int64_t timeout_ms; /* time of the timeout, as of now_ms; -1: never */
};

/* Prints a message with a newline on stderr, in one write. Cuts off a message that is too long. */
static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
    char line[512] = "tutti-run: ";
    size_t length = strlen(line);
    va_list args;

    va_start(args, format);
    length += (size_t)vsnprintf(line + length, sizeof line - length - 1, format, args);
    va_end(args);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    output_erase_progress();
    write_fully(STDERR_FILENO, line, length);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- options ------------------------------------------------------------------------- */

/* Reads the command line. Returns false after a message about a mistake. */
static bool parse_options(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'n'}, {"env", required_argument, NULL, 'e'},
        {"tag", no_argument, NULL, 'T'},         {"no-tag", no_argument, NULL, 'N'},
        {"timeout", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    char *end;
    long number;

    opterr = 0;
    /* "+" stops the parser at the program's name, so that the program gets its own options. */
    while ((option = getopt_long(argc, argv, "+:n:e:t:h", options, NULL)) != -1)
        switch (option) {
        case 'n':
            /* getopt_long reads mpirun's option -np as -n with the value "p". */
            if (strcmp(argv[optind - 1], "-np") == 0 && argv[optind] != NULL)
                optarg = argv[optind++];
            number = strtol(optarg, &end, 10);
            if (end == optarg || *end != '\0' || number < 1 || number > RANKS_MAX) {
                complain("-n %s: give a number of ranks from 1 to %d", optarg, RANKS_MAX);
                return false;
            }
            run->nranks = (int)number;
            break;
        case 'e':
            if (strchr(optarg, '=') == NULL || *optarg == '=') {
                complain("--env %s: give NAME=TEXT", optarg);
                return false;
            }
            putenv(optarg);
            break;
        case 't':
            run->timeout_s = strtod(optarg, &end);
            if (end == optarg || *end != '\0' || !(run->timeout_s > 0 && run->timeout_s < 1e9)) {
                complain("--timeout %s: give a number of seconds above 0", optarg);
                return false;
            }
            break;
        case 'T': run->is_tagged = true; break;
        case 'N': run->is_tagged = false; break;
        case 'h': fputs(help, stdout); exit(0);
        case 'V':
            printf("tutti-run %d.%d.%d\n", TUTTI_MAJOR, TUTTI_MINOR, TUTTI_PATCH);
            exit(0);
        default:
            complain("%s %s; see tutti-run --help", argv[optind - 1],
                     option == ':' ? "needs a value" : "is no option");
            return false;
        }
    run->command = argv + optind;
    if (run->nranks == 0 || *run->command == NULL) {
        complain("%s is missing; see tutti-run --help",
                 run->nranks == 0 ? "-n RANKS" : "the program");
        return false;
    }
    return true;
}

/* ---- the address of the ranks, and the keeper ------------------------------------------ */

/* Writes `count` random bytes, at most 32, as hexadecimal digits. */
static bool write_random_text(char *text, size_t count)
{
    uint8_t bytes[32];

    if (getrandom(bytes, count, 0) != (ssize_t)count) {
        complain("no random bytes: getrandom: %s", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < count; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Chooses the address at which the ranks find each other, and their secret. */
static bool choose_address(struct run *run)
{
    size_t length = (size_t)snprintf(run->root, sizeof run->root, "unix:run-");

    return write_random_text(run->root + length, 16) && write_random_text(run->secret, 32);
}

/* Runs the keeper. Does not return. */
static void be_keeper(int pipe_fd)
{
    char byte;

    /* Signals to the group are for the ranks, not for the keeper. The signals that were blocked
     * before the fork stay blocked. The keeper ignores two more, which a terminal may send. */
    signal(SIGTSTP, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    /* Close the standard descriptors, because another process may wait until they are closed. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    while (read(pipe_fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    kill(0, SIGKILL); /* kills the whole group, with the keeper itself */
    _exit(0);
}

static bool start_keeper(struct run *run)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        complain("pipe: %s", strerror(errno));
        return false;
    }
    run->keeper = fork();
    if (run->keeper < 0) {
        complain("fork: %s", strerror(errno));
        return false;
    }
    if (run->keeper == 0) {
        setpgid(0, 0);
        close(ends[1]);
        be_keeper(ends[0]);
    }
    setpgid(run->keeper, run->keeper); /* both processes call setpgid, since either may run first */
    close(ends[0]);
    run->keeper_fd = ends[1];
    return true;
}

/* ---- ranks --------------------------------------------------------------------------------- */

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* Runs the program in the child process of a rank. `out` and `err` are the pipes for its output.
 * Does not return. */
static void be_rank(const struct run *run, int rank, pid_t parent, const int *out, const int *err)
{
    setpgid(0, run->keeper);
    /* If the parent is killed, the kernel kills this process at once. The keeper would do so too,
     * but later. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent ended before prctl took effect */
        _exit(EXIT_NO_EXEC);
    set_number("TUTTI_RANK", rank);
    set_number("TUTTI_NRANKS", run->nranks);
    set_number("TUTTI_LOCAL_RANK", rank);
    set_number("TUTTI_LOCAL_NRANKS", run->nranks);
    setenv("TUTTI_ROOT", run->root, 1);
    setenv("TUTTI_SECRET", run->secret, 1);
    /* Only rank 0 gets the input of tutti-run. If the input is a terminal, no rank gets it, because
     * a background process group cannot read a terminal. */
    if (rank > 0 || isatty(STDIN_FILENO)) {
        int null = open("/dev/null", O_RDONLY);

        dup2(null, STDIN_FILENO);
        close(null);
    }
    if (run->is_tagged) {
        if (isatty(STDERR_FILENO))
            setenv("TUTTI_PROGRESS", "1", 1);
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &run->kept_mask, NULL);
    execvp(run->command[0], run->command);
    complain("cannot run %s: %s", run->command[0], strerror(errno));
    _exit(EXIT_NO_EXEC);
}

static bool start_rank(struct run *run, int rank)
{
    pid_t parent = getpid();
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    bool has_pipes = !run->is_tagged ||
                     (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0);

    run->pids[rank] = has_pipes ? fork() : -1;
    if (run->pids[rank] < 0) {
        complain("cannot start rank %d of %d: %s", rank, run->nranks, strerror(errno));
        run->pids[rank] = 0;
        return false;
    }
    if (run->pids[rank] == 0)
        be_rank(run, rank, parent, out, err);
    setpgid(run->pids[rank], run->keeper); /* both processes call setpgid, as for the keeper */
    run->running++;
    if (run->is_tagged) {
        close(out[1]);
        close(err[1]);
    }
    output_begin(&run->outputs[2 * rank], rank, out[0], STDOUT_FILENO);
    output_begin(&run->outputs[2 * rank + 1], rank, err[0], STDERR_FILENO);
    return true;
}

/* Sends a signal to the ranks and to the processes that they have started. The keeper ignores it.
 * SIGKILL goes only to the ranks, because it would kill the keeper too. */
static void signal_all(const struct run *run, int number)
{
    if (number != SIGKILL) {
        kill(-run->keeper, number);
        return;
    }
    for (int rank = 0; rank < run->nranks; rank++)
        if (run->pids[rank] > 0)
            kill(run->pids[rank], SIGKILL);
}

/* Sends SIGTERM to all ranks, and sets the exit status. Does nothing if the ranks are already
 * ending. */
static void end_all(struct run *run, int status)
{
    if (run->status != 0)
        return;
    run->status = status;
    if (run->running == 0)
        return;
    signal_all(run, SIGTERM);
    signal_all(run, SIGCONT); /* a stopped rank could not handle SIGTERM */
    run->kill_ms = now_ms() + GRACE_MS;
}

/* Records the end of a rank. `status` is from waitpid. If this is the first failure, ends all
 * ranks. */
static void handle_end(struct run *run, int rank, int status)
{
    run->pids[rank] = 0;
    run->running--;
    if (status == 0 || run->status != 0)
        return;
    if (WIFSIGNALED(status))
        complain("rank %d was killed by signal %d (%s)", rank, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        complain("rank %d exited with status %d", rank, WEXITSTATUS(status));
    end_all(run, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Handles all processes that have ended. */
static void reap(struct run *run)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int rank = 0; rank < run->nranks; rank++)
            if (run->pids[rank] == pid) {
                /* Print the rank's last output before the message about its end. */
                output_pump(&run->outputs[2 * rank]);
                output_pump(&run->outputs[2 * rank + 1]);
                handle_end(run, rank, status);
            }
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Passes signals on to the ranks. Signals of the same number may have been merged, so this function
 * always looks for processes that have ended. */
static void handle_signals(struct run *run)
{
    struct signalfd_siginfo info;

    while (read(run->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            signal_all(run, (int)info.ssi_signo);
    reap(run);
}

/* Ends or kills the ranks if the time for this has come. */
static void handle_time(struct run *run)
{
    int64_t now = now_ms();

    if (run->timeout_ms >= 0 && now >= run->timeout_ms) {
        run->timeout_ms = -1;
        if (run->status == 0)
            complain("%d of %d ranks still run after %g s", run->running, run->nranks,
                     run->timeout_s);
        end_all(run, EXIT_TIMEOUT);
    }
    if (run->kill_ms >= 0 && now >= run->kill_ms) {
        run->kill_ms = -1;
        signal_all(run, SIGKILL);
    }
}

/* Returns the time until handle_time has something to do, for poll. -1: never. */
static int sleep_limit_ms(const struct run *run)
{
    int64_t at = run->kill_ms >= 0 ? run->kill_ms : run->timeout_ms;
    int64_t left;

    if (at < 0)
        return -1;
    left = at - now_ms();
    return left < 0 ? 0 : left > LONGEST_SLEEP_MS ? LONGEST_SLEEP_MS : (int)left;
}

/* Forwards output and signals until all ranks have ended. */
static void supervise(struct run *run)
{
    int count = run->is_tagged ? 2 * run->nranks : 0;
    struct pollfd *fds = calloc((size_t)count + 1, sizeof *fds);

    if (fds == NULL) {
        complain("no memory for %d ranks", run->nranks);
        end_all(run, 1);
        return;
    }
    while (run->running > 0) {
        fds[count] = (struct pollfd){.fd = run->signal_fd, .events = POLLIN};
        for (int i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = run->outputs[i].from_fd, .events = POLLIN};
        if (poll(fds, (nfds_t)count + 1, sleep_limit_ms(run)) > 0) {
            for (int i = 0; i < count; i++)
                if (fds[i].revents != 0)
                    output_pump(&run->outputs[i]);
            if (fds[count].revents != 0)
                handle_signals(run);
        }
        handle_time(run);
    }
    free(fds);
}

/* Kills the processes that are left in the group, and prints the rest of the output. */
static void clean_up(struct run *run)
{
    kill(-run->keeper, SIGKILL);
    while (waitpid(run->keeper, NULL, 0) < 0 && errno == EINTR)
        continue;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    for (int i = 0; i < 2 * run->nranks; i++) {
        output_pump(&run->outputs[i]);
        output_finish(&run->outputs[i]);
    }
    output_erase_progress();
}

/* Does everything before the start of the first rank. Returns false after a message. */
static bool prepare(struct run *run)
{
    static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++)
        sigaddset(&mask, handled[i]);
    sigprocmask(SIG_BLOCK, &mask, &run->kept_mask);
    run->signal_fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (run->signal_fd < 0) {
        complain("signalfd: %s", strerror(errno));
        return false;
    }
    run->pids = calloc((size_t)run->nranks, sizeof *run->pids);
    run->outputs = calloc(2 * (size_t)run->nranks, sizeof *run->outputs);
    if (run->pids == NULL || run->outputs == NULL) {
        complain("no memory for %d ranks", run->nranks);
        return false;
    }
    for (int i = 0; i < 2 * run->nranks; i++)
        run->outputs[i].from_fd = -1;
    return choose_address(run) && start_keeper(run);
}

int main(int argc, char **argv)
{
    struct run run = {.is_tagged = true, .kill_ms = -1, .timeout_ms = -1};

    if (!parse_options(&run, argc, argv))
        return EXIT_USAGE;
    /* If the reader of the output ends, the ranks must still run to their end. */
    signal(SIGPIPE, SIG_IGN);
    if (!prepare(&run))
        return 1;
    for (int rank = 0; rank < run.nranks && run.status == 0; rank++)
        if (!start_rank(&run, rank))
            end_all(&run, 1);
    if (run.timeout_s > 0)
        run.timeout_ms = now_ms() + (int64_t)(run.timeout_s * 1000);
    supervise(&run);
    clean_up(&run);
    free(run.pids);
    free(run.outputs);
    return run.status;
}
