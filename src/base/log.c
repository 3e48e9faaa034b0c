/* SPDX-License-Identifier: Apache-2.0
 * Writes the log of the process, in whole lines, to stderr or to a file. */
#include "base/log.h"

#include "base/atomic.h"
#include "base/param.h"
#include "base/result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LINE_BYTES = 2048 };

static const char *const level_names[] = {"",     "VERSION", "ERROR", "WARN",
                                          "INFO", "DEBUG",   "TRACE"};

_Thread_local const struct tutti_log_scope *tutti_log_current
    __attribute__((tls_model("initial-exec")));

static bool is_quiet;

void tutti_log_be_quiet(void)
{
    is_quiet = tutti_param_given(TUTTI_PARAM_DEBUG) == NULL;
}

bool tutti_log_is_on(enum tutti_log_level level)
{
    int64_t set = is_quiet ? TUTTI_LOG_ERROR : tutti_param_int(TUTTI_PARAM_DEBUG);

    return level == TUTTI_LOG_VERSION ? set == TUTTI_LOG_VERSION : (int64_t)level <= set;
}

/* ---- where lines go -------------------------------------------------------------------------- */

/* The pid of the process that opened the file in the upper half, its descriptor in the lower half;
 * 0: not yet opened. Both are in one word, so that threads need no lock: a child made by fork could
 * inherit a lock that is held. */
static uint64_t sink;

static uint64_t sink_of(pid_t pid, int fd)
{
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)fd;
}

/* Write the pattern to `path`, with %h replaced by the host's name, %p by the process id, and %% by
 * one %. False: the result is too long. */
static bool expand(const char *pattern, char *path, size_t size)
{
    struct utsname names;
    size_t length = 0;

    for (const char *at = pattern; *at != '\0' && length < size; at++) {
        char next = *at == '%' ? at[1] : '\0';

        if (next == 'h') {
            bool is_known = uname(&names) == 0;

            length += (size_t)snprintf(path + length, size - length, "%s",
                                       is_known ? names.nodename : "unknown");
        } else if (next == 'p') {
            length += (size_t)snprintf(path + length, size - length, "%d", (int)getpid());
        } else {
            path[length++] = *at;
        }
        at += next == 'h' || next == 'p' || next == '%';
    }
    if (length >= size)
        return false;
    path[length] = '\0';
    return true;
}

/* A symbolic link is refused, because the file may be in a folder that others can write to. A named
 * pipe without a reader is refused too, because opening it would block. */
static int open_file(const char *pattern)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY |
                      O_NONBLOCK;
    char path[PATH_MAX];
    int fd;

    if (*pattern == '\0' || strcmp(pattern, "/dev/stderr") == 0)
        return STDERR_FILENO;
    if (strcmp(pattern, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (!expand(pattern, path, sizeof path)) {
        fprintf(stderr, "tutti: TUTTI_DEBUG_FILE=%.60s...: the name is too long; logging to "
                "stderr\n", pattern);
        return STDERR_FILENO;
    }
    fd = open(path, flags, 0644);
    if (fd < 0) {
        fprintf(stderr, "tutti: TUTTI_DEBUG_FILE: cannot write to %s: %s; logging to stderr\n",
                path, errno == ELOOP ? "it is a symbolic link" : strerror(errno));
        return STDERR_FILENO;
    }
    return fd;
}

/* A child made by fork keeps its parent's file, unless the pattern contains the process id. */
static bool is_mine(uint64_t opened, const char *pattern)
{
    return opened != 0 && ((pid_t)(opened >> 32) == getpid() || strstr(pattern, "%p") == NULL);
}

static int sink_fd(void)
{
    const char *pattern = tutti_param_text(TUTTI_PARAM_DEBUG_FILE);
    /* acquire: pairs with the compare-exchange below */
    uint64_t opened = tutti_load_acquire(&sink);
    int fd;

    while (!is_mine(opened, pattern)) {
        fd = open_file(pattern);
        /* acquire and release: pairs with itself in other threads, of which one opens the file */
        if (tutti_compare_exchange(&sink, &opened, sink_of(getpid(), fd)))
            return fd;
        if (fd > STDERR_FILENO)
            close(fd); /* another thread has opened the file first */
    }
    return (int)(opened & UINT32_MAX);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Appends to the line, which has `length` characters so far. Returns the new length, which is at
 * most LINE_BYTES - 1. A text that is too long is cut. */
static size_t add(char *line, size_t length, const char *format, va_list args)
{
    int more = vsnprintf(line + length, LINE_BYTES - length, format, args);

    length += more > 0 ? (size_t)more : 0;
    return length < LINE_BYTES ? length : LINE_BYTES - 1;
}

static size_t add_words(char *line, size_t length, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t add_words(char *line, size_t length, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    length = add(line, length, format, args);
    va_end(args);
    return length;
}

static size_t add_scope(char *line, size_t length)
{
    const struct tutti_log_scope *scope = tutti_log_current;

    if (scope == NULL)
        return length;
    length = add_words(line, length, "rank %d/%d", scope->rank, scope->nranks);
    if (*scope->name != '\0')
        length = add_words(line, length, " comm '%s'", scope->name);
    return add_words(line, length, ": ");
}

void tutti_log(enum tutti_log_level level, const char *format, ...)
{
    char line[LINE_BYTES];
    size_t length;
    va_list args;

    if (!tutti_log_is_on(level))
        return;

    length = add_words(line, 0, "tutti[%d.%ld] %s ", (int)getpid(), (long)syscall(SYS_gettid),
                       level_names[level]);
    length = add_scope(line, length);
    va_start(args, format);
    length = add(line, length, format, args);
    va_end(args);

    /* Names and reasons come from users and other ranks, and must not break the line. */
    tutti_message_clean(line, length);
    line[length++] = '\n'; /* in place of the terminating zero */
    /* One write, so that lines of several ranks do not mix. */
    if (write(sink_fd(), line, length) < 0)
        return;
}
