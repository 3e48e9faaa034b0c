/* SPDX-License-Identifier: Apache-2.0
 * Forms a fabric. Records say where the ranks are, and verdicts say what worked. */
#include "transport/fabric_private.h"

#include <string.h>

#define VERDICT_MAGIC 0x56545554u

/* Fails if another thread has aborted this rank. */
static int check_own_abort(const struct tutti_fabric *fabric)
{
    /* acquire: pairs with the release in tutti_fabric_abort; abort_code and abort_reason are set */
    if (tutti_load_acquire(&fabric->is_aborted) == 0)
        return TUTTI_OK;
    return tutti_fail(fabric->abort_code, "this rank aborted: %s", fabric->abort_reason);
}

/* ---- joining ------------------------------------------------------------------------- */

/* Fails because a rank cannot take part. An error TUTTI_ERR_USAGE of that rank is the result here,
 * too, because all ranks may have the same wrong variable. Every other error concerns only that
 * rank, so the result is TUTTI_ERR_REMOTE. */
static int fail_declined(union tutti_record *record)
{
    char *why = record->why_declines;

    why[sizeof record->why_declines - 1] = '\0';
    tutti_message_clean(why, strlen(why));
    return tutti_fail(record->declines == TUTTI_ERR_USAGE ? TUTTI_ERR_USAGE : TUTTI_ERR_REMOTE,
                      "rank %d cannot take part: %s", record->rank, why);
}

static int fail_layout(const struct tutti_fabric *fabric, union tutti_record *record)
{
    record->layout[sizeof record->layout - 1] = '\0';
    tutti_message_clean(record->layout, strlen(record->layout));
    return tutti_fail(TUTTI_ERR_USAGE,
                      "rank %d runs a library with other transports: it has %s, rank %d has %s",
                      record->rank, record->layout, fabric->rank, fabric->mine.layout);
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
        return tutti_fail(TUTTI_ERR_USAGE, "rank %d says that it is rank %d of %d; expected rank "
                          "%d of %d", rank, record->rank, record->nranks, rank, fabric->nranks);
    tutti_identity_clean_name(record->host_name);
    if (record->declines != TUTTI_OK)
        return fail_declined(record);
    if (memcmp(record->layout, fabric->mine.layout, sizeof record->layout) != 0)
        return fail_layout(fabric, record);
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].ops->check != NULL)
            TUTTI_TRY(fabric->parts[i].ops->check(fabric, rank));
    return TUTTI_OK;
}

static int begin_joining(struct tutti_fabric *fabric, const void *records)
{
    memcpy(fabric->records, records, (size_t)fabric->nranks * sizeof *fabric->records);
    for (int rank = 0; rank < fabric->nranks; rank++)
        TUTTI_TRY(check_record(fabric, rank));
    fabric->verdict.magic = VERDICT_MAGIC;
    fabric->phase = TUTTI_FORM_JOINING;
    return TUTTI_OK;
}

static int join_part(struct tutti_fabric *fabric, struct tutti_part *part)
{
    if (part->has_joined || !part->is_open || part->ops->join == NULL)
        return TUTTI_OK;
    TUTTI_TRY(part->ops->join(fabric));
    part->has_joined = true;
    return TUTTI_OK;
}

int tutti_fabric_join(struct tutti_fabric *fabric, const void *records)
{
    bool is_pending = false;

    TUTTI_TRY(check_own_abort(fabric));
    if (fabric->phase == TUTTI_FORM_OPEN)
        TUTTI_TRY(begin_joining(fabric, records));
    for (uint32_t i = 0; i < fabric->nparts; i++) {
        int rc = join_part(fabric, &fabric->parts[i]);

        if (rc != TUTTI_OK && rc != TUTTI_AGAIN)
            return rc;
        is_pending |= rc == TUTTI_AGAIN;
    }
    return is_pending ? TUTTI_AGAIN : TUTTI_OK;
}

/* ---- settling ------------------------------------------------------------------------ */

static int take_verdicts(struct tutti_fabric *fabric, const void *verdicts)
{
    memcpy(fabric->verdicts, verdicts, (size_t)fabric->nranks * sizeof *fabric->verdicts);
    for (int rank = 0; rank < fabric->nranks; rank++)
        if (fabric->verdicts[rank].magic != VERDICT_MAGIC)
            return tutti_fail(TUTTI_ERR_USAGE, "the verdict of rank %d is malformed", rank);
    return TUTTI_OK;
}

static int start_parts(struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nparts; i++) {
        const struct tutti_part *part = &fabric->parts[i];

        if (part->is_open && part->ops->start != NULL)
            TUTTI_TRY(part->ops->start(fabric, part->is_used));
        if (part->is_used && part->ops->progress != NULL)
            fabric->progress[fabric->nprogress++] = part->ops->progress;
    }
    return TUTTI_OK;
}

/* The parts take in the verdicts of all ranks, then each peer gets a part that serves it, and then
 * the parts that serve a peer start. */
int tutti_fabric_settle(struct tutti_fabric *fabric, const void *verdicts)
{
    TUTTI_TRY(check_own_abort(fabric));
    TUTTI_TRY(take_verdicts(fabric, verdicts));
    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].ops->settle != NULL)
            TUTTI_TRY(fabric->parts[i].ops->settle(fabric));
    TUTTI_TRY(tutti_route_all(fabric));
    TUTTI_TRY(tutti_wait_open(fabric));
    TUTTI_TRY(start_parts(fabric));
    tutti_wait_init(fabric);
    fabric->phase = TUTTI_FORM_SETTLED;
    return TUTTI_OK;
}
