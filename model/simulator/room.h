/* SPDX-License-Identifier: Apache-2.0
 * Arrays that grow. */
#ifndef TUTTI_SIMULATOR_ROOM_H
#define TUTTI_SIMULATOR_ROOM_H

#include "base/result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Grows the array behind the pointer at `array` until it holds at least `needed` elements.
 * TUTTI_ERR_SYSTEM: out of memory; the array is unchanged. */
static inline int tutti_sim_room(void *array, size_t element_bytes, uint32_t needed,
                                 uint32_t *capacity)
{
    uint32_t wanted = needed + needed / 2 + 16;
    void *old, *grown;

    if (needed <= *capacity)
        return TUTTI_OK;
    memcpy(&old, array, sizeof(old));
    grown = realloc(old, wanted * element_bytes);
    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u parts of a simulation", wanted);
    memcpy(array, &grown, sizeof(grown));
    *capacity = wanted;
    return TUTTI_OK;
}

/* Makes room for one more element. */
#define SIM_ROOM(array, count, capacity) \
    tutti_sim_room(&(array), sizeof(*(array)), (count) + 1, &(capacity))

#endif
