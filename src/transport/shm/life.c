/* SPDX-License-Identifier: Apache-2.0
 * Gives the ranks of a host their segment. The first rank makes it and passes it to the others. All
 * of them map it, and try which members' memory they can read. Either all ranks of the host use the
 * segment, or none does. */
#include "transport/shm/shm.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------------- */

static int shm_open_part(struct tutti_fabric *fabric)
{
    struct tutti_shm *shm = calloc(1, sizeof *shm);

    if (shm != NULL)
        shm->members = calloc((size_t)fabric->nranks, sizeof *shm->members);
    if (shm == NULL || shm->members == NULL) {
        free(shm);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the state of shared memory of %d ranks",
                          fabric->nranks);
    }
    shm->cma_denied_by = -1;
    tutti_part_set_state(fabric, &tutti_shm_ops, shm);
    return TUTTI_OK;
}

/* ---- joining ------------------------------------------------------------------------- */

static void find_members(struct tutti_fabric *fabric, struct tutti_shm *shm)
{
    for (int rank = 0; rank < fabric->nranks; rank++) {
        const union tutti_record *record = &fabric->records[rank];

        if (!tutti_part_is_used_by(fabric, &tutti_shm_ops, rank) ||
            memcmp(record->identity.host, fabric->mine.identity.host, TUTTI_IDENTITY_BYTES) != 0)
            continue;
        if (rank == fabric->rank)
            shm->my_index = shm->nmembers;
        shm->members[shm->nmembers++] = (uint32_t)rank;
    }
}

