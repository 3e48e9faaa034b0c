/* SPDX-License-Identifier: Apache-2.0
 * The last calls, and which of them was the first that differed. */
#include "executor/history.h"

#include "base/result.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const struct tutti_header *tutti_history_add(struct tutti_history *history,
                                             const struct tutti_signature *signature)
{
    const struct tutti_header *last = &history->calls[history->sequence % TUTTI_HISTORY_CALLS];
    uint64_t chain = history->sequence > 0 ? tutti_chain_after(last) : 0;
    struct tutti_header *next = &history->calls[++history->sequence % TUTTI_HISTORY_CALLS];

    *next = (struct tutti_header){.sequence = history->sequence, .signature = *signature,
                                  .chain = chain};
    return next;
}

const struct tutti_header *tutti_history_find(const struct tutti_history *history,
                                              uint64_t sequence)
{
    const struct tutti_header *call = &history->calls[sequence % TUTTI_HISTORY_CALLS];

    return sequence > 0 && call->sequence == sequence ? call : NULL;
}

/* The first call before `mine` of which the chains tell that it differed; NULL: none. */
static const struct tutti_header *first_to_differ(const struct tutti_history *history,
                                                  const struct tutti_header *mine,
                                                  const struct tutti_header *theirs, bool *ret_sure)
{
    uint64_t differs = mine->chain ^ theirs->chain;
    uint64_t back = TUTTI_CHAIN_CALLS;

    while (back > 0 && (differs >> 8 * (back - 1) & 255) == 0)
        back--;
    if (back == 0 || mine->sequence <= back)
        return NULL;
    *ret_sure = back < TUTTI_CHAIN_CALLS || mine->sequence == back + 1;
    return tutti_history_find(history, mine->sequence - back);
}

int tutti_history_mismatch(const struct tutti_history *history, const struct tutti_header *mine,
                           int rank, const struct tutti_header *theirs)
{
    char here[TUTTI_SIGNATURE_TEXT_BYTES], there[TUTTI_SIGNATURE_TEXT_BYTES + 8] = "another there";
    const struct tutti_header *call = mine;
    bool is_sure = true;

    if (mine->chain != theirs->chain)
        call = first_to_differ(history, mine, theirs, &is_sure);
    else
        strcat(tutti_signature_format(&theirs->signature, there), " there");
    if (call == NULL)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "an earlier call, before number %" PRIu64 ", was not the same here and "
                          "on rank %d; all ranks must make the same calls in the same order",
                          mine->sequence, rank);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "an earlier call was not the same here and on rank %d: number %" PRIu64
                      ", %s here, %s%s; all ranks must make the same calls in the same order",
                      rank, call->sequence, tutti_signature_format(&call->signature, here), there,
                      is_sure ? "" : ", or one before it");
}
