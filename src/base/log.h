/* SPDX-License-Identifier: Apache-2.0
 * One log for the process: whole lines to stderr, level from TUTTI_DEBUG.
 * Levels go by how often a line may appear.
 */
#ifndef TUTTI_BASE_LOG_H
#define TUTTI_BASE_LOG_H

#include <stdbool.h>

enum tutti_log_level {
    TUTTI_LOG_ERROR = 1, /* once per lost process or communicator */
    TUTTI_LOG_WARN = 2,  /* once per failed call */
    TUTTI_LOG_INFO = 3,  /* once per communicator */
    TUTTI_LOG_DEBUG = 4, /* once per connection */
    TUTTI_LOG_TRACE = 5, /* once per operation */
};

/* Writes "tutti[pid.tid] LEVEL text\n" in one write when the level is on. */
void tutti_log(enum tutti_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True when lines of this level are written: guards costly arguments. */
bool tutti_log_is_on(enum tutti_log_level level);

#endif
