/* SPDX-License-Identifier: Apache-2.0
 * Reads one step of the text form. The reader checks everything here, because here it knows the
 * line and the column for the message. So the builder finds no further error in a step.
 */
#include "schedule/text_private.h"

#include "base/array.h"
#include "base/result.h"
#include "schedule/access.h"

#include <stdlib.h>

/* Read a rank other than this one, or "all" where the field may address several ranks. */
static int read_peer(struct tutti_text_reader *reader, enum tutti_step_kind kind,
                     enum tutti_text_field field, int32_t *ret_peer)
{
    uint32_t nranks = reader->ensemble->nranks, rank;
    bool takes_all = kind == TUTTI_STEP_GATHER_REDUCE || kind == TUTTI_STEP_PUT ||
                     (kind == TUTTI_STEP_WAIT && field == TUTTI_TEXT_FROM);
    const char *before = reader->words.at;

    tutti_text_next(reader);
    if (takes_all && tutti_text_is(reader, "all")) {
        *ret_peer = TUTTI_ALL_RANKS;
        return TUTTI_OK;
    }
    if (kind == TUTTI_STEP_GATHER_REDUCE && field == TUTTI_TEXT_FROM)
        return tutti_text_refuse(reader, "\"%.*s\": a gather_reduce is from all",
                                 TUTTI_TEXT_WORD(reader));
    reader->words.at = before;
    TUTTI_TRY(tutti_text_number(reader, "rank", 0, nranks - 1, &rank));
    if (rank == reader->build.schedule->rank)
        return tutti_text_refuse(reader, "rank %u names itself; use copy or reduce", rank);
    *ret_peer = (int32_t)rank;
    return TUTTI_OK;
}

/* Check that a span lies inside its buffer, and count its chunks. */
static int check_span(struct tutti_text_reader *reader, const struct tutti_step *step,
                      enum tutti_text_field field, const struct tutti_span *span)
{
    const struct tutti_schedule *schedule = reader->build.schedule;
    bool is_remote = field == TUTTI_TEXT_REMOTE || field == TUTTI_TEXT_REMOTE_DST;
    int32_t peer = step->to >= 0 ? step->to : step->from;
    uint32_t owner = is_remote && peer >= 0 ? (uint32_t)peer : schedule->rank;
    uint32_t chunks = tutti_buffer_chunks(schedule, owner, (enum tutti_buffer)span->buffer);

    if (span->first > chunks || span->count > chunks - span->first)
        return tutti_text_refuse(reader, "chunks %u to %llu of %s, which has %u at rank %u",
                                 span->first, (unsigned long long)span->first + span->count - 1,
                                 tutti_buffer_name((enum tutti_buffer)span->buffer), chunks, owner);
    reader->touches += span->count;
    if (reader->touches > TUTTI_TEXT_TOUCHES_MAX)
        return tutti_text_refuse(reader,
                                 "the steps so far touch more than %llu chunks; use fewer chunks",
                                 (unsigned long long)TUTTI_TEXT_TOUCHES_MAX);
    return TUTTI_OK;
}

static int add_dependency(struct tutti_text_reader *reader, uint32_t on)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(reader->deps, reader->ndeps, reader->dep_capacity, "dependencies"));
    reader->deps[reader->ndeps++] = on;
    return TUTTI_OK;
}

/* Read the list of steps that the current step waits for, up to the end of the line. */
static int read_after(struct tutti_text_reader *reader)
{
    uint32_t at = reader->build.schedule->nsteps, count = 0, on;

    if (!reader->own.lists_dependencies)
        return tutti_text_refuse(reader,
                                 "\"after\" in a rank that does not say \"dependencies listed\" "
                                 "before its first step");
    for (;;) {
        const char *before = reader->words.at;

        tutti_text_next(reader);
        reader->words.at = before;
        if (reader->word.length == 0)
            break;
        if (at == 0)
            return tutti_text_refuse(reader, "the first step waits for none; remove \"after\"");
        TUTTI_TRY(tutti_text_number(reader, "earlier step of this rank", 0, at - 1, &on));
        TUTTI_TRY(add_dependency(reader, on));
        count++;
    }
    reader->dep_counts[at] = count;
    return TUTTI_OK;
}

