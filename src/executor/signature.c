/* SPDX-License-Identifier: Apache-2.0
 * Writes signatures as text, and sets the error messages for calls that do not match. */
#include "executor/signature.h"

#include "base/result.h"
#include "executor/call.h"

#include <inttypes.h>
#include <stdio.h>

/* Returns the name of a call. *ret_suffix is "v" for a v-form, and else empty. A peer may have sent
 * any number, so a number that no call has gets a name too. */
static const char *call_name(uint8_t call, const char **ret_suffix)
{
    bool is_vector;
    enum tutti_collective collective = tutti_collective_of_call(call, &is_vector);

    *ret_suffix = is_vector ? "v" : "";
    if (collective != TUTTI_COLLECTIVE_COUNT)
        return tutti_collective_name(collective);
    return call == TUTTI_CALL_MESSAGE ? "send/recv" : "garbage";
}

/* Returns NULL for TUTTI_OP_NONE and for numbers that no operation has. */
static const char *op_name(uint8_t op)
{
    if (op < TUTTI_OP_COUNT)
        return tutti_op_name((enum tutti_op)op);
    return op == TUTTI_OP_AVERAGE ? "avg" : op == TUTTI_OP_PREMULTIPLIED ? "premulsum" : NULL;
}

const char *tutti_caller_name(uint8_t caller)
{
    static const char *const names[TUTTI_CALLER_COUNT] = {
        [TUTTI_FOR_FORMING] = "forming of the communicator", [TUTTI_FOR_SPLIT] = "tuttiCommSplit",
        [TUTTI_FOR_TUNE] = "tuttiCommTune", [TUTTI_FOR_FINALIZE] = "tuttiCommFinalize",
        [TUTTI_FOR_MAILBOX] = "tuttiMailboxCreate"};

    return caller < TUTTI_CALLER_COUNT ? names[caller] : NULL;
}

bool tutti_signature_has_hash(const struct tutti_signature *signature)
{
    bool is_vector;
    enum tutti_collective collective = tutti_collective_of_call(signature->call, &is_vector);

    return is_vector && !tutti_collective_counts_by_pair(collective);
}

bool tutti_signature_has_pairs(const struct tutti_signature *signature)
{
    bool is_vector;
    enum tutti_collective collective = tutti_collective_of_call(signature->call, &is_vector);

    return is_vector && tutti_collective_counts_by_pair(collective);
}

/* Writes a signature as text. `counts` is the text of the call's counts. It is empty, or ends with
 * a comma and a blank. */
static const char *format(const struct tutti_signature *signature, const char *counts,
                          char text[TUTTI_SIGNATURE_TEXT_BYTES])
{
    const char *suffix, *op = op_name(signature->op);
    const char *caller = tutti_caller_name(signature->caller);
    const char *name = call_name(signature->call, &suffix);
    char root[24] = "";

    if (signature->root != UINT16_MAX)
        snprintf(root, sizeof root, ", root %u", signature->root);
    if (caller != NULL)
        snprintf(text, TUTTI_SIGNATURE_TEXT_BYTES, "%s", caller);
    else if (signature->call == tutti_collective_call(TUTTI_BARRIER, false))
        snprintf(text, TUTTI_SIGNATURE_TEXT_BYTES, "%s", name);
    else
        snprintf(text, TUTTI_SIGNATURE_TEXT_BYTES, "%s%s(%s%s%s%s%s)", name, suffix, counts,
                 tutti_type_name(signature->type), op ? ", " : "", op ? op : "", root);
    return text;
}

const char *tutti_signature_format(const struct tutti_signature *signature,
                                   char text[TUTTI_SIGNATURE_TEXT_BYTES])
{
    char counts[32] = "";

    if (!tutti_signature_has_hash(signature) && !tutti_signature_has_pairs(signature))
        snprintf(counts, sizeof counts, "count %" PRIu64 ", ", signature->count);
    return format(signature, counts, text);
}

static size_t total_of(const size_t *counts, int nranks)
{
    size_t total = 0;

    for (int rank = 0; rank < nranks; rank++)
        total += counts[rank];
    return total;
}

/* Writes the number of elements of a buffer, such as "sends 10, ". Writes nothing if only the root
 * has the buffer and `counts` is NULL, because then this rank is not the root. Returns the length
 * of the text. */
