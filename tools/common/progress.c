/* SPDX-License-Identifier: Apache-2.0
 * Shows a line of progress on a terminal. */
#include "common/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Moves to the start of the line and erases it. */
static const char erase[] = "\r\033[K";

void progress_show(const char *format, ...)
{
    va_list args;

    if (!isatty(STDERR_FILENO))
        return;
    fputs(erase, stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fflush(stderr);
}

void progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fputs(erase, stderr);
}
