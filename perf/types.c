/* SPDX-License-Identifier: Apache-2.0
 * Names the types of elements and the reductions on the command line and in reports. */
#include "types.h"

#include "base/types.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)PERF_MULSUM == tuttiNumOps, "all operations of the header, and one more");
_Static_assert((int)TUTTI_TYPE_COUNT == tuttiNumTypes, "the table has the types of the header");

static const char *const op_names[PERF_OP_COUNT] = {"sum", "prod", "max", "min", "avg", "band",
                                                    "bor", "bxor", "land", "lor", "lxor", "mulsum"};

#define NAME_OF(NAME, number, name, ...) #name,

static const char *const type_names[TUTTI_TYPE_COUNT] = {TUTTI_TYPES(NAME_OF)};

/* `nccl` is the name of a type in nccl-tests if that is not the name in the library's table.
 * `aliases` are names of the same type in other programs, separated by blanks. */
static const struct {
    const char *nccl, *aliases;
} other_names[TUTTI_TYPE_COUNT] = {
    [TUTTI_INT8] = {NULL, "char"},
    [TUTTI_UINT8] = {NULL, "byte"},
    [TUTTI_INT32] = {NULL, "int"},
    [TUTTI_UINT32] = {NULL, "uint"},
    [TUTTI_INT64] = {NULL, "long"},
    [TUTTI_UINT64] = {NULL, "ulong"},
    [TUTTI_FLOAT16] = {"half", "fp16 f16"},
    [TUTTI_FLOAT32] = {"float", "fp32 f32"},
    [TUTTI_FLOAT64] = {"double", "fp64 f64"},
    [TUTTI_BFLOAT16] = {NULL, "bf16"},
    [TUTTI_FLOAT8E4M3] = {"f8e4m3", "float8_e4m3 fp8_e4m3 fp8e4m3"},
    [TUTTI_FLOAT8E5M2] = {"f8e5m2", "float8_e5m2 fp8_e5m2 fp8e5m2"},
};

const char *perf_op_name(enum perf_op op)
{
    return op == PERF_NO_OP ? "none" : op_names[op];
}

const char *perf_type_name(tuttiDataType_t type)
{
    return other_names[type].nccl != NULL ? other_names[type].nccl : type_names[type];
}

size_t perf_type_bytes(tuttiDataType_t type)
{
    return tutti_type_size((enum tutti_type)type);
}

bool perf_type_has_op(tuttiDataType_t type, enum perf_op op)
{
    if (op == PERF_AVG || op == PERF_MULSUM)
        return tutti_type_is_scaled((enum tutti_type)type);
    return op < PERF_BAND || !tutti_type_is_floating((enum tutti_type)type);
}

bool perf_parse_ops(const char *text, unsigned *ret_ops)
{
    if (strcmp(text, "all") == 0) {
        *ret_ops = (1u << PERF_OP_COUNT) - 1;
        return true;
    }
    for (int op = 0; op < PERF_OP_COUNT; op++)
        if (strcmp(text, op_names[op]) == 0) {
            *ret_ops = 1u << op;
            return true;
        }
    return false;
}

/* True if `text` is a name of the type. */
static bool is_type(int type, const char *text)
{
    size_t length = strlen(text);
    const char *at = other_names[type].aliases;

    if (strcmp(text, perf_type_name((tuttiDataType_t)type)) == 0 ||
        strcmp(text, type_names[type]) == 0)
        return true;
    for (; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        if (strcspn(at, " ") == length && strncmp(at, text, length) == 0)
            return true;
        at += strcspn(at, " ");
    }
    return false;
}

bool perf_parse_types(const char *text, unsigned *ret_types)
{
    if (strcmp(text, "all") == 0) {
        *ret_types = (1u << tuttiNumTypes) - 1;
        return true;
    }
    for (int type = 0; type < tuttiNumTypes; type++)
        if (is_type(type, text)) {
            *ret_types = 1u << type;
            return true;
        }
    return false;
}

/* Appends a name and its comma, on a new line if the last one has no room. *width is the width of
 * the last line, without its indentation. */
static void append(const char *name, int indent, size_t *width, char text[PERF_NAMES_BYTES])
{
    const size_t most = 76, length = strlen(text), added = strlen(name) + strlen(", ");
    const char *gap = length > 0 ? " " : "";

    if (*width + added > most - (size_t)indent) {
        snprintf(text + length, PERF_NAMES_BYTES - length, "\n%*s%s,", indent, "", name);
        *width = added;
    } else {
        snprintf(text + length, PERF_NAMES_BYTES - length, "%s%s,", gap, name);
        *width += added;
    }
}

void perf_name_types(int indent, char ret_text[PERF_NAMES_BYTES])
{
    size_t width = 0; /* of the last line so far */

    ret_text[0] = '\0';
    for (int type = 0; type < tuttiNumTypes; type++)
        append(perf_type_name((tuttiDataType_t)type), indent, &width, ret_text);
}

void perf_name_ops(int indent, char ret_text[PERF_NAMES_BYTES])
{
    size_t width = 0; /* of the last line so far */

    ret_text[0] = '\0';
    for (int op = 0; op < PERF_OP_COUNT; op++)
        append(op_names[op], indent, &width, ret_text);
}
