/* SPDX-License-Identifier: Apache-2.0
 * Reads schedules from text: first the lines that apply to all ranks, then rank by rank.
 */
#include "schedule/text.h"

#include "base/result.h"
#include "schedule/derive.h"
#include "schedule/text_private.h"

#include <stdlib.h>
#include <string.h>

static int read_scratch(struct tutti_text_reader *reader, struct tutti_text_head *head)
{
    tutti_text_next(reader);
    if (!tutti_text_is(reader, "vector") && !tutti_text_is(reader, "uniform"))
        return tutti_text_refuse(reader, "\"%.*s\": scratch memory is vector or uniform",
                                 TUTTI_TEXT_WORD(reader));
    head->scratch_like =
        tutti_text_is(reader, "vector") ? TUTTI_SCRATCH_VECTOR : TUTTI_SCRATCH_UNIFORM;
    return tutti_text_number(reader, "count of scratch chunks", 1, TUTTI_TEXT_CHUNKS_MAX,
                             &head->scratch_chunks);
}

static int read_needs(struct tutti_text_reader *reader, struct tutti_text_head *head)
{
    head->needs = 0;
    for (;;) {
        unsigned i = 0;

        tutti_text_next(reader);
        if (reader->word.length == 0)
            return TUTTI_OK;
        while (tutti_text_need_name(i) != NULL && !tutti_text_is(reader, tutti_text_need_name(i)))
            i++;
        if (tutti_text_need_name(i) == NULL)
            return tutti_text_refuse(reader, "\"%.*s\": needs are window, peer_read and peer_store",
                                     TUTTI_TEXT_WORD(reader));
        head->needs |= 1u << i;
    }
}

static int read_dependencies(struct tutti_text_reader *reader, struct tutti_text_head *head)
{
    tutti_text_next(reader);
    if (!tutti_text_is(reader, "listed"))
        return tutti_text_refuse(reader,
                                 "\"%.*s\": write \"dependencies listed\", or nothing to have them "
                                 "derived",
                                 TUTTI_TEXT_WORD(reader));
    head->lists_dependencies = true;
    return TUTTI_OK;
}

/* Read a line if it belongs to a head; *ret_is_head tells whether it does. */
static int read_head(struct tutti_text_reader *reader, struct tutti_text_head *head,
                     bool *ret_is_head)
{
    uint32_t nranks = reader->ensemble->nranks;

    *ret_is_head = true;
    if (nranks == 0)
        return tutti_text_refuse(reader, "\"%.*s\" before \"ranks\"", TUTTI_TEXT_WORD(reader));
    if (tutti_text_is(reader, "chunks"))
        TUTTI_TRY(tutti_text_number(reader, "count of chunks per block", 1,
                                    TUTTI_TEXT_CHUNKS_MAX / nranks, &head->chunks));
    else if (tutti_text_is(reader, "scratch"))
        TUTTI_TRY(read_scratch(reader, head));
    else if (tutti_text_is(reader, "window"))
        TUTTI_TRY(tutti_text_number(reader, "count of window chunks", 1, TUTTI_TEXT_CHUNKS_MAX,
                                    &head->window_chunks));
    else if (tutti_text_is(reader, "signals"))
        TUTTI_TRY(tutti_text_number(reader, "count of signals", 1, UINT16_MAX, &head->nsignals));
    else if (tutti_text_is(reader, "channels"))
        TUTTI_TRY(tutti_text_number(reader, "count of channels", 1,
                                    tutti_text_most_channels(nranks), &head->nchannels));
    else if (tutti_text_is(reader, "dependencies"))
        TUTTI_TRY(read_dependencies(reader, head));
    else if (tutti_text_is(reader, "needs"))
        return read_needs(reader, head);
    else
        *ret_is_head = false;
    return *ret_is_head ? tutti_text_expect_end(reader) : TUTTI_OK;
}

/* ---- ranks ---------------------------------------------------------------------------------- */

static int begin_rank(struct tutti_text_reader *reader)
{
    struct tutti_shape shape = {.nranks = reader->ensemble->nranks, .root = reader->root};

    if (!reader->has_collective || shape.nranks == 0)
        return tutti_text_refuse(reader, "a rank before \"collective\" and \"ranks\"");
    TUTTI_TRY(tutti_text_number(reader, "rank", 0, shape.nranks - 1, &shape.rank));
    if (reader->ensemble->schedules[shape.rank] != NULL)
        return tutti_text_refuse(reader, "rank %u for the second time; remove one", shape.rank);
    TUTTI_TRY(tutti_text_expect_end(reader));
    reader->own = reader->common;
    reader->ngiven = 0;
    reader->ndeps = 0;
    return tutti_build_init(&reader->build, reader->collective, &shape);
}

