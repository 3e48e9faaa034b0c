/* SPDX-License-Identifier: Apache-2.0
 * Results of inner calls, and the text that goes with a failed one.
 *
 * Zero is success, TUTTI_AGAIN is "not yet, call again with the same arguments",
 * a negative value is an error. The magnitudes are those of tuttiResult_t, so
 * the API layer negates and is done.
 */
#ifndef TUTTI_BASE_RESULT_H
#define TUTTI_BASE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TUTTI_OK = 0,
    TUTTI_AGAIN = 1,

    /* A GPU, or its driver, let us down. Communicator lost. */
    TUTTI_ERR_DEVICE = -1,
    /* The process or the machine let us down: no memory, no descriptor. Communicator lost. */
    TUTTI_ERR_SYSTEM = -2,
    /* Our own bug. The communicator is lost. */
    TUTTI_ERR_INTERNAL = -3,
    /* Only this call is lost: nothing was started, the communicator stays usable. */
    TUTTI_ERR_ARGUMENT = -4,
    /* Calls that do not fit together (with earlier ones, or with other ranks'). */
    TUTTI_ERR_USAGE = -5,
    /* A peer is gone, or has given up. The communicator is lost. */
    TUTTI_ERR_REMOTE = -6,
    /* A deadline passed. The communicator is lost. */
    TUTTI_ERR_TIMEOUT = -8,
};

/* Longest message, with its terminating zero: room for one that names two calls and was passed on
 * by a peer, with the names of communicators. Longer ones are shortened by tutti_message_copy. */
#define TUTTI_MESSAGE_BYTES 1024

static inline int tutti_recorded(int code)
{
    return code;
}

/* Record why, for this thread, log it at level "warn", and give `code` back.
 * Called once, by the function that finds the failure; all others pass it on.
 * A macro, so that the compiler sees the code and knows that outputs stay unset. */
#define tutti_fail(code, ...) tutti_recorded((tutti_record_failure(__VA_ARGS__), (code)))
void tutti_record_failure(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* The same without logging: for failures that the caller may mend by trying another way. */
#define tutti_note(code, ...) tutti_recorded((tutti_record_message(__VA_ARGS__), (code)))
void tutti_record_message(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Copy a message to where it may have less room: then it ends with the last clause that fits, or
 * with the last word, and with "...". */
void tutti_message_copy(char *to, size_t size_bytes, const char *message);

/* Replace control characters: others chose these bytes, and they end on somebody's terminal. */
void tutti_message_clean(char *text, size_t length);

/* The last message recorded on this thread; "" if none. Never NULL. */
const char *tutti_last_message(void);

/* Make `message` the last one of this thread without logging it again: carries
 * a failure found by another thread to the caller who waits for it. */
void tutti_set_last_message(const char *message);

/* The only two control-flow macros of the library. Both treat every nonzero
 * result, TUTTI_AGAIN included, as a reason to leave. */
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

/* Always on, for our own bugs only: never for user arguments or remote bytes. */
#define tutti_assert(claim) \
    ((claim) ? (void)0 : tutti_assert_failed(#claim, __FILE__, __LINE__))
_Noreturn void tutti_assert_failed(const char *claim, const char *file, int line);

#endif
