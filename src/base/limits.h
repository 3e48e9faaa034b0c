/* SPDX-License-Identifier: Apache-2.0
 * The process's limit of open files: a rank of a large communicator may need a socket for each of
 * the others, and the usual limit of 1024 exists for the sake of select(2) alone. */
#ifndef TUTTI_BASE_LIMITS_H
#define TUTTI_BASE_LIMITS_H

#include <stdbool.h>

/* Raise the limit of open files to the hard one, at the first call in this process and unless
 * TUTTI_RAISE_LIMITS says otherwise. Thread-safe. */
void tutti_limits_raise(void);

/* True for the errors that say that this process or machine is short of descriptors or memory,
 * which no peer can help. */
bool tutti_limits_are_reached(int error);

/* "Too many open files; this process may have 64 (hard limit 4096): raise it with ulimit -n".
 * Returns `text`. */
#define TUTTI_LIMITS_TEXT_BYTES 192
const char *tutti_limits_describe(int error, char text[TUTTI_LIMITS_TEXT_BYTES]);

#endif