/* The head of a rank ends with its first step. Only then are the declarations of the rank
 * complete. */
static void declare(struct tutti_text_reader *reader)
{
    struct tutti_build *build = &reader->build;

    if (build->schedule->nsteps > 0)
        return;
    tutti_build_chunks(build, reader->own.chunks);
    tutti_build_scratch(build, reader->own.scratch_like, reader->own.scratch_chunks);
    tutti_build_window(build, reader->own.window_chunks);
    tutti_build_needs(build, reader->own.needs);
    tutti_build_signals(build, reader->own.nsignals);
}

/* Replace the derived dependencies with those that the file lists. */
static int use_listed_dependencies(struct tutti_text_reader *reader,
                                   struct tutti_schedule *schedule)
{
    uint32_t *deps = malloc((reader->ndeps + 1) * sizeof(*deps)), first = 0;

    if (deps == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u dependencies", reader->ndeps);
    if (reader->ndeps > 0)
        memcpy(deps, reader->deps, reader->ndeps * sizeof(*deps));
    free(schedule->deps);
    schedule->deps = deps;
    schedule->ndeps = reader->ndeps;
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        schedule->steps[i].dep_first = first;
        schedule->steps[i].dep_count = reader->dep_counts[i];
        first += reader->dep_counts[i];
    }
    return TUTTI_OK;
}