static int format_side(const char *verb, uint32_t blocks, const size_t *counts, size_t count,
                       int nranks, char *text, size_t size)
{
    text[0] = '\0';
    if (counts == NULL && (blocks & TUTTI_AT_ROOT) != 0)
        return 0;
    return snprintf(text, size, "%s %zu, ", verb,
                    counts != NULL ? total_of(counts, nranks) : count);
}

static void format_pairs(const struct tutti_call *call, int nranks, char *text, size_t size)
{
    int length = format_side("sends", tutti_collective_input(call->collective), call->input_counts,
                             call->count, nranks, text, size);

    format_side("receives", tutti_collective_output(call->collective), call->output_counts,
                call->count, nranks, text + length, size - (size_t)length);
}

const char *tutti_call_format(const struct tutti_call *call, int nranks,
                              char text[TUTTI_SIGNATURE_TEXT_BYTES])
{
    char counts[64];

    if (tutti_signature_has_pairs(&call->signature))
        format_pairs(call, nranks, counts, sizeof counts);
    else if (tutti_signature_has_hash(&call->signature))
        snprintf(counts, sizeof counts, "total %zu, ",
                 total_of(tutti_call_shared_counts(call), nranks));
    else
        return tutti_signature_format(&call->signature, text);
    return format(&call->signature, counts, text);
}

/* ---- mismatches ------------------------------------------------------------------------- */

int tutti_signature_mismatch(const struct tutti_header *mine, int rank,
                             const struct tutti_header *theirs)
{
    char here[TUTTI_SIGNATURE_TEXT_BYTES], there[TUTTI_SIGNATURE_TEXT_BYTES];

    if (theirs->signature.magic != TUTTI_SIGNATURE_MAGIC)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "rank %d sent other bytes where the header of operation %" PRIu64
                          ", %s, should be; all ranks must make the same calls in the same order",
                          rank, mine->sequence, tutti_signature_format(&mine->signature, here));
    return tutti_fail(TUTTI_ERR_USAGE,
                      "ranks call different operations: here number %" PRIu64 " is %s, rank %d's "
                      "number %" PRIu64
                      " is %s; all ranks must make the same calls in the same order",
                      mine->sequence, tutti_signature_format(&mine->signature, here), rank,
                      theirs->sequence, tutti_signature_format(&theirs->signature, there));
}

int tutti_counts_mismatch(const struct tutti_header *mine, int rank, int entry, uint64_t here,
                          uint64_t there)
{
    char call[TUTTI_SIGNATURE_TEXT_BYTES];

    tutti_signature_format(&mine->signature, call);
    if (entry < 0)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "ranks pass different counts: recvcounts of number %" PRIu64
                          ", %s, are not the same here and on rank %d; all ranks must pass the "
                          "same recvcounts",
                          mine->sequence, call, rank);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "ranks pass different counts: recvcounts[%d] is %" PRIu64 " here, %" PRIu64
                      " on rank %d, in number %" PRIu64
                      ", %s; all ranks must pass the same recvcounts",
                      entry, here, there, rank, mine->sequence, call);
}

/* Writes the name of the argument that has the count for `rank`: "sendcounts[2]", or "sendcount" if
 * the argument is one count. `verb` is "send" or "recv". */
static const char *count_name(const char *verb, bool is_per_rank, int rank, char text[24])
{
    if (is_per_rank)
        snprintf(text, 24, "%scounts[%d]", verb, rank);
    else
        snprintf(text, 24, "%scount", verb);
    return text;
}

int tutti_pair_mismatch(const struct tutti_signature *signature, uint64_t number, int from,
                        uint64_t sent, int to, uint64_t expected)
{
    const char *type = tutti_type_name(signature->type), *suffix;
    const char *name = call_name(signature->call, &suffix);
    size_t size = signature->type < TUTTI_TYPE_COUNT
                      ? tutti_type_size((enum tutti_type)signature->type) : 0;
    char given[24], taken[24];
    bool is_vector;
    enum tutti_collective collective = tutti_collective_of_call(signature->call, &is_vector);

    return tutti_fail(TUTTI_ERR_USAGE,
                      "rank %d sends %" PRIu64 " elements of %s (%" PRIu64 " bytes) to rank %d, "
                      "which expects %" PRIu64 " (%" PRIu64 " bytes), in number %" PRIu64
                      ", %s%s; %s on rank %d and %s on rank %d must be equal",
                      from, sent, type, sent * size, to, expected, expected * size, number, name,
                      suffix,
                      count_name("send", tutti_input_is_per_rank(collective), to, given), from,
                      count_name("recv", tutti_output_is_per_rank(collective), from, taken), to);
}