/* Read a list of ranks into reader->among. The ranks must ascend, and the rank of the step must be
 * one of them. */
static int read_among(struct tutti_text_reader *reader)
{
    uint32_t nranks = reader->ensemble->nranks, own = reader->build.schedule->rank, rank;
    bool has_own = false;

    if (reader->among == NULL)
        reader->among = calloc(nranks, sizeof(*reader->among));
    if (reader->among == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u ranks of a step", nranks);
    for (;;) {
        const char *before = reader->words.at;

        tutti_text_next(reader);
        reader->words.at = before;
        if (reader->word.length == 0 || reader->word.at[0] < '0' || reader->word.at[0] > '9')
            break;
        TUTTI_TRY(tutti_text_number(reader, "rank", 0, nranks - 1, &rank));
        if (reader->namong > 0 && rank <= reader->among[reader->namong - 1])
            return tutti_text_refuse(reader, "rank %u after rank %u; let them ascend", rank,
                                     reader->among[reader->namong - 1]);
        reader->among[reader->namong++] = rank;
        has_own = has_own || rank == own;
    }
    if (!has_own)
        return tutti_text_refuse(reader,
                                 "\"among\" without rank %u, to which the step belongs; list that "
                                 "rank, too",
                                 own);
    return TUTTI_OK;
}

static int read_field(struct tutti_text_reader *reader, struct tutti_step *step,
                      enum tutti_text_field field)
{
    enum tutti_step_kind kind = (enum tutti_step_kind)step->kind;
    uint32_t most = reader->own.nchannels, number;

    if (most == 0)
        most = tutti_text_most_channels(reader->ensemble->nranks);
    switch (field) {
    case TUTTI_TEXT_FROM: return read_peer(reader, kind, field, &step->from);
    case TUTTI_TEXT_TO: return read_peer(reader, kind, field, &step->to);
    case TUTTI_TEXT_SIGNAL:
        if (reader->own.nsignals == 0)
            return tutti_text_refuse(reader,
                                     "a wait in a rank without signals; say \"signals N\" before "
                                     "the first step");
        TUTTI_TRY(tutti_text_number(reader, "signal", 1, reader->own.nsignals, &number));
        step->signal = (uint16_t)number;
        return TUTTI_OK;
    case TUTTI_TEXT_CHANNEL:
        TUTTI_TRY(tutti_text_number(reader, "channel", 0, most - 1, &number));
        step->channel = (uint8_t)number;
        return TUTTI_OK;
    case TUTTI_TEXT_QUEUE:
        TUTTI_TRY(tutti_text_number(reader, "queue", 1, UINT16_MAX, &number));
        step->queue = (uint16_t)number;
        return TUTTI_OK;
    case TUTTI_TEXT_AMONG: return read_among(reader);
    case TUTTI_TEXT_AFTER: return read_after(reader);
    default: break;
    }
    TUTTI_TRY(tutti_text_read_span(reader, tutti_text_span(step, field)));
    /* Remote spans are checked at the end of the line. The line may name the peer that owns their
     * memory after the span. */
    if (field == TUTTI_TEXT_REMOTE || field == TUTTI_TEXT_REMOTE_DST)
        return TUTTI_OK;
    return check_span(reader, step, field, tutti_text_span(step, field));
}

/* Check a complete step. `seen` has a bit for each field on the line. All required fields must be
 * present, they must fit each other, and all spans must have the same length. */
static int check_step(struct tutti_text_reader *reader, const struct tutti_step *step,
                      uint32_t seen)
{
    enum tutti_step_kind kind = (enum tutti_step_kind)step->kind;
    struct tutti_touch accesses[TUTTI_STEP_ACCESSES];
    uint32_t missing = tutti_text_required(kind) & ~seen;
    uint32_t naccesses = tutti_step_accesses(step, accesses);

    for (enum tutti_text_field field = 0; field < TUTTI_TEXT_FIELD_COUNT; field++)
        if (missing & (1u << field))
            return tutti_text_refuse(reader, "%s without \"%s\"", tutti_step_name(kind),
                                     tutti_text_field_name(field));
    if (kind == TUTTI_STEP_GATHER_REDUCE && !tutti_step_has_valid_stores(step))
        return tutti_text_refuse(reader,
                                 "gather_reduce needs \"dst\"; or \"dst\", \"to all\" and "
                                 "\"remote_dst\"; or \"to\" a rank and \"remote_dst\", without "
                                 "\"dst\" and \"also\"");
    if (kind == TUTTI_STEP_PUT && !tutti_step_has_valid_stores(step))
        return tutti_text_refuse(reader,
                                 "put needs \"to all\" and \"dst\"; or \"to\" a rank and no "
                                 "\"dst\"");
    if (kind == TUTTI_STEP_PUT && step->to >= 0 && reader->namong > 0)
        return tutti_text_refuse(reader, "\"among\" in a put to one rank; remove it, or put \"to "
                                         "all\"");
    for (uint32_t i = 1; i < naccesses; i++)
        if (accesses[i].span.count != accesses[0].span.count)
            return tutti_text_refuse(
                reader, "%s joins %u chunks with %u; all spans of a step are equally long",
                tutti_step_name(kind), accesses[0].span.count, accesses[i].span.count);
    if (kind == TUTTI_STEP_SIGNAL && ++reader->ngiven > reader->own.nsignals)
        return tutti_text_refuse(
            reader,
            "signal %u of rank %u, which declares %u; say \"signals %u\" before the first step",
            reader->ngiven, reader->build.schedule->rank, reader->own.nsignals, reader->ngiven);
    return TUTTI_OK;
}

/* Make room for the number of dependencies of the next step, and set it to 0. */
static int reserve_counts(struct tutti_text_reader *reader)
{
    uint32_t at = reader->build.schedule->nsteps;

    TUTTI_TRY(TUTTI_ARRAY_ROOM(reader->dep_counts, at, reader->count_capacity, "steps"));
    reader->dep_counts[at] = 0;
    return TUTTI_OK;
}

int tutti_text_read_step(struct tutti_text_reader *reader, enum tutti_step_kind kind)
{
    struct tutti_step step = {.kind = (uint8_t)kind, .from = TUTTI_NO_RANK, .to = TUTTI_NO_RANK};
    struct tutti_word first_word = reader->word; /* names the kind; messages point at it */
    uint32_t seen = 0;

    TUTTI_TRY(reserve_counts(reader));
    reader->namong = 0;
    for (;;) {
        enum tutti_text_field field = 0;

        tutti_text_next(reader);
        if (reader->word.length == 0)
            break;
        while (field < TUTTI_TEXT_FIELD_COUNT &&
               !tutti_text_is(reader, tutti_text_field_name(field)))
            field++;
        if (field == TUTTI_TEXT_FIELD_COUNT || !(tutti_text_fields(kind) & (1u << field)))
            return tutti_text_refuse(reader, "%s has no \"%.*s\"", tutti_step_name(kind),
                                     TUTTI_TEXT_WORD(reader));
        if (seen & (1u << field))
            return tutti_text_refuse(reader, "\"%.*s\" twice; remove one", TUTTI_TEXT_WORD(reader));
        seen |= 1u << field;
        TUTTI_TRY(read_field(reader, &step, field));
    }
    reader->word = first_word;
    for (enum tutti_text_field field = TUTTI_TEXT_REMOTE; field <= TUTTI_TEXT_REMOTE_DST; field++)
        if ((seen & (1u << field)) && field != TUTTI_TEXT_ALSO)
            TUTTI_TRY(check_span(reader, &step, field, tutti_text_span(&step, field)));
    TUTTI_TRY(check_step(reader, &step, seen));
    TUTTI_TRY(tutti_build_among(&reader->build, reader->among, reader->namong));
    return tutti_build_step(&reader->build, &step);
}
