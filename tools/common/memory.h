/* SPDX-License-Identifier: Apache-2.0
 * Memory for short-lived programs: an allocation succeeds, or the program ends. */
#ifndef TUTTI_TOOLS_MEMORY_H
#define TUTTI_TOOLS_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

/* Returns the pointer; ends the program if it is NULL. */
static inline void *must_have(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* Allocates zeroed memory with room for one element more than asked, so that a count of 0 is no
 * special case. */
static inline void *must_take(size_t count, size_t size)
{
    return must_have(calloc(count + 1, size));
}

#endif
