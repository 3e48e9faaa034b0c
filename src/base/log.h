/* SPDX-License-Identifier: Apache-2.0
 * Writes one log for the process, in whole lines, to stderr or to the file TUTTI_DEBUG_FILE. The
 * parameter TUTTI_DEBUG selects the level. A line's level depends on how often the line may appear.
 * docs/logging.md explains the lines.
 */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include <stdbool.h>

/* In the order of the choices of TUTTI_DEBUG. */
enum tutti_log_level {
    TUTTI_LOG_VERSION = 1, /* the version, once per process; off at all other levels */
    TUTTI_LOG_ERROR = 2,   /* once per lost process or communicator */
    TUTTI_LOG_WARN = 3,    /* once per failed call */
    TUTTI_LOG_INFO = 4,    /* a few lines per communicator */
    TUTTI_LOG_DEBUG = 5,   /* once per connection */
    TUTTI_LOG_TRACE = 6,   /* once per operation */
};

/* Write "tutti[pid.tid] LEVEL rank 3/8 comm 'name': text\n" in one write, if the level is on.
 * Rank and communicator are those of the calling thread's scope; without one they are left out.
 * Control characters become '?', a line of more than 2 KB is truncated, and errors of the write are
 * ignored. Thread-safe. */
void tutti_log(enum tutti_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True if lines of this level are written. Use it to skip the work of computing costly
 * arguments. */
bool tutti_log_is_on(enum tutti_log_level level);

/* Write only ERROR lines from here on, unless TUTTI_DEBUG is set. Programs that print each failure
 * themselves use it. Call it before the first thread is started. */
void tutti_log_be_quiet(void);

/* The rank and the communicator that a thread works for. */
struct tutti_log_scope {
    int rank, nranks;
    const char *name; /* "": the communicator has none */
};

extern _Thread_local const struct tutti_log_scope *tutti_log_current
    __attribute__((tls_model("initial-exec")));

/* Make `scope` the calling thread's scope; NULL: none. The caller keeps ownership, and must enter
 * another scope before it frees this one. Every call on a communicator enters its scope, so this
 * function is inline and only one store. */
static inline void tutti_log_enter(const struct tutti_log_scope *scope)
{
    tutti_log_current = scope;
}

#endif
