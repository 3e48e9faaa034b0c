/* SPDX-License-Identifier: Apache-2.0
 * Signatures: comparing and naming. */
#include "executor/signature.h"

#include "base/result.h"
#include "executor/call.h"

#include <inttypes.h>
#include <stdio.h>

static const char *call_name(uint8_t call, const char **ret_suffix)
{
    *ret_suffix = "";
    if (call < TUTTI_COLLECTIVE_COUNT)
        return tutti_collective_name(call);
    if (call < 2 * TUTTI_COLLECTIVE_COUNT) {
        *ret_suffix = "v";
        return tutti_collective_name(call - TUTTI_CALL_VECTOR);
    }
    return call == TUTTI_CALL_SEND || call == TUTTI_CALL_RECV ? "send/recv" : "garbage";
}

static const char *type_name(uint8_t type)
{
    static const char *const names[] = {"int8", "uint8", "int32", "uint32", "int64", "uint64",
                                        "float16", "float32", "float64", "bfloat16", "float8e4m3",
                                        "float8e5m2"};

    return type < TUTTI_TYPE_COUNT ? names[type] : "no type";
}

static const char *op_name(uint8_t op)
{
    static const char *const names[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

    return op <= TUTTI_OP_PREMULTIPLIED ? names[op] : NULL;
}

const char *tutti_signature_format(const struct tutti_signature *signature,
                                   char text[TUTTI_SIGNATURE_TEXT_BYTES])
{
    const char *suffix, *op = op_name(signature->op);
    const char *name = call_name(signature->call, &suffix);
    char root[24] = "";

    if (signature->root != UINT16_MAX)
        snprintf(root, sizeof root, ", root %u", signature->root);
    if (signature->call == TUTTI_BARRIER)
        snprintf(text, TUTTI_SIGNATURE_TEXT_BYTES, "%s", name);
    else
        snprintf(text, TUTTI_SIGNATURE_TEXT_BYTES, "%s%s(count %" PRIu64 ", %s%s%s%s)", name,
                 suffix, signature->count, type_name(signature->type), op ? ", " : "", op ? op : "",
                 root);
    return text;
}

int tutti_signature_mismatch(const struct tutti_header *mine, int rank,
                             const struct tutti_header *theirs)
{
    char here[TUTTI_SIGNATURE_TEXT_BYTES], there[TUTTI_SIGNATURE_TEXT_BYTES];

    if (theirs->signature.magic != TUTTI_SIGNATURE_MAGIC)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "rank %d sent no header where operation %" PRIu64 ", %s, expects one; do "
                          "all ranks call the same operations in the same order?",
                          rank, mine->sequence, tutti_signature_format(&mine->signature, here));
    return tutti_fail(TUTTI_ERR_USAGE,
                      "ranks call different operations: here number %" PRIu64 " is %s, rank %d's "
                      "number %" PRIu64
                      " is %s; all ranks must make the same calls in the same order",
                      mine->sequence, tutti_signature_format(&mine->signature, here), rank,
                      theirs->sequence, tutti_signature_format(&theirs->signature, there));
}
