/* SPDX-License-Identifier: Apache-2.0
 * One log for the process: whole lines to stderr. */
#include "base/log.h"

#include "base/param.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const level_names[] = {"", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

bool tutti_log_is_on(enum tutti_log_level level)
{
    return (int)level <= (int)tutti_param_int(TUTTI_PARAM_DEBUG);
}

void tutti_log(enum tutti_log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    int length, more;

    if (!tutti_log_is_on(level))
        return;

    length = snprintf(line, sizeof line, "tutti[%d.%ld] %s ", (int)getpid(),
                      (long)syscall(SYS_gettid), level_names[level]);
    va_start(args, format);
    more = vsnprintf(line + length, sizeof line - (size_t)length - 1, format, args);
    va_end(args);

    length += more;
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    /* One write, so that lines of many ranks do not mix; a lost log line is no failure. */
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}
