/* SPDX-License-Identifier: Apache-2.0
 * Arrays that grow. The owner keeps three things: a pointer, NULL at first; how many elements there
 * are; and `capacity`, for how many there is memory. free() releases the array. */
#ifndef TUTTI_BASE_ARRAY_H
#define TUTTI_BASE_ARRAY_H

#include "base/result.h"

#include <stddef.h>
#include <stdint.h>

/* Allocates memory for tutti_array_reserve, which is its only caller. */
int tutti_array_grow(void *array, size_t element_bytes, size_t needed, uint32_t *capacity,
                     const char *what);

/* Grows the array behind the pointer at `array` until it holds at least `needed` elements. New
 * elements are not initialized. `what` names the elements in the message, such as "steps".
 * TUTTI_ERR_SYSTEM: out of memory; the array is unchanged. */
static inline int tutti_array_reserve(void *array, size_t element_bytes, size_t needed,
                                      uint32_t *capacity, const char *what)
{
    if (needed <= *capacity)
        return TUTTI_OK;
    return tutti_array_grow(array, element_bytes, needed, capacity, what);
}

/* Calls tutti_array_reserve for a pointer variable and a capacity variable, given by name. */
#define TUTTI_ARRAY_RESERVE(array, needed, capacity, what)                                         \
    tutti_array_reserve(&(array), sizeof *(array), (needed), &(capacity), (what))

/* Makes room for one more than `count` elements. */
#define TUTTI_ARRAY_ROOM(array, count, capacity, what)                                             \
    TUTTI_ARRAY_RESERVE(array, (size_t)(count) + 1, capacity, what)

#endif
