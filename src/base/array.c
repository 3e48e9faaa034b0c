/* SPDX-License-Identifier: Apache-2.0
 * Grows arrays by half each time, so that appending costs constant time on average. */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int tutti_array_grow(void *array, size_t element_bytes, size_t needed, uint32_t *capacity,
                     const char *what)
{
    size_t wanted = needed + needed / 2 + 16;
    void *old, *grown = NULL;

    /* The type of the pointer is the caller's, so it is copied and not accessed as a void *. */
    memcpy(&old, array, sizeof old);
    if (needed <= UINT32_MAX / 2)
        grown = realloc(old, wanted * element_bytes);
    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu %s", wanted, what);
    memcpy(array, &grown, sizeof grown);
    *capacity = (uint32_t)wanted;
    return TUTTI_OK;
}
