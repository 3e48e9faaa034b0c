/* SPDX-License-Identifier: Apache-2.0
 * Takes bytes out of the buffer in which elements are put together from parts of a stream. */
#include "transport/carry.h"

#include <string.h>

size_t tutti_carry_drop(struct tutti_carry *carry, size_t size)
{
    if (size > carry->have)
        size = carry->have;
    carry->have -= size;
    memmove(carry->bytes, carry->bytes + size, carry->have);
    return size;
}

size_t tutti_carry_take(struct tutti_carry *carry, void *data, size_t size)
{
    if (size > carry->have)
        size = carry->have;
    memcpy(data, carry->bytes, size);
    return tutti_carry_drop(carry, size);
}
