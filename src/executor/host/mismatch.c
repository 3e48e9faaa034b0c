/* SPDX-License-Identifier: Apache-2.0
 * Finds the first call that differs between ranks that make different calls, and sets the error
 * message that names it. */
#include "base/result.h"
#include "executor/host/host.h"

#include <string.h>

/* The number of checks before a waiting rank tells the next rank of its calls. The checks take some
 * tenths of a second. Few waits last as long, and telling the next rank requires a connection. */
enum { CHECKS_BEFORE_TELLING = 40 };

/* Finds the first call that differs, among those that both ranks still store. `rank` is a rank of
 * the domain. Returns false if no call differs. */
static bool find_difference(const struct tutti_engine *engine, uint32_t rank,
                            struct tutti_header *ret_mine, struct tutti_header *ret_theirs)
{
    uint64_t last = engine->history.sequence, words[TUTTI_ACTIVITY_WORDS];
    uint64_t first = last > TUTTI_HISTORY_CALLS ? last - TUTTI_HISTORY_CALLS + 1 : 1;

    _Static_assert((int)TUTTI_HISTORY_CALLS == (int)TUTTI_ACTIVITIES,
                   "the history and the domain store equally many calls");
    for (uint64_t number = first; number <= last; number++) {
        const struct tutti_header *mine = tutti_call_history_find(&engine->history, number);
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

/* Sets the message for two ranks that make the same call but pass different counts. The domain, if
 * there is one, has the counts, unless later calls have overwritten them. */
static int report_counts(const struct tutti_engine *engine, const struct tutti_header *mine,
                         int rank)
{
    uint64_t here = 0, there = 0;
    int entry = -1;

    if (engine->domain != NULL)
        entry =
            tutti_domain_compare_counts(engine->domain, (uint32_t)rank, TUTTI_DOMAIN_COUNTS_OF_HOST,
                                        mine->sequence, &here, &there);
    return tutti_counts_mismatch(mine, rank, entry, here, there);
}

/* Sets the message that fits the difference between two headers. */
static int report(const struct tutti_engine *engine, const struct tutti_header *mine, int rank,
                  const struct tutti_header *theirs)
{
    if (mine->sequence == theirs->sequence && mine->chain == theirs->chain &&
        tutti_signature_has_hash(&mine->signature) &&
        tutti_signature_alike(&mine->signature, &theirs->signature))
        return report_counts(engine, mine, rank);
    if (theirs->signature.magic == TUTTI_SIGNATURE_MAGIC &&
        tutti_call_history_has_diverged(&engine->history, mine, theirs))
        return tutti_call_history_mismatch(&engine->history, mine, rank, theirs);
    return tutti_signature_mismatch(mine, rank, theirs);
}

int tutti_run_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                       int rank, const struct tutti_header *theirs)
{
    struct tutti_header here = *mine, there = *theirs;
    const struct tutti_header *same_number;

    if (engine->domain != NULL && find_difference(engine, (uint32_t)rank, &here, &there))
        return report(engine, &here, rank, &there);
    /* The header may be left over from an earlier call, in which this rank received nothing from
     * that peer. */
    same_number = tutti_call_history_find(&engine->history, theirs->sequence);
    if (same_number != NULL && !tutti_header_equal(same_number, theirs))
        here = *same_number;
    return report(engine, &here, rank, &there);
}

int tutti_run_post_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                            int rank, const struct tutti_post *theirs)
{
    struct tutti_header here = *mine, there = {.chain = theirs->chain};

    memcpy(&there.signature, theirs->signature, sizeof there.signature);
    here.sequence = there.sequence = tutti_call_history_number(&engine->history, &here);
    return tutti_run_mismatch(engine, &here, rank, &there);
}

/* For counts by pair: compares this rank's counts for `rank` with that rank's header. The peer has
 * `sent` elements and expects `expected`. */
static int check_pair(const struct tutti_engine *engine, int rank, uint64_t sent, uint64_t expected)
{
    const struct tutti_run *run = &engine->run;
    uint64_t sends = tutti_call_gives(run->call, engine->rank, rank);
    uint64_t expects = tutti_call_takes(run->call, engine->rank, rank);

    if (sent != expects)
        return tutti_pair_mismatch(&run->header->signature, run->header->sequence, rank, sent,
                                   engine->rank, expects);
    if (expected != sends)
        return tutti_pair_mismatch(&run->header->signature, run->header->sequence, engine->rank,
                                   sends, rank, expected);
    return TUTTI_OK;
}

int tutti_run_check_counts(const struct tutti_engine *engine, int rank, const uint64_t *words,
                           size_t bytes)
{
    const struct tutti_run *run = &engine->run;
    bool has_pairs = tutti_call_has_pairs(run->call);
    const uint64_t *there = words + TUTTI_HEADER_WORDS;
    struct tutti_header theirs;
    const size_t *here;
    uint32_t entry = 0;
    uint64_t count;

    memcpy(&theirs, words, sizeof theirs);
    count = theirs.signature.count;
    if (has_pairs && theirs.signature.call == run->header->signature.call)
        theirs.signature.count = 0;
    if (tutti_header_equal(&theirs, run->header)) {
        if (!has_pairs || bytes < run->header_bytes)
            return TUTTI_OK;
        return check_pair(engine, rank, count, there[0]);
    }
    if (theirs.sequence != run->header->sequence || theirs.chain != run->header->chain ||
        !tutti_signature_alike(&theirs.signature, &run->header->signature))
        return tutti_run_mismatch(engine, run->header, rank, &theirs);
    if (bytes < run->header_bytes)
        return TUTTI_OK;
    here = tutti_call_shared_counts(run->call);
    while (entry + 1 < run->ncounts && here[entry] == there[entry])
        entry++;
    return tutti_counts_mismatch(run->header, rank, (int)entry, here[entry], there[entry]);
}

/* Without a domain a rank cannot look at its peers' calls. Instead, each waiting rank tells the
 * next rank of its calls after some checks. It compares the calls that the previous rank tells. */
static int check_neighbor(struct tutti_engine *engine)
{
    const struct tutti_header *mine = engine->run.header;
    uint64_t words[TUTTI_STATE_WORDS] = {mine->sequence, engine->history.chain};

    if (++engine->nchecks >= CHECKS_BEFORE_TELLING && engine->told_sequence != mine->sequence &&
        tutti_fabric_send_state(engine->fabric, words))
        engine->told_sequence = mine->sequence;
    if (!tutti_fabric_recv_state(engine->fabric, words))
        return TUTTI_OK;
    return tutti_call_history_compare(&engine->history, engine->rank - 1, words[0], words[1]);
}

int tutti_run_check_peers(struct tutti_engine *engine)
{
    struct tutti_header mine, theirs;

    if (!engine->run.is_active)
        return TUTTI_OK;
    if (engine->domain == NULL)
        return check_neighbor(engine);
    for (uint32_t rank = 0; rank < engine->domain->nmembers; rank++)
        if (find_difference(engine, rank, &mine, &theirs))
            return report(engine, &mine, (int)rank, &theirs);
    return TUTTI_OK;
}
