/* SPDX-License-Identifier: Apache-2.0
 * Forming a fabric: records tell who is where, verdicts what worked. */
#include "transport/fabric_private.h"

#include "base/log.h"
#include "transport/shm/pass.h"
#include "transport/tcp/seal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERDICT_MAGIC 0x56545554u

static int check_own_abort(const struct tutti_fabric *fabric)
{
    if (tutti_load_acquire(&fabric->is_aborted) == 0)
        return TUTTI_OK;
    return tutti_fail(fabric->abort_code, "this rank aborted: %s", fabric->abort_reason);
}

/* ---- joining ------------------------------------------------------------------------- */

/* A wrong variable may be so on all ranks; all else is that rank's. */
static int fail_declined(const union tutti_record *record)
{
    return tutti_fail(record->declines == TUTTI_ERR_USAGE ? TUTTI_ERR_USAGE : TUTTI_ERR_REMOTE,
                      "rank %d cannot take part: %s", record->rank, record->why_no_tcp);
}

static int check_record(struct tutti_fabric *fabric, int rank)
{
    union tutti_record *record = &fabric->records[rank];

    if (record->magic != fabric->mine.magic || record->version != fabric->mine.version)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "rank %d does not run this version of the library (record version %u, "
                          "ours %u)",
                          rank, record->version, fabric->mine.version);
    if (record->rank != rank || record->nranks != fabric->nranks)
        return tutti_fail(TUTTI_ERR_USAGE, "rank %d says that it is rank %d of %d, not of %d", rank,
                          record->rank, record->nranks, fabric->nranks);
    tutti_identity_clean_name(record->host_name);
    if ((record->uses & TUTTI_USE_TCP) == 0) {
        record->ncandidates = 0;
        record->why_no_tcp[sizeof record->why_no_tcp - 1] = '\0';
        tutti_message_clean(record->why_no_tcp, strlen(record->why_no_tcp));
    }
    if (record->declines != TUTTI_OK)
        return fail_declined(record);
    if (record->ncandidates > TUTTI_MAX_CANDIDATES || record->nsockets > 16 ||
        record->seal_mode >= TUTTI_SEAL_MODES)
        return tutti_fail(TUTTI_ERR_USAGE, "the record of rank %d is malformed", rank);
    /* Compared with what this rank has read itself: an attacker who changes records on their way
     * cannot turn the protection off. */
    if (record->seal_mode != fabric->mine.seal_mode)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "ranks disagree on TUTTI_ENCRYPT: rank %d has %s, rank %d has %s; set it "
                          "to one value on all ranks",
                          fabric->rank, tutti_seal_mode_name(fabric->mine.seal_mode), rank,
                          tutti_seal_mode_name(record->seal_mode));
    return TUTTI_OK;
}

static void find_members(struct tutti_fabric *fabric)
{
    if ((fabric->mine.uses & TUTTI_USE_SHM) == 0)
        return;
    for (int rank = 0; rank < fabric->nranks; rank++) {
        const union tutti_record *record = &fabric->records[rank];

        if ((record->uses & TUTTI_USE_SHM) == 0 ||
            memcmp(record->identity.host, fabric->mine.identity.host, TUTTI_IDENTITY_BYTES) != 0)
            continue;
        if (rank == fabric->rank)
            fabric->my_index = fabric->nmembers;
        fabric->members[fabric->nmembers++] = (uint32_t)rank;
    }
}

static void decline(struct tutti_fabric *fabric, const char *reason)
{
    fabric->verdict.has_segment = 0;
    tutti_message_copy(fabric->verdict.reason, sizeof fabric->verdict.reason, reason);
    if (fabric->nmembers > 1)
        tutti_log(fabric->my_index == 0 ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
                  "no shared memory on this host, so its ranks use TCP: %s", reason);
}

