/* SPDX-License-Identifier: Apache-2.0
 * Memory of a program that runs for moments: there is some, or the program ends. */
#ifndef TUTTI_TOOLS_MEMORY_H
#define TUTTI_TOOLS_MEMORY_H

#include <stdio.h>
#include <stdlib.h>

/* The pointer, or the end of the program. */
static inline void *must_have(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* Zeroed, and room for one thing more than asked, so that none is no special case. */
static inline void *must_take(size_t count, size_t size)
{
    return must_have(calloc(count + 1, size));
}

#endif
