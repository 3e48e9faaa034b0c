/* SPDX-License-Identifier: Apache-2.0
 * Emits the steps that move chunks from their places to their destinations, and that sum up several
 * parts.
 *
 * The parts of a sum are added in the order of the lowest ranks whose input is in them. So all
 * ranks that add the same parts get the same bits.
 */
#include "import/emit.h"

#include "base/result.h"

#include <stdlib.h>

/* ---- steps on places ------------------------------------------------------------------------- */

/* Emits a send, and records that it should move to the position of from->event (order.h). */
static int send_run(struct tutti_import_emitter *emitter, uint32_t at, uint32_t count,
                    const struct tutti_import_part *from, uint32_t to)
{
    struct tutti_build *build = &emitter->builds[from->rank];
    struct tutti_import_order *order = &emitter->orders[from->rank];

    TUTTI_TRY(
        tutti_import_order_note(order, build->schedule->nsteps, emitter->event, emitter->event));
    TUTTI_TRY(tutti_build_send(build, to, tutti_import_span(from->places[at], count)));
    return tutti_import_order_note(order, build->schedule->nsteps, from->event, emitter->event);
}

static void swap_parts(const struct tutti_import_part **a, const struct tutti_import_part **b)
{
    const struct tutti_import_part *swapped = *a;

    *a = *b;
    *b = swapped;
}

static bool is_same(struct tutti_import_place a, struct tutti_import_place b)
{
    return a.buffer == b.buffer && a.chunk == b.chunk;
}

/* True if place i continues place i - 1. */
static bool follows(const struct tutti_import_place *places, uint32_t i)
{
    return places[i].buffer == places[i - 1].buffer && places[i].chunk == places[i - 1].chunk + 1;
}

/* Emits `dst` = the sum of `a` and `b`, or `dst` = `a` if b is NULL. This concerns `count` chunks
 * from chunk `at` on, which are contiguous in each part. If b is not NULL, at most one of `a` and
 * `b` belongs to another rank than `dst`. */
static int add_run(struct tutti_import_emitter *emitter, uint32_t at, uint32_t count,
                   const struct tutti_import_part *a, const struct tutti_import_part *b,
                   const struct tutti_import_part *dst)
{
    struct tutti_build *build = &emitter->builds[dst->rank];
    struct tutti_span to = tutti_import_span(dst->places[at], count);

    if (b != NULL && a->rank != dst->rank)
        swap_parts(&a, &b);
    if (a->rank != dst->rank) {
        TUTTI_TRY(send_run(emitter, at, count, a, dst->rank));
        return tutti_build_recv(build, a->rank, to);
    }
    if (b != NULL && b->rank != dst->rank) {
        TUTTI_TRY(send_run(emitter, at, count, b, dst->rank));
        return tutti_build_recv_reduce(build, b->rank, tutti_import_span(a->places[at], count), to);
    }
    /* Both parts are in this rank's memory. If `b` is already at the destination, add `a` to it. */
    if (b != NULL &&
        (is_same(b->places[at], dst->places[at]) ||
         tutti_import_is_overlay(&emitter->places, dst->rank, b->places[at], dst->places[at])))
        swap_parts(&a, &b);
    if (!is_same(a->places[at], dst->places[at]))
        TUTTI_TRY(tutti_build_copy(build, tutti_import_span(a->places[at], count), to));
    return b == NULL ? TUTTI_OK
                     : tutti_build_reduce(build, tutti_import_span(b->places[at], count), to);
}

int tutti_import_add(struct tutti_import_emitter *emitter, uint32_t count,
                     const struct tutti_import_part *a, const struct tutti_import_part *b,
                     const struct tutti_import_part *dst)
{
    for (uint32_t at = 0, end; at < count; at = end) {
        for (end = at + 1; end < count; end++)
            if (!follows(a->places, end) || (b != NULL && !follows(b->places, end)) ||
                !follows(dst->places, end))
                break;
        TUTTI_TRY(add_run(emitter, at, end - at, a, b, dst));
    }
    return TUTTI_OK;
}

/* ---- sums -------------------------------------------------------------------------------- */

struct tutti_import_part *tutti_import_new_part(struct tutti_import_emitter *emitter, uint32_t rank,
                                                uint32_t count)
{
    struct tutti_import_part *part = &emitter->parts[emitter->nparts++];

    *part = (struct tutti_import_part){
        .rank = rank, .places = emitter->pool + emitter->npool, .event = emitter->event};
    emitter->npool += count;
    return part;
}

static int compare_parts(const void *a, const void *b)
{
    const struct tutti_import_part *one = a, *other = b;

    return (one->lowest > other->lowest) - (one->lowest < other->lowest);
}

/* True if any chunk of a part is at the destination of the sum. */
static bool is_at_home(const struct tutti_import_emitter *emitter,
                       const struct tutti_import_part *part, const struct tutti_import_part *dst,
                       uint32_t count)
{
    if (part->rank != dst->rank)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (is_same(part->places[i], dst->places[i]) ||
            tutti_import_is_overlay(&emitter->places, dst->rank, part->places[i], dst->places[i]))
            return true;
    return false;
}

/* Makes a temporary part in SCRATCH. A sum needs this while its destination still holds a part that
 * has not been added. */
static int make_aside(struct tutti_import_emitter *emitter, const struct tutti_import_part *dst,
                      const uint32_t *classes, uint32_t count, struct tutti_import_part **ret_part)
{
    *ret_part = tutti_import_new_part(emitter, dst->rank, count);
    for (uint32_t i = 0; i < count; i++)
        TUTTI_TRY(
            tutti_import_scratch(&emitter->places, dst->rank, classes[i], &(*ret_part)->places[i]));
    return TUTTI_OK;
}

int tutti_import_sum(struct tutti_import_emitter *emitter, uint32_t count,
                     struct tutti_import_part *parts, uint32_t nparts,
                     const struct tutti_import_part *dst, const uint32_t *classes)
{
    const struct tutti_import_part *sum = &parts[0];
    struct tutti_import_part *aside = NULL;
    uint32_t home = 0; /* index of the last part that is at the destination; 0 also if none is */

    qsort(parts, nparts, sizeof(*parts), compare_parts);
    for (uint32_t i = 0; i < nparts; i++)
        if (is_at_home(emitter, &parts[i], dst, count))
            home = i;
    if (nparts == 1)
        return tutti_import_add(emitter, count, sum, NULL, dst);
    if (home >= 2)
        TUTTI_TRY(make_aside(emitter, dst, classes, count, &aside));
    for (uint32_t i = 1; i < nparts; i++) {
        const struct tutti_import_part *to = i < home ? aside : dst;

        if (sum->rank != dst->rank && parts[i].rank != dst->rank) {
            TUTTI_TRY(tutti_import_add(emitter, count, sum, NULL, to));
            sum = to;
        }
        TUTTI_TRY(tutti_import_add(emitter, count, sum, &parts[i], to));
        sum = to;
    }
    return TUTTI_OK;
}
