/* SPDX-License-Identifier: Apache-2.0
 * Ranks that call different things: where they parted. */
#include "base/result.h"
#include "executor/host.h"

#include <string.h>

/* Some tenths of a second: few waits are as long, and telling costs a connection. */
enum { LOOKS_BEFORE_TELLING = 40 };

/* The first call that I and a rank of the domain remember differently, of those that both do. */
static bool find_parting(const struct tutti_engine *engine, uint32_t rank,
                         struct tutti_header *ret_mine, struct tutti_header *ret_theirs)
{
    uint64_t last = engine->history.sequence, words[TUTTI_ACTIVITY_WORDS];
    uint64_t first = last > TUTTI_HISTORY_CALLS ? last - TUTTI_HISTORY_CALLS + 1 : 1;

    _Static_assert((int)TUTTI_HISTORY_CALLS == (int)TUTTI_ACTIVITIES, "both remember as many");
    for (uint64_t number = first; number <= last; number++) {
        const struct tutti_header *mine = tutti_history_find(&engine->history, number);
        struct tutti_header theirs;

        if (!tutti_domain_activity(engine->domain, rank, number, words))
            continue;
        memcpy(&theirs, words, sizeof theirs);
        if (tutti_header_equal(mine, &theirs))
            continue;
        *ret_mine = *mine;
        *ret_theirs = theirs;
        return true;
    }
    return false;
}

static int report(const struct tutti_engine *engine, const struct tutti_header *mine, int rank,
                  const struct tutti_header *theirs)
{
    if (theirs->signature.magic == TUTTI_SIGNATURE_MAGIC &&
        tutti_history_parts(&engine->history, mine, theirs))
        return tutti_history_mismatch(&engine->history, mine, rank, theirs);
    return tutti_signature_mismatch(mine, rank, theirs);
}

int tutti_run_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                       int rank, const struct tutti_header *theirs)
{
    struct tutti_header here = *mine, there = *theirs;
    const struct tutti_header *same_number;

    if (engine->domain != NULL && find_parting(engine, (uint32_t)rank, &here, &there))
        return report(engine, &here, rank, &there);
    /* Left over from an earlier call, of which I asked nothing of that rank? */
    same_number = tutti_history_find(&engine->history, theirs->sequence);
    if (same_number != NULL && !tutti_header_equal(same_number, theirs))
        here = *same_number;
    return report(engine, &here, rank, &there);
}

int tutti_run_bad_post(const struct tutti_engine *engine, const struct tutti_post *mine,
                       int rank, const struct tutti_post *theirs)
{
    struct tutti_header here = {.chain = mine->chain}, there = {.chain = theirs->chain};

    memcpy(&here.signature, mine->signature, sizeof here.signature);
    memcpy(&there.signature, theirs->signature, sizeof there.signature);
    here.sequence = there.sequence = tutti_history_number(&engine->history, &here);
    return tutti_run_mismatch(engine, &here, rank, &there);
}

/* Who waits without a domain: has the rank before me told of other calls than mine? After some
 * looks I tell the next one of mine. */
static int check_neighbour(struct tutti_engine *engine)
{
    const struct tutti_header *mine = engine->run.header;
    uint64_t words[TUTTI_TOLD_WORDS] = {mine->sequence, engine->history.chain};

    if (++engine->looks >= LOOKS_BEFORE_TELLING && engine->told != mine->sequence &&
        tutti_fabric_tell(engine->fabric, words))
        engine->told = mine->sequence;
    if (!tutti_fabric_told(engine->fabric, words))
        return TUTTI_OK;
    return tutti_history_compare(&engine->history, engine->rank - 1, words[0], words[1]);
}

int tutti_run_check_peers(struct tutti_engine *engine)
{
    struct tutti_header mine, theirs;

    if (!engine->run.is_active)
        return TUTTI_OK;
    if (engine->domain == NULL)
        return check_neighbour(engine);
    for (uint32_t rank = 0; rank < engine->domain->nmembers; rank++)
        if (find_parting(engine, rank, &mine, &theirs))
            return report(engine, &mine, (int)rank, &theirs);
    return TUTTI_OK;
}
