/* SPDX-License-Identifier: Apache-2.0
 * Results of inner calls, and the text that goes with a failed one. */
#include "base/result.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_message[TUTTI_MESSAGE_BYTES];

static void record(const char *format, va_list args)
{
    char message[TUTTI_MESSAGE_BYTES];

    vsnprintf(message, sizeof message, format, args);
    tutti_set_last_message(message);
}

void tutti_record_failure(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    record(format, args);
    va_end(args);
    tutti_log(TUTTI_LOG_WARN, "%s", last_message);
}

void tutti_record_message(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    record(format, args);
    va_end(args);
}

const char *tutti_last_message(void)
{
    return last_message;
}

void tutti_set_last_message(const char *message)
{
    size_t length = strnlen(message, sizeof last_message - 1);

    memmove(last_message, message, length);
    last_message[length] = '\0';
}

void tutti_assert_failed(const char *claim, const char *file, int line)
{
    fprintf(stderr, "tutti: %s:%d: this must hold and does not: %s\n", file, line, claim);
    abort();
}