/* Complete the schedule of the current rank, if there is one. */
static int end_rank(struct tutti_text_reader *reader)
{
    struct tutti_schedule *schedule;
    uint32_t rank;

    if (reader->build.schedule == NULL)
        return TUTTI_OK;
    declare(reader);
    TUTTI_TRY(tutti_build_finish(&reader->build, &schedule));
    rank = schedule->rank;
    reader->ensemble->schedules[rank] = schedule;
    if (reader->own.nchannels > 0)
        schedule->nchannels = (uint16_t)reader->own.nchannels;
    return reader->own.lists_dependencies ? use_listed_dependencies(reader, schedule) : TUTTI_OK;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* The name of an algorithm may consist of several words. */
static int read_name(struct tutti_text_reader *reader)
{
    const char *begin, *end;

    tutti_text_next(reader);
    begin = end = reader->word.at;
    for (; reader->word.length > 0; tutti_text_next(reader))
        end = reader->word.at + reader->word.length;
    if (end == begin || (size_t)(end - begin) >= TUTTI_ENSEMBLE_NAME_BYTES)
        return tutti_text_refuse(reader, "an algorithm's name has 1 to %d characters",
                                 TUTTI_ENSEMBLE_NAME_BYTES - 1);
    memcpy(reader->ensemble->name, begin, (size_t)(end - begin));
    reader->ensemble->name[end - begin] = '\0';
    return TUTTI_OK;
}

static int read_collective(struct tutti_text_reader *reader)
{
    char list[TUTTI_COLLECTIVE_LIST_BYTES];
    enum tutti_collective collective;

    tutti_text_next(reader);
    collective = tutti_collective_find(reader->word.at, reader->word.length);
    if (collective == TUTTI_COLLECTIVE_COUNT)
        return tutti_text_refuse(reader, "\"%.*s\" is no collective; write one of %s",
                                 TUTTI_TEXT_WORD(reader), tutti_collective_list(0, list));
    reader->collective = collective;
    reader->has_collective = true;
    return tutti_text_expect_end(reader);
}

static int read_ranks(struct tutti_text_reader *reader)
{
    struct tutti_ensemble earlier = *reader->ensemble; /* from the lines before */
    uint32_t nranks;

    if (reader->ensemble->nranks > 0)
        return tutti_text_refuse(reader, "\"ranks\" for the second time; remove one");
    TUTTI_TRY(tutti_text_number(reader, "number of ranks", 1, TUTTI_TEXT_RANKS_MAX, &nranks));
    TUTTI_TRY(tutti_ensemble_init(reader->ensemble, nranks));
    memcpy(reader->ensemble->name, earlier.name, sizeof(earlier.name));
    reader->ensemble->least_bytes = earlier.least_bytes;
    reader->ensemble->most_bytes = earlier.most_bytes;
    return tutti_text_expect_end(reader);
}

static int read_bytes(struct tutti_text_reader *reader)
{
    struct tutti_ensemble *ensemble = reader->ensemble;

    TUTTI_TRY(
        tutti_text_number64(reader, "number of bytes", 0, UINT64_MAX, &ensemble->least_bytes));
    TUTTI_TRY(tutti_text_number64(reader, "number of bytes, not less than the one before",
                                  ensemble->least_bytes > 0 ? ensemble->least_bytes : 1, UINT64_MAX,
                                  &ensemble->most_bytes));
    return tutti_text_expect_end(reader);
}

/* Read a line before the first rank. */
static int read_common(struct tutti_text_reader *reader)
{
    bool is_head;

    if (tutti_text_is(reader, "algorithm"))
        return read_name(reader);
    if (tutti_text_is(reader, "collective"))
        return read_collective(reader);
    if (tutti_text_is(reader, "ranks"))
        return read_ranks(reader);
    if (tutti_text_is(reader, "root")) {
        if (reader->ensemble->nranks == 0)
            return tutti_text_refuse(reader, "\"root\" before \"ranks\"");
        TUTTI_TRY(
            tutti_text_number(reader, "root", 0, reader->ensemble->nranks - 1, &reader->root));
        return tutti_text_expect_end(reader);
    }
    if (tutti_text_is(reader, "bytes"))
        return read_bytes(reader);
    TUTTI_TRY(read_head(reader, &reader->common, &is_head));
    if (!is_head)
        return tutti_text_refuse(reader,
                                 "\"%.*s\" is no line of a schedule before its first "
                                 "rank; see docs/schedule-files.md",
                                 TUTTI_TEXT_WORD(reader));
    return TUTTI_OK;
}

/* Read a line in a rank: its head, then its steps. */
static int read_in_rank(struct tutti_text_reader *reader)
{
    enum tutti_step_kind kind = 0;
    bool is_head = false;

    if (reader->build.schedule->nsteps == 0)
        TUTTI_TRY(read_head(reader, &reader->own, &is_head));
    if (is_head)
        return TUTTI_OK;
    while (kind < TUTTI_STEP_KIND_COUNT && !tutti_text_is(reader, tutti_step_name(kind)))
        kind++;
    if (kind == TUTTI_STEP_KIND_COUNT)
        return tutti_text_refuse(reader, "\"%.*s\" is no step; see docs/schedule-files.md",
                                 TUTTI_TEXT_WORD(reader));
    declare(reader);
    return tutti_text_read_step(reader, kind);
}

static int read_line(struct tutti_text_reader *reader)
{
    tutti_text_next(reader);
    if (reader->word.length == 0)
        return TUTTI_OK;
    if (tutti_text_is(reader, "rank")) {
        TUTTI_TRY(end_rank(reader));
        return begin_rank(reader);
    }
    return reader->build.schedule != NULL ? read_in_rank(reader) : read_common(reader);
}

static int read_version(struct tutti_text_reader *reader)
{
    uint32_t version;

    tutti_text_next(reader);
    if (!tutti_text_is(reader, "tutti-schedule"))
        return tutti_text_refuse(reader, "the file does not begin with \"tutti-schedule 1\"");
    TUTTI_TRY(tutti_text_number(reader, "version of this form that is known", 1, 1, &version));
    return tutti_text_expect_end(reader);
}

static int read_all(struct tutti_text_reader *reader)
{
    TUTTI_TRY(read_version(reader));
    while (tutti_words_next_line(&reader->words))
        TUTTI_TRY(read_line(reader));
    reader->word.column = 1; /* messages point at the end of the file */
    TUTTI_TRY(end_rank(reader));
    if (reader->ensemble->nranks == 0)
        return tutti_text_refuse(reader, "the file ends before \"ranks\"");
    for (uint32_t rank = 0; rank < reader->ensemble->nranks; rank++)
        if (reader->ensemble->schedules[rank] == NULL)
            return tutti_text_refuse(reader, "the file ends without rank %u of %u", rank,
                                     reader->ensemble->nranks);
    return TUTTI_OK;
}

int tutti_ensemble_read(const char *name, const char *text, struct tutti_ensemble *ret_ensemble)
{
    struct tutti_ensemble ensemble = {.nranks = 0};
    struct tutti_text_reader reader = {
        .words = tutti_words_of(name, text), .ensemble = &ensemble, .common = {.chunks = 1}};
    int rc;

    /* The name of an algorithm may contain a semicolon. */
    reader.words.keeps_semicolons = true;
    rc = read_all(&reader);
    tutti_build_fini(&reader.build);
    free(reader.deps);
    free(reader.dep_counts);
    free(reader.among);
    if (rc != TUTTI_OK) {
        tutti_ensemble_fini(&ensemble);
        return rc;
    }
    *ret_ensemble = ensemble;
    return TUTTI_OK;
}
