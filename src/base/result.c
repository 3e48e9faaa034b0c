/* SPDX-License-Identifier: Apache-2.0
 * Keeps the last message of each thread, and records, shortens and cleans messages. */
#include "base/result.h"

#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A thread's last message, allocated at its first failure and freed with the thread. It is on the
 * heap because thread-local memory is scarce: libraries that a process loads late share a reserve
 * of about 1.5 KB. */
static _Thread_local char *last_message;

/* The key only serves to free the messages. If the process has no key left, each thread that ends
 * leaks its message. */
static pthread_key_t message_key;
static bool has_message_key;
static pthread_once_t message_once = PTHREAD_ONCE_INIT;

/* Clears last_message, because destructors that run later on this thread may record a failure. They
 * then allocate a new message. */
static void drop(void *message)
{
    last_message = NULL;
    free(message);
}

static void make_key(void)
{
    has_message_key = pthread_key_create(&message_key, drop) == 0;
}

/* Deletes the key when the library is unloaded. Otherwise a thread that ends later would call
 * `drop`, which is no longer in memory. */
static void __attribute__((destructor)) forget_key(void)
{
    if (has_message_key)
        pthread_key_delete(message_key);
}

/* Returns this thread's message; NULL: there is no memory for it. */
static char *this_message(void)
{
    if (last_message != NULL)
        return last_message;
    last_message = calloc(1, TUTTI_MESSAGE_BYTES);
    pthread_once(&message_once, make_key);
    if (last_message != NULL && has_message_key)
        (void)pthread_setspecific(message_key, last_message);
    return last_message;
}

static void record(const char *format, va_list args)
{
    /* The buffer holds more than a message, so that tutti_message_copy sees that a message is too
     * long and cuts it after a word. */
    char message[2 * TUTTI_MESSAGE_BYTES];

    vsnprintf(message, sizeof message, format, args);
    tutti_message_set_last(message);
}

/* Returns the length of the longest prefix of at most `most` bytes that ends before a semicolon, or
 * else before a blank; `most` if there is neither. A semicolon in the first half does not count,
 * since a cut there would waste too much room. */
static size_t shorten(const char *message, size_t most)
{
    size_t clause = 0, word = 0;

    for (size_t i = 1; i <= most; i++) {
        if (message[i] == ' ')
            word = i;
        if (message[i] == ';')
            clause = i;
    }
    if (clause >= most / 2)
        return clause;
    return word > 0 ? word : most;
}

void tutti_message_copy(char *to, size_t size_bytes, const char *message)
{
    static const char dots[] = "...";
    size_t length = strnlen(message, size_bytes);

    if (length == size_bytes) {
        length = size_bytes > sizeof dots ? shorten(message, size_bytes - sizeof dots) : 0;
        memmove(to, message, length);
        snprintf(to + length, size_bytes - length, "%s", dots);
        return;
    }
    memmove(to, message, length);
    to[length] = '\0';
}

void tutti_message_record_failure(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    record(format, args);
    va_end(args);
    tutti_log(TUTTI_LOG_WARN, "%s", tutti_message_last());
}

void tutti_message_record(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    record(format, args);
    va_end(args);
}

const char *tutti_message_last(void)
{
    return last_message != NULL ? last_message : "";
}

void tutti_message_set_last(const char *message)
{
    char *to = this_message();

    if (to != NULL)
        tutti_message_copy(to, TUTTI_MESSAGE_BYTES, message);
}

void tutti_assert_failed(const char *claim, const char *file, int line)
{
    fprintf(stderr, "tutti: %s:%d: this must hold and does not: %s\n", file, line, claim);
    abort();
}

void tutti_message_clean(char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = '?';
}