uint32_t tutti_shm_index(const struct tutti_shm *shm, int rank)
{
    uint32_t low = 0, high = shm->nmembers;

    while (low + 1 < high) {
        uint32_t middle = (low + high) / 2;

        if (shm->members[middle] <= (uint32_t)rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Publishes that this rank has no segment. */
static void decline(struct tutti_fabric *fabric, const struct tutti_shm *shm, const char *reason)
{
    struct tutti_shm_verdict *verdict = tutti_verdict_own_slice(fabric, &tutti_shm_ops);

    verdict->has_segment = 0;
    tutti_message_copy(verdict->reason, sizeof verdict->reason, reason);
    if (shm->nmembers > 1)
        tutti_log(shm->my_index == 0 ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
                  "no shared memory on this host, so its ranks use TCP: %s", reason);
}

/* Derives the secret for the names and keys of everything that the members of a segment share. */
static void derive_secret(const struct tutti_fabric *fabric, const struct tutti_shm *shm,
                          uint8_t ret_secret[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(fabric->secret, "segment", fabric->records[shm->members[0]].nonce,
                        ret_secret);
}

static int begin_passing(struct tutti_fabric *fabric, struct tutti_shm *shm)
{
    struct tutti_pass_args args = {.nmembers = shm->nmembers,
                                   .me = shm->my_index,
                                   .deadline_ns = tutti_pass_deadline(fabric->deadline_ns)};

    derive_secret(fabric, shm, args.secret);
    args.fd = -1;
    /* If the segment cannot be made, descriptor -1 makes tutti_pass_step refuse the other members,
     * so that they do not wait in vain. */
    if (args.me == 0 && tutti_shm_segment_create(args.nmembers, &args.fd) != TUTTI_OK)
        args.fd = -1;
    return tutti_pass_create(&args, &shm->pass);
}

/* Tests which members' memory this rank can read, and publishes whether it can read all. */
static void learn_access(struct tutti_fabric *fabric, struct tutti_shm *shm,
                         struct tutti_shm_segment *segment)
{
    struct tutti_shm_verdict *verdict = tutti_verdict_own_slice(fabric, &tutti_shm_ops);

    verdict->can_read = 1;
    for (uint32_t i = 0; i < shm->nmembers; i++) {
        const union tutti_record *theirs = &fabric->records[shm->members[i]];
        bool may_read = tutti_part_is_used(fabric, &tutti_cma_ops) &&
                        tutti_part_is_used_by(fabric, &tutti_cma_ops, (int)shm->members[i]);

        segment->pids[i] = theirs->identity.pid;
        errno = 0;
        segment->access[i] =
            tutti_shm_segment_probe(&fabric->mine.identity, &theirs->identity, may_read);
        if (segment->access[i] != TUTTI_DOMAIN_ACCESS_NONE)
            continue;
        verdict->can_read = 0;
        if (shm->cma_denied_by < 0) {
            shm->cma_error = errno;
            shm->cma_denied_by = (int)shm->members[i];
        }
    }
}

static int pass_and_map(struct tutti_fabric *fabric, struct tutti_shm *shm)
{
    struct tutti_shm_verdict *verdict = tutti_verdict_own_slice(fabric, &tutti_shm_ops);
    struct tutti_shm_segment *segment;
    int fd;

    TUTTI_TRY(tutti_pass_step(shm->pass, &fd));
    TUTTI_TRY(tutti_shm_segment_map(fd, shm->my_index, shm->nmembers, shm->members, &segment));
    learn_access(fabric, shm, segment);
    verdict->has_segment = 1;
    pthread_mutex_lock(&fabric->lock);
    shm->segment = segment;
    pthread_mutex_unlock(&fabric->lock);
    return TUTTI_OK;
}

static int shm_join(struct tutti_fabric *fabric)
{
    struct tutti_shm *shm = tutti_shm_of(fabric);
    int rc;

    if (shm->nmembers == 0) {
        find_members(fabric, shm);
        if (shm->nmembers < 2) {
            decline(fabric, shm, "one rank on the host");
            return TUTTI_OK;
        }
        if (begin_passing(fabric, shm) != TUTTI_OK) {
            decline(fabric, shm, tutti_message_last());
            return TUTTI_OK;
        }
    }
    rc = pass_and_map(fabric, shm);
    if (rc == TUTTI_AGAIN)
        return TUTTI_AGAIN;
    if (rc != TUTTI_OK)
        decline(fabric, shm, tutti_message_last());
    tutti_pass_destroy(shm->pass);
    shm->pass = NULL;
    return TUTTI_OK;
}

/* ---- settling ------------------------------------------------------------------------ */

/* If one rank of a host has no segment, no rank of the host uses it. A rank that does not use "shm"
 * has no segment, whatever its verdict says. */
static void withdraw_partial_segments(struct tutti_fabric *fabric)
{
    for (int rank = 0; rank < fabric->nranks; rank++) {
        struct tutti_shm_verdict *verdict = tutti_shm_verdict(fabric, rank);

        verdict->reason[sizeof verdict->reason - 1] = '\0';
        if (!tutti_part_is_used_by(fabric, &tutti_shm_ops, rank)) {
            verdict->has_segment = 0;
            continue;
        }
        if (verdict->has_segment)
            continue;
        for (int other = 0; other < fabric->nranks; other++)
            if (tutti_fabric_same_host(fabric, other, rank))
                tutti_shm_verdict(fabric, other)->has_segment = 0;
    }
}

static bool shm_reach(const struct tutti_fabric *fabric, int a, int b)
{
    /* settle has taken has_segment from all ranks of a host in which one lacks it */
    return a != b && tutti_fabric_same_host(fabric, a, b) &&
           tutti_shm_verdict(fabric, a)->has_segment && tutti_shm_verdict(fabric, b)->has_segment;
}

static bool cma_reach(const struct tutti_fabric *fabric, int a, int b)
{
    if (!shm_reach(fabric, a, b))
        return false;
    return tutti_identity_same_process(&fabric->records[a].identity,
                                       &fabric->records[b].identity) ||
           (tutti_shm_verdict(fabric, a)->can_read && tutti_shm_verdict(fabric, b)->can_read);
}

/* True if every rank that is not alone on its host shares memory with the rank before it there. A
 * rank that is alone on its host has no segment, and needs none. */
static bool share_hosts(const struct tutti_fabric *fabric)
{
    for (int rank = 1; rank < fabric->nranks; rank++)
        for (int other = rank - 1; other >= 0; other--)
            if (tutti_fabric_same_host(fabric, other, rank)) {
                if (!shm_reach(fabric, other, rank))
                    return false;
                break;
            }
    return true;
}

/* Evaluates the verdicts of all ranks. The result is the same on all ranks. */
static void summarize(const struct tutti_fabric *fabric, struct tutti_sharing *ret_sharing)
{
    struct tutti_sharing sharing = {.is_one_domain = fabric->nranks > 1,
                                    .all_read = true,
                                    .all_store = true,
                                    .shares_hosts = share_hosts(fabric)};

    for (int rank = 0; rank < fabric->nranks; rank++) {
        const struct tutti_shm_verdict *verdict = tutti_shm_verdict(fabric, rank);

        if (!verdict->has_segment || !tutti_fabric_same_host(fabric, rank, 0))
            sharing.is_one_domain = false;
        if (!verdict->can_read)
            sharing.all_read = false;
        if (!tutti_identity_same_process(&fabric->records[rank].identity,
                                         &fabric->records[0].identity))
            sharing.all_store = false;
    }
    sharing.all_read = sharing.all_read && sharing.is_one_domain;
    sharing.all_store = sharing.all_store && sharing.is_one_domain;
    *ret_sharing = sharing;
}

/* Fills in the members of *sharing that concern this host. If another process can read this rank's
 * memory, it can also map memory that this rank lends, so lending begins. */
static int share_memory(struct tutti_shm *shm, struct tutti_sharing *sharing)
{
    bool has_reader = false;

    for (uint32_t index = 0; index < shm->nmembers; index++) {
        enum tutti_domain_access access = shm->segment->access[index];

        if (index == shm->my_index)
            continue;
        sharing->shares_memory |= access != TUTTI_DOMAIN_ACCESS_NONE;
        has_reader |= access == TUTTI_DOMAIN_ACCESS_READ;
    }
    if (has_reader)
        TUTTI_TRY(tutti_lend_create(&shm->segment->domain, &shm->lend));
    sharing->lend = shm->lend;
    sharing->domain = &shm->segment->domain;
    return TUTTI_OK;
}

/* Releases a segment that this rank has mapped but that not all ranks of the host can use. */
static void give_up_segment(struct tutti_fabric *fabric, struct tutti_shm *shm)
{
    struct tutti_shm_segment *surplus = shm->segment;

    pthread_mutex_lock(&fabric->lock);
    shm->segment = NULL;
    pthread_mutex_unlock(&fabric->lock);
    tutti_shm_segment_destroy(surplus);
}

static int shm_settle(struct tutti_fabric *fabric)
{
    struct tutti_shm *shm = tutti_shm_of(fabric);
    struct tutti_sharing sharing;

    withdraw_partial_segments(fabric);
    summarize(fabric, &sharing);
    if (shm != NULL) {
        shm->has_domain =
            shm->segment != NULL && tutti_shm_verdict(fabric, fabric->rank)->has_segment;
        if (shm->has_domain)
            TUTTI_TRY(share_memory(shm, &sharing));
        else
            give_up_segment(fabric, shm);
    }
    tutti_fabric_share(fabric, &sharing);
    return TUTTI_OK;
}

static void shm_explain(const struct tutti_fabric *fabric, int a, int b, char *ret_text,
                        size_t size)
{
    const int ranks[] = {a, b};
    const char *reason = "another rank of the host could not";

    if (!tutti_fabric_same_host(fabric, a, b)) {
        snprintf(ret_text, size, "not on one host");
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (!tutti_part_is_used_by(fabric, &tutti_shm_ops, ranks[i]))
            return;
    for (size_t i = 2; i-- > 0;)
        if (tutti_shm_verdict(fabric, ranks[i])->reason[0] != '\0')
            reason = tutti_shm_verdict(fabric, ranks[i])->reason;
    snprintf(ret_text, size, "%s", reason);
}

static void cma_explain(const struct tutti_fabric *fabric, int a, int b, char *ret_text,
                        size_t size)
{
    (void)fabric, (void)a, (void)b;
    snprintf(ret_text, size, "needs shm");
}

/* ---- a member that sleeps on descriptors ---------------------------------------------- */

static int shm_start(struct tutti_fabric *fabric, bool is_used)
{
    struct tutti_shm *shm = tutti_shm_of(fabric);
    uint8_t secret[TUTTI_SECRET_BYTES];
    int rc;

    (void)is_used; /* the domain is used even if the transport serves no connection */
    if (!shm->has_domain || !tutti_wait_has_descriptors(fabric))
        return TUTTI_OK;
    derive_secret(fabric, shm, secret);
    pthread_mutex_lock(&fabric->lock);
    rc = tutti_bell_open(&shm->segment->bell, secret, shm->my_index);
    pthread_mutex_unlock(&fabric->lock);
    if (rc == TUTTI_OK)
        return tutti_wait_watch(fabric, shm->segment->bell.fd);
    tutti_wait_nap(fabric); /* without a bell, no descriptor reports the rings of members */
    return TUTTI_OK;
}

static void shm_woken(struct tutti_fabric *fabric)
{
    const struct tutti_shm *shm = tutti_shm_of(fabric);

    if (shm->has_domain)
        tutti_bell_quiet(&shm->segment->bell);
}

/* ---- end ----------------------------------------------------------------------------- */

static void shm_destroy(struct tutti_fabric *fabric)
{
    struct tutti_shm *shm = tutti_shm_of(fabric);

    tutti_part_set_state(fabric, &tutti_shm_ops, NULL);
    tutti_pass_destroy(shm->pass);
    tutti_lend_destroy(shm->lend);
    tutti_shm_segment_destroy(shm->segment);
    free(shm->members);
    free(shm);
}

const struct tutti_transport_ops tutti_shm_ops = {
    .name = "shm",
    .verdict_bytes = sizeof(struct tutti_shm_verdict),
    .open = shm_open_part,
    .join = shm_join,
    .settle = shm_settle,
    .reach = shm_reach,
    .explain = shm_explain,
    .start = shm_start,
    .connect = tutti_shm_connect,
    .woken = shm_woken,
    .find_dead = tutti_shm_find_dead,
    .abort = tutti_shm_abort,
    .leave = tutti_shm_leave,
    .has_left = tutti_shm_has_left,
    .destroy = shm_destroy,
    .usage = tutti_shm_usage,
    .report = tutti_shm_report,
};

const struct tutti_transport_ops tutti_cma_ops = {
    .name = "cma",
    .reach = cma_reach,
    .explain = cma_explain,
    .connect = tutti_cma_connect,
};
