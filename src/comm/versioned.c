/* SPDX-License-Identifier: Apache-2.0
 * Structs of tutti.h to which later versions add members at the end. Their first member is `size`,
 * in which the caller gives the size of its own version of the struct. */
#include "comm/comm.h"

#include <string.h>

/* A larger value means that the caller has not set the member. */
enum { STRUCT_MOST_BYTES = 4096 };

bool tutti_public_is_size(size_t size)
{
    return size >= sizeof size && size <= STRUCT_MOST_BYTES;
}

int tutti_public_check_size(const char *function, const char *argument, const char *type,
                            size_t size)
{
    if (tutti_public_is_size(size))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s->size is %zu; set it to sizeof(%s)", function,
                      argument, size, type);
}

void tutti_public_copy(const void *known, size_t known_bytes, void *ret_struct)
{
    size_t size;

    memcpy(&size, ret_struct, sizeof size);
    if (size > known_bytes)
        size = known_bytes;
    memcpy((char *)ret_struct + sizeof size, (const char *)known + sizeof size, size - sizeof size);
}
