/* SPDX-License-Identifier: Apache-2.0
 * Keeps the transports of a fabric: their state, their slices of records and verdicts, and the
 * variable that chooses among them. */
#include "transport/fabric_private.h"

#include "base/param.h"

#include <stdio.h>
#include <string.h>

/* ---- layout -------------------------------------------------------------------------- */

/* Reserves a slice of `bytes` at offset *end, and moves *end behind the slice. Returns the offset
 * of the slice. */
static uint32_t place_slice(uint32_t *end, uint32_t bytes)
{
    uint32_t begin = *end;

    *end += (bytes + 7) / 8 * 8; /* slices begin at multiples of 8 */
    return begin;
}

/* Appends a transport to a text such as "one,other:296+60", which has `length` bytes. If the
 * transport has slices, their sizes in a record and in a verdict follow its name. Returns the new
 * length, which is at least TUTTI_LAYOUT_BYTES if the text was cut. */
static size_t write_layout(char *text, size_t length, const struct tutti_transport_ops *ops)
{
    int more = snprintf(text + length, TUTTI_LAYOUT_BYTES - length, "%s%s", length > 0 ? "," : "",
                        ops->name);

    length += (size_t)more;
    if (length >= TUTTI_LAYOUT_BYTES || ops->record_bytes + ops->verdict_bytes == 0)
        return length;
    more = snprintf(text + length, TUTTI_LAYOUT_BYTES - length, ":%u+%u", ops->record_bytes,
                    ops->verdict_bytes);
    return length + (size_t)more;
}

int tutti_parts_init(struct tutti_fabric *fabric)
{
    uint32_t record_end = 0, verdict_end = 0, count = 0;
    size_t length = 0;

    while (tutti_transports[count] != NULL && count < TUTTI_MOST_TRANSPORTS &&
           length < TUTTI_LAYOUT_BYTES) {
        const struct tutti_transport_ops *ops = tutti_transports[count];

        fabric->parts[count++] =
            (struct tutti_part){.ops = ops,
                                .record_at = place_slice(&record_end, ops->record_bytes),
                                .verdict_at = place_slice(&verdict_end, ops->verdict_bytes)};
        length = write_layout(fabric->mine.layout, length, ops);
    }
    if (tutti_transports[count] != NULL || length >= TUTTI_LAYOUT_BYTES ||
        record_end > sizeof fabric->mine.slices || verdict_end > sizeof fabric->verdict.slices)
        return tutti_fail(TUTTI_ERR_INTERNAL,
                          "the first %u transports have slices of %u and %u bytes: they do not fit "
                          "into a record and a verdict",
                          count, record_end, verdict_end);
    fabric->nparts = count;
    return TUTTI_OK;
}

/* Returns the index of a transport, which must be in the table. */
static uint32_t index_of(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    uint32_t index = 0;

    while (fabric->parts[index].ops != ops)
        index++;
    return index;
}

/* ---- state and slices ---------------------------------------------------------------- */

void *tutti_part_state(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    return fabric->parts[index_of(fabric, ops)].state;
}

void tutti_part_set_state(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                          void *state)
{
    pthread_mutex_lock(&fabric->lock);
    fabric->parts[index_of(fabric, ops)].state = state;
    pthread_mutex_unlock(&fabric->lock);
}

void *tutti_record_slice(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                         int rank)
{
    return fabric->records[rank].slices + fabric->parts[index_of(fabric, ops)].record_at;
}

void *tutti_record_own_slice(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    return fabric->mine.slices + fabric->parts[index_of(fabric, ops)].record_at;
}

void *tutti_verdict_slice(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                          int rank)
{
    return fabric->verdicts[rank].slices + fabric->parts[index_of(fabric, ops)].verdict_at;
}

void *tutti_verdict_own_slice(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    return fabric->verdict.slices + fabric->parts[index_of(fabric, ops)].verdict_at;
}

/* ---- which ranks use a transport ----------------------------------------------------- */

static uint32_t bit_of(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    return (uint32_t)1 << index_of(fabric, ops);
}

bool tutti_part_is_used_by(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                           int rank)
{
    return (fabric->records[rank].uses & bit_of(fabric, ops)) != 0;
}

bool tutti_part_is_used(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops)
{
    return (fabric->mine.uses & bit_of(fabric, ops)) != 0;
}

/* Fails because `name`, of `length` bytes, in the value `text` is not a transport. */
static int fail_unknown(const struct tutti_fabric *fabric, const char *text, const char *name,
                        size_t length)
{
    char known[256];
    size_t at = 0;

    for (uint32_t i = 0; i < fabric->nparts && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "",
                               fabric->parts[i].ops->name);
    return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_TRANSPORTS=%s: '%.*s' is none of %s", text,
                      (int)length, name, known);
}

int tutti_parts_allowed(const struct tutti_fabric *fabric, uint32_t *ret_uses)
{
    const char *text = tutti_param_text(TUTTI_PARAM_TRANSPORTS);
    uint32_t uses = 0;

    for (uint32_t i = 0; i < fabric->nparts; i++)
        if (fabric->parts[i].ops->is_always_on || *text == '\0')
            uses |= (uint32_t)1 << i;
    for (const char *at = *text != '\0' ? text : NULL; at != NULL;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        uint32_t i = 0;

        while (i < fabric->nparts && (strlen(fabric->parts[i].ops->name) != length ||
                                      strncmp(fabric->parts[i].ops->name, at, length) != 0))
            i++;
        if (i == fabric->nparts)
            return fail_unknown(fabric, text, at, length);
        uses |= (uint32_t)1 << i;
        at = comma ? comma + 1 : NULL;
    }
    for (uint32_t i = 0; i < fabric->nparts && fabric->is_between_hosts; i++)
        if (!fabric->parts[i].ops->is_always_on && !fabric->parts[i].ops->reaches_hosts)
            uses &= ~((uint32_t)1 << i);
    *ret_uses = uses;
    return TUTTI_OK;
}

bool tutti_fabric_same_host(const struct tutti_fabric *fabric, int a, int b)
{
    return tutti_identity_same_host(&fabric->records[a].identity, &fabric->records[b].identity);
}

bool tutti_fabric_same_network(const struct tutti_fabric *fabric, int a, int b)
{
    return memcmp(fabric->records[a].identity.network, fabric->records[b].identity.network,
                  TUTTI_IDENTITY_BYTES) == 0;
}

/* ---- progress ------------------------------------------------------------------------ */

void tutti_parts_progress(struct tutti_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->nprogress; i++)
        fabric->progress[i](fabric);
}
