/* SPDX-License-Identifier: Apache-2.0
 * Defines the results of internal calls, and records the message that goes with a failed call.
 *
 * Zero is success, TUTTI_AGAIN means "not yet, call again with the same arguments", and a negative
 * value is an error. The magnitudes are those of tuttiResult_t, so the API layer only negates them.
 */
#ifndef TUTTI_BASE_RESULT_H
#define TUTTI_BASE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TUTTI_OK = 0,
    TUTTI_AGAIN = 1,

    /* A GPU or its driver failed. The communicator is lost. */
    TUTTI_ERR_DEVICE = -1,
    /* The process or the machine lacks something, such as memory or a descriptor. The communicator
     * is lost. */
    TUTTI_ERR_SYSTEM = -2,
    /* A bug of this library. The communicator is lost. */
    TUTTI_ERR_INTERNAL = -3,
    /* An invalid argument. Only this call failed: nothing was started, the communicator stays
     * usable. */
    TUTTI_ERR_ARGUMENT = -4,
    /* The call does not match earlier calls, or the calls of other ranks. */
    TUTTI_ERR_USAGE = -5,
    /* A peer is gone, or has aborted. The communicator is lost. */
    TUTTI_ERR_REMOTE = -6,
    /* A deadline passed. The communicator is lost. */
    TUTTI_ERR_TIMEOUT = -8,
};

/* Size of the longest message, with its terminating zero. It is enough for a message that names two
 * calls and their communicators and was passed on by a peer. Longer ones are shortened by
 * tutti_message_copy. */
#define TUTTI_MESSAGE_BYTES 1024

/* Returns `code`. The two macros below use this function as their value. */
static inline int tutti_message_recorded(int code)
{
    return code;
}

/* Record the message for this thread, log it at level "warn", and return `code`. Only the function
 * that finds the failure uses tutti_fail; its callers pass the code on. tutti_fail is a macro so
 * that the compiler sees a constant code and knows that outputs stay unset. */
#define tutti_fail(code, ...)                                                                      \
    tutti_message_recorded((tutti_message_record_failure(__VA_ARGS__), (code)))
void tutti_message_record_failure(const char *format, ...)
    __attribute__((format(printf, 1, 2), cold));

/* Does the same as tutti_fail, but logs nothing. Use it for failures that the caller may recover
 * from by a fallback. */
#define tutti_note(code, ...) tutti_message_recorded((tutti_message_record(__VA_ARGS__), (code)))
void tutti_message_record(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Copy a message to `to`, which has room for size_bytes with the terminating zero and may overlap
 * `message`. A message that is too long is cut after the last clause that fits, or else the last
 * word, and "..." is appended. */
void tutti_message_copy(char *to, size_t size_bytes, const char *message);

/* Replace control characters in `text` by '?'. Text from other processes needs this, since it may
 * end up on a terminal. */
void tutti_message_clean(char *text, size_t length);

/* Returns the last message recorded on this thread; "" if there is none. The text is valid until
 * the next message of this thread, or until the thread ends. */
const char *tutti_message_last(void);

/* Make `message` the last one of this thread without logging it again. It hands a failure that
 * another thread found to the caller that waits for it. */
void tutti_message_set_last(const char *message);

/* These two are the only control-flow macros of the library. Both leave on every nonzero result,
 * TUTTI_AGAIN included: TUTTI_TRY returns it, and TUTTI_TRY_OR jumps to `label`. */
#define TUTTI_TRY(expr)                  \
    do {                                 \
        int tutti_try_rc_ = (expr);      \
        if (tutti_try_rc_ != TUTTI_OK)   \
            return tutti_try_rc_;        \
    } while (0)

#define TUTTI_TRY_OR(label, rc, expr)    \
    do {                                 \
        (rc) = (expr);                   \
        if ((rc) != TUTTI_OK)            \
            goto label;                  \
    } while (0)

/* Abort the process if `claim` is false, in all build types. Use it only to find bugs of this
 * library, never to check a user's arguments or bytes from another rank. */
#define tutti_assert(claim) \
    ((claim) ? (void)0 : tutti_assert_failed(#claim, __FILE__, __LINE__))
_Noreturn void tutti_assert_failed(const char *claim, const char *file, int line);

#endif
