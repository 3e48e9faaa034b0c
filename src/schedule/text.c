/* SPDX-License-Identifier: Apache-2.0
 * Creates and frees ensembles, and names the words and fields of their text form.
 */
#include "schedule/text.h"

#include "base/result.h"
#include "schedule/access.h"
#include "schedule/text_private.h"

#include <stdlib.h>

int tutti_ensemble_init(struct tutti_ensemble *ensemble, uint32_t nranks)
{
    *ensemble = (struct tutti_ensemble){.nranks = nranks};
    ensemble->schedules = calloc((size_t)nranks + 1, sizeof(*ensemble->schedules));
    if (ensemble->schedules == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the schedules of %u ranks", nranks);
    return TUTTI_OK;
}

void tutti_ensemble_fini(struct tutti_ensemble *ensemble)
{
    for (uint32_t rank = 0; rank < ensemble->nranks && ensemble->schedules != NULL; rank++)
        tutti_schedule_destroy(ensemble->schedules[rank]);
    free(ensemble->schedules);
    *ensemble = (struct tutti_ensemble){.nranks = 0};
}

const char *tutti_text_field_name(enum tutti_text_field field)
{
    static const char *const names[TUTTI_TEXT_FIELD_COUNT] = {
        [TUTTI_TEXT_FROM] = "from",       [TUTTI_TEXT_TO] = "to",
        [TUTTI_TEXT_SRC] = "src",         [TUTTI_TEXT_DST] = "dst",
        [TUTTI_TEXT_REMOTE] = "remote",   [TUTTI_TEXT_ALSO] = "also",
        [TUTTI_TEXT_REMOTE_DST] = "remote_dst",
        [TUTTI_TEXT_SIGNAL] = "signal",   [TUTTI_TEXT_CHANNEL] = "channel",
        [TUTTI_TEXT_QUEUE] = "queue",     [TUTTI_TEXT_AMONG] = "among",
        [TUTTI_TEXT_AFTER] = "after",
    };

    return names[field];
}

const char *tutti_text_need_name(unsigned index)
{
    /* TUTTI_NEEDS_WINDOW, TUTTI_NEEDS_PEER_READ, TUTTI_NEEDS_PEER_STORE */
    static const char *const names[] = {"window", "peer_read", "peer_store"};

    return index < sizeof(names) / sizeof(*names) ? names[index] : NULL;
}

#define BIT(field) (1u << TUTTI_TEXT_##field)

uint32_t tutti_text_required(enum tutti_step_kind kind)
{
    static const uint32_t fields[TUTTI_STEP_KIND_COUNT] = {
        [TUTTI_STEP_SEND] = BIT(TO) | BIT(SRC),
        [TUTTI_STEP_RECV] = BIT(FROM) | BIT(DST),
        [TUTTI_STEP_RECV_REDUCE] = BIT(FROM) | BIT(SRC) | BIT(DST),
        [TUTTI_STEP_RECV_COPY_SEND] = BIT(FROM) | BIT(TO) | BIT(DST),
        [TUTTI_STEP_RECV_REDUCE_SEND] = BIT(FROM) | BIT(TO) | BIT(SRC),
        [TUTTI_STEP_RECV_REDUCE_COPY_SEND] = BIT(FROM) | BIT(TO) | BIT(SRC) | BIT(DST),
        [TUTTI_STEP_COPY] = BIT(SRC) | BIT(DST),
        [TUTTI_STEP_REDUCE] = BIT(SRC) | BIT(DST),
        [TUTTI_STEP_PUT] = BIT(TO) | BIT(SRC) | BIT(REMOTE),
        [TUTTI_STEP_GET] = BIT(FROM) | BIT(DST) | BIT(REMOTE),
        [TUTTI_STEP_GATHER_REDUCE] = BIT(FROM) | BIT(SRC) | BIT(REMOTE),
        [TUTTI_STEP_SIGNAL] = 0,
        [TUTTI_STEP_WAIT] = BIT(FROM) | BIT(SIGNAL),
    };

    return fields[kind];
}

uint32_t tutti_text_fields(enum tutti_step_kind kind)
{
    uint32_t fields = tutti_text_required(kind) | BIT(AFTER);
    bool receives = tutti_step_kind_receives(kind), sends = tutti_step_kind_sends(kind);

    if (receives || sends)
        fields |= BIT(CHANNEL);
    if (receives != sends)
        fields |= BIT(QUEUE);
    if (kind == TUTTI_STEP_PUT)
        fields |= BIT(DST) | BIT(AMONG);
    if (kind == TUTTI_STEP_GATHER_REDUCE)
        fields |= BIT(AMONG) | BIT(TO) | BIT(DST) | BIT(ALSO) | BIT(REMOTE_DST);
    return fields;
}

struct tutti_span *tutti_text_span(struct tutti_step *step, enum tutti_text_field field)
{
    switch (field) {
    case TUTTI_TEXT_SRC: return &step->src;
    case TUTTI_TEXT_DST: return &step->dst;
    case TUTTI_TEXT_REMOTE: return &step->remote;
    case TUTTI_TEXT_ALSO: return &step->also;
    case TUTTI_TEXT_REMOTE_DST: return &step->remote_dst;
    default: return NULL;
    }
}
