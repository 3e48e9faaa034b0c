/* SPDX-License-Identifier: Apache-2.0
 * Gives the names of element types, for messages. */
#include "base/types.h"

const char *tutti_type_name(enum tutti_type type)
{
    static const char *const names[TUTTI_TYPE_COUNT] = {
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
        "bfloat16", "float8e4m3", "float8e5m2"};

    return (unsigned)type < TUTTI_TYPE_COUNT ? names[type] : "no type";
}