static int begin_passing(struct tutti_fabric *fabric)
{
    struct tutti_pass_args args = {.nmembers = fabric->nmembers, .me = fabric->my_index,
                                   .deadline_ns = tutti_pass_deadline(fabric->deadline_ns)};

    tutti_secret_derive(fabric->secret, "segment", fabric->records[fabric->members[0]].nonce,
                        args.secret);
    args.fd = -1;
    /* Failing here must not leave the others waiting: they are told by a refusal. */
    if (args.me == 0 && tutti_segment_create(args.nmembers, &args.fd) != TUTTI_OK)
        args.fd = -1;
    return tutti_pass_create(&args, &fabric->pass);
}

static void learn_access(struct tutti_fabric *fabric, struct tutti_segment *segment)
{
    fabric->verdict.can_read = 1;
    for (uint32_t i = 0; i < fabric->nmembers; i++) {
        const union tutti_record *theirs = &fabric->records[fabric->members[i]];
        bool may_read = (theirs->uses & fabric->mine.uses & TUTTI_USE_CMA) != 0;

        segment->pids[i] = theirs->identity.pid;
        errno = 0;
        segment->access[i] =
            tutti_segment_probe(&fabric->mine.identity, &theirs->identity, may_read);
        if (segment->access[i] != TUTTI_ACCESS_NONE)
            continue;
        fabric->verdict.can_read = 0;
        if (fabric->cma_denied_by < 0) {
            fabric->cma_error = errno;
            fabric->cma_denied_by = (int)fabric->members[i];
        }
    }
}

static int pass_and_map(struct tutti_fabric *fabric)
{
    struct tutti_segment *segment;
    int fd;

    TUTTI_TRY(tutti_pass_step(fabric->pass, &fd));
    TUTTI_TRY(tutti_segment_map(fd, fabric->my_index, fabric->nmembers, fabric->members,
                                &segment));
    learn_access(fabric, segment);
    fabric->verdict.has_segment = 1;
    pthread_mutex_lock(&fabric->lock);
    fabric->segment = segment;
    pthread_mutex_unlock(&fabric->lock);
    return TUTTI_OK;
}

int tutti_fabric_join(struct tutti_fabric *fabric, const void *records)
{
    int rc;

    TUTTI_TRY(check_own_abort(fabric));
    if (fabric->phase == TUTTI_FORM_OPEN) {
        memcpy(fabric->records, records, (size_t)fabric->nranks * sizeof *fabric->records);
        for (int rank = 0; rank < fabric->nranks; rank++)
            TUTTI_TRY(check_record(fabric, rank));
        find_members(fabric);
        tutti_tcp_withdraw(fabric);
        fabric->verdict.magic = VERDICT_MAGIC;
        fabric->phase = TUTTI_FORM_PASSING;
        if (fabric->nmembers < 2) {
            decline(fabric, "one rank on the host");
            fabric->phase = TUTTI_FORM_JOINED;
        } else if (begin_passing(fabric) != TUTTI_OK) {
            decline(fabric, tutti_last_message());
            fabric->phase = TUTTI_FORM_JOINED;
        }
    }
    if (fabric->phase == TUTTI_FORM_PASSING) {
        rc = pass_and_map(fabric);
        if (rc == TUTTI_AGAIN)
            return TUTTI_AGAIN;
        if (rc != TUTTI_OK)
            decline(fabric, tutti_last_message());
        tutti_pass_destroy(fabric->pass);
        fabric->pass = NULL;
        fabric->phase = TUTTI_FORM_JOINED;
    }
    return TUTTI_OK;
}

/* ---- settling ------------------------------------------------------------------------ */

/* A host's segment is used by all its members or by none. A rank that takes no part in shared
 * memory has none, whatever its verdict says. */
static void take_back_partial_segments(struct tutti_fabric *fabric)
{
    for (int loser = 0; loser < fabric->nranks; loser++) {
        if ((fabric->records[loser].uses & TUTTI_USE_SHM) == 0) {
            fabric->verdicts[loser].has_segment = 0;
            continue;
        }
        if (fabric->verdicts[loser].has_segment)
            continue;
        for (int rank = 0; rank < fabric->nranks; rank++)
            if (memcmp(fabric->records[rank].identity.host, fabric->records[loser].identity.host,
                       TUTTI_IDENTITY_BYTES) == 0)
                fabric->verdicts[rank].has_segment = 0;
    }
}

