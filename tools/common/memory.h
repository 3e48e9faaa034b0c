/* SPDX-License-Identifier: Apache-2.0
 * Allocates memory for short-lived programs. If there is not enough memory, the program ends. */
#ifndef TUTTI_TOOLS_MEMORY_H
#define TUTTI_TOOLS_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

/* Returns `memory`. If it is NULL, prints a line on stderr and ends the program. */
static inline void *must_have(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* Allocates zeroed memory for `count` elements of `size` bytes, plus one element, so that a count
 * of 0 is no special case. The caller frees the memory. */
static inline void *must_calloc(size_t count, size_t size)
{
    return must_have(calloc(count + 1, size));
}

#endif
