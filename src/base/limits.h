/* SPDX-License-Identifier: Apache-2.0
 * Raises the process's limit of open files. A rank of a large communicator may need a socket for
 * each of the others. The usual soft limit of 1024 exists only for select(2), which this library
 * does not use. */
#ifndef TUTTI_BASE_LIMITS_H
#define TUTTI_BASE_LIMITS_H

#include <stdbool.h>

/* Raise the soft limit of open files to the hard limit, unless TUTTI_RAISE_LIMITS is off. Only the
 * first call in a process has an effect. Thread-safe. */
void tutti_limits_raise(void);

/* True if the errno value `error` means that this process or machine has no descriptor or no memory
 * left, so that trying another peer would not help. */
bool tutti_limits_are_reached(int error);

/* Write the text of the errno value `error`. For EMFILE the text includes the limits and the cure,
 * as in "Too many open files; this process may have 64 (hard limit 4096): raise the limit with
 * ulimit -n". Returns `text`. */
#define TUTTI_LIMITS_TEXT_BYTES 192
const char *tutti_limits_describe(int error, char text[TUTTI_LIMITS_TEXT_BYTES]);

#endif