static void sum_up(struct tutti_fabric *fabric)
{
    fabric->is_one_domain = fabric->nranks > 1;
    fabric->all_read = fabric->all_store = true;
    for (int rank = 0; rank < fabric->nranks; rank++) {
        if (!fabric->verdicts[rank].has_segment ||
            memcmp(fabric->records[rank].identity.host, fabric->records[0].identity.host,
                   TUTTI_IDENTITY_BYTES) != 0)
            fabric->is_one_domain = false;
        if (!fabric->verdicts[rank].can_read)
            fabric->all_read = false;
        if (!tutti_identity_same_process(&fabric->records[rank].identity,
                                         &fabric->records[0].identity))
            fabric->all_store = false;
    }
    fabric->all_read = fabric->all_read && fabric->is_one_domain;
    fabric->all_store = fabric->all_store && fabric->is_one_domain;
}

static void take_domain(struct tutti_fabric *fabric)
{
    struct tutti_segment *surplus = NULL;

    fabric->has_domain = fabric->segment != NULL && fabric->verdicts[fabric->rank].has_segment;
    pthread_mutex_lock(&fabric->lock);
    for (uint32_t index = 0; fabric->has_domain && index < fabric->nmembers; index++)
        if (index != fabric->my_index && fabric->segment->access[index] != TUTTI_ACCESS_NONE)
            fabric->shares_memory = true;
    if (fabric->has_domain) {
        fabric->door = &fabric->segment->domain.doors[fabric->my_index];
    } else {
        surplus = fabric->segment;
        fabric->segment = NULL;
    }
    pthread_mutex_unlock(&fabric->lock);
    tutti_segment_destroy(surplus);
}

/* Who can read my memory can also map what I lend. */
static int open_shelves(struct tutti_fabric *fabric)
{
    bool has_reader = false;

    for (uint32_t index = 0; fabric->has_domain && index < fabric->nmembers; index++)
        has_reader |= index != fabric->my_index &&
                      fabric->segment->access[index] == TUTTI_ACCESS_READ;
    return has_reader ? tutti_lend_create(&fabric->segment->domain, &fabric->lend) : TUTTI_OK;
}

int tutti_fabric_settle(struct tutti_fabric *fabric, const void *verdicts)
{
    bool needs_tcp = false;

    TUTTI_TRY(check_own_abort(fabric));
    memcpy(fabric->verdicts, verdicts, (size_t)fabric->nranks * sizeof *fabric->verdicts);
    for (int rank = 0; rank < fabric->nranks; rank++) {
        if (fabric->verdicts[rank].magic != VERDICT_MAGIC)
            return tutti_fail(TUTTI_ERR_USAGE, "the verdict of rank %d is malformed", rank);
        fabric->verdicts[rank].reason[sizeof fabric->verdicts[rank].reason - 1] = '\0';
    }
    take_back_partial_segments(fabric);
    take_domain(fabric);
    TUTTI_TRY(open_shelves(fabric));
    sum_up(fabric);
    TUTTI_TRY(tutti_route_all(fabric));

    for (int peer = 0; peer < fabric->nranks; peer++)
        needs_tcp = needs_tcp || fabric->routes[peer] == &tutti_tcp_ops;
    TUTTI_TRY(tutti_tcp_settle(fabric, needs_tcp));
    tutti_wait_init(fabric);
    fabric->phase = TUTTI_FORM_SETTLED;
    return TUTTI_OK;
}

struct tutti_domain *tutti_fabric_domain(struct tutti_fabric *fabric)
{
    return fabric->has_domain ? &fabric->segment->domain : NULL;
}

bool tutti_fabric_is_one_domain(const struct tutti_fabric *fabric)
{
    return fabric->is_one_domain;
}

struct tutti_lend *tutti_fabric_lend(struct tutti_fabric *fabric)
{
    return fabric->lend;
}

bool tutti_fabric_all_store(const struct tutti_fabric *fabric)
{
    return fabric->all_store;
}

bool tutti_fabric_all_read(const struct tutti_fabric *fabric)
{
    return fabric->all_read;
}
