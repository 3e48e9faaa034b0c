/* SPDX-License-Identifier: Apache-2.0
 * Stores the last calls, and finds the first of them that differed from a peer's. */
#include "executor/call_history.h"

#include "base/hot.h"
#include "base/result.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

TUTTI_HOT
const struct tutti_header *tutti_call_history_add(struct tutti_call_history *history,
                                                  const struct tutti_signature *signature)
{
    struct tutti_header *next = &history->calls[++history->sequence % TUTTI_HISTORY_CALLS];

    next->sequence = history->sequence;
    next->chain = history->chain;
    /* As one piece: a word that was stored field by field cannot be loaded until all fields have
     * left the store buffer, which takes 4 ns. */
    memcpy(&next->signature, signature, sizeof next->signature);
    history->chain = tutti_chain_after(next);
    return next;
}

const struct tutti_header *tutti_call_history_find(const struct tutti_call_history *history,
                                                   uint64_t sequence)
{
    const struct tutti_header *call = &history->calls[sequence % TUTTI_HISTORY_CALLS];

    return sequence > 0 && call->sequence == sequence ? call : NULL;
}

uint64_t tutti_call_history_number(const struct tutti_call_history *history,
                                   const struct tutti_header *header)
{
    for (uint64_t number = history->sequence; number > 0; number--) {
        const struct tutti_header *call = tutti_call_history_find(history, number);

        if (call == NULL)
            return 0;
        if (call->chain == header->chain &&
            tutti_signature_equal(&call->signature, &header->signature))
            return number;
    }
    return 0;
}

/* Sets the message that names the first call that differed. `differs` has the bits in which the
 * two chains before call `sequence` differ. In its low half only the bytes of the last `known`
 * calls are meaningful. */
static int name_first(const struct tutti_call_history *history, uint64_t sequence, uint64_t differs,
                      uint64_t known, int rank)
{
    char text[TUTTI_SIGNATURE_TEXT_BYTES];
    const struct tutti_header *call = NULL;
    uint64_t back = known;

    while (back > 0 && (differs >> 8 * (back - 1) & 255) == 0)
        back--;
    if (back > 0 && sequence > back)
        call = tutti_call_history_find(history, sequence - back);
    if (call == NULL)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "an earlier call, before number %" PRIu64 ", was not the same here and "
                          "on rank %d; all ranks must make the same calls in the same order",
                          sequence, rank);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "%s call was not the same here and on rank %d: number %" PRIu64
                      ", %s here, another there%s; all ranks must make the same calls in the same "
                      "order",
                      call->sequence < history->sequence ? "an earlier" : "this", rank,
                      call->sequence, tutti_signature_format(&call->signature, text),
                      back < known || call->sequence == 1 ? "" : ", or one before it");
}

int tutti_call_history_mismatch(const struct tutti_call_history *history,
                                const struct tutti_header *mine, int rank,
                                const struct tutti_header *theirs)
{
    char here[TUTTI_SIGNATURE_TEXT_BYTES], there[TUTTI_SIGNATURE_TEXT_BYTES];

    if (mine->chain != theirs->chain)
        return name_first(history, mine->sequence, mine->chain ^ theirs->chain, TUTTI_CHAIN_CALLS,
                          rank);
    return tutti_fail(TUTTI_ERR_USAGE,
                      "an earlier call was not the same here and on rank %d: number %" PRIu64
                      ", %s here, %s there; all ranks must make the same calls in the same order",
                      rank, mine->sequence, tutti_signature_format(&mine->signature, here),
                      tutti_signature_format(&theirs->signature, there));
}

int tutti_call_history_compare(const struct tutti_call_history *history, int rank,
                               uint64_t sequence, uint64_t chain)
{
    uint64_t ahead = sequence > history->sequence ? sequence - history->sequence : 0;
    const struct tutti_header *mine = tutti_call_history_find(history, sequence - ahead);
    uint64_t differs;

    if (mine == NULL || ahead >= TUTTI_CHAIN_CALLS)
        return TUTTI_OK;
    differs = tutti_chain_after(mine) ^ chain;
    /* If the peer is ahead, ignore the calls that this rank has not made yet. The peer's hash
     * includes these calls, so only the low halves can be compared. */
    if (ahead > 0)
        differs =
            (tutti_chain_after(mine) ^ (uint32_t)chain >> 8 * ahead) & UINT32_MAX >> 8 * ahead;
    if (differs == 0)
        return TUTTI_OK;
    return name_first(history, mine->sequence + 1, differs, TUTTI_CHAIN_CALLS - ahead, rank);
}
